// SPDX-FileCopyrightText: The WorkItem Operator Authors
// SPDX-License-Identifier: Apache-2.0

package dispatcher

import (
	"fmt"
	"slices"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"k8s.io/apimachinery/pkg/types"
	"k8s.io/utils/clock"

	"github.com/workitem-operator/workitem-operator/api/v1alpha1"
	"github.com/workitem-operator/workitem-operator/internal/outbox"
	"github.com/workitem-operator/workitem-operator/internal/outcome"
	"github.com/workitem-operator/workitem-operator/test/wrappers"
)

var (
	well   = outcome.FromHTTPStatus(204)
	unwell = outcome.FromHTTPStatus(500)
)

// bench is gates with what they wake.
type bench struct {
	*gates
	t     *testing.T
	mu    sync.Mutex
	woken []string
}

func newBench(t *testing.T) *bench {
	t.Helper()
	b := &bench{t: t}
	b.gates = newGates(clock.RealClock{}, func(key types.NamespacedName) {
		b.mu.Lock()
		defer b.mu.Unlock()
		b.woken = append(b.woken, key.Name)
	})
	return b
}

func named(name string) types.NamespacedName {
	return types.NamespacedName{Namespace: "ops", Name: name}
}

func (b *bench) must(provider *v1alpha1.NotificationProvider, name string, limit int) *pass {
	b.t.Helper()
	p, wait := b.enter(provider, named(name), limit)
	if p == nil {
		b.t.Fatalf("%s gets no slot, and is to wait %s", name, wait)
	}
	return p
}

func (b *bench) mustNot(provider *v1alpha1.NotificationProvider, name string, limit int) time.Duration {
	b.t.Helper()
	p, wait := b.enter(provider, named(name), limit)
	if p != nil {
		b.t.Fatalf("%s gets a slot", name)
	}
	if wait <= 0 {
		b.t.Fatalf("fault 40: %s is to wait %s", name, wait)
	}
	return wait
}

// trip opens the breaker by as many failures as it takes.
func (b *bench) trip(provider *v1alpha1.NotificationProvider) {
	b.t.Helper()
	for range tripAfter {
		b.must(provider, "trip", 99).leave(unwell)
	}
}

func TestGatesLimitCallsInFlight(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	one, other := wrappers.MakeProvider("one", "ops").Obj(), wrappers.MakeProvider("other", "ops").Obj()
	first, second := b.must(one, "a", 2), b.must(one, "b", 2)
	for _, name := range []string{"c", "d", "e", "c", "f"} {
		if wait := b.mustNot(one, name, 2); wait != slotRetry {
			t.Errorf("%s is to wait %s, want %s", name, wait, slotRetry)
		}
	}
	b.must(other, "x", 1) // One provider's calls do not hold up another's.
	first.leave(well)
	if want := []string{"c", "d"}; !slices.Equal(b.woken, want) {
		t.Errorf("woken %v, want %v: those that have waited longest, each once", b.woken, want)
	}
	first.leave(well) // A slot is given back once.
	first.unused()
	b.must(one, "c", 2)
	b.mustNot(one, "d", 2)
	second.unused()
	if want := []string{"c", "d", "e", "f"}; !slices.Equal(b.woken, want) {
		t.Errorf("woken %v, want %v", b.woken, want)
	}
	b.must(one, "d", 2)
	b.mustNot(one, "e", 2)
	b.mustNot(one, "e", 1) // A parked provider gets one probe, however many calls are under way.
}

// Fault 39: ten failures in a row open the breaker, one probe goes through when its
// time is over, and the probe decides for all.
func TestFault39_BreakerLetsOneProbeThrough(t *testing.T) {
	t.Parallel()
	for name, tc := range map[string]struct {
		longest, open time.Duration
	}{
		"the default":          {10 * time.Minute, longestOpen},
		"a short maxBackoff":   {5 * time.Second, 5 * time.Second},
		"a shorter maxBackoff": {100 * time.Millisecond, shortestOpen},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				b := newBench(t)
				provider := wrappers.MakeProvider("hook", "ops").Retry(time.Hour, 100*time.Millisecond, tc.longest).Obj()
				for range tripAfter - 1 {
					b.must(provider, "a", 9).leave(unwell)
				}
				b.must(provider, "a", 9).leave(well) // Nine are not ten in a row.
				b.trip(provider)
				if wait := b.mustNot(provider, "a", 9); wait > tc.open || wait < tc.open-time.Second {
					t.Errorf("is to wait %s, want %s", wait, tc.open)
				}
				time.Sleep(tc.open + time.Millisecond)
				probe := b.must(provider, "probe", 9)
				if wait := b.mustNot(provider, "b", 9); wait != slotRetry {
					t.Errorf("beside the probe one is to wait %s", wait)
				}
				b.mustNot(provider, "c", 9)
				probe.leave(unwell)
				if want := []string{"b", "c"}; !slices.Equal(b.woken, want) {
					t.Errorf("woken %v, want %v", b.woken, want)
				}
				b.mustNot(provider, "b", 9)
				time.Sleep(tc.open + time.Millisecond)
				b.must(provider, "probe", 9).leave(well)
				b.must(provider, "b", 9)
				b.must(provider, "c", 9)
			})
		})
	}
}

