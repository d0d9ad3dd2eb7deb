// SPDX-FileCopyrightText: The WorkItem Operator Authors
// SPDX-License-Identifier: Apache-2.0

package controlplane

import (
	"bytes"
	"fmt"
	"strings"
	"sync"
)

// keptLines is how much of a process's output an error shows.
const keptLines = 20

// lineTail keeps the last lines written to it. It is safe for concurrent use.
type lineTail struct {
	mu      sync.Mutex
	partial []byte
	lines   []string
	// skip, when set, takes a line out of the tail. It is called with mu held.
	skip func(line string) bool
}

// Write takes a piece of output, which may end in the middle of a line.
func (t *lineTail) Write(p []byte) (int, error) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.partial = append(t.partial, p...)
	for {
		line, rest, found := bytes.Cut(t.partial, []byte{'\n'})
		if !found {
			return len(p), nil
		}
		t.add(string(line))
		t.partial = rest
	}
}

func (t *lineTail) add(line string) {
	if t.skip != nil && t.skip(line) {
		return
	}
	t.lines = append(t.lines, line)
	if len(t.lines) > keptLines {
		t.lines = t.lines[1:]
	}
}

func (t *lineTail) String() string {
	t.mu.Lock()
	defer t.mu.Unlock()
	return strings.Join(t.lines, "\n")
}

// goOutput reads what the go command writes to its standard error: it counts the downloads and the compiled
// packages, and keeps everything else, which is what went wrong.
type goOutput struct {
	tail     lineTail
	modules  int
	compiled int
	packages int
}

// Write takes a piece of output, which may end in the middle of a line.
func (o *goOutput) Write(p []byte) (int, error) {
	o.tail.mu.Lock()
	if o.tail.skip == nil {
		o.tail.skip = o.count
	}
	o.tail.mu.Unlock()
	return o.tail.Write(p)
}

func (o *goOutput) count(line string) bool {
	switch {
	case strings.HasPrefix(line, "go: downloading "):
		o.modules++
	case line != "" && !strings.ContainsAny(line, " \t#:"):
		// A line of -v is an import path and nothing else; a message has a space or a colon in it.
		o.compiled++
	default:
		return false
	}
	return true
}

// expect sets how many packages there are, compiled already or not.
func (o *goOutput) expect(packages int) {
	o.tail.mu.Lock()
	defer o.tail.mu.Unlock()
	o.packages = packages
}

func (o *goOutput) summary() string {
	o.tail.mu.Lock()
	defer o.tail.mu.Unlock()
	if o.packages == 0 {
		return fmt.Sprintf("%d modules downloaded", o.modules)
	}
	return fmt.Sprintf("%d of at most %d packages compiled", o.compiled, o.packages)
}

func (o *goOutput) messages() string { return o.tail.String() }
