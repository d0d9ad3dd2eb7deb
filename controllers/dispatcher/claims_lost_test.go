// SPDX-FileCopyrightText: The WorkItem Operator Authors
// SPDX-License-Identifier: Apache-2.0

package dispatcher

import (
	"testing"
	"time"

	clocktesting "k8s.io/utils/clock/testing"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"

	"github.com/workitem-operator/workitem-operator/api/v1alpha1"
	"github.com/workitem-operator/workitem-operator/internal/outbox"
	"github.com/workitem-operator/workitem-operator/test/wrappers"
)

// I8, I12: a first attempt whose holder died is known from its Lease alone until
// somebody writes the outbox. A takeover that gets no further than the Lease, because
// the next request fails, must not make the process forget it when it tries again: the
// attempt would go uncounted, and the policy Hold would be passed over.
func TestI8_ATakeoverThatGetsNoFurtherForgetsNoAttempt(t *testing.T) {
	t.Parallel()
	clk := clocktesting.NewFakeClock(time.Date(2026, 12, 1, 12, 0, 0, 0, time.UTC))
	api := fake.NewClientBuilder().Build()
	ob := wrappers.MakeOutbox("o", "ops").Obj()
	dead, alive := newClaims(api, api, clk, "dead"), newClaims(api, api, clk, "alive")
	if held, _, err := dead.acquire(t.Context(), ob, time.Minute, history{mayGoOn: true}); err != nil || held == nil || !held.created {
		t.Fatalf("got %+v, %v", held, err)
	}
	if held, wait, err := alive.acquire(t.Context(), ob, time.Minute, history{mayGoOn: true}); err != nil || held != nil {
		t.Fatalf("got %+v after %s, %v", held, wait, err)
	}
	clk.Step(time.Minute)
	held, _, err := alive.acquire(t.Context(), ob, time.Minute, history{mayGoOn: true})
	if err != nil || held == nil || held.lost == nil {
		t.Fatalf("the takeover: %+v, %v", held, err)
	}
	// The read or the write that had to follow failed: the outbox is as it was.
	again, _, err := alive.acquire(t.Context(), ob, time.Minute, history{mayGoOn: true})
	if err != nil || again == nil {
		t.Fatalf("the next try: %+v, %v", again, err)
	}
	st := outbox.Abandoned(ob, again.lost)
	if st.Attempts != 1 || st.LastAttempt == nil || st.LastAttempt.Outcome != v1alpha1.OutcomeAmbiguous {
		t.Errorf("the attempt of the dead holder is forgotten: %d attempts, lost %+v", st.Attempts, again.lost)
	}
}
