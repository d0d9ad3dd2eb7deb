// SPDX-FileCopyrightText: The WorkItem Operator Authors
// SPDX-License-Identifier: Apache-2.0

package workitem

import (
	"context"
	"fmt"
	"time"

	"k8s.io/utils/clock"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/workitem-operator/workitem-operator/api/v1alpha1"
	"github.com/workitem-operator/workitem-operator/internal/kube"
	"github.com/workitem-operator/workitem-operator/internal/overdue"
)

// +kubebuilder:rbac:groups=workitem.dev,resources=workitems,verbs=get;list;watch
// +kubebuilder:rbac:groups=workitem.dev,resources=workitems/status,verbs=update
// +kubebuilder:rbac:groups=workitem.dev,resources=notificationoutboxes,verbs=get;list;watch;create
// +kubebuilder:rbac:groups=workitem.dev,resources=notificationproviders,verbs=get;list;watch
// +kubebuilder:rbac:groups=events.k8s.io,resources=events,verbs=create;patch

const (
	// recheck bounds how long an item that waits for its time is left alone, so that a
	// jump of the clock heals by itself.
	recheck = time.Hour
	// refusedRetry is how soon a create that the API server refused is tried again.
	refusedRetry = time.Minute
	// staleRetry is how soon an item is looked at again whose newer version is on its
	// way. Its event normally comes first.
	staleRetry = kube.ConflictFor
)

// Reconciler reconciles WorkItems.
type Reconciler struct {
	client   client.Client
	api      client.Reader
	clock    clock.WithTicker
	events   kube.Recorder
	known    kube.Versions
	created  created
	refusals kube.Refusals
	turns    turns
}

// New returns a Reconciler that reads through c's cache and, where a cache must not
// be trusted, from api.
func New(c client.Client, api client.Reader, clk clock.WithTicker, recorder kube.Recorder) *Reconciler {
	return &Reconciler{client: c, api: api, clock: clk, events: recorder}
}

// Reconcile makes one pass over one item; see the package comment for its order.
func (r *Reconciler) Reconcile(ctx context.Context, req ctrl.Request) (ctrl.Result, error) {
	done, err := r.turns.take(ctx, req.NamespacedName)
	if err != nil {
		return ctrl.Result{}, err
	}
	defer done()
	item := &v1alpha1.WorkItem{}
	if err := r.client.Get(ctx, req.NamespacedName, item); err != nil {
		return ctrl.Result{}, client.IgnoreNotFound(err)
	}
	if item.DeletionTimestamp != nil {
		return ctrl.Result{}, nil
	}
	if r.known.Behind(item, r.clock.Now()) {
		return ctrl.Result{RequeueAfter: staleRetry}, nil
	}
	p := &pass{Reconciler: r, item: item, now: r.clock.Now()}
	result, err := p.run(ctx)
	if lostRace(err) {
		r.lost(ctx, item, err)
		return ctrl.Result{RequeueAfter: staleRetry}, nil
	}
	if err != nil {
		return ctrl.Result{}, fmt.Errorf("reconciling WorkItem: %w", err)
	}
	return result, nil
}

// pass is one look at one item.
type pass struct {
	*Reconciler
	item *v1alpha1.WorkItem
	now  time.Time
	// committed tells that item is what the API server answered to a write of this
	// pass, and therefore not older than any report.
	committed bool
	// fired are the intents of the transitions that this pass committed, and transitioned
	// tells that it committed any.
	fired        []v1alpha1.Intent
	transitioned bool
	facts        overdue.Facts
	decision     overdue.Decision
	// at is when the item has to be looked at again; zero is never.
	at time.Time
}

// sooner sees to it that the item is looked at again at t, if not earlier.
func (p *pass) sooner(t time.Time) {
	if !t.IsZero() && (p.at.IsZero() || t.Before(p.at)) {
		p.at = t
	}
}

func (p *pass) run(ctx context.Context) (ctrl.Result, error) {
	if err := p.gather(ctx); err != nil {
		return ctrl.Result{}, err
	}
	if p.decision.Changed {
		if err := p.commit(ctx, overdue.Next(p.facts, p.decision)); err != nil {
			return ctrl.Result{}, err
		}
	}
	if err := p.materialise(ctx); err != nil {
		return ctrl.Result{}, err
	}
	plan := overdue.Next(p.facts, p.decision)
	if plan.Write {
		if err := p.commit(ctx, plan); err != nil {
			return ctrl.Result{}, err
		}
	}
	return p.wake(plan), nil
}

// wake says when the item has to be looked at again. An item that waits for
// nothing is left alone.
func (p *pass) wake(plan overdue.Plan) ctrl.Result {
	if next := p.decision.NextCheck; !next.IsZero() {
		p.sooner(next)
		p.sooner(p.now.Add(recheck))
	}
	p.sooner(plan.ReportAt)
	if p.at.IsZero() {
		return ctrl.Result{}
	}
	// For a time that has passed meanwhile: soon. Zero would mean never.
	return ctrl.Result{RequeueAfter: max(p.at.Sub(p.now), time.Millisecond)}
}
