// SPDX-FileCopyrightText: The WorkItem Operator Authors
// SPDX-License-Identifier: Apache-2.0

//go:build unix

package controlplane

import (
	"os/exec"
	"syscall"
)

// ownProcessGroup makes the end of the command's context interrupt the command and all its children, as
// Ctrl-C in a terminal would.
func ownProcessGroup(cmd *exec.Cmd) {
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	cmd.Cancel = func() error {
		return syscall.Kill(-cmd.Process.Pid, syscall.SIGINT)
	}
}
