// SPDX-FileCopyrightText: The WorkItem Operator Authors
// SPDX-License-Identifier: Apache-2.0

// Package provider reconciles NotificationProviders: it says in their status
// whether they can be called, why not, and what guarantee they give.
//
// It is the only writer of NotificationProvider.status. What the dispatcher learns
// from a provider's answers reaches it through endpoint.Pauses.
package provider

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"time"

	"k8s.io/apimachinery/pkg/api/equality"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/utils/clock"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/handler"
	logf "sigs.k8s.io/controller-runtime/pkg/log"
	"sigs.k8s.io/controller-runtime/pkg/source"

	"github.com/workitem-operator/workitem-operator/api/v1alpha1"
	"github.com/workitem-operator/workitem-operator/internal/endpoint"
	"github.com/workitem-operator/workitem-operator/internal/kube"
	"github.com/workitem-operator/workitem-operator/internal/metrics"
	"github.com/workitem-operator/workitem-operator/internal/outbox"
)

// +kubebuilder:rbac:groups=workitem.dev,resources=notificationproviders,verbs=get;list;watch
// +kubebuilder:rbac:groups=workitem.dev,resources=notificationproviders/status,verbs=update
// +kubebuilder:rbac:groups="",resources=secrets,verbs=get

const (
	// pollEvery is how often a Secret is read that a provider waits for.
	pollEvery = 2 * time.Second
	// pollSlowly is how often it is read once pollPatience is over.
	pollSlowly = 30 * time.Second
	// pollPatience is how long a Secret is polled at pollEvery.
	pollPatience = 10 * time.Minute
	// staleRetry is how soon a provider is looked at again whose newer version is on
	// its way.
	staleRetry = kube.ConflictFor
	workers    = 4
)

// Reconciler reconciles NotificationProviders.
type Reconciler struct {
	client   client.Client
	resolver *endpoint.Resolver
	pauses   *endpoint.Pauses
	clock    clock.PassiveClock
	known    kube.Versions

	mu      sync.Mutex
	seen    map[types.NamespacedName]types.UID
	waiting map[types.UID]time.Time
}

// New returns a Reconciler.
func New(c client.Client, resolver *endpoint.Resolver, pauses *endpoint.Pauses, clk clock.PassiveClock) *Reconciler {
	return &Reconciler{
		client: c, resolver: resolver, pauses: pauses, clock: clk,
		seen: map[types.NamespacedName]types.UID{}, waiting: map[types.UID]time.Time{},
	}
}

// SetupWithManager adds the reconciler and its watches to a manager.
func (r *Reconciler) SetupWithManager(mgr ctrl.Manager) error {
	return ctrl.NewControllerManagedBy(mgr).
		Named("notificationprovider").
		For(&v1alpha1.NotificationProvider{}).
		WatchesRawSource(source.Channel(r.pauses.Changes(), &handler.TypedEnqueueRequestForObject[*v1alpha1.NotificationProvider]{})).
		WithOptions(kube.EveryReplica(kube.ControllerOptions(workers))).
		Complete(r)
}

// Reconcile brings the status of one provider up to date.
func (r *Reconciler) Reconcile(ctx context.Context, req ctrl.Request) (ctrl.Result, error) {
	provider := &v1alpha1.NotificationProvider{}
	if err := r.client.Get(ctx, req.NamespacedName, provider); err != nil {
		if apierrors.IsNotFound(err) {
			r.forget(req.NamespacedName)
		}
		return ctrl.Result{}, client.IgnoreNotFound(err)
	}
	if provider.DeletionTimestamp != nil {
		return ctrl.Result{}, nil
	}
	if r.known.Behind(provider, r.clock.Now()) {
		return ctrl.Result{RequeueAfter: staleRetry}, nil
	}
	r.note(req.NamespacedName, provider.UID)
	now := r.clock.Now()
	ep, err := r.resolver.Resolve(ctx, provider, endpoint.Now)
	var problem *endpoint.Problem
	if err != nil && !errors.As(err, &problem) {
		return ctrl.Result{}, fmt.Errorf("reconciling NotificationProvider: %w", err)
	}
	learned := r.pauses.Known(provider)
	facts := Facts{Provider: provider, Now: now, Pause: learned, Secrets: ep.Secrets, Problem: problem}
	status := Next(facts)
	if err := r.write(ctx, provider, status, learned); err != nil {
		return r.lostRace(ctx, provider, err)
	}
	return r.wake(provider, facts, status), nil
}

func (r *Reconciler) write(ctx context.Context, provider *v1alpha1.NotificationProvider, status v1alpha1.NotificationProviderStatus, learned *v1alpha1.ProviderPause) error {
	if equality.Semantic.DeepEqual(status, provider.Status) {
		r.pauses.Written(provider, learned)
		return nil
	}
	updated := provider.DeepCopy()
	updated.Status = status
	if err := r.client.Status().Update(ctx, updated); err != nil {
		return err
	}
	r.known.Wrote(updated, r.clock.Now())
	r.pauses.Written(updated, learned)
	ready := readyOf(status)
	logf.FromContext(ctx).Info("Committed status of NotificationProvider", "ready", ready.Status, "reason", ready.Reason, "guarantee", status.Guarantee)
	return nil
}

func (r *Reconciler) lostRace(ctx context.Context, provider *v1alpha1.NotificationProvider, err error) (ctrl.Result, error) {
	switch {
	case apierrors.IsNotFound(err):
		return ctrl.Result{}, nil
	case apierrors.IsConflict(err):
		metrics.Conflict(v1alpha1.KindNotificationProvider)
		r.known.Outdated(provider, r.clock.Now())
		logf.FromContext(ctx).V(1).Info("NotificationProvider changed meanwhile, deciding again")
		return ctrl.Result{RequeueAfter: staleRetry}, nil
	}
	return ctrl.Result{}, fmt.Errorf("reconciling NotificationProvider: %w", err)
}

// wake says when to look again: soon while a Secret is waited for, at the end of a
// pause that the provider asked for, and otherwise never.
func (r *Reconciler) wake(provider *v1alpha1.NotificationProvider, facts Facts, status v1alpha1.NotificationProviderStatus) ctrl.Result {
	pause := status.Pause
	if facts.Problem != nil || (pause != nil && outbox.NeedsSecret(pause) && endpoint.HasSecrets(provider)) {
		return ctrl.Result{RequeueAfter: r.poll(provider.UID, facts.Now)}
	}
	r.mu.Lock()
	delete(r.waiting, provider.UID)
	r.mu.Unlock()
	if pause != nil && !outbox.Parking(pause) && pause.Until != nil {
		return ctrl.Result{RequeueAfter: max(pause.Until.Sub(facts.Now), time.Millisecond)}
	}
	return ctrl.Result{}
}

// poll is how soon a Secret is read again that a provider waits for.
func (r *Reconciler) poll(uid types.UID, now time.Time) time.Duration {
	r.mu.Lock()
	defer r.mu.Unlock()
	since, ok := r.waiting[uid]
	if !ok {
		r.waiting[uid] = now
		return pollEvery
	}
	if now.Sub(since) >= pollPatience {
		return pollSlowly
	}
	return pollEvery
}

func (r *Reconciler) note(key types.NamespacedName, uid types.UID) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.seen[key] = uid
}

func (r *Reconciler) forget(key types.NamespacedName) {
	r.mu.Lock()
	uid, ok := r.seen[key]
	delete(r.seen, key)
	delete(r.waiting, uid)
	r.mu.Unlock()
	if ok {
		r.resolver.Forget(uid)
		r.pauses.Forget(uid)
	}
}
