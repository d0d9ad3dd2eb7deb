// SPDX-FileCopyrightText: The WorkItem Operator Authors
// SPDX-License-Identifier: Apache-2.0

package outbox_test

import (
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/workitem-operator/workitem-operator/api/v1alpha1"
	"github.com/workitem-operator/workitem-operator/internal/outbox"
	"github.com/workitem-operator/workitem-operator/internal/outcome"
	"github.com/workitem-operator/workitem-operator/test/wrappers"
)

// scene is everything that a decision depends on, before it is changed.
type scene struct {
	item     *v1alpha1.WorkItem
	outbox   *wrappers.Outbox
	provider *v1alpha1.NotificationProvider
	facts    outbox.Facts
}

func newScene() *scene {
	provider := hook().Obj()
	item, _, ob := pair(provider)
	return &scene{item: item, outbox: wrappers.OutboxFrom(ob), provider: provider, facts: outbox.Facts{Now: noon}}
}

func (s *scene) decide() outbox.Decision {
	s.facts.Outbox, s.facts.Item, s.facts.Provider = s.outbox.Obj(), s.item, s.provider
	return outbox.Decide(s.facts)
}

func parkedPause(reason string, until *metav1.Time) *v1alpha1.ProviderPause {
	return &v1alpha1.ProviderPause{Reason: reason, Until: until, Generation: 1}
}

