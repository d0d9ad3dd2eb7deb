// SPDX-FileCopyrightText: The WorkItem Operator Authors
// SPDX-License-Identifier: Apache-2.0

package v1alpha1

// ConditionDelivered is the condition of a NotificationOutbox: True when the
// provider accepted it, False otherwise. The dispatcher sets it.
const ConditionDelivered = "Delivered"

// The reasons of the condition Delivered. While a notification is retried, the
// reason is that of its last attempt (see internal/outcome).
const (
	// ReasonSent means that the provider accepted the notification.
	ReasonSent = "Sent"
	// ReasonMarkedSent means that a person recorded that it arrived.
	ReasonMarkedSent = "MarkedSent"
	// ReasonAbandoned means that a person recorded that it shall not be sent.
	ReasonAbandoned = "Abandoned"
	// ReasonReplayed means that a person asked to send it again.
	ReasonReplayed = "Replayed"
	// ReasonDeadlineExceeded means that the retry deadline passed.
	ReasonDeadlineExceeded = "DeadlineExceeded"
	// ReasonAmbiguousOutcome means that the provider may have accepted it, and that
	// its policy is to leave the rest to a person.
	ReasonAmbiguousOutcome = "AmbiguousOutcome"
	// ReasonHolderLost means that the process that made the attempt did not record
	// its outcome.
	ReasonHolderLost = "HolderLost"
	// ReasonWorkItemCompleted means that the WorkItem was completed before the
	// notification was accepted.
	ReasonWorkItemCompleted = "WorkItemCompleted"
	// ReasonWorkItemCancelled means that the WorkItem was cancelled before the
	// notification was accepted.
	ReasonWorkItemCancelled = "WorkItemCancelled"
	// ReasonWorkItemGone means that the WorkItem is deleted or being deleted.
	ReasonWorkItemGone = "WorkItemGone"
	// ReasonOvertaken means that so many later occurrences have begun that this one
	// is of no more interest.
	ReasonOvertaken = "Overtaken"
	// ReasonNotRequested means that no WorkItem has an intent for this outbox: it was
	// made by hand, and is never sent.
	ReasonNotRequested = "NotRequested"
	// ReasonProviderSuspended means that the provider's spec says suspend.
	ReasonProviderSuspended = "ProviderSuspended"
	// ReasonProviderNotReady means that the provider's condition Ready says why
	// nothing is sent to it.
	ReasonProviderNotReady = "ProviderNotReady"
	// ReasonFormatMismatch means that the provider's type is no longer the one that
	// the payload was rendered for.
	ReasonFormatMismatch = "FormatMismatch"
	// ReasonClaimRefused means that the API server refuses the claim's Lease, for
	// example because of a quota; the message has its words.
	ReasonClaimRefused = "ClaimRefused"
	// ReasonAttemptRunning means that an attempt is in flight.
	ReasonAttemptRunning = "AttemptRunning"
)
