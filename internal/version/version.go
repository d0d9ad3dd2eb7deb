// SPDX-FileCopyrightText: The WorkItem Operator Authors
// SPDX-License-Identifier: Apache-2.0

// Package version says which build this is.
package version

import "runtime/debug"

// version is set by the linker; see the Makefile.
var version string

// String is the version of this build: what the linker was told, else what the Go
// toolchain recorded, else "devel".
func String() string {
	if version != "" {
		return version
	}
	if info, ok := debug.ReadBuildInfo(); ok && info.Main.Version != "" && info.Main.Version != "(devel)" {
		return info.Main.Version
	}
	return "devel"
}
