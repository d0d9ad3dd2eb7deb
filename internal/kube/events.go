// SPDX-FileCopyrightText: The WorkItem Operator Authors
// SPDX-License-Identifier: Apache-2.0

package kube

import (
	"fmt"
	"strings"

	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/tools/events"
)

// maxNote is the longest note, in bytes, that the API server takes on an Event of
// events.k8s.io/v1. It refuses a longer one, and the Event is lost.
const maxNote = 1024

// Recorder records Events whose notes always fit.
type Recorder struct {
	// Events takes the Events.
	Events events.EventRecorder
}

// Eventf records an Event, with its note shortened if need be; see
// events.EventRecorder.
func (r Recorder) Eventf(regarding, related runtime.Object, eventtype, reason, action, note string, args ...any) {
	text := fmt.Sprintf(note, args...)
	if len(text) > maxNote {
		text = strings.ToValidUTF8(text[:maxNote-len("…")], "") + "…"
	}
	r.Events.Eventf(regarding, related, eventtype, reason, action, "%s", text)
}
