// SPDX-FileCopyrightText: The WorkItem Operator Authors
// SPDX-License-Identifier: Apache-2.0

package delivery

import (
	"errors"
	"fmt"
	"net/netip"
	"slices"
	"syscall"
)

// ErrAddressForbidden is what errors.Is finds in an error of Guard.
var ErrAddressForbidden = errors.New("providers may not reach this address")

// Guard decides which addresses a provider may reach. It is asked when a
// connection is dialled, after the name was resolved, about the address that is
// really used: whatever a URL looks like and whatever a name server says, there
// is no later moment at which the address could change.
//
// Denied are loopback, unspecified, link-local, shared (carrier-grade NAT),
// multicast, reserved, broadcast, unique-local and site-local addresses, the
// metadata services of the clouds, the API server, and all of these within an
// IPv6 address that stands for an IPv4 one. The private ranges of RFC 1918 are
// not denied: the Services of a cluster live there.
//
// The zero Guard denies all that and opens nothing. A Guard is safe for
// concurrent use.
//
// It is written here, and code.dny.dev/ssrf is not used, because that denies
// the RFC 1918 ranges and can only open them again by the list that opens
// ranges for the user, has no rule for one address and port such as the API
// server's, and takes NAT64 addresses all or none.
type Guard struct {
	allowed   []netip.Prefix
	apiServer []netip.AddrPort
}

// NewGuard returns a Guard that opens the prefixes in allowed, except for the
// addresses in apiServer, which are those of the API server that this process
// talks to. Such an address is opened only by a prefix that names it alone: a
// /32, or a /128.
func NewGuard(allowed []netip.Prefix, apiServer []netip.AddrPort) *Guard {
	g := &Guard{}
	for _, prefix := range allowed {
		if prefix.IsValid() {
			g.allowed = append(g.allowed, unmapPrefix(prefix))
		}
	}
	for _, server := range apiServer {
		g.apiServer = append(g.apiServer, netip.AddrPortFrom(plain(server.Addr()), server.Port()))
	}
	return g
}

// Control has the signature of net.Dialer.Control, which is called with every
// address that is about to be connected to. Its error is that of Check.
func (g *Guard) Control(_, address string, _ syscall.RawConn) error {
	addrPort, err := netip.ParseAddrPort(address)
	if err != nil {
		// Not a TCP address: nothing a provider has any business with.
		return fmt.Errorf("%w: it is not an IP address and a port", ErrAddressForbidden)
	}
	return g.Check(addrPort)
}

// Check returns nil if a provider may reach addr. Otherwise the error, in which
// errors.Is finds ErrAddressForbidden, names the class of the address and what
// to do about it; the address is not in its text, so that it may be shown for a
// provider whose URL is a secret.
func (g *Guard) Check(addr netip.AddrPort) error {
	outer := plain(addr.Addr())
	// forms are the addresses that a packet to outer may end up at.
	forms := []netip.Addr{outer}
	if inner, ok := embedded(outer); ok {
		forms = append(forms, inner)
	}
	if g.isAPIServer(forms, addr.Port()) {
		if g.named(forms) {
			return nil
		}
		return fmt.Errorf("%w: it is the API server's own; only --allow-provider-cidr with this very address, as a /32 or /128, opens it", ErrAddressForbidden)
	}
	for _, form := range forms {
		class := deniedClass(form)
		if class == "" {
			continue
		}
		if g.opened(forms) {
			return nil
		}
		return fmt.Errorf("%w: it is %s; the manager's flag --allow-provider-cidr opens what is needed", ErrAddressForbidden, class)
	}
	return nil
}

func (g *Guard) opened(forms []netip.Addr) bool {
	return slices.ContainsFunc(forms, func(form netip.Addr) bool {
		return slices.ContainsFunc(g.allowed, func(p netip.Prefix) bool { return p.Contains(form) })
	})
}

func (g *Guard) named(forms []netip.Addr) bool {
	return slices.ContainsFunc(forms, func(form netip.Addr) bool {
		return slices.ContainsFunc(g.allowed, func(p netip.Prefix) bool { return p.IsSingleIP() && p.Addr() == form })
	})
}

func (g *Guard) isAPIServer(forms []netip.Addr, port uint16) bool {
	return slices.ContainsFunc(g.apiServer, func(server netip.AddrPort) bool {
		return server.Port() == port && slices.ContainsFunc(forms, func(form netip.Addr) bool {
			return form == server.Addr() || (isThisHost(form) && isThisHost(server.Addr()))
		})
	})
}

// isThisHost tells addresses that all reach the same listener: a server on any
// loopback or unspecified address may be met at every other.
func isThisHost(addr netip.Addr) bool {
	return addr.IsLoopback() || addr.IsUnspecified()
}

// plain removes what does not change where a packet goes: the form of an IPv4
// address mapped into IPv6, and the zone.
func plain(addr netip.Addr) netip.Addr {
	return addr.Unmap().WithZone("")
}

// unmapPrefix turns ::ffff:a.b.c.d/96+n into a.b.c.d/n.
func unmapPrefix(prefix netip.Prefix) netip.Prefix {
	if prefix.Addr().Is4In6() && prefix.Bits() >= 96 {
		return netip.PrefixFrom(prefix.Addr().Unmap(), prefix.Bits()-96).Masked()
	}
	return prefix.Masked()
}
