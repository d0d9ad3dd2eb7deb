// SPDX-FileCopyrightText: The WorkItem Operator Authors
// SPDX-License-Identifier: Apache-2.0

package dispatcher

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"time"

	coordinationv1 "k8s.io/api/coordination/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/utils/clock"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/workitem-operator/workitem-operator/api/v1alpha1"
	"github.com/workitem-operator/workitem-operator/internal/claim"
	"github.com/workitem-operator/workitem-operator/internal/kube"
	"github.com/workitem-operator/workitem-operator/internal/metrics"
	"github.com/workitem-operator/workitem-operator/internal/outbox"
)

// lookAgain is how soon a claim is looked at again that another write came before: how
// long to wait for it, the Lease says once the cache shows it.
const lookAgain = time.Second

// claims carries out the decisions of internal/claim on the API server, and
// remembers since when each Lease has been seen as it is.
type claims struct {
	client client.Client
	api    client.Reader
	clock  clock.WithTicker
	self   string

	mu   sync.Mutex
	seen map[types.NamespacedName]sighting
	// hidden are the names under which a Lease exists that the cache does not show:
	// it is late, or the Lease does not carry our label.
	hidden map[types.NamespacedName]bool
}

// sighting is since when a Lease has been seen as it is, on this process's own
// monotonic clock (I7).
type sighting struct {
	uid     types.UID
	version string
	at      time.Time
	// outbox, holder, created and duration are what the Lease said.
	outbox   types.UID
	holder   string
	created  time.Time
	duration time.Duration
}

func newClaims(c client.Client, api client.Reader, clk clock.WithTicker, self string) *claims {
	return &claims{
		client: c, api: api, clock: clk, self: self,
		seen: map[types.NamespacedName]sighting{}, hidden: map[types.NamespacedName]bool{},
	}
}

// holding is a claim that this process holds.
type holding struct {
	// lease is the Lease as it was last written. Only who acquired or renews the claim
	// uses it.
	lease *coordinationv1.Lease
	mu    sync.Mutex
	// term says how long the claim may be trusted, and ends when it runs out if the
	// last renewal did reach the API server.
	term claim.Term
	ends time.Time
	// created tells that this process created the Lease: nobody has called or ended
	// the outbox before.
	created bool
	// from is the holder that this process took the claim over from; empty if it did not.
	from string
	// lost is the former holder whose attempt was never recorded; nil if there is
	// none.
	lost *outbox.Lost
}

func (h *holding) current() claim.Term {
	h.mu.Lock()
	defer h.mu.Unlock()
	return h.term
}

func (h *holding) trusted(now time.Time) bool { return h.current().Trusted(now) }

func (h *holding) endsAt() time.Time {
	h.mu.Lock()
	defer h.mu.Unlock()
	return h.ends
}

// renewing notes that a renewal is under way: even without an answer it may reach the
// API server.
func (h *holding) renewing(start time.Time) time.Duration {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.ends = start.Add(h.term.Duration)
	return h.term.Duration
}

func (h *holding) renewed(start time.Time) {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.term.Start = start
}

// errRefused is why the API server does not let this process claim.
type errRefused struct{ error }

// acquire tries to claim an outbox. It returns nil and a time to wait if somebody
// else may hold the claim.
func (c *claims) acquire(ctx context.Context, ob *v1alpha1.NotificationOutbox, d time.Duration, past history) (*holding, time.Duration, error) {
	lease, err := c.look(ctx, client.ObjectKeyFromObject(ob))
	if err != nil {
		return nil, 0, err
	}
	now := c.clock.Now()
	decision := claim.Decide(claim.Facts{
		Lease: lease, Self: c.self, OutboxUID: ob.UID, Duration: d, Now: now,
		ObservedAt: c.observe(lease, now), Settled: past.mayGoOn,
	})
	switch decision.Action {
	case claim.Wait:
		return nil, decision.After, nil
	case claim.Create:
		return c.create(ctx, ob, d, now)
	case claim.Renew:
		return c.update(ctx, claim.Renewed(lease, d, now), d, &holding{lost: c.lost(lease, ob, past)})
	case claim.TakeOver:
		return c.update(ctx, claim.TakenOver(lease, ob, c.self, d, now), d, &holding{lost: c.lost(lease, ob, past), from: holderOf(lease)})
	}
	return nil, 0, fmt.Errorf("unknown claim action %d", decision.Action)
}

// history is what this process knows of its own calls for an outbox.
type history struct {
	// called tells whether it ever made one.
	called bool
	// mayGoOn tells whether it may go on with a claim of its own that has not run out:
	// it made no call, or the last one ended with a definite rejection, or the call of
	// the attempt that is counted was not made.
	mayGoOn bool
}

// lost is the holder of a call whose outcome nobody recorded, as far as the Lease
// tells: whoever holds or held it, other than this process without a call. It does
// not depend on who took the Lease over when, because whoever did may have failed to
// write it down.
func (c *claims) lost(lease *coordinationv1.Lease, ob *v1alpha1.NotificationOutbox, past history) *outbox.Lost {
	if !claim.Owns(lease, ob.UID) {
		return nil
	}
	who := holderOf(lease)
	if claim.HeldBy(lease, c.self, ob.UID) && !past.called {
		if t := lease.Spec.LeaseTransitions; t == nil || *t == 0 {
			return nil // This process created it and has called nobody.
		}
		who = "unknown"
	}
	// The first holder may have called as soon as the Lease existed. acquireTime is the
	// last holder's.
	return &outbox.Lost{Holder: who, Since: &metav1.Time{Time: lease.CreationTimestamp.Time}}
}

