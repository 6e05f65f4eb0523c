package lean

import (
	"time"

	"github.com/HdrHistogram/hdrhistogram-go"
)

// longest is the highest time that histograms hold, in ns. A longer time is an outage, and counts
// as this long.
const longest = int64(time.Minute)

// newTimes makes a histogram for times from 1 ns with so many digits.
func newTimes(digits int) *hdrhistogram.Histogram { return hdrhistogram.New(1, longest, digits) }

// note records a time in ns.
func note(h *hdrhistogram.Histogram, ns int64) {
	_ = h.RecordValue(min(max(ns, 0), longest)) // within the bounds it does not fail
}

// Moment is a fifth of a second of a load, a second of one that takes more than a minute, or longer
// if the machine stood still.
type Moment struct {
	End    time.Duration `json:"end"`    // from the start
	Done   int64         `json:"done"`   // operations answered well
	Failed int64         `json:"failed"` // requests
	// P50 and P99 are of the good answers of the moment, corrected in an open loop, else from send to
	// answer. Times are all of them: a histogram of two digits in its compressed encoding V2.
	P50   time.Duration `json:"p50"`
	P99   time.Duration `json:"p99"`
	Times []byte        `json:"times"`
}

// momentOf is how long the moments of a load of this duration are.
func momentOf(d time.Duration) time.Duration {
	if d > time.Minute {
		return time.Second
	}
	return time.Second / 5
}

// leaf is what the thread that sends counts in during a moment.
type leaf struct {
	end          int64
	done, failed int64
	times        *hdrhistogram.Histogram
}

// describe is the Moment of a leaf.
func (f *leaf) describe() Moment {
	m := Moment{End: time.Duration(f.end), Done: f.done, Failed: f.failed}
	m.fill(f.times)
	return m
}

// fill sets what a histogram says.
func (m *Moment) fill(h *hdrhistogram.Histogram) {
	m.P50, m.P99 = time.Duration(h.ValueAtQuantile(50)), time.Duration(h.ValueAtQuantile(99))
	m.Times, _ = h.EncodeV2() // into memory
}

// scribe turns leaves into Moments, away from the thread that sends. There are two leaves: while
// one is counted in, the scribe describes the other. A scribe that is slow makes a moment longer.
type scribe struct {
	full, blank chan *leaf
	ended       chan struct{}
	moments     []Moment
	tell        func(Moment)
}

// newScribe starts one. tell is called for each Moment.
func newScribe(tell func(Moment)) (s *scribe, first *leaf) {
	s = &scribe{full: make(chan *leaf, 1), blank: make(chan *leaf, 1), ended: make(chan struct{}),
		tell: tell}
	s.blank <- &leaf{times: newTimes(2)}
	go s.write()
	return s, &leaf{times: newTimes(2)}
}

// write runs until turn is told that a leaf is the last.
func (s *scribe) write() {
	defer close(s.ended)
	for f := range s.full {
		m := f.describe()
		s.moments = append(s.moments, m)
		if s.tell != nil {
			s.tell(m)
		}
		f.times.Reset()
		f.done, f.failed = 0, 0
		s.blank <- f
	}
}

// turn takes a leaf that ends now and returns a blank one, or the same if the scribe still writes.
func (s *scribe) turn(f *leaf, now int64) *leaf {
	select {
	case next := <-s.blank:
		f.end = now
		s.full <- f
		return next
	default:
		return f
	}
}

// end takes the last leaf and returns all Moments.
func (s *scribe) end(f *leaf, now int64) []Moment {
	<-s.blank
	if f.end = now; f.done+f.failed > 0 || f.times.TotalCount() > 0 {
		s.full <- f
	}
	close(s.full)
	<-s.ended
	return s.moments
}

// mergeMoments joins the moments of two processes that began together.
func mergeMoments(a, b []Moment, length time.Duration) []Moment {
	slot := func(m *Moment) int64 { return int64((m.End + length/2) / length) }
	var out []Moment
	for len(a) > 0 && len(b) > 0 {
		switch at, bt := slot(&a[0]), slot(&b[0]); {
		case at < bt:
			out, a = append(out, a[0]), a[1:]
		case bt < at:
			out, b = append(out, b[0]), b[1:]
		default:
			m := a[0]
			m.add(&b[0])
			out, a, b = append(out, m), a[1:], b[1:]
		}
	}
	return append(append(out, a...), b...)
}

// add joins another process's moment of the same time to m.
func (m *Moment) add(other *Moment) {
	m.End = max(m.End, other.End)
	m.Done, m.Failed = m.Done+other.Done, m.Failed+other.Failed
	sum := newTimes(2)
	for _, b := range [][]byte{m.Times, other.Times} {
		if h, err := hdrhistogram.Decode(b); err == nil {
			sum.Merge(h)
		}
	}
	m.fill(sum)
}
