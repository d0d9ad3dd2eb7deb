// SPDX-FileCopyrightText: The WorkItem Operator Authors
// SPDX-License-Identifier: Apache-2.0

package trigger

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"regexp"
	"testing"
	"time"

	"github.com/go-logr/logr/funcr"
	certutil "k8s.io/client-go/util/cert"
	"k8s.io/utils/clock"
)

// soon is how long a test waits for what happens by itself.
const soon = time.Minute

// serve starts a Server and returns its address. It is stopped at the end of the test.
func serve(t *testing.T, dir string) string {
	t.Helper()
	addresses := make(chan string, 1)
	address := regexp.MustCompile(`"address"="([^"]*)"`)
	log := funcr.New(func(_, args string) {
		if found := address.FindStringSubmatch(args); found != nil {
			addresses <- found[1]
		}
	}, funcr.Options{})
	server := &Server{Options: Options{
		Address: "127.0.0.1:0", CertDir: dir, Passer: &passes{}, Reviewer: person{}, Clock: clock.RealClock{}, Log: log,
	}}
	ctx, stop := context.WithCancel(t.Context())
	ended := make(chan error, 1)
	go func() { ended <- server.Start(ctx) }()
	t.Cleanup(func() {
		stop()
		if err := <-ended; err != nil {
			t.Error(err)
		}
	})
	select {
	case a := <-addresses:
		return a
	case <-time.After(soon):
		t.Fatal("the server does not say where it listens")
		return ""
	}
}

// keyPair writes a certificate for a name and returns a pool that trusts it.
func keyPair(t *testing.T, dir, name string) *x509.CertPool {
	t.Helper()
	cert, key, err := certutil.GenerateSelfSignedCertKey(name, []net.IP{net.IPv4(127, 0, 0, 1)}, nil)
	if err != nil {
		t.Fatal(err)
	}
	// The key comes first, as the certificate's change is what is looked for.
	for file, content := range map[string][]byte{"tls.key": key, "tls.crt": cert} {
		if err := os.WriteFile(filepath.Join(dir, file), content, 0o600); err != nil {
			t.Fatal(err)
		}
	}
	pool := x509.NewCertPool()
	pool.AppendCertsFromPEM(cert)
	return pool
}

func read(t *testing.T, address string, pool *x509.CertPool) error {
	t.Helper()
	c := &http.Client{Transport: &http.Transport{TLSClientConfig: &tls.Config{RootCAs: pool, MinVersion: tls.VersionTLS12}, DisableKeepAlives: true}}
	req, err := http.NewRequestWithContext(t.Context(), http.MethodGet, "https://"+address+ContractPath, http.NoBody)
	if err != nil {
		t.Fatal(err)
	}
	resp, err := c.Do(req)
	if err != nil {
		return err
	}
	return resp.Body.Close()
}

func TestACertificateThatChangesIsServed(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	first := keyPair(t, dir, "first")
	address := serve(t, dir)
	if err := read(t, address, first); err != nil {
		t.Fatal(err)
	}
	second := keyPair(t, dir, "second")
	deadline := time.Now().Add(soon)
	for {
		err := read(t, address, second)
		if err == nil {
			return
		}
		if time.Now().After(deadline) {
			t.Fatal("the new certificate is not served:", err)
		}
		time.Sleep(50 * time.Millisecond)
	}
}

func TestWithoutACertificateOneIsMade(t *testing.T) {
	t.Parallel()
	address := serve(t, "")
	if err := read(t, address, x509.NewCertPool()); err == nil {
		t.Error("a certificate that nobody has signed is trusted")
	}
	conn, err := (&tls.Dialer{Config: &tls.Config{InsecureSkipVerify: true}}).DialContext(t.Context(), "tcp", address)
	if err != nil {
		t.Fatal(err)
	}
	_ = conn.Close()
}

func TestACertificateThatIsNotThereIsAnError(t *testing.T) {
	t.Parallel()
	server := &Server{Options: Options{Address: "127.0.0.1:0", CertDir: t.TempDir(), Clock: clock.RealClock{}}}
	if err := server.Start(t.Context()); err == nil {
		t.Error("it serves without a certificate")
	}
}
