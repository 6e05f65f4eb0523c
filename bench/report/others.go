package report

import (
	"fmt"
	"strings"

	"clobd/bench"
)

// slowestOf is the slowest order of a step with its stages.
func slowestOf(s *bench.Step) string {
	if len(s.Slowest) == 0 {
		return ""
	}
	return s.Slowest[0].String()
}

// rampChapter is the chapter of a ramp: where it broke.
func rampChapter(r *bench.Ramped) (*Chapter, error) {
	c := &Chapter{Title: "ramp " + r.What + ", open loop", Grade: good, Word: "VALID",
		Reason: "no step broke"}
	if r.Kept == 0 {
		c.Grade, c.Word = warn, "NOT KEPT"
	}
	what := "requests"
	if r.What == "lists" {
		what = "orders"
	}
	g := &grid{Head: []string{"asked/s", "kept/s", "failed", "unsent", "p50 corrected", "p99 corrected",
		"p50 uncorrected", "p99 uncorrected", "machine paused", "slowest in the node", ""}}
	asked := graph{name: "kept", ink: first, dots: true}
	ideal := graph{name: "asked", ink: third, dashed: true}
	p50 := graph{name: "p50 corrected", ink: first, dots: true}
	p99 := graph{name: "p99 corrected", ink: second, dots: true}
	limit := graph{name: "limit of p99", ink: alarm, dashed: true}
	xName := "asked, " + what + "/s"
	rates := &chart{caption: "Rate kept by rate asked", xName: xName}
	times := &chart{caption: "Corrected latency by rate asked", xName: xName, logY: true,
		yTicks: timeTicks}
	for i := range r.Steps {
		s := &r.Steps[i]
		g.add(number(s.Asked), number(s.Achieved), number(float64(s.Failed)), number(float64(s.Unsent)),
			micros(s.CorrectedMicros.P50), micros(s.CorrectedMicros.P99), micros(s.ServiceMicros.P50),
			micros(s.ServiceMicros.P99), micros(s.Hiccup.MaxMillis*1e3), slowestOf(s), s.Broke)
		asked.at = append(asked.at, spot{s.Asked, s.Achieved})
		ideal.at = append(ideal.at, spot{s.Asked, s.Asked})
		p50.at = append(p50.at, spot{s.Asked, s.CorrectedMicros.P50})
		p99.at = append(p99.at, spot{s.Asked, s.CorrectedMicros.P99})
		limit.at = append(limit.at, spot{s.Asked, r.LimitMillis * 1e3})
		if s.Broke != "" {
			c.Reason = fmt.Sprintf("%s a second broke: %s", number(s.Asked), s.Broke)
			rates.broke = append(rates.broke, spot{s.Asked, s.Achieved})
			times.broke = append(times.broke, spot{s.Asked, s.CorrectedMicros.P99})
		}
		if s.Asked == r.Kept {
			c.Keys = []keyFigure{{"Kept", number(r.Kept), what + "/s"},
				{"p50", micros(s.CorrectedMicros.P50), "from due to answer, at that rate"},
				{"p99", micros(s.CorrectedMicros.P99), "from due to answer, at that rate"}}
		}
	}
	if err := r.Verdict(); err != nil {
		c.Grade, c.Word, c.Reason = bad, "INVALID", err.Error()
	}
	rates.lines, times.lines = []graph{ideal, asked}, []graph{p50, p99, limit}
	p := passage{Title: "Break point", Grid: g, Note: fmt.Sprintf("A step is kept if at least 97 %% of "+
		"its rate was answered with success, at most 0.1 %% failed, and the corrected p99 is within "+
		"%s.", micros(r.LimitMillis*1e3))}
	if r.What == "lists" {
		p.Note += " Rates count orders, of which each request has 15; failed and unsent count requests."
	}
	if err := p.draw(rates, times); err != nil {
		return nil, err
	}
	c.Passages = append(c.Passages, p)
	if err := c.keptLatency(r); err != nil {
		return nil, err
	}
	c.Passages = append(c.Passages, conditions(&r.Conditions, r.Seed,
		[2]string{"Connections", fmt.Sprint(r.Connections)},
		[2]string{"Step", fmt.Sprintf("%.1f s", r.Seconds)}))
	return c, nil
}

