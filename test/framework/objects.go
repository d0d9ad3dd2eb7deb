// SPDX-FileCopyrightText: The WorkItem Operator Authors
// SPDX-License-Identifier: Apache-2.0

package framework

import (
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/workitem-operator/workitem-operator/api/v1alpha1"
	"github.com/workitem-operator/workitem-operator/internal/delivery/deliverytest"
)

// MinLease is the shortest leaseDuration that admission lets through.
const MinLease = 5 * time.Second

// ProviderOption changes a NotificationProvider that is about to be created.
type ProviderOption func(p *v1alpha1.NotificationProvider)

// Keyed says that the provider keeps idempotency keys, in this dialect.
func Keyed(dialect v1alpha1.IdempotencyDialect) ProviderOption {
	return func(p *v1alpha1.NotificationProvider) {
		p.Spec.Idempotency.Mode, p.Spec.Idempotency.Dialect = v1alpha1.IdempotencyKeyed, dialect
	}
}

// Timeout is how long one call may take.
func Timeout(d time.Duration) ProviderOption {
	return func(p *v1alpha1.NotificationProvider) { p.Spec.Timeout.Duration = d }
}

// Retry is the retry policy.
func Retry(deadline, initial, longest time.Duration) ProviderOption {
	return func(p *v1alpha1.NotificationProvider) {
		p.Spec.Retry.Deadline.Duration, p.Spec.Retry.InitialBackoff.Duration, p.Spec.Retry.MaxBackoff.Duration = deadline, initial, longest
	}
}

// MaxInFlight is how many calls each replica may make at once.
func MaxInFlight(n int32) ProviderOption {
	return func(p *v1alpha1.NotificationProvider) { p.Spec.MaxInFlight = n }
}

// HoldAmbiguous leaves ambiguous outcomes to a person.
func HoldAmbiguous(p *v1alpha1.NotificationProvider) { p.Spec.OnAmbiguous = v1alpha1.AmbiguousHold }

// Suspended suspends the provider.
func Suspended(p *v1alpha1.NotificationProvider) { p.Spec.Suspend = true }

// SignedWith names the Secret that calls are signed with.
func SignedWith(secret, key string) ProviderOption {
	return func(p *v1alpha1.NotificationProvider) {
		p.Spec.Webhook.SigningSecretRef = &v1alpha1.SecretKeyReference{Name: secret, Key: key}
	}
}

// NewProvider is a provider that calls the endpoint of its name: with the shortest
// claim, a timeout that does not matter, and short backoffs.
func (e *Env) NewProvider(name string, options ...ProviderOption) *v1alpha1.NotificationProvider {
	p := &v1alpha1.NotificationProvider{ObjectMeta: metav1.ObjectMeta{Namespace: e.Namespace, Name: name}}
	p.Spec.Type = v1alpha1.ProviderWebhook
	p.Spec.Webhook = &v1alpha1.WebhookProvider{URL: e.Gateway.URL("/" + name)}
	p.Spec.LeaseDuration.Duration = MinLease
	p.Spec.Timeout.Duration = 2 * time.Minute
	Retry(time.Hour, 100*time.Millisecond, time.Second)(p)
	for _, change := range options {
		change(p)
	}
	return p
}

// Provider creates a provider and opens its endpoint, which keeps keys as the IETF
// draft says if the provider is said to keep any.
func (e *Env) Provider(name string, script deliverytest.Script, options ...ProviderOption) *deliverytest.Endpoint {
	e.T.Helper()
	p := e.NewProvider(name, options...)
	dialect := deliverytest.None
	if p.Spec.Idempotency.Mode == v1alpha1.IdempotencyKeyed {
		dialect = deliverytest.Dialect(p.Spec.Idempotency.Dialect)
	}
	endpoint := e.Endpoint(name, dialect, script)
	e.Create(p)
	return endpoint
}

// ItemOption changes a WorkItem that is about to be created.
type ItemOption func(item *v1alpha1.WorkItem)

// Due is when the item becomes overdue, in whole seconds and not before at.
func Due(at time.Time) ItemOption {
	return func(item *v1alpha1.WorkItem) { item.Spec.DueTime = DueTime(at) }
}

