// SPDX-FileCopyrightText: The WorkItem Operator Authors
// SPDX-License-Identifier: Apache-2.0

package delivery

import (
	"testing"

	"github.com/workitem-operator/workitem-operator/api/v1alpha1"
	"github.com/workitem-operator/workitem-operator/test/framework"
)

func TestI9_ALostAnswerToAnyWriteNeitherLosesNorRepeats(t *testing.T) {
	t.Parallel()
	writes := map[string]framework.Match{
		"transition": transition,
		"outbox":     createOutbox,
		"claim":      createLease,
		"record":     recordOutbox,
		"report":     commitItem.And(framework.BodyHas(`"phase":"Sent"`)),
	}
	faults := map[string]framework.Fault{
		"is lost": framework.LoseAnswer(), "becomes a 500": framework.AnswerAfterwards(500), "becomes a 409": framework.AnswerAfterwards(409),
	}
	for write, match := range writes {
		for how, fault := range faults {
			t.Run(write+" "+how, func(t *testing.T) {
				t.Parallel()
				env := framework.New(t)
				provider := env.Provider("ops", ok)
				m := env.StartManager()
				hit := m.Wire.Inject(match, 1, fault)
				env.Item("report", framework.Notify("ops"))
				item := env.Reported("report", v1alpha1.NotificationSent, 1)
				if hit.Hits() != 1 {
					t.Fatalf("the fault was met %d times: the test proves nothing", hit.Hits())
				}
				wantCalls(t, provider, 1, 1)
				ob := env.GetOutbox(item.Status.Notifications[0].OutboxName)
				if item.Status.Occurrence != 1 || len(env.Outboxes()) != 1 || ob.Status.Attempts != 1 {
					t.Errorf("there are %d occurrences, %d outboxes and %d attempts, want one of each", item.Status.Occurrence, len(env.Outboxes()), ob.Status.Attempts)
				}
				if *env.GetLease(ob.Name).Spec.LeaseTransitions != 0 {
					t.Error("the process took its own claim for another's")
				}
			})
		}
	}
}

func TestI9_AnAPIServerThatIsAwayDelaysAndLosesNothing(t *testing.T) {
	t.Parallel()
	env := framework.New(t)
	provider := env.Provider("ops", ok, framework.Keyed(v1alpha1.DialectIETF))
	m := env.StartManager()
	away := m.Wire.Inject(framework.AnyWrite, 0, framework.FailWith(503))
	env.Item("report", framework.Notify("ops"))
	for n, step := range []framework.Match{transition, createOutbox, createLease, recordOutbox} {
		refused := m.Wire.Inject(step, 2, framework.FailWith(503))
		if n == 0 {
			away.Remove()
		}
		env.Await("two refusals", refused.WaitHits(env.Within(framework.Later), 2))
	}
	env.Reported("report", v1alpha1.NotificationSent, 1)
	wantCalls(t, provider, 1, 1)
}
