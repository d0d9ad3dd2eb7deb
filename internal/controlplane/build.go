// SPDX-FileCopyrightText: The WorkItem Operator Authors
// SPDX-License-Identifier: Apache-2.0

package controlplane

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"slices"
	"time"
)

const (
	// reportInterval is short enough that nobody takes a build for stuck.
	reportInterval = 15 * time.Second
	// stopGrace is what an interrupted go command may take to end.
	stopGrace = 10 * time.Second
)

// builder compiles the pinned sources with the go command.
type builder struct {
	goCommand string
	root      string
	pins      pins
	interval  time.Duration
	logf      Logf
}

// target is one binary: the module below hack/tools it is built in, its main package and its linker flags.
type target struct {
	binary    string
	module    string
	pkg       string
	linkFlags string
}

func newBuilder(root string, pinned pins, logf Logf) builder {
	return builder{goCommand: "go", root: root, pins: pinned, interval: reportInterval, logf: logf}
}

func (b builder) targets() []target {
	kubernetes := b.pins.kubernetesLinkFlags()
	return []target{
		{binary: "etcd", module: "etcd", pkg: etcdModule, linkFlags: "-s -w"},
		{binary: "kube-apiserver", module: "kubernetes", pkg: kubernetesModule + "/cmd/kube-apiserver", linkFlags: kubernetes},
		{binary: "kubectl", module: "kubernetes", pkg: kubernetesModule + "/cmd/kubectl", linkFlags: kubernetes},
	}
}

// build compiles into dir what dir does not have yet. Each binary is kept as soon as it is finished, so an
// interrupted build continues with the next one.
func (b builder) build(ctx context.Context, dir string) error {
	b.logf("Building etcd %s and Kubernetes %s from source. This happens once: about ten minutes on two cores, "+
		"and about 2 GB of downloads and compiled packages in Go's own caches. The binaries are kept in %s.",
		b.pins.etcd, b.pins.kubernetes, dir)
	staging, err := newStaging(dir)
	if err != nil {
		return err
	}
	defer func() { _ = os.RemoveAll(staging) }()
	missing := missingBinaries(dir)
	start := time.Now()
	for _, t := range b.targets() {
		if !slices.Contains(missing, t.binary) {
			continue
		}
		if err := b.buildTarget(ctx, t, staging); err != nil {
			return fmt.Errorf("building %s: %w", t.binary, err)
		}
		if err := publish(staging, dir, t.binary); err != nil {
			return err
		}
	}
	b.logf("Built the control plane binaries in %s.", time.Since(start).Round(time.Second))
	return nil
}

func (b builder) buildTarget(ctx context.Context, t target, staging string) error {
	start := time.Now()
	output := &goOutput{}
	stopReports := every(b.interval, func() {
		b.logf("%s: %s, %s.", t.binary, time.Since(start).Round(time.Second), output.summary())
	})
	defer stopReports()

	// Listing the packages downloads their modules, and tells how many packages there are to compile.
	list := b.command(ctx, t.module, staging, output, "list", "-deps", t.pkg)
	packages := &bytes.Buffer{}
	list.Stdout = packages
	if err := run(ctx, list, output); err != nil {
		return err
	}
	output.expect(bytes.Count(packages.Bytes(), []byte{'\n'}))

	// -v names each package that is compiled, and none that comes from the build cache.
	build := b.command(ctx, t.module, staging, output,
		"build", "-v", "-trimpath", "-buildvcs=false", "-ldflags", t.linkFlags, "-o", filepath.Join(staging, t.binary), t.pkg)
	if err := run(ctx, build, output); err != nil {
		return err
	}
	b.logf("%s: built in %s, %s.", t.binary, time.Since(start).Round(time.Second), output.summary())
	return nil
}

// command prepares a run of the go command in a module below hack/tools, for this machine and without cgo:
// that needs no C compiler. An interrupted go command leaves its work directory behind, so it gets one that
// goes with staging.
func (b builder) command(ctx context.Context, module, staging string, output *goOutput, args ...string) *exec.Cmd {
	cmd := exec.CommandContext(ctx, b.goCommand, args...) //nolint:gosec // The arguments are this package's own.
	cmd.Dir = toolModule(b.root, module)
	cmd.Env = append(os.Environ(),
		"CGO_ENABLED=0", "GOWORK=off", "GOOS="+runtime.GOOS, "GOARCH="+runtime.GOARCH, "GOTMPDIR="+staging)
	cmd.Stderr = output
	cmd.WaitDelay = stopGrace
	// The go command starts compilers; the signal has to reach them too.
	ownProcessGroup(cmd)
	return cmd
}

func run(ctx context.Context, cmd *exec.Cmd, output *goOutput) error {
	err := cmd.Run()
	if ctx.Err() != nil {
		return context.Cause(ctx)
	}
	if _, failed := errors.AsType[*exec.ExitError](err); failed {
		return fmt.Errorf("go %s: %w\n%s", cmd.Args[1], err, output.messages())
	}
	if err != nil {
		return fmt.Errorf("running go %s: %w", cmd.Args[1], err)
	}
	return nil
}

// every calls report once per interval until the returned function is called, which waits for a call that
// has begun.
func every(interval time.Duration, report func()) (stop func()) {
	done, stopped := make(chan struct{}), make(chan struct{})
	go func() {
		defer close(stopped)
		ticker := time.NewTicker(interval)
		defer ticker.Stop()
		for {
			select {
			case <-done:
				return
			case <-ticker.C:
				report()
			}
		}
	}()
	return func() {
		close(done)
		<-stopped
	}
}
