// SPDX-FileCopyrightText: The WorkItem Operator Authors
// SPDX-License-Identifier: Apache-2.0

package trigger

import (
	"encoding/json"
	"net/http"
	"strings"
	"testing"

	"github.com/workitem-operator/workitem-operator/test/framework"
)

func TestWhoIsLetIn(t *testing.T) {
	t.Parallel()
	env, other := framework.New(t), framework.New(t)
	env.Provider("ops", nil)
	m, clk := asleep(env, framework.AlsoWatch(other))
	sleeping(env, "report", "ops")
	clk.move()
	here, stranger := callerWithRight(env), env.Token("stranger")
	url := m.TriggerURL()

	for name, c := range map[string]struct {
		method, query, token string
		status               int
		says                 string
	}{
		"nobody":                      {status: http.StatusUnauthorized, says: "Authorization: Bearer"},
		"a token of another world":    {token: "x.y.z", status: http.StatusUnauthorized, says: "Authorization: Bearer"},
		"without the right":           {query: "?namespace=" + env.Namespace, token: stranger, status: http.StatusForbidden, says: "process"},
		"in another namespace":        {query: "?namespace=" + other.Namespace, token: here, status: http.StatusForbidden, says: other.Namespace},
		"in all of them":              {token: here, status: http.StatusForbidden, says: other.Namespace},
		"a namespace not looked at":   {query: "?namespace=default", token: here, status: http.StatusBadRequest, says: "default"},
		"a parameter that is unknown": {query: "?namespaces=default", token: here, status: http.StatusBadRequest, says: "namespaces"},
		"reading":                     {method: http.MethodGet, token: here, status: http.StatusMethodNotAllowed, says: "POST"},
		"with the right":              {query: "?namespace=" + env.Namespace, token: here, status: http.StatusOK},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			method := http.MethodPost
			if c.method != "" {
				method = c.method
			}
			got, err := send(t.Context(), method, url+c.query, c.token)
			if err != nil {
				t.Fatal(err)
			}
			if got.status != c.status {
				t.Fatalf("the answer is %d, want %d: %s", got.status, c.status, got.body)
			}
			if c.status != http.StatusOK {
				wantProblem(t, got, c.says)
			}
		})
	}
}

// wantProblem fails the test unless an answer has the form of RFC 9457 and says something.
func wantProblem(t *testing.T, got answer, says string) {
	t.Helper()
	var p struct {
		Type, Title, Detail string
		Status              int
	}
	if err := json.Unmarshal([]byte(got.body), &p); err != nil {
		t.Fatal(err)
	}
	if kind := got.header.Get("Content-Type"); kind != "application/problem+json" || p.Type != "about:blank" || p.Status != got.status || p.Title != http.StatusText(got.status) {
		t.Errorf("the answer is %s %s", kind, got.body)
	}
	if !strings.Contains(p.Detail, says) {
		t.Errorf("the answer says %q and not %q", p.Detail, says)
	}
}

func TestATokenOfARightThatWasTakenAwayIsOfNoUse(t *testing.T) {
	t.Parallel()
	env := framework.New(t)
	m, _ := asleep(env)
	token := callerWithRight(env)
	url := m.TriggerURL()
	passes(env, url, token)
	env.MayProcessNoMore("caller")
	env.Eventually("the caller is refused", framework.Soon, func() error {
		got, err := asks(t.Context(), url, token)
		if err != nil {
			return err
		}
		if got.status != http.StatusForbidden {
			return errStatus(got.status)
		}
		return nil
	})
}
