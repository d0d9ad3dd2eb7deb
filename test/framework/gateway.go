// SPDX-FileCopyrightText: The WorkItem Operator Authors
// SPDX-License-Identifier: Apache-2.0

package framework

import (
	"context"
	"io"
	"log"
	"net"
	"net/http"
	"sync"
	"testing"
	"time"

	"github.com/workitem-operator/workitem-operator/internal/delivery/deliverytest"
)

// Gateway is the address of all scripted providers of a test. It stands between
// them and the managers, so that a manager which has crashed reaches none of them
// any more, neither with a new call nor with one that is under way.
type Gateway struct {
	provider *deliverytest.Server
	base     string
	journal  *Journal

	mu    sync.Mutex
	gone  map[string]bool
	conns map[string]map[net.Conn]bool
}

type connKey struct{}

func newGateway(t *testing.T, journal *Journal) *Gateway {
	t.Helper()
	provider, err := deliverytest.NewServer(deliverytest.ServerOptions{})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(provider.Close)
	g := &Gateway{provider: provider, journal: journal, gone: map[string]bool{}, conns: map[string]map[net.Conn]bool{}}
	listener, err := (&net.ListenConfig{}).Listen(t.Context(), "tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal("opening the gateway to the providers:", err)
	}
	g.base = "http://" + listener.Addr().String()
	server := &http.Server{
		Handler:           g,
		ReadHeaderTimeout: time.Minute,
		ErrorLog:          log.New(io.Discard, "", 0),
		ConnContext: func(ctx context.Context, conn net.Conn) context.Context {
			return context.WithValue(ctx, connKey{}, conn)
		},
	}
	go func() { _ = server.Serve(listener) }()
	t.Cleanup(func() { _ = server.Close() })
	return g
}

// ServeHTTP implements http.Handler.
func (g *Gateway) ServeHTTP(w http.ResponseWriter, req *http.Request) {
	agent := req.UserAgent()
	conn, ok := req.Context().Value(connKey{}).(net.Conn)
	if !ok || !g.enter(agent, conn) {
		panic(http.ErrAbortHandler)
	}
	g.journal.Add("%s calls %s key=%s", agent, req.URL.Path, req.Header.Get("Webhook-Id"))
	g.provider.ServeHTTP(w, req)
}

func (g *Gateway) enter(agent string, conn net.Conn) bool {
	g.mu.Lock()
	defer g.mu.Unlock()
	if g.gone[agent] {
		return false
	}
	if g.conns[agent] == nil {
		g.conns[agent] = map[net.Conn]bool{}
	}
	g.conns[agent][conn] = true
	return true
}

// cut ends the calls of a manager, now and for good.
func (g *Gateway) cut(agent string) {
	g.mu.Lock()
	defer g.mu.Unlock()
	g.gone[agent] = true
	for conn := range g.conns[agent] {
		_ = conn.Close()
	}
}

// URL is where managers reach an endpoint.
func (g *Gateway) URL(path string) string { return g.base + path }
