// SPDX-FileCopyrightText: The WorkItem Operator Authors
// SPDX-License-Identifier: Apache-2.0

package delivery

import (
	"fmt"
	"slices"
	"syscall"
	"testing"
	"time"

	coordinationv1 "k8s.io/api/coordination/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/workitem-operator/workitem-operator/api/v1alpha1"
	"github.com/workitem-operator/workitem-operator/internal/delivery/deliverytest"
	"github.com/workitem-operator/workitem-operator/test/framework"
)

// The tests of this file run managers as processes, one test after the other: they
// are about what only a process can do.

func TestFault03_TwoProcessesShareTwoHundredItems(t *testing.T) {
	env := framework.New(t)
	const items = 200
	// A call takes a moment, so that one process alone cannot have them all.
	gate := framework.NewGate()
	t.Cleanup(gate.Open)
	provider := env.Provider("ops", held(gate), framework.MaxInFlight(10), func(p *v1alpha1.NotificationProvider) {
		p.Spec.LeaseDuration.Duration = time.Minute
	})
	processes := []*framework.Process{env.StartProcess(), env.StartProcess()}
	due := time.Now().Add(15 * time.Second)
	for n := range items {
		env.Item(fmt.Sprintf("report-%d", n), framework.Due(due), framework.Notify("ops"))
	}
	env.AwaitCalls(provider, 20)
	gate.Open()
	for n := range items {
		env.Reported(fmt.Sprintf("report-%d", n), v1alpha1.NotificationSent, 1)
	}
	wantCalls(t, provider, items, items)
	if n := len(provider.EffectsByKey()); n != items {
		t.Errorf("there were %d keys, want %d", n, items)
	}
	holders := map[string]int{}
	var leases coordinationv1.LeaseList
	if err := env.Client.List(t.Context(), &leases, client.InNamespace(env.Namespace)); err != nil {
		t.Fatal(err)
	}
	for _, lease := range leases.Items {
		holders[*lease.Spec.HolderIdentity]++
	}
	for _, p := range processes {
		if holders[p.Identity()] == 0 {
			t.Errorf("the claims are spread as %v, want some for each of %s and %s", holders, processes[0].Identity(), processes[1].Identity())
		}
		if lines := p.ErrorLog(); len(lines) != 0 {
			t.Errorf("errors were logged: %s", lines[0])
		}
	}
	for _, item := range env.Items() {
		if item.Status.Occurrence != 1 || len(item.Status.Notifications) != 1 {
			t.Errorf("%s has %d occurrences and %d intents", item.Name, item.Status.Occurrence, len(item.Status.Notifications))
		}
	}
	wantNoComplaint(t, env)
}

// inFlight starts a process and returns when its call is under way.
func inFlight(t *testing.T, env *framework.Env, flags ...string) (*framework.Process, *deliverytest.Endpoint, *framework.Gate, *v1alpha1.NotificationOutbox) {
	t.Helper()
	gate := framework.NewGate()
	t.Cleanup(gate.Open)
	provider := env.Provider("ops", held(gate), framework.Keyed(v1alpha1.DialectIETF))
	p := env.StartProcess(flags...)
	env.Item("report", framework.Notify("ops"))
	env.AwaitCalls(provider, 1)
	return p, provider, gate, env.OutboxOf("report", "ops")
}

func TestFault31_SIGTERMInACallLeavesTheClaimAndIsAmbiguous(t *testing.T) {
	env := framework.New(t)
	p, provider, gate, ob := inFlight(t, env, "--grace-period=1s")
	p.Signal(syscall.SIGTERM)
	if err := p.Wait(framework.Soon); err != nil {
		t.Errorf("the process ended with %v, want 0", err)
	}
	ob = env.GetOutbox(ob.Name)
	if a := ob.Status.LastAttempt; a == nil || a.Outcome != v1alpha1.OutcomeAmbiguous || a.Reason != "Cancelled" || ob.Status.Attempts != 1 {
		t.Fatalf("the attempt is recorded as %+v", ob.Status)
	}
	lease := env.GetLease(ob.Name)
	if *lease.Spec.HolderIdentity != p.Identity() || *lease.Spec.LeaseDurationSeconds != int32(framework.MinLease/time.Second) {
		t.Errorf("the claim was given up: %+v", lease.Spec)
	}
	if !provider.Calls()[0].ClientGone {
		t.Error("the call was not cancelled")
	}
	gate.Open()
	env.StartManager()
	env.Reported("report", v1alpha1.NotificationSent, 1)
	calls := provider.Calls()
	if waited := calls[1].Time.Sub(lease.Spec.RenewTime.Time); waited < framework.MinLease {
		t.Errorf("the next call came %s after the last renewal", waited)
	}
	sameRequest(t, calls)
	wantCalls(t, provider, 2, 1)
	if lines := p.ErrorLog(); len(lines) != 0 {
		t.Errorf("errors were logged: %v", lines)
	}
}

