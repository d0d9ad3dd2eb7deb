// SPDX-FileCopyrightText: The WorkItem Operator Authors
// SPDX-License-Identifier: Apache-2.0

package endpoint

import (
	"sync"
	"time"

	"k8s.io/apimachinery/pkg/api/equality"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/event"

	"github.com/workitem-operator/workitem-operator/api/v1alpha1"
	"github.com/workitem-operator/workitem-operator/internal/kube"
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
	// pause is what an answer put on the provider; nil where an accepted call ended one.
	pause *v1alpha1.ProviderPause
	// over is what the status said when that was learned: it is outweighed already.
	over *v1alpha1.ProviderPause
	// acceptedAt is when that call was begun.
	acceptedAt time.Time
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

// Set notes that a provider must be left alone. What outweighs that stays: answers
// overtake each other.
func (p *Pauses) Set(provider *v1alpha1.NotificationProvider, pause *v1alpha1.ProviderPause, now time.Time) {
	p.mu.Lock()
	if p.learned[provider.UID].generation > provider.Generation {
		p.mu.Unlock()
		return // The call was begun before the spec changed, and says nothing about it.
	}
	known := p.known(provider)
	if !outbox.PauseInForce(known, provider, now) {
		known = nil
	}
	stronger := outbox.StrongerPause(known, pause)
	if stronger == pause {
		p.learned[provider.UID] = learned{pause: pause, over: provider.Status.Pause, generation: provider.Generation}
	}
	p.mu.Unlock()
	if stronger == pause {
		p.Check(provider)
	}
}

// Accepted notes that a provider accepted a call that was begun at start, which ends
// a pause for a wrong configuration.
func (p *Pauses) Accepted(provider *v1alpha1.NotificationProvider, start time.Time) {
	p.mu.Lock()
	ends := p.learned[provider.UID].generation <= provider.Generation && outbox.ClearsPause(p.known(provider), start)
	if ends {
		p.learned[provider.UID] = learned{acceptedAt: start, generation: provider.Generation}
	}
	p.mu.Unlock()
	if ends {
		p.Check(provider)
	}
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
	if l, ok := p.learned[provider.UID]; ok && (l.pause == pause || (l.pause == nil && !outbox.ClearsPause(pause, l.acceptedAt))) {
		l.written = provider.ResourceVersion
		p.learned[provider.UID] = l
	}
}

// Known is the last pause of a provider, whether it is over or not: what this
// replica learned, or what the status says where that is newer or weighs more.
func (p *Pauses) Known(provider *v1alpha1.NotificationProvider) *v1alpha1.ProviderPause {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.known(provider)
}

func (p *Pauses) known(provider *v1alpha1.NotificationProvider) *v1alpha1.ProviderPause {
	l, ok := p.learned[provider.UID]
	if !ok {
		return provider.Status.Pause
	}
	if l.generation < provider.Generation || (l.written != "" && !kube.Older(provider.ResourceVersion, l.written)) {
		delete(p.learned, provider.UID)
		return provider.Status.Pause
	}
	switch said := provider.Status.Pause; {
	case l.pause != nil && equality.Semantic.DeepEqual(said, l.over):
		return l.pause
	case l.pause != nil:
		return outbox.StrongerPause(l.pause, said)
	case outbox.ClearsPause(said, l.acceptedAt):
		return nil
	default:
		return said
	}
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
