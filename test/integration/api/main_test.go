// SPDX-FileCopyrightText: The WorkItem Operator Authors
// SPDX-License-Identifier: Apache-2.0

// Package api tests the CustomResourceDefinitions against a real API server:
// what it refuses and with which words, what it fills in, and that nothing it
// accepts can stop the operator from reading the rest.
package api

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"testing"
	"time"

	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/kubernetes/scheme"
	"k8s.io/client-go/rest"
	"sigs.k8s.io/controller-runtime/pkg/envtest"

	"github.com/workitem-operator/workitem-operator/api/v1alpha1"
)

const (
	crdDir     = "../../../config/crd/bases"
	samplesDir = "../../../config/samples"
	namespace  = "default"

	// A busy machine may take this long to start or stop an API server.
	controlPlaneTimeout = 3 * time.Minute
)

// apiServer talks to the API server that TestMain started.
var apiServer *rest.RESTClient

func TestMain(m *testing.M) {
	code, err := runWithAPIServer(m)
	if err != nil {
		fmt.Fprintln(os.Stderr, "test/integration/api:", err)
		os.Exit(1) //nolint:forbidigo // TestMain is the main of the test binary.
	}
	os.Exit(code) //nolint:forbidigo // TestMain is the main of the test binary.
}

func runWithAPIServer(m *testing.M) (code int, err error) {
	assets := os.Getenv("KUBEBUILDER_ASSETS")
	if assets == "" {
		return 0, errors.New("KUBEBUILDER_ASSETS is not set: it must name the directory of kube-apiserver, etcd and kubectl; `make test` sets it")
	}
	for _, binary := range []string{"kube-apiserver", "etcd"} {
		if _, err := os.Stat(filepath.Join(assets, binary)); err != nil {
			return 0, fmt.Errorf("KUBEBUILDER_ASSETS=%s does not hold what the tests need (`make test` builds it): %w", assets, err)
		}
	}
	env := &envtest.Environment{
		BinaryAssetsDirectory:    assets,
		CRDDirectoryPaths:        []string{crdDir},
		ErrorIfCRDPathMissing:    true,
		ControlPlaneStartTimeout: controlPlaneTimeout,
		ControlPlaneStopTimeout:  controlPlaneTimeout,
		CRDInstallOptions:        envtest.CRDInstallOptions{MaxTime: controlPlaneTimeout},
	}
	config, err := env.Start()
	if err != nil {
		return 0, errors.Join(fmt.Errorf("start the API server with the CRDs of %s: %w", crdDir, err), env.Stop())
	}
	defer func() {
		if stopErr := env.Stop(); stopErr != nil {
			err = errors.Join(err, fmt.Errorf("stop the API server: %w", stopErr))
		}
	}()
	if got, want := len(env.CRDs), 3; got != want {
		return 0, fmt.Errorf("got %d CRDs from %s, want %d", got, crdDir, want)
	}
	apiServer, err = newAPIServer(config)
	if err != nil {
		return 0, err
	}
	return m.Run(), nil
}

// newAPIServer returns a client for raw bodies: no Go type and no client-side
// conversion may hide what a manifest says.
func newAPIServer(config *rest.Config) (*rest.RESTClient, error) {
	config = rest.CopyConfig(config)
	config.GroupVersion = &schema.GroupVersion{}
	config.NegotiatedSerializer = scheme.Codecs.WithoutConversion()
	config.QPS = -1
	if err := v1alpha1.AddToScheme(scheme.Scheme); err != nil {
		return nil, fmt.Errorf("register the types: %w", err)
	}
	client, err := rest.UnversionedRESTClientFor(config)
	if err != nil {
		return nil, fmt.Errorf("make a client: %w", err)
	}
	return client, nil
}
