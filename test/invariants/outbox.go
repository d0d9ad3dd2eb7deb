// SPDX-FileCopyrightText: The WorkItem Operator Authors
// SPDX-License-Identifier: Apache-2.0

package invariants

import (
	"bytes"
	"crypto/sha256"
	"encoding/hex"
	"slices"

	"k8s.io/apimachinery/pkg/api/equality"
	"k8s.io/apimachinery/pkg/types"

	"github.com/workitem-operator/workitem-operator/api/v1alpha1"
	"github.com/workitem-operator/workitem-operator/internal/delivery/deliverytest"
)

// callsOf are the calls with the key of an outbox.
func (j *judgement) callsOf(ob *v1alpha1.NotificationOutbox) []deliverytest.Call {
	var out []deliverytest.Call
	for _, call := range j.world.Calls {
		if call.Key == ob.Spec.IdempotencyKey {
			out = append(out, call)
		}
	}
	slices.SortStableFunc(out, func(a, b deliverytest.Call) int { return a.Time.Compare(b.Time) })
	return out
}

// wanted judges the second half of I2: an outbox that is sent was created after its
// intent was committed. One that is never sent may be somebody else's.
func (j *judgement) wanted(ob *life[*v1alpha1.NotificationOutbox]) {
	made := ob.first()
	if len(j.callsOf(made.obj)) == 0 {
		return
	}
	for _, item := range j.history.items {
		for _, v := range item.versions {
			if v.rv >= made.rv || v.obj.UID != made.obj.Spec.WorkItemRef.UID {
				continue
			}
			for _, in := range v.obj.Status.Notifications {
				if in.OutboxName == made.obj.Name && in.IdempotencyKey == made.obj.Spec.IdempotencyKey {
					return
				}
			}
		}
	}
	j.say("I2", "%s was sent, and no intent was committed before it was created", made.obj.Name)
}

// unique judges I3: one outbox for each key that is sent, and no call with a key that no
// outbox has.
func (j *judgement) unique() {
	owners := map[string]types.UID{}
	for _, ob := range inOrder(j.history.outboxes) {
		obj := ob.first().obj
		if other, taken := owners[obj.Spec.IdempotencyKey]; taken && len(j.callsOf(obj)) > 0 {
			j.say("I3", "the outboxes %s and %s have the key %s", other, obj.UID, obj.Spec.IdempotencyKey)
		}
		owners[obj.Spec.IdempotencyKey] = obj.UID
	}
	for _, call := range j.world.Calls {
		if _, known := owners[call.Key]; !known {
			j.say("I3", "a call has the key %q, which no outbox has", call.Key)
		}
	}
}

// frozen judges I4: the spec never changes, and every call sends its bytes.
func (j *judgement) frozen(ob *life[*v1alpha1.NotificationOutbox]) {
	spec := ob.first().obj.Spec
	sum := sha256.Sum256([]byte(spec.Payload.Body))
	if digest := "sha256:" + hex.EncodeToString(sum[:]); digest != spec.PayloadDigest && len(j.callsOf(ob.first().obj)) > 0 {
		j.say("I4", "%s was sent with the digest %s, and its bytes have %s", ob.first().obj.Name, spec.PayloadDigest, digest)
	}
	for _, v := range ob.versions {
		if !equality.Semantic.DeepEqual(spec, v.obj.Spec) {
			j.say("I4", "the spec of %s has changed", v.obj.Name)
		}
	}
	for _, call := range j.callsOf(ob.first().obj) {
		if !bytes.Equal(call.Body, []byte(spec.Payload.Body)) {
			j.say("I4", "call %d with the key %s sent other bytes than the outbox has", call.NthForKey, call.Key)
		}
	}
}

func finished(st *v1alpha1.NotificationOutboxStatus) bool {
	return st.Phase != "" && st.Phase != v1alpha1.OutboxPending
}

