// SPDX-FileCopyrightText: The WorkItem Operator Authors
// SPDX-License-Identifier: Apache-2.0

package workitem

import (
	"context"
	"fmt"

	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/builder"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/event"
	"sigs.k8s.io/controller-runtime/pkg/handler"
	"sigs.k8s.io/controller-runtime/pkg/predicate"

	"github.com/workitem-operator/workitem-operator/api/v1alpha1"
	"github.com/workitem-operator/workitem-operator/internal/kube"
	"github.com/workitem-operator/workitem-operator/internal/overdue"
)

const (
	// indexOutboxName finds the items that have an intent for an outbox of a name,
	// whoever made the object that has it now.
	indexOutboxName = "status.notifications.outboxName"
	// indexWaitsFor finds the items that have an open intent for a provider.
	indexWaitsFor = "status.notifications.providerName"
	// workers is how many items are reconciled at once.
	workers = 16
)

// SetupWithManager adds the reconciler, its indexes and its watches to a manager.
func (r *Reconciler) SetupWithManager(ctx context.Context, mgr ctrl.Manager) error {
	fields := mgr.GetFieldIndexer()
	if err := fields.IndexField(ctx, &v1alpha1.WorkItem{}, indexOutboxName, outboxNames); err != nil {
		return fmt.Errorf("indexing WorkItems by outbox: %w", err)
	}
	if err := fields.IndexField(ctx, &v1alpha1.WorkItem{}, indexWaitsFor, waitsFor); err != nil {
		return fmt.Errorf("indexing WorkItems by provider: %w", err)
	}
	return ctrl.NewControllerManagedBy(mgr).
		Named("workitem").
		For(&v1alpha1.WorkItem{}).
		Watches(&v1alpha1.NotificationOutbox{}, handler.EnqueueRequestsFromMapFunc(r.itemsByName(indexOutboxName))).
		Watches(&v1alpha1.NotificationProvider{}, handler.EnqueueRequestsFromMapFunc(r.itemsByName(indexWaitsFor)),
			builder.WithPredicates(comesOrGoes)).
		WithOptions(kube.ControllerOptions(workers)).
		Complete(r)
}

// comesOrGoes lets the events through that tell whether a provider exists; nothing
// else about a provider matters to a WorkItem.
var comesOrGoes = predicate.Funcs{
	UpdateFunc: func(event.UpdateEvent) bool { return false },
}

func outboxNames(obj client.Object) []string {
	item, ok := obj.(*v1alpha1.WorkItem)
	if !ok {
		return nil
	}
	var names []string
	for _, in := range item.Status.Notifications {
		names = append(names, in.OutboxName)
	}
	return names
}

func waitsFor(obj client.Object) []string {
	item, ok := obj.(*v1alpha1.WorkItem)
	if !ok {
		return nil
	}
	var names []string
	for _, in := range item.Status.Notifications {
		if overdue.Open(in.Phase) {
			names = append(names, in.ProviderName)
		}
	}
	return names
}

// itemsByName maps an object to the items that an index lists under its name.
func (r *Reconciler) itemsByName(index string) handler.MapFunc {
	return kube.ByIndex(r.client, func() client.ObjectList { return &v1alpha1.WorkItemList{} }, index)
}
