// SPDX-FileCopyrightText: The WorkItem Operator Authors
// SPDX-License-Identifier: Apache-2.0

package delivery

import (
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/workitem-operator/workitem-operator/api/v1alpha1"
	"github.com/workitem-operator/workitem-operator/internal/delivery/deliverytest"
	"github.com/workitem-operator/workitem-operator/internal/options"
	"github.com/workitem-operator/workitem-operator/test/framework"
)

// dialects are the four ways in which providers treat keys, and how a
// NotificationProvider says so.
var dialects = map[deliverytest.Dialect][]framework.ProviderOption{
	deliverytest.IETF:         {framework.Keyed(v1alpha1.DialectIETF)},
	deliverytest.Raw:          {framework.Keyed(v1alpha1.DialectRaw)},
	deliverytest.SilentReplay: {framework.Keyed(v1alpha1.DialectIETF)},
	deliverytest.None:         nil,
}

func TestW4_AnAcceptanceWhoseAnswerIsLostIsRepeatedWithTheSameKey(t *testing.T) {
	t.Parallel()
	for dialect, how := range dialects {
		t.Run(string(dialect), func(t *testing.T) {
			t.Parallel()
			env := framework.New(t)
			env.Create(env.NewProvider("ops", how...))
			provider := env.Endpoint("ops", dialect, deliverytest.Sequence(deliverytest.Answer{Effect: true, Drop: true}, deliverytest.Answer{}))
			env.StartManager()
			env.Item("report", framework.Notify("ops"))
			item := env.Reported("report", v1alpha1.NotificationSent, 1)

			effects, guarantee := 1, v1alpha1.GuaranteeEffectivelyOnce
			if dialect == deliverytest.None {
				effects, guarantee = 2, v1alpha1.GuaranteeAtLeastOnce // Which is what it says.
			}
			wantCalls(t, provider, 2, effects)
			calls := provider.Calls()
			sameRequest(t, calls)
			if pause := calls[1].Time.Sub(calls[0].Time); pause < framework.MinLease {
				t.Errorf("the second call came after %s, want not before the claim of %s ran out", pause, framework.MinLease)
			}
			ob := env.GetOutbox(item.Status.Notifications[0].OutboxName)
			if ob.Status.Guarantee != guarantee {
				t.Errorf("the guarantee is %s, want %s", ob.Status.Guarantee, guarantee)
			}
			first := ob.Status.History[0]
			if first.Outcome != v1alpha1.OutcomeAmbiguous || first.Reason != "ConnectionLost" || first.HTTPStatus != 0 {
				t.Errorf("the first attempt is recorded as %+v", first)
			}
		})
	}
}

func TestI12_AfterAnAmbiguousOutcomeNobodySendsBeforeTheClaimRunsOut(t *testing.T) {
	t.Parallel()
	for name, answer := range map[string]deliverytest.Answer{
		"500": {Status: 500}, "502": {Status: 502}, "504": {Status: 504}, "409": {Status: 409}, "599": {Status: 599},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			env := framework.New(t)
			provider := env.Provider("ops", deliverytest.Sequence(answer, deliverytest.Answer{}))
			first, second := env.StartManager(), env.StartManager()
			env.Item("report", framework.Notify("ops"))
			env.AwaitCalls(provider, 1)
			ob := env.EventuallyOutbox(env.OutboxOf("report", "ops").Name, "Ambiguous", framework.Soon, func(ob *v1alpha1.NotificationOutbox) bool {
				return ob.Status.LastAttempt != nil && ob.Status.LastAttempt.Outcome == v1alpha1.OutcomeAmbiguous
			})
			lease := env.GetLease(ob.Name)
			if *lease.Spec.HolderIdentity != ob.Status.LastAttempt.Holder {
				t.Errorf("the claim was given up: %+v", lease.Spec)
			}
			env.Reported("report", v1alpha1.NotificationSent, 1)
			calls := provider.Calls()
			if pause := calls[1].Time.Sub(lease.Spec.RenewTime.Time); pause < framework.MinLease {
				t.Errorf("the second call came %s after the last renewal", pause)
			}
			sameRequest(t, calls)
			wantCalls(t, provider, 2, 1)
			wantNoComplaint(t, env, first, second)
		})
	}
}

