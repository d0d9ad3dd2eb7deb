// SPDX-FileCopyrightText: The WorkItem Operator Authors
// SPDX-License-Identifier: Apache-2.0

// Package controlplane runs a real kube-apiserver with a real etcd on this machine, for tests and for
// development.
//
// [Assets] finds the binaries and, when there are none, obtains them; [Start] runs them. The versions are
// the ones that hack/tools/kubernetes/go.mod and hack/tools/etcd/go.mod require, and nothing else names them.
//
// What runs is an API server and its store only. There is no scheduler, no kubelet and no controller manager:
// nothing collects garbage by owner, nothing finishes the deletion of a namespace, and no Pod ever runs.
//
// The package is the only importer of envtest outside of tests, and the manager must not import it.
package controlplane
