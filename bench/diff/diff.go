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

// The tests, by which of them the samples allow.
const (
	Paired   = "paired sign-flip test"
	Unpaired = "Mann-Whitney U test"
)

// Middle is the median of a side's samples and its interval of 95 %, whose ends are null if the
// samples are too few.
type Middle struct {
	Median  float64  `json:"median"`
	Low     *float64 `json:"low"`
	High    *float64 `json:"high"`
	Samples int      `json:"samples"`
	spread  string   // of the interval, in percent
}

// Gauge is a figure of both sides.
type Gauge struct {
	Name string `json:"name"`
	A    Middle `json:"a"`
	B    Middle `json:"b"`
	Test string `json:"test"`
	// Percent is how much B is above A: by the geometric mean of the ratios of pairs, or by the
	// medians of sides that are not paired. It is null if the median of A is 0.
	Percent *float64 `json:"delta_percent"`
	// Pairs is how many pairs of rounds were compared, 0 if the sides are not paired.
	Pairs int `json:"pairs,omitempty"`
	// Low and High are the interval of Percent with 95 % confidence. They are null without pairs, and
	// with less than six.
	Low     *float64 `json:"delta_percent_low"`
	High    *float64 `json:"delta_percent_high"`
	P       float64  `json:"p"`
	Verdict string   `json:"verdict"` // of B; Same unless P is at most Alpha
	Note    string   `json:"note,omitempty"`
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
	of           func(t *turn) *float64
}

// turn is a turn of a run, or a run that has none.
type turn struct {
	bench.Part
	corrected *bench.Latency // nil in a closed loop
	round     int            // of its report
}

// The names of the figures that decide.
const (
	cpuName  = "CPU µs/op"
	rateName = "operations/s"
)

// gauges are all figures.
func gauges() []gauge {
	return []gauge{
		{cpuName, "%.2f", true, func(t *turn) *float64 { return t.CPUMicros }},
		{rateName, "%.0f", false, func(t *turn) *float64 { return &t.Rate }},
		{"p50 µs", "%.1f", true, func(t *turn) *float64 { return &t.P50 }},
		{"p99 µs", "%.1f", true, func(t *turn) *float64 { return &t.P99 }},
		{"corrected p50 µs", "%.1f", true, func(t *turn) *float64 {
			if t.corrected == nil {
				return nil
			}
			return &t.corrected.P50
		}},
		{"corrected p99 µs", "%.1f", true, func(t *turn) *float64 {
			if t.corrected == nil {
				return nil
			}
			return &t.corrected.P99
		}},
	}
}

