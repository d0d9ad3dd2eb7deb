// SPDX-FileCopyrightText: The WorkItem Operator Authors
// SPDX-License-Identifier: Apache-2.0

package framework

import (
	"errors"
	"regexp"
	"strings"

	authenticationv1 "k8s.io/api/authentication/v1"
	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/workitem-operator/workitem-operator/internal/trigger"
)

// TriggerFlag has a process serve the HTTP trigger on a free port.
const TriggerFlag = "--trigger-bind-address=127.0.0.1:0"

// Triggered has a manager serve the HTTP trigger on a free port.
func Triggered() ManagerOption {
	return func(c *managerConfig) { c.options.TriggerAddress = "127.0.0.1:0" }
}

// serving finds the address in what a manager or a process logs.
var serving = regexp.MustCompile(`Serving the trigger.*?(127\.0\.0\.1:\d+)`)

// TriggerURL is where a pass of this manager is asked for.
func (m *Manager) TriggerURL() string {
	m.env.T.Helper()
	return m.env.triggerURL(m.journal.String)
}

// TriggerURL is where a pass of this process is asked for.
func (p *Process) TriggerURL() string {
	p.env.T.Helper()
	return p.env.triggerURL(func() string { return strings.Join(p.Log(), "\n") })
}

func (e *Env) triggerURL(log func() string) (url string) {
	e.T.Helper()
	e.Eventually("the trigger is served", Soon, func() error {
		found := serving.FindStringSubmatch(log())
		if found == nil {
			return errors.New("it is not")
		}
		url = "https://" + found[1] + trigger.Path
		return nil
	})
	return url
}

// Token makes a ServiceAccount in the test's namespace and returns a token of it.
func (e *Env) Token(account string) string {
	e.T.Helper()
	sa := &corev1.ServiceAccount{ObjectMeta: metav1.ObjectMeta{Namespace: e.Namespace, Name: account}}
	e.Create(sa)
	request := &authenticationv1.TokenRequest{}
	if err := e.Client.SubResource("token").Create(e.T.Context(), sa, request); err != nil {
		e.T.Fatalf("asking for a token of ServiceAccount %s: %v", account, err)
	}
	return request.Status.Token
}

// MayProcess gives a ServiceAccount of the test's namespace the right to trigger passes in
// that namespace.
func (e *Env) MayProcess(account string) {
	e.T.Helper()
	meta := metav1.ObjectMeta{Namespace: e.Namespace, Name: account}
	e.Create(&rbacv1.Role{ObjectMeta: meta, Rules: []rbacv1.PolicyRule{
		{APIGroups: []string{"workitem.dev"}, Resources: []string{"workitems"}, Verbs: []string{trigger.Verb}},
	}})
	e.Create(&rbacv1.RoleBinding{
		ObjectMeta: meta,
		RoleRef:    rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "Role", Name: account},
		Subjects:   []rbacv1.Subject{{Kind: rbacv1.ServiceAccountKind, Namespace: e.Namespace, Name: account}},
	})
}

// MayProcessNoMore takes the right away again.
func (e *Env) MayProcessNoMore(account string) {
	e.T.Helper()
	binding := &rbacv1.RoleBinding{ObjectMeta: metav1.ObjectMeta{Namespace: e.Namespace, Name: account}}
	if err := e.Client.Delete(e.T.Context(), binding); err != nil {
		e.T.Fatal("taking a right away:", err)
	}
}
