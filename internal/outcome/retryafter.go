// SPDX-FileCopyrightText: The WorkItem Operator Authors
// SPDX-License-Identifier: Apache-2.0

package outcome

import (
	"strconv"
	"strings"
	"time"
)

// MaxRetryAfter is what ParseRetryAfter gives for anything longer: about 146
// years, and far enough from the largest duration that adding a backoff to it
// does not overflow.
const MaxRetryAfter = time.Duration(1 << 62)

// The three forms of an HTTP-date, RFC 9110 section 5.6.7, in the order in
// which they are met. GMT is spelled out because RFC 9110 allows nothing else.
const (
	imfFixdate  = "Mon, 02 Jan 2006 15:04:05 GMT"
	rfc850Date  = "Monday, 02-Jan-06 15:04:05 GMT"
	asctimeDate = "Mon Jan _2 15:04:05 2006"
)

// ParseRetryAfter reads the value of a Retry-After header, RFC 9110 section
// 10.2.3: a number of seconds, or a date, which is counted from now. It gives
// 0 for a value that is empty, negative, past or no such value at all, and
// MaxRetryAfter for any that is longer than that.
func ParseRetryAfter(header string, now time.Time) time.Duration {
	value := strings.Trim(header, " \t")
	if value == "" {
		return 0
	}
	if strings.Trim(value, "0123456789") == "" {
		return parseSeconds(value)
	}
	date, ok := parseDate(value, now)
	if !ok {
		return 0
	}
	// Sub saturates, so that no date is too far away.
	return min(max(date.Sub(now), 0), MaxRetryAfter)
}

// parseSeconds takes digits only.
func parseSeconds(digits string) time.Duration {
	seconds, err := strconv.ParseInt(digits, 10, 64)
	if err != nil || seconds > int64(MaxRetryAfter/time.Second) {
		return MaxRetryAfter
	}
	return time.Duration(seconds) * time.Second
}

func parseDate(value string, now time.Time) (time.Time, bool) {
	for _, layout := range []string{imfFixdate, asctimeDate} {
		if date, err := time.Parse(layout, value); err == nil {
			return date, true
		}
	}
	date, err := time.Parse(rfc850Date, value)
	if err != nil {
		return time.Time{}, false
	}
	// RFC 9110 section 5.6.7: two digits that seem to be more than 50 years in
	// the future mean the last past year that ends in them.
	if date.After(now.AddDate(50, 0, 0)) {
		date = date.AddDate(-100, 0, 0)
	}
	return date, true
}
