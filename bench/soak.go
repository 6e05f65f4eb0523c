package bench

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"math"
	"os"
	"path/filepath"
	"slices"
	"time"

	"clobd/bench/lean"
	"clobd/bench/trader"
	"clobd/bench/workload"
	"clobd/engine"
	"clobd/journal"
)

// Soak is a long open loop at L3 that asks whether the node stays as it is. Orders are drawn and
// signed in pieces, each while the one before it is sent, so that a day takes no more memory than a
// minute. Each wallet cancels what it has left after a piece: the books do not grow. The instants
// at which requests are due count from the start of the soak: a node that is behind at the end of a
// piece is behind in the next one. Only the time in which the load itself could not send (it
// signed, canceled or read the metrics) moves them.
type Soak struct{ Run }

// The size of a piece.
const (
	longestPiece = time.Minute
	pieceOrders  = 200_000 // some 200 MB when signed
	pieces       = 10      // at least, so that there is a first and a last tenth
)

// The bounds of a soak's rate.
const (
	// keptPart of the requests asked for must be answered well in their time.
	keptPart   = 0.97
	signedLate = 0.1                    // of the time may be spent waiting for signatures
	settle     = 250 * time.Millisecond // that the last answers may take
	soakLead   = 10 * time.Millisecond  // that opening the connections of a piece takes
)

// piece is how long a piece takes.
func (s *Soak) piece() time.Duration {
	most := time.Duration(pieceOrders / s.Rate * float64(time.Second))
	d := min(longestPiece, s.Duration/pieces, most)
	return s.Duration / (s.Duration / d) // all of them together take the duration
}

// Lap is one piece of a soak.
type Lap struct {
	Seconds   float64 `json:"seconds"` // from the start of the soak to the end of the lap
	Done      int64   `json:"done"`
	Failed    int64   `json:"failed"`
	Unsent    int64   `json:"unsent"`
	Corrected Latency `json:"corrected_micros"`
	Service   Latency `json:"service_micros"`
	Late      Latency `json:"late_micros"`
	// CPUMicros is the node's CPU time per operation, null if its metrics do not tell. The others are
	// from its metrics at the end of the lap, 0 without metrics.
	CPUMicros  *float64 `json:"cpu_micros_per_operation"`
	Memory     float64  `json:"resident_bytes"`
	Goroutines float64  `json:"goroutines"`
	Files      float64  `json:"open_files"`
	// Disk is the size of the data folder. For a node that this run did not start, Disk is how much
	// the node's journal has appended.
	Disk float64 `json:"disk_bytes"`
	// Pause is how long nothing was sent before the lap, because the load signed, canceled what the
	// lap before had left, looked after wallets of their own funds, or read the metrics. Nothing is
	// due in it.
	Pause float64 `json:"pause_seconds"`
}

// Drift compares the last tenth of a soak with the first.
type Drift struct {
	Figure string  `json:"figure"`
	First  float64 `json:"first"`
	Last   float64 `json:"last"`
	Bound  float64 `json:"bound"` // that Last must not be above
	Rule   string  `json:"rule"`  // how the bound comes about
	Held   bool    `json:"held"`
	// Unknown: the node's metrics do not tell. First, Last and Bound are 0, and nothing is held.
	Unknown bool `json:"unknown,omitempty"`
}

