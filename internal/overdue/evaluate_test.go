// SPDX-FileCopyrightText: The WorkItem Operator Authors
// SPDX-License-Identifier: Apache-2.0

package overdue_test

import (
	"math"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/workitem-operator/workitem-operator/api/v1alpha1"
	"github.com/workitem-operator/workitem-operator/internal/overdue"
	"github.com/workitem-operator/workitem-operator/test/wrappers"
)

// noon is the time of every decision here unless a test says otherwise.
var noon = time.Date(2026, 12, 1, 12, 0, 0, 0, time.UTC)

func stampOf(t time.Time) *metav1.Time { return &metav1.Time{Time: t} }

func told(providers ...string) []v1alpha1.NotifyTarget {
	var out []v1alpha1.NotifyTarget
	for _, p := range providers {
		out = append(out, v1alpha1.NotifyTarget{ProviderName: p})
	}
	return out
}

func item() *wrappers.WorkItem { return wrappers.MakeWorkItem("renew", "ops").Notify("hook") }

func TestEvaluate(t *testing.T) {
	t.Parallel()
	hourAgo, inAnHour := noon.Add(-time.Hour), noon.Add(time.Hour)
	overdueFiring := overdue.Firing{Transition: v1alpha1.TransitionOverdue, Notify: told("hook")}
	step := func(level int32, providers ...string) overdue.Firing {
		return overdue.Firing{Transition: v1alpha1.TransitionEscalated, Level: level, Notify: told(providers...)}
	}
	cases := map[string]struct {
		item *wrappers.WorkItem
		want overdue.Decision
	}{
		"a new item without a due time is open, and time changes nothing": {
			item: item(),
			want: overdue.Decision{Phase: v1alpha1.PhaseOpen, Changed: true},
		},
		"a new item is open until it is due": {
			item: item().Due(inAnHour),
			want: overdue.Decision{Phase: v1alpha1.PhaseOpen, Changed: true, NextCheck: inAnHour},
		},
		"an open item that is not due stays as it is": {
			item: item().Due(inAnHour).Phase(v1alpha1.PhaseOpen),
			want: overdue.Decision{Phase: v1alpha1.PhaseOpen, NextCheck: inAnHour},
		},
		"one nanosecond before the due time is not overdue": {
			item: item().Due(noon.Add(time.Nanosecond)).Phase(v1alpha1.PhaseOpen),
			want: overdue.Decision{Phase: v1alpha1.PhaseOpen, NextCheck: noon.Add(time.Nanosecond)},
		},
		"at the due time the item is overdue": {
			item: item().Due(noon).Phase(v1alpha1.PhaseOpen),
			want: overdue.Decision{Phase: v1alpha1.PhaseOverdue, Occurrence: 1, OverdueTime: stampOf(noon), Fired: []overdue.Firing{overdueFiring}, Changed: true},
		},
		"an item first seen past its due time is overdue in its first decision": {
			item: item().Due(hourAgo),
			want: overdue.Decision{Phase: v1alpha1.PhaseOverdue, Occurrence: 1, OverdueTime: stampOf(hourAgo), Fired: []overdue.Firing{overdueFiring}, Changed: true},
		},
		"a step of 0s fires together with the due time": {
			item: item().Due(noon).Phase(v1alpha1.PhaseOpen).Escalate(0, "pager"),
			want: overdue.Decision{Phase: v1alpha1.PhaseOverdue, Occurrence: 1, Level: 1, OverdueTime: stampOf(noon), Fired: []overdue.Firing{overdueFiring, step(1, "pager")}, Changed: true},
		},
		"every step that was missed fires, in order, and the next is waited for": {
			item: item().Due(hourAgo).Phase(v1alpha1.PhaseOpen).Escalate(0, "a").Escalate(time.Minute, "b", "c").Escalate(time.Hour, "d").Escalate(2*time.Hour, "e"),
			want: overdue.Decision{
				Phase: v1alpha1.PhaseOverdue, Occurrence: 1, Level: 3, OverdueTime: stampOf(hourAgo), Changed: true, NextCheck: hourAgo.Add(2 * time.Hour),
				Fired: []overdue.Firing{overdueFiring, step(1, "a"), step(2, "b", "c"), step(3, "d")},
			},
		},
		"an overdue item waits for its next step": {
			item: item().Due(hourAgo).Phase(v1alpha1.PhaseOverdue).Occurrence(4).OverdueTime(hourAgo).Escalate(2*time.Hour, "pager"),
			want: overdue.Decision{Phase: v1alpha1.PhaseOverdue, Occurrence: 4, OverdueTime: stampOf(hourAgo), NextCheck: hourAgo.Add(2 * time.Hour)},
		},
		"a step that fired does not fire again": {
			item: item().Due(hourAgo).Phase(v1alpha1.PhaseOverdue).Occurrence(1).Level(1).OverdueTime(hourAgo).Escalate(0, "pager"),
			want: overdue.Decision{Phase: v1alpha1.PhaseOverdue, Occurrence: 1, Level: 1, OverdueTime: stampOf(hourAgo)},
		},
		"the level stays when the list of steps shrinks": {
			item: item().Due(hourAgo).Phase(v1alpha1.PhaseOverdue).Occurrence(1).Level(3).OverdueTime(hourAgo).Escalate(0, "pager"),
			want: overdue.Decision{Phase: v1alpha1.PhaseOverdue, Occurrence: 1, Level: 3, OverdueTime: stampOf(hourAgo)},
		},
		"moving the due time into the future opens the item": {
			item: item().Due(inAnHour).Phase(v1alpha1.PhaseOverdue).Occurrence(2).Level(1).OverdueTime(hourAgo),
			want: overdue.Decision{Phase: v1alpha1.PhaseOpen, Occurrence: 2, Level: 1, OverdueTime: stampOf(hourAgo), Changed: true, NextCheck: inAnHour},
		},
		"removing the due time opens the item": {
			item: item().Phase(v1alpha1.PhaseOverdue).Occurrence(2).OverdueTime(hourAgo),
			want: overdue.Decision{Phase: v1alpha1.PhaseOpen, Occurrence: 2, OverdueTime: stampOf(hourAgo), Changed: true},
		},
		"moving the due time within the past is the same occurrence": {
			item: item().Due(noon.Add(-time.Minute)).Phase(v1alpha1.PhaseOverdue).Occurrence(2).OverdueTime(hourAgo),
			want: overdue.Decision{Phase: v1alpha1.PhaseOverdue, Occurrence: 2, OverdueTime: stampOf(hourAgo)},
		},
		"a due time set after the item was overdue, and missed unseen, is a new occurrence": {
			item: item().Due(noon.Add(-time.Minute)).Status(v1alpha1.WorkItemStatus{
				Phase: v1alpha1.PhaseOverdue, Occurrence: 2, EscalationLevel: 1, OverdueTime: stampOf(hourAgo), OccurrenceTime: stampOf(hourAgo),
			}),
			want: overdue.Decision{Phase: v1alpha1.PhaseOverdue, Occurrence: 3, OverdueTime: stampOf(noon.Add(-time.Minute)), Fired: []overdue.Firing{overdueFiring}, Changed: true},
		},
		"the due time that was missed begins no second occurrence": {
			item: item().Due(hourAgo).Status(v1alpha1.WorkItemStatus{
				Phase: v1alpha1.PhaseOverdue, Occurrence: 2, OverdueTime: stampOf(hourAgo), OccurrenceTime: stampOf(hourAgo),
			}),
			want: overdue.Decision{Phase: v1alpha1.PhaseOverdue, Occurrence: 2, OverdueTime: stampOf(hourAgo)},
		},
		"an opened item that becomes overdue again begins a new occurrence at level 0": {
			item: item().Due(noon).Phase(v1alpha1.PhaseOpen).Occurrence(2).Level(3).OverdueTime(hourAgo).Escalate(time.Hour, "pager"),
			want: overdue.Decision{
				Phase: v1alpha1.PhaseOverdue, Occurrence: 3, OverdueTime: stampOf(noon), Changed: true, NextCheck: inAnHour,
				Fired: []overdue.Firing{overdueFiring},
			},
		},
		"an item completed before it is due never fires": {
			item: item().Due(hourAgo).Phase(v1alpha1.PhaseOpen).State(v1alpha1.StateCompleted).Escalate(0, "pager"),
			want: overdue.Decision{Phase: v1alpha1.PhaseCompleted, Changed: true},
		},
		"an overdue item can be completed": {
			item: item().Due(hourAgo).Phase(v1alpha1.PhaseOverdue).Occurrence(1).OverdueTime(hourAgo).State(v1alpha1.StateCompleted),
			want: overdue.Decision{Phase: v1alpha1.PhaseCompleted, Occurrence: 1, OverdueTime: stampOf(hourAgo), Changed: true},
		},
		"a completed item can be cancelled": {
			item: item().Due(hourAgo).Phase(v1alpha1.PhaseCompleted).Occurrence(1).OverdueTime(hourAgo).State(v1alpha1.StateCancelled),
			want: overdue.Decision{Phase: v1alpha1.PhaseCancelled, Occurrence: 1, OverdueTime: stampOf(hourAgo), Changed: true},
		},
		"a completed item stays completed however late it is": {
			item: item().Due(hourAgo).Phase(v1alpha1.PhaseCompleted).Occurrence(1).OverdueTime(hourAgo).State(v1alpha1.StateCompleted),
			want: overdue.Decision{Phase: v1alpha1.PhaseCompleted, Occurrence: 1, OverdueTime: stampOf(hourAgo)},
		},
		"an item re-activated past its due time begins a new occurrence": {
			item: item().Due(hourAgo).Phase(v1alpha1.PhaseCompleted).Occurrence(1).Level(2).OverdueTime(hourAgo).Escalate(0, "pager"),
			want: overdue.Decision{
				Phase: v1alpha1.PhaseOverdue, Occurrence: 2, Level: 1, OverdueTime: stampOf(hourAgo), Changed: true,
				Fired: []overdue.Firing{overdueFiring, step(1, "pager")},
			},
		},
		"an item re-activated before its due time is open again": {
			item: item().Due(inAnHour).Phase(v1alpha1.PhaseCancelled).Occurrence(1).OverdueTime(hourAgo),
			want: overdue.Decision{Phase: v1alpha1.PhaseOpen, Occurrence: 1, OverdueTime: stampOf(hourAgo), Changed: true, NextCheck: inAnHour},
		},
		"an item nobody hears of still becomes overdue": {
			item: wrappers.MakeWorkItem("quiet", "ops").Due(hourAgo).Phase(v1alpha1.PhaseOpen),
			want: overdue.Decision{Phase: v1alpha1.PhaseOverdue, Occurrence: 1, OverdueTime: stampOf(hourAgo), Changed: true, Fired: []overdue.Firing{{Transition: v1alpha1.TransitionOverdue}}},
		},
		"a hand-made status Overdue without the missed due time gets it and fires nothing": {
			item: item().Due(hourAgo).Phase(v1alpha1.PhaseOverdue).Occurrence(1),
			want: overdue.Decision{Phase: v1alpha1.PhaseOverdue, Occurrence: 1, OverdueTime: stampOf(hourAgo)},
		},
		"a state that is left out is Active": {
			item: item().Due(hourAgo).State(""),
			want: overdue.Decision{Phase: v1alpha1.PhaseOverdue, Occurrence: 1, OverdueTime: stampOf(hourAgo), Changed: true, Fired: []overdue.Firing{overdueFiring}},
		},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			obj := tc.item.Obj()
			before := obj.DeepCopy()
			got := overdue.Evaluate(obj, noon)
			if diff := cmp.Diff(tc.want, got, cmpopts.EquateEmpty()); diff != "" {
				t.Errorf("decision (-want +got):\n%s", diff)
			}
			if diff := cmp.Diff(before, obj); diff != "" {
				t.Errorf("Evaluate changed the item (-before +after):\n%s", diff)
			}
		})
	}
}

