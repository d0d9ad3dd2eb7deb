// SPDX-FileCopyrightText: The WorkItem Operator Authors
// SPDX-License-Identifier: Apache-2.0

package endpoint_test

import (
	"sync"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/workitem-operator/workitem-operator/api/v1alpha1"
	"github.com/workitem-operator/workitem-operator/internal/endpoint"
	"github.com/workitem-operator/workitem-operator/internal/outcome"
)

func pauseOf(reason string, generation int64, until time.Duration) *v1alpha1.ProviderPause {
	p := &v1alpha1.ProviderPause{Reason: reason, Generation: generation}
	if until != 0 {
		p.Until = &metav1.Time{Time: noon.Add(until)}
	}
	return p
}

// What this replica learned holds until the status says it, and no longer.
func TestWhatIsLearnedHoldsUntilTheStatusSaysIt(t *testing.T) {
	t.Parallel()
	learned, said := pauseOf(outcome.ReasonRateLimited, 1, time.Hour), pauseOf(outcome.ReasonUnavailable, 1, time.Minute)
	old := hook().ResourceVersion("5").Pause(said).Obj()
	written := hook().ResourceVersion("9").Pause(learned).Obj()
	bare, parked := hook().ResourceVersion("5").Obj(), pauseOf(outcome.ReasonForbidden, 1, time.Minute)
	parked.Since = &metav1.Time{Time: noon}
	cases := map[string]struct {
		steps func(*endpoint.Pauses)
		look  *v1alpha1.NotificationProvider
		want  string
	}{
		"nothing learned, nothing said":    {func(*endpoint.Pauses) {}, hook().Obj(), ""},
		"what the status says":             {func(*endpoint.Pauses) {}, old, outcome.ReasonUnavailable},
		"what was learned":                 {func(p *endpoint.Pauses) { p.Set(old, learned, noon) }, old, outcome.ReasonRateLimited},
		"written, and the cache is behind": {func(p *endpoint.Pauses) { p.Set(old, learned, noon); p.Written(written, learned) }, old, outcome.ReasonRateLimited},
		"written, and the cache shows it":  {func(p *endpoint.Pauses) { p.Set(old, learned, noon); p.Written(written, learned) }, hook().ResourceVersion("10").Pause(said).Obj(), outcome.ReasonUnavailable},
		"something else was written":       {func(p *endpoint.Pauses) { p.Set(old, learned, noon); p.Written(written, said) }, hook().ResourceVersion("10").Pause(said).Obj(), outcome.ReasonRateLimited},
		"learned anew since":               {func(p *endpoint.Pauses) { p.Set(old, said, noon); p.Written(written, said); p.Set(old, learned, noon) }, hook().ResourceVersion("10").Pause(said).Obj(), outcome.ReasonRateLimited},
		"the spec has changed":             {func(p *endpoint.Pauses) { p.Set(old, learned, noon) }, hook().Generation(2).ResourceVersion("6").Obj(), ""},
		"forgotten":                        {func(p *endpoint.Pauses) { p.Set(old, learned, noon); p.Forget(old.UID) }, hook().Obj(), ""},
		"the status says something that weighs more": {
			func(p *endpoint.Pauses) { p.Set(old, learned, noon) },
			hook().ResourceVersion("6").Pause(pauseOf(outcome.ReasonForbidden, 1, time.Minute)).Obj(), outcome.ReasonForbidden,
		},
		"answers overtake each other: a weaker one changes nothing": {
			func(p *endpoint.Pauses) {
				p.Set(bare, pauseOf(outcome.ReasonEndpointGone, 1, 0), noon)
				p.Set(bare, learned, noon)
			}, bare, outcome.ReasonEndpointGone,
		},
		"an accepted call ends a parked one": {
			func(p *endpoint.Pauses) { p.Set(bare, parked, noon); p.Accepted(bare, noon.Add(time.Second)) }, bare, "",
		},
		"not if it was begun before": {
			func(p *endpoint.Pauses) { p.Set(bare, parked, noon); p.Accepted(bare, noon) }, bare, outcome.ReasonForbidden,
		},
		"also one that only the status says": {
			func(p *endpoint.Pauses) {
				p.Accepted(hook().ResourceVersion("5").Pause(parked).Obj(), noon.Add(time.Second))
			},
			hook().ResourceVersion("5").Pause(parked).Obj(), "",
		},
		"what is gone stays gone": {
			func(p *endpoint.Pauses) {
				p.Set(bare, pauseOf(outcome.ReasonEndpointGone, 1, 0), noon)
				p.Accepted(bare, noon.Add(time.Hour))
			}, bare, outcome.ReasonEndpointGone,
		},
		"an accepted call ends no polite pause": {
			func(p *endpoint.Pauses) { p.Set(bare, learned, noon); p.Accepted(bare, noon.Add(time.Second)) }, bare, outcome.ReasonRateLimited,
		},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			p := endpoint.NewPauses()
			tc.steps(p)
			got := ""
			if pause := p.Known(tc.look); pause != nil {
				got = pause.Reason
			}
			if got != tc.want {
				t.Errorf("known is %q, want %q", got, tc.want)
			}
		})
	}
}

