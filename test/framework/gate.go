// SPDX-FileCopyrightText: The WorkItem Operator Authors
// SPDX-License-Identifier: Apache-2.0

package framework

import (
	"context"
	"sync"
)

// Gate is closed until it is opened, once and for good.
type Gate struct {
	once sync.Once
	open chan struct{}
}

// NewGate returns a closed Gate.
func NewGate() *Gate { return &Gate{open: make(chan struct{})} }

// Open opens the gate. It may be called more than once.
func (g *Gate) Open() { g.once.Do(func() { close(g.open) }) }

// Opened is closed when the gate is open: what a script may hold an answer on.
func (g *Gate) Opened() <-chan struct{} { return g.open }

// Wait waits until the gate is open or ctx ends.
func (g *Gate) Wait(ctx context.Context) error {
	select {
	case <-g.open:
		return nil
	case <-ctx.Done():
		return context.Cause(ctx)
	}
}

// Barrier holds everyone who arrives until all participants have.
type Barrier struct {
	mu   sync.Mutex
	left int
	gate *Gate
}

// NewBarrier returns a Barrier for n participants.
func NewBarrier(n int) *Barrier { return &Barrier{left: n, gate: NewGate()} }

// Arrive counts a participant and waits for the others, or until ctx ends.
func (b *Barrier) Arrive(ctx context.Context) error {
	b.mu.Lock()
	if b.left--; b.left == 0 {
		b.gate.Open()
	}
	b.mu.Unlock()
	return b.gate.Wait(ctx)
}

// Passed tells whether all participants have arrived.
func (b *Barrier) Passed() bool {
	select {
	case <-b.gate.open:
		return true
	default:
		return false
	}
}
