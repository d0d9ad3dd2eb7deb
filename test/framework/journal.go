// SPDX-FileCopyrightText: The WorkItem Operator Authors
// SPDX-License-Identifier: Apache-2.0

package framework

import (
	"fmt"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/go-logr/logr"
)

// journalKept is how many entries a Journal keeps.
const journalKept = 400

// Journal is what happened, in order: requests, faults, log lines. A test that
// fails prints it.
type Journal struct {
	mu     sync.Mutex
	start  time.Time
	lines  []string
	errors []string
}

func newJournal() *Journal { return &Journal{start: time.Now()} }

// Add adds an entry.
func (j *Journal) Add(format string, args ...any) {
	j.mu.Lock()
	defer j.mu.Unlock()
	j.lines = append(j.lines, fmt.Sprintf("%8.3f ", time.Since(j.start).Seconds())+fmt.Sprintf(format, args...))
	if extra := len(j.lines) - journalKept; extra > 0 {
		j.lines = j.lines[extra:]
	}
}

// String returns the last entries, one a line.
func (j *Journal) String() string {
	j.mu.Lock()
	defer j.mu.Unlock()
	return strings.Join(j.lines, "\n")
}

func (j *Journal) addError(line string) {
	j.mu.Lock()
	defer j.mu.Unlock()
	j.errors = append(j.errors, line)
}

// Errors returns the log lines of level error.
func (j *Journal) Errors() []string {
	j.mu.Lock()
	defer j.mu.Unlock()
	return append([]string(nil), j.errors...)
}

// logSink writes what a manager logs into a Journal.
type logSink struct {
	journal *Journal
	name    string
	values  []any
}

var _ logr.LogSink = logSink{}

// Init implements logr.LogSink.
func (s logSink) Init(logr.RuntimeInfo) {}

// Enabled implements logr.LogSink: what explains why nothing happened is wanted too.
func (s logSink) Enabled(level int) bool { return level <= 1 }

// Info implements logr.LogSink.
func (s logSink) Info(level int, msg string, kv ...any) {
	s.journal.Add("%s log/%d %s %v", s.name, level, msg, append(slices.Clip(s.values), kv...))
}

// Error implements logr.LogSink.
func (s logSink) Error(err error, msg string, kv ...any) {
	line := fmt.Sprintf("%s ERROR %s: %v %v", s.name, msg, err, append(slices.Clip(s.values), kv...))
	s.journal.Add("%s", line)
	s.journal.addError(line)
}

// WithValues implements logr.LogSink.
func (s logSink) WithValues(kv ...any) logr.LogSink {
	s.values = append(slices.Clip(s.values), kv...)
	return s
}

// WithName implements logr.LogSink.
func (s logSink) WithName(string) logr.LogSink { return s }

// teeSink writes into two sinks.
type teeSink [2]logr.LogSink

var _ logr.LogSink = teeSink{}

// Init implements logr.LogSink.
func (s teeSink) Init(logr.RuntimeInfo) {}

// Enabled implements logr.LogSink.
func (s teeSink) Enabled(level int) bool { return s[0].Enabled(level) }

// Info implements logr.LogSink.
func (s teeSink) Info(level int, msg string, kv ...any) {
	s[0].Info(level, msg, kv...)
	s[1].Info(level, msg, kv...)
}

// Error implements logr.LogSink.
func (s teeSink) Error(err error, msg string, kv ...any) {
	s[0].Error(err, msg, kv...)
	s[1].Error(err, msg, kv...)
}

// WithValues implements logr.LogSink.
func (s teeSink) WithValues(kv ...any) logr.LogSink {
	return teeSink{s[0].WithValues(kv...), s[1].WithValues(kv...)}
}

// WithName implements logr.LogSink.
func (s teeSink) WithName(name string) logr.LogSink {
	return teeSink{s[0].WithName(name), s[1].WithName(name)}
}
