// SPDX-FileCopyrightText: The WorkItem Operator Authors
// SPDX-License-Identifier: Apache-2.0

//go:build unix

package controlplane

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"
)

// The fake go command lists two packages, and "compiles" by running the script's body.
const fakeGo = `#!/bin/sh
if [ "$1" = list ]; then
	echo "go: downloading example.com/m v1.0.0" >&2
	printf 'example.com/m\nexample.com/m/p\n'
	exit 0
fi
while [ "$1" != -o ]; do shift; done
out=$2
echo example.com/m/p >&2
`

const finish = "printf '#!/bin/sh\\n' > $out\n"

type recorder struct {
	mu    sync.Mutex
	lines []string
}

func (r *recorder) logf(format string, args ...any) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.lines = append(r.lines, fmt.Sprintf(format, args...))
}

func (r *recorder) contains(text string) bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	return strings.Contains(strings.Join(r.lines, "\n"), text)
}

func fakeBuilder(t *testing.T, body string) (b builder, log *recorder) {
	t.Helper()
	root := t.TempDir()
	command := filepath.Join(root, "go")
	write(t, command, fakeGo+body, 0o700)
	for _, module := range []string{"etcd", "kubernetes"} {
		write(t, filepath.Join(toolModule(root, module), "go.mod"), "module m\n", 0o600)
	}
	log = &recorder{}
	return builder{
		goCommand: command,
		root:      root,
		pins:      pins{kubernetes: "v1.30.1", etcd: "v3.5.9"},
		interval:  10 * time.Millisecond,
		logf:      log.logf,
	}, log
}

func TestBuild(t *testing.T) {
	b, log := fakeBuilder(t, "sleep 0.1\n"+finish)
	root := t.TempDir()
	dir := filepath.Join(root, "dir")
	if err := b.build(t.Context(), dir); err != nil {
		t.Fatal(err)
	}
	if missing := missingBinaries(dir); len(missing) > 0 {
		t.Errorf("missing %v", missing)
	}
	if !log.contains("1 of at most 2 packages compiled") {
		t.Errorf("no progress in %q", log.lines)
	}
	assertNoStaging(t, root)
}

func TestBuildKeepsWhatIsThere(t *testing.T) {
	b, log := fakeBuilder(t, finish)
	dir := filepath.Join(t.TempDir(), "dir")
	fill(t, dir, "etcd", "kube-apiserver")
	if err := b.build(t.Context(), dir); err != nil {
		t.Fatal(err)
	}
	if log.contains("kube-apiserver: built") || !log.contains("kubectl: built") {
		t.Errorf("want kubectl only to be built: %q", log.lines)
	}
}

func TestAFailedBuildShowsWhatTheGoCommandSaid(t *testing.T) {
	b, _ := fakeBuilder(t, "echo 'p/file.go:1:1: undefined: x' >&2\nexit 1\n")
	root := t.TempDir()
	err := b.build(t.Context(), filepath.Join(root, "dir"))
	if err == nil || !strings.Contains(err.Error(), "undefined: x") || strings.Contains(err.Error(), "downloading") {
		t.Errorf("got %v, want the message and no progress", err)
	}
	assertNoStaging(t, root)
}

func TestAnInterruptedBuildStopsItsChildrenAndLeavesNothing(t *testing.T) {
	alive := filepath.Join(t.TempDir(), "alive")
	// The compiler is a grandchild, which a signal to the go command alone would not reach. It writes a half
	// finished binary, and would go on after the pause.
	b, _ := fakeBuilder(t, "echo half > $out\n(: > "+alive+"; sleep 60; : > "+alive+".after)\n")
	root := t.TempDir()
	ctx, cancel := context.WithCancel(t.Context())
	go func() {
		for ctx.Err() == nil {
			if _, err := os.Stat(alive); err == nil {
				cancel()
			}
			time.Sleep(5 * time.Millisecond)
		}
	}()
	start := time.Now()
	err := b.build(ctx, filepath.Join(root, "dir"))
	if !errors.Is(err, context.Canceled) {
		t.Errorf("got %v, want context.Canceled", err)
	}
	// While a grandchild lives, the command's output stays open and the wait lasts for stopGrace.
	if took := time.Since(start); took >= stopGrace {
		t.Errorf("stopping took %s: a grandchild was not interrupted", took)
	}
	assertNoStaging(t, root)
	if missing := missingBinaries(filepath.Join(root, "dir")); len(missing) != len(binaries) {
		t.Errorf("missing %v, want all", missing)
	}
}
