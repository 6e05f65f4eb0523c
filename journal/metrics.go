package journal

import (
	"sync/atomic"
	"time"

	"clobd/engine"
	"clobd/journal/disk"

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

const ofJournal disk.Subsystem = "journal"

func newGauges() *gauges {
	counter := ofJournal.Counter
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

// synced counts a frame that became durable with Sequence last.
func (g *gauges) synced(took time.Duration, last engine.Sequence) {
	g.sync.Observe(took.Seconds())
	g.sequence.Store(uint64(last))
}

// Collectors are the journal's metrics, for the caller to register.
func (j *Journal) Collectors() []prometheus.Collector {
	gauge := ofJournal.Gauge
	return []prometheus.Collector{
		j.gauges.bytes, j.gauges.frames, j.gauges.commands, j.gauges.marks, j.gauges.sync,
		j.guard.Failures,
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
