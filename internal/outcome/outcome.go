// SPDX-FileCopyrightText: The WorkItem Operator Authors
// SPDX-License-Identifier: Apache-2.0

// Package outcome decides what the answer to one provider call means.
//
// It is a rule package: it looks at a status code, a header and a time that it
// is given, and at nothing else. It promises that every possible status has
// exactly one meaning, and that what is unclear is Ambiguous and never taken
// for a definite yes or no. It does not decide when the next attempt is made,
// nor how often.
package outcome

import (
	"strconv"
	"time"
)

// Class is what is known about the effect of one call.
type Class string

const (
	// Accepted means that the provider has taken the notification over.
	Accepted Class = "Accepted"
	// Rejected means that the call had no effect: the provider said no, or the
	// request never began to leave this process.
	Rejected Class = "Rejected"
	// Ambiguous means that the call may or may not have had its effect.
	Ambiguous Class = "Ambiguous"
)

// Follow is what the delivery protocol does after a call.
type Follow string

const (
	// FollowNone means that nothing is left to do. It goes with Accepted.
	FollowNone Follow = "None"
	// FollowRetry means another attempt with the same key and the same bytes,
	// after the backoff or the provider's Retry-After. After an Ambiguous
	// outcome the provider's policy may turn it into a hold.
	FollowRetry Follow = "Retry"
	// FollowPark means that the provider is not Ready. It is tried again when
	// its spec or one of its Secrets changes, or else at the longest backoff.
	FollowPark Follow = "Park"
	// FollowClose means that the provider is not Ready and nothing more is
	// sent to it until its spec changes.
	FollowClose Follow = "Close"
	// FollowDeadLetter means that the provider refused this notification for
	// good: the same request would be refused again.
	FollowDeadLetter Follow = "DeadLetter"
)

// Result is the outcome of one call to a provider. It holds nothing that must
// be kept secret: whoever makes one sees to that.
type Result struct {
	// Class says what is known about the effect.
	Class Class
	// Follow says what the protocol does next.
	Follow Follow
	// Reason is one of the Reason constants of this package, in CamelCase and
	// fit for a condition.
	Reason string
	// HTTPStatus is the status of the answer exactly as it was received, which
	// may lie outside 100 to 599 when the server is broken; 0 when there was
	// no answer.
	HTTPStatus int
	// Message explains the outcome to a person. It is redacted, bounded and
	// free of control characters.
	Message string
	// RetryAfter is how long the provider asked to be left alone; 0 when it
	// did not ask, or asked for something senseless. The caller clamps it to
	// its own longest backoff.
	RetryAfter time.Duration
}

// NotSent is the result of a call that ended before its request began to be
// written: certainly without an effect, and worth another attempt.
func NotSent(reason, message string) Result {
	return Result{Class: Rejected, Follow: FollowRetry, Reason: reason, Message: message}
}

// Unanswered is the result of a call whose request was begun to be written, in
// whole or in part, and for which no answer came.
func Unanswered(reason, message string) Result {
	return Result{Class: Ambiguous, Follow: FollowRetry, Reason: reason, Message: message}
}

// Unsendable is the result of a message that cannot be put into a request at
// all. No attempt with the same message can fare better, so it is given up.
func Unsendable(message string) Result {
	return Result{Class: Rejected, Follow: FollowDeadLetter, Reason: ReasonInvalidMessage, Message: message}
}

// FromHTTPStatus gives the meaning of the final status of an HTTP answer. It is
// total: a status that makes no sense, or that this package does not know to be
// a definite answer, is Ambiguous.
func FromHTTPStatus(status int) Result {
	result := meaning(status)
	result.HTTPStatus = status
	result.Message = "the provider answered " + strconv.Itoa(status)
	return result
}

func meaning(status int) Result {
	if result, known := special[status]; known {
		return result
	}
	switch {
	case status >= 200 && status <= 299:
		return Result{Class: Accepted, Follow: FollowNone, Reason: ReasonAccepted}
	case status >= 300 && status <= 399:
		return Result{Class: Rejected, Follow: FollowDeadLetter, Reason: ReasonRedirected}
	case status >= 400 && status <= 499:
		return Result{Class: Rejected, Follow: FollowDeadLetter, Reason: ReasonRefused}
	case status >= 500 && status <= 599:
		return Result{Class: Ambiguous, Follow: FollowRetry, Reason: ReasonServerError}
	}
	return Result{Class: Ambiguous, Follow: FollowRetry, Reason: ReasonUnclearAnswer}
}

// special holds the statuses that mean something else than their hundred.
var special = map[int]Result{
	401: {Class: Rejected, Follow: FollowPark, Reason: ReasonUnauthorized},
	403: {Class: Rejected, Follow: FollowPark, Reason: ReasonForbidden},
	404: {Class: Rejected, Follow: FollowPark, Reason: ReasonEndpointNotFound},
	408: {Class: Rejected, Follow: FollowRetry, Reason: ReasonRequestTimeout},
	// draft-ietf-httpapi-idempotency-key-header-07, on errors: the first
	// request with this key is still being processed.
	409: {Class: Ambiguous, Follow: FollowRetry, Reason: ReasonRequestInProgress},
	410: {Class: Rejected, Follow: FollowClose, Reason: ReasonEndpointGone},
	// The same draft: the key was used before with another payload.
	422: {Class: Rejected, Follow: FollowDeadLetter, Reason: ReasonIdempotencyKeyConflict},
	425: {Class: Rejected, Follow: FollowRetry, Reason: ReasonTooEarly},
	429: {Class: Rejected, Follow: FollowRetry, Reason: ReasonRateLimited},
	503: {Class: Rejected, Follow: FollowRetry, Reason: ReasonUnavailable},
}
