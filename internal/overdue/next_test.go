// SPDX-FileCopyrightText: The WorkItem Operator Authors
// SPDX-License-Identifier: Apache-2.0

package overdue_test

import (
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/workitem-operator/workitem-operator/api/v1alpha1"
	"github.com/workitem-operator/workitem-operator/internal/outbox"
	"github.com/workitem-operator/workitem-operator/internal/overdue"
	"github.com/workitem-operator/workitem-operator/test/wrappers"
)

func intentOf(obj *v1alpha1.WorkItem, transition v1alpha1.Transition, level, occurrence int32, provider string, phase v1alpha1.NotificationPhase) v1alpha1.Intent {
	in := outbox.NewIntent(outbox.Identity{
		WorkItemName: obj.Name, WorkItemUID: obj.UID, Transition: transition, Level: level, Occurrence: occurrence, Provider: provider,
	}, noon)
	in.Phase = phase
	return in
}

func outboxOf(obj *v1alpha1.WorkItem, in v1alpha1.Intent) *wrappers.Outbox {
	return wrappers.OutboxFrom(outbox.Desired(obj, &in, wrappers.MakeProvider(in.ProviderName, obj.Namespace).Obj()))
}

// settled is the item with everything that a pass over these facts writes.
func settled(t *testing.T, obj *v1alpha1.WorkItem, f overdue.Facts) *v1alpha1.WorkItem {
	t.Helper()
	f.Item, f.Now = obj, noon
	plan := overdue.Next(f, overdue.Evaluate(obj, noon))
	out := obj.DeepCopy()
	out.Status = plan.Status
	return out
}

func names(st v1alpha1.WorkItemStatus) []string {
	var out []string
	for _, in := range st.Notifications {
		out = append(out, string(in.Transition)+"/"+in.ProviderName+"/"+string(in.Phase))
	}
	return out
}

// I2: the transition and everything that it fires are in one status.
func TestI2_TransitionAndIntentsInOneStatus(t *testing.T) {
	t.Parallel()
	obj := item().Due(noon.Add(-time.Hour)).Notify("mail").Escalate(0, "pager").Escalate(time.Minute, "pager", "boss").Escalate(2*time.Hour, "ceo").Obj()
	d := overdue.Evaluate(obj, noon)
	plan := overdue.Next(overdue.Facts{Item: obj, Now: noon.Add(750 * time.Millisecond)}, d)
	if !plan.Write {
		t.Fatal("a transition is not written")
	}
	st := plan.Status
	if st.Phase != v1alpha1.PhaseOverdue || st.Occurrence != 1 || st.EscalationLevel != 2 || st.ObservedGeneration != 1 {
		t.Errorf("got phase %s, occurrence %d, level %d, generation %d", st.Phase, st.Occurrence, st.EscalationLevel, st.ObservedGeneration)
	}
	var want []v1alpha1.Intent
	for _, x := range []struct {
		level    int32
		provider string
	}{{0, "hook"}, {0, "mail"}, {1, "pager"}, {2, "pager"}, {2, "boss"}} {
		transition := v1alpha1.TransitionOverdue
		if x.level > 0 {
			transition = v1alpha1.TransitionEscalated
		}
		want = append(want, intentOf(obj, transition, x.level, 1, x.provider, v1alpha1.NotificationRecorded))
	}
	if diff := cmp.Diff(want, st.Notifications); diff != "" {
		t.Errorf("intents (-want +got):\n%s", diff)
	}
	if !st.TransitionTime.Time.Equal(noon) || !st.OverdueTime.Time.Equal(noon.Add(-time.Hour)) {
		t.Errorf("transition at %s of a due time %s", st.TransitionTime, st.OverdueTime)
	}
	if len(obj.Status.Notifications) > 0 {
		t.Error("Next changed the item")
	}
}

