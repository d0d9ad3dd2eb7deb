// SPDX-FileCopyrightText: The WorkItem Operator Authors
// SPDX-License-Identifier: Apache-2.0

package deliverytest

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"io"
	"log"
	"net"
	"net/http"
	"slices"
	"sync"
	"time"
)

// maxBody is the longest request body, in bytes, that a Server takes.
const maxBody = 1 << 20

// ServerOptions says how a Server listens. The zero value is plain HTTP/1.1 on
// a free port of 127.0.0.1.
type ServerOptions struct {
	// Addr is the address to listen on, host:port; 127.0.0.1:0 if empty.
	Addr string
	// TLS serves HTTPS, with a certificate made for the occasion, for
	// localhost and the loopback addresses. CABundle gives what trusts it.
	TLS bool
	// HTTP2 offers HTTP/2 beside HTTP/1.1. It needs TLS.
	HTTP2 bool
	// Now is the clock of the ledger; time.Now if nil.
	Now func() time.Time
}

// Server is a scripted provider. All its methods are safe for concurrent use.
type Server struct {
	base     string
	caBundle []byte
	now      func() time.Time
	server   *http.Server
	done     chan struct{}
	closing  sync.Once

	mu          sync.Mutex
	endpoints   map[string]*Endpoint
	strays      []string
	connections int
}

// connKey is the key under which a request's context holds its connection.
type connKey struct{}

// NewServer starts a Server. Close ends it.
func NewServer(opts ServerOptions) (*Server, error) {
	if opts.HTTP2 && !opts.TLS {
		return nil, errors.New("starting a provider: HTTP/2 needs TLS")
	}
	addr := opts.Addr
	if addr == "" {
		addr = "127.0.0.1:0"
	}
	s := &Server{now: opts.Now, done: make(chan struct{}), endpoints: map[string]*Endpoint{}}
	if s.now == nil {
		s.now = time.Now //nolint:forbidigo // this is the clock that others inject
	}
	s.server = &http.Server{
		Handler:           s,
		ErrorLog:          log.New(io.Discard, "", 0),
		ReadHeaderTimeout: time.Minute,
		Protocols:         &http.Protocols{},
		ConnState:         s.connState,
		ConnContext: func(ctx context.Context, conn net.Conn) context.Context {
			return context.WithValue(ctx, connKey{}, conn)
		},
	}
	s.server.Protocols.SetHTTP1(true)
	s.server.Protocols.SetHTTP2(opts.HTTP2)
	if opts.TLS {
		cert, bundle, err := newCertificate(s.now())
		if err != nil {
			return nil, fmt.Errorf("making a certificate: %w", err)
		}
		s.caBundle = bundle
		s.server.TLSConfig = &tls.Config{Certificates: []tls.Certificate{cert}, MinVersion: tls.VersionTLS12}
	}
	listener, err := (&net.ListenConfig{}).Listen(context.Background(), "tcp", addr)
	if err != nil {
		return nil, fmt.Errorf("starting a provider: %w", err)
	}
	s.serve(listener)
	return s, nil
}

func (s *Server) serve(listener net.Listener) {
	if s.server.TLSConfig == nil {
		s.base = "http://" + listener.Addr().String()
		go func() { _ = s.server.Serve(listener) }()
		return
	}
	s.base = "https://" + listener.Addr().String()
	go func() { _ = s.server.ServeTLS(listener, "", "") }()
}

// Close stops the Server at once. Calls that are held end without an answer and
// without an effect.
func (s *Server) Close() {
	s.closing.Do(func() {
		close(s.done)
		_ = s.server.Close()
	})
}

// URL returns where the Server listens: scheme, host and port, no path.
func (s *Server) URL() string { return s.base }

// CABundle returns the certificate, in PEM, that a client has to trust. It is
// nil without TLS.
func (s *Server) CABundle() []byte { return slices.Clone(s.caBundle) }

// Strays lists the requests, as "METHOD path", to paths without an endpoint.
// They were answered 404.
func (s *Server) Strays() []string {
	s.mu.Lock()
	defer s.mu.Unlock()
	return slices.Clone(s.strays)
}

// Connections is the number of connections that clients have opened.
func (s *Server) Connections() int {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.connections
}

// Endpoint opens path, which begins with a slash, for calls. The script decides
// on every call that the dialect lets through; nil answers 200. An endpoint
// that was there before is replaced, along with its ledger and its keys.
func (s *Server) Endpoint(path string, dialect Dialect, script Script) *Endpoint {
	e := newEndpoint(s.base+path, dialect, script, s.now, s.done)
	s.mu.Lock()
	defer s.mu.Unlock()
	s.endpoints[path] = e
	return e
}

// ServeHTTP implements http.Handler. It is exported for that alone.
func (s *Server) ServeHTTP(w http.ResponseWriter, req *http.Request) {
	s.mu.Lock()
	e := s.endpoints[req.URL.Path]
	if e == nil {
		s.strays = append(s.strays, req.Method+" "+req.URL.Path)
	}
	s.mu.Unlock()
	if e == nil {
		w.WriteHeader(http.StatusNotFound)
		return
	}
	body, err := io.ReadAll(http.MaxBytesReader(w, req.Body, maxBody))
	if err != nil {
		w.WriteHeader(http.StatusRequestEntityTooLarge)
		return
	}
	e.serve(w, req, body)
}

func (s *Server) connState(_ net.Conn, state http.ConnState) {
	if state != http.StateNew {
		return
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	s.connections++
}
