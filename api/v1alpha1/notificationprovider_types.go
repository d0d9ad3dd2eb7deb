// SPDX-FileCopyrightText: The WorkItem Operator Authors
// SPDX-License-Identifier: Apache-2.0

package v1alpha1

import (
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// ProviderType says what kind of service a provider is, and thereby which
// member of the spec is set.
// +kubebuilder:validation:Enum=Webhook
type ProviderType string

// ProviderWebhook is a service that takes a POST.
const ProviderWebhook ProviderType = "Webhook"

// IdempotencyMode says whether the provider keeps idempotency keys.
// +kubebuilder:validation:Enum=Keyed;None
type IdempotencyMode string

// The modes.
const (
	// IdempotencyKeyed means that a second call with a known key has no further
	// effect, for as long as window says.
	IdempotencyKeyed IdempotencyMode = "Keyed"
	// IdempotencyNone means that every accepted call may be an effect.
	IdempotencyNone IdempotencyMode = "None"
)

// IdempotencyDialect says how the key stands in the header Idempotency-Key.
// +kubebuilder:validation:Enum=IETF;Raw
type IdempotencyDialect string

// The dialects.
const (
	// DialectIETF is a structured-field string, with its quotes
	// (draft-ietf-httpapi-idempotency-key-header-07).
	DialectIETF IdempotencyDialect = "IETF"
	// DialectRaw is the bare key.
	DialectRaw IdempotencyDialect = "Raw"
)

// AmbiguousPolicy says what follows an attempt of which nobody knows whether
// the provider accepted it.
// +kubebuilder:validation:Enum=Retry;Hold
type AmbiguousPolicy string

// The policies.
const (
	// AmbiguousRetry sends again, with the same key.
	AmbiguousRetry AmbiguousPolicy = "Retry"
	// AmbiguousHold leaves it to a person.
	AmbiguousHold AmbiguousPolicy = "Hold"
)

// SecretKeyReference names one key of one Secret in the same namespace.
type SecretKeyReference struct {
	// name is the Secret's name. The Secret may be created later.
	// +required
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=253
	// +kubebuilder:validation:XValidation:rule=`self.matches('^[a-z0-9]([-a-z0-9]*[a-z0-9])?(\\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*$')`,message="name must be the name of a Secret: lower-case letters, digits, '-' and '.', for example ops-webhook"
	Name string `json:"name,omitempty"`

	// key is the key within the Secret's data.
	// +required
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=253
	// +kubebuilder:validation:XValidation:rule=`self.matches('^[-._a-zA-Z0-9]+$')`,message="key must be a key of a Secret: letters, digits, '-', '_' and '.', for example whsec"
	Key string `json:"key,omitempty"`
}

// SecretSource takes a value from a Secret.
type SecretSource struct {
	// secretKeyRef names the Secret and the key within it.
	// +required
	SecretKeyRef SecretKeyReference `json:"secretKeyRef,omitzero"`
}

// WebhookHeader is one more header of each call.
//
// +kubebuilder:validation:XValidation:rule="has(self.value) != has(self.valueFrom)",message="exactly one of value and valueFrom must be set; a credential belongs in a Secret, under valueFrom"
type WebhookHeader struct {
	// name is the header's name. The headers that the operator sets itself
	// (Idempotency-Key, webhook-*, Content-Type and those of the transport) are
	// refused.
	// +required
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=128
	// +kubebuilder:validation:XValidation:rule=`self.matches("^[-!#$%&'*+.^_|~0-9a-zA-Z]+$")`,message="name must be the name of an HTTP header, for example X-Team"
	// +kubebuilder:validation:XValidation:rule="!self.lowerAscii().startsWith('webhook-') && !(self.lowerAscii() in ['idempotency-key', 'content-type', 'content-length', 'content-encoding', 'host', 'connection', 'keep-alive', 'proxy-authorization', 'proxy-connection', 'te', 'trailer', 'transfer-encoding', 'upgrade', 'expect', 'user-agent', 'x-idempotency-key', 'http2-settings'])",message="name must not be one of the headers that the operator or the transport sets: Idempotency-Key, webhook-*, Content-*, Host, User-Agent, Connection and the like; choose another"
	Name string `json:"name,omitempty"`

	// value is the header's value, for anyone to read.
	// +optional
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=4096
	// +kubebuilder:validation:XValidation:rule=`self.matches('^[\\t\\x20-\\x7e]*$')`,message="value must consist of printable ASCII characters, without line breaks; encode anything else"
	Value string `json:"value,omitempty"`

	// valueFrom takes the value from a Secret.
	// +optional
	ValueFrom *SecretSource `json:"valueFrom,omitempty"`
}

// WebhookTLS says whom to trust at the other end.
type WebhookTLS struct {
	// caSecretRef names a PEM bundle of the certificate authorities to trust, instead
	// of the system's.
	// +required
	CASecretRef SecretKeyReference `json:"caSecretRef,omitzero"`
}

// WebhookProvider is the address of a webhook and how to call it.
//
// +kubebuilder:validation:XValidation:rule="has(self.url) != has(self.urlFrom)",message="exactly one of url and urlFrom must be set; a URL that is itself a credential belongs in a Secret, under urlFrom"
type WebhookProvider struct {
	// url is where notifications are posted to: http or https.
	// +optional
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=2048
	// +kubebuilder:validation:XValidation:rule=`self.matches('^[\\x21-\\x7e]+$') && isURL(self) && url(self).getScheme() in ['http', 'https'] && url(self).getHostname() != '' && (url(self).getPort() == '' || (int(url(self).getPort()) > 0 && int(url(self).getPort()) < 65536))`,message="url must be an absolute http or https URL with a host and without spaces or letters beyond ASCII, for example https://hooks.example.com/ops"
	// +kubebuilder:validation:XValidation:rule=`!self.matches('^[^/?#]*//[^/?#]*@') && !self.contains('#')`,message="url must have neither user information nor a fragment; put credentials into a Secret and use urlFrom or headers[].valueFrom"
	URL string `json:"url,omitempty"`

	// urlFrom takes the URL from a Secret, for services whose URL is a credential.
	// +optional
	URLFrom *SecretSource `json:"urlFrom,omitempty"`

	// signingSecretRef names one or two Standard Webhooks keys (whsec_…), separated
	// by white space; two during a rotation. Without it calls are not signed.
	// +optional
	SigningSecretRef *SecretKeyReference `json:"signingSecretRef,omitempty"`

	// tls says whom to trust at the other end.
	// +optional
	TLS *WebhookTLS `json:"tls,omitempty"`

	// headers are added to each call; at most 32.
	// +optional
	// +listType=map
	// +listMapKey=name
	// +kubebuilder:validation:MaxItems=32
	// +kubebuilder:validation:XValidation:rule="self.all(h, self.exists_one(o, o.name.lowerAscii() == h.name.lowerAscii()))",message="headers must not repeat a name, whatever its case; keep one of them"
	Headers []WebhookHeader `json:"headers,omitempty"`
}

// Idempotency says what the provider does with idempotency keys.
type Idempotency struct {
	// mode is Keyed if the provider keeps keys, so that a repeated call has no
	// further effect, else None.
	// +optional
	// +kubebuilder:default=None
	Mode IdempotencyMode `json:"mode,omitempty"`

	// dialect is how the key stands in the header: IETF (with quotes) or Raw.
	// +optional
	// +kubebuilder:default=IETF
	Dialect IdempotencyDialect `json:"dialect,omitempty"`

	// window is how long the provider keeps a key, counted from the first attempt.
	// +optional
	// +kubebuilder:default="24h"
	// +kubebuilder:validation:Type=string
	// +kubebuilder:validation:MaxLength=32
	// +kubebuilder:validation:XValidation:rule=`self.matches('^([0-9]+(\\.[0-9]+)?(ms|s|m|h))+$') && duration(self) >= duration('1s') && duration(self) <= duration('87600h')`,message="window must be a duration such as 24h, between 1s and 87600h"
	Window metav1.Duration `json:"window,omitzero"`
}

// RetryPolicy says how often and how long a rejected or ambiguous notification
// is sent again.
//
// +kubebuilder:validation:XValidation:rule="![self.initialBackoff, self.maxBackoff].all(d, d.matches('^([0-9.]+(ms|s|m|h))+$')) || duration(self.initialBackoff) <= duration(self.maxBackoff)",message="initialBackoff must not be longer than maxBackoff; shorten initialBackoff or set a longer maxBackoff"
// +kubebuilder:validation:XValidation:rule="![self.maxBackoff, self.deadline].all(d, d.matches('^([0-9.]+(ms|s|m|h))+$')) || duration(self.maxBackoff) <= duration(self.deadline)",message="maxBackoff must not be longer than deadline; set a shorter maxBackoff (its default is 10m) or a longer deadline"
type RetryPolicy struct {
	// deadline is how long after the first attempt the operator goes on trying. Time
	// in which the provider is suspended, missing, without its Secret or not Ready
	// does not count.
	// +optional
	// +kubebuilder:default="24h"
	// +kubebuilder:validation:Type=string
	// +kubebuilder:validation:MaxLength=32
	// +kubebuilder:validation:XValidation:rule=`self.matches('^([0-9]+(\\.[0-9]+)?(ms|s|m|h))+$') && duration(self) >= duration('1s') && duration(self) <= duration('87600h')`,message="deadline must be a duration such as 24h, between 1s and 87600h"
	Deadline metav1.Duration `json:"deadline,omitzero"`

	// initialBackoff is the shortest pause before the second attempt; it doubles with
	// each attempt up to maxBackoff, with full jitter above initialBackoff.
	// +optional
	// +kubebuilder:default="1s"
	// +kubebuilder:validation:Type=string
	// +kubebuilder:validation:MaxLength=32
	// +kubebuilder:validation:XValidation:rule=`self.matches('^([0-9]+(\\.[0-9]+)?(ms|s|m|h))+$') && duration(self) >= duration('100ms') && duration(self) <= duration('87600h')`,message="initialBackoff must be a duration such as 1s, between 100ms and 87600h"
	InitialBackoff metav1.Duration `json:"initialBackoff,omitzero"`

	// maxBackoff is the longest pause between two attempts, also for Retry-After. It
	// is not longer than deadline: with a deadline under 10m, set maxBackoff too.
	// +optional
	// +kubebuilder:default="10m"
	// +kubebuilder:validation:Type=string
	// +kubebuilder:validation:MaxLength=32
	// +kubebuilder:validation:XValidation:rule=`self.matches('^([0-9]+(\\.[0-9]+)?(ms|s|m|h))+$') && duration(self) >= duration('100ms') && duration(self) <= duration('87600h')`,message="maxBackoff must be a duration such as 10m, between 100ms and 87600h"
	MaxBackoff metav1.Duration `json:"maxBackoff,omitzero"`
}

// NotificationProviderSpec says where notifications go and how.
//
// +kubebuilder:validation:XValidation:rule="self.type != 'Webhook' || has(self.webhook)",message="webhook must be set when type is Webhook: give webhook.url or webhook.urlFrom"
type NotificationProviderSpec struct {
	// type is the kind of service; exactly the member that it names is set.
	// +required
	Type ProviderType `json:"type,omitempty"`

	// webhook is set when type is Webhook.
	// +optional
	Webhook *WebhookProvider `json:"webhook,omitempty"`

	// idempotency says what the provider does with idempotency keys.
	// +optional
	// +kubebuilder:default={mode: "None", dialect: "IETF", window: "24h"}
	Idempotency Idempotency `json:"idempotency,omitzero"`

	// onAmbiguous says what follows an attempt of which nobody knows whether it was
	// accepted: Retry with the same key, or Hold for a person.
	// +optional
	// +kubebuilder:default=Retry
	OnAmbiguous AmbiguousPolicy `json:"onAmbiguous,omitempty"`

	// timeout is how long one call may take.
	// +optional
	// +kubebuilder:default="10s"
	// +kubebuilder:validation:Type=string
	// +kubebuilder:validation:MaxLength=32
	// +kubebuilder:validation:XValidation:rule=`self.matches('^([0-9]+(\\.[0-9]+)?(ms|s|m|h))+$') && duration(self) >= duration('100ms') && duration(self) <= duration('1h')`,message="timeout must be a duration such as 10s, between 100ms and 1h"
	Timeout metav1.Duration `json:"timeout,omitzero"`

	// leaseDuration is how long a claim holds without being renewed, rounded up to
	// whole seconds. A replica that dies in a call delays the next attempt by this
	// much.
	// +optional
	// +kubebuilder:default="60s"
	// +kubebuilder:validation:Type=string
	// +kubebuilder:validation:MaxLength=32
	// +kubebuilder:validation:XValidation:rule=`self.matches('^([0-9]+(\\.[0-9]+)?(ms|s|m|h))+$') && duration(self) >= duration('5s') && duration(self) <= duration('1h')`,message="leaseDuration must be a duration such as 60s, between 5s and 1h"
	LeaseDuration metav1.Duration `json:"leaseDuration,omitzero"`

	// retry says how often and how long a notification is sent again.
	// +optional
	// +kubebuilder:default={deadline: "24h", initialBackoff: "1s", maxBackoff: "10m"}
	Retry RetryPolicy `json:"retry,omitzero"`

	// maxInFlight is how many calls each replica makes at once.
	// +optional
	// +kubebuilder:default=16
	// +kubebuilder:validation:Minimum=1
	// +kubebuilder:validation:Maximum=1000
	MaxInFlight int32 `json:"maxInFlight,omitempty"`

	// suspend stops all calls to this provider. Nothing is lost: notifications wait,
	// and the wait does not count towards their deadline.
	// +optional
	Suspend bool `json:"suspend,omitempty"`

	// ttlAfterFinished is how long a finished outbox and its Lease are kept; at least
	// 10m.
	// +optional
	// +kubebuilder:default="168h"
	// +kubebuilder:validation:Type=string
	// +kubebuilder:validation:MaxLength=32
	// +kubebuilder:validation:XValidation:rule=`self.matches('^([0-9]+(\\.[0-9]+)?(ms|s|m|h))+$') && duration(self) >= duration('10m') && duration(self) <= duration('87600h')`,message="ttlAfterFinished must be a duration such as 168h, between 10m and 87600h: a replica with an old cache relies on the outbox being kept that long"
	TTLAfterFinished metav1.Duration `json:"ttlAfterFinished,omitzero"`
}

// ProviderPause is why, and until when, nothing is sent to a provider.
type ProviderPause struct {
	// reason is RateLimited, Unavailable, RequestTimeout or TooEarly (the provider asked
	// to be left alone for a while), or Unauthorized, Forbidden, EndpointNotFound or EndpointGone (its answer
	// says that the configuration is wrong).
	// +required
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=128
	Reason string `json:"reason,omitempty"`

	// since is when the answer came.
	// +optional
	// +kubebuilder:validation:XValidation:rule="self.getFullYear() >= 1970 && self.getFullYear() <= 9999",message="since must be an RFC 3339 time such as 2026-12-01T09:00:00Z"
	Since *metav1.Time `json:"since,omitempty"`

	// until is when the next call may be made; absent if only a change of spec ends
	// the pause.
	// +optional
	// +kubebuilder:validation:XValidation:rule="self.getFullYear() >= 1970 && self.getFullYear() <= 9999",message="until must be an RFC 3339 time such as 2026-12-01T09:00:00Z"
	Until *metav1.Time `json:"until,omitempty"`

	// generation is the metadata.generation of the provider that the answer was
	// given to; a newer one ends the pause.
	// +optional
	// +kubebuilder:validation:Minimum=0
	Generation int64 `json:"generation,omitempty"`

	// secrets says which versions of its Secrets the call used, as
	// name@resourceVersion separated by commas; another one ends the pause, which for
	// EndpointNotFound is noticed when the provider is looked at next.
	// +optional
	// +kubebuilder:validation:MinLength=0
	// +kubebuilder:validation:MaxLength=16384
	Secrets string `json:"secrets,omitempty"`

	// message is what the provider answered, in words; never a secret.
	// +optional
	// +kubebuilder:validation:MinLength=0
	// +kubebuilder:validation:MaxLength=2048
	Message string `json:"message,omitempty"`
}

// NotificationProviderStatus is what the operator found. Only the provider
// reconciler writes it.
type NotificationProviderStatus struct {
	// conditions are Ready and, while they are true, Reconciling and Stalled.
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

	// guarantee is what a first attempt gets: EffectivelyOnce if the provider keeps
	// idempotency keys, else AtLeastOnce.
	// +optional
	Guarantee Guarantee `json:"guarantee,omitempty"`

	// pause is present while an answer of the provider keeps the operator from
	// calling it.
	// +optional
	Pause *ProviderPause `json:"pause,omitempty"`
}

// NotificationProvider is a service that people are notified through, with the
// promises that it makes.
//
// +kubebuilder:object:root=true
// +kubebuilder:subresource:status
// +kubebuilder:resource:shortName=np,categories=workitems
// +kubebuilder:validation:XValidation:rule=`self.metadata.name.matches('^[a-z0-9]([-a-z0-9]*[a-z0-9])?$') && self.metadata.name.size() <= 63`,message="metadata.name must be a DNS label of at most 63 characters, without dots, because it is a part of every idempotency key; for example ops-webhook"
// +kubebuilder:printcolumn:name="Type",type=string,JSONPath=`.spec.type`
// +kubebuilder:printcolumn:name="Ready",type=string,JSONPath=`.status.conditions[?(@.type=="Ready")].status`
// +kubebuilder:printcolumn:name="Reason",type=string,JSONPath=`.status.conditions[?(@.type=="Ready")].reason`
// +kubebuilder:printcolumn:name="Guarantee",type=string,JSONPath=`.status.guarantee`
// +kubebuilder:printcolumn:name="Suspend",type=boolean,JSONPath=`.spec.suspend`
// +kubebuilder:printcolumn:name="Age",type=date,JSONPath=`.metadata.creationTimestamp`
type NotificationProvider struct {
	metav1.TypeMeta `json:",inline"`

	// metadata is the object's standard metadata.
	// +optional
	metav1.ObjectMeta `json:"metadata,omitempty"`

	// spec says where notifications go and how.
	// +required
	Spec NotificationProviderSpec `json:"spec"`

	// status is what the operator found; it is written by the operator alone.
	// +optional
	Status NotificationProviderStatus `json:"status,omitempty"`
}

// NotificationProviderList is a list of NotificationProviders.
//
// +kubebuilder:object:root=true
type NotificationProviderList struct {
	metav1.TypeMeta `json:",inline"`
	metav1.ListMeta `json:"metadata,omitempty"`

	// Items are the NotificationProviders.
	Items []NotificationProvider `json:"items"`
}
