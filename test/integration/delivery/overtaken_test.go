// SPDX-FileCopyrightText: The WorkItem Operator Authors
// SPDX-License-Identifier: Apache-2.0

package delivery

import (
	"strings"
	"testing"

	"github.com/workitem-operator/workitem-operator/api/v1alpha1"
	"github.com/workitem-operator/workitem-operator/internal/delivery/deliverytest"
	"github.com/workitem-operator/workitem-operator/internal/options"
	"github.com/workitem-operator/workitem-operator/test/framework"
)

func TestI6_TheLateSuccessOfAnOvertakenHolderChangesNothing(t *testing.T) {
	t.Parallel()
	env := framework.New(t)
	provider := env.Provider("ops", ok, framework.Keyed(v1alpha1.DialectIETF))
	var heal func()
	first := env.StartManager()
	// The answer to the claim gets through, and then nothing.
	provider.SetScript(func(call deliverytest.Call) deliverytest.Answer {
		if call.Nth == 1 {
			heal = first.Wire.Part()
		}
		return deliverytest.Answer{}
	})
	env.Item("report", framework.Notify("ops"))
	env.AwaitCalls(provider, 1)
	second := env.StartManager()
	item := env.Reported("report", v1alpha1.NotificationSent, 1)
	before := env.GetOutbox(item.Status.Notifications[0].OutboxName)
	heal()

	late := env.EventuallyEvent(v1alpha1.KindNotificationOutbox, before.Name, "LateResult")
	if late.Type != "Normal" || !strings.Contains(late.Note, "Attempt 1") {
		t.Errorf("the late result is told as %s: %s", late.Type, late.Note)
	}
	after := env.GetOutbox(before.Name)
	if after.ResourceVersion != before.ResourceVersion {
		t.Errorf("the outbox was changed by the late result: %+v", after.Status)
	}
	if after.Status.Attempts != 2 || len(after.Status.History) != 2 || after.Status.History[0].Reason != v1alpha1.ReasonHolderLost ||
		after.Status.LastAttempt.Holder != second.Identity {
		t.Errorf("the history is %+v", after.Status.History)
	}
	if n := len(first.Wire.Requests(conflicted(recordOutbox))); n != 1 {
		t.Errorf("%d writes of the overtaken holder were refused, want 1", n)
	}
	wantCalls(t, provider, 2, 1)
}

func TestFault27_ALateFailureDoesNotTouchAnAttemptInFlight(t *testing.T) {
	t.Parallel()
	env := framework.New(t)
	gates := [2]*framework.Gate{framework.NewGate(), framework.NewGate()}
	t.Cleanup(gates[0].Open)
	t.Cleanup(gates[1].Open)
	provider := env.Provider("ops", func(call deliverytest.Call) deliverytest.Answer {
		if call.Nth == 1 {
			return deliverytest.Answer{Status: 400}
		}
		return deliverytest.Answer{Hold: gates[1].Opened()}
	})
	first := env.StartManager()
	held := first.Wire.Inject(recordOutbox, 0, framework.HoldUntil(gates[0]))
	first.Wire.Inject(updateLease, 0, framework.Unreachable())
	env.Item("report", framework.Notify("ops"))
	env.Await("the record", held.WaitHits(env.Within(framework.Soon), 1))
	second := env.StartManager(framework.Run(options.Dispatcher))
	env.AwaitCalls(provider, 2)
	gates[0].Open()

	ob := env.OutboxOf("report", "ops")
	env.EventuallyEvent(v1alpha1.KindNotificationOutbox, ob.Name, "LateResult")
	ob = env.GetOutbox(ob.Name)
	if ob.Status.Phase != v1alpha1.OutboxPending || ob.Status.Attempts != 2 || ob.Status.LastAttempt.Holder != second.Identity || ob.Status.LastAttempt.Outcome != "" {
		t.Errorf("the running attempt was touched: %+v", ob.Status)
	}
	gates[1].Open()
	env.Reported("report", v1alpha1.NotificationSent, 1)
	wantCalls(t, provider, 2, 1)
}