// A call that was begun before the spec changed ends after one that found the new
// spec parked. It says nothing about the new spec.
func TestAnOldCallDoesNotEndANewPause(t *testing.T) {
	t.Parallel()
	old, current := hook().ResourceVersion("5").Obj(), hook().Generation(2).ResourceVersion("6").Obj()
	for name, late := range map[string]func(*endpoint.Pauses){
		"it was accepted":     func(p *endpoint.Pauses) { p.Accepted(old, noon) },
		"it was rate limited": func(p *endpoint.Pauses) { p.Set(old, pauseOf(outcome.ReasonRateLimited, 1, time.Second), noon) },
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			p := endpoint.NewPauses()
			p.Set(current, pauseOf(outcome.ReasonUnauthorized, 2, time.Minute), noon)
			late(p)
			if got := p.InForce(current, noon); got == nil || got.Reason != outcome.ReasonUnauthorized {
				t.Errorf("in force is %+v, want Unauthorized", got)
			}
		})
	}
}

func TestInForce(t *testing.T) {
	t.Parallel()
	p := endpoint.NewPauses()
	provider := hook().Obj()
	p.Set(provider, pauseOf(outcome.ReasonRateLimited, 1, time.Minute), noon)
	if p.InForce(provider, noon.Add(time.Minute-1)) == nil || p.InForce(provider, noon.Add(time.Minute)) != nil {
		t.Error("the pause does not end when it says")
	}
	if p.Known(provider) == nil {
		t.Error("a pause that is over is still known, so that one call probes")
	}
}

// Telling the provider reconciler never blocks a dispatcher.
func TestChangesNeverBlock(t *testing.T) {
	t.Parallel()
	p := endpoint.NewPauses()
	for range 5000 {
		p.Set(hook().Obj(), pauseOf(outcome.ReasonForbidden, 1, time.Minute), noon)
	}
	if e := <-p.Changes(); e.Object.Name != "hook" {
		t.Errorf("changes tells of %q", e.Object.Name)
	}
}

func TestPausesAreSafeForConcurrentUse(t *testing.T) {
	t.Parallel()
	p := endpoint.NewPauses()
	var wg sync.WaitGroup
	for range 8 {
		wg.Go(func() {
			provider := hook().ResourceVersion("5").Obj()
			for range 100 {
				pause := pauseOf(outcome.ReasonForbidden, 1, time.Minute)
				p.Set(provider, pause, noon)
				p.Written(provider, pause)
				p.InForce(provider, noon)
				p.Accepted(provider, noon)
				p.Forget(provider.UID)
			}
		})
	}
	wg.Wait()
}
