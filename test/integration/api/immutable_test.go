// SPDX-FileCopyrightText: The WorkItem Operator Authors
// SPDX-License-Identifier: Apache-2.0

package api

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"k8s.io/apimachinery/pkg/types"
)

// immutable is what the rule says, and what a person can do instead.
const immutable = "spec is immutable: every attempt sends the same key and the same bytes; to send it again, annotate the outbox with workitem.dev/decision=Replay"

// otherSpecs are changes that only immutability forbids: each leaves the spec
// consistent in itself.
var otherSpecs = map[string]string{
	"workItemRef.name": `{workItemRef: {name: other}}`,
	"workItemRef.uid":  `{workItemRef: {uid: other}, idempotencyKey: "work-item:other:status:Overdue:1:ops-webhook"}`,
	"transition":       `{transition: Escalated, escalationLevel: 1, idempotencyKey: "` + keyStart + `Escalated-1:1:ops-webhook"}`,
	"occurrence":       `{occurrence: 2, idempotencyKey: "` + keyStart + `Overdue:2:ops-webhook"}`,
	"providerName":     `{providerName: pager, idempotencyKey: "` + keyStart + `Overdue:1:pager"}`,
	"payload.body":     `{payload: {body: '{"id":"2"}'}}`,
	"payloadDigest":    `{payloadDigest: "sha256:` + strings.Repeat("f", 64) + `"}`,
}

// brokenSpecs are changes that other rules forbid as well.
var brokenSpecs = map[string]string{
	"idempotencyKey":         `{idempotencyKey: "work-item:other:status:Overdue:1:ops-webhook"}`,
	"escalationLevel":        `{escalationLevel: 1}`,
	"payload.format":         `{payload: {format: Other}}`,
	"without workItemRef":    `{workItemRef: null}`,
	"without transition":     `{transition: null}`,
	"without occurrence":     `{occurrence: null}`,
	"without providerName":   `{providerName: null}`,
	"without idempotencyKey": `{idempotencyKey: null}`,
	"without payload":        `{payload: null}`,
	"without payloadDigest":  `{payloadDigest: null}`,
}

// TestI4_OutboxSpecIsImmutable proves the guarantee I4, frozen request, at
// admission: before and after the notification is sent, and in every way of
// writing.
func TestI4_OutboxSpecIsImmutable(t *testing.T) {
	answer, name := outbox.created(t, encode(t, outbox.with(t, "")))
	first := decode(t, answer)

	for _, phase := range []string{"", "Pending", "Sent", "DeadLettered"} {
		t.Run("phase "+phase, func(t *testing.T) {
			if phase != "" {
				setPhase(t, name, phase)
			}
			before := outbox.get(t, name)
			for field, change := range otherSpecs {
				t.Run(field, func(t *testing.T) {
					checkFrozen(t, before, change, immutable)
				})
			}
			for field, change := range brokenSpecs {
				t.Run(field, func(t *testing.T) {
					checkFrozen(t, before, change, "spec")
				})
			}
			t.Run("without spec", func(t *testing.T) {
				checkSpecStays(t, before)
			})
			after := outbox.get(t, name)
			if diff := cmp.Diff(before, after); diff != "" {
				t.Errorf("the object changed (-before +after):\n%s", diff)
			}
			if diff := cmp.Diff(first["spec"], after["spec"]); diff != "" {
				t.Errorf("the spec changed (-created +now):\n%s", diff)
			}
		})
	}
}

func setPhase(t *testing.T, name, phase string) {
	t.Helper()
	body := encode(t, object{"status": object{"phase": phase}})
	if _, err := outbox.patch(t, types.MergePatchType, body, nil, name, "status"); err != nil {
		t.Fatalf("set phase %s through the status subresource: %v", phase, err)
	}
}

// checkFrozen tries one change in every way of writing.
func checkFrozen(t *testing.T, before object, change, says string) {
	t.Helper()
	name := before["metadata"].(object)["name"].(string)
	patch := object{"spec": parse(t, change)}
	changed := merged(before, patch)

	ways := map[string]func() ([]byte, error){
		"update": func() ([]byte, error) {
			return outbox.update(t, encode(t, changed), nil, name)
		},
		"merge patch": func() ([]byte, error) {
			return outbox.patch(t, types.MergePatchType, encode(t, patch), nil, name)
		},
		"JSON patch": func() ([]byte, error) {
			ops := []object{{"op": "replace", "path": "/spec", "value": changed["spec"]}}
			return outbox.patch(t, types.JSONPatchType, encode(t, ops), nil, name)
		},
	}
	if !strings.Contains(change, ": null") {
		// To leave a field out of an apply means not to care about it.
		ways["server-side apply"] = func() ([]byte, error) {
			apply := object{
				"apiVersion": before["apiVersion"], "kind": before["kind"],
				"metadata": object{"name": name}, "spec": changed["spec"],
			}
			return outbox.patch(t, types.ApplyPatchType, encode(t, apply), map[string]string{"fieldManager": "someone", "force": "true"}, name)
		}
	}
	for way, try := range ways {
		_, err := try()
		if err == nil {
			t.Errorf("%s: accepted, want it refused", way)
		} else if !strings.Contains(err.Error(), says) {
			t.Errorf("%s: got message\n%v\nwant it to contain %q", way, err, says)
		}
	}
}

