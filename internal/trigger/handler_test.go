// SPDX-FileCopyrightText: The WorkItem Operator Authors
// SPDX-License-Identifier: Apache-2.0

package trigger

import (
	"context"
	"encoding/json"
	"errors"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/go-logr/logr"
	authenticationv1 "k8s.io/api/authentication/v1"
	"k8s.io/utils/clock"
	clocktesting "k8s.io/utils/clock/testing"

	"github.com/workitem-operator/workitem-operator/internal/access"
)

// person is a reviewer who knows one token and gives its owner rights in some
// namespaces.
type person struct {
	namespaces []string
	down       error
}

func (p person) Authenticate(_ context.Context, req *http.Request) (authenticationv1.UserInfo, error) {
	if req.Header.Get("Authorization") != "Bearer good" {
		return authenticationv1.UserInfo{}, access.ErrUnauthenticated
	}
	return authenticationv1.UserInfo{Username: "ann"}, p.down
}

func (p person) Authorize(_ context.Context, user authenticationv1.UserInfo, wanted access.Wanted) error {
	a := wanted.Resource
	if user.Username != "ann" || a.Verb != "process" || a.Resource != "workitems" || a.Group != "workitem.dev" || !slices.Contains(p.namespaces, a.Namespace) {
		return access.ErrForbidden
	}
	return nil
}

// passes notes what it was asked for.
type passes struct {
	namespace string
	wait      time.Duration
	result    Result
	err       error
	calls     int
}

func (p *passes) Pass(_ context.Context, namespace string, wait time.Duration) (Result, error) {
	p.namespace, p.wait = namespace, wait
	p.calls++
	return p.result, p.err
}

func newHandler(p Passer, r Reviewer, watched ...string) *handler {
	return &handler{passer: p, reviewer: r, limits: newLimits(clock.RealClock{}), watched: watched, log: logr.Discard()}
}

func call(h http.Handler, method, target, token, body string) *httptest.ResponseRecorder {
	req := httptest.NewRequest(method, target, strings.NewReader(body))
	if token != "" {
		req.Header.Set("Authorization", "Bearer "+token)
	}
	answer := httptest.NewRecorder()
	h.ServeHTTP(answer, req)
	return answer
}

func TestWhatIsRefusedSaysWhatToDoInstead(t *testing.T) {
	t.Parallel()
	everywhere := person{namespaces: []string{"", "ops", "dev"}}
	for name, c := range map[string]struct {
		method, target, token, body string
		reviewer                    person
		watched                     []string
		passer                      passes
		status                      int
		words                       string
		header                      [2]string
	}{
		"no token":               {method: "POST", target: Path, reviewer: everywhere, status: 401, words: "kubectl create token", header: [2]string{"WWW-Authenticate", "Bearer"}},
		"an unknown token":       {method: "POST", target: Path, token: "bad", reviewer: everywhere, status: 401, words: "token", header: [2]string{"WWW-Authenticate", "Bearer"}},
		"no right":               {method: "POST", target: Path + "?namespace=ops", token: "good", status: 403, words: "in namespace ops"},
		"a right in one only":    {method: "POST", target: Path, token: "good", reviewer: person{namespaces: []string{"ops"}}, status: 403, words: "?namespace="},
		"not in each watched":    {method: "POST", target: Path, token: "good", reviewer: person{namespaces: []string{"ops"}}, watched: []string{"ops", "dev"}, status: 403, words: "in namespace dev"},
		"GET":                    {method: "GET", target: Path, token: "good", reviewer: everywhere, status: 405, words: "POST", header: [2]string{"Allow", "POST"}},
		"writing the contract":   {method: "POST", target: ContractPath, status: 405, words: "GET", header: [2]string{"Allow", "GET, HEAD"}},
		"another path":           {method: "POST", target: "/v1/overdue", token: "good", status: 404, words: Path},
		"an unknown parameter":   {method: "POST", target: Path + "?dryRun=true", token: "good", reviewer: everywhere, status: 400, words: `"dryRun"`},
		"a parameter twice":      {method: "POST", target: Path + "?wait=1s&wait=2s", token: "good", reviewer: everywhere, status: 400, words: "once"},
		"a query that is none":   {method: "POST", target: Path + "?wait=%zz", token: "good", reviewer: everywhere, status: 400, words: "query"},
		"no name":                {method: "POST", target: Path + "?namespace=Not_One", token: "good", reviewer: everywhere, status: 400, words: `"Not_One"`},
		"an empty name":          {method: "POST", target: Path + "?namespace=", token: "good", reviewer: everywhere, status: 400, words: `""`},
		"not looked after":       {method: "POST", target: Path + "?namespace=prod", token: "good", reviewer: everywhere, watched: []string{"ops"}, status: 400, words: "only after ops"},
		"a wait of no duration":  {method: "POST", target: Path + "?wait=30", token: "good", reviewer: everywhere, status: 400, words: "30s"},
		"a wait below nothing":   {method: "POST", target: Path + "?wait=-1s", token: "good", reviewer: everywhere, status: 400, words: "0s"},
		"a wait without end":     {method: "POST", target: Path + "?wait=5m1s", token: "good", reviewer: everywhere, status: 400, words: "5m"},
		"a body":                 {method: "POST", target: Path, token: "good", body: `{"namespace":"ops"}`, reviewer: everywhere, status: 400, words: "query"},
		"a large body":           {method: "POST", target: Path, token: "good", body: strings.Repeat(" ", 4097), reviewer: everywhere, status: 413, words: "4096"},
		"an unfinished pass":     {method: "POST", target: Path, token: "good", reviewer: everywhere, passer: passes{err: errors.New("stopped")}, status: 503, words: "nothing is lost"},
		"nobody to ask":          {method: "POST", target: Path, token: "good", reviewer: person{down: errors.New("connection refused to 10.0.0.1")}, status: 503, words: "API server"},
		"the contract elsewhere": {method: "GET", target: "/openapi.json", status: 404, words: ContractPath},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			answer := call(newHandler(&c.passer, c.reviewer, c.watched...), c.method, c.target, c.token, c.body)
			var p problem
			if err := json.Unmarshal(answer.Body.Bytes(), &p); err != nil {
				t.Fatalf("the answer is no problem: %v: %s", err, answer.Body)
			}
			if answer.Code != c.status || p.Status != c.status || p.Title != http.StatusText(c.status) || p.Type != "about:blank" ||
				answer.Header().Get("Content-Type") != "application/problem+json" {
				t.Errorf("answered %d %v: %s", answer.Code, answer.Header(), answer.Body)
			}
			if !strings.Contains(p.Detail, c.words) {
				t.Errorf("%q does not say %q", p.Detail, c.words)
			}
			if c.header[0] != "" && answer.Header().Get(c.header[0]) != c.header[1] {
				t.Errorf("the header %s is %q", c.header[0], answer.Header().Get(c.header[0]))
			}
			if strings.Contains(p.Detail, "10.0.0.1") {
				t.Error("the answer tells what is inside")
			}
			if c.status != 503 && c.passer.calls != 0 {
				t.Error("a pass was made")
			}
		})
	}
}

