// SPDX-FileCopyrightText: The WorkItem Operator Authors
// SPDX-License-Identifier: Apache-2.0

package controlplane

import (
	"context"
	"crypto/sha512"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"net/http"
	"os"
	"path/filepath"
	"runtime"
	"time"

	"sigs.k8s.io/controller-runtime/pkg/envtest"
	"sigs.k8s.io/yaml"
)

const (
	// indexTimeout bounds the question whether a download is possible at all. A machine without access must
	// get its answer soon, also where a firewall drops packets instead of refusing them.
	indexTimeout = 5 * time.Second
	// stallTimeout bounds how long an archive may send nothing. Its total time depends on the line.
	stallTimeout = 20 * time.Second
	// maxIndexBytes is several times what the index has grown to over the years.
	maxIndexBytes = 16 << 20
)

var errStalled = errors.New("the server stopped sending")

// downloader fetches the archives that envtest's maintainers publish.
type downloader struct {
	indexURL     string
	indexTimeout time.Duration
	stallTimeout time.Duration
	logf         Logf
}

// releaseIndex maps a version to its archives, by file name.
type releaseIndex struct {
	Releases map[string]map[string]archive `json:"releases"`
}

// archive is where an archive is and the SHA-512 that it must have.
type archive struct {
	Hash string `json:"hash"`
	URL  string `json:"selfLink"`
}

func newDownloader(logf Logf) downloader {
	return downloader{
		indexURL:     envtest.DefaultBinaryAssetsIndexURL,
		indexTimeout: indexTimeout,
		stallTimeout: stallTimeout,
		logf:         logf,
	}
}

// fetch fills dir with the published binaries of a Kubernetes version, all of them or none.
func (d downloader) fetch(ctx context.Context, kubernetesVersion, dir string) error {
	found, err := d.lookUp(ctx, kubernetesVersion)
	if err != nil {
		return err
	}
	staging, err := newStaging(dir)
	if err != nil {
		return err
	}
	defer func() { _ = os.RemoveAll(staging) }()

	d.logf("Downloading %s; it will be kept in %s.", found.URL, dir)
	file := filepath.Join(staging, "archive.tar.gz")
	if err := d.save(ctx, found, file); err != nil {
		return fmt.Errorf("downloading %s: %w", found.URL, err)
	}
	if err := unpack(file, staging); err != nil {
		return fmt.Errorf("unpacking %s: %w", found.URL, err)
	}
	for _, name := range binaries {
		if err := publish(staging, dir, name); err != nil {
			return err
		}
	}
	return nil
}

// lookUp finds the archive for this machine in the index.
func (d downloader) lookUp(ctx context.Context, kubernetesVersion string) (archive, error) {
	ctx, cancel := context.WithTimeout(ctx, d.indexTimeout)
	defer cancel()
	body, err := get(ctx, d.indexURL)
	if err != nil {
		return archive{}, fmt.Errorf("reading the index of published binaries: %w", err)
	}
	defer func() { _ = body.Close() }()
	data, err := io.ReadAll(io.LimitReader(body, maxIndexBytes))
	if err != nil {
		return archive{}, fmt.Errorf("reading the index of published binaries: %w", err)
	}
	var index releaseIndex
	if err := yaml.Unmarshal(data, &index); err != nil {
		return archive{}, fmt.Errorf("reading the index of published binaries: %w", err)
	}
	name := fmt.Sprintf("envtest-%s-%s-%s.tar.gz", kubernetesVersion, runtime.GOOS, runtime.GOARCH)
	found, ok := index.Releases[kubernetesVersion][name]
	if !ok {
		return archive{}, fmt.Errorf("the index of published binaries does not list %s", name)
	}
	return found, nil
}

// save writes the archive to file and checks its digest.
func (d downloader) save(ctx context.Context, source archive, file string) error {
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	watchdog := time.AfterFunc(d.stallTimeout, func() { cancel(errStalled) })
	defer watchdog.Stop()

	body, err := get(ctx, source.URL)
	if err != nil {
		return causeOf(ctx, err)
	}
	defer func() { _ = body.Close() }()
	out, err := os.Create(file) //nolint:gosec // The path is inside of the staging directory.
	if err != nil {
		return fmt.Errorf("creating the archive file: %w", err)
	}
	digest := sha512.New()
	alive := readerFunc(func(p []byte) (int, error) {
		watchdog.Reset(d.stallTimeout)
		return body.Read(p)
	})
	_, err = io.Copy(io.MultiWriter(out, digest), alive)
	if err := errors.Join(causeOf(ctx, err), out.Close()); err != nil {
		return err
	}
	if got := hex.EncodeToString(digest.Sum(nil)); got != source.Hash {
		return fmt.Errorf("its SHA-512 is %s, the index says %s", got, source.Hash)
	}
	return nil
}

// causeOf replaces the plain "context canceled" of err by the reason of the cancellation.
func causeOf(ctx context.Context, err error) error {
	if err != nil && ctx.Err() != nil {
		return context.Cause(ctx)
	}
	return err
}

// get returns the body of a successful answer. The default client honours the proxy variables.
func get(ctx context.Context, url string) (io.ReadCloser, error) {
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, url, nil)
	if err != nil {
		return nil, fmt.Errorf("making the request: %w", err)
	}
	response, err := http.DefaultClient.Do(request)
	if err != nil {
		return nil, err
	}
	if response.StatusCode != http.StatusOK {
		_ = response.Body.Close()
		return nil, fmt.Errorf("%s answered %s", url, response.Status)
	}
	return response.Body, nil
}

type readerFunc func(p []byte) (int, error)

func (f readerFunc) Read(p []byte) (int, error) { return f(p) }
