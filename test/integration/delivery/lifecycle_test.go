// SPDX-FileCopyrightText: The WorkItem Operator Authors
// SPDX-License-Identifier: Apache-2.0

package delivery

import (
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/workitem-operator/workitem-operator/api/v1alpha1"
	"github.com/workitem-operator/workitem-operator/internal/delivery/deliverytest"
	"github.com/workitem-operator/workitem-operator/internal/options"
	"github.com/workitem-operator/workitem-operator/test/framework"
)

// ends are the two ways in which a user ends an item, and what they are called.
var ends = map[v1alpha1.WorkItemState]struct {
	phase  v1alpha1.WorkItemPhase
	reason string
}{
	v1alpha1.StateCompleted: {v1alpha1.PhaseCompleted, v1alpha1.ReasonWorkItemCompleted},
	v1alpha1.StateCancelled: {v1alpha1.PhaseCancelled, v1alpha1.ReasonWorkItemCancelled},
}

// ending is one way in which the item of a test ends, in a world of its own.
type ending struct {
	env    *framework.Env
	end    func()
	phase  v1alpha1.WorkItemPhase
	reason string
}

// forEachEnd runs a test for both ends.
func forEachEnd(t *testing.T, test func(ending)) {
	t.Helper()
	for state, c := range ends {
		t.Run(string(state), func(t *testing.T) {
			t.Parallel()
			env := framework.New(t)
			end := func() {
				env.ChangeItem("report", func(it *v1alpha1.WorkItem) { it.Spec.State = state })
			}
			test(ending{env: env, end: end, phase: c.phase, reason: c.reason})
		})
	}
}

// superseded checks that an item has ended and that its one notification will not be
// sent.
func superseded(t *testing.T, env *framework.Env, phase v1alpha1.WorkItemPhase, reason string) {
	t.Helper()
	item := env.Reported("report", v1alpha1.NotificationSuperseded, 1)
	if item.Status.Phase != phase || item.Status.Notifications[0].Reason != reason {
		t.Errorf("the item is %s and its notification ended because of %s", item.Status.Phase, item.Status.Notifications[0].Reason)
	}
}

func TestEnd_BeforeTheOutboxExists(t *testing.T) {
	t.Parallel()
	forEachEnd(t, func(x ending) {
		t, env, end, phase, reason := x.env.T, x.env, x.end, x.phase, x.reason
		env.StartManager()
		env.Item("report", framework.Notify("ops"))
		env.EventuallyItem("report", "Overdue", framework.Soon, func(it *v1alpha1.WorkItem) bool { return it.Status.Phase == v1alpha1.PhaseOverdue })
		end()
		superseded(t, env, phase, reason)
		provider := env.Provider("ops", ok)
		env.Item("marker", framework.Notify("ops"))
		env.Reported("marker", v1alpha1.NotificationSent, 1)
		wantCalls(t, provider, 1, 1)
		if n := len(env.Outboxes()); n != 1 {
			t.Errorf("there are %d outboxes, want that of the marker alone", n)
		}
	})
}

func TestFault14_EndedWhilePendingIsSupersededNotForgotten(t *testing.T) {
	t.Parallel()
	forEachEnd(t, func(x ending) {
		t, env, end, phase, reason := x.env.T, x.env, x.end, x.phase, x.reason
		provider := env.Endpoint("ops", deliverytest.None, ok)
		ob := recorded(env) // No dispatcher runs.
		end()
		m := env.StartManager(framework.Run(options.Dispatcher))
		superseded(t, env, phase, reason)
		ob = env.GetOutbox(ob.Name)
		if ob.Status.Phase != v1alpha1.OutboxSuperseded || framework.DeliveredReason(ob) != reason || ob.Status.Attempts != 0 {
			t.Errorf("the outbox is %+v", ob.Status)
		}
		if lease := env.GetLease(ob.Name); *lease.Spec.HolderIdentity != m.Identity {
			t.Error("it was ended without a claim")
		}
		wantCalls(t, provider, 0, 0)
	})
}

func TestEnd_AfterAFailedAttempt(t *testing.T) {
	t.Parallel()
	for name, status := range map[string]int{"rejected": 503, "ambiguous": 500} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			forEachEnd(t, func(x ending) {
				t, env, end, phase, reason := x.env.T, x.env, x.end, x.phase, x.reason
				provider := env.Provider("ops", deliverytest.AlwaysStatus(status), framework.Retry(time.Hour, time.Minute, time.Minute))
				env.StartManager()
				env.Item("report", framework.Notify("ops"))
				ob := env.OutboxOf("report", "ops")
				env.EventuallyOutbox(ob.Name, "one attempt", framework.Soon, attempts(1))
				end()
				superseded(t, env, phase, reason)
				if ob = env.GetOutbox(ob.Name); ob.Status.Attempts != 1 || len(ob.Status.History) != 1 {
					t.Errorf("the outbox is %+v", ob.Status)
				}
				wantCalls(t, provider, 1, 0)
			})
		})
	}
}