// The order is the policy: each case has what the cases after it are about as well,
// where that makes sense.
func TestDecide(t *testing.T) {
	t.Parallel()
	in := func(d time.Duration) time.Time { return noon.Add(d) }
	end := func(phase v1alpha1.OutboxPhase, reason string) outbox.Decision {
		return outbox.Decision{Action: outbox.End, Phase: phase, Reason: reason}
	}
	held := func(reason string) outbox.Decision { return outbox.Decision{Action: outbox.HoldUp, Reason: reason} }
	superseded := func(reason string) outbox.Decision { return end(v1alpha1.OutboxSuperseded, reason) }
	retried := func(s *scene, reason string, next time.Time) {
		s.outbox.Attempts(3, in(-time.Hour)).LastAttempt("a", v1alpha1.OutcomeRejected, reason).NextAttempt(next).Phase(v1alpha1.OutboxPending)
	}
	cases := map[string]struct {
		change func(*scene)
		want   outbox.Decision
	}{
		"a new outbox is sent": {func(*scene) {}, outbox.Decision{Action: outbox.Attempt}},
		"an outbox that goes is left alone": {
			func(s *scene) { s.outbox.Deleting(noon).Decision("Replay", "why", "") }, outbox.Decision{Action: outbox.Nothing},
		},
		"a person's decision comes before all else": {
			func(s *scene) {
				s.outbox.Decision("Abandon", "why", "me").Finished(v1alpha1.OutboxHeld, noon)
				s.item = nil
			},
			outbox.Decision{Action: outbox.Resolve},
		},

		"I5: Sent is never sent": {func(s *scene) {
			s.outbox.Finished(v1alpha1.OutboxSent, noon)
			s.item.Status.Notifications[0].Phase = v1alpha1.NotificationSent
		}, outbox.Decision{Action: outbox.Wait, At: in(time.Hour)}},
		"an end that is not reported keeps the outbox": {
			func(s *scene) { s.outbox.Finished(v1alpha1.OutboxSent, in(-10000*time.Hour)) }, outbox.Decision{Action: outbox.Nothing},
		},
		"what is held is kept for ever": {
			func(s *scene) { s.outbox.Finished(v1alpha1.OutboxHeld, in(-10000*time.Hour)); s.item = nil },
			// A change of its provider does not wake it, and may change what it guarantees.
			outbox.Decision{Action: outbox.Wait, At: in(time.Hour)},
		},
		"an end without a time is kept": {
			func(s *scene) { s.outbox.Phase(v1alpha1.OutboxSent); s.item = nil }, outbox.Decision{Action: outbox.Nothing},
		},
		"the API server is asked before anything is collected": {func(s *scene) {
			s.outbox.Finished(v1alpha1.OutboxSent, in(-168*time.Hour))
			s.item.Status.Notifications = nil
		}, outbox.Decision{Action: outbox.Confirm}},
		"an end that is reported is collected when its time is up": {func(s *scene) {
			s.outbox.Finished(v1alpha1.OutboxDeadLettered, in(-168*time.Hour))
			s.item.Status.Notifications[0].Phase = v1alpha1.NotificationDeadLettered
			s.facts.Confirmed = true
		}, outbox.Decision{Action: outbox.Collect, At: noon}},
		"without its item an outbox is collected when its time is up": {func(s *scene) {
			s.outbox.Finished(v1alpha1.OutboxSent, in(-169*time.Hour))
			s.item, s.facts.Confirmed = nil, true
		}, outbox.Decision{Action: outbox.Collect, At: in(-time.Hour)}},
		"a time to live below the floor counts as the floor": {func(s *scene) {
			s.outbox.Finished(v1alpha1.OutboxSent, in(-time.Minute))
			s.provider = hook().TTL(time.Second).Obj()
			s.item = nil
		}, outbox.Decision{Action: outbox.Wait, At: in(9 * time.Minute)}},
		"without its provider an outbox is kept a week": {func(s *scene) {
			s.outbox.Finished(v1alpha1.OutboxSent, noon)
			s.item, s.provider = nil, nil
		}, outbox.Decision{Action: outbox.Wait, At: in(time.Hour)}},

		"I2: an object that contradicts itself is never sent": {
			func(s *scene) {
				ob := s.outbox.Obj()
				ob.Spec.PayloadDigest = outbox.Digest("other")
				s.outbox = wrappers.OutboxFrom(ob)
			}, held(v1alpha1.ReasonNotRequested),
		},
		"I2: an outbox whose item is not in the cache is not judged by the cache": {
			func(s *scene) { s.item = nil }, outbox.Decision{Action: outbox.Confirm},
		},
		"an outbox whose item is gone ends": {
			func(s *scene) { s.item, s.facts.Confirmed = nil, true }, superseded(v1alpha1.ReasonWorkItemGone),
		},
		"I2: an outbox without an intent in the cache is not sent": {
			func(s *scene) { s.item.Status.Notifications = nil }, outbox.Decision{Action: outbox.Confirm},
		},
		"I2: an outbox without an intent is never sent, and says so": {
			func(s *scene) { s.item.Status.Notifications, s.facts.Confirmed = nil, true }, held(v1alpha1.ReasonNotRequested),
		},
		"I2: an intent with another key does not vouch": {
			func(s *scene) { s.item.Status.Notifications[0].IdempotencyKey, s.facts.Confirmed = "other", true }, held(v1alpha1.ReasonNotRequested),
		},
		"once attempted, an outbox needs no intent": {
			func(s *scene) {
				s.item.Status.Notifications = nil
				retried(s, outcome.ReasonUnavailable, in(time.Minute))
			}, outbox.Decision{Action: outbox.Wait, At: in(time.Minute), Counting: true},
		},

		"an outbox whose item goes ends": {
			func(s *scene) { s.item = wrappersDeleting(s.item) }, superseded(v1alpha1.ReasonWorkItemGone),
		},
		"completed before the first attempt": {
			func(s *scene) { s.item.Spec.State, s.provider = v1alpha1.StateCompleted, nil }, superseded(v1alpha1.ReasonWorkItemCompleted),
		},
		"completed after a failed attempt": {
			func(s *scene) {
				s.item.Spec.State = v1alpha1.StateCompleted
				retried(s, outcome.ReasonUnavailable, in(time.Minute))
			}, superseded(v1alpha1.ReasonWorkItemCompleted),
		},
		"cancelled": {
			func(s *scene) { s.item.Spec.State = v1alpha1.StateCancelled }, superseded(v1alpha1.ReasonWorkItemCancelled),
		},
		"withdrawn, and active again": {
			func(s *scene) { s.item.Status.Notifications[0].Reason = v1alpha1.ReasonWorkItemCompleted }, superseded(v1alpha1.ReasonWorkItemCompleted),
		},
		"withdrawn, and replayed since": {
			func(s *scene) {
				s.item.Status.Notifications[0].Reason = v1alpha1.ReasonWorkItemCompleted
				ob := s.outbox.Obj()
				ob.Status.Decision = &v1alpha1.Decision{Action: v1alpha1.DecisionReplay}
				s.outbox = wrappers.OutboxFrom(ob)
			}, outbox.Decision{Action: outbox.Attempt},
		},
		"7 occurrences later it is still sent": {
			func(s *scene) { s.item.Status.Occurrence = 9 }, outbox.Decision{Action: outbox.Attempt},
		},
		"8 occurrences later nobody cares": {
			func(s *scene) { s.item.Status.Occurrence, s.provider = 10, nil }, superseded(v1alpha1.ReasonOvertaken),
		},

		"without a provider": {func(s *scene) { s.provider = nil }, held(v1alpha1.ReasonProviderNotFound)},
		"with a suspended provider": {
			func(s *scene) { s.provider = hook().Suspend().Obj() }, held(v1alpha1.ReasonProviderSuspended),
		},
		"suspended time is no time towards the deadline": {
			func(s *scene) {
				s.provider = hook().Suspend().Obj()
				s.outbox.Attempts(1, in(-1000*time.Hour))
			}, held(v1alpha1.ReasonProviderSuspended),
		},
		"with a provider of another type": {
			func(s *scene) { s.provider = hook().Type("Slack").Obj() }, held(v1alpha1.ReasonFormatMismatch),
		},
		"with a provider that lacks its Secret": {
			func(s *scene) {
				s.provider = hook().Ready(metav1.ConditionFalse, v1alpha1.ReasonSecretNotFound, "waiting").Obj()
			}, held(v1alpha1.ReasonSecretNotFound),
		},
		"a condition of an older generation says nothing": {
			func(s *scene) {
				s.provider = hook().Ready(metav1.ConditionFalse, v1alpha1.ReasonSecretNotFound, "waiting").Generation(2).Obj()
			}, outbox.Decision{Action: outbox.Attempt},
		},
		"not Ready for another reason is the pause's business": {
			func(s *scene) {
				s.provider = hook().Ready(metav1.ConditionFalse, outcome.ReasonUnauthorized, "401").Obj()
			}, outbox.Decision{Action: outbox.Attempt},
		},
		"with a provider that others have found parked": {
			func(s *scene) { s.facts.Pause = parkedPause(outcome.ReasonUnauthorized, stampOf(in(time.Minute))) },
			outbox.Decision{Action: outbox.HoldUp, Reason: v1alpha1.ReasonProviderNotReady, At: in(time.Minute)},
		},
		"with a provider that this outbox has found parked": {
			func(s *scene) {
				s.facts.Pause = parkedPause(outcome.ReasonForbidden, stampOf(in(time.Minute)))
				retried(s, outcome.ReasonForbidden, in(10*time.Minute))
			}, outbox.Decision{Action: outbox.Wait, At: in(time.Minute)},
		},
		"with a provider whose endpoint is gone, time changes nothing": {
			func(s *scene) {
				s.facts.Pause = parkedPause(outcome.ReasonEndpointGone, nil)
				retried(s, outcome.ReasonEndpointGone, in(10*time.Minute))
			}, outbox.Decision{Action: outbox.Wait},
		},
		"parked is not too late": {
			func(s *scene) {
				s.facts.Pause = parkedPause(outcome.ReasonEndpointNotFound, stampOf(in(time.Minute)))
				s.outbox.Attempts(3, in(-1000*time.Hour)).LastAttempt("a", v1alpha1.OutcomeRejected, outcome.ReasonEndpointNotFound)
			}, outbox.Decision{Action: outbox.Wait, At: in(time.Minute)},
		},
		"a change of spec or Secret ends the wait at once": {
			func(s *scene) { retried(s, outcome.ReasonUnauthorized, in(10*time.Minute)) }, outbox.Decision{Action: outbox.Attempt},
		},

		"I12: an attempt of which nobody knows is held": {
			func(s *scene) {
				s.provider = hook().OnAmbiguous(v1alpha1.AmbiguousHold).Obj()
				s.outbox.Attempts(1, noon).LastAttempt("a", v1alpha1.OutcomeAmbiguous, v1alpha1.ReasonHolderLost)
			}, end(v1alpha1.OutboxHeld, v1alpha1.ReasonAmbiguousOutcome),
		},
		"I12: held comes before dead": {
			func(s *scene) {
				s.provider = hook().OnAmbiguous(v1alpha1.AmbiguousHold).Obj()
				s.outbox.Attempts(1, in(-1000*time.Hour)).LastAttempt("a", v1alpha1.OutcomeAmbiguous, v1alpha1.ReasonHolderLost)
			}, end(v1alpha1.OutboxHeld, v1alpha1.ReasonAmbiguousOutcome),
		},
		"I12: a replay is sent": {
			func(s *scene) {
				s.provider = hook().OnAmbiguous(v1alpha1.AmbiguousHold).Obj()
				s.outbox.Attempts(1, noon).LastAttempt("a", v1alpha1.OutcomeAmbiguous, outcome.ReasonTimeout).NextAttempt(noon).Phase(v1alpha1.OutboxPending)
			}, outbox.Decision{Action: outbox.Attempt},
		},
		"I12: with the policy Retry an attempt of which nobody knows is repeated": {
			func(s *scene) {
				s.outbox.Attempts(1, noon).LastAttempt("a", v1alpha1.OutcomeAmbiguous, v1alpha1.ReasonHolderLost)
			}, outbox.Decision{Action: outbox.Attempt},
		},
		"when the deadline passes": {
			func(s *scene) { s.outbox.Attempts(9, in(-24*time.Hour)) }, end(v1alpha1.OutboxDeadLettered, v1alpha1.ReasonDeadlineExceeded),
		},
		"a moment before the deadline passes": {
			func(s *scene) { s.outbox.Attempts(9, in(-24*time.Hour+time.Nanosecond)) }, outbox.Decision{Action: outbox.Attempt},
		},
		"what was excused moves the deadline": {
			func(s *scene) { s.outbox.Attempts(9, in(-24*time.Hour)).Excused(60, nil) }, outbox.Decision{Action: outbox.Attempt},
		},
		"an unattempted outbox has no deadline": {
			func(s *scene) {
				since := in(-1000 * time.Hour)
				s.outbox.Excused(5, &since)
			}, outbox.Decision{Action: outbox.Attempt},
		},

		"before the next attempt": {
			func(s *scene) { retried(s, outcome.ReasonUnavailable, in(time.Minute)) }, outbox.Decision{Action: outbox.Wait, At: in(time.Minute), Counting: true},
		},
		"at the next attempt": {
			func(s *scene) { retried(s, outcome.ReasonUnavailable, noon) }, outbox.Decision{Action: outbox.Attempt},
		},
		"fault 16: a pause of the provider holds for all": {
			func(s *scene) { s.facts.Pause = parkedPause(outcome.ReasonRateLimited, stampOf(in(7*time.Second))) },
			outbox.Decision{Action: outbox.Wait, At: in(7 * time.Second), Counting: true},
		},
		"the later of pause and next attempt": {
			func(s *scene) {
				s.facts.Pause = parkedPause(outcome.ReasonRateLimited, stampOf(in(7*time.Second)))
				retried(s, outcome.ReasonUnavailable, in(time.Minute))
			}, outbox.Decision{Action: outbox.Wait, At: in(time.Minute), Counting: true},
		},
		"not beyond the deadline": {
			func(s *scene) {
				retried(s, outcome.ReasonUnavailable, in(time.Hour))
				s.provider = hook().Retry(61*time.Minute, time.Second, time.Minute).Obj()
			}, outbox.Decision{Action: outbox.Wait, At: in(time.Minute), Counting: true},
		},
		"not beyond the window of the provider's keys": {
			func(s *scene) {
				retried(s, outcome.ReasonUnavailable, in(time.Hour))
				s.provider = hook().Keyed(90 * time.Minute).Obj()
			}, outbox.Decision{Action: outbox.Wait, At: in(30 * time.Minute), Counting: true},
		},
		"a window that has ended is waited for no more": {
			func(s *scene) {
				retried(s, outcome.ReasonUnavailable, in(time.Minute))
				s.provider = hook().Keyed(30 * time.Minute).Obj()
			}, outbox.Decision{Action: outbox.Wait, At: in(time.Minute), Counting: true},
		},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := newScene()
			tc.change(s)
			got := s.decide()
			if diff := cmp.Diff(tc.want, got, cmpopts.IgnoreFields(outbox.Decision{}, "Message")); diff != "" {
				t.Errorf("decision (-want +got):\n%s", diff)
			}
			if (got.Action == outbox.HoldUp) != (got.Message != "") {
				t.Errorf("%+v: a message goes with what is held up, and with nothing else", got)
			}
		})
	}
}

