// SPDX-FileCopyrightText: The WorkItem Operator Authors
// SPDX-License-Identifier: Apache-2.0

package outbox

import (
	"hash/fnv"
	"strconv"
	"time"

	"github.com/workitem-operator/workitem-operator/api/v1alpha1"
)

// Backoff is the pause after the n-th attempt, counted from 1: exponential with
// full jitter above the initial backoff, so that no two attempts are closer than
// that and none of a thousand failures at the same instant come back together.
// The jitter is derived from the key, which keeps this a pure function.
func Backoff(policy v1alpha1.RetryPolicy, key string, attempt int32) time.Duration {
	low, high := policy.InitialBackoff.Duration, policy.MaxBackoff.Duration
	ceiling := low
	for range min(attempt, 62) {
		if ceiling >= high/2 {
			ceiling = high
			break
		}
		ceiling *= 2
	}
	span := min(ceiling, high) - low
	if span <= 0 {
		return min(low, high)
	}
	return low + time.Duration(fraction(key, attempt)*float64(span))
}

// fraction is a number in [0, 1) that looks random and is always the same.
func fraction(key string, attempt int32) float64 {
	h := fnv.New64a()
	_, _ = h.Write([]byte(key + "#" + strconv.Itoa(int(attempt))))
	x := h.Sum64()
	// FNV spreads the last bytes badly into the high bits: mix them (splitmix64).
	x ^= x >> 30
	x *= 0xbf58476d1ce4e5b9
	x ^= x >> 27
	x *= 0x94d049bb133111eb
	x ^= x >> 31
	return float64(x>>11) / (1 << 53)
}

// RetryAfter is a provider's wish to be left alone, within what the policy allows.
func RetryAfter(policy v1alpha1.RetryPolicy, wish time.Duration) time.Duration {
	return min(max(wish, 0), policy.MaxBackoff.Duration)
}

// maxExcused is the most seconds that are excused: a hundred years, which a
// time.Duration still holds.
const maxExcused = 100 * 365 * 24 * 3600

// Deadline is when the retries of an outbox end; ok is false before the first
// attempt, because nothing counts until then. Time excused does not count.
func Deadline(st *v1alpha1.NotificationOutboxStatus, policy v1alpha1.RetryPolicy, now time.Time) (at time.Time, ok bool) {
	if st.RetryStartTime == nil {
		return time.Time{}, false
	}
	excused := time.Duration(min(max(st.ExcusedSeconds, 0), maxExcused)) * time.Second
	if st.ExcusedSince != nil {
		excused += max(now.Sub(st.ExcusedSince.Time), 0)
	}
	return st.RetryStartTime.Add(policy.Deadline.Duration + excused), true
}

// GuaranteeNow is what can honestly be said of an outbox now (I11): effectively
// once only for a provider that keeps keys, and only while it still keeps this
// one, counted from the first attempt.
func GuaranteeNow(st *v1alpha1.NotificationOutboxStatus, provider *v1alpha1.NotificationProvider, now time.Time) v1alpha1.Guarantee {
	if provider == nil || provider.Spec.Idempotency.Mode != v1alpha1.IdempotencyKeyed {
		return v1alpha1.GuaranteeAtLeastOnce
	}
	if end, ok := windowEnd(st, provider); ok && !now.Before(end) {
		return v1alpha1.GuaranteeAtLeastOnce
	}
	return v1alpha1.GuaranteeEffectivelyOnce
}

// windowEnd is when the provider forgets the key of an outbox.
func windowEnd(st *v1alpha1.NotificationOutboxStatus, provider *v1alpha1.NotificationProvider) (time.Time, bool) {
	if st.FirstAttemptTime == nil || provider.Spec.Idempotency.Mode != v1alpha1.IdempotencyKeyed {
		return time.Time{}, false
	}
	return st.FirstAttemptTime.Add(provider.Spec.Idempotency.Window.Duration), true
}

// SoonerWindowEnd is the time at, or the end of the provider's window for the key
// where that comes first: what an outbox says of its guarantee changes then. A zero
// time is never.
func SoonerWindowEnd(st *v1alpha1.NotificationOutboxStatus, provider *v1alpha1.NotificationProvider, at, now time.Time) time.Time {
	if provider == nil {
		return at
	}
	if end, has := windowEnd(st, provider); has && now.Before(end) && (at.IsZero() || end.Before(at)) {
		return end
	}
	return at
}

// ProviderGuarantee is what a first attempt at a provider gets.
func ProviderGuarantee(provider *v1alpha1.NotificationProvider) v1alpha1.Guarantee {
	return GuaranteeNow(&v1alpha1.NotificationOutboxStatus{}, provider, time.Time{})
}
