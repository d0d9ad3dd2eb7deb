// SPDX-FileCopyrightText: The WorkItem Operator Authors
// SPDX-License-Identifier: Apache-2.0

package dispatcher

import (
	"context"
	"errors"
	"fmt"
	"time"

	"k8s.io/klog/v2"
	"k8s.io/utils/ptr"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	logf "sigs.k8s.io/controller-runtime/pkg/log"

	"github.com/workitem-operator/workitem-operator/api/v1alpha1"
	"github.com/workitem-operator/workitem-operator/internal/delivery"
	"github.com/workitem-operator/workitem-operator/internal/endpoint"
	"github.com/workitem-operator/workitem-operator/internal/kube"
	"github.com/workitem-operator/workitem-operator/internal/outbox"
)

// attempt sends an outbox whose time has come: steps 2 to 4 of the package comment.
// The call itself and its outcome are the courier's.
func (r *Reconciler) attempt(ctx context.Context, f outbox.Facts) (ctrl.Result, error) {
	if !r.courier.enter() {
		return ctrl.Result{}, nil // An orderly stop has begun: no new claims.
	}
	defer r.courier.leave()
	ctx, stop := r.carryThrough(ctx)
	defer stop()
	ep, err := r.Resolver.Resolve(ctx, f.Provider, endpoint.Recent)
	if problem, ok := errors.AsType[*endpoint.Problem](err); ok {
		// The provider reconciler finds the same, says so in the status, and goes on
		// looking; until it has, this outbox looks again itself.
		r.Pauses.Check(f.Provider)
		return r.holdUp(ctx, f, outbox.Decision{
			Action: outbox.HoldUp, Reason: problem.Reason, Message: problem.Message, At: f.Now.Add(problemRetry),
		})
	}
	if err != nil {
		return ctrl.Result{}, err
	}
	slot, wait := r.gates.enter(f.Provider, client.ObjectKeyFromObject(f.Outbox), r.limit(f.Provider))
	if slot == nil {
		return r.wait(ctx, f, outbox.Decision{Action: outbox.Wait, At: f.Now.Add(wait), Counting: true})
	}
	job, result, err := r.prepare(ctx, f)
	if job == nil {
		slot.unused()
		return result, err
	}
	// A value of a Secret may have grown too old while the claim was made.
	if ep, err = r.Resolver.Resolve(ctx, f.Provider, endpoint.Recent); err != nil {
		slot.unused()
		r.Pauses.Check(f.Provider)
		logf.FromContext(ctx).V(1).Info("Provider cannot be called any more since the claim was made", "cause", err.Error())
		return ctrl.Result{RequeueAfter: problemRetry}, nil // The attempt, if counted, is resumed.
	}
	job.sender, job.secrets, job.slot = ep.Sender, ep.Secrets, slot
	if !r.courier.launch(r, job) { //nolint:contextcheck // The call outlives this reconcile; the courier ends it.
		slot.unused()
	}
	return ctrl.Result{}, nil
}

// carryGrace is how long a claim that is under way when a stop begins may take to be
// answered.
const carryGrace = 3 * time.Second

// carryThrough is a context in which what is begun is carried through even if a stop
// begins meanwhile: a claim without a call would look like a call whose outcome is
// lost. An API server that does not answer must not hold the stop up for long, though.
func (r *Reconciler) carryThrough(ctx context.Context) (context.Context, context.CancelFunc) {
	carried, cancel := context.WithTimeout(context.WithoutCancel(ctx), kube.PassTimeout)
	detach := context.AfterFunc(ctx, func() {
		timer := r.Clock.NewTimer(carryGrace)
		defer timer.Stop()
		select {
		case <-timer.C():
			cancel()
		case <-carried.Done():
		}
	})
	return carried, func() {
		detach()
		cancel()
	}
}

// limit is how many calls a provider may get at once: one, as a probe, once the time
// of a pause for a wrong configuration is over.
func (r *Reconciler) limit(provider *v1alpha1.NotificationProvider) int {
	if pause := r.Pauses.Known(provider); pause != nil && pause.Generation == provider.Generation && outbox.Parking(pause) {
		return 1
	}
	return int(provider.Spec.MaxInFlight)
}

// prepare claims an outbox and counts the attempt. It returns no job if another
// process has or had the claim, or if the outbox turns out to need something else.
func (r *Reconciler) prepare(ctx context.Context, f outbox.Facts) (*job, ctrl.Result, error) {
	held, result, err := r.claim(ctx, f)
	if held == nil {
		return nil, result, err
	}
	if r.firstByProof(f, held) {
		return r.newJob(f, held, outbox.Started{Number: 1, Holder: r.Identity, At: f.Now}), ctrl.Result{}, nil
	}
	f, d, err := r.decideAgain(ctx, f, held)
	if err != nil {
		return nil, ctrl.Result{}, err
	}
	if d.Action == outbox.End {
		result, err := r.endHeld(ctx, f, held, d)
		return nil, result, err
	}
	if d.Action != outbox.Attempt {
		return nil, ctrl.Result{RequeueAfter: time.Second}, nil
	}
	if held.created && untouched(f.Outbox) {
		return r.newJob(f, held, outbox.Started{Number: 1, Holder: r.Identity, At: f.Now}), ctrl.Result{}, nil
	}
	if last := f.Outbox.Status.LastAttempt; r.unspent(f.Outbox) {
		return r.newJob(f, held, outbox.Started{Number: last.Number, Holder: r.Identity, At: f.Now}), ctrl.Result{}, nil
	}
	return r.begin(ctx, f, held)
}

