// SPDX-FileCopyrightText: The WorkItem Operator Authors
// SPDX-License-Identifier: Apache-2.0

package deliverytest_test

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"io"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/workitem-operator/workitem-operator/internal/delivery/deliverytest"
)

func newServer(t *testing.T, opts deliverytest.ServerOptions) *deliverytest.Server {
	t.Helper()
	server, err := deliverytest.NewServer(opts)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(server.Close)
	return server
}

// reply is what a client sees; status 0 stands for no answer.
type reply struct {
	Status int
	Body   string
}

// post makes one call with a key as it goes on the wire.
func post(ctx context.Context, client *http.Client, url, key, body string) reply {
	req, err := http.NewRequestWithContext(ctx, http.MethodPost, url, strings.NewReader(body))
	if err != nil {
		return reply{Body: err.Error()}
	}
	req.GetBody = nil
	if key != "" {
		req.Header.Set("Idempotency-Key", key)
		req.Header.Set("Webhook-Id", strings.Trim(key, `"`))
	}
	resp, err := client.Do(req)
	if err != nil {
		return reply{}
	}
	defer func() { _ = resp.Body.Close() }()
	text, _ := io.ReadAll(resp.Body)
	return reply{resp.StatusCode, string(text)}
}

func TestDialects(t *testing.T) {
	t.Parallel()
	type step struct {
		key, body string
		want      int
	}
	ok := deliverytest.Answer{}
	fails := func(status int) deliverytest.Answer { return deliverytest.Answer{Status: status} }
	cases := map[string]struct {
		dialect deliverytest.Dialect
		script  deliverytest.Script
		steps   []step
		effects int
	}{
		"IETF wants quotes": {deliverytest.IETF, nil, []step{{"", "a", 400}, {"k", "a", 400}, {`"`, "a", 400}, {`""`, "a", 400}, {`"k"`, "a", 200}}, 1},
		"IETF replays and compares": {
			deliverytest.IETF, deliverytest.Always(deliverytest.Answer{Status: 201}),
			[]step{{`"k"`, "a", 201}, {`"k"`, "a", 201}, {`"k"`, "b", 422}, {`"l"`, "b", 201}},
			2,
		},
		"IETF lets a failed call be made again": {
			deliverytest.IETF, deliverytest.Sequence(fails(500), fails(503), ok),
			[]step{{`"k"`, "a", 500}, {`"k"`, "a", 503}, {`"k"`, "a", 200}, {`"k"`, "a", 200}},
			1,
		},
		"IETF remembers an effect though failing": {
			deliverytest.IETF, deliverytest.Always(deliverytest.Answer{Status: 504, Effect: true}),
			[]step{{`"k"`, "a", 504}, {`"k"`, "a", 200}},
			1,
		},
		"IETF remembers an effect though dropped": {
			deliverytest.IETF, deliverytest.Sequence(deliverytest.Answer{Drop: true, Effect: true}),
			[]step{{`"k"`, "a", 0}, {`"k"`, "a", 200}},
			1,
		},
		"IETF forgets a call dropped before the effect": {
			deliverytest.IETF, deliverytest.Sequence(deliverytest.Answer{Drop: true}, ok),
			[]step{{`"k"`, "a", 0}, {`"k"`, "a", 200}},
			1,
		},
		"Raw takes the key as it is": {deliverytest.Raw, nil, []step{{"", "a", 400}, {"k", "a", 200}, {`"k"`, "a", 200}, {"k", "b", 400}}, 2},
		"Raw keeps a failure": {
			deliverytest.Raw, deliverytest.Sequence(fails(500), ok),
			[]step{{"k", "a", 500}, {"k", "a", 500}, {"l", "a", 500}},
			0,
		},
		"Raw keeps nothing of what it did not execute": {
			deliverytest.Raw, deliverytest.Sequence(fails(429), fails(503), fails(400), deliverytest.Answer{Drop: true}, ok),
			[]step{{"k", "a", 429}, {"k", "a", 503}, {"k", "a", 400}, {"k", "a", 0}, {"k", "a", 200}, {"k", "a", 200}},
			1,
		},
		"Raw keeps a failure with an effect": {
			deliverytest.Raw, deliverytest.Always(deliverytest.Answer{Status: 503, Effect: true}),
			[]step{{"k", "a", 503}, {"k", "a", 503}},
			1,
		},
		"SilentReplay does not compare": {deliverytest.SilentReplay, nil, []step{{"k", "a", 200}, {`"k"`, "b", 200}, {"", "a", 400}}, 1},
		"None keeps no keys":            {deliverytest.None, nil, []step{{"k", "a", 200}, {"k", "a", 200}, {"", "a", 200}}, 3},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			server := newServer(t, deliverytest.ServerOptions{})
			endpoint := server.Endpoint("/hook", tc.dialect, tc.script)
			for i, step := range tc.steps {
				if got := post(t.Context(), &http.Client{}, endpoint.URL(), step.key, step.body); got.Status != step.want {
					t.Errorf("step %d: %+v, want status %d", i, got, step.want)
				}
			}
			if got := endpoint.Effects(); got != tc.effects {
				t.Errorf("%d effects, want %d", got, tc.effects)
			}
		})
	}
}

