package journal

import (
	"sync/atomic"
	"time"

	"clobd/engine"

	"github.com/prometheus/client_golang/prometheus"
)

// gauges are the journal's metrics.
type gauges struct {
	sequence atomic.Uint64 // last durable Sequence
	bytes    prometheus.Counter
	frames   prometheus.Counter
	commands prometheus.Counter
	marks    prometheus.Counter
	sync     prometheus.Histogram
}

// subsystem is the part that a metric is of: the word behind clobd_ in its name.
type subsystem string

const (
	ofJournal subsystem = "journal"
	ofIndex   subsystem = "index"
)

// counter makes a counter, registered nowhere.
func (s subsystem) counter(name, help string) prometheus.Counter {
	return prometheus.NewCounter(prometheus.CounterOpts{
		Namespace: "clobd", Subsystem: string(s), Name: name, Help: help})
}

// gauge makes a gauge that is read when it is asked for.
func (s subsystem) gauge(name, help string, value func() float64) prometheus.Collector {
	return prometheus.NewGaugeFunc(prometheus.GaugeOpts{
		Namespace: "clobd", Subsystem: string(s), Name: name, Help: help}, value)
}

// newGauges makes them, registered nowhere.
func newGauges() *gauges {
	counter := ofJournal.counter
	return &gauges{
		bytes:    counter("append_bytes_total", "Encoded bytes of the frames appended."),
		frames:   counter("append_frames_total", "Frames appended."),
		commands: counter("append_commands_total", "Commands in the frames appended."),
		marks:    counter("mark_writes_total", "Times the high-water mark was written."),
		sync: prometheus.NewHistogram(prometheus.HistogramOpts{
			Namespace: "clobd", Subsystem: "journal", Name: "sync_seconds",
			Help:    "From Append of a frame until it is durable.",
			Buckets: prometheus.ExponentialBuckets(50e-6, 2, 16), // 50 us to 1.6 s
		}),
	}
}

// appended counts a frame given to the log.
func (g *gauges) appended(bytes, commands int) {
	g.bytes.Add(float64(bytes))
	g.frames.Inc()
	g.commands.Add(float64(commands))
}

// synced notes that Sequence last is durable.
func (g *gauges) synced(took time.Duration, last engine.Sequence) {
	g.sync.Observe(took.Seconds())
	g.sequence.Store(uint64(last))
}

// Collectors are the journal's metrics, for the caller to register.
func (j *Journal) Collectors() []prometheus.Collector {
	gauge := ofJournal.gauge
	return []prometheus.Collector{
		j.gauges.bytes, j.gauges.frames, j.gauges.commands, j.gauges.marks, j.gauges.sync,
		j.ward.failures,
		gauge("sequence", "Last durable Sequence.", func() float64 {
			return float64(j.gauges.sequence.Load())
		}),
		gauge("oldest_unsynced_seconds", "How long the oldest frame has waited for its sync, 0 if none "+
			"waits.", func() float64 { return j.Unsynced().Seconds() }),
		gauge("frames_in_flight", "Frames appended and not yet durable.", func() float64 {
			return float64(len(j.flight))
		}),
	}
}

// indexGauges are the index's metrics.
type indexGauges struct {
	batches prometheus.Counter
	rows    prometheus.Counter
	reads   prometheus.Counter
	flushes prometheus.Counter
}

// newIndexGauges makes them, registered nowhere.
func newIndexGauges() *indexGauges {
	counter := ofIndex.counter
	return &indexGauges{
		batches: counter("batches_total", "Batches of frames folded into the index."),
		rows:    counter("rows_written_total", "Order rows written."),
		reads:   counter("rows_read_total", "Order rows read back in order to be updated."),
		flushes: counter("flushes_total", "Times the index was told to become durable."),
	}
}

// Collectors are the index's metrics, for the caller to register.
func (x *Index) Collectors() []prometheus.Collector {
	gauge := ofIndex.gauge
	return []prometheus.Collector{
		x.gauges.batches, x.gauges.rows, x.gauges.reads, x.gauges.flushes, x.ward.failures,
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
			done := uint64(x.History.Sequence())
			return float64(max(x.j.gauges.sequence.Load(), done) - done)
		}),
	}
}