func TestI12_ADefiniteRejectionIsRetriedByItsHolderAtOnce(t *testing.T) {
	t.Parallel()
	env := framework.New(t)
	provider := env.Provider("ops", failing(3, 503), framework.Retry(time.Hour, 100*time.Millisecond, 200*time.Millisecond))
	env.StartManager()
	env.StartManager(framework.Run(options.Dispatcher))
	env.Item("report", framework.Notify("ops"))
	item := env.Reported("report", v1alpha1.NotificationSent, 1)
	ob := env.GetOutbox(item.Status.Notifications[0].OutboxName)
	if ob.Status.Attempts != 4 || len(ob.Status.History) != 4 {
		t.Errorf("there were %d attempts, %d of them in the history, want 4", ob.Status.Attempts, len(ob.Status.History))
	}
	for _, a := range ob.Status.History {
		if a.Holder != ob.Status.History[0].Holder {
			t.Errorf("attempt %d is by %s: the holder may go on, and nobody else", a.Number, a.Holder)
		}
	}
	if n := *env.GetLease(ob.Name).Spec.LeaseTransitions; n != 0 {
		t.Errorf("the claim changed hands %d times", n)
	}
	wantCalls(t, provider, 4, 1)
}

func TestI12_HoldLeavesAnAmbiguousOutcomeToAPerson(t *testing.T) {
	t.Parallel()
	env := framework.New(t)
	provider := env.Provider("ops", failing(1, 500), framework.HoldAmbiguous)
	env.StartManager()
	env.Item("report", framework.Notify("ops"))
	item := env.Reported("report", v1alpha1.NotificationHeld, 1)
	ob := env.GetOutbox(item.Status.Notifications[0].OutboxName)
	if got := framework.DeliveredReason(ob); got != v1alpha1.ReasonAmbiguousOutcome {
		t.Errorf("the reason is %s", got)
	}
	if c := framework.Condition(item, v1alpha1.ConditionNotified); c.Status != "False" || c.Reason != v1alpha1.ReasonNotAllSent {
		t.Errorf("the condition Notified is %+v", c)
	}
	if ev := env.EventuallyEvent(v1alpha1.KindNotificationOutbox, ob.Name, "Held"); ev.Type != "Warning" {
		t.Errorf("the Event is %s", ev.Type)
	}
	env.Stays("nothing more is sent", framework.MinLease+2*time.Second, func() error { return nil })
	wantCalls(t, provider, 1, 0)
}

func TestFault15_NothingIsSentWithoutAnAcceptance(t *testing.T) {
	t.Parallel()
	env := framework.New(t)
	provider := env.Provider("ops", ok, framework.Keyed(v1alpha1.DialectIETF))
	first := env.StartManager()
	crashed := first.CrashBefore(recordOutbox) // Between the answer and the record of it.
	env.Item("report", framework.Notify("ops"))
	env.AwaitCalls(provider, 1)
	env.Await("the crash", crashed.WaitHits(env.Within(framework.Soon), 1))
	ob := env.OutboxOf("report", "ops")
	if diff := cmp.Diff(v1alpha1.NotificationOutboxStatus{}, ob.Status); diff != "" {
		t.Errorf("something was recorded without its write (-want +got):\n%s", diff)
	}
	env.StartManager()
	env.Reported("report", v1alpha1.NotificationSent, 1)
	ob = env.GetOutbox(ob.Name)
	if last := ob.Status.LastAttempt; last.Outcome != v1alpha1.OutcomeAccepted || last.HTTPStatus != 200 || last.Number != 2 {
		t.Errorf("it is Sent by %+v", last)
	}
	calls := provider.Calls()
	sameRequest(t, calls)
	wantCalls(t, provider, 2, 1)
}
