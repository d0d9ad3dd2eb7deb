// SPDX-FileCopyrightText: The WorkItem Operator Authors
// SPDX-License-Identifier: Apache-2.0

package framework

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"sync"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// ErrCut is why a request failed that a fault kept from the API server, or whose
// answer a fault lost.
var ErrCut = errors.New("the connection to the API server is cut")

// Wire is what a manager's requests to the API server go through. It records every
// one of them and lets a test interfere.
type Wire struct {
	name    string
	journal *Journal

	mu       sync.Mutex
	requests []*Request
	faults   []*Injection
	frozen   map[string]*Gate
	parted   *Gate
	dead     *Gate
	changed  chan struct{}
}

func newWire(name string, journal *Journal) *Wire {
	return &Wire{name: name, journal: journal, frozen: map[string]*Gate{}, dead: NewGate(), changed: make(chan struct{})}
}

// Mark is a point in the record: Since returns what came after it.
func (w *Wire) Mark() int {
	w.mu.Lock()
	defer w.mu.Unlock()
	return len(w.requests)
}

// Since returns copies of the requests after a mark that match.
func (w *Wire) Since(mark int, match Match) []Request {
	w.mu.Lock()
	defer w.mu.Unlock()
	var out []Request
	for _, r := range w.requests[mark:] {
		if match(r) {
			out = append(out, *r)
		}
	}
	return out
}

// Requests returns copies of all requests that match.
func (w *Wire) Requests(match Match) []Request { return w.Since(0, match) }

// WaitFor waits until n requests that match were answered by the API server.
func (w *Wire) WaitFor(ctx context.Context, n int, match Match) error {
	for {
		w.mu.Lock()
		changed := w.changed
		w.mu.Unlock()
		answered := func(r *Request) bool { return r.Code != 0 && match(r) }
		got := len(w.Requests(answered))
		if got >= n {
			return nil
		}
		select {
		case <-changed:
		case <-ctx.Done():
			return fmt.Errorf("waiting for %d requests of %s, of which there are %d: %w", n, w.name, got, context.Cause(ctx))
		}
	}
}

// Freeze holds the events of a resource's watches, those under way and those to
// come, until thaw is called. What the manager's cache shows stays as it is.
func (w *Wire) Freeze(resource string) (thaw func()) {
	gate := NewGate()
	w.mu.Lock()
	w.frozen[resource] = gate
	w.mu.Unlock()
	w.journal.Add("%s freezes the watches of %s", w.name, resource)
	return func() {
		w.mu.Lock()
		if w.frozen[resource] == gate {
			delete(w.frozen, resource)
		}
		w.mu.Unlock()
		w.journal.Add("%s thaws the watches of %s", w.name, resource)
		gate.Open()
	}
}

// Part keeps every request and every event from getting through until heal is
// called.
func (w *Wire) Part() (heal func()) {
	gate := NewGate()
	w.mu.Lock()
	w.parted = gate
	w.mu.Unlock()
	w.journal.Add("%s is parted from the API server", w.name)
	return func() {
		w.mu.Lock()
		w.parted = nil
		w.mu.Unlock()
		w.journal.Add("%s is healed", w.name)
		gate.Open()
	}
}

// cut ends every request and every watch, now and for good.
func (w *Wire) cut() {
	w.journal.Add("%s is gone", w.name)
	w.dead.Open()
}

func (w *Wire) isDead() bool {
	select {
	case <-w.dead.open:
		return true
	default:
		return false
	}
}

// closed returns what holds up a resource's traffic now; nil if nothing does.
func (w *Wire) closed(resource string, events bool) *Gate {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.parted != nil {
		return w.parted
	}
	if events {
		return w.frozen[resource]
	}
	return nil
}

// pass waits until nothing holds up a resource's traffic.
func (w *Wire) pass(ctx context.Context, resource string, events bool) error {
	for {
		if w.isDead() {
			return ErrCut
		}
		gate := w.closed(resource, events)
		if gate == nil {
			return nil
		}
		select {
		case <-gate.open:
		case <-w.dead.open:
			return ErrCut
		case <-ctx.Done():
			return context.Cause(ctx)
		}
	}
}

