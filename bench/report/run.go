package report

import (
	"cmp"
	"fmt"

	"clobd/bench"
)

// runChapter is the chapter of one run.
func runChapter(r *bench.Report) (*Chapter, error) {
	c := &Chapter{Title: fmt.Sprintf("%s at %s, %s loop", r.Workload, r.Level, r.Loop)}
	c.judgeRun(r)
	if r.Failure != "" { // a run whose check failed has no figures
		c.Passages = append(c.Passages, runCounts(r), runConditions(r))
		return c, nil
	}
	c.Keys = runKeys(r)
	if p, some := thresholds(r); some {
		c.Passages = append(c.Passages, p)
	}
	latency, err := latencyPassage(r)
	if err != nil {
		return nil, err
	}
	c.Passages = append(c.Passages, latency)
	for _, make := range []func(*bench.Report) (passage, bool, error){timePassage, stagePassage,
		turnPassage} {
		p, some, err := make(r)
		if err != nil {
			return nil, err
		}
		if some {
			c.Passages = append(c.Passages, p)
		}
	}
	c.Passages = append(c.Passages, runCounts(r), runConditions(r))
	return c, nil
}

// judgeRun sets the verdict.
func (c *Chapter) judgeRun(r *bench.Report) {
	broken := 0
	for i := range r.Thresholds {
		if !r.Thresholds[i].Held {
			broken++
		}
	}
	switch {
	case r.Failure != "":
		c.Grade, c.Word, c.Reason = bad, "NO FIGURE", r.Failure
	case r.Invalid != "":
		c.Grade, c.Word, c.Reason = bad, "INVALID", r.Invalid
	case r.Unsent > 0:
		c.Grade, c.Word = warn, "FELL BEHIND"
		c.Reason = fmt.Sprintf("%d requests were never sent", r.Unsent)
	case broken > 0:
		c.Grade, c.Word = warn, "THRESHOLDS BROKEN"
		c.Reason = fmt.Sprintf("%d of %d", broken, len(r.Thresholds))
	default:
		c.Grade, c.Word, c.Reason = good, "VALID", "checked: "+r.Checked
	}
}

// runKeys are the numbers that the reader came for.
func runKeys(r *bench.Report) []keyFigure {
	keys := []keyFigure{{"Rate", number(r.Rate), "operations/s"}}
	if r.AskedRate > 0 {
		keys = append(keys, keyFigure{"Asked", number(r.AskedRate),
			"requests/s, " + cmp.Or(r.Arrivals, "constant")})
	}
	if r.CPUMicros != nil {
		keys = append(keys, keyFigure{"CPU", micros(*r.CPUMicros), "each"})
	}
	l, kind := &r.ServiceMicros, "from send to answer"
	if r.CorrectedMicros != nil {
		l, kind = r.CorrectedMicros, "from due to answer"
	} else if r.Level == "L0" {
		kind = "mean of a block"
	}
	keys = append(keys, keyFigure{"p50", micros(l.P50), kind}, keyFigure{"p99", micros(l.P99), kind})
	if g := r.Generator; g != nil {
		keys = append(keys, keyFigure{"Load's share", fmt.Sprintf("%.0f %%", 100*g.Share),
			"of the machine"})
	}
	return append(keys, keyFigure{"Errors", number(float64(r.Errors)),
		"of " + number(float64(r.Operations+r.Errors))})
}

// thresholds are the rules that the run had to hold.
func thresholds(r *bench.Report) (passage, bool) {
	g := &grid{Head: []string{"Rule", "Had", ""}}
	for i := range r.Thresholds {
		t := &r.Thresholds[i]
		verdict := "held"
		if !t.Held {
			verdict = "BROKEN"
		}
		had := number(t.Had)
		if t.Missing {
			had = "no such figure"
		}
		g.add(t.Rule, had, verdict)
	}
	return passage{Title: "Thresholds", Grid: g}, len(g.Rows) > 0
}

// latencyPassage has the percentiles.
func latencyPassage(r *bench.Report) (passage, error) {
	all, err := latenciesOf(r.Histograms, r.CorrectedMicros, r.ServiceMicros)
	if err != nil {
		return passage{}, err
	}
	p := passage{Title: "Latency", Grid: percentileGrid(all), Note: "Uncorrected is from the sending " +
		"of a request to its answer: in a closed loop what a stall kept from being sent is not in it."}
	if r.CorrectedMicros != nil {
		p.Note = "Corrected is from the instant at which a request was due to its answer, uncorrected " +
			"from its sending. The difference is the wait for a free connection, or for the load itself."
	}
	if r.Level == "L0" {
		p.Note = "Means of blocks of operations: one operation is too short for the clock."
	}
	p.Note += " A percentile is told only if ten samples lie above it."
	drawn, ok, err := percentileChart(all).picture()
	if err == nil && ok {
		p.Pictures = append(p.Pictures, drawn)
	}
	return p, err
}

// percentileChart is latency over percentile, as HdrHistogram draws it.
func percentileChart(all []latencies) *chart {
	return &chart{caption: "Latency by percentile", xName: "percentile", logX: true, logY: true,
		xTicks: shareTicks, yTicks: timeTicks, lines: percentileLines(all)}
}

