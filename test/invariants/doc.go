// SPDX-FileCopyrightText: The WorkItem Operator Authors
// SPDX-License-Identifier: Apache-2.0

// Package invariants judges what happened: it records every version of every
// object of the protocol as the API server has committed it, and compares these
// histories and the provider's ledger with the invariants I1 to I12 of
// docs/guarantees.md.
//
// It shares nothing with the product but the API types. What it says does not
// depend on what a manager believes, logs or counts: a version that was committed
// is a fact, and so is a call that arrived.
//
//	rec, err := invariants.Watch(ctx, config)  // once for an API server
//	defer rec.Stop()
//	...
//	broken, err := rec.Check(ctx, invariants.World{Namespace: ns, Calls: endpoint.Calls()})
//
// Two orders are used. Versions are compared by their resourceVersion, which is
// one revision for all kinds of one etcd. A call is put among the versions of a Lease by
// the holder's own clock, which wrote acquireTime and renewTime; World.Skew says
// how far it is off the ledger's.
//
// I10, that another pass does nothing, cannot be seen in what has happened. Mark
// and Unchanged are for that: run another pass between the two.
package invariants
