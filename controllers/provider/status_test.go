// SPDX-FileCopyrightText: The WorkItem Operator Authors
// SPDX-License-Identifier: Apache-2.0

package provider_test

import (
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"k8s.io/apimachinery/pkg/api/equality"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/workitem-operator/workitem-operator/api/v1alpha1"
	"github.com/workitem-operator/workitem-operator/controllers/provider"
	"github.com/workitem-operator/workitem-operator/internal/endpoint"
	"github.com/workitem-operator/workitem-operator/internal/outcome"
	"github.com/workitem-operator/workitem-operator/test/wrappers"
)

var noon = time.Date(2026, 12, 1, 12, 0, 0, 0, time.UTC)

func pauseOf(reason string, until time.Duration) *v1alpha1.ProviderPause {
	p := &v1alpha1.ProviderPause{Reason: reason, Generation: 3, Secrets: "s@1", Message: "the provider answered"}
	if until != 0 {
		p.Until = &metav1.Time{Time: noon.Add(until)}
	}
	return p
}

func TestNext(t *testing.T) {
	t.Parallel()
	hook := func() *wrappers.Provider { return wrappers.MakeProvider("hook", "ops").Generation(3) }
	unauthorized, gone, limited := pauseOf(outcome.ReasonUnauthorized, time.Minute), pauseOf(outcome.ReasonEndpointGone, 0), pauseOf(outcome.ReasonRateLimited, time.Minute)
	type want struct {
		Ready, Reconciling, Stalled string
		Paused                      bool
		Guarantee                   v1alpha1.Guarantee
	}
	ready := func(w want) want {
		w.Ready = "True Reconciled"
		if w.Guarantee == "" {
			w.Guarantee = v1alpha1.GuaranteeAtLeastOnce
		}
		return w
	}
	stalled := func(reason string, paused bool) want {
		return want{Ready: "False " + reason, Stalled: "True " + reason, Paused: paused, Guarantee: v1alpha1.GuaranteeAtLeastOnce}
	}
	cases := map[string]struct {
		facts provider.Facts
		want  want
	}{
		"a plain one":       {provider.Facts{Provider: hook().Obj()}, ready(want{})},
		"one that has keys": {provider.Facts{Provider: hook().Keyed(time.Hour).Obj()}, ready(want{Guarantee: v1alpha1.GuaranteeEffectivelyOnce})},
		"suspended is not stalled": {
			provider.Facts{Provider: hook().Suspend().Obj(), Problem: &endpoint.Problem{Reason: v1alpha1.ReasonSecretInvalid, Message: "x"}},
			want{Ready: "False Suspended", Guarantee: v1alpha1.GuaranteeAtLeastOnce},
		},
		"suspended keeps its pause": {
			provider.Facts{Provider: hook().Suspend().Obj(), Pause: unauthorized, Secrets: "s@1"},
			want{Ready: "False Suspended", Paused: true, Guarantee: v1alpha1.GuaranteeAtLeastOnce},
		},
		"fault 23: a Secret that is waited for": {
			provider.Facts{Provider: hook().Obj(), Problem: &endpoint.Problem{Reason: v1alpha1.ReasonSecretNotFound, Message: "x"}},
			want{Ready: "False SecretNotFound", Reconciling: "True SecretNotFound", Guarantee: v1alpha1.GuaranteeAtLeastOnce},
		},
		"a Secret that cannot be used": {
			provider.Facts{Provider: hook().Obj(), Problem: &endpoint.Problem{Reason: v1alpha1.ReasonSecretInvalid, Message: "x"}}, stalled("SecretInvalid", false),
		},
		"a Secret that may not be read": {
			provider.Facts{Provider: hook().Obj(), Problem: &endpoint.Problem{Reason: v1alpha1.ReasonSecretForbidden, Message: "x"}}, stalled("SecretForbidden", false),
		},
		"401":                             {provider.Facts{Provider: hook().Obj(), Pause: unauthorized, Secrets: "s@1"}, stalled("Unauthorized", true)},
		"401, and its time is over":       {provider.Facts{Provider: hook().Obj(), Pause: pauseOf(outcome.ReasonUnauthorized, -time.Hour), Secrets: "s@1"}, stalled("Unauthorized", true)},
		"401, and the Secret is another":  {provider.Facts{Provider: hook().Obj(), Pause: unauthorized, Secrets: "s@2"}, ready(want{})},
		"401, and the spec is another":    {provider.Facts{Provider: hook().Generation(4).Obj(), Pause: unauthorized, Secrets: "s@1"}, ready(want{})},
		"404":                             {provider.Facts{Provider: hook().Obj(), Pause: pauseOf(outcome.ReasonEndpointNotFound, time.Minute), Secrets: "s@1"}, stalled("EndpointNotFound", true)},
		"410":                             {provider.Facts{Provider: hook().Obj(), Pause: gone, Secrets: "s@1"}, stalled("EndpointGone", true)},
		"410 is not cured by a Secret":    {provider.Facts{Provider: hook().Obj(), Pause: gone, Secrets: "s@2"}, stalled("EndpointGone", true)},
		"410, and the spec is another":    {provider.Facts{Provider: hook().Generation(4).Obj(), Pause: gone, Secrets: "s@1"}, ready(want{})},
		"fault 16: 429 is no fault of it": {provider.Facts{Provider: hook().Obj(), Pause: limited, Secrets: "s@1"}, ready(want{Paused: true})},
		"429, whatever the Secret":        {provider.Facts{Provider: hook().Obj(), Pause: limited, Secrets: "s@2"}, ready(want{Paused: true})},
		"429, and its time is over":       {provider.Facts{Provider: hook().Obj(), Pause: pauseOf(outcome.ReasonRateLimited, -1), Secrets: "s@1"}, ready(want{})},
		"a pause that nobody knows of":    {provider.Facts{Provider: hook().Pause(unauthorized).Obj(), Secrets: "s@1"}, ready(want{})},
		"a missing Secret before a pause": {
			provider.Facts{Provider: hook().Obj(), Pause: gone, Problem: &endpoint.Problem{Reason: v1alpha1.ReasonSecretNotFound, Message: "x"}},
			want{Ready: "False SecretNotFound", Reconciling: "True SecretNotFound", Paused: true, Guarantee: v1alpha1.GuaranteeAtLeastOnce},
		},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			tc.facts.Now = noon.Add(300 * time.Millisecond)
			// What an earlier look left behind must not survive.
			for _, kind := range []string{"Reconciling", "Stalled"} {
				tc.facts.Provider.Status.Conditions = append(tc.facts.Provider.Status.Conditions, metav1.Condition{Type: kind, Status: metav1.ConditionTrue, Reason: "Old"})
			}
			before := tc.facts.Provider.DeepCopy()
			st := provider.Next(tc.facts)
			got := want{Paused: st.Pause != nil, Guarantee: st.Guarantee}
			for _, c := range st.Conditions {
				words := string(c.Status) + " " + c.Reason
				switch c.Type {
				case "Ready":
					got.Ready = words
				case "Reconciling":
					got.Reconciling = words
				case "Stalled":
					got.Stalled = words
				}
				if c.ObservedGeneration != tc.facts.Provider.Generation || c.Message == "" {
					t.Errorf("condition %+v", c)
				}
			}
			if diff := cmp.Diff(tc.want, got); diff != "" {
				t.Errorf("status (-want +got):\n%s", diff)
			}
			if diff := cmp.Diff(before, tc.facts.Provider); diff != "" {
				t.Errorf("Next changed the provider:\n%s", diff)
			}
			// I10, fault 33: the same facts once more are nothing to write.
			again := tc.facts
			again.Provider = tc.facts.Provider.DeepCopy()
			again.Provider.Status = st
			again.Pause, again.Now = st.Pause, noon.Add(20*time.Second)
			if second := provider.Next(again); !equality.Semantic.DeepEqual(second, st) {
				t.Errorf("a second look differs:\n%s", cmp.Diff(st, second))
			}
		})
	}
}