// keptLatency adds the percentiles of the highest rate that held.
func (c *Chapter) keptLatency(r *bench.Ramped) error {
	for i := range r.Steps {
		s := &r.Steps[i]
		if s.Asked != r.Kept {
			continue
		}
		all, err := latenciesOf(s.Histograms, &s.CorrectedMicros, s.ServiceMicros)
		if err != nil {
			return err
		}
		p := passage{Title: "Latency at the rate kept", Grid: percentileGrid(all), Note: "A percentile " +
			"is told only if ten samples lie above it."}
		if err := p.draw(percentileChart(all)); err != nil {
			return err
		}
		c.Passages = append(c.Passages, p)
	}
	return nil
}

// draw adds the charts that have something to show.
func (p *passage) draw(charts ...*chart) error {
	for _, c := range charts {
		drawn, ok, err := c.picture()
		if err != nil {
			return err
		}
		if ok {
			p.Pictures = append(p.Pictures, drawn)
		}
	}
	return nil
}

// compareChapter is the chapter of a comparison with a baseline.
func compareChapter(r *bench.Compared) (*Chapter, error) {
	c := &Chapter{Title: "compare " + r.What, Grade: good, Word: "VALID", Reason: "checked: " + r.Checked}
	if err := r.Verdict(); err != nil {
		c.Grade, c.Word, c.Reason = bad, "INVALID", err.Error()
	}
	c.Keys = []keyFigure{{"Rate", fmt.Sprintf("%.2f", r.Ratio), "times the baseline's"},
		{"CPU", fmt.Sprintf("%.2f", r.CPURatio), "times the baseline's, per operation"}}
	g := &grid{Head: []string{"Median", "operations/s", "CPU", "p50", "p90", "p99"}}
	for _, s := range []*bench.Side{&r.Node, &r.Baseline} {
		if len(s.Rates) == 0 {
			continue
		}
		g.add(s.Name, number(bench.Median(s.Rates)), micros(bench.Median(s.CPUMicros)),
			micros(bench.Median(s.P50Micros)), micros(bench.Median(s.P90Micros)),
			micros(bench.Median(s.P99Micros)))
	}
	rounds := &grid{Head: []string{"Round", "first", "node/s", "baseline/s", "ratio", "node CPU",
		"baseline CPU", "ratio"}}
	node, base := graph{name: "node", ink: first, dots: true}, graph{name: "baseline", ink: second, dots: true}
	for i := range min(len(r.First), len(r.Node.Rates), len(r.Baseline.Rates)) {
		a, b := &r.Node, &r.Baseline
		rounds.add(fmt.Sprint(i+1), r.First[i], number(a.Rates[i]), number(b.Rates[i]),
			fmt.Sprintf("%.2f", a.Rates[i]/b.Rates[i]), micros(a.CPUMicros[i]), micros(b.CPUMicros[i]),
			fmt.Sprintf("%.2f", a.CPUMicros[i]/b.CPUMicros[i]))
		node.at = append(node.at, spot{float64(i + 1), a.CPUMicros[i]})
		base.at = append(base.at, spot{float64(i + 1), b.CPUMicros[i]})
	}
	p := passage{Title: "Rounds", Grid: rounds, Note: fmt.Sprintf("Interleaved, %.1f s a turn, closed "+
		"loop.", r.Seconds)}
	err := p.draw(&chart{caption: "CPU per operation by round, µs", xName: "round", lines: []graph{node, base}})
	c.Passages = append(c.Passages, passage{Title: "Both sides", Grid: g}, p,
		conditions(&r.Conditions, r.Seed, [2]string{"Connections", fmt.Sprint(r.Connections)}))
	return c, err
}

