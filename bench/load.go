package bench

import (
	"context"
	"errors"
	"fmt"
	"os"
	"sync"
	"time"

	"clobd/engine"
	"clobd/engine/sequencer"
	"clobd/engine/view"
	"clobd/journal"
)

// Run says what to measure. Level is one of L0 (Apply), L1 (Sequencer with a memory journal), L2
// (Pebble with real sync) and L3 (HTTP on loopback with real signatures).
type Run struct {
	Workload    Workload
	Level       string
	Seed        uint64
	Duration    time.Duration
	Connections int
	Async       bool   // L2 and L3: acknowledge before the sync, for measuring only
	URL         string // L3: a node that runs already; empty starts one
	Admin       string // L3 with URL: its admin address
	Token       string // L3 with URL: its admin token
	// Market are the two tokens of the market to trade: L3 with URL.
	Market [2]engine.Token
	Node   string // L3 without URL: the node's binary
	Commit string // what the binaries were built from, for the report
}

// Prefill is the number of resting orders that a run starts with: its warm-up.
const Prefill = 10_000

// Execute measures one run and checks what it ended with. A failed check is in Report.Failure; an
// error means that there was no run.
func Execute(ctx context.Context, r Run) (*Report, error) {
	if r.Connections < 1 || r.Duration <= 0 {
		return nil, fmt.Errorf("a run needs at least one connection and some time")
	}
	dir, err := os.MkdirTemp("", "clobench")
	if err != nil {
		return nil, fmt.Errorf("make folder for the run: %w", err)
	}
	defer os.RemoveAll(dir)
	report := &Report{Conditions: NewConditions(dir, r.Commit),
		Workload: r.Workload.Name, Level: r.Level,
		Loop: "closed", Seed: r.Seed, Connections: r.Connections, Durability: "none"}
	watch := newHiccups()
	defer func() { report.Conditions.HiccupMillis = watch.Stop() }()
	switch r.Level {
	case "L0":
		err = runApply(r, report)
	case "L1":
		report.Durability = "memory"
		err = runSequencer(r, report, nil)
	case "L2":
		report.Durability = durability(r.Async)
		var j *journal.Journal
		if j, err = journal.Open(journal.Options{Dir: dir, Async: r.Async}); err != nil {
			return nil, err
		}
		err = runSequencer(r, report, j)
	case "L3":
		report.Durability = durability(r.Async)
		err = runHTTP(ctx, r, report, dir)
	default:
		return nil, fmt.Errorf("no level is called %q: choose L0, L1, L2 or L3", r.Level)
	}
	return report, err
}

func durability(async bool) string {
	if async {
		return "async"
	}
	return "fsync"
}

// operations is how many operations are drawn for a run: more than the level can do in its time, so
// that time ends the run; L0 may end before it.
func operations(r Run) int {
	perSecond := map[string]int{"L0": 2_000_000, "L1": 600_000, "L2": 300_000, "L3": 40_000}
	return min(max(int(r.Duration.Seconds()*float64(perSecond[r.Level])), 1000), 4_000_000)
}

// runApply measures Apply alone, on one goroutine, in blocks whose Commands are made beforehand.
func runApply(r Run, report *Report) error {
	ops, _ := Generate(r.Workload, r.Seed, Prefill, operations(r))
	x := engine.NewExchange(r.Seed)
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
	apply(NewWorld(r.Workload).Setup)
	tally = Tally{}
	apply(Commands(ops[:Prefill]))
	report.Warmup = Prefill
	const block = 8192
	rec := newRecorder()
	took, done := time.Duration(0), 0
	var objects uint64
	cpu := time.Duration(0)
	for from := Prefill; from < len(ops) && took < r.Duration; from += block {
		commands := commandsFrom(ops, from, min(from+block, len(ops)))
		before, startCPU, start := mallocs(), cpuTime(), time.Now()
		apply(commands)
		spent := time.Since(start)
		took, cpu = took+spent, cpu+cpuTime()-startCPU
		objects += mallocs() - before
		rec.record(spent / time.Duration(len(commands)))
		done += len(commands)
	}
	report.Operations, report.Seconds = int64(done), took.Seconds()
	report.Rate = float64(done) / took.Seconds()
	report.CPUMicros = float64(cpu.Nanoseconds()) / 1e3 / float64(done)
	report.ServiceMicros = merge([]recorder{rec})
	report.Acknowledged, report.Connections = int64(done), 1
	report.Allocs = float64(objects) / float64(done)
	report.Filled, report.Refused = tally.Fills, tally.Rejected
	report.Digest = fmt.Sprintf("%016x", uint64(x.Digest()))
	report.Checked = "fills, volume, resting orders and refusals equal to the generator's model"
	_, exp := Generate(r.Workload, r.Seed, Prefill, done)
	if err := tally.Check(exp); err != nil {
		report.Failure = err.Error()
	}
	return nil
}

// caller is one closed loop: it submits its own traders' operations one after the other.
type caller struct {
	commands []engine.Command
	rec      recorder
	busy     int64
	acked    int64
	refused  int64
	placed   []engine.OrderID // acknowledged and not refused
	err      error
}

func (c *caller) run(s *sequencer.Sequencer, board *view.Board, until func() bool) {
	for i := range c.commands {
		if until() {
			return
		}
		command := &c.commands[i]
		for {
			command.Seen = board.Sequence()
			start := time.Now()
			receipt, err := s.Submit(command)
			if errors.Is(err, sequencer.ErrBusy) {
				c.busy++
				time.Sleep(100 * time.Microsecond)
				continue
			}
			if err != nil {
				c.err = fmt.Errorf("submit: %w", err)
				return
			}
			c.rec.record(time.Since(start))
			c.acked++
			if receipt.Reject != engine.Accepted {
				c.refused++
			} else if command.Kind == engine.Place {
				c.placed = append(c.placed, command.ID)
			}
			break
		}
	}
}

