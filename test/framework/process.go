// SPDX-FileCopyrightText: The WorkItem Operator Authors
// SPDX-License-Identifier: Apache-2.0

package framework

import (
	"bufio"
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"syscall"
	"time"
)

// Process is a manager in a process of its own.
type Process struct {
	env   *Env
	name  string
	cmd   *exec.Cmd
	ended chan struct{}
	err   error

	mu    sync.Mutex
	lines []string
}

// buildManager builds the manager's binary.
func (s *suite) buildManager() (string, error) {
	path := filepath.Join(s.dir, "manager")
	cmd := exec.Command("go", "build", "-o", path, "./cmd/manager")
	cmd.Dir = s.root
	if out, err := cmd.CombinedOutput(); err != nil {
		return "", fmt.Errorf("building the manager: %w\n%s", err, out)
	}
	return path, nil
}

// StartProcess starts cmd/manager for the test's namespace, with more flags if
// wanted, and returns when all its controllers run. At the end of the test it is
// killed.
func (e *Env) StartProcess(flags ...string) *Process {
	e.T.Helper()
	binary, err := shared.build()
	if err != nil {
		e.T.Fatal(err)
	}
	e.managers++
	args := append([]string{
		"--kubeconfig=" + shared.kubeconfig, "--watch-namespaces=" + e.Namespace, "--allow-provider-cidr=127.0.0.0/8",
		"--metrics-bind-address=0", "--health-probe-bind-address=0", "--trigger-bind-address=0",
	}, flags...)
	p := &Process{env: e, name: fmt.Sprintf("process-%d", e.managers), cmd: exec.Command(binary, args...), ended: make(chan struct{})}
	p.cmd.SysProcAttr = diesWithParent()
	output, into, err := os.Pipe()
	if err != nil {
		e.T.Fatal("making a pipe:", err)
	}
	p.cmd.Stdout, p.cmd.Stderr = into, into
	if err := p.cmd.Start(); err != nil {
		e.T.Fatal("starting the manager:", err)
	}
	_ = into.Close()
	go p.read(output)
	e.T.Cleanup(p.end)
	e.Eventually("the controllers of "+p.name+" run", Later, func() error {
		if n := p.count("Starting workers"); n < 3 {
			return fmt.Errorf("%d of 3 do; its last words:\n%s", n, strings.Join(p.tail(5), "\n"))
		}
		return nil
	})
	return p
}

// read keeps what the process writes, and waits for its end.
func (p *Process) read(output *os.File) {
	defer close(p.ended)
	defer func() { _ = output.Close() }()
	reader := bufio.NewReader(output)
	for {
		line, err := reader.ReadBytes('\n')
		if line = bytes.TrimSpace(line); len(line) > 0 {
			p.mu.Lock()
			p.lines = append(p.lines, string(line))
			p.mu.Unlock()
			p.env.Journal.Add("%s %.300s", p.name, line)
		}
		if err != nil {
			if !errors.Is(err, io.EOF) {
				p.env.Journal.Add("%s: reading its output: %v", p.name, err)
			}
			p.err = p.cmd.Wait()
			return
		}
	}
}

func (p *Process) count(text string) int {
	n := 0
	for _, line := range p.Log() {
		if strings.Contains(line, text) {
			n++
		}
	}
	return n
}

func (p *Process) tail(n int) []string {
	lines := p.Log()
	return lines[max(len(lines)-n, 0):]
}

// Log returns what the process has written so far, one line each.
func (p *Process) Log() []string {
	p.mu.Lock()
	defer p.mu.Unlock()
	return append([]string(nil), p.lines...)
}

// ErrorLog returns the log lines of level error, and whatever is no log line, such
// as a panic.
func (p *Process) ErrorLog() []string {
	var out []string
	for _, line := range p.Log() {
		var entry struct {
			Level string `json:"level"`
		}
		if err := json.Unmarshal([]byte(line), &entry); err != nil || entry.Level == "error" {
			out = append(out, line)
		}
	}
	return out
}

// Identity is how the process calls itself in claims and attempts.
func (p *Process) Identity() string {
	p.env.T.Helper()
	for _, line := range p.Log() {
		var entry struct {
			Identity string `json:"identity"`
		}
		if json.Unmarshal([]byte(line), &entry) == nil && entry.Identity != "" {
			return entry.Identity
		}
	}
	p.env.T.Fatalf("%s does not say its identity", p.name)
	return ""
}

// Signal sends the process a signal: SIGTERM, SIGKILL, SIGSTOP, SIGCONT.
func (p *Process) Signal(sig syscall.Signal) {
	p.env.T.Helper()
	p.env.Journal.Add("%s is sent %s", p.name, sig)
	if err := p.cmd.Process.Signal(sig); err != nil {
		p.env.T.Fatalf("sending %s to %s: %v", sig, p.name, err)
	}
}

// Kill kills the process and waits until it is gone.
func (p *Process) Kill() {
	p.env.T.Helper()
	p.Signal(syscall.SIGKILL)
	<-p.ended
}

// Wait waits until the process has ended and returns how.
func (p *Process) Wait(limit time.Duration) error {
	p.env.T.Helper()
	timer := time.NewTimer(limit)
	defer timer.Stop()
	select {
	case <-p.ended:
		return p.err
	case <-timer.C:
		p.env.T.Fatalf("%s does not end within %s", p.name, limit)
		return nil
	}
}

// end kills the process if it still runs.
func (p *Process) end() {
	select {
	case <-p.ended:
	default:
		_ = p.cmd.Process.Kill()
		<-p.ended
	}
}
