// SPDX-FileCopyrightText: The WorkItem Operator Authors
// SPDX-License-Identifier: Apache-2.0

package webhook

import (
	"context"
	"errors"
	"net"
	"syscall"

	"github.com/workitem-operator/workitem-operator/internal/delivery"
	"github.com/workitem-operator/workitem-operator/internal/outcome"
)

// unanswered is the outcome of a call that failed before its status was in.
func (s *Sender) unanswered(ctx context.Context, watched *watch, err error) outcome.Result {
	if watched.begun() {
		if ctx.Err() != nil {
			return delivery.StoppedInFlight(ctx, s.redactor)
		}
		return outcome.Unanswered(outcome.ReasonConnectionLost, "no answer came: "+s.describe(err))
	}
	if ctx.Err() != nil {
		return delivery.StoppedBefore(ctx, s.redactor)
	}
	return outcome.NotSent(reasonFor(err, watched), "nothing was sent: "+s.describe(err))
}

// reasonFor tells why no connection came about.
func reasonFor(err error, watched *watch) string {
	_, unresolved := errors.AsType[*net.DNSError](err)
	switch {
	case errors.Is(err, delivery.ErrAddressForbidden):
		return outcome.ReasonAddressForbidden
	case unresolved:
		return outcome.ReasonNameNotResolved
	case errors.Is(err, syscall.ECONNREFUSED):
		return outcome.ReasonConnectionRefused
	case watched.handshakeFailed():
		return outcome.ReasonTLSFailed
	}
	return outcome.ReasonConnectionFailed
}

// describe says what went wrong. If the URL is a secret, the addresses behind
// its host are left out: they tell whose it is.
func (s *Sender) describe(err error) string {
	if s.urlIsSecret {
		err = withoutAddress(err)
	}
	return s.redactor.Error(err)
}

func withoutAddress(err error) error {
	if dnsErr, ok := errors.AsType[*net.DNSError](err); ok {
		return errors.New(dnsErr.Err)
	}
	for {
		opErr, ok := errors.AsType[*net.OpError](err)
		if !ok || opErr.Err == nil {
			return err
		}
		err = opErr.Err
	}
}
