// SPDX-FileCopyrightText: The WorkItem Operator Authors
// SPDX-License-Identifier: Apache-2.0

package trigger

import (
	"net/http"

	"golang.org/x/time/rate"
	"k8s.io/utils/clock"
)

const (
	// maxRate and maxBurst are how many requests a second, and at once, a replica
	// answers. A pass over what is already processed is cheap; asking the API server about
	// its caller is what costs.
	maxRate  = 50
	maxBurst = 400
	// maxOpen is how many requests may be under way at once, those that wait included.
	maxOpen = 512
)

// limits keep one caller's mistake from becoming everybody's.
type limits struct {
	clock  clock.PassiveClock
	bucket *rate.Limiter
	open   chan struct{}
}

func newLimits(clk clock.PassiveClock) *limits {
	return &limits{clock: clk, bucket: rate.NewLimiter(maxRate, maxBurst), open: make(chan struct{}, maxOpen)}
}

// enter lets a request in, or says that there are too many. Whoever is in calls leave.
func (l *limits) enter(w http.ResponseWriter) (leave func(), refused *problem) {
	if !l.bucket.AllowN(l.clock.Now(), 1) {
		w.Header().Set("Retry-After", "1")
		return nil, refuse(http.StatusTooManyRequests, "too many requests; one pass covers everything that is due, so call again in a second")
	}
	select {
	case l.open <- struct{}{}:
		return func() { <-l.open }, nil
	default:
		w.Header().Set("Retry-After", "5")
		return nil, refuse(http.StatusTooManyRequests, "too many passes are waiting; call again without wait, or later")
	}
}
