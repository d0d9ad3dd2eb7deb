// SPDX-FileCopyrightText: The WorkItem Operator Authors
// SPDX-License-Identifier: Apache-2.0

package delivery

import (
	"net/http"
	"strings"
	"testing"

	"github.com/workitem-operator/workitem-operator/api/v1alpha1"
	"github.com/workitem-operator/workitem-operator/internal/delivery/deliverytest"
	"github.com/workitem-operator/workitem-operator/internal/options"
	"github.com/workitem-operator/workitem-operator/test/framework"
)

// recorded is an item whose outbox exists and is not sent, because no dispatcher
// runs yet.
func recorded(env *framework.Env, providers ...framework.ProviderOption) *v1alpha1.NotificationOutbox {
	env.T.Helper()
	env.Create(env.NewProvider("ops", providers...))
	env.StartManager(framework.Run(options.WorkItem))
	env.Item("report", framework.Notify("ops"))
	return env.OutboxOf("report", "ops")
}

// stranger calls the provider with somebody else's body under our key.
func stranger(env *framework.Env, key, body string) {
	env.T.Helper()
	req, err := http.NewRequestWithContext(env.T.Context(), http.MethodPost, env.Gateway.URL("/ops"), strings.NewReader(body))
	if err != nil {
		env.T.Fatal(err)
	}
	req.Header.Set("Idempotency-Key", key)
	req.Header.Set("Webhook-Id", strings.Trim(key, "\""))
	resp, err := http.DefaultClient.Do(req)
	if err != nil {
		env.T.Error("calling the provider:", err)
		return
	}
	_ = resp.Body.Close()
}

func wire(dialect deliverytest.Dialect, key string) string {
	if dialect == deliverytest.IETF {
		return "\"" + key + "\""
	}
	return key
}

func TestFault49_AKeyThatIsKnownWithAnotherBody(t *testing.T) {
	t.Parallel()
	for dialect, want := range map[deliverytest.Dialect]struct {
		phase  v1alpha1.OutboxPhase
		reason string
		status int32
	}{
		deliverytest.IETF:         {v1alpha1.OutboxDeadLettered, "IdempotencyKeyConflict", 422},
		deliverytest.Raw:          {v1alpha1.OutboxDeadLettered, "Refused", 400},
		deliverytest.SilentReplay: {v1alpha1.OutboxSent, v1alpha1.ReasonSent, 200},
		deliverytest.None:         {v1alpha1.OutboxSent, v1alpha1.ReasonSent, 200},
	} {
		t.Run(string(dialect), func(t *testing.T) {
			t.Parallel()
			env := framework.New(t)
			provider := env.Endpoint("ops", dialect, ok)
			ob := recorded(env, dialects[dialect]...)
			stranger(env, wire(dialect, ob.Spec.IdempotencyKey), "another body")
			env.StartManager(framework.Run(options.Dispatcher))
			env.Reported("report", v1alpha1.NotificationPhase(want.phase), 1)
			ob = env.GetOutbox(ob.Name)
			if framework.DeliveredReason(ob) != want.reason || ob.Status.LastAttempt.HTTPStatus != want.status {
				t.Errorf("it ended because of %s with status %d, want %s and %d", framework.DeliveredReason(ob), ob.Status.LastAttempt.HTTPStatus, want.reason, want.status)
			}
			if ob.Status.Attempts != 1 || len(provider.Calls()) != 2 {
				t.Errorf("there were %d attempts, want 1: a conflict about a key is not retried", ob.Status.Attempts)
			}
		})
	}
}

func TestFault49_AKeyThatIsInProgressIsAskedForAgain(t *testing.T) {
	t.Parallel()
	for _, dialect := range []deliverytest.Dialect{deliverytest.IETF, deliverytest.Raw, deliverytest.SilentReplay} {
		t.Run(string(dialect), func(t *testing.T) {
			t.Parallel()
			env := framework.New(t)
			gate := framework.NewGate()
			t.Cleanup(gate.Open)
			provider := env.Endpoint("ops", dialect, held(gate))
			ob := recorded(env, dialects[dialect]...)
			done := make(chan struct{})
			go func() {
				defer close(done)
				stranger(env, wire(dialect, ob.Spec.IdempotencyKey), ob.Spec.Payload.Body)
			}()
			env.AwaitCalls(provider, 1)
			env.StartManager(framework.Run(options.Dispatcher))
			ob = env.EventuallyOutbox(ob.Name, "409 is Ambiguous", framework.Soon, func(ob *v1alpha1.NotificationOutbox) bool {
				return ob.Status.LastAttempt != nil && ob.Status.LastAttempt.Outcome != ""
			})
			if a := ob.Status.LastAttempt; a.Outcome != v1alpha1.OutcomeAmbiguous || a.HTTPStatus != 409 || ob.Status.Phase != v1alpha1.OutboxPending {
				t.Errorf("the attempt is recorded as %+v in phase %s", a, ob.Status.Phase)
			}
			gate.Open()
			<-done
			env.Reported("report", v1alpha1.NotificationSent, 1)
			if n := provider.Effects(); n != 1 {
				t.Errorf("the calls had %d effects, want 1", n)
			}
		})
	}
}
