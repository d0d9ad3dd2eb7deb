// SPDX-FileCopyrightText: The WorkItem Operator Authors
// SPDX-License-Identifier: Apache-2.0

package api

import (
	"fmt"
	"strings"
)

const (
	noControls = "must not contain control characters"
	dueExample = "must be an RFC 3339 time such as 2026-12-01T09:00:00Z"
	dnsLabel   = "must be a DNS label: lower-case letters, digits and '-'"
)

var badWorkItems = map[string]refusal{
	"a spec must be there":                     {`spec: null`, "spec", "Required value"},
	"a spec must be an object":                 {`spec: []`, "spec", "must be of type object"},
	"an unknown field of spec is an error":     {`spec: {tittle: x}`, "spec.tittle", "unknown field"},
	"an unknown field at the top is an error":  {`specs: {}`, "specs", "unknown field"},
	"field names are case-sensitive":           {`spec: {duetime: "2026-12-01T09:00:00Z"}`, "spec.duetime", "unknown field"},
	"a title is required":                      {`spec: {title: null}`, "spec.title", "Required value"},
	"a title is not empty":                     {`spec: {title: ""}`, "spec.title", "at least 1 char"},
	"a title is text":                          {`spec: {title: 7}`, "spec.title", "must be of type string"},
	"a title has at most 256 letters":          {fmt.Sprintf(`spec: {title: %s}`, strings.Repeat("x", 257)), "spec.title", "may not be more than 256"},
	"a title has at most 256 emoji":            {fmt.Sprintf(`spec: {title: %s}`, strings.Repeat("🔥", 257)), "spec.title", "may not be more than 256"},
	"a title has no U+0001":                    {`spec: {title: "a\u0001"}`, "title", noControls},
	"a title has no NUL":                       {`spec: {title: "a\u0000"}`, "title", noControls},
	"a title has no carriage return":           {`spec: {title: "a\r\nb"}`, "title", noControls},
	"a title has no vertical tab":              {`spec: {title: "a\u000b"}`, "title", noControls},
	"a title has no escape":                    {`spec: {title: "\u001b[31mred"}`, "title", noControls},
	"a title has no DEL":                       {`spec: {title: "a\u007f"}`, "title", noControls},
	"a title has no C1 control":                {`spec: {title: "a\u0085"}`, "title", noControls},
	"a title does not end the C1 controls":     {`spec: {title: "a\u009f"}`, "title", noControls},
	"a description has at most 4096 letters":   {fmt.Sprintf(`spec: {description: %s}`, strings.Repeat("x", 4097)), "spec.description", "may not be more than 4096"},
	"a description has no carriage return":     {`spec: {description: "a\rb"}`, "description", noControls},
	"a description has no bell":                {`spec: {description: "a\u0007b"}`, "description", noControls},
	"a description has no C1 control":          {`spec: {description: "\u009b31m"}`, "description", noControls},
	"an assignee has at most 253 letters":      {fmt.Sprintf(`spec: {assignee: %s}`, strings.Repeat("x", 254)), "spec.assignee", "may not be more than 253"},
	"an assignee is one line":                  {`spec: {assignee: "a\nb"}`, "assignee", noControls},
	"an assignee has no tab":                   {`spec: {assignee: "a\tb"}`, "assignee", noControls},
	"an assignee is text":                      {`spec: {assignee: [a]}`, "spec.assignee", "must be of type string"},
	"a priority is one of four":                {`spec: {priority: Urgent}`, "spec.priority", `supported values: "Low", "Normal", "High", "Critical"`},
	"a priority is spelled with a capital":     {`spec: {priority: high}`, "spec.priority", `supported values: "Low", "Normal", "High", "Critical"`},
	"a priority is not empty":                  {`spec: {priority: ""}`, "spec.priority", `supported values: "Low", "Normal", "High", "Critical"`},
	"a state is one of three":                  {`spec: {state: Done}`, "spec.state", `supported values: "Active", "Completed", "Cancelled"`},
	"a phase is not a state":                   {`spec: {state: Overdue}`, "spec.state", `supported values: "Active", "Completed", "Cancelled"`},
	"escalations are a list":                   {`spec: {escalations: 1h}`, "spec.escalations", "must be of type array"},
	"there are at most 8 escalations":          {`spec: {escalations: ` + list(9, `{after: %dm, notify: [{providerName: a}]}`) + `}`, "spec.escalations", "must have at most 8 items"},
	"escalations increase":                     {`spec: {escalations: [{after: 2h, notify: [{providerName: a}]}, {after: 1h, notify: [{providerName: a}]}]}`, "spec.escalations", "must be in increasing order of after"},
	"escalations are not equal":                {`spec: {escalations: [{after: 1h, notify: [{providerName: a}]}, {after: 60m, notify: [{providerName: a}]}]}`, "spec.escalations", "each longer than the one before"},
	"escalations do not jump back at the end":  {`spec: {escalations: [{after: 1h, notify: [{providerName: a}]}, {after: 2h, notify: [{providerName: a}]}, {after: 90m, notify: [{providerName: a}]}]}`, "spec.escalations", "must be in increasing order of after"},
	"an escalation says when":                  {`spec: {escalations: [{notify: [{providerName: a}]}]}`, "spec.escalations[0].after", "Required value"},
	"an escalation is not before the due time": {`spec: {escalations: [{after: -1m, notify: [{providerName: a}]}]}`, "spec.escalations[0].after", "after must be a duration such as 2h"},
	"an escalation is after some time":         {`spec: {escalations: [{after: later, notify: [{providerName: a}]}]}`, "spec.escalations[0].after", "after must be a duration such as 2h"},
	"an escalation is not after an empty time": {`spec: {escalations: [{after: "", notify: [{providerName: a}]}]}`, "spec.escalations[0].after", "after must be a duration such as 2h"},
	"an escalation is not after days":          {`spec: {escalations: [{after: 1d, notify: [{providerName: a}]}]}`, "spec.escalations[0].after", "after must be a duration such as 2h"},
	"an escalation is not after microseconds":  {`spec: {escalations: [{after: 0.1ms, notify: [{providerName: a}]}]}`, "spec.escalations[0].after", "0s, or between 1ms and 87600h"},
	"an escalation is within ten years":        {`spec: {escalations: [{after: 87600h1ms, notify: [{providerName: a}]}]}`, "spec.escalations[0].after", "0s, or between 1ms and 87600h"},
	"an escalation does not overflow":          {`spec: {escalations: [{after: 99999999999h, notify: [{providerName: a}]}]}`, "spec.escalations[0].after", "0s, or between 1ms and 87600h"},
	"an escalation tells someone":              {`spec: {escalations: [{after: 1h, notify: []}]}`, "spec.escalations[0].notify", "at least 1 item"},
	"an escalation says whom it tells":         {`spec: {escalations: [{after: 1h}]}`, "spec.escalations[0].notify", "Required value"},
	"an escalation tells at most 16":           {`spec: {escalations: [{after: 1h, notify: ` + list(17, `{providerName: p%d}`) + `}]}`, "spec.escalations[0].notify", "must have at most 16 items"},
	"an escalation tells nobody twice":         {`spec: {escalations: [{after: 1h, notify: [{providerName: a}, {providerName: a}]}]}`, "spec.escalations[0].notify", "Duplicate value"},
}

