// SPDX-FileCopyrightText: The WorkItem Operator Authors
// SPDX-License-Identifier: Apache-2.0

package controlplane

import (
	"bytes"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
)

// kubeconfigMark is the first line of every kubeconfig written here, and the only licence to overwrite one.
const kubeconfigMark = "# Written by the WorkItem operator's development control plane.\n"

var errForeignKubeconfig = errors.New("the file exists and was not written by a development control plane")

// WriteKubeconfig writes a kubeconfig with all permissions to path, readable by its owner only. It refuses to
// replace a file that it did not write: a person's kubeconfig holds the way to their clusters.
func (p *Plane) WriteKubeconfig(path string) error {
	if err := writeKubeconfig(path, p.env.KubeConfig); err != nil {
		return fmt.Errorf("writing kubeconfig %s: %w", path, err)
	}
	return nil
}

func writeKubeconfig(path string, content []byte) error {
	existing, err := os.ReadFile(path) //nolint:gosec // The caller's path is the input.
	if err == nil && !bytes.HasPrefix(existing, []byte(kubeconfigMark)) {
		return errForeignKubeconfig
	}
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return fmt.Errorf("looking for an existing file: %w", err)
	}
	// A reader must find the old or the new file, never a part. CreateTemp makes it with mode 0600.
	temp, err := os.CreateTemp(filepath.Dir(path), ".kubeconfig-*")
	if err != nil {
		return fmt.Errorf("creating a temporary file: %w", err)
	}
	defer func() { _ = os.Remove(temp.Name()) }()
	_, err = temp.Write(append([]byte(kubeconfigMark), content...))
	if err := errors.Join(err, temp.Close()); err != nil {
		return fmt.Errorf("writing a temporary file: %w", err)
	}
	if err := os.Rename(temp.Name(), path); err != nil {
		return fmt.Errorf("putting the file in place: %w", err)
	}
	return nil
}
