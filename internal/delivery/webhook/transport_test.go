// SPDX-FileCopyrightText: The WorkItem Operator Authors
// SPDX-License-Identifier: Apache-2.0

package webhook_test

import (
	"bufio"
	"context"
	"crypto/tls"
	"io"
	"log"
	"net"
	"net/http"
	"net/http/httptest"
	"net/netip"
	"strings"
	"testing"

	"github.com/workitem-operator/workitem-operator/internal/delivery"
	"github.com/workitem-operator/workitem-operator/internal/delivery/deliverytest"
	"github.com/workitem-operator/workitem-operator/internal/delivery/webhook"
	"github.com/workitem-operator/workitem-operator/internal/outcome"
)

// check compares an outcome, but for its message.
func check(t *testing.T, what string, got, want outcome.Result) {
	t.Helper()
	got.Message, want.Message = "", ""
	if got != want {
		t.Errorf("%s: got %+v, want %+v", what, got, want)
	}
}

// Go's transport repeats a request with an Idempotency-Key when a kept
// connection breaks under it, so the calls are counted, and that the connection
// really was a kept one is made sure of.
func TestNoRepetitionOnAKeptConnection(t *testing.T) {
	t.Parallel()
	for name, tc := range map[string]struct {
		opts  deliverytest.ServerOptions
		proto string
	}{
		"HTTP/1.1":          {deliverytest.ServerOptions{}, "HTTP/1.1"},
		"HTTP/1.1 over TLS": {deliverytest.ServerOptions{TLS: true}, "HTTP/1.1"},
		"HTTP/2 over TLS":   {deliverytest.ServerOptions{TLS: true, HTTP2: true}, "HTTP/2.0"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			server := newServer(t, tc.opts)
			endpoint := server.Endpoint("/hook", deliverytest.IETF, func(call deliverytest.Call) deliverytest.Answer {
				return deliverytest.Answer{Drop: call.Nth == 3}
			})
			sender := newSender(t, webhook.Config{URL: endpoint.URL(), CABundle: server.CABundle()})
			for n, want := range []outcome.Result{
				outcome.FromHTTPStatus(200), outcome.FromHTTPStatus(200), outcome.Unanswered(outcome.ReasonConnectionLost, ""),
			} {
				msg := newMessage()
				msg.Key += strings.Repeat("x", n)
				check(t, "sending", sender.Send(t.Context(), msg), want)
			}
			if n := server.Connections(); n != 1 {
				t.Fatalf("%d connections: the third call was not made on a kept one", n)
			}
			calls := endpoint.Calls()
			if len(calls) != 3 {
				t.Errorf("%d calls, want 3", len(calls))
			}
			if got := calls[2].Proto; got != tc.proto {
				t.Errorf("the call was made over %s", got)
			}
		})
	}
}

