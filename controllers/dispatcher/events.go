// SPDX-FileCopyrightText: The WorkItem Operator Authors
// SPDX-License-Identifier: Apache-2.0

package dispatcher

import (
	coordinationv1 "k8s.io/api/coordination/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"

	"github.com/workitem-operator/workitem-operator/api/v1alpha1"
	"github.com/workitem-operator/workitem-operator/internal/outbox"
	"github.com/workitem-operator/workitem-operator/internal/outcome"
)

// The actions that the Events of this package name.
const (
	actionDispatch = "Dispatch"
	actionDecide   = "Decide"
)

// related is the WorkItem that an Event on an outbox is also about.
func related(item *v1alpha1.WorkItem) runtime.Object {
	if item == nil {
		return nil
	}
	return item
}

// eventEnd tells of an outbox that has ended: a Warning if a person may have to act.
func (r *Reconciler) eventEnd(ob *v1alpha1.NotificationOutbox, item *v1alpha1.WorkItem) {
	kind := corev1.EventTypeNormal
	if ob.Status.Phase == v1alpha1.OutboxDeadLettered || ob.Status.Phase == v1alpha1.OutboxHeld {
		kind = corev1.EventTypeWarning
	}
	reason, message := "", ""
	if c := meta.FindStatusCondition(ob.Status.Conditions, v1alpha1.ConditionDelivered); c != nil {
		reason, message = c.Reason, c.Message
	}
	r.Events.Eventf(ob, related(item), kind, string(ob.Status.Phase), actionDispatch,
		"%s to provider %s after %d attempts (%s): %s", ob.Status.Phase, ob.Spec.ProviderName, ob.Status.Attempts, reason, message)
}

// eventHeldUp tells of an outbox that is never sent because nobody asked for it, on
// the outbox and on the WorkItem that it claims to be about.
func (r *Reconciler) eventHeldUp(ob *v1alpha1.NotificationOutbox, item *v1alpha1.WorkItem, d outbox.Decision) {
	if d.Reason != v1alpha1.ReasonNotRequested {
		return
	}
	r.Events.Eventf(ob, related(item), corev1.EventTypeWarning, d.Reason, actionDispatch, "%s", d.Message)
	if item != nil {
		r.Events.Eventf(item, ob, corev1.EventTypeWarning, d.Reason, actionDispatch,
			"NotificationOutbox %s claims to be about this WorkItem and is never sent: %s", ob.Name, d.Message)
	}
}

// eventLate tells of an outcome that came after another holder had taken over.
func (r *Reconciler) eventLate(ob *v1alpha1.NotificationOutbox, j *job, res outcome.Result) {
	r.Events.Eventf(ob, related(j.item), corev1.EventTypeNormal, "LateResult", actionDispatch,
		"Attempt %d ended as %s (%s) after another replica had taken the outbox over; it changes nothing", j.start.Number, res.Class, res.Reason)
}

// eventDecision tells of a decision that was carried out.
func (r *Reconciler) eventDecision(ob *v1alpha1.NotificationOutbox, item *v1alpha1.WorkItem, asked outbox.Asked) {
	r.Events.Eventf(ob, related(item), corev1.EventTypeNormal, string(asked.Action), actionDecide,
		"%s by %s: %s", asked.Action, asked.By, asked.Reason)
}

// eventRefused tells of a decision that does not apply.
func (r *Reconciler) eventRefused(ob *v1alpha1.NotificationOutbox, asked outbox.Asked, why string) {
	r.Events.Eventf(ob, nil, corev1.EventTypeWarning, "DecisionRefused", actionDecide, "%q by %s is refused: %s", asked.Action, asked.By, why)
}

func holderOf(lease *coordinationv1.Lease) string {
	if lease.Spec.HolderIdentity == nil {
		return ""
	}
	return *lease.Spec.HolderIdentity
}

// ownerOf is the UID of the outbox that a Lease claims; empty if it claims none.
func ownerOf(lease *coordinationv1.Lease) types.UID {
	for _, ref := range lease.OwnerReferences {
		if ref.Kind == v1alpha1.KindNotificationOutbox {
			return ref.UID
		}
	}
	return ""
}
