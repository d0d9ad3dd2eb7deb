// SPDX-FileCopyrightText: The WorkItem Operator Authors
// SPDX-License-Identifier: Apache-2.0

package dispatcher

import (
	"context"
	"fmt"

	coordinationv1 "k8s.io/api/coordination/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	"k8s.io/client-go/util/workqueue"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/builder"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/event"
	"sigs.k8s.io/controller-runtime/pkg/handler"
	"sigs.k8s.io/controller-runtime/pkg/predicate"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"
	"sigs.k8s.io/controller-runtime/pkg/source"

	"github.com/workitem-operator/workitem-operator/api/v1alpha1"
	"github.com/workitem-operator/workitem-operator/internal/kube"
	"github.com/workitem-operator/workitem-operator/internal/outbox"
)

const (
	// indexItem finds the outboxes of a WorkItem.
	indexItem = "spec.workItemRef.name"
	// indexProvider finds the outboxes that are still to be sent to a provider.
	indexProvider = "spec.providerName"
	// workers is how many outboxes are reconciled at once. None of them ever waits for
	// a provider.
	workers = 16
)

// SetupWithManager adds the reconciler, its indexes, its watches and the courier to
// a manager.
func (r *Reconciler) SetupWithManager(ctx context.Context, mgr ctrl.Manager) error {
	fields := mgr.GetFieldIndexer()
	if err := fields.IndexField(ctx, &v1alpha1.NotificationOutbox{}, indexItem, itemName); err != nil {
		return fmt.Errorf("indexing outboxes by WorkItem: %w", err)
	}
	if err := fields.IndexField(ctx, &v1alpha1.NotificationOutbox{}, indexProvider, unfinishedFor); err != nil {
		return fmt.Errorf("indexing outboxes by provider: %w", err)
	}
	if err := mgr.Add(r.courier); err != nil {
		return fmt.Errorf("adding the courier: %w", err)
	}
	return ctrl.NewControllerManagedBy(mgr).
		Named("dispatcher").
		For(&v1alpha1.NotificationOutbox{}, builder.WithPredicates(predicate.NewPredicateFuncs(r.alive))).
		Watches(&coordinationv1.Lease{}, handler.Funcs{
			CreateFunc: func(_ context.Context, e event.CreateEvent, _ requests) { r.sawLease(e.Object) },
			UpdateFunc: func(_ context.Context, e event.UpdateEvent, _ requests) { r.sawLease(e.ObjectNew) },
			DeleteFunc: func(_ context.Context, e event.DeleteEvent, q requests) {
				q.Add(reconcile.Request{NamespacedName: client.ObjectKeyFromObject(e.Object)})
			},
		}).
		Watches(&v1alpha1.WorkItem{}, handler.EnqueueRequestsFromMapFunc(r.outboxesBy(indexItem)), builder.WithPredicates(matters)).
		Watches(&v1alpha1.NotificationProvider{}, handler.EnqueueRequestsFromMapFunc(r.outboxesBy(indexProvider))).
		WatchesRawSource(source.Channel(r.courier.wakes, &handler.TypedEnqueueRequestForObject[*v1alpha1.NotificationOutbox]{})).
		WithOptions(kube.EveryReplica(kube.ControllerOptions(workers))).
		Complete(r)
}

type requests = workqueue.TypedRateLimitingInterface[reconcile.Request]

// alive notes that the cache of outboxes shows something; it lets everything through.
func (r *Reconciler) alive(obj client.Object) bool {
	r.fresh.note(obj.GetNamespace(), r.Clock.Now())
	return true
}

// sawLease notes a Lease. A renewal is no reason to look at the outbox: whoever waits
// for the claim has a timer of its own.
func (r *Reconciler) sawLease(obj client.Object) {
	if lease, ok := obj.(*coordinationv1.Lease); ok {
		r.claims.observe(lease, r.Clock.Now())
	}
}

// matters lets the changes of a WorkItem through on which an outbox depends.
var matters = predicate.Funcs{
	UpdateFunc: func(e event.UpdateEvent) bool {
		old, ok := e.ObjectOld.(*v1alpha1.WorkItem)
		item, also := e.ObjectNew.(*v1alpha1.WorkItem)
		return !ok || !also || old.Spec.State != item.Spec.State || old.Status.Occurrence != item.Status.Occurrence ||
			(old.DeletionTimestamp == nil) != (item.DeletionTimestamp == nil) ||
			!equality.Semantic.DeepEqual(old.Status.Notifications, item.Status.Notifications)
	},
}

func itemName(obj client.Object) []string {
	if ob, ok := obj.(*v1alpha1.NotificationOutbox); ok {
		return []string{ob.Spec.WorkItemRef.Name}
	}
	return nil
}

func unfinishedFor(obj client.Object) []string {
	if ob, ok := obj.(*v1alpha1.NotificationOutbox); ok && !outbox.Finished(&ob.Status) {
		return []string{ob.Spec.ProviderName}
	}
	return nil
}

// outboxesBy maps an object to the outboxes that an index lists under its name.
func (r *Reconciler) outboxesBy(index string) handler.MapFunc {
	return kube.ByIndex(r.Client, func() client.ObjectList { return &v1alpha1.NotificationOutboxList{} }, index)
}