// rawServer answers every connection with respond, which gets the request read
// in full, and counts the requests.
func rawServer(t *testing.T, respond func(conn net.Conn)) (url string, requests chan struct{}) {
	t.Helper()
	listener, err := (&net.ListenConfig{}).Listen(t.Context(), "tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = listener.Close() })
	requests = make(chan struct{}, 16)
	go func() {
		for {
			conn, err := listener.Accept()
			if err != nil {
				return
			}
			go func() {
				defer func() { _ = conn.Close() }()
				req, err := http.ReadRequest(bufio.NewReader(conn))
				if err != nil {
					return
				}
				_, _ = io.Copy(io.Discard, req.Body)
				requests <- struct{}{}
				respond(conn)
			}()
		}
	}()
	return "http://" + listener.Addr().String() + "/hook", requests
}

func TestStrangeAnswers(t *testing.T) {
	t.Parallel()
	lost := outcome.Unanswered(outcome.ReasonConnectionLost, "")
	cases := map[string]struct {
		answer string
		want   outcome.Result
	}{
		"nothing":                     {"", lost},
		"half a status line":          {"HTTP/1.1 2", lost},
		"no HTTP":                     {"SSH-2.0-OpenSSH_9.9\r\n\r\n", lost},
		"no status":                   {"HTTP/1.1 abc OK\r\n\r\n", lost},
		"half a header":               {"HTTP/1.1 200 OK\r\nContent-Le", lost},
		"headers without end":         {"HTTP/1.1 200 OK\r\n" + strings.Repeat("X-A: "+strings.Repeat("a", 1000)+"\r\n", 200) + "\r\n", lost},
		"informational answers alone": {"HTTP/1.1 103 Early Hints\r\n\r\n", lost},
		"an informational one before": {"HTTP/1.1 103 Early Hints\r\n\r\nHTTP/1.1 204 No Content\r\n\r\n", outcome.FromHTTPStatus(204)},
		"another protocol":            {"HTTP/1.1 101 Switching Protocols\r\nConnection: upgrade\r\nUpgrade: x\r\n\r\n", outcome.FromHTTPStatus(101)},
		"half a body":                 {"HTTP/1.1 200 OK\r\nContent-Length: 100\r\n\r\nhalf", outcome.FromHTTPStatus(200)},
		"half a chunk":                {"HTTP/1.1 503 No\r\nTransfer-Encoding: chunked\r\n\r\n64\r\nhalf", outcome.FromHTTPStatus(503)},
		"a body that is no gzip":      {"HTTP/1.1 400 No\r\nContent-Encoding: gzip\r\nContent-Length: 4\r\n\r\nhalf", outcome.FromHTTPStatus(400)},
		"status 999":                  {"HTTP/1.1 999 Odd\r\nContent-Length: 0\r\n\r\n", outcome.FromHTTPStatus(999)},
		"status 000":                  {"HTTP/1.1 000 Odd\r\nContent-Length: 0\r\n\r\n", outcome.FromHTTPStatus(0)},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			url, requests := rawServer(t, func(conn net.Conn) { _, _ = io.WriteString(conn, tc.answer) })
			got := newSender(t, webhook.Config{URL: url}).Send(t.Context(), newMessage())
			check(t, name, got, tc.want)
			if n := len(requests); n != 1 {
				t.Errorf("%d requests, want 1", n)
			}
		})
	}
}

// A receiver that keeps the connection after 101, or sends a body for ever,
// must not hold the call.
func TestAnswersThatDoNotEnd(t *testing.T) {
	t.Parallel()
	for name, tc := range map[string]struct {
		answer string
		want   outcome.Result
	}{
		"another protocol": {"HTTP/1.1 101 Switching Protocols\r\nConnection: upgrade\r\nUpgrade: x\r\n\r\n", outcome.FromHTTPStatus(101)},
		"a body":           {"HTTP/1.1 200 OK\r\n\r\nonce upon a time", outcome.FromHTTPStatus(200)},
		"a failure's body": {"HTTP/1.1 400 No\r\nTransfer-Encoding: chunked\r\n\r\n4\r\nonce\r\n", outcome.FromHTTPStatus(400)},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			ended := make(chan struct{})
			url, _ := rawServer(t, func(conn net.Conn) {
				_, _ = io.WriteString(conn, tc.answer)
				_, _ = io.Copy(io.Discard, conn) // until the client leaves
				close(ended)
			})
			got := newSender(t, webhook.Config{URL: url}).Send(t.Context(), newMessage())
			check(t, name, got, tc.want)
			<-ended
		})
	}
}