// Soaked is the result of a soak.
type Soaked struct {
	Conditions   Conditions `json:"conditions"`
	Workload     string     `json:"workload"`
	Seed         uint64     `json:"seed"`
	Connections  int        `json:"connections"`
	Durability   string     `json:"durability"`
	AskedRate    float64    `json:"asked_per_second"`
	Arrivals     string     `json:"arrivals"`
	AskedSeconds float64    `json:"seconds_asked"`
	Seconds      float64    `json:"seconds"`
	// SendingSeconds are those in which requests were due or under way: Seconds without the pauses.
	// The generator's shares and the rate that thresholds judge are of these.
	SendingSeconds float64 `json:"sending_seconds"`
	Operations     int64   `json:"operations"`
	Errors         int64   `json:"errors"`
	// Due are the requests that were due, Good those of them that were answered well. Kept is the part
	// of the asked rate that the node has kept, in [0, 1].
	Due       int64     `json:"requests_due"`
	Good      int64     `json:"requests_done"`
	Kept      float64   `json:"kept"`
	Laps      []Lap     `json:"laps"`
	Drifts    []Drift   `json:"drifts"`
	Stages    []Stage   `json:"stages,omitempty"`
	Marks     []Mark    `json:"marks,omitempty"`
	Generator Generator `json:"generator"`
	// SigningSeconds is the CPU time of the threads that signed beside the load, at nice 19. It is not
	// in Generator, and it is CPU time that the node did not have.
	SigningSeconds float64 `json:"signing_cpu_seconds"`
	// SigningWait is for how long the load waited for signatures.
	SigningWait float64  `json:"signing_wait_seconds"`
	Thresholds  []Judged `json:"thresholds,omitempty"`
	Invalid     string   `json:"invalid,omitempty"`
	Checked     string   `json:"checked"`
	Failure     string   `json:"failure,omitempty"`
}

// soaking is a soak in progress.
type soaking struct {
	Soak
	trial   *trial
	to      *target
	clients []*trader.Client
	out     *Soaked
	start   time.Time
	drained time.Time     // the last answer to what was due
	moved   time.Duration // sum of pauses
	last    scrape
	signed  signing
	total   struct{ service, corrected, late Recorder }
	threads time.Duration
	acked   fingerprint

	// Of a node where the wallets have funds of their own: the market's condition, and for how many of
	// the orders it was asked.
	condition string
	asked     int
	equipped  bool // the wallets are the soak's: no order of anybody else rests
}

// fingerprint is a set of order ids as their number and sum: equal sets have equal ones, and others
// hardly ever.
type fingerprint struct {
	count int64
	sum   uint64
}

func (f *fingerprint) add(id *engine.OrderID) {
	f.count++
	for i := 0; i < 32; i += 8 {
		f.sum += uint64(id[i]) | uint64(id[i+1])<<8 | uint64(id[i+2])<<16 | uint64(id[i+3])<<24 |
			uint64(id[i+4])<<32 | uint64(id[i+5])<<40 | uint64(id[i+6])<<48 | uint64(id[i+7])<<56
	}
}

// piece is a part of a soak that was drawn and signed.
type piece struct {
	load  *volley
	sweep *volley // cancels what the load has left
	due   int     // requests of load
	need  []funds // of wallets that the run does not fund: what the load may need
	err   error
}

// validate returns all problems at once, or nil.
func (s *Soak) validate() error {
	all := Problems{Of: "soak"}
	all.rate("the rate", s.Rate)
	all.Add(s.Duration < time.Second, "the duration is below a second")
	all.Add(s.Data != "", "the orders are drawn, and not replayed")
	if err := all.Err(); err != nil {
		return err
	}
	n, wallets := s.Rate*s.piece().Seconds(), workload.Traders
	if s.Keys != nil {
		wallets = len(s.Keys)
	}
	all.Add(n < float64(wallets), "a piece of %v has %.0f requests, and then each of %d wallets cancels "+
		"what it has left: ask for a higher rate or a longer duration", s.piece(), n, wallets)
	if err := all.Err(); err != nil {
		return err
	}
	short := s.Run
	short.Duration = s.piece()
	return short.validate()
}

