// SPDX-FileCopyrightText: The WorkItem Operator Authors
// SPDX-License-Identifier: Apache-2.0

package framework

import (
	"context"
	"fmt"
	"net/http"
	"slices"
)

// Fault is what becomes of a request.
type Fault struct {
	// Before runs before the request is sent, with the context of the request; it may
	// wait. An error fails the request, which then never reaches the API server.
	Before func(ctx context.Context, r *Request) error
	// Status is answered; without Forward the API server never sees the request.
	Status int
	// Forward sends the request to the API server before Status is answered.
	Forward bool
	// After runs when the API server has answered, before the manager hears of it.
	After func(r *Request)
	// Lose loses the API server's answer.
	Lose bool
}

// HoldUntil holds a request back until the gate is open.
func HoldUntil(gate *Gate) Fault {
	return Fault{Before: func(ctx context.Context, _ *Request) error { return gate.Wait(ctx) }}
}

// Meet holds a request back until all participants of a barrier are there.
func Meet(barrier *Barrier) Fault {
	return Fault{Before: func(ctx context.Context, _ *Request) error { return barrier.Arrive(ctx) }}
}

// FailWith answers a status in the API server's place.
func FailWith(status int) Fault { return Fault{Status: status} }

// LoseAnswer lets a request through and loses its answer.
func LoseAnswer() Fault { return Fault{Lose: true} }

// AnswerAfterwards lets a request through and answers another status.
func AnswerAfterwards(status int) Fault { return Fault{Status: status, Forward: true} }

// Unreachable fails a request as if nobody were there.
func Unreachable() Fault {
	return Fault{Before: func(context.Context, *Request) error { return ErrCut }}
}

// Injection is a Fault that waits for its requests.
type Injection struct {
	wire  *Wire
	match Match
	fault Fault
	left  int
	hits  int
}

// Inject makes a fault of the next requests that match, so many times; every time if
// times is 0. Where several would apply, the one that was injected last does.
func (w *Wire) Inject(match Match, times int, fault Fault) *Injection {
	w.mu.Lock()
	defer w.mu.Unlock()
	in := &Injection{wire: w, match: match, fault: fault, left: times}
	if times == 0 {
		in.left = -1
	}
	w.faults = append(w.faults, in)
	return in
}

// Hits is how many requests met the fault.
func (in *Injection) Hits() int {
	in.wire.mu.Lock()
	defer in.wire.mu.Unlock()
	return in.hits
}

// Remove lets requests pass again.
func (in *Injection) Remove() {
	in.wire.mu.Lock()
	defer in.wire.mu.Unlock()
	in.left = 0
}

// WaitHits waits until n requests have met the fault.
func (in *Injection) WaitHits(ctx context.Context, n int) error {
	for {
		in.wire.mu.Lock()
		hits, changed := in.hits, in.wire.changed
		in.wire.mu.Unlock()
		if hits >= n {
			return nil
		}
		select {
		case <-changed:
		case <-ctx.Done():
			return fmt.Errorf("waiting for %d requests of %s to meet a fault, of which there are %d: %w", n, in.wire.name, hits, context.Cause(ctx))
		}
	}
}

// hit finds the fault of a request; nil if it has none.
func (w *Wire) hit(r *Request) *Injection {
	w.mu.Lock()
	defer w.mu.Unlock()
	for _, in := range slices.Backward(w.faults) {
		if in.left == 0 || !in.match(r) {
			continue
		}
		if in.left > 0 {
			in.left--
		}
		in.hits++
		w.tell()
		return in
	}
	return nil
}

func (in *Injection) before(ctx context.Context, w *Wire, r *Request) error {
	if in == nil || in.fault.Before == nil {
		return nil
	}
	w.journal.Add("%s %s met a fault", w.name, r)
	return in.fault.Before(ctx, r)
}

func (in *Injection) answersAlone() bool {
	return in != nil && in.fault.Status != 0 && !in.fault.Forward
}

func (in *Injection) after(w *Wire, r *Request, req *http.Request, resp *http.Response) (*http.Response, error) {
	if in == nil {
		return resp, nil
	}
	if in.fault.After != nil {
		in.fault.After(r)
	}
	switch {
	case in.fault.Lose:
		_ = resp.Body.Close()
		w.journal.Add("%s %s: the answer is lost", w.name, r)
		return nil, ErrCut
	case in.fault.Status != 0:
		_ = resp.Body.Close()
		w.journal.Add("%s %s: answered %d instead", w.name, r, in.fault.Status)
		return statusAnswer(req, in.fault.Status), nil
	}
	return resp, nil
}