// Another payload is a conflict even while the first call is in progress.
func TestConflictComesBeforeProgress(t *testing.T) {
	t.Parallel()
	for dialect, want := range map[deliverytest.Dialect][2]int{
		deliverytest.IETF: {422, 409}, deliverytest.Raw: {400, 409}, deliverytest.SilentReplay: {409, 409},
	} {
		server, release := newServer(t, deliverytest.ServerOptions{}), make(chan struct{})
		endpoint := server.Endpoint("/hook", dialect, deliverytest.Always(deliverytest.Answer{Hold: release}))
		first := make(chan reply, 1)
		go func() { first <- post(t.Context(), &http.Client{}, endpoint.URL(), `"k"`, "a") }()
		if err := endpoint.WaitForCalls(t.Context(), 1); err != nil {
			t.Fatal(err)
		}
		if got := post(t.Context(), &http.Client{}, endpoint.URL(), `"k"`, "b").Status; got != want[0] {
			t.Errorf("%s: another payload: %d, want %d", dialect, got, want[0])
		}
		if got := post(t.Context(), &http.Client{}, endpoint.URL(), `"k"`, "a").Status; got != want[1] {
			t.Errorf("%s: the same payload: %d, want %d", dialect, got, want[1])
		}
		close(release)
		if got := (<-first).Status; got != 200 {
			t.Errorf("%s: the first call: %d", dialect, got)
		}
		if perKey, all := endpoint.Peak(); perKey != 2 || all != 2 {
			t.Errorf("%s: peaks of %d and %d, want 2", dialect, perKey, all)
		}
	}
}

func TestLedger(t *testing.T) {
	t.Parallel()
	now := time.Date(2026, time.December, 1, 9, 0, 0, 0, time.UTC)
	server := newServer(t, deliverytest.ServerOptions{Now: func() time.Time { return now }})
	endpoint := server.Endpoint("/hook", deliverytest.IETF, deliverytest.Always(deliverytest.Answer{
		Status: 202, Body: "taken", Header: http.Header{"X-A": {"b"}},
	}))
	for _, key := range []string{`"k"`, `"l"`, `"k"`} {
		if got := post(t.Context(), &http.Client{}, endpoint.URL()+"?q=1", key, "body"); got != (reply{202, "taken"}) {
			t.Errorf("answered %+v", got)
		}
	}
	post(t.Context(), &http.Client{}, server.URL()+"/stray", "", "")
	calls := endpoint.Calls()
	calls[0].Body[0], calls[0].Header = 'x', nil // a copy
	var got []deliverytest.Call
	for _, call := range endpoint.Calls() {
		if call.Header.Get("Idempotency-Key") != call.WireKey {
			t.Errorf("header %v", call.Header)
		}
		call.Header = nil
		got = append(got, call)
	}
	want := deliverytest.Call{
		Time: now, EndTime: now, Method: "POST", Path: "/hook", Query: "q=1", Proto: "HTTP/1.1", Body: []byte("body"),
		Key: "k", WireKey: `"k"`, NthForKey: 1, Nth: 1, Status: 202,
	}
	second, third := want, want
	second.Key, second.WireKey, second.Nth = "l", `"l"`, 2
	third.NthForKey, third.Nth, third.Replayed = 2, 3, true
	if diff := cmp.Diff([]deliverytest.Call{want, second, third}, got); diff != "" {
		t.Errorf("ledger (-want +got):\n%s", diff)
	}
	if diff := cmp.Diff(map[string]int{"k": 1, "l": 1}, endpoint.EffectsByKey()); diff != "" {
		t.Errorf("effects (-want +got):\n%s", diff)
	}
	if diff := cmp.Diff([]string{"POST /stray"}, server.Strays()); diff != "" {
		t.Errorf("strays (-want +got):\n%s", diff)
	}
	if perKey, all := endpoint.Peak(); perKey != 1 || all != 1 {
		t.Errorf("peaks of %d and %d", perKey, all)
	}
}

