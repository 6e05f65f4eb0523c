package bench

import (
	"encoding/json"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
	"time"
)

// Latency are percentiles in µs.
type Latency struct {
	P50 float64 `json:"p50"`
	P90 float64 `json:"p90"`
	P99 float64 `json:"p99"`
	Max float64 `json:"max"`
	// P999 is the p99.9, null if there are fewer than 10,000 samples.
	P999 *float64 `json:"p999,omitempty"`
}

// String is the latency in one line.
func (l *Latency) String() string {
	tail := ""
	if l.P999 != nil {
		tail = fmt.Sprintf("p99.9 %.1f  ", *l.P999)
	}
	return fmt.Sprintf("p50 %.1f  p90 %.1f  p99 %.1f  %smax %.1f", l.P50, l.P90, l.P99, tail, l.Max)
}

// Moment is a second, or less, of a run.
type Moment struct {
	Seconds float64 `json:"seconds"` // from the start of the run to the end of the moment
	Done    int64   `json:"done"`    // operations answered with success in it
	Failed  int64   `json:"failed"`
	P50     float64 `json:"p50_micros"` // corrected in an open loop, else from send to answer
	P99     float64 `json:"p99_micros"`
}

// Mark is something that the node did or suffered during a run, by its own metrics.
type Mark struct {
	Seconds float64 `json:"seconds"` // from the start of the run
	What    string  `json:"what"`    // checkpoint, stall of the matcher, stall of the disk
	Lasted  float64 `json:"lasted_seconds"`
}

// Stage is what the node spent on a stage of the orders of a run, by its own metrics.
type Stage struct {
	Name  string  `json:"name"`
	Count int64   `json:"count"`
	Mean  float64 `json:"mean_micros"`
	P50   float64 `json:"p50_micros"`
	P99   float64 `json:"p99_micros"`
}

// Generator is what the load itself took.
type Generator struct {
	Processes int     `json:"processes"`
	CPUMicros float64 `json:"cpu_micros_per_operation"`
	// Share is the part of the CPU time of all cores that the load used while it was measured.
	Share float64 `json:"share_of_machine"`
	// LateMicros is from the instant at which a request could be sent (it was due, and its connection
	// was free) to its sending.
	LateMicros Latency `json:"late_micros"`
	// Thread is the part of the time that the threads which send were on a CPU: 1 is all of it. 0 is
	// unknown: at L1 and L2 the callers and what they measure are one process.
	Thread float64 `json:"share_of_thread,omitempty"`
	// Note says which figures were withheld, and why.
	Note string `json:"note,omitempty"`

	goroutines bool // they send, and no thread of package lean
}

// Judged is a threshold and what the run had.
type Judged struct {
	Rule string `json:"rule"` // as it stands in the file
	// Had is in µs, percent or a plain number, as the figure is.
	Had     float64 `json:"had"`
	Held    bool    `json:"held"`
	Missing bool    `json:"missing,omitempty"` // the run has no such figure: the rule is broken
}

// Part is one of the turns of a run: a sample for a comparison of runs.
type Part struct {
	Seconds    float64  `json:"seconds"`
	Operations int64    `json:"operations"`
	Rate       float64  `json:"operations_per_second"`
	CPUMicros  *float64 `json:"cpu_micros_per_operation"`
	P50        float64  `json:"p50_micros"` // from send to answer
	P99        float64  `json:"p99_micros"`
}

