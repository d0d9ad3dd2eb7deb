// SPDX-FileCopyrightText: The WorkItem Operator Authors
// SPDX-License-Identifier: Apache-2.0

package overdue_test

import (
	"strings"
	"testing"
	"time"
	"unicode/utf8"

	"github.com/google/go-cmp/cmp"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/workitem-operator/workitem-operator/api/v1alpha1"
	"github.com/workitem-operator/workitem-operator/internal/overdue"
	"github.com/workitem-operator/workitem-operator/test/wrappers"
)

func summary(st v1alpha1.WorkItemStatus) map[string]string {
	out := map[string]string{}
	for _, c := range st.Conditions {
		out[c.Type] = string(c.Status) + " " + c.Reason
	}
	return out
}

func TestConditions(t *testing.T) {
	t.Parallel()
	fine := "True Reconciled"
	overdueItem := func(phases ...v1alpha1.NotificationPhase) *v1alpha1.WorkItem {
		obj := item().Due(noon.Add(-time.Hour)).Phase(v1alpha1.PhaseOverdue).Occurrence(2).OverdueTime(noon.Add(-time.Hour)).Obj()
		for i, phase := range phases {
			obj.Status.Notifications = append(obj.Status.Notifications, intentOf(obj, v1alpha1.TransitionOverdue, 0, 2, "p"+string(rune('0'+i)), phase))
		}
		return obj
	}
	nameOf := func(obj *v1alpha1.WorkItem, i int) string { return obj.Status.Notifications[i].OutboxName }
	open := overdueItem(v1alpha1.NotificationRecorded, v1alpha1.NotificationRecorded)
	former := overdueItem(v1alpha1.NotificationSent)
	former.Status.Notifications = append(former.Status.Notifications, intentOf(former, v1alpha1.TransitionOverdue, 0, 1, "p0", v1alpha1.NotificationDeadLettered))

	cases := map[string]struct {
		item  *v1alpha1.WorkItem
		facts overdue.Facts
		want  map[string]string
	}{
		"without a due time and without anybody to notify": {
			item: wrappers.MakeWorkItem("a", "ops").Obj(),
			want: map[string]string{"Ready": fine, "Overdue": "False NoDueTime", "Notified": "Unknown NobodyToNotify"},
		},
		"not due, with somebody to notify": {
			item: item().Due(noon.Add(time.Hour)).Obj(),
			want: map[string]string{"Ready": fine, "Overdue": "False NotDue", "Notified": "False Pending"},
		},
		"not due, with somebody to notify only when it escalates": {
			item: wrappers.MakeWorkItem("a", "ops").Due(noon.Add(time.Hour)).Escalate(time.Hour, "pager").Obj(),
			want: map[string]string{"Ready": fine, "Overdue": "False NotDue", "Notified": "False Pending"},
		},
		"overdue, and one of two is open": {
			item: overdueItem(v1alpha1.NotificationSent, v1alpha1.NotificationPending),
			want: map[string]string{"Ready": fine, "Overdue": "True DuePassed", "Notified": "False Pending"},
		},
		"overdue, and all are Sent": {
			item: overdueItem(v1alpha1.NotificationSent, v1alpha1.NotificationSent),
			want: map[string]string{"Ready": fine, "Overdue": "True DuePassed", "Notified": "True AllSent"},
		},
		"fault 56: overdue, and one is a dead letter": {
			item: overdueItem(v1alpha1.NotificationSent, v1alpha1.NotificationDeadLettered),
			want: map[string]string{"Ready": fine, "Overdue": "True DuePassed", "Notified": "False NotAllSent"},
		},
		"overdue, and one is held": {
			item: overdueItem(v1alpha1.NotificationHeld),
			want: map[string]string{"Ready": fine, "Overdue": "True DuePassed", "Notified": "False NotAllSent"},
		},
		"only the current occurrence counts": {
			item: former,
			want: map[string]string{"Ready": fine, "Overdue": "True DuePassed", "Notified": "True AllSent"},
		},
		"completed before anybody had to be told": {
			item: item().State(v1alpha1.StateCompleted).Obj(),
			want: map[string]string{"Ready": fine, "Overdue": "False Completed", "Notified": "Unknown NobodyToNotify"},
		},
		"cancelled": {
			item: item().State(v1alpha1.StateCancelled).Obj(),
			want: map[string]string{"Ready": fine, "Overdue": "False Cancelled", "Notified": "Unknown NobodyToNotify"},
		},
		"a missing provider is waited for": {
			item: open, facts: overdue.Facts{Missing: map[string]bool{"p1": true}},
			want: map[string]string{"Ready": "False ProviderNotFound", "Reconciling": "True ProviderNotFound", "Overdue": "True DuePassed", "Notified": "False Pending"},
		},
		"a missing provider is no matter once the outbox exists": {
			item: open, facts: overdue.Facts{Missing: map[string]bool{"p1": true}, Outboxes: map[string]*v1alpha1.NotificationOutbox{nameOf(open, 1): outboxOf(open, open.Status.Notifications[1]).Obj()}},
			want: map[string]string{"Ready": fine, "Overdue": "True DuePassed", "Notified": "False Pending"},
		},
		"a missing provider is no matter once the notification ended": {
			item: overdueItem(v1alpha1.NotificationSent), facts: overdue.Facts{Missing: map[string]bool{"p0": true}},
			want: map[string]string{"Ready": fine, "Overdue": "True DuePassed", "Notified": "True AllSent"},
		},
		"a squatter stalls the item": {
			item: open, facts: overdue.Facts{Taken: map[string]bool{nameOf(open, 0): true}},
			want: map[string]string{"Ready": "False OutboxNameTaken", "Stalled": "True OutboxNameTaken", "Overdue": "True DuePassed", "Notified": "False Pending"},
		},
		"a refused create stalls the item": {
			item: open, facts: overdue.Facts{Refused: map[string]string{nameOf(open, 0): "exceeded quota"}},
			want: map[string]string{"Ready": "False OutboxRefused", "Stalled": "True OutboxRefused", "Overdue": "True DuePassed", "Notified": "False Pending"},
		},
		"what a person has to do comes before what comes by itself": {
			item: open, facts: overdue.Facts{Refused: map[string]string{nameOf(open, 0): "exceeded quota"}, Missing: map[string]bool{"p1": true}},
			want: map[string]string{"Ready": "False OutboxRefused", "Stalled": "True OutboxRefused", "Overdue": "True DuePassed", "Notified": "False Pending"},
		},
		"a provider that the transition finds missing is said in the same write": {
			item: item().Due(noon).Obj(), facts: overdue.Facts{Missing: map[string]bool{"hook": true}},
			want: map[string]string{"Ready": "False ProviderNotFound", "Reconciling": "True ProviderNotFound", "Overdue": "True DuePassed", "Notified": "False Pending"},
		},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			obj := tc.item.DeepCopy()
			obj.Generation = 7
			// What an earlier pass left behind must not survive.
			for _, kind := range []string{"Reconciling", "Stalled"} {
				meta.SetStatusCondition(&obj.Status.Conditions, metav1.Condition{Type: kind, Status: metav1.ConditionTrue, Reason: "Old"})
			}
			st := settled(t, obj, tc.facts).Status
			if diff := cmp.Diff(tc.want, summary(st)); diff != "" {
				t.Errorf("conditions (-want +got):\n%s", diff)
			}
			for _, c := range st.Conditions {
				if c.ObservedGeneration != 7 || c.Message == "" || c.LastTransitionTime.IsZero() {
					t.Errorf("condition %s is incomplete: %+v", c.Type, c)
				}
			}
			if meta.IsStatusConditionTrue(st.Conditions, "Stalled") && meta.IsStatusConditionTrue(st.Conditions, "Reconciling") {
				t.Error("both Stalled and Reconciling")
			}
		})
	}
}

