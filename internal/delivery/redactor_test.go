// SPDX-FileCopyrightText: The WorkItem Operator Authors
// SPDX-License-Identifier: Apache-2.0

package delivery_test

import (
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"html"
	"io"
	"net/url"
	"strings"
	"testing"
	"testing/iotest"
	"unicode"
	"unicode/utf8"

	"github.com/workitem-operator/workitem-operator/internal/delivery"
)

const secret = `s3cr3t/<Pa+ss>&"w ö\rd"==`

func TestRedactorFindsEverySpelling(t *testing.T) {
	t.Parallel()
	marshalled, err := json.Marshal(secret)
	if err != nil {
		t.Fatal(err)
	}
	inJSON := strings.Trim(string(marshalled), `"`)
	cases := map[string]string{
		"plain":                    secret,
		"in the middle":            "before " + secret + " after",
		"twice":                    secret + secret,
		"upper case":               strings.ToUpper("s3cr3t/<Pa+ss>&\"w ") + "ö\\RD\"==",
		"in a query":               "?a=" + url.QueryEscape(secret),
		"in a query, lower case":   strings.ToLower(url.QueryEscape(secret)),
		"in a query, with %20":     strings.ReplaceAll(url.QueryEscape(secret), "+", "%20"),
		"in a path":                "/" + url.PathEscape(secret),
		"in JSON":                  `{"a":"` + inJSON + `"}`,
		"in JSON, slashes escaped": strings.ReplaceAll(inJSON, "/", `\/`),
		"in HTML":                  html.EscapeString(secret),
		"in base64":                base64.StdEncoding.EncodeToString([]byte(secret)),
		"in base64 for URLs":       base64.RawURLEncoding.EncodeToString([]byte(secret)),
		"in base64, one before":    base64.StdEncoding.EncodeToString([]byte("u" + secret + "v")),
		"in base64, two before":    base64.StdEncoding.EncodeToString([]byte("u:" + secret + "vw")),
		"in base64, three before":  base64.StdEncoding.EncodeToString([]byte("ab:" + secret)),
		"split by a control":       secret[:5] + "\x00" + secret[5:],
		"split by an invisible":    secret[:5] + "\u200b" + secret[5:],
		"split by invalid UTF-8":   secret[:5] + "\xff" + secret[5:],
		"a line break for a space": strings.ReplaceAll(secret, " ", "\n"),
		"a tab for a space":        strings.ReplaceAll(secret, " ", "\t"),
	}
	redactor := delivery.NewRedactor(secret)
	for name, text := range cases {
		got := redactor.Text(text)
		if !strings.Contains(got, delivery.Redacted) {
			t.Errorf("%s: %q became %q", name, text, got)
		}
		if strings.Contains(strings.ToLower(got), "s3cr3t") {
			t.Errorf("%s: %q is left", name, got)
		}
	}
}

func TestRedactor(t *testing.T) {
	t.Parallel()
	cases := map[string]struct {
		secrets []string
		text    string
		want    string
	}{
		"nothing to hide":                  {nil, "plain text", "plain text"},
		"an empty secret":                  {[]string{"", "  ", "\n"}, "plain text", "plain text"},
		"a secret with a line break after": {[]string{"hunter22\n"}, "is hunter22.", "is [REDACTED]."},
		"secrets that touch":               {[]string{"aaaabbbb", "ccccdddd"}, "aaaabbbbccccdddd", "[REDACTED]"},
		"secrets that overlap":             {[]string{"abcdef", "defghi"}, "xabcdefghix", "x[REDACTED]x"},
		"a secret within another":          {[]string{"cdef", "abcdefgh"}, "xabcdefghx", "x[REDACTED]x"},
		"a secret that overlaps itself":    {[]string{"abab"}, "xabababx", "x[REDACTED]x"},
		"a short secret":                   {[]string{"pw"}, "the pw is pw", "[REDACTED]"},
		"a short secret that is not there": {[]string{"xyz"}, "the text", "the text"},
		"control characters":               {nil, "a\x00b\x1b[31mc\x7fd\u0085e", "ab[31mcd e"},
		"line breaks":                      {nil, "a\r\nb\tc\u2028d", "a  b c d"},
		"text direction":                   {nil, "a\u202eb\u2066c\u200fd", "abcd"},
		"invalid UTF-8":                    {nil, "a\xff\xc3b", "ab"},
		"other scripts":                    {nil, "Grüße 世界 🎉", "Grüße 世界 🎉"},
	}
	for name, tc := range cases {
		if got := delivery.NewRedactor(tc.secrets...).Text(tc.text); got != tc.want {
			t.Errorf("%s: got %q, want %q", name, got, tc.want)
		}
	}
	var none *delivery.Redactor
	if got := none.Text("a\x00b"); got != "ab" {
		t.Errorf("no redactor: %q", got)
	}
}

