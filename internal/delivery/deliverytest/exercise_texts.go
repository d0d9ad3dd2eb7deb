// SPDX-FileCopyrightText: The WorkItem Operator Authors
// SPDX-License-Identifier: Apache-2.0

package deliverytest

import (
	"context"
	"encoding/base64"
	"encoding/json"
	"fmt"
	"net/http"
	"net/url"
	"strings"
	"testing"
	"unicode"
	"unicode/utf8"

	"github.com/workitem-operator/workitem-operator/internal/outcome"
)

const (
	credential = "cr3dential+of/THE=provider" //nolint:gosec // made up, to be looked for
	urlToken   = "T0KEN-1n-the-path"
)

// checkText tells whether a result is fit to print.
func checkText(t *testing.T, what string, got outcome.Result, secrets ...string) {
	t.Helper()
	check(t, what, got, got)
	if !utf8.ValidString(got.Message) || strings.ContainsFunc(got.Message, unicode.IsControl) {
		t.Errorf("%s: not fit to print: %q", what, got.Message)
	}
	text := strings.ToLower(got.Reason + " " + got.Message)
	for _, secret := range secrets {
		for _, form := range []string{
			secret, url.QueryEscape(secret), url.PathEscape(secret),
			base64.StdEncoding.EncodeToString([]byte(secret)), base64.URLEncoding.EncodeToString([]byte(secret)),
		} {
			if strings.Contains(text, strings.ToLower(form)) {
				t.Errorf("%s: %q shows a secret", what, got.Message)
			}
		}
	}
}

func (s suite) longAnswer(t *testing.T) {
	t.Parallel()
	server := start(t, ServerOptions{})
	for name, body := range map[string]string{
		"text":     strings.Repeat("no! ", 1<<18),
		"controls": strings.Repeat("\x00\x1b[31m\r\n", 1<<16),
		"UTF-8":    "x" + strings.Repeat("🎉", 1<<14),
		"binary":   strings.Repeat("\xff\xfe\x80", 1<<16),
	} {
		for _, status := range []int{200, 400, 500} {
			endpoint := server.Endpoint("/hook", None, Always(Answer{Status: status, Body: body}))
			got := s.provider(t, server, endpoint).Send(within(t), message("long"))
			check(t, name, got, outcome.FromHTTPStatus(status))
			checkText(t, name, got)
		}
	}
}

// endlessAnswer ends the context once the headers were sent. Whether they had
// arrived by then is left open, and so is the class.
func (s suite) endlessAnswer(t *testing.T) {
	t.Parallel()
	server := start(t, ServerOptions{})
	endpoint := server.Endpoint("/hook", None, Always(Answer{Body: "and", HoldBody: make(chan struct{})}))
	sender := s.provider(t, server, endpoint)
	ctx, cancel := context.WithCancel(within(t))
	result := make(chan outcome.Result, 1)
	go func() { result <- sender.Send(ctx, message("endless")) }()
	answered := func(calls []Call) bool { return len(calls) == 1 && calls[0].Status != 0 }
	if err := endpoint.WaitFor(within(t), answered); err != nil {
		t.Fatal(err)
	}
	cancel()
	if got := <-result; got.Class != outcome.Accepted && got.Class != outcome.Ambiguous {
		t.Errorf("got %+v", got)
	}
}

// echoes are what receivers are seen to answer with: pieces of the request.
func echoes(call Call, self string) map[string]string {
	authorization := call.Header.Get("Authorization")
	inJSON, _ := json.Marshal(map[string]any{"headers": call.Header, "url": self})
	return map[string]string{
		"header":      "bad token " + authorization,
		"headers":     fmt.Sprint(call.Header),
		"JSON":        string(inJSON),
		"JSON of PHP": strings.ReplaceAll(string(inJSON), "/", `\/`),
		"URL":         "no route for POST " + self,
		"path":        call.Path + "?" + call.Query,
		"query":       url.QueryEscape(self) + " " + url.QueryEscape(authorization),
		"base64":      base64.StdEncoding.EncodeToString([]byte(authorization + " " + self)),
		"late":        strings.Repeat("x", 1000) + authorization + self,
		"split":       strings.Join(strings.Split(authorization+self, ""), "\x00"),
	}
}

func (s suite) secretsInAnswers(t *testing.T) {
	t.Parallel()
	server := start(t, ServerOptions{})
	path := "/services/" + urlToken
	self := server.URL() + path + "?key=" + url.QueryEscape(urlToken)
	endpoint := server.Endpoint(path, None, nil)
	sender := s.New(t, Target{URL: self, URLIsSecret: true, Credential: credential})
	for name := range echoes(Call{}, "") {
		for _, status := range []int{200, 302, 400, 401, 500, 503} {
			endpoint.SetScript(func(call Call) Answer {
				text := echoes(call, self)[name]
				header := http.Header{"Location": {self}, "Retry-After": {call.Header.Get("Authorization")}, "X-Echo": {self}}
				return Answer{Status: status, Body: text, Header: header}
			})
			got := sender.Send(within(t), message("secret"))
			check(t, name, got, outcome.FromHTTPStatus(status))
			checkText(t, name, got, credential, urlToken, self, strings.TrimPrefix(server.URL(), "http://"))
		}
	}
	for _, call := range endpoint.Calls() {
		if authorization := call.Header.Get("Authorization"); !strings.Contains(authorization, credential) {
			t.Errorf("the credential is not sent: Authorization: %q", authorization)
		}
	}
}

func (s suite) secretsInErrors(t *testing.T) {
	t.Parallel()
	closed, server := closedURL(t), start(t, ServerOptions{TLS: true})
	dropped := server.Endpoint("/"+urlToken, None, Always(Answer{Drop: true}))
	for name, target := range map[string]Target{
		"refused":     {URL: closed + "/" + urlToken},
		"not trusted": {URL: dropped.URL()},
		"not TLS":     {URL: strings.Replace(dropped.URL(), "https:", "http:", 1)},
		"dropped":     {URL: dropped.URL(), CABundle: server.CABundle()},
	} {
		target.URLIsSecret, target.Credential = true, credential
		got := s.New(t, target).Send(within(t), message("secret"))
		if got.Class == outcome.Accepted {
			t.Errorf("%s: accepted", name)
		}
		parsed, err := url.Parse(target.URL)
		if err != nil {
			t.Fatal(err)
		}
		checkText(t, name, got, credential, urlToken, target.URL, parsed.Host)
	}
	ctx, cancel := context.WithCancelCause(within(t))
	cancel(fmt.Errorf("while calling %s: %w", dropped.URL(), context.Canceled))
	got := s.New(t, Target{URL: dropped.URL(), URLIsSecret: true}).Send(ctx, message("secret"))
	checkText(t, "a cause that shows it", got, urlToken, dropped.URL())
}
