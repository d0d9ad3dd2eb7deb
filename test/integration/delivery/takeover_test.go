// SPDX-FileCopyrightText: The WorkItem Operator Authors
// SPDX-License-Identifier: Apache-2.0

package delivery

import (
	"testing"
	"time"

	coordinationv1 "k8s.io/api/coordination/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/workitem-operator/workitem-operator/api/v1alpha1"
	"github.com/workitem-operator/workitem-operator/internal/options"
	"github.com/workitem-operator/workitem-operator/test/framework"
)

// orphan creates a Lease that looks like the claim of a process that died ten minutes ago.
func orphan(env *framework.Env, ob *v1alpha1.NotificationOutbox, owner types.UID, holder string) {
	env.T.Helper()
	seconds, transitions := int32(framework.MinLease/time.Second), int32(3)
	past := metav1.MicroTime{Time: time.Now().Add(-10 * time.Minute)}
	env.Create(&coordinationv1.Lease{
		ObjectMeta: metav1.ObjectMeta{
			Namespace: ob.Namespace, Name: ob.Name,
			Labels: map[string]string{v1alpha1.LabelClaim: v1alpha1.LabelClaimValue},
			OwnerReferences: []metav1.OwnerReference{{
				APIVersion: v1alpha1.GroupVersion.String(), Kind: v1alpha1.KindNotificationOutbox, Name: ob.Name, UID: owner,
			}},
		},
		Spec: coordinationv1.LeaseSpec{
			HolderIdentity: &holder, LeaseDurationSeconds: &seconds, AcquireTime: &past, RenewTime: &past, LeaseTransitions: &transitions,
		},
	})
}

func TestFault22_AnOrphanedClaimIsTakenOverOnceItWasWatched(t *testing.T) {
	t.Parallel()
	env := framework.New(t)
	provider := env.Endpoint("ops", "None", ok)
	ob := recorded(env)
	orphan(env, ob, ob.UID, "dead")
	start := time.Now()
	m := env.StartManager(framework.Run(options.Dispatcher))
	env.Reported("report", v1alpha1.NotificationSent, 1)
	if waited := provider.Calls()[0].Time.Sub(start); waited < framework.MinLease {
		t.Errorf("the claim was taken over after %s: its renewTime was believed", waited)
	}
	lease := env.GetLease(ob.Name)
	if *lease.Spec.LeaseTransitions != 4 || *lease.Spec.HolderIdentity != m.Identity {
		t.Errorf("the Lease is %+v, want leaseTransitions 4", lease.Spec)
	}
	ob = env.GetOutbox(ob.Name)
	if ob.Status.Attempts != 2 || ob.Status.History[0].Holder != "dead" || ob.Status.History[0].Outcome != v1alpha1.OutcomeAmbiguous {
		t.Errorf("the lost attempt is not in the history: %+v", ob.Status.History)
	}
	wantCalls(t, provider, 1, 1)
}

func TestI7_ExpiryIsObservedNotCompared(t *testing.T) {
	t.Parallel()
	env := framework.New(t)
	provider := env.Endpoint("ops", "None", ok)
	ob := recorded(env)
	orphan(env, ob, ob.UID, "alive")
	env.StartManager(framework.Run(options.Dispatcher))
	// Its clock is ten minutes behind, but it renews: each time the watching begins anew.
	tick := time.NewTicker(framework.MinLease / 2)
	defer tick.Stop()
	for range 5 {
		<-tick.C
		framework.Change(env, &coordinationv1.Lease{}, ob.Name, func(l *coordinationv1.Lease) {
			l.Spec.RenewTime = &metav1.MicroTime{Time: l.Spec.RenewTime.Add(time.Second)}
		})
		if n := len(provider.Calls()); n != 0 {
			t.Fatalf("a live claim was taken over: %d calls", n)
		}
	}
	renewed := time.Now()
	env.Reported("report", v1alpha1.NotificationSent, 1)
	if waited := provider.Calls()[0].Time.Sub(renewed); waited < framework.MinLease-500*time.Millisecond {
		t.Errorf("the claim was taken over %s after its last renewal", waited)
	}
	wantCalls(t, provider, 1, 1)
}

func TestI7_TheClaimOfAnotherLifeIsWaitedOut(t *testing.T) {
	t.Parallel()
	env := framework.New(t)
	provider := env.Endpoint("ops", "None", ok)
	ob := recorded(env)
	orphan(env, ob, "11111111-2222-3333-4444-555555555555", "former")
	start := time.Now()
	env.StartManager(framework.Run(options.Dispatcher))
	env.Reported("report", v1alpha1.NotificationSent, 1)
	if waited := provider.Calls()[0].Time.Sub(start); waited < framework.MinLease {
		t.Errorf("the Lease was not waited out: %s", waited)
	}
	lease := env.GetLease(ob.Name)
	if lease.OwnerReferences[0].UID != ob.UID || *lease.Spec.LeaseTransitions != 4 {
		t.Errorf("the Lease became %+v of %+v", lease.Spec, lease.OwnerReferences)
	}
	if ob = env.GetOutbox(ob.Name); ob.Status.Attempts != 1 {
		t.Errorf("%d attempts are counted, want 1: the other Lease says nothing of this outbox", ob.Status.Attempts)
	}
	wantCalls(t, provider, 1, 1)
}

