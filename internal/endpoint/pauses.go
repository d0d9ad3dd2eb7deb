// SPDX-FileCopyrightText: The WorkItem Operator Authors
// SPDX-License-Identifier: Apache-2.0

package endpoint

import (
	"sync"
	"time"

	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/resourceversion"
	"sigs.k8s.io/controller-runtime/pkg/event"

	"github.com/workitem-operator/workitem-operator/api/v1alpha1"
	"github.com/workitem-operator/workitem-operator/internal/outbox"
)

// Pauses is what this replica learned from the answers of providers and has not
// seen in their status yet. The dispatcher tells it; the provider reconciler
// writes it into the status, where other replicas and people read it. It is safe
// for concurrent use.
type Pauses struct {
	mu      sync.Mutex
	learned map[types.UID]learned
	changes chan event.TypedGenericEvent[*v1alpha1.NotificationProvider]
}

type learned struct {
	// pause is nil where an accepted call ended one.
	pause      *v1alpha1.ProviderPause
	generation int64
	// written is the version of the provider whose status says so; empty until then.
	written string
}

// NewPauses returns a Pauses that knows of nothing.
func NewPauses() *Pauses {
	return &Pauses{
		learned: map[types.UID]learned{},
		changes: make(chan event.TypedGenericEvent[*v1alpha1.NotificationProvider], 1024),
	}
}

// Changes tells of every provider about which something was learned.
func (p *Pauses) Changes() <-chan event.TypedGenericEvent[*v1alpha1.NotificationProvider] {
	return p.changes
}

// Set notes that a provider must be left alone.
func (p *Pauses) Set(provider *v1alpha1.NotificationProvider, pause *v1alpha1.ProviderPause) {
	p.note(provider, pause)
}

// Accepted notes that a provider accepted a call, which ends a pause for a wrong
// configuration.
func (p *Pauses) Accepted(provider *v1alpha1.NotificationProvider) {
	if pause := p.Known(provider); pause != nil && outbox.Parking(pause) {
		p.note(provider, nil)
	}
}

func (p *Pauses) note(provider *v1alpha1.NotificationProvider, pause *v1alpha1.ProviderPause) {
	p.mu.Lock()
	p.learned[provider.UID] = learned{pause: pause, generation: provider.Generation}
	p.mu.Unlock()
	p.Check(provider)
}

// Check asks the provider reconciler to look at a provider again. If it is that far
// behind that it cannot be asked, it has not looked at this one yet either.
func (p *Pauses) Check(provider *v1alpha1.NotificationProvider) {
	select {
	case p.changes <- event.TypedGenericEvent[*v1alpha1.NotificationProvider]{Object: provider}:
	default:
	}
}

// Written notes that the status of a provider, as of this version, says what was
// learned until then.
func (p *Pauses) Written(provider *v1alpha1.NotificationProvider, pause *v1alpha1.ProviderPause) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if l, ok := p.learned[provider.UID]; ok && l.pause == pause {
		l.written = provider.ResourceVersion
		p.learned[provider.UID] = l
	}
}

// Known is the last pause of a provider, whether it is over or not: what this
// replica learned, or what the status says where that is newer.
func (p *Pauses) Known(provider *v1alpha1.NotificationProvider) *v1alpha1.ProviderPause {
	p.mu.Lock()
	defer p.mu.Unlock()
	l, ok := p.learned[provider.UID]
	if !ok {
		return provider.Status.Pause
	}
	if l.generation != provider.Generation || (l.written != "" && !older(provider.ResourceVersion, l.written)) {
		delete(p.learned, provider.UID)
		return provider.Status.Pause
	}
	return l.pause
}

// InForce is the pause that keeps a provider from being called now; nil if there
// is none.
func (p *Pauses) InForce(provider *v1alpha1.NotificationProvider, now time.Time) *v1alpha1.ProviderPause {
	if pause := p.Known(provider); outbox.PauseInForce(pause, provider, now) {
		return pause
	}
	return nil
}

// Forget lets go of what is kept for a provider that is gone.
func (p *Pauses) Forget(uid types.UID) {
	p.mu.Lock()
	defer p.mu.Unlock()
	delete(p.learned, uid)
}

func older(a, b string) bool {
	order, err := resourceversion.CompareResourceVersion(a, b)
	return err == nil && order < 0
}
