// SPDX-FileCopyrightText: The WorkItem Operator Authors
// SPDX-License-Identifier: Apache-2.0

package v1alpha1

import (
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
)

// WorkItemState is what the user wants of a WorkItem.
// +kubebuilder:validation:Enum=Active;Completed;Cancelled
type WorkItemState string

// The states of a WorkItem.
const (
	// StateActive means that the item is still to be done.
	StateActive WorkItemState = "Active"
	// StateCompleted means that the item is done: nobody is notified any more.
	StateCompleted WorkItemState = "Completed"
	// StateCancelled means that the item need not be done: nobody is notified any more.
	StateCancelled WorkItemState = "Cancelled"
)

// WorkItemPriority orders items for the people who read them; it changes
// nothing in how they are notified.
// +kubebuilder:validation:Enum=Low;Normal;High;Critical
type WorkItemPriority string

// The priorities of a WorkItem.
const (
	// PriorityLow is below the default.
	PriorityLow WorkItemPriority = "Low"
	// PriorityNormal is the default.
	PriorityNormal WorkItemPriority = "Normal"
	// PriorityHigh is above the default.
	PriorityHigh WorkItemPriority = "High"
	// PriorityCritical is the highest.
	PriorityCritical WorkItemPriority = "Critical"
)

// WorkItemPhase is where a WorkItem stands, as the operator committed it.
// +kubebuilder:validation:Enum=Open;Overdue;Completed;Cancelled
type WorkItemPhase string

// The phases of a WorkItem; docs/state-machines.md draws the edges.
const (
	// PhaseOpen means that the due time has not passed, or that there is none.
	PhaseOpen WorkItemPhase = "Open"
	// PhaseOverdue means that the due time passed and that the intents to notify
	// are committed.
	PhaseOverdue WorkItemPhase = "Overdue"
	// PhaseCompleted means that the user completed the item.
	PhaseCompleted WorkItemPhase = "Completed"
	// PhaseCancelled means that the user cancelled the item.
	PhaseCancelled WorkItemPhase = "Cancelled"
)

// Transition is a change of a WorkItem of which people are told.
// +kubebuilder:validation:Enum=Overdue;Escalated
type Transition string

// The transitions of which people are told.
const (
	// TransitionOverdue is the passing of the due time.
	TransitionOverdue Transition = "Overdue"
	// TransitionEscalated is the firing of one step of escalations.
	TransitionEscalated Transition = "Escalated"
)

// NotificationPhase is where the notification of one intent stands, as the
// WorkItem reports it.
// +kubebuilder:validation:Enum=Recorded;Pending;Sent;DeadLettered;Held;Superseded
type NotificationPhase string

// The phases of an intent. All but Recorded are phases of its outbox.
const (
	// NotificationRecorded means that the intent is committed and nothing more is
	// reported yet.
	NotificationRecorded NotificationPhase = "Recorded"
	// NotificationPending means that the outbox exists and is not finished.
	NotificationPending NotificationPhase = "Pending"
	// NotificationSent means that the provider accepted it.
	NotificationSent NotificationPhase = "Sent"
	// NotificationDeadLettered means that the operator gave up, for a reason that
	// the outbox states.
	NotificationDeadLettered NotificationPhase = "DeadLettered"
	// NotificationHeld means that a person has to decide.
	NotificationHeld NotificationPhase = "Held"
	// NotificationSuperseded means that there was no more need to send it.
	NotificationSuperseded NotificationPhase = "Superseded"
)

// NotifyTarget names one provider that hears of a transition.
type NotifyTarget struct {
	// providerName is the name of a NotificationProvider in the same namespace. It
	// is a DNS label (at most 63 lower-case letters, digits and '-'), because it is
	// a part of the idempotency key. The provider may be created later.
	// +required
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=63
	// +kubebuilder:validation:XValidation:rule=`self.matches('^[a-z0-9]([-a-z0-9]*[a-z0-9])?$')`,message="providerName must be a DNS label: lower-case letters, digits and '-', beginning and ending with a letter or digit, for example ops-webhook"
	ProviderName string `json:"providerName,omitempty"`
}

