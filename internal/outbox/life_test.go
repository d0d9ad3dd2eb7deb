// SPDX-FileCopyrightText: The WorkItem Operator Authors
// SPDX-License-Identifier: Apache-2.0

package outbox_test

import (
	"fmt"
	"testing"
	"time"

	"pgregory.net/rapid"

	"github.com/workitem-operator/workitem-operator/api/v1alpha1"
	"github.com/workitem-operator/workitem-operator/internal/outbox"
	"github.com/workitem-operator/workitem-operator/internal/outcome"
)

// claimTime is how long a claim holds in a life.
const claimTime = time.Minute

// call is one that is under way.
type call struct {
	start   outbox.Started
	version int
	ends    time.Time
	base    *v1alpha1.NotificationOutbox
}

// life is one outbox in the API server, its claim, and processes that crash.
type life struct {
	now      time.Time
	item     *v1alpha1.WorkItem
	provider *v1alpha1.NotificationProvider
	outbox   *v1alpha1.NotificationOutbox
	version  int

	// The Lease: who acquired it when, and until when nobody else may.
	holder   string
	acquired time.Time
	ends     time.Time

	inFlight map[string]*call
	process  int
	// calls counts the calls ever made, first is when the first was, and unclear
	// tells that the last may have been accepted and that nobody has replayed since.
	calls   int32
	first   time.Time
	unclear bool
}

func (l *life) self(i int) string { return fmt.Sprintf("p%d-%d", i, l.process) }

func (l *life) decide(ob *v1alpha1.NotificationOutbox) outbox.Decision {
	return outbox.Decide(outbox.Facts{Outbox: ob, Item: l.item, Provider: l.provider, Now: l.now, Confirmed: true})
}

func (l *life) write(t *rapid.T, st v1alpha1.NotificationOutboxStatus) {
	t.Helper()
	before := &l.outbox.Status
	if st.Attempts < before.Attempts {
		t.Fatalf("attempts fall from %d to %d", before.Attempts, st.Attempts)
	}
	if st.Attempts > l.calls {
		t.Fatalf("I8: %d attempts are recorded, %d calls were made", st.Attempts, l.calls)
	}
	if final := before.Phase; (final == v1alpha1.OutboxSent || final == v1alpha1.OutboxSuperseded) && st.Phase != final {
		t.Fatalf("%s becomes %s", final, st.Phase)
	}
	if len(st.History) > outbox.MaxHistory || (st.LastAttempt != nil && st.LastAttempt.Number != st.Attempts) {
		t.Fatalf("%d in history, last attempt %+v of %d", len(st.History), st.LastAttempt, st.Attempts)
	}
	if outbox.Finished(&st) != (st.FinishedTime != nil) || (outbox.Finished(&st) && st.NextAttemptTime != nil) {
		t.Fatalf("phase %s, finished %s, next %s", st.Phase, st.FinishedTime, st.NextAttemptTime)
	}
	if st.FirstAttemptTime != nil && !st.FirstAttemptTime.Time.Equal(l.first.Truncate(time.Second)) {
		t.Fatalf("I11: the first attempt is said to be at %s, and was at %s", st.FirstAttemptTime, l.first)
	}
	l.outbox = l.outbox.DeepCopy()
	l.outbox.Status = *st.DeepCopy()
	l.version++
}

// acquire claims the outbox; ok is false if somebody may hold it.
func (l *life) acquire(self string) (lost *outbox.Lost, created, ok bool) {
	last := l.outbox.Status.LastAttempt
	settled := last != nil && last.Holder == self && last.Outcome == v1alpha1.OutcomeRejected
	switch {
	case l.holder == "":
		created = true
	case l.holder == self && settled:
		l.ends = l.now.Add(claimTime)
		return nil, false, true
	case l.now.Before(l.ends):
		return nil, false, false
	default:
		lost = &outbox.Lost{Holder: l.holder, Since: stampOf(l.acquired)}
	}
	l.holder, l.acquired, l.ends = self, l.now, l.now.Add(claimTime)
	return lost, created, true
}

