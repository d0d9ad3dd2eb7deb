// SPDX-FileCopyrightText: The WorkItem Operator Authors
// SPDX-License-Identifier: Apache-2.0

package api

import (
	"encoding/json"
	"fmt"
	"maps"
	"net/http"
	"strings"
	"testing"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/kubernetes/scheme"

	"github.com/workitem-operator/workitem-operator/api/v1alpha1"
)

// newObject makes the Go type of each kind.
var newObject = map[string]func() runtime.Object{
	workItem.plural: func() runtime.Object { return &v1alpha1.WorkItem{} },
	provider.plural: func() runtime.Object { return &v1alpha1.NotificationProvider{} },
	outbox.plural:   func() runtime.Object { return &v1alpha1.NotificationOutbox{} },
}

// TestEverythingAcceptedDecodes guards the whole cluster against one object: a
// watch decodes every object of a kind, so one that does not fit the Go type
// would stop the operator for everybody.
func TestEverythingAcceptedDecodes(t *testing.T) {
	for _, edge := range []struct {
		kind   kind
		format string
		values []string
	}{
		{workItem, `{"spec":{"dueTime":%s}}`, quoted(edgeTimes(60))},
		{workItem, `{"spec":{"title":%s}}`, edgeTexts},
		{workItem, `{"spec":{"escalations":[{"after":%s,"notify":[{"providerName":"a"}]}]}}`, quoted(edgeDurations())},
		{provider, `{"spec":{"timeout":%s}}`, quoted(edgeDurations())},
		{provider, `{"spec":{"leaseDuration":%s}}`, quoted(edgeDurations())},
		{provider, `{"spec":{"ttlAfterFinished":%s}}`, quoted(edgeDurations())},
		{provider, `{"spec":{"idempotency":{"window":%s}}}`, quoted(edgeDurations())},
		{provider, `{"spec":{"retry":{"deadline":"87600h","maxBackoff":"87600h","initialBackoff":%s}}}`, quoted(edgeDurations())},
		{provider, `{"spec":{"retry":{"deadline":"87600h","initialBackoff":"100ms","maxBackoff":%s}}}`, quoted(edgeDurations())},
		{provider, `{"spec":{"retry":{"initialBackoff":"100ms","maxBackoff":"100ms","deadline":%s}}}`, quoted(edgeDurations())},
		{provider, `{"spec":{"maxInFlight":%s}}`, edgeNumbers},
		{provider, `{"spec":{"suspend":%s}}`, []string{"true", "false", "null", `"true"`, "0", "1"}},
		{provider, `{"spec":{"webhook":{"url":%s}}}`, quoted(edgeURLs)},
		{provider, `{"spec":{"webhook":{"headers":[{"name":"X-Team","value":%s}]}}}`, edgeTexts},
		{outbox, `{"spec":{"payload":{"format":"Webhook","body":%s}}}`, edgeTexts},
	} {
		t.Run(fmt.Sprintf(edge.format, "_"), func(t *testing.T) {
			accepted := 0
			for _, value := range edge.values {
				if checkRoundTrip(t, edge.kind, fmt.Sprintf(edge.format, value)) {
					accepted++
				}
			}
			checkSome(t, accepted, len(edge.values))
		})
	}
}

// checkSome wants values on both sides of the edge, or the test tests little.
func checkSome(t *testing.T, accepted, all int) {
	t.Helper()
	t.Logf("%d of %d edge values were accepted", accepted, all)
	if accepted == 0 || accepted == all {
		t.Errorf("got %d of %d edge values accepted, want some of them", accepted, all)
	}
}

// checkRoundTrip creates the good manifest with a patch, and when the API server
// accepts it, reads the answer into the Go type, writes that back and compares
// what they mean. It says whether the API server accepted.
func checkRoundTrip(t *testing.T, k kind, patch string) bool {
	t.Helper()
	body := withRaw(t, k, patch)
	if _, err := k.create(t, body, dryRun); err != nil {
		if !apierrors.IsInvalid(err) && !apierrors.IsBadRequest(err) {
			t.Errorf("%s: got reason %q, want the manifest itself to be refused: %v", patch, apierrors.ReasonForError(err), err)
		}
		return false
	}
	answer, name := k.created(t, body)
	encoded := reencoded(t, k, patch, answer)
	if _, err := k.update(t, encoded, dryRun, name); err != nil {
		t.Errorf("%s: accepted, but not when the Go type writes it back as\n%s\n%v", patch, encoded, err)
	}
	return true
}

// reencoded is answer after a round trip through the Go type.
func reencoded(t *testing.T, k kind, patch string, answer []byte) []byte {
	t.Helper()
	typed := newObject[k.plural]()
	if _, _, err := scheme.Codecs.UniversalDeserializer().Decode(answer, nil, typed); err != nil {
		t.Fatalf("%s: accepted, but a watch could not decode it: %v", patch, err)
	}
	if err := json.Unmarshal(answer, newObject[k.plural]()); err != nil {
		t.Errorf("%s: accepted, but encoding/json could not decode it: %v", patch, err)
	}
	encoded := encode(t, typed)
	// The status is the operator's own: it writes whole seconds and reads no more.
	checkMeaning(t, patch+": spec", decode(t, answer)["spec"], decode(t, encoded)["spec"])
	if item, ok := typed.(*v1alpha1.NotificationProvider); ok && item.Spec.Webhook.URL != "" {
		if _, err := http.NewRequestWithContext(t.Context(), http.MethodPost, item.Spec.Webhook.URL, nil); err != nil {
			t.Errorf("%s: accepted, but no request can be made to it: %v", patch, err)
		}
	}
	return encoded
}

