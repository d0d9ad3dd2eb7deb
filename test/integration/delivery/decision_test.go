// SPDX-FileCopyrightText: The WorkItem Operator Authors
// SPDX-License-Identifier: Apache-2.0

package delivery

import (
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/workitem-operator/workitem-operator/api/v1alpha1"
	"github.com/workitem-operator/workitem-operator/controllers/dispatcher"
	"github.com/workitem-operator/workitem-operator/internal/delivery/deliverytest"
	"github.com/workitem-operator/workitem-operator/internal/metrics"
	"github.com/workitem-operator/workitem-operator/test/framework"
)

// taken waits until the operator has dealt with a decision and removed it.
func taken(env *framework.Env, outbox string) *v1alpha1.NotificationOutbox {
	env.T.Helper()
	return env.EventuallyOutbox(outbox, "the decision is dealt with", framework.Later, func(ob *v1alpha1.NotificationOutbox) bool {
		for _, name := range []string{v1alpha1.AnnotationDecision, v1alpha1.AnnotationDecisionReason, v1alpha1.AnnotationDecisionBy} {
			if _, there := ob.Annotations[name]; there {
				return false
			}
		}
		return true
	})
}

// wantDecision checks what is kept of a decision.
func wantDecision(env *framework.Env, ob *v1alpha1.NotificationOutbox, action v1alpha1.DecisionAction, reason, by string) {
	env.T.Helper()
	if d := ob.Status.Decision; d == nil || d.Action != action || d.Reason != reason || d.By != by || d.Time == nil {
		env.T.Errorf("the decision is kept as %+v", d)
	}
	ev := env.EventuallyEvent(v1alpha1.KindNotificationOutbox, ob.Name, string(action))
	if !strings.Contains(ev.Note, by) || !strings.Contains(ev.Note, reason) {
		env.T.Errorf("the Event says %q", ev.Note)
	}
}

// deadLettered is an item whose only notification was refused for good.
func deadLettered(env *framework.Env) (*deliverytest.Endpoint, *v1alpha1.NotificationOutbox) {
	env.T.Helper()
	provider := env.Provider("ops", failing(1, 400), framework.Keyed(v1alpha1.DialectIETF))
	env.StartManager()
	env.StartManager()
	env.Item("report", framework.Notify("ops"))
	item := env.Reported("report", v1alpha1.NotificationDeadLettered, 1)
	return provider, env.GetOutbox(item.Status.Notifications[0].OutboxName)
}

func TestFault38_ADeadLetterIsCountedAndReplayed(t *testing.T) {
	t.Parallel()
	env := framework.New(t)
	provider, ob := deadLettered(env)
	dead := metrics.Depth{Namespace: env.Namespace, Provider: "ops", Phase: string(v1alpha1.OutboxDeadLettered)}
	if n := dispatcher.Outboxes(env.Client).Count()[dead]; n != 1 {
		t.Errorf("the gauge counts %d dead letters, want 1", n)
	}
	env.Decide(ob.Name, v1alpha1.DecisionReplay, "the endpoint is repaired", "jo")
	env.Reported("report", v1alpha1.NotificationSent, 1)
	ob = taken(env, ob.Name)
	wantDecision(env, ob, v1alpha1.DecisionReplay, "the endpoint is repaired", "jo")
	if ob.Status.Attempts != 2 || len(ob.Status.History) != 2 {
		t.Errorf("there are %d attempts", ob.Status.Attempts)
	}
	sameRequest(t, provider.Calls())
	wantCalls(t, provider, 2, 1)
}

func TestFault20_AReplayAfterEffectIsLeftToTheProvider(t *testing.T) {
	t.Parallel()
	env := framework.New(t)
	// It had the effect, said 500, and its policy is Hold: a person decides.
	provider := env.Provider("ops", deliverytest.Sequence(deliverytest.Answer{Status: 500, Effect: true}, deliverytest.Answer{}),
		framework.HoldAmbiguous, framework.Keyed(v1alpha1.DialectIETF))
	env.StartManager()
	env.Item("report", framework.Notify("ops"))
	item := env.Reported("report", v1alpha1.NotificationHeld, 1)
	ob := env.GetOutbox(item.Status.Notifications[0].OutboxName)
	env.Decide(ob.Name, v1alpha1.DecisionReplay, "nobody was told", "jo")
	env.Reported("report", v1alpha1.NotificationSent, 1)
	calls := provider.Calls()
	sameRequest(t, calls)
	if !calls[1].Replayed {
		t.Error("the replay carried another key")
	}
	wantCalls(t, provider, 2, 1)
}

