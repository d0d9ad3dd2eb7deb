// SPDX-FileCopyrightText: The WorkItem Operator Authors
// SPDX-License-Identifier: Apache-2.0

package webhook_test

import (
	"encoding/base64"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/workitem-operator/workitem-operator/internal/delivery/webhook"
)

func keyOf(bytes int) string {
	return "whsec_" + base64.StdEncoding.EncodeToString([]byte(strings.Repeat("k", bytes)))
}

func TestParseSigningKeys(t *testing.T) {
	t.Parallel()
	cases := map[string]struct {
		value string
		want  []string // nil: an error
	}{
		"one":                  {key1, []string{key1}},
		"one in a file":        {"\n " + key1 + "\r\n", []string{key1}},
		"two":                  {key1 + " " + key2, []string{key1, key2}},
		"two lines":            {key1 + "\n" + key2 + "\n", []string{key1, key2}},
		"the shortest":         {keyOf(24), []string{keyOf(24)}},
		"the longest":          {keyOf(64), []string{keyOf(64)}},
		"too short":            {keyOf(23), nil},
		"too long":             {keyOf(65), nil},
		"none":                 {"", nil},
		"blank":                {" \n", nil},
		"three":                {key1 + " " + key2 + " " + key1, nil},
		"no prefix":            {strings.TrimPrefix(key1, "whsec_"), nil},
		"another prefix":       {strings.Replace(key1, "whsec_", "whsk_", 1), nil},
		"the prefix alone":     {"whsec_", nil},
		"not base64":           {"whsec_hunter22!hunter22!hunter22!hunter22", nil},
		"base64 without end":   {strings.TrimRight(key2, "="), nil},
		"the second is wrong":  {key1 + " hunter22", nil},
		"separated by a comma": {key1 + "," + key2, nil},
	}
	for name, tc := range cases {
		got, err := webhook.ParseSigningKeys(tc.value)
		if diff := cmp.Diff(tc.want, got); diff != "" {
			t.Errorf("%s (-want +got):\n%s", name, diff)
		}
		if (err != nil) != (tc.want == nil) {
			t.Errorf("%s: error %v", name, err)
		}
		if err == nil {
			continue
		}
		for field := range strings.FieldsSeq(tc.value) {
			if field != "whsec_" && strings.Contains(err.Error(), field) {
				t.Errorf("%s: the error shows the value: %v", name, err)
			}
		}
	}
}

func FuzzParseSigningKeys(f *testing.F) {
	f.Add(key1)
	f.Add(key1 + "\n" + key2)
	f.Add("whsec_ whsec_a")
	f.Fuzz(func(t *testing.T, value string) {
		keys, err := webhook.ParseSigningKeys(value)
		if (err == nil) != (len(keys) == 1 || len(keys) == 2) {
			t.Fatalf("%d keys and error %v", len(keys), err)
		}
		if err != nil {
			return
		}
		if _, err := webhook.New(webhook.Config{URL: "https://example.com/", SigningKeys: keys}); err != nil {
			t.Errorf("keys were parsed, but cannot be used: %v", err)
		}
	})
}

