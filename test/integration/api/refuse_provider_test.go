// SPDX-FileCopyrightText: The WorkItem Operator Authors
// SPDX-License-Identifier: Apache-2.0

package api

import (
	"fmt"
	"strings"
)

var badProviders = map[string]refusal{
	"a spec must be there":                 {`spec: null`, "spec", "Required value"},
	"a name has no dots":                   {`metadata: {name: ops.webhook}`, "metadata.name", "must be a DNS label of at most 63 characters, without dots"},
	"a name has at most 63 letters":        {`metadata: {name: ` + strings.Repeat("x", 64) + `}`, "metadata.name", "must be a DNS label of at most 63 characters, without dots"},
	"a name is lower-case":                 {`metadata: {name: Ops}`, "metadata.name", "lower case"},
	"a type is required":                   {`spec: {type: null}`, "spec.type", "Required value"},
	"a type is one that exists":            {`spec: {type: Pigeon}`, "spec.type", `supported values: "Webhook"`},
	"a type is spelled with a capital":     {`spec: {type: webhook}`, "spec.type", `supported values: "Webhook"`},
	"the member of the type must be there": {`spec: {webhook: null}`, "webhook", "must be set when type is Webhook: give webhook.url or webhook.urlFrom"},
	"a member of another type is unknown":  {`spec: {email: {to: [ops@example.com]}}`, "spec.email", "unknown field"},
	"a mode is Keyed or None":              {`spec: {idempotency: {mode: Maybe}}`, "spec.idempotency.mode", `supported values: "Keyed", "None"`},
	"a mode is not a boolean":              {`spec: {idempotency: {mode: true}}`, "spec.idempotency.mode", "must be of type string"},
	"a dialect is IETF or Raw":             {`spec: {idempotency: {dialect: Latin}}`, "spec.idempotency.dialect", `supported values: "IETF", "Raw"`},
	"idempotency is an object":             {`spec: {idempotency: Keyed}`, "spec.idempotency", "must be of type object"},
	"an unknown field of idempotency":      {`spec: {idempotency: {header: X-Key}}`, "spec.idempotency.header", "unknown field"},
	"onAmbiguous is Retry or Hold":         {`spec: {onAmbiguous: Ignore}`, "spec.onAmbiguous", `supported values: "Retry", "Hold"`},
	"maxInFlight is not 0":                 {`spec: {maxInFlight: 0}`, "spec.maxInFlight", "greater than or equal to 1"},
	"maxInFlight is not negative":          {`spec: {maxInFlight: -1}`, "spec.maxInFlight", "greater than or equal to 1"},
	"maxInFlight has a limit":              {`spec: {maxInFlight: 100000}`, "spec.maxInFlight", "less than or equal to 1000"},
	"maxInFlight fits in 32 bits":          {`spec: {maxInFlight: 4294967297}`, "spec.maxInFlight", "less than or equal to 1000"},
	"maxInFlight fits in 64 bits":          {`spec: {maxInFlight: 18446744073709551617}`, "spec.maxInFlight", "less than or equal to 1000"},
	"maxInFlight is whole":                 {`spec: {maxInFlight: 1.5}`, "spec.maxInFlight", "must be of type int"},
	"maxInFlight is a number":              {`spec: {maxInFlight: "16"}`, "spec.maxInFlight", "must be of type integer"},
	"suspend is a boolean, not a word":     {`spec: {suspend: "yes"}`, "spec.suspend", "must be of type boolean"},
	"suspend is a boolean, not a number":   {`spec: {suspend: 1}`, "spec.suspend", "must be of type boolean"},
	"retry is an object":                   {`spec: {retry: 3}`, "spec.retry", "must be of type object"},
	"an unknown field of retry":            {`spec: {retry: {attempts: 3}}`, "spec.retry.attempts", "unknown field"},
	"initialBackoff over maxBackoff":       {`spec: {retry: {initialBackoff: 1h}}`, "spec.retry", "initialBackoff must not be longer than maxBackoff; shorten initialBackoff or set a longer maxBackoff"},
	"maxBackoff over deadline":             {`spec: {retry: {deadline: 1s, maxBackoff: 2s}}`, "spec.retry", "maxBackoff must not be longer than deadline"},
	"a deadline under the default backoff": {`spec: {retry: {deadline: 5m}}`, "spec.retry", "set a shorter maxBackoff (its default is 10m) or a longer deadline"},
	"every backoff wrong at once":          {`spec: {retry: {deadline: 1s, initialBackoff: 3s, maxBackoff: 2s}}`, "spec.retry", "initialBackoff must not be longer than maxBackoff"},
}

