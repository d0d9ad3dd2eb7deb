// SPDX-FileCopyrightText: The WorkItem Operator Authors
// SPDX-License-Identifier: Apache-2.0

// Command devplane runs a local Kubernetes API server with the project's custom resources, for development
// and for tests. It needs no cluster and no container engine.
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"os/signal"
	"path/filepath"
	"syscall"

	"github.com/go-logr/logr"
	"sigs.k8s.io/controller-runtime/pkg/log"

	"github.com/workitem-operator/workitem-operator/internal/controlplane"
)

const usage = `Usage:
  devplane assets
        Print the directory with etcd, kube-apiserver and kubectl; download or build them first if needed.
  devplane up [flags]
        Run the control plane until it is interrupted.

Flags of "devplane up":
`

// errUsage means that the mistake has been explained already.
var errUsage = errors.New("usage")

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	// After the first signal the default is back, so that a second one ends the program at once.
	context.AfterFunc(ctx, stop)
	// envtest logs through this logger, which complains with a stack trace while it has no output.
	log.SetLogger(logr.Discard())

	err := run(ctx, os.Args[1:], os.Stdout, os.Stderr)
	switch {
	case err == nil:
	case errors.Is(err, flag.ErrHelp):
	case errors.Is(err, errUsage):
		os.Exit(2)
	case errors.Is(err, context.Canceled):
		fmt.Fprintln(os.Stderr, "devplane: interrupted")
		os.Exit(130)
	default:
		fmt.Fprintln(os.Stderr, "devplane:", err)
		os.Exit(1)
	}
}

func run(ctx context.Context, args []string, stdout, stderr io.Writer) error {
	up := upCommand{stdout: stdout, logf: func(format string, args ...any) {
		fmt.Fprintf(stderr, format+"\n", args...)
	}}
	flags := up.flags(stderr)
	if len(args) == 0 {
		flags.Usage()
		return errUsage
	}
	// The flag package has no commands: what follows the command's name are its flags.
	if err := flags.Parse(args[1:]); err != nil {
		if errors.Is(err, flag.ErrHelp) {
			return err
		}
		return errUsage
	}
	switch {
	case args[0] == "-h" || args[0] == "-help" || args[0] == "--help" || args[0] == "help":
		flags.Usage()
		return nil
	case args[0] == "assets" && flags.NFlag() == 0 && flags.NArg() == 0:
		dir, err := controlplane.Assets(ctx, up.logf)
		if err == nil {
			fmt.Fprintln(stdout, dir)
		}
		return err
	case args[0] == "up" && flags.NArg() == 0:
		return up.run(ctx)
	}
	flags.Usage()
	return errUsage
}

// upCommand is "devplane up".
type upCommand struct {
	kubeconfig string
	crds       string
	dataDir    string
	port       int

	stdout io.Writer
	logf   controlplane.Logf
}

func (c *upCommand) flags(output io.Writer) *flag.FlagSet {
	flags := flag.NewFlagSet("devplane", flag.ContinueOnError)
	flags.SetOutput(output)
	flags.StringVar(&c.kubeconfig, "kubeconfig", "devplane.kubeconfig", "`file` to write the administrator's kubeconfig to")
	flags.StringVar(&c.crds, "crds", "", "`directory` of custom resource definitions to install (default config/crd/bases of this checkout)")
	flags.StringVar(&c.dataDir, "data-dir", "", "`directory` that keeps the data for the next run (default: the data ends with the run)")
	flags.IntVar(&c.port, "port", 0, "`port` of the API server on 127.0.0.1 (default: any that is free)")
	flags.Usage = func() {
		fmt.Fprint(output, usage)
		flags.PrintDefaults()
	}
	return flags
}

func (c *upCommand) run(ctx context.Context) (err error) {
	if c.crds == "" {
		root, err := controlplane.ModuleRoot()
		if err != nil {
			return fmt.Errorf("finding the custom resource definitions (--crds names their directory): %w", err)
		}
		c.crds = filepath.Join(root, "config", "crd", "bases")
	}
	// The path is printed for use in another terminal, where a relative one would mean something else.
	kubeconfig, err := filepath.Abs(c.kubeconfig)
	if err != nil {
		return fmt.Errorf("resolving the path of the kubeconfig: %w", err)
	}
	plane, err := controlplane.Start(ctx, controlplane.Options{
		CRDDirs: []string{c.crds},
		DataDir: c.dataDir,
		Port:    c.port,
		Logf:    c.logf,
	})
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, plane.Stop()) }()
	if err := plane.WriteKubeconfig(kubeconfig); err != nil {
		return err
	}
	// Its credentials end with this run.
	defer func() { err = errors.Join(err, os.Remove(kubeconfig)) }()

	c.greet(plane, kubeconfig)
	<-ctx.Done()
	c.logf("Stopping the control plane.")
	return nil
}

func (c *upCommand) greet(plane *controlplane.Plane, kubeconfig string) {
	fmt.Fprintf(c.stdout, `The API server is ready at %s
It serves the custom resources from %s.
No controller, no scheduler and no operator runs here.

To use it from another terminal:

  export KUBECONFIG=%s
  %s get workitems --all-namespaces

Press Ctrl-C to stop it.
`, plane.Config().Host, c.crds, kubeconfig, plane.KubectlPath())
}
