package bench

import (
	"context"
	"errors"
	"fmt"
	"io"
	"math"
	"net/http"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"clobd/bench/budget"
	"clobd/bench/lean"
	"clobd/bench/workload"
)

// Budget says how a node's CPU time per order is divided among the stages of an order's way.
type Budget struct {
	Setting
	Rounds      int           // that are added up
	Duration    time.Duration // of one round; whole seconds are profiled
	Connections int           // that post signed orders in a closed loop, at most Traders
	Lists       bool          // the orders come in lists of 15
}

// validate returns all problems at once, or nil.
func (b *Budget) validate() error {
	all := Problems{Of: "budget"}
	all.Rounds(b.Rounds, b.Duration)
	all.Add(b.Duration < 2*time.Second, "the duration is below 2 s: a profile takes whole seconds")
	all.posters("connections", b.Connections)
	return all.Err()
}

// Budgeted is the result. The micros of Lines are those of one order. They add up to Micros, what
// the operating system says that the process used; the profile saw the share Seen of that, and its
// samples are scaled by it.
type Budgeted struct {
	Conditions  Conditions `json:"conditions"`
	Seed        uint64     `json:"seed"`
	Connections int        `json:"connections"`
	Lists       bool       `json:"lists"`
	Seconds     float64    `json:"seconds_per_round"`
	Rates       []float64  `json:"orders_per_second"`
	Micros      float64    `json:"cpu_micros_per_order"`
	Seen        float64    `json:"seen_by_profile"`
	PerFrame    float64    `json:"orders_per_frame"`
	FrameBytes  float64    `json:"bytes_per_frame"`
	// Mallocs and Allocated are objects and bytes of the heap per order. What the profile takes is in
	// them.
	Mallocs   float64      `json:"allocations_per_order"`
	Allocated float64      `json:"allocated_bytes_per_order"`
	Lines     []BudgetLine `json:"lines"`
	// Echo is the CPU time per order of a bare fasthttp server that takes the same requests.
	Echo float64 `json:"echo_micros_per_order"`
	// The parts of an answer's time, in µs. Answers has the node's p50 of each round, EchoAnswer is
	// the bare server's p50. Check is the time of libsecp256k1 for one signature, 0 if unknown. Sync
	// is the p50 of a bare write with its sync.
	Answers    []float64 `json:"answer_p50_micros"`
	EchoAnswer float64   `json:"echo_answer_p50_micros"`
	Check      float64   `json:"signature_micros"`
	Sync       float64   `json:"sync_p50_micros"`

	Generator *Generator `json:"generator"` // of the last round
	Invalid   string     `json:"invalid,omitempty"`

	orders int64
	cpu    time.Duration // of the rounds
	beside time.Duration // of the node while profiles were taken
}

// BudgetLine is a stage's part of an order, in µs of CPU time. Error is the standard error of the
// sampling.
type BudgetLine struct {
	budget.Line

	Micros float64       `json:"micros"`
	Error  float64       `json:"error_micros"`
	Floor  *budget.Floor `json:"floor,omitempty"`
}

// MeasureBudget loads a node, profiles it meanwhile, and divides.
func MeasureBudget(ctx context.Context, b Budget) (*Budgeted, error) {
	if err := b.validate(); err != nil {
		return nil, err
	}
	out := &Budgeted{Seed: b.Seed, Connections: b.Connections, Lists: b.Lists,
		Seconds: b.Duration.Seconds()}
	var err error
	out.Conditions, err = b.measure(ctx, func(t *site) error {
		return (&budgeting{b, t, out}).run(ctx)
	})
	if err != nil {
		return nil, err
	}
	return out, nil
}

// budgeting is a measurement in the making.
type budgeting struct {
	Budget

	site *site
	out  *Budgeted
}

// each is how many orders a request has.
func (b *budgeting) each() float64 {
	if b.Lists {
		return workload.ListSize
	}
	return 1
}

// run does the rounds, of which the first only warms up, and then measures the floors.
func (b *budgeting) run(ctx context.Context) error {
	t, out := b.site, b.out
	before, err := t.node.desk.counts(ctx)
	if err != nil {
		return err
	}
	b.Ticker.Plan(b.Rounds + 2)
	perSecond, bytes := 20_000.0, 0 // what only warms up may run dry
	var v *volley
	for round := -1; round < b.Rounds; round++ {
		b.Ticker.Step("round %d", round+1)
		d := b.Duration
		if round < 0 {
			d = min(d, time.Second)
		}
		ops, requests, err := t.orders(ctx, b.Seed+uint64(round+2), int(perSecond*d.Seconds()))
		if err != nil {
			return err
		}
		v = newVolley(t.node.addr, b.Connections)
		v.Duration, v.Progress, bytes = d, b.Ticker.Progress(), len(requests[0].body)
		if b.Lists {
			v.dealLists(ops, requests)
			bytes *= workload.ListSize
		} else {
			v.deal(ops, requests)
		}
		if round == 0 {
			if before, err = t.node.desk.counts(ctx); err != nil {
				return err
			}
		}
		rate, err := b.round(ctx, v, round < 0)
		if err != nil {
			return err
		}
		perSecond = max(rate*floodSpare, 2000)
	}
	after, err := t.node.desk.counts(ctx)
	if err != nil {
		return err
	}
	frames := max(after.frames-before.frames, 1)
	out.PerFrame = float64(out.orders) / frames
	out.FrameBytes = (after.bytes - before.bytes) / frames
	orders := max(float64(out.orders), 1)
	out.Mallocs = (after.mallocs - before.mallocs) / orders
	out.Allocated = (after.allocated - before.allocated) / orders
	out.scale()
	b.Ticker.Step("floors without a node")
	return b.floors(ctx, v, bytes)
}

