// SPDX-FileCopyrightText: The WorkItem Operator Authors
// SPDX-License-Identifier: Apache-2.0

package delivery

import (
	"os"
	"strconv"
	"testing"
	"time"

	"k8s.io/utils/clock"

	"github.com/workitem-operator/workitem-operator/api/v1alpha1"
	"github.com/workitem-operator/workitem-operator/internal/delivery/deliverytest"
	"github.com/workitem-operator/workitem-operator/internal/options"
	"github.com/workitem-operator/workitem-operator/test/framework"
)

// fullVariable asks for the full length of the tests that only wait.
const fullVariable = "WORKITEM_TEST_FULL"

// long is how long a test waits: the short time, unless the full one is asked for.
func long(short, full time.Duration) time.Duration {
	if os.Getenv(fullVariable) != "" {
		return full
	}
	return short
}

// pair is two managers with one item whose call is held.
type pair struct {
	env            *framework.Env
	provider       *deliverytest.Endpoint
	gate           *framework.Gate
	holder, other  *framework.Manager
	outbox         *v1alpha1.NotificationOutbox
	firstCallBegan time.Time
}

// holdCall makes a pair, and returns when the call of one of them is under way. Only
// the holder of the claim commits transitions.
func holdCall(t *testing.T, otherOptions ...framework.ManagerOption) *pair {
	t.Helper()
	p := &pair{env: framework.New(t), gate: framework.NewGate()}
	t.Cleanup(p.gate.Open)
	p.provider = p.env.Provider("ops", held(p.gate))
	p.holder = p.env.StartManager()
	p.env.Item("report", framework.Notify("ops"))
	p.firstCallBegan = p.env.AwaitCalls(p.provider, 1)[0].Time
	p.outbox = p.env.OutboxOf("report", "ops")
	p.other = p.env.StartManager(append([]framework.ManagerOption{framework.Run(options.Dispatcher)}, otherOptions...)...)
	return p
}

// awaitRenewals waits until the claim was renewed so many times.
func (p *pair) awaitRenewals(n int) {
	p.env.T.Helper()
	p.env.Await("renewals", p.holder.Wire.WaitFor(p.env.Within(time.Duration(n)*framework.MinLease+framework.Soon), n, succeeded(updateLease)))
}

// renewalsIn is how often a claim is renewed in so many of its durations.
func renewalsIn(durations int) int { return 3 * durations }

// finish lets the call end, and checks that there was only one.
func (p *pair) finish() {
	p.env.T.Helper()
	p.gate.Open()
	p.env.Reported("report", v1alpha1.NotificationSent, 1)
	wantCalls(p.env.T, p.provider, 1, 1)
	if n := len(p.other.Wire.Requests(succeeded(updateLease))); n != 0 {
		p.env.T.Errorf("the other manager wrote the Lease %d times, want never", n)
	}
	if ob := p.env.GetOutbox(p.outbox.Name); ob.Status.Attempts != 1 || ob.Status.LastAttempt.Holder != p.holder.Identity {
		p.env.T.Errorf("the outbox shows %d attempts, the last by %+v, want 1 by %s", ob.Status.Attempts, ob.Status.LastAttempt, p.holder.Identity)
	}
}

func TestW3_ACallLongerThanTheClaimIsMadeOnce(t *testing.T) {
	t.Parallel()
	p := holdCall(t)
	p.awaitRenewals(renewalsIn(3))
	p.finish()
	wantNoComplaint(t, p.env, p.holder, p.other)
}

func TestFault05_AConflictingSendWaitsWhileTheClaimIsRenewed(t *testing.T) {
	t.Parallel()
	p := holdCall(t)
	first := p.env.GetLease(p.outbox.Name).Spec.RenewTime.Time
	p.awaitRenewals(renewalsIn(2))
	if last := p.env.GetLease(p.outbox.Name).Spec.RenewTime.Time; !last.After(first.Add(framework.MinLease)) {
		t.Errorf("renewTime went from %s to %s", first, last)
	}
	wantCalls(t, p.provider, 1, 0)
	p.finish()
}

