package bench

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"os"
	"runtime"
	"time"

	"clobd/bench/process"
	"clobd/engine"
	"clobd/engine/sequencer"
	"clobd/engine/sequencer/memory"
	"clobd/engine/view"
	"clobd/journal"
)

// Run says what to measure. Level is one of L0 (Apply), L1 (Sequencer with a memory journal), L2
// (Pebble with real sync) and L3 (HTTP on loopback with real signatures).
type Run struct {
	Workload Workload
	Level    string
	Seed     uint64
	Duration time.Duration
	// Rounds cuts the Duration into so many turns, which follow each other on the same node; 0 and 1
	// are one turn, which is not reported apart.
	Rounds int
	// Connections is how many callers work at once, [1, Traders]; each owns wallets of its own. L0
	// always has one.
	Connections int
	Async       bool   // L2 and L3 without URL: acknowledge before the sync, for measuring only
	Dir         string // L2 and L3 without URL: where the data folder is made; empty is the system's
	URL         string // L3: a node that runs already; empty starts one
	Admin       string // L3 with URL: its admin address
	Token       string // L3 with URL: its admin token
	// Market are the two tokens of the market to trade: L3 with URL.
	Market  [2]engine.Token
	Node    string // L3 without URL: the node's binary
	Self    string // a binary that runs WatchHiccups when called with "hiccups"
	Version string // what this program was built from, for the report

	round   int // L0: operations on one Exchange; 0 is applyRound
	prefill int // L1 and L2: resting orders to start with; 0 is Prefill
}

// Prefill is the number of resting orders that a run starts with: its warm-up.
const Prefill = 10_000

// applyRound is how many operations L0 applies to one Exchange before it starts with a new one.
// Both an Exchange and the generator remember every order.
const applyRound = 4_000_000

// answerTime is how long a caller waits for an answer before the run fails. It is long, because a
// disk that stalls for seconds should show in the latencies.
const answerTime = time.Minute

// block is how many operations are made into Commands at once.
const block = 8192

// validate returns all problems of the run at once, or nil.
func (r *Run) validate() error {
	var problems []error
	bad := func(wrong bool, text string) {
		if wrong {
			problems = append(problems, errors.New("run: "+text))
		}
	}
	bad(r.Duration <= 0, "the duration is not positive")
	bad(r.Rounds < 0, "the number of rounds is negative")
	bad(r.Connections < 1 || r.Connections > Traders, fmt.Sprintf(
		"%d connections are outside [1, %d]: each has wallets of its own", r.Connections, Traders))
	bad(r.Level == "L3" && r.Workload.Books != 1, "level L3 measures workloads of one book")
	bad(r.URL != "" && r.Level != "L3", "a node's URL belongs to level L3")
	bad(r.URL != "" && (r.Async || r.Dir != ""),
		"durability and folder of a node that runs already are its own")
	bad(r.Self == "", "no program is named that can watch for hiccups")
	return errors.Join(problems...)
}

// Execute measures one run and checks what it ended with. A failed check is in Report.Failure; an
// error means that there was no run. If ctx ends it leaves no process and no folder behind.
func Execute(ctx context.Context, r Run) (*Report, error) {
	if err := r.validate(); err != nil {
		return nil, err
	}
	t := &trial{Run: r, report: &Report{Conditions: NewConditions(r.Version),
		Workload: r.Workload.Name, Level: r.Level, Loop: "closed", Seed: r.Seed,
		AskedSeconds: r.Duration.Seconds(), Durability: "none"}}
	if r.Level == "L2" || r.Level == "L3" && r.URL == "" {
		var err error
		if t.dir, err = makeFolder(r.Dir); err != nil {
			return nil, err
		}
		defer os.RemoveAll(t.dir)
		t.report.Conditions.Data = diskOf(t.dir)
	}
	var err error
	if t.watch, err = StartWatch(ctx, r.Self); err == nil {
		defer t.watch.End()
		err = t.run(ctx)
	}
	if ctx.Err() != nil {
		return nil, Stopped(ctx)
	}
	return t.report, err
}

func (t *trial) run(ctx context.Context) error {
	switch t.Level {
	case "L0":
		return t.runApply(ctx)
	case "L1":
		t.report.Durability = "memory"
		return t.runMemory(ctx)
	case "L2":
		t.report.Durability = durability(t.Async)
		return t.runJournal(ctx)
	case "L3":
		return t.runHTTP(ctx)
	}
	return fmt.Errorf("no level is called %q: choose L0, L1, L2 or L3", t.Level)
}

func durability(async bool) string {
	if async {
		return "async"
	}
	return "fsync"
}

// operations returns how many operations to draw for a run: more than the level usually does in its
// time. If they run out, the report says so.
func (t *trial) operations() int {
	perSecond := map[string]int{"L1": 600_000, "L2": 300_000, "L3": 30_000}[t.Level]
	return min(max(int(t.Duration.Seconds()*float64(perSecond)), 1000), 4_000_000)
}

// applied adds up the rounds of L0.
type applied struct {
	took, cpu time.Duration
	objects   uint64
	done      int
	tally     Tally
	rec       Recorder
	digest    engine.Digest
	turn      appliedTurn
}

