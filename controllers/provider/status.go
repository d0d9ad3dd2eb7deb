// SPDX-FileCopyrightText: The WorkItem Operator Authors
// SPDX-License-Identifier: Apache-2.0

package provider

import (
	"time"

	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/workitem-operator/workitem-operator/api/v1alpha1"
	"github.com/workitem-operator/workitem-operator/internal/endpoint"
	"github.com/workitem-operator/workitem-operator/internal/outbox"
	"github.com/workitem-operator/workitem-operator/internal/outcome"
)

// Facts is all that the status of a provider depends on.
type Facts struct {
	// Provider is the provider as it was read.
	Provider *v1alpha1.NotificationProvider
	// Now is the time of the decision.
	Now time.Time
	// Pause is the last pause that this replica knows of; nil if there was none.
	Pause *v1alpha1.ProviderPause
	// Secrets says which versions of its Secrets the provider has now.
	Secrets string
	// Problem is why it cannot be called; nil if it can.
	Problem *endpoint.Problem
}

// Next is the status of a provider.
func Next(f Facts) v1alpha1.NotificationProviderStatus {
	st := *f.Provider.Status.DeepCopy()
	st.ObservedGeneration = f.Provider.Generation
	st.Guarantee = outbox.ProviderGuarantee(f.Provider)
	st.Pause = nil
	if lasts(f) {
		st.Pause = f.Pause.DeepCopy()
	}
	ready, kind := readiness(f, st.Pause)
	setConditions(&st, f, ready, kind)
	return st
}

// lasts tells whether a pause goes on. One for a wrong configuration ends with a
// change of spec, or, unless the endpoint is gone for good, of a Secret, or with a
// call that is accepted; one that the provider asked for ends by itself.
func lasts(f Facts) bool {
	p := f.Pause
	switch {
	case p == nil || p.Generation != f.Provider.Generation:
		return false
	case p.Reason == outcome.ReasonEndpointGone:
		return true
	case outbox.Parking(p):
		return p.Secrets == f.Secrets
	default:
		return outbox.PauseInForce(p, f.Provider, f.Now)
	}
}

// readiness is the condition Ready, and the condition that goes with it when it is
// False.
func readiness(f Facts, pause *v1alpha1.ProviderPause) (ready metav1.Condition, kind string) {
	ready = metav1.Condition{Type: v1alpha1.ConditionReady, Status: metav1.ConditionFalse}
	switch {
	case f.Provider.Spec.Suspend:
		ready.Reason, ready.Message = v1alpha1.ReasonSuspended, "spec.suspend is set: nothing is sent, and nothing is lost"
		return ready, ""
	case f.Problem != nil:
		ready.Reason, ready.Message = f.Problem.Reason, f.Problem.Message
		if f.Problem.Reason == v1alpha1.ReasonSecretNotFound {
			return ready, v1alpha1.ConditionReconciling
		}
		return ready, v1alpha1.ConditionStalled
	case pause != nil && outbox.Parking(pause):
		ready.Reason, ready.Message = pause.Reason, pause.Message
		return ready, v1alpha1.ConditionStalled
	}
	ready.Status, ready.Reason, ready.Message = metav1.ConditionTrue, v1alpha1.ReasonReconciled, "the provider can be called"
	return ready, ""
}

func setConditions(st *v1alpha1.NotificationProviderStatus, f Facts, ready metav1.Condition, kind string) {
	set := func(c metav1.Condition) {
		c.ObservedGeneration = f.Provider.Generation
		c.LastTransitionTime = metav1.Time{Time: f.Now.UTC().Truncate(time.Second)}
		meta.SetStatusCondition(&st.Conditions, c)
	}
	set(ready)
	for _, k := range []string{v1alpha1.ConditionReconciling, v1alpha1.ConditionStalled} {
		if k != kind {
			meta.RemoveStatusCondition(&st.Conditions, k)
			continue
		}
		set(metav1.Condition{Type: k, Status: metav1.ConditionTrue, Reason: ready.Reason, Message: ready.Message})
	}
}

func readyOf(st v1alpha1.NotificationProviderStatus) metav1.Condition {
	if c := meta.FindStatusCondition(st.Conditions, v1alpha1.ConditionReady); c != nil {
		return *c
	}
	return metav1.Condition{Type: v1alpha1.ConditionReady, Status: metav1.ConditionUnknown}
}
