// SPDX-FileCopyrightText: The WorkItem Operator Authors
// SPDX-License-Identifier: Apache-2.0

package kube_test

import (
	"errors"
	"fmt"
	"net/http"
	"sync"
	"testing"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/workitem-operator/workitem-operator/api/v1alpha1"
	"github.com/workitem-operator/workitem-operator/internal/kube"
	"github.com/workitem-operator/workitem-operator/test/wrappers"
)

var noon = time.Date(2026, 12, 1, 12, 0, 0, 0, time.UTC)

func at(rv string) *v1alpha1.WorkItem {
	return wrappers.MakeWorkItem("renew", "ops").ResourceVersion(rv).Obj()
}

func TestFault01_VersionsKnowWhatACacheDoesNotShowYet(t *testing.T) {
	t.Parallel()
	cases := map[string]struct {
		known func(*kube.Versions)
		rv    string
		after time.Duration
		want  bool
	}{
		"nothing is known":                           {func(*kube.Versions) {}, "5", 0, false},
		"older than what was written":                {func(v *kube.Versions) { v.Wrote(at("9"), noon) }, "5", 0, true},
		"older, and shorter":                         {func(v *kube.Versions) { v.Wrote(at("10"), noon) }, "9", 0, true},
		"what was written":                           {func(v *kube.Versions) { v.Wrote(at("9"), noon) }, "9", 0, false},
		"newer than what was written":                {func(v *kube.Versions) { v.Wrote(at("9"), noon) }, "12", 0, false},
		"the version that conflicted":                {func(v *kube.Versions) { v.Outdated(at("5"), noon) }, "5", 0, true},
		"newer than the version that conflicted":     {func(v *kube.Versions) { v.Outdated(at("5"), noon) }, "6", 0, false},
		"written, then conflicted":                   {func(v *kube.Versions) { v.Wrote(at("5"), noon); v.Outdated(at("5"), noon) }, "5", 0, true},
		"conflicted, then older than what is known":  {func(v *kube.Versions) { v.Wrote(at("9"), noon); v.Outdated(at("9"), noon) }, "7", 0, true},
		"of another object":                          {func(v *kube.Versions) { v.Wrote(wrappers.MakeWorkItem("b", "ops").ResourceVersion("9").Obj(), noon) }, "5", 0, false},
		"forgotten":                                  {func(v *kube.Versions) { v.Wrote(at("9"), noon); v.Forget(at("9").UID) }, "5", 0, false},
		"versions that cannot be compared":           {func(v *kube.Versions) { v.Wrote(at("abc"), noon) }, "5", 0, false},
		"no version at all":                          {func(v *kube.Versions) { v.Wrote(at("9"), noon) }, "", 0, false},
		"seen, and so no longer remembered":          {func(v *kube.Versions) { v.Wrote(at("9"), noon); v.Behind(at("9"), noon) }, "5", 0, false},
		"a write is waited for":                      {func(v *kube.Versions) { v.Wrote(at("9"), noon) }, "5", kube.WrittenFor - 1, true},
		"a write is not waited for without end":      {func(v *kube.Versions) { v.Wrote(at("9"), noon) }, "5", kube.WrittenFor, false},
		"a conflict is waited for":                   {func(v *kube.Versions) { v.Outdated(at("5"), noon) }, "5", kube.ConflictFor - 1, true},
		"a conflict is not waited for without end":   {func(v *kube.Versions) { v.Outdated(at("5"), noon) }, "5", kube.ConflictFor, false},
		"an older write that is noted after a newer": {func(v *kube.Versions) { v.Wrote(at("9"), noon); v.Wrote(at("7"), noon) }, "8", 0, true},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			var v kube.Versions
			tc.known(&v)
			if got := v.Behind(at(tc.rv), noon.Add(tc.after)); got != tc.want {
				t.Errorf("behind: %t, want %t", got, tc.want)
			}
		})
	}
}

func TestVersionsAreSafeForConcurrentUse(t *testing.T) {
	t.Parallel()
	var v kube.Versions
	var wg sync.WaitGroup
	for i := range 8 {
		wg.Go(func() {
			for n := range 100 {
				obj := at(fmt.Sprint(i*100 + n + 1))
				v.Wrote(obj, noon)
				v.Outdated(obj, noon)
				v.Behind(obj, noon)
				v.Forget(obj.UID)
			}
		})
	}
	wg.Wait()
}

func TestRefused(t *testing.T) {
	t.Parallel()
	res := schema.GroupResource{Group: v1alpha1.GroupName, Resource: "notificationoutboxes"}
	cases := map[string]struct {
		err  error
		want bool
	}{
		"no error":                {nil, false},
		"not the API server's":    {errors.New("connection refused"), false},
		"a quota or a policy":     {apierrors.NewForbidden(res, "a", errors.New("exceeded quota")), true},
		"wrapped":                 {fmt.Errorf("creating: %w", apierrors.NewForbidden(res, "a", nil)), true},
		"invalid":                 {apierrors.NewInvalid(schema.GroupKind{}, "a", nil), true},
		"bad request":             {apierrors.NewBadRequest("no"), true},
		"too large":               {apierrors.NewRequestEntityTooLargeError("no"), true},
		"no such namespace":       {apierrors.NewNotFound(res, "a"), true},
		"method not supported":    {apierrors.NewMethodNotSupported(res, "create"), true},
		"fault 7: a conflict":     {apierrors.NewConflict(res, "a", nil), false},
		"it exists":               {apierrors.NewAlreadyExists(res, "a"), false},
		"too many requests":       {apierrors.NewTooManyRequests("slow down", 1), false},
		"a token that is renewed": {apierrors.NewUnauthorized("expired"), false},
		"a timeout":               {apierrors.NewTimeoutError("late", 1), false},
		"a server timeout":        {apierrors.NewServerTimeout(res, "create", 1), false},
		"its own trouble":         {apierrors.NewInternalError(errors.New("etcd")), false},
		"a webhook that is away":  {&apierrors.StatusError{ErrStatus: metav1.Status{Code: http.StatusServiceUnavailable}}, false},
		"no code":                 {&apierrors.StatusError{}, false},
		"a terminating namespace": {&apierrors.StatusError{ErrStatus: metav1.Status{Code: 403, Details: &metav1.StatusDetails{Causes: []metav1.StatusCause{{Type: "NamespaceTerminating"}}}}}, true},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			if got := kube.Refused(tc.err); got != tc.want {
				t.Errorf("refused: %t, want %t", got, tc.want)
			}
		})
	}
}
