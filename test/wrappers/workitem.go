// SPDX-FileCopyrightText: The WorkItem Operator Authors
// SPDX-License-Identifier: Apache-2.0

package wrappers

import (
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/workitem-operator/workitem-operator/api/v1alpha1"
)

// WorkItem builds a WorkItem.
type WorkItem struct{ item v1alpha1.WorkItem }

// MakeWorkItem begins an active item without a due time.
func MakeWorkItem(name, namespace string) *WorkItem {
	return &WorkItem{item: v1alpha1.WorkItem{
		ObjectMeta: metav1.ObjectMeta{
			Name: name, Namespace: namespace, UID: UID("workitem/" + namespace + "/" + name), Generation: 1,
		},
		Spec: v1alpha1.WorkItemSpec{Title: "Title of " + name, Priority: v1alpha1.PriorityNormal, State: v1alpha1.StateActive},
	}}
}

// Obj is the item.
func (w *WorkItem) Obj() *v1alpha1.WorkItem { return w.item.DeepCopy() }

// UID sets metadata.uid.
func (w *WorkItem) UID(uid types.UID) *WorkItem {
	w.item.UID = uid
	return w
}

// Generation sets metadata.generation.
func (w *WorkItem) Generation(n int64) *WorkItem {
	w.item.Generation = n
	return w
}

// ResourceVersion sets metadata.resourceVersion.
func (w *WorkItem) ResourceVersion(rv string) *WorkItem {
	w.item.ResourceVersion = rv
	return w
}

// Deleting sets metadata.deletionTimestamp, and the finalizer that it takes.
func (w *WorkItem) Deleting(t time.Time) *WorkItem {
	w.item.DeletionTimestamp = at(t)
	w.item.Finalizers = []string{"example.com/test"}
	return w
}

// Title sets spec.title.
func (w *WorkItem) Title(s string) *WorkItem {
	w.item.Spec.Title = s
	return w
}

// Description sets spec.description.
func (w *WorkItem) Description(s string) *WorkItem {
	w.item.Spec.Description = s
	return w
}

// Assignee sets spec.assignee.
func (w *WorkItem) Assignee(s string) *WorkItem {
	w.item.Spec.Assignee = s
	return w
}

// Priority sets spec.priority.
func (w *WorkItem) Priority(p v1alpha1.WorkItemPriority) *WorkItem {
	w.item.Spec.Priority = p
	return w
}

// Due sets spec.dueTime.
func (w *WorkItem) Due(t time.Time) *WorkItem {
	w.item.Spec.DueTime = at(t)
	return w
}

// State sets spec.state.
func (w *WorkItem) State(s v1alpha1.WorkItemState) *WorkItem {
	w.item.Spec.State = s
	return w
}

// Notify adds providers to spec.notify.
func (w *WorkItem) Notify(providers ...string) *WorkItem {
	w.item.Spec.Notify = append(w.item.Spec.Notify, targets(providers)...)
	return w
}

// Escalate adds a step to spec.escalations.
func (w *WorkItem) Escalate(after time.Duration, providers ...string) *WorkItem {
	w.item.Spec.Escalations = append(w.item.Spec.Escalations, v1alpha1.EscalationStep{
		After: metav1.Duration{Duration: after}, Notify: targets(providers),
	})
	return w
}

// Status sets the whole status.
func (w *WorkItem) Status(st v1alpha1.WorkItemStatus) *WorkItem {
	w.item.Status = *st.DeepCopy()
	return w
}

// Phase sets status.phase.
func (w *WorkItem) Phase(p v1alpha1.WorkItemPhase) *WorkItem {
	w.item.Status.Phase = p
	return w
}

// Occurrence sets status.occurrence.
func (w *WorkItem) Occurrence(n int32) *WorkItem {
	w.item.Status.Occurrence = n
	return w
}

// Level sets status.escalationLevel.
func (w *WorkItem) Level(n int32) *WorkItem {
	w.item.Status.EscalationLevel = n
	return w
}

// OverdueTime sets status.overdueTime.
func (w *WorkItem) OverdueTime(t time.Time) *WorkItem {
	w.item.Status.OverdueTime = at(t)
	return w
}

// Intents adds to status.notifications.
func (w *WorkItem) Intents(in ...v1alpha1.Intent) *WorkItem {
	w.item.Status.Notifications = append(w.item.Status.Notifications, in...)
	return w
}

func targets(providers []string) []v1alpha1.NotifyTarget {
	var out []v1alpha1.NotifyTarget
	for _, name := range providers {
		out = append(out, v1alpha1.NotifyTarget{ProviderName: name})
	}
	return out
}
