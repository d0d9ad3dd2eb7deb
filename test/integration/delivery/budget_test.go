// SPDX-FileCopyrightText: The WorkItem Operator Authors
// SPDX-License-Identifier: Apache-2.0

package delivery

import (
	"fmt"
	"slices"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/workitem-operator/workitem-operator/api/v1alpha1"
	"github.com/workitem-operator/workitem-operator/internal/overdue"
	"github.com/workitem-operator/workitem-operator/test/framework"
)

// notWatch matches everything but watches and what a client asks about the API.
func notWatch(r *framework.Request) bool { return r.Verb != "watch" && r.Verb != "discover" }

func TestBudget_FourWritesToSentAndOneToReportIt(t *testing.T) {
	t.Parallel()
	for name, secret := range map[string]bool{"plain": false, "signed": true} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			env := framework.New(t)
			var options []framework.ProviderOption
			if secret {
				env.Create(signingSecret(env, keyA))
				options = append(options, framework.SignedWith("hook", "whsec"))
			}
			env.Provider("ops", ok, options...)
			m := env.StartManager()
			env.Eventually("the provider is Ready", framework.Soon, func() error {
				if c := providerReady(env); c.Status != metav1.ConditionTrue {
					return errUnexpected(c)
				}
				return nil
			})
			env.Item("report", framework.DueIn(3*time.Second), framework.Notify("ops"))
			env.EventuallyItem("report", "Open", framework.Soon, func(it *v1alpha1.WorkItem) bool { return it.Status.Phase == v1alpha1.PhaseOpen })
			mark := m.Wire.Mark()
			env.Reported("report", v1alpha1.NotificationSent, 1)
			// What comes afterwards would be too much as well.
			env.Stays("the delivery is over", 2*time.Second, func() error { return nil })

			var got []string
			reads := 0
			for _, r := range m.Wire.Since(mark, notWatch) {
				switch {
				case r.Write():
					got = append(got, r.Verb+" "+r.Resource)
				case r.Resource == "events":
				case secret && r.Resource == "secrets":
				default:
					reads++
				}
			}
			want := []string{
				"update workitems/status", "create notificationoutboxes", "create leases",
				"update notificationoutboxes/status", "update workitems/status",
			}
			if diff := cmp.Diff(want, got); diff != "" {
				t.Errorf("the writes of a delivery (-want +got):\n%s", diff)
			}
			if reads != 0 {
				t.Errorf("a delivery took %d reads beyond the cache, want none: %v", reads, m.Wire.Since(mark, framework.AnyRead))
			}
		})
	}
}

func TestBudget_EndsThatAreCloseAreReportedTogether(t *testing.T) {
	t.Parallel()
	env := framework.New(t)
	names := []string{"a", "b", "c", "d"}
	for _, name := range names {
		env.Provider(name, ok)
	}
	m := env.StartManager()
	env.Item("report", framework.Notify(names...))
	env.Reported("report", v1alpha1.NotificationSent, len(names))
	writes := m.Wire.Requests(succeeded(commitItem))
	ends := m.Wire.Requests(succeeded(recordOutbox))
	if len(ends) != len(names) {
		t.Fatalf("%d outcomes were recorded for %d notifications", len(ends), len(names))
	}
	// One write for the transition, one for the ends, and one more for each second that
	// lies between the first end and the last: on a slow machine they are not close.
	span := ends[len(ends)-1].Time.Sub(ends[0].Time)
	if n, most := len(writes), 2+int(span/overdue.ReportWithin); n > most {
		t.Errorf("the item's status was written %d times for %d notifications that ended within %s, want at most %d", n, len(names), span, most)
	}
}

func TestFault33_SettledItemsCostNothing(t *testing.T) {
	env := framework.New(t)
	provider := env.Provider("ops", ok, framework.MaxInFlight(50))
	m := env.StartManager()
	const items = 100
	for n := range items {
		env.Item(fmt.Sprintf("report-%d", n), framework.Notify("ops"))
	}
	env.Item("later", framework.DueIn(time.Hour), framework.Notify("ops"))
	env.Item("never", func(it *v1alpha1.WorkItem) { it.Spec.DueTime = nil })
	for n := range items {
		env.Reported(fmt.Sprintf("report-%d", n), v1alpha1.NotificationSent, 1)
	}
	settled(env)
	before := versions(env)
	mark := m.Wire.Mark()
	env.Stays("nothing is asked or written", long(20*time.Second, 60*time.Second), func() error {
		if got := m.Wire.Since(mark, notWatch); len(got) != 0 {
			return fmt.Errorf("there are %d requests: %v", len(got), got[:min(len(got), 5)])
		}
		return nil
	})
	if diff := cmp.Diff(before, versions(env)); diff != "" {
		t.Errorf("objects changed (-before +after):\n%s", diff)
	}
	wantCalls(t, provider, items, items)
	wantNoComplaint(t, env, m)
}

// settled waits until nothing has changed, Events included, for a while.
func settled(env *framework.Env) {
	env.T.Helper()
	last, since := -1, time.Now()
	env.Eventually("everything is settled", framework.Later, func() error {
		if n := len(env.Events()); n != last {
			last, since = n, time.Now()
		}
		if quiet := time.Since(since); quiet < 3*time.Second {
			return fmt.Errorf("quiet for %s only", quiet)
		}
		return nil
	})
}

// versions are the resourceVersions of all objects of the test.
func versions(env *framework.Env) []string {
	env.T.Helper()
	var out []string
	for _, ob := range env.Outboxes() {
		out = append(out, "outbox "+ob.Name+" "+ob.ResourceVersion, "lease "+ob.Name+" "+env.GetLease(ob.Name).ResourceVersion)
	}
	for _, item := range env.Items() {
		out = append(out, "item "+item.Name+" "+item.ResourceVersion)
	}
	slices.Sort(out)
	return out
}
