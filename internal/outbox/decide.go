// SPDX-FileCopyrightText: The WorkItem Operator Authors
// SPDX-License-Identifier: Apache-2.0

package outbox

import (
	"time"

	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/workitem-operator/workitem-operator/api/v1alpha1"
)

// MaxOccurrencesBehind is how many later occurrences may begin before a
// notification that could not be sent is of no more interest. It bounds
// status.notifications of an item that is opened again and again while a provider
// is away.
const MaxOccurrencesBehind = 8

// Action is what to do about an outbox.
type Action int

const (
	// Nothing means that there is nothing to do, and that only an event changes that.
	Nothing Action = iota + 1
	// Wait means that there is nothing to do before Decision.At.
	Wait
	// Attempt means that the notification may be sent now.
	Attempt
	// End means that the outbox ends without a call, as Decision.Phase and
	// Decision.Reason say. It must be claimed first.
	End
	// HoldUp means that something keeps the outbox from being sent: record
	// Decision.Reason, and look again at Decision.At unless that is zero.
	HoldUp
	// Confirm means that the cached WorkItem does not vouch for the outbox: read it
	// from the API server before anything is said or done.
	Confirm
	// Collect means that the outbox may be deleted now.
	Collect
	// Resolve means that a person's decision is to be carried out.
	Resolve
)

// Facts is all that a decision about an outbox needs.
type Facts struct {
	// Outbox is the outbox as it was read.
	Outbox *v1alpha1.NotificationOutbox
	// Item is the WorkItem of the outbox's reference; nil if there is none of that
	// name and UID.
	Item *v1alpha1.WorkItem
	// Confirmed tells that Item was read from the API server, not from a cache.
	Confirmed bool
	// Provider is the provider; nil if there is none.
	Provider *v1alpha1.NotificationProvider
	// Pause is the provider's pause in force, as this process knows it; nil if there
	// is none.
	Pause *v1alpha1.ProviderPause
	// Now is the time of the decision.
	Now time.Time
}

// Decision is what to do about an outbox.
type Decision struct {
	// Action says what to do.
	Action Action
	// At is when, where the action says so; zero is never.
	At time.Time
	// Counting tells, for the action Wait, that nothing but the schedule is waited for:
	// the time counts towards the retry deadline.
	Counting bool
	// Phase goes with End, Reason with End and HoldUp, and Message with HoldUp.
	Phase   v1alpha1.OutboxPhase
	Reason  string
	Message string
}

// Finished tells whether an outbox has ended: nothing is sent unless a person
// replays it.
func Finished(st *v1alpha1.NotificationOutboxStatus) bool {
	return st.Phase != "" && st.Phase != v1alpha1.OutboxPending
}

// Decide says what to do about an outbox. The order of the questions is the
// policy: what ends an outbox comes before what holds it up, and that before what
// sends it.
func Decide(f Facts) Decision {
	st := &f.Outbox.Status
	switch {
	case f.Outbox.DeletionTimestamp != nil:
		return Decision{Action: Nothing}
	case f.Outbox.Annotations[v1alpha1.AnnotationDecision] != "":
		return Decision{Action: Resolve}
	case Finished(st):
		return collect(f)
	}
	for _, question := range []func(Facts) (Decision, bool){vouched, needed, ready, inTime, due} {
		if d, answered := question(f); answered {
			return d
		}
	}
	return Decision{Action: Attempt}
}

// collect says when a finished outbox may be deleted: when its end is reported and
// its time is up (the rule is in the design note on collection). What is held waits
// for a person, however long that takes.
func collect(f Facts) Decision {
	st := &f.Outbox.Status
	if st.Phase == v1alpha1.OutboxHeld {
		return Decision{Action: Wait, At: SoonerWindowEnd(st, f.Provider, f.Now.Add(time.Hour), f.Now)}
	}
	if st.FinishedTime == nil {
		return Decision{Action: Nothing}
	}
	if f.Item != nil && !reported(f.Item, f.Outbox) {
		return Decision{Action: Nothing}
	}
	ttl := DefaultTTL
	if f.Provider != nil {
		ttl = f.Provider.Spec.TTLAfterFinished.Duration
	}
	at := st.FinishedTime.Add(max(ttl, MinTTL))
	if f.Now.Before(at) {
		// The provider may be changed meanwhile, which wakes no finished outbox.
		return Decision{Action: Wait, At: earlier(at, f.Now.Add(time.Hour))}
	}
	if !f.Confirmed {
		return Decision{Action: Confirm}
	}
	return Decision{Action: Collect, At: at}
}

