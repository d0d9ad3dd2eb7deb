// SPDX-FileCopyrightText: The WorkItem Operator Authors
// SPDX-License-Identifier: Apache-2.0

package outbox_test

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"
	"unicode/utf8"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
	"k8s.io/apimachinery/pkg/api/equality"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/workitem-operator/workitem-operator/api/v1alpha1"
	"github.com/workitem-operator/workitem-operator/internal/outbox"
	"github.com/workitem-operator/workitem-operator/internal/outcome"
)

// running is an outbox whose n-th attempt is begun by "a" at noon.
func running(provider *v1alpha1.NotificationProvider, n int) (*v1alpha1.NotificationOutbox, outbox.Started) {
	_, _, ob := pair(provider)
	var start outbox.Started
	for i := range n {
		if i > 0 {
			ob.Status = outbox.Settle(ob, provider, start, outcome.FromHTTPStatus(429), noon, noon)
		}
		ob.Status, start = outbox.Begin(ob, provider, nil, "a", noon)
	}
	return ob, start
}

func delivered(st v1alpha1.NotificationOutboxStatus) string {
	c := meta.FindStatusCondition(st.Conditions, v1alpha1.ConditionDelivered)
	if c == nil {
		return ""
	}
	return string(c.Status) + " " + c.Reason
}

func secondsUntil(t *metav1.Time) float64 {
	if t == nil {
		return 0
	}
	return t.Sub(noon).Seconds()
}