// round is one load with a profile of its middle.
func (b *budgeting) round(ctx context.Context, v *volley, warm bool) (rate float64, err error) {
	t, out := b.site, b.out
	if _, err := t.watch.Lap(); err != nil {
		return 0, err
	}
	came := make(chan profiled, 1)
	before, beforeErr := t.node.cpu()
	go func() { came <- t.node.profile(ctx, v.Duration) }()
	m, err := v.Run(ctx)
	after, afterErr := t.node.cpu()
	p := <-came
	h, lapErr := t.watch.Lap()
	if err = errors.Join(err, beforeErr, afterErr, p.err, lapErr, ctx.Err()); err != nil {
		return 0, err
	}
	if m.Failed > 0 {
		return 0, fmt.Errorf("budget: %d requests failed: %s", m.Failed, m.Failure)
	}
	if rate = float64(m.Acked) / m.Took.Seconds(); warm {
		return rate, nil
	}
	t.conditions.Hiccup.add(h)
	out.orders, out.cpu, out.beside = out.orders+m.Acked, out.cpu+after-before, out.beside+p.cpu
	out.judge(m, h)
	return rate, out.divide(p.text)
}

// judge notes the rate of a round, and whether the generator made it.
func (out *Budgeted) judge(m *lean.Measured, h Hiccup) {
	r := judged(0, m, h)
	out.Generator = r.Generator
	if err := r.Verdict(); err != nil {
		out.Invalid = err.Error()
	}
	out.Rates = append(out.Rates, r.Rate)
	out.Answers = append(out.Answers, r.ServiceMicros.P50)
}

// divide adds the profile of a round to those before.
func (out *Budgeted) divide(text []byte) error {
	lines, err := budget.Divide(text)
	if err != nil {
		return err
	}
	if out.Lines == nil {
		out.Lines = make([]BudgetLine, len(lines))
	}
	for i := range lines {
		to := &out.Lines[i]
		to.Heaviest = lines[i].Heaviest // of the last round
		to.Stage, to.CPU, to.Samples = lines[i].Stage, to.CPU+lines[i].CPU, to.Samples+lines[i].Samples
	}
	return nil
}

// scale turns samples into µs of an order.
func (out *Budgeted) scale() {
	var sum time.Duration
	for i := range out.Lines {
		sum += out.Lines[i].CPU
	}
	out.Micros = inMicros(out.cpu) / max(float64(out.orders), 1)
	out.Seen = sum.Seconds() / max(out.beside.Seconds(), 1e-9)
	for i := range out.Lines {
		l := &out.Lines[i]
		l.Micros = out.Micros * l.CPU.Seconds() / max(sum.Seconds(), 1e-9)
		l.Error = l.Micros / math.Sqrt(max(float64(l.Samples), 1))
	}
}

// floors measures what the stages cost without a node.
func (b *budgeting) floors(ctx context.Context, v *volley, bytes int) error {
	out := b.out
	crypto, err := budget.Crypto(bytes)
	if err != nil {
		return err
	}
	crypto[0].Micros /= b.each()
	if i := len(crypto) - 1; crypto[i].Stage == budget.Signature {
		out.Check = crypto[i].Micros
	}
	out.Sync = fsyncProbe(b.site.dir)
	disk, err := budget.Disk(b.site.dir, max(int(out.FrameBytes), 1))
	if err != nil {
		return err
	}
	for i := range disk {
		disk[i].Micros /= max(out.PerFrame, 1)
	}
	for _, floor := range append(crypto, disk...) {
		i := slices.IndexFunc(out.Lines, func(l BudgetLine) bool { return l.Stage == floor.Stage })
		out.Lines[i].Floor = &floor
	}
	return b.echo(ctx, v)
}

