// SPDX-FileCopyrightText: The WorkItem Operator Authors
// SPDX-License-Identifier: Apache-2.0

package controlplane

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"time"

	"github.com/gofrs/flock"
)

const lockPollInterval = 250 * time.Millisecond

// lock takes the lock file at path, and waits for it when another process holds it. The kernel releases it
// when its holder dies, so a lock is never left behind; the empty file stays.
func lock(ctx context.Context, path string, logf Logf) (unlock func(), err error) {
	if err := os.MkdirAll(filepath.Dir(path), 0o750); err != nil {
		return nil, fmt.Errorf("making the cache directory: %w", err)
	}
	l := flock.New(path)
	locked, err := l.TryLock()
	if err == nil && !locked {
		logf("Another process is preparing the control plane binaries; waiting for it.")
		locked, err = l.TryLockContext(ctx, lockPollInterval)
	}
	if err != nil || !locked {
		return nil, fmt.Errorf("locking %s: %w", path, err)
	}
	return func() {
		// Nothing depends on this: closing the process has the same effect.
		_ = l.Unlock()
	}, nil
}