func TestFault26_AnEmptyHolderIsNobody(t *testing.T) {
	t.Parallel()
	env := framework.New(t)
	provider := env.Endpoint("ops", "None", ok)
	ob := recorded(env)
	orphan(env, ob, ob.UID, "")
	start := time.Now()
	env.StartManager(framework.Run(options.Dispatcher))
	env.Reported("report", v1alpha1.NotificationSent, 1)
	if waited := provider.Calls()[0].Time.Sub(start); waited < framework.MinLease {
		t.Errorf("a Lease without a holder was taken for its own after %s", waited)
	}
	wantCalls(t, provider, 1, 1)
}

func TestI8_ACrashInTheCallCountsAsAnAttempt(t *testing.T) {
	t.Parallel()
	env := framework.New(t)
	gate := framework.NewGate()
	t.Cleanup(gate.Open)
	provider := env.Provider("ops", held(gate), framework.Keyed(v1alpha1.DialectIETF))
	var crashed []string
	// The first attempt is known from the Lease, the second from the outbox.
	for n := range 2 {
		m := env.StartManager()
		if n == 0 {
			env.Item("report", framework.Notify("ops"))
		}
		env.AwaitCalls(provider, n+1)
		crashed = append(crashed, m.Identity)
		m.Crash()
	}
	gate.Open()
	last := env.StartManager()
	item := env.Reported("report", v1alpha1.NotificationSent, 1)
	ob := env.GetOutbox(item.Status.Notifications[0].OutboxName)
	if ob.Status.Attempts != 3 || len(ob.Status.History) != 3 {
		t.Fatalf("%d attempts are counted, %d in the history, want 3", ob.Status.Attempts, len(ob.Status.History))
	}
	for n, holder := range crashed {
		a := ob.Status.History[n]
		if a.Number != int32(n+1) || a.Holder != holder || a.Outcome != v1alpha1.OutcomeAmbiguous || a.Reason != v1alpha1.ReasonHolderLost {
			t.Errorf("attempt %d is recorded as %+v", n+1, a)
		}
	}
	if ob.Status.History[2].Holder != last.Identity || *env.GetLease(ob.Name).Spec.LeaseTransitions != 2 {
		t.Errorf("the last attempt is %+v", ob.Status.History[2])
	}
	wantCalls(t, provider, 3, 1)
}

func TestW5_ACrashAtAnyWriteIsResumed(t *testing.T) {
	t.Parallel()
	type crash struct {
		match framework.Match
		after bool
		calls int
	}
	for name, c := range map[string]crash{
		"before the transition": {transition, false, 1},
		"before the outbox":     {createOutbox, false, 1},
		"after the outbox":      {createOutbox, true, 1},
		"before the claim":      {createLease, false, 1},
		"after the claim":       {createLease, true, 1},
		"before the record":     {recordOutbox, false, 2},
		"after the record":      {recordOutbox, true, 1},
		"before the report":     {commitItem.And(framework.BodyHas(`"phase":"Sent"`)), false, 1},
		"after the report":      {commitItem.And(framework.BodyHas(`"phase":"Sent"`)), true, 1},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			env := framework.New(t)
			provider := env.Provider("ops", ok, framework.Keyed(v1alpha1.DialectIETF))
			crashAndRepair(env, func(m *framework.Manager) *framework.Injection {
				if c.after {
					return m.CrashAfter(c.match)
				}
				return m.CrashBefore(c.match)
			})
			item := env.Reported("report", v1alpha1.NotificationSent, 1)
			wantCalls(t, provider, c.calls, 1)
			if item.Status.Occurrence != 1 || len(env.Outboxes()) != 1 {
				t.Errorf("there are %d occurrences and %d outboxes, want one of each", item.Status.Occurrence, len(env.Outboxes()))
			}
		})
	}
}

func TestW5_AStopEndsInTimeAlthoughTheAPIServerDoesNotAnswer(t *testing.T) {
	t.Parallel()
	env := framework.New(t)
	provider := env.Provider("ops", ok)
	m := env.StartManager()
	silence := framework.NewGate()
	t.Cleanup(silence.Open)
	claiming := m.Wire.Inject(createLease, 0, framework.HoldUntil(silence))
	env.Item("report", framework.Notify("ops"))
	env.Await("the claim", claiming.WaitHits(env.Within(framework.Soon), 1))
	m.Stop() // It fails the test if the manager ends with an error.
	wantCalls(t, provider, 0, 0)
}
