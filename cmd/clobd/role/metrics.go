package role

import (
	"github.com/prometheus/client_golang/prometheus"

	"clobd/engine/sequencer"
	"clobd/engine/view"
)

func writerMetrics(s *sequencer.Sequencer, b *view.Board) []prometheus.Collector {
	counter := func(name, help string, read func(sequencer.Counters) uint64) prometheus.Collector {
		return prometheus.NewCounterFunc(prometheus.CounterOpts{Namespace: "clobd",
			Subsystem: "sequencer", Name: name, Help: help},
			func() float64 { return float64(read(s.Counters())) })
	}
	return []prometheus.Collector{
		counter("commands_total", "Commands made durable and answered.",
			func(c sequencer.Counters) uint64 { return c.Commands }),
		counter("frames_total", "Frames made durable.",
			func(c sequencer.Counters) uint64 { return c.Frames }),
		counter("busy_total", "Commands refused because the ring was full.",
			func(c sequencer.Counters) uint64 { return c.Busy }),
		counter("timeouts_total", "Callers that left before their answer.",
			func(c sequencer.Counters) uint64 { return c.Timeouts }),
		prometheus.NewGaugeFunc(prometheus.GaugeOpts{Namespace: "clobd", Subsystem: "sequencer",
			Name: "sequence", Help: "Last published Sequence."},
			func() float64 { return float64(b.Sequence()) }),
		prometheus.NewGaugeFunc(prometheus.GaugeOpts{Namespace: "clobd", Subsystem: "sequencer",
			Name: "ring_depth", Help: "Commands waiting in the ring."},
			func() float64 { return float64(s.Counters().Depth) }),
	}
}
