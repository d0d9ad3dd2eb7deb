// SPDX-FileCopyrightText: The WorkItem Operator Authors
// SPDX-License-Identifier: Apache-2.0

package wrappers

import (
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/workitem-operator/workitem-operator/api/v1alpha1"
)

// Outbox builds a NotificationOutbox.
type Outbox struct{ outbox v1alpha1.NotificationOutbox }

// MakeOutbox begins an outbox of nothing. Its spec comes from Spec or From.
func MakeOutbox(name, namespace string) *Outbox {
	return &Outbox{outbox: v1alpha1.NotificationOutbox{ObjectMeta: metav1.ObjectMeta{
		Name: name, Namespace: namespace, UID: UID("outbox/" + namespace + "/" + name), Generation: 1,
	}}}
}

// OutboxFrom begins with an outbox that a test already has, and gives it a UID if
// it has none.
func OutboxFrom(ob *v1alpha1.NotificationOutbox) *Outbox {
	w := &Outbox{outbox: *ob.DeepCopy()}
	if w.outbox.UID == "" {
		w.outbox.UID = UID("outbox/" + ob.Namespace + "/" + ob.Name)
		w.outbox.Generation = 1
	}
	return w
}

// Obj is the outbox.
func (w *Outbox) Obj() *v1alpha1.NotificationOutbox { return w.outbox.DeepCopy() }

// Spec sets the whole spec.
func (w *Outbox) Spec(spec v1alpha1.NotificationOutboxSpec) *Outbox {
	w.outbox.Spec = spec
	return w
}

// Owner makes a WorkItem the outbox's controller.
func (w *Outbox) Owner(item *v1alpha1.WorkItem) *Outbox {
	w.outbox.OwnerReferences = []metav1.OwnerReference{*metav1.NewControllerRef(item, v1alpha1.GroupVersion.WithKind(v1alpha1.KindWorkItem))}
	return w
}

// Deleting sets metadata.deletionTimestamp, and the finalizer that it takes.
func (w *Outbox) Deleting(t time.Time) *Outbox {
	w.outbox.DeletionTimestamp = at(t)
	w.outbox.Finalizers = []string{"example.com/test"}
	return w
}

// Decision sets the annotations of a person's decision.
func (w *Outbox) Decision(action, reason, by string) *Outbox {
	w.outbox.Annotations = map[string]string{v1alpha1.AnnotationDecision: action}
	if reason != "" {
		w.outbox.Annotations[v1alpha1.AnnotationDecisionReason] = reason
	}
	if by != "" {
		w.outbox.Annotations[v1alpha1.AnnotationDecisionBy] = by
	}
	return w
}

// Status sets the whole status.
func (w *Outbox) Status(st v1alpha1.NotificationOutboxStatus) *Outbox {
	w.outbox.Status = *st.DeepCopy()
	return w
}

// Phase sets status.phase.
func (w *Outbox) Phase(p v1alpha1.OutboxPhase) *Outbox {
	w.outbox.Status.Phase = p
	return w
}

// Finished sets status.phase and status.finishedTime.
func (w *Outbox) Finished(p v1alpha1.OutboxPhase, t time.Time) *Outbox {
	w.outbox.Status.Phase = p
	w.outbox.Status.FinishedTime = at(t)
	return w
}

// Attempts sets status.attempts, and when the first was made.
func (w *Outbox) Attempts(n int32, first time.Time) *Outbox {
	w.outbox.Status.Attempts = n
	w.outbox.Status.FirstAttemptTime, w.outbox.Status.RetryStartTime = at(first), at(first)
	return w
}

// LastAttempt sets status.lastAttempt; its number is that of status.attempts.
func (w *Outbox) LastAttempt(holder string, outcome v1alpha1.AttemptOutcome, reason string) *Outbox {
	w.outbox.Status.LastAttempt = &v1alpha1.Attempt{Number: w.outbox.Status.Attempts, Holder: holder, Outcome: outcome, Reason: reason}
	return w
}

// NextAttempt sets status.nextAttemptTime.
func (w *Outbox) NextAttempt(t time.Time) *Outbox {
	w.outbox.Status.NextAttemptTime = at(t)
	return w
}

// Excused sets status.excusedSeconds, and since when more is excused.
func (w *Outbox) Excused(seconds int64, since *time.Time) *Outbox {
	w.outbox.Status.ExcusedSeconds = seconds
	if since != nil {
		w.outbox.Status.ExcusedSince = at(*since)
	}
	return w
}

// Guarantee sets status.guarantee.
func (w *Outbox) Guarantee(g v1alpha1.Guarantee) *Outbox {
	w.outbox.Status.Guarantee = g
	return w
}

// Delivered sets the condition Delivered.
func (w *Outbox) Delivered(status metav1.ConditionStatus, reason string) *Outbox {
	w.outbox.Status.Conditions = []metav1.Condition{{Type: v1alpha1.ConditionDelivered, Status: status, Reason: reason}}
	return w
}
