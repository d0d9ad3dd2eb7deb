// SPDX-FileCopyrightText: The WorkItem Operator Authors
// SPDX-License-Identifier: Apache-2.0

package outbox

import (
	"strings"
	"time"

	"github.com/workitem-operator/workitem-operator/api/v1alpha1"
	"github.com/workitem-operator/workitem-operator/internal/outcome"
)

// ParkingReason tells whether a reason says that a provider's configuration is
// wrong, so that nothing is sent to it until that changes.
func ParkingReason(reason string) bool {
	switch reason {
	case outcome.ReasonUnauthorized, outcome.ReasonForbidden, outcome.ReasonEndpointNotFound, outcome.ReasonEndpointGone:
		return true
	}
	return false
}

// Parking tells whether a pause is for a wrong configuration, and not a provider's
// wish to be left alone for a while.
func Parking(pause *v1alpha1.ProviderPause) bool { return ParkingReason(pause.Reason) }

// NeedsSecret tells whether a pause may end because a Secret changes: the answers
// 401 and 403 say that a credential is wrong.
func NeedsSecret(pause *v1alpha1.ProviderPause) bool {
	return pause.Reason == outcome.ReasonUnauthorized || pause.Reason == outcome.ReasonForbidden
}

// PauseInForce tells whether a pause keeps the operator from calling the provider
// now.
func PauseInForce(pause *v1alpha1.ProviderPause, provider *v1alpha1.NotificationProvider, now time.Time) bool {
	return pause != nil && pause.Generation == provider.Generation &&
		(pause.Until == nil || now.Before(pause.Until.Time))
}

// PauseAfter is the pause that the answer to a call puts on the whole provider;
// nil if it puts none.
func PauseAfter(res outcome.Result, provider *v1alpha1.NotificationProvider, secrets string, now time.Time) *v1alpha1.ProviderPause {
	pause := &v1alpha1.ProviderPause{
		Reason: res.Reason, Since: stamp(now), Generation: provider.Generation, Secrets: secrets, Message: clip(res.Message, 2048),
	}
	switch res.Follow {
	case outcome.FollowPark:
		pause.Until = stampUp(now.Add(provider.Spec.Retry.MaxBackoff.Duration))
	case outcome.FollowClose:
	case outcome.FollowRetry:
		wish := RetryAfter(provider.Spec.Retry, res.RetryAfter)
		if wish <= 0 || res.Class != outcome.Rejected {
			return nil
		}
		pause.Until = stampUp(now.Add(wish))
	case outcome.FollowNone, outcome.FollowDeadLetter:
		return nil
	}
	return pause
}

// StrongerPause is the one of two pauses that outweighs the other: what is known of
// the provider's present generation before what is known of an older one, an endpoint
// that is gone before a wrong configuration, that before a wish to be left alone, and
// of two of a kind the one that lasts longer. Answers overtake each other on their way.
func StrongerPause(a, b *v1alpha1.ProviderPause) *v1alpha1.ProviderPause {
	switch {
	case a == nil:
		return b
	case b == nil:
		return a
	case a.Generation != b.Generation:
		if b.Generation > a.Generation {
			return b
		}
		return a
	case weight(a) != weight(b):
		if weight(b) > weight(a) {
			return b
		}
		return a
	case a.Until != nil && b.Until != nil && b.Until.After(a.Until.Time):
		return b
	}
	return a
}

func weight(pause *v1alpha1.ProviderPause) int {
	switch {
	case pause.Reason == outcome.ReasonEndpointGone:
		return 2
	case Parking(pause):
		return 1
	}
	return 0
}

// ClearsPause tells whether a call that was begun at start and accepted ends a pause:
// one for a wrong configuration, if it was begun after that, which is kept in whole
// seconds. What is gone stays gone.
func ClearsPause(pause *v1alpha1.ProviderPause, start time.Time) bool {
	return pause != nil && Parking(pause) && pause.Reason != outcome.ReasonEndpointGone &&
		(pause.Since == nil || !start.Before(pause.Since.Add(time.Second)))
}

// clip shortens a text to so many bytes, at a rune boundary.
func clip(s string, limit int) string {
	if len(s) <= limit {
		return s
	}
	return strings.ToValidUTF8(s[:limit], "")
}