// What each answer does to the record.
func TestSettle(t *testing.T) {
	t.Parallel()
	claimEnds := noon.Add(time.Minute)
	with := func(status int, retryAfter time.Duration) outcome.Result {
		res := outcome.FromHTTPStatus(status)
		res.RetryAfter = retryAfter
		return res
	}
	type want struct {
		phase                v1alpha1.OutboxPhase
		delivered            string
		soonest, latest      float64 // of the next attempt, in seconds from noon
		sent, ended, excused bool
	}
	pending := v1alpha1.OutboxPending
	cases := map[string]struct {
		res  outcome.Result
		hold bool
		want want
	}{
		"2xx":                  {res: with(202, 0), want: want{phase: v1alpha1.OutboxSent, delivered: "True Sent", sent: true, ended: true}},
		"2xx under Hold":       {res: with(200, 0), hold: true, want: want{phase: v1alpha1.OutboxSent, delivered: "True Sent", sent: true, ended: true}},
		"400":                  {res: with(400, 0), want: want{phase: v1alpha1.OutboxDeadLettered, delivered: "False Refused", ended: true}},
		"302":                  {res: with(302, 0), want: want{phase: v1alpha1.OutboxDeadLettered, delivered: "False Redirected", ended: true}},
		"fault 49: 422":        {res: with(422, 0), want: want{phase: v1alpha1.OutboxDeadLettered, delivered: "False IdempotencyKeyConflict", ended: true}},
		"422 under Hold":       {res: with(422, 0), hold: true, want: want{phase: v1alpha1.OutboxDeadLettered, delivered: "False IdempotencyKeyConflict", ended: true}},
		"503":                  {res: with(503, 0), want: want{phase: pending, delivered: "False Unavailable", soonest: 1, latest: 2}},
		"429 with a wish":      {res: with(429, 7*time.Second), want: want{phase: pending, delivered: "False RateLimited", soonest: 7, latest: 7}},
		"429 with one too far": {res: with(429, outcome.MaxRetryAfter), want: want{phase: pending, delivered: "False RateLimited", soonest: 600, latest: 600}},
		"429, negative":        {res: with(429, -time.Hour), want: want{phase: pending, delivered: "False RateLimited", soonest: 1, latest: 2}},
		"I12: 500 waits for the claim": {
			res: with(500, 0), want: want{phase: pending, delivered: "False ServerError", soonest: 60, latest: 60},
		},
		"500 with a wish": {
			res: with(502, time.Second), want: want{phase: pending, delivered: "False ServerError", soonest: 60, latest: 60},
		},
		"409 waits for the claim": {
			res: with(409, 0), want: want{phase: pending, delivered: "False RequestInProgress", soonest: 60, latest: 60},
		},
		"I12: 500 under Hold":     {res: with(500, 0), hold: true, want: want{phase: v1alpha1.OutboxHeld, delivered: "False AmbiguousOutcome", ended: true}},
		"I12: timeout under Hold": {res: outcome.Unanswered(outcome.ReasonTimeout, "late"), hold: true, want: want{phase: v1alpha1.OutboxHeld, delivered: "False AmbiguousOutcome", ended: true}},
		"503 under Hold":          {res: with(503, 0), hold: true, want: want{phase: pending, delivered: "False Unavailable", soonest: 1, latest: 2}},
		"never reached, under Hold": {
			res: outcome.NotSent(outcome.ReasonConnectionRefused, "no"), hold: true, want: want{phase: pending, delivered: "False ConnectionRefused", soonest: 1, latest: 2},
		},
		"401 parks":                        {res: with(401, 0), want: want{phase: pending, delivered: "False Unauthorized", soonest: 600, latest: 600, excused: true}},
		"403 parks":                        {res: with(403, 0), hold: true, want: want{phase: pending, delivered: "False Forbidden", soonest: 600, latest: 600, excused: true}},
		"404 parks":                        {res: with(404, 3*time.Second), want: want{phase: pending, delivered: "False EndpointNotFound", soonest: 600, latest: 600, excused: true}},
		"410 parks until the spec changes": {res: with(410, 0), want: want{phase: pending, delivered: "False EndpointGone", excused: true}},
	}
	for name, tc := range cases {
		for _, attempt := range []int{1, 2} {
			t.Run(name, func(t *testing.T) {
				t.Parallel()
				provider := hook().Obj()
				ob, start := running(provider, attempt)
				wanted := tc.want
				if attempt == 2 && wanted.latest == 2 {
					wanted.latest = 4 // The ceiling doubles.
				}
				if tc.hold {
					provider.Spec.OnAmbiguous = v1alpha1.AmbiguousHold
				}
				before := ob.DeepCopy()
				st := outbox.Settle(ob, provider, start, tc.res, noon, claimEnds)
				if diff := cmp.Diff(before, ob); diff != "" {
					t.Errorf("Settle changed the outbox:\n%s", diff)
				}
				got := want{
					phase: st.Phase, delivered: delivered(st), soonest: wanted.soonest, latest: wanted.latest,
					sent: st.SentTime != nil, ended: st.FinishedTime != nil, excused: st.ExcusedSince != nil,
				}
				if diff := cmp.Diff(wanted, got, cmp.AllowUnexported(want{})); diff != "" {
					t.Errorf("status (-want +got):\n%s", diff)
				}
				if next := secondsUntil(st.NextAttemptTime); next < wanted.soonest || next > wanted.latest {
					t.Errorf("next attempt after %g s, want %g to %g", next, wanted.soonest, wanted.latest)
				}
				if st.Attempts != int32(attempt) || st.LastAttempt.Number != int32(attempt) || len(st.History) != attempt {
					t.Errorf("%d attempts, last is %d, %d in history", st.Attempts, st.LastAttempt.Number, len(st.History))
				}
				last := *st.LastAttempt
				if last.Holder != "a" || string(last.Outcome) != string(tc.res.Class) || last.Reason != tc.res.Reason || int(last.HTTPStatus) != tc.res.HTTPStatus || last.FinishTime == nil {
					t.Errorf("last attempt %+v", last)
				}
			})
		}
	}
}

// Fault 36: a provider that asks for less than the schedule gets the schedule: no two
// attempts are closer than the first backoff, and the pause still grows.
func TestFault36_RetryAfterDoesNotShortenTheBackoff(t *testing.T) {
	t.Parallel()
	provider := hook().Retry(24*time.Hour, 30*time.Second, 10*time.Minute).Obj()
	ob, start := running(provider, 1)
	res := outcome.FromHTTPStatus(503)
	res.RetryAfter = time.Second
	st := outbox.Settle(ob, provider, start, res, noon, noon.Add(time.Minute))
	if next := secondsUntil(st.NextAttemptTime); next < 30 {
		t.Errorf("the next attempt is after %g s with an initialBackoff of 30 s and Retry-After: 1", next)
	}
}