var badDueTimes = map[string]refusal{
	"tomorrow":                   dueTime("tomorrow"),
	"nothing":                    dueTime(""),
	"a date alone":               dueTime("2026-12-01"),
	"no zone":                    dueTime("2026-12-01T09:00:00"),
	"no seconds":                 dueTime("2026-12-01T09:00Z"),
	"a space instead of the T":   dueTime("2026-12-01 09:00:00Z"),
	"a lower-case t":             dueTime("2026-12-01t09:00:00Z"),
	"a lower-case z":             dueTime("2026-12-01T09:00:00z"),
	"a leap second":              dueTime("2026-12-31T23:59:60Z"),
	"30 February":                dueTime("2026-02-30T09:00:00Z"),
	"29 February of no leapyear": dueTime("2026-02-29T09:00:00Z"),
	"month 13":                   dueTime("2026-13-01T09:00:00Z"),
	"day 0":                      dueTime("2026-12-00T09:00:00Z"),
	"24:00":                      dueTime("2026-12-01T24:00:00Z"),
	"minute 60":                  dueTime("2026-12-01T09:60:00Z"),
	"year 10000":                 dueTime("10000-01-01T00:00:00Z"),
	"year 10000 by its zone":     dueTime("9999-12-31T23:59:59-01:00"),
	"year 0":                     dueTime("0000-01-01T00:00:00Z"),
	"a moment before 1970":       dueTime("1969-12-31T23:59:59Z"),
	"before 1970 by its zone":    dueTime("1970-01-01T00:00:00+00:01"),
	"a zone of 24 hours":         dueTime("2026-12-01T09:00:00+24:00"),
	"a zone without a colon":     dueTime("2026-12-01T09:00:00+0100"),
	"a zone with 60 minutes":     dueTime("2026-12-01T09:00:00+01:60"),
	"a zone by name":             dueTime("2026-12-01T09:00:00CET"),
	"half a second":              dueTime("2026-12-01T09:00:00.5Z"),
	"a nanosecond":               dueTime("2026-12-01T09:00:00.000000001Z"),
	"ten digits of a second":     dueTime("2026-12-01T09:00:00.0000000000Z"),
	"a comma in the second":      dueTime("2026-12-01T09:00:00,0Z"),
	"a space at the end":         dueTime("2026-12-01T09:00:00Z "),
	"a new line at the end":      dueTime(`2026-12-01T09:00:00Z\n`),
	"a duration":                 dueTime("2h"),
	"far too much text":          {`spec: {dueTime: ` + strings.Repeat("2", 65) + `x}`, "spec.dueTime", "may not be more than 64"},
	"a number of seconds":        {`spec: {dueTime: 1796115600}`, "spec.dueTime", "must be of type string"},
}