// echo sends the last round's requests to a bare server.
func (b *budgeting) echo(ctx context.Context, v *volley) error {
	text := `{"errorMsg":"","orderID":"0x` + strings.Repeat("0", 64) +
		`","takingAmount":"","makingAmount":"","status":"live","success":true}`
	if b.Lists {
		text = "[" + strings.Repeat(text+",", workload.ListSize-1) + text + "]"
	}
	file := filepath.Join(b.site.dir, "echo")
	if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
		return fmt.Errorf("write the bare answer: %w", err)
	}
	bare, err := startPeer(ctx, b.Self, "bare", file)
	if err != nil {
		return err
	}
	defer bare.end()
	v.Addr, v.Duration = bare.addr, time.Second
	for i := range v.Routes {
		v.Routes[i].Want = lean.WantAny
	}
	before, beforeErr := bare.cpu()
	m, err := v.Run(ctx)
	after, afterErr := bare.cpu()
	if err = errors.Join(err, beforeErr, afterErr); err != nil {
		return err
	}
	if m.Failed > 0 {
		return fmt.Errorf("budget: the bare server: %s", m.Failure)
	}
	b.out.Echo = inMicros(after-before) / max(float64(m.Good)*b.each(), 1)
	b.out.EchoAnswer = judged(0, m, Hiccup{}).ServiceMicros.P50
	return nil
}

// counted is what a node has done so far: frames and bytes of its journal, objects and bytes of its
// heap.
type counted struct{ frames, bytes, mallocs, allocated float64 }

// counts reads what the node has done so far.
func (d desk) counts(ctx context.Context) (f counted, err error) {
	text, err := d.metrics(ctx)
	if err != nil {
		return f, err
	}
	var known [4]bool
	f.frames, known[0] = reading(text, "clobd_journal_append_frames_total")
	f.bytes, known[1] = reading(text, "clobd_journal_append_bytes_total")
	f.mallocs, known[2] = reading(text, "go_memstats_mallocs_total")
	f.allocated, known[3] = reading(text, "go_memstats_alloc_bytes_total")
	if slices.Contains(known[:], false) {
		return f, errors.New("read metrics: the counts of frames or of allocations are not there")
	}
	return f, nil
}

// profiled is a CPU profile of a node, and the CPU time that the system has counted meanwhile.
type profiled struct {
	text []byte
	cpu  time.Duration
	err  error
}

// profile takes a profile of whole seconds that ends within d.
func (c *child) profile(ctx context.Context, d time.Duration) (p profiled) {
	url := fmt.Sprintf("http://%s/debug/pprof/profile?seconds=%d", c.desk.addr,
		max(int(d.Seconds()-0.5), 1))
	r, err := http.NewRequestWithContext(ctx, http.MethodGet, url, nil)
	if err != nil {
		return profiled{err: fmt.Errorf("ask for a profile: %w", err)}
	}
	r.Header.Set("Authorization", "Bearer "+c.desk.token)
	before, beforeErr := c.cpu()
	status, text, err := exchangeBy(&http.Client{Timeout: 2 * time.Minute}, r)
	after, afterErr := c.cpu()
	if err == nil && status != http.StatusOK {
		err = fmt.Errorf("status %d: %s", status, text)
	}
	if err = errors.Join(err, beforeErr, afterErr); err != nil {
		return profiled{err: fmt.Errorf("ask for a profile: %w", err)}
	}
	return profiled{text, after - before, nil}
}

// Verdict is nil if the figures are the node's.
func (out *Budgeted) Verdict() error {
	if out.Invalid != "" {
		return errors.New(out.Invalid)
	}
	return nil
}

// WriteText prints the table.
func (out *Budgeted) WriteText(w io.Writer) {
	what := "POST /order"
	if out.Lists {
		what = "POST /orders of 15"
	}
	fmt.Fprintf(w, "%s from %d connections: %.1f µs of CPU an order, %.0f orders/s (median of %d rounds "+
		"of %.1f s, closed loop), %.1f orders a frame of %.0f bytes, %.1f allocations of %.0f bytes an "+
		"order; the profile saw %.0f %% of the CPU time\n", what, out.Connections, out.Micros, Median(out.Rates), len(out.Rates), out.Seconds,
		out.PerFrame, out.FrameBytes, out.Mallocs, out.Allocated, 100*out.Seen)
	fmt.Fprintf(w, "%-13s %8s %7s %6s  %s\n", "stage", "µs", "±", "share", "floor, µs")
	for i := range out.Lines {
		l := &out.Lines[i]
		fmt.Fprintf(w, "%-13s %8.2f %7.2f %5.1f%%", l.Stage, l.Micros, l.Error, 100*l.Micros/out.Micros)
		if l.Floor != nil {
			fmt.Fprintf(w, "  %.2f  %s", l.Floor.Micros, l.Floor.What)
		}
		fmt.Fprintln(w)
	}
	fmt.Fprintf(w, "%-13s %8.2f                 %.2f  a bare fasthttp server that takes the same "+
		"requests: socket in and out, parse, scheduler\n", "sum", out.Micros, out.Echo)
	if sum := out.EchoAnswer + out.Check + out.Sync; out.Connections == 1 && !out.Lists && sum > 0 {
		p50 := Median(out.Answers)
		fmt.Fprintf(w, "an answer takes %.0f µs (p50), %.2f times the sum of what the bare server "+
			"takes (%.0f), a signature (%.0f, libsecp256k1) and a bare write with its sync (%.0f)\n",
			p50, p50/sum, out.EchoAnswer, out.Check, out.Sync)
	}
	if err := out.Verdict(); err != nil {
		fmt.Fprintf(w, "  %v\n", err)
	}
	out.Conditions.WriteText(w)
}