// The length is bounded after the redaction: cut before it, a secret would
// leave its beginning.
func TestRedactorBounds(t *testing.T) {
	t.Parallel()
	redactor := delivery.NewRedactor("0123456789abcdef")
	for pad := delivery.MaxText - 20; pad <= delivery.MaxText; pad++ {
		got := redactor.Text(strings.Repeat("x", pad) + "0123456789abcdef")
		if len(got) > delivery.MaxText || strings.Contains(got, "0") {
			t.Errorf("padding %d: %d bytes, end %q", pad, len(got), got[pad-5:])
		}
	}
	for pad := range 4 {
		got := redactor.Text(strings.Repeat("x", pad) + strings.Repeat("🎉", delivery.MaxText))
		if len(got) > delivery.MaxText || len(got) < delivery.MaxText-3 || !utf8.ValidString(got) {
			t.Errorf("padding %d: %d bytes, valid %t", pad, len(got), utf8.ValidString(got))
		}
	}
}

func TestRedactorExcerpt(t *testing.T) {
	t.Parallel()
	const token = "token-0123456789"
	redactor := delivery.NewRedactor(token)
	if got := redactor.Excerpt(strings.NewReader("a " + token + " b")); got != "a [REDACTED] b" {
		t.Errorf("short: %q", got)
	}
	// Everything before the secret vanishes, so that what the read limit cuts
	// would come within the length that is kept.
	const limit = 16 << 10
	for cut := range token {
		body := strings.Repeat("\x00", limit-cut) + token
		if got := redactor.Excerpt(strings.NewReader(body)); got != "" {
			t.Errorf("cut after %d: %q", cut, got)
		}
	}
	broken := io.MultiReader(strings.NewReader("a "+token[:9]), iotest.ErrReader(errors.New("reset")))
	if got := redactor.Excerpt(broken); got != "a " {
		t.Errorf("broken off: %q", got)
	}
	endless := &counter{}
	if got := redactor.Excerpt(endless); len(got) != delivery.MaxText {
		t.Errorf("endless: %d bytes", len(got))
	}
	if endless.n > 2*limit {
		t.Errorf("read %d bytes of an endless body", endless.n)
	}
}

type counter struct{ n int }

func (c *counter) Read(p []byte) (int, error) {
	for i := range p {
		p[i] = 'x'
	}
	c.n += len(p)
	return len(p), nil
}

func TestRedactorError(t *testing.T) {
	t.Parallel()
	inner := &url.Error{Op: "Post", URL: "https://hooks.example.com/T0/B0", Err: errors.New("no such thing")}
	for name, err := range map[string]error{
		"plain":   inner,
		"wrapped": fmt.Errorf("sending to %w", inner),
		"twice":   &url.Error{Op: "Post", URL: "https://a.example/x", Err: inner},
	} {
		if got := (*delivery.Redactor)(nil).Error(err); got != "no such thing" {
			t.Errorf("%s: %q", name, got)
		}
	}
	if got := delivery.NewRedactor("hunter22").Error(errors.New("is hunter22")); got != "is [REDACTED]" {
		t.Errorf("a secret: %q", got)
	}
	if got := delivery.NewRedactor().Error(nil); got != "" {
		t.Errorf("no error: %q", got)
	}
}

