// SPDX-FileCopyrightText: The WorkItem Operator Authors
// SPDX-License-Identifier: Apache-2.0

package deliverytest

import (
	"net/http"
	"time"
)

// Dialect is how an endpoint treats idempotency keys.
type Dialect string

const (
	// IETF follows draft-ietf-httpapi-idempotency-key-header-07. The header
	// Idempotency-Key is a structured-field string, in quotes; a call without
	// one is answered 400. A known key with another payload is answered 422,
	// and that is looked at first; one whose first call has not ended, 409. A
	// call that had its effect is replayed; one without may be made again.
	IETF Dialect = "IETF"
	// Raw does as Stripe does. The key is the header's value as it stands. The
	// first status and body are kept and replayed, failures included, once the
	// script has begun to execute the call, which a 4xx and a 503 deny. Another
	// payload is answered 400, a call in progress 409.
	Raw Dialect = "Raw"
	// SilentReplay replays what the first successful call with the key was
	// answered, whatever the payload is. A call in progress is answered 409.
	SilentReplay Dialect = "SilentReplay"
	// None keeps no keys: each call that is accepted has its effect.
	None Dialect = "None"
)

// Call is one call as it arrived, and what became of it.
type Call struct {
	// Time is when the call had arrived in full.
	Time time.Time
	// Method, Path, Query and Proto are those of the request, Header and Body
	// are complete.
	Method string
	Path   string
	Query  string
	Proto  string
	Header http.Header
	Body   []byte
	// Key is what identifies the notification: the header webhook-id, or else
	// Idempotency-Key without its quotes.
	Key string
	// WireKey is the header Idempotency-Key as it was sent.
	WireKey string
	// NthForKey and Nth count from 1 the calls with this key, and all calls,
	// at this endpoint.
	NthForKey int
	Nth       int
	// Replayed tells that the call was answered from the store of keys.
	Replayed bool
	// Status is the status that was answered; 0 while there is no answer.
	Status int
	// EndTime is when the call was answered, dropped or given up by the
	// client; zero while it is open.
	EndTime time.Time
	// ClientGone tells that the client left before it was answered.
	ClientGone bool
}

// Answer is what becomes of a call. The zero Answer is a 200 with an effect.
type Answer struct {
	// Status is the status to answer; 0 stands for 200.
	Status int
	// Header and Body are sent with it.
	Header http.Header
	Body   string
	// Effect makes the effect happen whatever the status is, and even if the
	// connection is dropped; it then happens before Hold. Without Effect, a
	// status of 2xx has its effect after Hold and no other answer has one.
	Effect bool
	// Drop closes the connection without an answer. Status counts for nothing
	// then.
	Drop bool
	// Hold delays the answer until it is closed. The effect of a held 2xx
	// happens even when the client has left meanwhile.
	Hold <-chan struct{}
	// HoldBody delays the end of the body, after Header and Body were sent,
	// until it is closed or the client leaves.
	HoldBody <-chan struct{}
}

// Script decides on a call. It is called by several goroutines at once and gets
// a copy of the ledger's entry, which it may keep.
type Script func(call Call) Answer

// Always gives the same answer to every call.
func Always(answer Answer) Script {
	return func(Call) Answer { return answer }
}

// AlwaysStatus answers every call with a status and nothing else.
func AlwaysStatus(status int) Script { return Always(Answer{Status: status}) }

// Sequence gives the n-th answer to the n-th call with a key, and the last to
// all that follow. Without answers it gives the zero Answer.
func Sequence(answers ...Answer) Script {
	return func(call Call) Answer {
		if len(answers) == 0 {
			return Answer{}
		}
		return answers[min(call.NthForKey, len(answers))-1]
	}
}

// status is what the answer says to the client, 0 for nothing.
func (a Answer) status() int {
	switch {
	case a.Drop:
		return 0
	case a.Status == 0:
		return http.StatusOK
	}
	return a.Status
}

// hasEffect tells whether the call has an effect at all.
func (a Answer) hasEffect() bool {
	return a.Effect || isSuccess(a.status())
}

func isSuccess(status int) bool { return status >= 200 && status <= 299 }
