// SPDX-FileCopyrightText: The WorkItem Operator Authors
// SPDX-License-Identifier: Apache-2.0

package framework

import (
	"context"
	"fmt"
	"net/http"
	"net/netip"
	"sync"
	"sync/atomic"
	"time"

	"github.com/go-logr/logr"
	"github.com/google/uuid"
	"k8s.io/client-go/rest"
	"k8s.io/utils/clock"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/workitem-operator/workitem-operator/controllers"
	"github.com/workitem-operator/workitem-operator/internal/delivery"
	"github.com/workitem-operator/workitem-operator/internal/options"
)

// endsWithin is how long a manager that was told to stop may take before the test
// fails.
const endsWithin = 2 * time.Minute

// Manager is a manager inside the test's process.
type Manager struct {
	// Name is how the journal calls it.
	Name string
	// Identity is its name in claims and attempts, and as User-Agent.
	Identity string
	// Wire is what its requests to the API server go through.
	Wire *Wire

	env     *Env
	manager ctrl.Manager
	cancel  context.CancelFunc
	ended   chan struct{}
	err     error
	journal *Journal
	crash   sync.Once
	crashed atomic.Bool
}

type managerConfig struct {
	options options.Options
	name    string
	clock   clock.WithTicker
	faults  func(*Wire)
}

// ManagerOption says how a manager is started.
type ManagerOption func(c *managerConfig)

// Run says which controllers run.
func Run(names ...string) ManagerOption {
	return func(c *managerConfig) { c.options.Controllers = names }
}

// Grace is how long calls in flight may go on after an orderly stop has begun.
func Grace(d time.Duration) ManagerOption {
	return func(c *managerConfig) { c.options.GracePeriod = d }
}

// OnWire prepares the manager's wire before its first request.
func OnWire(prepare func(w *Wire)) ManagerOption {
	return func(c *managerConfig) { c.faults = prepare }
}

// WithClock gives the manager another clock than the machine's.
func WithClock(clk clock.WithTicker) ManagerOption {
	return func(c *managerConfig) { c.clock = clk }
}

// AlsoWatch has the manager look after the namespace of another world, too.
func AlsoWatch(other *Env) ManagerOption {
	return func(c *managerConfig) {
		c.options.WatchNamespaces = append(c.options.WatchNamespaces, other.Namespace)
	}
}

// StartManager starts a manager, as cmd/manager does, and returns when its caches
// are synced. At the end of the test it is stopped.
func (e *Env) StartManager(opts ...ManagerOption) *Manager {
	e.T.Helper()
	e.managers++
	c := managerConfig{
		name:  fmt.Sprintf("manager-%d", e.managers),
		clock: clock.RealClock{},
		options: options.Options{
			MetricsAddress: "0", HealthAddress: "0", TriggerAddress: "0",
			Controllers: []string{options.WorkItem, options.Dispatcher}, WatchNamespaces: []string{e.Namespace},
			AllowProviderCIDRs: []netip.Prefix{netip.MustParsePrefix("127.0.0.0/8")},
			GracePeriod:        time.Second,
		},
	}
	for _, change := range opts {
		change(&c)
	}
	m := &Manager{
		Name: c.name, Identity: c.name + "_" + uuid.NewString(), Wire: newWire(c.name, e.Journal),
		env: e, ended: make(chan struct{}), journal: newJournal(),
	}
	if c.faults != nil {
		c.faults(m.Wire)
	}
	if err := m.start(c); err != nil {
		e.T.Fatalf("starting %s: %v", c.name, err)
	}
	e.T.Cleanup(m.Stop)
	if !m.manager.GetCache().WaitForCacheSync(e.Within(Soon)) {
		e.T.Fatalf("the caches of %s do not sync", c.name)
	}
	e.Journal.Add("%s is started as %s", c.name, m.Identity)
	return m
}

func (m *Manager) start(c managerConfig) error {
	cfg := shared.plane.Config()
	cfg.ContentType = "application/json" // What is recorded shall be readable.
	cfg.UserAgent = m.Identity
	cfg.Wrap(func(next http.RoundTripper) http.RoundTripper { return m.Wire.wrap(next) })
	mgr, err := ctrl.NewManager(rest.CopyConfig(cfg), m.options(c))
	if err != nil {
		return fmt.Errorf("making the manager: %w", err)
	}
	ctx, cancel := context.WithCancel(context.Background())
	m.manager, m.cancel = mgr, cancel
	if err := controllers.Setup(ctx, mgr, controllers.Settings{
		Options: c.options, Identity: m.Identity, Guard: delivery.NewGuard(c.options.AllowProviderCIDRs, nil),
		UserAgent: m.Identity, Clock: c.clock,
	}); err != nil {
		cancel()
		return err
	}
	go func() {
		defer close(m.ended)
		m.err = mgr.Start(ctx)
	}()
	return nil
}

// options are the product's, but for what two managers in one process cannot share.
func (m *Manager) options(c managerConfig) ctrl.Options {
	o := controllers.ManagerOptions(c.options)
	yes := true
	o.Controller.SkipNameValidation = &yes
	o.Logger = logr.New(teeSink{logSink{journal: m.env.Journal, name: m.Name}, logSink{journal: m.journal, name: m.Name}})
	return o
}

// Client is the manager's own, which reads from its caches.
func (m *Manager) Client() client.Client { return m.manager.GetClient() }

// APIReader is the manager's own, which reads from the API server.
func (m *Manager) APIReader() client.Reader { return m.manager.GetAPIReader() }

// ErrorLog returns what the manager logged at level error.
func (m *Manager) ErrorLog() []string { return m.journal.Errors() }

// BeginStop begins an orderly stop and does not wait for its end.
func (m *Manager) BeginStop() { m.cancel() }

// Stop stops the manager in an orderly way and waits until it has ended.
func (m *Manager) Stop() {
	m.env.T.Helper()
	m.cancel()
	limit := time.NewTimer(endsWithin)
	defer limit.Stop()
	select {
	case <-m.ended:
	case <-limit.C:
		m.env.T.Errorf("%s does not end within %s", m.Name, endsWithin)
		return
	}
	if m.err != nil && !m.crashed.Load() {
		m.env.T.Errorf("%s ended with %v", m.Name, m.err)
	}
}

// Crash makes the manager a process that is gone: from now on no request of it
// reaches the API server, no answer reaches it, and no call reaches a provider.
func (m *Manager) Crash() {
	m.crash.Do(func() {
		m.crashed.Store(true)
		m.Wire.cut()
		m.env.Gateway.cut(m.Identity)
		m.cancel()
	})
}

// CrashBefore makes the manager crash when it is about to send a request that
// matches.
func (m *Manager) CrashBefore(match Match) *Injection {
	return m.Wire.Inject(match, 1, Fault{Before: func(context.Context, *Request) error {
		m.Crash()
		return ErrCut
	}})
}

// CrashAfter makes the manager crash when a request that matches was carried out,
// before it hears of that.
func (m *Manager) CrashAfter(match Match) *Injection {
	return m.Wire.Inject(match, 1, Fault{Lose: true, After: func(*Request) { m.Crash() }})
}
