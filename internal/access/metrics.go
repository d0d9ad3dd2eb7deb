// SPDX-FileCopyrightText: The WorkItem Operator Authors
// SPDX-License-Identifier: Apache-2.0

package access

import (
	"errors"
	"net/http"

	"github.com/go-logr/logr"
	authorizationv1 "k8s.io/api/authorization/v1"
	"k8s.io/client-go/rest"
	metricsserver "sigs.k8s.io/controller-runtime/pkg/metrics/server"
)

// Metrics is the filter of a metrics server that lets those through who may get the
// path that they ask for, such as /metrics: a rule of a ClusterRole with
// nonResourceURLs. It answers 401 without a known token, 403 without the right, and 500
// if the API server cannot be asked.
func Metrics(cfg *rest.Config, c *http.Client) (metricsserver.Filter, error) {
	reviewer, err := NewForConfig(cfg, c)
	if err != nil {
		return nil, err
	}
	return reviewer.filter, nil
}

func (r *Reviewer) filter(log logr.Logger, next http.Handler) (http.Handler, error) {
	return http.HandlerFunc(func(w http.ResponseWriter, req *http.Request) {
		user, err := r.Authenticate(req.Context(), req)
		if err == nil {
			err = r.Authorize(req.Context(), user, Wanted{Path: &authorizationv1.NonResourceAttributes{Path: req.URL.Path, Verb: "get"}})
		}
		switch {
		case err == nil:
			next.ServeHTTP(w, req)
		case errors.Is(err, ErrUnauthenticated):
			w.Header().Set("WWW-Authenticate", "Bearer")
			http.Error(w, err.Error(), http.StatusUnauthorized)
		case errors.Is(err, ErrForbidden):
			http.Error(w, "not allowed to get "+req.URL.Path, http.StatusForbidden)
		default:
			log.Error(err, "Could not review a request for metrics")
			http.Error(w, "the API server could not be asked who you are", http.StatusInternalServerError)
		}
	}), nil
}
