// SPDX-FileCopyrightText: The WorkItem Operator Authors
// SPDX-License-Identifier: Apache-2.0

package deliverytest

import (
	"bytes"
	"context"
	"fmt"
	"net/http"
	"testing"
	"time"

	"github.com/workitem-operator/workitem-operator/internal/delivery"
	"github.com/workitem-operator/workitem-operator/internal/outcome"
)

// patience bounds whatever the suite waits for. Nothing that works comes near.
const patience = 30 * time.Second

// Target is what a provider under test is configured for.
type Target struct {
	// URL is where to send to. It is on loopback, which the provider must not
	// deny.
	URL string
	// URLIsSecret says that no text may show the URL.
	URLIsSecret bool
	// CABundle is the authority to trust, in PEM; nil for plain HTTP.
	CABundle []byte
	// Credential, if not empty, is a secret that the provider has to send with
	// every request in the header Authorization, in any scheme.
	Credential string
}

// Factory makes the providers that Exercise tests.
type Factory struct {
	// New returns a provider for target. It fails the test if it cannot, and
	// releases the provider with t.Cleanup.
	New func(t *testing.T, target Target) delivery.Sender
	// Dialect is the one that the provider's keys are made for. For None the
	// provider's counterpart keeps no keys, and these are not tested.
	Dialect Dialect
	// WireKey gives the header Idempotency-Key that the provider has to send
	// for a key; nil if it sends none.
	WireKey func(key string) string
}

// scheme is a way to reach a Server.
type scheme struct {
	name string
	opts ServerOptions
}

// schemes are those over which connections are made, kept and lost in ways of
// their own.
var schemes = []scheme{
	{"HTTP", ServerOptions{}},
	{"HTTPS", ServerOptions{TLS: true}},
	{"HTTP2", ServerOptions{TLS: true, HTTP2: true}},
}

// Exercise tests that the providers of factory keep the contract of
// delivery.Sender.
func Exercise(t *testing.T, factory Factory) {
	t.Helper()
	suite := suite{factory}
	t.Run("the request is the same in every attempt", suite.request)
	t.Run("keys are understood", suite.keys)
	t.Run("every status has its outcome", suite.statuses)
	t.Run("a pause that is asked for is reported", suite.retryAfter)
	t.Run("redirects are not followed", suite.redirects)
	t.Run("nothing listens", suite.refused)
	t.Run("a certificate is not trusted", suite.untrusted)
	t.Run("the context has ended before", suite.stoppedBefore)
	t.Run("the context ends in flight", suite.stoppedInFlight)
	t.Run("a call is made once", suite.once)
	t.Run("a long answer is bounded", suite.longAnswer)
	t.Run("an endless answer is not waited for", suite.endlessAnswer)
	t.Run("secrets are not in answers' texts", suite.secretsInAnswers)
	t.Run("secrets are not in errors' texts", suite.secretsInErrors)
	t.Run("calls run at the same time", suite.concurrency)
}

type suite struct{ Factory }

// start runs a Server for the length of the test.
func start(t *testing.T, opts ServerOptions) *Server {
	t.Helper()
	server, err := NewServer(opts)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(server.Close)
	return server
}

// provider returns a provider for an endpoint of server.
func (s suite) provider(t *testing.T, server *Server, endpoint *Endpoint) delivery.Sender {
	t.Helper()
	return s.New(t, Target{URL: endpoint.URL(), CABundle: server.CABundle()})
}

// message returns a message whose body has what careless encoders change.
func message(key string) delivery.Message {
	return delivery.Message{
		Key:         "work-item:5d0c3f8e-6f0a-4a5e-9c60-0e2f1b7a9d11:status:Overdue:1:" + key,
		Body:        []byte("{\"title\": \"<Ünïcode> & \\\"quotes\\\" {{.}} \\u0000\",\t\"emoji\":\"🎉\"}\r\n\n"),
		ContentType: "application/cloudevents+json; charset=utf-8",
		Time:        time.Date(2026, time.December, 1, 9, 0, 0, 999, time.UTC),
	}
}

// within returns a context that ends a test that hangs.
func within(t *testing.T) context.Context {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), patience)
	t.Cleanup(cancel)
	return ctx
}

// check compares an outcome with what the status, or its absence, stands for.
func check(t *testing.T, what string, got, want outcome.Result) {
	t.Helper()
	if got.Class != want.Class || got.Follow != want.Follow || got.Reason != want.Reason || got.HTTPStatus != want.HTTPStatus {
		t.Errorf("%s: got %+v, want %+v", what, got, want)
	}
	if len(got.Message) > delivery.MaxText {
		t.Errorf("%s: the message has %d bytes", what, len(got.Message))
	}
}

