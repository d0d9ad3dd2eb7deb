// SPDX-FileCopyrightText: The WorkItem Operator Authors
// SPDX-License-Identifier: Apache-2.0

package delivery

import (
	"encoding/json"
	"strings"
	"testing"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/workitem-operator/workitem-operator/api/v1alpha1"
	"github.com/workitem-operator/workitem-operator/internal/outbox"
	"github.com/workitem-operator/workitem-operator/test/framework"
)

// intentOf is the intent that an item is going to have for a provider.
func intentOf(item *v1alpha1.WorkItem, occurrence int32, provider string) v1alpha1.Intent {
	return outbox.NewIntent(outbox.Identity{
		WorkItemName: item.Name, WorkItemUID: item.UID, Transition: v1alpha1.TransitionOverdue, Occurrence: occurrence, Provider: provider,
	}, time.Now())
}

// desired is the outbox of an item's intent for the provider ops, as the operator
// would make it.
func desired(env *framework.Env, item *v1alpha1.WorkItem, occurrence int32) *v1alpha1.NotificationOutbox {
	in := intentOf(item, occurrence, "ops")
	return outbox.Desired(item, &in, env.NewProvider("ops"))
}

// squat creates an outbox of another item under the name of an item's outbox.
func squat(env *framework.Env, item *v1alpha1.WorkItem) *v1alpha1.NotificationOutbox {
	env.T.Helper()
	in := intentOf(item, 1, "ops")
	other := item.DeepCopy()
	other.UID = "11111111-2222-3333-4444-555555555555"
	ob := desired(env, other, 1)
	ob.Name = in.OutboxName
	env.Create(ob)
	return ob
}

func TestI3_ASquatterIsReportedAndNeverSent(t *testing.T) {
	t.Parallel()
	env := framework.New(t)
	provider := env.Provider("ops", ok)
	env.StartManager()
	item := env.Item("report", framework.DueIn(3*time.Second), framework.Notify("ops"))
	squatter := squat(env, item)
	item = env.EventuallyItem("report", "Stalled", framework.Soon, func(it *v1alpha1.WorkItem) bool {
		return framework.Condition(it, v1alpha1.ConditionStalled).Reason == v1alpha1.ReasonOutboxNameTaken
	})
	if c := framework.Condition(item, v1alpha1.ConditionReady); c.Status != metav1.ConditionFalse || !strings.Contains(c.Message, squatter.Name) {
		t.Errorf("the condition Ready is %+v", c)
	}
	if ev := env.EventuallyEvent(v1alpha1.KindWorkItem, "report", v1alpha1.ReasonOutboxNameTaken); ev.Type != "Warning" {
		t.Errorf("the Event is %s", ev.Type)
	}
	env.EventuallyOutbox(squatter.Name, "NotRequested", framework.Soon, framework.Because(v1alpha1.ReasonNotRequested))
	wantCalls(t, provider, 0, 0)

	if err := env.Client.Delete(t.Context(), squatter); err != nil {
		t.Fatal(err)
	}
	item = env.Reported("report", v1alpha1.NotificationSent, 1)
	if c := framework.Condition(item, v1alpha1.ConditionReady); c.Status != metav1.ConditionTrue {
		t.Errorf("the condition Ready is %+v", c)
	}
	wantCalls(t, provider, 1, 1)
	if calls := provider.Calls(); calls[0].Key != item.Status.Notifications[0].IdempotencyKey {
		t.Errorf("the key that was sent is %s", calls[0].Key)
	}
}

func TestI2_AnOutboxWithoutAnIntentIsNeverSent(t *testing.T) {
	t.Parallel()
	env := framework.New(t)
	provider := env.Provider("ops", ok)
	m := env.StartManager()
	item := env.Item("report", framework.Notify("ops"))
	env.Reported("report", v1alpha1.NotificationSent, 1)
	// All is as the operator would make it, but for the seventh occurrence.
	ob := desired(env, item, 7)
	env.Create(ob)
	env.EventuallyOutbox(ob.Name, "NotRequested", framework.Soon, framework.Because(v1alpha1.ReasonNotRequested))
	env.EventuallyEvent(v1alpha1.KindNotificationOutbox, ob.Name, v1alpha1.ReasonNotRequested)
	if ev := env.EventuallyEvent(v1alpha1.KindWorkItem, "report", v1alpha1.ReasonNotRequested); !strings.Contains(ev.Note, ob.Name) {
		t.Errorf("the Event on the WorkItem says %s", ev.Note)
	}
	if n := len(m.Wire.Requests(createLease.And(framework.Named(ob.Name)))); n != 0 {
		t.Errorf("it was claimed %d times", n)
	}
	wantCalls(t, provider, 1, 1)
}

