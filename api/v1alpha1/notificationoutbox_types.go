// SPDX-FileCopyrightText: The WorkItem Operator Authors
// SPDX-License-Identifier: Apache-2.0

package v1alpha1

import (
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// OutboxPhase is where one notification stands. An outbox without a phase is
// Pending.
// +kubebuilder:validation:Enum=Pending;Sent;DeadLettered;Held;Superseded
type OutboxPhase string

// The phases of an outbox; docs/state-machines.md draws the edges.
const (
	// OutboxPending means that the notification is still to be sent.
	OutboxPending OutboxPhase = "Pending"
	// OutboxSent means that the provider accepted it. It is final.
	OutboxSent OutboxPhase = "Sent"
	// OutboxDeadLettered means that the operator gave up; a person may replay it.
	OutboxDeadLettered OutboxPhase = "DeadLettered"
	// OutboxHeld means that the provider may or may not have accepted it, and that a
	// person has to decide.
	OutboxHeld OutboxPhase = "Held"
	// OutboxSuperseded means that there was no more need to send it. It is final.
	OutboxSuperseded OutboxPhase = "Superseded"
)

// Guarantee is what can honestly be said of how often a notification takes
// effect.
// +kubebuilder:validation:Enum=AtLeastOnce;EffectivelyOnce
type Guarantee string

// The guarantees.
const (
	// GuaranteeAtLeastOnce means that a repeated call may repeat the effect.
	GuaranteeAtLeastOnce Guarantee = "AtLeastOnce"
	// GuaranteeEffectivelyOnce means that the provider keeps idempotency keys and
	// still keeps this one: a repeated call has no further effect.
	GuaranteeEffectivelyOnce Guarantee = "EffectivelyOnce"
)

// AttemptOutcome is what is known of one attempt.
// +kubebuilder:validation:Enum=Accepted;Rejected;Ambiguous
type AttemptOutcome string

// The outcomes of an attempt.
const (
	// OutcomeAccepted means that the provider said yes.
	OutcomeAccepted AttemptOutcome = "Accepted"
	// OutcomeRejected means that the provider said no, or was never reached.
	OutcomeRejected AttemptOutcome = "Rejected"
	// OutcomeAmbiguous means that the provider may or may not have accepted it.
	OutcomeAmbiguous AttemptOutcome = "Ambiguous"
)

// DecisionAction is what a person decides about an outbox.
// +kubebuilder:validation:Enum=Replay;MarkSent;Abandon
type DecisionAction string

// The decisions. Each is given as the annotation workitem.dev/decision.
const (
	// DecisionReplay sends a Held or DeadLettered notification again, with the same
	// key and the same bytes.
	DecisionReplay DecisionAction = "Replay"
	// DecisionMarkSent records that the notification did arrive.
	DecisionMarkSent DecisionAction = "MarkSent"
	// DecisionAbandon records that the notification shall not be sent.
	DecisionAbandon DecisionAction = "Abandon"
)

// Payload is the frozen request body.
type Payload struct {
	// format is the type of provider that the body was rendered for.
	// +required
	Format ProviderType `json:"format,omitempty"`

	// body is the request body, byte for byte, at most 20 kB.
	// +required
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=20480
	// +kubebuilder:validation:XValidation:rule="bytes(self).size() <= 20480",message="body must be at most 20480 bytes in UTF-8; shorten the description"
	Body string `json:"body,omitempty"`
}

// NotificationOutboxSpec is the frozen request. It is immutable as a whole.
//
// +kubebuilder:validation:XValidation:rule="self == oldSelf",message="spec is immutable: every attempt sends the same key and the same bytes; to send it again, annotate the outbox with workitem.dev/decision=Replay"
// +kubebuilder:validation:XValidation:rule="(self.transition == 'Escalated') == has(self.escalationLevel)",message="escalationLevel must be set for the transition Escalated, and only for it"
// +kubebuilder:validation:XValidation:rule="self.idempotencyKey.split(':') == ['work-item', self.workItemRef.uid, 'status', has(self.escalationLevel) ? ['Escalated-1', 'Escalated-2', 'Escalated-3', 'Escalated-4', 'Escalated-5', 'Escalated-6', 'Escalated-7', 'Escalated-8'][self.escalationLevel - 1] : 'Overdue', string(self.occurrence), self.providerName]",message="idempotencyKey must be work-item:<workItemRef.uid>:status:<transition>:<occurrence>:<providerName>; outboxes are made by the operator, not by hand"
type NotificationOutboxSpec struct {
	// workItemRef is the WorkItem that the notification is about.
	// +required
	WorkItemRef WorkItemReference `json:"workItemRef,omitzero"`

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

	// providerName is the NotificationProvider that is told, in the same namespace.
	// +required
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=63
	// +kubebuilder:validation:XValidation:rule=`self.matches('^[a-z0-9]([-a-z0-9]*[a-z0-9])?$')`,message="providerName must be a DNS label: lower-case letters, digits and '-', beginning and ending with a letter or digit, for example ops-webhook"
	ProviderName string `json:"providerName,omitempty"`

	// idempotencyKey identifies the notification at the provider, the same at every
	// attempt.
	// +required
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=255
	IdempotencyKey string `json:"idempotencyKey,omitempty"`

	// payload is the rendered request body.
	// +required
	Payload Payload `json:"payload,omitzero"`

	// payloadDigest is sha256: and 64 lower-case hexadecimal digits, of the bytes of
	// payload.body.
	// +required
	// +kubebuilder:validation:MinLength=71
	// +kubebuilder:validation:MaxLength=71
	// +kubebuilder:validation:XValidation:rule="self.matches('^sha256:[0-9a-f]{64}$')",message="payloadDigest must be sha256: and 64 lower-case hexadecimal digits, of the bytes of payload.body"
	PayloadDigest string `json:"payloadDigest,omitempty"`
}

// Attempt is one try to send a notification.
type Attempt struct {
	// number counts the attempts of this outbox from 1.
	// +required
	// +kubebuilder:validation:Minimum=1
	// +kubebuilder:validation:Maximum=2147483647
	Number int32 `json:"number,omitempty"`

	// holder is the process that held the claim: the holderIdentity of the Lease.
	// +optional
	// +kubebuilder:validation:MinLength=0
	// +kubebuilder:validation:MaxLength=253
	Holder string `json:"holder,omitempty"`

	// startTime is when the attempt was begun.
	// +optional
	// +kubebuilder:validation:XValidation:rule="self.getFullYear() >= 1970 && self.getFullYear() <= 9999",message="startTime must be an RFC 3339 time such as 2026-12-01T09:00:00Z"
	StartTime *metav1.Time `json:"startTime,omitempty"`

	// finishTime is when its outcome was known; absent while it runs, and when its
	// holder was lost.
	// +optional
	// +kubebuilder:validation:XValidation:rule="self.getFullYear() >= 1970 && self.getFullYear() <= 9999",message="finishTime must be an RFC 3339 time such as 2026-12-01T09:00:00Z"
	FinishTime *metav1.Time `json:"finishTime,omitempty"`

	// outcome is Accepted, Rejected or Ambiguous; absent while it runs.
	// +optional
	Outcome AttemptOutcome `json:"outcome,omitempty"`

	// reason says in one CamelCase word why.
	// +optional
	// +kubebuilder:validation:MinLength=0
	// +kubebuilder:validation:MaxLength=128
	Reason string `json:"reason,omitempty"`

	// httpStatus is the status of the provider's answer; absent without an answer.
	// +optional
	// +kubebuilder:validation:Minimum=100
	// +kubebuilder:validation:Maximum=999
	HTTPStatus int32 `json:"httpStatus,omitempty"`

	// message says more, in words; never a secret.
	// +optional
	// +kubebuilder:validation:MinLength=0
	// +kubebuilder:validation:MaxLength=2048
	Message string `json:"message,omitempty"`
}

// Decision is a person's decision on an outbox, as the operator carried it out.
type Decision struct {
	// action is what was decided.
	// +required
	Action DecisionAction `json:"action,omitempty"`

	// reason is the person's own.
	// +optional
	// +kubebuilder:validation:MinLength=0
	// +kubebuilder:validation:MaxLength=1024
	Reason string `json:"reason,omitempty"`

	// by is who decided, as the annotation workitem.dev/decision-by claims it, else
	// the name of the client that set the annotation.
	// +optional
	// +kubebuilder:validation:MinLength=0
	// +kubebuilder:validation:MaxLength=253
	By string `json:"by,omitempty"`

	// time is when the operator carried it out.
	// +optional
	// +kubebuilder:validation:XValidation:rule="self.getFullYear() >= 1970 && self.getFullYear() <= 9999",message="time must be an RFC 3339 time such as 2026-12-01T09:00:00Z"
	Time *metav1.Time `json:"time,omitempty"`
}

// NotificationOutboxStatus is the delivery as it stands. Only the dispatcher
// writes it: an attempt and an end only under the claim, what holds the outbox up and
// a person's decision on a finished one with the resourceVersion alone.
type NotificationOutboxStatus struct {
	// conditions are Delivered, and nothing else.
	// +optional
	// +listType=map
	// +listMapKey=type
	// +kubebuilder:validation:MaxItems=16
	// +kubebuilder:validation:XValidation:rule="self.all(c, c.lastTransitionTime.getFullYear() >= 1970 && c.lastTransitionTime.getFullYear() <= 9999)",message="lastTransitionTime must be an RFC 3339 time such as 2026-12-01T09:00:00Z"
	Conditions []metav1.Condition `json:"conditions,omitempty"`

	// phase is Pending, Sent, DeadLettered, Held or Superseded; an outbox without a
	// phase is Pending.
	// +optional
	Phase OutboxPhase `json:"phase,omitempty"`

	// guarantee is what holds for this notification now.
	// +optional
	Guarantee Guarantee `json:"guarantee,omitempty"`

	// attempts is how often the notification may have reached the network.
	// +optional
	// +kubebuilder:validation:Minimum=0
	// +kubebuilder:validation:Maximum=2147483647
	Attempts int32 `json:"attempts,omitempty"`

	// firstAttemptTime is when the first attempt was begun: the provider's window
	// for keys counts from here.
	// +optional
	// +kubebuilder:validation:XValidation:rule="self.getFullYear() >= 1970 && self.getFullYear() <= 9999",message="firstAttemptTime must be an RFC 3339 time such as 2026-12-01T09:00:00Z"
	FirstAttemptTime *metav1.Time `json:"firstAttemptTime,omitempty"`

	// retryStartTime is when the retry deadline began to count: the first attempt,
	// or a person's replay.
	// +optional
	// +kubebuilder:validation:XValidation:rule="self.getFullYear() >= 1970 && self.getFullYear() <= 9999",message="retryStartTime must be an RFC 3339 time such as 2026-12-01T09:00:00Z"
	RetryStartTime *metav1.Time `json:"retryStartTime,omitempty"`

	// nextAttemptTime is the earliest time of the next attempt.
	// +optional
	// +kubebuilder:validation:XValidation:rule="self.getFullYear() >= 1970 && self.getFullYear() <= 9999",message="nextAttemptTime must be an RFC 3339 time such as 2026-12-01T09:00:00Z"
	NextAttemptTime *metav1.Time `json:"nextAttemptTime,omitempty"`

	// excusedSince is since when time does not count towards the retry deadline,
	// because the provider is suspended, missing, without its Secret, or not Ready.
	// +optional
	// +kubebuilder:validation:XValidation:rule="self.getFullYear() >= 1970 && self.getFullYear() <= 9999",message="excusedSince must be an RFC 3339 time such as 2026-12-01T09:00:00Z"
	ExcusedSince *metav1.Time `json:"excusedSince,omitempty"`

	// excusedSeconds is how many seconds before that did not count.
	// +optional
	// +kubebuilder:validation:Minimum=0
	ExcusedSeconds int64 `json:"excusedSeconds,omitempty"`

	// lastAttempt is the attempt that runs, or the last one that did.
	// +optional
	LastAttempt *Attempt `json:"lastAttempt,omitempty"`

	// history are the last 10 finished attempts, the oldest first.
	// +optional
	// +listType=atomic
	// +kubebuilder:validation:MaxItems=10
	History []Attempt `json:"history,omitempty"`

	// sentTime is when the provider accepted the notification.
	// +optional
	// +kubebuilder:validation:XValidation:rule="self.getFullYear() >= 1970 && self.getFullYear() <= 9999",message="sentTime must be an RFC 3339 time such as 2026-12-01T09:00:00Z"
	SentTime *metav1.Time `json:"sentTime,omitempty"`

	// finishedTime is when the phase became Sent, DeadLettered, Held or Superseded;
	// ttlAfterFinished counts from here.
	// +optional
	// +kubebuilder:validation:XValidation:rule="self.getFullYear() >= 1970 && self.getFullYear() <= 9999",message="finishedTime must be an RFC 3339 time such as 2026-12-01T09:00:00Z"
	FinishedTime *metav1.Time `json:"finishedTime,omitempty"`

	// decision is the last decision of a person.
	// +optional
	Decision *Decision `json:"decision,omitempty"`
}

// NotificationOutbox is one notification on its way to one provider. The
// operator makes it from an intent of a WorkItem; nobody else does.
//
// +kubebuilder:object:root=true
// +kubebuilder:subresource:status
// +kubebuilder:resource:path=notificationoutboxes,shortName=nob,categories=workitems
// +kubebuilder:printcolumn:name="Phase",type=string,JSONPath=`.status.phase`,description="Pending, Sent, DeadLettered, Held or Superseded; empty means Pending"
// +kubebuilder:printcolumn:name="Transition",type=string,JSONPath=`.spec.transition`
// +kubebuilder:printcolumn:name="Provider",type=string,JSONPath=`.spec.providerName`
// +kubebuilder:printcolumn:name="Attempts",type=integer,JSONPath=`.status.attempts`
// +kubebuilder:printcolumn:name="Guarantee",type=string,JSONPath=`.status.guarantee`
// +kubebuilder:printcolumn:name="Reason",type=string,priority=1,JSONPath=`.status.conditions[?(@.type=="Delivered")].reason`
// +kubebuilder:printcolumn:name="Next",type=string,priority=1,JSONPath=`.status.nextAttemptTime`
// +kubebuilder:printcolumn:name="Age",type=date,JSONPath=`.metadata.creationTimestamp`
type NotificationOutbox struct {
	metav1.TypeMeta `json:",inline"`

	// metadata is the object's standard metadata.
	// +optional
	metav1.ObjectMeta `json:"metadata,omitempty"`

	// spec is the frozen request; it is immutable.
	// +required
	Spec NotificationOutboxSpec `json:"spec"`

	// status is the delivery as it stands; it is written by the operator alone.
	// +optional
	Status NotificationOutboxStatus `json:"status,omitempty"`
}

// NotificationOutboxList is a list of NotificationOutboxes.
//
// +kubebuilder:object:root=true
type NotificationOutboxList struct {
	metav1.TypeMeta `json:",inline"`
	metav1.ListMeta `json:"metadata,omitempty"`

	// Items are the NotificationOutboxes.
	Items []NotificationOutbox `json:"items"`
}
