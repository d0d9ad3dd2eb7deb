// SPDX-FileCopyrightText: The WorkItem Operator Authors
// SPDX-License-Identifier: Apache-2.0

package invariants

import (
	"slices"
	"time"

	coordinationv1 "k8s.io/api/coordination/v1"
	"k8s.io/utils/ptr"

	"github.com/workitem-operator/workitem-operator/api/v1alpha1"
	"github.com/workitem-operator/workitem-operator/internal/delivery/deliverytest"
)

// tenure is one holding of a claim, from its acquisition on.
type tenure struct {
	holder string
	// acquired is the revision that acquired it.
	acquired uint64
	// start is when, and ends when it would run out after its last renewal, both on the
	// ledger's clock.
	start, ends time.Time
}

// tenures are the holdings of a claim, in order.
func (j *judgement) tenures(lease *life[*coordinationv1.Lease]) []tenure {
	var out []tenure
	var acquired time.Time
	for _, v := range lease.versions {
		spec := &v.obj.Spec
		if spec.AcquireTime == nil || spec.RenewTime == nil {
			continue
		}
		holder := ptr.Deref(spec.HolderIdentity, "")
		skew := j.world.Skew[holder]
		ends := spec.RenewTime.Add(time.Duration(ptr.Deref(spec.LeaseDurationSeconds, 0))*time.Second - skew)
		if len(out) == 0 || !spec.AcquireTime.Time.Equal(acquired) || out[len(out)-1].holder != holder {
			out = append(out, tenure{holder: holder, acquired: v.rv, start: spec.AcquireTime.Add(-skew)})
			acquired = spec.AcquireTime.Time
		}
		out[len(out)-1].ends = ends
	}
	return out
}

// leaseOf is the claim on an outbox; nil if there was none.
func (j *judgement) leaseOf(ob *life[*v1alpha1.NotificationOutbox]) *life[*coordinationv1.Lease] {
	for _, lease := range j.history.leases {
		for _, owner := range lease.last().obj.OwnerReferences {
			if owner.UID == ob.first().obj.UID {
				return lease
			}
		}
	}
	return nil
}

// observed judges I7: no claim begins before the one before it had run out. Whoever takes
// over has watched the old claim for its whole duration, so more time than that has passed
// between the two writes.
func (j *judgement) observed(lease *life[*coordinationv1.Lease]) {
	all := j.tenures(lease)
	for i := 1; i < len(all); i++ {
		if all[i].start.Before(all[i-1].ends) && !j.world.Stalled[all[i].holder] {
			j.say("I7", "%s takes over %s from %s %s before that one's claim has run out",
				all[i].holder, lease.last().obj.Name, all[i-1].holder, all[i-1].ends.Sub(all[i].start))
		}
	}
}

// claimed judges I5: a call comes from a process whose claim has begun and not run out, and
// that took it when the outbox was not finished.
func (j *judgement) claimed(call deliverytest.Call) {
	who := j.world.Holder(call)
	if j.world.Stalled[who] {
		return
	}
	for _, ob := range j.history.outboxes {
		if ob.first().obj.Spec.IdempotencyKey != call.Key {
			continue
		}
		lease := j.leaseOf(ob)
		if lease == nil {
			j.say("I5", "call %d with the key %s was made without a claim", call.NthForKey, call.Key)
			return
		}
		held, ok := j.heldAt(lease, who, call.Time)
		switch {
		case !ok:
			j.say("I5", "call %d with the key %s was made by %q, who held no claim", call.NthForKey, call.Key, who)
		case !unfinishedSince(ob, held.acquired):
			j.say("I5", "call %d with the key %s was made by %q after the outbox had ended", call.NthForKey, call.Key, who)
		}
		return
	}
}

// heldAt finds the tenure in which a process made a call. An empty name stands for anybody.
func (j *judgement) heldAt(lease *life[*coordinationv1.Lease], who string, at time.Time) (tenure, bool) {
	for _, t := range slices.Backward(j.tenures(lease)) {
		if t.start.After(at) {
			continue // It began after the call.
		}
		return t, (who == "" || t.holder == who) && at.Before(t.ends)
	}
	return tenure{}, false
}

// unfinishedSince tells whether an outbox was not finished at a revision, or at some time
// after it.
func unfinishedSince(ob *life[*v1alpha1.NotificationOutbox], rv uint64) bool {
	if current, ok := ob.at(rv); ok && !finished(&current.obj.Status) {
		return true
	}
	for _, v := range ob.versions {
		if v.rv >= rv && !finished(&v.obj.Status) {
			return true
		}
	}
	return false
}

// cautious judges I12: an attempt that follows an ambiguous one is made under another
// claim, which began when the old one had run out (that is I7); and none follows where the
// provider leaves ambiguity to a person.
func (j *judgement) cautious(ob *life[*v1alpha1.NotificationOutbox]) {
	lease := j.leaseOf(ob)
	if lease == nil {
		return
	}
	all := j.tenures(lease)
	tenureAt := func(rv uint64) uint64 {
		var last uint64
		for _, t := range all {
			if t.acquired < rv {
				last = t.acquired
			}
		}
		return last
	}
	// begun is the revision before which each attempt was begun: under the claim of then.
	begun := map[int32]uint64{}
	for _, v := range ob.versions {
		a := v.obj.Status.LastAttempt
		if a == nil {
			continue
		}
		if _, known := begun[a.Number]; !known {
			begun[a.Number] = v.rv
		}
		if a.Outcome != "" || a.Number < 2 {
			continue
		}
		j.afterAmbiguity(v, tenureAt(begun[a.Number-1]), tenureAt(v.rv))
	}
}

// afterAmbiguity looks at a version that begins an attempt.
func (j *judgement) afterAmbiguity(v version[*v1alpha1.NotificationOutbox], former, current uint64) {
	number := v.obj.Status.LastAttempt.Number
	for _, a := range v.obj.Status.History {
		if a.Number != number-1 || a.Outcome != v1alpha1.OutcomeAmbiguous {
			continue
		}
		// A lost holder's attempt is put down together with the next one's beginning.
		if a.Reason != v1alpha1.ReasonHolderLost && former == current {
			j.say("I12", "attempt %d of %s follows an ambiguous one under the same claim", number, v.obj.Name)
		}
		if j.holds(v.obj.Spec.ProviderName) && v.obj.Status.Decision == nil {
			j.say("I12", "attempt %d of %s follows an ambiguous one, which its provider leaves to a person", number, v.obj.Name)
		}
	}
}

// holds tells whether a provider has always left ambiguity to a person.
func (j *judgement) holds(provider string) bool {
	for _, p := range j.history.providers {
		if p.first().obj.Name == provider {
			for _, v := range p.versions {
				if v.obj.Spec.OnAmbiguous != v1alpha1.AmbiguousHold {
					return false
				}
			}
			return true
		}
	}
	return false
}
