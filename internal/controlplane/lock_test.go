// SPDX-FileCopyrightText: The WorkItem Operator Authors
// SPDX-License-Identifier: Apache-2.0

package controlplane

import (
	"context"
	"errors"
	"fmt"
	"path/filepath"
	"testing"
	"time"
)

func TestTheSecondWaitsForTheLockAndSaysSo(t *testing.T) {
	path := filepath.Join(t.TempDir(), "cache", "lock")
	release, err := lock(t.Context(), path, t.Logf)
	if err != nil {
		t.Fatal(err)
	}
	waiting := make(chan string, 1)
	locked := make(chan error, 1)
	go func() {
		unlock, err := lock(t.Context(), path, func(format string, args ...any) {
			waiting <- fmt.Sprintf(format, args...)
		})
		if err == nil {
			unlock()
		}
		locked <- err
	}()
	t.Log(<-waiting)
	select {
	case err := <-locked:
		t.Fatalf("the second has the lock (%v) while the first holds it", err)
	case <-time.After(2 * lockPollInterval):
	}
	release()
	if err := <-locked; err != nil {
		t.Errorf("got %v after the release", err)
	}
}

func TestWaitingForTheLockEndsWithTheContext(t *testing.T) {
	path := filepath.Join(t.TempDir(), "lock")
	release, err := lock(t.Context(), path, t.Logf)
	if err != nil {
		t.Fatal(err)
	}
	defer release()
	ctx, cancel := context.WithCancel(t.Context())
	_, err = lock(ctx, path, func(string, ...any) { cancel() })
	if !errors.Is(err, context.Canceled) {
		t.Errorf("got %v, want context.Canceled", err)
	}
}
