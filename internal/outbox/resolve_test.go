// SPDX-FileCopyrightText: The WorkItem Operator Authors
// SPDX-License-Identifier: Apache-2.0

package outbox_test

import (
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/workitem-operator/workitem-operator/api/v1alpha1"
	"github.com/workitem-operator/workitem-operator/internal/outbox"
	"github.com/workitem-operator/workitem-operator/internal/outcome"
	"github.com/workitem-operator/workitem-operator/test/wrappers"
)

func TestAskedOf(t *testing.T) {
	t.Parallel()
	managed := wrappers.MakeOutbox("o", "ops").Decision("Replay", "why", "").Obj()
	managed.ManagedFields = []metav1.ManagedFieldsEntry{
		{Manager: "other", FieldsV1: metav1.NewFieldsV1(`{"f:metadata":{"f:annotations":{"f:workitem.dev/decision-reason":{}}}}`)},
		{Manager: "no fields"},
		{Manager: "kubectl-annotate", FieldsV1: metav1.NewFieldsV1(`{"f:metadata":{"f:annotations":{"f:workitem.dev/decision":{}}}}`)},
	}
	cases := map[string]struct {
		outbox *v1alpha1.NotificationOutbox
		want   outbox.Asked
	}{
		"who, when and why":          {wrappers.MakeOutbox("o", "ops").Decision("Replay", " fixed the firewall\n", " jane ").Obj(), outbox.Asked{Action: "Replay", Reason: "fixed the firewall", By: "jane"}},
		"whoever set the annotation": {managed, outbox.Asked{Action: "Replay", Reason: "why", By: "kubectl-annotate"}},
		"nobody knows":               {wrappers.MakeOutbox("o", "ops").Decision("Nonsense", "", "").Obj(), outbox.Asked{Action: "Nonsense", By: "unknown"}},
		"clipped": {
			wrappers.MakeOutbox("o", "ops").Decision("Abandon", strings.Repeat("r", 5000), strings.Repeat("b", 5000)).Obj(),
			outbox.Asked{Action: "Abandon", Reason: strings.Repeat("r", 1024), By: strings.Repeat("b", 253)},
		},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			if diff := cmp.Diff(tc.want, outbox.AskedOf(tc.outbox)); diff != "" {
				t.Errorf("asked (-want +got):\n%s", diff)
			}
		})
	}
}

func TestJudge(t *testing.T) {
	t.Parallel()
	phases := []v1alpha1.OutboxPhase{"", v1alpha1.OutboxPending, v1alpha1.OutboxSent, v1alpha1.OutboxDeadLettered, v1alpha1.OutboxHeld, v1alpha1.OutboxSuperseded}
	const y, n = outbox.CarryOut, outbox.Refuse
	want := map[v1alpha1.DecisionAction][]outbox.Verdict{
		v1alpha1.DecisionReplay:   {n, n, n, y, y, n},
		v1alpha1.DecisionMarkSent: {y, y, n, y, y, n},
		v1alpha1.DecisionAbandon:  {y, y, n, y, y, n},
		"Nonsense":                {n, n, n, n, n, n},
		"replay":                  {n, n, n, n, n, n},
	}
	for action, verdicts := range want {
		for i, phase := range phases {
			ob := wrappers.MakeOutbox("o", "ops").Phase(phase).Obj()
			got, why := outbox.Judge(ob, outbox.Asked{Action: action, Reason: "why", By: "me"})
			if got != verdicts[i] || (why != "") != (got == outbox.Refuse) {
				t.Errorf("%s of %q: verdict %d (%q), want %d", action, phase, got, why, verdicts[i])
			}
			if got, _ := outbox.Judge(ob, outbox.Asked{Action: action, By: "me"}); got != outbox.Refuse {
				t.Errorf("%s of %q without a reason: verdict %d", action, phase, got)
			}
		}
	}
	// The write came through and the annotation stayed: it is not carried out twice.
	for action, phase := range map[v1alpha1.DecisionAction]v1alpha1.OutboxPhase{
		v1alpha1.DecisionReplay: v1alpha1.OutboxPending, v1alpha1.DecisionMarkSent: v1alpha1.OutboxSent, v1alpha1.DecisionAbandon: v1alpha1.OutboxSuperseded,
	} {
		ob := wrappers.MakeOutbox("o", "ops").Phase(phase).Obj()
		ob.Status.Decision = &v1alpha1.Decision{Action: action, Reason: "why"}
		if got, _ := outbox.Judge(ob, outbox.Asked{Action: action, Reason: "why"}); got != outbox.Done {
			t.Errorf("%s once more: verdict %d, want Done", action, got)
		}
		if got, _ := outbox.Judge(ob, outbox.Asked{Action: action, Reason: "another"}); got != outbox.Refuse {
			t.Errorf("%s for another reason: verdict %d, want Refuse", action, got)
		}
	}
}

