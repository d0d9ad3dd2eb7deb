// SPDX-FileCopyrightText: The WorkItem Operator Authors
// SPDX-License-Identifier: Apache-2.0

package outbox_test

import (
	"fmt"
	"math"
	"slices"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"pgregory.net/rapid"

	"github.com/workitem-operator/workitem-operator/api/v1alpha1"
	"github.com/workitem-operator/workitem-operator/internal/outbox"
	"github.com/workitem-operator/workitem-operator/internal/outcome"
)

func policyOf(deadline, initial, longest time.Duration) v1alpha1.RetryPolicy {
	return v1alpha1.RetryPolicy{
		Deadline: metav1.Duration{Duration: deadline}, InitialBackoff: metav1.Duration{Duration: initial}, MaxBackoff: metav1.Duration{Duration: longest},
	}
}

var defaults = policyOf(24*time.Hour, time.Second, 10*time.Minute)

// Faults 36 and 40: no pause is shorter than the first or longer than the longest,
// at any attempt, and the same attempt always waits equally long.
func TestFault36_BackoffIsBounded(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		low := time.Duration(rapid.Int64Range(int64(100*time.Millisecond), int64(87600*time.Hour)).Draw(t, "initial"))
		high := time.Duration(rapid.Int64Range(int64(low), int64(87600*time.Hour)).Draw(t, "longest"))
		key := rapid.String().Draw(t, "key")
		attempt := rapid.OneOf(rapid.Int32Range(1, 70), rapid.Int32Min(1), rapid.Just(int32(math.MaxInt32))).Draw(t, "attempt")
		got := outbox.Backoff(policyOf(high, low, high), key, attempt)
		if got < low || got > high {
			t.Fatalf("%s is not between %s and %s", got, low, high)
		}
		if again := outbox.Backoff(policyOf(high, low, high), key, attempt); again != got {
			t.Fatalf("%s, then %s", got, again)
		}
	})
}

func TestBackoffDoublesItsCeiling(t *testing.T) {
	t.Parallel()
	for attempt := int32(1); attempt <= 12; attempt++ {
		ceiling := min(time.Second<<attempt, 10*time.Minute)
		var longest time.Duration
		for i := range 2000 {
			longest = max(longest, outbox.Backoff(defaults, fmt.Sprintf("key-%d", i), attempt))
		}
		if longest > ceiling || longest < ceiling*9/10 {
			t.Errorf("attempt %d waits up to %s, want up to %s", attempt, longest, ceiling)
		}
	}
	for name, tc := range map[string]struct {
		policy  v1alpha1.RetryPolicy
		attempt int32
		want    time.Duration
	}{
		"no room for jitter":          {policyOf(time.Hour, time.Minute, time.Minute), 5, time.Minute},
		"the last attempt there is":   {policyOf(time.Hour, time.Minute, time.Minute), math.MaxInt32, time.Minute},
		"initial above longest":       {policyOf(time.Hour, time.Hour, time.Minute), 1, time.Minute},
		"no policy at all":            {v1alpha1.RetryPolicy{}, 3, 0},
		"an attempt that there is no": {policyOf(time.Hour, time.Second, time.Minute), 0, time.Second},
		"a negative attempt":          {policyOf(time.Hour, time.Second, time.Minute), -7, time.Second},
	} {
		if got := outbox.Backoff(tc.policy, "key", tc.attempt); got != tc.want {
			t.Errorf("%s: %s, want %s", name, got, tc.want)
		}
	}
}