// reconcile is what one process does about the outbox.
func (l *life) reconcile(t *rapid.T, self string) {
	d := l.decide(l.outbox)
	if outbox.Finished(&l.outbox.Status) && d.Action != outbox.Wait && d.Action != outbox.Nothing && d.Action != outbox.Collect {
		t.Fatalf("I5: %s and yet %+v", l.outbox.Status.Phase, d)
	}
	switch d.Action {
	case outbox.Nothing, outbox.Wait, outbox.Collect, outbox.Confirm, outbox.Resolve:
		if d.Action == outbox.Wait && !d.At.IsZero() && !d.At.After(l.now) {
			t.Fatalf("fault 40: waits until %s at %s", d.At, l.now)
		}
	case outbox.HoldUp:
		l.write(t, outbox.Waiting(l.outbox, l.provider, d, l.now))
	case outbox.End:
		if lost, _, ok := l.acquire(self); ok {
			l.endOrNot(t, lost)
		}
	case outbox.Attempt:
		l.attempt(t, self)
	}
}

// endOrNot decides again under the claim, and ends the outbox if that is still right.
func (l *life) endOrNot(t *rapid.T, lost *outbox.Lost) {
	judged := l.outbox.DeepCopy()
	judged.Status = outbox.Abandoned(l.outbox, lost)
	if d := l.decide(judged); d.Action == outbox.End {
		l.write(t, outbox.Ended(l.outbox, lost, d, l.now))
	}
}

func (l *life) attempt(t *rapid.T, self string) {
	if l.inFlight[self] != nil {
		return
	}
	lost, created, ok := l.acquire(self)
	if !ok {
		return
	}
	start := outbox.Started{Number: 1, Holder: self, At: l.now}
	if !created {
		judged := l.outbox.DeepCopy()
		judged.Status = outbox.Abandoned(l.outbox, lost)
		switch d := l.decide(judged); {
		case d.Action == outbox.End:
			l.write(t, outbox.Ended(l.outbox, lost, d, l.now))
			return
		case d.Action != outbox.Attempt:
			return
		}
		var st v1alpha1.NotificationOutboxStatus
		st, start = outbox.Begin(l.outbox, l.provider, lost, self, l.now)
		l.calls++ // The write and the call are one step here.
		l.write(t, st)
	} else {
		l.calls++
		l.first = l.now
	}
	if start.Number != l.calls {
		t.Fatalf("I8: call %d is attempt %d", l.calls, start.Number)
	}
	if l.unclear && l.provider.Spec.OnAmbiguous == v1alpha1.AmbiguousHold {
		t.Fatal("I12: a call after an ambiguous one that a person has not judged")
	}
	for other := range l.inFlight {
		if l.now.Before(l.inFlight[other].ends) {
			t.Fatalf("I5: %s calls while %s holds the claim", self, other)
		}
	}
	l.inFlight[self] = &call{start: start, version: l.version, ends: l.ends, base: l.outbox}
	l.unclear = true // Until its outcome is known.
}

// answer records the outcome of a call, unless another has overtaken it.
func (l *life) answer(t *rapid.T, self string, res outcome.Result) {
	c := l.inFlight[self]
	delete(l.inFlight, self)
	if c.version != l.version {
		if outbox.Standing(l.outbox, c.start) != outbox.StillRunning {
			return // I6: too late, nothing is written.
		}
	}
	if c.start.Number != l.calls {
		t.Fatalf("I6: attempt %d is recorded after attempt %d was begun", c.start.Number, l.calls)
	}
	st := outbox.Settle(l.outbox, l.provider, c.start, res, l.now, c.ends)
	if res.Class == outcome.Ambiguous && st.NextAttemptTime != nil && st.NextAttemptTime.Time.Before(c.ends) {
		t.Fatalf("I12: the next attempt is at %s, the claim ends at %s", st.NextAttemptTime, c.ends)
	}
	if st.NextAttemptTime != nil && st.NextAttemptTime.Time.Before(l.now) {
		t.Fatalf("fault 40: the next attempt is at %s, it is %s", st.NextAttemptTime, l.now)
	}
	l.write(t, st)
	l.unclear = res.Class == outcome.Ambiguous
}