func (s suite) request(t *testing.T) {
	t.Parallel()
	server := start(t, ServerOptions{})
	endpoint := server.Endpoint("/hook", None, nil)
	sender := s.provider(t, server, endpoint)
	msg := message("request")
	sent := bytes.Clone(msg.Body)
	for range 3 {
		check(t, "sending", sender.Send(within(t), msg), outcome.FromHTTPStatus(http.StatusOK))
		msg.Time = msg.Time.Add(time.Minute)
	}
	if !bytes.Equal(msg.Body, sent) {
		t.Errorf("the message's body was changed")
	}
	calls := endpoint.Calls()
	if len(calls) != 3 {
		t.Fatalf("%d calls, want 3", len(calls))
	}
	for _, call := range calls {
		if call.Method != http.MethodPost || !bytes.Equal(call.Body, sent) {
			t.Errorf("call %d: %s with body %q, want %q", call.Nth, call.Method, call.Body, sent)
		}
		if got := call.Header.Get("Content-Type"); got != msg.ContentType {
			t.Errorf("call %d: content type %q", call.Nth, got)
		}
		if s.WireKey != nil && call.WireKey != s.WireKey(msg.Key) {
			t.Errorf("call %d: key %q on the wire, want %q", call.Nth, call.WireKey, s.WireKey(msg.Key))
		}
		if s.Dialect != None && call.Key != msg.Key {
			t.Errorf("call %d: key %q, want %q", call.Nth, call.Key, msg.Key)
		}
	}
	if strays := server.Strays(); len(strays) > 0 {
		t.Errorf("stray requests: %q", strays)
	}
}

// keys has the provider meet every kind of counterpart.
func (s suite) keys(t *testing.T) {
	t.Parallel()
	if s.Dialect == None {
		t.Skip("this provider's counterpart keeps no keys")
	}
	conflict := outcome.FromHTTPStatus(http.StatusUnprocessableEntity)
	cases := map[Dialect]outcome.Result{ // what a changed payload leads to
		SilentReplay: outcome.FromHTTPStatus(http.StatusOK),
		None:         outcome.FromHTTPStatus(http.StatusOK),
	}
	switch s.Dialect {
	case IETF:
		cases[IETF] = conflict
	case Raw:
		cases[Raw] = outcome.FromHTTPStatus(http.StatusBadRequest)
	case SilentReplay, None:
	}
	for dialect, changed := range cases {
		t.Run(string(dialect), s.dialect(dialect, changed))
	}
}

// dialect sends a message while its first call is held, again after it, and
// once more with another payload.
func (s suite) dialect(dialect Dialect, changed outcome.Result) func(*testing.T) {
	return func(t *testing.T) {
		server, release := start(t, ServerOptions{}), make(chan struct{})
		endpoint := server.Endpoint("/hook", dialect, Sequence(Answer{Hold: release}, Answer{}))
		sender, msg, ctx := s.provider(t, server, endpoint), message("dialect"), within(t)

		first := make(chan outcome.Result, 1)
		go func() { first <- sender.Send(ctx, msg) }()
		if err := endpoint.WaitForCalls(ctx, 1); err != nil {
			t.Fatal(err)
		}
		effects := 1
		if dialect == None {
			check(t, "beside the first call", sender.Send(ctx, msg), outcome.FromHTTPStatus(http.StatusOK))
			effects = 4
		} else {
			check(t, "beside the first call", sender.Send(ctx, msg), outcome.FromHTTPStatus(http.StatusConflict))
		}
		close(release)
		check(t, "the first call", <-first, outcome.FromHTTPStatus(http.StatusOK))
		check(t, "after the first call", sender.Send(ctx, msg), outcome.FromHTTPStatus(http.StatusOK))
		msg.Body = []byte(`{"title":"another"}`)
		check(t, "with another payload", sender.Send(ctx, msg), changed)
		if got := endpoint.Effects(); got != effects {
			t.Errorf("%d effects, want %d", got, effects)
		}
		if got := len(endpoint.Calls()); got != 4 {
			t.Errorf("%d calls, want 4", got)
		}
	}
}

func (s suite) concurrency(t *testing.T) {
	t.Parallel()
	const calls = 24
	for _, scheme := range schemes {
		t.Run(scheme.name, func(t *testing.T) {
			server, release := start(t, scheme.opts), make(chan struct{})
			endpoint := server.Endpoint("/hook", s.Dialect, Always(Answer{Hold: release}))
			sender, ctx := s.provider(t, server, endpoint), within(t)
			results := make(chan outcome.Result, calls)
			for n := range calls {
				go func() { results <- sender.Send(ctx, message(fmt.Sprint("concurrent-", n))) }()
			}
			if err := endpoint.WaitForCalls(ctx, calls); err != nil {
				t.Fatal(err)
			}
			close(release)
			for range calls {
				check(t, "one of many", <-results, outcome.FromHTTPStatus(http.StatusOK))
			}
			if effects, sent := endpoint.Effects(), len(endpoint.Calls()); effects != calls || sent != calls {
				t.Errorf("%d effects and %d calls, want %d", effects, sent, calls)
			}
		})
	}
}
