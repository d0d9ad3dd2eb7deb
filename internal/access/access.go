// SPDX-FileCopyrightText: The WorkItem Operator Authors
// SPDX-License-Identifier: Apache-2.0

// Package access lets HTTP requests through whose caller the API server knows and
// allows: a bearer token is judged by a TokenReview, and what its owner wants by a
// SubjectAccessReview. Nothing is remembered, so a token or a right that was taken
// away is of no use any more.
package access

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"strings"
	"time"

	authenticationv1 "k8s.io/api/authentication/v1"
	authorizationv1 "k8s.io/api/authorization/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	authenticationclient "k8s.io/client-go/kubernetes/typed/authentication/v1"
	authorizationclient "k8s.io/client-go/kubernetes/typed/authorization/v1"
	"k8s.io/client-go/rest"
)

// reviewTimeout bounds the question to the API server.
const reviewTimeout = 10 * time.Second

var (
	// ErrUnauthenticated says that a request carries no token that the API server
	// knows.
	ErrUnauthenticated = errors.New("a bearer token that the API server accepts is needed")
	// ErrForbidden says that the caller may not do what it asks for.
	ErrForbidden = errors.New("not allowed")
)

// TokenReviews asks whose token it is.
type TokenReviews interface {
	Create(ctx context.Context, review *authenticationv1.TokenReview, opts metav1.CreateOptions) (*authenticationv1.TokenReview, error)
}

// SubjectReviews asks what somebody may do.
type SubjectReviews interface {
	Create(ctx context.Context, review *authorizationv1.SubjectAccessReview, opts metav1.CreateOptions) (*authorizationv1.SubjectAccessReview, error)
}

// Reviewer asks the API server about callers. Its methods are safe for concurrent use.
type Reviewer struct {
	tokens TokenReviews
	access SubjectReviews
}

// New returns a Reviewer that asks these.
func New(tokens TokenReviews, access SubjectReviews) *Reviewer {
	return &Reviewer{tokens: tokens, access: access}
}

// NewForConfig returns a Reviewer that asks the API server of a configuration.
func NewForConfig(cfg *rest.Config, c *http.Client) (*Reviewer, error) {
	tokens, err := authenticationclient.NewForConfigAndClient(cfg, c)
	if err != nil {
		return nil, fmt.Errorf("making a client for token reviews: %w", err)
	}
	access, err := authorizationclient.NewForConfigAndClient(cfg, c)
	if err != nil {
		return nil, fmt.Errorf("making a client for access reviews: %w", err)
	}
	return New(tokens.TokenReviews(), access.SubjectAccessReviews()), nil
}

// Authenticate finds out who makes a request. The error is ErrUnauthenticated, or says
// why the API server could not be asked.
func (r *Reviewer) Authenticate(ctx context.Context, req *http.Request) (authenticationv1.UserInfo, error) {
	token := bearer(req)
	if token == "" {
		return authenticationv1.UserInfo{}, ErrUnauthenticated
	}
	ctx, stop := context.WithTimeout(ctx, reviewTimeout)
	defer stop()
	review, err := r.tokens.Create(ctx, &authenticationv1.TokenReview{
		Spec: authenticationv1.TokenReviewSpec{Token: token},
	}, metav1.CreateOptions{})
	switch {
	case err != nil:
		return authenticationv1.UserInfo{}, fmt.Errorf("reviewing a token: %w", err)
	case !review.Status.Authenticated:
		return authenticationv1.UserInfo{}, ErrUnauthenticated
	}
	return review.Status.User, nil
}

// bearer is the token of a request (RFC 6750, section 2.1); empty if it has none.
func bearer(req *http.Request) string {
	scheme, token, found := strings.Cut(req.Header.Get("Authorization"), " ")
	if !found || !strings.EqualFold(scheme, "Bearer") {
		return ""
	}
	return strings.TrimSpace(token)
}

// Wanted is what somebody wants to do: with a resource, or with a path.
type Wanted struct {
	// Resource is the resource; nil if it is a path.
	Resource *authorizationv1.ResourceAttributes
	// Path is the path; nil if it is a resource.
	Path *authorizationv1.NonResourceAttributes
}

// Authorize finds out whether somebody may do something. The error is ErrForbidden, or
// says why the API server could not be asked.
func (r *Reviewer) Authorize(ctx context.Context, user authenticationv1.UserInfo, wanted Wanted) error {
	ctx, stop := context.WithTimeout(ctx, reviewTimeout)
	defer stop()
	extra := map[string]authorizationv1.ExtraValue{}
	for key, values := range user.Extra {
		extra[key] = authorizationv1.ExtraValue(values)
	}
	review, err := r.access.Create(ctx, &authorizationv1.SubjectAccessReview{
		Spec: authorizationv1.SubjectAccessReviewSpec{
			User: user.Username, UID: user.UID, Groups: user.Groups, Extra: extra,
			ResourceAttributes: wanted.Resource, NonResourceAttributes: wanted.Path,
		},
	}, metav1.CreateOptions{})
	switch {
	case err != nil:
		return fmt.Errorf("reviewing access: %w", err)
	case !review.Status.Allowed:
		return ErrForbidden
	}
	return nil
}
