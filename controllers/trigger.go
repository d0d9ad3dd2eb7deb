// SPDX-FileCopyrightText: The WorkItem Operator Authors
// SPDX-License-Identifier: Apache-2.0

package controllers

import (
	"context"
	"fmt"
	"slices"
	"time"

	"k8s.io/apimachinery/pkg/types"
	ctrl "sigs.k8s.io/controller-runtime"

	"github.com/workitem-operator/workitem-operator/controllers/workitem"
	"github.com/workitem-operator/workitem-operator/internal/access"
	"github.com/workitem-operator/workitem-operator/internal/trigger"
)

// addTrigger adds the HTTP trigger to a manager, if it is wanted.
func addTrigger(mgr ctrl.Manager, r *workitem.Reconciler, s Settings) error {
	if !s.Options.Triggers() {
		return nil
	}
	reviewer, err := access.NewForConfig(mgr.GetConfig(), mgr.GetHTTPClient())
	if err != nil {
		return fmt.Errorf("setting up the trigger: %w", err)
	}
	server := &trigger.Server{Options: trigger.Options{
		Address: s.Options.TriggerAddress, CertDir: s.Options.TriggerCertDir, Namespaces: s.Options.WatchNamespaces,
		Passer: passer{r}, Reviewer: reviewer, Clock: s.Clock, Log: mgr.GetLogger().WithName("trigger"),
	}}
	if err := mgr.Add(server); err != nil {
		return fmt.Errorf("adding the trigger: %w", err)
	}
	return nil
}

// passer makes the passes of the trigger with the controller of the schedule.
type passer struct{ reconciler *workitem.Reconciler }

// Pass implements trigger.Passer.
func (p passer) Pass(ctx context.Context, namespace string, wait time.Duration) (trigger.Result, error) {
	pass, err := p.reconciler.ProcessDue(ctx, namespace)
	if err != nil {
		return trigger.Result{}, fmt.Errorf("processing what is due: %w", err)
	}
	failed := slices.Clone(pass.Failed)
	result := trigger.Result{ProcessedCount: len(pass.Committed)}
	for _, c := range pass.Committed {
		result.NotificationCount += len(c.Outboxes)
		if c.Stuck && wait == 0 {
			failed = append(failed, c.Key)
		}
	}
	if wait > 0 {
		waiting, stop := context.WithTimeout(ctx, wait)
		failed = append(failed, p.reconciler.AwaitEnds(waiting, pass.Committed)...)
		stop()
		if err := ctx.Err(); err != nil {
			return trigger.Result{}, fmt.Errorf("waiting for notifications: %w", context.Cause(ctx))
		}
	}
	result.FailedNotificationWorkItemIDs = ids(failed)
	return result, nil
}

func ids(keys []types.NamespacedName) []string {
	out := make([]string, 0, len(keys))
	for _, key := range keys {
		out = append(out, key.String())
	}
	slices.Sort(out)
	return out
}