// Fault 35: a thousand failures at one instant do not come back together.
func TestFault35_BackoffSpreads(t *testing.T) {
	t.Parallel()
	for attempt := int32(5); attempt <= 20; attempt++ {
		buckets := map[time.Duration]int{}
		for i := range 1000 {
			buckets[outbox.Backoff(defaults, fmt.Sprintf("work-item:%d:status:Overdue:1:hook", i), attempt).Truncate(time.Second)]++
		}
		for second, n := range buckets {
			if n > 50 {
				t.Errorf("attempt %d: %d of 1000 come back in second %s, want at most 50", attempt, n, second)
			}
		}
	}
	// Before that the span itself is short; within it every tenth gets its share.
	for attempt := int32(1); attempt <= 4; attempt++ {
		span := time.Second<<attempt - time.Second
		tenths := make([]int, 10)
		for i := range 1000 {
			got := outbox.Backoff(defaults, fmt.Sprintf("work-item:%d:status:Overdue:1:hook", i), attempt)
			tenths[min(int(10*(got-time.Second)/span), 9)]++
		}
		if least, most := slices.Min(tenths), slices.Max(tenths); least < 60 || most > 150 {
			t.Errorf("attempt %d: tenths of the span get %v", attempt, tenths)
		}
	}
	// One notification's own attempts do not follow one another at a fixed beat.
	same := map[float64]bool{}
	for attempt := int32(12); attempt < 32; attempt++ {
		same[outbox.Backoff(defaults, "key", attempt).Seconds()] = true
	}
	if len(same) < 20 {
		t.Errorf("twenty attempts have %d pauses", len(same))
	}
}

// Fault 21: two hours of outage are no dead letter with the default policy, and the
// attempts follow the schedule.
func TestFault21_TwoHoursOfOutageAreNoDeadLetter(t *testing.T) {
	t.Parallel()
	provider := hook().Obj()
	item, _, ob := pair(provider)
	now, attempts := noon, 0
	for now.Before(noon.Add(2 * time.Hour)) {
		d := outbox.Decide(outbox.Facts{Outbox: ob, Item: item, Provider: provider, Now: now})
		switch d.Action {
		case outbox.Wait:
			if !d.At.After(now) {
				t.Fatalf("fault 40: waits until %s at %s", d.At, now)
			}
			now = d.At
		case outbox.Attempt:
			attempts++
			st, start := outbox.Begin(ob, provider, nil, "a", now)
			ob.Status = st
			ob.Status = outbox.Settle(ob, provider, start, outcome.FromHTTPStatus(503), now, now.Add(time.Minute))
		case outbox.Nothing, outbox.End, outbox.HoldUp, outbox.Confirm, outbox.Collect, outbox.Resolve:
			t.Fatalf("attempt %d: %+v", attempts, d)
		}
	}
	if attempts < 12 || attempts > 60 {
		t.Errorf("%d attempts in two hours", attempts)
	}
	if ob.Status.Attempts != int32(attempts) || len(ob.Status.History) != 10 {
		t.Errorf("recorded %d attempts and %d in history, made %d", ob.Status.Attempts, len(ob.Status.History), attempts)
	}
}

func TestFault16_RetryAfterIsObeyedWithinReason(t *testing.T) {
	t.Parallel()
	for name, tc := range map[string]struct{ wish, want time.Duration }{
		"none": {0, 0}, "seven seconds": {7 * time.Second, 7 * time.Second}, "for ever": {math.MaxInt64, 10 * time.Minute},
		"the longest": {10 * time.Minute, 10 * time.Minute}, "negative": {-time.Hour, 0}, "most negative": {math.MinInt64, 0},
	} {
		if got := outbox.RetryAfter(defaults, tc.wish); got != tc.want {
			t.Errorf("%s: %s, want %s", name, got, tc.want)
		}
	}
}

