// SPDX-FileCopyrightText: The WorkItem Operator Authors
// SPDX-License-Identifier: Apache-2.0

// Package overdue decides what a WorkItem's next transition is, and what its
// status says then.
//
// It is a rule package: it is given an item, the time and what is known of the
// item's outboxes, and returns a value. It reads no clock and writes nothing.
//
// It promises that an occurrence of being overdue begins exactly once for each
// time the item passes from not overdue to overdue, that every step of
// escalations fires at most once in an occurrence, and that evaluating the same
// facts again changes nothing. It does not promise that anybody is told: that
// begins where the returned status is committed.
package overdue

import (
	"math"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/workitem-operator/workitem-operator/api/v1alpha1"
)

// Firing is one transition of which people are told.
type Firing struct {
	// Transition is Overdue or Escalated.
	Transition v1alpha1.Transition
	// Level is the step of escalations, counted from 1; 0 for Overdue.
	Level int32
	// Notify says who is told.
	Notify []v1alpha1.NotifyTarget
}

// Decision is what a WorkItem's phase is to be now.
type Decision struct {
	// Phase is the phase that the item is to have.
	Phase v1alpha1.WorkItemPhase
	// Occurrence and Level are the counters that go with it.
	Occurrence, Level int32
	// OverdueTime is the due time that was missed; nil if none ever was.
	OverdueTime *metav1.Time
	// Fired are the transitions that this decision commits, in order. It is empty
	// when the item is as it should be.
	Fired []Firing
	// Changed tells whether phase, occurrence or level differ from what is committed.
	Changed bool
	// NextCheck is when the answer will be another one; zero if time alone changes
	// nothing.
	NextCheck time.Time
}

// Evaluate decides on the phase of an item at the time now.
func Evaluate(item *v1alpha1.WorkItem, now time.Time) Decision {
	st := &item.Status
	d := Decision{Occurrence: st.Occurrence, Level: st.EscalationLevel, OverdueTime: st.OverdueTime}
	switch {
	case item.Spec.State == v1alpha1.StateCompleted:
		d.Phase = v1alpha1.PhaseCompleted
	case item.Spec.State == v1alpha1.StateCancelled:
		d.Phase = v1alpha1.PhaseCancelled
	case item.Spec.DueTime == nil:
		d.Phase = v1alpha1.PhaseOpen
	case now.Before(item.Spec.DueTime.Time) && !missed(item):
		d.Phase, d.NextCheck = v1alpha1.PhaseOpen, item.Spec.DueTime.Time
	default:
		becomeOverdue(&d, item, now)
	}
	d.Changed = d.Phase != st.Phase || d.Level != st.EscalationLevel || d.Occurrence != st.Occurrence
	return d
}

// becomeOverdue begins an occurrence unless one goes on, and fires every step of
// escalations whose time has come: an operator that was away for long fires
// several at once, so that nobody is left out.
func becomeOverdue(d *Decision, item *v1alpha1.WorkItem, now time.Time) {
	due := item.Spec.DueTime.Time
	d.Phase = v1alpha1.PhaseOverdue
	if item.Status.Phase != v1alpha1.PhaseOverdue || item.Status.Occurrence < 1 || missedAgain(item) {
		d.Occurrence = min(d.Occurrence, math.MaxInt32-1) + 1
		d.Level = 0
		d.OverdueTime = nil
		d.Fired = append(d.Fired, Firing{Transition: v1alpha1.TransitionOverdue, Notify: item.Spec.Notify})
	}
	if d.OverdueTime == nil {
		d.OverdueTime = &metav1.Time{Time: due}
	}
	steps := item.Spec.Escalations
	for int(d.Level) < len(steps) {
		step := steps[d.Level]
		at := due.Add(step.After.Duration)
		if now.Before(at) {
			d.NextCheck = at
			return
		}
		d.Level++
		d.Fired = append(d.Fired, Firing{Transition: v1alpha1.TransitionEscalated, Level: d.Level, Notify: step.Notify})
	}
}

// missed tells whether this very due time was missed, as another replica committed it:
// a clock that is behind that one's does not open the item again.
func missed(item *v1alpha1.WorkItem) bool {
	return item.Status.Phase == v1alpha1.PhaseOverdue && item.Status.OverdueTime.Equal(item.Spec.DueTime)
}

// missedAgain tells whether a due time was missed that was set after the item had
// become overdue: it was opened again and passed while nobody looked.
func missedAgain(item *v1alpha1.WorkItem) bool {
	since := item.Status.OccurrenceTime
	return since != nil && item.Spec.DueTime.After(since.Time)
}

// Active tells whether the user still wants the item done. Nothing is sent, and
// no outbox is made, for an item that is not.
func Active(item *v1alpha1.WorkItem) bool {
	return item.Spec.State != v1alpha1.StateCompleted && item.Spec.State != v1alpha1.StateCancelled
}