// MeasureSoak runs a soak. An error means that there was none.
func MeasureSoak(ctx context.Context, s Soak) (*Soaked, error) {
	s.Level = "L3"
	if err := s.validate(); err != nil {
		return nil, err
	}
	k := &soaking{Soak: s, trial: &trial{Run: s.Run, report: &Report{
		Conditions: NewConditions(s.Version), Seed: s.Seed}}}
	k.out = &Soaked{Workload: s.Workload.Name, Seed: s.Seed, Connections: s.Connections,
		AskedRate: s.Rate, Arrivals: "constant", AskedSeconds: s.Duration.Seconds()}
	if s.Poisson {
		k.out.Arrivals = "poisson"
	}
	if s.URL == "" {
		var err error
		if k.trial.dir, err = makeFolder(s.Dir); err != nil {
			return nil, err
		}
		defer os.RemoveAll(k.trial.dir)
		k.trial.report.Conditions.Data = diskOf(k.trial.dir)
	}
	var err error
	if k.trial.watch, err = StartWatch(ctx, s.Self); err == nil {
		defer k.trial.watch.End()
		err = k.run(ctx)
	}
	if ctx.Err() != nil {
		return nil, Stopped(ctx)
	}
	k.out.Conditions, k.out.Durability = k.trial.report.Conditions, k.trial.report.Durability
	return k.out, err
}

func (k *soaking) run(ctx context.Context) (err error) {
	if k.to, err = k.trial.target(ctx); err != nil {
		return err
	}
	defer k.to.end()
	if err = k.admit(ctx); err != nil {
		return err
	}
	defer func() {
		if k.equipped { // before that, orders that rest are somebody else's
			err = errors.Join(err, leave(k.clients))
		}
	}()
	k.signed = signing{clients: k.clients, markets: k.to.market, low: true,
		salt: uint64(time.Now().UnixNano()) & (1<<52 - 1)}
	ahead, stop := context.WithCancel(ctx)
	defer stop()
	ready := k.signAhead(ahead)
	seen := observe(ctx, k.to.desk, nil)
	if seen != nil {
		k.last = seen.first
	}
	if _, err = k.trial.watch.Lap(); err != nil {
		return err
	}
	if err = k.laps(ctx, ready); err != nil {
		return err
	}
	report := &Report{}
	seen.end(ctx, report)
	k.out.Stages, k.out.Marks = report.Stages, report.Marks
	if k.trial.report.Conditions.Hiccup, err = k.trial.watch.Lap(); err != nil {
		return err
	}
	k.conclude()
	return k.check(ctx)
}

// admit makes the wallets, and gives them funds unless they have their own.
func (k *soaking) admit(ctx context.Context) (err error) {
	if k.Keys == nil {
		if k.clients, err = traders(ctx, k.to.url, k.Seed); err != nil {
			return err
		}
		return k.to.desk.give(ctx, stakes(k.clients, k.to.market, k.Workload.Trades))
	}
	k.clients, err = clientsOf(ctx, k.to.url, cmp.Or(k.Chain, chain), k.Keys)
	if err != nil {
		return err
	}
	k.trial.report.Conditions.Node = publicly(k.clients[0])
	k.condition, err = conditionOf(k.clients[0], k.to.market[0])
	return err
}

// equip sees to it that wallets of their own funds hold what a piece may need. Fills move funds
// between them, so it is done before each piece, with no order open.
func (k *soaking) equip(ctx context.Context, need []funds) error {
	var poor []error
	for i := range need {
		p := purse{ctx, k.clients[i], k.to.market[0]}
		if err := p.provide(k.condition, need[i]); err != nil {
			poor = append(poor, fmt.Errorf("wallet %s: %w", k.clients[i].Address, err))
		}
	}
	return errors.Join(poor...)
}

// signAhead draws and signs the pieces, one ahead of the load.
func (k *soaking) signAhead(ctx context.Context) <-chan piece {
	ready := make(chan piece)
	go func() {
		defer close(ready)
		for at := time.Duration(0); at < k.Duration; at += k.piece() {
			b := k.sign(ctx, uint64(at/k.piece()))
			select {
			case ready <- b:
			case <-ctx.Done():
				return
			}
			if b.err != nil {
				return
			}
		}
	}()
	return ready
}

