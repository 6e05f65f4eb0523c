package page

import (
	"math"
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/prometheus/client_golang/prometheus"
	dto "github.com/prometheus/client_model/go"
)

// read is a histogram as it is gathered.
func read(t *testing.T, h prometheus.Histogram) spread {
	t.Helper()
	var m dto.Metric
	if err := h.Write(&m); err != nil {
		t.Fatal(err)
	}
	return spreadOf(m.GetHistogram())
}

// TestQuantiles: percentiles of what came between two looks are those of the numbers themselves,
// within the width of a bucket, also if the histogram has joined buckets meanwhile.
func TestQuantiles(t *testing.T) {
	for _, c := range []struct {
		name    string
		options prometheus.HistogramOpts
		wrong   float64 // factor
	}{
		{"native", prometheus.HistogramOpts{NativeHistogramBucketFactor: 1.1}, 1.1},
		{"joined", prometheus.HistogramOpts{NativeHistogramBucketFactor: 1.1,
			NativeHistogramMaxBucketNumber: 30}, 1.5},
		{"classic", prometheus.HistogramOpts{Buckets: prometheus.ExponentialBuckets(1e-6, 2, 22)}, 2},
	} {
		h := prometheus.NewHistogram(c.options)
		draw := rand.New(rand.NewPCG(1, 2))
		for range 5000 {
			h.Observe(1e-4 * math.Exp(0.2*draw.NormFloat64()))
		}
		before := read(t, h)
		var all []float64
		for range 20_000 {
			v := 2e-5 * math.Exp(draw.NormFloat64())
			all = append(all, v)
			h.Observe(v)
		}
		slices.Sort(all)
		got := read(t, h).since(before)
		if got.count < 19_000 || got.count > 20_000 {
			t.Errorf("%s: %d samples", c.name, got.count)
		}
		for _, q := range []float64{0.5, 0.9, 0.99} {
			want, is := all[int(q*float64(len(all)))], got.quantile(q)
			if is > want*c.wrong || is < want/c.wrong {
				t.Errorf("%s: quantile %v is %v, want %v", c.name, q, is, want)
			}
		}
	}
}

// TestSpreadEnds: nothing came, everything is above the last bound, the histogram began anew.
func TestSpreadEnds(t *testing.T) {
	h := prometheus.NewHistogram(prometheus.HistogramOpts{Buckets: []float64{1, 2}})
	if got := read(t, h).quantile(0.5); got != 0 {
		t.Errorf("of nothing: %v", got)
	}
	h.Observe(5)
	if got := read(t, h).quantile(0.5); got != 2 {
		t.Errorf("above all bounds: %v", got)
	}
	h.Observe(5)
	other := prometheus.NewHistogram(prometheus.HistogramOpts{Buckets: []float64{1, 2}})
	other.Observe(0.5)
	if got := read(t, other).since(read(t, h)); got.count != 1 {
		t.Errorf("anew: %+v", got)
	}
}
