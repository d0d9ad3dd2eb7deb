// SPDX-FileCopyrightText: The WorkItem Operator Authors
// SPDX-License-Identifier: Apache-2.0

package delivery

import (
	"bytes"
	"encoding/base64"
	"encoding/json"
	"html"
	"net/url"
	"slices"
	"strings"
)

// minPart is the shortest part of a secret URL, in bytes, that is a secret of
// its own. Shorter ones ("v1", "api") are words of every error message.
const minPart = 6

// formsOf gives the spellings in which a secret may come back.
func formsOf(secret string) []string {
	if len(secret) < minSecret {
		return []string{secret}
	}
	query := url.QueryEscape(secret)
	forms := []string{
		secret,
		query,
		strings.ReplaceAll(query, "+", "%20"),
		url.PathEscape(secret),
		(&url.URL{Path: secret}).EscapedPath(),
		html.EscapeString(secret),
	}
	forms = append(forms, jsonForms(secret)...)
	return append(forms, base64Forms(secret)...)
}

// jsonForms covers encoders that escape <, > and & and those that escape /.
func jsonForms(secret string) []string {
	var forms []string
	for _, escapeHTML := range []bool{true, false} {
		var buf bytes.Buffer
		encoder := json.NewEncoder(&buf)
		encoder.SetEscapeHTML(escapeHTML)
		if encoder.Encode(secret) != nil {
			continue
		}
		form := strings.Trim(strings.TrimSpace(buf.String()), `"`)
		forms = append(forms, form, strings.ReplaceAll(form, "/", `\/`))
	}
	return forms
}

// base64Forms gives the part of the encoding that does not depend on what
// stands before and after the secret, for each of the three ways in which it
// can lie in a longer text ("user:secret").
func base64Forms(secret string) []string {
	var forms []string
	for _, encoding := range []*base64.Encoding{base64.RawStdEncoding, base64.RawURLEncoding} {
		for before := range 3 {
			encoded := encoding.EncodeToString(append(make([]byte, before), secret...))
			// A character holds six bits: those that reach into the bytes
			// before, or lack bits of the bytes after, may differ.
			begin := (before*8 + 5) / 6
			end := (before + len(secret)) * 8 / 6
			if form := encoded[begin:end]; len(form) >= 2*minSecret {
				forms = append(forms, form)
			}
		}
	}
	return forms
}

// URLSecrets gives the parts of u that would give it away: the whole, without
// its scheme, the host, path and query, each longer part of these, and what
// UserSecrets gives. Use it for a URL that is itself a secret.
func URLSecrets(u *url.URL) []string {
	plain := *u
	plain.User = nil
	whole := plain.String()
	secrets := []string{u.String(), whole, strings.TrimPrefix(whole, plain.Scheme+"://")}

	main := []string{u.Host, u.Hostname(), u.RequestURI(), u.EscapedPath(), u.Path, u.RawQuery}
	secrets = append(secrets, atLeast(minSecret, main)...)

	parts := slices.Concat(strings.Split(u.EscapedPath(), "/"), strings.Split(u.Path, "/"))
	for name, values := range u.Query() {
		parts = append(parts, name)
		parts = append(parts, values...)
	}
	secrets = append(secrets, atLeast(minPart, parts)...)
	return append(secrets, UserSecrets(u)...)
}

// UserSecrets gives what is secret in the user information of u, whether u
// itself is a secret or not: the password, or a user without a password, which
// then is the credential; each as it stands in u, plain, and as it stands in an
// Authorization header. It is empty for a URL without a user.
func UserSecrets(u *url.URL) []string {
	if u.User == nil {
		return nil
	}
	name := u.User.Username()
	password, _ := u.User.Password()
	if name == "" && password == "" {
		return nil
	}
	secret := password
	if secret == "" {
		secret = name
	}
	pair := name + ":" + password
	return []string{u.User.String(), pair, secret, base64.StdEncoding.EncodeToString([]byte(pair))}
}

// atLeast leaves out what is shorter than least bytes.
func atLeast(least int, list []string) []string {
	return slices.DeleteFunc(list, func(s string) bool { return len(s) < least })
}
