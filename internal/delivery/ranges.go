// SPDX-FileCopyrightText: The WorkItem Operator Authors
// SPDX-License-Identifier: Apache-2.0

package delivery

import "net/netip"

// denied holds the ranges that providers may not reach, from the IANA special
// purpose address registries, with the words an error uses for them. The first
// that contains an address gives its class.
var denied = []struct {
	prefix netip.Prefix
	class  string
}{
	{netip.MustParsePrefix("127.0.0.0/8"), "a loopback address"},
	{netip.MustParsePrefix("::1/128"), "a loopback address"},
	{netip.MustParsePrefix("0.0.0.0/8"), "an unspecified address"},
	{netip.MustParsePrefix("::/128"), "an unspecified address"},
	{netip.MustParsePrefix("169.254.0.0/16"), "a link-local address"},
	{netip.MustParsePrefix("fe80::/10"), "a link-local address"},
	{netip.MustParsePrefix("fec0::/10"), "a site-local address"},
	{netip.MustParsePrefix("fc00::/7"), "a unique-local address"},
	{netip.MustParsePrefix("100.64.0.0/10"), "a shared address (carrier-grade NAT)"},
	// Metadata and platform services outside of the link-local range.
	{netip.MustParsePrefix("168.63.129.16/32"), "a cloud's platform address"},
	{netip.MustParsePrefix("192.0.0.0/24"), "an address for protocol assignments"},
	{netip.MustParsePrefix("224.0.0.0/4"), "a multicast address"},
	{netip.MustParsePrefix("ff00::/8"), "a multicast address"},
	{netip.MustParsePrefix("255.255.255.255/32"), "the broadcast address"},
	{netip.MustParsePrefix("240.0.0.0/4"), "a reserved address"},
	// Ways through which an IPv4 address is reached that cannot be read off
	// with certainty: how long the prefix of a local NAT64 is nobody knows, and
	// in a Teredo address it is obfuscated.
	{netip.MustParsePrefix("64:ff9b:1::/48"), "a local NAT64 address"},
	{netip.MustParsePrefix("2001::/32"), "a Teredo address"},
}

var (
	nat64          = netip.MustParsePrefix("64:ff9b::/96") // RFC 6052
	sixToFour      = netip.MustParsePrefix("2002::/16")    // RFC 3056
	v4Compatible   = netip.MustParsePrefix("::/96")        // RFC 4291, deprecated
	v4Translatable = netip.MustParsePrefix("::ffff:0:0:0/96")
)

// deniedClass gives the class of an address that is denied, or nothing.
func deniedClass(addr netip.Addr) string {
	if !addr.IsValid() {
		return "not an address"
	}
	for _, d := range denied {
		if d.prefix.Contains(addr) {
			return d.class
		}
	}
	return ""
}

// embedded gives the IPv4 address to which a packet for addr may be translated
// or tunnelled.
func embedded(addr netip.Addr) (netip.Addr, bool) {
	// ::1 and :: look like IPv4-compatible addresses, but are not.
	if !addr.Is6() || isThisHost(addr) {
		return netip.Addr{}, false
	}
	b := addr.As16()
	switch {
	case nat64.Contains(addr), v4Compatible.Contains(addr), v4Translatable.Contains(addr):
		return netip.AddrFrom4([4]byte(b[12:16])), true
	case sixToFour.Contains(addr):
		return netip.AddrFrom4([4]byte(b[2:6])), true
	}
	return netip.Addr{}, false
}