func TestDeadlineLeavesOutWhatIsExcused(t *testing.T) {
	t.Parallel()
	ago := func(d time.Duration) *metav1.Time { return stampOf(noon.Add(-d)) }
	for name, tc := range map[string]struct {
		st     v1alpha1.NotificationOutboxStatus
		want   time.Time
		wantOK bool
	}{
		"nothing counts before the first attempt": {st: v1alpha1.NotificationOutboxStatus{ExcusedSeconds: 9, ExcusedSince: ago(time.Hour)}},
		"from the first attempt":                  {st: v1alpha1.NotificationOutboxStatus{RetryStartTime: ago(time.Hour)}, want: noon.Add(23 * time.Hour), wantOK: true},
		"without what was excused":                {st: v1alpha1.NotificationOutboxStatus{RetryStartTime: ago(2 * time.Hour), ExcusedSeconds: 1800}, want: noon.Add(22*time.Hour + 30*time.Minute), wantOK: true},
		"without what is being excused":           {st: v1alpha1.NotificationOutboxStatus{RetryStartTime: ago(2 * time.Hour), ExcusedSeconds: 60, ExcusedSince: ago(time.Hour)}, want: noon.Add(23*time.Hour + time.Minute), wantOK: true},
		"a clock behind takes nothing away":       {st: v1alpha1.NotificationOutboxStatus{RetryStartTime: ago(2 * time.Hour), ExcusedSince: ago(-time.Hour)}, want: noon.Add(22 * time.Hour), wantOK: true},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			got, ok := outbox.Deadline(&tc.st, defaults, noon)
			if ok != tc.wantOK || !got.Equal(tc.want) {
				t.Errorf("got %s, %t; want %s, %t", got, ok, tc.want, tc.wantOK)
			}
		})
	}
}

// I11: effectively once only at a provider that keeps keys, and only while it keeps
// this one, counted from the first attempt.
func TestI11_GuaranteeHoldsWithinTheWindow(t *testing.T) {
	t.Parallel()
	first := stampOf(noon)
	for name, tc := range map[string]struct {
		provider *v1alpha1.NotificationProvider
		first    *metav1.Time
		now      time.Time
		want     v1alpha1.Guarantee
	}{
		"no provider":                {nil, nil, noon, v1alpha1.GuaranteeAtLeastOnce},
		"no keys":                    {hook().Obj(), nil, noon, v1alpha1.GuaranteeAtLeastOnce},
		"keys, before any attempt":   {hook().Keyed(time.Hour).Obj(), nil, noon, v1alpha1.GuaranteeEffectivelyOnce},
		"within the window":          {hook().Keyed(time.Hour).Obj(), first, noon.Add(time.Hour - time.Nanosecond), v1alpha1.GuaranteeEffectivelyOnce},
		"when the window ends":       {hook().Keyed(time.Hour).Obj(), first, noon.Add(time.Hour), v1alpha1.GuaranteeAtLeastOnce},
		"long after":                 {hook().Keyed(time.Hour).Obj(), first, noon.Add(1000 * time.Hour), v1alpha1.GuaranteeAtLeastOnce},
		"no keys within some window": {hook().Obj(), first, noon, v1alpha1.GuaranteeAtLeastOnce},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			st := &v1alpha1.NotificationOutboxStatus{FirstAttemptTime: tc.first, RetryStartTime: stampOf(tc.now)}
			if got := outbox.GuaranteeNow(st, tc.provider, tc.now); got != tc.want {
				t.Errorf("%s, want %s", got, tc.want)
			}
		})
	}
	if got := outbox.ProviderGuarantee(hook().Keyed(time.Hour).Obj()); got != v1alpha1.GuaranteeEffectivelyOnce {
		t.Errorf("a provider that keeps keys gives %s", got)
	}
}

