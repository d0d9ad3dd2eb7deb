// SPDX-FileCopyrightText: The WorkItem Operator Authors
// SPDX-License-Identifier: Apache-2.0

package outcome_test

import (
	"math"
	"regexp"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"

	"github.com/workitem-operator/workitem-operator/internal/outcome"
)

func TestFromHTTPStatus(t *testing.T) {
	t.Parallel()
	cases := map[string]struct {
		statuses []int
		want     outcome.Result
	}{
		"every 2xx is accepted": {
			statuses: []int{200, 201, 202, 203, 204, 205, 206, 207, 226, 299},
			want:     outcome.Result{Class: outcome.Accepted, Follow: outcome.FollowNone, Reason: outcome.ReasonAccepted},
		},
		"a redirect is a refusal for good": {
			statuses: []int{300, 301, 302, 303, 304, 305, 307, 308, 399},
			want:     outcome.Result{Class: outcome.Rejected, Follow: outcome.FollowDeadLetter, Reason: outcome.ReasonRedirected},
		},
		"a 4xx without a meaning of its own is a refusal for good": {
			statuses: []int{400, 402, 405, 406, 407, 411, 412, 413, 414, 415, 418, 421, 423, 424, 426, 428, 431, 451, 499},
			want:     outcome.Result{Class: outcome.Rejected, Follow: outcome.FollowDeadLetter, Reason: outcome.ReasonRefused},
		},
		"401 parks the provider": {
			statuses: []int{401},
			want:     outcome.Result{Class: outcome.Rejected, Follow: outcome.FollowPark, Reason: "Unauthorized"},
		},
		"403 parks the provider": {
			statuses: []int{403},
			want:     outcome.Result{Class: outcome.Rejected, Follow: outcome.FollowPark, Reason: "Forbidden"},
		},
		"404 parks the provider": {
			statuses: []int{404},
			want:     outcome.Result{Class: outcome.Rejected, Follow: outcome.FollowPark, Reason: "EndpointNotFound"},
		},
		"410 closes the provider": {
			statuses: []int{410},
			want:     outcome.Result{Class: outcome.Rejected, Follow: outcome.FollowClose, Reason: "EndpointGone"},
		},
		"422 is a conflict of keys": {
			statuses: []int{422},
			want:     outcome.Result{Class: outcome.Rejected, Follow: outcome.FollowDeadLetter, Reason: "IdempotencyKeyConflict"},
		},
		"409 leaves the first call's end open": {
			statuses: []int{409},
			want:     outcome.Result{Class: outcome.Ambiguous, Follow: outcome.FollowRetry, Reason: "RequestInProgress"},
		},
		"408 is retried": {
			statuses: []int{408},
			want:     outcome.Result{Class: outcome.Rejected, Follow: outcome.FollowRetry, Reason: "RequestTimeout"},
		},
		"425 is retried": {
			statuses: []int{425},
			want:     outcome.Result{Class: outcome.Rejected, Follow: outcome.FollowRetry, Reason: "TooEarly"},
		},
		"429 is retried": {
			statuses: []int{429},
			want:     outcome.Result{Class: outcome.Rejected, Follow: outcome.FollowRetry, Reason: "RateLimited"},
		},
		"503 is retried": {
			statuses: []int{503},
			want:     outcome.Result{Class: outcome.Rejected, Follow: outcome.FollowRetry, Reason: "Unavailable"},
		},
		"every other 5xx is ambiguous": {
			statuses: []int{500, 501, 502, 504, 505, 506, 507, 508, 510, 511, 520, 599},
			want:     outcome.Result{Class: outcome.Ambiguous, Follow: outcome.FollowRetry, Reason: outcome.ReasonServerError},
		},
		"what is no final answer is ambiguous": {
			statuses: []int{math.MinInt, -1, 0, 1, 99, 100, 101, 102, 103, 199, 600, 999, math.MaxInt},
			want:     outcome.Result{Class: outcome.Ambiguous, Follow: outcome.FollowRetry, Reason: outcome.ReasonUnclearAnswer},
		},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			for _, status := range tc.statuses {
				tc.want.HTTPStatus = status
				got := outcome.FromHTTPStatus(status)
				if diff := cmp.Diff(tc.want, got, cmpopts.IgnoreFields(outcome.Result{}, "Message")); diff != "" {
					t.Errorf("status %d (-want +got):\n%s", status, diff)
				}
				if got.Message == "" {
					t.Errorf("status %d has no message", status)
				}
			}
		})
	}
}

// Only a 2xx may end a notification as accepted, and only a definite no may
// end it as rejected.
func TestFromHTTPStatusIsConsistent(t *testing.T) {
	t.Parallel()
	camelCase := regexp.MustCompile(`^[A-Z][A-Za-z]+$`)
	for status := -10; status < 1100; status++ {
		got := outcome.FromHTTPStatus(status)
		if accepted := got.Class == outcome.Accepted; accepted != (status >= 200 && status < 300) || accepted != (got.Follow == outcome.FollowNone) {
			t.Errorf("status %d: %+v", status, got)
		}
		if got.Class == outcome.Ambiguous && got.Follow != outcome.FollowRetry {
			t.Errorf("status %d: ambiguous, but %s", status, got.Follow)
		}
		if !camelCase.MatchString(got.Reason) {
			t.Errorf("status %d: reason %q is no condition reason", status, got.Reason)
		}
		if got.RetryAfter != 0 {
			t.Errorf("status %d: a status alone asks for %s", status, got.RetryAfter)
		}
	}
}

func TestResultsWithoutAnAnswer(t *testing.T) {
	t.Parallel()
	cases := map[string]struct{ got, want outcome.Result }{
		"not sent": {
			got:  outcome.NotSent(outcome.ReasonTLSFailed, "m"),
			want: outcome.Result{Class: outcome.Rejected, Follow: outcome.FollowRetry, Reason: "TLSFailed", Message: "m"},
		},
		"unanswered": {
			got:  outcome.Unanswered(outcome.ReasonConnectionLost, "m"),
			want: outcome.Result{Class: outcome.Ambiguous, Follow: outcome.FollowRetry, Reason: "ConnectionLost", Message: "m"},
		},
		"unsendable": {
			got:  outcome.Unsendable("m"),
			want: outcome.Result{Class: outcome.Rejected, Follow: outcome.FollowDeadLetter, Reason: "InvalidMessage", Message: "m"},
		},
	}
	for name, tc := range cases {
		if diff := cmp.Diff(tc.want, tc.got); diff != "" {
			t.Errorf("%s (-want +got):\n%s", name, diff)
		}
	}
}