// A transition with nobody to tell commits all the same, and no transition adds no
// intent.
func TestI2_NoTransitionNoIntent(t *testing.T) {
	t.Parallel()
	quiet := wrappers.MakeWorkItem("quiet", "ops").Due(noon).Obj()
	if got := settled(t, quiet, overdue.Facts{}).Status; got.Phase != v1alpha1.PhaseOverdue || len(got.Notifications) > 0 {
		t.Errorf("got %s with %v", got.Phase, names(got))
	}
	obj := item().Due(noon.Add(time.Hour)).Escalate(0, "pager").Obj()
	if got := settled(t, obj, overdue.Facts{}).Status; len(got.Notifications) > 0 {
		t.Errorf("an item that is not due has %v", names(got))
	}
}

// A provider that joins notify after the transition is not told of it, and one
// that leaves still is.
func TestIntentsAreFixedByTheTransition(t *testing.T) {
	t.Parallel()
	obj := settled(t, item().Due(noon).Notify("mail").Obj(), overdue.Facts{})
	obj.Spec.Notify = told("mail", "late")
	got := settled(t, obj, overdue.Facts{})
	if diff := cmp.Diff([]string{"Overdue/hook/Recorded", "Overdue/mail/Recorded"}, names(got.Status)); diff != "" {
		t.Errorf("intents (-want +got):\n%s", diff)
	}
}

func TestEndsAreReported(t *testing.T) {
	t.Parallel()
	base := item().Notify("mail").Due(noon.Add(-time.Hour)).Obj()
	base = settled(t, base, overdue.Facts{})
	hook, mail := base.Status.Notifications[0], base.Status.Notifications[1]
	cases := map[string]struct {
		hook, mail *wrappers.Outbox
		wantWrite  bool
		wantAt     time.Time
		want       []string
	}{
		"an outbox that exists is nothing to write about": {
			hook: outboxOf(base, hook), mail: outboxOf(base, mail).Phase(v1alpha1.OutboxPending),
			want: []string{"Overdue/hook/Recorded", "Overdue/mail/Recorded"},
		},
		"an end waits for others that are open, for a second after the one that it is stamped with": {
			hook: outboxOf(base, hook).Finished(v1alpha1.OutboxSent, noon), mail: outboxOf(base, mail),
			wantAt: noon.Add(2 * time.Second),
			want:   []string{"Overdue/hook/Recorded", "Overdue/mail/Recorded"},
		},
		"an end is reported when its time is over, together with what else there is": {
			hook: outboxOf(base, hook).Finished(v1alpha1.OutboxSent, noon.Add(-2*time.Second)), mail: outboxOf(base, mail),
			wantWrite: true,
			want:      []string{"Overdue/hook/Sent", "Overdue/mail/Pending"},
		},
		"the oldest end decides when": {
			hook:   outboxOf(base, hook).Finished(v1alpha1.OutboxSent, noon.Add(-300*time.Millisecond)),
			wantAt: noon.Add(1700 * time.Millisecond),
			want:   []string{"Overdue/hook/Recorded", "Overdue/mail/Recorded"},
		},
		"the last end is reported at once": {
			hook: outboxOf(base, hook).Finished(v1alpha1.OutboxSent, noon), mail: outboxOf(base, mail).Finished(v1alpha1.OutboxHeld, noon),
			wantWrite: true,
			want:      []string{"Overdue/hook/Sent", "Overdue/mail/Held"},
		},
		"an end whose time is not known is reported with the last one": {
			hook: outboxOf(base, hook).Phase(v1alpha1.OutboxDeadLettered), mail: outboxOf(base, mail).Phase(v1alpha1.OutboxSuperseded),
			wantWrite: true,
			want:      []string{"Overdue/hook/DeadLettered", "Overdue/mail/Superseded"},
		},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			f := overdue.Facts{Item: base, Now: noon, Outboxes: map[string]*v1alpha1.NotificationOutbox{}}
			for in, ob := range map[*v1alpha1.Intent]*wrappers.Outbox{&hook: tc.hook, &mail: tc.mail} {
				if ob != nil {
					f.Outboxes[in.OutboxName] = ob.Obj()
				}
			}
			plan := overdue.Next(f, overdue.Evaluate(base, noon))
			if plan.Write != tc.wantWrite || !plan.ReportAt.Equal(tc.wantAt) {
				t.Errorf("got write %t, report at %s; want %t, %s", plan.Write, plan.ReportAt, tc.wantWrite, tc.wantAt)
			}
			if diff := cmp.Diff(tc.want, names(plan.Status)); diff != "" {
				t.Errorf("intents (-want +got):\n%s", diff)
			}
		})
	}
}

