package diff

import (
	"errors"
	"fmt"
	"io"
	"math"
	"slices"
	"strings"

	"golang.org/x/perf/benchmath"

	"clobd/bench"
)

// Alpha is the p above which no difference is found.
const Alpha = 0.05

// The verdicts of a figure.
const (
	Same   = "no difference found"
	Better = "better"
	Worse  = "worse"
)

// Gauge is a figure of both sides.
type Gauge struct {
	Name string  `json:"name"`
	A    float64 `json:"a"` // median
	B    float64 `json:"b"`
	// Percent is how much B is above A. It is null if the median of A is 0.
	Percent  *float64 `json:"delta_percent"`
	P        float64  `json:"p"`
	SamplesA int      `json:"samples_a"`
	SamplesB int      `json:"samples_b"`
	Verdict  string   `json:"verdict"` // of B; Same unless P is at most Alpha
	Note     string   `json:"note,omitempty"`
}

// Outcome is what a comparison came to.
type Outcome struct {
	Gauges   []Gauge  `json:"figures"`
	Decides  string   `json:"decides"` // the name of the figure that decides
	Verdict  string   `json:"verdict"`
	Warnings []string `json:"warnings"`
}

// gauge is how a figure is read from a report.
type gauge struct {
	name, format string
	less         bool // is better
	of           func(p *bench.Part) *float64
}

// The names of the figures that decide.
const (
	cpuName  = "CPU µs/op"
	rateName = "operations/s"
)

// gauges are all figures.
func gauges() []gauge {
	return []gauge{
		{cpuName, "%.2f", true, func(p *bench.Part) *float64 { return p.CPUMicros }},
		{rateName, "%.0f", false, func(p *bench.Part) *float64 { return &p.Rate }},
		{"p50 µs", "%.1f", true, func(p *bench.Part) *float64 { return &p.P50 }},
		{"p99 µs", "%.1f", true, func(p *bench.Part) *float64 { return &p.P99 }},
	}
}

// Reports compares the reports of two sides. Each side has at least one. Sides that measured
// different things, or different machines, are an error unless force is set.
func Reports(a, b []*bench.Report, force bool) (*Outcome, error) {
	if err := figured(a, b); err != nil {
		return nil, err
	}
	refused, warnings := alike(append(slices.Clone(a), b...), len(a))
	if len(refused) > 0 && !force {
		return nil, errors.New("the sides cannot be compared: " + strings.Join(refused, "; "))
	}
	out := &Outcome{Warnings: append(refused, warnings...), Decides: rateName}
	for _, g := range gauges() {
		one, some := g.compare(samples(a, g.of), samples(b, g.of))
		if !some {
			continue
		}
		out.Gauges = append(out.Gauges, one)
		if g.name == cpuName {
			out.Decides = cpuName
		}
	}
	for i := range out.Gauges {
		if g := &out.Gauges[i]; g.Name == out.Decides {
			out.Verdict = g.Verdict
		}
	}
	return out, nil
}

// figured makes sure that each report has figures of what was measured.
func figured(a, b []*bench.Report) error {
	if len(a) == 0 || len(b) == 0 {
		return errors.New("each side needs a report")
	}
	for _, r := range append(slices.Clone(a), b...) {
		switch {
		case r.Failure != "":
			return fmt.Errorf("a run of %s %s has no figure: %s", r.Workload, r.Level, r.Failure)
		case r.Invalid != "":
			return fmt.Errorf("a run of %s %s is invalid: %s", r.Workload, r.Level, r.Invalid)
		}
	}
	return nil
}

// samples are the values of a figure, one a turn. A run without turns is one turn. A turn that does
// not know the figure is left out.
func samples(reports []*bench.Report, of func(p *bench.Part) *float64) (all []float64) {
	for _, r := range reports {
		turns := r.Turns
		if len(turns) == 0 {
			turns = []bench.Part{{Seconds: r.Seconds, Operations: r.Operations, Rate: r.Rate,
				CPUMicros: r.CPUMicros, P50: r.ServiceMicros.P50, P99: r.ServiceMicros.P99}}
		}
		for i := range turns {
			if v := of(&turns[i]); v != nil && !math.IsNaN(*v) {
				all = append(all, *v)
			}
		}
	}
	return all
}

// compare tests whether the sides differ. False means that a side does not know the figure.
func (g *gauge) compare(a, b []float64) (Gauge, bool) {
	if len(a) == 0 || len(b) == 0 {
		return Gauge{}, false
	}
	out := Gauge{Name: g.name, A: bench.Median(a), B: bench.Median(b), SamplesA: len(a),
		SamplesB: len(b), Verdict: Same}
	t := &benchmath.Thresholds{CompareAlpha: Alpha}
	c := benchmath.AssumeNothing.Compare(benchmath.NewSample(slices.Clone(a), t),
		benchmath.NewSample(slices.Clone(b), t))
	out.P = c.P
	for _, w := range c.Warnings {
		out.Note = w.Error()
	}
	if out.A != 0 {
		out.Percent = new(100 * (out.B/out.A - 1))
	}
	if c.P <= Alpha && out.A != out.B {
		out.Verdict = Worse
		if (out.B < out.A) == g.less {
			out.Verdict = Better
		}
	}
	return out, true
}

// WriteText prints the table, what to know about it, and the verdict.
func (o *Outcome) WriteText(w io.Writer) {
	fmt.Fprintf(w, "%-14s %12s %12s %9s %8s  %s\n", "figure", "A median", "B median", "delta", "p",
		"samples")
	for _, g := range gauges() {
		for i := range o.Gauges {
			if o.Gauges[i].Name == g.name {
				o.Gauges[i].write(w, g.format)
			}
		}
	}
	for _, warning := range o.Warnings {
		fmt.Fprintf(w, "warning: %s\n", warning)
	}
	fmt.Fprintf(w, "verdict: %s\n", o.Sentence())
}

// write prints the row of a figure.
func (g *Gauge) write(w io.Writer, format string) {
	delta, verdict := g.delta(), g.Verdict
	if verdict == Same {
		delta, verdict = "~", "~ "+Same
	}
	if g.Note != "" {
		verdict += " (" + g.Note + ")"
	}
	fmt.Fprintf(w, "%-14s %12s %12s %9s %8.3f  n=%d+%d  %s\n", g.Name, fmt.Sprintf(format, g.A),
		fmt.Sprintf(format, g.B), delta, g.P, g.SamplesA, g.SamplesB, verdict)
}

// delta is how much B is above A.
func (g *Gauge) delta() string {
	if g.Percent == nil {
		return "?"
	}
	return fmt.Sprintf("%+.1f%%", *g.Percent)
}

// Sentence is the verdict in one line.
func (o *Outcome) Sentence() string {
	for i := range o.Gauges {
		g := &o.Gauges[i]
		if g.Name != o.Decides {
			continue
		}
		if g.Verdict == Same {
			return fmt.Sprintf("%s in %s (p=%.3f, n=%d+%d)", Same, g.Name, g.P, g.SamplesA, g.SamplesB)
		}
		return fmt.Sprintf("B is %s: %s %s (p=%.3f, n=%d+%d)", g.Verdict, g.Name, g.delta(), g.P,
			g.SamplesA, g.SamplesB)
	}
	return "there is no figure that both sides know"
}
