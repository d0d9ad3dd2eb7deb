// SPDX-FileCopyrightText: The WorkItem Operator Authors
// SPDX-License-Identifier: Apache-2.0

package api

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/yaml"
)

// readCRDs reads the manifests that are installed, by plural.
func readCRDs(t *testing.T) map[string]*apiextensionsv1.CustomResourceDefinition {
	t.Helper()
	files, err := filepath.Glob(filepath.Join(crdDir, "*.yaml"))
	if err != nil || len(files) == 0 {
		t.Fatalf("no CRDs in %s: %v", crdDir, err)
	}
	crds := map[string]*apiextensionsv1.CustomResourceDefinition{}
	for _, file := range files {
		text, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		crd := &apiextensionsv1.CustomResourceDefinition{}
		if err := yaml.UnmarshalStrict(text, crd); err != nil {
			t.Fatalf("%s: %v", file, err)
		}
		if len(crd.Spec.Versions) != 1 {
			t.Fatalf("%s: got %d versions, want one until a conversion is proven", file, len(crd.Spec.Versions))
		}
		crds[crd.Spec.Names.Plural] = crd
	}
	return crds
}

// walk visits a schema and everything below it.
func walk(path string, schema *apiextensionsv1.JSONSchemaProps, visit func(path string, schema *apiextensionsv1.JSONSchemaProps)) {
	visit(path, schema)
	for name, property := range schema.Properties {
		walk(path+"."+name, &property, visit)
	}
	if schema.Items != nil && schema.Items.Schema != nil {
		walk(path+"[]", schema.Items.Schema, visit)
	}
	if schema.AdditionalProperties != nil && schema.AdditionalProperties.Schema != nil {
		walk(path+"{}", schema.AdditionalProperties.Schema, visit)
	}
}

func TestCRDsAreStructuredAsPromised(t *testing.T) {
	type column struct{ Name, JSONPath string }
	type shape struct {
		Kind, ShortName string
		Columns         []column
	}
	age := column{"Age", ".metadata.creationTimestamp"}
	want := map[string]shape{
		"workitems": {"WorkItem", "wi", []column{
			{"Phase", ".status.phase"},
			{"Priority", ".spec.priority"},
			{"Due", ".spec.dueTime"},
			{"Assignee", ".spec.assignee"},
			{"Notified", `.status.conditions[?(@.type=="Notified")].status`},
			age,
		}},
		"notificationoutboxes": {"NotificationOutbox", "nob", []column{
			{"Phase", ".status.phase"},
			{"Transition", ".spec.transition"},
			{"Provider", ".spec.providerName"},
			{"Attempts", ".status.attempts"},
			{"Guarantee", ".status.guarantee"},
			age,
		}},
		"notificationproviders": {"NotificationProvider", "np", []column{
			{"Type", ".spec.type"},
			{"Ready", `.status.conditions[?(@.type=="Ready")].status`},
			{"Reason", `.status.conditions[?(@.type=="Ready")].reason`},
			{"Guarantee", ".status.guarantee"},
			{"Suspend", ".spec.suspend"},
			age,
		}},
	}
	crds := readCRDs(t)
	if got, want := len(crds), len(want); got != want {
		t.Errorf("got %d CRDs, want %d", got, want)
	}
	for plural, want := range want {
		t.Run(plural, func(t *testing.T) {
			crd := crds[plural]
			if crd == nil {
				t.Fatal("no such CRD")
			}
			version := crd.Spec.Versions[0]
			got := shape{Kind: crd.Spec.Names.Kind, ShortName: strings.Join(crd.Spec.Names.ShortNames, ",")}
			for _, c := range version.AdditionalPrinterColumns {
				if c.Priority == 0 {
					got.Columns = append(got.Columns, column{c.Name, c.JSONPath})
				}
			}
			if diff := cmp.Diff(want, got); diff != "" {
				t.Errorf("names and columns (-want +got):\n%s", diff)
			}
			if diff := cmp.Diff([]string{"workitems"}, crd.Spec.Names.Categories); diff != "" {
				t.Errorf("categories (-want +got):\n%s", diff)
			}
			if crd.Spec.Group != "workitem.dev" || version.Name != "v1alpha1" || crd.Spec.Scope != apiextensionsv1.NamespaceScoped {
				t.Errorf("got %s/%s, %s, want workitem.dev/v1alpha1, Namespaced", crd.Spec.Group, version.Name, crd.Spec.Scope)
			}
			if !version.Served || !version.Storage {
				t.Errorf("got served %t, storage %t, want both", version.Served, version.Storage)
			}
			if version.Subresources == nil || version.Subresources.Status == nil {
				t.Error("got no status subresource, want one")
			}
			if crd.Spec.Conversion != nil && crd.Spec.Conversion.Strategy != apiextensionsv1.NoneConverter {
				t.Errorf("got conversion %s, want None", crd.Spec.Conversion.Strategy)
			}
		})
	}
}

func TestListsOfObjectsAreKeyedOrAtomic(t *testing.T) {
	keys := map[string]string{
		"workitems.spec.notify":                      "providerName",
		"workitems.spec.escalations":                 "atomic",
		"workitems.spec.escalations[].notify":        "providerName",
		"workitems.status.notifications":             "outboxName",
		"workitems.status.conditions":                "type",
		"notificationoutboxes.status.conditions":     "type",
		"notificationoutboxes.status.history":        "atomic",
		"notificationproviders.spec.webhook.headers": "name",
		"notificationproviders.status.conditions":    "type",
	}
	got := map[string]string{}
	for plural, crd := range readCRDs(t) {
		walk(plural, crd.Spec.Versions[0].Schema.OpenAPIV3Schema, func(path string, schema *apiextensionsv1.JSONSchemaProps) {
			if schema.Type != "array" {
				return
			}
			if schema.MaxItems == nil {
				t.Errorf("%s: a list without a bound", path)
			}
			got[path] = strings.Join(schema.XListMapKeys, ",")
			if schema.XListType != nil && *schema.XListType != "map" {
				got[path] = *schema.XListType
			}
		})
	}
	if diff := cmp.Diff(keys, got); diff != "" {
		t.Errorf("lists (-want +got):\n%s", diff)
	}
}

