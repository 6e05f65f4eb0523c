package history

import (
	"clobd/journal/disk"

	"github.com/prometheus/client_golang/prometheus"
)

const ofIndex disk.Subsystem = "index"

type gauges struct {
	batches prometheus.Counter
	rows    prometheus.Counter
	reads   prometheus.Counter
	flushes prometheus.Counter
}

func newGauges() *gauges {
	counter := ofIndex.Counter
	return &gauges{
		batches: counter("batches_total", "Batches of frames folded into the index."),
		rows:    counter("rows_written_total", "Order rows written."),
		reads:   counter("rows_read_total", "Order rows read back in order to be updated."),
		flushes: counter("flushes_total", "Times the index was told to become durable."),
	}
}

// Collectors returns the index's metrics for the caller to register.
func (x *Index) Collectors() []prometheus.Collector {
	gauge := ofIndex.Gauge
	return []prometheus.Collector{
		x.gauges.batches, x.gauges.rows, x.gauges.reads, x.gauges.flushes, x.guard.Failures,
		gauge("filter_bytes", "Memory of the filter that says which orders are unknown.",
			func() float64 { return float64(x.fold.filter.bytes()) }),
		gauge("durable_sequence", "Sequence from which a crash would make the index go on, at least.",
			func() float64 { return float64(x.durable.load()) }),
		gauge("held", "1 while the index does not move, because it failed or its disk takes nothing.",
			func() float64 {
				if x.History.Failed() != nil {
					return 1
				}
				return 0
			}),
		gauge("sequence", "Last Sequence folded into the index.", func() float64 {
			return float64(x.History.Sequence())
		}),
		gauge("lag_commands", "Durable Commands that the index has not folded yet.", func() float64 {
			done := x.History.Sequence()
			return float64(max(x.j.Sequence(), done) - done)
		}),
	}
}
