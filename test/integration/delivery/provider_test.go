// SPDX-FileCopyrightText: The WorkItem Operator Authors
// SPDX-License-Identifier: Apache-2.0

package delivery

import (
	"errors"
	"fmt"
	"net/http"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/workitem-operator/workitem-operator/api/v1alpha1"
	"github.com/workitem-operator/workitem-operator/internal/delivery/deliverytest"
	"github.com/workitem-operator/workitem-operator/test/framework"
)

func TestFault48_ASuspendedProviderDefersAndSendsOnceAfterwards(t *testing.T) {
	t.Parallel()
	env := framework.New(t)
	provider := env.Provider("ops", ok, framework.Suspended)
	env.StartManager()
	env.Item("report", framework.Notify("ops"))
	ob := env.EventuallyOutbox(env.OutboxOf("report", "ops").Name, "suspended", framework.Soon, framework.Because(v1alpha1.ReasonProviderSuspended))
	if ob.Status.Phase != v1alpha1.OutboxPending || ob.Status.Attempts != 0 || ob.Status.ExcusedSince == nil {
		t.Errorf("the outbox is %+v", ob.Status)
	}
	wantCalls(t, provider, 0, 0)
	env.ChangeProvider("ops", func(p *v1alpha1.NotificationProvider) { p.Spec.Suspend = false })
	env.Reported("report", v1alpha1.NotificationSent, 1)
	wantCalls(t, provider, 1, 1)
	// Suspended again: what is sent stays sent.
	env.ChangeProvider("ops", func(p *v1alpha1.NotificationProvider) { p.Spec.Suspend = true })
	env.Item("another", framework.Notify("ops"))
	env.EventuallyOutbox(env.OutboxOf("another", "ops").Name, "suspended", framework.Soon, framework.Because(v1alpha1.ReasonProviderSuspended))
	if ob := env.GetOutbox(ob.Name); ob.Status.Phase != v1alpha1.OutboxSent {
		t.Errorf("what was sent is %s", ob.Status.Phase)
	}
	wantCalls(t, provider, 1, 1)
}

func TestFault16_RetryAfterPausesTheProviderAndNoOther(t *testing.T) {
	t.Parallel()
	for name, status := range map[string]int{"429": 429, "503": 503} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			env := framework.New(t)
			const pause = 6 * time.Second
			limited := env.Provider("limited", deliverytest.Sequence(
				deliverytest.Answer{Status: status, Header: http.Header{"Retry-After": {"6"}}}, deliverytest.Answer{},
			), framework.Retry(time.Hour, 100*time.Millisecond, time.Minute))
			other := env.Provider("other", ok)
			first := env.StartManager()
			env.StartManager()
			env.Item("report", framework.Notify("limited"))
			refused := env.AwaitCalls(limited, 1)[0]
			env.Eventually("the pause is in the status", framework.Soon, func() error {
				p := &v1alpha1.NotificationProvider{}
				if err := env.Client.Get(t.Context(), client.ObjectKey{Namespace: env.Namespace, Name: "limited"}, p); err != nil {
					return err
				}
				if p.Status.Pause == nil {
					return errors.New("there is none")
				}
				return nil
			})
			// One more for the same provider, and one for another.
			limited.SetScript(ok)
			env.Item("second", framework.Notify("limited"))
			env.Item("third", framework.Notify("other"))
			env.Reported("third", v1alpha1.NotificationSent, 1)
			if took := other.Calls()[0].Time.Sub(refused.Time); took >= pause {
				t.Logf("the other provider was called after %s: this machine is too slow to tell", took)
			}
			env.Reported("second", v1alpha1.NotificationSent, 1)
			env.Reported("report", v1alpha1.NotificationSent, 1)
			for _, call := range limited.Calls()[1:] {
				if waited := call.Time.Sub(refused.Time); waited < pause {
					t.Errorf("the provider was called again after %s, want not before %s", waited, pause)
				}
			}
			wantCalls(t, limited, 3, 2)
			if lines := first.ErrorLog(); len(lines) != 0 {
				t.Errorf("errors were logged: %v", lines)
			}
		})
	}
}

func TestFault16_ASenselessRetryAfterIsIgnored(t *testing.T) {
	t.Parallel()
	for name, value := range map[string]string{"negative": "-1", "words": "soon", "enormous": "1000000000"} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			env := framework.New(t)
			provider := env.Provider("ops", deliverytest.Sequence(
				deliverytest.Answer{Status: 429, Header: http.Header{"Retry-After": {value}}}, deliverytest.Answer{},
			)) // Its longest backoff is a second, to which an enormous value is cut.
			env.StartManager()
			env.Item("report", framework.Notify("ops"))
			env.Reported("report", v1alpha1.NotificationSent, 1)
			wantCalls(t, provider, 2, 1)
		})
	}
}