// split deals the operations from an index on out to n callers by trader, so that a cancel follows
// its order.
func split(ops []Op, from, n int) []*caller {
	commands := commandsFrom(ops, from, len(ops))
	callers := make([]*caller, n)
	for i := range callers {
		callers[i] = &caller{rec: newRecorder()}
	}
	for i := range commands {
		c := callers[int(ops[from+i].Trader)%n]
		c.commands = append(c.commands, commands[i])
	}
	return callers
}

// runSequencer measures Submit to acknowledgement, with j or, if that is nil, a memory journal.
func runSequencer(r Run, report *Report, j *journal.Journal) error {
	ops, _ := Generate(r.Workload, r.Seed, Prefill, operations(r))
	x, board := engine.NewExchange(r.Seed), view.NewBoard()
	memory := &sequencer.MemoryJournal{}
	options := sequencer.Options{}
	var s *sequencer.Sequencer
	var err error
	if j == nil {
		s, err = sequencer.New(x, board, memory, options)
	} else {
		if options.Head, err = j.Recover(x, func(f *engine.Frame) error {
			board.Publish(f)
			return nil
		}); err != nil {
			return err
		}
		s, err = sequencer.New(x, board, j, options)
	}
	if err != nil {
		return err
	}
	ended := make(chan error, 1)
	go func() { ended <- s.Run() }()
	setup := &caller{commands: NewWorld(r.Workload).Setup, rec: newRecorder()}
	setup.commands = append(setup.commands, Commands(ops[:Prefill])...)
	setup.run(s, board, func() bool { return false })
	report.Warmup = len(setup.commands)
	callers := split(ops, Prefill, min(r.Connections, Traders))
	measure(r, report, callers, func(c *caller, until func() bool) { c.run(s, board, until) })
	if err := errors.Join(s.Close(), <-ended); err != nil {
		return err
	}
	callers = append(callers, setup)
	if j == nil {
		replayed := engine.NewExchange(r.Seed + 1)
		report.check(x, replayed, report.replay(memory.Frames(), replayed))
		return nil
	}
	return reopen(report, j, x, callers)
}

// measure runs all callers at once for the run's time and adds their counts up.
func measure(r Run, report *Report, callers []*caller, run func(*caller, func() bool)) {
	var wait sync.WaitGroup
	objects, cpu, start := mallocs(), cpuTime(), time.Now()
	deadline := start.Add(r.Duration)
	until := func() bool { return time.Now().After(deadline) }
	for _, c := range callers {
		wait.Go(func() { run(c, until) })
	}
	wait.Wait()
	took := time.Since(start)
	cpu = cpuTime() - cpu
	objects = mallocs() - objects
	var recs []recorder
	for _, c := range callers {
		recs = append(recs, c.rec)
		report.Acknowledged += c.acked
		report.Refused += c.refused
		report.Busy += c.busy
		if c.err != nil {
			report.Errors++
			report.Failure = c.err.Error()
		}
	}
	report.Operations = report.Acknowledged
	report.Connections = len(callers)
	report.Seconds = took.Seconds()
	if n := float64(report.Operations); n > 0 {
		report.Rate = n / took.Seconds()
		report.CPUMicros = float64(cpu.Nanoseconds()) / 1e3 / n
		report.Allocs = float64(objects) / n
	}
	report.ServiceMicros = merge(recs)
}

// replay applies encoded frames to a fresh Exchange and counts their fills.
func (report *Report) replay(frames [][]byte, x *engine.Exchange) error {
	var f engine.Frame
	placed := map[engine.OrderID]bool{}
	for _, b := range frames {
		if err := engine.DecodeFrame(b, &f); err != nil {
			return err
		}
		if err := x.ApplyFrame(&f); err != nil {
			return err
		}
		report.scan(&f, placed)
	}
	return nil
}

// check compares the live state with the replayed one.
func (report *Report) check(live, replayed *engine.Exchange, err error) {
	report.Digest = fmt.Sprintf("%016x", uint64(live.Digest()))
	report.Checked = "the journal replays to the same digest, frame by frame"
	switch {
	case err != nil:
		report.Failure = "replay: " + err.Error()
	case live.Digest() != replayed.Digest():
		report.Failure = fmt.Sprintf("the journal replays to digest %016x, the run ended with %016x",
			uint64(replayed.Digest()), uint64(live.Digest()))
	}
}

// reopen closes the journal, opens it as a restart would, replays it, and looks for every order
// that was acknowledged.
func reopen(report *Report, j *journal.Journal, x *engine.Exchange, callers []*caller) error {
	dir := j.Dir
	if err := j.Close(); err != nil {
		return err
	}
	j, err := journal.Open(journal.Options{Dir: dir})
	if err != nil {
		return err
	}
	defer j.Close()
	placed := map[engine.OrderID]bool{}
	replayed := engine.NewExchange(report.Seed + 1)
	_, err = j.Recover(replayed, func(f *engine.Frame) error {
		report.scan(f, placed)
		return nil
	})
	report.check(x, replayed, err)
	for _, c := range callers {
		report.missing(c.placed, placed)
	}
	report.Checked += "; every acknowledged order is in it"
	return nil
}
