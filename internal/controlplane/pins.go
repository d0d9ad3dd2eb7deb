// SPDX-FileCopyrightText: The WorkItem Operator Authors
// SPDX-License-Identifier: Apache-2.0

package controlplane

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"

	"golang.org/x/mod/modfile"
	"golang.org/x/mod/semver"
)

// modulePath is how the module's root is recognised among the parents of the working directory.
const modulePath = "github.com/workitem-operator/workitem-operator"

// The modules whose required versions are the pins.
const (
	kubernetesModule = "k8s.io/kubernetes"
	etcdModule       = "go.etcd.io/etcd/server/v3"
)

var errNotInModule = errors.New("not inside a checkout of " + modulePath)

// pins are the versions that hack/tools requires, each with its leading v.
type pins struct {
	kubernetes string
	etcd       string
}

// ModuleRoot returns the directory of this module's go.mod, looked for from the working directory upwards.
func ModuleRoot() (string, error) {
	dir, err := os.Getwd()
	if err != nil {
		return "", fmt.Errorf("finding the working directory: %w", err)
	}
	return moduleRootFrom(dir)
}

func moduleRootFrom(dir string) (string, error) {
	for current := dir; ; {
		data, err := os.ReadFile(filepath.Join(current, "go.mod")) //nolint:gosec // The walk is the purpose.
		if err == nil && modfile.ModulePath(data) == modulePath {
			return current, nil
		}
		parent := filepath.Dir(current)
		if parent == current {
			return "", fmt.Errorf("looking for go.mod from %s upwards: %w", dir, errNotInModule)
		}
		current = parent
	}
}

func readPins(root string) (pins, error) {
	kubernetes, err := requiredVersion(toolModule(root, "kubernetes"), kubernetesModule)
	if err != nil {
		return pins{}, err
	}
	etcd, err := requiredVersion(toolModule(root, "etcd"), etcdModule)
	if err != nil {
		return pins{}, err
	}
	return pins{kubernetes: kubernetes, etcd: etcd}, nil
}

func toolModule(root, name string) string {
	return filepath.Join(root, "hack", "tools", name)
}

// requiredVersion returns the version of path that the go.mod in dir requires.
func requiredVersion(dir, path string) (string, error) {
	file := filepath.Join(dir, "go.mod")
	data, err := os.ReadFile(file) //nolint:gosec // The path is built from the module's root.
	if err != nil {
		return "", fmt.Errorf("reading the pinned version of %s: %w", path, err)
	}
	parsed, err := modfile.Parse(file, data, nil)
	if err != nil {
		return "", fmt.Errorf("reading the pinned version of %s: %w", path, err)
	}
	for _, require := range parsed.Require {
		if require.Mod.Path == path {
			return require.Mod.Version, nil
		}
	}
	return "", fmt.Errorf("reading the pinned version of %s: %s does not require it", path, file)
}

// kubernetesLinkFlags tell the Kubernetes binaries which version they are. Without them they report v0.0.0,
// and every check that compares versions, feature gates among them, goes wrong.
func (p pins) kubernetesLinkFlags() string {
	major, minor, _ := strings.Cut(strings.TrimPrefix(semver.MajorMinor(p.kubernetes), "v"), ".")
	flags := []string{"-s", "-w"}
	for _, pkg := range []string{"k8s.io/component-base/version", "k8s.io/client-go/pkg/version"} {
		flags = append(flags,
			"-X "+pkg+".gitVersion="+p.kubernetes,
			"-X "+pkg+".gitMajor="+major,
			"-X "+pkg+".gitMinor="+minor,
			"-X "+pkg+".gitTreeState=clean",
		)
	}
	return strings.Join(flags, " ")
}
