// SPDX-FileCopyrightText: The WorkItem Operator Authors
// SPDX-License-Identifier: Apache-2.0

package api

import (
	"fmt"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

func TestGoodManifestsGetDefaults(t *testing.T) {
	for name, tt := range map[string]struct {
		kind kind
		spec string
		want string
		// but changes want, as a merge patch.
		but string
	}{
		"a title makes a work item": {
			kind: workItem,
			spec: `{title: x}`,
			want: `{title: x, priority: Normal, state: Active}`,
		},
		"what is said of a work item stays": {
			kind: workItem,
			spec: `{title: x, priority: Low, state: Cancelled, dueTime: "2026-12-01T10:00:00.000+01:00"}`,
			want: `{title: x, priority: Low, state: Cancelled, dueTime: "2026-12-01T10:00:00.000+01:00"}`,
		},
		"a url makes a provider": {
			kind: provider,
			spec: `{type: Webhook, webhook: {url: "https://hooks.example.com/ops"}}`,
			want: providerDefaults,
		},
		"empty policies are filled in": {
			kind: provider,
			spec: `{type: Webhook, webhook: {url: "https://hooks.example.com/ops"}, idempotency: {}, retry: {}}`,
			want: providerDefaults,
		},
		"null means the default": {
			kind: provider,
			spec: `{type: Webhook, webhook: {url: "https://hooks.example.com/ops"}, retry: null, timeout: null, maxInFlight: null}`,
			want: providerDefaults,
		},
		"a mode alone keeps the other defaults": {
			kind: provider,
			spec: `{type: Webhook, webhook: {url: "https://hooks.example.com/ops"}, idempotency: {mode: Keyed}}`,
			want: providerDefaults,
			but:  `{idempotency: {mode: Keyed}}`,
		},
		"a deadline of the default maxBackoff is just long enough": {
			kind: provider,
			spec: `{type: Webhook, webhook: {url: "https://hooks.example.com/ops"}, retry: {deadline: 10m}}`,
			want: providerDefaults,
			but:  `{retry: {deadline: 10m}}`,
		},
		"a short deadline goes with a short maxBackoff": {
			kind: provider,
			spec: `{type: Webhook, webhook: {url: "https://hooks.example.com/ops"}, retry: {deadline: 5m, maxBackoff: 1m}}`,
			want: providerDefaults,
			but:  `{retry: {deadline: 5m, maxBackoff: 1m}}`,
		},
	} {
		t.Run(name, func(t *testing.T) {
			manifest := parse(t, tt.kind.good)
			manifest["spec"] = parse(t, tt.spec)
			answer, err := tt.kind.create(t, encode(t, manifest), dryRun)
			if err != nil {
				t.Fatalf("refused: %v", err)
			}
			got := decode(t, answer)
			if diff := cmp.Diff(any(merged(parse(t, tt.want), parse(t, tt.but))), got["spec"]); diff != "" {
				t.Errorf("spec (-want +got):\n%s", diff)
			}
			if got["status"] != nil {
				t.Errorf("got status %v of a new object, want none", got["status"])
			}
		})
	}
}

// providerDefaults is the spec of the good provider as the API server completes it.
const providerDefaults = `
type: Webhook
webhook: {url: "https://hooks.example.com/ops"}
idempotency: {mode: None, dialect: IETF, window: 24h}
onAmbiguous: Retry
timeout: 10s
leaseDuration: 60s
retry: {deadline: 24h, initialBackoff: 1s, maxBackoff: 10m}
maxInFlight: 16
ttlAfterFinished: 168h
`

func TestLimitsThemselvesAreAccepted(t *testing.T) {
	fire, long := strings.Repeat("🔥", 256), strings.Repeat("x", 63)
	for name, tt := range map[string]struct {
		kind  kind
		patch string
	}{
		"a work item with everything": {workItem, `
spec:
  title: ` + fire + `
  description: "` + strings.Repeat("é", 4093) + `\t\n."
  dueTime: "1970-01-01T00:00:00Z"
  assignee: ` + strings.Repeat("x", 253) + `
  priority: Critical
  state: Completed
  notify: ` + list(16, `{providerName: p%d}`) + `
  escalations: [` + strings.Join([]string{
			escalation("0s"), escalation("1ms"), escalation("1.5s"), escalation("1m"), escalation("61s"),
			escalation("1h1m1s1ms"), escalation("87599h"), escalation("87600h"),
		}, ", ") + `]
`},
		"a work item due in the last year":   {workItem, `spec: {dueTime: "9999-12-31T23:59:59Z"}`},
		"a provider's name as long as it is": {workItem, `spec: {notify: [{providerName: ` + long + `}, {providerName: "0"}, {providerName: a--b}]}`},
		"a work item with dots in its name":  {workItem, `metadata: {name: ` + strings.Repeat("x.", 126) + `x}`},
		"a provider with a name of 63":       {provider, `metadata: {name: ` + long + `}`},
		"a provider with everything": {provider, `
spec:
  webhook:
    url: "HTTPS://hooks.example.com:65535/a%20b/?team=sre&x=%23@"
    signingSecretRef: {name: ops.webhook, key: whsec_1.a-B}
    tls: {caSecretRef: {name: ca, key: ca.crt}}
    headers: ` + list(32, `{name: "X-Team-!#$%%&'*+.^_|~%d", value: "a: b\t~"}`) + `
  idempotency: {mode: Keyed, dialect: Raw, window: 87600h}
  onAmbiguous: Hold
  timeout: 1h
  leaseDuration: 1h
  retry: {deadline: 87600h, initialBackoff: 87600h, maxBackoff: 87600h}
  maxInFlight: 1000
  suspend: true
  ttlAfterFinished: 87600h
`},
		"a provider with the longest headers": {provider, `
spec:
  webhook:
    headers: ` + list(32, `{name: `+strings.Repeat("X", 126)+`%02d, value: "`+strings.Repeat("~", 4096)+`"}`) + `
`},
		"a provider with the least of everything": {provider, `
spec:
  webhook: {url: "http://a"}
  idempotency: {window: 1s}
  timeout: 100ms
  leaseDuration: 5s
  retry: {deadline: 1s, initialBackoff: 100ms, maxBackoff: 100ms}
  maxInFlight: 1
  ttlAfterFinished: 10m
`},
		"a provider's url from a Secret": {provider, `
spec:
  webhook:
    url: null
    urlFrom: {secretKeyRef: {name: ops-webhook, key: url}}
    headers: [{name: Authorization, valueFrom: {secretKeyRef: {name: ops-webhook, key: token}}}]
`},
		"an address in the cluster": {provider, `spec: {webhook: {url: "http://hooks.ops.svc.cluster.local:8080"}}`},
		"an IPv6 address":           {provider, `spec: {webhook: {url: "https://[2001:db8::1]:8443/x"}}`},
		"an outbox with the longest key": {outbox, fmt.Sprintf(`
spec:
  workItemRef: {name: %s, uid: %s}
  transition: Escalated
  escalationLevel: 8
  occurrence: 2147483647
  providerName: %s
  idempotencyKey: "work-item:%[2]s:status:Escalated-8:2147483647:%[3]s"
  payload: {body: %[4]s}
`, strings.Repeat("x", 253), strings.Repeat("u", 64), long, strings.Repeat("🔥", 5120))},
	} {
		t.Run(name, func(t *testing.T) {
			if _, err := tt.kind.create(t, encode(t, tt.kind.with(t, tt.patch)), dryRun); err != nil {
				t.Errorf("refused: %v", err)
			}
		})
	}
}

func escalation(after string) string {
	return fmt.Sprintf(`{after: %s, notify: %s}`, after, list(16, `{providerName: p%d}`))
}

// TestTheLongestStatusIsAccepted guards the operator's own write: the rules on
// 2,048 intents together must stay within what one request may cost.
func TestTheLongestStatusIsAccepted(t *testing.T) {
	answer, name := workItem.created(t, encode(t, workItem.with(t, "")))
	const text = `
status:
  phase: Overdue
  notifications: `
	intent := fmt.Sprintf(`{outboxName: %s%%04d, idempotencyKey: %s, transition: Escalated, escalationLevel: 8, occurrence: 2147483647, `+
		`providerName: %s, transitionTime: "2026-12-01T09:00:00Z", phase: Superseded, reason: %s}`,
		strings.Repeat("x", 249), strings.Repeat("k", 168), strings.Repeat("p", 63), strings.Repeat("R", 40))
	body := encode(t, merged(decode(t, answer), parse(t, text+list(2048, intent))))
	if _, err := workItem.update(t, body, nil, name, "status"); err != nil {
		t.Errorf("%d bytes were refused: %v", len(body), err)
	}
}