func dueTime(value string) refusal {
	return refusal{fmt.Sprintf(`spec: {dueTime: "%s"}`, value), "spec.dueTime", dueExample}
}

var badTargets = map[string]refusal{
	"at most 16 are notified":             {`spec: {notify: ` + list(17, `{providerName: p%d}`) + `}`, "spec.notify", "must have at most 16 items"},
	"nobody is notified twice":            {`spec: {notify: [{providerName: a}, {providerName: b}, {providerName: a}]}`, "spec.notify", "Duplicate value"},
	"notify lists objects":                {`spec: {notify: [a]}`, "spec.notify[0]", "must be of type object"},
	"a provider has a name":               {`spec: {notify: [{}]}`, "providerName", "Required value"},
	"a provider's name is not null":       {`spec: {notify: [{providerName: }]}`, "providerName", "Required value"},
	"a provider's name is not empty":      providerName(""),
	"a provider's name has no dots":       providerName("ops.webhook"),
	"a provider's name is lower-case":     providerName("Ops"),
	"a provider's name has no underscore": providerName("ops_webhook"),
	"a provider's name has no colon":      providerName("ops:1"),
	"a provider's name has no slash":      providerName("ops/webhook"),
	"a provider's name has no umlaut":     providerName("öps"),
	"a provider's name begins well":       providerName("-ops"),
	"a provider's name ends well":         providerName("ops-"),
	"a provider's name is one line":       providerName(`ops\n`),
	"a provider's name is at most 63":     {`spec: {notify: [{providerName: ` + strings.Repeat("x", 64) + `}]}`, "spec.notify[0].providerName", "may not be more than 63"},
	"an escalation's provider has a name": {`spec: {escalations: [{after: 1h, notify: [{providerName: a.b}]}]}`, "spec.escalations[0].notify[0].providerName", dnsLabel},
	"an unknown field beside the name":    {`spec: {notify: [{providerName: a, channel: b}]}`, "spec.notify[0].channel", "unknown field"},
}

func providerName(value string) refusal {
	return refusal{fmt.Sprintf(`spec: {notify: [{providerName: "%s"}]}`, value), "spec.notify[0].providerName", dnsLabel}
}
