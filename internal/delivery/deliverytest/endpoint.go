// SPDX-FileCopyrightText: The WorkItem Operator Authors
// SPDX-License-Identifier: Apache-2.0

package deliverytest

import (
	"context"
	"fmt"
	"io"
	"maps"
	"net"
	"net/http"
	"slices"
	"sync"
	"time"
)

// Endpoint is one path of a Server, with a store of keys and a ledger of its
// own. All its methods are safe for concurrent use.
type Endpoint struct {
	url  string
	now  func() time.Time
	done <-chan struct{}

	mu       sync.Mutex
	script   Script
	keys     keyStore
	calls    []*Call
	effects  map[string]int
	inFlight map[string]int
	open     int
	peakKey  int
	peakAll  int
	// changed is closed, and replaced, whenever the ledger changes.
	changed chan struct{}
}

func newEndpoint(url string, dialect Dialect, script Script, now func() time.Time, done <-chan struct{}) *Endpoint {
	return &Endpoint{
		url: url, now: now, done: done, script: script,
		keys:    keyStore{dialect: dialect, entries: map[string]*entry{}},
		effects: map[string]int{}, inFlight: map[string]int{}, changed: make(chan struct{}),
	}
}

// URL returns the full URL of the endpoint.
func (e *Endpoint) URL() string { return e.url }

// SetScript replaces the script for the calls that arrive from now on; nil
// answers 200. Keys and ledger stay.
func (e *Endpoint) SetScript(script Script) {
	e.mu.Lock()
	defer e.mu.Unlock()
	e.script = script
}

// Calls returns a copy of the ledger, in the order of arrival.
func (e *Endpoint) Calls() []Call {
	e.mu.Lock()
	defer e.mu.Unlock()
	return e.snapshot()
}

// EffectsByKey returns how many effects the calls with each key had.
func (e *Endpoint) EffectsByKey() map[string]int {
	e.mu.Lock()
	defer e.mu.Unlock()
	return maps.Clone(e.effects)
}

// Effects returns the number of effects of all calls.
func (e *Endpoint) Effects() int {
	total := 0
	for _, n := range e.EffectsByKey() {
		total += n
	}
	return total
}

// Peak returns the most calls that were open at once with one key, and in all.
// A call is open from its arrival until it was answered or its client left.
func (e *Endpoint) Peak() (perKey, all int) {
	e.mu.Lock()
	defer e.mu.Unlock()
	return e.peakKey, e.peakAll
}

// WaitFor returns as soon as the ledger is as reached wants it, or with an
// error when ctx ends. It asks whenever the ledger has changed.
func (e *Endpoint) WaitFor(ctx context.Context, reached func(calls []Call) bool) error {
	for {
		e.mu.Lock()
		calls, changed := e.snapshot(), e.changed
		e.mu.Unlock()
		if reached(calls) {
			return nil
		}
		select {
		case <-changed:
		case <-ctx.Done():
			return fmt.Errorf("waiting for calls, of which there are %d: %w", len(calls), context.Cause(ctx))
		}
	}
}

// WaitForCalls returns as soon as n calls have arrived, or with an error when
// ctx ends.
func (e *Endpoint) WaitForCalls(ctx context.Context, n int) error {
	return e.WaitFor(ctx, func(calls []Call) bool { return len(calls) >= n })
}

// snapshot copies the ledger. The caller holds the mutex.
func (e *Endpoint) snapshot() []Call {
	calls := make([]Call, len(e.calls))
	for i, call := range e.calls {
		calls[i] = call.clone()
	}
	return calls
}

func (c *Call) clone() Call {
	out := *c
	out.Header = c.Header.Clone()
	out.Body = slices.Clone(c.Body)
	return out
}

// notify wakes those who wait. The caller holds the mutex.
func (e *Endpoint) notify() {
	close(e.changed)
	e.changed = make(chan struct{})
}

