// SPDX-FileCopyrightText: The WorkItem Operator Authors
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"errors"
	"fmt"
	"net/http"
	"sync/atomic"

	authorizationv1 "k8s.io/api/authorization/v1"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/healthz"

	"github.com/workitem-operator/workitem-operator/internal/options"
)

// addChecks adds the health and readiness checks to a manager. It is ready when its
// caches are synced and, where it dispatches, when it may claim: a replica that
// cannot would only watch others.
func addChecks(mgr ctrl.Manager, o options.Options) error {
	if err := mgr.AddHealthzCheck("ping", healthz.Ping); err != nil {
		return fmt.Errorf("adding the health check: %w", err)
	}
	if err := mgr.AddReadyzCheck("caches", func(req *http.Request) error {
		if !mgr.GetCache().WaitForCacheSync(req.Context()) {
			return errors.New("the caches are not synced yet")
		}
		return nil
	}); err != nil {
		return fmt.Errorf("adding the readiness check of the caches: %w", err)
	}
	if !o.Runs(options.Dispatcher) {
		return nil
	}
	c := &claimCheck{mgr: mgr, namespaces: o.WatchNamespaces}
	if err := mgr.AddReadyzCheck("claims", c.check); err != nil {
		return fmt.Errorf("adding the readiness check of claims: %w", err)
	}
	return nil
}

// claimCheck asks the API server once whether this process may create and update
// Leases. The answer is kept: an idle replica makes no requests.
type claimCheck struct {
	mgr        ctrl.Manager
	namespaces []string
	allowed    atomic.Bool
}

func (c *claimCheck) check(req *http.Request) error {
	if c.allowed.Load() {
		return nil
	}
	namespaces := c.namespaces
	if len(namespaces) == 0 {
		namespaces = []string{""}
	}
	for _, ns := range namespaces {
		for _, verb := range []string{"create", "update"} {
			review := &authorizationv1.SelfSubjectAccessReview{Spec: authorizationv1.SelfSubjectAccessReviewSpec{
				ResourceAttributes: &authorizationv1.ResourceAttributes{
					Namespace: ns, Verb: verb, Group: "coordination.k8s.io", Resource: "leases",
				},
			}}
			if err := c.mgr.GetClient().Create(req.Context(), review); err != nil {
				return fmt.Errorf("asking for the right to %s Leases: %w", verb, err)
			}
			if !review.Status.Allowed {
				return fmt.Errorf("not allowed to %s Leases in namespace %q", verb, ns)
			}
		}
	}
	c.allowed.Store(true)
	return nil
}
