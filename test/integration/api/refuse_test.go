// SPDX-FileCopyrightText: The WorkItem Operator Authors
// SPDX-License-Identifier: Apache-2.0

package api

import (
	"fmt"
	"strings"
	"testing"

	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
)

// refusal is a manifest that must be refused, with words that help.
type refusal struct {
	// patch departs from the good manifest of the kind.
	patch string
	// field must be in the message.
	field string
	// says must be in the message too: what to write instead.
	says string
}

var badManifests = []struct {
	kind     kind
	refusals map[string]refusal
}{
	{workItem, badWorkItems},
	{workItem, badDueTimes},
	{workItem, badTargets},
	{provider, badProviders},
	{provider, badDurations},
	{provider, badWebhooks},
	{provider, badHeaders},
	{outbox, badOutboxes},
}

func TestBadManifestsAreRefused(t *testing.T) {
	total := 0
	for _, group := range badManifests {
		total += len(group.refusals)
		t.Run(group.kind.plural, func(t *testing.T) {
			if _, err := group.kind.create(t, encode(t, group.kind.with(t, "")), dryRun); err != nil {
				t.Fatalf("the manifest from which the bad ones depart was refused: %v", err)
			}
			for name, tt := range group.refusals {
				t.Run(name, func(t *testing.T) {
					checkRefused(t, group.kind, tt)
				})
			}
		})
	}
	t.Logf("%d bad manifests", total)
}

// TestEveryRuleOfASpecIsBroken wants a bad manifest for each rule, so that a rule
// that goes missing is missed.
func TestEveryRuleOfASpecIsBroken(t *testing.T) {
	for plural, crd := range readCRDs(t) {
		walk(plural, crd.Spec.Versions[0].Schema.OpenAPIV3Schema, func(path string, schema *apiextensionsv1.JSONSchemaProps) {
			for _, rule := range schema.XValidations {
				// A create cannot break a rule about a change.
				ofChange := strings.Contains(rule.Rule, "oldSelf")
				if !strings.HasPrefix(path, plural+".status") && !ofChange && !isBroken(plural, rule.Message) {
					t.Errorf("%s: no bad manifest breaks the rule that says %q", path, rule.Message)
				}
			}
		})
	}
}

func isBroken(plural, message string) bool {
	for _, group := range badManifests {
		for _, refusal := range group.refusals {
			if group.kind.plural == plural && strings.Contains(message, refusal.says) {
				return true
			}
		}
	}
	return false
}

func checkRefused(t *testing.T, k kind, want refusal) {
	t.Helper()
	answer, err := k.create(t, encode(t, k.with(t, want.patch)), dryRun)
	if err == nil {
		t.Fatalf("accepted, want it refused: %s", answer)
	}
	if !apierrors.IsInvalid(err) && !apierrors.IsBadRequest(err) {
		t.Errorf("got reason %q, want Invalid or BadRequest: %v", apierrors.ReasonForError(err), err)
	}
	for _, part := range []string{want.field, want.says} {
		if part == "" || !strings.Contains(err.Error(), part) {
			t.Errorf("got message\n%s\nwant it to contain %q", err, part)
		}
	}
}

// list renders n items of a YAML flow list; each is a format for its index.
func list(n int, item string) string {
	items := make([]string, n)
	for i := range items {
		items[i] = fmt.Sprintf(item, i)
	}
	return "[" + strings.Join(items, ", ") + "]"
}