func TestFault25_ATakeoverDoesNotOverwriteAnEnd(t *testing.T) {
	t.Parallel()
	env := framework.New(t)
	provider := env.Provider("ops", ok)
	record, begin := framework.NewGate(), framework.NewGate()
	t.Cleanup(record.Open)
	t.Cleanup(begin.Open)
	first := env.StartManager()
	recording := first.Wire.Inject(recordOutbox, 0, framework.HoldUntil(record))
	first.Wire.Inject(updateLease, 0, framework.Unreachable())
	env.Item("report", framework.Notify("ops"))
	env.Await("the record", recording.WaitHits(env.Within(framework.Soon), 1))
	second := env.StartManager(framework.Run(options.Dispatcher), framework.OnWire(func(w *framework.Wire) {
		w.Inject(recordOutbox, 0, framework.HoldUntil(begin))
	}))
	// The second has read the outbox and is about to begin an attempt.
	env.Await("the read", second.Wire.WaitFor(env.Within(framework.Later), 1, readOutbox))
	record.Open()
	ob := env.OutboxOf("report", "ops")
	before := env.EventuallyOutbox(ob.Name, "Sent", framework.Soon, sent)
	begin.Open()
	env.Await("the refusal", second.Wire.WaitFor(env.Within(framework.Soon), 1, conflicted(recordOutbox)))

	env.Reported("report", v1alpha1.NotificationSent, 1)
	after := env.GetOutbox(ob.Name)
	if after.ResourceVersion != before.ResourceVersion || after.Status.Attempts != 1 || after.Status.LastAttempt.Holder != first.Identity {
		t.Errorf("the end was overwritten: %+v", after.Status)
	}
	wantCalls(t, provider, 1, 1)
	wantNoComplaint(t, env, first, second)
}

func TestFault26_AStalledHolderIsStrangerToItsFormerClaim(t *testing.T) {
	t.Parallel()
	env := framework.New(t)
	gate := framework.NewGate()
	t.Cleanup(gate.Open)
	provider := env.Provider("ops", held(gate), framework.Keyed(v1alpha1.DialectIETF))
	stalled := env.StartManager()
	env.Item("report", framework.Notify("ops"))
	env.AwaitCalls(provider, 1)
	heal := stalled.Wire.Part()
	gone := env.StartManager(framework.Run(options.Dispatcher))
	env.AwaitCalls(provider, 2)
	gone.Crash()
	last := env.StartManager()
	env.AwaitCalls(provider, 3)
	gate.Open()
	item := env.Reported("report", v1alpha1.NotificationSent, 1)
	name := item.Status.Notifications[0].OutboxName
	lease := env.GetLease(name)
	mark := stalled.Wire.Mark()
	heal()

	env.EventuallyEvent(v1alpha1.KindNotificationOutbox, name, "LateResult")
	if now := env.GetLease(name); now.ResourceVersion != lease.ResourceVersion || *now.Spec.HolderIdentity != last.Identity {
		t.Errorf("the stalled holder changed the Lease: %+v", now.Spec)
	}
	if *lease.Spec.LeaseTransitions != 2 {
		t.Errorf("leaseTransitions is %d, want 2", *lease.Spec.LeaseTransitions)
	}
	if writes := stalled.Wire.Since(mark, succeeded(updateLease)); len(writes) != 0 {
		t.Errorf("the stalled holder wrote the Lease: %v", writes)
	}
	if ob := env.GetOutbox(name); ob.Status.LastAttempt.Holder != last.Identity || ob.Status.Phase != v1alpha1.OutboxSent {
		t.Errorf("the outbox ended as %+v", ob.Status)
	}
	if effects := provider.Effects(); effects != 1 {
		t.Errorf("the calls had %d effects, want 1", effects)
	}
}

func TestI6_AClaimIsKeptUntilTheOutcomeIsRecorded(t *testing.T) {
	t.Parallel()
	env := framework.New(t)
	provider := env.Provider("ops", ok)
	record := framework.NewGate()
	t.Cleanup(record.Open)
	first := env.StartManager()
	first.Wire.Inject(recordOutbox, 0, framework.HoldUntil(record))
	env.Item("report", framework.Notify("ops"))
	env.AwaitCalls(provider, 1)
	second := env.StartManager(framework.Run(options.Dispatcher))
	env.Await("renewals", first.Wire.WaitFor(env.Within(framework.Later), renewalsIn(3), succeeded(updateLease)))
	record.Open()
	env.Reported("report", v1alpha1.NotificationSent, 1)
	wantCalls(t, provider, 1, 1)
	wantNoComplaint(t, env, first, second)
}