var badDurations = map[string]refusal{
	"a timeout of nothing":             {`spec: {timeout: 0s}`, "spec.timeout", "must be a duration such as 10s, between 100ms and 1h"},
	"a negative timeout":               {`spec: {timeout: -1s}`, "spec.timeout", "must be a duration such as 10s, between 100ms and 1h"},
	"a timeout just too short":         {`spec: {timeout: 99.999999ms}`, "spec.timeout", "between 100ms and 1h"},
	"a timeout just too long":          {`spec: {timeout: 1h0.001s}`, "spec.timeout", "between 100ms and 1h"},
	"a timeout that is empty":          {`spec: {timeout: ""}`, "spec.timeout", "must be a duration such as 10s"},
	"a timeout without a unit":         {`spec: {timeout: "10"}`, "spec.timeout", "must be a duration such as 10s"},
	"a timeout that is a number":       {`spec: {timeout: 10}`, "spec.timeout", "must be of type string"},
	"a timeout in days":                {`spec: {timeout: 1d}`, "spec.timeout", "must be a duration such as 10s"},
	"a timeout in ISO 8601":            {`spec: {timeout: PT10S}`, "spec.timeout", "must be a duration such as 10s"},
	"a timeout in capitals":            {`spec: {timeout: 10S}`, "spec.timeout", "must be a duration such as 10s"},
	"a timeout with a space":           {`spec: {timeout: 10 s}`, "spec.timeout", "must be a duration such as 10s"},
	"a timeout with a sign":            {`spec: {timeout: +10s}`, "spec.timeout", "must be a duration such as 10s"},
	"a timeout with an exponent":       {`spec: {timeout: 1e1s}`, "spec.timeout", "must be a duration such as 10s"},
	"a timeout without a whole part":   {`spec: {timeout: .5s}`, "spec.timeout", "must be a duration such as 10s"},
	"a timeout with a bare point":      {`spec: {timeout: 5.s}`, "spec.timeout", "must be a duration such as 10s"},
	"a timeout that is junk":           {`spec: {timeout: soon}`, "spec.timeout", "must be a duration such as 10s"},
	"a timeout with a new line":        {`spec: {timeout: "10s\n"}`, "spec.timeout", "must be a duration such as 10s"},
	"a timeout in other digits":        {`spec: {timeout: "١٠s"}`, "spec.timeout", "must be a duration such as 10s"},
	"a timeout that overflows":         {`spec: {timeout: 99999999999h}`, "spec.timeout", "must be a duration such as 10s"},
	"a timeout that just fits an int":  {`spec: {timeout: 9223372036s}`, "spec.timeout", "between 100ms and 1h"},
	"a timeout of 33 letters":          {`spec: {timeout: ` + strings.Repeat("0", 31) + `1s}`, "spec.timeout", "may not be more than 32"},
	"a lease of 3s":                    {`spec: {leaseDuration: 3s}`, "spec.leaseDuration", "must be a duration such as 60s, between 5s and 1h"},
	"a lease of 2h":                    {`spec: {leaseDuration: 2h}`, "spec.leaseDuration", "must be a duration such as 60s, between 5s and 1h"},
	"a lease that is junk":             {`spec: {leaseDuration: long}`, "spec.leaseDuration", "must be a duration such as 60s, between 5s and 1h"},
	"a window of nothing":              {`spec: {idempotency: {window: 0s}}`, "spec.idempotency.window", "must be a duration such as 24h, between 1s and 87600h"},
	"a window of days":                 {`spec: {idempotency: {window: 7d}}`, "spec.idempotency.window", "must be a duration such as 24h, between 1s and 87600h"},
	"a window of eleven years":         {`spec: {idempotency: {window: 96360h}}`, "spec.idempotency.window", "between 1s and 87600h"},
	"a ttl of 9m":                      {`spec: {ttlAfterFinished: 9m}`, "spec.ttlAfterFinished", "must be a duration such as 168h, between 10m and 87600h"},
	"a ttl of a week in words":         {`spec: {ttlAfterFinished: 1w}`, "spec.ttlAfterFinished", "must be a duration such as 168h, between 10m and 87600h"},
	"a ttl of eleven years":            {`spec: {ttlAfterFinished: 96360h}`, "spec.ttlAfterFinished", "between 10m and 87600h"},
	"a retry deadline of nothing":      {`spec: {retry: {deadline: 0s}}`, "spec.retry.deadline", "must be a duration such as 24h, between 1s and 87600h"},
	"a retry deadline of a day":        {`spec: {retry: {deadline: 1d}}`, "spec.retry.deadline", "must be a duration such as 24h, between 1s and 87600h"},
	"a retry deadline of eleven years": {`spec: {retry: {deadline: 96360h}}`, "spec.retry.deadline", "between 1s and 87600h"},
	"an initial backoff of nothing":    {`spec: {retry: {initialBackoff: 0s}}`, "spec.retry.initialBackoff", "must be a duration such as 1s, between 100ms and 87600h"},
	"an initial backoff that is junk":  {`spec: {retry: {initialBackoff: short}}`, "spec.retry.initialBackoff", "must be a duration such as 1s, between 100ms and 87600h"},
	"a maximum backoff of nothing":     {`spec: {retry: {maxBackoff: 0s}}`, "spec.retry.maxBackoff", "must be a duration such as 10m, between 100ms and 87600h"},
	"a maximum backoff without a unit": {`spec: {retry: {maxBackoff: "600"}}`, "spec.retry.maxBackoff", "must be a duration such as 10m, between 100ms and 87600h"},
}

