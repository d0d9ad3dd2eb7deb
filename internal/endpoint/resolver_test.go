// SPDX-FileCopyrightText: The WorkItem Operator Authors
// SPDX-License-Identifier: Apache-2.0

package endpoint_test

import (
	"context"
	"encoding/base64"
	"errors"
	"strings"
	"sync"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	clocktesting "k8s.io/utils/clock/testing"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"

	"github.com/workitem-operator/workitem-operator/api/v1alpha1"
	"github.com/workitem-operator/workitem-operator/internal/endpoint"
	"github.com/workitem-operator/workitem-operator/test/wrappers"
)

var noon = time.Date(2026, 12, 1, 12, 0, 0, 0, time.UTC)

// signingKey is a key of Standard Webhooks.
var signingKey = "whsec_" + base64.StdEncoding.EncodeToString([]byte("0123456789abcdef0123456789abcdef"))

// api is an API server that counts reads of Secrets and can refuse them.
type api struct {
	client.WithWatch
	mu    sync.Mutex
	reads int
	err   error
	clock *clocktesting.FakePassiveClock
}

func newAPI(objs ...client.Object) *api {
	a := &api{clock: clocktesting.NewFakePassiveClock(noon)}
	a.WithWatch = fake.NewClientBuilder().WithObjects(objs...).WithInterceptorFuncs(interceptor.Funcs{
		Get: func(ctx context.Context, c client.WithWatch, key client.ObjectKey, obj client.Object, opts ...client.GetOption) error {
			a.mu.Lock()
			a.reads++
			err := a.err
			a.mu.Unlock()
			if err != nil {
				return err
			}
			return c.Get(ctx, key, obj, opts...)
		},
	}).Build()
	return a
}

func (a *api) fails(err error) {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.err = err
}

func (a *api) resolver() *endpoint.Resolver {
	return endpoint.NewResolver(a, a.clock, nil, "test")
}

func (a *api) set(t *testing.T, name string, data map[string]string) {
	t.Helper()
	s := &corev1.Secret{}
	key := client.ObjectKey{Namespace: "ops", Name: name}
	if err := a.Get(t.Context(), key, s); err != nil {
		t.Fatal(err)
	}
	a.reads-- // This one is the test's own.
	s.Data = secret(name, data).Data
	if err := a.Update(t.Context(), s); err != nil {
		t.Fatal(err)
	}
}

func secret(name string, data map[string]string) *corev1.Secret {
	s := &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Namespace: "ops", Name: name}, Data: map[string][]byte{}}
	for k, v := range data {
		s.Data[k] = []byte(v)
	}
	return s
}

func hook() *wrappers.Provider { return wrappers.MakeProvider("hook", "ops") }

// A value is at most two seconds old when it is used, and one read serves everyone
// who asks meanwhile.
func TestASecretIsAtMostTwoSecondsOld(t *testing.T) {
	t.Parallel()
	a := newAPI(secret("s", map[string]string{"token": "one", "other": "two"}))
	r := a.resolver()
	first, second := hook().HeaderFrom("Authorization", "s", "token").Obj(), wrappers.MakeProvider("pager", "ops").HeaderFrom("X-Other", "s", "other").Obj()
	for _, step := range []struct {
		pass     time.Duration
		provider *v1alpha1.NotificationProvider
		fresh    endpoint.Freshness
		want     int
	}{
		{0, first, endpoint.Recent, 1},
		{0, first, endpoint.Recent, 1},
		{1999 * time.Millisecond, second, endpoint.Recent, 1},
		{time.Millisecond, first, endpoint.Recent, 2},
		{0, first, endpoint.Now, 3},
		{time.Second, second, endpoint.Now, 4},
		{1999 * time.Millisecond, second, endpoint.Recent, 4},
		{time.Millisecond, second, endpoint.Recent, 5},
		{time.Hour, second, endpoint.Recent, 6},
	} {
		a.clock.SetTime(a.clock.Now().Add(step.pass))
		if _, err := r.Resolve(t.Context(), step.provider, step.fresh); err != nil {
			t.Fatal(err)
		}
		if a.reads != step.want {
			t.Fatalf("%s later: %d reads, want %d", step.pass, a.reads, step.want)
		}
	}
}