// followed makes a pass at each time that the plan before asks for, and returns the
// item after the first one that writes; nil if none of many does.
func followed(obj *v1alpha1.WorkItem, f overdue.Facts, passes int) *v1alpha1.WorkItem {
	now := noon
	for range passes {
		f.Item, f.Now = obj, now
		plan := overdue.Next(f, overdue.Evaluate(obj, now))
		if plan.Write {
			out := obj.DeepCopy()
			out.Status = plan.Status
			return out
		}
		if plan.ReportAt.IsZero() {
			return nil
		}
		now = plan.ReportAt
	}
	return nil
}

// A notification that is replayed is open again: the item has to say so within the
// second that coalescing may take, and must not be looked at every second until the
// replay ends (fault 40).
func TestFault40_ReplayIsReportedAndNotPolled(t *testing.T) {
	t.Parallel()
	base := settled(t, item().Due(noon.Add(-time.Hour)).Obj(), overdue.Facts{})
	base.Status.Notifications[0].Phase = v1alpha1.NotificationDeadLettered
	base = settled(t, base, overdue.Facts{})
	in := base.Status.Notifications[0]
	f := overdue.Facts{Outboxes: map[string]*v1alpha1.NotificationOutbox{
		in.OutboxName: outboxOf(base, in).Attempts(3, noon.Add(-time.Hour)).Phase(v1alpha1.OutboxPending).Obj(),
	}}
	after := followed(base, f, 5)
	if after == nil {
		t.Fatal("five passes, each at the time that the one before asked for, did not report the replay")
	}
	if diff := cmp.Diff([]string{"Overdue/hook/Pending"}, names(after.Status)); diff != "" {
		t.Errorf("intents (-want +got):\n%s", diff)
	}
}

// Fault 29: the end of a notification carries the time of another machine's clock.
// If that is ahead, the report is not put off until this clock has caught up.
func TestFault29_AnEndInTheFutureIsReportedWithinASecond(t *testing.T) {
	t.Parallel()
	base := settled(t, item().Notify("mail").Due(noon.Add(-time.Hour)).Obj(), overdue.Facts{})
	hook, mail := base.Status.Notifications[0], base.Status.Notifications[1]
	f := overdue.Facts{Outboxes: map[string]*v1alpha1.NotificationOutbox{
		hook.OutboxName: outboxOf(base, hook).Finished(v1alpha1.OutboxSent, noon.Add(10*time.Minute)).Obj(),
		mail.OutboxName: outboxOf(base, mail).Obj(),
	}}
	if after := followed(base, f, 5); after == nil {
		t.Error("five passes, each at the time that the one before asked for, did not report the end")
	}
}

func TestReasonOfAnEnd(t *testing.T) {
	t.Parallel()
	base := settled(t, item().Due(noon).Obj(), overdue.Facts{})
	in := base.Status.Notifications[0]
	cases := map[string]struct {
		outbox *wrappers.Outbox
		want   string
	}{
		"Sent needs no reason": {outboxOf(base, in).Finished(v1alpha1.OutboxSent, noon).Delivered(metav1.ConditionTrue, v1alpha1.ReasonSent), ""},
		"a person's word is one": {
			outboxOf(base, in).Finished(v1alpha1.OutboxSent, noon).Delivered(metav1.ConditionTrue, v1alpha1.ReasonMarkedSent), v1alpha1.ReasonMarkedSent,
		},
		"a dead letter says why": {
			outboxOf(base, in).Finished(v1alpha1.OutboxDeadLettered, noon).Delivered(metav1.ConditionFalse, v1alpha1.ReasonDeadlineExceeded), v1alpha1.ReasonDeadlineExceeded,
		},
		"no condition, no reason": {outboxOf(base, in).Finished(v1alpha1.OutboxHeld, noon), ""},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			got := settled(t, base, overdue.Facts{Outboxes: map[string]*v1alpha1.NotificationOutbox{in.OutboxName: tc.outbox.Obj()}})
			if got := got.Status.Notifications[0].Reason; got != tc.want {
				t.Errorf("reason %q, want %q", got, tc.want)
			}
		})
	}
}

