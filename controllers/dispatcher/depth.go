// SPDX-FileCopyrightText: The WorkItem Operator Authors
// SPDX-License-Identifier: Apache-2.0

package dispatcher

import (
	"context"
	"time"

	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/workitem-operator/workitem-operator/api/v1alpha1"
	"github.com/workitem-operator/workitem-operator/internal/metrics"
	"github.com/workitem-operator/workitem-operator/internal/outbox"
)

// countWithin bounds how long a scrape of the metrics may wait for the cache.
const countWithin = 5 * time.Second

// Outboxes counts the outboxes that a cache shows, by provider and phase.
func Outboxes(reader client.Reader) metrics.Outboxes {
	return metrics.Outboxes{Count: func() map[metrics.Depth]int {
		ctx, cancel := context.WithTimeout(context.Background(), countWithin)
		defer cancel()
		list := &v1alpha1.NotificationOutboxList{}
		if err := reader.List(ctx, list, client.UnsafeDisableDeepCopy); err != nil {
			return nil
		}
		counts := map[metrics.Depth]int{}
		for i := range list.Items {
			ob := &list.Items[i]
			phase := ob.Status.Phase
			if !outbox.Finished(&ob.Status) {
				phase = v1alpha1.OutboxPending
			}
			counts[metrics.Depth{Namespace: ob.Namespace, Provider: ob.Spec.ProviderName, Phase: string(phase)}]++
		}
		return counts
	}}
}
