// SPDX-FileCopyrightText: The WorkItem Operator Authors
// SPDX-License-Identifier: Apache-2.0

package workitem

import (
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/workitem-operator/workitem-operator/api/v1alpha1"
	"github.com/workitem-operator/workitem-operator/internal/overdue"
)

// The actions that the Events of this package name.
const (
	actionTransition = "Transition"
	actionRecord     = "RecordOutbox"
)

// eventFired tells of a transition of which people are notified.
func (p *pass) eventFired(item *v1alpha1.WorkItem, fired overdue.Firing) {
	switch fired.Transition {
	case v1alpha1.TransitionOverdue:
		p.events.Eventf(item, nil, corev1.EventTypeNormal, string(fired.Transition), actionTransition,
			"Overdue for the %d. time, due at %s, committed %s later; %d to notify",
			item.Status.Occurrence, item.Status.OverdueTime.UTC().Format(time.RFC3339), lateness(item), len(fired.Notify))
	case v1alpha1.TransitionEscalated:
		p.events.Eventf(item, nil, corev1.EventTypeNormal, string(fired.Transition), actionTransition,
			"Escalated to step %d; %d to notify", fired.Level, len(fired.Notify))
	}
}

// eventPhase tells of a change of phase that the user brought about.
func (p *pass) eventPhase(item *v1alpha1.WorkItem) {
	p.events.Eventf(item, nil, corev1.EventTypeNormal, string(item.Status.Phase), actionTransition,
		"The item is now %s", item.Status.Phase)
}

// eventProblem tells once of a problem that only a person can solve.
func (p *pass) eventProblem(before, after *v1alpha1.WorkItem) {
	now := meta.FindStatusCondition(after.Status.Conditions, v1alpha1.ConditionStalled)
	if now == nil || now.Status != metav1.ConditionTrue {
		return
	}
	was := meta.FindStatusCondition(before.Status.Conditions, v1alpha1.ConditionStalled)
	if was != nil && was.Reason == now.Reason {
		return
	}
	p.events.Eventf(after, nil, corev1.EventTypeWarning, now.Reason, actionRecord, "%s", now.Message)
}
