package role

import (
	"github.com/prometheus/client_golang/prometheus"

	"clobd/engine"
	"clobd/engine/sequencer"
	"clobd/journal/disk"
)

// metrics are those of the node's writer, which is nil while it has none. epoch is that of its
// frames.
func (a *Common) metrics(
	writer func() *sequencer.Sequencer, epoch func() uint64) []prometheus.Collector {
	counts := func() (c sequencer.Counters) {
		if w := writer(); w != nil {
			c = w.Counters()
		}
		return c
	}
	const of disk.Subsystem = "sequencer"
	counter := func(name, help string, read func(sequencer.Counters) uint64) prometheus.Collector {
		return prometheus.NewCounterFunc(prometheus.CounterOpts{Namespace: "clobd",
			Subsystem: string(of), Name: name, Help: help},
			func() float64 { return float64(read(counts())) })
	}
	all := []prometheus.Collector{
		counter("commands_total", "Commands made durable and answered.",
			func(c sequencer.Counters) uint64 { return c.Commands }),
		counter("idle_total", "Cancels that found nothing: answered, and not journaled.",
			func(c sequencer.Counters) uint64 { return c.Idle }),
		counter("frames_total", "Frames made durable.",
			func(c sequencer.Counters) uint64 { return c.Frames }),
		counter("busy_total", "Commands refused because the ring was full.",
			func(c sequencer.Counters) uint64 { return c.Busy }),
		counter("timeouts_total", "Callers that left before their answer.",
			func(c sequencer.Counters) uint64 { return c.Timeouts }),
		of.Gauge("sequence", "Last published Sequence.",
			func() float64 { return float64(a.Board.Sequence()) }),
		of.Gauge("rules", "The version of the rules in force.",
			func() float64 { return float64(a.version()) }),
		of.Gauge("epoch", "Starts of a node on this journal, this one included; of a cluster's member: "+
			"the term.", func() float64 { return float64(epoch()) }),
		of.Gauge("ring_depth", "Commands waiting in the ring.",
			func() float64 { return float64(counts().Depth) }),
		of.Gauge("ring_slots", "Commands that may wait in the ring. Orders may fill 7 of 8 slots.",
			func() float64 { return float64(counts().Slots) }),
		of.Gauge("stalled_seconds", "How long Commands have waited while none was answered, to half "+
			"a second; 0 if none waits.", func() float64 {
			if w := writer(); w != nil {
				return w.Stalled().Seconds()
			}
			return 0
		}),
		counter("orders_total", "Orders that were accepted.",
			func(c sequencer.Counters) uint64 { return c.Orders }),
		counter("fills_total", "Matches of two orders.",
			func(c sequencer.Counters) uint64 { return c.Fills }),
		counter("cancels_total", "Orders that left a book with something unfilled.",
			func(c sequencer.Counters) uint64 { return c.Cancels }),
		counter("keys_made_total", "API keys that were made.",
			func(c sequencer.Counters) uint64 { return c.Keys }),
		counter("keys_revoked_total", "API keys that were given up.",
			func(c sequencer.Counters) uint64 { return c.Revoked }),
		of.Gauge("books", "Markets that are listed.",
			func() float64 { return float64(a.Board.Counters().Markets) }),
		of.Gauge("wallets", "Wallets and owners that have a number.",
			func() float64 { return float64(a.Board.Counters().Wallets) }),
	}
	return append(all, &rejects{counts})
}

// rejects collects how many Commands the engine has refused, by the code of the refusal.
type rejects struct{ counts func() sequencer.Counters }

var rejected = prometheus.NewDesc("clobd_sequencer_rejects_total",
	"Commands that the engine has refused, by code.", []string{"code"}, nil)

// Describe describes the one metric.
func (r *rejects) Describe(to chan<- *prometheus.Desc) { to <- rejected }

// Collect adds up the rules that have the same code.
func (r *rejects) Collect(to chan<- prometheus.Metric) {
	counts, sums := r.counts().Rejects, make(map[string]uint64)
	for no, n := range counts {
		if code := engine.Rejects[no].Code; code != "" {
			sums[code] += n
		}
	}
	for code, n := range sums {
		to <- prometheus.MustNewConstMetric(rejected, prometheus.CounterValue, float64(n), code)
	}
}