func TestNewRefuses(t *testing.T) {
	t.Parallel()
	const hidden = "hunter22"
	header := func(name, value string) webhook.Config {
		return webhook.Config{URL: "https://example.com/", Headers: []webhook.Header{{Name: name, Value: value, Secret: true}}}
	}
	cases := map[string]struct {
		cfg  webhook.Config
		says string
	}{
		"no URL":                   {webhook.Config{}, "URL"},
		"a relative URL":           {webhook.Config{URL: "/hunter22"}, "neither http nor https"},
		"another scheme":           {webhook.Config{URL: "file:///hunter22"}, "neither http nor https"},
		"no host":                  {webhook.Config{URL: "https:///hunter22"}, "no host"},
		"only a port":              {webhook.Config{URL: "https://:443/hunter22"}, "no host"},
		"opaque":                   {webhook.Config{URL: "https:hunter22"}, "no host"},
		"a broken escape":          {webhook.Config{URL: "https://example.com/%zzhunter22"}, "cannot be parsed"},
		"a broken port":            {webhook.Config{URL: "https://example.com:hunter22/"}, "cannot be parsed"},
		"a port out of range":      {webhook.Config{URL: "https://example.com:65536/hunter22"}, "port"},
		"a password that breaks":   {webhook.Config{URL: "https://user:hunter22#@example.com/"}, "cannot be parsed"},
		"a control character":      {webhook.Config{URL: "https://example.com/\x00hunter22"}, "cannot be parsed"},
		"no dialect of ours":       {webhook.Config{URL: "https://example.com/", Dialect: "Other"}, `"Other"`},
		"a bundle without a CA":    {webhook.Config{URL: "https://example.com/", CABundle: []byte(hidden)}, "CA bundle"},
		"no signing key":           {webhook.Config{URL: "https://example.com/", SigningKeys: []string{hidden}}, "signing key"},
		"three signing keys":       {webhook.Config{URL: "https://example.com/", SigningKeys: []string{key1, key2, key1}}, "signing keys"},
		"two keys in one":          {webhook.Config{URL: "https://example.com/", SigningKeys: []string{key1, key1 + " " + key2}}, "signing keys"},
		"a broken user agent":      {webhook.Config{URL: "https://example.com/", UserAgent: "a\nhunter22"}, "user agent"},
		"the key":                  {header("idempotency-key", hidden), "Idempotency-Key"},
		"the other key":            {header("X-IDEMPOTENCY-KEY", hidden), "X-Idempotency-Key"},
		"the id":                   {header("webhook-id", hidden), "Webhook-Id"},
		"the time":                 {header("Webhook-Timestamp", hidden), "Webhook-Timestamp"},
		"the signature":            {header("webhook-signature", hidden), "Webhook-Signature"},
		"the media type":           {header("content-type", hidden), "Content-Type"},
		"the coding":               {header("Content-Encoding", hidden), "Content-Encoding"},
		"the length":               {header("Content-Length", "1"), "Content-Length"},
		"the host":                 {header("host", hidden), "Host"},
		"the user agent":           {header("User-Agent", hidden), "User-Agent"},
		"the connection":           {header("Connection", "close"), "Connection"},
		"the transfer coding":      {header("transfer-encoding", "chunked"), "Transfer-Encoding"},
		"an upgrade":               {header("Upgrade", "websocket"), "Upgrade"},
		"an expectation":           {header("Expect", "100-continue"), "Expect"},
		"trailers":                 {header("Trailer", "X-A"), "Trailer"},
		"no header name":           {header("", hidden), `""`},
		"a broken header name":     {header("X Team", hidden), `"X Team"`},
		"a pseudo-header":          {header(":authority", hidden), `":authority"`},
		"a broken header value":    {header("X-Team", "a\r\nX-Other: hunter22"), "X-Team"},
		"credentials given twice":  {webhook.Config{URL: "https://user:hunter22@example.com/", Headers: []webhook.Header{{Name: "Authorization", Value: "Bearer hunter22"}}}, "Authorization"},
		"credentials in two lines": {webhook.Config{URL: "https://example.com/", Headers: []webhook.Header{{Name: "Authorization", Value: "a"}, {Name: "authorization", Value: hidden}}}, "Authorization"},
	}
	for name, tc := range cases {
		tc.cfg.URLIsSecret = true
		sender, err := webhook.New(tc.cfg)
		if err == nil || sender != nil {
			t.Errorf("%s: accepted", name)
			continue
		}
		if !strings.Contains(err.Error(), tc.says) {
			t.Errorf("%s: the error does not say %q: %v", name, tc.says, err)
		}
		if strings.Contains(err.Error(), hidden) || strings.Contains(err.Error(), "example.com") {
			t.Errorf("%s: the error shows too much: %v", name, err)
		}
	}
}

func TestNewAccepts(t *testing.T) {
	t.Parallel()
	for _, url := range []string{
		"https://example.com", "HTTPS://EXAMPLE.COM/a", " https://example.com/a\n", "http://svc.ns.svc.cluster.local:8080/hook?a=b#c",
		"https://[2001:db8::1]:8443/", "https://bücher.example/", "https://user:pass@example.com/",
	} {
		if _, err := webhook.New(webhook.Config{URL: url}); err != nil {
			t.Errorf("%q: %v", url, err)
		}
	}
}
