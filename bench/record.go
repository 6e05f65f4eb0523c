package bench

import (
	"runtime"
	"time"

	"github.com/HdrHistogram/hdrhistogram-go"
)

// Recorder collects latencies of one goroutine; recorders are merged when the run is over.
type Recorder struct{ h *hdrhistogram.Histogram }

// NewRecorder makes a Recorder that holds 1 ns to 60 s at three digits.
func NewRecorder() Recorder { return Recorder{hdrhistogram.New(1, 60_000_000_000, 3)} }

// Record notes how long something took.
func (r Recorder) Record(d time.Duration) {
	// A longer time is an outage, not a latency: the highest value stands for it.
	_ = r.h.RecordValue(min(d.Nanoseconds(), 60_000_000_000))
}

// Latency is what was recorded, as percentiles.
func (r Recorder) Latency() Latency {
	at := func(q float64) float64 { return float64(r.h.ValueAtQuantile(q)) / 1e3 }
	l := Latency{P50: at(50), P90: at(90), P99: at(99), Max: float64(r.h.Max()) / 1e3}
	if r.h.TotalCount() >= tailSamples {
		l.P999 = new(at(99.9))
	}
	return l
}

// tailSamples is how many samples a p99.9 needs: of fewer it would be a handful of them.
const tailSamples = 10_000

// mallocs is the number of heap objects that this process has allocated.
func mallocs() uint64 {
	var m runtime.MemStats
	runtime.ReadMemStats(&m)
	return m.Mallocs
}
