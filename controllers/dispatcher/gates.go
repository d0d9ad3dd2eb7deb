// SPDX-FileCopyrightText: The WorkItem Operator Authors
// SPDX-License-Identifier: Apache-2.0

package dispatcher

import (
	"errors"
	"sync"
	"time"

	"github.com/sony/gobreaker/v2"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/utils/clock"

	"github.com/workitem-operator/workitem-operator/api/v1alpha1"
	"github.com/workitem-operator/workitem-operator/internal/metrics"
	"github.com/workitem-operator/workitem-operator/internal/outcome"
)

const (
	// tripAfter is how many calls in a row must fail for the circuit breaker to open.
	tripAfter = 10
	// shortestOpen and longestOpen bound how long the breaker stays open before one
	// call probes the provider; within them it is the provider's maxBackoff.
	shortestOpen = time.Second
	longestOpen  = 15 * time.Second
)

// gates lets as many calls through to each provider as it may get at once, and none
// while its circuit breaker is open. Nobody ever waits in here: who does not get
// through is told when to come back.
type gates struct {
	clock clock.PassiveClock
	wake  func(types.NamespacedName)

	mu sync.Mutex
	of map[types.UID]*gate
}

type gate struct {
	generation int64
	breaker    *gobreaker.TwoStepCircuitBreaker[struct{}]
	openUntil  time.Time
	inFlight   int
	waiting    []types.NamespacedName
	queued     map[types.NamespacedName]bool
}

func newGates(clk clock.PassiveClock, wake func(types.NamespacedName)) *gates {
	return &gates{clock: clk, wake: wake, of: map[types.UID]*gate{}}
}

// The errors by which a call is judged towards the circuit breaker.
var (
	errUnhealthy = errors.New("the provider is not well")
	errNoVerdict = errors.New("the call says nothing about the provider")
)

// pass is one slot at one provider.
type pass struct {
	gates    *gates
	gate     *gate
	provider *v1alpha1.NotificationProvider
	judge    func(error)
	once     sync.Once
}

// enter takes a slot for an outbox. Without one it says how long to wait; the
// outbox is woken earlier when a slot comes free. limit is how many calls may be
// under way at once.
func (g *gates) enter(provider *v1alpha1.NotificationProvider, req types.NamespacedName, limit int) (*pass, time.Duration) {
	g.mu.Lock()
	defer g.mu.Unlock()
	gt := g.gate(provider)
	if gt.inFlight >= limit {
		gt.queue(req)
		return nil, slotRetry
	}
	judge, err := gt.breaker.Allow()
	switch {
	case errors.Is(err, gobreaker.ErrOpenState):
		return nil, max(gt.openUntil.Sub(g.clock.Now()), 100*time.Millisecond)
	case err != nil: // One call probes the provider already.
		gt.queue(req)
		return nil, slotRetry
	}
	gt.inFlight++
	metrics.InFlight(provider.Namespace, provider.Name, 1)
	return &pass{gates: g, gate: gt, provider: provider, judge: judge}, 0
}

// gate is the gate of a provider. A change of the provider's spec closes its
// circuit breaker: what failed before says nothing about what it is now.
func (g *gates) gate(provider *v1alpha1.NotificationProvider) *gate {
	gt, ok := g.of[provider.UID]
	if !ok {
		g.sweep()
		gt = &gate{queued: map[types.NamespacedName]bool{}}
		g.of[provider.UID] = gt
	}
	if !ok || gt.generation != provider.Generation {
		gt.generation = provider.Generation
		gt.breaker = g.breaker(gt, provider)
		metrics.BreakerOpen(provider.Namespace, provider.Name, false)
	}
	return gt
}

// sweepAbove is how many gates are kept before those of providers that nobody calls
// are let go of. One that is made anew has its circuit breaker closed.
const sweepAbove = 1024

func (g *gates) sweep() {
	if len(g.of) < sweepAbove {
		return
	}
	for uid, gt := range g.of {
		if gt.inFlight == 0 && len(gt.waiting) == 0 {
			delete(g.of, uid)
		}
	}
}

func (g *gates) breaker(gt *gate, provider *v1alpha1.NotificationProvider) *gobreaker.TwoStepCircuitBreaker[struct{}] {
	open := min(max(provider.Spec.Retry.MaxBackoff.Duration, shortestOpen), longestOpen)
	return gobreaker.NewTwoStepCircuitBreaker[struct{}](gobreaker.Settings{
		Name:        provider.Namespace + "/" + provider.Name,
		MaxRequests: 1,
		Timeout:     open,
		ReadyToTrip: func(c gobreaker.Counts) bool { return c.ConsecutiveFailures >= tripAfter },
		IsExcluded:  func(err error) bool { return errors.Is(err, errNoVerdict) },
		OnStateChange: func(_ string, _, to gobreaker.State) {
			if gt.generation != provider.Generation {
				return // A call of before the spec changed says nothing about it.
			}
			metrics.BreakerOpen(provider.Namespace, provider.Name, to != gobreaker.StateClosed)
			if to == gobreaker.StateOpen {
				gt.openUntil = g.clock.Now().Add(open)
			}
		},
	})
}

func (gt *gate) queue(req types.NamespacedName) {
	if !gt.queued[req] {
		gt.queued[req] = true
		gt.waiting = append(gt.waiting, req)
	}
}

// leave gives a slot back after a call, and wakes those that have waited longest.
func (p *pass) leave(res outcome.Result) { p.release(verdict(res)) }

// unused gives a slot back without a call having been made.
func (p *pass) unused() { p.release(errNoVerdict) }

func (p *pass) release(verdict error) {
	p.once.Do(func() {
		p.gates.mu.Lock()
		p.judge(verdict)
		p.gate.inFlight--
		// One more than there are slots: who is woken may have no more use for one.
		n := min(len(p.gate.waiting), 2)
		next := p.gate.waiting[:n]
		p.gate.waiting = p.gate.waiting[n:]
		for _, req := range next {
			delete(p.gate.queued, req)
		}
		p.gates.mu.Unlock()
		metrics.InFlight(p.provider.Namespace, p.provider.Name, -1)
		for _, req := range next {
			p.gates.wake(req)
		}
	})
}

// verdict is what an outcome says about the health of a provider: a definite answer
// means that it is well, whatever the answer is.
func verdict(res outcome.Result) error {
	switch res.Reason {
	case outcome.ReasonCancelled, outcome.ReasonAddressForbidden, outcome.ReasonInvalidMessage:
		return errNoVerdict
	case outcome.ReasonRequestInProgress:
		return nil
	}
	if res.Class == outcome.Ambiguous || res.HTTPStatus == 0 || res.Reason == outcome.ReasonUnavailable {
		return errUnhealthy
	}
	return nil
}
