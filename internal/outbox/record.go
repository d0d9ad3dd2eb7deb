// SPDX-FileCopyrightText: The WorkItem Operator Authors
// SPDX-License-Identifier: Apache-2.0

package outbox

import (
	"math"
	"time"

	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/workitem-operator/workitem-operator/api/v1alpha1"
	"github.com/workitem-operator/workitem-operator/internal/outcome"
)

// MaxHistory is how many finished attempts an outbox keeps.
const MaxHistory = 10

// Started is an attempt that is begun.
type Started struct {
	// Number counts the attempts of the outbox from 1.
	Number int32
	// Holder is the identity of the process that makes it.
	Holder string
	// At is when it was begun.
	At time.Time
}

// Lost is what a takeover found of an attempt whose holder never recorded its
// outcome.
type Lost struct {
	// Holder is the former holder of the claim.
	Holder string
	// Since is when the Lease was created, which is before any call; nil if that is not
	// known.
	Since *metav1.Time
}

// Begin is the status that counts an attempt before its call is made (I8). The
// first attempt has no such write: the created Lease is its record.
//
// An earlier attempt without an outcome ends here as Ambiguous: its holder is
// gone, and nobody knows how far it got. lost is given when the Lease had a holder
// that the status does not know of.
func Begin(ob *v1alpha1.NotificationOutbox, provider *v1alpha1.NotificationProvider, lost *Lost, holder string, now time.Time) (v1alpha1.NotificationOutboxStatus, Started) {
	st := Abandoned(ob, lost)
	if st.FirstAttemptTime == nil {
		st.FirstAttemptTime = stamp(now)
	}
	countRetries(&st, now)
	start := Started{Number: min(st.Attempts, math.MaxInt32-1) + 1, Holder: holder, At: now}
	st.Attempts = start.Number
	st.Phase = v1alpha1.OutboxPending
	st.NextAttemptTime = nil
	st.LastAttempt = &v1alpha1.Attempt{Number: start.Number, Holder: holder, StartTime: stamp(now)}
	st.Guarantee = GuaranteeNow(&st, provider, now)
	setDelivered(&st, metav1.ConditionFalse, v1alpha1.ReasonAttemptRunning, "an attempt is in flight", ob.Generation, now)
	return st, start
}

// countRetries begins the retry deadline with the first attempt, and ends a time
// that was excused.
func countRetries(st *v1alpha1.NotificationOutboxStatus, now time.Time) {
	if st.RetryStartTime == nil {
		st.RetryStartTime = stamp(now)
		st.ExcusedSeconds = 0
	} else if st.ExcusedSince != nil {
		st.ExcusedSeconds += int64(max(now.Sub(st.ExcusedSince.Time), 0) / time.Second)
	}
	st.ExcusedSince = nil
}

// Abandoned is the status once an attempt whose holder was lost is put down as
// Ambiguous; it is the status as it was if there is no such attempt.
func Abandoned(ob *v1alpha1.NotificationOutbox, lost *Lost) v1alpha1.NotificationOutboxStatus {
	st := *ob.Status.DeepCopy()
	const words = "the process that made this attempt did not record its outcome"
	switch {
	case st.LastAttempt != nil && st.LastAttempt.Outcome == "":
		a := *st.LastAttempt
		a.Outcome, a.Reason, a.Message = v1alpha1.OutcomeAmbiguous, v1alpha1.ReasonHolderLost, words
		remember(&st, a)
	case st.Attempts == 0 && lost != nil:
		a := v1alpha1.Attempt{
			Number: 1, Holder: clip(lost.Holder, 253), StartTime: lost.Since,
			Outcome: v1alpha1.OutcomeAmbiguous, Reason: v1alpha1.ReasonHolderLost, Message: words,
		}
		st.Attempts = 1
		if lost.Since != nil {
			st.FirstAttemptTime, st.RetryStartTime = stamp(lost.Since.Time), stamp(lost.Since.Time)
			st.ExcusedSince, st.ExcusedSeconds = nil, 0
		}
		remember(&st, a)
	}
	return st
}

func remember(st *v1alpha1.NotificationOutboxStatus, a v1alpha1.Attempt) {
	st.LastAttempt = &a
	st.History = append(st.History, a)
	if extra := len(st.History) - MaxHistory; extra > 0 {
		st.History = st.History[extra:]
	}
}

