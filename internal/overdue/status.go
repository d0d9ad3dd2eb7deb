// SPDX-FileCopyrightText: The WorkItem Operator Authors
// SPDX-License-Identifier: Apache-2.0

package overdue

import (
	"slices"
	"time"

	"k8s.io/apimachinery/pkg/api/equality"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/workitem-operator/workitem-operator/api/v1alpha1"
	"github.com/workitem-operator/workitem-operator/internal/outbox"
)

// ReportWithin is how long the end of one notification may wait to be reported
// together with others of the same item.
const ReportWithin = time.Second

// Facts is all that the status of an item depends on.
type Facts struct {
	// Item is the item as it was read.
	Item *v1alpha1.WorkItem
	// Now is the time of the decision.
	Now time.Time
	// Outboxes are the genuine outboxes of the item's intents, by name.
	Outboxes map[string]*v1alpha1.NotificationOutbox
	// Absent are the names of outboxes that the API server does not have.
	Absent map[string]bool
	// Missing are the names of providers that do not exist.
	Missing map[string]bool
	// Taken are the names of outboxes that other objects have.
	Taken map[string]bool
	// Refused are the API server's words on outboxes that it refused to create.
	Refused map[string]string
}

// Plan is the status that an item is to have.
type Plan struct {
	// Status is the whole status.
	Status v1alpha1.WorkItemStatus
	// Write tells whether it has to be written. An end that can still be reported
	// together with others is not written yet.
	Write bool
	// ReportAt is when it has to be written at the latest; zero if nothing waits.
	ReportAt time.Time
}

// Next is the status of an item after a decision. Evaluating the same facts once
// more gives a plan that writes nothing (I10).
func Next(f Facts, d Decision) Plan {
	current := &f.Item.Status
	if plain := build(f, d, false); !equality.Semantic.DeepEqual(plain, *current) {
		return Plan{Status: build(f, d, true), Write: true}
	}
	at, ends := reportAt(f)
	if !ends {
		return Plan{Status: *current}
	}
	if f.Now.Before(at) {
		return Plan{Status: *current, ReportAt: at}
	}
	return Plan{Status: build(f, d, true), Write: true}
}

// reportAt is when the ends that are not reported yet have to be. They are
// reported at once when no other notification of the item is open.
func reportAt(f Facts) (at time.Time, ends bool) {
	open := false
	for i := range f.Item.Status.Notifications {
		in := &f.Item.Status.Notifications[i]
		ob := f.Outboxes[in.OutboxName]
		phase := PhaseOf(in, ob)
		if Open(phase) {
			open = true
		}
		if phase == in.Phase || (Open(phase) && Open(in.Phase)) {
			continue
		}
		if due := reportDue(ob, f.Now); !ends || due.Before(at) {
			at = due
		}
		ends = true
	}
	if ends && !open {
		return f.Now, true
	}
	return at, ends
}

// reportDue is when the news of one outbox has to be reported at the latest. Its end is
// kept in whole seconds, and may have been up to a second later. A replay, and an end
// that by this clock has not come yet, are reported at once.
func reportDue(ob *v1alpha1.NotificationOutbox, now time.Time) time.Time {
	if ob == nil || ob.Status.FinishedTime == nil || ob.Status.FinishedTime.After(now) {
		return now
	}
	return ob.Status.FinishedTime.Add(time.Second + ReportWithin)
}

// Open tells whether a notification has not ended.
func Open(phase v1alpha1.NotificationPhase) bool {
	return phase == v1alpha1.NotificationRecorded || phase == v1alpha1.NotificationPending
}

// PhaseOf is the phase of an intent as its outbox has it.
func PhaseOf(in *v1alpha1.Intent, ob *v1alpha1.NotificationOutbox) v1alpha1.NotificationPhase {
	switch {
	case ob == nil:
		return in.Phase
	case outbox.Finished(&ob.Status):
		return v1alpha1.NotificationPhase(ob.Status.Phase)
	default:
		return v1alpha1.NotificationPending
	}
}

// build is the status after a decision; fold brings the intents up to date with
// their outboxes.
func build(f Facts, d Decision, fold bool) v1alpha1.WorkItemStatus {
	st := *f.Item.Status.DeepCopy()
	st.ObservedGeneration = f.Item.Generation
	st.Phase, st.Occurrence, st.EscalationLevel, st.OverdueTime = d.Phase, d.Occurrence, d.Level, d.OverdueTime
	if d.Changed {
		st.TransitionTime = &metav1.Time{Time: f.Now.UTC().Truncate(time.Second)}
	}
	for _, fired := range d.Fired {
		if fired.Transition == v1alpha1.TransitionOverdue {
			st.OccurrenceTime = st.TransitionTime
		}
	}
	st.Notifications = intents(f, d, fold)
	setConditions(&st, f)
	return st
}

