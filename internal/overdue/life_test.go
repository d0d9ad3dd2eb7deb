// SPDX-FileCopyrightText: The WorkItem Operator Authors
// SPDX-License-Identifier: Apache-2.0

package overdue_test

import (
	"fmt"
	"maps"
	"slices"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"k8s.io/apimachinery/pkg/api/equality"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"pgregory.net/rapid"

	"github.com/workitem-operator/workitem-operator/api/v1alpha1"
	"github.com/workitem-operator/workitem-operator/internal/outbox"
	"github.com/workitem-operator/workitem-operator/internal/overdue"
	"github.com/workitem-operator/workitem-operator/test/wrappers"
)

// fataler is what a world needs of a test, plain or rapid.
type fataler interface {
	Helper()
	Fatalf(format string, args ...any)
}

// world is an API server with one item, its outboxes and its providers, and the
// passes that a reconciler makes over them: the single step, iterated.
type world struct {
	now       time.Time
	item      *v1alpha1.WorkItem
	outboxes  map[string]*v1alpha1.NotificationOutbox
	providers map[string]bool
	recorded  map[string]bool
	collected map[string]bool
	reportAt  time.Time
}

func newWorld(obj *v1alpha1.WorkItem, providers ...string) *world {
	w := &world{
		now: noon, item: obj, outboxes: map[string]*v1alpha1.NotificationOutbox{}, providers: map[string]bool{},
		recorded: map[string]bool{}, collected: map[string]bool{},
	}
	for _, p := range providers {
		w.providers[p] = true
	}
	return w
}

func (w *world) facts(d overdue.Decision) overdue.Facts {
	f := overdue.Facts{
		Item: w.item, Now: w.now, Outboxes: map[string]*v1alpha1.NotificationOutbox{},
		Absent: map[string]bool{}, Missing: map[string]bool{},
	}
	for _, in := range w.item.Status.Notifications {
		if ob := w.outboxes[in.OutboxName]; ob != nil {
			f.Outboxes[in.OutboxName] = ob
		}
		if !w.providers[in.ProviderName] {
			f.Missing[in.ProviderName] = true
		}
	}
	for _, in := range overdue.Unneeded(w.item, d) {
		f.Absent[in.OutboxName] = w.outboxes[in.OutboxName] == nil
	}
	return f
}

// pass is what the reconciler does: commit a transition, make outboxes, report.
func (w *world) pass(t fataler) {
	t.Helper()
	d := overdue.Evaluate(w.item, w.now)
	if d.Changed {
		plan := overdue.Next(w.facts(d), d)
		if !plan.Write {
			t.Fatalf("a transition to %s is not written", d.Phase)
		}
		w.commit(t, plan.Status, d)
		d = overdue.Evaluate(w.item, w.now)
	}
	if d.Changed || len(d.Fired) > 0 {
		t.Fatalf("I10: a second decision at the same time changes again: %+v", d)
	}
	w.materialise(t)
	plan := overdue.Next(w.facts(d), d)
	if plan.Write {
		w.commit(t, plan.Status, d)
	} else if !equality.Semantic.DeepEqual(plan.Status, w.item.Status) {
		t.Fatalf("a plan that writes nothing has another status:\n%s", cmp.Diff(w.item.Status, plan.Status))
	}
	w.reportAt = plan.ReportAt
	if again := overdue.Next(w.facts(d), overdue.Evaluate(w.item, w.now)); again.Write {
		t.Fatalf("I10: a second pass at the same time writes:\n%s", cmp.Diff(w.item.Status, again.Status))
	}
}

func (w *world) materialise(t fataler) {
	if !overdue.Active(w.item) {
		return
	}
	for _, in := range w.item.Status.Notifications {
		if !overdue.Open(in.Phase) || w.outboxes[in.OutboxName] != nil || !w.providers[in.ProviderName] || outbox.Overtaken(w.item, in.Occurrence) || outbox.Withdrawn(&in) {
			continue
		}
		if w.collected[in.OutboxName] {
			t.Fatalf("I9: outbox %s was collected and is made again", in.OutboxName)
		}
		w.outboxes[in.OutboxName] = outbox.Desired(w.item, &in, wrappers.MakeProvider(in.ProviderName, "ops").Obj())
	}
}