func TestURLSecrets(t *testing.T) {
	t.Parallel()
	u, err := url.Parse("https://user:pa%2Fss@hooks.example.com:8443/services/T0ABCDEF/B0/xyz%20zy?token=q1w2e3r4&v=1")
	if err != nil {
		t.Fatal(err)
	}
	redactor := delivery.NewRedactor(delivery.URLSecrets(u)...)
	for _, text := range []string{
		u.String(), "hooks.example.com", "hooks.example.com:8443", "T0ABCDEF", "xyz zy", "xyz%20zy", "q1w2e3r4", "pa/ss",
		u.RequestURI(), u.RawQuery, "//hooks.example.com:8443/services/T0ABCDEF/B0/xyz%20zy", base64.StdEncoding.EncodeToString([]byte("user:pa/ss")),
	} {
		if got := redactor.Text("<" + text + ">"); !strings.Contains(got, delivery.Redacted) || strings.Contains(got, text) {
			t.Errorf("%q became %q", text, got)
		}
	}
	if got := redactor.Text("v1 B0 / no such host"); got != "v1 B0 / no such host" {
		t.Errorf("too much: %q", got)
	}
}

func TestUserSecrets(t *testing.T) {
	t.Parallel()
	cases := map[string]struct {
		url    string
		hidden []string
		shown  []string
	}{
		"nobody":         {"https://example.com/", nil, []string{"https://example.com/"}},
		"a password":     {"https://team:hunter22@example.com/", []string{"hunter22", "dGVhbTpodW50ZXIyMg=="}, []string{"team", "example.com"}},
		"only a user":    {"https://ghp_token@example.com/", []string{"ghp_token", "Z2hwX3Rva2VuOg=="}, []string{"example.com"}},
		"an empty user":  {"https://@example.com/", nil, []string{"example.com"}},
		"empty password": {"https://ghp_token:@example.com/", []string{"ghp_token"}, []string{"example.com"}},
	}
	for name, tc := range cases {
		u, err := url.Parse(tc.url)
		if err != nil {
			t.Fatal(err)
		}
		redactor := delivery.NewRedactor(delivery.UserSecrets(u)...)
		for _, text := range tc.hidden {
			if got := redactor.Text(text); got != delivery.Redacted {
				t.Errorf("%s: %q became %q", name, text, got)
			}
		}
		for _, text := range tc.shown {
			if got := redactor.Text(text); got != text {
				t.Errorf("%s: %q became %q", name, text, got)
			}
		}
	}
}

func FuzzRedactor(f *testing.F) {
	f.Add("hunter22", "the password is hunter22")
	f.Add("pw", "pw")
	f.Add("\xff\x00abcd", "abcd")
	f.Add("İ", "i̇")
	f.Fuzz(func(t *testing.T, secret, text string) {
		redactor := delivery.NewRedactor(secret)
		for _, got := range []string{redactor.Text(text + secret + text), redactor.Excerpt(strings.NewReader(text + secret))} {
			if len(got) > delivery.MaxText || !utf8.ValidString(got) || strings.ContainsFunc(got, func(c rune) bool { return !unicode.IsPrint(c) }) {
				t.Errorf("not fit to print: %q", got)
			}
			// What replaces it must not join what stood before and after, and may
			// itself be cut.
			left := strings.ReplaceAll(got, delivery.Redacted, "\x00")
			want := strings.TrimSpace(secret)
			if len(want) >= 4 && strings.Trim(want, "[REDACT]") != "" && strings.Contains(left, want) {
				t.Errorf("secret %q is left in %q", want, got)
			}
		}
	})
}