func TestDecision_MarkSentAndAbandonEndWithoutACall(t *testing.T) {
	t.Parallel()
	for action, want := range map[v1alpha1.DecisionAction]struct {
		phase  v1alpha1.OutboxPhase
		reason string
	}{
		v1alpha1.DecisionMarkSent: {v1alpha1.OutboxSent, v1alpha1.ReasonMarkedSent},
		v1alpha1.DecisionAbandon:  {v1alpha1.OutboxSuperseded, v1alpha1.ReasonAbandoned},
	} {
		t.Run(string(action)+" of a dead letter", func(t *testing.T) {
			t.Parallel()
			env := framework.New(t)
			provider, ob := deadLettered(env)
			env.Decide(ob.Name, action, "told by phone", "jo")
			item := env.Reported("report", v1alpha1.NotificationPhase(want.phase), 1)
			ob = taken(env, ob.Name)
			wantDecision(env, ob, action, "told by phone", "jo")
			if framework.DeliveredReason(ob) != want.reason {
				t.Errorf("the reason is %s", framework.DeliveredReason(ob))
			}
			if action == v1alpha1.DecisionAbandon && item.Status.Notifications[0].Reason != want.reason {
				t.Errorf("the WorkItem's reason is %s", item.Status.Notifications[0].Reason)
			}
			wantCalls(t, provider, 1, 0)
		})
		t.Run(string(action)+" of one that waits", func(t *testing.T) {
			t.Parallel()
			env := framework.New(t)
			provider := env.Provider("ops", ok, framework.Suspended)
			env.StartManager()
			env.StartManager()
			env.Item("report", framework.Notify("ops"))
			ob := env.OutboxOf("report", "ops")
			env.EventuallyOutbox(ob.Name, "suspended", framework.Soon, framework.Because(v1alpha1.ReasonProviderSuspended))
			env.Decide(ob.Name, action, "told by phone", "jo")
			env.Reported("report", v1alpha1.NotificationPhase(want.phase), 1)
			wantDecision(env, taken(env, ob.Name), action, "told by phone", "jo")
			env.GetLease(ob.Name) // It was claimed.
			env.ChangeProvider("ops", func(p *v1alpha1.NotificationProvider) { p.Spec.Suspend = false })
			env.Item("marker", framework.Notify("ops"))
			env.Reported("marker", v1alpha1.NotificationSent, 1)
			wantCalls(t, provider, 1, 1)
		})
	}
}

func TestDecision_InFlightWaitsForTheClaim(t *testing.T) {
	t.Parallel()
	env := framework.New(t)
	gate := framework.NewGate()
	t.Cleanup(gate.Open)
	provider := env.Provider("ops", held(gate))
	m := env.StartManager()
	env.Item("report", framework.Notify("ops"))
	env.AwaitCalls(provider, 1)
	env.StartManager() // Only now, so that it is m that holds the claim.
	ob := env.OutboxOf("report", "ops")
	env.Decide(ob.Name, v1alpha1.DecisionAbandon, "too late", "jo")
	env.Await("renewals", m.Wire.WaitFor(env.Within(framework.Later), renewalsIn(2), succeeded(updateLease)))
	if now := env.GetOutbox(ob.Name); now.Status.Phase != "" {
		t.Errorf("a decision took effect during a call: %+v", now.Status)
	}
	gate.Open()
	env.Reported("report", v1alpha1.NotificationSent, 1)
	ob = taken(env, ob.Name)
	if ob.Status.Phase != v1alpha1.OutboxSent || ob.Status.Decision != nil {
		t.Errorf("the outbox is %+v", ob.Status)
	}
	env.EventuallyEvent(v1alpha1.KindNotificationOutbox, ob.Name, "DecisionRefused")
	wantCalls(t, provider, 1, 1)
}

