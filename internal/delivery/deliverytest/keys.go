// SPDX-FileCopyrightText: The WorkItem Operator Authors
// SPDX-License-Identifier: Apache-2.0

package deliverytest

import (
	"crypto/sha256"
	"net/http"
	"strings"

	"github.com/dunglas/httpsfv"
)

// entry is what a store of keys knows of one key.
type entry struct {
	fingerprint [sha256.Size]byte
	finished    bool
	status      int
	body        string
}

// keyStore is an endpoint's memory of idempotency keys. The endpoint's mutex
// guards it.
type keyStore struct {
	dialect Dialect
	entries map[string]*entry
}

// admission is what the store says of a call: to be executed, or answered with
// status and body without the script being asked.
type admission struct {
	execute  bool
	replayed bool
	status   int
	body     string
}

// admit looks a call up, and takes its key if it is to be executed.
func (s *keyStore) admit(call *Call) admission {
	if s.dialect == None {
		return admission{execute: true}
	}
	key, ok := s.keyOf(call)
	if !ok {
		return admission{status: http.StatusBadRequest, body: "an idempotency key is required"}
	}
	fingerprint := sha256.Sum256(call.Body)
	known := s.entries[key]
	if known == nil {
		s.entries[key] = &entry{fingerprint: fingerprint}
		return admission{execute: true}
	}
	// The payload is compared before anything is said about progress: a client
	// that waits for a call that was never its own would wait in vain.
	if conflict := s.conflict(); conflict != 0 && known.fingerprint != fingerprint {
		return admission{status: conflict, body: "the idempotency key was used with another payload"}
	}
	if !known.finished {
		return admission{status: http.StatusConflict, body: "a call with this idempotency key is in progress"}
	}
	return admission{replayed: true, status: known.status, body: known.body}
}

// settle records how an executed call ended.
func (s *keyStore) settle(call *Call, answer Answer) {
	key, ok := s.keyOf(call)
	known := s.entries[key]
	if !ok || known == nil {
		return
	}
	status := answer.status()
	switch {
	case s.dialect == Raw && status != 0 && wasExecuted(answer):
		known.finished, known.status, known.body = true, status, answer.Body
	case answer.hasEffect() && isSuccess(status):
		known.finished, known.status, known.body = true, status, answer.Body
	case answer.hasEffect():
		// The effect stands although its answer was lost or was a failure:
		// what is kept is that it happened.
		known.finished, known.status = true, http.StatusOK
	default:
		delete(s.entries, key)
	}
}

// abandon forgets a call that ended with neither effect nor answer.
func (s *keyStore) abandon(call *Call) {
	if key, ok := s.keyOf(call); ok && s.dialect != None {
		delete(s.entries, key)
	}
}

// keyOf gives the key in the form that the dialect wants, if it is there.
func (s *keyStore) keyOf(call *Call) (string, bool) {
	switch s.dialect {
	case IETF:
		return unquote(call.WireKey)
	case Raw:
		return call.WireKey, call.WireKey != ""
	case SilentReplay:
		return call.Key, call.Key != ""
	case None:
	}
	return "", false
}

// conflict is the answer to a known key with another payload; 0 if it is not
// compared.
func (s *keyStore) conflict() int {
	switch s.dialect {
	case IETF:
		return http.StatusUnprocessableEntity
	case Raw:
		return http.StatusBadRequest
	case SilentReplay, None:
	}
	return 0
}

// wasExecuted tells whether a server of the Raw dialect had begun to execute
// the call: not if it refused it or had no room for it.
func wasExecuted(answer Answer) bool {
	status := answer.status()
	return answer.Effect || (status != http.StatusServiceUnavailable && (status < 400 || status > 499))
}

// unquote reads a structured-field string, RFC 9651 section 3.3.3.
func unquote(wire string) (string, bool) {
	item, err := httpsfv.UnmarshalItem([]string{wire})
	if err != nil {
		return "", false
	}
	key, ok := item.Value.(string)
	return key, ok && key != ""
}

// keyIn gives the key of a call, however the client wrote it.
func keyIn(header http.Header) string {
	if id := header.Get("Webhook-Id"); id != "" {
		return id
	}
	return strings.Trim(header.Get("Idempotency-Key"), `"`)
}