// checkSpecStays tries to remove the whole spec.
func checkSpecStays(t *testing.T, before object) {
	t.Helper()
	name := before["metadata"].(object)["name"].(string)
	for way, try := range map[string]func() ([]byte, error){
		"update": func() ([]byte, error) {
			return outbox.update(t, encode(t, merged(before, object{"spec": nil})), nil, name)
		},
		"merge patch": func() ([]byte, error) {
			return outbox.patch(t, types.MergePatchType, []byte(`{"spec":null}`), nil, name)
		},
		"JSON patch": func() ([]byte, error) {
			return outbox.patch(t, types.JSONPatchType, []byte(`[{"op":"remove","path":"/spec"}]`), nil, name)
		},
		"an empty spec": func() ([]byte, error) {
			return outbox.patch(t, types.JSONPatchType, []byte(`[{"op":"replace","path":"/spec","value":{}}]`), nil, name)
		},
	} {
		if _, err := try(); err == nil {
			t.Errorf("%s: accepted, want it refused", way)
		} else if !strings.Contains(err.Error(), "spec") {
			t.Errorf("%s: got message %v, want it to name spec", way, err)
		}
	}
}

func TestI4_EveryFieldOfTheOutboxSpecIsTried(t *testing.T) {
	tried := map[string]bool{}
	for _, table := range []map[string]string{otherSpecs, brokenSpecs} {
		for field := range table {
			tried[field] = true
		}
	}
	spec := readCRDs(t)["notificationoutboxes"].Spec.Versions[0].Schema.OpenAPIV3Schema.Properties["spec"]
	for name, property := range spec.Properties {
		if len(property.Properties) == 0 && !tried[name] {
			t.Errorf("no test tries to change spec.%s", name)
		}
		for below := range property.Properties {
			if !tried[name+"."+below] {
				t.Errorf("no test tries to change spec.%s.%s", name, below)
			}
		}
	}
}

func TestOutboxMetadataAndStatusMayChange(t *testing.T) {
	_, name := outbox.created(t, encode(t, outbox.with(t, "")))

	for what, patch := range map[string]string{
		"a label":       `{"metadata":{"labels":{"team":"sre"}}}`,
		"an annotation": `{"metadata":{"annotations":{"workitem.dev/decision":"Replay"}}}`,
	} {
		if _, err := outbox.patch(t, types.MergePatchType, []byte(patch), nil, name); err != nil {
			t.Errorf("%s was refused: %v", what, err)
		}
	}
	setPhase(t, name, "Held")
	before := outbox.get(t, name)
	if got, want := field(before, "status", "phase"), "Held"; got != want {
		t.Errorf("got phase %v after a write to the status subresource, want %v", got, want)
	}
	if got, want := field(before, "metadata", "generation"), 1.0; got != want {
		t.Errorf("got generation %v, want %v: neither metadata nor status is a change of spec", got, want)
	}
}

func TestStatusAndSpecAreWrittenApart(t *testing.T) {
	_, name := outbox.created(t, encode(t, outbox.with(t, "")))
	setPhase(t, name, "Pending")
	before := outbox.get(t, name)

	status := object{"status": object{"phase": "Sent"}, "metadata": object{"labels": object{"a": "b"}}}
	if _, err := outbox.patch(t, types.MergePatchType, encode(t, status), nil, name); err != nil {
		t.Errorf("merge patch of the main resource: %v", err)
	}
	current := outbox.get(t, name)
	if _, err := outbox.update(t, encode(t, merged(current, status)), nil, name); err != nil {
		t.Errorf("update of the main resource: %v", err)
	}
	spec := object{"spec": object{"occurrence": 2}}
	if _, err := outbox.patch(t, types.MergePatchType, encode(t, spec), nil, name, "status"); err != nil {
		t.Errorf("merge patch of the status subresource: %v", err)
	}

	after := outbox.get(t, name)
	for _, part := range []string{"spec", "status"} {
		if diff := cmp.Diff(before[part], after[part]); diff != "" {
			t.Errorf("%s changed by a write to the other half (-before +after):\n%s", part, diff)
		}
	}
}