// timePassage is what happened when.
func timePassage(r *bench.Report) (p passage, some bool, err error) {
	if len(r.Timeline) < 2 {
		return p, false, nil
	}
	p.Title = "Over time"
	rates := graph{name: "answered", ink: first}
	failed := graph{name: "failed", ink: alarm}
	p50, p99 := graph{name: "p50", ink: first}, graph{name: "p99", ink: second}
	whole, before, failures := 0.0, 0.0, int64(0)
	for i := range r.Timeline {
		whole, before = max(whole, r.Timeline[i].Seconds-before), r.Timeline[i].Seconds
	}
	before = 0
	for i := range r.Timeline {
		m := &r.Timeline[i]
		took := m.Seconds - before
		if before = m.Seconds; took < whole/2 {
			continue // what is left at the end of a turn: a few answers make no rate
		}
		rates.at = append(rates.at, spot{m.Seconds, float64(m.Done) / took})
		failed.at = append(failed.at, spot{m.Seconds, float64(m.Failed) / took})
		p50.at = append(p50.at, spot{m.Seconds, m.P50})
		p99.at = append(p99.at, spot{m.Seconds, m.P99})
		failures += m.Failed
	}
	throughput := &chart{caption: "Operations per second", xName: "seconds", lines: []graph{rates}}
	if failures > 0 {
		throughput.lines = append(throughput.lines, failed)
	}
	kind := "Uncorrected latency"
	if r.CorrectedMicros != nil {
		kind = "Corrected latency"
	}
	latency := &chart{caption: kind + " by moment", xName: "seconds", logY: true, yTicks: timeTicks,
		lines: []graph{p50, p99}}
	p.Grid = marked(r, throughput, latency)
	for _, c := range []*chart{throughput, latency} {
		drawn, ok, err := c.picture()
		if err != nil {
			return p, false, err
		}
		if ok {
			p.Pictures = append(p.Pictures, drawn)
		}
	}
	return p, true, nil
}

// marked adds what the node did or suffered to both charts, and lists it.
func marked(r *bench.Report, charts ...*chart) *grid {
	if len(r.Marks) == 0 {
		return nil
	}
	g := &grid{Head: []string{"At", "What", "Lasted"}}
	named := map[string]bool{}
	for i := range r.Marks {
		m := &r.Marks[i]
		g.add(fmt.Sprintf("%.2f s", m.Seconds), m.What, micros(m.Lasted*1e6))
		colour := alarmVeil
		if m.What == "checkpoint" {
			colour = veil
		}
		for _, c := range charts {
			c.marks = append(c.marks, mark{m.Seconds, m.Seconds + m.Lasted, colour})
			if !named[m.What] {
				c.markNames = append(c.markNames, legendEntry{colour.class(), m.What})
			}
		}
		named[m.What] = true
	}
	return g
}

// stagePassage is where the node spent the time of an order.
func stagePassage(r *bench.Report) (p passage, some bool, err error) {
	if len(r.Stages) == 0 {
		return p, false, nil
	}
	p.Title, p.Note = "Stages of an order", "By the node's own metrics."
	p.Grid = &grid{Head: []string{"Stage", "mean", "p50", "p99", "count"}}
	var names []string
	var means []float64
	for i := range r.Stages {
		s := &r.Stages[i]
		p.Grid.add(s.Name, micros(s.Mean), micros(s.P50), micros(s.P99), number(float64(s.Count)))
		if usable(s.Mean, false) {
			names, means = append(names, s.Name), append(means, s.Mean)
		}
	}
	if len(names) == 0 {
		return p, true, nil
	}
	drawn, err := bars("Mean time in each stage, µs", "µs", names, means)
	p.Pictures = []picture{drawn}
	return p, true, err
}

// turnPassage is the samples that a comparison takes.
func turnPassage(r *bench.Report) (p passage, some bool, err error) {
	if len(r.Turns) == 0 {
		return p, false, nil
	}
	p.Title, p.Note = "Turns", "What clobench diff compares."
	if r.Beside != "" {
		p.Note += " Between them came those of another node, " + r.Beside + "."
	}
	p.Grid = &grid{Head: []string{"Turn", "operations/s", "CPU", "p50", "p99"}}
	for i := range r.Turns {
		t := &r.Turns[i]
		cpu := "unknown"
		if t.CPUMicros != nil {
			cpu = micros(*t.CPUMicros)
		}
		p.Grid.add(fmt.Sprint(i+1), number(t.Rate), cpu, micros(t.P50), micros(t.P99))
	}
	return p, true, nil
}

// runCounts is what was done.
func runCounts(r *bench.Report) passage {
	g := &grid{Head: []string{"Count", "Value"}}
	count := func(name string, v int64) { g.add(name, number(float64(v))) }
	count("Operations", r.Operations)
	count("Acknowledged", r.Acknowledged)
	if r.Filled != nil {
		count("Filled", *r.Filled)
	} else {
		g.add("Filled", "unknown")
	}
	count("Refused", r.Refused)
	count("Busy", r.Busy)
	count("Errors", r.Errors)
	if r.AskedRate > 0 {
		count("Unsent", r.Unsent)
	}
	count("Warm-up", int64(r.Warmup))
	g.add("Time", fmt.Sprintf("%.2f s of %.2f s, ended by %s", r.Seconds, r.AskedSeconds, r.EndedBy))
	if r.Allocs != nil {
		g.add("Heap objects", fmt.Sprintf("%.2f an operation", *r.Allocs))
	}
	if r.Generator != nil {
		g.add("Load", r.Generator.String())
	}
	if r.Delivery != nil {
		g.add("Delivered", r.Delivery.String())
	}
	if r.Digest != "" {
		g.add("Digest", r.Digest)
	}
	return passage{Title: "Counts", Grid: g}
}

// runConditions is what the run was measured under.
func runConditions(r *bench.Report) passage {
	return conditions(&r.Conditions, r.Seed, [2]string{"Connections", fmt.Sprint(r.Connections)},
		[2]string{"Durability", r.Durability})
}
