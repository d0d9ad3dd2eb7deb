// SPDX-FileCopyrightText: The WorkItem Operator Authors
// SPDX-License-Identifier: Apache-2.0

// Package deliverytest is what providers are tested with.
//
// Exercise is the suite that every delivery.Sender has to pass. Server is a
// provider's counterpart: a real HTTP server on loopback whose endpoints keep
// idempotency keys in one of four ways, do what a script says, and write down
// every call and every effect. Server knows nothing of package testing, so that
// a command can serve one as well.
//
// It is test support: it reads the clock, and nothing that the manager is built
// from imports it.
package deliverytest
