// SPDX-FileCopyrightText: The WorkItem Operator Authors
// SPDX-License-Identifier: Apache-2.0

package deliverytest

import (
	"context"
	"errors"
	"net"
	"net/http"
	"testing"
	"time"

	"github.com/workitem-operator/workitem-operator/internal/outcome"
)

func (s suite) statuses(t *testing.T) {
	t.Parallel()
	server := start(t, ServerOptions{})
	for _, status := range []int{
		200, 201, 202, 204, 205, 299, 300, 301, 302, 303, 304, 307, 308,
		400, 401, 402, 403, 404, 405, 407, 408, 409, 410, 411, 413, 415, 418, 421, 422, 425, 426, 428, 429, 431, 451, 499,
		500, 501, 502, 503, 504, 505, 507, 511, 599, 600, 999,
	} {
		endpoint := server.Endpoint("/hook", None, AlwaysStatus(status))
		check(t, http.StatusText(status), s.provider(t, server, endpoint).Send(within(t), message("status")), outcome.FromHTTPStatus(status))
		if got := len(endpoint.Calls()); got != 1 {
			t.Errorf("status %d: %d calls, want 1", status, got)
		}
	}
}

func (s suite) retryAfter(t *testing.T) {
	t.Parallel()
	msg := message("retry-after")
	cases := map[string]struct {
		status int
		value  string
		want   time.Duration
	}{
		"seconds":               {429, "7", 7 * time.Second},
		"seconds while down":    {503, "7", 7 * time.Second},
		"a date":                {429, msg.Time.Add(time.Minute).Format(http.TimeFormat), time.Minute - 999*time.Nanosecond},
		"far too long":          {429, "99999999999999999999", outcome.MaxRetryAfter},
		"negative":              {429, "-1", 0},
		"exponent":              {429, "1e9", 0},
		"junk":                  {503, "soon", 0},
		"past":                  {429, msg.Time.Add(-time.Minute).Format(http.TimeFormat), 0},
		"none":                  {429, "", 0},
		"after an acceptance":   {202, "7", 0},
		"after a final refusal": {400, "7", 0},
	}
	server := start(t, ServerOptions{})
	for name, tc := range cases {
		answer := Answer{Status: tc.status, Header: http.Header{"Retry-After": {tc.value}}}
		endpoint := server.Endpoint("/hook", None, Always(answer))
		got := s.provider(t, server, endpoint).Send(within(t), msg)
		check(t, name, got, outcome.FromHTTPStatus(tc.status))
		if got.RetryAfter != tc.want {
			t.Errorf("%s: pause of %s, want %s", name, got.RetryAfter, tc.want)
		}
	}
}

func (s suite) redirects(t *testing.T) {
	t.Parallel()
	server := start(t, ServerOptions{})
	trap := server.Endpoint("/trap", None, nil)
	for _, status := range []int{300, 301, 302, 303, 307, 308} {
		answer := Answer{Status: status, Header: http.Header{"Location": {trap.URL()}}}
		endpoint := server.Endpoint("/hook", None, Always(answer))
		check(t, http.StatusText(status), s.provider(t, server, endpoint).Send(within(t), message("redirect")), outcome.FromHTTPStatus(status))
	}
	if calls, strays := trap.Calls(), server.Strays(); len(calls) > 0 || len(strays) > 0 {
		t.Errorf("followed: %d calls, strays %q", len(calls), strays)
	}
}

// closedURL returns a URL at which nothing listens, nor will before the test
// ends: the port is taken by the client's end of a connection.
func closedURL(t *testing.T) string {
	t.Helper()
	listener, err := (&net.ListenConfig{}).Listen(t.Context(), "tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = listener.Close() })
	conn, err := (&net.Dialer{}).DialContext(t.Context(), "tcp", listener.Addr().String())
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = conn.Close() })
	return "http://" + conn.LocalAddr().String() + "/hook"
}

func (s suite) refused(t *testing.T) {
	t.Parallel()
	got := s.New(t, Target{URL: closedURL(t)}).Send(within(t), message("refused"))
	check(t, "closed port", got, outcome.NotSent(outcome.ReasonConnectionRefused, ""))
}