// DueTime is a time as spec.dueTime takes it: in whole seconds, not before at.
func DueTime(at time.Time) *metav1.Time {
	return &metav1.Time{Time: at.Add(time.Second - time.Nanosecond).UTC().Truncate(time.Second)}
}

// DueIn is when the item becomes overdue, from now.
func DueIn(d time.Duration) ItemOption { return Due(time.Now().Add(d)) }

// Notify says who hears that the item is overdue.
func Notify(providers ...string) ItemOption {
	return func(item *v1alpha1.WorkItem) { item.Spec.Notify = targets(providers) }
}

// Escalate adds a step of escalations.
func Escalate(after time.Duration, providers ...string) ItemOption {
	return func(item *v1alpha1.WorkItem) {
		item.Spec.Escalations = append(item.Spec.Escalations, v1alpha1.EscalationStep{
			After: metav1.Duration{Duration: after}, Notify: targets(providers),
		})
	}
}

func targets(providers []string) []v1alpha1.NotifyTarget {
	var out []v1alpha1.NotifyTarget
	for _, name := range providers {
		out = append(out, v1alpha1.NotifyTarget{ProviderName: name})
	}
	return out
}

// NewItem is a WorkItem that has been due for a minute and notifies nobody.
func (e *Env) NewItem(name string, options ...ItemOption) *v1alpha1.WorkItem {
	item := &v1alpha1.WorkItem{ObjectMeta: metav1.ObjectMeta{Namespace: e.Namespace, Name: name}}
	item.Spec.Title = "Do " + name
	Due(time.Now().Add(-time.Minute))(item)
	for _, change := range options {
		change(item)
	}
	return item
}

// Item creates a WorkItem.
func (e *Env) Item(name string, options ...ItemOption) *v1alpha1.WorkItem {
	e.T.Helper()
	item := e.NewItem(name, options...)
	e.Create(item)
	return item
}

// Create creates an object.
func (e *Env) Create(obj client.Object) {
	e.T.Helper()
	if err := e.Client.Create(e.T.Context(), obj); err != nil {
		e.T.Fatalf("creating %T %s: %v", obj, obj.GetName(), err)
	}
}

// Change changes an object, as it is now and whoever else changes it: this is a
// person, not a controller.
func Change[T client.Object](e *Env, obj T, name string, change func(T)) T {
	e.T.Helper()
	e.Eventually("the change of "+name, Soon, func() error {
		if err := e.Client.Get(e.T.Context(), client.ObjectKey{Namespace: e.Namespace, Name: name}, obj); err != nil {
			return err
		}
		change(obj)
		return e.Client.Update(e.T.Context(), obj)
	})
	return obj
}

// ChangeStatus changes the status of an object.
func ChangeStatus[T client.Object](e *Env, obj T, name string, change func(T)) {
	e.T.Helper()
	e.Eventually("the change of the status of "+name, Soon, func() error {
		if err := e.Client.Get(e.T.Context(), client.ObjectKey{Namespace: e.Namespace, Name: name}, obj); err != nil {
			return err
		}
		change(obj)
		return e.Client.Status().Update(e.T.Context(), obj)
	})
}

// ChangeItem changes a WorkItem.
func (e *Env) ChangeItem(name string, change func(*v1alpha1.WorkItem)) {
	e.T.Helper()
	Change(e, &v1alpha1.WorkItem{}, name, change)
}

// ChangeProvider changes a NotificationProvider.
func (e *Env) ChangeProvider(name string, change func(*v1alpha1.NotificationProvider)) {
	e.T.Helper()
	Change(e, &v1alpha1.NotificationProvider{}, name, change)
}

// Decide puts a person's decision on an outbox.
func (e *Env) Decide(outbox string, action v1alpha1.DecisionAction, reason, by string) {
	e.T.Helper()
	Change(e, &v1alpha1.NotificationOutbox{}, outbox, func(ob *v1alpha1.NotificationOutbox) {
		if ob.Annotations == nil {
			ob.Annotations = map[string]string{}
		}
		ob.Annotations[v1alpha1.AnnotationDecision] = string(action)
		ob.Annotations[v1alpha1.AnnotationDecisionReason] = reason
		ob.Annotations[v1alpha1.AnnotationDecisionBy] = by
	})
}
