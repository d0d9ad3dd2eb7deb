// SPDX-FileCopyrightText: The WorkItem Operator Authors
// SPDX-License-Identifier: Apache-2.0

package trigger

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"net"
	"net/http"
	"path/filepath"
	"time"

	"github.com/go-logr/logr"
	certutil "k8s.io/client-go/util/cert"
	"k8s.io/utils/clock"
	"sigs.k8s.io/controller-runtime/pkg/certwatcher"
)

const (
	readTimeout = 15 * time.Second
	idleTimeout = time.Minute
	// maxHeader is the longest header, in bytes: a token has a few thousand.
	maxHeader = 16 << 10
	// stopTimeout is how long a stop waits for answers to be written.
	stopTimeout = 5 * time.Second
)

// Options are what a Server is made of.
type Options struct {
	// Address is where to listen.
	Address string
	// CertDir holds tls.crt and tls.key, read again when they change; empty is a
	// certificate that nobody has signed.
	CertDir string
	// Namespaces are the namespaces that are looked after; empty is all.
	Namespaces []string
	// Passer makes the passes, and Reviewer judges callers.
	Passer   Passer
	Reviewer Reviewer
	Clock    clock.PassiveClock
	Log      logr.Logger
}

// Server serves the trigger. It is a Runnable that every replica runs.
type Server struct {
	Options
}

// NeedLeaderElection tells the manager that every replica serves.
func (s *Server) NeedLeaderElection() bool { return false }

// Start serves until ctx ends: passes under way are then ended and answered 503.
func (s *Server) Start(ctx context.Context) error {
	config, err := s.tls(ctx)
	if err != nil {
		return err
	}
	listener, err := (&net.ListenConfig{}).Listen(ctx, "tcp", s.Address)
	if err != nil {
		return fmt.Errorf("listening for the trigger: %w", err)
	}
	server := &http.Server{
		Handler:           &handler{passer: s.Passer, reviewer: s.Reviewer, limits: newLimits(s.Clock), watched: s.Namespaces, log: s.Log},
		BaseContext:       func(net.Listener) context.Context { return ctx },
		ReadHeaderTimeout: readTimeout, ReadTimeout: readTimeout, IdleTimeout: idleTimeout,
		WriteTimeout: MaxWait + readTimeout + time.Minute, MaxHeaderBytes: maxHeader,
		TLSConfig: config,
	}
	stopped := make(chan struct{})
	go func() {
		defer close(stopped)
		<-ctx.Done()
		bounded, stop := context.WithTimeout(context.WithoutCancel(ctx), stopTimeout)
		defer stop()
		_ = server.Shutdown(bounded)
	}()
	s.Log.Info("Serving the trigger", "address", listener.Addr().String())
	if err := server.ServeTLS(listener, "", ""); !errors.Is(err, http.ErrServerClosed) {
		return fmt.Errorf("serving the trigger: %w", err)
	}
	<-stopped
	return nil
}

// tls is the configuration with the certificate.
func (s *Server) tls(ctx context.Context) (*tls.Config, error) {
	config := &tls.Config{MinVersion: tls.VersionTLS12, NextProtos: []string{"http/1.1"}}
	if s.CertDir == "" {
		s.Log.Info("The trigger has a certificate that nobody has signed: callers cannot tell it from another; give --trigger-cert-dir")
		cert, key, err := certutil.GenerateSelfSignedCertKey("localhost", []net.IP{net.IPv4(127, 0, 0, 1)}, nil)
		if err != nil {
			return nil, fmt.Errorf("making a certificate for the trigger: %w", err)
		}
		pair, err := tls.X509KeyPair(cert, key)
		if err != nil {
			return nil, fmt.Errorf("making a certificate for the trigger: %w", err)
		}
		config.Certificates = []tls.Certificate{pair}
		return config, nil
	}
	watcher, err := certwatcher.New(filepath.Join(s.CertDir, "tls.crt"), filepath.Join(s.CertDir, "tls.key"))
	if err != nil {
		return nil, fmt.Errorf("reading the trigger's certificate: %w", err)
	}
	go func() {
		if err := watcher.Start(ctx); err != nil {
			s.Log.Error(err, "Changes of the trigger's certificate are not noticed any more")
		}
	}()
	config.GetCertificate = watcher.GetCertificate
	return config, nil
}