func TestEnd_InFlight(t *testing.T) {
	t.Parallel()
	forEachEnd(t, func(x ending) {
		t, env, end, phase := x.env.T, x.env, x.end, x.phase
		gate := framework.NewGate()
		t.Cleanup(gate.Open)
		provider := env.Provider("ops", held(gate))
		env.StartManager()
		env.StartManager()
		env.Item("report", framework.Notify("ops"))
		env.AwaitCalls(provider, 1)
		end()
		env.EventuallyItem("report", string(phase), framework.Soon, func(it *v1alpha1.WorkItem) bool { return it.Status.Phase == phase })
		gate.Open()
		// The truth is that it was sent.
		item := env.Reported("report", v1alpha1.NotificationSent, 1)
		if item.Status.Phase != phase {
			t.Errorf("the item is %s", item.Status.Phase)
		}
		wantCalls(t, provider, 1, 1)
	})
}

func TestEnd_AfterItWasSent(t *testing.T) {
	t.Parallel()
	forEachEnd(t, func(x ending) {
		t, env, end, phase := x.env.T, x.env, x.end, x.phase
		provider := env.Provider("ops", ok)
		env.StartManager()
		env.Item("report", framework.Notify("ops"))
		item := env.Reported("report", v1alpha1.NotificationSent, 1)
		before := env.GetOutbox(item.Status.Notifications[0].OutboxName)
		end()
		item = env.EventuallyItem("report", string(phase), framework.Soon, func(it *v1alpha1.WorkItem) bool { return it.Status.Phase == phase })
		if item.Status.Notifications[0].Phase != v1alpha1.NotificationSent || env.GetOutbox(before.Name).ResourceVersion != before.ResourceVersion {
			t.Errorf("what was sent became %+v", item.Status.Notifications[0])
		}
		wantCalls(t, provider, 1, 1)
	})
}

func TestEnd_DeletedIsNotSent(t *testing.T) {
	t.Parallel()
	env := framework.New(t)
	provider := env.Provider("ops", ok, framework.Suspended)
	env.StartManager()
	item := env.Item("report", framework.Notify("ops"))
	ob := env.OutboxOf("report", "ops")
	if err := env.Client.Delete(t.Context(), item); err != nil {
		t.Fatal(err)
	}
	// Nothing collects garbage here, so that the outbox stays for us to see.
	ended := env.EventuallyOutbox(ob.Name, "Superseded", framework.Soon, framework.InPhase(v1alpha1.OutboxSuperseded))
	if got := framework.DeliveredReason(ended); got != v1alpha1.ReasonWorkItemGone {
		t.Errorf("the reason is %s", got)
	}
	// A new item of the same name is another one.
	env.ChangeProvider("ops", func(p *v1alpha1.NotificationProvider) { p.Spec.Suspend = false })
	env.Item("report", framework.Notify("ops"))
	again := env.Reported("report", v1alpha1.NotificationSent, 1)
	if again.Status.Notifications[0].OutboxName == ob.Name {
		t.Error("the new item has the outbox of the old one")
	}
	wantCalls(t, provider, 1, 1)
}

func TestDue_MovedIntoTheFutureOpensTheItemAgain(t *testing.T) {
	t.Parallel()
	env := framework.New(t)
	provider := env.Provider("ops", ok)
	env.StartManager()
	env.Item("report", framework.DueIn(time.Hour), framework.Notify("ops"))
	env.EventuallyItem("report", "Open", framework.Soon, func(it *v1alpha1.WorkItem) bool { return it.Status.Phase == v1alpha1.PhaseOpen })
	move := func(d time.Duration) {
		env.ChangeItem("report", func(it *v1alpha1.WorkItem) { it.Spec.DueTime = framework.DueTime(time.Now().Add(d)) })
	}
	move(-time.Minute)
	env.Reported("report", v1alpha1.NotificationSent, 1)
	move(time.Hour)
	item := env.EventuallyItem("report", "Open again", framework.Soon, func(it *v1alpha1.WorkItem) bool { return it.Status.Phase == v1alpha1.PhaseOpen })
	if item.Status.Occurrence != 1 {
		t.Errorf("opening it again counted occurrence %d", item.Status.Occurrence)
	}
	move(2 * time.Second)
	second := env.EventuallyItem("report", "the second notification is Sent", framework.Later, func(it *v1alpha1.WorkItem) bool {
		return it.Status.Occurrence == 2 && framework.Condition(it, v1alpha1.ConditionNotified).Status == metav1.ConditionTrue
	})
	if early := provider.Calls()[1].Time; early.Before(second.Spec.DueTime.Time) {
		t.Errorf("it was called at %s, before the due time %s", early, second.Spec.DueTime)
	}
	// From past to past: the same occurrence goes on.
	move(-time.Minute)
	env.EventuallyItem("report", "observed", framework.Soon, func(it *v1alpha1.WorkItem) bool { return it.Status.ObservedGeneration == it.Generation })
	wantCalls(t, provider, 2, 2)
}