// commit is a status write, with everything that must hold of each.
func (w *world) commit(t fataler, st v1alpha1.WorkItemStatus, d overdue.Decision) {
	t.Helper()
	before := w.item.Status
	w.checkOccurrence(t, before, st, d)
	after := map[string]v1alpha1.Intent{}
	for _, in := range st.Notifications {
		if _, twice := after[in.OutboxName]; twice {
			t.Fatalf("two intents have the name %s", in.OutboxName)
		}
		after[in.OutboxName] = in
		if id := outbox.OfIntent(w.item, &in); id.Name() != in.OutboxName || id.Key() != in.IdempotencyKey {
			t.Fatalf("I3: intent %s/%s is not of %+v", in.OutboxName, in.IdempotencyKey, id)
		}
	}
	old := map[string]bool{}
	for _, in := range before.Notifications {
		old[in.OutboxName] = true
		if _, stays := after[in.OutboxName]; !stays {
			w.checkLeaving(t, in, st)
		}
	}
	fresh := 0
	for name, in := range after {
		if old[name] {
			continue
		}
		fresh++
		if w.recorded[name] {
			t.Fatalf("(occurrence %d, %s, level %d, %s) is recorded twice", in.Occurrence, in.Transition, in.EscalationLevel, in.ProviderName)
		}
		w.recorded[name] = true
	}
	want := 0
	for _, fired := range d.Fired {
		want += len(fired.Notify)
	}
	if fresh != want {
		t.Fatalf("I2: %d intents are recorded with transitions that tell %d", fresh, want)
	}
	if len(st.Conditions) < 3 || st.ObservedGeneration != w.item.Generation {
		t.Fatalf("incomplete status: %+v", st)
	}
	w.item = w.item.DeepCopy()
	w.item.Status = *st.DeepCopy()
}

// checkOccurrence: an occurrence begins once for each time the item passes from not
// overdue to overdue, or misses a due time that was set after it had become overdue.
func (w *world) checkOccurrence(t fataler, before, after v1alpha1.WorkItemStatus, d overdue.Decision) {
	t.Helper()
	want := before.Occurrence
	if after.Phase == v1alpha1.PhaseOverdue {
		missedAgain := before.OccurrenceTime != nil && w.item.Spec.DueTime.After(before.OccurrenceTime.Time)
		if before.Phase != v1alpha1.PhaseOverdue || missedAgain {
			want++
		}
		if after.OverdueTime == nil || after.OccurrenceTime == nil || after.OccurrenceTime.After(w.now) {
			t.Fatalf("overdue since %s, of a due time %s", after.OccurrenceTime, after.OverdueTime)
		}
	}
	if after.Occurrence != want {
		t.Fatalf("I1: %s -> %s: occurrence %d -> %d, want %d", before.Phase, after.Phase, before.Occurrence, after.Occurrence, want)
	}
	began := slices.ContainsFunc(d.Fired, func(f overdue.Firing) bool { return f.Transition == v1alpha1.TransitionOverdue })
	if began != (after.Occurrence > before.Occurrence) {
		t.Fatalf("I1: occurrence %d -> %d, and Overdue fires: %t", before.Occurrence, after.Occurrence, began)
	}
	if after.Occurrence == before.Occurrence && after.EscalationLevel < before.EscalationLevel {
		t.Fatalf("the level falls from %d to %d within an occurrence", before.EscalationLevel, after.EscalationLevel)
	}
}

// checkLeaving: nothing leaves before its end was reported.
func (w *world) checkLeaving(t fataler, in v1alpha1.Intent, after v1alpha1.WorkItemStatus) {
	t.Helper()
	if overdue.Open(in.Phase) || in.Occurrence >= after.Occurrence {
		t.Fatalf("I9: %s leaves as %s of occurrence %d, now is %d", in.OutboxName, in.Phase, in.Occurrence, after.Occurrence)
	}
	if ob := w.outboxes[in.OutboxName]; ob != nil && string(ob.Status.Phase) != string(in.Phase) {
		t.Fatalf("I9: %s leaves as %s and is %s", in.OutboxName, in.Phase, ob.Status.Phase)
	}
}

// end ends an outbox as the dispatcher does.
func (w *world) end(name string, phase v1alpha1.OutboxPhase) {
	ob := w.outboxes[name].DeepCopy()
	ob.Status.Phase = phase
	ob.Status.FinishedTime = stampOf(w.now.Truncate(time.Second))
	w.outboxes[name] = ob
}