func TestLifeOfAnOutbox(t *testing.T) {
	t.Parallel()
	answers := []outcome.Result{
		outcome.FromHTTPStatus(204), outcome.FromHTTPStatus(400), outcome.FromHTTPStatus(422), outcome.FromHTTPStatus(401),
		outcome.FromHTTPStatus(410), outcome.FromHTTPStatus(429), outcome.FromHTTPStatus(503), outcome.FromHTTPStatus(500),
		outcome.FromHTTPStatus(409), outcome.Unanswered(outcome.ReasonTimeout, "late"), outcome.NotSent(outcome.ReasonConnectionRefused, "no"),
	}
	rapid.Check(t, func(t *rapid.T) {
		provider := hook().Keyed(time.Hour).Retry(2*time.Hour, time.Second, time.Minute)
		if rapid.Bool().Draw(t, "hold") {
			provider.OnAmbiguous(v1alpha1.AmbiguousHold)
		}
		l := &life{now: noon, provider: provider.Obj(), inFlight: map[string]*call{}}
		l.item, _, l.outbox = pair(l.provider)
		someone := func(t *rapid.T) string { return l.self(rapid.IntRange(0, 2).Draw(t, "process")) }
		running := func(t *rapid.T) string {
			var out []string
			for i := range 3 {
				for j := range l.process + 1 {
					if self := fmt.Sprintf("p%d-%d", i, j); l.inFlight[self] != nil {
						out = append(out, self)
					}
				}
			}
			if len(out) == 0 {
				t.Skip("no call is under way")
			}
			return rapid.SampledFrom(out).Draw(t, "caller")
		}
		t.Repeat(map[string]func(*rapid.T){
			"reconcile": func(t *rapid.T) { l.reconcile(t, someone(t)) },
			"again":     func(t *rapid.T) { l.reconcile(t, someone(t)) },
			"answer":    func(t *rapid.T) { l.answer(t, running(t), rapid.SampledFrom(answers).Draw(t, "answer")) },
			"moments": func(t *rapid.T) {
				l.now = l.now.Add(time.Duration(rapid.IntRange(1, 90_000).Draw(t, "ms")) * time.Millisecond)
			},
			"crash": func(t *rapid.T) {
				delete(l.inFlight, running(t))
				l.process++
			},
			"renew": func(t *rapid.T) {
				if c := l.inFlight[running(t)]; c.start.Holder == l.holder && l.now.Before(l.ends) {
					l.ends = l.now.Add(claimTime)
					c.ends = l.ends
				}
			},
			"suspend": func(*rapid.T) { l.provider.Spec.Suspend = !l.provider.Spec.Suspend },
			"complete": func(t *rapid.T) {
				if rapid.IntRange(0, 4).Draw(t, "rarely") == 0 {
					l.item.Spec.State = v1alpha1.StateCompleted
				}
			},
			"a person decides": func(t *rapid.T) {
				asked := outbox.Asked{Action: rapid.SampledFrom([]v1alpha1.DecisionAction{v1alpha1.DecisionReplay, v1alpha1.DecisionReplay, v1alpha1.DecisionMarkSent, v1alpha1.DecisionAbandon}).Draw(t, "action"), Reason: "why", By: "me"}
				if verdict, _ := outbox.Judge(l.outbox, asked); verdict != outbox.CarryOut {
					return
				}
				var lost *outbox.Lost
				if !outbox.Finished(&l.outbox.Status) {
					var ok bool
					if lost, _, ok = l.acquire(someone(t)); !ok {
						return
					}
				}
				l.write(t, outbox.Decided(l.outbox, l.provider, lost, asked, l.now))
				l.unclear = false
			},
		})
	})
}