// sign draws and signs a piece: what makes the book, the mix, and the end of what is left.
func (k *soaking) sign(ctx context.Context, number uint64) piece {
	mean := k.Rate * k.piece().Seconds()
	n := int(mean)
	if k.Poisson {
		n += int(6*math.Sqrt(mean)) + 10 // what is due too late is not sent
	}
	book, draw := min(n/10, 1000), n
	if k.Workload.Quote > 0 {
		draw *= workload.ListSize
	}
	ops, _, err := k.Workload.Draw(ctx, k.Seed+number, book, max(draw-book, 1))
	if err != nil {
		return piece{err: err}
	}
	ops = ops[:firstRequests(ops, n)]
	var need []funds
	if k.Keys != nil {
		need = needs(ops, len(k.clients))
		for i := range ops {
			ops[i].Trader %= uint16(len(k.clients))
		}
	}
	requests, err := k.signed.sign(ctx, ops)
	if err != nil {
		return piece{err: err}
	}
	k.signed.salt += uint64(len(ops)) + 1
	v := newVolley(k.clients[0].Host.Addr, k.Connections)
	v.deal(ops, requests)
	v.Due = arrivals(k.Rate, k.Poisson, k.Seed+number, len(v.Requests))
	v.Duration = k.piece()
	due, _ := slices.BinarySearch(v.Due, v.Duration)
	sweep := newVolley(k.clients[0].Host.Addr, k.Connections)
	for i, c := range k.clients {
		sweep.add(i, aim{c, "DELETE", "/cancel-all", lean.WantAny}, nil)
	}
	return piece{load: v, sweep: sweep, due: due, need: need}
}

// firstRequests is how many operations the first n requests are, as deal makes them.
func firstRequests(ops []workload.Op, n int) (i int) {
	for ; n > 0 && i < len(ops); n-- {
		i += workload.Together(ops[i:])
	}
	return i
}

// laps sends the pieces.
func (k *soaking) laps(ctx context.Context, ready <-chan piece) error {
	var at time.Time // when the piece begins
	free := time.Now()
	for b := range ready {
		if b.err != nil {
			return b.err
		}
		if !k.start.IsZero() {
			k.out.SigningWait += max(time.Since(later(at, free)), 0).Seconds()
		}
		if err := k.equip(ctx, b.need); err != nil {
			return err
		}
		k.equipped = k.Keys != nil
		can := time.Now().Add(soakLead)
		if k.start.IsZero() {
			k.start, at, k.drained = can, can, can
		}
		pause := max(can.Sub(later(at, k.drained)), 0)
		at, k.moved = at.Add(pause), k.moved+pause
		b.load.Start, b.load.Progress = at, k.progress(at)
		m, err := b.load.send(ctx, k.Self, k.Processes)
		if err != nil {
			return err
		}
		k.drained = time.Now()
		k.out.Due += int64(b.due)
		k.out.Good += m.Good
		if m.Failure != "" && m.Good == 0 {
			k.out.Failure = m.Failure
			k.note(ctx, b.load, m, pause)
			return nil
		}
		swept, err := b.sweep.Run(ctx)
		if err != nil {
			return err
		}
		if k.note(ctx, b.load, m, pause); swept.Failed > 0 {
			k.out.Failure = cmp.Or(k.out.Failure, swept.Failure)
		}
		if err := k.sample(ctx, b.load, m); err != nil {
			return err
		}
		at, free = at.Add(k.piece()), time.Now()
	}
	return ctx.Err()
}

