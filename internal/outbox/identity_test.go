// SPDX-FileCopyrightText: The WorkItem Operator Authors
// SPDX-License-Identifier: Apache-2.0

package outbox_test

import (
	"regexp"
	"strings"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/validation"
	"pgregory.net/rapid"

	"github.com/workitem-operator/workitem-operator/api/v1alpha1"
	"github.com/workitem-operator/workitem-operator/internal/outbox"
	"github.com/workitem-operator/workitem-operator/test/wrappers"
)

// noon is the time of every decision here unless a test says otherwise.
var noon = time.Date(2026, 12, 1, 12, 0, 0, 0, time.UTC)

func stampOf(t time.Time) *metav1.Time { return &metav1.Time{Time: t} }

// genSubdomain makes the name of an object, up to the longest that there may be.
func genSubdomain(t *rapid.T, label string) string {
	s := rapid.StringMatching(`[a-z0-9]([-a-z0-9]{0,20}[a-z0-9])?(\.[a-z0-9]([-a-z0-9]{0,20}[a-z0-9])?){0,3}`).Draw(t, label)
	if rapid.IntRange(0, 3).Draw(t, label+" long") == 0 {
		s = strings.Repeat(s+rapid.SampledFrom([]string{"-", ".", ""}).Draw(t, "glue"), 253/len(s)+1)[:253]
		s = strings.TrimRight(s, "-.")
		s = strings.ReplaceAll(strings.ReplaceAll(s, ".-", "-"), "-.", "-")
	}
	return s
}

func genIdentity(t *rapid.T) outbox.Identity {
	id := outbox.Identity{
		WorkItemName: genSubdomain(t, "name"),
		WorkItemUID:  types.UID(rapid.StringMatching(`[0-9a-f]{8}-[0-9a-f]{4}-4[0-9a-f]{3}-[89ab][0-9a-f]{3}-[0-9a-f]{12}`).Draw(t, "uid")),
		Transition:   v1alpha1.TransitionOverdue,
		Occurrence:   rapid.Int32Min(1).Draw(t, "occurrence"),
		Provider:     rapid.StringMatching(`[a-z0-9]([-a-z0-9]{0,61}[a-z0-9])?`).Draw(t, "provider"),
	}
	if rapid.Bool().Draw(t, "escalated") {
		id.Transition, id.Level = v1alpha1.TransitionEscalated, rapid.Int32Range(1, 8).Draw(t, "level")
	}
	return id
}

func TestI3_NameAndKeyAreDerived(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		id := genIdentity(t)
		name, key := id.Name(), id.Key()
		if problems := validation.IsDNS1123Subdomain(name); len(problems) > 0 {
			t.Fatalf("%q (%d bytes) is no name: %v", name, len(name), problems)
		}
		if len(key) > 255 {
			t.Fatalf("key of %d bytes", len(key))
		}
		same := id
		if same.Name() != name || same.Key() != key {
			t.Fatal("the same identity has two names")
		}
		other := genIdentity(t)
		if other != id && other.Key() == key && other.WorkItemUID == id.WorkItemUID {
			if other.WorkItemName = id.WorkItemName; other != id {
				t.Fatalf("two identities share the key %s", key)
			}
		}
	})
}

// Everything that tells two notifications apart changes the key and the name.
func TestI3_NamesAndKeysAreDistinct(t *testing.T) {
	t.Parallel()
	names, keys := map[string]outbox.Identity{}, map[string]outbox.Identity{}
	long := strings.Repeat("a", 253)
	for _, name := range []string{"a", "a-overdue-1", "a.b", long, long[:252] + "b"} {
		for _, uid := range []types.UID{wrappers.UID("x"), wrappers.UID("y")} {
			for _, provider := range []string{"p", "p-1", "1", strings.Repeat("p", 63)} {
				for level := range int32(9) {
					for _, occurrence := range []int32{1, 2, 11, 2147483647} {
						id := outbox.Identity{WorkItemName: name, WorkItemUID: uid + types.UID(name[:1]+name[len(name)-1:]), Transition: v1alpha1.TransitionOverdue, Level: level, Occurrence: occurrence, Provider: provider}
						if level > 0 {
							id.Transition = v1alpha1.TransitionEscalated
						}
						if twin, taken := names[id.Name()]; taken {
							t.Fatalf("%+v and %+v are both called %s", twin, id, id.Name())
						}
						names[id.Name()] = id
						if twin, taken := keys[id.Key()]; taken && twin.WorkItemUID != id.WorkItemUID {
							t.Fatalf("%+v and %+v share the key %s", twin, id, id.Key())
						}
						keys[id.Key()] = id
					}
				}
			}
		}
	}
}

