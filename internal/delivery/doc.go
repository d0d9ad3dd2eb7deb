// SPDX-FileCopyrightText: The WorkItem Operator Authors
// SPDX-License-Identifier: Apache-2.0

// Package delivery is the port through which a notification leaves the
// process. A provider is a Sender; it knows messages and outcomes, and nothing
// of Kubernetes, of claims or of when an attempt is due.
//
// # What a Sender promises
//
//   - One Send makes at most one network request, whatever happens to it:
//     no redirect is followed and no request is repeated, by the provider or
//     by a library below it. So the calls that a receiver counts are the
//     attempts that the outbox counts.
//   - The key and the bytes on the wire depend on the message alone, so that
//     every attempt of one notification looks the same to the receiver. Only
//     what belongs to the attempt, its time and a signature over it, differs.
//   - The outcome is honest. Accepted means that the provider said so.
//     Rejected means that it said no, or that nothing of the request was
//     written. Everything else, and every doubt, is Ambiguous.
//   - Send ends when its context does. A context that ends before the request
//     was begun to be written gives Rejected, to be retried; one that ends
//     afterwards gives Ambiguous. The reason follows the context's cause: see
//     StoppedBefore and StoppedInFlight. An answer that was received counts,
//     even if the context has ended meanwhile.
//   - A Result is always safe to print. No secret of the provider, and no URL
//     that is one, is in it; its message has at most MaxText bytes, is valid
//     UTF-8 and has no control characters. Redactor and its callers see to it.
//   - Send never panics, and is safe for concurrent use.
//
// Package deliverytest holds the suite that every provider has to pass.
//
// What a provider may reach is limited by a Guard, which looks at the address
// that is dialled and not at the name.
package delivery
