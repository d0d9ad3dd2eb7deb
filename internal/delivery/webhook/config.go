// SPDX-FileCopyrightText: The WorkItem Operator Authors
// SPDX-License-Identifier: Apache-2.0

package webhook

import (
	"crypto/x509"
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"strconv"
	"strings"

	"golang.org/x/net/http/httpguts"

	"github.com/workitem-operator/workitem-operator/internal/delivery"
)

// Dialect is the form of the header Idempotency-Key.
type Dialect string

const (
	// IETF sends the key as a structured-field string, in quotes:
	// draft-ietf-httpapi-idempotency-key-header-07, RFC 9651 section 3.3.3.
	IETF Dialect = "IETF"
	// Raw sends the key as it is.
	Raw Dialect = "Raw"
)

// defaultUserAgent is sent if the configuration names none.
const defaultUserAgent = "workitem-operator"

// Header is one header of every request.
type Header struct {
	// Name is the field name, in any case.
	Name string
	// Value is the field value. White space around it is dropped, such as the
	// line break that a file, and so a Secret, often ends with.
	Value string
	// Secret keeps the value out of every text.
	Secret bool
}

// Config is what a Sender needs to know of one webhook.
type Config struct {
	// URL is an absolute http or https URL. A user and password in it are sent
	// as basic authentication and are secret in any case.
	URL string
	// URLIsSecret keeps the URL, its parts and the addresses behind its host
	// out of every text.
	URLIsSecret bool
	// Headers are sent along. They may repeat a name, but not take one that
	// the request needs for itself.
	Headers []Header
	// SigningKeys are Standard Webhooks keys as ParseSigningKeys gives them.
	// With none the request is not signed, with two it has two signatures.
	SigningKeys []string
	// CABundle holds the only certificate authorities that are trusted, in
	// PEM. If empty, those of the system are.
	CABundle []byte
	// Dialect is the form of the key; IETF if empty.
	Dialect Dialect
	// Guard decides which addresses may be reached; nil denies all that a
	// Guard denies by default.
	Guard *delivery.Guard
	// UserAgent is the product that the request names.
	UserAgent string
}

// reserved are the headers that belong to the request, to the connection or to
// the protocol, by their canonical names.
var reserved = map[string]bool{
	"Idempotency-Key": true, "X-Idempotency-Key": true,
	"Content-Type": true, "Content-Length": true, "Content-Encoding": true, "Host": true, "User-Agent": true,
	"Connection": true, "Keep-Alive": true, "Proxy-Connection": true, "Te": true, "Trailer": true,
	"Transfer-Encoding": true, "Upgrade": true, "Expect": true, "Http2-Settings": true,
}

// parseURL returns the URL to call. Its errors do not show the URL, nor the
// piece of it that is wrong: that could be a piece of a password.
func parseURL(raw string) (*url.URL, error) {
	u, err := url.Parse(strings.TrimSpace(raw))
	if err != nil {
		return nil, errors.New("the URL cannot be parsed")
	}
	switch {
	case u.Scheme != "http" && u.Scheme != "https":
		return nil, errors.New("the URL is neither http nor https")
	case u.Opaque != "" || u.Hostname() == "":
		return nil, errors.New("the URL has no host")
	}
	if port := u.Port(); port != "" {
		if _, err := strconv.ParseUint(port, 10, 16); err != nil {
			return nil, errors.New("the URL's port is not one")
		}
	}
	// A fragment is for the client alone.
	u.Fragment, u.RawFragment = "", ""
	return u, nil
}

// headersOf returns the headers that are the same in every request. Its errors
// name a header, but never show a value.
func (c Config) headersOf(u *url.URL) (http.Header, error) {
	out := http.Header{"User-Agent": {c.UserAgent}}
	if c.UserAgent == "" {
		out.Set("User-Agent", defaultUserAgent)
	}
	if !httpguts.ValidHeaderFieldValue(out.Get("User-Agent")) {
		return nil, errors.New("the user agent is not a valid header value")
	}
	if u.User != nil {
		basic := &http.Request{Header: out}
		password, _ := u.User.Password()
		basic.SetBasicAuth(u.User.Username(), password)
	}
	for _, header := range c.Headers {
		name := http.CanonicalHeaderKey(header.Name)
		value := strings.TrimSpace(header.Value)
		switch {
		case !httpguts.ValidHeaderFieldName(header.Name):
			return nil, fmt.Errorf("header %q is not a valid name", header.Name)
		case reserved[name] || strings.HasPrefix(name, "Webhook-"):
			return nil, fmt.Errorf("header %s is set by the operator", name)
		case !httpguts.ValidHeaderFieldValue(value):
			return nil, fmt.Errorf("header %s has a value that no header can have", name)
		case name == "Authorization" && out.Get(name) != "":
			return nil, errors.New("header Authorization is given twice, perhaps by a user in the URL")
		}
		out.Add(name, value)
	}
	return out, nil
}

// redactor returns what keeps the secrets of this configuration out of texts.
func (c Config) redactor(u *url.URL) *delivery.Redactor {
	secrets := delivery.UserSecrets(u)
	if c.URLIsSecret {
		secrets = append(secrets, c.URL)
		secrets = append(secrets, delivery.URLSecrets(u)...)
	}
	for _, header := range c.Headers {
		if !header.Secret {
			continue
		}
		secrets = append(secrets, header.Value)
		// "Bearer token": the token is a secret without its scheme too.
		if _, credentials, ok := strings.Cut(strings.TrimSpace(header.Value), " "); ok {
			secrets = append(secrets, credentials)
		}
	}
	for _, key := range c.SigningKeys {
		secrets = append(secrets, key, strings.TrimPrefix(key, keyPrefix))
	}
	return delivery.NewRedactor(secrets...)
}

// rootsOf returns the authorities to trust; nil stands for the system's.
func rootsOf(bundle []byte) (*x509.CertPool, error) {
	if len(bundle) == 0 {
		return nil, nil
	}
	pool := x509.NewCertPool()
	if !pool.AppendCertsFromPEM(bundle) {
		return nil, errors.New("the CA bundle holds no certificate in PEM")
	}
	return pool, nil
}