func wrappersDeleting(item *v1alpha1.WorkItem) *v1alpha1.WorkItem {
	out := item.DeepCopy()
	out.DeletionTimestamp = stampOf(noon)
	return out
}

// Finished is what nothing may be sent for.
func TestI5_Finished(t *testing.T) {
	t.Parallel()
	for phase, want := range map[v1alpha1.OutboxPhase]bool{
		"": false, v1alpha1.OutboxPending: false, v1alpha1.OutboxSent: true, v1alpha1.OutboxDeadLettered: true, v1alpha1.OutboxHeld: true, v1alpha1.OutboxSuperseded: true,
	} {
		if got := outbox.Finished(&v1alpha1.NotificationOutboxStatus{Phase: phase}); got != want {
			t.Errorf("%q: %t, want %t", phase, got, want)
		}
	}
}

func TestPauses(t *testing.T) {
	t.Parallel()
	provider := hook().Generation(3).Obj()
	at := func(d time.Duration) *metav1.Time { return stampOf(noon.Add(d)) }
	after := func(status int, retryAfter time.Duration) outcome.Result {
		res := outcome.FromHTTPStatus(status)
		res.RetryAfter = retryAfter
		return res
	}
	cases := map[string]struct {
		res  outcome.Result
		want *v1alpha1.ProviderPause
	}{
		"accepted":                         {after(204, time.Minute), nil},
		"401 parks until the longest":      {after(401, 0), &v1alpha1.ProviderPause{Reason: outcome.ReasonUnauthorized, Until: at(10 * time.Minute)}},
		"403":                              {after(403, 0), &v1alpha1.ProviderPause{Reason: outcome.ReasonForbidden, Until: at(10 * time.Minute)}},
		"404":                              {after(404, 0), &v1alpha1.ProviderPause{Reason: outcome.ReasonEndpointNotFound, Until: at(10 * time.Minute)}},
		"410 has no end":                   {after(410, time.Second), &v1alpha1.ProviderPause{Reason: outcome.ReasonEndpointGone}},
		"429 with a wish":                  {after(429, 7*time.Second), &v1alpha1.ProviderPause{Reason: outcome.ReasonRateLimited, Until: at(7 * time.Second)}},
		"429 without one":                  {after(429, 0), nil},
		"429 with a senseless one":         {after(429, -time.Second), nil},
		"429 with one for ever":            {after(429, outcome.MaxRetryAfter), &v1alpha1.ProviderPause{Reason: outcome.ReasonRateLimited, Until: at(10 * time.Minute)}},
		"503 with a wish below a second":   {after(503, time.Millisecond), &v1alpha1.ProviderPause{Reason: outcome.ReasonUnavailable, Until: at(time.Second)}},
		"an unclear answer pauses nobody":  {after(500, time.Minute), nil},
		"a refusal for good pauses nobody": {after(422, time.Minute), nil},
		"a lost connection pauses nobody":  {outcome.Unanswered(outcome.ReasonConnectionLost, "x"), nil},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			got := outbox.PauseAfter(tc.res, provider, "s@1", noon)
			if tc.want != nil {
				tc.want.Generation, tc.want.Since, tc.want.Secrets = 3, at(0), "s@1"
			}
			if diff := cmp.Diff(tc.want, got, cmpopts.IgnoreFields(v1alpha1.ProviderPause{}, "Message")); diff != "" {
				t.Errorf("pause (-want +got):\n%s", diff)
			}
		})
	}
	pause := &v1alpha1.ProviderPause{Generation: 3, Until: at(time.Second)}
	for name, tc := range map[string]struct {
		pause *v1alpha1.ProviderPause
		now   time.Time
		want  bool
	}{
		"none": {nil, noon, false}, "in force": {pause, noon, true}, "over": {pause, noon.Add(time.Second), false},
		"of another spec": {&v1alpha1.ProviderPause{Generation: 2}, noon, false}, "without end": {&v1alpha1.ProviderPause{Generation: 3}, noon.Add(1e6 * time.Hour), true},
	} {
		if got := outbox.PauseInForce(tc.pause, provider, tc.now); got != tc.want {
			t.Errorf("%s: in force %t, want %t", name, got, tc.want)
		}
	}
}