// EscalationStep tells more people when an item stays overdue.
type EscalationStep struct {
	// after is how long after dueTime the step fires, for example 2h or 90m; 0s
	// fires together with the due time. At most 87600h.
	// +required
	// +kubebuilder:validation:Type=string
	// +kubebuilder:validation:MaxLength=32
	// +kubebuilder:validation:XValidation:rule=`self.matches('^([0-9]+(\\.[0-9]+)?(ms|s|m|h))+$') && (duration(self) == duration('0s') || duration(self) >= duration('1ms') && duration(self) <= duration('87600h'))`,message="after must be a duration such as 2h or 1h30m: 0s, or between 1ms and 87600h"
	After metav1.Duration `json:"after"`

	// notify says who hears of this step; at least one, at most 16.
	// +required
	// +listType=map
	// +listMapKey=providerName
	// +kubebuilder:validation:MinItems=1
	// +kubebuilder:validation:MaxItems=16
	Notify []NotifyTarget `json:"notify,omitempty"`
}

// WorkItemSpec is what the user wants.
type WorkItemSpec struct {
	// title says in one line what is to be done; 1 to 256 characters. It is in every
	// notification.
	// +required
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=256
	// +kubebuilder:validation:XValidation:rule=`!self.matches('[\\x00-\\x08\\x0b-\\x1f\\x7f-\\x{9f}]')`,message="title must not contain control characters other than tab and newline; remove them"
	Title string `json:"title,omitempty"`

	// description says more; at most 4096 characters. A notification carries it,
	// shortened if the whole body would pass 20 kB.
	// +optional
	// +kubebuilder:validation:MinLength=0
	// +kubebuilder:validation:MaxLength=4096
	// +kubebuilder:validation:XValidation:rule=`!self.matches('[\\x00-\\x08\\x0b-\\x1f\\x7f-\\x{9f}]')`,message="description must not contain control characters other than tab and newline; remove them"
	Description string `json:"description,omitempty"`

	// dueTime is when the item becomes overdue, in RFC 3339 and in whole seconds, for
	// example 2026-12-01T09:00:00Z. Without it the item never becomes overdue. Moving
	// it into the future opens the item again.
	// +optional
	// +kubebuilder:validation:Type=string
	// +kubebuilder:validation:Schemaless
	// +kubebuilder:validation:MaxLength=64
	// +kubebuilder:validation:XValidation:rule=`self.matches('^[0-9]{4}-[0-9]{2}-[0-9]{2}T[0-9]{2}:[0-9]{2}:[0-9]{2}(\\.0{1,9})?(Z|[+-]([01][0-9]|2[0-3]):[0-5][0-9])$') && timestamp(self) >= timestamp('1970-01-01T00:00:00Z') && timestamp(self) <= timestamp('9999-12-31T23:59:59Z')`,message="dueTime must be an RFC 3339 time such as 2026-12-01T09:00:00Z or 2026-12-01T10:00:00+01:00: with a T, a zone and whole seconds, from 1970 to 9999"
	DueTime *metav1.Time `json:"dueTime,omitempty"`

	// assignee says who is to do it; at most 253 characters. It is in every
	// notification and means nothing to the operator.
	// +optional
	// +kubebuilder:validation:MinLength=0
	// +kubebuilder:validation:MaxLength=253
	// +kubebuilder:validation:XValidation:rule=`!self.matches('[\\x00-\\x1f\\x7f-\\x{9f}]')`,message="assignee must not contain control characters; remove them"
	Assignee string `json:"assignee,omitempty"`

	// priority is Low, Normal, High or Critical.
	// +optional
	// +kubebuilder:default=Normal
	Priority WorkItemPriority `json:"priority,omitempty"`

	// state is what the user wants of the item: Active, Completed or Cancelled.
	// Completing or cancelling supersedes every notification that was not sent yet;
	// setting it back to Active opens the item again.
	// +optional
	// +kubebuilder:default=Active
	State WorkItemState `json:"state,omitempty"`

	// notify says who hears that the item is overdue; at most 16 providers.
	// +optional
	// +listType=map
	// +listMapKey=providerName
	// +kubebuilder:validation:MaxItems=16
	Notify []NotifyTarget `json:"notify,omitempty"`

	// escalations tells more people the longer the item stays overdue; at most 8
	// steps, in increasing order of `after`.
	// +optional
	// +listType=atomic
	// +kubebuilder:validation:MaxItems=8
	// +kubebuilder:validation:XValidation:rule="self.exists(e, !e.after.matches('^([0-9.]+(ms|s|m|h))+$')) || (self.map(e, duration(e.after)).isSorted() && self.all(e, self.exists_one(o, duration(o.after) == duration(e.after))))",message="escalations must be in increasing order of after, each longer than the one before; reorder or change them"
	Escalations []EscalationStep `json:"escalations,omitempty"`
}

