package page

import (
	"context"
	"math"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	dto "github.com/prometheus/client_model/go"
)

const (
	idlePause  = 5 * time.Second        // between two samples while nobody looks
	freshness  = 900 * time.Millisecond // of a sample that need not be taken again
	lookPause  = 300 * time.Millisecond // that a look waits for a new sample
	shortSpan  = 10 * time.Second
	longSpan   = time.Minute
	kept       = longSpan + 2*idlePause
	seriesKept = 1000 // of a sample
)

// gathered is a sample: all metrics of the node at one instant, by names such as
// clobd_limits_hit_total{window="book"}.
type gathered struct {
	at      time.Time
	figures map[string]float64
	counts  map[string]bool // which figures only grow
	spreads map[string]spread
}

// sampler keeps samples of the last minute. It takes one each second while somebody looks, and one
// each 5 s otherwise, so that whoever comes sees the minute before. A sample that does not end, as
// a metric waits for a disk, makes nobody wait: the older ones are shown with their age.
type sampler struct {
	metrics prometheus.Gatherer
	asked   chan struct{}

	mutex   sync.Mutex
	samples []*gathered   // oldest first
	taken   chan struct{} // closed by the next sample
}

// run takes samples until ctx is done.
func (s *sampler) run(ctx context.Context) {
	for {
		if !s.fresh() { // somebody may have asked while the last one was taken
			s.take(time.Now())
		}
		select {
		case <-ctx.Done():
			return
		case <-s.asked:
		case <-time.After(idlePause):
		}
	}
}

func (s *sampler) fresh() bool {
	s.mutex.Lock()
	defer s.mutex.Unlock()
	n := len(s.samples)
	return n > 0 && time.Since(s.samples[n-1].at) < freshness
}

func (s *sampler) take(now time.Time) {
	all, _ := s.metrics.Gather() // what could be read, if something could not
	latest := &gathered{now, map[string]float64{}, map[string]bool{}, map[string]spread{}}
	for _, family := range all {
		if name := family.GetName(); strings.HasPrefix(name, "clobd_") ||
			strings.HasPrefix(name, "go_") || strings.HasPrefix(name, "process_") {
			for _, m := range family.GetMetric() {
				latest.read(name, m)
			}
		}
	}
	s.mutex.Lock()
	defer s.mutex.Unlock()
	old := slices.IndexFunc(s.samples, func(o *gathered) bool { return now.Sub(o.at) < kept })
	if old < 0 {
		old = len(s.samples)
	}
	s.samples = append(slices.Delete(s.samples, 0, old), latest)
	close(s.taken)
	s.taken = make(chan struct{})
}

// read adds a metric to a sample. A series with a label that has counted nothing is left out.
func (s *gathered) read(name string, m *dto.Metric) {
	if len(s.figures)+len(s.spreads) >= seriesKept {
		return
	}
	if labels := m.GetLabel(); len(labels) > 0 {
		parts := make([]string, len(labels))
		for i, l := range labels {
			parts[i] = l.GetName() + `="` + l.GetValue() + `"`
		}
		name += "{" + strings.Join(parts, ",") + "}"
	}
	switch {
	case m.Gauge != nil:
		s.figures[name] = finite(m.GetGauge().GetValue())
	case m.Counter != nil:
		if v := m.GetCounter().GetValue(); v != 0 || len(m.GetLabel()) == 0 {
			s.figures[name], s.counts[name] = finite(v), true
		}
	case m.Histogram != nil && m.GetHistogram().GetSampleCount() > 0:
		s.spreads[name] = spreadOf(m.GetHistogram())
	case m.Summary != nil: // of pauses of the garbage collector
		for _, q := range m.GetSummary().GetQuantile() {
			if q.GetQuantile() == 1 {
				s.figures[name+`{quantile="1"}`] = finite(q.GetValue())
			}
		}
		s.figures[name+"_count"] = float64(m.GetSummary().GetSampleCount())
		s.counts[name+"_count"] = true
	}
}

// finite makes a number that JSON can hold.
func finite(v float64) float64 {
	if math.IsNaN(v) || math.IsInf(v, 0) {
		return -1
	}
	return v
}

// look returns the trend of the node, with a new sample if there is one soon.
func (s *sampler) look() trend {
	s.mutex.Lock()
	taken := s.taken
	s.mutex.Unlock()
	if s.fresh() {
		return s.latest()
	}
	select {
	case s.asked <- struct{}{}:
	default: // somebody has asked
	}
	select {
	case <-taken:
	case <-time.After(lookPause):
	}
	return s.latest()
}

// trend is a sample beside earlier ones: the sample before it, and those of about 10 s and a minute
// ago. All are nil before the first sample.
type trend struct{ now, before, short, long *gathered }

func (s *sampler) latest() (t trend) {
	s.mutex.Lock()
	defer s.mutex.Unlock()
	n := len(s.samples)
	if n == 0 {
		return t
	}
	t.now, t.before = s.samples[n-1], s.samples[max(n-2, 0)]
	ago := func(d time.Duration) *gathered {
		for _, o := range slices.Backward(s.samples) {
			if t.now.at.Sub(o.at) >= d-freshness {
				return o
			}
		}
		return s.samples[0]
	}
	t.short, t.long = ago(shortSpan), ago(longSpan)
	return t
}

// trails returns what figures were in the last minute, from each sample to the next.
func (s *sampler) trails(names []string) map[string][][2]float64 {
	s.mutex.Lock()
	all := slices.Clone(s.samples)
	s.mutex.Unlock()
	found := map[string][][2]float64{}
	for _, name := range names {
		for i := 1; i < len(all); i++ {
			value := all[i].rate(name, all[i-1])
			if _, is := all[i].spreads[name]; is {
				_, value, _, _ = all[i].pace(name, all[i-1])
			}
			ago := all[len(all)-1].at.Sub(all[i].at)
			if ago <= longSpan {
				found[name] = append(found[name], [2]float64{ago.Seconds(), value})
			}
		}
	}
	return found
}

// rate is how much a counter has grown each second since an earlier sample. A counter that began
// anew counts from 0.
func (s *gathered) rate(name string, earlier *gathered) float64 {
	seconds := s.at.Sub(earlier.at).Seconds()
	if seconds <= 0 {
		return 0
	}
	grown := s.figures[name] - earlier.figures[name]
	if grown < 0 {
		grown = s.figures[name]
	}
	return grown / seconds
}

// pace is the median, the 99th percentile and the samples each second of a histogram since an
// earlier sample; some is false if nothing came.
func (s *gathered) pace(name string, earlier *gathered) (p50, p99, rate float64, some bool) {
	came := s.spreads[name].since(earlier.spreads[name])
	seconds := s.at.Sub(earlier.at).Seconds()
	if came.count == 0 || seconds <= 0 {
		return 0, 0, 0, false
	}
	return came.quantile(0.5), came.quantile(0.99), float64(came.count) / seconds, true
}
