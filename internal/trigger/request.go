// SPDX-FileCopyrightText: The WorkItem Operator Authors
// SPDX-License-Identifier: Apache-2.0

package trigger

import (
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"slices"
	"strings"
	"time"

	"k8s.io/apimachinery/pkg/util/validation"
)

const (
	// MaxWait is the longest time that a caller may wait for the ends of notifications.
	MaxWait = 5 * time.Minute
	// maxBody is the longest body, in bytes, that is read. The pass needs none.
	maxBody = 4096
)

// order is what a caller asks for.
type order struct {
	// namespace is the one to pass over; empty is all that are looked after.
	namespace string
	// wait is how long to wait for the ends of the notifications.
	wait time.Duration
}

// parse reads a request. watched are the namespaces that are looked after; empty is all.
func parse(w http.ResponseWriter, req *http.Request, watched []string) (order, *problem) {
	query, err := url.ParseQuery(req.URL.RawQuery)
	if err != nil {
		return order{}, refuse(http.StatusBadRequest, "the query cannot be read: "+err.Error())
	}
	var o order
	for name, values := range query {
		if len(values) != 1 {
			return order{}, refuse(http.StatusBadRequest, fmt.Sprintf("give the parameter %q once", name))
		}
		var p *problem
		switch name {
		case "namespace":
			o.namespace, p = namespace(values[0], watched)
		case "wait":
			o.wait, p = wait(values[0])
		default:
			p = refuse(http.StatusBadRequest, fmt.Sprintf("there is no parameter %q: write namespace or wait", name))
		}
		if p != nil {
			return order{}, p
		}
	}
	return o, empty(w, req)
}

func namespace(value string, watched []string) (string, *problem) {
	if problems := validation.IsDNS1123Label(value); len(problems) > 0 {
		return "", refuse(http.StatusBadRequest, fmt.Sprintf("%q is not the name of a namespace: %s", value, strings.Join(problems, ", ")))
	}
	if len(watched) > 0 && !slices.Contains(watched, value) {
		return "", refuse(http.StatusBadRequest, fmt.Sprintf("this operator does not look after namespace %s, only after %s", value, strings.Join(watched, ", ")))
	}
	return value, nil
}

func wait(value string) (time.Duration, *problem) {
	d, err := time.ParseDuration(value)
	if err != nil || d < 0 || d > MaxWait {
		return 0, refuse(http.StatusBadRequest, fmt.Sprintf("wait is %q: write a duration from 0s to %s, such as 30s", value, MaxWait))
	}
	return d, nil
}

// empty reads the body, which says nothing.
func empty(w http.ResponseWriter, req *http.Request) *problem {
	body, err := io.ReadAll(http.MaxBytesReader(w, req.Body, maxBody))
	if _, large := errors.AsType[*http.MaxBytesError](err); large {
		return refuse(http.StatusRequestEntityTooLarge, fmt.Sprintf("the body is larger than %d bytes: send none", maxBody))
	}
	if err != nil {
		return refuse(http.StatusBadRequest, "the body cannot be read: send none")
	}
	if text := strings.TrimSpace(string(body)); text != "" && text != "{}" {
		return refuse(http.StatusBadRequest, "the pass takes no body: say what you want in the query, as namespace and wait")
	}
	return nil
}