// Settle is the status that records the outcome of an attempt. claimEnds is when
// the claim runs out at the latest: after an ambiguous outcome nobody sends again
// before that.
func Settle(ob *v1alpha1.NotificationOutbox, provider *v1alpha1.NotificationProvider, start Started, res outcome.Result, now, claimEnds time.Time) v1alpha1.NotificationOutboxStatus {
	st := *ob.Status.DeepCopy()
	if st.FirstAttemptTime == nil {
		st.FirstAttemptTime = stamp(start.At)
	}
	if st.RetryStartTime == nil {
		countRetries(&st, start.At)
	}
	st.Attempts = start.Number
	st.NextAttemptTime = nil
	st.Guarantee = GuaranteeNow(&st, provider, start.At)
	remember(&st, finished(start, res, now))
	words := clip(res.Message, 1024)
	switch {
	case res.Class == outcome.Accepted:
		st.SentTime = stamp(now)
		finish(&st, v1alpha1.OutboxSent, now)
		setDelivered(&st, metav1.ConditionTrue, v1alpha1.ReasonSent, words, ob.Generation, now)
	case res.Follow == outcome.FollowDeadLetter:
		finish(&st, v1alpha1.OutboxDeadLettered, now)
		setDelivered(&st, metav1.ConditionFalse, res.Reason, words, ob.Generation, now)
	case res.Class == outcome.Ambiguous && provider.Spec.OnAmbiguous == v1alpha1.AmbiguousHold:
		finish(&st, v1alpha1.OutboxHeld, now)
		setDelivered(&st, metav1.ConditionFalse, v1alpha1.ReasonAmbiguousOutcome, words, ob.Generation, now)
	default:
		st.Phase = v1alpha1.OutboxPending
		schedule(&st, ob.Spec.IdempotencyKey, provider, res, now, claimEnds)
		setDelivered(&st, metav1.ConditionFalse, res.Reason, words, ob.Generation, now)
	}
	return st
}

// schedule says when the next attempt is due.
func schedule(st *v1alpha1.NotificationOutboxStatus, key string, provider *v1alpha1.NotificationProvider, res outcome.Result, now, claimEnds time.Time) {
	policy := provider.Spec.Retry
	pause := Backoff(policy, key, st.Attempts)
	switch {
	case res.Follow == outcome.FollowPark:
		pause = policy.MaxBackoff.Duration
		st.ExcusedSince = stamp(now)
	case res.Follow == outcome.FollowClose:
		st.ExcusedSince = stamp(now)
		return
	case res.RetryAfter > 0 && res.Class == outcome.Rejected:
		pause = max(pause, RetryAfter(policy, res.RetryAfter))
	}
	at := now.Add(pause)
	if res.Class == outcome.Ambiguous && at.Before(claimEnds) {
		at = claimEnds
	}
	st.NextAttemptTime = stampUp(at)
}

func finished(start Started, res outcome.Result, now time.Time) v1alpha1.Attempt {
	a := v1alpha1.Attempt{
		Number: start.Number, Holder: start.Holder, StartTime: stamp(start.At), FinishTime: stamp(now),
		Outcome: v1alpha1.AttemptOutcome(res.Class), Reason: clip(res.Reason, 128), Message: clip(res.Message, 2048),
	}
	if res.HTTPStatus >= 100 && res.HTTPStatus <= 999 {
		a.HTTPStatus = int32(res.HTTPStatus)
	}
	return a
}

func finish(st *v1alpha1.NotificationOutboxStatus, phase v1alpha1.OutboxPhase, now time.Time) {
	st.Phase = phase
	st.FinishedTime = stamp(now)
	st.NextAttemptTime = nil
	st.ExcusedSince = nil
}

// Ended is the status of an outbox that ends without a call.
func Ended(ob *v1alpha1.NotificationOutbox, lost *Lost, d Decision, now time.Time) v1alpha1.NotificationOutboxStatus {
	st := Abandoned(ob, lost)
	finish(&st, d.Phase, now)
	setDelivered(&st, metav1.ConditionFalse, d.Reason, endMessages[d.Reason], ob.Generation, now)
	return st
}

var endMessages = map[string]string{
	v1alpha1.ReasonDeadlineExceeded:  "the retry deadline passed; annotate the outbox with workitem.dev/decision=Replay to send it again",
	v1alpha1.ReasonAmbiguousOutcome:  "the provider may or may not have accepted the last attempt; annotate the outbox with workitem.dev/decision=Replay, MarkSent or Abandon",
	v1alpha1.ReasonWorkItemCompleted: "the WorkItem was completed",
	v1alpha1.ReasonWorkItemCancelled: "the WorkItem was cancelled",
	v1alpha1.ReasonWorkItemGone:      "the WorkItem is deleted",
	v1alpha1.ReasonOvertaken:         "the WorkItem has become overdue several times since",
}

