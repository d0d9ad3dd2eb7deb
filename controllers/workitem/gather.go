// SPDX-FileCopyrightText: The WorkItem Operator Authors
// SPDX-License-Identifier: Apache-2.0

package workitem

import (
	"context"
	"fmt"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/workitem-operator/workitem-operator/api/v1alpha1"
	"github.com/workitem-operator/workitem-operator/internal/outbox"
	"github.com/workitem-operator/workitem-operator/internal/overdue"
)

// gather reads everything that the decision depends on. Only what an item does not
// need any more is looked up at the API server.
func (p *pass) gather(ctx context.Context) error {
	p.facts = overdue.Facts{
		Item: p.item, Now: p.now,
		Outboxes: map[string]*v1alpha1.NotificationOutbox{},
		Absent:   map[string]bool{}, Missing: map[string]bool{},
		Taken: map[string]bool{}, Refused: map[string]string{},
	}
	p.decision = overdue.Evaluate(p.item, p.now)
	for i := range p.item.Status.Notifications {
		if err := p.observe(ctx, p.client, &p.item.Status.Notifications[i]); err != nil {
			return err
		}
	}
	if err := p.lookForProviders(ctx); err != nil {
		return err
	}
	for _, in := range overdue.Unneeded(p.item, p.decision) {
		if p.facts.Outboxes[in.OutboxName] != nil {
			continue
		}
		if err := p.observe(ctx, p.api, in); err != nil {
			return err
		}
		// Another object under the name proves as well that there is no outbox.
		p.facts.Absent[in.OutboxName] = p.facts.Outboxes[in.OutboxName] == nil
	}
	return nil
}

// observe looks for the object that has the name of an intent's outbox.
func (p *pass) observe(ctx context.Context, reader client.Reader, in *v1alpha1.Intent) error {
	ob := &v1alpha1.NotificationOutbox{}
	key := client.ObjectKey{Namespace: p.item.Namespace, Name: in.OutboxName}
	err := reader.Get(ctx, key, ob)
	switch {
	case apierrors.IsNotFound(err):
		return nil
	case err != nil:
		return fmt.Errorf("looking for outbox %s: %w", key.Name, err)
	}
	p.created.forget(key)
	p.admit(ob, in)
	return nil
}

// admit takes an object for the outbox of an intent if it is, and else for a
// squatter (I3).
func (p *pass) admit(ob *v1alpha1.NotificationOutbox, in *v1alpha1.Intent) {
	if outbox.Genuine(ob, p.item, in) {
		p.facts.Outboxes[in.OutboxName] = ob
		return
	}
	p.facts.Taken[in.OutboxName] = overdue.Open(in.Phase)
}

// lookForProviders finds out which providers do not exist, of those that an intent
// without an outbox waits for or a transition is about to record.
func (p *pass) lookForProviders(ctx context.Context) error {
	wanted := map[string]bool{}
	for _, in := range p.item.Status.Notifications {
		if overdue.Open(in.Phase) && p.facts.Outboxes[in.OutboxName] == nil {
			wanted[in.ProviderName] = true
		}
	}
	for _, fired := range p.decision.Fired {
		for _, target := range fired.Notify {
			wanted[target.ProviderName] = true
		}
	}
	for name := range wanted {
		provider := &v1alpha1.NotificationProvider{}
		err := p.client.Get(ctx, client.ObjectKey{Namespace: p.item.Namespace, Name: name}, provider)
		if apierrors.IsNotFound(err) {
			p.facts.Missing[name] = true
			continue
		}
		if err != nil {
			return fmt.Errorf("looking for provider %s: %w", name, err)
		}
	}
	return nil
}
