// SPDX-FileCopyrightText: The WorkItem Operator Authors
// SPDX-License-Identifier: Apache-2.0

package controlplane

import (
	"bytes"
	"errors"
	"os"
	"path/filepath"
	"testing"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/tools/clientcmd"
)

func TestKubeconfigIsNotWrittenOverSomeoneElses(t *testing.T) {
	path := filepath.Join(t.TempDir(), "config")
	write(t, path, "apiVersion: v1\n", 0o600)
	if err := writeKubeconfig(path, nil); !errors.Is(err, errForeignKubeconfig) {
		t.Errorf("got %v, want errForeignKubeconfig", err)
	}
}

func TestKubeconfigReplacesItsOwn(t *testing.T) {
	path := filepath.Join(t.TempDir(), "config")
	for _, content := range []string{"first", "second"} {
		if err := writeKubeconfig(path, []byte(content)); err != nil {
			t.Fatal(err)
		}
	}
	info, err := os.Stat(path)
	if err != nil || info.Mode().Perm() != 0o600 {
		t.Errorf("got %v and %v, want mode 0600", info, err)
	}
	got, err := os.ReadFile(path)
	if err != nil || !bytes.HasSuffix(got, []byte("second")) {
		t.Errorf("got %q and %v", got, err)
	}
}

func TestLineTailKeepsTheLastLines(t *testing.T) {
	tail := &lineTail{}
	for range 3 * keptLines {
		if _, err := tail.Write([]byte("old\n")); err != nil {
			t.Fatal(err)
		}
	}
	for _, piece := range []string{"ne", "w\nnewest\nunfinished"} {
		if _, err := tail.Write([]byte(piece)); err != nil {
			t.Fatal(err)
		}
	}
	if len(tail.lines) != keptLines || tail.lines[keptLines-2] != "new" || tail.lines[keptLines-1] != "newest" {
		t.Errorf("got %q", tail.lines)
	}
}

func TestPlaneServesUsersAndKeepsItsData(t *testing.T) {
	if os.Getenv(AssetsVariable) == "" {
		t.Skip(AssetsVariable + " is not set; make test sets it")
	}
	opts := Options{DataDir: t.TempDir(), Logf: t.Logf}
	plane := startPlane(t, opts)

	client := kubernetes.NewForConfigOrDie(plane.Config())
	config := &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Name: "kept"}}
	if _, err := client.CoreV1().ConfigMaps("default").Create(t.Context(), config, metav1.CreateOptions{}); err != nil {
		t.Fatal(err)
	}

	stranger, err := plane.User("stranger")
	if err != nil {
		t.Fatal(err)
	}
	_, err = kubernetes.NewForConfigOrDie(stranger).CoreV1().ConfigMaps("default").Get(t.Context(), "kept", metav1.GetOptions{})
	if !apierrors.IsForbidden(err) {
		t.Errorf("a user without a role got %v, want Forbidden", err)
	}

	path := filepath.Join(t.TempDir(), "kubeconfig")
	if err := plane.WriteKubeconfig(path); err != nil {
		t.Fatal(err)
	}
	fromFile, err := clientcmd.BuildConfigFromFlags("", path)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := kubernetes.NewForConfigOrDie(fromFile).Discovery().ServerVersion(); err != nil {
		t.Errorf("the kubeconfig does not work: %v", err)
	}
	if err := plane.Stop(); err != nil {
		t.Fatal(err)
	}

	client = kubernetes.NewForConfigOrDie(startPlane(t, opts).Config())
	if _, err := client.CoreV1().ConfigMaps("default").Get(t.Context(), "kept", metav1.GetOptions{}); err != nil {
		t.Errorf("after the next start on the same data: %v", err)
	}
}

func startPlane(t *testing.T, opts Options) *Plane {
	t.Helper()
	plane, err := Start(t.Context(), opts)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := plane.Stop(); err != nil {
			t.Error(err)
		}
	})
	return plane
}
