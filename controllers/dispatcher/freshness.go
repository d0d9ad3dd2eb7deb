// SPDX-FileCopyrightText: The WorkItem Operator Authors
// SPDX-License-Identifier: Apache-2.0

package dispatcher

import (
	"sync"
	"time"

	"github.com/workitem-operator/workitem-operator/internal/outbox"
)

// trustCacheFor is how long the cache of outboxes is trusted without an event from
// it. Within the shortest time to live no outbox can have been finished, collected
// and forgotten unseen.
const trustCacheFor = outbox.MinTTL / 4

// freshness knows when the cache of outboxes last showed that it is alive, for
// each namespace: each may have a watch of its own. Its zero value is ready to use.
type freshness struct {
	mu   sync.Mutex
	seen map[string]time.Time
}

func (f *freshness) note(namespace string, now time.Time) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.seen == nil {
		f.seen = map[string]time.Time{}
	}
	f.seen[namespace] = now
}

// trusted tells whether what the cache shows may be taken for recent.
func (f *freshness) trusted(namespace string, now time.Time) bool {
	f.mu.Lock()
	defer f.mu.Unlock()
	at, ok := f.seen[namespace]
	return ok && now.Sub(at) < trustCacheFor
}
