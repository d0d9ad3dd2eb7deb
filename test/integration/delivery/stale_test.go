// SPDX-FileCopyrightText: The WorkItem Operator Authors
// SPDX-License-Identifier: Apache-2.0

package delivery

import (
	"fmt"
	"testing"
	"time"

	"k8s.io/client-go/tools/events"
	"k8s.io/utils/clock"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/workitem-operator/workitem-operator/api/v1alpha1"
	"github.com/workitem-operator/workitem-operator/controllers/workitem"
	"github.com/workitem-operator/workitem-operator/internal/kube"
	"github.com/workitem-operator/workitem-operator/internal/options"
	"github.com/workitem-operator/workitem-operator/test/framework"
)

// sawOutbox waits until a manager's cache shows an outbox.
func sawOutbox(env *framework.Env, m *framework.Manager, name string) {
	env.T.Helper()
	env.Eventually("the cache of "+m.Name+" shows the outbox", framework.Soon, func() error {
		return m.Client().Get(env.T.Context(), client.ObjectKey{Namespace: env.Namespace, Name: name}, &v1alpha1.NotificationOutbox{})
	})
}

func TestI5_AStaleCacheOfOutboxesCausesNoCall(t *testing.T) {
	t.Parallel()
	for name, frozen := range map[string][]string{
		"outboxes":            {"notificationoutboxes", "workitems"},
		"outboxes and leases": {"notificationoutboxes", "workitems", "leases"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			env := framework.New(t)
			provider := env.Provider("ops", ok, framework.Suspended)
			first, stale := env.StartManager(), env.StartManager(framework.Run(options.Dispatcher))
			env.Item("report", framework.Notify("ops"))
			ob := env.OutboxOf("report", "ops")
			sawOutbox(env, stale, ob.Name)
			// The stale one hears of the provider last, when all is over.
			thaw := stale.Wire.Freeze("notificationproviders")
			for _, resource := range frozen {
				stale.Wire.Freeze(resource)
			}
			env.ChangeProvider("ops", func(p *v1alpha1.NotificationProvider) { p.Spec.Suspend = false })
			env.Reported("report", v1alpha1.NotificationSent, 1)
			before := env.GetOutbox(ob.Name)
			mark := stale.Wire.Mark()
			thaw()

			// It claims, because it believes that there is something to do; then it reads.
			env.Await("the read after the claim", stale.Wire.WaitFor(env.Within(framework.Later), 1, readOutbox))
			if n := len(stale.Wire.Since(mark, succeeded(updateLease))); n != 1 {
				t.Errorf("the stale manager took the claim over %d times, want once", n)
			}
			env.Stays("the outbox is as it was", 2*time.Second, func() error { return nil })
			if after := env.GetOutbox(ob.Name); after.ResourceVersion != before.ResourceVersion {
				t.Errorf("the stale manager changed the outbox: %+v", after.Status)
			}
			wantCalls(t, provider, 1, 1)
			wantNoComplaint(t, env, first, stale)
		})
	}
}

