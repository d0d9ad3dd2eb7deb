// SPDX-FileCopyrightText: The WorkItem Operator Authors
// SPDX-License-Identifier: Apache-2.0

package wrappers

import (
	"time"

	coordinationv1 "k8s.io/api/coordination/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/workitem-operator/workitem-operator/api/v1alpha1"
)

// Lease builds a Lease.
type Lease struct{ lease coordinationv1.Lease }

// MakeLease begins a Lease with our label that nobody owns or holds.
func MakeLease(name, namespace string) *Lease {
	return &Lease{lease: coordinationv1.Lease{ObjectMeta: metav1.ObjectMeta{
		Name: name, Namespace: namespace, UID: UID("lease/" + namespace + "/" + name),
		Labels: map[string]string{v1alpha1.LabelClaim: v1alpha1.LabelClaimValue},
	}}}
}

// Obj is the Lease.
func (w *Lease) Obj() *coordinationv1.Lease { return w.lease.DeepCopy() }

// Owner makes the outbox of this name and UID the owner.
func (w *Lease) Owner(name string, uid types.UID) *Lease {
	w.lease.OwnerReferences = append(w.lease.OwnerReferences, metav1.OwnerReference{
		APIVersion: v1alpha1.GroupVersion.String(), Kind: v1alpha1.KindNotificationOutbox, Name: name, UID: uid,
	})
	return w
}

// OwnerKind makes an object of another kind the owner.
func (w *Lease) OwnerKind(kind string, uid types.UID) *Lease {
	w.lease.OwnerReferences = append(w.lease.OwnerReferences, metav1.OwnerReference{APIVersion: "v1", Kind: kind, Name: "other", UID: uid})
	return w
}

// Holder sets spec.holderIdentity.
func (w *Lease) Holder(identity string) *Lease {
	w.lease.Spec.HolderIdentity = &identity
	return w
}

// Seconds sets spec.leaseDurationSeconds.
func (w *Lease) Seconds(n int32) *Lease {
	w.lease.Spec.LeaseDurationSeconds = &n
	return w
}

// Renewed sets spec.renewTime.
func (w *Lease) Renewed(t time.Time) *Lease {
	w.lease.Spec.RenewTime = &metav1.MicroTime{Time: t}
	return w
}

// Acquired sets spec.acquireTime.
func (w *Lease) Acquired(t time.Time) *Lease {
	w.lease.Spec.AcquireTime = &metav1.MicroTime{Time: t}
	return w
}

// Transitions sets spec.leaseTransitions.
func (w *Lease) Transitions(n int32) *Lease {
	w.lease.Spec.LeaseTransitions = &n
	return w
}
