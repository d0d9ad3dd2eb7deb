// SPDX-FileCopyrightText: The WorkItem Operator Authors
// SPDX-License-Identifier: Apache-2.0

package invariants

import (
	"context"
	"fmt"
	"time"

	"github.com/workitem-operator/workitem-operator/internal/delivery/deliverytest"
)

// World is what is judged: one namespace, and what its providers were called with.
type World struct {
	// Namespace is where the objects are.
	Namespace string
	// Calls is the ledger of all providers of the namespace, each endpoint's in order.
	Calls []deliverytest.Call
	// Effects is how many effects the calls with each key had.
	Effects map[string]int
	// Holder is the identity of the process that made a call; empty if that cannot be
	// told. Nil takes it from the User-Agent, as the managers of package framework set it.
	Holder func(call deliverytest.Call) string
	// Skew is how far the wall clock of a process is ahead of the ledger's, by identity.
	Skew map[string]time.Duration
	// Stalled are the identities of processes that were stopped for longer than their
	// claims, or cut off without being told. What they have begun may reach the network
	// late: the documented gap of I5.
	Stalled map[string]bool
	// Open tells that not everything has ended yet, so that I9 only asks whether
	// anything has vanished.
	Open bool
}

// Check returns what is broken, one line each that begins with the invariant's number;
// nothing if all is well. The error tells that the history could not be had.
func (r *Recorder) Check(ctx context.Context, w World) ([]string, error) {
	h, err := r.seen(ctx, w.Namespace)
	if err != nil {
		return nil, err
	}
	return judge(h, w), nil
}

// Mark is the state of a namespace, for Unchanged.
type Mark struct {
	world World
	last  map[id]uint64
}

// Mark notes the state of a namespace and how many calls there were.
func (r *Recorder) Mark(ctx context.Context, w World) (Mark, error) {
	h, err := r.seen(ctx, w.Namespace)
	if err != nil {
		return Mark{}, err
	}
	return Mark{world: w, last: h.lastVersions()}, nil
}

// Unchanged returns what has been written, deleted or called since a mark (I10). calls
// are the calls that there are now.
func (r *Recorder) Unchanged(ctx context.Context, m Mark, calls []deliverytest.Call) ([]string, error) {
	h, err := r.seen(ctx, m.world.Namespace)
	if err != nil {
		return nil, err
	}
	var out []string
	now := h.lastVersions()
	for k, rv := range now {
		if before, known := m.last[k]; !known || before != rv {
			out = append(out, fmt.Sprintf("I10: %s was written by a pass that had nothing to do: version %d, then %d", k.name, before, rv))
		}
	}
	if n := len(calls) - len(m.world.Calls); n != 0 {
		out = append(out, fmt.Sprintf("I10: a pass that had nothing to do made %d calls", n))
	}
	return out, nil
}

// lastVersions are the revisions of the last change of each object.
func (h *history) lastVersions() map[id]uint64 {
	out := map[id]uint64{}
	for k, l := range h.items {
		out[k] = max(l.last().rv, l.deleted)
	}
	for k, l := range h.outboxes {
		out[k] = max(l.last().rv, l.deleted)
	}
	for k, l := range h.providers {
		out[k] = max(l.last().rv, l.deleted)
	}
	for k, l := range h.leases {
		out[k] = max(l.last().rv, l.deleted)
	}
	return out
}

// judgement collects what is broken.
type judgement struct {
	history *history
	world   World
	broken  []string
}

func (j *judgement) say(invariant, format string, args ...any) {
	j.broken = append(j.broken, invariant+": "+fmt.Sprintf(format, args...))
}

func judge(h *history, w World) []string {
	if w.Holder == nil {
		w.Holder = func(call deliverytest.Call) string { return call.Header.Get("User-Agent") }
	}
	j := &judgement{history: h, world: w}
	for _, item := range inOrder(h.items) {
		j.transitions(item)
		j.intentsStay(item)
		j.ended(item)
	}
	for _, ob := range inOrder(h.outboxes) {
		j.wanted(ob)
		j.frozen(ob)
		j.fenced(ob)
		j.counted(ob)
		j.honest(ob)
		j.cautious(ob)
	}
	for _, lease := range inOrder(h.leases) {
		j.observed(lease)
	}
	j.unique()
	for _, call := range w.Calls {
		j.claimed(call)
	}
	return j.broken
}
