// SPDX-FileCopyrightText: The WorkItem Operator Authors
// SPDX-License-Identifier: Apache-2.0

package dispatcher

import (
	"context"
	"encoding/json"
	"fmt"
	"time"

	"k8s.io/apimachinery/pkg/api/equality"
	"k8s.io/apimachinery/pkg/types"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	logf "sigs.k8s.io/controller-runtime/pkg/log"

	"github.com/workitem-operator/workitem-operator/api/v1alpha1"
	"github.com/workitem-operator/workitem-operator/internal/outbox"
)

// wait leaves an outbox alone until its time comes, and keeps the guarantee that it
// shows honest meanwhile (I11).
func (r *Reconciler) wait(ctx context.Context, f outbox.Facts, d outbox.Decision) (ctrl.Result, error) {
	updated := f.Outbox.DeepCopy()
	changed, counts := false, false
	if d.Counting {
		updated.Status, counts = outbox.Resumed(updated, f.Now)
	}
	updated.Status, changed = outbox.Refreshed(updated, f.Provider, f.Now)
	if changed || counts {
		if err := r.updateStatus(ctx, updated); err != nil {
			return ctrl.Result{}, err
		}
	}
	return wakeAt(d.At, f.Now), nil
}

// holdUp records once what holds an outbox up.
func (r *Reconciler) holdUp(ctx context.Context, f outbox.Facts, d outbox.Decision) (ctrl.Result, error) {
	updated := f.Outbox.DeepCopy()
	updated.Status = outbox.Waiting(f.Outbox, f.Provider, d, f.Now)
	if !equality.Semantic.DeepEqual(updated.Status, f.Outbox.Status) {
		if err := r.updateStatus(ctx, updated); err != nil {
			return ctrl.Result{}, err
		}
		logf.FromContext(ctx).Info("NotificationOutbox is held up", "reason", d.Reason)
		r.eventHeldUp(updated, f.Item, d)
	}
	return wakeAt(outbox.SoonerWindowEnd(&f.Outbox.Status, f.Provider, d.At, f.Now), f.Now), nil
}

// end ends an outbox without a call, under its claim: a Lease that another process
// could create afterwards would prove the wrong thing.
func (r *Reconciler) end(ctx context.Context, f outbox.Facts, d outbox.Decision) (ctrl.Result, error) {
	held, result, err := r.claim(ctx, f)
	if held == nil {
		return result, err
	}
	if r.firstByProof(f, held) {
		return r.endHeld(ctx, f, held, d)
	}
	f, d, err = r.decideAgain(ctx, f, held)
	if err != nil {
		return ctrl.Result{}, err
	}
	if d.Action != outbox.End {
		return ctrl.Result{RequeueAfter: time.Second}, nil
	}
	return r.endHeld(ctx, f, held, d)
}

// endHeld ends an outbox whose claim this process holds.
func (r *Reconciler) endHeld(ctx context.Context, f outbox.Facts, held *holding, d outbox.Decision) (ctrl.Result, error) {
	updated := f.Outbox.DeepCopy()
	updated.Status = outbox.Ended(f.Outbox, held.lost, d, f.Now)
	if err := r.updateStatus(ctx, updated); err != nil {
		return ctrl.Result{}, err
	}
	logf.FromContext(ctx).Info("Ended NotificationOutbox without a call", "phase", d.Phase, "reason", d.Reason)
	r.announceEnd(updated, f.Item)
	return ctrl.Result{}, nil
}

// resolve carries out a person's decision and removes its annotation.
func (r *Reconciler) resolve(ctx context.Context, f outbox.Facts) (ctrl.Result, error) {
	asked := outbox.AskedOf(f.Outbox)
	verdict, why := outbox.Judge(f.Outbox, asked)
	switch verdict {
	case outbox.Done:
	case outbox.Refuse:
		r.eventRefused(f.Outbox, asked, why)
	case outbox.CarryOut:
		done, result, err := r.carryOut(ctx, f, asked)
		if done == nil {
			return result, err
		}
		f.Outbox = done
	}
	return ctrl.Result{}, r.removeDecision(ctx, f.Outbox)
}

// carryOut writes what a person decided. An outbox that is not finished is claimed
// first.
func (r *Reconciler) carryOut(ctx context.Context, f outbox.Facts, asked outbox.Asked) (*v1alpha1.NotificationOutbox, ctrl.Result, error) {
	var lost *outbox.Lost
	if !outbox.Finished(&f.Outbox.Status) {
		held, result, err := r.claim(ctx, f)
		if held == nil {
			return nil, result, err
		}
		lost = held.lost
	}
	updated := f.Outbox.DeepCopy()
	updated.Status = outbox.Decided(f.Outbox, f.Provider, lost, asked, f.Now)
	if err := r.updateStatus(ctx, updated); err != nil {
		return nil, ctrl.Result{}, err
	}
	logf.FromContext(ctx).Info("Carried out decision on NotificationOutbox", "action", asked.Action, "by", asked.By, "phase", updated.Status.Phase)
	r.eventDecision(updated, f.Item, asked)
	return updated, ctrl.Result{}, nil
}

// removeDecision removes the annotations of a decision, and only those that were
// read: one that a person set since is another decision.
func (r *Reconciler) removeDecision(ctx context.Context, ob *v1alpha1.NotificationOutbox) error {
	patch, err := json.Marshal(map[string]any{"metadata": map[string]any{
		"resourceVersion": ob.ResourceVersion,
		"annotations": map[string]any{
			v1alpha1.AnnotationDecision: nil, v1alpha1.AnnotationDecisionReason: nil, v1alpha1.AnnotationDecisionBy: nil,
		},
	}})
	if err != nil {
		return fmt.Errorf("encoding a patch: %w", err)
	}
	patched := ob.DeepCopy()
	if err := r.Client.Patch(ctx, patched, client.RawPatch(types.MergePatchType, patch)); err != nil {
		return err
	}
	r.known.Wrote(patched, r.Clock.Now())
	return nil
}

// collect deletes a finished outbox whose end is reported, and whose time is up. Its
// Lease goes with it, through its owner reference.
func (r *Reconciler) collect(ctx context.Context, f outbox.Facts) (ctrl.Result, error) {
	err := r.Client.Delete(ctx, f.Outbox, client.Preconditions{UID: &f.Outbox.UID, ResourceVersion: &f.Outbox.ResourceVersion})
	if err != nil {
		return ctrl.Result{}, err
	}
	logf.FromContext(ctx).Info("Collected NotificationOutbox", "phase", f.Outbox.Status.Phase)
	return ctrl.Result{}, nil
}
