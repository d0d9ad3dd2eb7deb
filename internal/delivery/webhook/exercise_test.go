// SPDX-FileCopyrightText: The WorkItem Operator Authors
// SPDX-License-Identifier: Apache-2.0

package webhook_test

import (
	"net/netip"
	"testing"

	"github.com/workitem-operator/workitem-operator/internal/delivery"
	"github.com/workitem-operator/workitem-operator/internal/delivery/deliverytest"
	"github.com/workitem-operator/workitem-operator/internal/delivery/webhook"
)

// loopback opens what the tests listen on.
var loopback = delivery.NewGuard([]netip.Prefix{netip.MustParsePrefix("127.0.0.0/8")}, nil)

// key1 and key2 are 24 and 64 bytes long.
const (
	key1 = "whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw"
	key2 = "whsec_AAECAwQFBgcICQoLDA0ODxAREhMUFRYXGBkaGxwdHh8gISIjJCUmJygpKissLS4vMDEyMzQ1Njc4OTo7PD0+Pw=="
)

func newSender(t *testing.T, cfg webhook.Config) *webhook.Sender {
	t.Helper()
	if cfg.Guard == nil {
		cfg.Guard = loopback
	}
	sender, err := webhook.New(cfg)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(sender.Close)
	return sender
}

func TestSenderKeepsTheContract(t *testing.T) {
	t.Parallel()
	for _, tc := range []struct {
		dialect webhook.Dialect
		keys    deliverytest.Dialect
		wire    func(string) string
	}{
		{webhook.IETF, deliverytest.IETF, func(key string) string { return `"` + key + `"` }},
		{webhook.Raw, deliverytest.Raw, func(key string) string { return key }},
	} {
		t.Run(string(tc.dialect), func(t *testing.T) {
			t.Parallel()
			deliverytest.Exercise(t, deliverytest.Factory{
				Dialect: tc.keys,
				WireKey: tc.wire,
				New: func(t *testing.T, target deliverytest.Target) delivery.Sender {
					t.Helper()
					cfg := webhook.Config{
						URL: target.URL, URLIsSecret: target.URLIsSecret, CABundle: target.CABundle,
						Dialect: tc.dialect, SigningKeys: []string{key1},
					}
					if target.Credential != "" {
						cfg.Headers = []webhook.Header{{Name: "authorization", Value: "Bearer " + target.Credential + "\n", Secret: true}}
					}
					return newSender(t, cfg)
				},
			})
		})
	}
}