// Reports compares the reports of two sides. Each side has at least one. If each report of A took
// turns with one of B, the rounds are compared in pairs. Sides that measured different things, or
// different machines, are an error unless force is set.
func Reports(a, b []*bench.Report, force bool) (*Outcome, error) {
	if err := figured(a, b); err != nil {
		return nil, err
	}
	refused, warnings := alike(append(slices.Clone(a), b...), len(a))
	if len(refused) > 0 && !force {
		return nil, errors.New("the sides cannot be compared: " + strings.Join(refused, "; "))
	}
	out := &Outcome{Warnings: append(refused, warnings...), Decides: rateName}
	beside := partners(a, b)
	one, other := turnsOf(a), turnsOf(b)
	if beside != nil {
		other = turnsOf(beside)
	}
	for _, g := range gauges() {
		figure, some := g.compare(one, other, beside != nil)
		if !some {
			continue
		}
		out.Gauges = append(out.Gauges, figure)
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

// turnsOf are the turns of the reports. A run without turns is one turn.
func turnsOf(reports []*bench.Report) (all []turn) {
	for _, r := range reports {
		for i := range r.Turns {
			all = append(all, turn{Part: r.Turns[i], round: i})
		}
		if len(r.Turns) == 0 {
			all = append(all, turn{bench.Part{Seconds: r.Seconds, Operations: r.Operations, Rate: r.Rate,
				CPUMicros: r.CPUMicros, P50: r.ServiceMicros.P50, P99: r.ServiceMicros.P99},
				r.CorrectedMicros, 0})
		}
	}
	return all
}

// samples are the values of a figure. A turn that does not know the figure is left out.
func samples(turns []turn, of func(t *turn) *float64) (all []float64) {
	for i := range turns {
		if v := of(&turns[i]); v != nil && !math.IsNaN(*v) {
			all = append(all, *v)
		}
	}
	return all
}

// compare tests whether the sides differ. False means that a side does not know the figure. Turns
// are compared in pairs if they are pairs and each has the figure, above 0.
func (g *gauge) compare(a, b []turn, pairs bool) (Gauge, bool) {
	x, y := samples(a, g.of), samples(b, g.of)
	if len(x) == 0 || len(y) == 0 {
		return Gauge{}, false
	}
	t := &benchmath.Thresholds{CompareAlpha: Alpha}
	left, right := benchmath.NewSample(slices.Clone(x), t), benchmath.NewSample(slices.Clone(y), t)
	out := Gauge{Name: g.name, A: middle(left), B: middle(right), Test: Unpaired, Verdict: Same}
	if pairs && len(x) == len(a) && len(y) == len(a) && slices.Min(x) > 0 && slices.Min(y) > 0 {
		out.pair(ratios(a, x, y))
	} else {
		c := benchmath.AssumeNothing.Compare(left, right)
		out.P = c.P
		for _, w := range c.Warnings {
			out.Note = w.Error()
		}
		if out.A.Median != 0 {
			out.Percent = new(100 * (out.B.Median/out.A.Median - 1))
		}
	}
	above := out.B.Median - out.A.Median
	if out.Test == Paired {
		above = *out.Percent
	}
	if out.P <= Alpha && above != 0 {
		out.Verdict = Worse
		if (above < 0) == g.less {
			out.Verdict = Better
		}
	}
	return out, true
}

// middle is the median of a sample with its interval.
func middle(s *benchmath.Sample) Middle {
	m := benchmath.AssumeNothing.Summary(s, 1-Alpha)
	return Middle{m.Center, bound(m.Lo), bound(m.Hi), len(s.Values), m.PctRangeString()}
}

// bound is an end of an interval, nil if the interval has none there.
func bound(v float64) *float64 {
	if math.IsInf(v, 0) {
		return nil
	}
	return &v
}

// ratios are the logarithms of B by A for each two rounds that follow each other. In one of them A
// had the first turn, in the other B, so what the second turn meets that the first has left behind
// cancels. A last round alone is left out.
func ratios(turns []turn, a, b []float64) (logs []float64) {
	for i := 0; i+1 < len(turns); i++ {
		if turns[i].round%2 == 0 && turns[i+1].round == turns[i].round+1 {
			logs = append(logs, (math.Log(b[i]/a[i])+math.Log(b[i+1]/a[i+1]))/2)
		}
	}
	return logs
}

// pair compares turns that were measured beside each other, by the ratios of pairs of rounds.
func (g *Gauge) pair(logs []float64) {
	s := shift{ratio: 1, high: math.Inf(1), p: 1}
	if len(logs) > 0 {
		s = paired(logs)
	}
	g.Test, g.P, g.Percent, g.Pairs = Paired, s.p, new(100*(s.ratio-1)), len(logs)
	if !math.IsInf(s.high, 1) {
		g.Low, g.High = new(100*(s.low-1)), new(100*(s.high-1))
		return
	}
	g.Note = "less than 12 rounds: no difference can be found"
}

// WriteText prints the table, what to know about it, and the verdict.
func (o *Outcome) WriteText(w io.Writer) {
	fmt.Fprintf(w, "%-17s %17s %17s %26s %8s\n", "figure", "A median", "B median", "delta", "p")
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
		verdict = "~ " + Same
		if g.Test == Unpaired {
			delta = "~"
		}
	}
	if g.Note != "" {
		verdict += " (" + g.Note + ")"
	}
	fmt.Fprintf(w, "%-17s %17s %17s %26s %8.3f  %s  %s\n", g.Name, g.A.text(format), g.B.text(format),
		delta, g.P, g.count(), verdict)
}

// text is the median and the half width of its interval.
func (m *Middle) text(format string) string {
	return fmt.Sprintf(format, m.Median) + " ± " + m.spread
}

// delta is how much B is above A, with the interval of pairs.
func (g *Gauge) delta() string {
	if g.Percent == nil {
		return "?"
	}
	text := fmt.Sprintf("%+.1f%%", *g.Percent)
	if g.Low != nil && g.High != nil {
		text += fmt.Sprintf(" [%+.1f%%, %+.1f%%]", *g.Low, *g.High)
	}
	return text
}

// count is how many samples were compared.
func (g *Gauge) count() string {
	if g.Test == Paired {
		return fmt.Sprintf("n=%d pairs of rounds", g.Pairs)
	}
	return fmt.Sprintf("n=%d+%d", g.A.Samples, g.B.Samples)
}

// Sentence is the verdict in one line: the figure that decided, by how much the sides differ, and
// by which test of how many samples.
func (o *Outcome) Sentence() string {
	for i := range o.Gauges {
		g := &o.Gauges[i]
		if g.Name != o.Decides {
			continue
		}
		middles := ""
		if g.Test == Unpaired {
			middles = fmt.Sprintf(", medians %s and %s", g.A.text("%.2f"), g.B.text("%.2f"))
		}
		found := "B is " + g.Verdict + ":"
		if g.Verdict == Same {
			found = Same + " in"
		}
		return fmt.Sprintf("%s %s %s%s (%s, p=%.3f, %s)", found, g.Name, g.delta(), middles, g.Test, g.P,
			g.count())
	}
	return "there is no figure that both sides know"
}
