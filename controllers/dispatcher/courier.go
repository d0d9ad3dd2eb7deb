// SPDX-FileCopyrightText: The WorkItem Operator Authors
// SPDX-License-Identifier: Apache-2.0

package dispatcher

import (
	"context"
	"errors"
	"fmt"
	"runtime/debug"
	"sync"
	"time"

	"k8s.io/apimachinery/pkg/types"
	"k8s.io/utils/clock"
	"sigs.k8s.io/controller-runtime/pkg/event"
	logf "sigs.k8s.io/controller-runtime/pkg/log"

	"github.com/workitem-operator/workitem-operator/api/v1alpha1"
	"github.com/workitem-operator/workitem-operator/internal/delivery"
	"github.com/workitem-operator/workitem-operator/internal/outbox"
	"github.com/workitem-operator/workitem-operator/internal/outcome"
)

// RecordGrace is how long an orderly stop waits for the outcomes of calls that it
// cancelled to be recorded.
const RecordGrace = 8 * time.Second

// errStopping is why a call is cancelled by an orderly stop.
var errStopping = errors.New("the process is stopping")

// errClaimLost is why a call is cancelled whose claim could not be renewed in time.
var errClaimLost = errors.New("the claim could not be renewed in time")

// job is one attempt that is begun.
type job struct {
	outbox   *v1alpha1.NotificationOutbox
	item     *v1alpha1.WorkItem
	provider *v1alpha1.NotificationProvider
	held     *holding
	start    outbox.Started
	message  delivery.Message
	sender   delivery.Sender
	secrets  string
	slot     *pass
}

// courier owns the goroutines in which calls are made. It is a Runnable: an
// orderly stop takes no new jobs, lets calls in flight go on for a grace period,
// then cancels them and waits until their outcome is recorded.
type courier struct {
	clock clock.WithTicker
	grace time.Duration
	wakes chan event.TypedGenericEvent[*v1alpha1.NotificationOutbox]

	mu      sync.Mutex
	stopped bool
	// cancelled tells that the grace period of a stop is over.
	cancelled bool
	// cancel holds what cancels the call of each job, by the outbox's UID.
	cancel map[types.UID]context.CancelCauseFunc
	// made is the number of the last attempt whose call this process made, by the
	// outbox's UID.
	made map[types.UID]int32
	jobs sync.WaitGroup
	// stopping is closed when an orderly stop begins.
	stopping chan struct{}
	// halt is closed when outcomes are no longer waited for.
	halt chan struct{}
}

func newCourier(clk clock.WithTicker, grace time.Duration) *courier {
	return &courier{
		clock: clk, grace: grace,
		wakes:  make(chan event.TypedGenericEvent[*v1alpha1.NotificationOutbox], 4096),
		cancel: map[types.UID]context.CancelCauseFunc{},
		made:   map[types.UID]int32{},
		halt:   make(chan struct{}),

		stopping: make(chan struct{}),
	}
}

// wake asks for a reconcile of an outbox. It must not be lost: an outbox whose call
// has ended may have no other reason to be looked at. Once a stop has begun nobody
// reconciles any more.
func (c *courier) wake(key types.NamespacedName) {
	ob := &v1alpha1.NotificationOutbox{}
	ob.Namespace, ob.Name = key.Namespace, key.Name
	select {
	case c.wakes <- event.TypedGenericEvent[*v1alpha1.NotificationOutbox]{Object: ob}:
	case <-c.stopping:
	}
}

// enter begins what leads to a call, unless an orderly stop has begun; leave ends it.
// What was entered is carried through: a claim without a call would look like a call
// whose outcome is lost.
func (c *courier) enter() bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.stopped {
		return false
	}
	c.jobs.Add(1)
	return true
}

func (c *courier) leave() { c.jobs.Done() }

// carries tells whether an attempt of an outbox is under way in this process.
func (c *courier) carries(uid types.UID) bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.cancel[uid] != nil
}

// calls is the number of the last attempt of an outbox whose call this process made; 0
// if it made none.
func (c *courier) calls(uid types.UID) int32 {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.made[uid]
}

// calling notes that the call of an attempt is about to be made.
func (c *courier) calling(uid types.UID, attempt int32) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.made[uid] = attempt
}

