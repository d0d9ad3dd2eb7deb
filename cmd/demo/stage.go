// SPDX-FileCopyrightText: The WorkItem Operator Authors
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"syscall"
	"time"

	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/workitem-operator/workitem-operator/controllers"
	"github.com/workitem-operator/workitem-operator/internal/controlplane"
	"github.com/workitem-operator/workitem-operator/internal/delivery/deliverytest"
)

// stopWithin is how long a manager may take to stop before it is killed.
const stopWithin = 40 * time.Second

// readyWithin is how long a manager may take to become ready.
const readyWithin = time.Minute

// stage is everything that the demo plays on.
type stage struct {
	root       string
	kubeconfig string
	plane      *controlplane.Plane
	client     client.WithWatch
	receiver   *deliverytest.Server
	out        *printer
	manager    *process
}

// newStage starts the control plane and the receiver, and builds the manager.
func newStage(ctx context.Context) (s *stage, err error) {
	s = &stage{out: &printer{w: os.Stdout}}
	defer func() {
		if err != nil {
			err = errors.Join(err, s.close())
		}
	}()
	if s.root, err = controlplane.ModuleRoot(); err != nil {
		return s, err
	}
	s.kubeconfig = filepath.Join(s.root, "bin", "workitem.kubeconfig")
	if err := os.MkdirAll(filepath.Dir(s.kubeconfig), 0o750); err != nil {
		return s, err
	}
	s.out.say("Starting kube-apiserver and etcd on this machine.")
	s.plane, err = controlplane.Start(ctx, controlplane.Options{
		CRDDirs: []string{filepath.Join(s.root, "config", "crd", "bases")},
		Logf:    s.out.say,
	})
	if err != nil {
		return s, err
	}
	if err := s.plane.WriteKubeconfig(s.kubeconfig); err != nil {
		return s, err
	}
	if s.client, err = client.NewWithWatch(s.plane.Config(), client.Options{Scheme: controllers.NewScheme()}); err != nil {
		return s, fmt.Errorf("making a client: %w", err)
	}
	s.receiver, err = deliverytest.NewServer(deliverytest.ServerOptions{}) //nolint:contextcheck // Close ends it.
	if err != nil {
		return s, err
	}
	s.out.say("Building the manager.")
	_ = os.Remove(s.managerPath() + ".log")                                                  // It is there from an earlier run, or not.
	build := exec.CommandContext(ctx, "go", "build", "-o", s.managerPath(), "./cmd/manager") //nolint:gosec // A path of this program's own.
	build.Dir = s.root
	if output, err := build.CombinedOutput(); err != nil {
		return s, fmt.Errorf("building the manager: %w\n%s", err, output)
	}
	return s, nil
}

func (s *stage) managerPath() string { return filepath.Join(s.root, "bin", "manager") }

// startManager runs the manager as a process of its own, and waits until it is ready.
func (s *stage) startManager(ctx context.Context) error {
	health, err := freeAddress(ctx)
	if err != nil {
		return err
	}
	// The receiver is on loopback, which providers may not reach otherwise.
	cmd := exec.Command(s.managerPath(), //nolint:noctx,gosec // It is stopped by a signal, in an orderly way, and not by a context.
		"--kubeconfig="+s.kubeconfig, "--metrics-bind-address=0", "--health-probe-bind-address="+health, "--allow-provider-cidr=127.0.0.0/8")
	log, err := os.OpenFile(s.managerPath()+".log", os.O_CREATE|os.O_APPEND|os.O_WRONLY, 0o600)
	if err != nil {
		return fmt.Errorf("opening the manager's log: %w", err)
	}
	cmd.Stdout, cmd.Stderr = log, log
	// A Ctrl-C goes to the whole group: the manager would get it beside the signal with
	// which this program stops it, and a second signal ends it at once.
	ownGroup(cmd)
	if s.manager, err = startProcess(cmd, log); err != nil {
		return err
	}
	return s.ready(ctx, "http://"+health+"/readyz")
}