// look reads a Lease from the cache, or from the API server if the cache is known
// not to show it.
func (c *claims) look(ctx context.Context, key types.NamespacedName) (*coordinationv1.Lease, error) {
	lease := &coordinationv1.Lease{}
	err := c.client.Get(ctx, key, lease)
	if apierrors.IsNotFound(err) && c.isHidden(key) {
		err = c.api.Get(ctx, key, lease)
	}
	switch {
	case apierrors.IsNotFound(err):
		return nil, nil
	case err != nil:
		return nil, fmt.Errorf("reading Lease %s: %w", key.Name, err)
	}
	return lease, nil
}

// create claims an outbox that has no Lease. If this process has seen one for this very
// outbox, somebody deleted it: then the new one proves nothing, and whoever held the old
// one is waited out.
func (c *claims) create(ctx context.Context, ob *v1alpha1.NotificationOutbox, d time.Duration, now time.Time) (*holding, time.Duration, error) {
	vanished, known := c.vanished(ob)
	if left := vanished.duration - now.Sub(vanished.at); known && left > 0 {
		return nil, left, nil
	}
	start := c.clock.Now()
	lease := claim.New(ob, c.self, d, start)
	term := claim.NewTerm(start, d)
	h := &holding{lease: lease, term: term, ends: start.Add(term.Duration), created: !known}
	if known {
		h.lost = &outbox.Lost{Holder: vanished.holder, Since: &metav1.Time{Time: vanished.created}}
	}
	err := c.client.Create(ctx, lease)
	switch {
	case err == nil:
		metrics.Claim("created")
		return h, 0, nil
	case apierrors.IsAlreadyExists(err):
		metrics.Claim("lost")
		c.hide(client.ObjectKeyFromObject(ob))
		return nil, lookAgain, nil
	case kube.Refused(err) && !apierrors.IsNotFound(err):
		return nil, 0, errRefused{err}
	}
	return nil, 0, fmt.Errorf("creating Lease %s: %w", lease.Name, err)
}

// vanished is the last sighting of a Lease of this very outbox.
func (c *claims) vanished(ob *v1alpha1.NotificationOutbox) (sighting, bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	s, ok := c.seen[client.ObjectKeyFromObject(ob)]
	return s, ok && s.outbox == ob.UID
}

// update renews or takes over a Lease, with the resourceVersion that was read as
// the precondition: of several that try, one succeeds.
func (c *claims) update(ctx context.Context, lease *coordinationv1.Lease, d time.Duration, h *holding) (*holding, time.Duration, error) {
	start := c.clock.Now()
	h.term = claim.NewTerm(start, d)
	h.ends = start.Add(h.term.Duration)
	err := c.client.Update(ctx, lease)
	switch {
	case err == nil:
		if h.from != "" {
			metrics.Claim("takenOver")
		} else {
			metrics.Claim("renewed")
		}
		h.lease = lease
		return h, 0, nil
	case apierrors.IsConflict(err):
		metrics.Claim("lost")
		return nil, lookAgain, nil
	case apierrors.IsNotFound(err):
		return nil, lookAgain, nil // Deleted; the event that says so is on its way.
	case kube.Refused(err):
		return nil, 0, errRefused{err}
	}
	return nil, 0, fmt.Errorf("updating Lease %s: %w", lease.Name, err)
}

// errPreempted is why a call is cancelled whose claim another process has.
var errPreempted = errors.New("the claim was taken over by another process")

// renew extends a claim that is held. It is preempted if another process has the
// Lease.
func (c *claims) renew(ctx context.Context, h *holding, ob *v1alpha1.NotificationOutbox) error {
	start := c.clock.Now()
	duration := h.renewing(start)
	next := claim.Renewed(h.lease, duration, start)
	err := c.client.Update(ctx, next)
	if apierrors.IsConflict(err) {
		live := &coordinationv1.Lease{}
		if err := c.api.Get(ctx, client.ObjectKeyFromObject(h.lease), live); err != nil {
			return err
		}
		if !claim.HeldBy(live, c.self, ob.UID) {
			metrics.Claim("preempted")
			return errPreempted
		}
		h.lease = live // Somebody else changed it, or an earlier renewal had come through.
		next = claim.Renewed(live, duration, start)
		err = c.client.Update(ctx, next)
	}
	switch {
	case apierrors.IsNotFound(err):
		metrics.Claim("preempted")
		return errPreempted
	case err != nil:
		return err
	}
	h.lease = next
	h.renewed(start)
	return nil
}

// observe notes a Lease and returns since when it has been seen as it is.
func (c *claims) observe(lease *coordinationv1.Lease, now time.Time) time.Time {
	if lease == nil {
		return now
	}
	key := client.ObjectKeyFromObject(lease)
	c.mu.Lock()
	defer c.mu.Unlock()
	s, ok := c.seen[key]
	if !ok || s.uid != lease.UID || s.version != lease.ResourceVersion {
		s = sighting{
			uid: lease.UID, version: lease.ResourceVersion, at: now, outbox: ownerOf(lease),
			holder: holderOf(lease), created: lease.CreationTimestamp.Time, duration: claim.DurationOf(lease, time.Minute),
		}
		c.seen[key] = s
	}
	return s.at
}

func (c *claims) hide(key types.NamespacedName) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.hidden[key] = true
}

func (c *claims) isHidden(key types.NamespacedName) bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.hidden[key]
}

func (c *claims) forget(key types.NamespacedName) {
	c.mu.Lock()
	defer c.mu.Unlock()
	delete(c.seen, key)
	delete(c.hidden, key)
}