// pacedGrid is a table of open loops.
func pacedGrid(names []string, lists ...[]bench.Paced) *grid {
	g := &grid{Head: []string{"Round", "", "asked/s", "kept/s", "failed", "p50 corrected", "p99 corrected",
		"p50 uncorrected", "p99 uncorrected"}}
	for i := range lists[0] {
		for k, list := range lists {
			if i >= len(list) {
				continue
			}
			p := &list[i]
			g.add(fmt.Sprint(i+1), names[k], number(p.Asked), number(p.Achieved),
				number(float64(p.Failed+p.Unsent)), micros(p.CorrectedMicros.P50),
				micros(p.CorrectedMicros.P99), micros(p.ServiceMicros.P50), micros(p.ServiceMicros.P99))
		}
	}
	return g
}

// floodChapter is the chapter of reads beside a flood of orders.
func floodChapter(r *bench.Flooded) (*Chapter, error) {
	c := &Chapter{Title: "reads beside a flood of orders", Grade: good, Word: "VALID",
		Reason: "medians of interleaved rounds"}
	if len(r.Orders) == 0 {
		return nil, fmt.Errorf("the report of the flood has no rounds")
	}
	if err := r.Verdict(); err != nil {
		c.Grade, c.Word, c.Reason = bad, "INVALID", err.Error()
	}
	c.Keys = []keyFigure{{"p50 of reads", fmt.Sprintf("%.2f", r.Corrected), "times idle, corrected"},
		{"p50 of reads", fmt.Sprintf("%.2f", r.Uncorrected), "times idle, uncorrected"},
		{"Flood", number(bench.Median(r.Orders)), "orders/s"}}
	c.Passages = []passage{{Title: "Rounds", Grid: pacedGrid([]string{"idle", "flooded"}, r.Idle, r.Busy)},
		conditions(&r.Conditions, r.Seed, [2]string{"Connections that post", fmt.Sprint(r.Connections)},
			[2]string{"Connections that read", fmt.Sprint(r.Readers)})}
	return c, nil
}

// streamsChapter is the chapter of deliveries to subscribers.
func streamsChapter(r *bench.Streamed) (*Chapter, error) {
	c := &Chapter{Title: fmt.Sprintf("streams to %d subscribers", r.Subscribers), Grade: good,
		Word: "VALID", Reason: "no message is missing"}
	if err := r.Verdict(); err != nil {
		c.Grade, c.Word, c.Reason = bad, "NO FIGURE", err.Error()
	}
	g := &grid{Head: []string{"Round", "p50", "p99", "to the last p50", "from the answer p50",
		"messages/s", "CPU a message"}}
	var p50 []float64
	for i := range r.Delivered {
		if i >= len(r.Last) || i >= len(r.Answered) || i >= len(r.Messages) || i >= len(r.CPUMicros) {
			break
		}
		p50 = append(p50, r.Delivered[i].P50)
		g.add(fmt.Sprint(i+1), micros(r.Delivered[i].P50), micros(r.Delivered[i].P99),
			micros(r.Last[i].P50), micros(r.Answered[i].P50), number(r.Messages[i]), micros(r.CPUMicros[i]))
	}
	if len(p50) > 0 && c.Grade == good {
		c.Keys = []keyFigure{{"Delivered, p50", micros(bench.Median(p50)), "from due to read"},
			{"Messages", number(bench.Median(r.Messages)), "a second"}}
	}
	c.Passages = []passage{{Title: "Delivered", Grid: g},
		{Title: "Orders", Grid: pacedGrid([]string{"alone", "beside"}, r.Alone, r.Beside)},
		conditions(&r.Conditions, r.Seed, [2]string{"Markets", fmt.Sprint(r.Markets)},
			[2]string{"Burst", fmt.Sprint(r.Burst)},
			[2]string{"Gaps, cuts", strings.Join([]string{fmt.Sprint(r.Gaps), fmt.Sprint(r.Cuts)}, ", ")})}
	return c, nil
}

