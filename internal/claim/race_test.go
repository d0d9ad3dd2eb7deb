// SPDX-FileCopyrightText: The WorkItem Operator Authors
// SPDX-License-Identifier: Apache-2.0

package claim_test

import (
	"fmt"
	"strconv"
	"testing"
	"time"

	coordinationv1 "k8s.io/api/coordination/v1"
	"pgregory.net/rapid"

	"github.com/workitem-operator/workitem-operator/internal/claim"
	"github.com/workitem-operator/workitem-operator/test/wrappers"
)

// store is one Lease with the API server's semantics: a create wins or loses, and an
// update needs the resourceVersion that was read.
type store struct {
	lease *coordinationv1.Lease
	rv    int
}

func (s *store) put(lease *coordinationv1.Lease) {
	s.rv++
	s.lease = lease.DeepCopy()
	s.lease.ResourceVersion = strconv.Itoa(s.rv)
}

func (s *store) create(lease *coordinationv1.Lease) bool {
	if s.lease != nil {
		return false
	}
	s.put(lease)
	return true
}

func (s *store) update(lease *coordinationv1.Lease) bool {
	if s.lease == nil || s.lease.ResourceVersion != lease.ResourceVersion {
		return false
	}
	s.put(lease)
	return true
}

// process is one that may claim. It knows true time only through a wall clock that is
// wrong by skew; its monotonic clock counts from an epoch of its own.
type process struct {
	self    string
	skew    time.Duration
	cache   *coordinationv1.Lease
	seenRV  string
	seenAt  time.Time
	settled bool
	term    *claim.Term
	// request is a write that is under way: it reaches the store later, or never.
	request func()
}

// I5, I6, I7: however the clocks are set, whatever order the requests arrive in and
// however old the caches are, no two processes trust their claim at the same time.
func TestI7_NoTwoHoldersTrustTheirTerm(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		const promised = 10 * time.Second
		now := noon // True time.
		s := &store{}
		ob := wrappers.MakeOutbox("o", "ops").Obj()
		var processes []*process
		for i := range 4 {
			processes = append(processes, &process{
				self: fmt.Sprintf("node_%d", i), skew: time.Duration(rapid.IntRange(-600, 600).Draw(t, "skew")) * time.Second,
			})
		}
		local := func(p *process) time.Time { return now.Add(p.skew) }
		look := func(p *process) {
			p.cache = s.lease.DeepCopy()
			if p.cache != nil && p.cache.ResourceVersion != p.seenRV {
				p.seenRV, p.seenAt = p.cache.ResourceVersion, local(p)
			}
		}
		send := func(p *process, write func() bool, settled bool) {
			start := local(p)
			term := claim.NewTerm(start, promised)
			p.request = func() {
				if write() {
					p.term, p.settled = &term, settled
				}
			}
		}
		decide := func(p *process) {
			if p.request != nil {
				return
			}
			cached := p.cache
			d := claim.Decide(claim.Facts{
				Lease: cached, Self: p.self, OutboxUID: ob.UID, Duration: promised,
				ObservedAt: p.seenAt, Now: local(p), Settled: p.settled,
			})
			switch d.Action {
			case claim.Create:
				lease := claim.New(ob, p.self, promised, local(p))
				send(p, func() bool { return s.create(lease) }, false)
			case claim.Renew:
				lease := claim.Renewed(cached, promised, local(p))
				send(p, func() bool { return s.update(lease) }, false)
			case claim.TakeOver:
				lease := claim.TakenOver(cached, ob, p.self, promised, local(p))
				send(p, func() bool { return s.update(lease) }, false)
			case claim.Wait:
				if d.After <= 0 {
					t.Fatalf("fault 40: waits %s", d.After)
				}
			}
		}
		one := func(t *rapid.T) *process { return rapid.SampledFrom(processes).Draw(t, "process") }
		t.Repeat(map[string]func(*rapid.T){
			"": func(t *rapid.T) {
				var holders []string
				for _, p := range processes {
					if p.term != nil && p.term.Trusted(local(p)) {
						holders = append(holders, p.self)
					}
				}
				if len(holders) > 1 {
					t.Fatalf("I5: %v trust their claim at the same time", holders)
				}
			},
			"time": func(t *rapid.T) {
				now = now.Add(time.Duration(rapid.IntRange(1, 4000).Draw(t, "ms")) * time.Millisecond)
			},
			"more": func(t *rapid.T) { now = now.Add(time.Duration(rapid.IntRange(1, 12).Draw(t, "s")) * time.Second) },
			"look": func(t *rapid.T) { look(one(t)) },
			"claim": func(t *rapid.T) {
				p := one(t)
				look(p)
				decide(p)
			},
			"claim with an old cache": func(t *rapid.T) { decide(one(t)) },
			"a request arrives": func(t *rapid.T) {
				p := one(t)
				if p.request != nil {
					p.request()
					p.request = nil
				}
			},
			"a request is lost": func(t *rapid.T) { one(t).request = nil },
			"renew": func(t *rapid.T) {
				p := one(t)
				if p.request != nil || p.term == nil || !p.term.Trusted(local(p)) {
					t.Skip("nothing to renew")
				}
				look(p)
				if !claim.HeldBy(p.cache, p.self, ob.UID) {
					t.Fatalf("I6: %s trusts a claim that is %q's", p.self, *p.cache.Spec.HolderIdentity)
				}
				lease := claim.Renewed(p.cache, promised, local(p))
				send(p, func() bool { return s.update(lease) }, false)
			},
			"a definite no": func(t *rapid.T) {
				if p := one(t); p.term != nil && p.term.Trusted(local(p)) {
					p.term, p.settled = nil, true
				}
			},
			"an old process starts anew": func(t *rapid.T) {
				p := one(t)
				*p = process{self: p.self + "'", skew: p.skew}
			},
		})
	})
}
