// SPDX-FileCopyrightText: The WorkItem Operator Authors
// SPDX-License-Identifier: Apache-2.0

package v1alpha1

// The condition types of a WorkItem. The WorkItem reconciler sets all of them.
const (
	// ConditionReady is True when the status answers to the spec and every intent
	// has its outbox. kstatus reads it.
	ConditionReady = "Ready"
	// ConditionReconciling is present, and True, while the operator waits for
	// something that is expected to come, such as a provider. kstatus reads it.
	ConditionReconciling = "Reconciling"
	// ConditionStalled is present, and True, while nothing will happen unless a
	// person changes something. kstatus reads it.
	ConditionStalled = "Stalled"
	// ConditionOverdue is True while the item is overdue.
	ConditionOverdue = "Overdue"
	// ConditionNotified says whether everyone who must hear of the item has heard
	// of it: Unknown without anyone to notify, False while something is open or
	// ended otherwise, True when all notifications are Sent.
	ConditionNotified = "Notified"
)

// The reasons of a WorkItem's conditions.
const (
	// ReasonReconciled means that there is nothing left to do for now.
	ReasonReconciled = "Reconciled"
	// ReasonProviderNotFound means that an intent waits for its NotificationProvider
	// to be created; creating it clears this.
	ReasonProviderNotFound = "ProviderNotFound"
	// ReasonOutboxNameTaken means that another object has the name of an intent's
	// outbox; deleting that object clears this.
	ReasonOutboxNameTaken = "OutboxNameTaken"
	// ReasonOutboxRefused means that the API server refuses to create an outbox, for
	// example because of a quota; the message has its words.
	ReasonOutboxRefused = "OutboxRefused"
	// ReasonDuePassed means that the due time passed.
	ReasonDuePassed = "DuePassed"
	// ReasonNotDue means that the due time has not passed yet.
	ReasonNotDue = "NotDue"
	// ReasonNoDueTime means that the item has no due time.
	ReasonNoDueTime = "NoDueTime"
	// ReasonCompleted means that the user completed the item.
	ReasonCompleted = "Completed"
	// ReasonCancelled means that the user cancelled the item.
	ReasonCancelled = "Cancelled"
	// ReasonNobodyToNotify means that no provider is to be told of anything.
	ReasonNobodyToNotify = "NobodyToNotify"
	// ReasonPending means that at least one notification is not finished.
	ReasonPending = "Pending"
	// ReasonAllSent means that every notification is Sent.
	ReasonAllSent = "AllSent"
	// ReasonNotAllSent means that at least one notification ended as DeadLettered,
	// Held or Superseded.
	ReasonNotAllSent = "NotAllSent"
)
