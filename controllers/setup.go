// SPDX-FileCopyrightText: The WorkItem Operator Authors
// SPDX-License-Identifier: Apache-2.0

// Package controllers says what a manager runs.
//
//	controller             writes                                     runs in
//	workitem               WorkItem.status, creates outboxes          the leader, or everywhere
//	notificationprovider   NotificationProvider.status                every replica
//	dispatcher             NotificationOutbox.status, claims (Leases) every replica
//
// No two controllers write the same field. What one knows reaches another through
// the API server, except for endpoint.Pauses, which the dispatcher tells the
// provider reconciler of the same replica.
package controllers

import (
	"context"
	"fmt"
	"time"

	"k8s.io/utils/clock"
	ctrl "sigs.k8s.io/controller-runtime"

	"github.com/workitem-operator/workitem-operator/controllers/dispatcher"
	"github.com/workitem-operator/workitem-operator/controllers/provider"
	"github.com/workitem-operator/workitem-operator/controllers/workitem"
	"github.com/workitem-operator/workitem-operator/internal/delivery"
	"github.com/workitem-operator/workitem-operator/internal/endpoint"
	"github.com/workitem-operator/workitem-operator/internal/kube"
	"github.com/workitem-operator/workitem-operator/internal/options"
)

// The readiness check asks whether this process may claim.
// +kubebuilder:rbac:groups=authorization.k8s.io,resources=selfsubjectaccessreviews,verbs=create

// Who asks for metrics or for a pass, and whether they may.
// +kubebuilder:rbac:groups=authentication.k8s.io,resources=tokenreviews,verbs=create
// +kubebuilder:rbac:groups=authorization.k8s.io,resources=subjectaccessreviews,verbs=create

// Settings are what the controllers are made of.
type Settings struct {
	// Options are the manager's flags.
	Options options.Options
	// Identity names this process, unique per start.
	Identity string
	// Guard says what providers may reach.
	Guard *delivery.Guard
	// UserAgent is how calls to providers introduce themselves.
	UserAgent string
	// Clock is the clock of every controller.
	Clock clock.WithTicker
}

// Setup adds the controllers that the options name to a manager.
func Setup(ctx context.Context, mgr ctrl.Manager, s Settings) error {
	if s.Options.Runs(options.WorkItem) {
		r := workitem.New(mgr.GetClient(), mgr.GetAPIReader(), s.Clock, kube.Recorder{Events: mgr.GetEventRecorder("workitem-controller")})
		if err := r.SetupWithManager(ctx, mgr); err != nil {
			return fmt.Errorf("setting up the WorkItem controller: %w", err)
		}
		if err := addTrigger(mgr, r, s); err != nil {
			return err
		}
	}
	if !s.Options.Runs(options.Dispatcher) {
		return nil
	}
	resolver := endpoint.NewResolver(mgr.GetAPIReader(), s.Clock, s.Guard, s.UserAgent)
	pauses := endpoint.NewPauses()
	if err := provider.New(mgr.GetClient(), resolver, pauses, s.Clock).SetupWithManager(mgr); err != nil {
		return fmt.Errorf("setting up the provider controller: %w", err)
	}
	d := dispatcher.New(dispatcher.Options{
		Client: mgr.GetClient(), API: mgr.GetAPIReader(), Clock: s.Clock,
		Events: kube.Recorder{Events: mgr.GetEventRecorder("workitem-dispatcher")}, Identity: s.Identity,
		Resolver: resolver, Pauses: pauses, Grace: s.Options.GracePeriod,
	})
	if err := d.SetupWithManager(ctx, mgr); err != nil {
		return fmt.Errorf("setting up the dispatcher: %w", err)
	}
	return nil
}

// StopTimeout is how long a manager may take to stop: the grace period of calls in
// flight, and the time to record what became of them.
func StopTimeout(o options.Options) time.Duration {
	return o.GracePeriod + dispatcher.RecordGrace + 5*time.Second
}
