// SPDX-FileCopyrightText: The WorkItem Operator Authors
// SPDX-License-Identifier: Apache-2.0

package invariants

import (
	"cmp"
	"fmt"
	"maps"
	"slices"
	"strconv"

	coordinationv1 "k8s.io/api/coordination/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/workitem-operator/workitem-operator/api/v1alpha1"
)

// id tells objects apart, those of the same name that lived one after the other too.
type id struct {
	name string
	uid  types.UID
}

func idOf(obj client.Object) id { return id{name: obj.GetName(), uid: obj.GetUID()} }

// version is one version of an object.
type version[T client.Object] struct {
	obj T
	rv  uint64
}

// life is all versions of one object, in order.
type life[T client.Object] struct {
	versions []version[T]
	// deleted is the revision at which the object was deleted; 0 if it was not.
	deleted uint64
}

func (l *life[T]) first() version[T] { return l.versions[0] }
func (l *life[T]) last() version[T]  { return l.versions[len(l.versions)-1] }

// at is the version that was current just before a revision; ok is false if there
// was none.
func (l *life[T]) at(rv uint64) (v version[T], ok bool) {
	for _, candidate := range slices.Backward(l.versions) {
		if candidate.rv < rv {
			return candidate, true
		}
	}
	return v, false
}

// history is what happened in one namespace.
type history struct {
	items     map[id]*life[*v1alpha1.WorkItem]
	outboxes  map[id]*life[*v1alpha1.NotificationOutbox]
	providers map[id]*life[*v1alpha1.NotificationProvider]
	leases    map[id]*life[*coordinationv1.Lease]
}

func newHistory() *history {
	return &history{
		items:     map[id]*life[*v1alpha1.WorkItem]{},
		outboxes:  map[id]*life[*v1alpha1.NotificationOutbox]{},
		providers: map[id]*life[*v1alpha1.NotificationProvider]{},
		leases:    map[id]*life[*coordinationv1.Lease]{},
	}
}

func (h *history) add(obj client.Object, deleted bool) error {
	rv, err := strconv.ParseUint(obj.GetResourceVersion(), 10, 64)
	if err != nil {
		return fmt.Errorf("reading the resourceVersion of %s: %w", obj.GetName(), err)
	}
	switch o := obj.(type) {
	case *v1alpha1.WorkItem:
		put(h.items, o, rv, deleted)
	case *v1alpha1.NotificationOutbox:
		put(h.outboxes, o, rv, deleted)
	case *v1alpha1.NotificationProvider:
		put(h.providers, o, rv, deleted)
	case *coordinationv1.Lease:
		put(h.leases, o, rv, deleted)
	default:
		return fmt.Errorf("%T is not recorded", obj)
	}
	return nil
}

func put[T client.Object](lives map[id]*life[T], obj T, rv uint64, deleted bool) {
	l := lives[idOf(obj)]
	if l == nil {
		l = &life[T]{}
		lives[idOf(obj)] = l
	}
	if deleted {
		l.deleted = rv
		if len(l.versions) == 0 {
			l.versions = []version[T]{{obj: obj, rv: rv}}
		}
		return
	}
	obj.SetManagedFields(nil)
	l.versions = append(l.versions, version[T]{obj: obj, rv: rv})
}

// clone is a copy that later versions do not change.
func (h *history) clone() *history {
	if h == nil {
		return newHistory()
	}
	return &history{items: copied(h.items), outboxes: copied(h.outboxes), providers: copied(h.providers), leases: copied(h.leases)}
}

func copied[T client.Object](lives map[id]*life[T]) map[id]*life[T] {
	out := make(map[id]*life[T], len(lives))
	for k, l := range lives {
		out[k] = &life[T]{versions: slices.Clone(l.versions), deleted: l.deleted}
	}
	return out
}

// covers tells whether the history goes at least as far as these versions, and knows
// of the deletion of everything else.
func (h *history) covers(wanted map[id]string) bool {
	known := map[id]bool{}
	reaches(h.items, wanted, known)
	reaches(h.outboxes, wanted, known)
	reaches(h.providers, wanted, known)
	reaches(h.leases, wanted, known)
	for k := range wanted {
		if !known[k] {
			return false
		}
	}
	return !slices.Contains(slices.Collect(maps.Values(known)), false)
}

func reaches[T client.Object](lives map[id]*life[T], wanted map[id]string, known map[id]bool) {
	for k, l := range lives {
		rv, err := strconv.ParseUint(wanted[k], 10, 64)
		known[k] = l.deleted != 0 || (err == nil && l.last().rv >= rv)
	}
}

// inOrder are the lives of one kind, in the order of their beginnings.
func inOrder[T client.Object](lives map[id]*life[T]) []*life[T] {
	out := slices.Collect(maps.Values(lives))
	slices.SortFunc(out, func(a, b *life[T]) int { return cmp.Compare(a.first().rv, b.first().rv) })
	return out
}
