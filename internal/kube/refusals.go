// SPDX-FileCopyrightText: The WorkItem Operator Authors
// SPDX-License-Identifier: Apache-2.0

package kube

import (
	"strings"
	"sync"
	"time"

	"k8s.io/apimachinery/pkg/types"
)

// maxWords is how much is kept, in bytes, of what the API server says.
const maxWords = 800

// Refusals remembers which requests the API server refused, until they may be tried
// again. Its words may differ each time; without this memory each of them would be a
// change, and each change a reason to try at once. Its zero value is ready to use; it
// is safe for concurrent use.
type Refusals struct {
	mu sync.Mutex
	of map[types.NamespacedName]refusal
}

type refusal struct {
	words string
	until time.Time
}

// Note remembers a refusal until a time, and returns the words that are kept of it.
func (r *Refusals) Note(key types.NamespacedName, err error, until time.Time) string {
	words := err.Error()
	if len(words) > maxWords {
		words = strings.ToValidUTF8(words[:maxWords], "") + "…"
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.of == nil {
		r.of = map[types.NamespacedName]refusal{}
	}
	for other, known := range r.of {
		if until.Sub(known.until) > time.Hour { // Nobody has asked again: its object is gone.
			delete(r.of, other)
		}
	}
	r.of[key] = refusal{words: words, until: until}
	return words
}

// Standing returns the words of a refusal that still stands, and until when it does.
func (r *Refusals) Standing(key types.NamespacedName, now time.Time) (words string, until time.Time, stands bool) {
	r.mu.Lock()
	defer r.mu.Unlock()
	known, ok := r.of[key]
	if ok && !now.Before(known.until) {
		delete(r.of, key)
		return "", time.Time{}, false
	}
	return known.words, known.until, ok
}

// Forget lets go of what is known of a name.
func (r *Refusals) Forget(key types.NamespacedName) {
	r.mu.Lock()
	defer r.mu.Unlock()
	delete(r.of, key)
}
