// SPDX-FileCopyrightText: The WorkItem Operator Authors
// SPDX-License-Identifier: Apache-2.0

//go:build !unix

package controlplane

import "os/exec"

// ownProcessGroup leaves the command as it is: where there are no process groups, the end of the context
// kills the go command only, and compilers that still run end with their package.
func ownProcessGroup(*exec.Cmd) {}
