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
	return Latency{at(50), at(90), at(99), float64(r.h.Max()) / 1e3}
}

// encoded is what was recorded, in the encoding of Report.Histograms; "" if nothing was.
func (r Recorder) encoded() string {
	if r.h.TotalCount() == 0 {
		return ""
	}
	b, err := r.h.Encode(hdrhistogram.V2CompressedEncodingCookieBase)
	if err != nil {
		panic("BUG: encode a histogram: " + err.Error())
	}
	return string(b)
}

// histograms are the recorded latencies by name, without those that are empty.
func histograms(service, corrected *Recorder) map[string]string {
	out := map[string]string{}
	for name, r := range map[string]*Recorder{"service": service, "corrected": corrected} {
		if r == nil {
			continue
		}
		if text := r.encoded(); text != "" {
			out[name] = text
		}
	}
	return out
}

// mallocs is the number of heap objects that this process has allocated.
func mallocs() uint64 {
	var m runtime.MemStats
	runtime.ReadMemStats(&m)
	return m.Mallocs
}
