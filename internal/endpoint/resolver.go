// SPDX-FileCopyrightText: The WorkItem Operator Authors
// SPDX-License-Identifier: Apache-2.0

// Package endpoint turns a NotificationProvider into something that can be sent
// to: it reads the Secrets that the provider names, and keeps what this replica
// knows of why a provider must be left alone for now.
//
// Secrets are read by get alone, from the API server, and a value is at most two
// seconds old when it is used: nothing is listed or watched, and no cache holds
// what no provider names. No secret ever leaves the package except inside a
// delivery.Sender.
package endpoint

import (
	"context"
	"crypto/sha256"
	"fmt"
	"slices"
	"strings"
	"sync"

	"k8s.io/apimachinery/pkg/types"
	"k8s.io/utils/clock"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/workitem-operator/workitem-operator/api/v1alpha1"
	"github.com/workitem-operator/workitem-operator/internal/delivery"
	"github.com/workitem-operator/workitem-operator/internal/delivery/webhook"
)

// Problem is why a provider cannot be called: something that a person has to put
// right, as opposed to trouble of the API server.
type Problem struct {
	// Reason is one of the reasons of the provider's condition Ready.
	Reason string
	// Message says what is wrong and names the Secret; it holds no secret.
	Message string
}

// Error makes a Problem an error.
func (p *Problem) Error() string { return p.Message }

// Endpoint is a provider that can be sent to.
type Endpoint struct {
	// Sender makes the calls.
	Sender delivery.Sender
	// Secrets says which versions of which Secrets it was made from, as
	// name@resourceVersion; empty if the provider names none.
	Secrets string
}

// Resolver makes Endpoints. It is safe for concurrent use.
type Resolver struct {
	secrets   secrets
	guard     *delivery.Guard
	userAgent string

	mu      sync.Mutex
	senders map[types.UID]madeSender
}

type madeSender struct {
	fingerprint [sha256.Size]byte
	sender      *webhook.Sender
}

// NewResolver returns a Resolver that reads Secrets from api and lets providers
// reach what guard allows.
func NewResolver(api client.Reader, clk clock.PassiveClock, guard *delivery.Guard, userAgent string) *Resolver {
	return &Resolver{secrets: secrets{api: api, clock: clk}, guard: guard, userAgent: userAgent, senders: map[types.UID]madeSender{}}
}

// Freshness says how old the value of a Secret may be.
type Freshness int

const (
	// Recent accepts a value that was read within the last two seconds.
	Recent Freshness = iota + 1
	// Now reads the Secret again.
	Now
)

// Resolve makes the Endpoint of a provider. The error is a *Problem if a person has
// to put something right.
func (r *Resolver) Resolve(ctx context.Context, provider *v1alpha1.NotificationProvider, fresh Freshness) (Endpoint, error) {
	gatherer := &gatherer{secrets: &r.secrets, namespace: provider.Namespace, fresh: fresh, versions: map[string]string{}}
	cfg, err := gatherer.webhook(ctx, provider)
	ep := Endpoint{Secrets: gatherer.used()}
	if err != nil {
		return ep, err
	}
	cfg.Guard, cfg.UserAgent = r.guard, r.userAgent
	ep.Sender, err = r.sender(provider.UID, cfg)
	return ep, err
}

// sender keeps one Sender for each provider, and with it its connections, until
// the configuration changes.
func (r *Resolver) sender(uid types.UID, cfg webhook.Config) (delivery.Sender, error) {
	made := fingerprint(cfg)
	r.mu.Lock()
	defer r.mu.Unlock()
	known, ok := r.senders[uid]
	if ok && known.fingerprint == made {
		return known.sender, nil
	}
	sender, err := webhook.New(cfg)
	if err != nil {
		return nil, &Problem{Reason: v1alpha1.ReasonSecretInvalid, Message: err.Error()}
	}
	if ok {
		known.sender.Close()
	}
	r.senders[uid] = madeSender{fingerprint: made, sender: sender}
	return sender, nil
}