// collect deletes the finished outboxes whose end is reported.
func (w *world) collect() {
	for name, ob := range w.outboxes {
		if !outbox.Finished(&ob.Status) || ob.Status.Phase == v1alpha1.OutboxHeld {
			continue
		}
		reported := true
		for _, in := range w.item.Status.Notifications {
			reported = reported && (in.OutboxName != name || string(in.Phase) == string(ob.Status.Phase))
		}
		if reported {
			delete(w.outboxes, name)
			w.collected[name] = true
		}
	}
}

// dispatch ends what the dispatcher would end by itself.
func (w *world) dispatch() {
	for _, name := range slices.Sorted(maps.Keys(w.outboxes)) {
		ob := w.outboxes[name]
		if !outbox.Finished(&ob.Status) && (!overdue.Active(w.item) || outbox.Overtaken(w.item, ob.Spec.Occurrence)) {
			w.end(name, v1alpha1.OutboxSuperseded)
		}
	}
}

var finals = []v1alpha1.OutboxPhase{v1alpha1.OutboxSent, v1alpha1.OutboxDeadLettered, v1alpha1.OutboxHeld, v1alpha1.OutboxSuperseded}

func genSteps(t *rapid.T) []v1alpha1.EscalationStep {
	var out []v1alpha1.EscalationStep
	after := time.Duration(0)
	for i := range rapid.IntRange(0, 4).Draw(t, "steps") {
		if i > 0 || rapid.Bool().Draw(t, "later") {
			after += time.Duration(rapid.IntRange(1, 90).Draw(t, "minutes")) * time.Minute
		}
		out = append(out, v1alpha1.EscalationStep{After: metav1.Duration{Duration: after}, Notify: genTargets(t, 1)})
	}
	return out
}

func genTargets(t *rapid.T, least int) []v1alpha1.NotifyTarget {
	return told(rapid.SliceOfNDistinct(rapid.SampledFrom([]string{"p0", "p1", "p2", "never"}), least, 3, rapid.ID[string]).Draw(t, "told")...)
}

// A whole life: whatever the user, the providers and the time do, and however many
// passes are missed, every write keeps what checkOccurrence, checkLeaving and commit
// ask of it.
func TestLifeOfAnItem(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		w := newWorld(wrappers.MakeWorkItem("renew", "ops").Obj(), "p0", "p1")
		w.item.Spec.Notify = genTargets(t, 0)
		w.item.Spec.Escalations = genSteps(t)
		t.Repeat(map[string]func(*rapid.T){
			"pass":    func(t *rapid.T) { w.pass(t) },
			"minutes": func(t *rapid.T) { w.now = w.now.Add(time.Duration(rapid.IntRange(1, 120).Draw(t, "m")) * time.Minute) },
			"moments": func(t *rapid.T) {
				w.now = w.now.Add(time.Duration(rapid.IntRange(1, 1200).Draw(t, "ms")) * time.Millisecond)
			},
			"due time moves": func(t *rapid.T) {
				w.item.Generation++
				w.item.Spec.DueTime = stampOf(w.now.Add(time.Duration(rapid.IntRange(-180, 180).Draw(t, "m")) * time.Minute).Truncate(time.Second))
			},
			"due time goes": func(*rapid.T) {
				w.item.Generation++
				w.item.Spec.DueTime = nil
			},
			"state": func(t *rapid.T) {
				w.item.Generation++
				w.item.Spec.State = rapid.SampledFrom([]v1alpha1.WorkItemState{v1alpha1.StateActive, v1alpha1.StateCompleted, v1alpha1.StateCancelled}).Draw(t, "state")
			},
			"active": func(*rapid.T) {
				w.item.Generation++
				w.item.Spec.State = v1alpha1.StateActive
			},
			"who is told": func(t *rapid.T) {
				w.item.Generation++
				w.item.Spec.Notify, w.item.Spec.Escalations = genTargets(t, 0), genSteps(t)
			},
			"provider": func(t *rapid.T) {
				p := rapid.SampledFrom([]string{"p0", "p1", "p2"}).Draw(t, "provider")
				w.providers[p] = !w.providers[p]
			},
			"dispatch": func(*rapid.T) { w.dispatch() },
			"collect":  func(*rapid.T) { w.collect() },
			"an end": func(t *rapid.T) {
				var open []string
				for _, name := range slices.Sorted(maps.Keys(w.outboxes)) {
					if !outbox.Finished(&w.outboxes[name].Status) {
						open = append(open, name)
					}
				}
				if len(open) == 0 {
					t.Skip("nothing is open")
				}
				w.end(rapid.SampledFrom(open).Draw(t, "outbox"), rapid.SampledFrom(finals).Draw(t, "phase"))
			},
			"a replay": func(t *rapid.T) {
				var held []string
				for _, name := range slices.Sorted(maps.Keys(w.outboxes)) {
					if phase := w.outboxes[name].Status.Phase; phase == v1alpha1.OutboxHeld || phase == v1alpha1.OutboxDeadLettered {
						held = append(held, name)
					}
				}
				if len(held) == 0 {
					t.Skip("nothing to replay")
				}
				ob := w.outboxes[rapid.SampledFrom(held).Draw(t, "outbox")].DeepCopy()
				ob.Status = v1alpha1.NotificationOutboxStatus{Phase: v1alpha1.OutboxPending, Attempts: 1}
				w.outboxes[ob.Name] = ob
			},
		})
	})
}