// soakChapter is the chapter of a long run: what has drifted, lap by lap.
func soakChapter(r *bench.Soaked) (*Chapter, error) {
	c := &Chapter{Title: "soak " + r.Workload, Grade: good, Word: "VALID",
		Reason: "no drift; checked: " + r.Checked}
	if err := r.Verdict(); err != nil {
		c.Grade, c.Word, c.Reason = bad, "FAILED", err.Error()
	}
	c.Keys = []keyFigure{{"Asked", number(r.AskedRate), "requests/s"},
		{"Kept", fmt.Sprintf("%.1f %%", 100*r.Kept), "of them"},
		{"Time", fmt.Sprintf("%.0f s", r.SendingSeconds), fmt.Sprintf("of %.0f, %.0f with pauses",
			r.AskedSeconds, r.Seconds)}}
	drifts := &grid{Head: []string{"Figure", "first tenth", "last tenth", "bound", ""}}
	for i := range r.Drifts {
		d := &r.Drifts[i]
		switch {
		case d.Unknown:
			drifts.add(d.Figure, few, few, few, "unknown")
			continue
		case d.Held:
			drifts.add(d.Figure, number(d.First), number(d.Last), number(d.Bound), "held")
			continue
		}
		drifts.add(d.Figure, number(d.First), number(d.Last), number(d.Bound), "DRIFTED")
	}
	laps := passage{Title: "Laps", Grid: &grid{Head: []string{"End", "done", "failed", "unsent",
		"p50 corrected", "p99 corrected", "CPU", "memory", "disk", "goroutines"}}}
	p50, p99 := graph{name: "p50", ink: first}, graph{name: "p99", ink: second}
	memory := graph{name: "resident", ink: first}
	for i := range r.Laps {
		l := &r.Laps[i]
		cpu := few
		if l.CPUMicros != nil {
			cpu = micros(*l.CPUMicros)
		}
		laps.Grid.add(fmt.Sprintf("%.0f s", l.Seconds), number(float64(l.Done)), number(float64(l.Failed)),
			number(float64(l.Unsent)), micros(l.Corrected.P50), micros(l.Corrected.P99), cpu,
			fmt.Sprintf("%.1f MB", l.Memory/1e6), fmt.Sprintf("%.1f MB", l.Disk/1e6), number(l.Goroutines))
		p50.at = append(p50.at, spot{l.Seconds, l.Corrected.P50})
		p99.at = append(p99.at, spot{l.Seconds, l.Corrected.P99})
		memory.at = append(memory.at, spot{l.Seconds, l.Memory / 1e6})
	}
	times := &chart{caption: "Corrected latency by lap", xName: "seconds", logY: true, yTicks: timeTicks,
		lines: []graph{p50, p99}}
	sizes := &chart{caption: "Memory of the node, MB", xName: "seconds", lines: []graph{memory}}
	whole := &bench.Report{Stages: r.Stages, Marks: r.Marks, Thresholds: r.Thresholds}
	marked(whole, times, sizes)
	if err := laps.draw(times, sizes); err != nil {
		return nil, err
	}
	if p, some := thresholds(whole); some {
		c.Passages = append(c.Passages, p)
	}
	c.Passages = append(c.Passages, passage{Title: "Drift", Grid: drifts}, laps)
	stages, some, err := stagePassage(whole)
	if some {
		c.Passages = append(c.Passages, stages)
	}
	c.Passages = append(c.Passages, conditions(&r.Conditions, r.Seed,
		[2]string{"Connections", fmt.Sprint(r.Connections)}, [2]string{"Durability", r.Durability}))
	return c, err
}
