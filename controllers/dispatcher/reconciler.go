// SPDX-FileCopyrightText: The WorkItem Operator Authors
// SPDX-License-Identifier: Apache-2.0

package dispatcher

import (
	"context"
	"fmt"
	"sync"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/utils/clock"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	logf "sigs.k8s.io/controller-runtime/pkg/log"

	"github.com/workitem-operator/workitem-operator/api/v1alpha1"
	"github.com/workitem-operator/workitem-operator/internal/endpoint"
	"github.com/workitem-operator/workitem-operator/internal/kube"
	"github.com/workitem-operator/workitem-operator/internal/metrics"
	"github.com/workitem-operator/workitem-operator/internal/outbox"
)

// +kubebuilder:rbac:groups=workitem.dev,resources=workitems;notificationproviders,verbs=get;list;watch
// +kubebuilder:rbac:groups=workitem.dev,resources=notificationoutboxes,verbs=get;list;watch;patch;delete
// +kubebuilder:rbac:groups=workitem.dev,resources=notificationoutboxes/status,verbs=update
// +kubebuilder:rbac:groups=coordination.k8s.io,resources=leases,verbs=get;list;watch;create;update
// +kubebuilder:rbac:groups=events.k8s.io,resources=events,verbs=create;patch

const (
	// staleRetry is how soon an outbox is looked at again whose newer version is on
	// its way.
	staleRetry = kube.ConflictFor
	// refusedRetry is how soon a claim that the API server refused is tried again.
	refusedRetry = 30 * time.Second
	// confirmAfter is how long a cache may take to show the WorkItem that an outbox
	// belongs to, before the API server is asked.
	confirmAfter = 2 * time.Second
	// problemRetry is how soon an outbox is looked at again whose provider turned out
	// to lack a Secret that its status does not speak of yet.
	problemRetry = 2 * time.Second
	// slotRetry bounds how long an outbox waits for a slot without being woken.
	slotRetry = 5 * time.Second
)

// Options are what a Reconciler is made of.
type Options struct {
	// Client reads through the cache and writes; API reads from the API server.
	Client client.Client
	API    client.Reader
	// Clock must give times with a monotonic reading.
	Clock clock.WithTicker
	// Events takes the Events on outboxes.
	Events kube.Recorder
	// Identity names this process, unique per start.
	Identity string
	// Resolver makes senders of providers, and Pauses knows which are to be left
	// alone.
	Resolver *endpoint.Resolver
	Pauses   *endpoint.Pauses
	// Grace is how long calls in flight may go on after an orderly stop has begun.
	Grace time.Duration
}

// Reconciler reconciles NotificationOutboxes.
type Reconciler struct {
	Options
	claims  *claims
	gates   *gates
	courier *courier
	fresh   freshness
	known   kube.Versions
	// refusals are the claims that the API server does not allow for now.
	refusals kube.Refusals

	mu        sync.Mutex
	doubtedAt map[types.UID]time.Time
	uids      map[types.NamespacedName]types.UID
}

// New returns a Reconciler.
func New(o Options) *Reconciler {
	r := &Reconciler{
		Options:   o,
		claims:    newClaims(o.Client, o.API, o.Clock, o.Identity),
		courier:   newCourier(o.Clock, o.Grace),
		doubtedAt: map[types.UID]time.Time{},
		uids:      map[types.NamespacedName]types.UID{},
	}
	r.gates = newGates(o.Clock, r.courier.wake)
	return r
}

// Reconcile makes one pass over one outbox; see the package comment for its order.
func (r *Reconciler) Reconcile(ctx context.Context, req ctrl.Request) (ctrl.Result, error) {
	ob := &v1alpha1.NotificationOutbox{}
	if err := r.Client.Get(ctx, req.NamespacedName, ob); err != nil {
		if apierrors.IsNotFound(err) {
			r.forget(req.NamespacedName)
		}
		return ctrl.Result{}, client.IgnoreNotFound(err)
	}
	r.note(req.NamespacedName, ob.UID)
	if r.courier.carries(ob.UID) {
		return ctrl.Result{}, nil // Its end wakes this outbox again.
	}
	if r.known.Behind(ob, r.Clock.Now()) {
		return ctrl.Result{RequeueAfter: staleRetry}, nil
	}
	facts, err := r.gather(ctx, ob)
	if err != nil {
		return ctrl.Result{}, err
	}
	result, err := r.act(ctx, facts, outbox.Decide(facts))
	switch {
	case apierrors.IsConflict(err):
		metrics.Conflict(v1alpha1.KindNotificationOutbox)
		r.known.Outdated(ob, r.Clock.Now())
		logf.FromContext(ctx).V(1).Info("NotificationOutbox changed meanwhile, deciding again")
		return ctrl.Result{RequeueAfter: staleRetry}, nil
	case apierrors.IsNotFound(err):
		return ctrl.Result{RequeueAfter: staleRetry}, nil
	case err != nil:
		return ctrl.Result{}, fmt.Errorf("reconciling NotificationOutbox: %w", err)
	}
	return result, nil
}