// A receiver that does not read leaves the request half written: that is
// ambiguous, as it may read what it has.
func TestStoppedWhileWriting(t *testing.T) {
	t.Parallel()
	listener, err := (&net.ListenConfig{}).Listen(t.Context(), "tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = listener.Close() }()
	ctx, cancel := context.WithCancelCause(t.Context())
	go func() {
		conn, err := listener.Accept()
		if err != nil {
			return
		}
		_, _ = io.ReadFull(conn, make([]byte, 4))
		cancel(context.DeadlineExceeded)
	}()
	msg := newMessage()
	msg.Body = make([]byte, 64<<20)
	got := newSender(t, webhook.Config{URL: "http://" + listener.Addr().String()}).Send(ctx, msg)
	check(t, "half written", got, outcome.Unanswered(outcome.ReasonTimeout, ""))
}

// A listener that accepts and then says nothing is a call that has not begun,
// as long as TLS is not there.
func TestStoppedInTheHandshake(t *testing.T) {
	t.Parallel()
	listener, err := (&net.ListenConfig{}).Listen(t.Context(), "tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = listener.Close() }()
	ctx, cancel := context.WithCancelCause(t.Context())
	go func() {
		conn, err := listener.Accept()
		if err != nil {
			return
		}
		_, _ = io.ReadFull(conn, make([]byte, 4))
		cancel(context.DeadlineExceeded)
	}()
	got := newSender(t, webhook.Config{URL: "https://" + listener.Addr().String()}).Send(ctx, newMessage())
	check(t, "in the handshake", got, outcome.NotSent(outcome.ReasonTimeout, ""))
}

func TestTLSFailures(t *testing.T) {
	t.Parallel()
	plain := newServer(t, deliverytest.ServerOptions{})
	old := httptest.NewUnstartedServer(http.NotFoundHandler())
	old.Config.ErrorLog = log.New(io.Discard, "", 0)
	old.TLS = &tls.Config{MaxVersion: tls.VersionTLS11, MinVersion: tls.VersionTLS10}
	old.StartTLS()
	defer old.Close()
	trusted := newServer(t, deliverytest.ServerOptions{Addr: "127.0.0.2:0", TLS: true})
	for name, cfg := range map[string]webhook.Config{
		"no TLS":       {URL: strings.Replace(plain.URL(), "http:", "https:", 1)},
		"TLS 1.1":      {URL: old.URL},
		"another name": {URL: trusted.URL(), CABundle: trusted.CABundle()},
	} {
		got := newSender(t, cfg).Send(t.Context(), newMessage())
		check(t, name, got, outcome.NotSent(outcome.ReasonTLSFailed, ""))
	}
}

// The server closes the kept connection between two calls; the next one finds
// a new one.
func TestServerClosesAKeptConnection(t *testing.T) {
	t.Parallel()
	url, requests := rawServer(t, func(conn net.Conn) {
		_, _ = io.WriteString(conn, "HTTP/1.1 200 OK\r\nContent-Length: 0\r\nConnection: close\r\n\r\n")
	})
	sender := newSender(t, webhook.Config{URL: url})
	for range 3 {
		check(t, "sending", sender.Send(t.Context(), newMessage()), outcome.FromHTTPStatus(200))
	}
	if len(requests) != 3 {
		t.Errorf("%d requests, want 3", len(requests))
	}
}

func TestForbiddenAddresses(t *testing.T) {
	t.Parallel()
	server := newServer(t, deliverytest.ServerOptions{})
	endpoint := server.Endpoint("/hook", deliverytest.None, nil)
	_, port, err := net.SplitHostPort(strings.TrimPrefix(server.URL(), "http://"))
	if err != nil {
		t.Fatal(err)
	}
	for _, host := range []string{
		"127.0.0.1", "localhost", "[::1]", "[::ffff:127.0.0.1]", "[::ffff:7f00:1]", "[64:ff9b::7f00:1]", "[2002:7f00:1::]",
		"loopback.test", "metadata.test", "mapped.test", "0x7f000001",
		"0.0.0.0", "[::]", "169.254.169.254", "[fd00:ec2::254]", "[fe80::1]", "100.100.100.200",
	} {
		sender := newSender(t, webhook.Config{URL: "http://" + host + ":" + port + "/hook", Guard: &delivery.Guard{}})
		got := sender.Send(t.Context(), newMessage())
		check(t, host, got, outcome.NotSent(outcome.ReasonAddressForbidden, ""))
		if !strings.Contains(got.Message, "--allow-provider-cidr") {
			t.Errorf("%s: %q does not say what to do", host, got.Message)
		}
	}
	// Go's resolver does not look these up, and a C library's takes them for
	// 127.0.0.1: either way nothing is reached.
	for _, host := range []string{"2130706433", "017700000001", "127.1", "0177.0.0.1"} {
		sender := newSender(t, webhook.Config{URL: "http://" + host + ":" + port + "/hook", Guard: &delivery.Guard{}})
		got, want := sender.Send(t.Context(), newMessage()), outcome.NotSent(outcome.ReasonAddressForbidden, "")
		if got.Reason == outcome.ReasonNameNotResolved {
			want.Reason = got.Reason
		}
		check(t, host, got, want)
	}
	if calls := endpoint.Calls(); len(calls) > 0 {
		t.Errorf("%d calls reached a forbidden address", len(calls))
	}
}

// The address counts at the moment of dialling: a name that was allowed once is
// looked at again when it leads elsewhere.
func TestRebinding(t *testing.T) {
	t.Parallel()
	server := newServer(t, deliverytest.ServerOptions{Addr: "0.0.0.0:0"})
	endpoint := server.Endpoint("/hook", deliverytest.None, nil)
	port := server.URL()[strings.LastIndex(server.URL(), ":")+1:]
	guard := delivery.NewGuard([]netip.Prefix{netip.MustParsePrefix("127.0.0.1/32")}, nil)
	sender := newSender(t, webhook.Config{URL: "http://rebinding.test:" + port + "/hook", Guard: guard})
	rebound.Store(1)
	check(t, "first", sender.Send(t.Context(), newMessage()), outcome.FromHTTPStatus(200))
	sender.Close()
	rebound.Store(2)
	check(t, "second", sender.Send(t.Context(), newMessage()), outcome.NotSent(outcome.ReasonAddressForbidden, ""))
	if calls := endpoint.Calls(); len(calls) != 1 {
		t.Errorf("%d calls, want 1", len(calls))
	}
}

// Neither a name that leads to a forbidden address nor one that leads nowhere
// is in a text, if the URL is a secret.
func TestNamesOfSecretURLs(t *testing.T) {
	t.Parallel()
	for name, reason := range map[string]string{
		"loopback.test": outcome.ReasonAddressForbidden, "nowhere.test": outcome.ReasonNameNotResolved,
	} {
		sender := newSender(t, webhook.Config{URL: "https://" + name + "/a-secret-path", URLIsSecret: true, Guard: &delivery.Guard{}})
		got := sender.Send(t.Context(), newMessage())
		check(t, name, got, outcome.NotSent(reason, ""))
		for _, hidden := range []string{name, "a-secret-path", "127.0.0.1"} {
			if strings.Contains(got.Message, hidden) {
				t.Errorf("%s: %q shows %q", name, got.Message, hidden)
			}
		}
		open := newSender(t, webhook.Config{URL: "https://" + name + "/a-path", Guard: &delivery.Guard{}}).Send(t.Context(), newMessage())
		if reason == outcome.ReasonNameNotResolved && !strings.Contains(open.Message, name) {
			t.Errorf("%q does not say which name", open.Message)
		}
	}
}

// What the receiver sends instead of an answer comes back in the transport's
// errors.
func TestSecretsInStrangeAnswers(t *testing.T) {
	t.Parallel()
	for _, answer := range []string{"hunter2222 is wrong\r\n\r\n", "HTTP/1.1 hunter2222 no\r\n\r\n", "HTTP/1.1 200 OK\r\nhunter2222\r\n\r\n"} {
		url, _ := rawServer(t, func(conn net.Conn) { _, _ = io.WriteString(conn, answer) })
		sender := newSender(t, webhook.Config{URL: url, Headers: []webhook.Header{{Name: "X-Token", Value: "hunter2222", Secret: true}}})
		got := sender.Send(t.Context(), newMessage())
		check(t, answer, got, outcome.Unanswered(outcome.ReasonConnectionLost, ""))
		if strings.Contains(got.Message, "hunter") {
			t.Errorf("%q shows the token", got.Message)
		}
	}
}
