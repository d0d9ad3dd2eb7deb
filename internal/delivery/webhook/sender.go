// SPDX-FileCopyrightText: The WorkItem Operator Authors
// SPDX-License-Identifier: Apache-2.0

package webhook

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/http/httptrace"
	"net/url"
	"strconv"
	"time"

	"github.com/dunglas/httpsfv"
	"golang.org/x/net/http/httpguts"

	"github.com/workitem-operator/workitem-operator/internal/delivery"
	"github.com/workitem-operator/workitem-operator/internal/outcome"
)

// bodyTimeout is how long, at most, an answer's body is waited for.
const bodyTimeout = time.Second

// errBodyTimeout ends a call whose answer is in, and whose body does not come.
var errBodyTimeout = errors.New("the rest of the body is not waited for")

// Sender sends notifications to one webhook. It is safe for concurrent use.
type Sender struct {
	url         *url.URL
	urlIsSecret bool
	header      http.Header
	dialect     Dialect
	signer      signer
	redactor    *delivery.Redactor
	transport   *http.Transport
}

var _ delivery.Sender = (*Sender)(nil)

// New returns a Sender for one webhook, or an error that says what is wrong
// with the configuration, without showing the URL, a header's value, or a key.
func New(cfg Config) (*Sender, error) {
	u, err := parseURL(cfg.URL)
	if err != nil {
		return nil, fmt.Errorf("configuring the webhook: %w", err)
	}
	header, err := cfg.headersOf(u)
	if err != nil {
		return nil, fmt.Errorf("configuring the webhook: %w", err)
	}
	signer, err := newSigner(cfg.SigningKeys)
	if err != nil {
		return nil, fmt.Errorf("configuring the webhook: %w", err)
	}
	roots, err := rootsOf(cfg.CABundle)
	if err != nil {
		return nil, fmt.Errorf("configuring the webhook: %w", err)
	}
	dialect := cfg.Dialect
	if dialect == "" {
		dialect = IETF
	}
	if dialect != IETF && dialect != Raw {
		return nil, fmt.Errorf("configuring the webhook: there is no dialect %q", string(dialect))
	}
	return &Sender{
		url:         u,
		urlIsSecret: cfg.URLIsSecret,
		header:      header,
		dialect:     dialect,
		signer:      signer,
		redactor:    cfg.redactor(u),
		transport:   newTransport(cfg.Guard, roots),
	}, nil
}

// Close closes the connections that are kept for further calls. Calls in flight
// go on, and so may new ones.
func (s *Sender) Close() { s.transport.CloseIdleConnections() }

// Send implements delivery.Sender.
func (s *Sender) Send(ctx context.Context, msg delivery.Message) outcome.Result {
	if ctx.Err() != nil {
		return delivery.StoppedBefore(ctx, s.redactor)
	}
	header, err := s.headerFor(msg)
	if err != nil {
		return outcome.Unsendable(s.redactor.Error(err))
	}
	callCtx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	watched := &watch{}
	req := (&http.Request{
		Method: http.MethodPost,
		URL:    s.url,
		Header: header,
		Host:   s.url.Host,
		// Neither nil nor http.NoBody, and no GetBody beside it: see the
		// package comment.
		Body:          io.NopCloser(bytes.NewReader(msg.Body)),
		ContentLength: int64(len(msg.Body)),
	}).WithContext(httptrace.WithClientTrace(callCtx, watched.trace()))

	// The transport and not a client: a client follows redirects, and puts the
	// URL into its errors.
	resp, err := s.transport.RoundTrip(req)
	if err != nil {
		return s.unanswered(ctx, watched, err)
	}
	defer func() { _ = resp.Body.Close() }()
	bodyCtx, done := context.WithTimeoutCause(ctx, bodyTimeout, errBodyTimeout)
	defer done()
	defer context.AfterFunc(bodyCtx, func() { cancel(context.Cause(bodyCtx)) })()
	return s.answered(resp, msg.Time)
}

// headerFor returns the headers of a request for msg.
func (s *Sender) headerFor(msg delivery.Message) (http.Header, error) {
	if !validKey(msg.Key) {
		return nil, errors.New("the idempotency key is empty or not printable ASCII without spaces")
	}
	if msg.ContentType == "" || !httpguts.ValidHeaderFieldValue(msg.ContentType) {
		return nil, errors.New("the content type is not a valid header value")
	}
	key := msg.Key
	if s.dialect == IETF {
		quoted, err := httpsfv.Marshal(httpsfv.NewItem(key))
		if err != nil {
			return nil, fmt.Errorf("quoting the idempotency key: %w", err)
		}
		key = quoted
	}
	signature, err := s.signer.sign(msg)
	if err != nil {
		return nil, err
	}
	header := s.header.Clone()
	header.Set("Content-Type", msg.ContentType)
	header.Set("Idempotency-Key", key)
	header.Set("Webhook-Id", msg.Key)
	header.Set("Webhook-Timestamp", strconv.FormatInt(msg.Time.Unix(), 10))
	if signature != "" {
		header.Set("Webhook-Signature", signature)
	}
	return header, nil
}

// validKey tells whether a key can be sent in every form: RFC 9651 has only
// ASCII in strings, and spaces at the ends of a raw one would be lost.
func validKey(key string) bool {
	for _, c := range []byte(key) {
		if c <= ' ' || c > '~' {
			return false
		}
	}
	return key != ""
}

// answered is the outcome of a call whose status is in.
func (s *Sender) answered(resp *http.Response, now time.Time) outcome.Result {
	result := outcome.FromHTTPStatus(resp.StatusCode)
	if result.Follow == outcome.FollowRetry {
		// Counted from the attempt's beginning: late by what the call took,
		// and never early.
		result.RetryAfter = outcome.ParseRetryAfter(resp.Header.Get("Retry-After"), now)
	}
	if resp.StatusCode == http.StatusSwitchingProtocols {
		// This body is the connection itself, and reading it may never end.
		return result
	}
	// It is read after an acceptance, too: only then can the connection be
	// used again.
	excerpt := s.redactor.Excerpt(resp.Body)
	if result.Class != outcome.Accepted && excerpt != "" {
		result.Message = s.redactor.Text(result.Message + ": " + excerpt)
	}
	return result
}