func TestNoSecretNoRead(t *testing.T) {
	t.Parallel()
	a := newAPI()
	ep, err := a.resolver().Resolve(t.Context(), hook().Obj(), endpoint.Now)
	if err != nil || ep.Sender == nil || ep.Secrets != "" || a.reads != 0 {
		t.Errorf("got %+v, %v after %d reads", ep, err, a.reads)
	}
}

func TestProblems(t *testing.T) {
	t.Parallel()
	gr := schema.GroupResource{Resource: "secrets"}
	cases := map[string]struct {
		provider *wrappers.Provider
		err      error
		want     string
	}{
		"no such Secret":        {hook().HeaderFrom("X-A", "missing", "token"), nil, v1alpha1.ReasonSecretNotFound},
		"no such key":           {hook().HeaderFrom("X-A", "s", "missing"), nil, v1alpha1.ReasonSecretNotFound},
		"nothing but space":     {hook().HeaderFrom("X-A", "s", "blank"), nil, v1alpha1.ReasonSecretNotFound},
		"may not be read":       {hook().Signed("s", "key"), apierrors.NewForbidden(gr, "s", errors.New("rbac")), v1alpha1.ReasonSecretForbidden},
		"no signing key":        {hook().Signed("s", "bad"), nil, v1alpha1.ReasonSecretInvalid},
		"no URL":                {hook().URLFrom("s", "bad"), nil, v1alpha1.ReasonSecretInvalid},
		"no certificate":        {hook().CA("s", "bad"), nil, v1alpha1.ReasonSecretInvalid},
		"no value for a header": {hook().HeaderFrom("X-A", "s", "lines"), nil, v1alpha1.ReasonSecretInvalid},
		"no webhook":            {hook(), nil, v1alpha1.ReasonSecretInvalid},
		"the API server's own trouble": {
			hook().Signed("s", "key"), apierrors.NewInternalError(errors.New("etcd")), "",
		},
		"a timeout": {hook().Signed("s", "key"), context.DeadlineExceeded, ""},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			a := newAPI(secret("s", map[string]string{
				"bad": "hunter2-s3cr3t://\x7f", "lines": "hunter2-s3cr3t\r\nX-B: c", "blank": " \n\t", "key": signingKey,
			}))
			a.fails(tc.err)
			provider := tc.provider.Obj()
			if name == "no webhook" {
				provider.Spec.Webhook = nil
			}
			ep, err := a.resolver().Resolve(t.Context(), provider, endpoint.Recent)
			if err == nil {
				t.Fatalf("got %+v", ep)
			}
			problem, ok := errors.AsType[*endpoint.Problem](err)
			if ok != (tc.want != "") || (ok && problem.Reason != tc.want) {
				t.Errorf("got %#v, want the problem %q", err, tc.want)
			}
			if tc.err != nil && !ok && !errors.Is(err, tc.err) {
				t.Errorf("%v does not wrap its cause", err)
			}
			for _, words := range []string{err.Error(), ep.Secrets} {
				if strings.Contains(words, "hunter2") || strings.Contains(words, "s3cr3t") || strings.Contains(words, signingKey[6:]) {
					t.Errorf("a secret is in %q", words)
				}
			}
			if ep.Sender != nil {
				t.Error("there is a sender all the same")
			}
		})
	}
}

// Trouble of the API server is not remembered, what it says is.
func TestTroubleIsNotRemembered(t *testing.T) {
	t.Parallel()
	a := newAPI(secret("s", map[string]string{"token": "one"}))
	r := a.resolver()
	provider := hook().HeaderFrom("X-A", "s", "token").Obj()
	get := func() error {
		_, err := r.Resolve(t.Context(), provider, endpoint.Recent)
		return err
	}
	a.fails(errors.New("connection refused"))
	if err := get(); err == nil {
		t.Fatal("no error")
	}
	a.fails(nil)
	if err := get(); err != nil {
		t.Errorf("the trouble is over, and yet: %v", err)
	}
	// A value that is two seconds old is not used because the read failed.
	a.clock.SetTime(noon.Add(2 * time.Second))
	a.fails(errors.New("connection refused"))
	if err := get(); err == nil {
		t.Error("an old value is used")
	}
	a.fails(apierrors.NewNotFound(schema.GroupResource{Resource: "secrets"}, "s"))
	reads := a.reads
	for range 3 {
		if _, ok := errors.AsType[*endpoint.Problem](get()); !ok {
			t.Error("a Secret that is gone is no problem")
		}
	}
	if a.reads != reads+1 {
		t.Errorf("%d reads of a Secret that is gone, within one moment", a.reads-reads)
	}
}

