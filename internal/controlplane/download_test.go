// SPDX-FileCopyrightText: The WorkItem Operator Authors
// SPDX-License-Identifier: Apache-2.0

package controlplane

import (
	"archive/tar"
	"bytes"
	"compress/gzip"
	"crypto/sha512"
	"encoding/hex"
	"errors"
	"fmt"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"runtime"
	"testing"
	"time"
)

const testVersion = "v1.30.1"

// pack makes an archive with one directory level, as the published ones have it.
func pack(t *testing.T, names ...string) []byte {
	t.Helper()
	packed := &bytes.Buffer{}
	zipped := gzip.NewWriter(packed)
	entries := tar.NewWriter(zipped)
	for _, name := range names {
		content := []byte("#!/bin/sh\necho " + name + "\n")
		header := &tar.Header{Name: "controller-tools/envtest/" + name, Mode: 0o755, Size: int64(len(content)), Typeflag: tar.TypeReg}
		if err := entries.WriteHeader(header); err != nil {
			t.Fatal(err)
		}
		if _, err := entries.Write(content); err != nil {
			t.Fatal(err)
		}
	}
	if err := errors.Join(entries.Close(), zipped.Close()); err != nil {
		t.Fatal(err)
	}
	return packed.Bytes()
}

// publisher serves an index that lists one archive, and the archive.
func publisher(t *testing.T, version string, content []byte, digest string) downloader {
	t.Helper()
	mux := http.NewServeMux()
	server := httptest.NewServer(mux)
	t.Cleanup(server.Close)
	mux.HandleFunc("/index", func(w http.ResponseWriter, _ *http.Request) {
		fmt.Fprintf(w, "releases:\n  %s:\n    envtest-%s-%s-%s.tar.gz:\n      hash: %s\n      selfLink: %s/archive\n",
			version, version, runtime.GOOS, runtime.GOARCH, digest, server.URL)
	})
	mux.HandleFunc("/archive", func(w http.ResponseWriter, _ *http.Request) {
		if _, err := w.Write(content); err != nil {
			t.Error(err)
		}
	})
	return downloader{indexURL: server.URL + "/index", indexTimeout: time.Minute, stallTimeout: time.Minute, logf: t.Logf}
}

func digestOf(content []byte) string {
	sum := sha512.Sum512(content)
	return hex.EncodeToString(sum[:])
}

func TestDownload(t *testing.T) {
	complete := pack(t, "etcd", "kube-apiserver", "kubectl", "README.md")
	incomplete := pack(t, "etcd", "kubectl")
	for name, tc := range map[string]struct {
		version, digest string
		content         []byte
		want            bool
	}{
		"a complete archive is unpacked":    {testVersion, digestOf(complete), complete, true},
		"another digest is refused":         {testVersion, digestOf(incomplete), complete, false},
		"no digest is refused":              {testVersion, "", complete, false},
		"an incomplete archive is refused":  {testVersion, digestOf(incomplete), incomplete, false},
		"something else is refused":         {testVersion, digestOf([]byte("no")), []byte("no"), false},
		"another version is not a stand-in": {"v1.30.0", digestOf(complete), complete, false},
	} {
		t.Run(name, func(t *testing.T) {
			root := t.TempDir()
			dir := filepath.Join(root, "dir")
			err := publisher(t, tc.version, tc.content, tc.digest).fetch(t.Context(), testVersion, dir)
			t.Log(err)
			if (err == nil) != tc.want || (len(missingBinaries(dir)) == 0) != tc.want {
				t.Errorf("got %v and %v missing, want success: %t", err, missingBinaries(dir), tc.want)
			}
			assertNoStaging(t, root)
		})
	}
}

func assertNoStaging(t *testing.T, root string) {
	t.Helper()
	left, err := filepath.Glob(filepath.Join(root, stagingPattern))
	if err != nil || len(left) > 0 {
		t.Errorf("unfinished files are left: %v (%v)", left, err)
	}
}

func TestAServerThatDoesNotAnswerIsGivenUpSoon(t *testing.T) {
	release := make(chan struct{})
	server := httptest.NewServer(http.HandlerFunc(func(http.ResponseWriter, *http.Request) { <-release }))
	t.Cleanup(server.Close)
	t.Cleanup(func() { close(release) })
	d := downloader{indexURL: server.URL, indexTimeout: 50 * time.Millisecond, stallTimeout: time.Minute, logf: t.Logf}
	if err := d.fetch(t.Context(), testVersion, t.TempDir()); !os.IsTimeout(errors.Unwrap(err)) {
		t.Errorf("got %v, want a timeout", err)
	}
}

func TestAnArchiveThatStopsComingIsGivenUp(t *testing.T) {
	release := make(chan struct{})
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		w.WriteHeader(http.StatusOK)
		if err := http.NewResponseController(w).Flush(); err != nil {
			t.Error(err)
		}
		<-release
	}))
	t.Cleanup(server.Close)
	t.Cleanup(func() { close(release) })
	d := downloader{stallTimeout: 50 * time.Millisecond, logf: t.Logf}
	err := d.save(t.Context(), archive{URL: server.URL}, filepath.Join(t.TempDir(), "archive"))
	if !errors.Is(err, errStalled) {
		t.Errorf("got %v, want errStalled", err)
	}
}
