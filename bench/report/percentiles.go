package report

import (
	"bufio"
	"bytes"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"

	"github.com/HdrHistogram/hdrhistogram-go"

	"clobd/bench"
)

// above is how many samples must lie above a percentile that is told.
const above = 10

// told reports whether so many samples carry the percentile q in [0, 100].
func told(q float64, samples int64) bool {
	return float64(samples)*(100-q)/100 >= above-1e-6
}

// latencies are the latencies of one kind: service or corrected.
type latencies struct {
	name  string // for readers
	brief bench.Latency
	h     *hdrhistogram.Histogram // nil if the result has none
}

// latenciesOf are those of a result, the corrected ones first.
func latenciesOf(histograms map[string]string, corrected *bench.Latency, service bench.Latency) (
	out []latencies, err error) {
	if corrected != nil {
		out = append(out, latencies{name: "corrected", brief: *corrected})
	}
	out = append(out, latencies{name: "uncorrected", brief: service})
	for i := range out {
		key := map[string]string{"corrected": "corrected", "uncorrected": "service"}[out[i].name]
		if text := histograms[key]; text != "" {
			if out[i].h, err = hdrhistogram.Decode([]byte(text)); err != nil {
				return nil, fmt.Errorf("read histogram %s: %w", key, err)
			}
		}
	}
	return out, nil
}

// few stands for a percentile that too few samples carry, or that the result does not have.
const few = "–"

// percentileGrid is the table of percentiles.
func percentileGrid(all []latencies) *grid {
	g := &grid{Head: []string{"", "p50", "p90", "p99", "p99.9", "p99.99", "max", "samples"}}
	for _, l := range all {
		if l.h == nil {
			g.add(l.name, micros(l.brief.P50), micros(l.brief.P90), micros(l.brief.P99), few, few,
				micros(l.brief.Max), "")
			continue
		}
		row := []string{l.name}
		for _, q := range []float64{50, 90, 99, 99.9, 99.99} {
			text := few
			if n := l.h.TotalCount(); told(q, n) || q <= 99 {
				text = micros(float64(l.h.ValueAtQuantile(q)) / 1e3)
			}
			row = append(row, text)
		}
		g.Rows = append(g.Rows, append(row, micros(float64(l.h.Max())/1e3),
			number(float64(l.h.TotalCount()))))
	}
	return g
}

// percentileLines are the latencies over 1/(1-p), as far as samples carry them.
func percentileLines(all []latencies) (lines []graph) {
	for _, l := range all {
		if l.h == nil {
			continue
		}
		one := graph{name: l.name, ink: inkOf[l.name]}
		most := float64(l.h.TotalCount()) / above
		for x := 1.0; x <= most; x *= 1.06 {
			v := float64(l.h.ValueAtQuantile(100*(1-1/x))) / 1e3
			one.at = append(one.at, spot{x, max(v, 1e-3)})
		}
		lines = append(lines, one)
	}
	return lines
}

// inkOf are the colours of latencies.
var inkOf = map[string]ink{"corrected": first, "uncorrected": second}

// Percentiles writes the percentile logs of a result, in µs: a file for the corrected latencies, if
// something was due, and one for the uncorrected ones. path is a folder, or NAME.hgrm, which makes
// NAME-corrected.hgrm and NAME-uncorrected.hgrm.
func Percentiles(path string, result any) error {
	type named struct {
		name       string
		histograms map[string]string
	}
	var all []named
	switch r := result.(type) {
	case *bench.Report:
		all = append(all, named{r.Workload + "-" + r.Level, r.Histograms})
	case *bench.Ramped:
		for i := range r.Steps {
			s := &r.Steps[i]
			all = append(all, named{fmt.Sprintf("ramp-%s-%.0f", r.What, s.Asked), s.Histograms})
		}
	default:
		return errors.New("only run and ramp keep histograms for percentile logs")
	}
	dir, single := path, ""
	if strings.HasSuffix(path, ".hgrm") {
		dir, single = filepath.Dir(path), strings.TrimSuffix(filepath.Base(path), ".hgrm")
	}
	if err := os.MkdirAll(dir, 0o755); err != nil {
		return fmt.Errorf("write percentile log: %w", err)
	}
	for i, one := range all {
		name := fileName(one.name)
		if single != "" && len(all) == 1 {
			name = single
		} else if single != "" {
			name = fmt.Sprintf("%s-%d", single, i+1)
		}
		if err := writeLogs(filepath.Join(dir, name), one.histograms); err != nil {
			return err
		}
	}
	return nil
}

// fileName is a name that stays in its folder.
func fileName(name string) string {
	return strings.Map(func(r rune) rune {
		if strings.ContainsRune(`/\:*?"<>|`, r) || r < ' ' {
			return '_'
		}
		return r
	}, strings.TrimLeft(name, "."))
}

// writeLogs writes a log of each histogram.
func writeLogs(base string, histograms map[string]string) error {
	for key, name := range map[string]string{"corrected": "corrected", "service": "uncorrected"} {
		text := histograms[key]
		if text == "" {
			continue
		}
		h, err := hdrhistogram.Decode([]byte(text))
		if err != nil {
			return fmt.Errorf("read histogram %s: %w", key, err)
		}
		log, err := percentileLog(h)
		if err != nil {
			return err
		}
		if err := os.WriteFile(base+"-"+name+".hgrm", log, 0o644); err != nil {
			return fmt.Errorf("write percentile log: %w", err)
		}
	}
	return nil
}

// percentileLog is the text that the plotter of HdrHistogram reads, in µs. Percentiles that too few
// samples carry are left out; the last line, the maximum, stays.
func percentileLog(h *hdrhistogram.Histogram) ([]byte, error) {
	var all, out bytes.Buffer
	if _, err := h.PercentilesPrint(&all, 5, 1e3); err != nil {
		return nil, fmt.Errorf("print percentiles: %w", err)
	}
	for lines := bufio.NewScanner(&all); lines.Scan(); {
		fields := strings.Fields(lines.Text())
		if len(fields) == 4 && fields[3] != "inf" {
			q, err := strconv.ParseFloat(fields[1], 64)
			if err == nil && !told(100*q, h.TotalCount()) {
				continue
			}
		}
		out.WriteString(lines.Text() + "\n")
	}
	return out.Bytes(), nil
}
