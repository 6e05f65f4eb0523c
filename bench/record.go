package bench

import (
	"runtime"
	"sync/atomic"
	"syscall"
	"time"

	"github.com/HdrHistogram/hdrhistogram-go"
)

// recorder collects latencies of one goroutine; recorders are merged when the run is over.
type recorder struct{ h *hdrhistogram.Histogram }

// newRecorder holds 100 ns to 60 s at three digits.
func newRecorder() recorder { return recorder{hdrhistogram.New(100, 60_000_000_000, 3)} }

func (r recorder) record(d time.Duration) {
	// Beyond the range is an outage, not a latency: the highest value stands for it.
	_ = r.h.RecordValue(min(d.Nanoseconds(), 60_000_000_000))
}

// merge adds up recorders into percentiles.
func merge(rs []recorder) Latency {
	sum := newRecorder().h
	for _, r := range rs {
		sum.Merge(r.h)
	}
	at := func(q float64) float64 { return float64(sum.ValueAtQuantile(q)) / 1e3 }
	return Latency{at(50), at(90), at(99), float64(sum.Max()) / 1e3}
}

// hiccups runs until stopped and remembers the longest gap between two looks at the clock: what
// the machine, not the program, adds to a tail. It sleeps a millisecond between looks.
type hiccups struct {
	stop atomic.Bool
	done chan struct{}
	max  time.Duration
}

func newHiccups() *hiccups {
	h := &hiccups{done: make(chan struct{})}
	go func() {
		defer close(h.done)
		for at := time.Now(); !h.stop.Load(); {
			time.Sleep(time.Millisecond)
			now := time.Now()
			h.max = max(h.max, now.Sub(at)-time.Millisecond)
			at = now
		}
	}()
	return h
}

// Stop ends the watch and returns the longest gap in ms.
func (h *hiccups) Stop() float64 {
	h.stop.Store(true)
	<-h.done
	return float64(h.max.Microseconds()) / 1e3
}

// cpuTime is user plus system time that this process has used.
func cpuTime() time.Duration {
	var u syscall.Rusage
	if err := syscall.Getrusage(syscall.RUSAGE_SELF, &u); err != nil {
		return 0
	}
	return time.Duration(u.Utime.Nano() + u.Stime.Nano())
}

// mallocs is the number of heap objects that this process has allocated.
func mallocs() uint64 {
	var m runtime.MemStats
	runtime.ReadMemStats(&m)
	return m.Mallocs
}