// I12: whatever the backoff, the next attempt after an ambiguous one is not before
// the claim runs out, rounded up to what the API keeps.
func TestI12_AmbiguousWaitsForTheClaim(t *testing.T) {
	t.Parallel()
	provider := hook().Obj()
	for _, ends := range []time.Duration{-time.Hour, 0, time.Nanosecond, 1500 * time.Millisecond, time.Minute + time.Millisecond, time.Hour} {
		ob, start := running(provider, 1)
		st := outbox.Settle(ob, provider, start, outcome.Unanswered(outcome.ReasonTimeout, "late"), noon, noon.Add(ends))
		if st.NextAttemptTime.Time.Before(noon.Add(ends)) || st.NextAttemptTime.Time.Before(noon.Add(time.Second)) {
			t.Errorf("next attempt at %s, the claim ends %s after noon", st.NextAttemptTime, ends)
		}
		if st.NextAttemptTime.Nanosecond() != 0 {
			t.Errorf("the API keeps whole seconds, not %s", st.NextAttemptTime.Format(time.RFC3339Nano))
		}
	}
}

// Texts are clipped to what admission lets through, and stay UTF-8; a status that is
// no HTTP status is left out.
func TestSettleStaysWithinAdmission(t *testing.T) {
	t.Parallel()
	provider := hook().Obj()
	for _, words := range []string{strings.Repeat("€", 5000), strings.Repeat("x", 5000), ""} {
		for _, status := range []int{-1, 0, 7, 99, 1000, 1 << 40} {
			ob, start := running(provider, 1)
			res := outcome.Result{Class: outcome.Ambiguous, Follow: outcome.FollowRetry, Reason: "R" + strings.Repeat("r", 300), Message: words, HTTPStatus: status}
			st := outbox.Settle(ob, provider, start, res, noon, noon)
			last := st.LastAttempt
			if len(last.Reason) > 128 || utf8.RuneCountInString(last.Message) > 2048 || !utf8.ValidString(last.Message) || last.HTTPStatus != 0 {
				t.Errorf("reason of %d bytes, message of %d runes, status %d", len(last.Reason), utf8.RuneCountInString(last.Message), last.HTTPStatus)
			}
			if c := st.Conditions[0]; len(c.Message) > 32768 || !utf8.ValidString(c.Message) {
				t.Errorf("condition message of %d bytes", len(c.Message))
			}
		}
	}
}

func TestHistoryKeepsTheLastTen(t *testing.T) {
	t.Parallel()
	provider := hook().Obj()
	ob, start := running(provider, 25)
	st := outbox.Settle(ob, provider, start, outcome.FromHTTPStatus(204), noon, noon)
	var numbers []int32
	for _, a := range st.History {
		numbers = append(numbers, a.Number)
	}
	if want := []int32{16, 17, 18, 19, 20, 21, 22, 23, 24, 25}; !slices.Equal(numbers, want) {
		t.Errorf("history %v, want %v", numbers, want)
	}
	if st.FirstAttemptTime == nil || !st.FirstAttemptTime.Time.Equal(noon) {
		t.Errorf("first attempt at %s", st.FirstAttemptTime)
	}
}