// sample asks the node for some orders of the piece that it has acknowledged to one wallet, as
// their owner may: those of all would take as long as the piece. The wallets take turns.
func (k *soaking) sample(ctx context.Context, v *volley, m *lean.Measured) error {
	if k.Keys == nil {
		return nil
	}
	c := k.clients[len(k.out.Laps)%len(k.clients)]
	var ids []engine.OrderID
	for i := range v.Requests {
		r := &v.Requests[i]
		to := &v.Routes[r.Route]
		if to.Want == lean.WantOrders && to.Address == c.Address && m.Answered(i) {
			ids = append(ids, r.IDs...)
		}
	}
	ids = ids[max(len(ids)-lookupsAtOnce, 0):]
	lost, err := confirm(ctx, c, ids)
	if err != nil {
		return fmt.Errorf("look for acknowledged orders: %w", err)
	}
	k.asked += len(ids)
	if lost > 0 {
		k.out.Failure = cmp.Or(k.out.Failure, fmt.Sprintf("the node does not know %d of %d acknowledged "+
			"orders of wallet %s", lost, len(ids), c.Address))
	}
	return nil
}

func later(a, b time.Time) time.Time {
	if a.After(b) {
		return a
	}
	return b
}

// sending is for how long the load was sent: from the start to the last answer, without the pauses.
func (k *soaking) sending() time.Duration {
	return max(k.drained.Sub(k.start)-k.moved, k.piece()*time.Duration(len(k.out.Laps)))
}

// keep says which part of the asked rate was kept. A node that answers all, and too late, has not
// kept the rate.
func (k *soaking) keep() {
	o := k.out
	if o.Due == 0 {
		return
	}
	o.Kept = float64(o.Good) / float64(o.Due)
	asked := k.piece() * time.Duration(len(o.Laps))
	if took := k.drained.Sub(k.start) - k.moved - settle; took > asked {
		o.Kept *= asked.Seconds() / took.Seconds()
	}
}

// progress makes the progress of a lap one of the soak.
func (k *soaking) progress(began time.Time) func(lean.Progress) {
	if k.Progress == nil {
		return nil
	}
	done, failed, before := k.out.Operations, k.out.Errors, began.Sub(k.start)-k.moved
	return func(p lean.Progress) {
		p.Done, p.Failed, p.Elapsed = p.Done+done, p.Failed+failed, p.Elapsed+before
		p.Left = max(k.Duration-p.Elapsed, 0)
		k.Progress(p)
	}
}

// note adds a lap to the report.
func (k *soaking) note(ctx context.Context, v *volley, m *lean.Measured, pause time.Duration) {
	o := k.out
	lap := Lap{Seconds: time.Since(k.start).Seconds(), Done: m.Acked, Failed: m.Failed,
		Unsent: m.Unsent, Corrected: Recorder{m.Corrected}.Latency(),
		Service: Recorder{m.Service}.Latency(), Late: Recorder{m.Late}.Latency(),
		Pause: pause.Seconds()}
	o.Operations, o.Errors = o.Operations+m.Acked, o.Errors+m.Failed
	if t := &k.total; t.late.h == nil {
		t.service, t.corrected, t.late = Recorder{m.Service}, Recorder{m.Corrected}, Recorder{m.Late}
	} else {
		t.service.h.Merge(m.Service)
		t.corrected.h.Merge(m.Corrected)
		t.late.h.Merge(m.Late)
	}
	k.threads += m.ThreadCPU
	if o.Failure == "" && m.Failed > 0 {
		o.Failure = fmt.Sprintf("after %.0f s: %s", lap.Seconds, m.Failure)
	}
	for _, id := range v.placed(m) {
		k.acked.add(&id)
	}
	k.measureNode(ctx, &lap)
	o.Laps = append(o.Laps, lap)
}

// measureNode reads what the node has become.
func (k *soaking) measureNode(ctx context.Context, lap *Lap) {
	text, err := k.to.desk.metrics(ctx)
	if err != nil {
		return
	}
	now := parseScrape(text)
	value := func(name string) float64 { return now.values[name] }
	lap.Memory, lap.Goroutines = value("process_resident_memory_bytes"), value("go_goroutines")
	lap.Files, lap.Disk = value("process_open_fds"), value("clobd_journal_append_bytes_total")
	const cpu = "process_cpu_seconds_total"
	if before, known := k.last.values[cpu]; known && lap.Done > 0 {
		lap.CPUMicros = new((now.values[cpu] - before) * 1e6 / float64(lap.Done))
	}
	k.last = now
	if k.to.own != nil {
		lap.Disk = float64(sizeOf(k.to.own.dir))
	}
}

