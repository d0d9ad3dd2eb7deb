// SPDX-FileCopyrightText: The WorkItem Operator Authors
// SPDX-License-Identifier: Apache-2.0

package delivery

import (
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	crmetrics "sigs.k8s.io/controller-runtime/pkg/metrics"

	"github.com/workitem-operator/workitem-operator/api/v1alpha1"
	"github.com/workitem-operator/workitem-operator/internal/options"
	"github.com/workitem-operator/workitem-operator/test/framework"
)

// counter adds up the values of a counter, over its labels that have these values.
func counter(t *testing.T, name string, labels map[string]string) float64 {
	t.Helper()
	var gatherer prometheus.Gatherer = crmetrics.Registry
	families, err := gatherer.Gather()
	if err != nil {
		t.Fatal("reading metrics:", err)
	}
	total := 0.0
	for _, family := range families {
		if family.GetName() != name {
			continue
		}
		for _, metric := range family.GetMetric() {
			matching := 0
			for _, label := range metric.GetLabel() {
				if labels[label.GetName()] == label.GetValue() {
					matching++
				}
			}
			if matching == len(labels) {
				total += metric.GetCounter().GetValue()
			}
		}
	}
	return total
}

// race starts two managers that commit the transition of one item at the same
// instant.
func race(t *testing.T, env *framework.Env) (a, b *framework.Manager) {
	t.Helper()
	barrier := framework.NewBarrier(2)
	meet := framework.OnWire(func(w *framework.Wire) { w.Inject(transition, 1, framework.Meet(barrier)) })
	a, b = env.StartManager(meet), env.StartManager(meet)
	env.Item("report", framework.DueIn(time.Second), framework.Notify("ops"))
	env.Reported("report", v1alpha1.NotificationSent, 1)
	if !barrier.Passed() {
		t.Fatal("the two managers did not meet at the commit: the test proves nothing")
	}
	return a, b
}

// Not parallel: it reads counters that all managers of this process share.
func TestI1_OneTransitionHoweverManyEntrantsRace(t *testing.T) {
	env := framework.New(t)
	provider := env.Provider("ops", ok)
	conflicts := map[string]string{"kind": v1alpha1.KindWorkItem}
	failures := map[string]string{"controller": "workitem"}
	lost, failed := counter(t, "workitem_transition_conflicts_total", conflicts), counter(t, "controller_runtime_reconcile_errors_total", failures)

	a, b := race(t, env)

	won := len(a.Wire.Requests(succeeded(transition.And(framework.BodyHas(`"phase":"Recorded"`))))) +
		len(b.Wire.Requests(succeeded(transition.And(framework.BodyHas(`"phase":"Recorded"`)))))
	if won != 1 {
		t.Errorf("%d transitions were committed, want 1", won)
	}
	if refused := len(a.Wire.Requests(conflicted(transition))) + len(b.Wire.Requests(conflicted(transition))); refused == 0 {
		t.Error("nobody's commit conflicted")
	}
	if n := counter(t, "workitem_transition_conflicts_total", conflicts) - lost; n < 1 {
		t.Errorf("workitem_transition_conflicts_total grew by %v, want at least 1", n)
	}
	if n := counter(t, "controller_runtime_reconcile_errors_total", failures) - failed; n != 0 {
		t.Errorf("%v reconciles ended with an error, want none", n)
	}
	wantCalls(t, provider, 1, 1)
	if n := len(env.Outboxes()); n != 1 {
		t.Errorf("there are %d outboxes, want 1", n)
	}
	if item := env.GetItem("report"); item.Status.Occurrence != 1 {
		t.Errorf("the item is overdue for the %d. time, want the first", item.Status.Occurrence)
	}
}

func TestFault07_AConflictIsNoFailure(t *testing.T) {
	t.Parallel()
	env := framework.New(t)
	env.Provider("ops", ok)
	a, b := race(t, env)
	wantNoComplaint(t, env, a, b)
	if n := len(eventsOn(env, v1alpha1.KindWorkItem, "report", "Overdue")); n != 1 {
		t.Errorf("the transition was told by %d Events, want 1", n)
	}
}