// I8: an attempt is counted before its call, and the first by its Lease.
func TestI8_BeginCountsBeforeTheCall(t *testing.T) {
	t.Parallel()
	provider := hook().Keyed(time.Hour).Obj()
	_, _, fresh := pair(provider)
	since := noon.Add(-2 * time.Minute)
	cases := map[string]struct {
		before  func(*v1alpha1.NotificationOutboxStatus)
		lost    *outbox.Lost
		number  int32
		history []string
		first   time.Time
	}{
		"nothing was there": {number: 1, first: noon},
		"a Lease was the only record of the first": {
			lost: &outbox.Lost{Holder: "b", Since: stampOf(since)}, number: 2, history: []string{"1 b Ambiguous HolderLost"}, first: since,
		},
		"the first was recorded as begun": {
			before: func(st *v1alpha1.NotificationOutboxStatus) {
				st.Attempts, st.FirstAttemptTime, st.RetryStartTime = 1, stampOf(since), stampOf(since)
				st.LastAttempt = &v1alpha1.Attempt{Number: 1, Holder: "b"}
			},
			lost: &outbox.Lost{Holder: "b", Since: stampOf(noon)}, number: 2, history: []string{"1 b Ambiguous HolderLost"}, first: since,
		},
		"the last has an outcome": {
			before: func(st *v1alpha1.NotificationOutboxStatus) {
				st.Attempts, st.FirstAttemptTime, st.RetryStartTime = 4, stampOf(since), stampOf(since)
				st.LastAttempt = &v1alpha1.Attempt{Number: 4, Holder: "b", Outcome: v1alpha1.OutcomeRejected}
			},
			lost: &outbox.Lost{Holder: "b", Since: stampOf(noon)}, number: 5, first: since,
		},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			ob := fresh.DeepCopy()
			if tc.before != nil {
				tc.before(&ob.Status)
			}
			st, start := outbox.Begin(ob, provider, tc.lost, "me", noon)
			if start != (outbox.Started{Number: tc.number, Holder: "me", At: noon}) || st.Attempts != tc.number {
				t.Errorf("started %+v, %d attempts, want number %d", start, st.Attempts, tc.number)
			}
			var history []string
			for _, a := range st.History {
				history = append(history, strings.Join([]string{fmt.Sprint(a.Number), a.Holder, string(a.Outcome), a.Reason}, " "))
			}
			if diff := cmp.Diff(tc.history, history, cmpopts.EquateEmpty()); diff != "" {
				t.Errorf("history (-want +got):\n%s", diff)
			}
			if st.LastAttempt.Outcome != "" || st.LastAttempt.Holder != "me" || st.NextAttemptTime != nil {
				t.Errorf("last attempt %+v, next %s", st.LastAttempt, st.NextAttemptTime)
			}
			if !st.FirstAttemptTime.Time.Equal(tc.first) || st.Guarantee != v1alpha1.GuaranteeEffectivelyOnce || delivered(st) != "False AttemptRunning" {
				t.Errorf("first attempt %s, guarantee %s, %s", st.FirstAttemptTime, st.Guarantee, delivered(st))
			}
		})
	}
}

// The time that was excused before the first attempt is not excused afterwards: the
// deadline counts from the first attempt, also when only the Lease tells of it.
func TestExcusedBeforeTheFirstAttemptIsNotExcusedAfter(t *testing.T) {
	t.Parallel()
	provider := hook().Obj()
	suspended := outbox.Decision{Action: outbox.HoldUp, Reason: v1alpha1.ReasonProviderSuspended, Message: "suspended"}
	long := noon.Add(-30 * 24 * time.Hour)
	claimed := noon.Add(-time.Minute)
	lost := &outbox.Lost{Holder: "b", Since: stampOf(claimed)}
	limit := claimed.Add(24 * time.Hour)
	for name, begin := range map[string]func(*v1alpha1.NotificationOutbox) v1alpha1.NotificationOutboxStatus{
		"when it is put down as lost": func(ob *v1alpha1.NotificationOutbox) v1alpha1.NotificationOutboxStatus {
			return outbox.Abandoned(ob, lost)
		},
		"when the next is begun": func(ob *v1alpha1.NotificationOutbox) v1alpha1.NotificationOutboxStatus {
			st, _ := outbox.Begin(ob, provider, lost, "me", noon)
			return st
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			_, _, ob := pair(provider)
			ob.Status = outbox.Waiting(ob, provider, suspended, long)
			st := begin(ob)
			at, ok := outbox.Deadline(&st, provider.Spec.Retry, noon)
			if !ok || at.After(limit) {
				t.Errorf("the deadline is at %s, want %s: a day after the first attempt", at, limit)
			}
		})
	}
	// The same without a crash, to show what is right.
	_, _, ob := pair(provider)
	ob.Status = outbox.Waiting(ob, provider, suspended, long)
	st := outbox.Settle(ob, provider, outbox.Started{Number: 1, Holder: "b", At: claimed}, outcome.FromHTTPStatus(503), claimed, claimed)
	if at, ok := outbox.Deadline(&st, provider.Spec.Retry, noon); !ok || !at.Equal(limit) {
		t.Errorf("without a crash the deadline is at %s, want %s", at, limit)
	}
}

