// SPDX-FileCopyrightText: The WorkItem Operator Authors
// SPDX-License-Identifier: Apache-2.0

package claim_test

import (
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/workitem-operator/workitem-operator/api/v1alpha1"
	"github.com/workitem-operator/workitem-operator/internal/claim"
	"github.com/workitem-operator/workitem-operator/test/wrappers"
)

var (
	noon  = time.Date(2026, 12, 1, 12, 0, 0, 0, time.UTC)
	ours  = wrappers.UID("outbox")
	other = wrappers.UID("an outbox of an earlier life")
)

// me is this process; its host has had another life, and other processes.
const (
	me       = "node-1_5d0c_aaaa"
	formerMe = "node-1_5d0c_bbbb"
	somebody = "node-2_77aa_cccc"
	promised = 30 * time.Second
)

func held(by string) *wrappers.Lease {
	return wrappers.MakeLease("o", "ops").Owner("o", ours).Holder(by).Seconds(30).Renewed(noon).Acquired(noon)
}

func TestDecide(t *testing.T) {
	t.Parallel()
	create, renew, takeOver := claim.Decision{Action: claim.Create}, claim.Decision{Action: claim.Renew}, claim.Decision{Action: claim.TakeOver}
	wait := func(d time.Duration) claim.Decision { return claim.Decision{Action: claim.Wait, After: d} }
	cases := map[string]struct {
		lease   *wrappers.Lease
		settled bool
		self    string
		watched time.Duration
		want    claim.Decision
	}{
		"without a Lease it is created":                    {want: create},
		"also after a rejection":                           {settled: true, want: create},
		"somebody's claim is waited for":                   {lease: held(somebody), want: wait(promised)},
		"for as long as it was not watched":                {lease: held(somebody), watched: 29 * time.Second, want: wait(time.Second)},
		"fault 22: unchanged for its duration, it is over": {lease: held(somebody), watched: promised, want: takeOver},
		"and long after that":                              {lease: held(somebody), watched: 10000 * time.Hour, want: takeOver},
		"settled says nothing about somebody else's":       {lease: held(somebody), settled: true, want: wait(promised)},
		"I12: our own is waited for, unless it is settled": {lease: held(me), want: wait(promised)},
		"our own is renewed after a definite rejection":    {lease: held(me), settled: true, want: renew},
		"our own is renewed also when it has run out":      {lease: held(me), settled: true, watched: time.Hour, want: renew},
		"fault 28: the same host, another start":           {lease: held(formerMe), settled: true, want: wait(promised)},
		"fault 26: an empty holder is nobody":              {lease: held(""), settled: true, self: "-", want: wait(promised)},
		"fault 26: no holder is nobody": {
			lease: wrappers.MakeLease("o", "ops").Owner("o", ours).Seconds(30), settled: true, self: "-", want: wait(promised),
		},
		"a released Lease is waited out all the same": {lease: wrappers.MakeLease("o", "ops").Owner("o", ours).Seconds(30), watched: promised, want: takeOver},
		"a Lease of another outbox of the same name is no claim of ours": {
			lease: wrappers.MakeLease("o", "ops").Owner("o", other).Holder(me).Seconds(30), settled: true, want: wait(promised),
		},
		"and is waited out": {
			lease: wrappers.MakeLease("o", "ops").Owner("o", other).Holder(me).Seconds(30), watched: promised, want: takeOver,
		},
		"an owner of another kind with our UID is no claim": {
			lease: wrappers.MakeLease("o", "ops").OwnerKind("Pod", ours).Holder(me).Seconds(30), settled: true, want: wait(promised),
		},
		"a Lease without a duration holds for the provider's": {
			lease: wrappers.MakeLease("o", "ops").Owner("o", ours).Holder(somebody), watched: 59 * time.Second, want: wait(time.Second),
		},
		"so does one of zero seconds":       {lease: held(somebody).Seconds(0), watched: 59 * time.Second, want: wait(time.Second)},
		"and one of less than nothing":      {lease: held(somebody).Seconds(-5), watched: 59 * time.Second, want: wait(time.Second)},
		"the longest that admission allows": {lease: held(somebody).Seconds(3600), watched: 59 * time.Minute, want: wait(time.Minute)},
		"and one beyond that":               {lease: held(somebody).Seconds(2147483647), watched: 59 * time.Second, want: wait(time.Second)},
	}
	for name, tc := range cases {
		// I7, fault 29: what the holder's clock says makes no difference whatever.
		for skew, renewed := range map[string]*time.Time{
			"its clock is right": new(noon), "its clock is 10 min behind": new(noon.Add(-10 * time.Minute)), "its clock is 10 min ahead": new(noon.Add(10 * time.Minute)), "it has none": nil,
		} {
			t.Run(name+"/"+skew, func(t *testing.T) {
				t.Parallel()
				f := claim.Facts{Self: me, OutboxUID: ours, Duration: time.Minute, ObservedAt: noon, Now: noon.Add(tc.watched), Settled: tc.settled}
				if tc.self == "-" {
					f.Self = ""
				}
				if tc.lease != nil {
					f.Lease = tc.lease.Obj()
					f.Lease.Spec.RenewTime, f.Lease.Spec.AcquireTime = micro(renewed), micro(renewed)
				}
				before := f.Lease.DeepCopy()
				if diff := cmp.Diff(tc.want, claim.Decide(f)); diff != "" {
					t.Errorf("decision (-want +got):\n%s", diff)
				}
				if diff := cmp.Diff(before, f.Lease); diff != "" {
					t.Errorf("Decide changed the Lease:\n%s", diff)
				}
			})
		}
	}
}