func (s suite) untrusted(t *testing.T) {
	t.Parallel()
	server, other := start(t, ServerOptions{TLS: true}), start(t, ServerOptions{TLS: true})
	endpoint := server.Endpoint("/hook", None, nil)
	want := outcome.NotSent(outcome.ReasonTLSFailed, "")
	for name, bundle := range map[string][]byte{"the system's authorities": nil, "another authority": other.CABundle()} {
		got := s.New(t, Target{URL: endpoint.URL(), CABundle: bundle}).Send(within(t), message("untrusted"))
		check(t, name, got, want)
	}
	if calls := endpoint.Calls(); len(calls) > 0 {
		t.Errorf("%d calls without trust", len(calls))
	}
}

// causes are the ways in which a context ends, and the reasons they give.
var causes = map[string]struct {
	cause  error
	reason string
}{
	"cancelled":  {context.Canceled, outcome.ReasonCancelled},
	"for cause":  {errors.New("the claim runs out"), outcome.ReasonCancelled},
	"timed out":  {context.DeadlineExceeded, outcome.ReasonTimeout},
	"without it": {nil, outcome.ReasonCancelled},
}

func (s suite) stoppedBefore(t *testing.T) {
	t.Parallel()
	server := start(t, ServerOptions{})
	endpoint := server.Endpoint("/hook", None, nil)
	sender := s.provider(t, server, endpoint)
	for name, tc := range causes {
		ctx, cancel := context.WithCancelCause(within(t))
		cancel(tc.cause)
		check(t, name, sender.Send(ctx, message("before")), outcome.NotSent(tc.reason, ""))
	}
	ctx, cancel := context.WithDeadline(within(t), time.Unix(0, 0))
	defer cancel()
	check(t, "deadline", sender.Send(ctx, message("before")), outcome.NotSent(outcome.ReasonTimeout, ""))
	if calls := endpoint.Calls(); len(calls) > 0 {
		t.Errorf("%d calls were made", len(calls))
	}
}

func (s suite) stoppedInFlight(t *testing.T) {
	t.Parallel()
	for _, scheme := range schemes {
		t.Run(scheme.name, func(t *testing.T) {
			server := start(t, scheme.opts)
			for name, tc := range causes {
				release := make(chan struct{})
				endpoint := server.Endpoint("/hook", None, Always(Answer{Hold: release}))
				sender := s.provider(t, server, endpoint)
				ctx, cancel := context.WithCancelCause(within(t))
				result := make(chan outcome.Result, 1)
				go func() { result <- sender.Send(ctx, message("in-flight")) }()
				if err := endpoint.WaitForCalls(within(t), 1); err != nil {
					t.Fatal(err)
				}
				cancel(tc.cause)
				check(t, name, <-result, outcome.Unanswered(tc.reason, ""))
				gone := func(calls []Call) bool { return calls[0].ClientGone }
				if err := endpoint.WaitFor(within(t), gone); err != nil {
					t.Errorf("%s: the call goes on after Send: %v", name, err)
				}
				close(release)
				if calls := endpoint.Calls(); len(calls) != 1 {
					t.Errorf("%s: %d calls, want 1", name, len(calls))
				}
			}
		})
	}
}

// once breaks the connection under calls: new ones, and ones that were kept
// from a call before, under which HTTP libraries like to send again.
func (s suite) once(t *testing.T) {
	t.Parallel()
	for _, scheme := range schemes {
		t.Run(scheme.name, func(t *testing.T) {
			server := start(t, scheme.opts)
			script := func(call Call) Answer { return Answer{Drop: call.Nth%2 == 0, Effect: call.Nth%4 == 0} }
			endpoint := server.Endpoint("/hook", None, script)
			sender := s.provider(t, server, endpoint)
			for n := range 8 {
				want := outcome.FromHTTPStatus(http.StatusOK)
				if n%2 == 1 {
					want = outcome.Unanswered(outcome.ReasonConnectionLost, "")
				}
				check(t, "sending", sender.Send(within(t), message("once")), want)
				if calls := endpoint.Calls(); len(calls) != n+1 {
					t.Fatalf("%d calls after %d times Send", len(calls), n+1)
				}
			}
			fresh := server.Endpoint("/fresh", None, Always(Answer{Drop: true}))
			got := s.provider(t, server, fresh).Send(within(t), message("once"))
			check(t, "a new connection", got, outcome.Unanswered(outcome.ReasonConnectionLost, ""))
			if calls := fresh.Calls(); len(calls) != 1 {
				t.Errorf("%d calls on a new connection, want 1", len(calls))
			}
		})
	}
}
