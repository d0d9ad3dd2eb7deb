// SPDX-FileCopyrightText: The WorkItem Operator Authors
// SPDX-License-Identifier: Apache-2.0

package workitem

import (
	"context"
	"sync"

	"k8s.io/apimachinery/pkg/types"
)

// turns lets the two entrances of one process look at an item one after the other:
// the second then finds that it is behind what the first has written, instead of losing a
// race against it. Between processes the resourceVersion decides. Its zero value is ready
// to use.
type turns struct {
	mu    sync.Mutex
	taken map[types.NamespacedName]chan struct{}
}

// take waits for the turn on an item, or until ctx ends. Whoever has it calls done.
func (t *turns) take(ctx context.Context, key types.NamespacedName) (done func(), err error) {
	for {
		t.mu.Lock()
		if t.taken == nil {
			t.taken = map[types.NamespacedName]chan struct{}{}
		}
		other, busy := t.taken[key]
		if !busy {
			mine := make(chan struct{})
			t.taken[key] = mine
			t.mu.Unlock()
			return func() {
				t.mu.Lock()
				delete(t.taken, key)
				t.mu.Unlock()
				close(mine)
			}, nil
		}
		t.mu.Unlock()
		select {
		case <-other:
		case <-ctx.Done():
			return nil, context.Cause(ctx)
		}
	}
}
