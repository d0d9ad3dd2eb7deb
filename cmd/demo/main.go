// SPDX-FileCopyrightText: The WorkItem Operator Authors
// SPDX-License-Identifier: Apache-2.0

// Command demo runs the operator's main job on this machine with real parts: a
// kube-apiserver with its etcd, the manager as a process, and a webhook receiver.
//
// Without an argument it plays a script and ends by itself; "demo run" leaves
// everything running for a person with kubectl.
package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/signal"
	"syscall"

	"github.com/go-logr/logr"
	"k8s.io/klog/v2"
	"sigs.k8s.io/controller-runtime/pkg/log"
)

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	// After the first signal the default is back, so that a second one ends the program at once.
	context.AfterFunc(ctx, stop)
	// The libraries below log to nobody here: what is shown is said by this program.
	log.SetLogger(logr.Discard())
	klog.SetLogger(logr.Discard())
	err := run(ctx, os.Args[1:])
	switch {
	case err == nil:
	case errors.Is(err, context.Canceled):
		fmt.Fprintln(os.Stderr, "demo: interrupted")
		os.Exit(130)
	default:
		fmt.Fprintln(os.Stderr, "demo:", err)
		os.Exit(1)
	}
}

func run(ctx context.Context, args []string) error {
	switch {
	case len(args) == 0:
		return play(ctx)
	case len(args) == 1 && args[0] == "run":
		return serve(ctx)
	}
	return errors.New("usage: demo [run]")
}
