// SPDX-FileCopyrightText: The WorkItem Operator Authors
// SPDX-License-Identifier: Apache-2.0

package trigger

import (
	"fmt"
	"net/http"
	"sync"
	"testing"
	"time"

	"github.com/workitem-operator/workitem-operator/api/v1alpha1"
	"github.com/workitem-operator/workitem-operator/test/framework"
)

// Two hundred callers ask at once, of two replicas whose schedules stay out of it.
func TestTwoHundredCallersShareTwoHundredItems(t *testing.T) {
	t.Parallel()
	const crowd = 200
	env := framework.New(t)
	provider := env.Provider("ops", nil)
	a, itsClock := asleep(env)
	b, othersClock := asleep(env)
	for n := range crowd {
		env.Item(fmt.Sprintf("report-%d", n), framework.DueIn(time.Hour), framework.Notify("ops"))
	}
	env.Eventually("all items are open", framework.Later, func() error {
		return all(env, crowd, func(item *v1alpha1.WorkItem) bool { return item.Status.Phase == v1alpha1.PhaseOpen })
	})
	token := callerWithRight(env)
	urls := []string{a.TriggerURL(), b.TriggerURL()}
	itsClock.move()
	othersClock.move()

	var (
		group sync.WaitGroup
		mu    sync.Mutex
		sum   struct{ processed, notifications, failed int }
	)
	for n := range crowd {
		group.Go(func() {
			got, err := asks(env.T.Context(), urls[n%len(urls)], token)
			mu.Lock()
			defer mu.Unlock()
			if err != nil || got.status != http.StatusOK {
				t.Errorf("a pass is answered %d %s: %v", got.status, got.body, err)
			}
			sum.processed += got.ProcessedCount
			sum.notifications += got.NotificationCount
			sum.failed += len(got.FailedNotificationWorkItemIDs)
		})
	}
	group.Wait()
	if sum.processed != crowd || sum.notifications != crowd || sum.failed != 0 {
		t.Errorf("the answers sum up to %+v, want %d, %d and 0", sum, crowd, crowd)
	}
	env.Eventually("all notifications are sent", framework.Later, func() error {
		return all(env, crowd, func(item *v1alpha1.WorkItem) bool {
			in := item.Status.Notifications
			return len(in) == 1 && in[0].Phase == v1alpha1.NotificationSent
		})
	})
	wantCalls(t, provider, crowd)
	if n := len(env.Outboxes()); n != crowd {
		t.Errorf("there are %d outboxes, want %d", n, crowd)
	}
}

func all(env *framework.Env, n int, wanted func(*v1alpha1.WorkItem) bool) error {
	ready := 0
	for _, item := range env.Items() {
		if wanted(&item) {
			ready++
		}
	}
	if ready < n {
		return fmt.Errorf("%d of %d are", ready, n)
	}
	return nil
}