// A sender, and its connections, are kept until something changes.
func TestSendersAreKeptUntilTheConfigurationChanges(t *testing.T) {
	t.Parallel()
	a := newAPI(secret("s", map[string]string{"token": "one", "key": signingKey}))
	r := a.resolver()
	provider := hook().HeaderFrom("X-A", "s", "token").Signed("s", "key").Obj()
	resolve := func() endpoint.Endpoint {
		t.Helper()
		ep, err := r.Resolve(t.Context(), provider, endpoint.Now)
		if err != nil {
			t.Fatal(err)
		}
		return ep
	}
	first := resolve()
	if again := resolve(); again.Sender != first.Sender || again.Secrets != first.Secrets {
		t.Error("another sender for the same configuration")
	}
	if !strings.HasPrefix(first.Secrets, "s@") {
		t.Errorf("secrets %q", first.Secrets)
	}
	for what, change := range map[string]func(){
		"a header":        func() { a.set(t, "s", map[string]string{"token": "two", "key": signingKey}) },
		"the signing key": func() { a.set(t, "s", map[string]string{"token": "two", "key": signingKey + " " + signingKey}) },
		"the URL":         func() { provider.Spec.Webhook.URL = "https://other.example.com" },
		"the dialect":     func() { provider.Spec.Idempotency.Dialect = v1alpha1.DialectRaw },
		"the life":        func() { r.Forget(provider.UID) },
	} {
		before := resolve()
		change()
		if after := resolve(); after.Sender == before.Sender {
			t.Errorf("%s changed, and the sender is the old one", what)
		}
	}
}

// A rotation counts also where both values hold bytes that are no UTF-8, such as a
// Latin-1 password in a header.
func TestRotationOfBytesThatAreNoUTF8(t *testing.T) {
	t.Parallel()
	a := newAPI(secret("s", map[string]string{"token": "caf\xe9"}))
	r := a.resolver()
	provider := hook().HeaderFrom("X-A", "s", "token").Obj()
	before, err := r.Resolve(t.Context(), provider, endpoint.Now)
	if err != nil {
		t.Fatal(err)
	}
	a.set(t, "s", map[string]string{"token": "caf\xe8"})
	after, err := r.Resolve(t.Context(), provider, endpoint.Now)
	if err != nil {
		t.Fatal(err)
	}
	if before.Sender == after.Sender {
		t.Error("the value was rotated, and the sender still has the old one")
	}
}

func TestHasSecrets(t *testing.T) {
	t.Parallel()
	none := hook().Obj()
	none.Spec.Webhook = nil
	for name, tc := range map[string]struct {
		provider *v1alpha1.NotificationProvider
		want     bool
	}{
		"a plain one": {hook().Obj(), false}, "no webhook": {none, false}, "its URL": {hook().URLFrom("s", "k").Obj(), true},
		"its signature": {hook().Signed("s", "k").Obj(), true}, "its authorities": {hook().CA("s", "k").Obj(), true}, "a header": {hook().HeaderFrom("X-A", "s", "k").Obj(), true},
	} {
		if got := endpoint.HasSecrets(tc.provider); got != tc.want {
			t.Errorf("%s: %t, want %t", name, got, tc.want)
		}
	}
}

func TestResolverIsSafeForConcurrentUse(t *testing.T) {
	t.Parallel()
	a := newAPI(secret("s", map[string]string{"token": "one"}))
	r := a.resolver()
	var wg sync.WaitGroup
	for i := range 8 {
		wg.Go(func() {
			provider := wrappers.MakeProvider(string(rune('a'+i%3)), "ops").HeaderFrom("X-A", "s", "token").Obj()
			for n := range 50 {
				a.clock.SetTime(noon.Add(time.Duration(n) * time.Second))
				if _, err := r.Resolve(t.Context(), provider, endpoint.Freshness(1+n%2)); err != nil {
					t.Error(err)
				}
				if n%7 == 0 {
					r.Forget(provider.UID)
				}
			}
		})
	}
	wg.Wait()
}