func TestFault10_AProviderSlowerThanTheClaimIsCalledOnce(t *testing.T) {
	t.Parallel()
	p := holdCall(t)
	p.awaitRenewals(renewalsIn(int(long(4, 10))))
	p.finish()
}

func TestFault12_ASweepLeavesALiveClaimAlone(t *testing.T) {
	t.Parallel()
	p := holdCall(t)
	// Every change of the outbox makes both managers look at it.
	for n := range renewalsIn(2) {
		p.awaitRenewals(n + 1)
		framework.Change(p.env, &v1alpha1.NotificationOutbox{}, p.outbox.Name, func(ob *v1alpha1.NotificationOutbox) {
			ob.Labels["sweep"] = strconv.Itoa(n)
		})
	}
	p.finish()
}

// skewed is a clock that is wrong by a fixed time.
type skewed struct {
	clock.RealClock
	by time.Duration
}

// Now implements clock.Clock. The monotonic reading moves along.
func (c skewed) Now() time.Time { return c.RealClock.Now().Add(c.by) }

// Since implements clock.Clock.
func (c skewed) Since(t time.Time) time.Duration { return c.Now().Sub(t) }

func TestFault29_AWrongClockTakesNoLiveClaim(t *testing.T) {
	t.Parallel()
	for name, by := range map[string]time.Duration{"ahead": 10 * time.Minute, "behind": -10 * time.Minute} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			p := holdCall(t, framework.WithClock(skewed{by: by}))
			p.awaitRenewals(renewalsIn(2))
			p.finish()
		})
	}
}

func TestFault30_ACallEndsBeforeAClaimThatCannotBeRenewed(t *testing.T) {
	t.Parallel()
	for name, fault := range map[string]func(*framework.Gate) framework.Fault{
		"renewals fail": func(*framework.Gate) framework.Fault { return framework.Unreachable() },
		"renewals hang": framework.HoldUntil,
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			hang := framework.NewGate()
			defer hang.Open() // What hangs would keep the manager from stopping.
			env := framework.New(t)
			gate := framework.NewGate()
			t.Cleanup(gate.Open)
			provider := env.Provider("ops", held(gate), framework.Keyed(v1alpha1.DialectIETF))
			first := env.StartManager(framework.OnWire(func(w *framework.Wire) { w.Inject(updateLease, 0, fault(hang)) }))
			env.Item("report", framework.Notify("ops"))
			env.AwaitCalls(provider, 1)
			second := env.StartManager(framework.Run(options.Dispatcher))
			ob := env.OutboxOf("report", "ops")
			acquired := env.GetLease(ob.Name).Spec.AcquireTime.Time

			ob = env.EventuallyOutbox(ob.Name, "the attempt is Ambiguous", framework.Soon, func(ob *v1alpha1.NotificationOutbox) bool {
				return ob.Status.LastAttempt != nil && ob.Status.LastAttempt.Outcome == v1alpha1.OutcomeAmbiguous
			})
			call := provider.Calls()[0]
			if !call.ClientGone || !call.EndTime.Before(acquired.Add(framework.MinLease)) {
				t.Errorf("the call ended at %s (client gone: %t), want before the claim of %s ran out", call.EndTime, call.ClientGone, acquired)
			}
			if ob.Status.Attempts != 1 || ob.Status.LastAttempt.Holder != first.Identity {
				t.Errorf("the attempt is recorded as %+v", ob.Status.LastAttempt)
			}
			gate.Open() // The provider did have the effect, after all.
			env.Reported("report", v1alpha1.NotificationSent, 1)
			calls := provider.Calls()
			sameRequest(t, calls)
			if calls[1].Header.Get("User-Agent") != second.Identity {
				t.Errorf("the second call is by %s, want the other manager", calls[1].Header.Get("User-Agent"))
			}
			if calls[1].Time.Before(acquired.Add(framework.MinLease)) {
				t.Errorf("the second call came %s after the claim, want not before it ran out", calls[1].Time.Sub(acquired))
			}
			wantCalls(t, provider, 2, 1)
		})
	}
}
