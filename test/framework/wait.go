// SPDX-FileCopyrightText: The WorkItem Operator Authors
// SPDX-License-Identifier: Apache-2.0

package framework

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	coordinationv1 "k8s.io/api/coordination/v1"
	eventsv1 "k8s.io/api/events/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/workitem-operator/workitem-operator/api/v1alpha1"
	"github.com/workitem-operator/workitem-operator/internal/delivery/deliverytest"
)

// The limits of waits. A test that passes never reaches one; they are long because
// a busy machine may be slow.
const (
	// Soon is for what happens by itself, without a timer of the product.
	Soon = 60 * time.Second
	// Later is for what waits for a claim to run out, or for several backoffs.
	Later = 120 * time.Second

	pollEvery = 50 * time.Millisecond
)

// Eventually asks again and again until the answer is nil, and fails the test when
// that takes longer than limit.
func (e *Env) Eventually(what string, limit time.Duration, ask func() error) {
	e.T.Helper()
	deadline := time.NewTimer(limit)
	defer deadline.Stop()
	tick := time.NewTicker(pollEvery)
	defer tick.Stop()
	for {
		err := ask()
		if err == nil {
			return
		}
		select {
		case <-tick.C:
		case <-deadline.C:
			e.T.Fatalf("%s: not within %s: %v", what, limit, err)
		}
	}
}

// Stays asks again and again for as long as d, and fails the test as soon as the
// answer is an error. It proves that something does not happen, as far as waiting
// can prove that.
func (e *Env) Stays(what string, d time.Duration, ask func() error) {
	e.T.Helper()
	deadline := time.NewTimer(d)
	defer deadline.Stop()
	tick := time.NewTicker(pollEvery)
	defer tick.Stop()
	for {
		if err := ask(); err != nil {
			e.T.Fatalf("%s: %v", what, err)
		}
		select {
		case <-tick.C:
		case <-deadline.C:
			return
		}
	}
}

// Within is a context that ends after limit.
func (e *Env) Within(limit time.Duration) context.Context {
	ctx, stop := context.WithTimeoutCause(e.T.Context(), limit, fmt.Errorf("not within %s", limit))
	e.T.Cleanup(stop)
	return ctx
}

// Afterwards is a context for what is left to do when the context of a test has
// ended.
func Afterwards() (ctx context.Context, stop context.CancelFunc) {
	return context.WithTimeout(context.Background(), Soon)
}

// Await fails the test if a wait has failed.
func (e *Env) Await(what string, err error) {
	e.T.Helper()
	if err != nil {
		e.T.Fatalf("%s: %v", what, err)
	}
}

// AwaitCalls waits until an endpoint was called n times.
func (e *Env) AwaitCalls(endpoint *deliverytest.Endpoint, n int) []deliverytest.Call {
	e.T.Helper()
	e.Await("calls to the provider", endpoint.WaitForCalls(e.Within(Later), n))
	return endpoint.Calls()
}

// GetItem reads a WorkItem.
func (e *Env) GetItem(name string) *v1alpha1.WorkItem {
	e.T.Helper()
	item := &v1alpha1.WorkItem{}
	e.get(name, item)
	return item
}

// GetOutbox reads a NotificationOutbox.
func (e *Env) GetOutbox(name string) *v1alpha1.NotificationOutbox {
	e.T.Helper()
	ob := &v1alpha1.NotificationOutbox{}
	e.get(name, ob)
	return ob
}

// GetLease reads a Lease.
func (e *Env) GetLease(name string) *coordinationv1.Lease {
	e.T.Helper()
	lease := &coordinationv1.Lease{}
	e.get(name, lease)
	return lease
}

func (e *Env) get(name string, obj client.Object) {
	e.T.Helper()
	if err := e.Client.Get(e.T.Context(), client.ObjectKey{Namespace: e.Namespace, Name: name}, obj); err != nil {
		e.T.Fatalf("reading %T %s: %v", obj, name, err)
	}
}

// Outboxes lists the outboxes of the test.
func (e *Env) Outboxes() []v1alpha1.NotificationOutbox {
	e.T.Helper()
	var list v1alpha1.NotificationOutboxList
	if err := e.Client.List(e.T.Context(), &list, client.InNamespace(e.Namespace)); err != nil {
		e.T.Fatal("listing outboxes:", err)
	}
	return list.Items
}

// Events lists the Events of the test.
func (e *Env) Events() []eventsv1.Event {
	e.T.Helper()
	var list eventsv1.EventList
	if err := e.Client.List(e.T.Context(), &list, client.InNamespace(e.Namespace)); err != nil {
		e.T.Fatal("listing Events:", err)
	}
	return list.Items
}

