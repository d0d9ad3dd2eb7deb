// SPDX-FileCopyrightText: The WorkItem Operator Authors
// SPDX-License-Identifier: Apache-2.0

package invariants

import (
	"github.com/workitem-operator/workitem-operator/api/v1alpha1"
)

// transitions judges I1 and the first half of I2: occurrences and levels go up one by
// one, and each comes in the same version as its intents.
func (j *judgement) transitions(item *life[*v1alpha1.WorkItem]) {
	var before v1alpha1.WorkItemStatus
	for _, v := range item.versions {
		st := &v.obj.Status
		switch {
		case st.Occurrence < before.Occurrence, st.Occurrence > before.Occurrence+1:
			j.say("I1", "%s goes from occurrence %d to %d", v.obj.Name, before.Occurrence, st.Occurrence)
		case st.Occurrence == before.Occurrence && st.EscalationLevel < before.EscalationLevel:
			j.say("I1", "%s goes from level %d back to %d in occurrence %d", v.obj.Name, before.EscalationLevel, st.EscalationLevel, st.Occurrence)
		}
		if st.Occurrence > before.Occurrence {
			if st.Phase != v1alpha1.PhaseOverdue {
				j.say("I1", "occurrence %d of %s begins in phase %s", st.Occurrence, v.obj.Name, st.Phase)
			}
			j.wantIntents(v.obj, v1alpha1.TransitionOverdue, 0, v.obj.Spec.Notify)
			before.EscalationLevel = 0
		}
		for level := before.EscalationLevel + 1; level <= st.EscalationLevel; level++ {
			if int(level) <= len(v.obj.Spec.Escalations) {
				j.wantIntents(v.obj, v1alpha1.TransitionEscalated, level, v.obj.Spec.Escalations[level-1].Notify)
			}
		}
		j.distinct(v.obj)
		before = *st
	}
}

// wantIntents asks for the intents of a transition in the version that commits it.
func (j *judgement) wantIntents(item *v1alpha1.WorkItem, transition v1alpha1.Transition, level int32, targets []v1alpha1.NotifyTarget) {
	for _, target := range targets {
		found := false
		for _, in := range item.Status.Notifications {
			found = found || (in.Transition == transition && in.EscalationLevel == level &&
				in.Occurrence == item.Status.Occurrence && in.ProviderName == target.ProviderName)
		}
		if !found {
			j.say("I2", "%s is %s %d in occurrence %d without an intent for %s", item.Name, transition, level, item.Status.Occurrence, target.ProviderName)
		}
	}
}

// distinct asks for one intent for each key and name.
func (j *judgement) distinct(item *v1alpha1.WorkItem) {
	keys, names := map[string]bool{}, map[string]bool{}
	for _, in := range item.Status.Notifications {
		if keys[in.IdempotencyKey] || names[in.OutboxName] {
			j.say("I3", "%s has two intents with the key %s", item.Name, in.IdempotencyKey)
		}
		keys[in.IdempotencyKey], names[in.OutboxName] = true, true
	}
}

func open(phase v1alpha1.NotificationPhase) bool {
	return phase == v1alpha1.NotificationRecorded || phase == v1alpha1.NotificationPending
}

// intentsStay judges I9: no intent vanishes before its end was reported, and none that
// was reported as sent is anything else afterwards.
func (j *judgement) intentsStay(item *life[*v1alpha1.WorkItem]) {
	var before []v1alpha1.Intent
	for _, v := range item.versions {
		now := map[string]*v1alpha1.Intent{}
		for i := range v.obj.Status.Notifications {
			now[v.obj.Status.Notifications[i].IdempotencyKey] = &v.obj.Status.Notifications[i]
		}
		for _, was := range before {
			is := now[was.IdempotencyKey]
			switch {
			case is == nil && open(was.Phase):
				j.say("I9", "the intent %s of %s vanishes while it is %s", was.IdempotencyKey, v.obj.Name, was.Phase)
			case is == nil:
			case was.Phase == v1alpha1.NotificationSent && is.Phase != v1alpha1.NotificationSent:
				j.say("I9", "the intent %s of %s was Sent and is %s", was.IdempotencyKey, v.obj.Name, is.Phase)
			case was.OutboxName != is.OutboxName || was.Occurrence != is.Occurrence || was.ProviderName != is.ProviderName:
				j.say("I3", "the intent %s of %s has changed what it is about", was.IdempotencyKey, v.obj.Name)
			}
		}
		before = v.obj.Status.Notifications
	}
}

// ended judges the other half of I9: everything has ended, with a reason, and the item
// says of each outbox what the outbox says.
func (j *judgement) ended(item *life[*v1alpha1.WorkItem]) {
	if j.world.Open || item.deleted != 0 {
		return
	}
	last := item.last().obj
	for _, in := range last.Status.Notifications {
		if open(in.Phase) {
			j.say("I9", "the intent %s of %s has not ended: it is %s", in.IdempotencyKey, last.Name, in.Phase)
			continue
		}
		if in.Phase != v1alpha1.NotificationSent && in.Reason == "" {
			j.say("I9", "the intent %s of %s ended as %s without a reason", in.IdempotencyKey, last.Name, in.Phase)
		}
		for _, ob := range j.history.outboxes {
			now := ob.last().obj
			if now.Spec.IdempotencyKey == in.IdempotencyKey && ob.deleted == 0 && string(now.Status.Phase) != string(in.Phase) {
				j.say("I9", "%s says that %s is %s, and the outbox says %s", last.Name, in.OutboxName, in.Phase, now.Status.Phase)
			}
		}
	}
}