func micro(t *time.Time) *metav1.MicroTime {
	if t == nil {
		return nil
	}
	return &metav1.MicroTime{Time: *t}
}

// Fault 26 (ABA): a holder that stalled while its claim went to another and came
// back to a process of the same host is not the holder any more.
func TestFault26_HeldBy(t *testing.T) {
	t.Parallel()
	cases := map[string]struct {
		lease *wrappers.Lease
		self  string
		want  bool
	}{
		"ours":                        {held(me), me, true},
		"somebody's":                  {held(somebody), me, false},
		"our host's, another start":   {held(formerMe), me, false},
		"our name is a prefix of it":  {held(me + "x"), me, false},
		"empty and empty":             {held(""), "", false},
		"missing and empty":           {wrappers.MakeLease("o", "ops").Owner("o", ours), "", false},
		"of an outbox of another UID": {wrappers.MakeLease("o", "ops").Owner("o", other).Holder(me), me, false},
		"of nobody":                   {wrappers.MakeLease("o", "ops").Holder(me), me, false},
		"one of two owners":           {wrappers.MakeLease("o", "ops").OwnerKind("Pod", other).Owner("o", ours).Holder(me), me, true},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			if got := claim.HeldBy(tc.lease.Obj(), tc.self, ours); got != tc.want {
				t.Errorf("held: %t, want %t", got, tc.want)
			}
		})
	}
}

func box() *v1alpha1.NotificationOutbox {
	ob := wrappers.MakeOutbox("o", "ops").Obj()
	ob.UID = ours
	return ob
}

func TestLeases(t *testing.T) {
	t.Parallel()
	later := noon.Add(time.Hour)
	created := claim.New(box(), me, 1500*time.Millisecond, noon)
	want := wrappers.MakeLease("o", "ops").Owner("o", ours).Holder(me).Seconds(2).Renewed(noon).Acquired(noon).Transitions(0).Obj()
	want.UID = ""
	if diff := cmp.Diff(want, created); diff != "" {
		t.Errorf("created (-want +got):\n%s", diff)
	}
	if created.GenerateName != "" || !claim.HeldBy(created, me, ours) {
		t.Error("a created Lease is not its creator's")
	}
	renewed := claim.Renewed(created, time.Minute, later)
	if !renewed.Spec.RenewTime.Time.Equal(later) || !renewed.Spec.AcquireTime.Time.Equal(noon) || *renewed.Spec.LeaseDurationSeconds != 60 || *renewed.Spec.LeaseTransitions != 0 {
		t.Errorf("renewed: %+v", renewed.Spec)
	}
	if !created.Spec.RenewTime.Time.Equal(noon) {
		t.Error("Renewed changed the Lease that it was given")
	}
	for name, tc := range map[string]struct {
		from *wrappers.Lease
		want int32
	}{
		"from somebody":        {held(somebody).Transitions(4), 5},
		"from ourselves":       {held(me).Transitions(4), 4},
		"from nobody":          {held("").Transitions(0), 1},
		"without a count":      {held(somebody), 1},
		"of an earlier outbox": {wrappers.MakeLease("o", "ops").Owner("o", other).Holder(somebody), 1},
		"without a label":      {held(somebody), 1},
	} {
		from := tc.from.Obj()
		from.ResourceVersion = "7"
		if name == "without a label" {
			from.Labels = nil
		}
		before := from.DeepCopy()
		got := claim.TakenOver(from, box(), me, time.Minute, later)
		if *got.Spec.LeaseTransitions != tc.want || !claim.HeldBy(got, me, ours) || !got.Spec.AcquireTime.Time.Equal(later) || got.Labels[v1alpha1.LabelClaim] != v1alpha1.LabelClaimValue {
			t.Errorf("%s: %+v", name, got)
		}
		if got.ResourceVersion != "7" {
			t.Errorf("%s: the precondition is lost", name)
		}
		if claim.Owns(got, other) {
			t.Errorf("%s: an earlier outbox still owns it", name)
		}
		if diff := cmp.Diff(before, from); diff != "" {
			t.Errorf("%s: TakenOver changed the Lease that it was given:\n%s", name, diff)
		}
	}
}

