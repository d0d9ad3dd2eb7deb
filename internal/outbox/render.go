// SPDX-FileCopyrightText: The WorkItem Operator Authors
// SPDX-License-Identifier: Apache-2.0

package outbox

import (
	"bytes"
	"encoding/json"
	"slices"
	"time"
	"unicode/utf8"

	"github.com/workitem-operator/workitem-operator/api/v1alpha1"
)

// MaxBodyBytes is the largest body that is rendered: Standard Webhooks advises
// less than 20 kB.
const MaxBodyBytes = 20000

// The types of the events that are sent, and their content type (CloudEvents 1.0,
// structured mode, JSON format).
const (
	// EventOverdue is the type of the event for the transition Overdue.
	EventOverdue = "dev.workitem.overdue.v1"
	// EventEscalated is the type of the event for the transition Escalated.
	EventEscalated = "dev.workitem.escalated.v1"
	// ContentType is the content type of every body.
	ContentType = "application/cloudevents+json; charset=utf-8"
)

// event is a CloudEvents 1.0 event in the order in which it is written.
type event struct {
	SpecVersion     string    `json:"specversion"`
	ID              string    `json:"id"`
	Source          string    `json:"source"`
	Type            string    `json:"type"`
	Subject         string    `json:"subject"`
	Time            string    `json:"time,omitempty"`
	DataContentType string    `json:"datacontenttype"`
	Data            eventData `json:"data"`
}

type eventData struct {
	Namespace       string `json:"namespace"`
	Name            string `json:"name"`
	UID             string `json:"uid"`
	Title           string `json:"title"`
	Description     string `json:"description"`
	Assignee        string `json:"assignee"`
	Priority        string `json:"priority"`
	DueTime         string `json:"dueTime"`
	Transition      string `json:"transition"`
	Occurrence      int32  `json:"occurrence"`
	EscalationLevel int32  `json:"escalationLevel"`
}

// Render is the request body of an intent: one CloudEvents event. The description
// is shortened until the body fits into MaxBodyBytes; nothing else ever is. It is
// valid JSON whatever the title holds, because it is encoded and never pasted
// together.
func Render(item *v1alpha1.WorkItem, in *v1alpha1.Intent) string {
	ev := newEvent(item, in)
	body := encode(ev)
	if len(body) <= MaxBodyBytes {
		return body
	}
	const ellipsis = "…"
	full := ev.Data.Description
	var cuts []int
	for i := range full {
		cuts = append(cuts, i)
	}
	if len(cuts) == 0 {
		return body // There is nothing to shorten; admission keeps the rest far below the limit.
	}
	// The first cut that does not fit; the one before it is the longest that does.
	i, _ := slices.BinarySearchFunc(cuts, MaxBodyBytes, func(cut, limit int) int {
		ev.Data.Description = full[:cut] + ellipsis
		if len(encode(ev)) <= limit {
			return -1
		}
		return 1
	})
	ev.Data.Description = full[:cuts[max(i-1, 0)]] + ellipsis
	return encode(ev)
}

func newEvent(item *v1alpha1.WorkItem, in *v1alpha1.Intent) event {
	ev := event{
		SpecVersion:     "1.0",
		ID:              in.IdempotencyKey,
		Source:          "/namespaces/" + item.Namespace + "/workitems/" + item.Name,
		Type:            EventOverdue,
		Subject:         item.Name,
		DataContentType: "application/json",
		Data: eventData{
			Namespace:       item.Namespace,
			Name:            item.Name,
			UID:             string(item.UID),
			Title:           valid(item.Spec.Title),
			Description:     valid(item.Spec.Description),
			Assignee:        valid(item.Spec.Assignee),
			Priority:        string(item.Spec.Priority),
			DueTime:         dueTime(item, in),
			Transition:      string(in.Transition),
			Occurrence:      in.Occurrence,
			EscalationLevel: in.EscalationLevel,
		},
	}
	if in.Transition == v1alpha1.TransitionEscalated {
		ev.Type = EventEscalated
	}
	if in.TransitionTime != nil {
		ev.Time = in.TransitionTime.UTC().Format(time.RFC3339)
	}
	return ev
}

// dueTime is the due time that was missed: for the current occurrence that is
// committed, and the user may have moved dueTime since.
func dueTime(item *v1alpha1.WorkItem, in *v1alpha1.Intent) string {
	due := item.Spec.DueTime
	if in.Occurrence == item.Status.Occurrence && item.Status.OverdueTime != nil {
		due = item.Status.OverdueTime
	}
	if due == nil {
		return ""
	}
	return due.UTC().Format(time.RFC3339)
}

// encode writes an event as JSON. Nothing is escaped for HTML: a body is no page,
// and escapes would make a readable title unreadable.
func encode(ev event) string {
	var b bytes.Buffer
	enc := json.NewEncoder(&b)
	enc.SetEscapeHTML(false)
	if err := enc.Encode(ev); err != nil {
		panic("encoding strings and numbers cannot fail: " + err.Error())
	}
	return string(bytes.TrimRight(b.Bytes(), "\n"))
}

func valid(s string) string {
	if utf8.ValidString(s) {
		return s
	}
	return string(bytes.ToValidUTF8([]byte(s), []byte("\uFFFD")))
}
