// SPDX-FileCopyrightText: The WorkItem Operator Authors
// SPDX-License-Identifier: Apache-2.0

package kube

import (
	"context"
	"fmt"
	"net"
	"net/netip"
	"net/url"
	"os"
	"slices"
	"strconv"
	"strings"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/discovery"
	"k8s.io/client-go/rest"
)

// APIServerAddresses finds the addresses under which the API server can be reached:
// the one that this process uses, the one of the in-cluster Service, and the one
// that the API server says of itself. A failure to find one of them is no error:
// whatever is found is returned, and the error tells what was not.
func APIServerAddresses(ctx context.Context, cfg *rest.Config) ([]netip.AddrPort, error) {
	hosts := []string{hostPort(cfg.Host)}
	if host, port := os.Getenv("KUBERNETES_SERVICE_HOST"), os.Getenv("KUBERNETES_SERVICE_PORT"); host != "" && port != "" {
		hosts = append(hosts, net.JoinHostPort(host, port))
	}
	advertised, err := advertisedAddresses(ctx, cfg)
	hosts = append(hosts, advertised...)
	var out []netip.AddrPort
	for _, host := range hosts {
		found, lookupErr := resolve(ctx, host)
		if lookupErr != nil {
			err = lookupErr
		}
		for _, addr := range found {
			if !slices.Contains(out, addr) {
				out = append(out, addr)
			}
		}
	}
	return out, err
}

// advertisedAddresses asks the API server for its own address: the legacy group's
// version list names it.
func advertisedAddresses(ctx context.Context, cfg *rest.Config) ([]string, error) {
	client, err := discovery.NewDiscoveryClientForConfig(cfg)
	if err != nil {
		return nil, fmt.Errorf("making a discovery client: %w", err)
	}
	versions := &metav1.APIVersions{}
	if err := client.RESTClient().Get().AbsPath("/api").Do(ctx).Into(versions); err != nil {
		return nil, fmt.Errorf("asking the API server for its address: %w", err)
	}
	var out []string
	for _, s := range versions.ServerAddressByClientCIDRs {
		out = append(out, hostPort(s.ServerAddress))
	}
	return out, nil
}

// hostPort is the host and port of a URL, or of a host with or without a port.
func hostPort(s string) string {
	if u, err := url.Parse(s); err == nil && u.Host != "" {
		s = u.Host
		if u.Port() == "" && u.Scheme == "http" {
			return net.JoinHostPort(u.Hostname(), "80")
		}
	}
	if _, _, err := net.SplitHostPort(s); err == nil {
		return s
	}
	return net.JoinHostPort(strings.Trim(s, "[]"), "443")
}

func resolve(ctx context.Context, hostport string) ([]netip.AddrPort, error) {
	host, port, err := net.SplitHostPort(hostport)
	if err != nil {
		return nil, fmt.Errorf("reading the address %q: %w", hostport, err)
	}
	number, err := strconv.ParseUint(port, 10, 16)
	if err != nil {
		return nil, fmt.Errorf("reading the port of %q: %w", hostport, err)
	}
	addrs, err := net.DefaultResolver.LookupNetIP(ctx, "ip", host)
	if err != nil {
		return nil, fmt.Errorf("resolving the API server's name: %w", err)
	}
	var out []netip.AddrPort
	for _, addr := range addrs {
		out = append(out, netip.AddrPortFrom(addr.Unmap(), uint16(number)))
	}
	return out, nil
}