// Time without a Secret or parked is added up once, and only while it lasts.
func TestExcusedTimeAddsUp(t *testing.T) {
	t.Parallel()
	provider := hook().Obj()
	ob, start := running(provider, 1)
	at := func(d time.Duration) time.Time { return noon.Add(d) }
	ob.Status = outbox.Settle(ob, provider, start, outcome.FromHTTPStatus(401), at(time.Minute), at(time.Minute))
	ob.Status, start = outbox.Begin(ob, provider, nil, "a", at(11*time.Minute))
	if ob.Status.ExcusedSeconds != 600 || ob.Status.ExcusedSince != nil {
		t.Errorf("excused %d s since %s, want 600", ob.Status.ExcusedSeconds, ob.Status.ExcusedSince)
	}
	ob.Status = outbox.Settle(ob, provider, start, outcome.FromHTTPStatus(503), at(12*time.Minute), at(12*time.Minute))
	ob.Status = outbox.Waiting(ob, nil, outbox.Decision{Reason: v1alpha1.ReasonProviderNotFound, Message: "gone"}, at(20*time.Minute))
	ob.Status = outbox.Waiting(ob, provider, outbox.Decision{Reason: v1alpha1.ReasonProviderSuspended, Message: "suspended"}, at(25*time.Minute))
	ob.Status, _ = outbox.Begin(ob, provider, nil, "a", at(30*time.Minute))
	if ob.Status.ExcusedSeconds != 1200 {
		t.Errorf("excused %d s, want 1200", ob.Status.ExcusedSeconds)
	}
}

// I10: what holds an outbox up is recorded once.
func TestI10_WaitingIsRecordedOnce(t *testing.T) {
	t.Parallel()
	provider := hook().Keyed(time.Hour).Obj()
	for reason, wantExcused := range map[string]bool{
		v1alpha1.ReasonProviderSuspended: true, v1alpha1.ReasonProviderNotFound: true, v1alpha1.ReasonSecretNotFound: true,
		v1alpha1.ReasonProviderNotReady: true, v1alpha1.ReasonFormatMismatch: true,
		v1alpha1.ReasonClaimRefused: false, v1alpha1.ReasonNotRequested: false,
	} {
		_, _, ob := pair(provider)
		d := outbox.Decision{Action: outbox.HoldUp, Reason: reason, Message: "words"}
		ob.Status = outbox.Waiting(ob, provider, d, noon)
		if again := outbox.Waiting(ob, provider, d, noon.Add(time.Minute)); !equality.Semantic.DeepEqual(again, ob.Status) {
			t.Errorf("%s is recorded twice:\n%s", reason, cmp.Diff(ob.Status, again))
		}
		if got := ob.Status.ExcusedSince != nil; got != wantExcused {
			t.Errorf("%s excuses: %t, want %t", reason, got, wantExcused)
		}
		if delivered(ob.Status) != "False "+reason || ob.Status.Attempts != 0 {
			t.Errorf("%s after %d attempts", delivered(ob.Status), ob.Status.Attempts)
		}
		if got := ob.Status.Phase; (got == "") != (reason == v1alpha1.ReasonNotRequested) {
			t.Errorf("%s: phase %q", reason, got)
		}
	}
}

// I9: every way to end without a call says why, and what a lost holder left counts.
func TestI9_EndedSaysWhy(t *testing.T) {
	t.Parallel()
	provider := hook().Obj()
	for reason, phase := range map[string]v1alpha1.OutboxPhase{
		v1alpha1.ReasonDeadlineExceeded: v1alpha1.OutboxDeadLettered, v1alpha1.ReasonAmbiguousOutcome: v1alpha1.OutboxHeld,
		v1alpha1.ReasonWorkItemCompleted: v1alpha1.OutboxSuperseded, v1alpha1.ReasonWorkItemCancelled: v1alpha1.OutboxSuperseded,
		v1alpha1.ReasonWorkItemGone: v1alpha1.OutboxSuperseded, v1alpha1.ReasonOvertaken: v1alpha1.OutboxSuperseded,
	} {
		ob, _ := running(provider, 2)
		since := noon
		ob.Status.ExcusedSince = stampOf(since)
		st := outbox.Ended(ob, nil, outbox.Decision{Phase: phase, Reason: reason}, noon.Add(time.Second))
		if st.Phase != phase || delivered(st) != "False "+reason || st.Conditions[0].Message == "" || st.FinishedTime == nil || st.NextAttemptTime != nil || st.ExcusedSince != nil {
			t.Errorf("%s: %+v", reason, st)
		}
		if st.LastAttempt.Outcome != v1alpha1.OutcomeAmbiguous || st.Attempts != 2 {
			t.Errorf("%s: the attempt that was running is %+v", reason, st.LastAttempt)
		}
	}
	_, _, ob := pair(provider)
	st := outbox.Ended(ob, &outbox.Lost{Holder: strings.Repeat("h", 300)}, outbox.Decision{Phase: v1alpha1.OutboxSuperseded, Reason: v1alpha1.ReasonOvertaken}, noon)
	if st.Attempts != 1 || len(st.LastAttempt.Holder) > 253 {
		t.Errorf("%d attempts by a holder of %d bytes", st.Attempts, len(st.LastAttempt.Holder))
	}
}

