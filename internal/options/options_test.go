// SPDX-FileCopyrightText: The WorkItem Operator Authors
// SPDX-License-Identifier: Apache-2.0

package options_test

import (
	"flag"
	"io"
	"net/netip"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"

	"github.com/workitem-operator/workitem-operator/internal/options"
)

func parse(args ...string) (options.Options, error) {
	var o options.Options
	fs := flag.NewFlagSet("manager", flag.ContinueOnError)
	fs.SetOutput(io.Discard)
	o.Bind(fs)
	if err := fs.Parse(args); err != nil {
		return o, err
	}
	return o, o.Validate()
}

func TestGoodFlags(t *testing.T) {
	t.Parallel()
	base := options.Options{
		MetricsAddress: ":8080", HealthAddress: ":8081", TriggerAddress: "0", GracePeriod: 10 * time.Second,
		Controllers: []string{options.WorkItem, options.Dispatcher},
	}
	with := func(change func(*options.Options)) options.Options {
		o := base
		change(&o)
		return o
	}
	prefix := netip.MustParsePrefix
	cases := map[string]struct {
		args []string
		want options.Options
	}{
		"none": {nil, base},
		"everything off": {
			[]string{"--metrics-bind-address=0", "--health-probe-bind-address=0", "--trigger-bind-address=0"},
			with(func(o *options.Options) { o.MetricsAddress, o.HealthAddress = "0", "0" }),
		},
		"one controller":         {[]string{"--controllers=dispatcher"}, with(func(o *options.Options) { o.Controllers = []string{options.Dispatcher} })},
		"both, with spaces":      {[]string{"--controllers= workitem , dispatcher "}, base},
		"one of them twice":      {[]string{"--controllers=workitem,workitem"}, with(func(o *options.Options) { o.Controllers = []string{options.WorkItem} })},
		"the last --controllers": {[]string{"--controllers=workitem", "--controllers=dispatcher"}, with(func(o *options.Options) { o.Controllers = []string{options.Dispatcher} })},
		"namespaces":             {[]string{"--watch-namespaces=ops, dev,"}, with(func(o *options.Options) { o.WatchNamespaces = []string{"ops", "dev"} })},
		"no namespaces are all":  {[]string{"--watch-namespaces="}, base},
		"ranges, one flag for each": {[]string{"--allow-provider-cidr=127.0.0.0/8", "--allow-provider-cidr= fd00::/8 "}, with(func(o *options.Options) {
			o.AllowProviderCIDRs = []netip.Prefix{prefix("127.0.0.0/8"), prefix("fd00::/8")}
		})},
		"election": {
			[]string{"--leader-elect", "--leader-election-namespace=ops", "--grace-period=0s"},
			with(func(o *options.Options) { o.LeaderElect, o.LeaderElectionNamespace, o.GracePeriod = true, "ops", 0 }),
		},
		"trigger": {
			[]string{"--trigger-bind-address=:9443", "--trigger-cert-dir=/certs"},
			with(func(o *options.Options) { o.TriggerAddress, o.TriggerCertDir = ":9443", "/certs" }),
		},
		"metrics": {
			[]string{"--metrics-secure", "--metrics-cert-dir=/certs"},
			with(func(o *options.Options) { o.MetricsSecure, o.MetricsCertDir = true, "/certs" }),
		},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			got, err := parse(tc.args...)
			if err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(tc.want, got, cmpopts.EquateComparable(netip.Prefix{}), cmpopts.EquateEmpty()); diff != "" {
				t.Errorf("options (-want +got):\n%s", diff)
			}
		})
	}
}

// A bad flag is refused with words that say which value is wrong and what to write.
func TestBadFlags(t *testing.T) {
	t.Parallel()
	cases := map[string]struct {
		args  []string
		words []string
	}{
		"an unknown controller":    {[]string{"--controllers=workitem,sender"}, []string{`"sender"`, "workitem", "dispatcher"}},
		"no controller":            {[]string{"--controllers="}, []string{"at least one"}},
		"only commas":              {[]string{"--controllers=,,"}, []string{"at least one"}},
		"no name of a namespace":   {[]string{"--watch-namespaces=ops,Not_One"}, []string{`"Not_One"`}},
		"an address, no range":     {[]string{"--allow-provider-cidr=10.0.0.1"}, []string{`"10.0.0.1"`, "10.0.0.0/8"}},
		"two ranges in one flag":   {[]string{"--allow-provider-cidr=10.0.0.0/8,127.0.0.0/8"}, []string{"10.0.0.0/8,127.0.0.0/8"}},
		"a range too long":         {[]string{"--allow-provider-cidr=10.0.0.0/33"}, []string{"10.0.0.0/33"}},
		"an empty range":           {[]string{"--allow-provider-cidr="}, []string{`""`}},
		"a trigger for nothing":    {[]string{"--trigger-bind-address=:9443", "--controllers=dispatcher"}, []string{"--trigger-bind-address", "workitem"}},
		"a trigger's certificate":  {[]string{"--trigger-cert-dir=/certs"}, []string{"--trigger-cert-dir", "--trigger-bind-address"}},
		"a certificate for nobody": {[]string{"--metrics-cert-dir=/certs"}, []string{"--metrics-cert-dir", "--metrics-secure"}},
		"a grace below nothing":    {[]string{"--grace-period=-1s"}, []string{"--grace-period", "10m"}},
		"a grace without end":      {[]string{"--grace-period=10m1s"}, []string{"--grace-period", "10m"}},
		"a grace of no duration":   {[]string{"--grace-period=10"}, []string{"grace-period"}},
		"a flag that there is no":  {[]string{"--namespace=ops"}, []string{"-namespace"}},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			_, err := parse(tc.args...)
			if err == nil {
				t.Fatal("accepted")
			}
			for _, words := range tc.words {
				if !strings.Contains(err.Error(), words) {
					t.Errorf("%q does not say %q", err, words)
				}
			}
		})
	}
}

func TestRuns(t *testing.T) {
	t.Parallel()
	o, err := parse("--controllers=dispatcher")
	if err != nil {
		t.Fatal(err)
	}
	if o.Runs(options.WorkItem) || !o.Runs(options.Dispatcher) {
		t.Errorf("runs %v", o.Controllers)
	}
}

func FuzzFlags(f *testing.F) {
	f.Add("workitem", "ops,dev", "10.0.0.0/8")
	f.Add(",", "", "::1/128")
	f.Fuzz(func(t *testing.T, controllers, namespaces, cidr string) {
		o, err := parse("--controllers="+controllers, "--watch-namespaces="+namespaces, "--allow-provider-cidr="+cidr)
		if err != nil {
			return
		}
		if len(o.Controllers) == 0 || len(o.Controllers) > 2 || len(o.AllowProviderCIDRs) != 1 || !o.AllowProviderCIDRs[0].IsValid() {
			t.Errorf("accepted %+v", o)
		}
	})
}
