// SPDX-FileCopyrightText: The WorkItem Operator Authors
// SPDX-License-Identifier: Apache-2.0

package framework

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"sync"
	"testing"
	"time"

	"github.com/go-logr/logr"
	"k8s.io/klog/v2"
	ctrl "sigs.k8s.io/controller-runtime"
	crmetrics "sigs.k8s.io/controller-runtime/pkg/metrics"

	"github.com/workitem-operator/workitem-operator/internal/controlplane"
	"github.com/workitem-operator/workitem-operator/internal/metrics"
)

const (
	// startWithin is how long the API server may take to start on a busy machine.
	startWithin = 15 * time.Minute
	// parallelTests is how many tests run at once: they wait most of the time.
	parallelTests = "6"
)

// suite is what the tests of a package share.
type suite struct {
	plane      *controlplane.Plane
	root       string
	dir        string
	kubeconfig string
	// common takes the log lines that no manager can be found for.
	common *Journal
	build  func() (string, error)
}

var shared *suite

// Main is what TestMain calls: it runs the tests of a package with one API server
// and returns the exit code.
func Main(m *testing.M) int {
	code, err := run(m)
	if err != nil {
		fmt.Fprintln(os.Stderr, "running the tests:", err)
		return 1
	}
	return code
}

func run(m *testing.M) (code int, err error) {
	flag.Parse()
	if err := parallelByDefault(); err != nil {
		return 0, err
	}
	s := &suite{common: newJournal()}
	s.build = sync.OnceValues(s.buildManager)
	logger := logr.New(logSink{journal: s.common, name: "shared"})
	ctrl.SetLogger(logger)
	klog.SetLogger(logger)
	if err := metrics.Register(crmetrics.Registry); err != nil {
		return 0, fmt.Errorf("registering metrics: %w", err)
	}
	if s.root, err = controlplane.ModuleRoot(); err != nil {
		return 0, err
	}
	if s.dir, err = os.MkdirTemp("", "workitem-operator-test-*"); err != nil {
		return 0, fmt.Errorf("making a directory for the tests: %w", err)
	}
	defer func() { err = errors.Join(err, os.RemoveAll(s.dir)) }()
	ctx, stop := context.WithTimeout(context.Background(), startWithin)
	defer stop()
	s.plane, err = controlplane.Start(ctx, controlplane.Options{
		CRDDirs: []string{filepath.Join(s.root, "config", "crd", "bases")},
		Logf:    func(format string, args ...any) { fmt.Fprintf(os.Stderr, format+"\n", args...) },
	})
	if err != nil {
		return 0, err
	}
	defer func() { err = errors.Join(err, s.plane.Stop()) }()
	s.kubeconfig = filepath.Join(s.dir, "kubeconfig")
	if err := s.plane.WriteKubeconfig(s.kubeconfig); err != nil {
		return 0, err
	}
	shared = s
	return m.Run(), nil
}

// parallelByDefault runs more tests at once than there are processors, unless the
// caller has said how many.
func parallelByDefault() error {
	given := false
	flag.Visit(func(f *flag.Flag) { given = given || f.Name == "test.parallel" })
	if given {
		return nil
	}
	if err := flag.Set("test.parallel", parallelTests); err != nil {
		return fmt.Errorf("setting -parallel: %w", err)
	}
	return nil
}
