// SPDX-FileCopyrightText: The WorkItem Operator Authors
// SPDX-License-Identifier: Apache-2.0

package invariants

import (
	"context"
	"fmt"
	"sync"

	coordinationv1 "k8s.io/api/coordination/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/watch"
	clientgoscheme "k8s.io/client-go/kubernetes/scheme"
	"k8s.io/client-go/rest"
	watchtools "k8s.io/client-go/tools/watch"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/workitem-operator/workitem-operator/api/v1alpha1"
)

// Recorder records every version of every WorkItem, NotificationOutbox,
// NotificationProvider and claim of an API server.
type Recorder struct {
	client client.WithWatch
	stop   context.CancelFunc
	done   sync.WaitGroup

	mu     sync.Mutex
	spaces map[string]*history
	// failed is why recording ended too early; nil while it goes on.
	failed  error
	changed chan struct{}
}

// kinds are the lists of what is recorded.
func kinds() []client.ObjectList {
	return []client.ObjectList{
		&v1alpha1.WorkItemList{}, &v1alpha1.NotificationOutboxList{}, &v1alpha1.NotificationProviderList{}, &coordinationv1.LeaseList{},
	}
}

// Watch begins to record. What exists already is recorded as it is now. Stop ends it.
func Watch(ctx context.Context, cfg *rest.Config) (*Recorder, error) {
	scheme := runtime.NewScheme()
	for _, add := range []func(*runtime.Scheme) error{clientgoscheme.AddToScheme, v1alpha1.AddToScheme} {
		if err := add(scheme); err != nil {
			return nil, fmt.Errorf("making a scheme: %w", err)
		}
	}
	c, err := client.NewWithWatch(cfg, client.Options{Scheme: scheme})
	if err != nil {
		return nil, fmt.Errorf("making a client: %w", err)
	}
	going, stop := context.WithCancel(context.WithoutCancel(ctx))
	r := &Recorder{client: c, stop: stop, spaces: map[string]*history{}, changed: make(chan struct{})}
	for _, list := range kinds() {
		if err := r.begin(going, list); err != nil {
			r.Stop()
			return nil, err
		}
	}
	return r, nil
}

// Stop ends the recording. What was recorded can still be judged.
func (r *Recorder) Stop() {
	r.stop()
	r.done.Wait()
}

// Forget drops what was recorded of a namespace, and whatever comes later.
func (r *Recorder) Forget(namespace string) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.spaces[namespace] = nil
}

// selector leaves out the Leases of the API server and of leader elections.
func selector(list client.ObjectList) client.ListOption {
	if _, ok := list.(*coordinationv1.LeaseList); ok {
		return client.MatchingLabels{v1alpha1.LabelClaim: v1alpha1.LabelClaimValue}
	}
	return client.MatchingLabels{}
}

// begin lists one kind and records every change from there on, across restarts of
// the API server.
func (r *Recorder) begin(ctx context.Context, list client.ObjectList) error {
	if err := r.client.List(ctx, list, selector(list)); err != nil {
		return fmt.Errorf("listing %T: %w", list, err)
	}
	if err := meta.EachListItem(list, func(o runtime.Object) error { return r.add(o, false) }); err != nil {
		return err
	}
	from := list.GetResourceVersion()
	watcher, err := watchtools.NewRetryWatcherWithContext(ctx, from, &kindWatcher{recorder: r, list: list})
	if err != nil {
		return fmt.Errorf("watching %T: %w", list, err)
	}
	r.done.Go(func() { r.follow(ctx, list, watcher) })
	return nil
}

// kindWatcher opens watches of one kind.
type kindWatcher struct {
	recorder *Recorder
	list     client.ObjectList
}

// WatchWithContext implements cache.WatcherWithContext.
func (k *kindWatcher) WatchWithContext(ctx context.Context, opts metav1.ListOptions) (watch.Interface, error) {
	list, ok := k.list.DeepCopyObject().(client.ObjectList)
	if !ok {
		return nil, fmt.Errorf("%T is no list", k.list)
	}
	return k.recorder.client.Watch(ctx, list, &client.ListOptions{Raw: &opts}, selector(list))
}

func (r *Recorder) follow(ctx context.Context, list client.ObjectList, watcher *watchtools.RetryWatcher) {
	for event := range watcher.ResultChan() {
		var err error
		switch event.Type {
		case watch.Added, watch.Modified:
			err = r.add(event.Object, false)
		case watch.Deleted:
			err = r.add(event.Object, true)
		case watch.Bookmark:
		case watch.Error:
			err = fmt.Errorf("the watch of %T ended: %+v", list, event.Object)
		}
		if err != nil {
			r.fail(err)
			return
		}
	}
	if ctx.Err() == nil {
		r.fail(fmt.Errorf("the watch of %T ended", list))
	}
}

func (r *Recorder) fail(err error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.failed = err
	r.tell()
}

// tell wakes those who wait. The caller holds the mutex.
func (r *Recorder) tell() {
	close(r.changed)
	r.changed = make(chan struct{})
}

// add records a version, or that the object of the last version was deleted.
func (r *Recorder) add(o runtime.Object, deleted bool) error {
	obj, ok := o.(client.Object)
	if !ok {
		return fmt.Errorf("%T is no object", o)
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	h, known := r.spaces[obj.GetNamespace()]
	if known && h == nil {
		return nil // Forgotten.
	}
	if !known {
		h = newHistory()
		r.spaces[obj.GetNamespace()] = h
	}
	defer r.tell()
	return h.add(obj, deleted)
}

// seen waits until everything that was committed in a namespace before the call is
// recorded, and returns it.
func (r *Recorder) seen(ctx context.Context, namespace string) (*history, error) {
	wanted := map[id]string{}
	for _, list := range kinds() {
		if err := r.client.List(ctx, list, client.InNamespace(namespace), selector(list)); err != nil {
			return nil, fmt.Errorf("listing %T: %w", list, err)
		}
		if err := meta.EachListItem(list, func(o runtime.Object) error {
			obj, ok := o.(client.Object)
			if !ok {
				return fmt.Errorf("%T is no object", o)
			}
			wanted[idOf(obj)] = obj.GetResourceVersion()
			return nil
		}); err != nil {
			return nil, err
		}
	}
	for {
		r.mu.Lock()
		h, failed, changed := r.spaces[namespace].clone(), r.failed, r.changed
		r.mu.Unlock()
		if failed != nil {
			return nil, failed
		}
		if h.covers(wanted) {
			return h, nil
		}
		select {
		case <-changed:
		case <-ctx.Done():
			return nil, fmt.Errorf("waiting for the history of %s: %w", namespace, context.Cause(ctx))
		}
	}
}