const (
	urlExample = "must be an absolute http or https URL with a host"
	urlSecret  = "must have neither user information nor a fragment; put credentials into a Secret"
	secretName = "name must be the name of a Secret"
	secretKey  = "key must be a key of a Secret"
)

var badWebhooks = map[string]refusal{
	"a webhook is an object":             {`spec: {webhook: "https://hooks.example.com/ops"}`, "spec.webhook", "must be of type object"},
	"an unknown field of webhook":        {`spec: {webhook: {method: PUT}}`, "spec.webhook.method", "unknown field"},
	"url and urlFrom":                    {`spec: {webhook: {urlFrom: {secretKeyRef: {name: s, key: k}}}}`, "urlFrom", "exactly one of url and urlFrom must be set"},
	"neither url nor urlFrom":            {`spec: {webhook: {url: null}}`, "url", "exactly one of url and urlFrom must be set"},
	"an empty url":                       badURL("", urlExample),
	"an ftp url":                         badURL("ftp://hooks.example.com/x", urlExample),
	"a file url":                         badURL("file:///etc/passwd", urlExample),
	"a javascript url":                   badURL("javascript:alert(1)", urlExample),
	"an opaque https url":                badURL("https:hooks.example.com", urlExample),
	"a url without a host":               badURL("https:///x", urlExample),
	"a url with a port alone":            badURL("https://:443/x", urlExample),
	"a url with a port too high":         badURL("https://hooks.example.com:65536/x", urlExample),
	"a url with port 0":                  badURL("https://hooks.example.com:0/x", urlExample),
	"a url with a port by name":          badURL("https://hooks.example.com:https/x", urlExample),
	"a url with a port beyond an int":    badURL("https://hooks.example.com:99999999999999999999/x", urlExample),
	"a relative url":                     badURL("/hooks", urlExample),
	"a url without a scheme":             badURL("hooks.example.com/ops", urlExample),
	"a url that inherits its scheme":     badURL("//hooks.example.com/ops", urlExample),
	"a url with a space in its path":     badURL("https://hooks.example.com/a b", urlExample),
	"a url with a space in its host":     badURL("https://hooks example.com/a", urlExample),
	"a url with a space before":          badURL(" https://hooks.example.com/a", urlExample),
	"a url with a space after":           badURL("https://hooks.example.com/a ", urlExample),
	"a url with a new line":              badURL(`https://hooks.example.com/a\nb`, urlExample),
	"a url with an umlaut":               badURL("https://hooks.exämple.com/a", urlExample),
	"a url with half an escape":          badURL("https://hooks.example.com/%zz", urlExample),
	"a url with an open bracket":         badURL("https://[::1/x", urlExample),
	"a url with a user":                  badURL("https://user@hooks.example.com/x", urlSecret),
	"a url with a user and a password":   badURL("https://user:password@hooks.example.com/x", urlSecret),
	"a url with an empty user":           badURL("https://@hooks.example.com/x", urlSecret),
	"a url with a fragment":              badURL("https://hooks.example.com/x#a", urlSecret),
	"a url with an empty fragment":       badURL("https://hooks.example.com/x#", urlSecret),
	"a url of 2049 letters":              {`spec: {webhook: {url: "https://hooks.example.com/` + strings.Repeat("x", 2023) + `"}}`, "spec.webhook.url", "may not be more than 2048"},
	"a urlFrom without a reference":      {`spec: {webhook: {url: null, urlFrom: {}}}`, "urlFrom.secretKeyRef", "Required value"},
	"a Secret reference without a key":   {`spec: {webhook: {url: null, urlFrom: {secretKeyRef: {name: s}}}}`, "urlFrom.secretKeyRef.key", "Required value"},
	"a Secret reference without a name":  {`spec: {webhook: {signingSecretRef: {key: k}}}`, "signingSecretRef.name", "Required value"},
	"an empty Secret reference":          {`spec: {webhook: {signingSecretRef: {}}}`, "signingSecretRef.name", "Required value"},
	"a Secret reference by name alone":   {`spec: {webhook: {signingSecretRef: ops-webhook}}`, "signingSecretRef", "must be of type object"},
	"a Secret of another namespace":      {`spec: {webhook: {signingSecretRef: {name: s, key: k, namespace: kube-system}}}`, "signingSecretRef.namespace", "unknown field"},
	"a Secret with an empty name":        {`spec: {webhook: {signingSecretRef: {name: "", key: k}}}`, "signingSecretRef.name", secretName},
	"a Secret with capitals":             {`spec: {webhook: {signingSecretRef: {name: Ops, key: k}}}`, "signingSecretRef.name", secretName},
	"a Secret with a slash":              {`spec: {webhook: {signingSecretRef: {name: kube-system/s, key: k}}}`, "signingSecretRef.name", secretName},
	"a Secret with two dots":             {`spec: {webhook: {signingSecretRef: {name: a..b, key: k}}}`, "signingSecretRef.name", secretName},
	"a Secret with a long name":          {`spec: {webhook: {signingSecretRef: {name: ` + strings.Repeat("x", 254) + `, key: k}}}`, "signingSecretRef.name", "may not be more than 253"},
	"a Secret's key that is empty":       {`spec: {webhook: {signingSecretRef: {name: s, key: ""}}}`, "signingSecretRef.key", secretKey},
	"a Secret's key with a slash":        {`spec: {webhook: {signingSecretRef: {name: s, key: a/b}}}`, "signingSecretRef.key", secretKey},
	"a Secret's key with a space":        {`spec: {webhook: {signingSecretRef: {name: s, key: "a b"}}}`, "signingSecretRef.key", secretKey},
	"tls without a CA":                   {`spec: {webhook: {tls: {}}}`, "tls.caSecretRef", "Required value"},
	"tls that would skip the check":      {`spec: {webhook: {tls: {insecureSkipVerify: true, caSecretRef: {name: s, key: k}}}}`, "tls.insecureSkipVerify", "unknown field"},
	"a CA without a key":                 {`spec: {webhook: {tls: {caSecretRef: {name: s}}}}`, "tls.caSecretRef.key", "Required value"},
	"a CA of a Secret with a bad name":   {`spec: {webhook: {tls: {caSecretRef: {name: -s, key: k}}}}`, "tls.caSecretRef.name", secretName},
	"a signing secret written out plain": {`spec: {webhook: {signingSecret: whsec_x}}`, "spec.webhook.signingSecret", "unknown field"},
}

