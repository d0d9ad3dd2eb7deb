// SPDX-FileCopyrightText: The WorkItem Operator Authors
// SPDX-License-Identifier: Apache-2.0

// Package options reads the manager's flags. The manager has no other
// configuration than these and the cluster.
package options

import (
	"errors"
	"flag"
	"fmt"
	"net/netip"
	"slices"
	"strings"
	"time"

	"k8s.io/apimachinery/pkg/util/validation"
)

// The controllers that a manager can run.
const (
	// WorkItem commits transitions and makes outboxes.
	WorkItem = "workitem"
	// Dispatcher sends outboxes and looks after providers.
	Dispatcher = "dispatcher"
)

// Options are the manager's flags.
type Options struct {
	// MetricsAddress, HealthAddress and TriggerAddress are where the manager listens;
	// "0" is off.
	MetricsAddress, HealthAddress, TriggerAddress string
	// MetricsSecure serves metrics over HTTPS, to those whom the API server knows and who
	// may get /metrics.
	MetricsSecure bool
	// MetricsCertDir is where tls.crt and tls.key for that are, read again when they
	// change; empty is a certificate that nobody has signed.
	MetricsCertDir string
	// TriggerCertDir is where tls.crt and tls.key for the trigger are, read again when they
	// change; empty is a certificate that nobody has signed.
	TriggerCertDir string
	// LeaderElect lets one replica at a time commit transitions. Safety does not need
	// it: it saves the other replicas the writes that would lose.
	LeaderElect bool
	// LeaderElectionNamespace is where the election's Lease is; empty is the manager's
	// own namespace.
	LeaderElectionNamespace string
	// Controllers are the controllers that run: WorkItem, Dispatcher or both.
	Controllers []string
	// WatchNamespaces are the namespaces that are looked after; empty is all.
	WatchNamespaces []string
	// AllowProviderCIDRs are the address ranges that providers may reach although they
	// are closed by default.
	AllowProviderCIDRs []netip.Prefix
	// GracePeriod is how long calls in flight may go on after a stop has begun.
	GracePeriod time.Duration
}

// Bind adds the flags to a flag set. The kubeconfig flag and those of the logger are
// added by the libraries that own them.
func (o *Options) Bind(fs *flag.FlagSet) {
	o.Controllers = []string{WorkItem, Dispatcher}
	fs.StringVar(&o.MetricsAddress, "metrics-bind-address", ":8080", "The address that metrics are served on; 0 turns them off.")
	fs.BoolVar(&o.MetricsSecure, "metrics-secure", false, "Serve metrics over HTTPS, and only to a bearer token whose owner may get /metrics.")
	fs.StringVar(&o.MetricsCertDir, "metrics-cert-dir", "", "The directory with tls.crt and tls.key for --metrics-secure, read again when they change. (default a self-signed certificate)")
	fs.StringVar(&o.HealthAddress, "health-probe-bind-address", ":8081", "The address that /healthz and /readyz are served on; 0 turns them off.")
	fs.StringVar(&o.TriggerAddress, "trigger-bind-address", "0", "The address that the HTTP trigger is served on; 0 turns it off.")
	fs.StringVar(&o.TriggerCertDir, "trigger-cert-dir", "", "The directory with tls.crt and tls.key for the HTTP trigger, read again when they change. (default a self-signed certificate)")
	fs.BoolVar(&o.LeaderElect, "leader-elect", false, "Let one replica at a time commit transitions, which saves lost races. Every replica dispatches in any case.")
	fs.StringVar(&o.LeaderElectionNamespace, "leader-election-namespace", "", "The namespace of the election's Lease; by default the manager's own, and outside of a cluster the first of --watch-namespaces or \"default\".")
	fs.Func("controllers", "The controllers to run, separated by commas: workitem, dispatcher. (default both)", o.setControllers)
	fs.Func("watch-namespaces", "The namespaces to look after, separated by commas. (default all)", o.setNamespaces)
	fs.Func("allow-provider-cidr", "An address range that providers may reach although it is closed by default, such as 127.0.0.0/8. May be repeated.", o.addCIDR)
	fs.DurationVar(&o.GracePeriod, "grace-period", 10*time.Second, "How long calls in flight may go on after a stop has begun, before they are cancelled and recorded as Ambiguous.")
}

func (o *Options) setControllers(value string) error {
	o.Controllers = nil
	for _, name := range split(value) {
		if name != WorkItem && name != Dispatcher {
			return fmt.Errorf("unknown controller %q: write workitem, dispatcher or both separated by a comma", name)
		}
		if !slices.Contains(o.Controllers, name) {
			o.Controllers = append(o.Controllers, name)
		}
	}
	if len(o.Controllers) == 0 {
		return errors.New("at least one controller must run: write workitem, dispatcher or both separated by a comma")
	}
	return nil
}

func (o *Options) setNamespaces(value string) error {
	o.WatchNamespaces = nil
	for _, name := range split(value) {
		if problems := validation.IsDNS1123Label(name); len(problems) > 0 {
			return fmt.Errorf("%q is not the name of a namespace: %s", name, strings.Join(problems, ", "))
		}
		o.WatchNamespaces = append(o.WatchNamespaces, name)
	}
	return nil
}

func (o *Options) addCIDR(value string) error {
	prefix, err := netip.ParsePrefix(strings.TrimSpace(value))
	if err != nil {
		return fmt.Errorf("%q is not an address range: write one such as 10.0.0.0/8 or 127.0.0.1/32", value)
	}
	o.AllowProviderCIDRs = append(o.AllowProviderCIDRs, prefix)
	return nil
}

func split(value string) []string {
	var out []string
	for part := range strings.SplitSeq(value, ",") {
		if part = strings.TrimSpace(part); part != "" {
			out = append(out, part)
		}
	}
	return out
}

// Runs tells whether a controller is to run.
func (o *Options) Runs(controller string) bool { return slices.Contains(o.Controllers, controller) }

// Triggers tells whether the HTTP trigger is served.
func (o *Options) Triggers() bool { return o.TriggerAddress != "0" && o.TriggerAddress != "" }

// Validate says what is wrong with the flags taken together.
func (o *Options) Validate() error {
	if o.Triggers() && !o.Runs(WorkItem) {
		return errors.New("--trigger-bind-address needs the controller workitem: add it to --controllers, or leave the trigger at 0")
	}
	if o.TriggerCertDir != "" && !o.Triggers() {
		return errors.New("--trigger-cert-dir needs --trigger-bind-address")
	}
	if o.MetricsCertDir != "" && !o.MetricsSecure {
		return errors.New("--metrics-cert-dir needs --metrics-secure")
	}
	if o.GracePeriod < 0 || o.GracePeriod > 10*time.Minute {
		return errors.New("--grace-period must be between 0s and 10m")
	}
	return nil
}
