// SPDX-FileCopyrightText: The WorkItem Operator Authors
// SPDX-License-Identifier: Apache-2.0

package delivery

import (
	"fmt"
	"strings"
	"testing"
	"time"

	coordinationv1 "k8s.io/api/coordination/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/workitem-operator/workitem-operator/api/v1alpha1"
	"github.com/workitem-operator/workitem-operator/internal/delivery/deliverytest"
	"github.com/workitem-operator/workitem-operator/internal/options"
	"github.com/workitem-operator/workitem-operator/test/framework"
)

func TestFault04_AnOutageInWhichTheHolderDiesEndsInOneEffect(t *testing.T) {
	t.Parallel()
	env := framework.New(t)
	// During the outage the calls do have their effect, and say 500.
	provider := env.Provider("ops", deliverytest.Always(deliverytest.Answer{Status: 500, Effect: true}), framework.Keyed(v1alpha1.DialectIETF))
	managers := map[string]*framework.Manager{}
	for range 3 {
		m := env.StartManager()
		managers[m.Identity] = m
	}
	env.Item("report", framework.Notify("ops"))
	first := env.AwaitCalls(provider, 1)[0].Header.Get("User-Agent")
	managers[first].Crash()
	env.Reported("report", v1alpha1.NotificationSent, 1)
	calls := provider.Calls()
	sameRequest(t, calls)
	wantCalls(t, provider, len(calls), 1)
	for _, call := range calls[1:] {
		if call.Header.Get("User-Agent") == first {
			t.Error("the dead holder called again")
		}
	}
}

func TestI5_AStaleCacheOfLeasesTakesNoLiveClaim(t *testing.T) {
	t.Parallel()
	for name, before := range map[string]bool{"that shows the claim": false, "that does not show it": true} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			env := framework.New(t)
			gate := framework.NewGate()
			t.Cleanup(gate.Open)
			provider := env.Provider("ops", held(gate))
			stale := env.StartManager(framework.Run(options.Dispatcher))
			if before {
				stale.Wire.Freeze("leases")
			}
			stale.Wire.Inject(createLease, 1, framework.HoldUntil(gate)) // It must not be the first.
			holder := env.StartManager()
			env.Item("report", framework.Notify("ops"))
			env.AwaitCalls(provider, 1)
			ob := env.OutboxOf("report", "ops")
			if !before {
				env.Eventually("the cache shows the Lease", framework.Soon, func() error {
					return stale.Client().Get(t.Context(), client.ObjectKeyFromObject(ob), &coordinationv1.Lease{})
				})
				stale.Wire.Freeze("leases")
			}
			env.Await("renewals", holder.Wire.WaitFor(env.Within(framework.Later), renewalsIn(4), succeeded(updateLease)))
			if n := len(stale.Wire.Requests(succeeded(updateLease))); n != 0 {
				t.Errorf("a live claim was taken over %d times", n)
			}
			gate.Open()
			env.Reported("report", v1alpha1.NotificationSent, 1)
			wantCalls(t, provider, 1, 1)
			wantNoComplaint(t, env, stale, holder)
		})
	}
}

// beginning is the write that counts a further attempt.
var beginning = recordOutbox.And(framework.BodyHas(`"reason":"AttemptRunning"`))

func TestI8_AnAttemptWhoseBeginningIsInDoubtIsNotMade(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		crash bool
		fault framework.Fault
	}{
		"the answer is lost":        {false, framework.LoseAnswer()},
		"the answer becomes a 500":  {false, framework.AnswerAfterwards(500)},
		"the answer becomes a 409":  {false, framework.AnswerAfterwards(409)},
		"it never gets there":       {false, framework.Unreachable()},
		"the process dies after it": {true, framework.Fault{}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			env := framework.New(t)
			provider := env.Provider("ops", failing(1, 503), framework.Keyed(v1alpha1.DialectIETF))
			m := env.StartManager()
			var hit *framework.Injection
			if c.crash {
				hit = m.CrashAfter(beginning)
			} else {
				hit = m.Wire.Inject(beginning, 1, c.fault)
			}
			env.Item("report", framework.Notify("ops"))
			env.Await("the fault", hit.WaitHits(env.Within(framework.Later), 1))
			if c.crash {
				env.StartManager()
			}
			item := env.Reported("report", v1alpha1.NotificationSent, 1)
			wantCalls(t, provider, 2, 1)
			// One that was counted and not made is no harm; one that was made and not counted is.
			if ob := env.GetOutbox(item.Status.Notifications[0].OutboxName); ob.Status.Attempts < 2 || ob.Status.Attempts > 3 {
				t.Errorf("%d attempts are counted for 2 calls", ob.Status.Attempts)
			}
		})
	}
}