// An unused slot, and a call that was cancelled, say nothing about the provider: not
// that it is well, not that it is not, and they do not use up the probe.
func TestAnUnusedSlotIsNoVerdict(t *testing.T) {
	t.Parallel()
	noVerdict := map[string]func(*pass){
		"unused":    func(p *pass) { p.unused() },
		"cancelled": func(p *pass) { p.leave(outcome.Unanswered(outcome.ReasonCancelled, "stopping")) },
		"forbidden": func(p *pass) { p.leave(outcome.NotSent(outcome.ReasonAddressForbidden, "guard")) },
		"senseless": func(p *pass) { p.leave(outcome.Unsendable("key")) },
	}
	for name, leave := range noVerdict {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				b := newBench(t)
				provider := wrappers.MakeProvider("hook", "ops").Obj()
				for range 3 * tripAfter {
					leave(b.must(provider, "a", 9))
				}
				for range tripAfter - 1 {
					b.must(provider, "a", 9).leave(unwell)
				}
				leave(b.must(provider, "a", 9)) // Does not end the row of failures either.
				b.must(provider, "a", 9).leave(unwell)
				b.mustNot(provider, "a", 9)
				time.Sleep(longestOpen + time.Millisecond)
				for range 5 {
					leave(b.must(provider, "probe", 9))
				}
				probe := b.must(provider, "probe", 9)
				b.mustNot(provider, "a", 9)
				probe.leave(well)
				b.must(provider, "a", 9)
			})
		})
	}
}

// Fault 39: what failed before a change of spec says nothing about what it is now, and
// neither does a call that was begun before.
func TestFault39_ChangeOfSpecClosesTheBreaker(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		b := newBench(t)
		provider := wrappers.MakeProvider("hook", "ops")
		var old []*pass
		for range tripAfter {
			old = append(old, b.must(provider.Obj(), "old", 99))
		}
		b.trip(provider.Obj())
		b.mustNot(provider.Obj(), "a", 99)
		changed := provider.Generation(2).Obj()
		b.must(changed, "a", 99).leave(well)
		for _, p := range old {
			p.leave(unwell)
		}
		b.must(changed, "a", 99)
		if got := b.of[changed.UID].inFlight; got != 1 {
			t.Errorf("%d calls are counted as under way, want 1", got)
		}
	})
}

func TestVerdict(t *testing.T) {
	t.Parallel()
	for name, tc := range map[string]struct {
		res  outcome.Result
		want error
	}{
		"accepted":           {well, nil},
		"refused":            {outcome.FromHTTPStatus(400), nil},
		"wrong credentials":  {outcome.FromHTTPStatus(401), nil},
		"gone":               {outcome.FromHTTPStatus(410), nil},
		"rate limited":       {outcome.FromHTTPStatus(429), nil},
		"in progress":        {outcome.FromHTTPStatus(409), nil},
		"key conflict":       {outcome.FromHTTPStatus(422), nil},
		"unavailable":        {outcome.FromHTTPStatus(503), errUnhealthy},
		"server error":       {unwell, errUnhealthy},
		"timeout":            {outcome.Unanswered(outcome.ReasonTimeout, "late"), errUnhealthy},
		"refused connection": {outcome.NotSent(outcome.ReasonConnectionRefused, "no"), errUnhealthy},
		"no such host":       {outcome.NotSent(outcome.ReasonNameNotResolved, "no"), errUnhealthy},
		"no trust":           {outcome.NotSent(outcome.ReasonTLSFailed, "no"), errUnhealthy},
		"cancelled":          {outcome.Unanswered(outcome.ReasonCancelled, "stop"), errNoVerdict},
		"never begun":        {outcome.NotSent(outcome.ReasonCancelled, "stop"), errNoVerdict},
		"forbidden":          {outcome.NotSent(outcome.ReasonAddressForbidden, "guard"), errNoVerdict},
	} {
		if got := verdict(tc.res); got != tc.want { //nolint:errorlint // The very values.
			t.Errorf("%s: %v, want %v", name, got, tc.want)
		}
	}
}

func TestGatesAreSafeForConcurrentUse(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	var wg sync.WaitGroup
	for i := range 16 {
		wg.Go(func() {
			provider := wrappers.MakeProvider("hook", "ops").Generation(int64(1 + i%2)).Obj()
			for n := range 200 {
				if p, _ := b.enter(provider, named(fmt.Sprint(i)), 3); p != nil {
					p.leave([]outcome.Result{well, unwell}[n%2])
				}
			}
		})
	}
	wg.Wait()
	for _, gt := range b.of {
		if gt.inFlight != 0 {
			t.Errorf("%d calls are under way when all have ended", gt.inFlight)
		}
	}
}

// I5: a cache of outboxes that has been silent for a fraction of the shortest time to
// live is not trusted, and one namespace's events say nothing of another's.
func TestI5_AnOldCacheIsNotTrusted(t *testing.T) {
	t.Parallel()
	noon := time.Date(2026, 12, 1, 12, 0, 0, 0, time.UTC)
	var f freshness
	if f.trusted("ops", noon) {
		t.Error("trusted before anything was seen")
	}
	f.note("ops", noon)
	for after, want := range map[time.Duration]bool{0: true, trustCacheFor - 1: true, trustCacheFor: false, time.Hour: false} {
		if got := f.trusted("ops", noon.Add(after)); got != want {
			t.Errorf("after %s: trusted %t, want %t", after, got, want)
		}
	}
	if f.trusted("dev", noon) {
		t.Error("another namespace is trusted")
	}
	f.note("ops", noon.Add(time.Hour))
	if !f.trusted("ops", noon.Add(time.Hour)) {
		t.Error("not trusted again")
	}
	if trustCacheFor >= outbox.MinTTL/2 {
		t.Errorf("the cache is trusted for %s, and an outbox may be gone after %s", trustCacheFor, outbox.MinTTL)
	}
}
