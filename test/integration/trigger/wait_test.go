// SPDX-FileCopyrightText: The WorkItem Operator Authors
// SPDX-License-Identifier: Apache-2.0

package trigger

import (
	"testing"

	"github.com/workitem-operator/workitem-operator/internal/delivery/deliverytest"
	"github.com/workitem-operator/workitem-operator/test/framework"
)

func TestWaitTellsWhatFailed(t *testing.T) {
	t.Parallel()
	env := framework.New(t)
	gate := framework.NewGate()
	env.Provider("good", nil)
	env.Provider("refusing", deliverytest.Always(deliverytest.Answer{Status: 400}))
	env.Provider("slow", deliverytest.Always(deliverytest.Answer{Hold: gate.Opened()}))
	m, clk := asleep(env)
	for name, provider := range map[string]string{"a-good": "good", "b-refused": "refusing", "c-slow": "slow", "d-nowhere": "missing"} {
		sleeping(env, name, provider)
	}
	token := callerWithRight(env)
	url := m.TriggerURL()
	clk.move()

	got := passes(env, url+"?wait=3s", token)
	id := func(name string) string { return env.Namespace + "/" + name }
	wantResult(t, got, 4, 4, id("b-refused"), id("c-slow"), id("d-nowhere"))

	gate.Open()
	sent(env, "c-slow")
	env.Provider("missing", nil)
	sent(env, "d-nowhere")
	wantResult(t, passes(env, url+"?wait=1m", token), 0, 0)
}

// Without wait, the answer tells what could not be recorded as an outbox.
func TestWithoutWaitAMissingProviderIsTold(t *testing.T) {
	t.Parallel()
	env := framework.New(t)
	m, clk := asleep(env)
	sleeping(env, "report", "missing")
	token := callerWithRight(env)
	clk.move()
	wantResult(t, passes(env, m.TriggerURL(), token), 1, 1, env.Namespace+"/report")
}
