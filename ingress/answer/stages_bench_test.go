package answer

import (
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus"
)

// BenchmarkWatch does what the clock of the stages does for an order over HTTP: of four orders one
// is timed. The histograms are shaped as those of a node.
func BenchmarkWatch(b *testing.B) {
	var stages [5]prometheus.Observer // parse, authenticate, verify, wait, answer
	for i := range stages {
		stages[i] = prometheus.NewHistogram(prometheus.HistogramOpts{Name: "seconds",
			Buckets: prometheus.ExponentialBuckets(1e-6, 2, 22), NativeHistogramBucketFactor: 1.1,
			NativeHistogramMaxBucketNumber: 160})
	}
	slowest, n := new(Slowest), uint64(0)
	b.ReportAllocs()
	for b.Loop() {
		n++
		watch := WatchNth(n)
		var took Took
		for i := range stages {
			took[i] = watch.End(stages[i], watch.Begin())
		}
		if watch {
			now := time.Now()
			slowest.Note(&Late{At: now, Total: time.Duration(n % 1000), Stages: took})
		}
	}
}
