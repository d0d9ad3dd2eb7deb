// SPDX-FileCopyrightText: The WorkItem Operator Authors
// SPDX-License-Identifier: Apache-2.0

package controlplane

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"runtime"
)

// AssetsVariable names the environment variable that points to a directory with the binaries, as envtest
// and kubebuilder use it.
const AssetsVariable = "KUBEBUILDER_ASSETS"

// Logf receives one line of progress, without a line break at its end.
type Logf func(format string, args ...any)

// binaries are the files a complete assets directory holds. The control plane itself needs no kubectl; a
// person who looks into it does.
var binaries = [...]string{"etcd", "kube-apiserver", "kubectl"}

// Assets returns a directory with etcd, kube-apiserver and kubectl. It takes the first of these that works:
//
//  1. the directory that KUBEBUILDER_ASSETS names, if it is complete;
//  2. the cache of an earlier call, outside of the repository, below [os.UserCacheDir];
//  3. a download of the archive that envtest's maintainers publish, checked against its published digest;
//  4. a build from the sources that hack/tools pins, which takes about ten minutes on two cores.
//
// Calls in several processes share one download or build. When ctx ends, whatever was started is stopped and
// no incomplete file stays behind.
func Assets(ctx context.Context, logf Logf) (string, error) {
	if dir := assetsFromEnvironment(logf); dir != "" {
		return dir, nil
	}
	root, err := ModuleRoot()
	if err != nil {
		return "", err
	}
	pinned, err := readPins(root)
	if err != nil {
		return "", err
	}
	userCache, err := os.UserCacheDir()
	if err != nil {
		return "", fmt.Errorf("finding the cache directory (%s can name a directory instead): %w", AssetsVariable, err)
	}
	s := store{
		dir:      filepath.Join(userCache, "workitem-operator", "controlplane"),
		pins:     pinned,
		logf:     logf,
		download: newDownloader(logf).fetch,
		build:    newBuilder(root, pinned, logf).build,
	}
	return s.assets(ctx)
}

func assetsFromEnvironment(logf Logf) string {
	dir := os.Getenv(AssetsVariable)
	if dir == "" {
		return ""
	}
	if missing := missingBinaries(dir); len(missing) > 0 {
		logf("%s=%s is not used: it has no %s.", AssetsVariable, dir, missing[0])
		return ""
	}
	return dir
}

// missingBinaries lists what dir lacks of a complete assets directory.
func missingBinaries(dir string) []string {
	var missing []string
	for _, name := range binaries {
		info, err := os.Stat(filepath.Join(dir, name)) //nolint:gosec // A caller's directory is the input.
		if err != nil || !info.Mode().IsRegular() || info.Mode().Perm()&0o100 == 0 {
			missing = append(missing, name)
		}
	}
	return missing
}

// store is the cache of binaries below dir, one directory for each set of versions.
type store struct {
	dir      string
	pins     pins
	logf     Logf
	download func(ctx context.Context, kubernetesVersion, dir string) error
	build    func(ctx context.Context, dir string) error
}

// builtDir is named after both pins, because a build contains exactly them.
func (s store) builtDir() string {
	return s.versionDir(s.pins.etcd)
}

// downloadedDir does not name an etcd version: the published archive brings the one its maintainers chose.
func (s store) downloadedDir() string {
	return s.versionDir("prebuilt")
}

func (s store) versionDir(variant string) string {
	return filepath.Join(s.dir, fmt.Sprintf("%s-%s-%s-%s", s.pins.kubernetes, variant, runtime.GOOS, runtime.GOARCH))
}

func (s store) cached() string {
	for _, dir := range []string{s.builtDir(), s.downloadedDir()} {
		if len(missingBinaries(dir)) == 0 {
			return dir
		}
	}
	return ""
}

func (s store) assets(ctx context.Context) (string, error) {
	if dir := s.cached(); dir != "" {
		return dir, nil
	}
	unlock, err := lock(ctx, filepath.Join(s.dir, "lock"), s.logf)
	if err != nil {
		return "", err
	}
	defer unlock()
	// Whoever held the lock before may have done the work.
	if dir := s.cached(); dir != "" {
		return dir, nil
	}
	if err := removeStaging(s.dir); err != nil {
		return "", err
	}
	return s.obtain(ctx)
}

func (s store) obtain(ctx context.Context) (string, error) {
	err := s.download(ctx, s.pins.kubernetes, s.downloadedDir())
	if err == nil {
		return s.downloadedDir(), nil
	}
	if ctx.Err() != nil {
		return "", err
	}
	s.logf("The published control plane binaries are not available here: %v.", err)
	if err := s.build(ctx, s.builtDir()); err != nil {
		return "", err
	}
	return s.builtDir(), nil
}