func TestW5_SIGTERMLetsACallEndWithinTheGracePeriod(t *testing.T) {
	env := framework.New(t)
	p, provider, gate, ob := inFlight(t, env, "--grace-period=1m")
	p.Signal(syscall.SIGTERM)
	env.Item("another", framework.Notify("ops"))
	renewed := env.GetLease(ob.Name).ResourceVersion
	env.Eventually("the claim is renewed while the process stops", framework.Soon, func() error {
		if now := env.GetLease(ob.Name).ResourceVersion; now == renewed {
			return fmt.Errorf("it is still %s", now)
		}
		return nil
	})
	gate.Open()
	if err := p.Wait(framework.Soon); err != nil {
		t.Errorf("the process ended with %v, want 0", err)
	}
	if ob = env.GetOutbox(ob.Name); ob.Status.Phase != v1alpha1.OutboxSent || ob.Status.Attempts != 1 {
		t.Errorf("the outbox is %+v", ob.Status)
	}
	wantCalls(t, provider, 1, 1) // Nothing new was begun.
	env.StartManager()
	env.Reported("report", v1alpha1.NotificationSent, 1)
	env.Reported("another", v1alpha1.NotificationSent, 1)
	wantCalls(t, provider, 2, 2)
}

func TestFault28_ARestartOnTheSameHostIsAnotherProcess(t *testing.T) {
	env := framework.New(t)
	killed, provider, gate, ob := inFlight(t, env)
	killed.Kill()
	renewed := env.GetLease(ob.Name).Spec.RenewTime.Time
	gate.Open()
	again := env.StartProcess()
	env.Reported("report", v1alpha1.NotificationSent, 1)
	calls := provider.Calls()
	if waited := calls[1].Time.Sub(renewed); waited < framework.MinLease {
		t.Errorf("the claim was taken for its own after %s", waited)
	}
	ob = env.GetOutbox(ob.Name)
	holders := []string{ob.Status.History[0].Holder, ob.Status.History[1].Holder}
	if ob.Status.Attempts != 2 || !slices.Equal(holders, []string{killed.Identity(), again.Identity()}) || holders[0] == holders[1] {
		t.Errorf("the attempts are by %v", holders)
	}
	if n := *env.GetLease(ob.Name).Spec.LeaseTransitions; n != 1 {
		t.Errorf("leaseTransitions is %d, want 1", n)
	}
	sameRequest(t, calls)
	wantCalls(t, provider, 2, 1)
}

func TestFault26_AStoppedProcessGoesOnTooLate(t *testing.T) {
	env := framework.New(t)
	stopped, provider, gate, ob := inFlight(t, env)
	stopped.Signal(syscall.SIGSTOP)
	m := env.StartManager()
	env.AwaitCalls(provider, 2)
	gate.Open() // Both are answered; one of them cannot hear it.
	env.Reported("report", v1alpha1.NotificationSent, 1)
	lease, before := env.GetLease(ob.Name), env.GetOutbox(ob.Name)
	stopped.Signal(syscall.SIGCONT)
	env.EventuallyEvent(v1alpha1.KindNotificationOutbox, ob.Name, "LateResult")
	if now := env.GetLease(ob.Name); now.ResourceVersion != lease.ResourceVersion {
		t.Errorf("the stopped process changed the Lease: %+v", now.Spec)
	}
	if now := env.GetOutbox(ob.Name); now.ResourceVersion != before.ResourceVersion || now.Status.LastAttempt.Holder != m.Identity {
		t.Errorf("the stopped process changed the outbox: %+v", now.Status)
	}
	if n := provider.Effects(); n != 1 {
		t.Errorf("there were %d effects, want 1", n)
	}
}
