// SPDX-FileCopyrightText: The WorkItem Operator Authors
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"errors"
	"fmt"
	"time"

	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/workitem-operator/workitem-operator/api/v1alpha1"
	"github.com/workitem-operator/workitem-operator/internal/delivery/deliverytest"
	"github.com/workitem-operator/workitem-operator/internal/overdue"
)

const (
	// dueIn is how far in the future the samples are due.
	dueIn = 5 * time.Second
	// patience is how long the demo waits for all notifications.
	patience = 90 * time.Second
	// quiet is how long nothing must be written for a pass to be over.
	quiet = 3 * time.Second
)

// play is the scripted demo.
func play(ctx context.Context) (err error) {
	s, err := newStage(ctx)
	if err != nil {
		return err
	}
	defer func() {
		if closed := s.close(); err == nil {
			err = closed
		}
	}()
	ops := s.receiver.Endpoint("/ops", deliverytest.IETF, nil)
	pager := s.receiver.Endpoint("/pager", deliverytest.None, nil)
	if err := s.startManager(ctx); err != nil {
		return err
	}
	facts := s.watch(ctx, ops, pager)
	defer facts.stop()
	due := time.Now().Add(dueIn + time.Second).Truncate(time.Second)
	if err := s.apply(ctx, due); err != nil {
		return err
	}
	s.out.say("\nWhat happens, as the API server and the receiver see it:")
	items, expected, err := s.settled(ctx, facts)
	if err != nil {
		return err
	}
	if err := s.show(ctx); err != nil {
		return err
	}
	calls, effects := len(ops.Calls())+len(pager.Calls()), ops.Effects()+pager.Effects()
	repeated, err := s.secondPass(ctx, facts, calls, ops, pager)
	if err != nil {
		return err
	}
	s.out.say("\ndemo: %d items, %d calls, %d effects, %d repeated on the second pass", items, calls, effects, repeated)
	return verdict(expected, ops, pager, calls, effects, repeated)
}

// settled waits until every item is overdue or done, and every notification has
// ended. It counts the items and the notifications that there must be.
func (s *stage) settled(ctx context.Context, facts *facts) (items, notifications int, err error) {
	ctx, cancel := context.WithTimeout(ctx, patience)
	defer cancel()
	for {
		list := &v1alpha1.WorkItemList{}
		if err := s.client.List(ctx, list, client.InNamespace(namespace)); err != nil {
			return 0, 0, fmt.Errorf("listing the items: %w", err)
		}
		notifications, done := progress(list.Items)
		if done {
			return len(list.Items), notifications, facts.quiet(ctx, quiet)
		}
		select {
		case <-ctx.Done():
			return 0, 0, errors.New("not every notification ended in time; the manager's log is bin/manager.log")
		case <-facts.changed:
		}
	}
}

// progress counts the notifications that the items ask for, and tells whether all of
// them have ended.
func progress(items []v1alpha1.WorkItem) (notifications int, done bool) {
	done = true
	for i := range items {
		item := &items[i]
		if !overdue.Active(item) {
			done = done && item.Status.Phase != "" && item.Status.Phase != v1alpha1.PhaseOpen
			continue
		}
		wanted := len(item.Spec.Notify)
		for _, step := range item.Spec.Escalations {
			wanted += len(step.Notify)
		}
		notifications += wanted
		ended := 0
		for _, in := range item.Status.Notifications {
			if !overdue.Open(in.Phase) {
				ended++
			}
		}
		done = done && ended == wanted
	}
	return notifications, done
}

// show prints what kubectl prints.
func (s *stage) show(ctx context.Context) error {
	for _, kind := range []string{"wi", "nob", "np", "leases"} {
		if err := s.kubectl(ctx, nil, "-n", namespace, "get", kind); err != nil {
			return err
		}
	}
	return nil
}

// secondPass stops the manager and starts a new one over the same data. It has
// nothing in memory, and must find nothing to do.
func (s *stage) secondPass(ctx context.Context, facts *facts, before int, endpoints ...*deliverytest.Endpoint) (int, error) {
	s.out.say("\nStopping the manager, and starting a new one over the same data.")
	if err := s.stopManager(); err != nil {
		return 0, err
	}
	written := facts.count()
	if err := s.startManager(ctx); err != nil {
		return 0, err
	}
	// The new manager is ready: its caches are filled, and what it does from here is
	// its second pass.
	if err := facts.quiet(ctx, 2*quiet); err != nil {
		return 0, err
	}
	calls := 0
	for _, ep := range endpoints {
		calls += len(ep.Calls())
	}
	s.out.say("The second pass wrote %d objects and made %d calls.", facts.count()-written, calls-before)
	return calls - before, nil
}

// verdict compares what the receiver got with what was asked for.
func verdict(expected int, ops, pager *deliverytest.Endpoint, calls, effects, repeated int) error {
	keys := len(ops.EffectsByKey()) + len(pager.EffectsByKey())
	if calls != expected || effects != expected || keys != expected || repeated != 0 {
		return fmt.Errorf("the receiver should have got each of %d notifications once, and no more: %d calls, %d effects, %d keys, %d repeated",
			expected, calls, effects, keys, repeated)
	}
	return nil
}
