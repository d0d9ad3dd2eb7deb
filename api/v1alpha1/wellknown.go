// SPDX-FileCopyrightText: The WorkItem Operator Authors
// SPDX-License-Identifier: Apache-2.0

package v1alpha1

// The kinds of this group, as they stand in owner references and events.
const (
	// KindWorkItem is the kind of a WorkItem.
	KindWorkItem = "WorkItem"
	// KindNotificationOutbox is the kind of a NotificationOutbox.
	KindNotificationOutbox = "NotificationOutbox"
	// KindNotificationProvider is the kind of a NotificationProvider.
	KindNotificationProvider = "NotificationProvider"
)

// LabelClaim marks the Leases that are claims on outboxes. Every cache of Leases
// selects on it, because the node Leases of a cluster change every ten seconds
// each and must never reach this process.
const LabelClaim = GroupName + "/claim"

// LabelClaimValue is the only value of LabelClaim.
const LabelClaimValue = "outbox"

// LabelWorkItemUID carries the UID of the WorkItem on its outboxes, so that
// `kubectl get nob -l` finds them.
const LabelWorkItemUID = GroupName + "/workitem-uid"

// The annotations by which a person decides on an outbox. The operator turns
// them into one status write and one Event, then removes them.
const (
	// AnnotationDecision is the decision itself: one of the DecisionAction values.
	AnnotationDecision = GroupName + "/decision"
	// AnnotationDecisionReason says why; it is required, at most 1,024 characters.
	AnnotationDecisionReason = GroupName + "/decision-reason"
	// AnnotationDecisionBy says who. It is what the person claims: without an
	// admission policy nothing proves it.
	AnnotationDecisionBy = GroupName + "/decision-by"
)