// freeAddress is a loopback address that nothing listens on at the moment.
func freeAddress(ctx context.Context) (string, error) {
	listener, err := (&net.ListenConfig{}).Listen(ctx, "tcp", "127.0.0.1:0")
	if err != nil {
		return "", fmt.Errorf("finding a free port: %w", err)
	}
	defer func() { _ = listener.Close() }()
	return listener.Addr().String(), nil
}

// ready waits until the manager says that it is ready.
func (s *stage) ready(ctx context.Context, url string) error {
	ctx, cancel := context.WithTimeout(ctx, readyWithin)
	defer cancel()
	for {
		req, err := http.NewRequestWithContext(ctx, http.MethodGet, url, nil)
		if err != nil {
			return err
		}
		if res, err := http.DefaultClient.Do(req); err == nil {
			_ = res.Body.Close()
			if res.StatusCode == http.StatusOK {
				return nil
			}
		}
		select {
		case <-ctx.Done():
			return errors.New("the manager did not become ready in time; its log is bin/manager.log")
		case <-s.manager.done:
			return fmt.Errorf("the manager ended (its log is bin/manager.log): %w", s.manager.err)
		case <-time.After(100 * time.Millisecond):
		}
	}
}

// stopManager ends the manager as Kubernetes would.
func (s *stage) stopManager() error {
	if s.manager == nil {
		return nil
	}
	err := s.manager.stop()
	s.manager = nil
	return err
}

// close ends everything that was started, in reverse order.
func (s *stage) close() error {
	err := s.stopManager()
	if s.receiver != nil {
		s.receiver.Close()
	}
	if s.plane != nil {
		err = errors.Join(err, s.plane.Stop(), os.Remove(s.kubeconfig))
	}
	return err
}

// kubectl shows a kubectl command as a person would type it, and runs it.
func (s *stage) kubectl(ctx context.Context, stdin io.Reader, args ...string) error {
	s.out.command("kubectl", args)
	cmd := exec.CommandContext(ctx, s.plane.KubectlPath(), args...) //nolint:gosec // The arguments are this program's own.
	cmd.Env = append(os.Environ(), "KUBECONFIG="+s.kubeconfig)
	cmd.Stdin, cmd.Stdout, cmd.Stderr = stdin, s.out, s.out
	if err := cmd.Run(); err != nil {
		return fmt.Errorf("kubectl %s: %w", args[0], err)
	}
	return nil
}

// process is a child that can be waited for.
type process struct {
	cmd  *exec.Cmd
	done chan struct{}
	err  error
}

func startProcess(cmd *exec.Cmd, output io.Closer) (*process, error) {
	if err := cmd.Start(); err != nil {
		return nil, fmt.Errorf("starting the manager: %w", err)
	}
	p := &process{cmd: cmd, done: make(chan struct{})}
	go func() {
		defer close(p.done)
		p.err = cmd.Wait()
		_ = output.Close()
	}()
	return p, nil
}

func (p *process) stop() error {
	_ = p.cmd.Process.Signal(syscall.SIGTERM)
	select {
	case <-p.done:
	case <-time.After(stopWithin):
		_ = p.cmd.Process.Kill()
		<-p.done
		return errors.New("the manager did not stop in time and was killed")
	}
	if p.err != nil {
		return fmt.Errorf("the manager ended badly (its log is bin/manager.log): %w", p.err)
	}
	return nil
}

// printer writes whole lines, from several goroutines.
type printer struct {
	mu sync.Mutex
	w  io.Writer
}

// Write makes printer the output of a command.
func (p *printer) Write(b []byte) (int, error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.w.Write(b)
}

func (p *printer) say(format string, args ...any) {
	_, _ = fmt.Fprintf(p, format+"\n", args...)
}

// fact prints what happened, and when.
func (p *printer) fact(what, format string, args ...any) {
	_, _ = fmt.Fprintf(p, "  %s  %-10s %s\n", time.Now().Format("15:04:05.000"), what, fmt.Sprintf(format, args...))
}

func (p *printer) command(name string, args []string) {
	_, _ = fmt.Fprintln(p, "\n$", name, strings.Join(args, " "))
}