// I9: what has no outbox and needs none any more ends visibly, and only when the API
// server was asked.
func TestI9_UnneededIntentsEndAsSuperseded(t *testing.T) {
	t.Parallel()
	cases := map[string]struct {
		item   *wrappers.WorkItem
		absent bool
		phase  v1alpha1.NotificationPhase
		want   string
		listed bool
	}{
		"completed":           {item().Due(noon).State(v1alpha1.StateCompleted).Occurrence(1), true, v1alpha1.NotificationRecorded, "Superseded/WorkItemCompleted", true},
		"cancelled":           {item().Due(noon).State(v1alpha1.StateCancelled).Occurrence(1), true, v1alpha1.NotificationPending, "Superseded/WorkItemCancelled", true},
		"not looked for":      {item().Due(noon).State(v1alpha1.StateCompleted).Occurrence(1), false, v1alpha1.NotificationRecorded, "Recorded/WorkItemCompleted", true},
		"ended before":        {item().Due(noon).State(v1alpha1.StateCompleted).Occurrence(1), true, v1alpha1.NotificationHeld, "Held/", false},
		"still overdue":       {item().Due(noon).Phase(v1alpha1.PhaseOverdue).Occurrence(1), true, v1alpha1.NotificationRecorded, "Recorded/", false},
		"open again":          {item().Phase(v1alpha1.PhaseOpen).Occurrence(1), true, v1alpha1.NotificationRecorded, "Recorded/", false},
		"7 occurrences since": {item().Phase(v1alpha1.PhaseOpen).Occurrence(8), true, v1alpha1.NotificationRecorded, "Recorded/", false},
		"8 occurrences since": {item().Phase(v1alpha1.PhaseOpen).Occurrence(9), true, v1alpha1.NotificationRecorded, "Superseded/Overtaken", true},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			obj := tc.item.Obj()
			obj.Status.Notifications = []v1alpha1.Intent{intentOf(obj, v1alpha1.TransitionOverdue, 0, 1, "hook", tc.phase)}
			name := obj.Status.Notifications[0].OutboxName
			f := overdue.Facts{Item: obj, Now: noon, Absent: map[string]bool{name: tc.absent}}
			d := overdue.Evaluate(obj, noon)
			if got := len(overdue.Unneeded(obj, d)) == 1; got != tc.listed {
				t.Errorf("listed as unneeded: %t, want %t", got, tc.listed)
			}
			in := overdue.Next(f, d).Status.Notifications[0]
			if got := string(in.Phase) + "/" + in.Reason; got != tc.want {
				t.Errorf("got %s, want %s", got, tc.want)
			}
		})
	}
}

// A name that somebody else has is no outbox of ours, whatever that object's phase.
func TestI3_ASquatterIsReportedAndNeverTheEnd(t *testing.T) {
	t.Parallel()
	base := settled(t, item().Due(noon).Obj(), overdue.Facts{})
	name := base.Status.Notifications[0].OutboxName
	got := settled(t, base, overdue.Facts{Taken: map[string]bool{name: true}})
	if diff := cmp.Diff([]string{"Overdue/hook/Recorded"}, names(got.Status)); diff != "" {
		t.Errorf("intents (-want +got):\n%s", diff)
	}
	gone := settled(t, got, overdue.Facts{})
	for _, c := range gone.Status.Conditions {
		if c.Type == v1alpha1.ConditionStalled {
			t.Error("still Stalled when the squatter is gone")
		}
	}
}

