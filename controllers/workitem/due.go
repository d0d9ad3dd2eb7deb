// SPDX-FileCopyrightText: The WorkItem Operator Authors
// SPDX-License-Identifier: Apache-2.0

package workitem

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"sync"
	"time"

	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"
	logf "sigs.k8s.io/controller-runtime/pkg/log"

	"github.com/workitem-operator/workitem-operator/api/v1alpha1"
	"github.com/workitem-operator/workitem-operator/internal/kube"
	"github.com/workitem-operator/workitem-operator/internal/overdue"
)

// triesToCommit is how often a triggered pass decides again about an item whose write
// lost a race. Whoever won it may have been a person who changed the title.
const triesToCommit = 4

// Committed is an item of which a triggered pass committed a transition.
type Committed struct {
	// Key names the item, and UID is the one that was there then.
	Key types.NamespacedName
	UID types.UID
	// Outboxes are the names of the outboxes of the notifications that the transition
	// recorded.
	Outboxes []string
	// Stuck tells that not all of these outboxes could be made now: a provider is
	// missing, or the API server refuses them. The next passes go on trying.
	Stuck bool
}

// Pass is what a triggered pass has done.
type Pass struct {
	// Committed are the items whose transitions this pass committed, and no other pass.
	Committed []Committed
	// Failed are the items that it could not look at or write. The schedule goes on
	// trying.
	Failed []types.NamespacedName
}

// ProcessDue makes a pass over all items of a namespace that are due now, of all
// namespaces if it is empty: the second entrance beside the schedule. It runs in any
// replica, leader or not. Where both meet, the API server lets one of them commit, and
// only that one counts the item as its own. An end of ctx stops it between two requests;
// what is committed by then stands, and the schedule does the rest.
func (r *Reconciler) ProcessDue(ctx context.Context, namespace string) (Pass, error) {
	due, err := r.due(ctx, namespace)
	if err != nil {
		return Pass{}, err
	}
	var (
		out   Pass
		mu    sync.Mutex
		group sync.WaitGroup
	)
	next := make(chan types.NamespacedName)
	for range min(workers, len(due)) {
		group.Go(func() {
			for key := range next {
				committed, err := r.processDue(ctx, key)
				mu.Lock()
				switch {
				case err != nil:
					logf.FromContext(ctx).V(1).Info("Triggered pass could not process WorkItem", "workItem", key.String(), "cause", err.Error())
					out.Failed = append(out.Failed, key)
				case committed != nil:
					out.Committed = append(out.Committed, *committed)
				}
				mu.Unlock()
			}
		})
	}
	err = feed(ctx, next, due)
	group.Wait()
	if err == nil && len(out.Failed) > 0 {
		err = context.Cause(ctx) // What failed may have failed because nobody waits any more.
	}
	slices.SortFunc(out.Committed, func(a, b Committed) int { return cmp.Compare(a.Key.String(), b.Key.String()) })
	slices.SortFunc(out.Failed, func(a, b types.NamespacedName) int { return cmp.Compare(a.String(), b.String()) })
	return out, err
}

// feed hands out keys until they are all taken or ctx ends.
func feed(ctx context.Context, next chan<- types.NamespacedName, keys []types.NamespacedName) error {
	defer close(next)
	for _, key := range keys {
		select {
		case next <- key:
		case <-ctx.Done():
			return context.Cause(ctx)
		}
	}
	return ctx.Err()
}

// due are the items that have a transition to commit, the longest overdue first.
func (r *Reconciler) due(ctx context.Context, namespace string) ([]types.NamespacedName, error) {
	var list v1alpha1.WorkItemList
	if err := r.client.List(ctx, &list, client.InNamespace(namespace), client.UnsafeDisableDeepCopy); err != nil {
		return nil, fmt.Errorf("listing WorkItems: %w", err)
	}
	now := r.clock.Now()
	var due []*v1alpha1.WorkItem
	for i := range list.Items {
		item := &list.Items[i]
		if item.DeletionTimestamp == nil && len(overdue.Evaluate(item, now).Fired) > 0 {
			due = append(due, item)
		}
	}
	slices.SortStableFunc(due, func(a, b *v1alpha1.WorkItem) int { return a.Spec.DueTime.Compare(b.Spec.DueTime.Time) })
	var keys []types.NamespacedName
	for _, item := range due {
		keys = append(keys, client.ObjectKeyFromObject(item))
	}
	return keys, nil
}

