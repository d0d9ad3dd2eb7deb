// SPDX-FileCopyrightText: The WorkItem Operator Authors
// SPDX-License-Identifier: Apache-2.0

// Package trigger is the second entrance: an HTTPS server that makes a pass over the
// due items now, for callers whom the API server knows and allows.
//
//	POST /v1/overdue:process[?namespace=NAME][&wait=DURATION]
//	GET  /openapi.yaml
//
// openapi.yaml is the contract. What is refused is answered as problem details (RFC
// 9457), with what to do instead.
//
// The server decides nothing about items. It asks who the caller is (TokenReview),
// whether it may "process" "workitems" in the namespace, or in all of them
// (SubjectAccessReview), has a Passer make the pass that the schedule makes too, and
// counts. A caller that goes away ends its pass between two requests, which loses
// nothing.
package trigger