func TestFault01_AStaleCacheOfItemsWritesNothing(t *testing.T) {
	t.Parallel()
	env := framework.New(t)
	provider := env.Provider("ops", ok)
	first, stale := env.StartManager(), env.StartManager(framework.Run(options.Dispatcher))
	item := env.Item("report", framework.DueIn(4*time.Second), framework.Notify("ops"))
	env.EventuallyItem("report", "Open", framework.Soon, func(it *v1alpha1.WorkItem) bool { return it.Status.Phase == v1alpha1.PhaseOpen })
	env.Eventually("the stale cache shows it as Open", framework.Soon, func() error {
		return stale.Client().Get(t.Context(), client.ObjectKeyFromObject(item), &v1alpha1.WorkItem{})
	})
	stale.Wire.Freeze("workitems")
	settled := env.Reported("report", v1alpha1.NotificationSent, 1)
	mark := stale.Wire.Mark()

	// The first passes have no memory of one another, which is the worst case.
	recorder := kube.Recorder{Events: events.NewFakeRecorder(100)}
	request := ctrl.Request{NamespacedName: client.ObjectKeyFromObject(item)}
	var r *workitem.Reconciler
	for n := range 10 {
		if n <= 5 {
			r = workitem.New(stale.Client(), stale.APIReader(), clock.RealClock{}, recorder)
		}
		result, err := r.Reconcile(t.Context(), request)
		if err != nil || result.RequeueAfter <= 0 {
			t.Errorf("pass %d: got %+v and %v, want another look and no error", n, result, err)
		}
	}
	if n := len(stale.Wire.Since(mark, succeeded(framework.AnyWrite))); n != 0 {
		t.Errorf("the stale passes wrote %d times", n)
	}
	if n := len(stale.Wire.Since(mark, conflicted(commitItem))); n != 6 {
		t.Errorf("%d writes conflicted, want 6: one for each reconciler that had no memory", n)
	}
	if now := env.GetItem("report"); now.ResourceVersion != settled.ResourceVersion {
		t.Errorf("the item changed from %s to %s", settled.ResourceVersion, now.ResourceVersion)
	}
	if n := len(env.Outboxes()); n != 1 {
		t.Errorf("there are %d outboxes, want 1", n)
	}
	wantCalls(t, provider, 1, 1)
	wantNoComplaint(t, env, first, stale)
}

func TestI10_ASecondPassSendsAndWritesNothing(t *testing.T) {
	t.Parallel()
	env := framework.New(t)
	provider := env.Provider("ops", ok)
	first := env.StartManager()
	env.Item("report", framework.Notify("ops"))
	settled := env.Reported("report", v1alpha1.NotificationSent, 1)
	first.Stop()

	second := env.StartManager()
	// A later item of the same kind shows that the second pass is through.
	env.Item("marker", framework.Notify("ops"))
	env.Reported("marker", v1alpha1.NotificationSent, 1)
	about := func(r *framework.Request) bool {
		return r.Write() && (r.Name == "report" || r.Name == settled.Status.Notifications[0].OutboxName)
	}
	if again := second.Wire.Requests(about); len(again) != 0 {
		t.Errorf("the second pass wrote %v", again)
	}
	if now := env.GetItem("report"); now.ResourceVersion != settled.ResourceVersion {
		t.Errorf("the item changed: %+v", now.Status)
	}
	wantCalls(t, provider, 2, 2)
}

func TestI10_AnItemOlderThanItsReportMakesNoOutboxAgain(t *testing.T) {
	t.Parallel()
	env := framework.New(t)
	provider := env.Provider("ops", ok, framework.Suspended, func(p *v1alpha1.NotificationProvider) {
		p.Spec.TTLAfterFinished.Duration = 10 * time.Minute
	})
	env.StartManager()
	env.Item("report", framework.Notify("ops"))
	ob := env.OutboxOf("report", "ops")
	stale := env.StartManager(framework.Run(options.WorkItem))
	sawOutbox(env, stale, ob.Name)
	stale.Wire.Freeze("workitems")
	stale.Wire.Inject(commitItem, 0, framework.FailWith(503)) // It is not the one that reports.
	env.ChangeProvider("ops", func(p *v1alpha1.NotificationProvider) { p.Spec.Suspend = false })
	env.Reported("report", v1alpha1.NotificationSent, 1)
	mark := stale.Wire.Mark()
	framework.ChangeStatus(env, &v1alpha1.NotificationOutbox{}, ob.Name, func(ob *v1alpha1.NotificationOutbox) {
		ob.Status.FinishedTime.Time = time.Now().Add(-time.Hour)
	})

	// Its outbox is collected; the stale one still believes that it is to be sent.
	env.Await("a look at the item", stale.Wire.WaitFor(env.Within(framework.Soon), 1, framework.Is("get", "workitems")))
	env.Stays("no outbox is made", 2*time.Second, func() error {
		if n := len(stale.Wire.Since(mark, createOutbox)); n != 0 {
			return fmt.Errorf("%d were", n)
		}
		return nil
	})
	if n := len(env.Outboxes()); n != 0 {
		t.Errorf("there are %d outboxes, want none", n)
	}
	wantCalls(t, provider, 1, 1)
}
