// SPDX-FileCopyrightText: The WorkItem Operator Authors
// SPDX-License-Identifier: Apache-2.0

package trigger

import (
	"fmt"
	"testing"

	"github.com/workitem-operator/workitem-operator/internal/options"
	"github.com/workitem-operator/workitem-operator/test/framework"
)

// meetings is how often the two entrances meet at a commit.
const meetings = 10

// The schedule of one replica and the trigger of another have both read the item as Open,
// and send their commits at the same instant.
func TestI1_TheTriggerAndTheScheduleMeetAtTheCommit(t *testing.T) {
	t.Parallel()
	for n := range meetings {
		t.Run(fmt.Sprint(n+1), func(t *testing.T) {
			t.Parallel()
			env := framework.New(t)
			provider := env.Provider("ops", nil)
			barrier := framework.NewBarrier(2)
			meet := framework.OnWire(func(w *framework.Wire) { w.Inject(commit, 1, framework.Meet(barrier)) })
			triggered, itsClock := asleep(env, meet)
			sleeping(env, "report", "ops")
			token := callerWithRight(env)

			clk := newMovable()
			clk.move()
			scheduled := env.StartManager(meet, framework.WithClock(clk))
			itsClock.move()
			got := passes(env, triggered.TriggerURL(), token)
			sent(env, "report")

			if !barrier.Passed() {
				t.Fatal("the two entrances did not meet: the test proves nothing")
			}
			committed, lost := 0, 0
			for _, m := range []*framework.Manager{triggered, scheduled} {
				for _, r := range m.Wire.Requests(commit) {
					switch {
					case r.Code == 409:
						lost++
					case r.Code == 200 && recordsIntents(&r):
						committed++
					}
				}
			}
			if committed != 1 || lost == 0 {
				t.Errorf("%d transitions were committed and %d refused, want 1 and at least 1", committed, lost)
			}
			if won := len(triggered.Wire.Requests(func(r *framework.Request) bool { return commit(r) && r.Code == 200 && recordsIntents(r) })); got.ProcessedCount != won || got.NotificationCount != won {
				t.Errorf("the trigger won %d races and says %s", won, got.body)
			}
			if outboxes := len(env.Outboxes()); outboxes != 1 {
				t.Errorf("there are %d outboxes, want 1", outboxes)
			}
			wantCalls(t, provider, 1)
		})
	}
}

// recordsIntents tells a transition from a later report of the same item.
func recordsIntents(r *framework.Request) bool { return framework.BodyHas(`"phase":"Recorded"`)(r) }

func TestI10_ASecondTriggerAnswersZeroAndZero(t *testing.T) {
	t.Parallel()
	env := framework.New(t)
	provider := env.Provider("ops", nil)
	m, clk := asleep(env)
	sleeping(env, "report", "ops")
	token := callerWithRight(env)
	clk.move()
	url := m.TriggerURL()

	wantResult(t, passes(env, url+"?wait=1m", token), 1, 1)
	sent(env, "report")
	mark := m.Wire.Mark()
	wantResult(t, passes(env, url, token), 0, 0)
	if writes := m.Wire.Since(mark, framework.AnyWrite); len(reviewsAside(writes)) != 0 {
		t.Errorf("the second pass wrote %v", writes)
	}
	wantCalls(t, provider, 1)
}

// reviewsAside are requests without those that ask who a caller is and what it may do.
func reviewsAside(requests []framework.Request) (out []framework.Request) {
	for _, r := range requests {
		if r.Resource != "tokenreviews" && r.Resource != "subjectaccessreviews" {
			out = append(out, r)
		}
	}
	return out
}

// A replica that does not lead, or has no dispatcher, makes passes too.
func TestAReplicaWithoutADispatcherMakesPasses(t *testing.T) {
	t.Parallel()
	env := framework.New(t)
	provider := env.Provider("ops", nil)
	m, clk := asleep(env, framework.Run(options.WorkItem))
	sleeping(env, "report", "ops")
	token := callerWithRight(env)
	clk.move()
	wantResult(t, passes(env, m.TriggerURL(), token), 1, 1)
	env.StartManager(framework.Run(options.Dispatcher))
	sent(env, "report")
	wantCalls(t, provider, 1)
}
