// SPDX-FileCopyrightText: The WorkItem Operator Authors
// SPDX-License-Identifier: Apache-2.0

package kube_test

import (
	"context"
	"net/http"
	"net/http/httptest"
	"net/netip"
	"slices"
	"strings"
	"testing"

	"k8s.io/client-go/rest"

	"github.com/workitem-operator/workitem-operator/internal/kube"
)

// Fault 47: whatever form the API server's address has, it is found, so that no
// provider can be pointed at it. Nothing answers at these addresses; what the process
// itself uses is known without an answer.
func TestFault47_APIServerAddressOfAnyForm(t *testing.T) {
	for host, want := range map[string]string{
		"https://127.0.0.1:1":       "127.0.0.1:1",
		"https://127.0.0.1":         "127.0.0.1:443",
		"http://127.0.0.1":          "127.0.0.1:80",
		"https://127.0.0.1:1/k8s":   "127.0.0.1:1",
		"127.0.0.1:1":               "127.0.0.1:1",
		"127.0.0.1":                 "127.0.0.1:443",
		"https://[::1]:1":           "[::1]:1",
		"https://[::1]":             "[::1]:443",
		"http://[::1]":              "[::1]:80",
		"::1":                       "[::1]:443",
		"[::1]":                     "[::1]:443",
		"[::1]:1":                   "[::1]:1",
		"https://[::ffff:7f00:1]:1": "127.0.0.1:1",
	} {
		t.Run(host, func(t *testing.T) {
			t.Setenv("KUBERNETES_SERVICE_HOST", "")
			ctx, cancel := context.WithCancel(t.Context())
			defer cancel()
			refuse := func(http.RoundTripper) http.RoundTripper {
				return roundTripper(func(*http.Request) (*http.Response, error) { return nil, context.Canceled })
			}
			got, err := kube.APIServerAddresses(ctx, &rest.Config{Host: host, WrapTransport: refuse})
			if !slices.Equal(got, []netip.AddrPort{netip.MustParseAddrPort(want)}) {
				t.Errorf("got %v (%v), want %s", got, err, want)
			}
		})
	}
}

type roundTripper func(*http.Request) (*http.Response, error)

func (f roundTripper) RoundTrip(r *http.Request) (*http.Response, error) { return f(r) }

// What the API server says of itself counts, the Service of the cluster too, and a
// failure to find one hides none of the others.
func TestFault47_EveryAddressOfTheAPIServer(t *testing.T) {
	t.Setenv("KUBERNETES_SERVICE_HOST", "127.0.0.7")
	t.Setenv("KUBERNETES_SERVICE_PORT", "6443")
	answer := `{"kind":"APIVersions","versions":["v1"],"serverAddressByClientCIDRs":[
		{"clientCIDR":"0.0.0.0/0","serverAddress":"127.0.0.8:6443"},{"clientCIDR":"::/0","serverAddress":"[::1]:6443"},
		{"clientCIDR":"0.0.0.0/0","serverAddress":"127.0.0.9:notaport"},{"clientCIDR":"0.0.0.0/0","serverAddress":"127.0.0.8:6443"}]}`
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Content-Type", "application/json")
		if r.URL.Path != "/api" {
			http.NotFound(w, r)
			return
		}
		_, _ = w.Write([]byte(answer))
	}))
	defer server.Close()
	got, err := kube.APIServerAddresses(t.Context(), &rest.Config{Host: server.URL})
	want := []netip.AddrPort{
		netip.MustParseAddrPort(strings.TrimPrefix(server.URL, "http://")), netip.MustParseAddrPort("127.0.0.7:6443"),
		netip.MustParseAddrPort("127.0.0.8:6443"), netip.MustParseAddrPort("[::1]:6443"),
	}
	if !slices.Equal(got, want) {
		t.Errorf("got %v, want %v", got, want)
	}
	if err == nil {
		t.Error("an address that cannot be read is not told")
	}
}