func (w *Wire) note(r *Request) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.requests = append(w.requests, r)
	w.tell()
}

func (w *Wire) answered(r *Request, code int) {
	w.mu.Lock()
	r.Code = code
	line := r.String()
	w.tell()
	w.mu.Unlock()
	w.journal.Add("%s %s", w.name, line)
}

// tell wakes those who wait. The caller holds the mutex.
func (w *Wire) tell() {
	close(w.changed)
	w.changed = make(chan struct{})
}

// wrap puts the Wire above the transport of a client.
func (w *Wire) wrap(next http.RoundTripper) http.RoundTripper {
	return roundTripper(func(req *http.Request) (*http.Response, error) {
		req = req.Clone(req.Context()) // A round tripper must not change its request.
		r, err := parse(req)
		if err != nil {
			return nil, err
		}
		return w.roundTrip(req, r, next)
	})
}

type roundTripper func(*http.Request) (*http.Response, error)

// RoundTrip implements http.RoundTripper.
func (f roundTripper) RoundTrip(req *http.Request) (*http.Response, error) { return f(req) }

func (w *Wire) roundTrip(req *http.Request, r *Request, next http.RoundTripper) (*http.Response, error) {
	ctx := req.Context()
	if err := w.pass(ctx, r.Resource, false); err != nil {
		return nil, err
	}
	w.note(r)
	hit := w.hit(r)
	if err := hit.before(ctx, w, r); err != nil {
		return nil, err
	}
	if w.isDead() {
		return nil, ErrCut
	}
	if hit.answersAlone() {
		w.journal.Add("%s %s answered %d instead of the API server", w.name, r, hit.fault.Status)
		return statusAnswer(req, hit.fault.Status), nil
	}
	resp, err := next.RoundTrip(req)
	if err != nil {
		return nil, err
	}
	w.answered(r, resp.StatusCode)
	resp, err = hit.after(w, r, req, resp)
	if err != nil {
		return nil, err
	}
	if w.isDead() {
		_ = resp.Body.Close()
		return nil, ErrCut
	}
	if r.Verb == "watch" {
		resp.Body = &stream{ReadCloser: resp.Body, wire: w, resource: r.Resource, ctx: ctx}
	}
	return resp, nil
}

// stream is the body of a watch, whose events can be held up.
type stream struct {
	io.ReadCloser
	wire     *Wire
	resource string
	ctx      context.Context //nolint:containedctx // a Reader is not given one, and this is its request's
}

// Read implements io.Reader.
func (s *stream) Read(p []byte) (int, error) {
	n, err := s.ReadCloser.Read(p)
	if held := s.wire.pass(s.ctx, s.resource, true); held != nil {
		return 0, held
	}
	return n, err
}

// statusAnswer is what an API server answers to a request that it does not carry
// out.
func statusAnswer(req *http.Request, code int) *http.Response {
	body, err := json.Marshal(metav1.Status{
		TypeMeta: metav1.TypeMeta{Kind: "Status", APIVersion: "v1"},
		Status:   metav1.StatusFailure, Code: int32(code), Message: "a fault of the test", Reason: reasonOf(code),
	})
	if err != nil {
		panic("encoding a Status cannot fail: " + err.Error())
	}
	return &http.Response{
		StatusCode: code, Status: http.StatusText(code), Proto: "HTTP/1.1", ProtoMajor: 1, ProtoMinor: 1,
		Header: http.Header{"Content-Type": {"application/json"}}, Body: io.NopCloser(bytes.NewReader(body)),
		ContentLength: int64(len(body)), Request: req,
	}
}

func reasonOf(code int) metav1.StatusReason {
	switch code {
	case http.StatusConflict:
		return metav1.StatusReasonConflict
	case http.StatusForbidden:
		return metav1.StatusReasonForbidden
	case http.StatusNotFound:
		return metav1.StatusReasonNotFound
	case http.StatusServiceUnavailable:
		return metav1.StatusReasonServiceUnavailable
	}
	return metav1.StatusReasonInternalError
}