// Fault 20 and I4: a replay sends the same key and bytes, goes on counting, and gets
// a deadline of its own but no new window for the key.
func TestFault20_ReplayKeepsKeyAndAttempts(t *testing.T) {
	t.Parallel()
	provider := hook().Keyed(time.Hour).OnAmbiguous(v1alpha1.AmbiguousHold).Obj()
	item, _, _ := pair(provider)
	ob, start := running(provider, 3)
	ob.Status = outbox.Settle(ob, provider, start, outcome.Unanswered(outcome.ReasonTimeout, "late"), noon, noon)
	spec := ob.Spec
	if ob.Status.Phase != v1alpha1.OutboxHeld {
		t.Fatalf("phase %s", ob.Status.Phase)
	}
	now := noon.Add(100 * time.Hour)
	ob.Status = outbox.Decided(ob, provider, nil, outbox.Asked{Action: v1alpha1.DecisionReplay, Reason: "why", By: "me"}, now)
	st := ob.Status
	if diff := cmp.Diff(spec, ob.Spec); diff != "" {
		t.Errorf("the spec changed:\n%s", diff)
	}
	if st.Phase != v1alpha1.OutboxPending || st.Attempts != 3 || st.FinishedTime != nil || delivered(st) != "False Replayed" || len(st.History) != 3 {
		t.Errorf("after the replay: %+v", st)
	}
	if !st.FirstAttemptTime.Time.Equal(noon) || st.Guarantee != v1alpha1.GuaranteeAtLeastOnce {
		t.Errorf("I11: first attempt %s, guarantee %s: the provider has forgotten the key", st.FirstAttemptTime, st.Guarantee)
	}
	if diff := cmp.Diff(&v1alpha1.Decision{Action: v1alpha1.DecisionReplay, Reason: "why", By: "me", Time: stampOf(now)}, st.Decision); diff != "" {
		t.Errorf("decision (-want +got):\n%s", diff)
	}
	if d := outbox.Decide(outbox.Facts{Outbox: ob, Item: item, Provider: provider, Now: now}); d.Action != outbox.Attempt {
		t.Errorf("a replay 100 h after the first attempt decides %+v, want to send", d)
	}
	var next outbox.Started
	ob.Status, next = outbox.Begin(ob, provider, &outbox.Lost{Holder: "a"}, "b", now)
	if next.Number != 4 {
		t.Errorf("the replay is attempt %d, want 4", next.Number)
	}
	ob.Status = outbox.Abandoned(ob, nil)
	if d := outbox.Decide(outbox.Facts{Outbox: ob, Item: item, Provider: provider, Now: now}); d.Action != outbox.End || d.Phase != v1alpha1.OutboxHeld {
		t.Errorf("I12: a replay whose holder was lost decides %+v, want to be held again", d)
	}
}

// A replay survives what holds it up: the policy Hold does not hold it before it was
// sent.
func TestReplaySurvivesASuspendedProvider(t *testing.T) {
	t.Parallel()
	provider := hook().OnAmbiguous(v1alpha1.AmbiguousHold).Obj()
	item, _, _ := pair(provider)
	ob, start := running(provider, 1)
	ob.Status = outbox.Settle(ob, provider, start, outcome.Unanswered(outcome.ReasonTimeout, "late"), noon, noon)
	ob.Status = outbox.Decided(ob, provider, nil, outbox.Asked{Action: v1alpha1.DecisionReplay, Reason: "why", By: "me"}, noon)
	ob.Status = outbox.Waiting(ob, provider, outbox.Decision{Reason: v1alpha1.ReasonProviderSuspended, Message: "suspended"}, noon)
	later := noon.Add(48 * time.Hour)
	if d := outbox.Decide(outbox.Facts{Outbox: ob, Item: item, Provider: provider, Now: later}); d.Action != outbox.Attempt {
		t.Errorf("got %+v, want to send", d)
	}
}

func TestDecidedEnds(t *testing.T) {
	t.Parallel()
	provider := hook().Obj()
	lost := &outbox.Lost{Holder: "b", Since: stampOf(noon)}
	for action, want := range map[v1alpha1.DecisionAction]struct {
		phase     v1alpha1.OutboxPhase
		delivered string
		sent      bool
	}{
		v1alpha1.DecisionMarkSent: {v1alpha1.OutboxSent, "True MarkedSent", true},
		v1alpha1.DecisionAbandon:  {v1alpha1.OutboxSuperseded, "False Abandoned", false},
	} {
		for _, p := range []*v1alpha1.NotificationProvider{provider, nil} {
			_, _, ob := pair(provider)
			st := outbox.Decided(ob, p, lost, outbox.Asked{Action: action, Reason: "why", By: "me"}, noon.Add(time.Hour))
			if st.Phase != want.phase || delivered(st) != want.delivered || (st.SentTime != nil) != want.sent || st.FinishedTime == nil || st.NextAttemptTime != nil {
				t.Errorf("%s: %+v", action, st)
			}
			if st.Attempts != 1 || st.LastAttempt.Reason != v1alpha1.ReasonHolderLost {
				t.Errorf("%s: what the lost holder did is not counted: %+v", action, st.LastAttempt)
			}
			if msg := st.Conditions[0].Message; !strings.Contains(msg, "me") || !strings.Contains(msg, "why") {
				t.Errorf("%s: message %q names neither who nor why", action, msg)
			}
		}
	}
}
