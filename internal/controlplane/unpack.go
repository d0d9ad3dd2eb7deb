// SPDX-FileCopyrightText: The WorkItem Operator Authors
// SPDX-License-Identifier: Apache-2.0

package controlplane

import (
	"archive/tar"
	"compress/gzip"
	"errors"
	"fmt"
	"io"
	"os"
	"path"
	"path/filepath"
	"slices"
)

// unpack writes the binaries that a gzipped tar archive contains to dir, whatever directories the archive
// keeps them in. Every other entry is skipped; a missing binary is an error.
func unpack(file, dir string) error {
	in, err := os.Open(file) //nolint:gosec // The path is inside of the staging directory.
	if err != nil {
		return fmt.Errorf("opening the archive: %w", err)
	}
	defer func() { _ = in.Close() }()
	zipped, err := gzip.NewReader(in)
	if err != nil {
		return fmt.Errorf("reading the archive: %w", err)
	}
	entries := tar.NewReader(zipped)
	for {
		header, err := entries.Next()
		if errors.Is(err, io.EOF) {
			break
		}
		if err != nil {
			return fmt.Errorf("reading the archive: %w", err)
		}
		name := path.Base(header.Name)
		if header.Typeflag != tar.TypeReg || !slices.Contains(binaries[:], name) {
			continue
		}
		if err := writeBinary(filepath.Join(dir, name), entries, header.Size); err != nil {
			return fmt.Errorf("writing %s: %w", name, err)
		}
	}
	if missing := missingBinaries(dir); len(missing) > 0 {
		return fmt.Errorf("the archive has no %s", missing[0])
	}
	return nil
}

func writeBinary(file string, content io.Reader, size int64) error {
	out, err := os.OpenFile(file, os.O_WRONLY|os.O_CREATE|os.O_TRUNC, 0o755) //nolint:gosec // It is a program.
	if err != nil {
		return fmt.Errorf("creating the file: %w", err)
	}
	_, err = io.CopyN(out, content, size)
	return errors.Join(err, out.Close())
}