// sizeOf is the size of all files below a folder; what vanishes meanwhile does not count.
func sizeOf(dir string) (total int64) {
	_ = filepath.WalkDir(dir, func(_ string, e fs.DirEntry, err error) error {
		if err == nil && !e.IsDir() {
			if info, err := e.Info(); err == nil {
				total += info.Size()
			}
		}
		return nil
	})
	return total
}

// conclude compares the tenths and sums up.
func (k *soaking) conclude() {
	o := k.out
	o.Seconds = time.Since(k.start).Seconds()
	o.SigningSeconds = time.Duration(k.signed.spent.Load()).Seconds()
	if k.total.late.h == nil {
		o.Failure = cmp.Or(o.Failure, "nothing was sent")
		return
	}
	o.SendingSeconds = k.sending().Seconds()
	o.Generator = Generator{Processes: 1, LateMicros: k.total.late.Latency(),
		CPUMicros: float64(k.threads.Microseconds()) / float64(max(o.Operations, 1)),
		Thread:    k.threads.Seconds() / o.SendingSeconds}
	o.Generator.Share = o.Generator.Thread / float64(k.trial.report.Conditions.Cores)
	r := &Report{Operations: o.Operations, Generator: &o.Generator,
		requests:      k.total.late.h.TotalCount(),
		Conditions:    k.trial.report.Conditions,
		ServiceMicros: k.total.service.Latency(), CorrectedMicros: new(k.total.corrected.Latency())}
	r.Rate, r.Errors = float64(o.Operations)/o.SendingSeconds, o.Errors
	r.judge(k.Thresholds)
	r.blame()
	o.Thresholds, o.Invalid = r.Thresholds, r.Invalid
	if o.SigningWait > signedLate*o.Seconds {
		o.Invalid = cmp.Or(o.Invalid, fmt.Sprintf("the load waited for signatures for %.1f s of %.1f s: "+
			"ask for a lower rate", o.SigningWait, o.Seconds))
	}
	k.keep()
	o.Drifts = drifts(o.Laps, k.Keys == nil)
}

// driftRules are the bounds of a soak: the last tenth may have so many times the first, and so much
// more.
var driftRules = []struct {
	figure      string
	times, more float64
	orders      float64 // more for each operation between the tenths
	lap         float64 // more, shared by the operations of a lap
	metrics     bool    // only the node's metrics tell
	of          func(l *Lap) float64
}{
	{"memory, bytes", 1.25, 128 << 20, 400, 0, true, func(l *Lap) float64 { return known(l.Memory) }},
	{"goroutines", 1.2, 50, 0, 0, true, func(l *Lap) float64 { return known(l.Goroutines) }},
	{"open files", 1.2, 100, 0, 0, true, func(l *Lap) float64 { return known(l.Files) }},
	{"corrected p50, µs", 2, 1000, 0, 0, false, func(l *Lap) float64 { return known(l.Corrected.P50) }},
	{"corrected p99, µs", 3, 20_000, 0, 0, false, func(l *Lap) float64 { return known(l.Corrected.P99) }},
	{"node's CPU, µs an operation", 1.5, 5, 0, 20_000, true, func(l *Lap) float64 {
		if l.CPUMicros == nil {
			return math.NaN()
		}
		return *l.CPUMicros
	}},
	{"disk, bytes", 1, 256 << 20, 3000, 0, true, func(l *Lap) float64 { return known(l.Disk) }},
}

