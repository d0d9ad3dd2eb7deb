// SPDX-FileCopyrightText: The WorkItem Operator Authors
// SPDX-License-Identifier: Apache-2.0

package kube

import (
	"time"

	"k8s.io/client-go/util/workqueue"
	"sigs.k8s.io/controller-runtime/pkg/controller"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"
)

const (
	// firstRetry and lastRetry bound the pause after a pass that failed. The default
	// of the library grows to a quarter of an hour, which would be added to every due
	// time after an outage of the API server.
	firstRetry = 5 * time.Millisecond
	lastRetry  = 10 * time.Second
	// PassTimeout bounds one pass, so that a request to an API server that does not
	// answer gives its worker back.
	PassTimeout = 30 * time.Second
)

// ControllerOptions are what all controllers have in common.
func ControllerOptions(workers int) controller.Options {
	return controller.Options{
		MaxConcurrentReconciles: workers,
		RateLimiter:             workqueue.NewTypedItemExponentialFailureRateLimiter[reconcile.Request](firstRetry, lastRetry),
		ReconciliationTimeout:   PassTimeout,
	}
}

// EveryReplica makes a controller run in every replica, leader or not.
func EveryReplica(o controller.Options) controller.Options {
	no := false
	o.NeedLeaderElection = &no
	return o
}
