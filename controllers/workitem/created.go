// SPDX-FileCopyrightText: The WorkItem Operator Authors
// SPDX-License-Identifier: Apache-2.0

package workitem

import (
	"sync"
	"time"

	"k8s.io/apimachinery/pkg/types"
)

// createdFor is how long a created outbox is expected to show up in the cache.
// After that it is looked for as if this process had never created it.
const createdFor = 30 * time.Second

// created remembers the outboxes that this process created and whose cache does
// not show them yet: it saves a read and a create that could only fail.
type created struct {
	mu sync.Mutex
	at map[types.NamespacedName]time.Time
}

func (c *created) note(key types.NamespacedName, now time.Time) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.at == nil {
		c.at = map[types.NamespacedName]time.Time{}
	}
	c.at[key] = now
	if len(c.at) > sweepAbove {
		for other, at := range c.at {
			if now.Sub(at) >= createdFor {
				delete(c.at, other)
			}
		}
	}
}

// sweepAbove is how many names are remembered before old ones are let go of.
const sweepAbove = 4096

func (c *created) recently(key types.NamespacedName, now time.Time) bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	at, ok := c.at[key]
	if ok && now.Sub(at) >= createdFor {
		delete(c.at, key)
		return false
	}
	return ok
}

func (c *created) forget(key types.NamespacedName) {
	c.mu.Lock()
	defer c.mu.Unlock()
	delete(c.at, key)
}
