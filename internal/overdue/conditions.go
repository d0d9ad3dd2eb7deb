// SPDX-FileCopyrightText: The WorkItem Operator Authors
// SPDX-License-Identifier: Apache-2.0

package overdue

import (
	"slices"
	"strings"
	"time"

	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/workitem-operator/workitem-operator/api/v1alpha1"
)

// maxMessage is the longest message of a condition.
const maxMessage = 1024

// setConditions sets every condition of an item, each from the status alone and
// the facts, so that none is ever left over from an earlier pass.
func setConditions(st *v1alpha1.WorkItemStatus, f Facts) {
	set := func(c metav1.Condition) {
		c.ObservedGeneration = f.Item.Generation
		c.LastTransitionTime = metav1.Time{Time: f.Now.UTC().Truncate(time.Second)}
		if len(c.Message) > maxMessage {
			c.Message = strings.ToValidUTF8(c.Message[:maxMessage], "")
		}
		meta.SetStatusCondition(&st.Conditions, c)
	}
	ready, stalled := readiness(st, f)
	set(ready)
	for _, kind := range []string{v1alpha1.ConditionReconciling, v1alpha1.ConditionStalled} {
		if ready.Status == metav1.ConditionTrue || stalled != (kind == v1alpha1.ConditionStalled) {
			meta.RemoveStatusCondition(&st.Conditions, kind)
			continue
		}
		set(metav1.Condition{Type: kind, Status: metav1.ConditionTrue, Reason: ready.Reason, Message: ready.Message})
	}
	set(overdueCondition(st, f.Item))
	set(notifiedCondition(st, f.Item))
}

// readiness is the condition Ready; stalled tells, where it is False, whether only
// a person can change that.
func readiness(st *v1alpha1.WorkItemStatus, f Facts) (c metav1.Condition, stalled bool) {
	var taken, refused, missing []string
	for _, in := range st.Notifications {
		switch {
		case !Open(in.Phase) || f.Outboxes[in.OutboxName] != nil:
		case f.Taken[in.OutboxName]:
			taken = append(taken, in.OutboxName)
		case f.Refused[in.OutboxName] != "":
			refused = append(refused, in.OutboxName+": "+f.Refused[in.OutboxName])
		case f.Missing[in.ProviderName] && !slices.Contains(missing, in.ProviderName):
			missing = append(missing, in.ProviderName)
		}
	}
	c = metav1.Condition{Type: v1alpha1.ConditionReady, Status: metav1.ConditionFalse}
	switch {
	case len(taken) > 0:
		c.Reason = v1alpha1.ReasonOutboxNameTaken
		c.Message = "another object has the name of the outbox, delete it: " + strings.Join(taken, ", ")
		return c, true
	case len(refused) > 0:
		c.Reason = v1alpha1.ReasonOutboxRefused
		c.Message = "the API server refuses to create the outbox " + strings.Join(refused, "; ")
		return c, true
	case len(missing) > 0:
		c.Reason = v1alpha1.ReasonProviderNotFound
		c.Message = "waiting for the NotificationProvider to be created: " + strings.Join(missing, ", ")
		return c, false
	}
	c.Status, c.Reason = metav1.ConditionTrue, v1alpha1.ReasonReconciled
	c.Message = "the status answers to the spec"
	return c, false
}

func overdueCondition(st *v1alpha1.WorkItemStatus, item *v1alpha1.WorkItem) metav1.Condition {
	c := metav1.Condition{Type: v1alpha1.ConditionOverdue, Status: metav1.ConditionFalse}
	switch st.Phase {
	case v1alpha1.PhaseOverdue:
		c.Status, c.Reason = metav1.ConditionTrue, v1alpha1.ReasonDuePassed
		c.Message = "due at " + st.OverdueTime.UTC().Format(time.RFC3339)
	case v1alpha1.PhaseCompleted:
		c.Reason, c.Message = v1alpha1.ReasonCompleted, "the item is completed"
	case v1alpha1.PhaseCancelled:
		c.Reason, c.Message = v1alpha1.ReasonCancelled, "the item is cancelled"
	case v1alpha1.PhaseOpen:
		c.Reason, c.Message = v1alpha1.ReasonNoDueTime, "the item has no dueTime"
		if item.Spec.DueTime != nil {
			c.Reason, c.Message = v1alpha1.ReasonNotDue, "due at "+item.Spec.DueTime.UTC().Format(time.RFC3339)
		}
	}
	return c
}

// notifiedCondition sums up the notifications of the current occurrence.
func notifiedCondition(st *v1alpha1.WorkItemStatus, item *v1alpha1.WorkItem) metav1.Condition {
	var open, sent, all int
	for _, in := range st.Notifications {
		if in.Occurrence != st.Occurrence {
			continue
		}
		all++
		if Open(in.Phase) {
			open++
		}
		if in.Phase == v1alpha1.NotificationSent {
			sent++
		}
	}
	c := metav1.Condition{Type: v1alpha1.ConditionNotified, Status: metav1.ConditionFalse}
	switch {
	case all == 0 && !Active(item):
		c.Status, c.Reason, c.Message = metav1.ConditionUnknown, v1alpha1.ReasonNobodyToNotify, "the item ended before anybody had to be notified"
	case all == 0 && len(item.Spec.Notify)+len(item.Spec.Escalations) == 0:
		c.Status, c.Reason, c.Message = metav1.ConditionUnknown, v1alpha1.ReasonNobodyToNotify, "spec.notify and spec.escalations name nobody"
	case all == 0:
		c.Reason, c.Message = v1alpha1.ReasonPending, "nobody had to be notified yet"
	case open > 0:
		c.Reason, c.Message = v1alpha1.ReasonPending, "at least one notification is not finished"
	case sent == all:
		c.Status, c.Reason, c.Message = metav1.ConditionTrue, v1alpha1.ReasonAllSent, "every notification is Sent"
	default:
		c.Reason, c.Message = v1alpha1.ReasonNotAllSent, "at least one notification ended without being sent; see status.notifications"
	}
	return c
}
