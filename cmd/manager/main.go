// SPDX-FileCopyrightText: The WorkItem Operator Authors
// SPDX-License-Identifier: Apache-2.0

// Command manager runs the controllers of the WorkItem operator.
package main

import (
	"context"
	"flag"
	"fmt"
	"os"
	"time"

	"github.com/google/uuid"
	"k8s.io/client-go/rest"
	"k8s.io/klog/v2"
	"k8s.io/utils/clock"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/log/zap"
	crmetrics "sigs.k8s.io/controller-runtime/pkg/metrics"

	"github.com/workitem-operator/workitem-operator/controllers"
	"github.com/workitem-operator/workitem-operator/controllers/dispatcher"
	"github.com/workitem-operator/workitem-operator/internal/delivery"
	"github.com/workitem-operator/workitem-operator/internal/kube"
	"github.com/workitem-operator/workitem-operator/internal/metrics"
	"github.com/workitem-operator/workitem-operator/internal/options"
	"github.com/workitem-operator/workitem-operator/internal/version"
)

func main() {
	if err := run(); err != nil {
		ctrl.Log.Error(err, "Manager ended")
		// At once: a manager that outlives its leadership must not act on it.
		os.Exit(1)
	}
}

func run() error {
	var opts options.Options
	opts.Bind(flag.CommandLine)
	var showVersion bool
	flag.BoolVar(&showVersion, "version", false, "Print the version and exit.")
	logging := zap.Options{}
	logging.BindFlags(flag.CommandLine)
	flag.Parse()
	if showVersion {
		fmt.Println("workitem-operator", version.String())
		return nil
	}
	logger := zap.New(zap.UseFlagOptions(&logging))
	ctrl.SetLogger(logger)
	klog.SetLogger(logger)
	if flag.NArg() > 0 {
		return fmt.Errorf("unexpected argument %q: the manager takes flags only", flag.Arg(0))
	}
	if err := opts.Validate(); err != nil {
		return err
	}
	cfg, err := ctrl.GetConfig()
	if err != nil {
		return fmt.Errorf("loading the kubeconfig: %w", err)
	}
	// A first signal stops in an orderly way; a second one exits at once.
	return serve(ctrl.SetupSignalHandler(), cfg, opts)
}

func serve(ctx context.Context, cfg *rest.Config, opts options.Options) error {
	// The API server's own priority and fairness limits this client, not a guess of
	// ours: a burst of due items must not wait for 20 requests a second.
	cfg.QPS = -1
	cfg.UserAgent = "workitem-operator/" + version.String()
	mgr, err := ctrl.NewManager(cfg, controllers.ManagerOptions(opts))
	if err != nil {
		return fmt.Errorf("making the manager: %w", err)
	}
	if err := metrics.Register(crmetrics.Registry); err != nil {
		return fmt.Errorf("registering metrics: %w", err)
	}
	identity, err := newIdentity()
	if err != nil {
		return err
	}
	settings := controllers.Settings{
		Options: opts, Identity: identity, Guard: newGuard(ctx, cfg, opts),
		UserAgent: cfg.UserAgent, Clock: clock.RealClock{},
	}
	if err := controllers.Setup(ctx, mgr, settings); err != nil {
		return err
	}
	//nolint:contextcheck // A scrape of the metrics gives no context.
	if err := crmetrics.Registry.Register(dispatcher.Outboxes(mgr.GetClient())); err != nil {
		return fmt.Errorf("registering the count of outboxes: %w", err)
	}
	if err := addChecks(mgr, opts); err != nil {
		return err
	}
	ctrl.Log.Info("Starting manager", "version", version.String(), "identity", identity, "controllers", opts.Controllers, "namespaces", opts.WatchNamespaces)
	if err := mgr.Start(ctx); err != nil {
		return fmt.Errorf("running the manager: %w", err)
	}
	return nil
}

// newIdentity names this process: by host, for people, and by a nonce, because the
// same host name must never be taken for the same process.
func newIdentity() (string, error) {
	host, err := os.Hostname()
	if err != nil {
		return "", fmt.Errorf("reading the host name: %w", err)
	}
	return fmt.Sprintf("%.200s_%s", host, uuid.NewString()), nil
}

// newGuard closes the API server's addresses to providers, as far as they can be
// found out.
func newGuard(ctx context.Context, cfg *rest.Config, opts options.Options) *delivery.Guard {
	bounded, cancel := context.WithTimeout(ctx, 10*time.Second)
	defer cancel()
	own, err := kube.APIServerAddresses(bounded, cfg)
	if err != nil {
		ctrl.Log.Info("Not every address of the API server is known, so not every one is closed to providers", "cause", err.Error(), "known", own)
	}
	return delivery.NewGuard(opts.AllowProviderCIDRs, own)
}
