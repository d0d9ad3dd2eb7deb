// SPDX-FileCopyrightText: The WorkItem Operator Authors
// SPDX-License-Identifier: Apache-2.0

package controlplane

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"testing"
)

func fill(t *testing.T, dir string, names ...string) {
	t.Helper()
	for _, name := range names {
		write(t, filepath.Join(dir, name), "#!/bin/sh\n", 0o700)
	}
}

// fakeStore records which ways of obtaining binaries were tried. A way that is allowed fills its directory.
func fakeStore(t *testing.T, downloads, builds bool) (s store, tried *[]string) {
	t.Helper()
	tried = &[]string{}
	obtain := func(name string, works bool, dir string) error {
		*tried = append(*tried, name)
		if !works {
			return errors.New(name + " does not work")
		}
		fill(t, dir, binaries[:]...)
		return nil
	}
	return store{
		dir:  t.TempDir(),
		pins: pins{kubernetes: "v1.30.1", etcd: "v3.5.9"},
		logf: t.Logf,
		download: func(_ context.Context, _, dir string) error {
			return obtain("download", downloads, dir)
		},
		build: func(_ context.Context, dir string) error {
			return obtain("build", builds, dir)
		},
	}, tried
}

func TestAssetsLookupOrder(t *testing.T) {
	type way struct{ built, downloaded, downloads, builds bool }
	for name, tc := range map[string]struct {
		way       way
		want      func(store) string
		wantTried int
	}{
		"a build in the cache comes first":   {way{built: true, downloaded: true}, store.builtDir, 0},
		"a download in the cache comes next": {way{downloaded: true}, store.downloadedDir, 0},
		"then a download is tried":           {way{downloads: true, builds: true}, store.downloadedDir, 1},
		"then a build":                       {way{builds: true}, store.builtDir, 2},
		"nothing works":                      {way{}, nil, 2},
	} {
		t.Run(name, func(t *testing.T) {
			s, tried := fakeStore(t, tc.way.downloads, tc.way.builds)
			if tc.way.built {
				fill(t, s.builtDir(), binaries[:]...)
			}
			if tc.way.downloaded {
				fill(t, s.downloadedDir(), binaries[:]...)
			}
			got, err := s.assets(t.Context())
			if tc.want == nil {
				if err == nil {
					t.Errorf("got %q, want an error", got)
				}
			} else if got != tc.want(s) || err != nil {
				t.Errorf("got %q and %v, want %q", got, err, tc.want(s))
			}
			if len(*tried) != tc.wantTried {
				t.Errorf("tried %v, want %d ways", *tried, tc.wantTried)
			}
		})
	}
}

func TestAnIncompleteCacheIsNotUsed(t *testing.T) {
	s, tried := fakeStore(t, false, true)
	fill(t, s.builtDir(), "etcd", "kube-apiserver")
	if _, err := s.assets(t.Context()); err != nil {
		t.Fatal(err)
	}
	if len(*tried) != 2 {
		t.Errorf("tried %v, want a download and a build", *tried)
	}
}

func TestABuildIsNotStartedAfterAnInterruptedDownload(t *testing.T) {
	s, tried := fakeStore(t, false, true)
	ctx, cancel := context.WithCancel(t.Context())
	download := s.download
	s.download = func(ctx context.Context, version, dir string) error {
		cancel()
		return download(ctx, version, dir)
	}
	if _, err := s.assets(ctx); err == nil {
		t.Error("got no error")
	}
	if len(*tried) != 1 {
		t.Errorf("tried %v, want the download only", *tried)
	}
}

func TestFilesOfAKilledProcessAreRemoved(t *testing.T) {
	s, _ := fakeStore(t, false, true)
	left := filepath.Join(s.dir, "staging-1", "etcd")
	write(t, left, "half", 0o600)
	if _, err := s.assets(t.Context()); err != nil {
		t.Fatal(err)
	}
	if _, err := os.Stat(left); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("%s is still there: %v", left, err)
	}
}

func TestTheEnvironmentVariableComesFirst(t *testing.T) {
	dir := t.TempDir()
	fill(t, dir, binaries[:]...)
	t.Setenv(AssetsVariable, dir)
	if got, err := Assets(t.Context(), t.Logf); got != dir || err != nil {
		t.Errorf("got %q and %v, want %q", got, err, dir)
	}
}

func TestAnIncompleteEnvironmentVariableIsNotUsed(t *testing.T) {
	dir := t.TempDir()
	fill(t, dir, "etcd", "kube-apiserver")
	// A file that cannot be executed is as good as none.
	write(t, filepath.Join(dir, "kubectl"), "", 0o600)
	t.Setenv(AssetsVariable, dir)
	if got := assetsFromEnvironment(t.Logf); got != "" {
		t.Errorf("got %q, want nothing", got)
	}
}