// I6: whose outcome may still be recorded.
func TestI6_Standing(t *testing.T) {
	t.Parallel()
	first := outbox.Started{Number: 1, Holder: "a", At: noon}
	second := outbox.Started{Number: 2, Holder: "a", At: noon}
	attempt := func(n int32, holder string, o v1alpha1.AttemptOutcome, reason string) v1alpha1.NotificationOutboxStatus {
		return v1alpha1.NotificationOutboxStatus{Phase: v1alpha1.OutboxPending, Attempts: n, LastAttempt: &v1alpha1.Attempt{Number: n, Holder: holder, Outcome: o, Reason: reason}}
	}
	ended := func(st v1alpha1.NotificationOutboxStatus, phase v1alpha1.OutboxPhase) v1alpha1.NotificationOutboxStatus {
		st.Phase = phase
		return st
	}
	cases := map[string]struct {
		status v1alpha1.NotificationOutboxStatus
		start  outbox.Started
		want   outbox.Position
	}{
		"the first leaves no trace":                {v1alpha1.NotificationOutboxStatus{}, first, outbox.StillRunning},
		"the first, while something held it up":    {v1alpha1.NotificationOutboxStatus{Phase: v1alpha1.OutboxPending}, first, outbox.StillRunning},
		"a later one that is begun":                {attempt(2, "a", "", ""), second, outbox.StillRunning},
		"its own outcome is recorded":              {attempt(2, "a", v1alpha1.OutcomeRejected, "x"), second, outbox.AlreadySettled},
		"its own success is recorded":              {ended(attempt(1, "a", v1alpha1.OutcomeAccepted, "x"), v1alpha1.OutboxSent), first, outbox.AlreadySettled},
		"fault 25: another has begun the next":     {attempt(2, "b", "", ""), first, outbox.TooLate},
		"fault 25: another has settled the next":   {attempt(2, "b", v1alpha1.OutcomeAccepted, "x"), first, outbox.TooLate},
		"fault 26: the same number, another":       {attempt(2, "a2", "", ""), second, outbox.TooLate},
		"put down as lost":                         {attempt(2, "a", v1alpha1.OutcomeAmbiguous, v1alpha1.ReasonHolderLost), second, outbox.TooLate},
		"put down as lost and held":                {ended(attempt(1, "a", v1alpha1.OutcomeAmbiguous, v1alpha1.ReasonHolderLost), v1alpha1.OutboxHeld), first, outbox.TooLate},
		"ended before the first was recorded":      {v1alpha1.NotificationOutboxStatus{Phase: v1alpha1.OutboxSuperseded}, first, outbox.TooLate},
		"ended while a later one ran":              {ended(attempt(2, "a", "", ""), v1alpha1.OutboxSuperseded), second, outbox.TooLate},
		"a later one of which there is no trace":   {v1alpha1.NotificationOutboxStatus{}, second, outbox.TooLate},
		"the first, although attempts are counted": {attempt(1, "b", "", ""), first, outbox.TooLate},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			if got := outbox.Standing(&v1alpha1.NotificationOutbox{Status: tc.status}, tc.start); got != tc.want {
				t.Errorf("position %d, want %d", got, tc.want)
			}
		})
	}
}
