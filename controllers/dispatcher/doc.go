// SPDX-FileCopyrightText: The WorkItem Operator Authors
// SPDX-License-Identifier: Apache-2.0

// Package dispatcher reconciles NotificationOutboxes: it claims each one, sends
// it, and records what came of that. It runs in every replica; what makes that
// safe is the claim and the resourceVersion, not leadership.
//
// The order of one delivery is the protocol, and what each point leaves behind
// if the process dies there is why it is this order:
//
//  1. Decide, by the rules of internal/outbox. Nothing is left behind.
//  2. Read the provider's Secrets, take a slot at the provider, pass its circuit
//     breaker. What ends here never was an attempt (I8).
//  3. Claim: create the outbox's Lease, or take it over once it was watched
//     unchanged for its whole duration (I5, I7). Left behind: a Lease, which the
//     next holder waits out and counts as an attempt.
//  4. Unless the Lease was created, read the outbox from the API server, then
//     write the attempt's number and holder, with the resourceVersion that was
//     read (I6, I8). Left behind: an attempt without an outcome.
//  5. Call the provider once, renewing the claim at a third of its duration, and
//     cancelling the call before the claim runs out if it cannot be renewed. Left
//     behind: an attempt without an outcome, which the next holder records as
//     Ambiguous.
//  6. Write the outcome, with the resourceVersion of step 4. If another holder
//     has begun an attempt meanwhile, the write conflicts and nothing is changed.
//
// The call runs in a goroutine of its own, so that a slow provider never keeps a
// worker from the others; the courier owns those goroutines and is what an orderly
// stop waits for.
//
// The dispatcher is the only writer of NotificationOutbox.status and of the Leases
// that carry our label.
package dispatcher
