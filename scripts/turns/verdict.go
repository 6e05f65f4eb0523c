package main

import (
	"fmt"
	"io"
	"slices"
)

// median is the middle value, of an even number of values the mean of the two in the middle; 0 of
// none.
func median(values []float64) float64 {
	if len(values) == 0 {
		return 0
	}
	s := slices.Sorted(slices.Values(values))
	return (s[(len(s)-1)/2] + s[len(s)/2]) / 2
}

// rounds are the values of one figure, by round, of the three contestants.
type rounds struct{ old, again, new []float64 }

// verdict is what the rounds of one figure come to.
type verdict struct {
	old, new float64 // medians; of old, those of both copies
	ratio    float64 // median over rounds of new by the mean of the two olds
	spread   float64 // at least 1: how far two runs of the same tree came apart
	behind   float64 // share of the rounds in which new took longer than either copy of old
}

// judge needs at least one round.
func (r *rounds) judge() verdict {
	var ratios, apart []float64
	behind := 0
	for i, a := range r.old {
		b := r.again[i]
		ratios = append(ratios, r.new[i]/((a+b)/2))
		apart = append(apart, max(a/b, b/a))
		if r.new[i] > max(a, b) {
			behind++
		}
	}
	slices.Sort(apart)
	most := len(apart) - 1
	if len(apart) > 3 {
		most-- // one round in which the machine did something else does not count
	}
	both := slices.Concat(r.old, r.again)
	return verdict{median(both), median(r.new), median(ratios), apart[most],
		float64(behind) / float64(len(r.old))}
}

// slower asks for both: without a difference, new is behind in a third of the rounds, and in a time
// of trouble a ratio of few rounds may exceed the spread by chance.
func (v *verdict) slower() bool { return v.ratio > v.spread && v.behind >= 0.75 }

// write prints one line a figure and reports whether any is slower.
func write(w io.Writer, names []string, all map[string]*rounds) (slower bool) {
	fmt.Fprintf(w, "%-20s %10s %10s %7s %7s %7s\n", "figure", "old", "new", "ratio", "A/A",
		"behind")
	for _, name := range names {
		v, text := all[name].judge(), "no slower"
		if v.slower() {
			slower, text = true, "SLOWER beyond the spread"
		}
		fmt.Fprintf(w, "%-20s %10.1f %10.1f %7.3f %7.3f %6.0f%%  %s\n", name, v.old, v.new, v.ratio,
			v.spread, 100*v.behind, text)
	}
	return slower
}