// known is NaN for a figure that a lap does not have.
func known(v float64) float64 {
	if v == 0 {
		return math.NaN()
	}
	return v
}

// drifts compares the medians of the last tenth of the laps with those of the first. metrics says
// whether the run may ask for the node's.
func drifts(laps []Lap, metrics bool) (list []Drift) {
	n := len(laps) / 10
	if n == 0 {
		return nil
	}
	first, last := laps[:n], laps[len(laps)-n:]
	between := int64(0)
	for i := n; i < len(laps); i++ {
		between += laps[i].Done
	}
	for _, rule := range driftRules {
		if rule.metrics && !metrics {
			continue
		}
		d := Drift{Figure: rule.figure, First: medianOf(first, rule.of), Last: medianOf(last, rule.of)}
		if math.IsNaN(d.First) || math.IsNaN(d.Last) {
			list = append(list, Drift{Figure: rule.figure, Unknown: true})
			continue
		}
		d.Bound = d.First*rule.times + rule.more + rule.orders*float64(between)
		d.Rule = fmt.Sprintf("%g times the first tenth + %g", rule.times, rule.more)
		if rule.lap > 0 { // the node's CPU clock has ticks of 10 ms
			more := rule.lap / medianOf(last, func(l *Lap) float64 { return float64(max(l.Done, 1)) })
			d.Bound += more
			d.Rule += fmt.Sprintf(" + %.1f for two ticks a lap", more)
		}
		if rule.orders > 0 {
			d.Rule += fmt.Sprintf(" + %g an operation", rule.orders)
		}
		d.Held = d.Last <= d.Bound
		list = append(list, d)
	}
	return list
}

// medianOf is the median of the laps that have a figure, NaN if none has.
func medianOf(laps []Lap, of func(*Lap) float64) float64 {
	var list []float64
	for i := range laps {
		if v := of(&laps[i]); !math.IsNaN(v) {
			list = append(list, v)
		}
	}
	if len(list) == 0 {
		return math.NaN()
	}
	return Median(list)
}

// check replays the journal of a node of the soak's own: it must hold just the orders that were
// acknowledged, if all were.
func (k *soaking) check(ctx context.Context) error {
	o := k.out
	o.Checked = fmt.Sprintf("%d orders answered with 200 and success; the node is not ours to replay",
		k.acked.count)
	if k.Keys != nil {
		o.Checked += fmt.Sprintf("; it tells their owners of each of %d of them that it was asked for; memory, "+
			"files, disk and CPU are its operator's to see", k.asked)
	}
	if k.to.own == nil {
		return nil
	}
	if err := k.to.own.stop(); err != nil {
		return err
	}
	j, err := journal.Open(journal.Options{Dir: k.to.own.dir})
	if err != nil {
		return err
	}
	defer j.Close()
	var had fingerprint
	x := engine.NewExchange(k.Seed)
	_, err = j.Recover(x, func(f *engine.Frame) error {
		for i := range f.Commands {
			if f.Commands[i].Kind == engine.Place {
				had.add(&f.Commands[i].ID)
			}
		}
		return ctx.Err()
	})
	switch {
	case err != nil:
		o.Failure = "replay: " + err.Error()
	case o.Errors == 0 && had != k.acked, had.count < k.acked.count:
		o.Failure = fmt.Sprintf("the journal has %d orders, %d were acknowledged, and they are not the "+
			"same", had.count, k.acked.count)
	}
	o.Checked = fmt.Sprintf("the node's journal replays, digests equal frame by frame; its %d orders "+
		"are those that were acknowledged (number and sum of ids)", had.count)
	return nil
}