// appliedTurn is the turn of L0 that is under way: where it began, and what it recorded.
type appliedTurn struct {
	took, cpu time.Duration
	done      int
	rec       Recorder
}

// runApply measures Apply alone, on one goroutine, on one fresh Exchange after the other until the
// time is up. Each has its own seed and its own check.
func (t *trial) runApply(ctx context.Context) error {
	report, sum := t.report, &applied{rec: NewRecorder()}
	sum.turn.rec = NewRecorder()
	if t.round == 0 {
		t.round = applyRound
	}
	for sum.took < t.Duration && report.Failure == "" {
		if err := t.applyOne(ctx, sum); err != nil {
			return err
		}
		report.Exchanges++
	}
	n := float64(sum.done)
	report.bound(window{sum.took, sum.took >= t.Duration})
	report.Operations, report.Acknowledged = int64(sum.done), int64(sum.done)
	report.Rate, report.Connections = n/sum.took.Seconds(), 1
	report.CPUMicros = new(float64(sum.cpu.Nanoseconds()) / 1e3 / n)
	report.Allocs = new(float64(sum.objects) / n)
	report.ServiceMicros = sum.rec.Latency()
	report.Histograms = histograms(&sum.rec, nil)
	report.Filled, report.Refused = &sum.tally.Fills, sum.tally.Rejected
	report.Digest = fmt.Sprintf("%016x", uint64(sum.digest))
	report.Checked = "fills, volume, resting orders and refusals of each exchange equal to the " +
		"generator's model"
	return nil
}

// applyOne is one round of L0: at most t.round operations, in blocks whose Commands are made while
// the clock stands still.
func (t *trial) applyOne(ctx context.Context, sum *applied) error {
	seed := t.Seed + uint64(t.report.Exchanges)
	ops, exp, err := generate(ctx, t.Workload, seed, [2]int{Prefill, t.round})
	if err != nil {
		return err
	}
	x := engine.NewExchange(seed)
	var tally Tally
	var events []engine.Event
	seq := engine.Sequence(0)
	apply := func(commands []engine.Command) {
		for i := range commands {
			commands[i].Seen = seq
			seq++
			events = x.Apply(&commands[i], seq, engine.Time(seq), events[:0])
			tally.Add(events)
		}
	}
	apply(NewWorld(t.Workload).Setup)
	tally = Tally{}
	apply(Commands(ops[:Prefill]))
	t.report.Warmup += Prefill
	runtime.GC() // what the generator left behind is not the engine's to collect
	if _, err := t.watch.Lap(); err != nil {
		return err
	}
	from := Prefill
	for ; from < len(ops) && sum.took < t.Duration && ctx.Err() == nil; from += block {
		sum.time(commandsFrom(ops, from, min(from+block, len(ops))), apply)
		if end := t.turnTime() * time.Duration(len(t.report.Turns)+1); t.Rounds > 1 && sum.took >= end {
			t.report.Turns = append(t.report.Turns, sum.cut())
		}
	}
	h, err := t.watch.Lap()
	if err != nil {
		return err
	}
	t.report.Conditions.Hiccup.add(h)
	if from < len(ops) { // stopped early: the model must stop where the run did
		_, exp, err = generate(ctx, t.Workload, seed, [2]int{Prefill, from - Prefill})
		if err != nil {
			return err
		}
	}
	if err := tally.Check(exp); err != nil {
		t.report.Failure = err.Error()
	}
	sum.tally.Fills += tally.Fills
	sum.tally.Rejected += tally.Rejected
	sum.digest = x.Digest()
	return ctx.Err()
}

// time applies one block and adds what it cost.
func (a *applied) time(commands []engine.Command, apply func([]engine.Command)) {
	before := mallocs()
	startCPU, _ := process.CPUTime() // getrusage of oneself does not fail
	start := time.Now()
	apply(commands)
	spent := time.Since(start)
	endCPU, _ := process.CPUTime()
	a.took, a.cpu = a.took+spent, a.cpu+endCPU-startCPU
	a.objects += mallocs() - before
	each := spent / time.Duration(len(commands))
	a.rec.Record(each)
	a.turn.rec.Record(each)
	a.done += len(commands)
}

// cut ends a turn and begins the next one.
func (a *applied) cut() Part {
	t, l := &a.turn, a.turn.rec.Latency()
	n, took := float64(a.done-t.done), (a.took - t.took).Seconds()
	p := Part{took, int64(n), n / took, new(float64((a.cpu - t.cpu).Nanoseconds()) / 1e3 / n), l.P50,
		l.P99}
	t.took, t.cpu, t.done = a.took, a.cpu, a.done
	t.rec.h.Reset()
	return p
}

// writer is what L1 and L2 submit to.
type writer struct {
	s     *sequencer.Sequencer
	x     *engine.Exchange
	board *view.Board
	ended chan error
}

// begin runs the Sequencer that was made.
func (w *writer) begin(s *sequencer.Sequencer) {
	w.s, w.ended = s, make(chan error, 1)
	go func() { w.ended <- s.Run() }()
}

