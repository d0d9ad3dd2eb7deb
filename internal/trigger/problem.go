// SPDX-FileCopyrightText: The WorkItem Operator Authors
// SPDX-License-Identifier: Apache-2.0

package trigger

import (
	"encoding/json"
	"net/http"
)

// problem is what a refused request is answered (RFC 9457). The type is about:blank, so
// the title is that of the status.
type problem struct {
	Type   string `json:"type"`
	Title  string `json:"title"`
	Status int    `json:"status"`
	// Detail says what to do instead.
	Detail string `json:"detail"`
}

func (p *problem) Error() string { return p.Detail }

func refuse(status int, detail string) *problem {
	return &problem{Type: "about:blank", Title: http.StatusText(status), Status: status, Detail: detail}
}

func (p *problem) write(w http.ResponseWriter) {
	write(w, p.Status, "application/problem+json", p)
}

// write answers with a JSON document.
func write(w http.ResponseWriter, status int, contentType string, document any) {
	body, err := json.Marshal(document)
	if err != nil {
		panic("encoding strings and numbers cannot fail: " + err.Error())
	}
	w.Header().Set("Content-Type", contentType)
	w.Header().Set("Cache-Control", "no-store")
	w.WriteHeader(status)
	_, _ = w.Write(append(body, '\n'))
}
