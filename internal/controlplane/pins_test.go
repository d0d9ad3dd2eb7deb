// SPDX-FileCopyrightText: The WorkItem Operator Authors
// SPDX-License-Identifier: Apache-2.0

package controlplane

import (
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

func write(t *testing.T, file, content string, mode os.FileMode) {
	t.Helper()
	if err := os.MkdirAll(filepath.Dir(file), 0o755); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(file, []byte(content), mode); err != nil {
		t.Fatal(err)
	}
}

func TestModuleRootIsFoundFromADirectoryBelow(t *testing.T) {
	root := t.TempDir()
	write(t, filepath.Join(root, "go.mod"), "module "+modulePath+"\n", 0o600)
	// A module of its own in between, as below hack/tools, is not the root.
	write(t, filepath.Join(root, "hack", "go.mod"), "module "+modulePath+"/hack\n", 0o600)
	below := filepath.Join(root, "hack", "deep")
	write(t, filepath.Join(below, "file"), "", 0o600)

	got, err := moduleRootFrom(below)
	if err != nil || got != root {
		t.Errorf("got %q and %v, want %q", got, err, root)
	}
}

func TestModuleRootIsMissingOutsideOfACheckout(t *testing.T) {
	dir := t.TempDir()
	write(t, filepath.Join(dir, "go.mod"), "module example.com/another\n", 0o600)
	if _, err := moduleRootFrom(dir); !errors.Is(err, errNotInModule) {
		t.Errorf("got %v, want errNotInModule", err)
	}
}

func TestPins(t *testing.T) {
	const kubernetes = "module m\n\nrequire k8s.io/kubernetes v1.30.1\n\nrequire k8s.io/api v0.30.1 // indirect\n"
	const etcd = "module m\n\nrequire (\n\tgo.etcd.io/etcd/server/v3 v3.5.9\n)\n"
	for name, tc := range map[string]struct {
		kubernetes, etcd string
		want             pins
		wantErr          bool
	}{
		"both required": {kubernetes: kubernetes, etcd: etcd, want: pins{kubernetes: "v1.30.1", etcd: "v3.5.9"}},
		"not required":  {kubernetes: "module m\n", etcd: etcd, wantErr: true},
		"not a go.mod":  {kubernetes: kubernetes, etcd: "version: 3\n", wantErr: true},
	} {
		t.Run(name, func(t *testing.T) {
			root := t.TempDir()
			write(t, filepath.Join(toolModule(root, "kubernetes"), "go.mod"), tc.kubernetes, 0o600)
			write(t, filepath.Join(toolModule(root, "etcd"), "go.mod"), tc.etcd, 0o600)
			got, err := readPins(root)
			if got != tc.want || (err != nil) != tc.wantErr {
				t.Errorf("got %v and %v, want %v", got, err, tc.want)
			}
		})
	}
}

func TestPinsOfThisRepositoryCanBeRead(t *testing.T) {
	root, err := ModuleRoot()
	if err != nil {
		t.Fatal(err)
	}
	if _, err := readPins(root); err != nil {
		t.Error(err)
	}
}

func TestLinkFlagsTellTheVersion(t *testing.T) {
	flags := pins{kubernetes: "v1.30.1"}.kubernetesLinkFlags()
	for _, want := range []string{
		"-X k8s.io/component-base/version.gitVersion=v1.30.1",
		"-X k8s.io/component-base/version.gitMajor=1",
		"-X k8s.io/client-go/pkg/version.gitMinor=30",
	} {
		if !strings.Contains(flags, want) {
			t.Errorf("%q does not contain %q", flags, want)
		}
	}
}