// Forget lets go of what is kept for a provider that is gone.
func (r *Resolver) Forget(uid types.UID) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if made, ok := r.senders[uid]; ok {
		made.sender.Close()
		delete(r.senders, uid)
	}
}

func fingerprint(cfg webhook.Config) [sha256.Size]byte {
	cfg.Guard = nil
	// Not JSON: it would put the same character for every byte that is no UTF-8.
	return sha256.Sum256(fmt.Appendf(nil, "%#v", cfg))
}

// HasSecrets tells whether a provider names any Secret.
func HasSecrets(provider *v1alpha1.NotificationProvider) bool {
	hook := provider.Spec.Webhook
	if hook == nil {
		return false
	}
	return hook.URLFrom != nil || hook.SigningSecretRef != nil || hook.TLS != nil ||
		slices.ContainsFunc(hook.Headers, func(h v1alpha1.WebhookHeader) bool { return h.ValueFrom != nil })
}

// gatherer reads the values of one provider and notes which versions it used.
type gatherer struct {
	secrets   *secrets
	namespace string
	fresh     Freshness
	versions  map[string]string
}

func (g *gatherer) webhook(ctx context.Context, provider *v1alpha1.NotificationProvider) (webhook.Config, error) {
	hook := provider.Spec.Webhook
	if hook == nil {
		return webhook.Config{}, &Problem{Reason: v1alpha1.ReasonSecretInvalid, Message: "spec.webhook is missing"}
	}
	cfg := webhook.Config{URL: hook.URL, Dialect: webhook.Dialect(provider.Spec.Idempotency.Dialect)}
	if hook.URLFrom != nil {
		value, err := g.value(ctx, hook.URLFrom.SecretKeyRef)
		if err != nil {
			return cfg, err
		}
		cfg.URL, cfg.URLIsSecret = strings.TrimSpace(value), true
	}
	if ref := hook.SigningSecretRef; ref != nil {
		value, err := g.value(ctx, *ref)
		if err != nil {
			return cfg, err
		}
		keys, err := webhook.ParseSigningKeys(value)
		if err != nil {
			return cfg, g.invalid(*ref, err)
		}
		cfg.SigningKeys = keys
	}
	if hook.TLS != nil {
		value, err := g.value(ctx, hook.TLS.CASecretRef)
		if err != nil {
			return cfg, err
		}
		cfg.CABundle = []byte(value)
	}
	return cfg, g.headers(ctx, hook, &cfg)
}

func (g *gatherer) headers(ctx context.Context, hook *v1alpha1.WebhookProvider, cfg *webhook.Config) error {
	for _, h := range hook.Headers {
		header := webhook.Header{Name: h.Name, Value: h.Value}
		if h.ValueFrom != nil {
			value, err := g.value(ctx, h.ValueFrom.SecretKeyRef)
			if err != nil {
				return err
			}
			header.Value, header.Secret = strings.TrimSpace(value), true
		}
		cfg.Headers = append(cfg.Headers, header)
	}
	return nil
}

func (g *gatherer) value(ctx context.Context, ref v1alpha1.SecretKeyReference) (string, error) {
	secret, err := g.secrets.get(ctx, types.NamespacedName{Namespace: g.namespace, Name: ref.Name}, g.fresh)
	if err != nil {
		return "", err
	}
	g.versions[ref.Name] = secret.version
	value, ok := secret.data[ref.Key]
	if !ok || len(strings.TrimSpace(string(value))) == 0 {
		return "", &Problem{Reason: v1alpha1.ReasonSecretNotFound, Message: fmt.Sprintf("the Secret %s has no value under the key %s", ref.Name, ref.Key)}
	}
	return string(value), nil
}

func (g *gatherer) invalid(ref v1alpha1.SecretKeyReference, err error) error {
	return &Problem{Reason: v1alpha1.ReasonSecretInvalid, Message: fmt.Sprintf("the key %s of the Secret %s cannot be used: %s", ref.Key, ref.Name, err)}
}

func (g *gatherer) used() string {
	var out []string
	for name, version := range g.versions {
		out = append(out, name+"@"+version)
	}
	slices.Sort(out)
	return strings.Join(out, ",")
}