// Intent is the committed decision to notify one provider of one transition. It
// commits in the same write as the transition itself, and its outbox is made
// from it.
type Intent struct {
	// outboxName is the name of the NotificationOutbox of this intent.
	// +required
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=253
	OutboxName string `json:"outboxName,omitempty"`

	// idempotencyKey identifies the notification at the provider:
	// work-item:<uid>:status:<transition>:<occurrence>:<providerName>.
	// +required
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=255
	IdempotencyKey string `json:"idempotencyKey,omitempty"`

	// transition is what the provider is told of: Overdue or Escalated.
	// +required
	Transition Transition `json:"transition,omitempty"`

	// escalationLevel is the step of escalations that fired, counted from 1; absent
	// for the transition Overdue.
	// +optional
	// +kubebuilder:validation:Minimum=1
	// +kubebuilder:validation:Maximum=8
	EscalationLevel int32 `json:"escalationLevel,omitempty"`

	// occurrence says for the how many-th time the item had become overdue.
	// +required
	// +kubebuilder:validation:Minimum=1
	// +kubebuilder:validation:Maximum=2147483647
	Occurrence int32 `json:"occurrence,omitempty"`

	// providerName is the NotificationProvider that is told.
	// +required
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=63
	ProviderName string `json:"providerName,omitempty"`

	// transitionTime is when the transition was committed.
	// +optional
	// +kubebuilder:validation:XValidation:rule="self.getFullYear() >= 1970 && self.getFullYear() <= 9999",message="transitionTime must be an RFC 3339 time such as 2026-12-01T09:00:00Z"
	TransitionTime *metav1.Time `json:"transitionTime,omitempty"`

	// phase is Recorded until the end of the outbox is reported, or until the status
	// is written for another reason.
	// +required
	Phase NotificationPhase `json:"phase,omitempty"`

	// reason says in one CamelCase word why the notification ended as it did.
	// +optional
	// +kubebuilder:validation:MinLength=0
	// +kubebuilder:validation:MaxLength=128
	Reason string `json:"reason,omitempty"`
}