// Report is one run with its conditions. A run whose check failed has no figures: Failure says why.
// Unknown values are null.
type Report struct {
	Conditions  Conditions `json:"conditions"`
	Workload    string     `json:"workload"`
	Level       string     `json:"level"`
	Loop        string     `json:"loop"` // closed: the next request waits for the last answer
	Seed        uint64     `json:"seed"`
	Connections int        `json:"connections"`
	// Durability is none (L0), memory (L1), or what the journal was set to: of a node what it says.
	Durability string `json:"durability"`
	// Seconds is how long was measured, which is less than AskedSeconds if EndedBy says so.
	Seconds      float64 `json:"seconds"`
	AskedSeconds float64 `json:"seconds_asked"`
	EndedBy      string  `json:"ended_by"` // time, or operations: … if those that were drawn ran out
	// Exchanges is how many fresh Exchanges L0 used one after the other, each with its warm-up.
	Exchanges  int   `json:"exchanges,omitempty"`
	Warmup     int   `json:"warmup_operations"`
	Operations int64 `json:"operations"`
	// Acknowledged are answered (durable, where the level has a disk), Filled are executions since
	// the start of the run, Refused are cancels of orders that were gone.
	Acknowledged int64  `json:"acknowledged"`
	Filled       *int64 `json:"filled"`
	Refused      int64  `json:"refused"`
	Busy         int64  `json:"busy"`
	Errors       int64  `json:"errors"`
	// Unsent are requests of an open loop that were given up: they were late by the whole duration.
	// The corrected percentiles have them with the time that they had waited. The run then fails.
	Unsent int64   `json:"unsent,omitempty"`
	Rate   float64 `json:"operations_per_second"`
	// CPUMicros is user+system time per operation of the measured process, in µs: at L0 to L2 of
	// this one, callers included.
	CPUMicros *float64 `json:"cpu_micros_per_operation"`
	// ServiceMicros is from send to answer. In a closed loop it hides the requests that a stall
	// kept from being sent, so it promises nothing about a load that does not wait. At L0 it is the
	// mean of blocks.
	ServiceMicros Latency `json:"service_micros"`
	// CorrectedMicros is from the instant at which a request was due to its answer; null in a closed
	// loop, where nothing is due.
	CorrectedMicros *Latency `json:"corrected_micros,omitempty"`
	// AskedRate is the rate of an open loop, requests a second: a list is one. Arrivals is constant or
	// poisson.
	AskedRate float64 `json:"asked_per_second,omitempty"`
	Arrivals  string  `json:"arrivals,omitempty"`
	// Histograms are the latencies in the compressed encoding of HdrHistogram (V2, base64; values are
	// nanoseconds), by name: service, corrected.
	Histograms map[string]string `json:"histograms,omitempty"`
	// Turns are the parts of the measured time, one after the other on the same node. Beside names
	// the other node whose turns came between these, "" if there was none.
	Turns      []Part     `json:"turns,omitempty"`
	Beside     string     `json:"beside,omitempty"`
	Timeline   []Moment   `json:"timeline,omitempty"`
	Marks      []Mark     `json:"marks,omitempty"`
	Stages     []Stage    `json:"stages,omitempty"`
	Generator  *Generator `json:"generator,omitempty"`
	Delivery   *Delivery  `json:"delivery,omitempty"` // of the workload streams
	Thresholds []Judged   `json:"thresholds,omitempty"`
	// Invalid says why the figures are the generator's and not the node's, "" if they are the node's.
	Invalid string `json:"invalid,omitempty"`
	// Allocs are heap objects per operation of this process; of a node they are not known.
	Allocs  *float64 `json:"allocs_per_operation"`
	Digest  string   `json:"digest"` // at L0 of the last exchange
	Checked string   `json:"checked"`
	Failure string   `json:"failure,omitempty"`

	requests int64 // that the latencies are of; 0: as many as Operations
	began    time.Time
	windows  []stretch
}