// Verdict is nil for a soak that was checked, whose generator kept up, and without drift.
func (s *Soaked) Verdict() error {
	var problems []error
	if s.Failure != "" {
		problems = append(problems, errors.New(s.Failure))
	}
	if s.Invalid != "" {
		problems = append(problems, errors.New("INVALID: "+s.Invalid))
	}
	if s.Due > 0 && s.Kept < keptPart {
		problems = append(problems, fmt.Errorf("fell behind: of the asked rate %.1f%% was kept, the bound "+
			"is %.0f%%: %d of %d requests were answered well", s.Kept*100, keptPart*100, s.Good, s.Due))
	}
	for i := range s.Drifts {
		if d := &s.Drifts[i]; !d.Held {
			problems = append(problems, fmt.Errorf("drift: %s", d))
		}
	}
	for i := range s.Thresholds {
		if j := &s.Thresholds[i]; !j.Held {
			problems = append(problems, fmt.Errorf("threshold broken: %s", j))
		}
	}
	return errors.Join(problems...)
}

// String is the drift in one line.
func (d *Drift) String() string {
	if d.Unknown {
		return d.Figure + ": unknown, as the laps of a tenth have no such figure"
	}
	return fmt.Sprintf("%s: first tenth %.1f, last %.1f, bound %.1f (%s)", d.Figure, d.First, d.Last,
		d.Bound, d.Rule)
}

// WriteText prints the laps and the drift.
func (s *Soaked) WriteText(w io.Writer) {
	fmt.Fprintf(w, "soak %s: %.0f requests/s asked for, %s, sent for %.0f s of %.0f, %.0f s with the "+
		"pauses: %d operations, %d errors, %d connections, seed %d, durability %s\n", s.Workload,
		s.AskedRate, s.Arrivals, s.SendingSeconds, s.AskedSeconds, s.Seconds, s.Operations, s.Errors,
		s.Connections, s.Seed, s.Durability)
	fmt.Fprintln(w, "  end s     done failed unsent  corrected µs: p50      p90      p99  uncorrected p50"+
		"      p99  CPU µs  memory MB  goroutines  files   disk MB  pause s")
	for i := range s.Laps {
		l := &s.Laps[i]
		fmt.Fprintf(w, "%7.0f %8d %6d %6d %18.0f %8.0f %8.0f %16.0f %8.0f %7s %10.1f %11.0f %6.0f %9.1f "+
			"%8.2f\n", l.Seconds, l.Done, l.Failed, l.Unsent, l.Corrected.P50, l.Corrected.P90,
			l.Corrected.P99, l.Service.P50, l.Service.P99, told(l.CPUMicros, "%.1f"), l.Memory/1e6,
			l.Goroutines, l.Files, l.Disk/1e6, l.Pause)
	}
	for i := range s.Drifts {
		held := "held   "
		if !s.Drifts[i].Held {
			held = "DRIFTED"
		}
		if s.Drifts[i].Unknown {
			held = "UNKNOWN"
		}
		fmt.Fprintf(w, "  %s  %s\n", held, &s.Drifts[i])
	}
	for i := range s.Thresholds {
		held := "held   "
		if !s.Thresholds[i].Held {
			held = "BROKEN "
		}
		fmt.Fprintf(w, "  %s  %s\n", held, &s.Thresholds[i])
	}
	fmt.Fprintf(w, "  kept: %.1f%% of the asked rate: %d of %d requests that were due\n", s.Kept*100,
		s.Good, s.Due)
	fmt.Fprintf(w, "  generator: %s; signing beside it at nice 19: %.1f s of CPU, waited for %.1f s\n",
		&s.Generator, s.SigningSeconds, s.SigningWait)
	(&Report{Stages: s.Stages, Marks: s.Marks}).writeNode(func(label, format string, args ...any) {
		fmt.Fprintf(w, "  "+label+": "+format+"\n", args...)
	})
	if s.Invalid != "" {
		fmt.Fprintf(w, "  INVALID: %s\n", s.Invalid)
	}
	if s.Failure != "" {
		fmt.Fprintf(w, "  FAILED: %s\n", s.Failure)
	}
	fmt.Fprintf(w, "  checked: %s\n", s.Checked)
	s.Conditions.WriteText(w)
}