// I11: what is shown is refreshed when the window ends, and an outbox is woken then.
func TestI11_TheGuaranteeShownIsRefreshed(t *testing.T) {
	t.Parallel()
	provider := hook().Keyed(time.Hour).Obj()
	item, _, ob := pair(provider)
	ob.Status = v1alpha1.NotificationOutboxStatus{
		Phase: v1alpha1.OutboxPending, Attempts: 1, FirstAttemptTime: stampOf(noon), RetryStartTime: stampOf(noon),
		NextAttemptTime: stampOf(noon.Add(2 * time.Hour)), Guarantee: v1alpha1.GuaranteeEffectivelyOnce,
		LastAttempt: &v1alpha1.Attempt{Number: 1, Outcome: v1alpha1.OutcomeRejected, Reason: outcome.ReasonUnavailable},
	}
	d := outbox.Decide(outbox.Facts{Outbox: ob, Item: item, Provider: provider, Now: noon})
	if d.Action != outbox.Wait || !d.At.Equal(noon.Add(time.Hour)) {
		t.Errorf("got %+v, want to wait for the end of the window", d)
	}
	if _, changed := outbox.Refreshed(ob, provider, noon.Add(time.Minute)); changed {
		t.Error("refreshed within the window")
	}
	st, changed := outbox.Refreshed(ob, provider, d.At)
	if !changed || st.Guarantee != v1alpha1.GuaranteeAtLeastOnce {
		t.Errorf("changed %t, guarantee %s", changed, st.Guarantee)
	}
	if ob.Status.Guarantee != v1alpha1.GuaranteeEffectivelyOnce {
		t.Error("Refreshed changed the outbox")
	}
	ob.Status = st
	d = outbox.Decide(outbox.Facts{Outbox: ob, Item: item, Provider: provider, Now: d.At})
	if d.Action != outbox.Wait || !d.At.Equal(noon.Add(2*time.Hour)) {
		t.Errorf("got %+v, want to wait for the next attempt", d)
	}
	for name, change := range map[string]func(*v1alpha1.NotificationOutbox){
		"finished":  func(o *v1alpha1.NotificationOutbox) { o.Status.Phase = v1alpha1.OutboxSent },
		"not shown": func(o *v1alpha1.NotificationOutbox) { o.Status.Guarantee = "" },
	} {
		other := ob.DeepCopy()
		other.Status.Guarantee = v1alpha1.GuaranteeEffectivelyOnce
		change(other)
		if _, changed := outbox.Refreshed(other, provider, noon.Add(9*time.Hour)); changed {
			t.Errorf("%s: refreshed", name)
		}
	}
	if _, changed := outbox.Refreshed(ob, nil, noon); changed {
		t.Error("refreshed without a provider")
	}
}

// Once only the schedule is waited for, the time counts again, and what was excused
// until then stays excused.
func TestResumedCountsAgain(t *testing.T) {
	t.Parallel()
	_, _, ob := pair(hook().Obj())
	if _, changed := outbox.Resumed(ob, noon); changed {
		t.Error("resumed what was not excused")
	}
	ob.Status.ExcusedSince = stampOf(noon.Add(-time.Hour))
	if _, changed := outbox.Resumed(ob, noon); changed {
		t.Error("resumed before the first attempt: nothing counts yet")
	}
	ob.Status.RetryStartTime, ob.Status.ExcusedSeconds = stampOf(noon.Add(-2*time.Hour)), 60
	st, changed := outbox.Resumed(ob, noon)
	if !changed || st.ExcusedSince != nil || st.ExcusedSeconds != 3660 {
		t.Errorf("changed %t, excused %d s since %s", changed, st.ExcusedSeconds, st.ExcusedSince)
	}
	if ob.Status.ExcusedSince == nil {
		t.Error("Resumed changed the outbox")
	}
}

// I11: what is held shows an honest guarantee as well, for whoever decides on it.
func TestI11_HeldIsRefreshed(t *testing.T) {
	t.Parallel()
	provider := hook().Keyed(time.Hour).Obj()
	item, _, ob := pair(provider)
	ob.Status = v1alpha1.NotificationOutboxStatus{
		Phase: v1alpha1.OutboxHeld, FinishedTime: stampOf(noon), FirstAttemptTime: stampOf(noon), Attempts: 1, Guarantee: v1alpha1.GuaranteeEffectivelyOnce,
	}
	d := outbox.Decide(outbox.Facts{Outbox: ob, Item: item, Provider: provider, Now: noon})
	if d.Action != outbox.Wait || !d.At.Equal(noon.Add(time.Hour)) {
		t.Errorf("got %+v, want to wait for the end of the window", d)
	}
	st, changed := outbox.Refreshed(ob, provider, d.At)
	if !changed || st.Guarantee != v1alpha1.GuaranteeAtLeastOnce || st.Phase != v1alpha1.OutboxHeld {
		t.Errorf("changed %t: %+v", changed, st)
	}
}