// The formats that dashboards and providers rely on.
func TestI3_KeyFormatIsFixed(t *testing.T) {
	t.Parallel()
	id := outbox.Identity{
		WorkItemName: "renew-ingress-certificate", WorkItemUID: "5d0c3a52-8f0e-4f3b-9a53-0d6f3a1c9e10",
		Transition: v1alpha1.TransitionOverdue, Occurrence: 1, Provider: "ops-webhook",
	}
	if got, want := id.Key(), "work-item:5d0c3a52-8f0e-4f3b-9a53-0d6f3a1c9e10:status:Overdue:1:ops-webhook"; got != want {
		t.Errorf("key %s, want %s", got, want)
	}
	if got := id.Name(); !regexp.MustCompile(`^renew-ingress-certificate-overdue-1-[0-9a-f]{8}$`).MatchString(got) {
		t.Errorf("name %s", got)
	}
	id.Transition, id.Level, id.Occurrence = v1alpha1.TransitionEscalated, 2, 12
	if got, want := id.Key(), "work-item:5d0c3a52-8f0e-4f3b-9a53-0d6f3a1c9e10:status:Escalated-2:12:ops-webhook"; got != want {
		t.Errorf("key %s, want %s", got, want)
	}
	if got := id.Name(); !regexp.MustCompile(`^renew-ingress-certificate-escalated-2-12-[0-9a-f]{8}$`).MatchString(got) {
		t.Errorf("name %s", got)
	}
}

// Fault 6: nothing in the key depends on when, or on anything a user types besides
// the provider's name.
func TestFault06_KeyHasNoTime(t *testing.T) {
	t.Parallel()
	format := regexp.MustCompile(`^work-item:[-0-9a-f]{36}:status:(Overdue|Escalated-[1-8]):[1-9][0-9]{0,9}:[a-z0-9]([-a-z0-9]{0,61}[a-z0-9])?$`)
	rapid.Check(t, func(t *rapid.T) {
		id := genIdentity(t)
		if !format.MatchString(id.Key()) {
			t.Fatalf("key %q", id.Key())
		}
		early, late := outbox.NewIntent(id, noon), outbox.NewIntent(id, noon.Add(time.Duration(rapid.Int64Range(1, 1e18).Draw(t, "later"))))
		if early.IdempotencyKey != late.IdempotencyKey || early.OutboxName != late.OutboxName {
			t.Fatalf("the key depends on the time: %s, %s", early.IdempotencyKey, late.IdempotencyKey)
		}
	})
}

// pair is an item that is overdue for the second time, with its intent and outbox.
func pair(provider *v1alpha1.NotificationProvider) (*v1alpha1.WorkItem, *v1alpha1.Intent, *v1alpha1.NotificationOutbox) {
	item := wrappers.MakeWorkItem("renew", "ops").Due(noon.Add(-time.Hour)).Notify("hook").
		Phase(v1alpha1.PhaseOverdue).Occurrence(2).OverdueTime(noon.Add(-time.Hour)).Obj()
	in := outbox.NewIntent(outbox.Identity{
		WorkItemName: item.Name, WorkItemUID: item.UID, Transition: v1alpha1.TransitionOverdue, Occurrence: 2, Provider: "hook",
	}, noon)
	item.Status.Notifications = []v1alpha1.Intent{in}
	return item, &in, wrappers.OutboxFrom(outbox.Desired(item, &in, provider)).Obj()
}

func hook() *wrappers.Provider { return wrappers.MakeProvider("hook", "ops") }

