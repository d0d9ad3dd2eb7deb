// SPDX-FileCopyrightText: The WorkItem Operator Authors
// SPDX-License-Identifier: Apache-2.0

// Package metrics names every metric of the operator. Labels come from closed
// sets or name a provider; never an item, a URL or anything else without bound.
package metrics

import (
	"time"

	"github.com/prometheus/client_golang/prometheus"
)

var (
	transitions = prometheus.NewCounterVec(prometheus.CounterOpts{
		Name: "workitem_transitions_total",
		Help: "Transitions committed to WorkItems, by the phase or step that they lead to.",
	}, []string{"transition"})
	conflicts = prometheus.NewCounterVec(prometheus.CounterOpts{
		Name: "workitem_transition_conflicts_total",
		Help: "Status writes that lost a race and decided again, by kind.",
	}, []string{"kind"})
	attempts = prometheus.NewCounterVec(prometheus.CounterOpts{
		Name: "workitem_notification_attempts_total",
		Help: "Attempts to send a notification whose outcome was recorded, by provider and outcome.",
	}, []string{"namespace", "provider", "outcome", "reason"})
	finished = prometheus.NewCounterVec(prometheus.CounterOpts{
		Name: "workitem_notifications_finished_total",
		Help: "Notifications that ended, by provider and phase.",
	}, []string{"namespace", "provider", "phase"})
	claims = prometheus.NewCounterVec(prometheus.CounterOpts{
		Name: "workitem_claims_total",
		Help: "Decisions about claims on outboxes, by what came of them.",
	}, []string{"result"})
	delay = prometheus.NewHistogramVec(prometheus.HistogramOpts{
		Name:    "workitem_transition_to_sent_seconds",
		Help:    "Time from the committed transition to the provider's acceptance.",
		Buckets: []float64{.05, .1, .25, .5, 1, 2.5, 5, 10, 30, 60, 300, 1800, 7200, 86400},
	}, []string{"namespace", "provider"})
	inFlight = prometheus.NewGaugeVec(prometheus.GaugeOpts{
		Name: "workitem_notification_calls_in_flight",
		Help: "Calls to providers that are under way in this replica.",
	}, []string{"namespace", "provider"})
	breakerOpen = prometheus.NewGaugeVec(prometheus.GaugeOpts{
		Name: "workitem_provider_breaker_open",
		Help: "Whether this replica's circuit breaker keeps it from calling a provider: 1 while it is open or probing.",
	}, []string{"namespace", "provider"})
	late = prometheus.NewCounter(prometheus.CounterOpts{
		Name: "workitem_late_results_total",
		Help: "Outcomes that were not recorded because another replica had taken the outbox over.",
	})
)

// Register adds every metric of the operator to a registry, except for Outboxes, which
// needs a cache.
func Register(registry prometheus.Registerer) error {
	for _, c := range []prometheus.Collector{transitions, conflicts, attempts, finished, claims, delay, inFlight, breakerOpen, late} {
		if err := registry.Register(c); err != nil {
			return err
		}
	}
	return nil
}

// Transition counts a committed transition.
func Transition(to string) { transitions.WithLabelValues(to).Inc() }

// Conflict counts a status write of a kind that lost a race.
func Conflict(kind string) { conflicts.WithLabelValues(kind).Inc() }

// Attempt counts an attempt whose outcome was recorded.
func Attempt(namespace, provider, outcome, reason string) {
	attempts.WithLabelValues(namespace, provider, outcome, reason).Inc()
}

// Finished counts a notification that ended in a phase.
func Finished(namespace, provider, phase string) {
	finished.WithLabelValues(namespace, provider, phase).Inc()
}

// Sent observes how long a notification took from its transition to its acceptance.
func Sent(namespace, provider string, took time.Duration) {
	delay.WithLabelValues(namespace, provider).Observe(took.Seconds())
}

// Claim counts what came of a decision about a claim: created, renewed, takenOver,
// lost or preempted.
func Claim(result string) { claims.WithLabelValues(result).Inc() }

// InFlight adds to the calls under way at a provider.
func InFlight(namespace, provider string, change float64) {
	inFlight.WithLabelValues(namespace, provider).Add(change)
}

// BreakerOpen tells whether the circuit breaker of a provider is open.
func BreakerOpen(namespace, provider string, open bool) {
	value := 0.0
	if open {
		value = 1
	}
	breakerOpen.WithLabelValues(namespace, provider).Set(value)
}

// LateResult counts an outcome that came too late to be recorded.
func LateResult() { late.Inc() }
