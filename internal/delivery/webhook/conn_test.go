// SPDX-FileCopyrightText: The WorkItem Operator Authors
// SPDX-License-Identifier: Apache-2.0

package webhook

import (
	"crypto/tls"
	"errors"
	"io"
	"net"
	"testing"

	"github.com/workitem-operator/workitem-operator/internal/delivery"
)

// pipe returns a connection whose other end swallows everything.
func pipe(t *testing.T) *conn {
	t.Helper()
	near, far := net.Pipe()
	t.Cleanup(func() {
		_ = near.Close()
		_ = far.Close()
	})
	go func() { _, _ = io.Copy(io.Discard, far) }()
	return &conn{Conn: near}
}

func TestNothingIsWrittenAfterItWasSaidSo(t *testing.T) {
	t.Parallel()
	c, w := pipe(t), &watch{}
	if _, err := c.Write([]byte("an earlier call")); err != nil {
		t.Fatal(err)
	}
	if w.begun() {
		t.Error("begun without a connection")
	}
	w.gotConn(c)
	if w.begun() {
		t.Error("begun without a write")
	}
	if _, err := c.Write([]byte("too late")); !errors.Is(err, net.ErrClosed) {
		t.Errorf("written after all: %v", err)
	}
}

func TestWritesCountFromTheirBeginning(t *testing.T) {
	t.Parallel()
	c, w := pipe(t), &watch{}
	w.gotConn(c)
	_ = c.Close()
	if _, err := c.Write([]byte("fails")); err == nil {
		t.Fatal("a write to a closed connection succeeded")
	}
	if !w.begun() {
		t.Error("a write that failed may have written")
	}
}

func TestUnknownConnectionsAreInDoubt(t *testing.T) {
	t.Parallel()
	near, _ := net.Pipe()
	for name, c := range map[string]net.Conn{"not counted": near, "TLS over it": tls.Client(near, &tls.Config{MinVersion: tls.VersionTLS12})} {
		w := &watch{}
		w.gotConn(c)
		if !w.begun() {
			t.Errorf("%s: taken for untouched", name)
		}
	}
}

// A proxy named by the environment would connect in our place, past the guard.
func TestTransport(t *testing.T) {
	t.Parallel()
	roots, err := rootsOf(nil)
	if err != nil || roots != nil {
		t.Fatalf("no bundle: %v, %v", roots, err)
	}
	transport := newTransport(&delivery.Guard{}, roots)
	if transport.Proxy != nil {
		t.Error("the transport uses a proxy")
	}
	if transport.TLSClientConfig.MinVersion < tls.VersionTLS12 || transport.TLSClientConfig.InsecureSkipVerify {
		t.Error("the transport accepts weak TLS")
	}
}
