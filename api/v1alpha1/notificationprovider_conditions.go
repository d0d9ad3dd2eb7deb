// SPDX-FileCopyrightText: The WorkItem Operator Authors
// SPDX-License-Identifier: Apache-2.0

package v1alpha1

// The reasons of a NotificationProvider's condition Ready, besides
// ReasonReconciled. The provider reconciler sets them.
const (
	// ReasonSecretNotFound means that a Secret or a key of it does not exist yet;
	// creating it clears this within 3 s, or within 30 s after a wait of ten
	// minutes.
	ReasonSecretNotFound = "SecretNotFound"
	// ReasonSecretInvalid means that the value of a Secret cannot be used, for
	// example because it is no whsec_ key; correcting it clears this within 3 s.
	ReasonSecretInvalid = "SecretInvalid"
	// ReasonSecretForbidden means that the operator may not read a Secret.
	ReasonSecretForbidden = "SecretForbidden"
	// ReasonSuspended means that the spec says suspend.
	ReasonSuspended = "Suspended"
	// ReasonEndpointGone means that the endpoint answered 410; only a change of spec
	// clears this.
	ReasonEndpointGone = "EndpointGone"
)
