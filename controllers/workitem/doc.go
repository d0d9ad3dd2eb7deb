// SPDX-FileCopyrightText: The WorkItem Operator Authors
// SPDX-License-Identifier: Apache-2.0

// Package workitem reconciles WorkItems: it commits their transitions, makes the
// outbox of every committed intent, and reports back how each one ended.
//
// The order of one pass is the protocol:
//
//  1. Decide, by the rules of internal/overdue, from the item and the time.
//  2. Commit the transition and its intents in one status write, with the
//     resourceVersion that was read as the precondition. Of several entrants one
//     succeeds (I1); there is no transition without its intents (I2).
//  3. Create each intent's outbox under its derived name. A pass that dies before
//     that is repaired by a later one, after a read of the item from the API
//     server: a cache that is older than the report of an outbox's end must not
//     make that outbox again.
//  4. Commit what is left to say, such as the ends of notifications, and only if
//     it differs from what is there.
//
// It is the only writer of WorkItem.status and the only maker of outboxes.
package workitem
