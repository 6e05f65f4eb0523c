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
	key   string // of the result's histograms
	brief bench.Latency
	h     *hdrhistogram.Histogram // nil if the result has none
}

// withheld reports whether the result does not tell its tail, because a pause of the machine has
// made it.
func (l *latencies) withheld() bool { return l.brief.P999 == nil && told(99.9, l.h.TotalCount()) }

// told reports whether a percentile is told: enough samples carry it, and it is not withheld.
func (l *latencies) told(q float64) bool {
	return told(q, l.h.TotalCount()) && (q <= 99 || !l.withheld())
}

// latenciesOf are those of a result, the corrected ones first.
func latenciesOf(histograms map[string]string, corrected *bench.Latency, service bench.Latency) (
	out []latencies, err error) {
	if corrected != nil {
		out = append(out, latencies{name: "corrected", key: "corrected", brief: *corrected})
	}
	out = append(out, latencies{name: "uncorrected", key: "service", brief: service})
	for i := range out {
		l := &out[i]
		if text := histograms[l.key]; text != "" {
			if l.h, err = hdrhistogram.Decode([]byte(text)); err != nil {
				return nil, fmt.Errorf("read histogram %s: %w", l.key, err)
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
			if l.told(q) || q <= 99 {
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
		if l.withheld() {
			most = min(most, 100) // p99
		}
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

// runLog are the latencies of a run or of a step, and the files that its percentile logs go to: the
// base of their names.
type runLog struct {
	base string
	all  []latencies
}

// logsOf are the logs of a result. path is a folder, or NAME.hgrm: then the bases are NAME for a
// run, and NAME-1, NAME-2 and so on for the steps of a ramp.
func logsOf(path string, result any) (logs []runLog, err error) {
	stem, named := strings.CutSuffix(path, ".hgrm")
	switch r := result.(type) {
	case *bench.Report:
		one := runLog{base: stem}
		if !named {
			one.base = filepath.Join(path, fileName(r.Workload+"-"+r.Level))
		}
		one.all, err = latenciesOf(r.Histograms, r.CorrectedMicros, r.ServiceMicros)
		return []runLog{one}, err
	case *bench.Ramped:
		var problems []error
		for i := range r.Steps {
			s := &r.Steps[i]
			one := runLog{base: fmt.Sprintf("%s-%d", stem, i+1)}
			if !named {
				one.base = filepath.Join(path, fileName(fmt.Sprintf("ramp-%s-%.0f", r.What, s.Asked)))
			}
			one.all, err = latenciesOf(s.Histograms, &s.CorrectedMicros, s.ServiceMicros)
			logs, problems = append(logs, one), append(problems, err)
		}
		return logs, errors.Join(problems...)
	}
	return nil, errors.New("only run and ramp keep histograms for percentile logs")
}

// file is the file of a log's latencies of one kind.
func (o *runLog) file(l *latencies) string { return o.base + "-" + l.name + ".hgrm" }

// PercentileFiles returns the files that Percentiles writes of a result like this one. The result
// needs no histogram: the caller can ask before the measurement.
func PercentileFiles(path string, result any) (files []string, err error) {
	logs, err := logsOf(path, result)
	for _, one := range logs {
		for i := range one.all {
			files = append(files, one.file(&one.all[i]))
		}
	}
	return files, err
}

// Percentiles writes the percentile logs of a result, in µs: a file for the corrected latencies, if
// something was due, and one for the uncorrected ones. path is a folder, or NAME.hgrm, which makes
// NAME-corrected.hgrm and NAME-uncorrected.hgrm, and of a ramp NAME-1-corrected.hgrm and so on.
func Percentiles(path string, result any) error {
	logs, err := logsOf(path, result)
	if err != nil {
		return err
	}
	for _, one := range logs {
		if err := one.write(); err != nil {
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

// write writes the files.
func (o *runLog) write() error {
	for i := range o.all {
		l := &o.all[i]
		if l.h == nil {
			continue
		}
		log, err := l.log()
		if err == nil {
			err = os.MkdirAll(filepath.Dir(o.base), 0o755)
		}
		if err == nil {
			err = os.WriteFile(o.file(l), log, 0o644)
		}
		if err != nil {
			return fmt.Errorf("write percentile log: %w", err)
		}
	}
	return nil
}

// log is the text that the plotter of HdrHistogram reads, in µs. Percentiles that are not told are
// left out; the last line, the maximum, stays.
func (l *latencies) log() ([]byte, error) {
	var all, out bytes.Buffer
	if _, err := l.h.PercentilesPrint(&all, 5, 1e3); err != nil {
		return nil, fmt.Errorf("print percentiles: %w", err)
	}
	for lines := bufio.NewScanner(&all); lines.Scan(); {
		fields := strings.Fields(lines.Text())
		if len(fields) == 4 && fields[3] != "inf" {
			q, err := strconv.ParseFloat(fields[1], 64)
			if err == nil && !l.told(100*q) {
				continue
			}
		}
		out.WriteString(lines.Text() + "\n")
	}
	return out.Bytes(), nil
}
