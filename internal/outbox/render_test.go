// SPDX-FileCopyrightText: The WorkItem Operator Authors
// SPDX-License-Identifier: Apache-2.0

package outbox_test

import (
	"encoding/json"
	"flag"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"
	"unicode/utf8"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"

	"github.com/workitem-operator/workitem-operator/api/v1alpha1"
	"github.com/workitem-operator/workitem-operator/internal/outbox"
	"github.com/workitem-operator/workitem-operator/test/wrappers"
)

var update = flag.Bool("update", false, "write the golden files anew")

// body is what a receiver reads.
type body struct {
	SpecVersion, ID, Source, Type, Subject, Time, DataContentType string
	Data                                                          struct {
		Namespace, Name, UID, Title, Description, Assignee, Priority, DueTime, Transition string
		Occurrence, EscalationLevel                                                       int32
	}
}

func rendered(t interface {
	Helper()
	Fatalf(string, ...any)
}, item *v1alpha1.WorkItem, in *v1alpha1.Intent,
) (string, body) {
	t.Helper()
	raw := outbox.Render(item, in)
	var b body
	if err := json.Unmarshal([]byte(raw), &b); err != nil {
		t.Fatalf("no JSON: %v\n%s", err, raw)
	}
	if !utf8.ValidString(raw) {
		t.Fatalf("no UTF-8: %q", raw)
	}
	if strings.ContainsAny(raw, "\n\r\x00") {
		t.Fatalf("a raw control character in %q", raw)
	}
	return raw, b
}