// I10, for any status at all: what Next says to write is what it is content with.
func TestI10_SecondEvaluationWritesNothing(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		obj := wrappers.MakeWorkItem("renew", "ops").Generation(rapid.Int64Range(1, 9).Draw(t, "generation")).Obj()
		obj.Spec.Notify, obj.Spec.Escalations = genTargets(t, 0), genSteps(t)
		obj.Spec.State = rapid.SampledFrom([]v1alpha1.WorkItemState{"", v1alpha1.StateActive, v1alpha1.StateCompleted, v1alpha1.StateCancelled}).Draw(t, "state")
		if rapid.Bool().Draw(t, "due") {
			obj.Spec.DueTime = stampOf(noon.Add(time.Duration(rapid.IntRange(-300, 300).Draw(t, "minutes")) * time.Minute))
		}
		st := &obj.Status
		st.Phase = rapid.SampledFrom([]v1alpha1.WorkItemPhase{"", v1alpha1.PhaseOpen, v1alpha1.PhaseOverdue, v1alpha1.PhaseCompleted, v1alpha1.PhaseCancelled}).Draw(t, "phase")
		st.Occurrence = rapid.Int32Range(1, 12).Draw(t, "occurrence")
		st.EscalationLevel = rapid.Int32Range(0, 8).Draw(t, "level")
		f := overdue.Facts{
			Item: obj, Now: noon.Add(time.Duration(rapid.IntRange(0, 999).Draw(t, "ms")) * time.Millisecond),
			Outboxes: map[string]*v1alpha1.NotificationOutbox{}, Absent: map[string]bool{}, Missing: map[string]bool{}, Taken: map[string]bool{}, Refused: map[string]string{},
		}
		phases := []v1alpha1.NotificationPhase{
			v1alpha1.NotificationRecorded, v1alpha1.NotificationPending, v1alpha1.NotificationSent,
			v1alpha1.NotificationDeadLettered, v1alpha1.NotificationHeld, v1alpha1.NotificationSuperseded,
		}
		for i := range rapid.IntRange(0, 6).Draw(t, "intents") {
			// Of occurrences until the last one, so that no name repeats one that fires now.
			in := intentOf(obj, v1alpha1.TransitionOverdue, 0, rapid.Int32Range(1, st.Occurrence).Draw(t, "of"), fmt.Sprintf("q%d", i), rapid.SampledFrom(phases).Draw(t, "phase"))
			st.Notifications = append(st.Notifications, in)
			switch rapid.IntRange(0, 5).Draw(t, "known as") {
			case 0, 1:
				ob := outboxOf(obj, in).Obj()
				ob.Status.Phase = rapid.SampledFrom(append(finals, "", v1alpha1.OutboxPending)).Draw(t, "outbox phase")
				if rapid.Bool().Draw(t, "timed") {
					ob.Status.FinishedTime = stampOf(noon.Add(-time.Duration(rapid.IntRange(0, 5).Draw(t, "age")) * time.Second))
				}
				f.Outboxes[in.OutboxName] = ob
			case 2:
				f.Absent[in.OutboxName] = true
			case 3:
				f.Missing[in.ProviderName] = true
			case 4:
				f.Taken[in.OutboxName] = true
			case 5:
				f.Refused[in.OutboxName] = "exceeded quota"
			}
		}
		before := obj.DeepCopy()
		first := overdue.Next(f, overdue.Evaluate(obj, f.Now))
		if diff := cmp.Diff(before, obj); diff != "" {
			t.Fatalf("Next changed the item:\n%s", diff)
		}
		f.Item = obj.DeepCopy()
		f.Item.Status = first.Status
		second := overdue.Next(f, overdue.Evaluate(f.Item, f.Now))
		if second.Write && first.Write {
			t.Fatalf("the second write differs from the first:\n%s", cmp.Diff(first.Status, second.Status))
		}
		if !second.Write && !equality.Semantic.DeepEqual(second.Status, f.Item.Status) {
			t.Fatalf("nothing to write, and yet another status:\n%s", cmp.Diff(f.Item.Status, second.Status))
		}
		if second.Write != first.Write && !first.Write {
			t.Fatal("a pass that wrote nothing is followed by one that writes, at the same time")
		}
	})
}