// I3: an object that has the name of an outbox and is not what the operator would
// have made is not taken for it.
func TestI3_Genuine(t *testing.T) {
	t.Parallel()
	cases := map[string]struct {
		change func(*v1alpha1.WorkItem, *v1alpha1.Intent, *v1alpha1.NotificationOutbox)
		want   bool
	}{
		"the outbox of the intent": {func(*v1alpha1.WorkItem, *v1alpha1.Intent, *v1alpha1.NotificationOutbox) {}, true},
		"the item has changed since": {func(i *v1alpha1.WorkItem, _ *v1alpha1.Intent, _ *v1alpha1.NotificationOutbox) {
			i.Spec.Title, i.Generation = "Another", 9
		}, true},
		"a status makes no difference": {func(_ *v1alpha1.WorkItem, _ *v1alpha1.Intent, o *v1alpha1.NotificationOutbox) {
			o.Status.Phase = v1alpha1.OutboxHeld
		}, true},
		"of an item of another UID": {func(i *v1alpha1.WorkItem, _ *v1alpha1.Intent, _ *v1alpha1.NotificationOutbox) {
			i.UID = wrappers.UID("other")
		}, false},
		"of another intent": {func(_ *v1alpha1.WorkItem, in *v1alpha1.Intent, _ *v1alpha1.NotificationOutbox) {
			in.IdempotencyKey += "x"
		}, false},
		"under another name": {func(_ *v1alpha1.WorkItem, in *v1alpha1.Intent, _ *v1alpha1.NotificationOutbox) { in.OutboxName += "x" }, false},
		"without an owner": {func(_ *v1alpha1.WorkItem, _ *v1alpha1.Intent, o *v1alpha1.NotificationOutbox) {
			o.OwnerReferences = nil
		}, false},
		"owned, but not controlled": {func(_ *v1alpha1.WorkItem, _ *v1alpha1.Intent, o *v1alpha1.NotificationOutbox) {
			o.OwnerReferences[0].Controller = nil
		}, false},
		"owned by another kind": {func(_ *v1alpha1.WorkItem, _ *v1alpha1.Intent, o *v1alpha1.NotificationOutbox) {
			o.OwnerReferences[0].Kind = "Deployment"
		}, false},
		"owned by another item": {func(_ *v1alpha1.WorkItem, _ *v1alpha1.Intent, o *v1alpha1.NotificationOutbox) {
			o.OwnerReferences[0].UID = wrappers.UID("other")
		}, false},
		"with another key": {func(_ *v1alpha1.WorkItem, _ *v1alpha1.Intent, o *v1alpha1.NotificationOutbox) {
			o.Spec.IdempotencyKey = strings.Replace(o.Spec.IdempotencyKey, ":2:", ":3:", 1)
		}, false},
		"with another occurrence": {func(_ *v1alpha1.WorkItem, _ *v1alpha1.Intent, o *v1alpha1.NotificationOutbox) { o.Spec.Occurrence = 3 }, false},
		"with another provider": {func(_ *v1alpha1.WorkItem, _ *v1alpha1.Intent, o *v1alpha1.NotificationOutbox) {
			o.Spec.ProviderName = "other"
		}, false},
		"with another reference": {func(_ *v1alpha1.WorkItem, _ *v1alpha1.Intent, o *v1alpha1.NotificationOutbox) {
			o.Spec.WorkItemRef.UID = wrappers.UID("other")
		}, false},
		"with bytes that do not match their digest": {func(_ *v1alpha1.WorkItem, _ *v1alpha1.Intent, o *v1alpha1.NotificationOutbox) {
			o.Spec.Payload.Body += " "
		}, false},
		"with a digest of nothing": {func(_ *v1alpha1.WorkItem, _ *v1alpha1.Intent, o *v1alpha1.NotificationOutbox) {
			o.Spec.PayloadDigest = ""
		}, false},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			item, in, ob := pair(hook().Obj())
			tc.change(item, in, ob)
			if got := outbox.Genuine(ob, item, in); got != tc.want {
				t.Errorf("genuine: %t, want %t", got, tc.want)
			}
		})
	}
}

// Fault 9: the name is fixed before the API server sees the object, and everything
// that admission asks for is there.
func TestFault09_DesiredHasAFixedName(t *testing.T) {
	t.Parallel()
	item, in, ob := pair(hook().Obj())
	if ob.GenerateName != "" || ob.Name != in.OutboxName || ob.Namespace != item.Namespace {
		t.Errorf("name %q, generateName %q in %q", ob.Name, ob.GenerateName, ob.Namespace)
	}
	if id := outbox.OfOutbox(ob); id != outbox.OfIntent(item, in) {
		t.Errorf("the outbox is of %+v, its intent of %+v", id, outbox.OfIntent(item, in))
	}
	if !regexp.MustCompile(`^sha256:[0-9a-f]{64}$`).MatchString(ob.Spec.PayloadDigest) {
		t.Errorf("digest %s", ob.Spec.PayloadDigest)
	}
	if ob.Labels[v1alpha1.LabelWorkItemUID] != string(item.UID) || ob.Spec.Payload.Format != v1alpha1.ProviderWebhook {
		t.Errorf("labels %v, format %s", ob.Labels, ob.Spec.Payload.Format)
	}
}
