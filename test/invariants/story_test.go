// SPDX-FileCopyrightText: The WorkItem Operator Authors
// SPDX-License-Identifier: Apache-2.0

package invariants

import (
	"crypto/sha256"
	"encoding/hex"
	"net/http"
	"strconv"
	"testing"
	"time"

	coordinationv1 "k8s.io/api/coordination/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/workitem-operator/workitem-operator/api/v1alpha1"
	"github.com/workitem-operator/workitem-operator/internal/delivery/deliverytest"
)

const (
	key  = "work-item:u1:status:Overdue:1:ops"
	body = `{"id":"1"}`
)

// story is a history that is told by hand: each entry is one write.
type story struct {
	t       *testing.T
	start   time.Time
	rv      uint64
	history *history
	world   World

	item     *v1alpha1.WorkItem
	outbox   *v1alpha1.NotificationOutbox
	lease    *coordinationv1.Lease
	provider *v1alpha1.NotificationProvider
}

func newStory(t *testing.T) *story {
	t.Helper()
	s := &story{t: t, start: time.Date(2026, 12, 1, 9, 0, 0, 0, time.UTC), history: newHistory()}
	s.world.Effects = map[string]int{}
	s.item = &v1alpha1.WorkItem{ObjectMeta: metav1.ObjectMeta{Name: "report", UID: "u1"}}
	s.item.Spec.Notify = []v1alpha1.NotifyTarget{{ProviderName: "ops"}}
	s.item.Status.Phase = v1alpha1.PhaseOpen
	sum := sha256.Sum256([]byte(body))
	s.outbox = &v1alpha1.NotificationOutbox{ObjectMeta: metav1.ObjectMeta{Name: "report-overdue", UID: "u2"}}
	s.outbox.Spec = v1alpha1.NotificationOutboxSpec{
		WorkItemRef: v1alpha1.WorkItemReference{Name: "report", UID: "u1"}, Transition: v1alpha1.TransitionOverdue, Occurrence: 1,
		ProviderName: "ops", IdempotencyKey: key, Payload: v1alpha1.Payload{Body: body}, PayloadDigest: "sha256:" + hex.EncodeToString(sum[:]),
	}
	s.lease = &coordinationv1.Lease{ObjectMeta: metav1.ObjectMeta{
		Name: "report-overdue", UID: "u3", OwnerReferences: []metav1.OwnerReference{{UID: "u2"}},
	}}
	s.provider = &v1alpha1.NotificationProvider{ObjectMeta: metav1.ObjectMeta{Name: "ops", UID: "u4"}}
	s.provider.Spec.Idempotency.Mode = v1alpha1.IdempotencyKeyed
	return s
}

func (s *story) at(seconds float64) time.Time {
	return s.start.Add(time.Duration(seconds * float64(time.Second)))
}

// write commits an object as it is now.
func (s *story) write(obj client.Object) {
	s.t.Helper()
	s.rv++
	obj.SetResourceVersion(strconv.FormatUint(s.rv, 10))
	copied, ok := obj.DeepCopyObject().(client.Object)
	if !ok {
		s.t.Fatalf("%T is no object", obj)
	}
	if err := s.history.add(copied, false); err != nil {
		s.t.Fatal(err)
	}
}

// overdue commits the transition with its intent.
func (s *story) overdue() {
	s.t.Helper()
	s.item.Status.Phase, s.item.Status.Occurrence = v1alpha1.PhaseOverdue, 1
	s.item.Status.Notifications = []v1alpha1.Intent{{
		OutboxName: s.outbox.Name, IdempotencyKey: key, Transition: v1alpha1.TransitionOverdue, Occurrence: 1,
		ProviderName: "ops", Phase: v1alpha1.NotificationRecorded,
	}}
	s.write(s.item)
}

// claim acquires the claim for five seconds.
func (s *story) claim(who string, at float64) {
	s.t.Helper()
	s.lease.Spec = coordinationv1.LeaseSpec{
		HolderIdentity: &who, LeaseDurationSeconds: new(int32(5)),
		AcquireTime: &metav1.MicroTime{Time: s.at(at)}, RenewTime: &metav1.MicroTime{Time: s.at(at)},
	}
	s.write(s.lease)
}

func (s *story) call(who string, at float64, effects int) {
	nth := len(s.world.Calls) + 1
	s.world.Calls = append(s.world.Calls, deliverytest.Call{
		Time: s.at(at), Key: key, Body: []byte(body), Header: http.Header{"User-Agent": {who}}, NthForKey: nth,
	})
	s.world.Effects[key] += effects
}

// begin counts the second attempt.
func (s *story) begin(who string, at float64) {
	s.t.Helper()
	const number = 2
	s.outbox.Status.Attempts = number
	s.outbox.Status.LastAttempt = &v1alpha1.Attempt{Number: number, Holder: who, StartTime: &metav1.Time{Time: s.at(at)}}
	s.write(s.outbox)
}

// settle records the outcome of an attempt.
func (s *story) settle(who string, number int32, outcome v1alpha1.AttemptOutcome, phase v1alpha1.OutboxPhase) {
	s.t.Helper()
	a := v1alpha1.Attempt{Number: number, Holder: who, StartTime: &metav1.Time{Time: s.at(0)}, Outcome: outcome}
	st := &s.outbox.Status
	st.Attempts, st.LastAttempt, st.Phase, st.Guarantee = number, &a, phase, v1alpha1.GuaranteeEffectivelyOnce
	st.History = append(st.History, a)
	s.write(s.outbox)
}

func (s *story) report(phase v1alpha1.NotificationPhase, reason string) {
	s.t.Helper()
	s.item.Status.Notifications[0].Phase, s.item.Status.Notifications[0].Reason = phase, reason
	s.write(s.item)
}

// delivered is the story up to the first answer, with an outcome.
func (s *story) delivered(outcome v1alpha1.AttemptOutcome, phase v1alpha1.OutboxPhase, effects int) {
	s.t.Helper()
	s.write(s.provider)
	s.write(s.item)
	s.overdue()
	s.write(s.outbox)
	s.claim("a", 1)
	s.call("a", 1.1, effects)
	s.settle("a", 1, outcome, phase)
}

// otherUID makes the next writes of the outbox those of another object.
func (s *story) otherUID(uid types.UID) { s.outbox.UID = uid }
