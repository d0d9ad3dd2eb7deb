// SPDX-FileCopyrightText: The WorkItem Operator Authors
// SPDX-License-Identifier: Apache-2.0

package api

import (
	"bytes"
	"encoding/json"
	"math/rand/v2"
	"slices"
	"strings"
	"time"
)

var edgeNumbers = []string{
	"0", "-0", "1", "1.0", "1e0", "1e2", "10e-1", "8", "9", "100", "999", "1000", "1001", "1.5", "-1", "1e-1",
	"2147483647", "2147483648", "2147483647.0", "4294967297", "9007199254740993", "9223372036854775807",
	"9223372036854775808", "1e18", "1e19", "1e30", "null", `"1"`, "true",
}

var edgeTexts = []string{
	`""`, `" "`, `"x"`, `"\t"`, `"\n"`, `"\r"`, `"\u0000"`, `"\u007f"`, `"\u0080"`, `"\u00a0"`, `"\u2028"`, `"\ud800"`,
	`"\ud83d\ude00"`, `"\ufeff"`, `"\ufffd"`, `"\uffff"`, `"\\"`, `"\""`, `"{{"`, `"<&>"`, `"null"`, `"true"`, `"1"`, "null", "1", "{}", "[]",
}

var edgeURLs = []string{
	"", "http://a", "http://a?", "http://a/?", "HTTPS://A", "https://a:1", "https://a:", "https://a:65536", "https://[::1]",
	"https://[::1%25eth0]/", "https://[fe80::1%eth0]/", "https://a/%", "https://a/%zz", "https://a/%00", "https://a/%0a",
	"https://a/..", "https://a\\b", "https://a/\\b", "https://a/{x}", "https://a/`", "https://a/<>", "https://a/^", "https://a/|",
	"https://a|b/", "https://a b/", "https://%41/", "https://a%20b/", "https://1/", "https://0x7f.1/", "https://a..b/", "https://-a/",
	"https://a/?x=%zz", "https://a/?x=;", "https://a/?x=a b", "https://a,b/", "https://a;b/", "https://$/", "https://'/", "https://(a)/",
	"http:/a", "http:a", "http://", "https://?x", "https://#", "https://a@b", "://a", "a", "/a",
}

// edgeTimes are times at and beyond the edge of what Go reads, and some random
// ones, each with a neighbor that may be wrong.
func edgeTimes(randoms int) []string {
	edges := []string{
		"2026-12-01T09:00:00Z", "2026-12-01T09:00:00+00:00", "2026-12-01T09:00:00-00:00", "2026-12-01T09:00:00+23:59", "2026-12-01T09:00:00-23:59",
		"2026-12-01T09:00:00.0Z", "2026-12-01T09:00:00.000000000Z", "2026-12-01T09:00:00.5Z", "2026-12-01T09:00:00.000000001Z", "2026-12-01T09:00:00.0000000000Z",
		"2028-02-29T00:00:00Z", "2026-02-29T00:00:00Z", "2026-02-30T00:00:00Z", "2026-04-31T00:00:00Z", "1900-02-29T00:00:00Z", "2000-02-29T00:00:00Z",
		"2026-12-01T24:00:00Z", "2026-12-01T23:59:60Z", "2026-12-31T23:59:59Z", "2026-12-01T09:60:00Z",
		"2026-12-01t09:00:00Z", "2026-12-01T09:00:00z", "2026-12-01 09:00:00Z", "2026-12-01T09:00:00", "2026-12-01T9:00:00Z", "2026-12-01T09:00Z", "2026-12-01",
		"2026-12-01T09:00:00x5Z", "2026-12-01T09:00:00,5Z", "2026-12-01T09:00:00T09:00:00Z", "2026-12-01T09:00:00Z ", " 2026-12-01T09:00:00Z",
		"2026-12-01T09:00:00+24:00", "2026-12-01T09:00:00+99:99", "2026-12-01T09:00:00+0100", "2026-12-01T09:00:00+01", "2026-12-01T09:00:00−01:00",
		"0000-01-01T00:00:00Z", "0001-01-01T00:00:00Z", "0001-01-01T00:00:00+23:59", "1969-12-31T23:59:59Z", "1970-01-01T00:00:00Z", "1970-01-01T00:00:00+00:01",
		"9999-12-31T00:00:00Z", "9999-12-31T23:59:59Z", "9999-12-31T23:59:59-23:59", "9998-12-31T23:59:59-23:59", "10000-01-01T00:00:00Z", "", "0", "now",
	}
	// The same values in every run.
	random := rand.New(rand.NewPCG(1, 2))
	for range randoms {
		at := time.Unix(random.Int64N(4e9), 0).In(time.FixedZone("", 60*(random.IntN(2*1439)-1439)))
		edges = append(edges, at.Format(time.RFC3339), mutated(random, at.Format(time.RFC3339Nano), "0123456789TtZz:+-. "))
	}
	return edges
}

// edgeDurations are durations at and beyond the edge of what Go reads and of
// what the fields allow, and random ones.
func edgeDurations() []string {
	edges := []string{
		"0s", "0", "", "-0s", "0h0m0s", "0.0ms", "0.0000001ms", "1ns", "1us", "1µs", "1μs", "0.1ms", "0.5ms", "1ms", "1.0000001ms", "1.00000000001ms",
		"99.9ms", "100ms", "100.0001ms", "0.1s", "0.10000000001s", "999ms", "999.999999ms", "1s", "1.000000001s", "1.5s", "0.5h", "1.5h", ".5h", "5.h", "1h1h",
		"1h1m1s1ms", "1s1h", "59m60s", "60m", "1h", "1h1ns", "24h", "1d", "1w", "P1D", "168h", "87600h", "87600h0.000001ms", "87600h1ms", "5256000m", "87601h",
		"9223372036s", "9223372037s", "2562047h", "2562048h", "99999999999h", "9223372036854775807ms", "0.9223372036854775808h", "1.99999999999999999999s",
		"00000000000000000000000000001h", "1e3s", "+1s", "-1s", "1 s", "1S", "1h-1m", "１s", "s", "h", "1", "1.s", "1..5s", "1,5s", "inf", "NaN",
	}
	// The same values in every run.
	random := rand.New(rand.NewPCG(3, 4))
	for range 60 {
		d := time.Duration(random.Int64N(int64(2 * time.Hour)))
		edges = append(edges, d.String(), mutated(random, d.Round(time.Millisecond).String(), "0123456789.hmsnuµ-+ "))
	}
	return edges
}

// mutated changes one letter of text.
func mutated(random *rand.Rand, text, alphabet string) string {
	letters, others := []rune(text), []rune(alphabet)
	letters[random.IntN(len(letters))] = others[random.IntN(len(others))]
	return string(letters)
}

// quoted makes JSON strings, and adds some values that are none.
func quoted(texts []string) []string {
	out := []string{"null", "0", "1", "true", "{}", "[]"}
	for _, text := range slices.Compact(slices.Sorted(slices.Values(texts))) {
		var buffer bytes.Buffer
		encoder := json.NewEncoder(&buffer)
		encoder.SetEscapeHTML(false)
		if err := encoder.Encode(text); err != nil {
			panic(err)
		}
		out = append(out, strings.TrimSpace(buffer.String()))
	}
	return out
}