// Answers overtake each other: of two pauses the same one wins in either order.
func TestStrongerPause(t *testing.T) {
	t.Parallel()
	until := func(reason string, generation int64, d time.Duration) *v1alpha1.ProviderPause {
		p := &v1alpha1.ProviderPause{Reason: reason, Generation: generation}
		if d != 0 {
			p.Until = stampOf(noon.Add(d))
		}
		return p
	}
	for name, tc := range map[string]struct{ strong, weak *v1alpha1.ProviderPause }{
		"something before nothing":         {until(outcome.ReasonRateLimited, 1, time.Second), nil},
		"the newer spec":                   {until(outcome.ReasonRateLimited, 2, time.Second), until(outcome.ReasonEndpointGone, 1, 0)},
		"gone before parked":               {until(outcome.ReasonEndpointGone, 1, 0), until(outcome.ReasonUnauthorized, 1, time.Hour)},
		"parked before limited":            {until(outcome.ReasonEndpointNotFound, 1, time.Second), until(outcome.ReasonRateLimited, 1, time.Hour)},
		"of two of a kind the longer one":  {until(outcome.ReasonUnavailable, 1, time.Hour), until(outcome.ReasonRateLimited, 1, time.Minute)},
		"of two parked ones the longer":    {until(outcome.ReasonForbidden, 1, time.Hour), until(outcome.ReasonUnauthorized, 1, time.Minute)},
		"nothing before nothing":           {nil, nil},
		"a newer spec before a longer one": {until(outcome.ReasonRateLimited, 2, time.Second), until(outcome.ReasonRateLimited, 1, time.Hour)},
	} {
		if got := outbox.StrongerPause(tc.strong, tc.weak); got != tc.strong {
			t.Errorf("%s: %+v", name, got)
		}
		if got := outbox.StrongerPause(tc.weak, tc.strong); got != tc.strong {
			t.Errorf("%s, the other way round: %+v", name, got)
		}
	}
}