// WorkItemStatus is what the operator committed. Only the WorkItem reconciler
// writes it.
type WorkItemStatus struct {
	// conditions are Ready, Overdue and Notified, and, while they are true,
	// Reconciling and Stalled.
	// +optional
	// +listType=map
	// +listMapKey=type
	// +kubebuilder:validation:MaxItems=16
	// +kubebuilder:validation:XValidation:rule="self.all(c, c.lastTransitionTime.getFullYear() >= 1970 && c.lastTransitionTime.getFullYear() <= 9999)",message="lastTransitionTime must be an RFC 3339 time such as 2026-12-01T09:00:00Z"
	Conditions []metav1.Condition `json:"conditions,omitempty"`

	// observedGeneration is the metadata.generation that this status answers to.
	// +optional
	// +kubebuilder:validation:Minimum=0
	ObservedGeneration int64 `json:"observedGeneration,omitempty"`

	// phase is Open, Overdue, Completed or Cancelled.
	// +optional
	Phase WorkItemPhase `json:"phase,omitempty"`

	// overdueTime is the due time that was missed in the current or last occurrence.
	// +optional
	// +kubebuilder:validation:XValidation:rule="self.getFullYear() >= 1970 && self.getFullYear() <= 9999",message="overdueTime must be an RFC 3339 time such as 2026-12-01T09:00:00Z"
	OverdueTime *metav1.Time `json:"overdueTime,omitempty"`

	// occurrenceTime is when the current or last occurrence was committed.
	// +optional
	// +kubebuilder:validation:XValidation:rule="self.getFullYear() >= 1970 && self.getFullYear() <= 9999",message="occurrenceTime must be an RFC 3339 time such as 2026-12-01T09:00:00Z"
	OccurrenceTime *metav1.Time `json:"occurrenceTime,omitempty"`

	// transitionTime is when the last change of phase, occurrence or escalationLevel
	// was committed.
	// +optional
	// +kubebuilder:validation:XValidation:rule="self.getFullYear() >= 1970 && self.getFullYear() <= 9999",message="transitionTime must be an RFC 3339 time such as 2026-12-01T09:00:00Z"
	TransitionTime *metav1.Time `json:"transitionTime,omitempty"`

	// occurrence is how often the item has become overdue.
	// +optional
	// +kubebuilder:validation:Minimum=0
	// +kubebuilder:validation:Maximum=2147483647
	Occurrence int32 `json:"occurrence,omitempty"`

	// escalationLevel is how many steps of escalations have fired in this
	// occurrence.
	// +optional
	// +kubebuilder:validation:Minimum=0
	// +kubebuilder:validation:Maximum=8
	EscalationLevel int32 `json:"escalationLevel,omitempty"`

	// notifications are the intents of the current occurrence, and those of former
	// occurrences whose end is not reported yet.
	// +optional
	// +listType=map
	// +listMapKey=outboxName
	// +kubebuilder:validation:MaxItems=2048
	Notifications []Intent `json:"notifications,omitempty"`
}

// WorkItem is something that is to be done by a due time. When the time passes,
// the providers that it names are notified.
//
// +kubebuilder:object:root=true
// +kubebuilder:subresource:status
// +kubebuilder:resource:shortName=wi,categories=workitems
// +kubebuilder:printcolumn:name="Phase",type=string,JSONPath=`.status.phase`,description="Open, Overdue, Completed or Cancelled"
// +kubebuilder:printcolumn:name="Priority",type=string,JSONPath=`.spec.priority`
// +kubebuilder:printcolumn:name="Due",type=string,JSONPath=`.spec.dueTime`,description="When the item becomes overdue"
// +kubebuilder:printcolumn:name="Assignee",type=string,JSONPath=`.spec.assignee`
// +kubebuilder:printcolumn:name="Notified",type=string,JSONPath=`.status.conditions[?(@.type=="Notified")].status`,description="Whether everyone who must hear of it has heard of it"
// +kubebuilder:printcolumn:name="Age",type=date,JSONPath=`.metadata.creationTimestamp`
type WorkItem struct {
	metav1.TypeMeta `json:",inline"`

	// metadata is the object's standard metadata.
	// +optional
	metav1.ObjectMeta `json:"metadata,omitempty"`

	// spec is what the user wants.
	// +required
	Spec WorkItemSpec `json:"spec"`

	// status is what the operator committed; it is written by the operator alone.
	// +optional
	Status WorkItemStatus `json:"status,omitempty"`
}

// WorkItemList is a list of WorkItems.
//
// +kubebuilder:object:root=true
type WorkItemList struct {
	metav1.TypeMeta `json:",inline"`
	metav1.ListMeta `json:"metadata,omitempty"`

	// Items are the WorkItems.
	Items []WorkItem `json:"items"`
}

// WorkItemReference names one WorkItem, and pins which one by its UID.
type WorkItemReference struct {
	// name is the WorkItem's name; it is in the same namespace.
	// +required
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=253
	Name string `json:"name,omitempty"`

	// uid is the WorkItem's UID: a WorkItem made anew under the same name is
	// another one.
	// +required
	// +kubebuilder:validation:Type=string
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=64
	// +kubebuilder:validation:XValidation:rule=`self.matches('^[-0-9a-zA-Z]+$')`,message="uid must be the metadata.uid of a WorkItem, for example 5d0c3a52-8f0e-4f3b-9a53-0d6f3a1c9e10"
	UID types.UID `json:"uid,omitempty"`
}