// unspent tells whether the last attempt was counted by this process, and its call
// never made: the answer to the write that counted it was lost, or the claim ran out.
func (r *Reconciler) unspent(ob *v1alpha1.NotificationOutbox) bool {
	last := ob.Status.LastAttempt
	return last != nil && last.Holder == r.Identity && last.Outcome == "" && last.Number > r.courier.calls(ob.UID)
}

// past is what this process knows of its own calls for an outbox.
func (r *Reconciler) past(ob *v1alpha1.NotificationOutbox) history {
	called := r.courier.calls(ob.UID) > 0
	last := ob.Status.LastAttempt
	rejected := last != nil && last.Holder == r.Identity && last.Outcome == v1alpha1.OutcomeRejected
	return history{called: called, mayGoOn: !called || rejected || r.unspent(ob)}
}

// firstByProof tells whether nobody has called or ended an outbox before, without a
// read: this process created its Lease, and the cache is recent enough to know of an
// earlier one that was collected. A Lease that somebody deleted proves nothing.
func (r *Reconciler) firstByProof(f outbox.Facts, held *holding) bool {
	return held.created && untouched(f.Outbox) && r.fresh.trusted(f.Outbox.Namespace, f.Now)
}

func untouched(ob *v1alpha1.NotificationOutbox) bool {
	return ob.Status.Attempts == 0 && ob.Status.Decision == nil && !outbox.Finished(&ob.Status)
}

// begin writes that an attempt is made, before it is (I6, I8). Whoever held the
// claim before can record nothing any more.
func (r *Reconciler) begin(ctx context.Context, f outbox.Facts, held *holding) (*job, ctrl.Result, error) {
	updated := f.Outbox.DeepCopy()
	var start outbox.Started
	updated.Status, start = outbox.Begin(f.Outbox, f.Provider, held.lost, r.Identity, f.Now)
	if err := r.updateStatus(ctx, updated); err != nil {
		return nil, ctrl.Result{}, err
	}
	f.Outbox = updated
	return r.newJob(f, held, start), ctrl.Result{}, nil
}

func (r *Reconciler) newJob(f outbox.Facts, held *holding, start outbox.Started) *job {
	return &job{
		outbox: f.Outbox, item: f.Item, provider: f.Provider, held: held, start: start,
		message: delivery.Message{
			Key: f.Outbox.Spec.IdempotencyKey, Body: []byte(f.Outbox.Spec.Payload.Body),
			ContentType: outbox.ContentType, Time: f.Now,
		},
	}
}

// claim acquires the claim on an outbox. Without one, the result says when to look
// again.
func (r *Reconciler) claim(ctx context.Context, f outbox.Facts) (*holding, ctrl.Result, error) {
	key := client.ObjectKeyFromObject(f.Outbox)
	if words, until, stands := r.refusals.Standing(key, f.Now); stands {
		result, err := r.claimRefused(ctx, f, words, until)
		return nil, result, err
	}
	held, wait, err := r.claims.acquire(ctx, f.Outbox, leaseDuration(f.Provider), r.past(f.Outbox))
	if refused, ok := errors.AsType[errRefused](err); ok {
		until := f.Now.Add(refusedRetry)
		result, err := r.claimRefused(ctx, f, r.refusals.Note(key, refused, until), until)
		return nil, result, err
	}
	if err != nil {
		return nil, ctrl.Result{}, err
	}
	if held == nil {
		return nil, ctrl.Result{RequeueAfter: max(wait, time.Millisecond)}, nil
	}
	if held.from != "" {
		logf.FromContext(ctx).Info("Took over claim", "lease", klog.KObj(held.lease), "from", held.from, "leaseTransitions", ptr.Deref(held.lease.Spec.LeaseTransitions, 0))
	}
	return held, ctrl.Result{}, nil
}

// claimRefused records that the API server refuses the claim.
func (r *Reconciler) claimRefused(ctx context.Context, f outbox.Facts, words string, until time.Time) (ctrl.Result, error) {
	return r.holdUp(ctx, f, outbox.Decision{
		Action: outbox.HoldUp, Reason: v1alpha1.ReasonClaimRefused, Message: "the API server refuses the claim: " + words, At: until,
	})
}

// leaseDuration is how long a claim holds; a minute when the provider is gone.
func leaseDuration(provider *v1alpha1.NotificationProvider) time.Duration {
	if provider == nil {
		return time.Minute
	}
	return provider.Spec.LeaseDuration.Duration
}

// decideAgain reads an outbox from the API server, after the claim, and decides
// anew: no cache may cause a call (I5). What the former holder left behind counts.
func (r *Reconciler) decideAgain(ctx context.Context, f outbox.Facts, held *holding) (outbox.Facts, outbox.Decision, error) {
	live := &v1alpha1.NotificationOutbox{}
	if err := r.API.Get(ctx, client.ObjectKeyFromObject(f.Outbox), live); err != nil {
		return f, outbox.Decision{}, fmt.Errorf("reading outbox: %w", err)
	}
	if live.UID != f.Outbox.UID {
		return f, outbox.Decision{Action: outbox.Nothing}, nil
	}
	r.known.Wrote(live, r.Clock.Now()) // The cache is not to be asked again before it shows at least this.
	f.Now = r.Clock.Now()
	f.Outbox = live
	judged := live.DeepCopy()
	if !r.unspent(live) {
		judged.Status = outbox.Abandoned(live, held.lost)
	}
	asked := f
	asked.Outbox = judged
	return f, outbox.Decide(asked), nil
}

// updateStatus writes the status of an outbox, with the resourceVersion that was
// read as the precondition.
func (r *Reconciler) updateStatus(ctx context.Context, ob *v1alpha1.NotificationOutbox) error {
	if err := r.Client.Status().Update(ctx, ob); err != nil {
		return err
	}
	r.known.Wrote(ob, r.Clock.Now())
	return nil
}