// The last due time and the longest step that admission lets through are far
// away, and must still be a time and not an overflow.
func TestEvaluateFarFuture(t *testing.T) {
	t.Parallel()
	last := time.Date(9999, 12, 31, 23, 59, 59, 0, time.UTC)
	d := overdue.Evaluate(item().Due(last).Escalate(87600*time.Hour, "pager").Obj(), noon)
	if !d.NextCheck.Equal(last) || d.Phase != v1alpha1.PhaseOpen {
		t.Errorf("got phase %s, next check %s; want Open until %s", d.Phase, d.NextCheck, last)
	}
	d = overdue.Evaluate(item().Due(last).Escalate(87600*time.Hour, "pager").Obj(), last)
	if want := last.Add(87600 * time.Hour); !d.NextCheck.Equal(want) {
		t.Errorf("next check %s, want %s", d.NextCheck, want)
	}
	// A duration that no admission lets through must not fire a step early.
	d = overdue.Evaluate(item().Due(noon).Escalate(time.Duration(math.MaxInt64), "pager").Obj(), noon)
	if d.Level != 0 {
		t.Errorf("a step of 292 years fired at once: level %d", d.Level)
	}
}

// Fault 19: ten thousand missed ticks are one pass, not ten thousand and not none.
func TestFault19_MissedTicksAreOnePass(t *testing.T) {
	t.Parallel()
	obj := item().Due(noon.Add(-365*24*time.Hour)).Escalate(time.Hour, "pager").Phase(v1alpha1.PhaseOpen).Obj()
	d := overdue.Evaluate(obj, noon)
	if len(d.Fired) != 2 || d.Occurrence != 1 {
		t.Errorf("fired %d transitions in occurrence %d, want 2 in 1", len(d.Fired), d.Occurrence)
	}
}