// act carries out a decision.
func (r *Reconciler) act(ctx context.Context, f outbox.Facts, d outbox.Decision) (ctrl.Result, error) {
	switch d.Action {
	case outbox.Nothing:
		return ctrl.Result{}, nil
	case outbox.Wait:
		return r.wait(ctx, f, d)
	case outbox.Attempt:
		return r.attempt(ctx, f)
	case outbox.End:
		return r.end(ctx, f, d)
	case outbox.HoldUp:
		return r.holdUp(ctx, f, d)
	case outbox.Confirm:
		return r.confirm(ctx, f)
	case outbox.Collect:
		return r.collect(ctx, f)
	case outbox.Resolve:
		return r.resolve(ctx, f)
	}
	return ctrl.Result{}, fmt.Errorf("unknown action %d", d.Action)
}

// gather reads everything that a decision depends on, from the cache.
func (r *Reconciler) gather(ctx context.Context, ob *v1alpha1.NotificationOutbox) (outbox.Facts, error) {
	f := outbox.Facts{Outbox: ob, Now: r.Clock.Now()}
	item, err := r.item(ctx, r.Client, ob)
	if err != nil {
		return f, err
	}
	f.Item = item
	provider := &v1alpha1.NotificationProvider{}
	err = r.Client.Get(ctx, client.ObjectKey{Namespace: ob.Namespace, Name: ob.Spec.ProviderName}, provider)
	switch {
	case err == nil && provider.DeletionTimestamp == nil:
		f.Provider = provider
		f.Pause = r.Pauses.InForce(provider, f.Now)
	case err != nil && !apierrors.IsNotFound(err):
		return f, fmt.Errorf("looking for provider %s: %w", ob.Spec.ProviderName, err)
	}
	return f, nil
}

// item is the WorkItem of an outbox; nil if there is none of that name and UID.
func (r *Reconciler) item(ctx context.Context, reader client.Reader, ob *v1alpha1.NotificationOutbox) (*v1alpha1.WorkItem, error) {
	item := &v1alpha1.WorkItem{}
	err := reader.Get(ctx, client.ObjectKey{Namespace: ob.Namespace, Name: ob.Spec.WorkItemRef.Name}, item)
	if apierrors.IsNotFound(err) || (err == nil && item.UID != ob.Spec.WorkItemRef.UID) {
		return nil, nil
	}
	if err != nil {
		return nil, fmt.Errorf("looking for WorkItem %s: %w", ob.Spec.WorkItemRef.Name, err)
	}
	return item, nil
}

// confirm asks the API server about the WorkItem once the cache has had its time,
// and decides again.
func (r *Reconciler) confirm(ctx context.Context, f outbox.Facts) (ctrl.Result, error) {
	if left := r.doubt(f.Outbox.UID, f.Now); left > 0 && !outbox.Finished(&f.Outbox.Status) {
		return ctrl.Result{RequeueAfter: left}, nil
	}
	item, err := r.item(ctx, r.API, f.Outbox)
	if err != nil {
		return ctrl.Result{}, err
	}
	f.Item, f.Confirmed = item, true
	return r.act(ctx, f, outbox.Decide(f))
}

// doubt is how long to wait for the cache before the API server is asked.
func (r *Reconciler) doubt(uid types.UID, now time.Time) time.Duration {
	r.mu.Lock()
	defer r.mu.Unlock()
	since, ok := r.doubtedAt[uid]
	if !ok {
		since = now
		r.doubtedAt[uid] = now
	}
	return confirmAfter - now.Sub(since)
}

func (r *Reconciler) note(key types.NamespacedName, uid types.UID) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if old, ok := r.uids[key]; ok && old != uid {
		r.drop(key, old)
	}
	r.uids[key] = uid
}

func (r *Reconciler) forget(key types.NamespacedName) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if uid, ok := r.uids[key]; ok {
		r.drop(key, uid)
	}
}

func (r *Reconciler) drop(key types.NamespacedName, uid types.UID) {
	delete(r.uids, key)
	delete(r.doubtedAt, uid)
	r.known.Forget(uid)
	r.claims.forget(key)
	r.refusals.Forget(key)
	r.courier.forget(uid)
}

// wakeAt is the result that looks at an outbox again at a time; never if it is zero.
func wakeAt(at, now time.Time) ctrl.Result {
	if at.IsZero() {
		return ctrl.Result{}
	}
	return ctrl.Result{RequeueAfter: max(at.Sub(now), time.Millisecond)}
}
