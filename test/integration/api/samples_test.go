// SPDX-FileCopyrightText: The WorkItem Operator Authors
// SPDX-License-Identifier: Apache-2.0

package api

import (
	"bufio"
	"bytes"
	"errors"
	"io"
	"os"
	"path/filepath"
	"slices"
	"testing"

	"github.com/google/go-cmp/cmp"
	utilyaml "k8s.io/apimachinery/pkg/util/yaml"
)

const kustomization = "kustomization.yaml"

func TestSamplesAreAccepted(t *testing.T) {
	collections := map[any]string{
		"WorkItem":             workItem.url(),
		"NotificationProvider": provider.url(),
		"NotificationOutbox":   outbox.url(),
		"Secret":               "/api/v1/namespaces/" + namespace + "/secrets",
	}
	for _, file := range sampleFiles(t) {
		t.Run(file, func(t *testing.T) {
			for _, document := range documents(t, file) {
				manifest := parse(t, string(document))
				url, ok := collections[manifest["kind"]]
				if !ok {
					t.Fatalf("got kind %v, want one of the API or a Secret", manifest["kind"])
				}
				if got := field(manifest, "metadata", "namespace"); got != nil {
					t.Errorf("got namespace %v, want none: the user chooses with kubectl -n", got)
				}
				// The text itself, not what was read from it: duplicate keys are errors too.
				if _, err := send(t, "POST", url, "application/yaml", document, dryRun); err != nil {
					t.Errorf("refused: %v", err)
				}
			}
		})
	}
}

func TestKustomizationListsEverySample(t *testing.T) {
	text, err := os.ReadFile(filepath.Join(samplesDir, kustomization))
	if err != nil {
		t.Fatal(err)
	}
	var got []string
	resources, _ := parse(t, string(text))["resources"].([]any)
	for _, resource := range resources {
		name, _ := resource.(string)
		got = append(got, name)
	}
	slices.Sort(got)
	if diff := cmp.Diff(sampleFiles(t), got); diff != "" {
		t.Errorf("resources (-files +listed):\n%s", diff)
	}
}

// TestSamplesFitTogether wants every name that a sample uses to be given by
// another one, so that a demo needs nothing else.
func TestSamplesFitTogether(t *testing.T) {
	there := map[string]bool{}
	var used []string
	for _, file := range sampleFiles(t) {
		for _, document := range documents(t, file) {
			manifest := parse(t, string(document))
			kind, _ := manifest["kind"].(string)
			name, _ := field(manifest, "metadata", "name").(string)
			there[kind+"/"+name] = true
			if kind == "Secret" {
				values, _ := manifest["stringData"].(object)
				for key := range values {
					there[kind+"/"+name+"/"+key] = true
				}
			}
			used = append(used, references(manifest["spec"])...)
		}
	}
	if len(used) == 0 {
		t.Error("got no references, want some: the search is broken")
	}
	for _, name := range used {
		if !there[name] {
			t.Errorf("a sample uses %s, which no sample gives", name)
		}
	}
}

// references finds the providers and the Secret keys that are named below value.
func references(value any) []string {
	var out []string
	switch value := value.(type) {
	case object:
		if name, ok := value["providerName"].(string); ok {
			out = append(out, "NotificationProvider/"+name)
		}
		name, hasName := value["name"].(string)
		key, hasKey := value["key"].(string)
		if hasName && hasKey {
			out = append(out, "Secret/"+name+"/"+key)
		}
		for _, below := range value {
			out = append(out, references(below)...)
		}
	case []any:
		for _, below := range value {
			out = append(out, references(below)...)
		}
	}
	return out
}

// sampleFiles are the names of all samples, sorted.
func sampleFiles(t *testing.T) []string {
	t.Helper()
	paths, err := filepath.Glob(filepath.Join(samplesDir, "*.yaml"))
	if err != nil {
		t.Fatal(err)
	}
	var out []string
	for _, path := range paths {
		if name := filepath.Base(path); name != kustomization {
			out = append(out, name)
		}
	}
	if len(out) == 0 {
		t.Fatalf("no samples in %s", samplesDir)
	}
	slices.Sort(out)
	return out
}

// documents splits a sample at its --- lines.
func documents(t *testing.T, file string) [][]byte {
	t.Helper()
	text, err := os.ReadFile(filepath.Join(samplesDir, file))
	if err != nil {
		t.Fatal(err)
	}
	reader := utilyaml.NewYAMLReader(bufio.NewReader(bytes.NewReader(text)))
	var out [][]byte
	for {
		document, err := reader.Read()
		if errors.Is(err, io.EOF) {
			break
		}
		if err != nil {
			t.Fatalf("%s: %v", file, err)
		}
		if len(parse(t, string(document))) > 0 {
			out = append(out, document)
		}
	}
	if len(out) == 0 {
		t.Fatalf("%s: no manifest", file)
	}
	return out
}