func TestProvider_ASlowOneDoesNotDelayAnother(t *testing.T) {
	t.Parallel()
	env := framework.New(t)
	gate := framework.NewGate()
	t.Cleanup(gate.Open)
	slow := env.Provider("slow", held(gate), framework.MaxInFlight(1))
	quick := env.Provider("quick", ok)
	env.StartManager()
	// More than there are workers.
	const waiting = 40
	for n := range waiting {
		env.Item(fmt.Sprintf("slow-%d", n), framework.Notify("slow"))
	}
	env.AwaitCalls(slow, 1)
	env.Item("quick", framework.Notify("quick"))
	env.Reported("quick", v1alpha1.NotificationSent, 1)
	wantCalls(t, quick, 1, 1)
	wantCalls(t, slow, 1, 0)
	gate.Open()
	for n := range waiting {
		env.Reported(fmt.Sprintf("slow-%d", n), v1alpha1.NotificationSent, 1)
	}
	wantCalls(t, slow, waiting, waiting)
	if _, all := slow.Peak(); all != 1 {
		t.Errorf("%d calls were under way at once, want maxInFlight 1", all)
	}
}

func TestFault21_AnOpenBreakerUsesUpNoAttempts(t *testing.T) {
	t.Parallel()
	env := framework.New(t)
	const items = 12
	provider := env.Provider("ops", deliverytest.AlwaysStatus(503), framework.Retry(time.Hour, 100*time.Millisecond, 2*time.Second), framework.MaxInFlight(4))
	env.StartManager()
	for n := range items {
		env.Item(fmt.Sprintf("report-%d", n), framework.Notify("ops"))
	}
	// Ten failures in a row open it; then one call at a time probes, for a while.
	calls := env.AwaitCalls(provider, 14)
	if gap := calls[13].Time.Sub(calls[9].Time); gap < time.Second {
		t.Logf("14 calls came within %s of the tenth", gap)
	}
	provider.SetScript(ok)
	for n := range items {
		env.Reported(fmt.Sprintf("report-%d", n), v1alpha1.NotificationSent, 1)
	}
	counted := 0
	for _, ob := range env.Outboxes() {
		counted += int(ob.Status.Attempts)
	}
	if made := len(provider.Calls()); counted != made {
		t.Errorf("%d attempts are counted, and %d calls were made", counted, made)
	}
	if n := provider.Effects(); n != items {
		t.Errorf("there were %d effects, want %d", n, items)
	}
}

func TestFault21_ADeadProviderIsProbedAndNothingIsGivenUp(t *testing.T) {
	t.Parallel()
	env := framework.New(t)
	provider := env.Provider("ops", deliverytest.AlwaysStatus(503))
	env.StartManager()
	env.Item("report", framework.Notify("ops"))
	calls := env.AwaitCalls(provider, 14)
	// A second is both the longest backoff and how long the breaker stays open.
	for n := 11; n < len(calls); n++ {
		if gap := calls[n].Time.Sub(calls[n-1].Time); gap < 900*time.Millisecond {
			t.Errorf("call %d came %s after the one before, although the breaker was open", n+1, gap)
		}
	}
	if ob := env.OutboxOf("report", "ops"); ob.Status.Phase != v1alpha1.OutboxPending {
		t.Errorf("the outbox is %s", ob.Status.Phase)
	}
	provider.SetScript(ok)
	env.Reported("report", v1alpha1.NotificationSent, 1)
}

func TestFault36_RetriesKeepTheirDistanceAndEndAtTheDeadline(t *testing.T) {
	t.Parallel()
	env := framework.New(t)
	const base = 500 * time.Millisecond
	provider := env.Provider("ops", deliverytest.AlwaysStatus(429), framework.Retry(5*time.Second, base, time.Second))
	env.StartManager()
	env.Item("report", framework.Notify("ops"))
	env.Reported("report", v1alpha1.NotificationDeadLettered, 1)
	calls := provider.Calls()
	for n := 1; n < len(calls); n++ {
		if gap := calls[n].Time.Sub(calls[n-1].Time); gap < base {
			t.Errorf("attempts %d and %d are %s apart, want at least %s", n, n+1, gap, base)
		}
	}
	if n := len(calls); n < 2 || n > 11 {
		t.Errorf("there were %d attempts in five seconds", n)
	}
	env.Stays("nothing more is sent", 3*time.Second, func() error {
		if n := len(provider.Calls()); n != len(calls) {
			return fmt.Errorf("there are %d calls", n)
		}
		return nil
	})
}

