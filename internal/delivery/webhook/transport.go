// SPDX-FileCopyrightText: The WorkItem Operator Authors
// SPDX-License-Identifier: Apache-2.0

package webhook

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"net"
	"net/http"
	"time"

	"github.com/workitem-operator/workitem-operator/internal/delivery"
)

const (
	// idleTimeout closes an unused connection before the server does, of which
	// many wait 5 s: a request that crosses a server's closing of the
	// connection is lost with an ambiguous outcome.
	idleTimeout = 4 * time.Second
	// idlePerHost is how many connections are kept for the next call.
	idlePerHost = 16
	// dialTimeout and handshakeTimeout end what the transport may go on doing
	// for a call that has ended; the call itself ends with its context.
	dialTimeout      = 30 * time.Second
	handshakeTimeout = 30 * time.Second
	// pingAfter and pingTimeout find out an HTTP/2 connection that leads
	// nowhere any more, and would otherwise be used again and again.
	pingAfter   = 10 * time.Second
	pingTimeout = 5 * time.Second
	// maxAnswerHeader bounds the answer's headers, in bytes.
	maxAnswerHeader = 64 << 10
)

// newTransport returns the transport of one Sender. It is not shared: trust,
// guard and kept connections are this webhook's alone.
func newTransport(guard *delivery.Guard, roots *x509.CertPool) *http.Transport {
	if guard == nil {
		guard = &delivery.Guard{}
	}
	dialer := &net.Dialer{Timeout: dialTimeout, Control: guard.Control}
	protocols := &http.Protocols{}
	protocols.SetHTTP1(true)
	protocols.SetHTTP2(true)
	return &http.Transport{
		// The environment's proxy would reach addresses in our place that the
		// guard never gets to see.
		Proxy: nil,
		DialContext: func(ctx context.Context, network, address string) (net.Conn, error) {
			dialled, err := dialer.DialContext(ctx, network, address)
			if err != nil {
				return nil, err
			}
			return &conn{Conn: dialled}, nil
		},
		TLSClientConfig:        &tls.Config{MinVersion: tls.VersionTLS12, RootCAs: roots},
		TLSHandshakeTimeout:    handshakeTimeout,
		Protocols:              protocols,
		HTTP2:                  &http.HTTP2Config{SendPingTimeout: pingAfter, PingTimeout: pingTimeout},
		DisableCompression:     true,
		IdleConnTimeout:        idleTimeout,
		MaxIdleConnsPerHost:    idlePerHost,
		MaxResponseHeaderBytes: maxAnswerHeader,
	}
}