// serve handles one request whose body was read.
func (e *Endpoint) serve(w http.ResponseWriter, req *http.Request, body []byte) {
	call, admitted, script := e.arrive(req, body)
	stop := context.AfterFunc(req.Context(), func() { e.clientGone(call) })
	defer stop()
	if !admitted.execute {
		e.answered(call, admitted.status)
		w.WriteHeader(admitted.status)
		_, _ = io.WriteString(w, admitted.body)
		return
	}
	e.mu.Lock()
	copied := call.clone()
	e.mu.Unlock()
	answer := Answer{}
	if script != nil {
		answer = script(copied)
	}
	e.execute(call, answer)
	e.answered(call, answer.status())
	if answer.Drop {
		drop(req)
	}
	e.write(w, req, answer)
}

// arrive enters the call into the ledger and asks the store of keys.
func (e *Endpoint) arrive(req *http.Request, body []byte) (*Call, admission, Script) {
	call := &Call{
		Time: e.now(), Method: req.Method, Path: req.URL.Path, Query: req.URL.RawQuery, Proto: req.Proto,
		Header: req.Header.Clone(), Body: body,
		Key: keyIn(req.Header), WireKey: req.Header.Get("Idempotency-Key"), NthForKey: 1,
	}
	e.mu.Lock()
	defer e.mu.Unlock()
	for _, other := range e.calls {
		if other.Key == call.Key {
			call.NthForKey++
		}
	}
	e.calls = append(e.calls, call)
	call.Nth = len(e.calls)
	e.inFlight[call.Key]++
	e.open++
	e.peakKey, e.peakAll = max(e.peakKey, e.inFlight[call.Key]), max(e.peakAll, e.open)
	admitted := e.keys.admit(call)
	call.Replayed = admitted.replayed
	e.notify()
	return call, admitted, e.script
}

// answered ends a call from this side: with a status, or with 0 for none.
func (e *Endpoint) answered(call *Call, status int) {
	e.mu.Lock()
	defer e.mu.Unlock()
	if e.end(call) {
		call.Status = status
	}
}

// clientGone ends a call that its client gave up.
func (e *Endpoint) clientGone(call *Call) {
	e.mu.Lock()
	defer e.mu.Unlock()
	call.ClientGone = e.end(call) || call.ClientGone
}

// end takes a call off those that are open; false if it was off already. The
// caller holds the mutex.
func (e *Endpoint) end(call *Call) bool {
	if !call.EndTime.IsZero() {
		return false
	}
	call.EndTime = e.now()
	e.open--
	if e.inFlight[call.Key]--; e.inFlight[call.Key] == 0 {
		delete(e.inFlight, call.Key)
	}
	e.notify()
	return true
}

// execute lets the effect happen, before or after the call is held, and has the
// store remember the end.
func (e *Endpoint) execute(call *Call, answer Answer) {
	if answer.Effect {
		e.count(call)
	}
	if answer.Hold != nil {
		select {
		case <-answer.Hold:
		case <-e.done:
			e.mu.Lock()
			e.keys.abandon(call)
			e.mu.Unlock()
			e.answered(call, 0)
			panic(http.ErrAbortHandler)
		}
	}
	if answer.hasEffect() && !answer.Effect {
		e.count(call)
	}
	e.mu.Lock()
	defer e.mu.Unlock()
	e.keys.settle(call, answer)
}

func (e *Endpoint) count(call *Call) {
	e.mu.Lock()
	defer e.mu.Unlock()
	e.effects[call.Key]++
	e.notify()
}

func (e *Endpoint) write(w http.ResponseWriter, req *http.Request, answer Answer) {
	maps.Copy(w.Header(), answer.Header)
	w.WriteHeader(answer.status())
	_, _ = io.WriteString(w, answer.Body)
	if answer.HoldBody == nil {
		return
	}
	_ = http.NewResponseController(w).Flush()
	select {
	case <-answer.HoldBody:
	case <-req.Context().Done():
	case <-e.done:
	}
}

// drop closes the connection below HTTP and does not return.
func drop(req *http.Request) {
	if conn, ok := req.Context().Value(connKey{}).(net.Conn); ok {
		_ = conn.Close()
	}
	panic(http.ErrAbortHandler)
}
