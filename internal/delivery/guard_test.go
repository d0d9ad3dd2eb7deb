// SPDX-FileCopyrightText: The WorkItem Operator Authors
// SPDX-License-Identifier: Apache-2.0

package delivery_test

import (
	"errors"
	"net"
	"net/netip"
	"strings"
	"testing"

	"github.com/workitem-operator/workitem-operator/internal/delivery"
)

func prefixes(list ...string) []netip.Prefix {
	var out []netip.Prefix
	for _, s := range list {
		out = append(out, netip.MustParsePrefix(s))
	}
	return out
}

func TestGuardDeniesByDefault(t *testing.T) {
	t.Parallel()
	cases := map[string]struct {
		class string
		addrs []string
	}{
		"loopback":              {"loopback", []string{"127.0.0.1", "127.255.255.254", "::1"}},
		"unspecified":           {"unspecified", []string{"0.0.0.0", "0.1.2.3", "::"}},
		"link-local":            {"link-local", []string{"169.254.0.1", "169.254.169.254", "169.254.170.2", "fe80::1", "febf::1", "fe80::1%eth0"}},
		"site-local":            {"site-local", []string{"fec0::1", "feff::1"}},
		"unique-local":          {"unique-local", []string{"fd00::1", "fc00::1", "fd00:ec2::254", "fdff:ffff::1"}},
		"shared":                {"shared", []string{"100.64.0.1", "100.100.100.200", "100.127.255.255"}},
		"multicast":             {"multicast", []string{"224.0.0.1", "239.255.255.255", "ff02::1"}},
		"broadcast":             {"broadcast", []string{"255.255.255.255"}},
		"reserved":              {"reserved", []string{"240.0.0.1", "255.255.255.254"}},
		"platform":              {"platform", []string{"168.63.129.16"}},
		"protocol assignments":  {"protocol", []string{"192.0.0.192"}},
		"IPv4-mapped":           {"loopback", []string{"::ffff:127.0.0.1", "::ffff:7f00:1"}},
		"IPv4-mapped metadata":  {"link-local", []string{"::ffff:169.254.169.254"}},
		"IPv4-compatible":       {"loopback", []string{"::127.0.0.1"}},
		"IPv4-translated":       {"loopback", []string{"::ffff:0:127.0.0.1"}},
		"NAT64":                 {"loopback", []string{"64:ff9b::127.0.0.1"}},
		"NAT64 metadata":        {"link-local", []string{"64:ff9b::a9fe:a9fe"}},
		"NAT64 of a local kind": {"local NAT64", []string{"64:ff9b:1::1"}},
		"6to4":                  {"loopback", []string{"2002:7f00:1::", "2002:7f00:0001:abcd::1"}},
		"6to4 metadata":         {"link-local", []string{"2002:a9fe:a9fe::1"}},
		"Teredo":                {"Teredo", []string{"2001:0:1::1"}},
	}
	for name, tc := range cases {
		for _, addr := range tc.addrs {
			for kind, guard := range map[string]*delivery.Guard{"zero": {}, "new": delivery.NewGuard(nil, nil)} {
				err := guard.Control("tcp", net.JoinHostPort(addr, "443"), nil)
				if !errors.Is(err, delivery.ErrAddressForbidden) {
					t.Errorf("%s: %s guard lets %s pass: %v", name, kind, addr, err)
					continue
				}
				if !strings.Contains(err.Error(), tc.class) || !strings.Contains(err.Error(), "--allow-provider-cidr") {
					t.Errorf("%s: %s: the error names neither class nor remedy: %v", name, addr, err)
				}
				if strings.Contains(err.Error(), addr) && len(addr) > 4 {
					t.Errorf("%s: the error shows the address: %v", name, err)
				}
			}
		}
	}
}

func TestGuardAllowsOrdinaryAddresses(t *testing.T) {
	t.Parallel()
	for _, addr := range []string{
		"10.96.0.10", "172.16.0.1", "172.31.255.255", "192.168.1.1", // RFC 1918
		"8.8.8.8", "99.255.255.255", "100.128.0.1", "128.0.0.1", "126.255.255.255", "223.255.255.255", "168.63.129.17", "169.253.255.255", "1.0.0.1",
		"2001:4860:4860::8888", "2600::1", "2001:1::1",
		"::ffff:8.8.8.8", "::ffff:10.0.0.1", "64:ff9b::8.8.8.8", "64:ff9b::10.0.0.1", "2002:808:808::1",
	} {
		if err := (&delivery.Guard{}).Control("tcp", net.JoinHostPort(addr, "80"), nil); err != nil {
			t.Errorf("%s: %v", addr, err)
		}
	}
}

