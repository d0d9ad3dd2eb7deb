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

	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/resourceversion"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// Versions remembers what this process knows of objects that its caches may not
// show yet: what it wrote itself, and which versions the API server called out of
// date. Its zero value is ready to use; it is safe for concurrent use.
type Versions struct {
	mu    sync.Mutex
	known map[types.UID]version
}

type version struct {
	// written is the newest version that this process wrote.
	written string
	// outdated is a version that a write conflicted with.
	outdated string
}

// Wrote notes the version that a write of this process returned.
func (v *Versions) Wrote(obj client.Object) {
	v.note(obj.GetUID(), func(known *version) { known.written = obj.GetResourceVersion() })
}

// Outdated notes that a write based on this version of an object conflicted.
func (v *Versions) Outdated(obj client.Object) {
	v.note(obj.GetUID(), func(known *version) { known.outdated = obj.GetResourceVersion() })
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
}

// Behind tells whether an object read from a cache is known to be older than what
// the API server has. The event that brings the newer one is on its way.
func (v *Versions) Behind(obj client.Object) bool {
	v.mu.Lock()
	defer v.mu.Unlock()
	known, ok := v.known[obj.GetUID()]
	if !ok {
		return false
	}
	rv := obj.GetResourceVersion()
	if older(rv, known.written) || rv == known.outdated {
		return true
	}
	delete(v.known, obj.GetUID())
	return false
}

// older compares two versions of one object. Versions that cannot be compared are
// not called older: the write's precondition decides.
func older(a, b string) bool {
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
