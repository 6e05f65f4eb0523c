package page

import (
	"math"

	dto "github.com/prometheus/client_model/go"
)

// spread is a histogram at one instant.
type spread struct {
	count   uint64
	buckets []bin // ascending; empty ones may be missing
}

// bin is a bucket: it counts samples above lower, at most upper.
type bin struct {
	lower, upper float64
	n            uint64
}

// spreadOf reads the native buckets of a histogram, which are fine, or else the classic ones.
func spreadOf(h *dto.Histogram) spread {
	s := spread{count: h.GetSampleCount()}
	if len(h.GetPositiveSpan()) == 0 {
		before, lower := uint64(0), 0.0
		for _, b := range h.GetBucket() {
			s.buckets = append(s.buckets, bin{lower, b.GetUpperBound(), b.GetCumulativeCount() - before})
			before, lower = b.GetCumulativeCount(), b.GetUpperBound()
		}
		s.buckets = append(s.buckets, bin{lower, math.Inf(1), s.count - before})
		return s
	}
	s.buckets = append(s.buckets, bin{0, h.GetZeroThreshold(), h.GetZeroCount()})
	bound := func(i int32) float64 { // schema 3 has 8 buckets from one power of two to the next
		return math.Exp2(math.Ldexp(float64(i), -int(h.GetSchema())))
	}
	deltas, n, i := h.GetPositiveDelta(), int64(0), int32(0)
	for _, span := range h.GetPositiveSpan() {
		i += span.GetOffset()
		for range span.GetLength() {
			n += deltas[0]
			s.buckets = append(s.buckets, bin{bound(i - 1), bound(i), uint64(n)})
			deltas, i = deltas[1:], i+1
		}
	}
	return s
}

// since is what came after an earlier instant. A histogram that began anew meanwhile counts from
// there. Buckets that were joined meanwhile are compared with those that they were made of.
func (s spread) since(earlier spread) spread {
	if s.count < earlier.count {
		return s
	}
	gone, came := earlier.buckets, spread{}
	for _, b := range s.buckets {
		for ; len(gone) > 0 && gone[0].upper <= b.upper; gone = gone[1:] {
			b.n -= min(b.n, gone[0].n)
		}
		came.count += b.n
		came.buckets = append(came.buckets, b)
	}
	return came
}

// quantile estimates the value that a share of the samples does not exceed, 0 without samples. The
// error is at most the width of a bucket: a tenth of the value if the buckets are native.
func (s spread) quantile(share float64) float64 {
	rank, last := share*float64(s.count), 0.0
	for _, b := range s.buckets {
		switch n := float64(b.n); {
		case b.n == 0:
			continue
		case n < rank:
			rank -= n
			last = b.upper
			continue
		case math.IsInf(b.upper, 1):
			return b.lower
		case b.lower > 0:
			return b.lower * math.Pow(b.upper/b.lower, rank/n)
		default:
			return b.upper * rank / n
		}
	}
	return last
}