func TestI9_ADueTimeThatPassesDuringAPartitionIsNotMissed(t *testing.T) {
	t.Parallel()
	env := framework.New(t)
	provider := env.Provider("ops", ok)
	m := env.StartManager()
	item := env.Item("report", framework.DueIn(3*time.Second), framework.Notify("ops"))
	env.EventuallyItem("report", "Open", framework.Soon, func(it *v1alpha1.WorkItem) bool { return it.Status.Phase == v1alpha1.PhaseOpen })
	heal := m.Wire.Part()
	env.Stays("nothing happens", time.Until(item.Spec.DueTime.Add(2*time.Second)), func() error {
		if n := len(provider.Calls()); n != 0 {
			return fmt.Errorf("there are %d calls", n)
		}
		return nil
	})
	heal()
	env.Reported("report", v1alpha1.NotificationSent, 1)
	wantCalls(t, provider, 1, 1)
}

func TestI10_WhatIsNotReportedIsNotCollected(t *testing.T) {
	t.Parallel()
	env := framework.New(t)
	env.Create(env.NewProvider("ops", func(p *v1alpha1.NotificationProvider) { p.Spec.TTLAfterFinished.Duration = 10 * time.Minute }))
	provider := env.Endpoint("ops", deliverytest.None, ok)
	commits := env.StartManager(framework.Run(options.WorkItem))
	sends := env.StartManager(framework.Run(options.Dispatcher))
	// The one that reports is away for longer than the outbox is kept.
	away := commits.Wire.Inject(commitItem.And(framework.BodyHas(`"phase":"Sent"`)), 0, framework.FailWith(503))
	env.Item("report", framework.Notify("ops"))
	ob := env.OutboxOf("report", "ops")
	ob = env.EventuallyOutbox(ob.Name, "Sent", framework.Soon, sent)
	ob.Status.FinishedTime = &metav1.Time{Time: time.Now().Add(-time.Hour)}
	if err := env.Client.Status().Update(t.Context(), ob); err != nil {
		t.Fatal(err)
	}
	env.Stays("the outbox stays", 4*time.Second, func() error {
		if n := len(sends.Wire.Requests(framework.Is("delete", "notificationoutboxes"))); n != 0 {
			return fmt.Errorf("it was deleted %d times", n)
		}
		return nil
	})
	away.Remove()
	env.Reported("report", v1alpha1.NotificationSent, 1)
	env.Await("the collection", sends.Wire.WaitFor(env.Within(framework.Later), 1, succeeded(framework.Is("delete", "notificationoutboxes"))))
	wantCalls(t, provider, 1, 1)
	if n := len(commits.Wire.Requests(succeeded(createOutbox))); n != 1 {
		t.Errorf("the outbox was made %d times", n)
	}
}

func TestProvider_AWrongAddressParksItUntilItsSpecChanges(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		status int
		reason string
	}{"404": {404, "EndpointNotFound"}, "410": {410, v1alpha1.ReasonEndpointGone}} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			env := framework.New(t)
			wrong := env.Provider("ops", deliverytest.AlwaysStatus(c.status), framework.Retry(24*time.Hour, time.Second, time.Hour))
			right := env.Endpoint("right", deliverytest.None, ok)
			env.StartManager()
			env.Item("first", framework.Notify("ops"))
			env.Eventually("the provider is not Ready", framework.Soon, func() error {
				if got := providerReady(env); got.Reason != c.reason || got.Status != metav1.ConditionFalse {
					return errUnexpected(got)
				}
				return nil
			})
			env.Item("second", framework.Notify("ops"))
			env.EventuallyOutbox(env.OutboxOf("second", "ops").Name, "it waits", framework.Soon, framework.Because(v1alpha1.ReasonProviderNotReady))
			wantCalls(t, wrong, 1, 0)
			env.ChangeProvider("ops", func(p *v1alpha1.NotificationProvider) { p.Spec.Webhook.URL = env.Gateway.URL("/right") })
			env.Reported("first", v1alpha1.NotificationSent, 1)
			env.Reported("second", v1alpha1.NotificationSent, 1)
			wantCalls(t, wrong, 1, 0)
			wantCalls(t, right, 2, 2)
		})
	}
}

func TestI3_TheLongestNamesFit(t *testing.T) {
	t.Parallel()
	env := framework.New(t)
	long := strings.Repeat("p", 63)
	provider := env.Provider(long, ok)
	m := env.StartManager()
	// 253 characters, and a dot where the name of the outbox is cut.
	names := []string{strings.Repeat("a", 253), strings.Repeat("a", 225) + "." + strings.Repeat("b", 27)}
	for _, name := range names {
		env.Item(name, framework.Notify(long), framework.Escalate(0, long))
	}
	for _, name := range names {
		item := env.Reported(name, v1alpha1.NotificationSent, 2)
		for _, in := range item.Status.Notifications {
			env.EventuallyEvent(v1alpha1.KindNotificationOutbox, in.OutboxName, "Sent")
		}
		env.EventuallyEvent(v1alpha1.KindWorkItem, name, "Overdue")
	}
	wantCalls(t, provider, 4, 4)
	wantNoComplaint(t, env, m)
}