// A status that was edited by hand must not make the API server refuse every later
// write: the list is keyed by outboxName, and an occurrence counts from 1.
func TestEditedStatusStaysWritable(t *testing.T) {
	t.Parallel()
	base := settled(t, item().Due(noon.Add(-time.Hour)).Escalate(time.Minute, "pager").Obj(), overdue.Facts{})
	cases := map[string]func(*v1alpha1.WorkItemStatus){
		"the level is lowered":       func(st *v1alpha1.WorkItemStatus) { st.EscalationLevel = 0 },
		"the occurrence is lowered":  func(st *v1alpha1.WorkItemStatus) { st.Phase, st.Occurrence = v1alpha1.PhaseOpen, 0 },
		"the counters are missing":   func(st *v1alpha1.WorkItemStatus) { *st = v1alpha1.WorkItemStatus{Phase: v1alpha1.PhaseOverdue} },
		"the whole status is gone":   func(st *v1alpha1.WorkItemStatus) { *st = v1alpha1.WorkItemStatus{} },
		"the conditions are gone":    func(st *v1alpha1.WorkItemStatus) { st.Conditions = nil },
		"the missed time is missing": func(st *v1alpha1.WorkItemStatus) { st.OverdueTime = nil },
		"the intents are gone":       func(st *v1alpha1.WorkItemStatus) { st.Notifications = nil },
	}
	for name, edit := range cases {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			obj := base.DeepCopy()
			edit(&obj.Status)
			got := settled(t, obj, overdue.Facts{}).Status
			seen := map[string]bool{}
			for _, in := range got.Notifications {
				if seen[in.OutboxName] {
					t.Errorf("two intents have the name %s", in.OutboxName)
				}
				seen[in.OutboxName] = true
				if in.Occurrence < 1 {
					t.Errorf("the intent %s is of occurrence %d", in.OutboxName, in.Occurrence)
				}
			}
			if got.Phase != v1alpha1.PhaseOverdue || got.OverdueTime == nil {
				t.Errorf("got phase %s, overdue time %s", got.Phase, got.OverdueTime)
			}
		})
	}
}

// What was open when the item was completed or cancelled stays withdrawn when the item
// is active again, whether its outbox exists or not: the new occurrence tells anew.
func TestWithdrawnIntentsDoNotComeBack(t *testing.T) {
	t.Parallel()
	for state, reason := range map[v1alpha1.WorkItemState]string{
		v1alpha1.StateCompleted: v1alpha1.ReasonWorkItemCompleted, v1alpha1.StateCancelled: v1alpha1.ReasonWorkItemCancelled,
	} {
		base := settled(t, item().Due(noon.Add(-time.Hour)).Obj(), overdue.Facts{})
		in := base.Status.Notifications[0]
		f := overdue.Facts{Outboxes: map[string]*v1alpha1.NotificationOutbox{in.OutboxName: outboxOf(base, in).Obj()}}
		base.Spec.State = state
		base = settled(t, base, f)
		base.Spec.State = v1alpha1.StateActive
		base = settled(t, base, f)
		former := base.Status.Notifications[0]
		if former.Reason != reason || !outbox.Withdrawn(&former) {
			t.Errorf("%s, then active: %+v", state, former)
		}
		if len(base.Status.Notifications) != 2 || base.Status.Notifications[1].Occurrence != 2 || outbox.Withdrawn(&base.Status.Notifications[1]) {
			t.Errorf("%s, then active: %v", state, names(base.Status))
		}
		f.Outboxes, f.Absent = nil, map[string]bool{former.OutboxName: true}
		gone := settled(t, base, f).Status.Notifications[0]
		if gone.Phase != v1alpha1.NotificationSuperseded || gone.Reason != reason {
			t.Errorf("%s, without an outbox: %+v", state, gone)
		}
	}
}
