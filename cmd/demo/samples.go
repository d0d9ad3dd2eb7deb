// SPDX-FileCopyrightText: The WorkItem Operator Authors
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"time"
)

// namespace is where the demo plays.
const namespace = "demo"

var (
	// sampleURL is where the samples send to; the receiver takes its place.
	sampleURL = regexp.MustCompile(`https://hooks\.example\.com`)
	// sampleDue is the due time of a sample; the demo cannot wait for it.
	sampleDue = regexp.MustCompile(`(?m)^(\s*dueTime:).*$`)
	// sampleAfter is the time of an escalation step of a sample.
	sampleAfter = regexp.MustCompile(`(?m)^(\s*- after:).*$`)
)

// manifests are the samples of the repository with three things changed: where they
// send to, when they are due, and how long an escalation takes.
func manifests(root, receiver string, due time.Time) (string, error) {
	files, err := filepath.Glob(filepath.Join(root, "config", "samples", "*_*.yaml"))
	if err != nil || len(files) == 0 {
		return "", fmt.Errorf("finding the samples: %d files, %w", len(files), err)
	}
	var out strings.Builder
	for _, file := range files {
		raw, err := os.ReadFile(file) //nolint:gosec // A file of this repository.
		if err != nil {
			return "", fmt.Errorf("reading a sample: %w", err)
		}
		text := sampleURL.ReplaceAllString(string(raw), receiver)
		text = sampleDue.ReplaceAllString(text, `$1 "`+due.UTC().Format(time.RFC3339)+`"`)
		step := 0
		text = sampleAfter.ReplaceAllStringFunc(text, func(line string) string {
			step++
			return sampleAfter.ReplaceAllString(line, fmt.Sprintf("$1 %ds", 2*step))
		})
		out.WriteString("---\n" + text)
	}
	return out.String(), nil
}

// apply makes the namespace and applies the samples to it.
func (s *stage) apply(ctx context.Context, due time.Time) error {
	text, err := manifests(s.root, s.receiver.URL(), due)
	if err != nil {
		return err
	}
	if err := s.kubectl(ctx, nil, "create", "namespace", namespace); err != nil {
		return err
	}
	s.out.say("\nThe samples of config/samples, sent to %s and due at %s:", s.receiver.URL(), due.Local().Format("15:04:05"))
	return s.kubectl(ctx, strings.NewReader(text), "-n", namespace, "apply", "-f", "-")
}