// WriteText prints the report for people: the figure, then what it was measured under.
func (r *Report) WriteText(w io.Writer) {
	if r.Failure != "" {
		fmt.Fprintf(w, "%s %s: NO FIGURE: %s\n", r.Workload, r.Level, r.Failure)
		return
	}
	line := func(label, format string, args ...any) {
		fmt.Fprintf(w, "  %-13s"+format+"\n", append([]any{label}, args...)...)
	}
	loop := r.Loop + " loop"
	if r.AskedRate > 0 {
		loop = fmt.Sprintf("%s of %.0f requests/s, %s", loop, r.AskedRate, r.Arrivals)
	}
	if r.Invalid != "" {
		fmt.Fprintf(w, "INVALID: %s\n", r.Invalid)
	}
	fmt.Fprintf(w, "%s %s  %.0f operations/s  %s µs CPU each (%s)  %s\n", r.Workload, r.Level,
		r.Rate, told(r.CPUMicros, "%.2f"), r.measured(), loop)
	l := &r.ServiceMicros
	if r.Level == "L0" { // of blocks of Commands: one is too short for the clock
		line("block mean µs", " p50 %.3f  p90 %.3f  p99 %.3f  max %.3f", l.P50, l.P90, l.P99, l.Max)
	} else {
		if r.CorrectedMicros != nil {
			line("corrected µs", "%s, from the due instant to the answer", r.CorrectedMicros)
		}
		line("service µs", "%s, from send to answer: what a stall kept from being sent is not in it", l)
	}
	if g := r.Generator; g != nil {
		line("generator", "%s", g)
	}
	if r.Delivery != nil {
		line("delivered", "%s", r.Delivery)
	}
	if n := len(r.Turns); n > 0 {
		line("turns", "%d, rates %s, CPU µs %s, p50 µs %s", n,
			spread(r.Turns, func(p *Part) *float64 { return &p.Rate }, "%.0f"),
			spread(r.Turns, func(p *Part) *float64 { return p.CPUMicros }, "%.2f"),
			spread(r.Turns, func(p *Part) *float64 { return &p.P50 }, "%.1f"))
	}
	line("operations", "%d: acknowledged %d, filled %s, refused %d, busy %d, errors %d, unsent %d",
		r.Operations, r.Acknowledged, told(r.Filled, "%d"), r.Refused, r.Busy, r.Errors, r.Unsent)
	line("conditions", "seed %d, %d connections, %d warm-up operations, durability %s", r.Seed,
		r.Connections, r.Warmup, r.Durability)
	exchanges := ""
	if r.Exchanges > 0 {
		exchanges = fmt.Sprintf(", on %d fresh exchanges one after the other", r.Exchanges)
	}
	line("time", "%.2f s of %.2f s asked for%s, ended by %s", r.Seconds, r.AskedSeconds, exchanges,
		r.EndedBy)
	c := &r.Conditions
	line("machine", "%s", c.machine())
	line("clobench", "%s", &c.Program)
	if c.Node != nil {
		line("node", "%s", c.Node)
	}
	line("data", "%s", c.Data)
	line("hiccups", "%s", &c.Hiccup)
	r.writeNode(line)
	line("checked", "%s; digest %s", r.Checked, r.Digest)
	for i := range r.Thresholds {
		held := "held"
		if !r.Thresholds[i].Held {
			held = "BROKEN"
		}
		line("threshold", "%s: %s", held, &r.Thresholds[i])
	}
}

// writeNode prints what the node says of the run by its metrics.
func (r *Report) writeNode(line func(label, format string, args ...any)) {
	for i := range r.Stages {
		s := &r.Stages[i]
		line("stage", "%-13s mean %.1f  p50 %.1f  p99 %.1f µs, %d times", s.Name, s.Mean, s.P50, s.P99,
			s.Count)
	}
	for _, m := range r.Marks {
		line("mark", "%.2f s: %s, %.2f s long", m.Seconds, m.What, m.Lasted)
	}
}

// String is the generator in one line.
func (g *Generator) String() string {
	text := fmt.Sprintf("late µs %s, from due and free to sent", &g.LateMicros)
	if g.CPUMicros > 0 {
		text = fmt.Sprintf("%.2f µs CPU an operation, %.1f%% of the machine, %d processes, %.0f%% of "+
			"their threads; %s", g.CPUMicros, g.Share*100, g.Processes, g.Thread*100, text)
	}
	if g.Note != "" {
		text += "; " + g.Note
	}
	return text
}

// spread is the least and the most that the turns had of a figure.
func spread(turns []Part, of func(*Part) *float64, format string) string {
	var all []float64
	for i := range turns {
		if v := of(&turns[i]); v != nil {
			all = append(all, *v)
		}
	}
	if len(all) == 0 {
		return unknown
	}
	return fmt.Sprintf(format+" to "+format, slices.Min(all), slices.Max(all))
}

// measured is the process whose CPU time is reported.
func (r *Report) measured() string {
	switch {
	case r.Level == "L0":
		return "this process, while the clock ran"
	case r.Level != "L3":
		return "this process, callers and collector included"
	case r.Conditions.Node != nil && !r.Conditions.Node.Started:
		return "the node, by its own metrics, other clients' work included"
	}
	return "the node"
}

// told prints a value that may be unknown.
func told[T any](v *T, format string) string {
	if v == nil {
		return unknown
	}
	return fmt.Sprintf(format, *v)
}

// WriteJSON writes any report to file, "-" being standard output.
func WriteJSON(file string, report any) error {
	b, err := json.MarshalIndent(report, "", "  ")
	if err != nil {
		return fmt.Errorf("encode report: %w", err)
	}
	b = append(b, '\n')
	if file == "-" {
		_, err = os.Stdout.Write(b)
		return err
	}
	if err := os.MkdirAll(filepath.Dir(file), 0o755); err != nil {
		return fmt.Errorf("write report: %w", err)
	}
	if err := os.WriteFile(file, b, 0o644); err != nil {
		return fmt.Errorf("write report: %w", err)
	}
	return nil
}
