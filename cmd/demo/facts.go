// SPDX-FileCopyrightText: The WorkItem Operator Authors
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"encoding/json"
	"fmt"
	"sync"
	"time"

	coordinationv1 "k8s.io/api/coordination/v1"
	"k8s.io/apimachinery/pkg/watch"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/workitem-operator/workitem-operator/api/v1alpha1"
	"github.com/workitem-operator/workitem-operator/internal/delivery/deliverytest"
)

// facts prints each fact as it happens, and knows when nothing has happened for a
// while.
type facts struct {
	out     *printer
	cancel  context.CancelFunc
	changed chan struct{}

	mu      sync.Mutex
	last    time.Time
	writes  int
	phases  map[string]string
	readers sync.WaitGroup
}

// watch follows the objects of the demo and the calls that the receiver gets.
func (s *stage) watch(ctx context.Context, endpoints ...*deliverytest.Endpoint) *facts {
	ctx, cancel := context.WithCancel(ctx)
	f := &facts{out: s.out, cancel: cancel, changed: make(chan struct{}, 1), last: time.Now(), phases: map[string]string{}}
	for _, list := range []client.ObjectList{&v1alpha1.WorkItemList{}, &v1alpha1.NotificationOutboxList{}, &coordinationv1.LeaseList{}} {
		f.readers.Go(func() { f.follow(ctx, s.client, list) })
	}
	for _, ep := range endpoints {
		f.readers.Go(func() { f.listen(ctx, ep) })
	}
	return f
}

func (f *facts) stop() {
	f.cancel()
	f.readers.Wait()
}

func (f *facts) follow(ctx context.Context, c client.WithWatch, list client.ObjectList) {
	w, err := c.Watch(ctx, list, client.InNamespace(namespace))
	if err != nil {
		f.out.say("  cannot watch: %v", err)
		return
	}
	defer w.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case e, ok := <-w.ResultChan():
			if !ok {
				return
			}
			f.tell(e)
		}
	}
}

// tell prints an event if it is one that a reader waits for.
func (f *facts) tell(e watch.Event) {
	f.note()
	switch obj := e.Object.(type) {
	case *v1alpha1.WorkItem:
		f.tellItem(obj)
	case *v1alpha1.NotificationOutbox:
		f.tellOutbox(e.Type, obj)
	case *coordinationv1.Lease:
		if e.Type == watch.Added && obj.Spec.HolderIdentity != nil {
			f.out.fact("claim", "Lease %s created", obj.Name)
		}
	}
	select {
	case f.changed <- struct{}{}:
	default:
	}
}

func (f *facts) tellItem(item *v1alpha1.WorkItem) {
	st := item.Status
	if f.became("item/"+item.Name, fmt.Sprint(st.Phase, st.Occurrence, st.EscalationLevel)) && st.Phase != "" {
		f.out.fact("item", "%s is %s (occurrence %d, escalation level %d, %d intents)", item.Name, st.Phase, st.Occurrence, st.EscalationLevel, len(st.Notifications))
	}
	for _, in := range st.Notifications {
		if f.became("intent/"+in.OutboxName, string(in.Phase)) && in.Phase != v1alpha1.NotificationRecorded {
			f.out.fact("reported", "%s says %s of %s", item.Name, in.Phase, in.OutboxName)
		}
	}
}

func (f *facts) tellOutbox(kind watch.EventType, ob *v1alpha1.NotificationOutbox) {
	if kind == watch.Added && ob.Status.Phase == "" {
		f.out.fact("outbox", "%s created for provider %s", ob.Name, ob.Spec.ProviderName)
	}
	if f.became("outbox/"+ob.Name, string(ob.Status.Phase)) && ob.Status.Phase != "" {
		f.out.fact("outcome", "%s is %s after %d attempts, %s", ob.Name, ob.Status.Phase, ob.Status.Attempts, ob.Status.Guarantee)
	}
}

// listen prints the calls that a receiver's endpoint gets.
func (f *facts) listen(ctx context.Context, ep *deliverytest.Endpoint) {
	for seen := 0; ep.WaitForCalls(ctx, seen+1) == nil; seen++ {
		call := ep.Calls()[seen]
		var event struct {
			Type string
			Data struct{ Title string }
		}
		_ = json.Unmarshal(call.Body, &event)
		f.note()
		f.out.fact("received", "%s %s %q, key %s", call.Path, event.Type, event.Data.Title, call.Key)
	}
}

func (f *facts) became(what, state string) bool {
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.phases[what] == state {
		return false
	}
	f.phases[what] = state
	return true
}

func (f *facts) note() {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.last = time.Now()
	f.writes++
}

func (f *facts) count() int {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.writes
}

// quiet returns when nothing has happened for d since it was called.
func (f *facts) quiet(ctx context.Context, d time.Duration) error {
	since := time.Now()
	for {
		f.mu.Lock()
		last := f.last
		f.mu.Unlock()
		if last.Before(since) {
			last = since
		}
		left := d - time.Since(last)
		if left <= 0 {
			return nil
		}
		select {
		case <-ctx.Done():
			return context.Cause(ctx)
		case <-time.After(left):
		}
	}
}
