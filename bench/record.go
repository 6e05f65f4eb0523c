package bench

import (
	"runtime"
	"syscall"
	"time"

	"github.com/HdrHistogram/hdrhistogram-go"
)

// recorder collects latencies of one goroutine; recorders are merged when the run is over.
type recorder struct{ h *hdrhistogram.Histogram }

// newRecorder holds 1 ns to 60 s at three digits.
func newRecorder() recorder { return recorder{hdrhistogram.New(1, 60_000_000_000, 3)} }

func (r recorder) record(d time.Duration) {
	// A longer time is an outage, not a latency: the highest value stands for it.
	_ = r.h.RecordValue(min(d.Nanoseconds(), 60_000_000_000))
}

// latency is what was recorded, as percentiles.
func (r recorder) latency() Latency {
	at := func(q float64) float64 { return float64(r.h.ValueAtQuantile(q)) / 1e3 }
	return Latency{at(50), at(90), at(99), float64(r.h.Max()) / 1e3}
}

// cpuTime is user plus system time that this process has used.
func cpuTime() (time.Duration, error) {
	var u syscall.Rusage
	if err := syscall.Getrusage(syscall.RUSAGE_SELF, &u); err != nil {
		return 0, err
	}
	return time.Duration(u.Utime.Nano() + u.Stime.Nano()), nil
}

// mallocs is the number of heap objects that this process has allocated.
func mallocs() uint64 {
	var m runtime.MemStats
	runtime.ReadMemStats(&m)
	return m.Mallocs
}