func TestConditionMessageIsBounded(t *testing.T) {
	t.Parallel()
	base := settled(t, item().Due(noon).Obj(), overdue.Facts{})
	name := base.Status.Notifications[0].OutboxName
	for _, words := range []string{strings.Repeat("€", 40_000), strings.Repeat("a", 40_000)} {
		st := settled(t, base, overdue.Facts{Refused: map[string]string{name: words}}).Status
		msg := meta.FindStatusCondition(st.Conditions, v1alpha1.ConditionReady).Message
		if len(msg) > 1024 || !utf8.ValidString(msg) {
			t.Errorf("message of %d bytes, valid UTF-8: %t", len(msg), utf8.ValidString(msg))
		}
	}
}

// Fault 33: a condition's time moves with its status and with nothing else.
func TestFault33_TransitionTimeMovesWithTheStatus(t *testing.T) {
	t.Parallel()
	obj := settled(t, item().Due(noon.Add(time.Hour)).Obj(), overdue.Facts{})
	obj.Generation++
	later := noon.Add(time.Minute)
	plan := overdue.Next(overdue.Facts{Item: obj, Now: later}, overdue.Evaluate(obj, later))
	if !plan.Write {
		t.Fatal("a new generation is not observed")
	}
	for _, c := range plan.Status.Conditions {
		if !c.LastTransitionTime.Time.Equal(noon) {
			t.Errorf("%s moved to %s though it stayed %s", c.Type, c.LastTransitionTime, c.Status)
		}
	}
	if !plan.Status.TransitionTime.Time.Equal(noon) {
		t.Errorf("transitionTime moved to %s without a transition", plan.Status.TransitionTime)
	}
}