// A client that leaves is seen, and what it asked for happens all the same.
func TestClientGone(t *testing.T) {
	t.Parallel()
	server, release := newServer(t, deliverytest.ServerOptions{}), make(chan struct{})
	endpoint := server.Endpoint("/hook", deliverytest.IETF, deliverytest.Always(deliverytest.Answer{Hold: release}))
	ctx, cancel := context.WithCancel(t.Context())
	done := make(chan reply, 1)
	go func() { done <- post(ctx, &http.Client{}, endpoint.URL(), `"k"`, "a") }()
	if err := endpoint.WaitForCalls(t.Context(), 1); err != nil {
		t.Fatal(err)
	}
	cancel()
	<-done
	gone := func(calls []deliverytest.Call) bool { return calls[0].ClientGone }
	if err := endpoint.WaitFor(t.Context(), gone); err != nil {
		t.Fatal(err)
	}
	if n := endpoint.Effects(); n != 0 {
		t.Errorf("%d effects before the call is released", n)
	}
	if got := post(t.Context(), &http.Client{}, endpoint.URL(), `"k"`, "a").Status; got != 409 {
		t.Errorf("status %d while the first call is held", got)
	}
	close(release)
	happened := func([]deliverytest.Call) bool { return endpoint.Effects() == 1 }
	if err := endpoint.WaitFor(t.Context(), happened); err != nil {
		t.Fatal(err)
	}
	if call := endpoint.Calls()[0]; call.Status != 0 || !call.ClientGone {
		t.Errorf("the ledger says %+v", call)
	}
}

func TestSetScript(t *testing.T) {
	t.Parallel()
	server := newServer(t, deliverytest.ServerOptions{})
	endpoint := server.Endpoint("/hook", deliverytest.None, deliverytest.AlwaysStatus(500))
	for _, want := range []int{500, 200} {
		if got := post(t.Context(), &http.Client{}, endpoint.URL(), "", "").Status; got != want {
			t.Errorf("status %d, want %d", got, want)
		}
		endpoint.SetScript(nil)
	}
}

func TestWaitEndsWithItsContext(t *testing.T) {
	t.Parallel()
	endpoint := newServer(t, deliverytest.ServerOptions{}).Endpoint("/hook", deliverytest.None, nil)
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if err := endpoint.WaitForCalls(ctx, 1); err == nil {
		t.Error("no error though no call came")
	}
}

// Close lets go of everything that is held.
func TestClose(t *testing.T) {
	t.Parallel()
	server := newServer(t, deliverytest.ServerOptions{})
	held := server.Endpoint("/held", deliverytest.Raw, deliverytest.Always(deliverytest.Answer{Hold: make(chan struct{})}))
	done := make(chan reply, 1)
	go func() { done <- post(t.Context(), &http.Client{}, held.URL(), "k", "a") }()
	if err := held.WaitForCalls(t.Context(), 1); err != nil {
		t.Fatal(err)
	}
	server.Close()
	server.Close()
	if got := <-done; got.Status != 0 {
		t.Errorf("answered %+v", got)
	}
	if n := held.Effects(); n != 0 {
		t.Errorf("%d effects", n)
	}
}

func TestSchemes(t *testing.T) {
	t.Parallel()
	for want, opts := range map[string]deliverytest.ServerOptions{
		"HTTP/1.1": {TLS: true}, "HTTP/2.0": {TLS: true, HTTP2: true},
	} {
		server := newServer(t, opts)
		endpoint := server.Endpoint("/hook", deliverytest.None, nil)
		pool := x509.NewCertPool()
		if !pool.AppendCertsFromPEM(server.CABundle()) {
			t.Fatal("no certificate")
		}
		transport := &http.Transport{TLSClientConfig: &tls.Config{RootCAs: pool, MinVersion: tls.VersionTLS12}, ForceAttemptHTTP2: true}
		for range 2 {
			if got := post(t.Context(), &http.Client{Transport: transport}, endpoint.URL(), "", "").Status; got != 200 {
				t.Errorf("%s: status %d", want, got)
			}
		}
		if got := endpoint.Calls()[0].Proto; got != want {
			t.Errorf("served over %s, want %s", got, want)
		}
		if n := server.Connections(); n != 1 {
			t.Errorf("%s: %d connections", want, n)
		}
		transport.CloseIdleConnections()
	}
	if _, err := deliverytest.NewServer(deliverytest.ServerOptions{HTTP2: true}); err == nil {
		t.Error("HTTP/2 without TLS was accepted")
	}
	if _, err := deliverytest.NewServer(deliverytest.ServerOptions{Addr: "256.0.0.1:x"}); err == nil {
		t.Error("a broken address was accepted")
	}
}
