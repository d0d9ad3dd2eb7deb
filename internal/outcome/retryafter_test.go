// SPDX-FileCopyrightText: The WorkItem Operator Authors
// SPDX-License-Identifier: Apache-2.0

package outcome_test

import (
	"math"
	"strings"
	"testing"
	"time"

	"github.com/workitem-operator/workitem-operator/internal/outcome"
)

func TestParseRetryAfter(t *testing.T) {
	t.Parallel()
	now := time.Date(2026, time.December, 1, 9, 0, 0, 0, time.UTC)
	cases := map[string]struct {
		header string
		want   time.Duration
	}{
		"seconds":                             {"7", 7 * time.Second},
		"zero":                                {"0", 0},
		"leading zeros":                       {"007", 7 * time.Second},
		"white space around":                  {" \t7 ", 7 * time.Second},
		"many seconds":                        {"1000000000", 1_000_000_000 * time.Second},
		"the last that fits":                  {"4611686018", 4611686018 * time.Second},
		"more than fits":                      {"4611686019", outcome.MaxRetryAfter},
		"the largest int64":                   {"9223372036854775807", outcome.MaxRetryAfter},
		"more than an int64":                  {strings.Repeat("9", 400), outcome.MaxRetryAfter},
		"empty":                               {"", 0},
		"blank":                               {"  ", 0},
		"negative":                            {"-1", 0},
		"signed":                              {"+1", 0},
		"exponent":                            {"1e9", 0},
		"fraction":                            {"1.5", 0},
		"hexadecimal":                         {"0x10", 0},
		"underscore":                          {"1_000", 0},
		"with a unit":                         {"5s", 0},
		"a list":                              {"5, 6", 0},
		"junk":                                {"soon", 0},
		"digits of another script":            {"٣", 0},
		"a date":                              {"Tue, 01 Dec 2026 09:00:07 GMT", 7 * time.Second},
		"a date of the second form":           {"Tuesday, 01-Dec-26 09:00:07 GMT", 7 * time.Second},
		"a date of the third form":            {"Tue Dec  1 09:00:07 2026", 7 * time.Second},
		"now":                                 {"Tue, 01 Dec 2026 09:00:00 GMT", 0},
		"a past date":                         {"Tue, 01 Dec 2026 08:59:59 GMT", 0},
		"two digits that mean the past":       {"Sunday, 06-Nov-94 08:49:37 GMT", 0},
		"two digits that only seem to be due": {"Wednesday, 06-Nov-68 08:49:37 GMT", time.Date(2068, time.November, 6, 8, 49, 37, 0, time.UTC).Sub(now)},
		"a far date":                          {"Fri, 31 Dec 9999 23:59:59 GMT", outcome.MaxRetryAfter},
		"a date before the epoch":             {"Mon, 01 Jan 0001 00:00:00 GMT", 0},
		"a date in another zone":              {"Tue, 01 Dec 2026 09:00:07 CET", 0},
		"a date without a zone":               {"Tue, 01 Dec 2026 09:00:07", 0},
		"a date of another kind":              {"2026-12-01T09:00:07Z", 0},
		"no such day":                         {"Tue, 32 Dec 2026 09:00:07 GMT", 0},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			if got := outcome.ParseRetryAfter(tc.header, now); got != tc.want {
				t.Errorf("ParseRetryAfter(%q) = %s, want %s", tc.header, got, tc.want)
			}
		})
	}
}

// RFC 9110 section 5.6.7: two digits more than 50 years ahead mean the past.
func TestParseRetryAfterYearOfTwoDigits(t *testing.T) {
	t.Parallel()
	now := time.Date(2010, time.January, 1, 0, 0, 0, 0, time.UTC)
	if got := outcome.ParseRetryAfter("Wednesday, 06-Nov-68 08:49:37 GMT", now); got != 0 {
		t.Errorf("a date of 1968 was taken for one %s ahead", got)
	}
}

func FuzzParseRetryAfter(f *testing.F) {
	for _, seed := range []string{
		"", "0", "7", "-1", "1e9", "soon", "18446744073709551616", "Tue, 01 Dec 2026 09:00:07 GMT",
		"Sunday, 06-Nov-94 08:49:37 GMT", "Sun Nov  6 08:49:37 1994", "\x00", " 5 ",
	} {
		f.Add(seed, int64(1796115600))
	}
	f.Add("Fri, 31 Dec 9999 23:59:59 GMT", int64(math.MinInt64))
	f.Fuzz(func(t *testing.T, header string, unix int64) {
		got := outcome.ParseRetryAfter(header, time.Unix(unix, 0))
		if got < 0 || got > outcome.MaxRetryAfter {
			t.Errorf("ParseRetryAfter(%q) = %d", header, got)
		}
		if got+24*time.Hour < 0 {
			t.Errorf("ParseRetryAfter(%q) leaves no room for a backoff", header)
		}
		if got != 0 && !strings.ContainsAny(header, "0123456789") {
			t.Errorf("ParseRetryAfter(%q) = %s out of nothing", header, got)
		}
	})
}
