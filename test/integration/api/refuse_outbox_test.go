// SPDX-FileCopyrightText: The WorkItem Operator Authors
// SPDX-License-Identifier: Apache-2.0

package api

import (
	"strings"
)

const (
	keyForm   = "idempotencyKey must be work-item:<workItemRef.uid>:status:<transition>:<occurrence>:<providerName>"
	levelForm = "escalationLevel must be set for the transition Escalated, and only for it"

	// keyStart is the beginning of the good manifest's key.
	keyStart = "work-item:5d0c3a52-8f0e-4f3b-9a53-0d6f3a1c9e10:status:"
)

var badOutboxes = map[string]refusal{
	"a spec must be there":                  {`spec: null`, "spec", "Required value"},
	"an unknown field":                      {`spec: {url: "https://hooks.example.com"}`, "spec.url", "unknown field"},
	"a work item must be named":             {`spec: {workItemRef: null}`, "spec.workItemRef", "Required value"},
	"a work item has a name":                {`spec: {workItemRef: {name: null}}`, "spec.workItemRef.name", "Required value"},
	"a work item has a uid":                 {`spec: {workItemRef: {uid: null}}`, "spec.workItemRef.uid", "Required value"},
	"a uid has no new line":                 {`spec: {workItemRef: {uid: "a\nb"}, idempotencyKey: "work-item:a\nb:status:Overdue:1:ops-webhook"}`, "spec.workItemRef.uid", "uid must be the metadata.uid of a WorkItem"},
	"a uid has no colon":                    {`spec: {workItemRef: {uid: "a:b"}, idempotencyKey: "work-item:a:b:status:Overdue:1:ops-webhook"}`, "spec.workItemRef.uid", "uid must be the metadata.uid of a WorkItem"},
	"a transition is required":              {`spec: {transition: null}`, "spec.transition", "Required value"},
	"a transition is one that exists":       {`spec: {transition: Completed}`, "spec.transition", `supported values: "Overdue", "Escalated"`},
	"an occurrence is required":             {`spec: {occurrence: null}`, "spec.occurrence", "Required value"},
	"an occurrence is not 0":                {`spec: {occurrence: 0, idempotencyKey: "` + keyStart + `Overdue:0:ops-webhook"}`, "spec.occurrence", "greater than or equal to 1"},
	"an occurrence fits in 32 bits":         {`spec: {occurrence: 2147483648, idempotencyKey: "` + keyStart + `Overdue:2147483648:ops-webhook"}`, "spec.occurrence", "less than or equal to 2147483647"},
	"an occurrence is a number":             {`spec: {occurrence: "1"}`, "spec.occurrence", "must be of type integer"},
	"a provider is required":                {`spec: {providerName: null}`, "spec.providerName", "Required value"},
	"a provider is a DNS label":             {`spec: {providerName: ops.webhook, idempotencyKey: "` + keyStart + `Overdue:1:ops.webhook"}`, "spec.providerName", dnsLabel},
	"a provider has at most 63 letters":     {`spec: {providerName: ` + strings.Repeat("x", 64) + `}`, "spec.providerName", "may not be more than 63"},
	"a key is required":                     {`spec: {idempotencyKey: null}`, "spec.idempotencyKey", "Required value"},
	"a key is not empty":                    {`spec: {idempotencyKey: ""}`, "idempotencyKey", keyForm},
	"a key has at most 255 letters":         {`spec: {idempotencyKey: ` + strings.Repeat("x", 256) + `}`, "spec.idempotencyKey", "may not be more than 255"},
	"a key of another work item":            badKey("work-item:other:status:Overdue:1:ops-webhook"),
	"a key of another transition":           badKey(keyStart + "Escalated-1:1:ops-webhook"),
	"a key of another occurrence":           badKey(keyStart + "Overdue:2:ops-webhook"),
	"a key with a padded occurrence":        badKey(keyStart + "Overdue:01:ops-webhook"),
	"a key of another provider":             badKey(keyStart + "Overdue:1:pager"),
	"a key with something after it":         badKey(keyStart + "Overdue:1:ops-webhook:x"),
	"a key with a space after it":           badKey(keyStart + "Overdue:1:ops-webhook "),
	"a key of another kind":                 badKey("work-order" + strings.TrimPrefix(keyStart, "work-item") + "Overdue:1:ops-webhook"),
	"a key in quotes":                       badKey(`\"` + keyStart + `Overdue:1:ops-webhook\"`),
	"a level with Overdue":                  {`spec: {escalationLevel: 1}`, "escalationLevel", levelForm},
	"a level in the key with Overdue":       {`spec: {escalationLevel: 1, idempotencyKey: "` + keyStart + `Overdue-1:1:ops-webhook"}`, "escalationLevel", levelForm},
	"no level with Escalated":               {`spec: {transition: Escalated, idempotencyKey: "` + keyStart + `Escalated:1:ops-webhook"}`, "escalationLevel", levelForm},
	"a level in the key alone":              {`spec: {transition: Escalated, idempotencyKey: "` + keyStart + `Escalated-1:1:ops-webhook"}`, "escalationLevel", levelForm},
	"another level than in the key":         {`spec: {transition: Escalated, escalationLevel: 2, idempotencyKey: "` + keyStart + `Escalated-1:1:ops-webhook"}`, "idempotencyKey", keyForm},
	"level 0":                               {`spec: {transition: Escalated, escalationLevel: 0, idempotencyKey: "` + keyStart + `Escalated-0:1:ops-webhook"}`, "spec.escalationLevel", "greater than or equal to 1"},
	"level 9":                               {`spec: {transition: Escalated, escalationLevel: 9, idempotencyKey: "` + keyStart + `Escalated-9:1:ops-webhook"}`, "spec.escalationLevel", "less than or equal to 8"},
	"a payload is required":                 {`spec: {payload: null}`, "spec.payload", "Required value"},
	"a payload has a format":                {`spec: {payload: {format: null}}`, "spec.payload.format", "Required value"},
	"a payload's format is a provider type": {`spec: {payload: {format: Email}}`, "spec.payload.format", `supported values: "Webhook"`},
	"a payload has a body":                  {`spec: {payload: {body: null}}`, "spec.payload.body", "Required value"},
	"a body is not empty":                   {`spec: {payload: {body: ""}}`, "spec.payload.body", "at least 1 char"},
	"a body is text":                        {`spec: {payload: {body: 7}}`, "spec.payload.body", "must be of type string"},
	"a body of 20481 letters":               {`spec: {payload: {body: ` + strings.Repeat("x", 20481) + `}}`, "spec.payload.body", "may not be more than 20480"},
	"a body of 20481 bytes, fewer letters":  {`spec: {payload: {body: x` + strings.Repeat("🔥", 5120) + `}}`, "spec.payload.body", "body must be at most 20480 bytes in UTF-8"},
	"a digest is required":                  {`spec: {payloadDigest: null}`, "spec.payloadDigest", "Required value"},
	"a digest is of SHA-256":                badDigest("sha512:" + strings.Repeat("0", 64)),
	"a digest says its algorithm":           badDigest(strings.Repeat("0", 71)),
	"a digest has lower-case digits":        badDigest("sha256:" + strings.Repeat("A", 64)),
	"a digest is hexadecimal":               badDigest("sha256:" + strings.Repeat("g", 64)),
	"a digest is not shorter":               badDigest("sha256:" + strings.Repeat("0", 63)),
	"a digest is not longer":                {`spec: {payloadDigest: "sha256:` + strings.Repeat("0", 65) + `"}`, "spec.payloadDigest", "may not be more than 71"},
}

func badKey(key string) refusal {
	return refusal{`spec: {idempotencyKey: "` + key + `"}`, "idempotencyKey", keyForm}
}

func badDigest(digest string) refusal {
	return refusal{`spec: {payloadDigest: "` + digest + `"}`, "spec.payloadDigest", "sha256: and 64 lower-case hexadecimal digits"}
}
