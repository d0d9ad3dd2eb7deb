// SPDX-FileCopyrightText: The WorkItem Operator Authors
// SPDX-License-Identifier: Apache-2.0

package wrappers

import (
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/workitem-operator/workitem-operator/api/v1alpha1"
)

// Provider builds a NotificationProvider.
type Provider struct{ provider v1alpha1.NotificationProvider }

// MakeProvider begins a webhook with every default of the API.
func MakeProvider(name, namespace string) *Provider {
	return &Provider{provider: v1alpha1.NotificationProvider{
		ObjectMeta: metav1.ObjectMeta{
			Name: name, Namespace: namespace, UID: UID("provider/" + namespace + "/" + name), Generation: 1,
		},
		Spec: v1alpha1.NotificationProviderSpec{
			Type:    v1alpha1.ProviderWebhook,
			Webhook: &v1alpha1.WebhookProvider{URL: "https://hooks.example.com/" + name},
			Idempotency: v1alpha1.Idempotency{
				Mode: v1alpha1.IdempotencyNone, Dialect: v1alpha1.DialectIETF, Window: hold(24 * time.Hour),
			},
			OnAmbiguous:      v1alpha1.AmbiguousRetry,
			Timeout:          hold(10 * time.Second),
			LeaseDuration:    hold(time.Minute),
			Retry:            v1alpha1.RetryPolicy{Deadline: hold(24 * time.Hour), InitialBackoff: hold(time.Second), MaxBackoff: hold(10 * time.Minute)},
			MaxInFlight:      16,
			TTLAfterFinished: hold(168 * time.Hour),
		},
	}}
}

// Obj is the provider.
func (w *Provider) Obj() *v1alpha1.NotificationProvider { return w.provider.DeepCopy() }

// Generation sets metadata.generation.
func (w *Provider) Generation(n int64) *Provider {
	w.provider.Generation = n
	return w
}

// ResourceVersion sets metadata.resourceVersion.
func (w *Provider) ResourceVersion(rv string) *Provider {
	w.provider.ResourceVersion = rv
	return w
}

// URL sets the webhook's URL.
func (w *Provider) URL(url string) *Provider {
	w.provider.Spec.Webhook.URL = url
	return w
}

// URLFrom takes the URL from a Secret.
func (w *Provider) URLFrom(name, key string) *Provider {
	w.provider.Spec.Webhook.URL = ""
	w.provider.Spec.Webhook.URLFrom = &v1alpha1.SecretSource{SecretKeyRef: ref(name, key)}
	return w
}

// Signed names the Secret with the signing keys.
func (w *Provider) Signed(name, key string) *Provider {
	r := ref(name, key)
	w.provider.Spec.Webhook.SigningSecretRef = &r
	return w
}

// CA names the Secret with the authorities to trust.
func (w *Provider) CA(name, key string) *Provider {
	w.provider.Spec.Webhook.TLS = &v1alpha1.WebhookTLS{CASecretRef: ref(name, key)}
	return w
}

// HeaderFrom adds a header whose value is in a Secret.
func (w *Provider) HeaderFrom(header, name, key string) *Provider {
	w.provider.Spec.Webhook.Headers = append(w.provider.Spec.Webhook.Headers, v1alpha1.WebhookHeader{
		Name: header, ValueFrom: &v1alpha1.SecretSource{SecretKeyRef: ref(name, key)},
	})
	return w
}

// Keyed says that the provider keeps keys, and for how long.
func (w *Provider) Keyed(window time.Duration) *Provider {
	w.provider.Spec.Idempotency.Mode = v1alpha1.IdempotencyKeyed
	w.provider.Spec.Idempotency.Window = hold(window)
	return w
}

// OnAmbiguous sets spec.onAmbiguous.
func (w *Provider) OnAmbiguous(p v1alpha1.AmbiguousPolicy) *Provider {
	w.provider.Spec.OnAmbiguous = p
	return w
}

// LeaseDuration sets spec.leaseDuration.
func (w *Provider) LeaseDuration(d time.Duration) *Provider {
	w.provider.Spec.LeaseDuration = hold(d)
	return w
}

// Retry sets spec.retry.
func (w *Provider) Retry(deadline, initial, longest time.Duration) *Provider {
	w.provider.Spec.Retry = v1alpha1.RetryPolicy{Deadline: hold(deadline), InitialBackoff: hold(initial), MaxBackoff: hold(longest)}
	return w
}

// MaxInFlight sets spec.maxInFlight.
func (w *Provider) MaxInFlight(n int32) *Provider {
	w.provider.Spec.MaxInFlight = n
	return w
}

// Suspend sets spec.suspend.
func (w *Provider) Suspend() *Provider {
	w.provider.Spec.Suspend = true
	return w
}

// TTL sets spec.ttlAfterFinished.
func (w *Provider) TTL(d time.Duration) *Provider {
	w.provider.Spec.TTLAfterFinished = hold(d)
	return w
}

// Type sets spec.type.
func (w *Provider) Type(t v1alpha1.ProviderType) *Provider {
	w.provider.Spec.Type = t
	return w
}

// Ready sets the condition Ready, as of the generation set so far.
func (w *Provider) Ready(status metav1.ConditionStatus, reason, message string) *Provider {
	w.provider.Status.Conditions = []metav1.Condition{{
		Type: v1alpha1.ConditionReady, Status: status, Reason: reason, Message: message, ObservedGeneration: w.provider.Generation,
	}}
	return w
}

// Pause sets status.pause.
func (w *Provider) Pause(p *v1alpha1.ProviderPause) *Provider {
	w.provider.Status.Pause = p.DeepCopy()
	return w
}

func ref(name, key string) v1alpha1.SecretKeyReference {
	return v1alpha1.SecretKeyReference{Name: name, Key: key}
}

func hold(d time.Duration) metav1.Duration { return metav1.Duration{Duration: d} }