func TestI3_OneOutboxForEachIntentAndOneKeyForEachOutbox(t *testing.T) {
	t.Parallel()
	env := framework.New(t)
	provider := env.Provider("ops", ok)
	pager := env.Provider("pager", ok)
	env.StartManager()
	env.StartManager()
	item := env.Item("report", framework.Notify("ops", "pager"), framework.Escalate(0, "ops"), framework.Escalate(time.Second, "pager"))
	done := env.Reported("report", v1alpha1.NotificationSent, 4)
	prefix := "work-item:" + string(item.UID) + ":status:"
	want := map[string]bool{prefix + "Overdue:1:ops": true, prefix + "Overdue:1:pager": true, prefix + "Escalated-1:1:ops": true, prefix + "Escalated-2:1:pager": true}
	for _, in := range done.Status.Notifications {
		if !want[in.IdempotencyKey] {
			t.Errorf("there is an unexpected key %s", in.IdempotencyKey)
		}
		delete(want, in.IdempotencyKey)
	}
	if len(want) != 0 {
		t.Errorf("there is no intent for %v", want)
	}
	if n := len(env.Outboxes()); n != 4 {
		t.Errorf("there are %d outboxes, want 4", n)
	}
	if done.Status.EscalationLevel != 2 {
		t.Errorf("escalationLevel is %d, want 2", done.Status.EscalationLevel)
	}
	wantCalls(t, provider, 2, 2)
	wantCalls(t, pager, 2, 2)
	for _, call := range provider.Calls() {
		var event struct{ ID, Type, Source string }
		if err := json.Unmarshal(call.Body, &event); err != nil || event.ID != call.Key {
			t.Errorf("the body of %s is %s (%v)", call.Key, call.Body, err)
		}
		wantType := "dev.workitem.overdue.v1"
		if strings.Contains(call.Key, "Escalated") {
			wantType = "dev.workitem.escalated.v1"
		}
		if event.Type != wantType || event.Source != "/namespaces/"+env.Namespace+"/workitems/report" {
			t.Errorf("the event of %s has type %s and source %s", call.Key, event.Type, event.Source)
		}
	}
}

func TestI4_ARequestIsFrozenAtAdmission(t *testing.T) {
	t.Parallel()
	env := framework.New(t)
	ob := recorded(env, framework.Suspended)
	for what, change := range map[string]func(*v1alpha1.NotificationOutbox){
		"key":      func(o *v1alpha1.NotificationOutbox) { o.Spec.IdempotencyKey += "x" },
		"body":     func(o *v1alpha1.NotificationOutbox) { o.Spec.Payload.Body += " " },
		"digest":   func(o *v1alpha1.NotificationOutbox) { o.Spec.PayloadDigest = outbox.Digest("another") },
		"provider": func(o *v1alpha1.NotificationOutbox) { o.Spec.ProviderName = "pager" },
	} {
		changed := env.GetOutbox(ob.Name)
		change(changed)
		if err := env.Client.Update(t.Context(), changed); !apierrors.IsInvalid(err) {
			t.Errorf("changing the %s: got %v, want it to be refused", what, err)
		}
	}
}

func TestFault11_EveryAttemptSendsTheSameBytes(t *testing.T) {
	t.Parallel()
	env := framework.New(t)
	env.Create(signingSecret(env, keyA))
	provider := env.Provider("ops", failing(2, 503), framework.SignedWith("hook", "whsec"), framework.Keyed(v1alpha1.DialectIETF),
		framework.Retry(time.Hour, 2*time.Second, 3*time.Second))
	env.StartManager()
	env.Item("report", framework.Notify("ops"))
	env.AwaitCalls(provider, 1)
	env.ChangeItem("report", func(it *v1alpha1.WorkItem) {
		it.Spec.Title, it.Spec.Description, it.Spec.Assignee = "Another title", "Another description", "somebody-else"
	})
	item := env.Reported("report", v1alpha1.NotificationSent, 1)
	calls := provider.Calls()
	sameRequest(t, calls)
	wantCalls(t, provider, 3, 1)
	ob := env.GetOutbox(item.Status.Notifications[0].OutboxName)
	if string(calls[0].Body) != ob.Spec.Payload.Body || outbox.Digest(string(calls[2].Body)) != ob.Spec.PayloadDigest {
		t.Errorf("what was sent is not what was recorded: %s", calls[0].Body)
	}
	for n, call := range calls {
		if call.Header.Get("Webhook-Id") != ob.Spec.IdempotencyKey || !strings.Contains(string(call.Body), "Do report") {
			t.Errorf("call %d has webhook-id %s and body %s", n, call.Header.Get("Webhook-Id"), call.Body)
		}
		verifies(t, keyA, call)
		if n > 0 && (call.Header.Get("Webhook-Timestamp") == calls[n-1].Header.Get("Webhook-Timestamp") ||
			call.Header.Get("Webhook-Signature") == calls[n-1].Header.Get("Webhook-Signature")) {
			t.Errorf("call %d has the timestamp or the signature of the one before", n)
		}
	}
}