func TestRenderGolden(t *testing.T) {
	t.Parallel()
	item, in, _ := pair(hook().Obj())
	item.UID = "5d0c3a52-8f0e-4f3b-9a53-0d6f3a1c9e10"
	item.Spec.Title = `Renew "ingress" <certificate> & {{ .Values }}`
	item.Spec.Description = "It expires.\nSee \\wiki\t– 😀 שלום\u2028end"
	item.Spec.Assignee = "sre-oncall"
	item.Spec.Priority = v1alpha1.PriorityCritical
	in.IdempotencyKey = "work-item:5d0c3a52-8f0e-4f3b-9a53-0d6f3a1c9e10:status:Escalated-1:2:hook"
	in.Transition, in.EscalationLevel = v1alpha1.TransitionEscalated, 1
	got, _ := rendered(t, item, in)
	path := filepath.Join("testdata", "escalated.json")
	if *update {
		if err := os.WriteFile(path, []byte(got+"\n"), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	want, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(strings.TrimSuffix(string(want), "\n"), got); diff != "" {
		t.Errorf("body (-want +got):\n%s", diff)
	}
}

func TestRenderFields(t *testing.T) {
	t.Parallel()
	item, in, _ := pair(hook().Obj())
	_, b := rendered(t, item, in)
	for what, pair := range map[string][2]string{
		"specversion": {b.SpecVersion, "1.0"}, "id": {b.ID, in.IdempotencyKey},
		"source": {b.Source, "/namespaces/ops/workitems/renew"}, "subject": {b.Subject, "renew"},
		"type": {b.Type, "dev.workitem.overdue.v1"}, "time": {b.Time, "2026-12-01T12:00:00Z"},
		"dueTime": {b.Data.DueTime, "2026-12-01T11:00:00Z"}, "uid": {b.Data.UID, string(item.UID)},
		"datacontenttype": {b.DataContentType, "application/json"},
	} {
		if pair[0] != pair[1] {
			t.Errorf("%s is %q, want %q", what, pair[0], pair[1])
		}
	}
	// The due time that was missed stays, wherever the user moves the next one.
	item.Spec.DueTime = stampOf(noon.Add(48 * time.Hour))
	if _, b := rendered(t, item, in); b.Data.DueTime != "2026-12-01T11:00:00Z" {
		t.Errorf("dueTime is %s once the user has moved it", b.Data.DueTime)
	}
	item.Spec.DueTime = nil
	if _, b := rendered(t, item, in); b.Data.DueTime != "2026-12-01T11:00:00Z" {
		t.Errorf("dueTime is %s once the user has removed it", b.Data.DueTime)
	}
}

// Fault 42: whatever people write, the body is JSON that says the same.
func TestFault42_AnyTextIsValidJSON(t *testing.T) {
	t.Parallel()
	texts := map[string]string{
		"quotes":            `say "hello" and \"goodbye\"`,
		"braces":            `{{ .Title }} {{`,
		"lines and tabs":    "one\ntwo\tthree\r\n",
		"script":            `</script><!--&amp;`,
		"emoji":             "👩‍👩‍👧 🏴‍☠️",
		"right to left":     "\u202eשלום \u200fمرحبا",
		"line separators":   "a\u2028b\u2029c",
		"byte order mark":   "\ufefftext",
		"backslashes":       `\\\u0041\`,
		"a lone surrogate":  "\\ud800 and text",
		"4096 of four byte": strings.Repeat("😀", 4096),
	}
	for name, text := range texts {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			item, in, _ := pair(hook().Obj())
			item.Spec.Title = string([]rune(text)[:min(256, len([]rune(text)))])
			item.Spec.Description, item.Spec.Assignee = text, item.Spec.Title
			raw, b := rendered(t, item, in)
			if b.Data.Title != item.Spec.Title || b.Data.Description != text || b.Data.Assignee != item.Spec.Assignee {
				t.Errorf("the text changed:\n%s", cmp.Diff(text, b.Data.Description))
			}
			if len(raw) > outbox.MaxBodyBytes {
				t.Errorf("%d bytes", len(raw))
			}
		})
	}
}

// Only the description is shortened, no more than it takes, and at a rune.
func TestRenderShortensTheDescription(t *testing.T) {
	t.Parallel()
	for name, text := range map[string]string{
		"six bytes for a rune":  strings.Repeat("\u2028", 4096),
		"two bytes for a tab":   strings.Repeat("\t", 4096) + strings.Repeat("\u2029", 3000),
		"longer than admission": strings.Repeat("é😀", 9000),
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			item, in, _ := pair(hook().Obj())
			item.Spec.Title, item.Spec.Description = strings.Repeat("\u2028", 256), text
			raw, b := rendered(t, item, in)
			if len(raw) > outbox.MaxBodyBytes || len(raw) < outbox.MaxBodyBytes-16 {
				t.Errorf("%d bytes, want as many of %d as fit", len(raw), outbox.MaxBodyBytes)
			}
			if b.Data.Title != item.Spec.Title || b.ID != in.IdempotencyKey {
				t.Error("the title or the key was shortened")
			}
			kept, ok := strings.CutSuffix(b.Data.Description, "…")
			if !ok || !strings.HasPrefix(text, kept) {
				t.Errorf("the description is not the beginning of what it was")
			}
		})
	}
}

// A title beyond what admission allows has nothing to be shortened for. It must not
// take the process with it.
func TestFault42_AHugeTitleDoesNotPanic(t *testing.T) {
	t.Parallel()
	for name, description := range map[string]string{"without a description": "", "with one": "short"} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			defer func() {
				if p := recover(); p != nil {
					t.Errorf("Render panics: %v", p)
				}
			}()
			item, in, _ := pair(hook().Obj())
			item.Spec.Title, item.Spec.Description = strings.Repeat("x", 1<<20), description
			if _, b := rendered(t, item, in); b.Data.Title != item.Spec.Title {
				t.Error("the title was shortened")
			}
		})
	}
}

// Faults 6 and 11: any two renders of one occurrence are the same bytes, and so the
// same digest.
func TestFault06_SameInputSameBytes(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		item, in, _ := pair(hook().Obj())
		item.Spec.Title = rapid.StringN(1, 256, -1).Draw(t, "title")
		item.Spec.Description = rapid.StringN(0, 4096, -1).Draw(t, "description")
		first, b := rendered(t, item, in)
		second, _ := rendered(t, item.DeepCopy(), in.DeepCopy())
		if first != second || outbox.Digest(first) != outbox.Digest(second) {
			t.Fatal("two renders differ")
		}
		if len(first) > outbox.MaxBodyBytes {
			t.Fatalf("%d bytes", len(first))
		}
		if want := strings.ToValidUTF8(item.Spec.Title, "\uFFFD"); b.Data.Title != want {
			t.Fatalf("title %q, want %q", b.Data.Title, want)
		}
	})
}

func FuzzRender(f *testing.F) {
	f.Add("title", "description", "someone", int32(1), int32(0))
	f.Add(`"{{`, "\x00\x1f\u2028", "\xff", int32(2147483647), int32(8))
	f.Add(strings.Repeat("😀", 256), strings.Repeat("\u2028", 4096), "\u202e", int32(0), int32(-1))
	f.Fuzz(func(t *testing.T, title, description, assignee string, occurrence, level int32) {
		// Admission bounds what is longer.
		title, assignee = firstRunes(title, 256), firstRunes(assignee, 253)
		item := wrappers.MakeWorkItem("renew", "ops").Title(title).Description(description).Assignee(assignee).Due(noon).Obj()
		in := outbox.NewIntent(outbox.Identity{
			WorkItemName: item.Name, WorkItemUID: item.UID, Transition: v1alpha1.TransitionEscalated, Level: level, Occurrence: occurrence, Provider: "p",
		}, noon)
		raw, b := rendered(t, item, &in)
		if len(raw) > outbox.MaxBodyBytes {
			t.Errorf("%d bytes", len(raw))
		}
		if b.ID != in.IdempotencyKey || b.Data.Occurrence != occurrence {
			t.Errorf("id %q, occurrence %d", b.ID, b.Data.Occurrence)
		}
		if utf8.ValidString(title) && b.Data.Title != title {
			t.Errorf("title %q, want %q", b.Data.Title, title)
		}
		if again := outbox.Render(item, &in); again != raw {
			t.Error("a second render differs")
		}
	})
}

func firstRunes(s string, n int) string {
	for i := range s {
		if n == 0 {
			return s[:i]
		}
		n--
	}
	return s
}
