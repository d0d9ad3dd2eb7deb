// SPDX-FileCopyrightText: The WorkItem Operator Authors
// SPDX-License-Identifier: Apache-2.0

package webhook

import (
	"encoding/base64"
	"errors"
	"fmt"
	"strings"

	standardwebhooks "github.com/standard-webhooks/standard-webhooks/libraries/go"

	"github.com/workitem-operator/workitem-operator/internal/delivery"
)

const (
	// keyPrefix marks a symmetric key of Standard Webhooks.
	keyPrefix = "whsec_"
	// minKey and maxKey bound a key's length in bytes, as the specification
	// does.
	minKey, maxKey = 24, 64
	// maxKeys is how many keys sign at once: two, during a rotation.
	maxKeys = 2
)

// ParseSigningKeys reads the value of a signing Secret: one or two keys,
// separated by white space, each whsec_ and the base64 of 24 to 64 bytes, as
// the Standard Webhooks specification has it. Its errors never show the value.
func ParseSigningKeys(value string) ([]string, error) {
	keys := strings.Fields(value)
	if len(keys) == 0 || len(keys) > maxKeys {
		return nil, fmt.Errorf("parsing the signing keys: there are %d, and must be one or two", len(keys))
	}
	for i, key := range keys {
		if err := checkKey(key); err != nil {
			return nil, fmt.Errorf("parsing signing key %d of %d: %w", i+1, len(keys), err)
		}
	}
	return keys, nil
}

func checkKey(key string) error {
	encoded, ok := strings.CutPrefix(key, keyPrefix)
	if !ok {
		return errors.New("it does not begin with " + keyPrefix)
	}
	secret, err := base64.StdEncoding.DecodeString(encoded)
	if err != nil {
		return errors.New("what follows " + keyPrefix + " is not base64")
	}
	if len(secret) < minKey || len(secret) > maxKey {
		return fmt.Errorf("it has %d bytes, and must have %d to %d", len(secret), minKey, maxKey)
	}
	return nil
}

// signer makes the signature header of a message.
type signer []*standardwebhooks.Webhook

func newSigner(keys []string) (signer, error) {
	if len(keys) == 0 {
		return nil, nil
	}
	if _, err := ParseSigningKeys(strings.Join(keys, " ")); err != nil {
		return nil, err
	}
	var s signer
	for i, key := range keys {
		hook, err := standardwebhooks.NewWebhook(key)
		if err != nil {
			return nil, fmt.Errorf("using signing key %d: not a key", i+1)
		}
		s = append(s, hook)
	}
	return s, nil
}

// sign returns one signature per key, separated by spaces; nothing without keys.
func (s signer) sign(msg delivery.Message) (string, error) {
	signatures := make([]string, 0, len(s))
	for _, hook := range s {
		signature, err := hook.Sign(msg.Key, msg.Time, msg.Body)
		if err != nil {
			return "", fmt.Errorf("signing: %w", err)
		}
		signatures = append(signatures, signature)
	}
	return strings.Join(signatures, " "), nil
}
