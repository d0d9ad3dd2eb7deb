// SPDX-FileCopyrightText: The WorkItem Operator Authors
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/workitem-operator/workitem-operator/internal/delivery/deliverytest"
)

// serve runs everything until it is interrupted.
func serve(ctx context.Context) (err error) {
	s, err := newStage(ctx)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, s.close()) }()
	ops := s.receiver.Endpoint("/ops", deliverytest.IETF, nil)
	pager := s.receiver.Endpoint("/pager", deliverytest.None, nil)
	if err := s.startManager(ctx); err != nil {
		return err
	}
	facts := s.watch(ctx, ops, pager)
	defer facts.stop()
	if err := s.kubectl(ctx, nil, "create", "namespace", namespace); err != nil {
		return err
	}
	s.greet()
	select {
	case <-ctx.Done():
		s.out.say("\nStopping.")
		return nil
	case <-s.manager.done:
		return fmt.Errorf("the manager ended (its log is bin/manager.log): %w", s.manager.err)
	}
}

// greet says how to use what runs.
func (s *stage) greet() {
	s.out.say(`
Everything runs; Ctrl-C ends it. In another terminal:

  export KUBECONFIG=%[1]s
  alias kubectl=%[2]s
  kubectl -n %[3]s apply -f - <<'YAML'
apiVersion: workitem.dev/v1alpha1
kind: NotificationProvider
metadata: {name: ops-webhook}
spec:
  type: Webhook
  webhook: {url: %[4]s/ops}
  idempotency: {mode: Keyed}
---
apiVersion: workitem.dev/v1alpha1
kind: WorkItem
metadata: {name: renew-ingress-certificate}
spec:
  title: Renew the ingress certificate
  dueTime: "%[5]s"
  notify: [{providerName: ops-webhook}]
YAML
  kubectl -n %[3]s get wi --watch
  kubectl -n %[3]s get nob -o wide

The receiver takes POST on %[4]s/ops (keeps idempotency keys) and
%[4]s/pager (keeps none), and prints below what it gets in the
namespace %[3]s. The manager logs to bin/manager.log.
`, s.kubeconfig, s.plane.KubectlPath(), namespace, s.receiver.URL(), time.Now().Add(time.Minute).UTC().Format(time.RFC3339))
}