func (c *courier) forget(uid types.UID) {
	c.mu.Lock()
	defer c.mu.Unlock()
	delete(c.made, uid)
}

// launch makes the call of a job in a goroutine of its own. It must be entered.
func (c *courier) launch(r *Reconciler, j *job) bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	uid := j.outbox.UID
	if c.cancel[uid] != nil {
		return false
	}
	ctx, cancel := context.WithCancelCause(context.Background())
	c.cancel[uid] = cancel
	if c.cancelled {
		cancel(errStopping)
	}
	c.jobs.Go(func() {
		defer cancel(nil)
		r.deliver(ctx, j)
		c.done(j)
	})
	return true
}

func (c *courier) done(j *job) {
	c.mu.Lock()
	delete(c.cancel, j.outbox.UID)
	c.mu.Unlock()
	c.wake(types.NamespacedName{Namespace: j.outbox.Namespace, Name: j.outbox.Name})
}

// Start waits for the stop, and then for the jobs. It makes courier a Runnable.
func (c *courier) Start(ctx context.Context) error {
	<-ctx.Done()
	c.mu.Lock()
	c.stopped = true
	c.mu.Unlock()
	close(c.stopping)
	finished := make(chan struct{})
	go func() {
		c.jobs.Wait()
		close(finished)
	}()
	if c.waits(finished, c.grace) {
		return nil
	}
	c.mu.Lock()
	c.cancelled = true
	for _, cancel := range c.cancel {
		cancel(errStopping)
	}
	c.mu.Unlock()
	if !c.waits(finished, RecordGrace) {
		close(c.halt)
	}
	return nil
}

func (c *courier) waits(finished <-chan struct{}, d time.Duration) bool {
	timer := c.clock.NewTimer(d)
	defer timer.Stop()
	select {
	case <-finished:
		return true
	case <-timer.C():
		return false
	}
}

// NeedLeaderElection tells the manager that jobs run in every replica.
func (c *courier) NeedLeaderElection() bool { return false }

// call makes the one call of a job. It does not if the claim cannot be trusted any
// more, as when the answer to the claim took too long: that is no attempt (I8).
func (r *Reconciler) call(ctx context.Context, j *job) (res outcome.Result, made bool) {
	if !j.held.trusted(r.Clock.Now()) {
		return outcome.Result{}, false
	}
	r.courier.calling(j.outbox.UID, j.start.Number)
	timed, stop := context.WithTimeout(ctx, j.provider.Spec.Timeout.Duration)
	defer stop()
	return send(timed, j), true
}

// send makes the call. A provider that panics has broken its promise; that must not
// end the process, which other providers need, and nobody knows how far it got.
func send(ctx context.Context, j *job) (res outcome.Result) {
	defer func() {
		if cause := recover(); cause != nil {
			logf.Log.WithName("dispatcher").Error(fmt.Errorf("panic: %T", cause), "Provider's implementation failed", "stack", string(debug.Stack()))
			res = outcome.Unanswered(outcome.ReasonConnectionLost, "the provider's implementation failed; this is a bug of the operator")
		}
	}()
	return j.sender.Send(ctx, j.message)
}

// keepClaim renews a claim until ctx ends, and cancels the call a margin before the
// claim runs out if it cannot (I6). It goes on while the outcome is recorded: as long
// as the API server takes renewals but not the outcome, nobody must send again.
func (r *Reconciler) keepClaim(ctx context.Context, j *job, cancel context.CancelCauseFunc) {
	next := j.held.current().RenewEvery()
	for {
		left := j.held.current().TrustedUntil().Sub(r.Clock.Now())
		if left <= 0 {
			cancel(errClaimLost)
			return
		}
		timer := r.Clock.NewTimer(min(next, left))
		select {
		case <-ctx.Done():
			timer.Stop()
			return
		case <-timer.C():
		}
		if left = j.held.current().TrustedUntil().Sub(r.Clock.Now()); left <= 0 {
			continue
		}
		bounded, stop := context.WithTimeout(ctx, left)
		err := r.claims.renew(bounded, j.held, j.outbox)
		stop()
		next = j.held.current().RenewEvery()
		if errors.Is(err, errPreempted) {
			cancel(errPreempted)
			return
		}
		if err != nil {
			next = j.held.current().RetryRenewAfter()
		}
	}
}
