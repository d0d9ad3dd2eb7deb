// SPDX-FileCopyrightText: The WorkItem Operator Authors
// SPDX-License-Identifier: Apache-2.0

package dispatcher

import (
	"context"
	"sync"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/klog/v2"
	"sigs.k8s.io/controller-runtime/pkg/client"
	logf "sigs.k8s.io/controller-runtime/pkg/log"

	"github.com/workitem-operator/workitem-operator/api/v1alpha1"
	"github.com/workitem-operator/workitem-operator/internal/kube"
	"github.com/workitem-operator/workitem-operator/internal/metrics"
	"github.com/workitem-operator/workitem-operator/internal/outbox"
	"github.com/workitem-operator/workitem-operator/internal/outcome"
)

const (
	// requestTimeout bounds one request that records an outcome.
	requestTimeout = 10 * time.Second
	// shortestPause and longestPause bound the time between two tries to record an
	// outcome while the API server is away.
	shortestPause = 200 * time.Millisecond
	longestPause  = 5 * time.Second
)

// deliver makes the call of a job and records its outcome: steps 5 and 6 of the
// package comment.
func (r *Reconciler) deliver(ctx context.Context, j *job) {
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	keeping, release := context.WithCancel(context.WithoutCancel(ctx))
	var keeper sync.WaitGroup
	keeper.Go(func() { r.keepClaim(keeping, j, cancel) })
	defer keeper.Wait()
	defer release()
	res, made := r.call(ctx, j)
	if !made {
		r.log(j).V(1).Info("Claim could not be trusted any more when the call was to be made, claiming again")
		j.slot.unused()
		return
	}
	now := r.Clock.Now()
	if pause := outbox.PauseAfter(res, j.provider, j.secrets, now); pause != nil {
		r.Pauses.Set(j.provider, pause, now)
	} else if res.Class == outcome.Accepted {
		r.Pauses.Accepted(j.provider, j.start.At)
	}
	j.slot.leave(res)
	r.record(context.WithoutCancel(ctx), j, res, now)
}

// record writes an outcome until it is written or another holder's word stands. An
// outcome is not given up because the API server is away: it is the only witness of
// what the provider said.
func (r *Reconciler) record(ctx context.Context, j *job, res outcome.Result, now time.Time) {
	base := j.outbox
	for pause := shortestPause; ; pause = min(2*pause, longestPause) {
		bounded, stop := context.WithTimeout(ctx, requestTimeout)
		next, err := r.recordOnce(bounded, j, base, res, now)
		stop()
		switch {
		case err == nil && next == nil, apierrors.IsNotFound(err):
			return // Recorded, overtaken, or deleted with whoever would read it.
		case err == nil:
			base = next
		case kube.Refused(err):
			r.log(j).Error(err, "API server refuses the outcome of an attempt, trying again", "outcome", res.Class)
			pause = longestPause
		default:
			r.log(j).V(1).Info("Could not record the outcome of an attempt yet", "cause", err.Error())
		}
		if r.courier.waits(r.courier.halt, pause) {
			r.log(j).Error(err, "Outcome of an attempt is not recorded because the process stops; the next holder records it as Ambiguous", "outcome", res.Class)
			return
		}
	}
}

// recordOnce writes an outcome on top of base. It returns the outbox to try again
// with if base was an old version, and nothing if there is nothing left to do.
func (r *Reconciler) recordOnce(ctx context.Context, j *job, base *v1alpha1.NotificationOutbox, res outcome.Result, now time.Time) (*v1alpha1.NotificationOutbox, error) {
	updated := base.DeepCopy()
	updated.Status = outbox.Settle(base, j.provider, j.start, res, now, j.held.endsAt())
	err := r.updateStatus(ctx, updated)
	if apierrors.IsConflict(err) {
		return r.rebase(ctx, j, res)
	}
	if err == nil {
		r.announce(j, updated, res)
	}
	return nil, err
}

// rebase reads an outbox whose version has changed since the attempt was begun. It
// returns nothing if the outcome is already recorded, or if another holder has
// taken the outbox over: then the late outcome is told, and changes nothing (I6).
func (r *Reconciler) rebase(ctx context.Context, j *job, res outcome.Result) (*v1alpha1.NotificationOutbox, error) {
	live := &v1alpha1.NotificationOutbox{}
	if err := r.API.Get(ctx, client.ObjectKeyFromObject(j.outbox), live); err != nil {
		return nil, err
	}
	if live.UID != j.outbox.UID {
		return nil, nil
	}
	switch outbox.Standing(live, j.start) {
	case outbox.StillRunning:
		return live, nil
	case outbox.AlreadySettled:
		r.known.Wrote(live, r.Clock.Now())
		r.announce(j, live, res)
	case outbox.TooLate:
		r.known.Wrote(live, r.Clock.Now())
		metrics.LateResult()
		r.log(j).Info("Outcome came too late to be recorded", "outcome", res.Class, "reason", res.Reason, "httpStatus", res.HTTPStatus)
		r.eventLate(live, j, res)
	}
	return nil, nil
}

// announce tells of a recorded outcome: one log line for each, one Event for an end.
func (r *Reconciler) announce(j *job, ob *v1alpha1.NotificationOutbox, res outcome.Result) {
	r.log(j).Info("Recorded outcome of attempt", "attempt", j.start.Number, "outcome", res.Class, "reason", res.Reason,
		"httpStatus", res.HTTPStatus, "phase", ob.Status.Phase, "guarantee", ob.Status.Guarantee, "provider", j.provider.Name)
	metrics.Attempt(ob.Namespace, ob.Spec.ProviderName, string(res.Class), res.Reason)
	if res.Class == outcome.Accepted && j.item != nil && ob.Status.SentTime != nil {
		for _, in := range j.item.Status.Notifications {
			if in.OutboxName == ob.Name && in.TransitionTime != nil {
				metrics.Sent(ob.Namespace, ob.Spec.ProviderName, ob.Status.SentTime.Sub(in.TransitionTime.Time))
			}
		}
	}
	r.announceEnd(ob, j.item)
}

// announceEnd tells of an outbox that has ended.
func (r *Reconciler) announceEnd(ob *v1alpha1.NotificationOutbox, item *v1alpha1.WorkItem) {
	if outbox.Finished(&ob.Status) {
		metrics.Finished(ob.Namespace, ob.Spec.ProviderName, string(ob.Status.Phase))
		r.eventEnd(ob, item)
	}
}

func (r *Reconciler) log(j *job) klog.Logger {
	return logf.Log.WithName("dispatcher").WithValues("notificationOutbox", klog.KObj(j.outbox))
}
