// SPDX-FileCopyrightText: The WorkItem Operator Authors
// SPDX-License-Identifier: Apache-2.0

package delivery

import (
	"context"
	"errors"
	"time"

	"github.com/workitem-operator/workitem-operator/internal/outcome"
)

// Message is one notification as it goes to a provider. Key, Body and
// ContentType are the same in every attempt; Time is not.
type Message struct {
	// Key identifies the notification. A provider that keeps keys has the
	// effect of all messages with one key once.
	Key string
	// Body is the request's body, sent byte for byte. It is not modified, and
	// must not be while a Send runs.
	Body []byte
	// ContentType is the media type of Body.
	ContentType string
	// Time is when this attempt is made. It is sent in whole seconds.
	Time time.Time
}

// Sender makes one call to a provider. The package comment states its contract.
type Sender interface {
	// Send makes at most one network request and says how it ended. It has no
	// error beside the Result: every failure is an outcome.
	Send(ctx context.Context, msg Message) outcome.Result
}

// StoppedBefore is the result of a call whose context ended before the request
// was begun to be written: Rejected, to be retried. The reason is Timeout if
// the context's cause is context.DeadlineExceeded, and Cancelled for any other
// cause. The message shows the cause, redacted by redactor, which may be nil.
func StoppedBefore(ctx context.Context, redactor *Redactor) outcome.Result {
	reason, why := stopped(ctx, redactor)
	return outcome.NotSent(reason, "stopped before the request was written: "+why)
}

// StoppedInFlight is the result of a call whose context ended after the request
// was begun to be written and before there was an answer: Ambiguous. Reason and
// message are as for StoppedBefore.
func StoppedInFlight(ctx context.Context, redactor *Redactor) outcome.Result {
	reason, why := stopped(ctx, redactor)
	return outcome.Unanswered(reason, "stopped while waiting for the answer: "+why)
}

func stopped(ctx context.Context, redactor *Redactor) (reason, why string) {
	cause := context.Cause(ctx)
	if cause == nil {
		// The caller is told by something else that the context has ended.
		cause = context.Canceled
	}
	reason = outcome.ReasonCancelled
	if errors.Is(cause, context.DeadlineExceeded) {
		reason = outcome.ReasonTimeout
	}
	return reason, redactor.Error(cause)
}
