// SPDX-FileCopyrightText: The WorkItem Operator Authors
// SPDX-License-Identifier: Apache-2.0

package access

import (
	"context"
	"errors"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/go-logr/logr"
	authenticationv1 "k8s.io/api/authentication/v1"
	authorizationv1 "k8s.io/api/authorization/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

const secretToken = "eyJhbGciOi.secret"

type tokens struct{ err error }

func (f tokens) Create(_ context.Context, review *authenticationv1.TokenReview, _ metav1.CreateOptions) (*authenticationv1.TokenReview, error) {
	review.Status.Authenticated = review.Spec.Token == secretToken
	review.Status.User = authenticationv1.UserInfo{
		Username: "prometheus", Groups: []string{"scrapers"}, Extra: map[string]authenticationv1.ExtraValue{"pod": {"p-1"}},
	}
	return review, f.err
}

type rights struct {
	asked *authorizationv1.SubjectAccessReviewSpec
	err   error
	path  string
}

func (f *rights) Create(_ context.Context, review *authorizationv1.SubjectAccessReview, _ metav1.CreateOptions) (*authorizationv1.SubjectAccessReview, error) {
	f.asked = &review.Spec
	review.Status.Allowed = review.Spec.NonResourceAttributes != nil && review.Spec.NonResourceAttributes.Path == f.path
	return review, f.err
}

func TestMetricsAreForThoseWhoMayGetThem(t *testing.T) {
	t.Parallel()
	down := errors.New("the API server is away")
	for name, c := range map[string]struct {
		header    string
		tokens    tokens
		rights    rights
		want      int
		challenge string
	}{
		"a right":                 {header: "Bearer " + secretToken, rights: rights{path: "/metrics"}, want: 200},
		"a scheme in small":       {header: "bearer " + secretToken, rights: rights{path: "/metrics"}, want: 200},
		"no token":                {want: 401, challenge: "Bearer"},
		"another scheme":          {header: "Basic " + secretToken, want: 401, challenge: "Bearer"},
		"an empty token":          {header: "Bearer  ", want: 401, challenge: "Bearer"},
		"an unknown token":        {header: "Bearer other", rights: rights{path: "/metrics"}, want: 401, challenge: "Bearer"},
		"another right":           {header: "Bearer " + secretToken, rights: rights{path: "/debug"}, want: 403},
		"tokens cannot be asked":  {header: "Bearer " + secretToken, tokens: tokens{err: down}, want: 500},
		"rights cannot be asked":  {header: "Bearer " + secretToken, rights: rights{err: down, path: "/metrics"}, want: 500},
		"an error is not allowed": {header: "Bearer " + secretToken, rights: rights{err: down}, want: 500},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			handler, err := New(c.tokens, &c.rights).filter(logr.Discard(), http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
				w.WriteHeader(http.StatusOK)
			}))
			if err != nil {
				t.Fatal(err)
			}
			req := httptest.NewRequest(http.MethodGet, "/metrics", http.NoBody)
			if c.header != "" {
				req.Header.Set("Authorization", c.header)
			}
			answer := httptest.NewRecorder()
			handler.ServeHTTP(answer, req)
			if answer.Code != c.want || answer.Header().Get("WWW-Authenticate") != c.challenge {
				t.Errorf("answered %d with the challenge %q, want %d and %q", answer.Code, answer.Header().Get("WWW-Authenticate"), c.want, c.challenge)
			}
			if strings.Contains(answer.Body.String(), secretToken) {
				t.Error("the answer tells the token")
			}
		})
	}
}

func TestARightIsAskedForWithEverythingThatIsKnownOfTheCaller(t *testing.T) {
	t.Parallel()
	r := &rights{}
	reviewer := New(tokens{}, r)
	req := httptest.NewRequest(http.MethodPost, "/", http.NoBody)
	req.Header.Set("Authorization", "Bearer "+secretToken)
	user, err := reviewer.Authenticate(t.Context(), req)
	if err != nil {
		t.Fatal(err)
	}
	wanted := Wanted{Resource: &authorizationv1.ResourceAttributes{Namespace: "ops", Verb: "create", Group: "workitem.dev", Resource: "overduepasses"}}
	if err := reviewer.Authorize(t.Context(), user, wanted); !errors.Is(err, ErrForbidden) {
		t.Errorf("the answer is %v", err)
	}
	if r.asked.User != "prometheus" || r.asked.Groups[0] != "scrapers" || r.asked.Extra["pod"][0] != "p-1" || r.asked.ResourceAttributes.Namespace != "ops" {
		t.Errorf("asked about %+v", r.asked)
	}
}
