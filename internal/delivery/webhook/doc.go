// SPDX-FileCopyrightText: The WorkItem Operator Authors
// SPDX-License-Identifier: Apache-2.0

// Package webhook sends notifications by an HTTP POST.
//
// The request carries the idempotency key twice: in the header Idempotency-Key,
// quoted or not as the receiver's dialect wants it, and in webhook-id, after
// the Standard Webhooks specification, which also gives webhook-timestamp and,
// if there are signing keys, webhook-signature.
//
// # What the answer is
//
// The status line is the answer. Once the headers are in, the outcome is fixed;
// a body that is cut off, endless or slow does not change it. Of the body a
// little is read, to tell a person why the receiver said no, for at most a
// second and never beyond the context.
//
// # Why no request is repeated
//
// Go's HTTP transport repeats a request on its own if it was sent on a kept
// connection that broke, if the request looks idempotent: which it does to the
// transport as soon as it has the header Idempotency-Key. It can do so only if
// it can read the body again. So the body that it is given here can be read
// once, and it has no means to get another.
//
// # What was written
//
// Whether a failed call is Rejected or Ambiguous depends on whether a byte of
// the request was written. The connection itself keeps count of that: see conn.
package webhook
