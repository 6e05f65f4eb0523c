package bench

import (
	"bufio"
	"errors"
	"fmt"
	"io"
	"os"
	"slices"
	"strconv"
	"strings"
	"time"
)

// Threshold is one rule that a report must hold: a figure, a comparison and a limit.
type Threshold struct {
	Rule   string // as it stands in the file
	Figure string
	Op     string
	Limit  float64 // in the unit of the figure
}

// The units of figures.
const (
	aTime   = "a time, as 20ms or 90us"
	aNumber = "a number, as 5000"
	aShare  = "a share, as 50%"
)

// figures are what a threshold may be about, with their units and how a report has them. A report
// that lacks a figure has nil.
var figures = map[string]struct {
	unit string
	of   func(r *Report) *float64
}{
	"rate":   {aNumber, func(r *Report) *float64 { return &r.Rate }},
	"errors": {aNumber, func(r *Report) *float64 { return new(float64(r.Errors)) }},
	"busy":   {aNumber, func(r *Report) *float64 { return new(float64(r.Busy)) }},
	"unsent": {aNumber, func(r *Report) *float64 { return new(float64(r.Unsent)) }},
	"operations": {aNumber, func(r *Report) *float64 {
		return new(float64(r.Operations))
	}},
	"cpu": {aTime, func(r *Report) *float64 { return r.CPUMicros }},
	"generator.cpu": {aTime, func(r *Report) *float64 {
		if r.Generator == nil || r.Generator.CPUMicros == 0 { // unknown
			return nil
		}
		return &r.Generator.CPUMicros
	}},
	"generator.share": {aShare, func(r *Report) *float64 {
		if r.Generator == nil || r.Generator.Share == 0 { // unknown
			return nil
		}
		return new(r.Generator.Share * 100)
	}},
}

// latencies are the figures that are percentiles: by prefix, where a report has them.
var latencies = map[string]func(r *Report) *Latency{
	"":           func(r *Report) *Latency { return &r.ServiceMicros },
	"corrected.": func(r *Report) *Latency { return r.CorrectedMicros },
	"delivered.": func(r *Report) *Latency {
		if r.Delivery == nil {
			return nil
		}
		return r.Delivery.DueMicros
	},
	"late.": func(r *Report) *Latency {
		if r.Generator == nil {
			return nil
		}
		return &r.Generator.LateMicros
	},
}

// percentiles are the parts of a Latency that a threshold may name.
var percentiles = map[string]func(l *Latency) *float64{
	"p50": func(l *Latency) *float64 { return &l.P50 },
	"p90": func(l *Latency) *float64 { return &l.P90 },
	"p99": func(l *Latency) *float64 { return &l.P99 },
	"max": func(l *Latency) *float64 { return &l.Max },
	// p99.9; a run with fewer than 10,000 samples has none.
	"p999": func(l *Latency) *float64 { return l.P999 },
}

// figure finds a figure by its name in a file of thresholds.
func figure(name string) (unit string, of func(r *Report) *float64, known bool) {
	if f, ok := figures[name]; ok {
		return f.unit, f.of, true
	}
	dot := strings.LastIndexByte(name, '.') + 1
	latency, ok := latencies[name[:dot]]
	part, named := percentiles[name[dot:]]
	if !ok || !named {
		return "", nil, false
	}
	return aTime, func(r *Report) *float64 {
		if l := latency(r); l != nil && l.Max > 0 { // the longest of no samples is 0
			return part(l)
		}
		return nil
	}, true
}

// figureNames are all names of figures, for the error of one that is unknown.
func figureNames() string {
	var names []string
	for name := range figures {
		names = append(names, name)
	}
	for prefix := range latencies {
		for part := range percentiles {
			names = append(names, prefix+part)
		}
	}
	slices.Sort(names)
	return strings.Join(names, " ")
}

// ReadThresholds reads a file of thresholds. The error names the lines that are wrong.
func ReadThresholds(file string) ([]Threshold, error) {
	f, err := os.Open(file)
	if err != nil {
		return nil, fmt.Errorf("read thresholds: %w", err)
	}
	defer f.Close()
	list, err := ParseThresholds(f)
	if err != nil {
		return nil, fmt.Errorf("thresholds %s: %w", file, err)
	}
	return list, nil
}