func TestAPassIsMadeForWhoMayAskForIt(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		target    string
		rights    []string
		watched   []string
		namespace string
		wait      time.Duration
	}{
		"everywhere":           {target: Path, rights: []string{""}},
		"in one namespace":     {target: Path + "?namespace=ops&wait=30s", rights: []string{"ops"}, namespace: "ops", wait: 30 * time.Second},
		"in each watched":      {target: Path, rights: []string{"ops", "dev"}, watched: []string{"ops", "dev"}},
		"in one of them":       {target: Path + "?namespace=dev", rights: []string{"dev"}, watched: []string{"ops", "dev"}, namespace: "dev"},
		"without waiting long": {target: Path + "?wait=0s", rights: []string{""}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			p := &passes{result: Result{ProcessedCount: 2, NotificationCount: 3}}
			answer := call(newHandler(p, person{namespaces: c.rights}, c.watched...), http.MethodPost, c.target, "good", "{}")
			want := `{"processedCount":2,"notificationCount":3,"failedNotificationWorkItemIds":[]}` + "\n"
			if answer.Code != 200 || answer.Body.String() != want || answer.Header().Get("Content-Type") != "application/json" {
				t.Errorf("answered %d %v: %s", answer.Code, answer.Header(), answer.Body)
			}
			if p.namespace != c.namespace || p.wait != c.wait {
				t.Errorf("the pass was over %q, waiting %s", p.namespace, p.wait)
			}
		})
	}
}

func TestTooManyRequestsAreToldWhenToComeBack(t *testing.T) {
	t.Parallel()
	clk := clocktesting.NewFakePassiveClock(time.Date(2026, 12, 1, 9, 0, 0, 0, time.UTC))
	h := newHandler(&passes{}, person{namespaces: []string{""}})
	h.limits = newLimits(clk)
	for range maxBurst {
		if answer := call(h, http.MethodPost, Path, "good", ""); answer.Code != 200 {
			t.Fatalf("answered %d", answer.Code)
		}
	}
	answer := call(h, http.MethodPost, Path, "good", "")
	if answer.Code != 429 || answer.Header().Get("Retry-After") != "1" {
		t.Errorf("answered %d %v", answer.Code, answer.Header())
	}
	clk.SetTime(clk.Now().Add(time.Second))
	if answer := call(h, http.MethodPost, Path, "good", ""); answer.Code != 200 {
		t.Errorf("answered %d a second later", answer.Code)
	}
}

func TestTooManyThatWaitAreRefused(t *testing.T) {
	t.Parallel()
	l := newLimits(clock.RealClock{})
	l.bucket.SetBurst(2 * maxOpen)
	l.bucket.SetLimit(1e9)
	var leave func()
	for range maxOpen {
		var refused *problem
		if leave, refused = l.enter(httptest.NewRecorder()); refused != nil {
			t.Fatal(refused)
		}
	}
	answer := httptest.NewRecorder()
	if _, refused := l.enter(answer); refused == nil || refused.Status != 429 || answer.Header().Get("Retry-After") != "5" {
		t.Errorf("one more was answered %v", refused)
	}
	leave()
	if _, refused := l.enter(httptest.NewRecorder()); refused != nil {
		t.Errorf("after one has left: %v", refused)
	}
}