// The Lease never promises less than the provider asks for.
func TestSecondsAreRoundedUp(t *testing.T) {
	t.Parallel()
	for d, want := range map[time.Duration]int32{
		0: 0, time.Nanosecond: 1, time.Second: 1, time.Second + 1: 2, 5 * time.Second: 5, 5*time.Second + 500*time.Millisecond: 6, time.Hour: 3600,
	} {
		if got := claim.Seconds(d); got != want {
			t.Errorf("%s: %d, want %d", d, got, want)
		}
	}
}

func TestTerm(t *testing.T) {
	t.Parallel()
	for _, d := range []time.Duration{5 * time.Second, 7500 * time.Millisecond, time.Minute, time.Hour} {
		term := claim.NewTerm(noon, d)
		whole := time.Duration(claim.Seconds(d)) * time.Second
		until := noon.Add(whole * 4 / 5)
		if !term.TrustedUntil().Equal(until) || term.Margin() != whole/5 {
			t.Errorf("%s: trusted until %s, want %s", d, term.TrustedUntil(), until)
		}
		if !term.Trusted(until.Add(-1)) || term.Trusted(until) {
			t.Errorf("%s: the trust does not end at %s", d, until)
		}
		// A first renewal that fails can be tried again, and again, before the trust ends.
		if term.RenewEvery() != whole/3 || term.RenewEvery()+3*term.RetryRenewAfter() > whole-term.Margin() {
			t.Errorf("%s: renews every %s, then every %s", d, term.RenewEvery(), term.RetryRenewAfter())
		}
	}
}

// I6: the trust counts from before the request. However slowly a renewal succeeds, it
// ends a margin before anybody who saw the renewed Lease may take it over.
func TestI6_SlowSuccessfulRenewalDoesNotExtendTrust(t *testing.T) {
	t.Parallel()
	for _, slow := range []time.Duration{0, time.Second, 20 * time.Second, time.Hour} {
		sent := noon
		answered := sent.Add(slow)
		term := claim.NewTerm(sent, promised)
		if want := sent.Add(24 * time.Second); !term.TrustedUntil().Equal(want) {
			t.Errorf("an answer after %s is trusted until %s, want %s", slow, term.TrustedUntil(), want)
		}
		if slow >= 24*time.Second && term.Trusted(answered) {
			t.Errorf("a claim whose request took %s is trusted", slow)
		}
		// The earliest that anybody can see the write is when it was sent.
		d := claim.Decide(claim.Facts{Lease: held(me).Obj(), Self: somebody, OutboxUID: ours, Duration: promised, ObservedAt: sent, Now: term.TrustedUntil()})
		if d.Action != claim.Wait || d.After != term.Margin() {
			t.Errorf("when the trust ends another decides %+v, want to wait for the margin", d)
		}
	}
}

func FuzzDecide(f *testing.F) {
	f.Add(me, me, int32(30), int64(0), int64(60), true, true)
	f.Add("", "", int32(0), int64(31), int64(-1), true, false)
	f.Add(somebody, me, int32(-2147483648), int64(1<<40), int64(1<<40), false, true)
	f.Fuzz(func(t *testing.T, holder, self string, seconds int32, watchedSeconds, renewedSeconds int64, settled, owned bool) {
		watched := time.Duration(watchedSeconds%(1<<31)) * time.Second
		b := wrappers.MakeLease("o", "ops").Holder(holder).Seconds(seconds).Renewed(noon.Add(time.Duration(renewedSeconds%(1<<31)) * time.Second))
		if owned {
			b.Owner("o", ours)
		}
		facts := claim.Facts{Lease: b.Obj(), Self: self, OutboxUID: ours, Duration: time.Minute, ObservedAt: noon, Now: noon.Add(watched), Settled: settled}
		got := claim.Decide(facts)
		holds := time.Minute
		if seconds > 0 && seconds <= 3600 {
			holds = time.Duration(seconds) * time.Second
		}
		mine := settled && owned && self != "" && holder == self
		switch got.Action {
		case claim.Create:
			t.Errorf("creates what exists")
		case claim.Renew:
			if !mine {
				t.Errorf("renews a claim of %q (owned: %t, settled: %t) as %q", holder, owned, settled, self)
			}
		case claim.TakeOver:
			if watched < holds {
				t.Errorf("takes over after %s of %s", watched, holds)
			}
		case claim.Wait:
			if mine || got.After <= 0 || got.After != holds-watched {
				t.Errorf("waits %s after %s of %s", got.After, watched, holds)
			}
		}
		facts.Lease.Spec.RenewTime, facts.Lease.Spec.AcquireTime, facts.Lease.Spec.LeaseTransitions = nil, nil, nil
		if again := claim.Decide(facts); again != got {
			t.Errorf("I7: %+v depends on the holder's clock: %+v without it", got, again)
		}
	})
}