// ParseThresholds reads rules, one a line: FIGURE OPERATOR LIMIT. A line may be empty, and # begins
// a comment. The error names all lines that are wrong.
func ParseThresholds(in io.Reader) ([]Threshold, error) {
	var list []Threshold
	var problems []error
	lines := bufio.NewScanner(in)
	for number := 1; lines.Scan(); number++ {
		rule, _, _ := strings.Cut(lines.Text(), "#")
		if rule = strings.TrimSpace(rule); rule == "" {
			continue
		}
		t, err := parseThreshold(rule)
		if err != nil {
			problems = append(problems, fmt.Errorf("line %d: %w", number, err))
		}
		list = append(list, t)
	}
	if err := errors.Join(append(problems, lines.Err())...); err != nil {
		return nil, err
	}
	if len(list) == 0 {
		return nil, errors.New("there is no rule in it")
	}
	return list, nil
}

// operators are how a figure may be compared with its limit.
var operators = map[string]func(had, limit float64) bool{
	"<=": func(had, limit float64) bool { return had <= limit },
	"<":  func(had, limit float64) bool { return had < limit },
	">=": func(had, limit float64) bool { return had >= limit },
	">":  func(had, limit float64) bool { return had > limit },
	"==": func(had, limit float64) bool { return had == limit },
}

func parseThreshold(rule string) (t Threshold, err error) {
	words := strings.Fields(rule)
	if len(words) != 3 {
		return t, fmt.Errorf("%q: want FIGURE OPERATOR LIMIT, as p99 <= 20ms", rule)
	}
	t = Threshold{Rule: rule, Figure: words[0], Op: words[1]}
	unit, _, known := figure(t.Figure)
	if !known {
		return t, fmt.Errorf("no figure is called %q: choose one of %s", t.Figure, figureNames())
	}
	if operators[t.Op] == nil {
		return t, fmt.Errorf("no operator is called %q: choose one of <= < >= > ==", t.Op)
	}
	if t.Limit, err = parseLimit(unit, words[2]); err != nil {
		return t, fmt.Errorf("limit %q of %s: want %s", words[2], t.Figure, unit)
	}
	return t, nil
}

// parseLimit reads a limit in its unit.
func parseLimit(unit, text string) (float64, error) {
	switch unit {
	case aTime:
		d, err := time.ParseDuration(text)
		return float64(d.Nanoseconds()) / 1e3, err
	case aShare:
		number, ok := strings.CutSuffix(text, "%")
		if !ok {
			return 0, strconv.ErrSyntax
		}
		text = number
	}
	v, err := strconv.ParseFloat(text, 64)
	if err == nil && (v < 0 || v > 1e15 || v != v) {
		err = strconv.ErrRange
	}
	return v, err
}

// judge compares the report with the rules. A report that lacks the figure of a rule breaks it.
func (r *Report) judge(rules []Threshold) {
	for _, t := range rules {
		_, of, _ := figure(t.Figure)
		j := Judged{Rule: t.Rule}
		if had := of(r); had == nil {
			j.Missing = true
		} else {
			j.Had, j.Held = *had, operators[t.Op](*had, t.Limit)
		}
		r.Thresholds = append(r.Thresholds, j)
	}
}

// String is the rule and what the run had.
func (j *Judged) String() string {
	if j.Missing {
		return j.Rule + ": the run has no such figure"
	}
	t, err := parseThreshold(j.Rule)
	if err != nil {
		return fmt.Sprintf("%s: had %g", j.Rule, j.Had)
	}
	unit, _, _ := figure(t.Figure)
	switch unit {
	case aTime:
		return fmt.Sprintf("%s: had %.1f µs", j.Rule, j.Had)
	case aShare:
		return fmt.Sprintf("%s: had %.1f%%", j.Rule, j.Had)
	}
	return fmt.Sprintf("%s: had %.0f", j.Rule, j.Had)
}
