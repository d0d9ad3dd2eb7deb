// SPDX-FileCopyrightText: The WorkItem Operator Authors
// SPDX-License-Identifier: Apache-2.0

package workitem

import (
	"context"
	"fmt"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/klog/v2"
	"sigs.k8s.io/controller-runtime/pkg/client"
	logf "sigs.k8s.io/controller-runtime/pkg/log"

	"github.com/workitem-operator/workitem-operator/api/v1alpha1"
	"github.com/workitem-operator/workitem-operator/internal/kube"
	"github.com/workitem-operator/workitem-operator/internal/metrics"
	"github.com/workitem-operator/workitem-operator/internal/outbox"
	"github.com/workitem-operator/workitem-operator/internal/overdue"
)

// commit writes a status, with the resourceVersion that was read as the
// precondition (I1), and announces what it committed.
func (p *pass) commit(ctx context.Context, plan overdue.Plan) error {
	before := p.item
	item := before.DeepCopy()
	item.Status = plan.Status
	if err := p.client.Status().Update(ctx, item); err != nil {
		return err
	}
	p.known.Wrote(item, p.clock.Now())
	p.item, p.committed = item, true
	p.claimFired(before)
	p.announce(ctx, before, p.decision)
	p.facts.Item = item
	p.decision = overdue.Evaluate(item, p.now)
	return nil
}

// claimFired notes which intents are there because of the write of this pass.
func (p *pass) claimFired(before *v1alpha1.WorkItem) {
	p.transitioned = p.transitioned || len(p.decision.Fired) > 0
	known := map[string]bool{}
	for _, in := range before.Status.Notifications {
		known[in.OutboxName] = true
	}
	for _, in := range p.item.Status.Notifications {
		if !known[in.OutboxName] {
			p.fired = append(p.fired, in)
		}
	}
}

// lostRace tells of an error that a write was based on an old version, or that the item
// is gone. The facts have changed, and whoever lost decides again.
func lostRace(err error) bool { return apierrors.IsConflict(err) || apierrors.IsNotFound(err) }

// lost notes a lost race, which is no error.
func (r *Reconciler) lost(ctx context.Context, item *v1alpha1.WorkItem, err error) {
	logf.FromContext(ctx).V(1).Info("WorkItem changed meanwhile, deciding again", "cause", err.Error())
	if apierrors.IsConflict(err) {
		metrics.Conflict(v1alpha1.KindWorkItem)
		r.known.Outdated(item, r.clock.Now())
	}
}

// materialise creates the outboxes that the committed intents lack.
func (p *pass) materialise(ctx context.Context) error {
	if !overdue.Active(p.item) {
		return nil
	}
	for i := range p.item.Status.Notifications {
		in := &p.item.Status.Notifications[i]
		if !overdue.Open(in.Phase) || p.facts.Outboxes[in.OutboxName] != nil || p.facts.Taken[in.OutboxName] ||
			p.facts.Missing[in.ProviderName] || outbox.Overtaken(p.item, in.Occurrence) {
			continue
		}
		if err := p.create(ctx, *in); err != nil {
			return err
		}
	}
	return nil
}

// create makes the outbox of an intent, unless it exists.
func (p *pass) create(ctx context.Context, in v1alpha1.Intent) error {
	key := client.ObjectKey{Namespace: p.item.Namespace, Name: in.OutboxName}
	if p.created.recently(key, p.now) {
		p.sooner(p.now.Add(createdFor))
		return nil // This process created it, and the cache does not show it yet.
	}
	if words, until, stands := p.refusals.Standing(key, p.now); stands {
		p.facts.Refused[in.OutboxName] = words
		p.sooner(until)
		return nil
	}
	source, err := p.source(ctx, in)
	if err != nil || source == nil {
		return err
	}
	provider := &v1alpha1.NotificationProvider{}
	if err := p.client.Get(ctx, client.ObjectKey{Namespace: key.Namespace, Name: in.ProviderName}, provider); err != nil {
		return client.IgnoreNotFound(err)
	}
	ob := outbox.Desired(source, &in, provider)
	err = p.client.Create(ctx, ob)
	switch {
	case err == nil:
		p.created.note(key, p.now)
		p.facts.Outboxes[in.OutboxName] = ob
		logf.FromContext(ctx).Info("Recorded NotificationOutbox", "notificationOutbox", klog.KObj(ob), "provider", in.ProviderName)
		return nil
	case apierrors.IsAlreadyExists(err):
		return p.observe(ctx, p.api, &in)
	case apierrors.IsNotFound(err):
		return nil // The namespace is gone.
	case kube.Refused(err):
		until := p.now.Add(refusedRetry)
		p.facts.Refused[in.OutboxName] = p.refusals.Note(key, err, until)
		p.sooner(until)
		return nil
	}
	return fmt.Errorf("creating outbox %s: %w", key.Name, err)
}

// source is the item that an outbox is rendered from: the one that this pass
// committed, else the API server's. A cached item may be older than the report of
// an outbox's end; once that outbox is collected, making it again would send it
// again (I9, I10). It is nil if the intent is not open any more.
func (p *pass) source(ctx context.Context, in v1alpha1.Intent) (*v1alpha1.WorkItem, error) {
	if p.committed {
		return p.item, nil
	}
	live := &v1alpha1.WorkItem{}
	if err := p.api.Get(ctx, client.ObjectKeyFromObject(p.item), live); err != nil {
		return nil, client.IgnoreNotFound(err)
	}
	if live.UID != p.item.UID || live.DeletionTimestamp != nil || !overdue.Active(live) {
		return nil, nil
	}
	for _, now := range live.Status.Notifications {
		if now.OutboxName == in.OutboxName && overdue.Open(now.Phase) {
			return live, nil
		}
	}
	return nil, nil
}

// announce tells of a committed write: one log line if it has a transition, one Event
// for each transition, and an Event when the item stalls.
func (p *pass) announce(ctx context.Context, before *v1alpha1.WorkItem, d overdue.Decision) {
	log := logf.FromContext(ctx)
	after := p.item
	if before.Status.Phase != after.Status.Phase && before.Status.Phase != "" || len(d.Fired) > 0 {
		log.Info("Committed transition of WorkItem", "from", before.Status.Phase, "to", after.Status.Phase,
			"occurrence", after.Status.Occurrence, "escalationLevel", after.Status.EscalationLevel,
			"notifications", len(after.Status.Notifications), "resourceVersion", after.ResourceVersion)
	}
	if before.Status.Phase != after.Status.Phase && after.Status.Phase != v1alpha1.PhaseOverdue && before.Status.Phase != "" {
		metrics.Transition(string(after.Status.Phase))
		p.eventPhase(after)
	}
	for _, fired := range d.Fired {
		metrics.Transition(string(fired.Transition))
		p.eventFired(after, fired)
	}
	p.eventProblem(before, after)
}

// lateness is how long after the missed due time a transition was committed.
func lateness(item *v1alpha1.WorkItem) time.Duration {
	if item.Status.OverdueTime == nil || item.Status.TransitionTime == nil {
		return 0
	}
	return item.Status.TransitionTime.Sub(item.Status.OverdueTime.Time)
}
