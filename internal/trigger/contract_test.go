// SPDX-FileCopyrightText: The WorkItem Operator Authors
// SPDX-License-Identifier: Apache-2.0

package trigger

import (
	"encoding/json"
	"net/http"
	"reflect"
	"slices"
	"strings"
	"testing"

	"sigs.k8s.io/yaml"
)

// document is what the tests read of the contract.
type document struct {
	OpenAPI string `json:"openapi"`
	Paths   map[string]map[string]struct {
		OperationID string `json:"operationId"`
		Parameters  []struct {
			Name string `json:"name"`
		} `json:"parameters"`
		Responses map[string]any `json:"responses"`
	} `json:"paths"`
	Components struct {
		Schemas map[string]struct {
			Required   []string       `json:"required"`
			Properties map[string]any `json:"properties"`
		} `json:"schemas"`
	} `json:"components"`
}

func contractOf(t *testing.T) document {
	t.Helper()
	answer := call(newHandler(nil, nil), http.MethodGet, ContractPath, "", "")
	if answer.Code != http.StatusOK || answer.Header().Get("Content-Type") != "application/yaml" {
		t.Fatalf("the contract is answered %d %v", answer.Code, answer.Header())
	}
	var doc document
	if err := yaml.Unmarshal(answer.Body.Bytes(), &doc); err != nil {
		t.Fatal(err)
	}
	return doc
}

func TestTheContractIsWhatIsServed(t *testing.T) {
	t.Parallel()
	doc := contractOf(t)
	if !strings.HasPrefix(doc.OpenAPI, "3.1.") {
		t.Errorf("the document is of OpenAPI %s", doc.OpenAPI)
	}
	operation, ok := doc.Paths[Path]["post"]
	if !ok {
		t.Fatalf("there is no POST %s in it", Path)
	}
	var names []string
	for _, p := range operation.Parameters {
		names = append(names, p.Name)
	}
	if !slices.Equal(names, []string{"namespace", "wait"}) {
		t.Errorf("the parameters are %v", names)
	}
	for _, status := range []string{"200", "400", "401", "403", "405", "413", "429", "503"} {
		if operation.Responses[status] == nil {
			t.Errorf("the answer %s is not in it", status)
		}
	}
	for schema, value := range map[string]any{"Result": Result{}, "Problem": problem{}} {
		described := doc.Components.Schemas[schema]
		var encoded []string
		for field := range reflect.TypeOf(value).Fields() {
			encoded = append(encoded, strings.Split(field.Tag.Get("json"), ",")[0])
		}
		var properties []string
		for name := range described.Properties {
			properties = append(properties, name)
		}
		slices.Sort(encoded)
		slices.Sort(properties)
		slices.Sort(described.Required)
		if !slices.Equal(encoded, properties) || !slices.Equal(encoded, described.Required) {
			t.Errorf("%s has %v; described are %v, of which %v are required", schema, encoded, properties, described.Required)
		}
	}
}

func TestTheNamesOfAResultAreStable(t *testing.T) {
	t.Parallel()
	body, err := json.Marshal(Result{ProcessedCount: 2, NotificationCount: 1, FailedNotificationWorkItemIDs: []string{"ops/report"}})
	if err != nil {
		t.Fatal(err)
	}
	if want := `{"processedCount":2,"notificationCount":1,"failedNotificationWorkItemIds":["ops/report"]}`; string(body) != want {
		t.Errorf("a result is %s, want %s", body, want)
	}
}