func TestFault56_ADeadLetterIsSeenOnTheWorkItem(t *testing.T) {
	t.Parallel()
	env := framework.New(t)
	provider := env.Provider("ops", deliverytest.AlwaysStatus(429), framework.Retry(2*time.Second, 500*time.Millisecond, time.Second))
	refusing := env.Provider("refusing", deliverytest.AlwaysStatus(400))
	env.StartManager()
	env.Item("report", framework.Notify("ops", "refusing"))
	item := env.Reported("report", v1alpha1.NotificationDeadLettered, 2)
	if c := framework.Condition(item, v1alpha1.ConditionNotified); c.Status != metav1.ConditionFalse || c.Reason != v1alpha1.ReasonNotAllSent {
		t.Errorf("the condition Notified is %+v", c)
	}
	for _, in := range item.Status.Notifications {
		want := map[string]string{"ops": v1alpha1.ReasonDeadlineExceeded, "refusing": "Refused"}[in.ProviderName]
		if in.Reason != want {
			t.Errorf("the intent for %s ended because of %q, want %q", in.ProviderName, in.Reason, want)
		}
		ob := env.GetOutbox(in.OutboxName)
		if got := framework.DeliveredReason(ob); got != want || ob.Status.FinishedTime == nil {
			t.Errorf("the outbox for %s ended because of %q at %v, want %q", in.ProviderName, got, ob.Status.FinishedTime, want)
		}
		if ev := env.EventuallyEvent(v1alpha1.KindNotificationOutbox, in.OutboxName, "DeadLettered"); ev.Type != "Warning" || ev.Related == nil || ev.Related.Name != "report" {
			t.Errorf("the Event is %s and about %+v too", ev.Type, ev.Related)
		}
	}
	if n := counter(t, "workitem_notifications_finished_total", map[string]string{"namespace": env.Namespace, "phase": "DeadLettered"}); n != 2 {
		t.Errorf("workitem_notifications_finished_total counts %v dead letters, want 2", n)
	}
	wantCalls(t, refusing, 1, 0)
	if provider.Effects() != 0 {
		t.Error("a refusal had an effect")
	}
}

func TestI11_TheGuaranteeIsWhatHoldsNow(t *testing.T) {
	t.Parallel()
	env := framework.New(t)
	window := func(d time.Duration) framework.ProviderOption {
		return func(p *v1alpha1.NotificationProvider) { p.Spec.Idempotency.Window.Duration = d }
	}
	for name, c := range map[string]struct {
		options []framework.ProviderOption
		script  deliverytest.Script
		want    v1alpha1.Guarantee
	}{
		"none":      {nil, ok, v1alpha1.GuaranteeAtLeastOnce},
		"keyed":     {[]framework.ProviderOption{framework.Keyed(v1alpha1.DialectIETF)}, ok, v1alpha1.GuaranteeEffectivelyOnce},
		"in-window": {[]framework.ProviderOption{framework.Keyed(v1alpha1.DialectIETF), window(time.Hour)}, failing(1, 500), v1alpha1.GuaranteeEffectivelyOnce},
		"forgotten": {[]framework.ProviderOption{framework.Keyed(v1alpha1.DialectIETF), window(2 * time.Second)}, failing(1, 500), v1alpha1.GuaranteeAtLeastOnce},
	} {
		env.Provider(name, c.script, c.options...)
		env.Item("item-"+name, framework.Notify(name))
		defer func() {
			item := env.Reported("item-"+name, v1alpha1.NotificationSent, 1)
			if ob := env.GetOutbox(item.Status.Notifications[0].OutboxName); ob.Status.Guarantee != c.want {
				t.Errorf("%s: the guarantee is %s, want %s", name, ob.Status.Guarantee, c.want)
			}
		}()
	}
	env.StartManager()
}

func TestFault41_OneBadConfigurationStopsNobodyElse(t *testing.T) {
	t.Parallel()
	env, neighbour := framework.New(t), framework.New(t)
	env.Create(signingSecret(env, "no key at all"))
	bad := env.Provider("ops", ok, framework.SignedWith("hook", "whsec"))
	good := env.Provider("pager", ok)
	far := neighbour.Provider("ops", ok)
	env.StartManager(framework.AlsoWatch(neighbour))
	env.Item("report", framework.Notify("ops", "pager"))
	neighbour.Item("report", framework.Notify("ops"))
	neighbour.Reported("report", v1alpha1.NotificationSent, 1)
	wantCalls(t, far, 1, 1)
	env.EventuallyOutbox(env.OutboxOf("report", "pager").Name, "Sent", framework.Soon, sent)
	wantCalls(t, good, 1, 1)
	env.EventuallyOutbox(env.OutboxOf("report", "ops").Name, "the bad one says why", framework.Soon, framework.Because(v1alpha1.ReasonSecretInvalid))
	env.Eventually("the provider says why", framework.Soon, func() error {
		if c := providerReady(env); c.Reason != v1alpha1.ReasonSecretInvalid || c.Status != metav1.ConditionFalse {
			return errUnexpected(c)
		}
		return nil
	})
	wantCalls(t, bad, 0, 0)
}