// However often an item is opened again, its status stays bounded, whether its
// provider delivers, holds, or never appears.
func TestNotificationsStayBounded(t *testing.T) {
	t.Parallel()
	const rounds = 300
	cases := map[string]struct {
		provider string
		end      func(*world)
		bound    int
	}{
		"delivered":                {"p0", func(w *world) { w.endAll(v1alpha1.OutboxSent) }, 6},
		"held":                     {"p0", func(w *world) { w.endAll(v1alpha1.OutboxHeld) }, 6},
		"the provider never comes": {"never", func(*world) {}, 3 * (outbox.MaxOccurrencesBehind + 1)},
		"the provider hangs":       {"p0", func(*world) {}, 3 * (outbox.MaxOccurrencesBehind + 2)},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			obj := wrappers.MakeWorkItem("renew", "ops").Notify(tc.provider).Escalate(0, tc.provider).Escalate(time.Minute, tc.provider).Obj()
			w := newWorld(obj, "p0")
			most := 0
			look := func() {
				w.dispatch()
				w.pass(t)
				most = max(most, len(w.item.Status.Notifications))
			}
			for range rounds {
				w.item.Spec.DueTime = stampOf(w.now.Add(-time.Hour))
				look()
				w.now = w.now.Add(2 * time.Second)
				tc.end(w)
				look()
				w.item.Spec.DueTime = stampOf(w.now.Add(time.Hour))
				look()
				w.collect()
			}
			if w.item.Status.Occurrence != rounds {
				t.Errorf("occurrence %d after %d rounds", w.item.Status.Occurrence, rounds)
			}
			if len(w.recorded) != 3*rounds {
				t.Errorf("%d intents were ever recorded, want %d", len(w.recorded), 3*rounds)
			}
			if most > tc.bound {
				t.Errorf("up to %d intents at once, want at most %d", most, tc.bound)
			}
		})
	}
}

func (w *world) endAll(phase v1alpha1.OutboxPhase) {
	for _, name := range slices.Sorted(maps.Keys(w.outboxes)) {
		if !outbox.Finished(&w.outboxes[name].Status) {
			w.end(name, phase)
		}
	}
}

// Coalescing: eight ends within a second are one write, and none is reported later
// than the second allows.
func TestEndsThatComeTogetherAreOneWrite(t *testing.T) {
	t.Parallel()
	obj := wrappers.MakeWorkItem("renew", "ops").Due(noon.Add(-time.Hour)).
		Notify("p0", "p1", "p2", "p3", "p4", "p5", "p6", "p7").Obj()
	w := newWorld(obj, "p0", "p1", "p2", "p3", "p4", "p5", "p6", "p7")
	w.pass(t)
	writes := 0
	for _, name := range slices.Sorted(maps.Keys(w.outboxes)) {
		w.end(name, v1alpha1.OutboxSent)
		before := w.item
		w.pass(t)
		if w.item != before {
			writes++
		}
		w.now = w.now.Add(50 * time.Millisecond)
	}
	if writes != 1 {
		t.Errorf("%d writes for eight ends within half a second, want one", writes)
	}
	if got := summary(w.item.Status)["Notified"]; got != "True AllSent" {
		t.Errorf("Notified is %s", got)
	}
}
