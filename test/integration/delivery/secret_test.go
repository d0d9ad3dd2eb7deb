// SPDX-FileCopyrightText: The WorkItem Operator Authors
// SPDX-License-Identifier: Apache-2.0

package delivery

import (
	"testing"
	"time"

	standardwebhooks "github.com/standard-webhooks/standard-webhooks/libraries/go"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/workitem-operator/workitem-operator/api/v1alpha1"
	"github.com/workitem-operator/workitem-operator/internal/delivery/deliverytest"
	"github.com/workitem-operator/workitem-operator/test/framework"
)

// Two signing keys, of 32 bytes each.
const (
	keyA = "whsec_QUFBQUFBQUFBQUFBQUFBQUFBQUFBQUFBQUFBQUFBQUE="
	keyB = "whsec_QkJCQkJCQkJCQkJCQkJCQkJCQkJCQkJCQkJCQkJCQkI="
)

// within is how soon a Secret that came or changed has to be used.
const within = 3 * time.Second

// signingSecret is the Secret hook with what calls are signed with.
func signingSecret(env *framework.Env, value string) *corev1.Secret {
	return &corev1.Secret{
		ObjectMeta: metav1.ObjectMeta{Namespace: env.Namespace, Name: "hook"},
		StringData: map[string]string{"whsec": value},
	}
}

// signedBy tells whether a call verifies with a key.
func signedBy(key string, call deliverytest.Call) error {
	hook, err := standardwebhooks.NewWebhook(key)
	if err != nil {
		return err
	}
	return hook.Verify(call.Body, call.Header)
}

func verifies(t *testing.T, key string, call deliverytest.Call) {
	t.Helper()
	if err := signedBy(key, call); err != nil {
		t.Errorf("call %d does not verify: %v", call.Nth, err)
	}
}

// providerReady is the condition Ready of the provider ops.
func providerReady(env *framework.Env) metav1.Condition {
	env.T.Helper()
	p := &v1alpha1.NotificationProvider{}
	if err := env.Client.Get(env.T.Context(), client.ObjectKey{Namespace: env.Namespace, Name: "ops"}, p); err != nil {
		env.T.Fatal(err)
	}
	if c := meta.FindStatusCondition(p.Status.Conditions, v1alpha1.ConditionReady); c != nil {
		return *c
	}
	return metav1.Condition{}
}

func TestFault23_ProviderAndSecretComeLate(t *testing.T) {
	t.Parallel()
	env := framework.New(t)
	env.StartManager()
	env.Item("report", framework.Notify("ops"))
	item := env.EventuallyItem("report", "it waits for the provider", framework.Soon, func(it *v1alpha1.WorkItem) bool {
		return framework.Condition(it, v1alpha1.ConditionReady).Reason == v1alpha1.ReasonProviderNotFound
	})
	if in := item.Status.Notifications[0]; in.Phase != v1alpha1.NotificationRecorded || len(env.Outboxes()) != 0 {
		t.Errorf("the intent is %s, and there are %d outboxes", in.Phase, len(env.Outboxes()))
	}
	provider := env.Provider("ops", ok, framework.SignedWith("hook", "whsec"))
	ob := env.OutboxOf("report", "ops")
	env.EventuallyOutbox(ob.Name, "it waits for the Secret", framework.Soon, framework.Because(v1alpha1.ReasonSecretNotFound))
	env.Eventually("the provider is not Ready", framework.Soon, func() error {
		if c := providerReady(env); c.Reason != v1alpha1.ReasonSecretNotFound {
			return errUnexpected(c)
		}
		return nil
	})
	wantCalls(t, provider, 0, 0)

	env.Create(signingSecret(env, keyA))
	created := time.Now()
	call := env.AwaitCalls(provider, 1)[0]
	if took := call.Time.Sub(created); took > within {
		t.Errorf("the Secret was used after %s, want within %s", took, within)
	}
	verifies(t, keyA, call)
	env.Reported("report", v1alpha1.NotificationSent, 1)
	if ob := env.GetOutbox(ob.Name); ob.Status.Attempts != 1 {
		t.Errorf("waiting for the Secret used up %d attempts", ob.Status.Attempts-1)
	}
	wantCalls(t, provider, 1, 1)
}

func TestSecret_ARotatedKeyIsUsedWithinThreeSeconds(t *testing.T) {
	t.Parallel()
	env := framework.New(t)
	env.Create(signingSecret(env, keyA))
	provider := env.Provider("ops", deliverytest.AlwaysStatus(503), framework.SignedWith("hook", "whsec"),
		framework.Retry(time.Hour, 100*time.Millisecond, 300*time.Millisecond))
	env.StartManager()
	env.Item("report", framework.Notify("ops"))
	verifies(t, keyA, env.AwaitCalls(provider, 1)[0])
	rotate := func(value string) time.Time {
		framework.Change(env, &corev1.Secret{}, "hook", func(s *corev1.Secret) { s.Data["whsec"] = []byte(value) })
		// The answers are refusals, of which ten in a row would open the circuit breaker.
		provider.SetScript(func(call deliverytest.Call) deliverytest.Answer {
			return deliverytest.Answer{Status: []int{503, 429}[call.Nth%2]}
		})
		return time.Now()
	}
	for _, step := range []struct {
		value string
		byA   bool
	}{{keyA + " " + keyB, true}, {keyB, false}} {
		changed := rotate(step.value)
		env.Await("a call with the new signature", provider.WaitFor(env.Within(framework.Soon), func(calls []deliverytest.Call) bool {
			last := calls[len(calls)-1]
			return signedBy(keyB, last) == nil && (signedBy(keyA, last) == nil) == step.byA
		}))
		calls := provider.Calls()
		if took := calls[len(calls)-1].Time.Sub(changed); took > within {
			t.Errorf("the new key was used after %s, want within %s", took, within)
		}
	}
	provider.SetScript(ok)
	env.Reported("report", v1alpha1.NotificationSent, 1)
	calls := provider.Calls()
	last := calls[len(calls)-1]
	verifies(t, keyB, last)
	if signedBy(keyA, last) == nil {
		t.Error("the old key still signs after the rotation")
	}
}

func TestSecret_ANewSecretEndsAParkedProvider(t *testing.T) {
	t.Parallel()
	env := framework.New(t)
	env.Create(signingSecret(env, keyA))
	provider := env.Provider("ops", func(call deliverytest.Call) deliverytest.Answer {
		if signedBy(keyB, call) != nil {
			return deliverytest.Answer{Status: 401}
		}
		return deliverytest.Answer{}
	}, framework.SignedWith("hook", "whsec"), framework.Retry(24*time.Hour, time.Second, time.Hour))
	env.StartManager()
	env.Item("report", framework.Notify("ops"))
	env.AwaitCalls(provider, 1)
	env.Eventually("the provider is not Ready", framework.Soon, func() error {
		if c := providerReady(env); c.Reason != "Unauthorized" {
			return errUnexpected(c)
		}
		return nil
	})
	framework.Change(env, &corev1.Secret{}, "hook", func(s *corev1.Secret) { s.Data["whsec"] = []byte(keyB) })
	changed := time.Now()
	calls := env.AwaitCalls(provider, 2)
	if took := calls[1].Time.Sub(changed); took > within {
		t.Errorf("the Secret was tried after %s, want within %s", took, within)
	}
	env.Reported("report", v1alpha1.NotificationSent, 1)
	env.Eventually("the provider is Ready again", framework.Soon, func() error {
		if c := providerReady(env); c.Status != metav1.ConditionTrue {
			return errUnexpected(c)
		}
		return nil
	})
	wantCalls(t, provider, 2, 1)
}
