// SPDX-FileCopyrightText: The WorkItem Operator Authors
// SPDX-License-Identifier: Apache-2.0

package controlplane

import (
	"context"
	"errors"
	"fmt"
	"net"
	"path/filepath"
	"strconv"
	"time"

	"k8s.io/client-go/rest"
	"sigs.k8s.io/controller-runtime/pkg/envtest"
)

const (
	loopback = "127.0.0.1"
	// startTimeout and stopTimeout are for one process. They are generous because a busy machine with two
	// cores is where a tight limit turns into a failure without a cause.
	startTimeout = 60 * time.Second
	stopTimeout  = 60 * time.Second
)

// Options say how to start a control plane. The zero value is a good start for a test.
type Options struct {
	// AssetsDir holds the binaries; empty means the result of [Assets].
	AssetsDir string
	// CRDDirs are installed before Start returns.
	CRDDirs []string
	// DataDir keeps etcd's data after Stop, for the next Start; empty means a temporary directory.
	DataDir string
	// Port is the API server's port on the loopback interface; 0 means any that is free.
	Port int
	// Logf receives the progress of obtaining the binaries; nil discards it.
	Logf Logf
}

// Plane is a running control plane. [Plane.Stop] ends it.
type Plane struct {
	env    *envtest.Environment
	assets string
}

// Start runs etcd and kube-apiserver, waits until they answer and installs the custom resource definitions.
// When it fails, nothing is left running.
//
// The processes do not follow ctx, which covers the start only: tests stop their managers first and the
// control plane after them.
func Start(ctx context.Context, opts Options) (*Plane, error) {
	if opts.Logf == nil {
		opts.Logf = func(string, ...any) {}
	}
	if opts.AssetsDir == "" {
		dir, err := Assets(ctx, opts.Logf)
		if err != nil {
			return nil, fmt.Errorf("obtaining the control plane binaries: %w", err)
		}
		opts.AssetsDir = dir
	}
	if err := checkPort(ctx, opts.Port); err != nil {
		return nil, err
	}
	etcdOutput, serverOutput := &lineTail{}, &lineTail{}
	p := &Plane{env: environment(opts, etcdOutput, serverOutput), assets: opts.AssetsDir}
	if _, err := p.env.Start(); err != nil {
		// The output is taken before Stop adds its own to it.
		err = fmt.Errorf("starting the control plane: %w\nlast output of etcd:\n%s\nlast output of kube-apiserver:\n%s",
			err, etcdOutput, serverOutput)
		return nil, errors.Join(err, p.Stop())
	}
	if err := p.install(ctx, opts.CRDDirs); err != nil {
		return nil, errors.Join(err, p.Stop())
	}
	return p, nil
}

func (p *Plane) install(ctx context.Context, dirs []string) error {
	for _, dir := range dirs {
		if err := ctx.Err(); err != nil {
			return fmt.Errorf("installing custom resource definitions: %w", err)
		}
		if err := p.InstallCRDs(dir); err != nil {
			return err
		}
	}
	return nil
}

// environment translates the options. Every path is explicit, so that no variable of envtest's can put
// another server, let alone an existing cluster, in the place of this one.
func environment(opts Options, etcdOutput, serverOutput *lineTail) *envtest.Environment {
	existing := false
	env := &envtest.Environment{
		UseExistingCluster:       &existing,
		ControlPlaneStartTimeout: startTimeout,
		ControlPlaneStopTimeout:  stopTimeout,
	}
	env.ControlPlane.KubectlPath = filepath.Join(opts.AssetsDir, "kubectl")
	env.ControlPlane.Etcd = &envtest.Etcd{
		Path:    filepath.Join(opts.AssetsDir, "etcd"),
		DataDir: opts.DataDir,
		Err:     etcdOutput,
	}
	if opts.DataDir != "" {
		// envtest switches fsync off, which is right only for data that nobody wants back.
		env.ControlPlane.Etcd.Configure().Set("unsafe-no-fsync", "false")
	}
	server := env.ControlPlane.GetAPIServer()
	server.Path = filepath.Join(opts.AssetsDir, "kube-apiserver")
	server.Err = serverOutput
	if opts.Port != 0 {
		server.ListenAddr = envtest.ListenAddr{Address: loopback, Port: strconv.Itoa(opts.Port)}
	}
	return env
}

// checkPort finds a port that is taken before five attempts of the API server do, which is slow and says less.
func checkPort(ctx context.Context, port int) error {
	if port == 0 {
		return nil
	}
	listener, err := new(net.ListenConfig).Listen(ctx, "tcp", net.JoinHostPort(loopback, strconv.Itoa(port)))
	if err != nil {
		return fmt.Errorf("checking that port %d is free: %w", port, err)
	}
	if err := listener.Close(); err != nil {
		return fmt.Errorf("checking that port %d is free: %w", port, err)
	}
	return nil
}

// Config returns a configuration for a client with all permissions and without a rate limit on its side.
func (p *Plane) Config() *rest.Config {
	return unlimited(p.env.Config)
}

// User adds a user and returns a configuration for it. The user may do what RBAC allows it or its groups,
// which for a new name is next to nothing.
func (p *Plane) User(name string, groups ...string) (*rest.Config, error) {
	user, err := p.env.AddUser(envtest.User{Name: name, Groups: groups}, nil)
	if err != nil {
		return nil, fmt.Errorf("adding user %s: %w", name, err)
	}
	return unlimited(user.Config()), nil
}

func unlimited(config *rest.Config) *rest.Config {
	config = rest.CopyConfig(config)
	config.QPS = -1
	config.Burst = 0
	return config
}

// KubectlPath is a kubectl of the same version as the API server.
func (p *Plane) KubectlPath() string {
	return filepath.Join(p.assets, "kubectl")
}

// InstallCRDs creates or updates the custom resource definitions in dir and waits until they are served.
func (p *Plane) InstallCRDs(dir string) error {
	_, err := envtest.InstallCRDs(p.env.Config, envtest.CRDInstallOptions{Paths: []string{dir}, ErrorIfPathMissing: true})
	if err != nil {
		return fmt.Errorf("installing the custom resource definitions in %s: %w", dir, err)
	}
	return nil
}

// Stop ends both processes, waits for them and removes their temporary files.
func (p *Plane) Stop() error {
	if err := p.env.Stop(); err != nil {
		return fmt.Errorf("stopping the control plane: %w", err)
	}
	return nil
}
