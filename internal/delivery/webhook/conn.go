// SPDX-FileCopyrightText: The WorkItem Operator Authors
// SPDX-License-Identifier: Apache-2.0

package webhook

import (
	"crypto/tls"
	"fmt"
	"net"
	"net/http/httptrace"
	"sync"
)

// conn counts the writes to a connection, below TLS. It is how a call can prove
// that nothing of its request was written.
type conn struct {
	net.Conn

	mu     sync.Mutex
	writes uint64
	sealed bool
}

// Write implements net.Conn. A write counts from its beginning.
func (c *conn) Write(p []byte) (int, error) {
	c.mu.Lock()
	if c.sealed {
		c.mu.Unlock()
		return 0, fmt.Errorf("writing to a connection that was given up: %w", net.ErrClosed)
	}
	c.writes++
	c.mu.Unlock()
	return c.Conn.Write(p)
}

func (c *conn) count() uint64 {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.writes
}

// sealIfAt tells whether there was no write since count was n. If so, there
// will be none: what has not been written by now must not be written after the
// call has said so.
func (c *conn) sealIfAt(n uint64) bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.writes != n {
		return false
	}
	c.sealed = true
	return true
}

// watch follows one call through its connection. Its hooks may run on other
// goroutines, and even after the call.
type watch struct {
	mu sync.Mutex
	// assigned is whether the call got a connection to write to.
	assigned bool
	// own is that connection, if no other call can write to it meanwhile, and
	// before is its count of writes at that moment.
	own    *conn
	before uint64
	// handshake is why a TLS handshake failed.
	handshake error
}

func (w *watch) trace() *httptrace.ClientTrace {
	return &httptrace.ClientTrace{
		GotConn: func(info httptrace.GotConnInfo) { w.gotConn(info.Conn) },
		TLSHandshakeDone: func(_ tls.ConnectionState, err error) {
			w.mu.Lock()
			defer w.mu.Unlock()
			w.handshake = err
		},
	}
}

// gotConn is called before the transport writes anything of the request.
func (w *watch) gotConn(got net.Conn) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.assigned, w.own = true, nil
	if secured, ok := got.(*tls.Conn); ok {
		if secured.ConnectionState().NegotiatedProtocol == "h2" {
			// Shared with other calls: what is written may be theirs.
			return
		}
		got = secured.NetConn()
	}
	if counting, ok := got.(*conn); ok {
		w.own, w.before = counting, counting.count()
	}
}

// begun tells whether anything of the request may have been written. It is true
// in doubt. Ask it once the call has failed.
func (w *watch) begun() bool {
	w.mu.Lock()
	defer w.mu.Unlock()
	switch {
	case !w.assigned:
		return false
	case w.own == nil:
		return true
	}
	return !w.own.sealIfAt(w.before)
}

func (w *watch) handshakeFailed() bool {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.handshake != nil
}