// DefaultTTL is how long a finished outbox is kept when its provider is gone.
const DefaultTTL = 168 * time.Hour

// MinTTL is the least time that a finished outbox is kept: a replica with an old
// cache relies on it.
const MinTTL = 10 * time.Minute

func earlier(a, b time.Time) time.Time {
	if b.Before(a) {
		return b
	}
	return a
}

func reported(item *v1alpha1.WorkItem, ob *v1alpha1.NotificationOutbox) bool {
	in := intentOf(item, ob)
	return in == nil || in.Phase == v1alpha1.NotificationPhase(ob.Status.Phase)
}

func intentOf(item *v1alpha1.WorkItem, ob *v1alpha1.NotificationOutbox) *v1alpha1.Intent {
	for i := range item.Status.Notifications {
		if item.Status.Notifications[i].OutboxName == ob.Name {
			return &item.Status.Notifications[i]
		}
	}
	return nil
}

// vouched asks whether a committed intent stands behind the outbox (I2). Once an
// attempt was made that was answered, and the intent of a former occurrence may
// have left the item since.
func vouched(f Facts) (Decision, bool) {
	if !consistent(f.Outbox) {
		return Decision{Action: HoldUp, Reason: v1alpha1.ReasonNotRequested, Message: notRequested}, true
	}
	if f.Item == nil {
		if !f.Confirmed {
			return Decision{Action: Confirm}, true
		}
		return ended(v1alpha1.OutboxSuperseded, v1alpha1.ReasonWorkItemGone), true
	}
	if f.Outbox.Status.Attempts > 0 || f.Outbox.Status.Decision != nil {
		return Decision{}, false
	}
	if in := intentOf(f.Item, f.Outbox); in != nil && Genuine(f.Outbox, f.Item, in) {
		return Decision{}, false
	}
	if !f.Confirmed {
		return Decision{Action: Confirm}, true
	}
	return Decision{Action: HoldUp, Reason: v1alpha1.ReasonNotRequested, Message: notRequested}, true
}

const notRequested = "no WorkItem has an intent for this outbox, so it is never sent; outboxes are made by the operator, not by hand: delete it"

// needed asks whether anybody still has to hear of it.
func needed(f Facts) (Decision, bool) {
	switch {
	case f.Item.DeletionTimestamp != nil:
		return ended(v1alpha1.OutboxSuperseded, v1alpha1.ReasonWorkItemGone), true
	case f.Item.Spec.State == v1alpha1.StateCompleted:
		return ended(v1alpha1.OutboxSuperseded, v1alpha1.ReasonWorkItemCompleted), true
	case f.Item.Spec.State == v1alpha1.StateCancelled:
		return ended(v1alpha1.OutboxSuperseded, v1alpha1.ReasonWorkItemCancelled), true
	case Overtaken(f.Item, f.Outbox.Spec.Occurrence):
		return ended(v1alpha1.OutboxSuperseded, v1alpha1.ReasonOvertaken), true
	}
	if in := intentOf(f.Item, f.Outbox); in != nil && f.Outbox.Status.Decision == nil && Withdrawn(in) {
		return ended(v1alpha1.OutboxSuperseded, in.Reason), true
	}
	return Decision{}, false
}

// Withdrawn tells whether an intent was open when its item was completed or
// cancelled. Activating the item again does not bring it back.
func Withdrawn(in *v1alpha1.Intent) bool {
	return in.Reason == v1alpha1.ReasonWorkItemCompleted || in.Reason == v1alpha1.ReasonWorkItemCancelled
}

// Overtaken tells whether so many later occurrences have begun that a
// notification of this one is of no more interest.
func Overtaken(item *v1alpha1.WorkItem, occurrence int32) bool {
	return item.Status.Occurrence-occurrence >= MaxOccurrencesBehind
}

