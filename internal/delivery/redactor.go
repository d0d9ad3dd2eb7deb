// SPDX-FileCopyrightText: The WorkItem Operator Authors
// SPDX-License-Identifier: Apache-2.0

package delivery

import (
	"errors"
	"io"
	"net/url"
	"slices"
	"strings"
	"unicode"
	"unicode/utf8"
)

const (
	// MaxText is the longest text, in bytes, that a Redactor gives.
	MaxText = 1024
	// Redacted stands where a secret was.
	Redacted = "[REDACTED]"

	// readLimit is how much of an answer's body is looked at. It is more than
	// MaxText, so that a secret that begins within what is kept is seen whole.
	readLimit = 16 << 10
	// minSecret is the shortest secret, in bytes, that is cut out of a text. A
	// shorter one would leave shreds that show by their gaps what it was; a
	// text that has it is withheld as a whole.
	minSecret = 4
)

// Redactor makes text from outside fit to be kept and printed: it takes out
// secrets, control characters and invalid UTF-8, and bounds the length. It
// finds a secret in any case of ASCII letters, and also when it is escaped for
// a URL, JSON or HTML, or in base64 alone or within something longer.
//
// A nil Redactor knows no secrets. A Redactor is safe for concurrent use.
type Redactor struct {
	// forms are what is cut out, normalised; short is what withholds a text.
	forms []string
	short []string
}

// NewRedactor returns a Redactor for the secrets given. Empty ones, and white
// space around them, are ignored.
func NewRedactor(secrets ...string) *Redactor {
	r := &Redactor{}
	for _, secret := range secrets {
		secret = strings.TrimSpace(secret)
		for _, form := range formsOf(secret) {
			r.add(form)
		}
	}
	return r
}

func (r *Redactor) add(form string) {
	form = lower(normalise(form))
	switch {
	case form == "":
	case len(form) < minSecret:
		r.short = appendNew(r.short, form)
	default:
		r.forms = appendNew(r.forms, form)
	}
}

// Text returns s without secrets and control characters, as valid UTF-8 of at
// most MaxText bytes.
func (r *Redactor) Text(s string) string {
	return r.Excerpt(strings.NewReader(s))
}

// Error returns what err says, as Text does. The request line with which
// net/url.Error begins is left out: it holds the URL. A nil error
// says nothing.
func (r *Redactor) Error(err error) string {
	if err == nil {
		return ""
	}
	for {
		urlErr, ok := errors.AsType[*url.Error](err)
		if !ok || urlErr.Err == nil {
			break
		}
		err = urlErr.Err
	}
	return r.Text(err.Error())
}

// Excerpt reads the beginning of body and returns it as Text does. It reads a
// few KiB at most and leaves the rest. Where the text is cut, by that limit or
// because reading failed, the beginning of a secret is taken away too.
func (r *Redactor) Excerpt(body io.Reader) string {
	read, err := io.ReadAll(io.LimitReader(body, readLimit))
	text := normalise(string(read))
	if err != nil || len(read) == readLimit {
		text = r.trimPartial(text)
	}
	return bound(r.redact(text))
}

// redact works on intervals of the text and not by one replacement after the
// other: of two secrets that overlap, the first replacement would leave a piece
// of the second.
func (r *Redactor) redact(text string) string {
	if r == nil {
		return text
	}
	folded := lower(text)
	for _, short := range r.short {
		if strings.Contains(folded, short) {
			return Redacted
		}
	}
	var out strings.Builder
	from := 0
	for _, hit := range merge(r.find(folded)) {
		out.WriteString(text[from:hit.start])
		out.WriteString(Redacted)
		from = hit.end
	}
	out.WriteString(text[from:])
	return out.String()
}

type interval struct{ start, end int }

func (r *Redactor) find(folded string) []interval {
	var hits []interval
	for _, form := range r.forms {
		for from := 0; ; {
			at := strings.Index(folded[from:], form)
			if at < 0 {
				break
			}
			hits = append(hits, interval{from + at, from + at + len(form)})
			from += at + 1
		}
	}
	return hits
}

// merge sorts the intervals and joins those that touch.
func merge(hits []interval) []interval {
	slices.SortFunc(hits, func(a, b interval) int { return a.start - b.start })
	var out []interval
	for _, hit := range hits {
		if last := len(out) - 1; last >= 0 && hit.start <= out[last].end {
			out[last].end = max(out[last].end, hit.end)
			continue
		}
		out = append(out, hit)
	}
	return out
}

// trimPartial takes away the longest end of the text that begins a secret.
func (r *Redactor) trimPartial(text string) string {
	if r == nil {
		return text
	}
	folded, longest := lower(text), 0
	for _, form := range slices.Concat(r.forms, r.short) {
		for n := min(len(form)-1, len(folded)); n > longest; n-- {
			if strings.HasSuffix(folded, form[:n]) {
				longest = n
			}
		}
	}
	return text[:len(text)-longest]
}

// normalise makes s printable. It comes before the search for secrets, as it
// might otherwise put together one that something unprintable had split.
func normalise(s string) string {
	return strings.Map(func(c rune) rune {
		switch {
		case unicode.IsSpace(c):
			return ' '
		case c == utf8.RuneError || !unicode.IsPrint(c):
			return -1
		}
		return c
	}, s)
}

// lower folds ASCII letters only, so that offsets stay the same.
func lower(s string) string {
	return strings.Map(func(c rune) rune {
		if 'A' <= c && c <= 'Z' {
			return c + ('a' - 'A')
		}
		return c
	}, s)
}

// bound cuts s, which is valid UTF-8, between two characters.
func bound(s string) string {
	if len(s) <= MaxText {
		return s
	}
	end := MaxText
	for !utf8.RuneStart(s[end]) {
		end--
	}
	return s[:end]
}

func appendNew(list []string, s string) []string {
	if slices.Contains(list, s) {
		return list
	}
	return append(list, s)
}