// Waiting is the status of an outbox that something holds up. It is the status as
// it was if that is already recorded.
func Waiting(ob *v1alpha1.NotificationOutbox, provider *v1alpha1.NotificationProvider, d Decision, now time.Time) v1alpha1.NotificationOutboxStatus {
	st := *ob.Status.DeepCopy()
	if d.Reason != v1alpha1.ReasonNotRequested {
		st.Phase = v1alpha1.OutboxPending
		st.Guarantee = GuaranteeNow(&st, provider, now)
		switch {
		case excuses(d.Reason) && st.ExcusedSince == nil:
			st.ExcusedSince = stamp(now)
		case !excuses(d.Reason) && st.RetryStartTime != nil:
			countRetries(&st, now)
		}
	}
	setDelivered(&st, metav1.ConditionFalse, d.Reason, d.Message, ob.Generation, now)
	return st
}

// excuses tells whether the time that an outbox is held up for a reason does not count
// towards the retry deadline.
func excuses(reason string) bool {
	return reason != v1alpha1.ReasonClaimRefused && reason != v1alpha1.ReasonNotRequested
}

// setDelivered writes only what differs, so that the same facts never cause a
// second write.
func setDelivered(st *v1alpha1.NotificationOutboxStatus, status metav1.ConditionStatus, reason, message string, generation int64, now time.Time) {
	meta.SetStatusCondition(&st.Conditions, metav1.Condition{
		Type: v1alpha1.ConditionDelivered, Status: status, Reason: reason, Message: message,
		ObservedGeneration: generation, LastTransitionTime: *stamp(now),
	})
}

// Refreshed is the status with the guarantee that holds now; changed tells whether
// that is another one than was recorded. An outbox shows its guarantee from its
// first attempt on (I11).
func Refreshed(ob *v1alpha1.NotificationOutbox, provider *v1alpha1.NotificationProvider, now time.Time) (st v1alpha1.NotificationOutboxStatus, changed bool) {
	open := !Finished(&ob.Status) || ob.Status.Phase == v1alpha1.OutboxHeld
	if !open || ob.Status.Guarantee == "" || provider == nil {
		return ob.Status, false
	}
	guarantee := GuaranteeNow(&ob.Status, provider, now)
	if guarantee == ob.Status.Guarantee {
		return ob.Status, false
	}
	st = *ob.Status.DeepCopy()
	st.Guarantee = guarantee
	return st, true
}

// Resumed is the status once nothing but the schedule is waited for any more: the
// time from now on counts towards the retry deadline again. changed tells whether it
// did not count before.
func Resumed(ob *v1alpha1.NotificationOutbox, now time.Time) (st v1alpha1.NotificationOutboxStatus, changed bool) {
	if ob.Status.ExcusedSince == nil || ob.Status.RetryStartTime == nil {
		return ob.Status, false
	}
	st = *ob.Status.DeepCopy()
	countRetries(&st, now)
	return st, true
}

// Position is where an attempt stands in the outbox as it is now.
type Position int

const (
	// StillRunning means that the attempt is the last one and has no outcome yet: its
	// outcome may be recorded.
	StillRunning Position = iota + 1
	// AlreadySettled means that the outcome of this very attempt is recorded: the
	// answer to an earlier write was lost.
	AlreadySettled
	// TooLate means that another holder has taken the outbox over, or ended it.
	TooLate
)

// Standing tells where an attempt stands. The first attempt has left no trace in the
// outbox before its outcome; every later one has.
func Standing(ob *v1alpha1.NotificationOutbox, start Started) Position {
	last := ob.Status.LastAttempt
	switch {
	case last != nil && last.Number == start.Number && last.Holder == start.Holder && last.Outcome != "" && last.Reason != v1alpha1.ReasonHolderLost:
		return AlreadySettled
	case Finished(&ob.Status):
		return TooLate
	case last == nil && ob.Status.Attempts == 0 && start.Number == 1:
		return StillRunning
	case last != nil && last.Number == start.Number && last.Holder == start.Holder && last.Outcome == "":
		return StillRunning
	}
	return TooLate
}