func TestDecision_OneThatDoesNotApplyIsRefused(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		action v1alpha1.DecisionAction
		reason string
		sent   bool
		says   string
	}{
		"replay of what was sent":  {v1alpha1.DecisionReplay, "once more", true, "only an outbox that is Held or DeadLettered"},
		"abandon of what was sent": {v1alpha1.DecisionAbandon, "no more need", true, "final"},
		"without a reason":         {v1alpha1.DecisionReplay, "", false, "must say why"},
		"unknown":                  {"Explode", "because", false, "must be Replay, MarkSent or Abandon"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			env := framework.New(t)
			calls, effects := 1, 0
			var provider *deliverytest.Endpoint
			var ob *v1alpha1.NotificationOutbox
			if c.sent {
				provider = env.Provider("ops", ok)
				env.StartManager()
				env.Item("report", framework.Notify("ops"))
				ob = env.GetOutbox(env.Reported("report", v1alpha1.NotificationSent, 1).Status.Notifications[0].OutboxName)
				effects = 1
			} else {
				provider, ob = deadLettered(env)
			}
			env.Decide(ob.Name, c.action, c.reason, "jo")
			after := taken(env, ob.Name)
			ev := env.EventuallyEvent(v1alpha1.KindNotificationOutbox, ob.Name, "DecisionRefused")
			if ev.Type != "Warning" || !strings.Contains(ev.Note, c.says) || !strings.Contains(ev.Note, "jo") {
				t.Errorf("the Event says %s: %s", ev.Type, ev.Note)
			}
			if after.Status.Phase != ob.Status.Phase || after.Status.Decision != nil {
				t.Errorf("the refused decision changed the outbox to %+v", after.Status)
			}
			wantCalls(t, provider, calls, effects)
		})
	}
}

func TestDecision_ALostAnswerIsNotCarriedOutTwice(t *testing.T) {
	t.Parallel()
	env := framework.New(t)
	provider := env.Provider("ops", failing(1, 400))
	m := env.StartManager()
	env.Item("report", framework.Notify("ops"))
	ob := env.GetOutbox(env.Reported("report", v1alpha1.NotificationDeadLettered, 1).Status.Notifications[0].OutboxName)
	lost := m.Wire.Inject(recordOutbox.And(framework.BodyHas(`"reason":"Replayed"`)), 1, framework.LoseAnswer())
	env.Decide(ob.Name, v1alpha1.DecisionReplay, "repaired", "jo")
	env.Reported("report", v1alpha1.NotificationSent, 1)
	taken(env, ob.Name)
	if lost.Hits() != 1 {
		t.Fatalf("the fault was met %d times: the test proves nothing", lost.Hits())
	}
	wantCalls(t, provider, 2, 1)
	if n := len(eventsOn(env, v1alpha1.KindNotificationOutbox, ob.Name, "DecisionRefused")); n != 0 {
		t.Error("a decision that was carried out was refused afterwards")
	}
}

func TestI9_EveryNotificationEndsVisibly(t *testing.T) {
	t.Parallel()
	env := framework.New(t)
	env.Provider("sent", ok)
	env.Provider("refused", deliverytest.AlwaysStatus(405))
	env.Provider("late", deliverytest.AlwaysStatus(429), framework.Retry(time.Second, 300*time.Millisecond, 500*time.Millisecond))
	env.Provider("unclear", deliverytest.AlwaysStatus(500), framework.HoldAmbiguous)
	env.Provider("suspended", ok, framework.Suspended)
	env.StartManager()
	env.StartManager()
	env.Item("report", framework.Notify("sent", "refused", "late", "unclear", "suspended"))
	env.EventuallyItem("report", "all but one have ended", framework.Later, func(it *v1alpha1.WorkItem) bool {
		open := 0
		for _, in := range it.Status.Notifications {
			if in.Phase == v1alpha1.NotificationRecorded || in.Phase == v1alpha1.NotificationPending {
				open++
			}
		}
		return len(it.Status.Notifications) == 5 && open == 1
	})
	env.ChangeItem("report", func(it *v1alpha1.WorkItem) { it.Spec.State = v1alpha1.StateCompleted })
	want := map[string][2]string{
		"sent": {"Sent", ""}, "refused": {"DeadLettered", "Refused"}, "late": {"DeadLettered", v1alpha1.ReasonDeadlineExceeded},
		"unclear": {"Held", v1alpha1.ReasonAmbiguousOutcome}, "suspended": {"Superseded", v1alpha1.ReasonWorkItemCompleted},
	}
	env.Eventually("every notification has ended, for a reason", framework.Later, func() error {
		for _, in := range env.GetItem("report").Status.Notifications {
			if got := [2]string{string(in.Phase), in.Reason}; got != want[in.ProviderName] {
				return errors.New(in.ProviderName + " is " + got[0] + " because of " + got[1])
			}
		}
		return nil
	})
}
