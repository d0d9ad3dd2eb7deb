// SPDX-FileCopyrightText: The WorkItem Operator Authors
// SPDX-License-Identifier: Apache-2.0

package delivery_test

import (
	"context"
	"errors"
	"fmt"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/workitem-operator/workitem-operator/internal/delivery"
	"github.com/workitem-operator/workitem-operator/internal/outcome"
)

func TestStopped(t *testing.T) {
	t.Parallel()
	cases := map[string]struct {
		cause  error
		reason string
		why    string
	}{
		"cancelled":            {context.Canceled, outcome.ReasonCancelled, "context canceled"},
		"out of time":          {context.DeadlineExceeded, outcome.ReasonTimeout, "context deadline exceeded"},
		"out of time, wrapped": {fmt.Errorf("timeout of hunter22: %w", context.DeadlineExceeded), outcome.ReasonTimeout, "timeout of [REDACTED]: context deadline exceeded"},
		"a cause of ours":      {errors.New("the claim runs out"), outcome.ReasonCancelled, "the claim runs out"},
	}
	redactor := delivery.NewRedactor("hunter22")
	for name, tc := range cases {
		ctx, cancel := context.WithCancelCause(t.Context())
		cancel(tc.cause)
		before := outcome.NotSent(tc.reason, "stopped before the request was written: "+tc.why)
		if diff := cmp.Diff(before, delivery.StoppedBefore(ctx, redactor)); diff != "" {
			t.Errorf("%s, before (-want +got):\n%s", name, diff)
		}
		inFlight := outcome.Unanswered(tc.reason, "stopped while waiting for the answer: "+tc.why)
		if diff := cmp.Diff(inFlight, delivery.StoppedInFlight(ctx, redactor)); diff != "" {
			t.Errorf("%s, in flight (-want +got):\n%s", name, diff)
		}
	}
	if got := delivery.StoppedBefore(t.Context(), nil); got.Reason != outcome.ReasonCancelled {
		t.Errorf("a context that has not ended: %+v", got)
	}
}
