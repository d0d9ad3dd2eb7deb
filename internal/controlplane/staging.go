// SPDX-FileCopyrightText: The WorkItem Operator Authors
// SPDX-License-Identifier: Apache-2.0

package controlplane

import (
	"fmt"
	"os"
	"path/filepath"
)

const stagingPattern = "staging-*"

// newStaging makes a directory for unfinished files beside dir, so that a finished one moves into dir by a
// rename: on one file system, in one step. The caller removes it.
func newStaging(dir string) (string, error) {
	if err := os.MkdirAll(dir, 0o750); err != nil {
		return "", fmt.Errorf("making the cache directory: %w", err)
	}
	staging, err := os.MkdirTemp(filepath.Dir(dir), stagingPattern)
	if err != nil {
		return "", fmt.Errorf("making a directory for unfinished files: %w", err)
	}
	return staging, nil
}

// removeStaging removes what a killed process left. Only the holder of the lock may call it.
func removeStaging(root string) error {
	left, err := filepath.Glob(filepath.Join(root, stagingPattern))
	if err != nil {
		return fmt.Errorf("looking for unfinished files: %w", err)
	}
	for _, dir := range left {
		if err := os.RemoveAll(dir); err != nil {
			return fmt.Errorf("removing unfinished files: %w", err)
		}
	}
	return nil
}

// publish moves one finished binary from staging to dir.
func publish(staging, dir, name string) error {
	file := filepath.Join(staging, name)
	if err := os.Chmod(file, 0o755); err != nil { //nolint:gosec // It is a program; it must be executable.
		return fmt.Errorf("making %s executable: %w", name, err)
	}
	if err := os.Rename(file, filepath.Join(dir, name)); err != nil {
		return fmt.Errorf("moving %s into the cache: %w", name, err)
	}
	return nil
}
