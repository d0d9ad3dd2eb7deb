// SPDX-FileCopyrightText: The WorkItem Operator Authors
// SPDX-License-Identifier: Apache-2.0

// Package outbox decides everything about one notification: the name and the key
// of its outbox, the bytes that are sent, whether an attempt may be made now, and
// what is recorded of it.
//
// It is a rule package: it is given objects and the time, and returns values. It
// never changes what it is given.
//
// It promises that name, key and body of an intent are always the same, that the
// key contains nothing that a user types besides the provider's name, and that a
// finished outbox is never attempted. Where a rule upholds one of the invariants
// of docs/guarantees.md, its comment says which.
package outbox

import (
	"crypto/sha256"
	"encoding/hex"
	"strconv"
	"strings"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/workitem-operator/workitem-operator/api/v1alpha1"
)

// maxNameLength is the longest name of an object (RFC 1123 subdomain).
const maxNameLength = 253

// Identity is what tells one notification from every other one.
type Identity struct {
	// WorkItemName and WorkItemUID name the WorkItem.
	WorkItemName string
	WorkItemUID  types.UID
	// Transition and Level say of what is told; Level is 0 unless Transition is
	// Escalated.
	Transition v1alpha1.Transition
	Level      int32
	// Occurrence says for the how many-th time the item is overdue.
	Occurrence int32
	// Provider is the name of the provider that is told.
	Provider string
}

// Key is the idempotency key (I3, I4). The provider's name comes last and is a DNS
// label, so no two identities share a key.
func (id Identity) Key() string {
	return "work-item:" + string(id.WorkItemUID) + ":status:" + id.transition() + ":" + strconv.Itoa(int(id.Occurrence)) + ":" + id.Provider
}

// Name is the name of the outbox (I3): readable, and unique by a digest of the
// key. The API server's uniqueness of names is the unique index on the key.
func (id Identity) Name() string {
	sum := sha256.Sum256([]byte(id.Key()))
	suffix := "-" + strings.ToLower(id.transition()) + "-" + strconv.Itoa(int(id.Occurrence)) + "-" + hex.EncodeToString(sum[:4])
	prefix := id.WorkItemName
	if limit := maxNameLength - len(suffix); len(prefix) > limit {
		prefix = strings.TrimRight(prefix[:limit], "-.")
	}
	return prefix + suffix
}

func (id Identity) transition() string {
	if id.Level == 0 {
		return string(id.Transition)
	}
	return string(id.Transition) + "-" + strconv.Itoa(int(id.Level))
}

// OfIntent is the identity of an intent of an item.
func OfIntent(item *v1alpha1.WorkItem, in *v1alpha1.Intent) Identity {
	return Identity{
		WorkItemName: item.Name, WorkItemUID: item.UID,
		Transition: in.Transition, Level: in.EscalationLevel,
		Occurrence: in.Occurrence, Provider: in.ProviderName,
	}
}

// OfOutbox is the identity that an outbox claims to have.
func OfOutbox(ob *v1alpha1.NotificationOutbox) Identity {
	return Identity{
		WorkItemName: ob.Spec.WorkItemRef.Name, WorkItemUID: ob.Spec.WorkItemRef.UID,
		Transition: ob.Spec.Transition, Level: ob.Spec.EscalationLevel,
		Occurrence: ob.Spec.Occurrence, Provider: ob.Spec.ProviderName,
	}
}

// NewIntent is the intent to notify one provider of one transition, as it commits
// at the time now.
func NewIntent(id Identity, now time.Time) v1alpha1.Intent {
	return v1alpha1.Intent{
		OutboxName:      id.Name(),
		IdempotencyKey:  id.Key(),
		Transition:      id.Transition,
		EscalationLevel: id.Level,
		Occurrence:      id.Occurrence,
		ProviderName:    id.Provider,
		TransitionTime:  stamp(now),
		Phase:           v1alpha1.NotificationRecorded,
	}
}

// Desired is the outbox of an intent. The body is rendered here and never again
// (I4).
func Desired(item *v1alpha1.WorkItem, in *v1alpha1.Intent, provider *v1alpha1.NotificationProvider) *v1alpha1.NotificationOutbox {
	body := Render(item, in)
	yes := true
	return &v1alpha1.NotificationOutbox{
		ObjectMeta: metav1.ObjectMeta{
			Name:      in.OutboxName,
			Namespace: item.Namespace,
			Labels:    map[string]string{v1alpha1.LabelWorkItemUID: string(item.UID)},
			OwnerReferences: []metav1.OwnerReference{{
				APIVersion: v1alpha1.GroupVersion.String(),
				Kind:       v1alpha1.KindWorkItem,
				Name:       item.Name,
				UID:        item.UID,
				Controller: &yes,
			}},
		},
		Spec: v1alpha1.NotificationOutboxSpec{
			WorkItemRef:     v1alpha1.WorkItemReference{Name: item.Name, UID: item.UID},
			Transition:      in.Transition,
			EscalationLevel: in.EscalationLevel,
			Occurrence:      in.Occurrence,
			ProviderName:    in.ProviderName,
			IdempotencyKey:  in.IdempotencyKey,
			Payload:         v1alpha1.Payload{Format: provider.Spec.Type, Body: body},
			PayloadDigest:   Digest(body),
		},
	}
}

// Digest is the payloadDigest of a body.
func Digest(body string) string {
	sum := sha256.Sum256([]byte(body))
	return "sha256:" + hex.EncodeToString(sum[:])
}

// Genuine tells whether an outbox is the one of an intent (I3): made for this
// WorkItem, with this key, under this name, with bytes that match their digest.
func Genuine(ob *v1alpha1.NotificationOutbox, item *v1alpha1.WorkItem, in *v1alpha1.Intent) bool {
	return consistent(ob) &&
		ob.Spec.WorkItemRef.UID == item.UID &&
		ob.Name == in.OutboxName &&
		ob.Spec.IdempotencyKey == in.IdempotencyKey
}

// consistent tells whether an outbox is one that the operator could have made.
func consistent(ob *v1alpha1.NotificationOutbox) bool {
	owner := metav1.GetControllerOfNoCopy(ob)
	id := OfOutbox(ob)
	return owner != nil && owner.Kind == v1alpha1.KindWorkItem && owner.UID == ob.Spec.WorkItemRef.UID &&
		id.Name() == ob.Name && id.Key() == ob.Spec.IdempotencyKey &&
		Digest(ob.Spec.Payload.Body) == ob.Spec.PayloadDigest
}

// stamp is a time as the API keeps it: UTC, in whole seconds.
func stamp(t time.Time) *metav1.Time {
	return &metav1.Time{Time: t.UTC().Truncate(time.Second)}
}

// stampUp is a time that must not be earlier than t: rounded up to a whole second.
func stampUp(t time.Time) *metav1.Time {
	return stamp(t.Add(time.Second - time.Nanosecond))
}