func badURL(url, says string) refusal {
	return refusal{fmt.Sprintf(`spec: {webhook: {url: "%s"}}`, url), "spec.webhook.url", says}
}

const (
	headerName  = "name must be the name of an HTTP header, for example X-Team"
	headerTaken = "name must not be one of the headers that the operator or the transport sets"
	headerValue = "value must consist of printable ASCII characters, without line breaks"
	headerUnion = "exactly one of value and valueFrom must be set"
)

var badHeaders = map[string]refusal{
	"a header without a name":         badHeader(`{value: x}`, "headers[0].name", "Required value"),
	"a header with an empty name":     badHeader(`{name: "", value: x}`, "headers[0].name", headerName),
	"a header's name with a space":    badHeader(`{name: "X Team", value: x}`, "headers[0].name", headerName),
	"a header's name with a colon":    badHeader(`{name: "X-Team:", value: x}`, "headers[0].name", headerName),
	"a header's name with a new line": badHeader(`{name: "X-Team\n", value: x}`, "headers[0].name", headerName),
	"a header's name with an umlaut":  badHeader(`{name: Täm, value: x}`, "headers[0].name", headerName),
	"a header's name of 129 letters":  badHeader(`{name: `+strings.Repeat("x", 129)+`, value: x}`, "headers[0].name", "may not be more than 128"),
	"Idempotency-Key":                 badHeader(`{name: Idempotency-Key, value: x}`, "headers[0].name", headerTaken),
	"idempotency-key in small":        badHeader(`{name: idempotency-key, value: x}`, "headers[0].name", headerTaken),
	"webhook-id":                      badHeader(`{name: webhook-id, value: x}`, "headers[0].name", headerTaken),
	"Webhook-Signature":               badHeader(`{name: Webhook-Signature, value: x}`, "headers[0].name", headerTaken),
	"CONTENT-TYPE":                    badHeader(`{name: CONTENT-TYPE, value: x}`, "headers[0].name", headerTaken),
	"Content-Length":                  badHeader(`{name: Content-Length, value: "1"}`, "headers[0].name", headerTaken),
	"Host":                            badHeader(`{name: Host, value: x}`, "headers[0].name", headerTaken),
	"Transfer-Encoding":               badHeader(`{name: Transfer-Encoding, value: chunked}`, "headers[0].name", headerTaken),
	"Connection":                      badHeader(`{name: Connection, value: close}`, "headers[0].name", headerTaken),
	"a header without a value":        badHeader(`{name: X-Team}`, "headers[0]", headerUnion),
	"a header with two values":        badHeader(`{name: X-Team, value: x, valueFrom: {secretKeyRef: {name: s, key: k}}}`, "headers[0]", headerUnion),
	"a header with an empty value":    badHeader(`{name: X-Team, value: ""}`, "headers[0].value", "at least 1 char"),
	"a value with a new line":         badHeader(`{name: X-Team, value: "a\nX-Admin: yes"}`, "headers[0].value", headerValue),
	"a value with a carriage return":  badHeader(`{name: X-Team, value: "a\r"}`, "headers[0].value", headerValue),
	"a value with DEL":                badHeader(`{name: X-Team, value: "a\u007f"}`, "headers[0].value", headerValue),
	"a value with an umlaut":          badHeader(`{name: X-Team, value: ä}`, "headers[0].value", headerValue),
	"a value of 4097 letters":         badHeader(`{name: X-Team, value: `+strings.Repeat("x", 4097)+`}`, "headers[0].value", "may not be more than 4096"),
	"a value that is a number":        badHeader(`{name: X-Team, value: 7}`, "headers[0].value", "must be of type string"),
	"valueFrom without a reference":   badHeader(`{name: X-Team, valueFrom: {}}`, "headers[0].valueFrom.secretKeyRef", "Required value"),
	"valueFrom without a key":         badHeader(`{name: X-Team, valueFrom: {secretKeyRef: {name: s}}}`, "headers[0].valueFrom.secretKeyRef.key", "Required value"),
	"valueFrom a ConfigMap":           badHeader(`{name: X-Team, valueFrom: {configMapKeyRef: {name: s, key: k}}}`, "headers[0].valueFrom.configMapKeyRef", "unknown field"),
	"the same header twice":           badHeader(`{name: X-Team, value: a}, {name: X-Team, value: b}`, "headers[1]", "Duplicate value"),
	"the same header in another case": badHeader(`{name: X-Team, value: a}, {name: x-team, value: b}`, "spec.webhook.headers", "headers must not repeat a name, whatever its case"),
	"33 headers":                      {`spec: {webhook: {headers: ` + list(33, `{name: X-%d, value: x}`) + `}}`, "spec.webhook.headers", "must have at most 32 items"},
	"headers as a line":               {`spec: {webhook: {headers: "X-Team: sre"}}`, "spec.webhook.headers", "must be of type array"},
}

func badHeader(header, field, says string) refusal {
	return refusal{`spec: {webhook: {headers: [` + header + `]}}`, field, says}
}
