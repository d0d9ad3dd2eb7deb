// SPDX-FileCopyrightText: The WorkItem Operator Authors
// SPDX-License-Identifier: Apache-2.0

package outcome

// Reasons of an answer, by its status.
const (
	// ReasonAccepted goes with any 2xx.
	ReasonAccepted = "Accepted"
	// ReasonRedirected goes with any 3xx: redirects are not followed.
	ReasonRedirected = "Redirected"
	// ReasonRefused goes with 400, 405, 413 and every other 4xx that has no
	// reason of its own: the provider does not want this request.
	ReasonRefused = "Refused"
	// ReasonUnauthorized goes with 401: the credentials are missing or wrong.
	ReasonUnauthorized = "Unauthorized"
	// ReasonForbidden goes with 403: the credentials do not suffice.
	ReasonForbidden = "Forbidden"
	// ReasonEndpointNotFound goes with 404: nothing answers at this URL.
	ReasonEndpointNotFound = "EndpointNotFound"
	// ReasonRequestTimeout goes with 408: the provider gave up waiting for the
	// request, and did not process it.
	ReasonRequestTimeout = "RequestTimeout"
	// ReasonRequestInProgress goes with 409: an earlier call with the same
	// idempotency key has not ended yet.
	ReasonRequestInProgress = "RequestInProgress"
	// ReasonEndpointGone goes with 410: the receiver wants no more calls.
	ReasonEndpointGone = "EndpointGone"
	// ReasonIdempotencyKeyConflict goes with 422: the provider knows the key
	// with another payload.
	ReasonIdempotencyKeyConflict = "IdempotencyKeyConflict"
	// ReasonTooEarly goes with 425: the provider does not process a request
	// that might be a replay of early data.
	ReasonTooEarly = "TooEarly"
	// ReasonRateLimited goes with 429.
	ReasonRateLimited = "RateLimited"
	// ReasonUnavailable goes with 503.
	ReasonUnavailable = "Unavailable"
	// ReasonServerError goes with 500, 502, 504 and every other 5xx but 503:
	// the effect may have happened before the failure.
	ReasonServerError = "ServerError"
	// ReasonUnclearAnswer goes with a status that is no final answer to a
	// request, such as 101, 0 or 999.
	ReasonUnclearAnswer = "UnclearAnswer"
)

// Reasons of a call that got no answer.
const (
	// ReasonTimeout means that the time for the call was up. Before the
	// request was begun to be written the call is Rejected, afterwards
	// Ambiguous.
	ReasonTimeout = "Timeout"
	// ReasonCancelled means that the call was given up for any other cause
	// than its own deadline: the process stops, or the claim is running out.
	// Rejected or Ambiguous as for ReasonTimeout.
	ReasonCancelled = "Cancelled"
	// ReasonConnectionLost means that the connection ended, or carried
	// something that is no answer, after the request was begun to be written.
	ReasonConnectionLost = "ConnectionLost"
	// ReasonConnectionRefused means that nothing listens at the address.
	ReasonConnectionRefused = "ConnectionRefused"
	// ReasonConnectionFailed means that no connection came about for another
	// cause: no route, a reset while connecting, or a kept connection that
	// turned out to be closed before anything was written.
	ReasonConnectionFailed = "ConnectionFailed"
	// ReasonNameNotResolved means that the host's name has no address, or that
	// it could not be found out.
	ReasonNameNotResolved = "NameNotResolved"
	// ReasonTLSFailed means that the TLS handshake failed: no TLS at the other
	// end, or a certificate that is not trusted.
	ReasonTLSFailed = "TLSFailed"
	// ReasonAddressForbidden means that the host's address is one that
	// providers may not reach.
	ReasonAddressForbidden = "AddressForbidden"
	// ReasonInvalidMessage means that the message cannot be put into a
	// request, for instance because its key has characters that no header can
	// carry.
	ReasonInvalidMessage = "InvalidMessage"
)