func TestEveryRuleSaysWhatToWrite(t *testing.T) {
	rules := 0
	for plural, crd := range readCRDs(t) {
		walk(plural, crd.Spec.Versions[0].Schema.OpenAPIV3Schema, func(path string, schema *apiextensionsv1.JSONSchemaProps) {
			for _, rule := range schema.XValidations {
				rules++
				field := path[strings.LastIndex(path, ".")+1:]
				if len(schema.Properties) == 0 && schema.Type == "string" && !strings.Contains(rule.Message, field) {
					t.Errorf("%s: got message %q, want it to name the field", path, rule.Message)
				}
				if !strings.Contains(rule.Message, "must") && !strings.Contains(rule.Message, "immutable") {
					t.Errorf("%s: got message %q, want it to say what must be", path, rule.Message)
				}
			}
		})
	}
	if rules == 0 {
		t.Error("got no rules, want some: the walk is broken")
	}
}

func TestEveryTextIsBounded(t *testing.T) {
	for plural, crd := range readCRDs(t) {
		walk(plural, crd.Spec.Versions[0].Schema.OpenAPIV3Schema, func(path string, schema *apiextensionsv1.JSONSchemaProps) {
			top := path == plural+".apiVersion" || path == plural+".kind"
			if schema.Type == "string" && schema.MaxLength == nil && len(schema.Enum) == 0 && schema.Format == "" && !top {
				t.Errorf("%s: a text without a bound", path)
			}
		})
	}
}

func TestExplainTextOnEveryField(t *testing.T) {
	fields := 0
	for plural, crd := range readCRDs(t) {
		walk(plural, crd.Spec.Versions[0].Schema.OpenAPIV3Schema, func(path string, schema *apiextensionsv1.JSONSchemaProps) {
			fields++
			// The API server explains metadata itself.
			if path != plural+".metadata" && strings.TrimSpace(schema.Description) == "" {
				t.Errorf("%s: kubectl explain has nothing to say", path)
			}
			name := path[strings.LastIndex(path, ".")+1:]
			mine := !strings.Contains(path, ".conditions[]") && strings.Count(path, ".") > 1 && !strings.HasSuffix(path, "[]")
			if mine && !strings.HasPrefix(schema.Description, name+" ") {
				t.Errorf("%s: got description %q, want it to begin with the field's name", path, schema.Description)
			}
		})
	}
	if fields < 100 {
		t.Errorf("got %d fields, want at least 100: the walk is broken", fields)
	}
}

// TestAPIServerPrintsTheColumns asks as kubectl does.
func TestAPIServerPrintsTheColumns(t *testing.T) {
	for _, tt := range []struct {
		kind kind
		want string
	}{
		{workItem, "NAME PHASE PRIORITY DUE ASSIGNEE NOTIFIED AGE"},
		{outbox, "NAME PHASE TRANSITION PROVIDER ATTEMPTS GUARANTEE AGE"},
		{provider, "NAME TYPE READY REASON GUARANTEE SUSPEND AGE"},
	} {
		t.Run(tt.kind.plural, func(t *testing.T) {
			answer, err := apiServer.Get().AbsPath(tt.kind.url()).
				SetHeader("Accept", "application/json;as=Table;v=v1;g=meta.k8s.io").Do(t.Context()).Raw()
			if err != nil {
				t.Fatal(err)
			}
			var table metav1.Table
			if err := yaml.Unmarshal(answer, &table); err != nil {
				t.Fatal(err)
			}
			var got []string
			for _, c := range table.ColumnDefinitions {
				if c.Priority == 0 {
					got = append(got, strings.ToUpper(c.Name))
				}
			}
			if got := strings.Join(got, " "); got != tt.want {
				t.Errorf("got columns %s, want %s", got, tt.want)
			}
		})
	}
}

// TestAPIServerTakesTheSchemas fails when the API server drops what it does not
// understand, or will not serve the kind.
func TestAPIServerTakesTheSchemas(t *testing.T) {
	for plural, want := range readCRDs(t) {
		t.Run(plural, func(t *testing.T) {
			answer, err := apiServer.Get().AbsPath("/apis/apiextensions.k8s.io/v1/customresourcedefinitions", want.Name).
				SetHeader("Accept", "application/json").Do(t.Context()).Raw()
			if err != nil {
				t.Fatal(err)
			}
			got := &apiextensionsv1.CustomResourceDefinition{}
			if err := yaml.Unmarshal(answer, got); err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(want.Spec.Versions[0].Schema, got.Spec.Versions[0].Schema); diff != "" {
				t.Errorf("schema (-written +served):\n%s", diff)
			}
			for _, c := range got.Status.Conditions {
				bad := c.Type == apiextensionsv1.NonStructuralSchema && c.Status == apiextensionsv1.ConditionTrue ||
					c.Type != apiextensionsv1.NonStructuralSchema && c.Status != apiextensionsv1.ConditionTrue
				if bad {
					t.Errorf("got condition %s %s: %s", c.Type, c.Status, c.Message)
				}
			}
			if diff := cmp.Diff(want.Spec.Names.ShortNames, got.Status.AcceptedNames.ShortNames); diff != "" {
				t.Errorf("accepted short names (-want +got):\n%s", diff)
			}
		})
	}
}