// A call that was accepted clears a pause for a wrong configuration only if it was
// begun after the answer that made it, which the API keeps in whole seconds.
func TestClearsPause(t *testing.T) {
	t.Parallel()
	answered := noon.Add(900 * time.Millisecond)
	parked := outbox.PauseAfter(outcome.FromHTTPStatus(401), hook().Obj(), "", answered)
	for name, tc := range map[string]struct {
		pause *v1alpha1.ProviderPause
		start time.Time
		want  bool
	}{
		"none":                        {nil, noon, false},
		"begun after it":              {parked, answered.Add(time.Second), true},
		"begun long before it":        {parked, answered.Add(-time.Second), false},
		"begun in the second of it":   {parked, answered.Add(-500 * time.Millisecond), false},
		"a wish to be left alone":     {&v1alpha1.ProviderPause{Reason: outcome.ReasonRateLimited}, answered.Add(time.Hour), false},
		"an endpoint that is gone":    {&v1alpha1.ProviderPause{Reason: outcome.ReasonEndpointGone}, answered.Add(time.Hour), false},
		"one that does not say since": {&v1alpha1.ProviderPause{Reason: outcome.ReasonForbidden}, noon, true},
	} {
		if got := outbox.ClearsPause(tc.pause, tc.start); got != tc.want {
			t.Errorf("%s: %t, want %t", name, got, tc.want)
		}
	}
}
