// SPDX-FileCopyrightText: The WorkItem Operator Authors
// SPDX-License-Identifier: Apache-2.0

package controllers

import (
	"crypto/sha256"
	"crypto/tls"
	"encoding/hex"
	"os"
	"slices"
	"strings"

	coordinationv1 "k8s.io/api/coordination/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/runtime"
	utilruntime "k8s.io/apimachinery/pkg/util/runtime"
	clientgoscheme "k8s.io/client-go/kubernetes/scheme"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/cache"
	"sigs.k8s.io/controller-runtime/pkg/client"
	metricsserver "sigs.k8s.io/controller-runtime/pkg/metrics/server"

	"github.com/workitem-operator/workitem-operator/api/v1alpha1"
	"github.com/workitem-operator/workitem-operator/internal/access"
	"github.com/workitem-operator/workitem-operator/internal/options"
)

// NewScheme returns a scheme that knows every kind that the operator reads or
// writes.
func NewScheme() *runtime.Scheme {
	scheme := runtime.NewScheme()
	utilruntime.Must(clientgoscheme.AddToScheme(scheme))
	utilruntime.Must(v1alpha1.AddToScheme(scheme))
	return scheme
}

// ManagerOptions are the options of a manager that runs the controllers.
func ManagerOptions(o options.Options) ctrl.Options {
	stop := StopTimeout(o)
	var namespaces map[string]cache.Config
	for _, ns := range o.WatchNamespaces {
		if namespaces == nil {
			namespaces = map[string]cache.Config{}
		}
		namespaces[ns] = cache.Config{}
	}
	return ctrl.Options{
		Scheme: NewScheme(),
		Cache: cache.Options{
			DefaultNamespaces: namespaces,
			ByObject: map[client.Object]cache.ByObject{
				// The Leases of nodes change every ten seconds each and must never reach this
				// process.
				&coordinationv1.Lease{}: {
					Label:     labels.SelectorFromSet(labels.Set{v1alpha1.LabelClaim: v1alpha1.LabelClaimValue}),
					Transform: cache.TransformStripManagedFields(),
				},
				&v1alpha1.WorkItem{}:             {Transform: cache.TransformStripManagedFields()},
				&v1alpha1.NotificationProvider{}: {Transform: cache.TransformStripManagedFields()},
			},
		},
		// Nothing may ever begin to list and watch Secrets.
		Client:                 client.Options{Cache: &client.CacheOptions{DisableFor: []client.Object{&corev1.Secret{}}}},
		Metrics:                metricsOptions(o),
		HealthProbeBindAddress: o.HealthAddress,
		// Only the WorkItem controller follows the leader: a process without it must not
		// take the leadership away from one with it.
		LeaderElection:                o.LeaderElect && o.Runs(options.WorkItem),
		LeaderElectionID:              electionID(o),
		LeaderElectionNamespace:       electionNamespace(o),
		LeaderElectionReleaseOnCancel: true,
		GracefulShutdownTimeout:       &stop,
	}
}

// metricsOptions say how metrics are served.
func metricsOptions(o options.Options) metricsserver.Options {
	served := metricsserver.Options{BindAddress: o.MetricsAddress}
	if o.MetricsSecure {
		served.SecureServing, served.CertDir, served.FilterProvider = true, o.MetricsCertDir, access.Metrics
		served.TLSOpts = []func(*tls.Config){func(c *tls.Config) {
			// A scrape has no use for HTTP/2, whose streams are cheap to open and dear to serve.
			c.MinVersion, c.NextProtos = tls.VersionTLS12, []string{"http/1.1"}
		}}
	}
	return served
}

// electionID is the name of the election's Lease. Managers that look after other
// namespaces do other work, and elect a leader of their own.
func electionID(o options.Options) string {
	const id = "workitem-operator.workitem.dev"
	if len(o.WatchNamespaces) == 0 {
		return id
	}
	sum := sha256.Sum256([]byte(strings.Join(slices.Sorted(slices.Values(o.WatchNamespaces)), ",")))
	return hex.EncodeToString(sum[:4]) + "." + id
}

// electionNamespace is where the election's Lease is. Within a cluster the library
// knows the manager's own namespace; outside of one it has to be named.
func electionNamespace(o options.Options) string {
	switch {
	case o.LeaderElectionNamespace != "" || os.Getenv("KUBERNETES_SERVICE_HOST") != "":
		return o.LeaderElectionNamespace
	case len(o.WatchNamespaces) > 0:
		return o.WatchNamespaces[0]
	}
	return metav1.NamespaceDefault
}
