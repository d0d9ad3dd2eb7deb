// SPDX-FileCopyrightText: The WorkItem Operator Authors
// SPDX-License-Identifier: Apache-2.0

package claim

import (
	"time"
)

// Term is one holder's tenure, as far as the holder may trust it.
type Term struct {
	// Start is the time just before the request that acquired or renewed the claim
	// was sent. Counting from there, a slow but successful request never extends
	// the trust.
	Start time.Time
	// Duration is what the Lease promises, in whole seconds.
	Duration time.Duration
}

// NewTerm begins a tenure with a request sent at start.
func NewTerm(start time.Time, d time.Duration) Term {
	return Term{Start: start, Duration: time.Duration(Seconds(d)) * time.Second}
}

// Margin is how long before its claim runs out a holder stops: a fifth of the
// duration. It covers the way of the cancellation to the network and clocks that
// do not run equally fast.
func (t Term) Margin() time.Duration { return t.Duration / 5 }

// TrustedUntil is the instant from which the holder no longer acts on the claim.
func (t Term) TrustedUntil() time.Time { return t.Start.Add(t.Duration - t.Margin()) }

// Trusted tells whether the holder may still act on the claim.
func (t Term) Trusted(now time.Time) bool { return now.Before(t.TrustedUntil()) }

// RenewEvery is how often a claim is renewed while a call is in flight: a third
// of its duration.
func (t Term) RenewEvery() time.Duration { return t.Duration / 3 }

// RetryRenewAfter is how soon a renewal that failed is tried again.
func (t Term) RetryRenewAfter() time.Duration { return t.Duration / 12 }