// loop is one caller: it submits its own traders' Commands one after the other.
func (w *writer) loop(commands []engine.Command) func(n *counts, until func() bool) {
	return func(n *counts, until func() bool) {
		for ; n.next < len(commands); n.next++ {
			command := &commands[n.next]
			for {
				if until() {
					return
				}
				command.Seen = w.board.Sequence()
				start := time.Now()
				receipt, err := w.s.Submit(command)
				if errors.Is(err, sequencer.ErrBusy) {
					n.busy++
					time.Sleep(100 * time.Microsecond)
					continue
				}
				if err != nil {
					n.err = fmt.Errorf("submit: %w", err)
					return
				}
				n.rec.Record(time.Since(start))
				n.acked++
				if receipt.Reject != engine.Accepted {
					n.refused++
				} else if command.Kind == engine.Place {
					n.placed = append(n.placed, command.ID)
				}
				break
			}
		}
	}
}

// split distributes Commands to n callers by trader, so that a cancel follows its order. It starts
// at the given operation.
func (w *writer) split(ctx context.Context, ops []Op, from, n int) (*crew, error) {
	hands := make([][]engine.Command, n)
	for ; from < len(ops); from += block {
		if ctx.Err() != nil {
			return nil, ctx.Err()
		}
		for i, command := range commandsFrom(ops, from, min(from+block, len(ops))) {
			k := int(ops[from+i].Trader) % n
			hands[k] = append(hands[k], command)
		}
	}
	c := &crew{}
	for _, commands := range hands {
		c.join(w.loop(commands))
	}
	return c, nil
}

// runWriter sets the world up, measures Submit to acknowledgement, and stops the Sequencer. It
// stops it after a failure too.
func (t *trial) runWriter(ctx context.Context, w *writer) error {
	err := t.submitAll(ctx, w)
	return errors.Join(err, w.s.Close(), <-w.ended, ctx.Err())
}

func (t *trial) submitAll(ctx context.Context, w *writer) error {
	prefill := cmp.Or(t.prefill, Prefill)
	ops, _, err := generate(ctx, t.Workload, t.Seed, [2]int{prefill, t.operations()})
	if err != nil {
		return err
	}
	setup := &crew{}
	setup.join(w.loop(append(NewWorld(t.Workload).Setup, Commands(ops[:prefill])...)))
	setup.drive(ctx, 0)
	first, _ := setup.sum()
	if first.err != nil {
		return fmt.Errorf("warm-up: %w", first.err)
	}
	t.report.Warmup, t.placed = int(first.acked), first.placed
	work, err := w.split(ctx, ops, prefill, t.Connections)
	if err != nil {
		return err
	}
	objects := mallocs()
	if err := t.measureTurns(ctx, work, process.CPUTime); err != nil {
		return err
	}
	if n := float64(t.report.Operations); n > 0 {
		t.report.Allocs = new(float64(mallocs()-objects) / n)
	}
	return nil
}

// runMemory is level L1: the frames stay in memory.
func (t *trial) runMemory(ctx context.Context) error {
	memory := &memory.Journal{}
	w := &writer{x: engine.NewExchange(t.Seed), board: view.NewBoard()}
	s, err := sequencer.New(w.x, w.board, memory, sequencer.Options{Timeout: answerTime})
	if err != nil {
		return err
	}
	w.begin(s)
	if err := t.runWriter(ctx, w); err != nil {
		return err
	}
	seen := newReplay()
	replayed := engine.NewExchange(t.Seed + 1)
	err = seen.frames(ctx, memory.Frames(), replayed)
	t.report.check(w.x, replayed, err)
	t.report.Filled = &seen.fills
	return nil
}

// runJournal is level L2: the frames are synced to disk.
func (t *trial) runJournal(ctx context.Context) error {
	j, err := journal.Open(journal.Options{Dir: t.dir, Async: t.Async})
	if err != nil {
		return err
	}
	w := &writer{x: engine.NewExchange(t.Seed), board: view.NewBoard()}
	if err := t.writeTo(ctx, j, w); err != nil {
		return errors.Join(err, j.Close())
	}
	if err := j.Close(); err != nil {
		return err
	}
	return t.reopen(ctx, w)
}

func (t *trial) writeTo(ctx context.Context, j *journal.Journal, w *writer) error {
	head, err := j.Recover(w.x, func(f *engine.Frame) error {
		w.board.Publish(f)
		return nil
	})
	if err != nil {
		return err
	}
	s, err := sequencer.New(w.x, w.board, j, sequencer.Options{Head: head, Timeout: answerTime})
	if err != nil {
		return err
	}
	w.begin(s)
	return t.runWriter(ctx, w)
}

// reopen opens the journal as a restart would, replays it, and looks for every order that was
// acknowledged.
func (t *trial) reopen(ctx context.Context, w *writer) error {
	replayed := engine.NewExchange(t.Seed + 1)
	seen, err := replayFolder(ctx, t.dir, replayed)
	if seen == nil {
		return err
	}
	t.report.check(w.x, replayed, err)
	t.report.Filled = &seen.fills
	t.report.missing(t.placed, seen)
	t.report.Checked += "; every acknowledged order is in it"
	return nil
}