// fenced judges I6: what was recorded stays. Attempts count up, an outcome is recorded
// once and by whoever made the attempt, and an end changes only by a person's decision.
func (j *judgement) fenced(ob *life[*v1alpha1.NotificationOutbox]) {
	recorded := map[int32]v1alpha1.Attempt{}
	var before v1alpha1.NotificationOutboxStatus
	for _, v := range ob.versions {
		st, name := &v.obj.Status, v.obj.Name
		if st.Attempts < before.Attempts {
			j.say("I6", "%s goes from %d attempts to %d", name, before.Attempts, st.Attempts)
		}
		decided := !equality.Semantic.DeepEqual(st.Decision, before.Decision)
		if finished(&before) && st.Phase != before.Phase && !decided {
			j.say("I6", "%s was %s and becomes %s without a decision", name, before.Phase, st.Phase)
		}
		for _, a := range attempts(st) {
			was, known := recorded[a.Number]
			if known && (was.Holder != a.Holder || (was.Outcome != "" && was.Outcome != a.Outcome)) {
				j.say("I6", "attempt %d of %s was %q by %s and becomes %q by %s", a.Number, name, was.Outcome, was.Holder, a.Outcome, a.Holder)
			}
			recorded[a.Number] = a
		}
		before = *st
	}
}

// attempts are all attempts that a status knows of.
func attempts(st *v1alpha1.NotificationOutboxStatus) []v1alpha1.Attempt {
	out := slices.Clone(st.History)
	if st.LastAttempt != nil {
		out = append(out, *st.LastAttempt)
	}
	return out
}

// counted judges I8: every call was counted before it was made, the first one by the
// Lease (which claimed asks for) and every other one by the outbox.
func (j *judgement) counted(ob *life[*v1alpha1.NotificationOutbox]) {
	calls := j.callsOf(ob.first().obj)
	if n := ob.last().obj.Status.Attempts; len(calls) > int(n) && !j.world.Open {
		j.say("I8", "%s had %d calls, and %d attempts are counted", ob.first().obj.Name, len(calls), n)
	}
	for i, call := range calls[min(1, len(calls)):] {
		number := int32(i + 2)
		known := slices.ContainsFunc(ob.versions, func(v version[*v1alpha1.NotificationOutbox]) bool {
			a := v.obj.Status.LastAttempt
			return v.obj.Status.Attempts >= number && a != nil && a.StartTime != nil &&
				!a.StartTime.Add(-j.world.Skew[a.Holder]).After(call.Time)
		})
		if !known {
			j.say("I8", "call %d with the key %s was made before it was counted", number, call.Key)
		}
	}
}

// honest judges I11: who promises that there is one effect has one effect, and promises it
// only of a provider that keeps keys.
func (j *judgement) honest(ob *life[*v1alpha1.NotificationOutbox]) {
	last := ob.last().obj
	if n := j.world.Effects[last.Spec.IdempotencyKey]; n > 1 && last.Status.Guarantee != v1alpha1.GuaranteeAtLeastOnce {
		j.say("I11", "%s had %d effects and says %s", last.Name, n, last.Status.Guarantee)
	}
	if last.Status.Phase == v1alpha1.OutboxSent && last.Status.Decision == nil && j.world.Effects != nil && j.world.Effects[last.Spec.IdempotencyKey] == 0 {
		j.say("I12", "%s is Sent and had no effect", last.Name)
	}
	for _, p := range j.history.providers {
		keyless := p.last().obj.Name == last.Spec.ProviderName &&
			!slices.ContainsFunc(p.versions, func(v version[*v1alpha1.NotificationProvider]) bool {
				return v.obj.Spec.Idempotency.Mode == v1alpha1.IdempotencyKeyed
			})
		if keyless && last.Status.Guarantee == v1alpha1.GuaranteeEffectivelyOnce {
			j.say("I11", "%s says EffectivelyOnce of a provider that keeps no keys", last.Name)
		}
	}
	if last.Status.Attempts > 0 && last.Status.Guarantee == "" {
		j.say("I11", "%s was attempted and shows no guarantee", last.Name)
	}
}
