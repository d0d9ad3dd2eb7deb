// SPDX-FileCopyrightText: The WorkItem Operator Authors
// SPDX-License-Identifier: Apache-2.0

// Command golangci-lint is golangci-lint with two linters compiled in that upstream leaves to module
// plugins: kube-api-linter and logcheck. Compiling them in needs no download at lint time, and one go.mod
// pins all three.
package main

import (
	"fmt"
	"os"
	"runtime/debug"

	"github.com/golangci/golangci-lint/v2/pkg/commands"
	"github.com/golangci/golangci-lint/v2/pkg/exitcodes"

	// Each package registers itself as a module plugin when it is imported.
	_ "sigs.k8s.io/kube-api-linter"
	_ "sigs.k8s.io/logtools/logcheck/gclplugin"
)

func main() {
	if err := commands.Execute(buildInfo()); err != nil {
		fmt.Fprintf(os.Stderr, "running golangci-lint: %v\n", err)
		os.Exit(exitcodes.Failure)
	}
}

// buildInfo reports the version of the golangci-lint module that is compiled in. This module's own version
// would always read "(devel)".
func buildInfo() commands.BuildInfo {
	info := commands.BuildInfo{Version: "unknown", Commit: "custom build", Date: "unknown", GoVersion: "unknown"}
	build, ok := debug.ReadBuildInfo()
	if !ok {
		return info
	}
	info.GoVersion = build.GoVersion
	for _, dep := range build.Deps {
		if dep.Path == "github.com/golangci/golangci-lint/v2" {
			info.Version = dep.Version
		}
	}
	return info
}