// intents are the intents that the status is to have: those that there are, and
// those of the transitions that fire now (I2: in the same write).
func intents(f Facts, d Decision, fold bool) []v1alpha1.Intent {
	var out []v1alpha1.Intent
	for _, in := range f.Item.Status.Notifications {
		if fold && in.Occurrence < d.Occurrence && !Open(in.Phase) && PhaseOf(&in, f.Outboxes[in.OutboxName]) == in.Phase {
			continue // Of a former occurrence, and its end was reported.
		}
		if fold {
			bringUpToDate(&in, f.Outboxes[in.OutboxName])
		}
		withdraw(&in, d)
		if reason := needless(f, d, &in); reason != "" {
			in.Phase, in.Reason = v1alpha1.NotificationSuperseded, reason
		}
		out = append(out, in)
	}
	for _, fired := range d.Fired {
		for _, target := range fired.Notify {
			in := outbox.NewIntent(outbox.Identity{
				WorkItemName: f.Item.Name, WorkItemUID: f.Item.UID,
				Transition: fired.Transition, Level: fired.Level,
				Occurrence: d.Occurrence, Provider: target.ProviderName,
			}, f.Now)
			// A status that was edited by hand may count an occurrence twice.
			if !slices.ContainsFunc(out, func(o v1alpha1.Intent) bool { return o.OutboxName == in.OutboxName }) {
				out = append(out, in)
			}
		}
	}
	return out
}

// withdraw notes on an intent that is still open that the item was completed or
// cancelled. Activating the item again does not bring it back.
func withdraw(in *v1alpha1.Intent, d Decision) {
	if !Open(in.Phase) || in.Reason != "" {
		return
	}
	switch d.Phase {
	case v1alpha1.PhaseCompleted:
		in.Reason = v1alpha1.ReasonWorkItemCompleted
	case v1alpha1.PhaseCancelled:
		in.Reason = v1alpha1.ReasonWorkItemCancelled
	case v1alpha1.PhaseOpen, v1alpha1.PhaseOverdue:
	}
}

func bringUpToDate(in *v1alpha1.Intent, ob *v1alpha1.NotificationOutbox) {
	phase := PhaseOf(in, ob)
	if phase == in.Phase {
		return
	}
	withdrawn := Open(in.Phase) && Open(phase)
	in.Phase = phase
	if withdrawn {
		return
	}
	in.Reason = ""
	if Open(phase) {
		return
	}
	for _, c := range ob.Status.Conditions {
		if c.Type == v1alpha1.ConditionDelivered && c.Reason != v1alpha1.ReasonSent {
			in.Reason = c.Reason
		}
	}
}

// needless says why an intent that has no outbox needs none any more; empty if it
// does. What has an outbox is ended by the dispatcher, under its claim.
func needless(f Facts, d Decision, in *v1alpha1.Intent) string {
	if !Open(in.Phase) || !f.Absent[in.OutboxName] {
		return ""
	}
	if in.Reason != "" {
		return in.Reason // It was withdrawn.
	}
	switch d.Phase {
	case v1alpha1.PhaseCompleted:
		return v1alpha1.ReasonWorkItemCompleted
	case v1alpha1.PhaseCancelled:
		return v1alpha1.ReasonWorkItemCancelled
	case v1alpha1.PhaseOpen, v1alpha1.PhaseOverdue:
		if d.Occurrence-in.Occurrence >= outbox.MaxOccurrencesBehind {
			return v1alpha1.ReasonOvertaken
		}
	}
	return ""
}

// Unneeded are the open intents that shall get no outbox any more, so that the
// caller can find out whether they have one.
func Unneeded(item *v1alpha1.WorkItem, d Decision) []*v1alpha1.Intent {
	var out []*v1alpha1.Intent
	for i := range item.Status.Notifications {
		in := &item.Status.Notifications[i]
		everywhere := Facts{Absent: map[string]bool{in.OutboxName: true}}
		if needless(everywhere, d, in) != "" {
			out = append(out, in)
		}
	}
	return out
}
