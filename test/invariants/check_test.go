// SPDX-FileCopyrightText: The WorkItem Operator Authors
// SPDX-License-Identifier: Apache-2.0

package invariants

import (
	"slices"
	"strings"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/workitem-operator/workitem-operator/api/v1alpha1"
)

const (
	accepted  = v1alpha1.OutcomeAccepted
	rejected  = v1alpha1.OutcomeRejected
	ambiguous = v1alpha1.OutcomeAmbiguous
	pending   = v1alpha1.OutboxPending
	sent      = v1alpha1.OutboxSent
)

func TestStoriesInWhichNothingIsBroken(t *testing.T) {
	t.Parallel()
	for name, tell := range map[string]func(s *story){
		"delivered at once": func(s *story) {
			s.delivered(accepted, sent, 1)
			s.report(v1alpha1.NotificationSent, "")
		},
		"rejected, then accepted under the same claim": func(s *story) {
			s.delivered(rejected, pending, 0)
			s.begin("a", 2)
			s.call("a", 2.1, 1)
			s.settle("a", 2, accepted, sent)
			s.report(v1alpha1.NotificationSent, "")
		},
		"ambiguous, then taken over": func(s *story) {
			s.delivered(ambiguous, pending, 1)
			s.claim("b", 6.5)
			s.begin("b", 6.6)
			s.call("b", 6.7, 0)
			s.settle("b", 2, accepted, sent)
			s.report(v1alpha1.NotificationSent, "")
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := newStory(t)
			tell(s)
			if broken := judge(s.history, s.world); len(broken) != 0 {
				t.Errorf("judged as broken:\n%s", strings.Join(broken, "\n"))
			}
		})
	}
}

func TestEachInvariantCanBeSeenBroken(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		invariant string
		tell      func(s *story)
	}{
		"an occurrence is skipped": {"I1", func(s *story) {
			s.write(s.item)
			s.overdue()
			s.item.Status.Occurrence = 3
			s.write(s.item)
		}},
		"an occurrence is taken back": {"I1", func(s *story) {
			s.overdue()
			s.item.Status.Occurrence = 0
			s.write(s.item)
		}},
		"a transition without its intent": {"I2", func(s *story) {
			s.item.Status.Phase, s.item.Status.Occurrence = v1alpha1.PhaseOverdue, 1
			s.write(s.item)
		}},
		"an outbox before its intent": {"I2", func(s *story) {
			s.write(s.outbox)
			s.overdue()
			s.call("a", 1, 1)
		}},
		"two outboxes for a key": {"I3", func(s *story) {
			s.delivered(accepted, sent, 1)
			s.otherUID("u9")
			s.write(s.outbox)
		}},
		"a key that no outbox has": {"I3", func(s *story) { s.call("a", 1, 1) }},
		"a spec that changes": {"I4", func(s *story) {
			s.write(s.outbox)
			s.outbox.Spec.Payload.Body = "other"
			s.write(s.outbox)
		}},
		"other bytes on the wire": {"I4", func(s *story) {
			s.delivered(accepted, sent, 1)
			s.world.Calls[0].Body = []byte("other")
		}},
		"a call without a claim": {"I5", func(s *story) {
			s.overdue()
			s.write(s.outbox)
			s.call("a", 1, 1)
		}},
		"a call under another's claim": {"I5", func(s *story) {
			s.delivered(accepted, sent, 1)
			s.call("b", 1.2, 0)
		}},
		"a call after the claim has run out": {"I5", func(s *story) {
			s.delivered(rejected, pending, 0)
			s.begin("a", 6)
			s.call("a", 6.5, 1)
		}},
		"a call for an outbox that has ended": {"I5", func(s *story) {
			s.delivered(accepted, sent, 1)
			s.claim("b", 7)
			s.call("b", 7.1, 0)
		}},
		"an end that is overwritten": {"I6", func(s *story) {
			s.delivered(accepted, sent, 1)
			s.settle("b", 2, rejected, pending)
		}},
		"an outcome that is overwritten": {"I6", func(s *story) {
			s.delivered(rejected, pending, 0)
			s.settle("a", 1, accepted, sent)
		}},
		"an attempt that is taken over": {"I6", func(s *story) {
			s.delivered(rejected, pending, 0)
			s.settle("b", 1, rejected, pending)
		}},
		"a live claim that is taken over": {"I7", func(s *story) {
			s.delivered(ambiguous, pending, 0)
			s.claim("b", 3)
		}},
		"a call that is not counted": {"I8", func(s *story) {
			s.delivered(rejected, pending, 0)
			s.call("a", 2, 1)
		}},
		"a call that is counted too late": {"I8", func(s *story) {
			s.delivered(rejected, pending, 0)
			s.call("a", 2, 1)
			s.begin("a", 3)
		}},
		"an intent that vanishes": {"I9", func(s *story) {
			s.overdue()
			s.item.Status.Notifications = nil
			s.write(s.item)
		}},
		"an intent that never ends": {"I9", func(s *story) { s.overdue() }},
		"an end without a reason": {"I9", func(s *story) {
			s.overdue()
			s.report(v1alpha1.NotificationDeadLettered, "")
		}},
		"a report that is not true": {"I9", func(s *story) {
			s.delivered(accepted, sent, 1)
			s.report(v1alpha1.NotificationSuperseded, "WorkItemCompleted")
		}},
		"two effects, and once is promised": {"I11", func(s *story) { s.delivered(accepted, sent, 2) }},
		"once is promised of a provider without keys": {"I11", func(s *story) {
			s.provider.Spec.Idempotency.Mode = v1alpha1.IdempotencyNone
			s.delivered(accepted, sent, 1)
		}},
		"sent without an effect": {"I12", func(s *story) { s.delivered(accepted, sent, 0) }},
		"an ambiguous attempt is repeated under the same claim": {"I12", func(s *story) {
			s.delivered(ambiguous, pending, 1)
			s.begin("a", 2)
			s.call("a", 2.1, 0)
		}},
		"an ambiguous attempt is repeated without the person's word": {"I12", func(s *story) {
			s.provider.Spec.OnAmbiguous = v1alpha1.AmbiguousHold
			s.delivered(ambiguous, pending, 1)
			s.claim("b", 6.5)
			s.begin("b", 6.6)
		}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := newStory(t)
			c.tell(s)
			broken := judge(s.history, s.world)
			if !slices.ContainsFunc(broken, func(line string) bool { return strings.HasPrefix(line, c.invariant+": ") }) {
				t.Errorf("%s was not seen broken, only:\n%s", c.invariant, strings.Join(broken, "\n"))
			}
		})
	}
}

func TestADecisionMayChangeAnEnd(t *testing.T) {
	t.Parallel()
	s := newStory(t)
	s.delivered(rejected, v1alpha1.OutboxDeadLettered, 0)
	s.outbox.Status.Decision = &v1alpha1.Decision{Action: v1alpha1.DecisionReplay, Time: &metav1.Time{Time: s.at(2)}}
	s.outbox.Status.Phase = pending
	s.write(s.outbox)
	s.begin("a", 3)
	s.call("a", 3.1, 1)
	s.settle("a", 2, accepted, sent)
	s.report(v1alpha1.NotificationSent, "")
	if broken := judge(s.history, s.world); len(broken) != 0 {
		t.Errorf("judged as broken:\n%s", strings.Join(broken, "\n"))
	}
}
