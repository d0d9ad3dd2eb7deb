// SPDX-FileCopyrightText: The WorkItem Operator Authors
// SPDX-License-Identifier: Apache-2.0

package webhook_test

import (
	"crypto/hmac"
	"crypto/sha256"
	"encoding/base64"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	standardwebhooks "github.com/standard-webhooks/standard-webhooks/libraries/go"

	"github.com/workitem-operator/workitem-operator/internal/delivery"
	"github.com/workitem-operator/workitem-operator/internal/delivery/deliverytest"
	"github.com/workitem-operator/workitem-operator/internal/delivery/webhook"
	"github.com/workitem-operator/workitem-operator/internal/outcome"
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

func newMessage() delivery.Message {
	return delivery.Message{
		Key:         "work-item:5d0c3f8e:status:Overdue:1:ops-webhook",
		Body:        []byte(`{"specversion":"1.0"}`),
		ContentType: "application/cloudevents+json; charset=utf-8",
		Time:        time.Unix(1796115600, 987654321),
	}
}

// sendOne sends a message and returns the call that the receiver saw.
func sendOne(t *testing.T, cfg webhook.Config, msg delivery.Message) deliverytest.Call {
	t.Helper()
	server := newServer(t, deliverytest.ServerOptions{})
	endpoint := server.Endpoint("/hook", deliverytest.None, nil)
	cfg.URL = strings.Replace(endpoint.URL(), "http://", "http://"+cfg.URL, 1)
	if got := newSender(t, cfg).Send(t.Context(), msg); got.Class != outcome.Accepted {
		t.Fatalf("got %+v", got)
	}
	calls := endpoint.Calls()
	if len(calls) != 1 {
		t.Fatalf("%d calls, want 1", len(calls))
	}
	return calls[0]
}

func TestHeaders(t *testing.T) {
	t.Parallel()
	got := sendOne(t, webhook.Config{
		UserAgent: "workitem-operator/v0.1.0",
		Headers:   []webhook.Header{{Name: "x-team", Value: " sre\n"}, {Name: "X-Team", Value: "ops"}},
	}, newMessage()).Header
	want := http.Header{
		"Content-Length":    {"21"},
		"Content-Type":      {"application/cloudevents+json; charset=utf-8"},
		"Idempotency-Key":   {`"work-item:5d0c3f8e:status:Overdue:1:ops-webhook"`},
		"User-Agent":        {"workitem-operator/v0.1.0"},
		"Webhook-Id":        {"work-item:5d0c3f8e:status:Overdue:1:ops-webhook"},
		"Webhook-Timestamp": {"1796115600"},
		"X-Team":            {"sre", "ops"},
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("headers (-want +got):\n%s", diff)
	}
}

func TestUserInTheURL(t *testing.T) {
	t.Parallel()
	got := sendOne(t, webhook.Config{URL: "team:hunter%3222@"}, newMessage())
	want := "Basic " + base64.StdEncoding.EncodeToString([]byte("team:hunter222"))
	if got.Header.Get("Authorization") != want {
		t.Errorf("Authorization %q, want %q", got.Header.Get("Authorization"), want)
	}
}

func TestDefaultUserAgentAndEmptyBody(t *testing.T) {
	t.Parallel()
	msg := newMessage()
	msg.Body = nil
	got := sendOne(t, webhook.Config{}, msg)
	if got.Header.Get("User-Agent") != "workitem-operator" || len(got.Body) != 0 {
		t.Errorf("got %+v", got)
	}
}

// Each signature has to verify alone: during a rotation the receiver knows one
// of the keys.
func TestFault45_DuringARotationEachSignatureVerifiesAlone(t *testing.T) {
	t.Parallel()
	msg := newMessage()
	for name, keys := range map[string][]string{"one key": {key1}, "the other": {key2}, "two keys": {key1, key2}} {
		call := sendOne(t, webhook.Config{SigningKeys: keys}, msg)
		signatures := strings.Split(call.Header.Get("Webhook-Signature"), " ")
		if len(signatures) != len(keys) {
			t.Fatalf("%s: signatures %q", name, signatures)
		}
		for i, key := range keys {
			secret, err := base64.StdEncoding.DecodeString(strings.TrimPrefix(key, "whsec_"))
			if err != nil {
				t.Fatal(err)
			}
			mac := hmac.New(sha256.New, secret)
			mac.Write([]byte(msg.Key + ".1796115600." + string(msg.Body)))
			if want := "v1," + base64.StdEncoding.EncodeToString(mac.Sum(nil)); signatures[i] != want {
				t.Errorf("%s: signature %d is %q, want %q", name, i, signatures[i], want)
			}
			verifier, err := standardwebhooks.NewWebhook(key)
			if err != nil {
				t.Fatal(err)
			}
			if err := verifier.VerifyIgnoringTimestamp(call.Body, call.Header); err != nil {
				t.Errorf("%s: key %d: %v", name, i, err)
			}
		}
	}
	if got := sendOne(t, webhook.Config{}, msg).Header.Values("Webhook-Signature"); got != nil {
		t.Errorf("signed without a key: %q", got)
	}
}

// A vector of the Standard Webhooks specification's own libraries.
func TestSignatureVector(t *testing.T) {
	t.Parallel()
	msg := delivery.Message{
		Key: "msg_p5jXN8AQM9LWM0D4loKWxJek", Body: []byte(`{"test": 2432232314}`),
		ContentType: "application/json", Time: time.Unix(1614265330, 0),
	}
	got := sendOne(t, webhook.Config{SigningKeys: []string{key1}}, msg).Header.Get("Webhook-Signature")
	if want := "v1,g0hM9SsE+OTPJTGt/tmIKtSyZlE3uFJELVlNIOLJ1OE="; got != want {
		t.Errorf("signature %q, want %q", got, want)
	}
}

// Attempts differ in what belongs to the attempt, and in nothing else.
func TestAttemptsDifferInTimeAndSignatureOnly(t *testing.T) {
	t.Parallel()
	server := newServer(t, deliverytest.ServerOptions{})
	endpoint := server.Endpoint("/hook", deliverytest.None, deliverytest.AlwaysStatus(500))
	sender, msg := newSender(t, webhook.Config{URL: endpoint.URL(), SigningKeys: []string{key1}}), newMessage()
	sender.Send(t.Context(), msg)
	msg.Time = msg.Time.Add(time.Minute)
	sender.Send(t.Context(), msg)
	calls := endpoint.Calls()
	for _, name := range []string{"Webhook-Timestamp", "Webhook-Signature"} {
		if calls[0].Header.Get(name) == calls[1].Header.Get(name) {
			t.Errorf("%s did not change", name)
		}
		calls[0].Header.Del(name)
		calls[1].Header.Del(name)
	}
	if diff := cmp.Diff(calls[0].Header, calls[1].Header); diff != "" {
		t.Errorf("headers:\n%s", diff)
	}
	if diff := cmp.Diff(calls[0].Body, calls[1].Body); diff != "" {
		t.Errorf("body:\n%s", diff)
	}
}

func TestUnsendableMessages(t *testing.T) {
	t.Parallel()
	server := newServer(t, deliverytest.ServerOptions{})
	endpoint := server.Endpoint("/hook", deliverytest.None, nil)
	cases := map[string]func(*delivery.Message){
		"no key":                func(m *delivery.Message) { m.Key = "" },
		"a line break":          func(m *delivery.Message) { m.Key = "a\r\nX-Other: b" },
		"a space":               func(m *delivery.Message) { m.Key = "a " },
		"beyond ASCII":          func(m *delivery.Message) { m.Key = "ä" },
		"no content type":       func(m *delivery.Message) { m.ContentType = "" },
		"a broken content type": func(m *delivery.Message) { m.ContentType = "a\nb" },
	}
	for _, dialect := range []webhook.Dialect{webhook.IETF, webhook.Raw} {
		sender := newSender(t, webhook.Config{URL: endpoint.URL(), Dialect: dialect})
		for name, change := range cases {
			msg := newMessage()
			change(&msg)
			got := sender.Send(t.Context(), msg)
			if got.Class != outcome.Rejected || got.Follow != outcome.FollowDeadLetter || got.Reason != outcome.ReasonInvalidMessage {
				t.Errorf("%s: got %+v", name, got)
			}
		}
	}
	if calls := endpoint.Calls(); len(calls) > 0 {
		t.Errorf("%d calls", len(calls))
	}
}