func TestI2_TheTransitionCommitsWithItsIntents(t *testing.T) {
	t.Parallel()
	env := framework.New(t)
	env.Provider("ops", ok)
	env.Provider("pager", ok)
	m := env.StartManager(framework.Run(options.WorkItem))
	env.Item("report", framework.Notify("ops", "pager"), framework.Escalate(0, "pager"))
	env.Await("the outboxes", m.Wire.WaitFor(env.Within(framework.Soon), 3, succeeded(createOutbox)))

	requests := m.Wire.Requests(succeeded(framework.AnyWrite))
	var first v1alpha1.WorkItem
	if err := requests[0].Decode(&first); err != nil {
		t.Fatal(err)
	}
	if requests[0].Resource != "workitems/status" || first.Status.Phase != v1alpha1.PhaseOverdue || len(first.Status.Notifications) != 3 {
		t.Errorf("the first write is %s with status %+v, want the transition with its 3 intents", &requests[0], first.Status)
	}
	committed := map[string]string{}
	for _, in := range first.Status.Notifications {
		committed[in.OutboxName] = in.IdempotencyKey
	}
	for _, ob := range env.Outboxes() {
		if committed[ob.Name] != ob.Spec.IdempotencyKey {
			t.Errorf("outbox %s has key %s, but the intent has %q", ob.Name, ob.Spec.IdempotencyKey, committed[ob.Name])
		}
	}
}

// crashAndRepair has one manager crash and another one take its place.
func crashAndRepair(env *framework.Env, crash func(m *framework.Manager) *framework.Injection) {
	env.T.Helper()
	first := env.StartManager()
	crashed := crash(first)
	env.Item("report", framework.Notify("ops"))
	env.Await("the crash", crashed.WaitHits(env.Within(framework.Soon), 1))
	first.Stop()
	env.StartManager()
}

func TestW2_ACrashBetweenTransitionAndOutboxIsRepaired(t *testing.T) {
	t.Parallel()
	env := framework.New(t)
	provider := env.Provider("ops", ok)
	crashAndRepair(env, func(m *framework.Manager) *framework.Injection { return m.CrashBefore(createOutbox) })
	env.Reported("report", v1alpha1.NotificationSent, 1)
	wantCalls(t, provider, 1, 1)
	if n := len(env.Outboxes()); n != 1 {
		t.Errorf("there are %d outboxes, want 1", n)
	}
}

func TestW2_ACrashAfterTheTransitionWasWrittenLosesNothing(t *testing.T) {
	t.Parallel()
	env := framework.New(t)
	provider := env.Provider("ops", ok)
	crashAndRepair(env, func(m *framework.Manager) *framework.Injection { return m.CrashAfter(transition) })
	item := env.Reported("report", v1alpha1.NotificationSent, 1)
	wantCalls(t, provider, 1, 1)
	if item.Status.Occurrence != 1 {
		t.Errorf("the repair began occurrence %d", item.Status.Occurrence)
	}
}

func TestFault13_ARestartBeforeTheOutboxExistsLosesNothing(t *testing.T) {
	t.Parallel()
	env := framework.New(t)
	provider := env.Provider("ops", ok)
	first := env.StartManager()
	crashed := first.CrashBefore(createOutbox)
	env.Item("report", framework.Notify("ops"))
	env.Await("the crash", crashed.WaitHits(env.Within(framework.Soon), 1))
	if n := len(env.Outboxes()); n != 0 {
		t.Fatalf("there are %d outboxes before the restart, want none", n)
	}
	second := env.StartManager()
	env.Reported("report", v1alpha1.NotificationSent, 1)
	if n := len(second.Wire.Requests(createOutbox)); n != 1 {
		t.Errorf("the repair took %d creates, want 1", n)
	}
	if n := len(second.Wire.Requests(succeeded(transition.And(framework.BodyHas(`"phase":"Recorded"`))))); n != 0 {
		t.Errorf("the repair committed %d transitions, want none", n)
	}
	wantCalls(t, provider, 1, 1)
}