// withRaw patches the good manifest without reading the values of the patch as
// Go values: 1.0 stays 1.0.
func withRaw(t *testing.T, k kind, patch string) []byte {
	t.Helper()
	decoder := json.NewDecoder(strings.NewReader(patch))
	decoder.UseNumber()
	var raw object
	if err := decoder.Decode(&raw); err != nil {
		t.Fatalf("decode %s: %v", patch, err)
	}
	return encode(t, overlaid(parse(t, k.good), raw))
}

// overlaid is merged, but keeps null.
func overlaid(base, patch object) object {
	out := maps.Clone(base)
	for key, value := range patch {
		below, isObject := value.(object)
		if inBase, ok := out[key].(object); ok && isObject {
			out[key] = overlaid(inBase, below)
		} else {
			out[key] = value
		}
	}
	return out
}

// checkMeaning wants everything that before says to be said by after too, in
// these or in other words.
func checkMeaning(t *testing.T, path string, before, after any) {
	t.Helper()
	switch before := before.(type) {
	case object:
		after, _ := after.(object)
		for key, value := range before {
			checkMeaning(t, path+"."+key, value, after[key])
		}
	case []any:
		after, _ := after.([]any)
		if len(before) != len(after) {
			t.Errorf("%s: got %d items after a round trip, want %d", path, len(after), len(before))
			return
		}
		for i := range before {
			checkMeaning(t, fmt.Sprintf("%s[%d]", path, i), before[i], after[i])
		}
	default:
		if got, want := meaning(after), meaning(before); got != want {
			t.Errorf("%s: got %v after a round trip, want %v", path, got, want)
		}
	}
}

// meaning is the same for two spellings of one value. What is left out means the
// zero value.
func meaning(value any) any {
	switch value := value.(type) {
	case nil, bool, float64:
		if value == nil || value == false || value == 0.0 {
			return ""
		}
	case string:
		if d, err := time.ParseDuration(value); err == nil {
			return d
		}
		if at, err := time.Parse(time.RFC3339, value); err == nil {
			return at.UTC()
		}
	}
	return value
}

func TestEveryStatusAcceptedDecodes(t *testing.T) {
	const condition = `{"conditions":[{"type":"Ready","status":"True","reason":"A","message":"","lastTransitionTime":%s,"observedGeneration":%s}]}`
	times, numbers := quoted(edgeTimes(0)), edgeNumbers
	for _, edge := range []struct {
		kind   kind
		format string
		values []string
	}{
		{workItem, fmt.Sprintf(condition, "%s", "1"), times},
		{workItem, fmt.Sprintf(condition, `"2026-12-01T09:00:00Z"`, "%s"), numbers},
		{workItem, `{"overdueTime":%s}`, times},
		{workItem, `{"transitionTime":%s}`, times},
		{workItem, `{"observedGeneration":%s}`, numbers},
		{workItem, `{"occurrence":%s}`, numbers},
		{workItem, `{"escalationLevel":%s}`, numbers},
		{workItem, `{"notifications":[{"outboxName":"a","idempotencyKey":"a","transition":"Overdue","occurrence":1,"providerName":"a","phase":"Sent","transitionTime":%s}]}`, times},
		{outbox, fmt.Sprintf(condition, "%s", "1"), times},
		{outbox, `{"firstAttemptTime":%s}`, times},
		{outbox, `{"retryStartTime":%s}`, times},
		{outbox, `{"nextAttemptTime":%s}`, times},
		{outbox, `{"excusedSince":%s}`, times},
		{outbox, `{"excusedSeconds":%s}`, numbers},
		{outbox, `{"attempts":%s}`, numbers},
		{outbox, `{"sentTime":%s}`, times},
		{outbox, `{"finishedTime":%s}`, times},
		{outbox, `{"lastAttempt":{"number":1,"startTime":%s}}`, times},
		{outbox, `{"lastAttempt":{"number":1,"finishTime":%s}}`, times},
		{outbox, `{"lastAttempt":{"number":%s}}`, numbers},
		{outbox, `{"history":[{"number":1,"startTime":%s}]}`, times},
		{outbox, `{"decision":{"action":"Replay","time":%s}}`, times},
		{provider, fmt.Sprintf(condition, "%s", "1"), times},
		{provider, `{"pause":{"reason":"A","since":%s}}`, times},
		{provider, `{"pause":{"reason":"A","until":%s}}`, times},
		{provider, `{"pause":{"reason":"A","generation":%s}}`, numbers},
	} {
		t.Run(edge.kind.plural+fmt.Sprintf(edge.format, "_"), func(t *testing.T) {
			answer, name := edge.kind.created(t, encode(t, edge.kind.with(t, "")))
			accepted := 0
			for _, value := range edge.values {
				status := fmt.Sprintf(edge.format, value)
				body := overlaid(decode(t, answer), object{"status": json.RawMessage(status)})
				got, err := edge.kind.update(t, encode(t, body), dryRun, name, "status")
				if err != nil {
					continue
				}
				accepted++
				encoded := reencoded(t, edge.kind, status, got)
				if _, err := edge.kind.update(t, encoded, dryRun, name, "status"); err != nil {
					t.Errorf("%s: accepted, but not when the Go type writes it back: %v", status, err)
				}
			}
			checkSome(t, accepted, len(edge.values))
		})
	}
}
