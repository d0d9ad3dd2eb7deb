// SPDX-FileCopyrightText: The WorkItem Operator Authors
// SPDX-License-Identifier: Apache-2.0

// Package kube holds what every reconciler needs of the API server and has
// nothing to do with work items: what this process knows to be newer than its
// caches, and what an error of the API server means.
//
// Nothing here makes a write safe. The resourceVersion that every write carries
// does; this package only saves requests that could not succeed.
package kube

import (
	"sync"
	"time"

	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/resourceversion"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

const (
	// ConflictFor is how long a version that a write conflicted with is taken for out
	// of date. It is short: a conflict may have another cause, and then no event ever
	// comes.
	ConflictFor = 2 * time.Second
	// WrittenFor is how long a version that this process wrote is waited for. Longer
	// than that, something is wrong that waiting does not put right, such as an etcd
	// that was restored from a backup.
	WrittenFor = time.Minute
)

// Versions remembers what this process knows of objects that its caches may not
// show yet: what it wrote itself, and which versions the API server called out of
// date. Its zero value is ready to use; it is safe for concurrent use.
type Versions struct {
	mu    sync.Mutex
	known map[types.UID]version
}

type version struct {
	// written is the newest version that this process wrote, or was shown by the API
	// server, and when.
	written   string
	writtenAt time.Time
	// outdated is a version that a write conflicted with, and when.
	outdated   string
	outdatedAt time.Time
}

// Wrote notes the version that a write of this process returned, or that the API
// server showed.
func (v *Versions) Wrote(obj client.Object, now time.Time) {
	v.note(obj.GetUID(), func(known *version) {
		if !Older(obj.GetResourceVersion(), known.written) {
			known.written, known.writtenAt = obj.GetResourceVersion(), now
		}
	})
}

// Outdated notes that a write based on this version of an object conflicted.
func (v *Versions) Outdated(obj client.Object, now time.Time) {
	v.note(obj.GetUID(), func(known *version) { known.outdated, known.outdatedAt = obj.GetResourceVersion(), now })
}

func (v *Versions) note(uid types.UID, change func(*version)) {
	v.mu.Lock()
	defer v.mu.Unlock()
	if v.known == nil {
		v.known = map[types.UID]version{}
	}
	known := v.known[uid]
	change(&known)
	v.known[uid] = known
	if len(v.known) > sweepAbove {
		v.sweep(later(known.writtenAt, known.outdatedAt))
	}
}

// sweepAbove is how many objects are remembered before those are let go of that
// nothing is waited for any more.
const sweepAbove = 4096

func (v *Versions) sweep(now time.Time) {
	for uid, known := range v.known {
		if now.Sub(later(known.writtenAt, known.outdatedAt)) > WrittenFor {
			delete(v.known, uid)
		}
	}
}

func later(a, b time.Time) time.Time {
	if b.After(a) {
		return b
	}
	return a
}

// Behind tells whether an object read from a cache is known to be older than what
// the API server has. The event that brings the newer one is on its way; in case it
// is not, the answer changes after ConflictFor or WrittenFor.
func (v *Versions) Behind(obj client.Object, now time.Time) bool {
	v.mu.Lock()
	defer v.mu.Unlock()
	known, ok := v.known[obj.GetUID()]
	if !ok {
		return false
	}
	rv := obj.GetResourceVersion()
	if Older(rv, known.written) && now.Sub(known.writtenAt) < WrittenFor {
		return true
	}
	if rv == known.outdated && now.Sub(known.outdatedAt) < ConflictFor {
		return true
	}
	delete(v.known, obj.GetUID())
	return false
}

// Older compares two versions of one object. Versions that cannot be compared are
// not called older: the write's precondition decides.
func Older(a, b string) bool {
	if b == "" {
		return false
	}
	order, err := resourceversion.CompareResourceVersion(a, b)
	return err == nil && order < 0
}

// Forget lets go of what is known of an object that is gone.
func (v *Versions) Forget(uid types.UID) {
	v.mu.Lock()
	defer v.mu.Unlock()
	delete(v.known, uid)
}