// EventuallyItem waits until a WorkItem is as wanted.
func (e *Env) EventuallyItem(name, what string, limit time.Duration, wanted func(*v1alpha1.WorkItem) bool) *v1alpha1.WorkItem {
	e.T.Helper()
	item := &v1alpha1.WorkItem{}
	e.Eventually("WorkItem "+name+": "+what, limit, func() error {
		item = &v1alpha1.WorkItem{}
		if err := e.Client.Get(e.T.Context(), client.ObjectKey{Namespace: e.Namespace, Name: name}, item); err != nil {
			return err
		}
		if !wanted(item) {
			return fmt.Errorf("its status is %+v", item.Status)
		}
		return nil
	})
	return item
}

// EventuallyOutbox waits until an outbox is as wanted.
func (e *Env) EventuallyOutbox(name, what string, limit time.Duration, wanted func(*v1alpha1.NotificationOutbox) bool) *v1alpha1.NotificationOutbox {
	e.T.Helper()
	ob := &v1alpha1.NotificationOutbox{}
	e.Eventually("NotificationOutbox "+name+": "+what, limit, func() error {
		ob = &v1alpha1.NotificationOutbox{}
		if err := e.Client.Get(e.T.Context(), client.ObjectKey{Namespace: e.Namespace, Name: name}, ob); err != nil {
			return err
		}
		if !wanted(ob) {
			return fmt.Errorf("its status is %+v", ob.Status)
		}
		return nil
	})
	return ob
}

// OutboxOf waits until an item has an intent for a provider whose outbox exists, and
// returns that outbox. Of several the last one counts.
func (e *Env) OutboxOf(item, provider string) *v1alpha1.NotificationOutbox {
	e.T.Helper()
	ob := &v1alpha1.NotificationOutbox{}
	e.Eventually("the outbox of "+item+" for "+provider, Soon, func() error {
		it := &v1alpha1.WorkItem{}
		if err := e.Client.Get(e.T.Context(), client.ObjectKey{Namespace: e.Namespace, Name: item}, it); err != nil {
			return err
		}
		for _, in := range slices.Backward(it.Status.Notifications) {
			if in.ProviderName == provider {
				ob = &v1alpha1.NotificationOutbox{}
				return e.Client.Get(e.T.Context(), client.ObjectKey{Namespace: e.Namespace, Name: in.OutboxName}, ob)
			}
		}
		return errors.New("there is no intent yet")
	})
	return ob
}

// Reported waits until the WorkItem says of all its notifications that they ended
// in this phase, of which there are n.
func (e *Env) Reported(item string, phase v1alpha1.NotificationPhase, n int) *v1alpha1.WorkItem {
	e.T.Helper()
	return e.EventuallyItem(item, fmt.Sprintf("%d notifications are %s", n, phase), Later, func(it *v1alpha1.WorkItem) bool {
		count := 0
		for _, in := range it.Status.Notifications {
			if in.Phase == phase {
				count++
			}
		}
		return count == n && len(it.Status.Notifications) == n
	})
}

// InPhase is whether an outbox is in a phase.
func InPhase(phase v1alpha1.OutboxPhase) func(*v1alpha1.NotificationOutbox) bool {
	return func(ob *v1alpha1.NotificationOutbox) bool { return ob.Status.Phase == phase }
}

// DeliveredReason is the reason of an outbox's condition Delivered.
func DeliveredReason(ob *v1alpha1.NotificationOutbox) string {
	if c := meta.FindStatusCondition(ob.Status.Conditions, v1alpha1.ConditionDelivered); c != nil {
		return c.Reason
	}
	return ""
}

// Because is whether the reason of an outbox's condition Delivered is this one.
func Because(reason string) func(*v1alpha1.NotificationOutbox) bool {
	return func(ob *v1alpha1.NotificationOutbox) bool { return DeliveredReason(ob) == reason }
}

// Condition is a condition of a WorkItem; its zero value if there is none.
func Condition(item *v1alpha1.WorkItem, kind string) metav1.Condition {
	if c := meta.FindStatusCondition(item.Status.Conditions, kind); c != nil {
		return *c
	}
	return metav1.Condition{}
}

// EventuallyEvent waits for an Event with this reason on an object of this kind and
// name.
func (e *Env) EventuallyEvent(kind, name, reason string) eventsv1.Event {
	e.T.Helper()
	var found eventsv1.Event
	e.Eventually("the Event "+reason+" on "+kind+" "+name, Soon, func() error {
		for _, ev := range e.Events() {
			if ev.Regarding.Kind == kind && ev.Regarding.Name == name && ev.Reason == reason {
				found = ev
				return nil
			}
		}
		return errors.New("there is none")
	})
	return found
}

// Items lists the WorkItems of the test.
func (e *Env) Items() []v1alpha1.WorkItem {
	e.T.Helper()
	var list v1alpha1.WorkItemList
	if err := e.Client.List(e.T.Context(), &list, client.InNamespace(e.Namespace)); err != nil {
		e.T.Fatal("listing WorkItems:", err)
	}
	return list.Items
}
