// SPDX-FileCopyrightText: The WorkItem Operator Authors
// SPDX-License-Identifier: Apache-2.0

//go:build !linux

package framework

import "syscall"

// diesWithParent asks for nothing: only Linux can tie a process to its parent.
func diesWithParent() *syscall.SysProcAttr { return nil }