func TestGuardOpensPrefixes(t *testing.T) {
	t.Parallel()
	cases := map[string]struct {
		allowed []string
		addr    string
		open    bool
	}{
		"a range":                            {[]string{"127.0.0.0/8"}, "127.0.0.1", true},
		"a range, written with host bits":    {[]string{"127.0.0.1/8"}, "127.9.9.9", true},
		"a range, address mapped":            {[]string{"127.0.0.0/8"}, "::ffff:127.0.0.1", true},
		"a mapped range":                     {[]string{"::ffff:127.0.0.0/104"}, "127.0.0.1", true},
		"a range, address through NAT64":     {[]string{"127.0.0.0/8"}, "64:ff9b::127.0.0.1", true},
		"all of NAT64":                       {[]string{"64:ff9b::/96"}, "64:ff9b::127.0.0.1", true},
		"unique-local":                       {[]string{"fd00:10:96::/112"}, "fd00:10:96::a", true},
		"everything of IPv4":                 {[]string{"0.0.0.0/0"}, "169.254.169.254", true},
		"another range":                      {[]string{"127.0.0.0/30"}, "127.0.0.4", false},
		"IPv4 does not open IPv6":            {[]string{"0.0.0.0/0"}, "::1", false},
		"IPv6 does not open IPv4":            {[]string{"::/0"}, "127.0.0.1", false},
		"IPv6 does not open a mapped one":    {[]string{"::1/128"}, "::ffff:127.0.0.1", false},
		"one of several":                     {[]string{"10.0.0.0/8", "fe80::/10", "100.64.0.0/10"}, "100.64.1.1", true},
		"a zone is no way around":            {[]string{"fe80::1/128"}, "fe80::2%eth0", false},
		"a zone does not close what is open": {[]string{"fe80::/10"}, "fe80::2%eth0", true},
	}
	for name, tc := range cases {
		err := delivery.NewGuard(prefixes(tc.allowed...), nil).Control("tcp", net.JoinHostPort(tc.addr, "80"), nil)
		if (err == nil) != tc.open {
			t.Errorf("%s: %s: %v", name, tc.addr, err)
		}
	}
}