func TestFault20_BecomingOverdueAgainIsANewOccurrence(t *testing.T) {
	t.Parallel()
	env := framework.New(t)
	provider := env.Provider("ops", ok, framework.Keyed(v1alpha1.DialectIETF))
	env.StartManager()
	env.Item("report", framework.Notify("ops"))
	for occurrence := int32(1); occurrence <= 3; occurrence++ {
		env.EventuallyItem("report", fmt.Sprintf("occurrence %d is told of", occurrence), framework.Later, func(it *v1alpha1.WorkItem) bool {
			return it.Status.Occurrence == occurrence && framework.Condition(it, v1alpha1.ConditionNotified).Status == metav1.ConditionTrue
		})
		for _, state := range []v1alpha1.WorkItemState{v1alpha1.StateCompleted, v1alpha1.StateActive} {
			if occurrence == 3 {
				break
			}
			env.ChangeItem("report", func(it *v1alpha1.WorkItem) { it.Spec.State = state })
			env.EventuallyItem("report", "observed", framework.Soon, func(it *v1alpha1.WorkItem) bool { return it.Status.ObservedGeneration == it.Generation })
		}
	}
	wantCalls(t, provider, 3, 3)
	keys := map[string]bool{}
	for n, call := range provider.Calls() {
		keys[call.Key] = true
		if !strings.HasSuffix(call.Key, fmt.Sprintf(":status:Overdue:%d:ops", n+1)) {
			t.Errorf("call %d has key %s", n+1, call.Key)
		}
	}
	if len(keys) != 3 {
		t.Errorf("there are %d keys, want 3", len(keys))
	}
	if n := len(env.GetItem("report").Status.Notifications); n > 2 {
		t.Errorf("%d intents are kept: those of former occurrences were to leave", n)
	}
}

func TestEscalation_FiresInOrderAndEndsWithTheItem(t *testing.T) {
	t.Parallel()
	env := framework.New(t)
	ops, pager := env.Provider("ops", ok), env.Provider("pager", ok)
	env.StartManager()
	env.StartManager()
	item := env.NewItem("report", framework.DueIn(time.Second), framework.Notify("ops"),
		framework.Escalate(2*time.Second, "pager"), framework.Escalate(time.Hour, "pager", "ops"))
	env.Create(item)
	env.Reported("report", v1alpha1.NotificationSent, 2)
	due := item.Spec.DueTime.Time
	if at := ops.Calls()[0].Time; at.Before(due) {
		t.Errorf("the first was told at %s, before %s", at, due)
	}
	if at := pager.Calls()[0].Time; at.Before(due.Add(2 * time.Second)) {
		t.Errorf("the step fired at %s, before %s", at, due.Add(2*time.Second))
	}
	if got := env.GetItem("report"); got.Status.EscalationLevel != 1 || got.Status.Occurrence != 1 {
		t.Errorf("the item is at level %d of occurrence %d", got.Status.EscalationLevel, got.Status.Occurrence)
	}
	env.ChangeItem("report", func(it *v1alpha1.WorkItem) { it.Spec.State = v1alpha1.StateCompleted })
	env.EventuallyItem("report", "Completed", framework.Soon, func(it *v1alpha1.WorkItem) bool { return it.Status.Phase == v1alpha1.PhaseCompleted })
	wantCalls(t, ops, 1, 1)
	wantCalls(t, pager, 1, 1)
}

func TestFault52_WhatEndedBeforeARestartIsCollected(t *testing.T) {
	t.Parallel()
	env := framework.New(t)
	provider := env.Provider("ops", ok, func(p *v1alpha1.NotificationProvider) { p.Spec.TTLAfterFinished.Duration = 10 * time.Minute })
	first := env.StartManager()
	env.Item("old", framework.Notify("ops"))
	env.Item("young", framework.Notify("ops"))
	old := env.Reported("old", v1alpha1.NotificationSent, 1).Status.Notifications[0].OutboxName
	young := env.Reported("young", v1alpha1.NotificationSent, 1).Status.Notifications[0].OutboxName
	first.Stop()
	ob := env.GetOutbox(old)
	ob.Status.FinishedTime = &metav1.Time{Time: time.Now().Add(-11 * time.Minute)}
	if err := env.Client.Status().Update(t.Context(), ob); err != nil {
		t.Fatal(err)
	}
	env.StartManager()
	env.Eventually("the old outbox is collected", framework.Soon, func() error {
		err := env.Client.Get(t.Context(), client.ObjectKeyFromObject(ob), &v1alpha1.NotificationOutbox{})
		if err == nil {
			return errors.New("it is still there")
		}
		return client.IgnoreNotFound(err)
	})
	env.GetOutbox(young)
	// The item is looked at again, and must not make its outbox once more.
	env.ChangeItem("old", func(it *v1alpha1.WorkItem) { it.Spec.Title = "Another title" })
	env.EventuallyItem("old", "observed", framework.Soon, func(it *v1alpha1.WorkItem) bool { return it.Status.ObservedGeneration == it.Generation })
	if item := env.GetItem("old"); item.Status.Notifications[0].Phase != v1alpha1.NotificationSent {
		t.Errorf("the notification is %s", item.Status.Notifications[0].Phase)
	}
	if n := len(env.Outboxes()); n != 1 {
		t.Errorf("there are %d outboxes, want that of the young one", n)
	}
	wantCalls(t, provider, 2, 2)
}
