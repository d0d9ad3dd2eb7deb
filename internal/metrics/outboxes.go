// SPDX-FileCopyrightText: The WorkItem Operator Authors
// SPDX-License-Identifier: Apache-2.0

package metrics

import "github.com/prometheus/client_golang/prometheus"

// Depth is how many outboxes of a provider are in a phase.
type Depth struct {
	// Namespace, Provider and Phase say which are counted.
	Namespace, Provider, Phase string
}

// Outboxes is a collector of how many outboxes there are. It counts them when it is
// asked, so that it costs nothing in between and is never out of step.
type Outboxes struct {
	// Count counts the outboxes; it returns nothing if it cannot.
	Count func() map[Depth]int
}

var depth = prometheus.NewDesc("workitem_outboxes", "NotificationOutboxes that exist, by provider and phase.",
	[]string{"namespace", "provider", "phase"}, nil)

// Describe makes Outboxes a prometheus.Collector.
func (o Outboxes) Describe(ch chan<- *prometheus.Desc) { ch <- depth }

// Collect makes Outboxes a prometheus.Collector.
func (o Outboxes) Collect(ch chan<- prometheus.Metric) {
	for d, n := range o.Count() {
		ch <- prometheus.MustNewConstMetric(depth, prometheus.GaugeValue, float64(n), d.Namespace, d.Provider, d.Phase)
	}
}