func TestGuardProtectsTheAPIServer(t *testing.T) {
	t.Parallel()
	cases := map[string]struct {
		server  string
		allowed []string
		addr    string
		open    bool
	}{
		"a private address":                {"10.96.0.1:443", nil, "10.96.0.1:443", false},
		"its other ports":                  {"10.96.0.1:443", nil, "10.96.0.1:8443", true},
		"its neighbours":                   {"10.96.0.1:443", nil, "10.96.0.2:443", true},
		"a range does not open it":         {"10.96.0.1:443", []string{"10.0.0.0/8", "0.0.0.0/0"}, "10.96.0.1:443", false},
		"nor one of two addresses":         {"10.96.0.1:443", []string{"10.96.0.0/31"}, "10.96.0.1:443", false},
		"a /32 opens it":                   {"10.96.0.1:443", []string{"10.96.0.1/32"}, "10.96.0.1:443", true},
		"another /32 does not":             {"10.96.0.1:443", []string{"10.96.0.2/32"}, "10.96.0.1:443", false},
		"mapped":                           {"10.96.0.1:443", nil, "[::ffff:10.96.0.1]:443", false},
		"through NAT64":                    {"10.96.0.1:443", nil, "[64:ff9b::10.96.0.1]:443", false},
		"through 6to4":                     {"10.96.0.1:443", nil, "[2002:a60:1::]:443", false},
		"given as mapped":                  {"[::ffff:10.96.0.1]:443", nil, "10.96.0.1:443", false},
		"IPv6":                             {"[2001:db8::1]:443", []string{"2001:db8::/64"}, "[2001:db8::1]:443", false},
		"IPv6, named":                      {"[2001:db8::1]:443", []string{"2001:db8::1/128"}, "[2001:db8::1]:443", true},
		"on loopback":                      {"127.0.0.1:6443", []string{"127.0.0.0/8"}, "127.0.0.1:6443", false},
		"on loopback, other ports":         {"127.0.0.1:6443", []string{"127.0.0.0/8"}, "127.0.0.1:8080", true},
		"on loopback, by another address":  {"127.0.0.1:6443", []string{"127.0.0.0/8"}, "127.0.0.2:6443", false},
		"on loopback, by the unspecified":  {"127.0.0.1:6443", []string{"0.0.0.0/8"}, "0.0.0.0:6443", false},
		"on loopback, by IPv6":             {"127.0.0.1:6443", []string{"::/0"}, "[::1]:6443", false},
		"on loopback, the very address":    {"127.0.0.1:6443", []string{"127.0.0.1/32"}, "127.0.0.1:6443", true},
		"on loopback, named but another":   {"127.0.0.1:6443", []string{"127.0.0.1/32", "127.0.0.0/8"}, "127.0.0.2:6443", false},
		"with a zone":                      {"[fe80::1%eth0]:6443", []string{"fe80::/10"}, "[fe80::1%eth1]:6443", false},
		"the name alone opens other ports": {"127.0.0.1:6443", []string{"127.0.0.1/32"}, "127.0.0.1:80", true},
	}
	for name, tc := range cases {
		guard := delivery.NewGuard(prefixes(tc.allowed...), []netip.AddrPort{netip.MustParseAddrPort(tc.server)})
		err := guard.Check(netip.MustParseAddrPort(tc.addr))
		if (err == nil) != tc.open {
			t.Errorf("%s: %s: %v", name, tc.addr, err)
		}
		if err != nil && !errors.Is(err, delivery.ErrAddressForbidden) {
			t.Errorf("%s: %v is not ErrAddressForbidden", name, err)
		}
	}
}

func TestGuardRefusesWhatIsNoAddress(t *testing.T) {
	t.Parallel()
	guard := delivery.NewGuard(prefixes("0.0.0.0/0", "::/0"), nil)
	for _, address := range []string{"", "/run/docker.sock", "localhost:80", "127.0.0.1", ":80"} {
		if err := guard.Control("tcp", address, nil); !errors.Is(err, delivery.ErrAddressForbidden) {
			t.Errorf("%q: %v", address, err)
		}
	}
	if err := guard.Check(netip.AddrPort{}); !errors.Is(err, delivery.ErrAddressForbidden) {
		t.Errorf("no address at all: %v", err)
	}
}

// The dialer asks about the address that a name, or an unusual spelling of a
// number, turned out to be.
func TestGuardAtTheDialer(t *testing.T) {
	t.Parallel()
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = listener.Close() }()
	_, port, err := net.SplitHostPort(listener.Addr().String())
	if err != nil {
		t.Fatal(err)
	}
	dial := func(host string, guard *delivery.Guard) error {
		dialer := net.Dialer{Control: guard.Control}
		conn, err := dialer.DialContext(t.Context(), "tcp", net.JoinHostPort(host, port))
		if err == nil {
			_ = conn.Close()
		}
		return err
	}
	for _, host := range []string{"127.0.0.1", "localhost", "::ffff:127.0.0.1", "0.0.0.0", "::"} {
		if err := dial(host, &delivery.Guard{}); !errors.Is(err, delivery.ErrAddressForbidden) {
			t.Errorf("%s: %v", host, err)
		}
	}
	// Whether these are numbers at all is up to the resolver: a C library takes
	// them for 127.0.0.1, Go itself for names that do not exist.
	for _, host := range []string{"2130706433", "0x7f000001", "017700000001", "127.1", "0177.0.0.1"} {
		var dnsErr *net.DNSError
		if err := dial(host, &delivery.Guard{}); !errors.Is(err, delivery.ErrAddressForbidden) && !errors.As(err, &dnsErr) {
			t.Errorf("%s: %v", host, err)
		}
	}
	if err := dial("127.0.0.1", delivery.NewGuard(prefixes("127.0.0.0/8"), nil)); err != nil {
		t.Errorf("an open address: %v", err)
	}
}