// ready asks whether the provider may be called at all.
func ready(f Facts) (Decision, bool) {
	p := f.Provider
	switch {
	case p == nil:
		return heldUp(v1alpha1.ReasonProviderNotFound, "waiting for the NotificationProvider "+f.Outbox.Spec.ProviderName+" to be created"), true
	case p.Spec.Suspend:
		return heldUp(v1alpha1.ReasonProviderSuspended, "the NotificationProvider "+p.Name+" is suspended"), true
	case p.Spec.Type != f.Outbox.Spec.Payload.Format:
		return heldUp(v1alpha1.ReasonFormatMismatch, "the body was rendered for a provider of type "+string(f.Outbox.Spec.Payload.Format)+", and "+p.Name+" is now of type "+string(p.Spec.Type)), true
	}
	if c := meta.FindStatusCondition(p.Status.Conditions, v1alpha1.ConditionReady); c != nil && c.Status == metav1.ConditionFalse &&
		c.ObservedGeneration == p.Generation && needsSecret(c.Reason) {
		return heldUp(c.Reason, c.Message), true
	}
	if pause := f.Pause; pause != nil && Parking(pause) {
		if ParkingReason(lastReason(&f.Outbox.Status)) {
			// Its last attempt says why.
			return Decision{Action: Wait, At: SoonerWindowEnd(&f.Outbox.Status, p, timeOf(pause.Until), f.Now)}, true
		}
		d := heldUp(v1alpha1.ReasonProviderNotReady, "the NotificationProvider "+p.Name+" is not Ready: "+pause.Reason)
		d.At = timeOf(pause.Until)
		return d, true
	}
	return Decision{}, false
}

// needsSecret tells whether a provider's reason for not being Ready is a Secret. The
// provider reconciler reads that Secret again and again; nobody else has to.
func needsSecret(reason string) bool {
	switch reason {
	case v1alpha1.ReasonSecretNotFound, v1alpha1.ReasonSecretInvalid, v1alpha1.ReasonSecretForbidden:
		return true
	}
	return false
}

// inTime asks whether the retry deadline has passed, and whether the last outcome
// leaves the rest to a person.
func inTime(f Facts) (Decision, bool) {
	st := &f.Outbox.Status
	if last := st.LastAttempt; last != nil && last.Outcome == v1alpha1.OutcomeAmbiguous &&
		f.Provider.Spec.OnAmbiguous == v1alpha1.AmbiguousHold && st.NextAttemptTime == nil {
		return ended(v1alpha1.OutboxHeld, v1alpha1.ReasonAmbiguousOutcome), true
	}
	if at, counting := Deadline(st, f.Provider.Spec.Retry, f.Now); counting && !f.Now.Before(at) {
		return ended(v1alpha1.OutboxDeadLettered, v1alpha1.ReasonDeadlineExceeded), true
	}
	return Decision{}, false
}

// due asks whether the time of the next attempt has come. An outbox whose last
// attempt parked the provider waits for the end of that pause, and for nothing
// else: a change of spec or Secret ends it at once.
func due(f Facts) (Decision, bool) {
	st := &f.Outbox.Status
	at := f.Now
	if st.NextAttemptTime != nil && !ParkingReason(lastReason(st)) {
		at = st.NextAttemptTime.Time
	}
	if f.Pause != nil && f.Pause.Until != nil && f.Pause.Until.After(at) {
		at = f.Pause.Until.Time
	}
	if !f.Now.Before(at) {
		return Decision{}, false
	}
	if end, counting := Deadline(st, f.Provider.Spec.Retry, f.Now); counting && end.Before(at) {
		at = end
	}
	return Decision{Action: Wait, At: SoonerWindowEnd(st, f.Provider, at, f.Now), Counting: true}, true
}

func timeOf(t *metav1.Time) time.Time {
	if t == nil {
		return time.Time{}
	}
	return t.Time
}

func lastReason(st *v1alpha1.NotificationOutboxStatus) string {
	if st.LastAttempt == nil {
		return ""
	}
	return st.LastAttempt.Reason
}

func ended(phase v1alpha1.OutboxPhase, reason string) Decision {
	return Decision{Action: End, Phase: phase, Reason: reason}
}

func heldUp(reason, message string) Decision {
	return Decision{Action: HoldUp, Reason: reason, Message: message}
}
