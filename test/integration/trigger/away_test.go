// SPDX-FileCopyrightText: The WorkItem Operator Authors
// SPDX-License-Identifier: Apache-2.0

package trigger

import (
	"context"
	"fmt"
	"net/http"
	"testing"

	"github.com/workitem-operator/workitem-operator/api/v1alpha1"
	"github.com/workitem-operator/workitem-operator/internal/delivery/deliverytest"
	"github.com/workitem-operator/workitem-operator/test/framework"
)

// errStatus is an answer that is not the one that is waited for.
type errStatus int

func (e errStatus) Error() string { return fmt.Sprintf("the answer is %d", int(e)) }

// The caller goes away while the pass has committed some items and holds another.
func TestACallerThatGoesAwayLosesNothing(t *testing.T) {
	t.Parallel()
	const items = 20
	env := framework.New(t)
	provider := env.Provider("ops", nil)
	m, clk := asleep(env)
	for n := range items {
		sleeping(env, fmt.Sprintf("report-%d", n), "ops")
	}
	token := callerWithRight(env)
	url := m.TriggerURL()
	gate := framework.NewGate()
	// The pass has fewer workers than there are items, and each of them ends up here.
	held := m.Wire.Inject(create, items, framework.HoldUntil(gate))
	clk.move()

	ctx, goAway := context.WithCancel(t.Context())
	gone := make(chan error, 1)
	go func() {
		_, err := asks(ctx, url, token)
		gone <- err
	}()
	env.Await("a commit", held.WaitHits(env.Within(framework.Soon), 1))
	goAway()
	if err := <-gone; err == nil {
		t.Fatal("the caller has got an answer: the test proves nothing")
	}
	gate.Open()
	held.Remove()

	// The next pass finishes it: what was committed is told by the schedule, the rest is
	// counted by this one.
	got := passes(env, url, token)
	if got.ProcessedCount >= items {
		t.Errorf("the next pass processed %d items, as if the first had not committed any", got.ProcessedCount)
	}
	for n := range items {
		sent(env, fmt.Sprintf("report-%d", n))
	}
	wantCalls(t, provider, items)
	for _, item := range env.Items() {
		if item.Status.Occurrence != 1 {
			t.Errorf("%s is overdue for the %d. time, want the first", item.Name, item.Status.Occurrence)
		}
	}
	if n := len(env.Outboxes()); n != items {
		t.Errorf("there are %d outboxes, want %d", n, items)
	}
}

// A stop of the manager during a pass is answered, and the next replica goes on.
func TestAStopInAPassIsAnswered503(t *testing.T) {
	t.Parallel()
	env := framework.New(t)
	provider := env.Provider("ops", deliverytest.Always(deliverytest.Answer{}))
	m, clk := asleep(env)
	sleeping(env, "report", "ops")
	token := callerWithRight(env)
	url := m.TriggerURL()
	gate := framework.NewGate()
	held := m.Wire.Inject(commit, 1, framework.HoldUntil(gate))
	clk.move()
	answered := make(chan answer, 1)
	failed := make(chan error, 1)
	go func() {
		got, err := asks(env.T.Context(), url, token)
		if err != nil {
			failed <- err
			return
		}
		answered <- got
	}()
	env.Await("the commit", held.WaitHits(env.Within(framework.Soon), 1))
	m.BeginStop()
	select {
	case got := <-answered:
		if got.status != http.StatusServiceUnavailable {
			t.Errorf("the pass is answered %d: %s", got.status, got.body)
		}
		wantProblem(t, got, "nothing is lost")
	case err := <-failed:
		t.Error("the pass is not answered:", err)
	}
	gate.Open()
	m.Stop()

	next := newMovable()
	next.move()
	env.StartManager(framework.WithClock(next))
	sent(env, "report")
	wantCalls(t, provider, 1)
	if got := env.GetItem("report").Status.Phase; got != v1alpha1.PhaseOverdue {
		t.Errorf("the item is %s", got)
	}
}