// processDue makes a pass over one item. It returns nothing if somebody else has
// committed the transition, or nobody needs it any more.
func (r *Reconciler) processDue(ctx context.Context, key types.NamespacedName) (*Committed, error) {
	ctx, stop := context.WithTimeout(ctx, kube.PassTimeout)
	defer stop()
	done, err := r.turns.take(ctx, key)
	if err != nil {
		return nil, err
	}
	defer done()
	item := &v1alpha1.WorkItem{}
	if err := r.client.Get(ctx, key, item); err != nil {
		return nil, client.IgnoreNotFound(err)
	}
	if r.known.Behind(item, r.clock.Now()) {
		return nil, nil // This process has just written it, or lost a race for it.
	}
	for try := 1; ; try++ {
		now := r.clock.Now()
		if item.DeletionTimestamp != nil || len(overdue.Evaluate(item, now).Fired) == 0 {
			return nil, nil
		}
		p := &pass{Reconciler: r, item: item, now: now}
		_, err := p.run(ctx)
		switch {
		case p.transitioned:
			return p.outcome(ctx, err), nil
		case !lostRace(err):
			return nil, err
		}
		r.lost(ctx, item, err)
		if try == triesToCommit {
			return nil, err
		}
		if err := r.api.Get(ctx, key, item); err != nil {
			return nil, client.IgnoreNotFound(err)
		}
	}
}

// outcome is what a pass that committed a transition tells of it. What went wrong after
// that does not take the transition back: the schedule goes on from there.
func (p *pass) outcome(ctx context.Context, err error) *Committed {
	if err != nil && !lostRace(err) {
		logf.FromContext(ctx).V(1).Info("Triggered pass committed a transition and could not finish", "workItem", p.item.Name, "cause", err.Error())
	}
	out := &Committed{Key: client.ObjectKeyFromObject(p.item), UID: p.item.UID}
	for _, in := range p.fired {
		out.Outboxes = append(out.Outboxes, in.OutboxName)
		out.Stuck = out.Stuck || p.facts.Outboxes[in.OutboxName] == nil
	}
	return out
}

// watchEvery is how often the cache is asked whether notifications have ended.
const watchEvery = 50 * time.Millisecond

// AwaitEnds waits until every notification of these transitions has ended, or until ctx
// does, and returns the items of which not all were sent.
func (r *Reconciler) AwaitEnds(ctx context.Context, committed []Committed) []types.NamespacedName {
	open := slices.Clone(committed)
	var failed []types.NamespacedName
	for {
		var still []Committed
		for _, c := range open {
			switch ended, sent := r.ended(ctx, c); {
			case !ended:
				still = append(still, c)
			case !sent:
				failed = append(failed, c.Key)
			}
		}
		open = still
		if len(open) == 0 || !r.pause(ctx, watchEvery) {
			break
		}
	}
	for _, c := range open {
		failed = append(failed, c.Key)
	}
	slices.SortFunc(failed, func(a, b types.NamespacedName) int { return cmp.Compare(a.String(), b.String()) })
	return failed
}

// pause waits; it returns false when ctx has ended.
func (r *Reconciler) pause(ctx context.Context, d time.Duration) bool {
	timer := r.clock.NewTimer(d)
	defer timer.Stop()
	select {
	case <-timer.C():
		return true
	case <-ctx.Done():
		return false
	}
}

// ended tells whether all notifications of a transition have ended, and whether all of
// them were sent, as far as the cache shows.
func (r *Reconciler) ended(ctx context.Context, c Committed) (ended, sent bool) {
	item := &v1alpha1.WorkItem{}
	if err := r.client.Get(ctx, c.Key, item); err != nil || item.UID != c.UID {
		return client.IgnoreNotFound(err) == nil, false
	}
	sent = true
	for _, name := range c.Outboxes {
		phase := r.phase(ctx, item, name)
		if overdue.Open(phase) {
			return false, false
		}
		sent = sent && phase == v1alpha1.NotificationSent
	}
	return true, sent
}

// phase is how far a notification is: as its outbox says, or the item once that is
// collected.
func (r *Reconciler) phase(ctx context.Context, item *v1alpha1.WorkItem, name string) v1alpha1.NotificationPhase {
	for i := range item.Status.Notifications {
		in := &item.Status.Notifications[i]
		if in.OutboxName != name {
			continue
		}
		ob := &v1alpha1.NotificationOutbox{}
		if err := r.client.Get(ctx, types.NamespacedName{Namespace: item.Namespace, Name: name}, ob); err != nil {
			return in.Phase
		}
		return overdue.PhaseOf(in, ob)
	}
	return v1alpha1.NotificationRecorded // The cache does not show the transition yet.
}
