// SPDX-FileCopyrightText: The WorkItem Operator Authors
// SPDX-License-Identifier: Apache-2.0

// Package claim decides who may send a notification: it reads the Lease that
// claims an outbox, and what this process has observed of it.
//
// It is a rule package without a clock, a client or a logger. Every time that it
// is given must carry the monotonic reading of this process's clock.
//
// What it promises, and what it does not. A claim makes it unlikely that two
// processes send the same notification at the same time; it is no fence: a
// process that is stopped for longer than its claim and then goes on is not
// stopped by a Lease. That is what the outbox's resourceVersion (for what is
// recorded) and the idempotency key (for what the provider does) are for. It
// never compares the clocks of two machines: another holder's claim is expired
// when this process has watched it unchanged for its whole duration.
package claim

import (
	"time"

	coordinationv1 "k8s.io/api/coordination/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/workitem-operator/workitem-operator/api/v1alpha1"
)

// Action is what to do about a claim.
type Action int

const (
	// Create means that there is no Lease: create it. Whoever succeeds holds the
	// claim, and nobody held it before.
	Create Action = iota + 1
	// Renew means that this process holds the claim and may go on with it: update the
	// Lease, with its resourceVersion as the precondition.
	Renew
	// TakeOver means that the claim is expired: update the Lease, with its
	// resourceVersion as the precondition, then read the outbox before anything else.
	TakeOver
	// Wait means that somebody's claim may still hold: look again after Decision.After.
	Wait
)

// Facts is all that a decision about a claim needs.
type Facts struct {
	// Lease is the Lease of the outbox's name; nil if there is none.
	Lease *coordinationv1.Lease
	// Self is the identity of this process, unique per start.
	Self string
	// OutboxUID is the UID of the outbox that is to be claimed.
	OutboxUID types.UID
	// Duration is the provider's leaseDuration.
	Duration time.Duration
	// ObservedAt is when this process first saw the Lease as it is now.
	ObservedAt time.Time
	// Now is the time of the decision.
	Now time.Time
	// Settled tells that the last attempt of this outbox ended with a definite
	// rejection recorded by this process: only then may it go on with its own claim
	// before it has run out.
	Settled bool
}

// Decision is what to do about a claim, and when to look again.
type Decision struct {
	// Action says what to do.
	Action Action
	// After is how long to wait before looking again, for the action Wait.
	After time.Duration
}

// Decide says what to do about a claim.
func Decide(f Facts) Decision {
	if f.Lease == nil {
		return Decision{Action: Create}
	}
	if f.Settled && holder(f.Lease) == f.Self && f.Self != "" && Owns(f.Lease, f.OutboxUID) {
		return Decision{Action: Renew}
	}
	if left := DurationOf(f.Lease, f.Duration) - f.Now.Sub(f.ObservedAt); left > 0 {
		return Decision{Action: Wait, After: left}
	}
	return Decision{Action: TakeOver}
}

// Owns tells whether a Lease is a claim on the outbox with this UID. A Lease that
// an outbox of an earlier life left behind is not.
func Owns(lease *coordinationv1.Lease, outbox types.UID) bool {
	for _, ref := range lease.OwnerReferences {
		if ref.Kind == v1alpha1.KindNotificationOutbox && ref.UID == outbox {
			return true
		}
	}
	return false
}

// HeldBy tells whether a Lease is the claim of this very process on the outbox
// with this UID. An empty identity holds nothing.
func HeldBy(lease *coordinationv1.Lease, self string, outbox types.UID) bool {
	return self != "" && holder(lease) == self && Owns(lease, outbox)
}

// Seconds is the leaseDurationSeconds for a duration: rounded up, so that the
// Lease never promises less than the provider asks for.
func Seconds(d time.Duration) int32 {
	return int32((d + time.Second - 1) / time.Second) //nolint:gosec // Admission bounds leaseDuration to one hour.
}

// New is the Lease that claims an outbox for the first time.
func New(outbox *v1alpha1.NotificationOutbox, self string, d time.Duration, now time.Time) *coordinationv1.Lease {
	lease := &coordinationv1.Lease{ObjectMeta: metav1.ObjectMeta{Name: outbox.Name, Namespace: outbox.Namespace}}
	hold(lease, outbox, self, d, now)
	lease.Spec.AcquireTime = &metav1.MicroTime{Time: now}
	var none int32
	lease.Spec.LeaseTransitions = &none
	return lease
}

// Renewed is the Lease after its holder renewed it.
func Renewed(lease *coordinationv1.Lease, d time.Duration, now time.Time) *coordinationv1.Lease {
	out := lease.DeepCopy()
	seconds := Seconds(d)
	out.Spec.LeaseDurationSeconds = &seconds
	out.Spec.RenewTime = &metav1.MicroTime{Time: now}
	return out
}

// TakenOver is the Lease after this process took it over. leaseTransitions counts
// the changes of holder; it is no epoch, since it begins anew with a new Lease.
func TakenOver(lease *coordinationv1.Lease, outbox *v1alpha1.NotificationOutbox, self string, d time.Duration, now time.Time) *coordinationv1.Lease {
	out := lease.DeepCopy()
	var transitions int32
	if t := lease.Spec.LeaseTransitions; t != nil {
		transitions = *t
	}
	if holder(lease) != self {
		transitions++
	}
	hold(out, outbox, self, d, now)
	out.Spec.AcquireTime = &metav1.MicroTime{Time: now}
	out.Spec.LeaseTransitions = &transitions
	return out
}

func hold(lease *coordinationv1.Lease, outbox *v1alpha1.NotificationOutbox, self string, d time.Duration, now time.Time) {
	if lease.Labels == nil {
		lease.Labels = map[string]string{}
	}
	lease.Labels[v1alpha1.LabelClaim] = v1alpha1.LabelClaimValue
	lease.OwnerReferences = []metav1.OwnerReference{{
		APIVersion: v1alpha1.GroupVersion.String(),
		Kind:       v1alpha1.KindNotificationOutbox,
		Name:       outbox.Name,
		UID:        outbox.UID,
	}}
	seconds := Seconds(d)
	lease.Spec.HolderIdentity = &self
	lease.Spec.LeaseDurationSeconds = &seconds
	lease.Spec.RenewTime = &metav1.MicroTime{Time: now}
}

func holder(lease *coordinationv1.Lease) string {
	if lease.Spec.HolderIdentity == nil {
		return ""
	}
	return *lease.Spec.HolderIdentity
}

// longest is the longest claim that admission lets a provider ask for. A Lease that
// says more was not written by this operator.
const longest = time.Hour

// DurationOf is how long a claim holds: what its holder wrote, or the provider's
// duration where that is missing or senseless.
func DurationOf(lease *coordinationv1.Lease, fallback time.Duration) time.Duration {
	if s := lease.Spec.LeaseDurationSeconds; s != nil && *s > 0 && *s <= int32(longest/time.Second) {
		return time.Duration(*s) * time.Second
	}
	return fallback
}
