// SPDX-FileCopyrightText: The WorkItem Operator Authors
// SPDX-License-Identifier: Apache-2.0

// Package delivery proves the delivery protocol on a real API server: with managers
// in this process whose requests can be held, failed or lost, with managers as
// processes that are killed, and with a provider that writes down every call and
// every effect. Each test is named after the invariant, the window or the fault that
// it is about.
package delivery

import (
	"fmt"
	"os"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	eventsv1 "k8s.io/api/events/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/workitem-operator/workitem-operator/api/v1alpha1"
	"github.com/workitem-operator/workitem-operator/internal/delivery/deliverytest"
	"github.com/workitem-operator/workitem-operator/test/framework"
)

// The requests of the protocol, in its order.
var (
	commitItem   = framework.Is("update", "workitems/status")
	createOutbox = framework.Is("create", "notificationoutboxes")
	createLease  = framework.Is("create", "leases")
	updateLease  = framework.Is("update", "leases")
	recordOutbox = framework.Is("update", "notificationoutboxes/status")
	readOutbox   = framework.Is("get", "notificationoutboxes")

	// transition is the status write that makes an item overdue.
	transition = commitItem.And(framework.BodyHas(`"phase":"Overdue"`))
)

func TestMain(m *testing.M) {
	os.Exit(framework.Main(m)) //nolint:forbidigo // TestMain is the main of the test binary.
}

// ok lets every call have its effect.
var ok deliverytest.Script

// failing answers the first n calls with a status, and the others with 200.
func failing(n, status int) deliverytest.Script {
	return func(call deliverytest.Call) deliverytest.Answer {
		if call.Nth <= n {
			return deliverytest.Answer{Status: status}
		}
		return deliverytest.Answer{}
	}
}

// held holds every answer until the gate is open.
func held(gate *framework.Gate) deliverytest.Script {
	return deliverytest.Always(deliverytest.Answer{Hold: gate.Opened()})
}

// succeeded narrows a match to requests that the API server carried out.
func succeeded(match framework.Match) framework.Match {
	return func(r *framework.Request) bool { return match(r) && r.Code >= 200 && r.Code < 300 }
}

// conflicted narrows a match to requests that the API server answered 409.
func conflicted(match framework.Match) framework.Match {
	return func(r *framework.Request) bool { return match(r) && r.Code == 409 }
}

// wantCalls fails the test unless an endpoint has had so many calls and effects, and
// never two calls with one key at once.
func wantCalls(t *testing.T, endpoint *deliverytest.Endpoint, calls, effects int) {
	t.Helper()
	if got := len(endpoint.Calls()); got != calls {
		t.Errorf("the provider was called %d times, want %d: %s", got, calls, describe(endpoint))
	}
	if got := endpoint.Effects(); got != effects {
		t.Errorf("the calls had %d effects, want %d: %s", got, effects, describe(endpoint))
	}
	if perKey, _ := endpoint.Peak(); perKey > 1 {
		t.Errorf("%d calls with one key were under way at once", perKey)
	}
}

func describe(endpoint *deliverytest.Endpoint) string {
	var out strings.Builder
	for _, c := range endpoint.Calls() {
		fmt.Fprintf(&out, "\n  %s key=%s by=%s status=%d gone=%t", c.Time.Format(time.StampMilli), c.Key, c.Header.Get("User-Agent"), c.Status, c.ClientGone)
	}
	return out.String()
}

// sameRequest fails the test unless all calls carry one key and the same bytes.
func sameRequest(t *testing.T, calls []deliverytest.Call) {
	t.Helper()
	for _, c := range calls[1:] {
		if c.Key != calls[0].Key || c.WireKey != calls[0].WireKey || string(c.Body) != string(calls[0].Body) {
			t.Errorf("call %d differs from the first:\n%s %s\n%s %s", c.Nth, c.WireKey, c.Body, calls[0].WireKey, calls[0].Body)
		}
	}
}

// wantNoComplaint fails the test if a manager logged an error, or if there is a
// Warning Event.
func wantNoComplaint(t *testing.T, env *framework.Env, managers ...*framework.Manager) {
	t.Helper()
	for _, m := range managers {
		if lines := m.ErrorLog(); len(lines) > 0 {
			t.Errorf("%s logged errors: %v", m.Name, lines)
		}
	}
	for _, ev := range env.Events() {
		if ev.Type == corev1.EventTypeWarning {
			t.Errorf("there is a Warning: %s on %s %s: %s", ev.Reason, ev.Regarding.Kind, ev.Regarding.Name, ev.Note)
		}
	}
}

// eventsOn are the Events with a reason on one object.
func eventsOn(env *framework.Env, kind, name, reason string) []eventsv1.Event {
	var out []eventsv1.Event
	for _, ev := range env.Events() {
		if ev.Regarding.Kind == kind && ev.Regarding.Name == name && ev.Reason == reason {
			out = append(out, ev)
		}
	}
	return out
}

// attempts is whether an outbox has had so many attempts.
func attempts(n int32) func(*v1alpha1.NotificationOutbox) bool {
	return func(ob *v1alpha1.NotificationOutbox) bool { return ob.Status.Attempts == n }
}

// sent is whether an outbox is Sent.
func sent(ob *v1alpha1.NotificationOutbox) bool { return ob.Status.Phase == v1alpha1.OutboxSent }

// errUnexpected is a condition that is not the one that is waited for.
func errUnexpected(c metav1.Condition) error { return fmt.Errorf("the condition is %+v", c) }
