// SPDX-FileCopyrightText: The WorkItem Operator Authors
// SPDX-License-Identifier: Apache-2.0

package api

import (
	"context"
	"encoding/json"
	"fmt"
	"maps"
	"path"
	"testing"

	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/yaml"
)

// kind is one kind of the API with a manifest that is right, from which the
// tests depart.
type kind struct {
	plural string
	good   string
}

var (
	workItem = kind{
		plural: "workitems",
		good: `
apiVersion: workitem.dev/v1alpha1
kind: WorkItem
metadata: {generateName: item-}
spec:
  title: Renew the ingress certificate
  dueTime: "2026-12-01T09:00:00Z"
`,
	}
	provider = kind{
		plural: "notificationproviders",
		good: `
apiVersion: workitem.dev/v1alpha1
kind: NotificationProvider
metadata: {generateName: provider-}
spec:
  type: Webhook
  webhook: {url: "https://hooks.example.com/ops"}
`,
	}
	outbox = kind{
		plural: "notificationoutboxes",
		good: `
apiVersion: workitem.dev/v1alpha1
kind: NotificationOutbox
metadata: {generateName: outbox-}
spec:
  workItemRef: {name: renew, uid: 5d0c3a52-8f0e-4f3b-9a53-0d6f3a1c9e10}
  transition: Overdue
  occurrence: 1
  providerName: ops-webhook
  idempotencyKey: work-item:5d0c3a52-8f0e-4f3b-9a53-0d6f3a1c9e10:status:Overdue:1:ops-webhook
  payload: {format: Webhook, body: '{"id":"1"}'}
  payloadDigest: sha256:0123456789abcdef0123456789abcdef0123456789abcdef0123456789abcdef
`,
	}
)

// object is a manifest or an answer, as plain JSON.
type object = map[string]any

// with returns the good manifest of k changed by a patch in YAML, with the
// meaning of a JSON merge patch: null removes a field.
func (k kind) with(t *testing.T, patch string) object {
	t.Helper()
	return merged(parse(t, k.good), parse(t, patch))
}

func parse(t *testing.T, text string) object {
	t.Helper()
	var out object
	if err := yaml.Unmarshal([]byte(text), &out); err != nil {
		t.Fatalf("parse %q: %v", text, err)
	}
	return out
}

// decode reads JSON. YAML would refuse some of the characters that JSON allows.
func decode(t *testing.T, text []byte) object {
	t.Helper()
	var out object
	if err := json.Unmarshal(text, &out); err != nil {
		t.Fatalf("decode %q: %v", text, err)
	}
	return out
}

func merged(base, patch object) object {
	out := maps.Clone(base)
	if out == nil {
		out = object{}
	}
	for key, value := range patch {
		switch value := value.(type) {
		case nil:
			delete(out, key)
		case object:
			below, _ := out[key].(object)
			out[key] = merged(below, value)
		default:
			out[key] = value
		}
	}
	return out
}

func encode(t *testing.T, value any) []byte {
	t.Helper()
	out, err := json.Marshal(value)
	if err != nil {
		t.Fatalf("encode %T: %v", value, err)
	}
	return out
}

func (k kind) url(parts ...string) string {
	return path.Join(append([]string{"/apis/workitem.dev/v1alpha1/namespaces", namespace, k.plural}, parts...)...)
}

// dryRun asks for everything but the write itself.
var dryRun = map[string]string{"dryRun": "All"}

// create posts body as it is, unknown fields being errors.
func (k kind) create(t *testing.T, body []byte, params map[string]string) ([]byte, error) {
	t.Helper()
	return send(t, "POST", k.url(), "application/json", body, params)
}

// created posts body for good and returns the object and its name. It is gone
// when the test ends.
func (k kind) created(t *testing.T, body []byte) (answer []byte, name string) {
	t.Helper()
	answer, err := k.create(t, body, nil)
	if err != nil {
		t.Fatalf("create %s: %v", body, err)
	}
	name, _ = field(decode(t, answer), "metadata", "name").(string)
	if name == "" {
		t.Fatalf("created without a name: %s", answer)
	}
	t.Cleanup(func() {
		// The test's context is over by now.
		ctx := context.WithoutCancel(t.Context())
		if err := apiServer.Delete().AbsPath(k.url(name)).Do(ctx).Error(); err != nil {
			t.Errorf("delete %s: %v", name, err)
		}
	})
	return answer, name
}

func (k kind) update(t *testing.T, body []byte, params map[string]string, at ...string) ([]byte, error) {
	t.Helper()
	return send(t, "PUT", k.url(at...), "application/json", body, params)
}

func (k kind) patch(t *testing.T, as types.PatchType, body []byte, params map[string]string, at ...string) ([]byte, error) {
	t.Helper()
	return send(t, "PATCH", k.url(at...), string(as), body, params)
}

func (k kind) get(t *testing.T, name string) object {
	t.Helper()
	answer, err := send(t, "GET", k.url(name), "application/json", nil, nil)
	if err != nil {
		t.Fatalf("get %s: %v", name, err)
	}
	return decode(t, answer)
}

func send(t *testing.T, verb, url, contentType string, body []byte, params map[string]string) ([]byte, error) {
	t.Helper()
	request := apiServer.Verb(verb).AbsPath(url).SetHeader("Content-Type", contentType).SetHeader("Accept", "application/json")
	if verb != "GET" {
		request = request.Param("fieldValidation", "Strict").Body(body)
	}
	for name, value := range params {
		request = request.Param(name, value)
	}
	result := request.Do(t.Context())
	answer, _ := result.Raw()
	if err := result.Error(); err != nil {
		return nil, err
	}
	return answer, nil
}

// field walks down from o; nil when there is nothing.
func field(o any, steps ...any) any {
	for _, step := range steps {
		switch step := step.(type) {
		case string:
			below, _ := o.(object)
			o = below[step]
		case int:
			below, _ := o.([]any)
			if step >= len(below) {
				return nil
			}
			o = below[step]
		default:
			panic(fmt.Sprintf("a step is a name or an index, not %T", step))
		}
	}
	return o
}