// Fault 29 (I1): an item becomes overdue once. A replica whose clock is behind the
// one that committed that must not open the item again although nobody moved its due
// time: a second occurrence, and a second call, would follow within moments.
func TestFault29_AClockBehindDoesNotReopen(t *testing.T) {
	t.Parallel()
	for _, behind := range []time.Duration{time.Millisecond, time.Second, 10 * time.Minute} {
		t.Run(behind.String(), func(t *testing.T) {
			t.Parallel()
			due := noon
			obj := item().Due(due).Phase(v1alpha1.PhaseOpen).Obj()
			ahead := overdue.Evaluate(obj, due)
			obj.Status = overdue.Next(overdue.Facts{Item: obj, Now: due}, ahead).Status

			other := overdue.Evaluate(obj, due.Add(-behind))
			if other.Phase != v1alpha1.PhaseOverdue {
				t.Errorf("a clock %s behind decides %s on an item that is overdue since %s and still due then", behind, other.Phase, due)
			}
			obj.Status = overdue.Next(overdue.Facts{Item: obj, Now: due.Add(-behind)}, other).Status
			if again := overdue.Evaluate(obj, due); again.Occurrence != 1 || len(again.Fired) > 0 {
				t.Errorf("the item is overdue for the %d. time, firing %v; its due time passed once", again.Occurrence, again.Fired)
			}
		})
	}
}
