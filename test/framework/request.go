// SPDX-FileCopyrightText: The WorkItem Operator Authors
// SPDX-License-Identifier: Apache-2.0

package framework

import (
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"slices"
	"strings"
	"time"
)

// Request is one request of a manager to the API server.
type Request struct {
	// Time is when the manager made it.
	Time time.Time
	// Verb is get, list, watch, create, update, patch or delete.
	Verb string
	// Resource is the resource, with its subresource: workitems/status.
	Resource string
	// Namespace and Name are the object's. For a create, the name is that in the body.
	Namespace, Name string
	// Body is the body of a write.
	Body []byte
	// Code is the status that the API server answered; 0 while it has not, or if the
	// request never reached it. What a fault makes of it does not count.
	Code int
}

// Write tells whether the request is a write, Events apart.
func (r *Request) Write() bool {
	return r.Resource != "events" && slices.Contains([]string{"create", "update", "patch", "delete"}, r.Verb)
}

// String is the request in one line.
func (r *Request) String() string {
	return fmt.Sprintf("%s %s %s/%s -> %d", r.Verb, r.Resource, r.Namespace, r.Name, r.Code)
}

// Decode reads the body of a write into an object.
func (r *Request) Decode(into any) error { return json.Unmarshal(r.Body, into) }

// Match selects requests.
type Match func(r *Request) bool

// Is matches a verb and a resource, such as update and workitems/status.
func Is(verb, resource string) Match {
	return func(r *Request) bool { return r.Verb == verb && r.Resource == resource }
}

// AnyWrite matches every write but those of Events.
func AnyWrite(r *Request) bool { return r.Write() }

// AnyRead matches every get and list.
func AnyRead(r *Request) bool { return r.Verb == "get" || r.Verb == "list" }

// And matches what both match.
func (m Match) And(other Match) Match {
	return func(r *Request) bool { return m(r) && other(r) }
}

// Named matches requests for an object of this name.
func Named(name string) Match { return func(r *Request) bool { return r.Name == name } }

// BodyHas matches writes whose body contains a text.
func BodyHas(text string) Match {
	return func(r *Request) bool { return bytes.Contains(r.Body, []byte(text)) }
}

// parse reads a request, and gives it a body that can be read once more.
func parse(req *http.Request) (*Request, error) {
	r := &Request{Time: time.Now()}
	parts := strings.Split(strings.Trim(req.URL.Path, "/"), "/")
	switch {
	case len(parts) > 2 && parts[0] == "api":
		parts = parts[2:]
	case len(parts) > 3 && parts[0] == "apis":
		parts = parts[3:]
	default:
		r.Verb, r.Resource = "discover", req.URL.Path
		return r, nil
	}
	if len(parts) > 2 && parts[0] == "namespaces" {
		r.Namespace, parts = parts[1], parts[2:]
	}
	r.Resource = parts[0]
	if len(parts) > 1 {
		r.Name = parts[1]
	}
	if len(parts) > 2 {
		r.Resource += "/" + parts[2]
	}
	r.Verb = verbOf(req, r.Name)
	if req.Body == nil || req.Body == http.NoBody {
		return r, nil
	}
	body, err := io.ReadAll(req.Body)
	if err != nil {
		return nil, fmt.Errorf("reading the body of a request: %w", err)
	}
	_ = req.Body.Close()
	req.Body = io.NopCloser(bytes.NewReader(body))
	r.Body = body
	if r.Name == "" {
		var named struct {
			Metadata struct {
				Name string `json:"name"`
			} `json:"metadata"`
		}
		if json.Unmarshal(body, &named) == nil {
			r.Name = named.Metadata.Name
		}
	}
	return r, nil
}

func verbOf(req *http.Request, name string) string {
	switch req.Method {
	case http.MethodPost:
		return "create"
	case http.MethodPut:
		return "update"
	case http.MethodPatch:
		return "patch"
	case http.MethodDelete:
		return "delete"
	}
	switch query := req.URL.Query(); {
	case query.Get("watch") == "true" || query.Get("watch") == "1":
		return "watch"
	case name == "":
		return "list"
	}
	return "get"
}
