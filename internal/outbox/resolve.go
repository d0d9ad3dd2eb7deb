// SPDX-FileCopyrightText: The WorkItem Operator Authors
// SPDX-License-Identifier: Apache-2.0

package outbox

import (
	"strings"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/workitem-operator/workitem-operator/api/v1alpha1"
)

// Asked is a person's decision, as the annotations of an outbox give it.
type Asked struct {
	// Action is what is asked for; it may be none of the known ones.
	Action v1alpha1.DecisionAction
	// Reason and By are the person's own words; By falls back to the name of the
	// client that set the annotation.
	Reason, By string
}

// Verdict is what becomes of a person's decision.
type Verdict int

const (
	// CarryOut means that the decision applies.
	CarryOut Verdict = iota + 1
	// Done means that it was carried out before: only the annotation is left.
	Done
	// Refuse means that it does not apply; the message says why.
	Refuse
)

// AskedOf reads a person's decision.
func AskedOf(ob *v1alpha1.NotificationOutbox) Asked {
	a := Asked{
		Action: v1alpha1.DecisionAction(ob.Annotations[v1alpha1.AnnotationDecision]),
		Reason: clip(strings.TrimSpace(ob.Annotations[v1alpha1.AnnotationDecisionReason]), 1024),
		By:     clip(strings.TrimSpace(ob.Annotations[v1alpha1.AnnotationDecisionBy]), 253),
	}
	if a.By == "" {
		a.By = annotator(ob)
	}
	return a
}

// annotator is the field manager that owns the annotation.
func annotator(ob *v1alpha1.NotificationOutbox) string {
	for _, m := range ob.ManagedFields {
		if m.FieldsV1 != nil && strings.Contains(m.FieldsV1.String(), `"f:`+v1alpha1.AnnotationDecision+`"`) {
			return m.Manager
		}
	}
	return "unknown"
}

// Judge says what becomes of a person's decision, and why if it is refused.
func Judge(ob *v1alpha1.NotificationOutbox, asked Asked) (verdict Verdict, why string) {
	phase := ob.Status.Phase
	if asked.Reason == "" {
		return Refuse, "the annotation " + v1alpha1.AnnotationDecisionReason + " must say why"
	}
	switch asked.Action {
	case v1alpha1.DecisionReplay:
		if phase == v1alpha1.OutboxHeld || phase == v1alpha1.OutboxDeadLettered {
			return CarryOut, ""
		}
		if carriedOut(ob, asked) {
			return Done, ""
		}
		return Refuse, "only an outbox that is Held or DeadLettered can be replayed"
	case v1alpha1.DecisionMarkSent, v1alpha1.DecisionAbandon:
		if phase != v1alpha1.OutboxSent && phase != v1alpha1.OutboxSuperseded {
			return CarryOut, ""
		}
		if carriedOut(ob, asked) {
			return Done, ""
		}
		return Refuse, "the outbox is " + string(phase) + ", which is final"
	}
	return Refuse, "the annotation " + v1alpha1.AnnotationDecision + " must be Replay, MarkSent or Abandon"
}

func carriedOut(ob *v1alpha1.NotificationOutbox, asked Asked) bool {
	d := ob.Status.Decision
	return d != nil && d.Action == asked.Action && d.Reason == asked.Reason
}

// Decided is the status once a person's decision is carried out.
func Decided(ob *v1alpha1.NotificationOutbox, provider *v1alpha1.NotificationProvider, lost *Lost, asked Asked, now time.Time) v1alpha1.NotificationOutboxStatus {
	st := Abandoned(ob, lost)
	st.Decision = &v1alpha1.Decision{Action: asked.Action, Reason: asked.Reason, By: asked.By, Time: stamp(now)}
	words := "by " + asked.By + ": " + asked.Reason
	switch asked.Action {
	case v1alpha1.DecisionReplay:
		st.Phase = v1alpha1.OutboxPending
		// A next attempt that is scheduled tells a replay from an attempt whose holder
		// was lost, which the policy Hold would hold again.
		st.FinishedTime, st.NextAttemptTime, st.ExcusedSince = nil, stamp(now), nil
		st.RetryStartTime, st.ExcusedSeconds = stamp(now), 0
		st.Guarantee = GuaranteeNow(&st, provider, now)
		setDelivered(&st, metav1.ConditionFalse, v1alpha1.ReasonReplayed, words, ob.Generation, now)
	case v1alpha1.DecisionMarkSent:
		finish(&st, v1alpha1.OutboxSent, now)
		st.SentTime = stamp(now)
		setDelivered(&st, metav1.ConditionTrue, v1alpha1.ReasonMarkedSent, words, ob.Generation, now)
	case v1alpha1.DecisionAbandon:
		finish(&st, v1alpha1.OutboxSuperseded, now)
		setDelivered(&st, metav1.ConditionFalse, v1alpha1.ReasonAbandoned, words, ob.Generation, now)
	}
	return st
}
