// SPDX-FileCopyrightText: The WorkItem Operator Authors
// SPDX-License-Identifier: Apache-2.0

// Package trigger proves the second entrance on a real API server: who is let in, what is
// answered, and that it neither repeats nor loses what the schedule does too.
package trigger

import (
	"context"
	"crypto/tls"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"os"
	"sync/atomic"
	"testing"
	"time"

	"k8s.io/utils/clock"

	"github.com/workitem-operator/workitem-operator/api/v1alpha1"
	"github.com/workitem-operator/workitem-operator/internal/delivery/deliverytest"
	"github.com/workitem-operator/workitem-operator/internal/trigger"
	"github.com/workitem-operator/workitem-operator/test/framework"
)

var (
	// commit is the status write that makes an item overdue.
	commit = framework.Is("update", "workitems/status").And(framework.BodyHas(`"phase":"Overdue"`))
	create = framework.Is("create", "notificationoutboxes")
)

func TestMain(m *testing.M) {
	os.Exit(framework.Main(m)) //nolint:forbidigo // TestMain is the main of the test binary.
}

// answer is what a request was answered.
type answer struct {
	trigger.Result

	status int
	header http.Header
	body   string
}

// asks makes a pass as a caller does. An error says that there was no answer.
func asks(ctx context.Context, url, token string) (answer, error) {
	return send(ctx, http.MethodPost, url, token)
}

func send(ctx context.Context, method, url, token string) (answer, error) {
	req, err := http.NewRequestWithContext(ctx, method, url, http.NoBody)
	if err != nil {
		return answer{}, fmt.Errorf("making a request: %w", err)
	}
	if token != "" {
		req.Header.Set("Authorization", "Bearer "+token)
	}
	resp, err := caller.Do(req)
	if err != nil {
		return answer{}, fmt.Errorf("asking for a pass: %w", err)
	}
	defer func() { _ = resp.Body.Close() }()
	body, err := io.ReadAll(resp.Body)
	if err != nil {
		return answer{}, fmt.Errorf("reading the answer: %w", err)
	}
	out := answer{status: resp.StatusCode, header: resp.Header, body: string(body)}
	if resp.StatusCode == http.StatusOK && resp.Header.Get("Content-Type") == "application/json" {
		err = json.Unmarshal(body, &out.Result)
	}
	return out, err
}

var caller = &http.Client{Transport: &http.Transport{
	TLSClientConfig: &tls.Config{InsecureSkipVerify: true},
}}

// passes makes a pass, which has to be answered 200.
func passes(env *framework.Env, url, token string) answer {
	env.T.Helper()
	got, err := asks(env.Within(framework.Later), url, token)
	if err != nil {
		env.T.Fatal(err)
	}
	if got.status != http.StatusOK {
		env.T.Fatalf("the pass is answered %d: %s", got.status, got.body)
	}
	return got
}

// wantResult fails the test unless a pass says this.
func wantResult(t *testing.T, got answer, processed, notifications int, failed ...string) {
	t.Helper()
	if got.ProcessedCount != processed || got.NotificationCount != notifications || fmt.Sprint(got.FailedNotificationWorkItemIDs) != fmt.Sprint(append([]string{}, failed...)) {
		t.Errorf("the pass is answered %s, want %d, %d and %v", got.body, processed, notifications, failed)
	}
}

// callerWithRight makes a ServiceAccount that may trigger passes in the test's namespace.
func callerWithRight(env *framework.Env) (token string) {
	env.T.Helper()
	token = env.Token("caller")
	env.MayProcess("caller")
	return token
}

// movable is a clock that a test moves ahead. Nobody whose timer already runs is woken up
// by that.
type movable struct {
	clock.RealClock

	ahead *atomic.Int64
}

func newMovable() movable { return movable{ahead: &atomic.Int64{}} }

// move moves it so far that everything that is due in an hour is overdue.
func (c movable) move() { c.ahead.Add(int64(2 * time.Hour)) }

// Now implements clock.PassiveClock.
func (c movable) Now() time.Time { return c.RealClock.Now().Add(time.Duration(c.ahead.Load())) }

// asleep starts a manager with a trigger whose schedule will not look at an item when it
// falls due: that is an hour away, and whoever moves its clock wakes up nobody.
func asleep(env *framework.Env, opts ...framework.ManagerOption) (*framework.Manager, movable) {
	env.T.Helper()
	clk := newMovable()
	return env.StartManager(append(opts, framework.Triggered(), framework.WithClock(clk))...), clk
}

// sleeping makes an item that is due in an hour, and waits until it was looked at.
func sleeping(env *framework.Env, name string, providers ...string) {
	env.T.Helper()
	env.Item(name, framework.DueIn(time.Hour), framework.Notify(providers...))
	env.EventuallyItem(name, "it is open", framework.Soon, func(item *v1alpha1.WorkItem) bool {
		return item.Status.Phase == v1alpha1.PhaseOpen
	})
}

// sent waits until an item reports its one notification as sent.
func sent(env *framework.Env, name string) {
	env.T.Helper()
	env.Reported(name, v1alpha1.NotificationSent, 1)
}

// wantCalls fails the test unless a provider had so many calls, and as many effects.
func wantCalls(t *testing.T, provider *deliverytest.Endpoint, n int) {
	t.Helper()
	if calls, effects := len(provider.Calls()), provider.Effects(); calls != n || effects != n {
		t.Errorf("the provider had %d calls and %d effects, want %d of each", calls, effects, n)
	}
}
