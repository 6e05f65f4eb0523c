package bench

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"math"
	"os"
	"runtime"
	"time"

	"clobd/bench/lean"
	"clobd/bench/process"
	"clobd/bench/workload"
	"clobd/engine"
	"clobd/engine/sequencer"
	"clobd/engine/sequencer/memory"
	"clobd/engine/view"
	"clobd/ingress/auth"
	"clobd/journal"
)

// Run says what to measure. Level is one of L0 (Apply), L1 (Sequencer with a memory journal), L2
// (Pebble with real sync) and L3 (HTTP on loopback with real signatures).
type Run struct {
	Workload workload.Workload
	// Data is the data folder of a stopped node, or a backup: what is recorded in it takes the place
	// of Workload. At L0 to L2 these are its Commands; at L3 its orders, signed by bench wallets.
	Data string
	// Pace is how many times as fast as recorded the orders of Data are due at L3; 0: the loop is
	// closed.
	Pace     float64
	Level    string
	Seed     uint64
	Duration time.Duration
	// Rounds cuts the Duration into so many turns, which follow each other on the same node; 0 and 1
	// are one turn, which is not reported apart.
	Rounds int
	// Connections is how many callers work at once, [1, workload.Traders]; each owns wallets of
	// its own. L0 always has one.
	Connections int
	// Rate is how many requests a second are due in an open loop, on L1 to L3. 0: it is closed.
	Rate    float64
	Poisson bool // the gaps between due times are exponential; otherwise equal
	// Progress is called about once a second while the run is measured. nil: nobody asks.
	Progress   func(lean.Progress)
	Thresholds []Threshold // that the report must hold
	// Warmup is how many operations L1 to L3 do at least before the clock runs.
	Warmup int
	// Subscribers is how many listen at level L3 to what the workload streams changes.
	Subscribers int
	// Keys are private keys whose wallets have funds already: L3 with URL and without Admin. Each is a
	// wallet, and so bounds the connections.
	Keys  [][32]byte
	Chain uint64 // that Keys sign for; 0: 80002
	Async bool   // L2 and L3 without URL: acknowledge before the sync, for measuring only
	Dir   string // L2 and L3 without URL: where the data folder is made; empty is the system's
	URL   string // L3: a node that runs already; empty starts one
	Admin string // L3 with URL: its admin address
	Token string // L3 with URL: its admin token
	// Processes is how many processes send at level L3. 0 and 1: this one, from one thread.
	Processes int
	// Market are the two tokens of the market to trade: L3 with URL.
	Market  [2]engine.Token
	Node    string // L3 without URL: the node's binary
	Self    string // a binary that runs WatchHiccups when called with "hiccups"
	Version string // what this program was built from, for the report

	round   int // L0: operations on one Exchange; 0 is workload.MostOps
	prefill int // L1 and L2: resting orders to start with; 0 is Prefill
}

// Prefill is the number of resting orders that a run starts with: its warm-up.
const Prefill = 10_000

// answerTime is how long a caller waits for an answer before the run fails. It is long, because a
// disk that stalls for seconds should show in the latencies.
const answerTime = time.Minute

// block is how many operations are made into Commands at once.
const block = 8192

// validate returns all problems of the run at once, or nil.
func (r *Run) validate() error {
	all := Problems{Of: "run"}
	bad := all.Add
	bad(r.Duration <= 0, "the duration is not positive")
	bad(r.Rounds < 0 || r.Rounds > mostRounds, "the turns are not in [0, %d]", mostRounds)
	bad(r.Rounds > 1 && r.Rate > 0, "turns belong to a closed loop")
	bad(r.Warmup < 0 || r.Warmup > 1_000_000, "the warm-up is not in [0, 1,000,000] operations")
	bad(!(r.Rate >= 0 && r.Rate <= mostRate), "the rate is not in [0, %g]", mostRate)
	bad(r.Rate > 0 && r.Data != "", "the pace of a replay takes the place of a rate")
	bad(r.Rate > 0 && r.Level == "L0", "level L0 has no open loop: it calls Apply and waits for nobody")
	bad(r.Rate > 0 && r.Rate*r.Duration.Seconds() > 4_000_000,
		"more than 4,000,000 operations are due: soak runs that long")
	all.posters("connections", r.Connections)
	bad(r.Processes < 0 || r.Processes > max(r.Connections, 1), "%d processes for %d connections",
		r.Processes, r.Connections)
	bad(r.URL != "" && r.Data != "", "a replay wants a fresh node, and not one that runs already")
	bad(!(r.Pace >= 0 && r.Pace <= mostRate) || r.Pace > 0 && (r.Data == "" || r.Level != "L3"),
		"a pace is positive, and belongs to a replay at level L3")
	bad(r.Pace > 0 && r.Rounds > 1, "a replay at the recorded pace is one turn")
	bad(r.URL != "" && r.Data == "" && r.Workload.Books != 1,
		"a node that runs already is traded in one market: choose a workload of one book")
	bad(r.URL != "" && r.Level != "L3", "a node's URL belongs to level L3")
	bad(r.URL != "" && (r.Async || r.Dir != ""),
		"durability and folder of a node that runs already are its own")
	if r.Level == "L3" && r.Workload.Name == listening {
		all.lanes("subscribers", r.Subscribers)
		bad(r.Processes > 1, "the workload streams is sent by one process, which sees all answers")
	}
	bad(r.Keys != nil && (r.URL == "" || r.Admin != ""),
		"keys are for a node that runs already, and whose admin listener is not used")
	bad(r.Keys != nil && auth.Domains(cmp.Or(r.Chain, chain)) == nil,
		"chain %d: no exchange is known there", r.Chain)
	bad(r.Keys != nil && r.Connections > len(r.Keys),
		"%d connections for %d keys: each connection has wallets of its own", r.Connections, len(r.Keys))
	bad(r.Self == "", "no program is named that can watch for hiccups")
	return all.Err()
}

// Execute measures one run and checks what it ended with. A failed check is in Report.Failure; an
// error means that there was no run. If ctx ends it leaves no process and no folder behind.
func Execute(ctx context.Context, r Run) (*Report, error) {
	if err := r.validate(); err != nil {
		return nil, err
	}
	if r.Data != "" {
		r.Workload = workload.Workload{Name: workload.Replay}
	}
	t := &trial{Run: r, report: &Report{Conditions: NewConditions(r.Version),
		Workload: r.Workload.Name, Level: r.Level, Loop: "closed", Seed: r.Seed,
		AskedSeconds: r.Duration.Seconds(), Durability: "none"}}
	if r.Rate > 0 {
		t.report.Loop, t.report.AskedRate, t.report.Arrivals = "open", r.Rate, "constant"
		if r.Poisson {
			t.report.Arrivals = "poisson"
		}
	}
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
	if err == nil {
		t.report.blame()
		t.advise()
		t.report.judge(r.Thresholds)
	}
	return t.report, err
}

// advise says what helps a generator that was the bottleneck. Only L3 sends from processes, and the
// workload streams from one.
func (t *trial) advise() {
	if t.report.Invalid != "" && t.Level == "L3" && t.Workload.Name != listening {
		t.report.Invalid += "; more --processes may help, on a machine with cores for them"
	}
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
	if t.Workload.Quote > 0 {
		perSecond *= 2 // lists are faster than single orders
	}
	if t.Rate > 0 {
		return t.requestsDue()
	}
	perSecond = perSecond * 100 / (100 - t.Workload.Read) // reads are cheap, or left out
	return min(max(int(t.Duration.Seconds()*float64(perSecond)), 1000), workload.MostOps)
}

// requestsDue is how many operations to draw for an open loop: more than can be due, whatever the
// instants are that are drawn, and whatever part of the operations is read or travels in lists.
func (t *trial) requestsDue() int {
	n := t.Rate * t.Duration.Seconds()
	n += 6*math.Sqrt(n) + 10
	if t.Workload.Quote > 0 {
		n *= workload.ListSize
	}
	if t.Level != "L3" {
		n = n * 100 / float64(100-t.Workload.Read)
	}
	return int(n)
}

// applied adds up the rounds of L0.
type applied struct {
	took, cpu time.Duration
	objects   uint64
	done      int
	tally     workload.Tally
	rec       Recorder
	digest    engine.Digest
	turn      appliedTurn
	film      workload.Film // of a replay
	began     time.Time     // of a replay
	told      struct {      // to Progress, last
		at   time.Time
		took time.Duration
		done int
	}
}

// tell calls Progress about once a second. The latencies are those since the start.
func (t *trial) tell(sum *applied) {
	if t.Progress == nil || time.Since(sum.told.at) < time.Second {
		return
	}
	l := sum.rec.Latency()
	t.Progress(lean.Progress{Done: int64(sum.done), Elapsed: sum.took,
		Rate: float64(sum.done-sum.told.done) / max(sum.took-sum.told.took, 1).Seconds(),
		P50:  time.Duration(l.P50 * 1e3), P99: time.Duration(l.P99 * 1e3),
		Left: max(t.Duration-sum.took, 0)})
	sum.told.at, sum.told.took, sum.told.done = time.Now(), sum.took, sum.done
}

// late reports whether a replay has taken three times its duration, most of it for decoding.
func (a *applied) late(d time.Duration) bool { return time.Since(a.began) > 3*d && a.done > 0 }

// appliedTurn is the turn of L0 that is under way: where it began, and what it recorded.
type appliedTurn struct {
	took, cpu time.Duration
	done      int
	rec       Recorder
}

// runApply measures Apply alone, on one goroutine, on one fresh Exchange after the other until the
// time is up. Each has its own seed and its own check.
func (t *trial) runApply(ctx context.Context) error {
	report, sum := t.report, &applied{rec: NewRecorder(), began: time.Now()}
	sum.told.at = sum.began
	sum.turn.rec = NewRecorder()
	if t.round == 0 {
		t.round = workload.MostOps
	}
	round := t.applyOne
	if t.Data != "" {
		round = t.runRecorded
	}
	for sum.took < t.Duration && report.Failure == "" && (t.Data == "" || !sum.late(t.Duration)) {
		if err := round(ctx, sum); err != nil {
			return err
		}
		report.Exchanges++
	}
	n := float64(sum.done)
	report.bound(window{sum.took, sum.took >= t.Duration})
	if t.Data != "" && sum.took < t.Duration {
		report.EndedBy = "the clock: reading the recording took more than twice the duration"
	}
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
	if t.Data != "" {
		report.Checked = "after each frame the digest is the recorded one"
	}
	return nil
}

// applyOne is one round of L0: at most t.round operations, in blocks whose Commands are made while
// the clock stands still.
func (t *trial) applyOne(ctx context.Context, sum *applied) error {
	seed := t.Seed + uint64(t.report.Exchanges)
	prefill := t.Workload.Warmup(Prefill)
	ops, exp, err := t.Workload.Draw(ctx, seed, prefill, t.round)
	if err != nil {
		return err
	}
	x := engine.NewExchange(seed)
	var tally workload.Tally
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
	apply(t.Workload.Setup())
	tally = workload.Tally{}
	apply(workload.Commands(ops, 0, prefill))
	t.report.Warmup += prefill
	runtime.GC() // what the generator left behind is not the engine's to collect
	if _, err := t.watch.Lap(); err != nil {
		return err
	}
	from := prefill
	for from < len(ops) && sum.took < t.Duration && ctx.Err() == nil {
		to := min(from+block, len(ops))
		if commands := workload.Commands(ops, from, to); len(commands) > 0 {
			sum.time(commands, apply)
			t.tell(sum)
		}
		from = to
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
		_, exp, err = t.Workload.Draw(ctx, seed, prefill, from-prefill)
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

// runRecorded is L0 of a replay: the recorded Commands with their Sequences and Times, on one fresh
// Exchange after the other until the time is up.
func (t *trial) runRecorded(ctx context.Context, sum *applied) error {
	x := engine.NewExchange(t.Seed + uint64(t.report.Exchanges))
	runtime.GC()
	if _, err := t.watch.Lap(); err != nil {
		return err
	}
	goesOn := func() bool {
		return sum.took < t.Duration && t.report.Failure == "" && !sum.late(t.Duration)
	}
	err := sum.film.Play(ctx, t.Data, goesOn, func(r *workload.Reel) {
		sum.time(r.Commands, func([]engine.Command) {
			if err := r.Apply(x, &sum.tally); err != nil {
				t.report.Failure = err.Error()
			}
		})
		t.tell(sum)
	})
	if err != nil {
		return err
	}
	h, err := t.watch.Lap()
	t.report.Conditions.Hiccup.add(h)
	sum.digest = x.Digest()
	return err
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
	// giveUp is how late a Command of an open loop is still submitted.
	giveUp time.Duration
}

// begin runs the Sequencer that was made.
func (w *writer) begin(s *sequencer.Sequencer) {
	w.s, w.ended = s, make(chan error, 1)
	go func() { w.ended <- s.Run() }()
}

// loop is one caller: it submits its own traders' Commands one after the other, each at its due
// time after the start if there are such times. One that is later than all of the run is given up.
func (w *writer) loop(commands []engine.Command, dues ...time.Duration) func(
	n *counts, until func() bool) {
	return func(n *counts, until func() bool) {
		if dues != nil {
			n.corrected, n.late = NewRecorder(), NewRecorder()
		}
		var due, free time.Time
		for ; n.next < len(commands); n.next++ {
			command := &commands[n.next]
			if dues != nil {
				due = n.crew.start.Add(dues[n.next])
				sleepUntil(due)
				if time.Since(due) > w.giveUp {
					n.corrected.Record(time.Since(due))
					n.unsent++
					continue
				}
			}
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
				free = n.note(start, due, free)
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

// split distributes Commands to n callers by owner, so that a cancel follows its order. dues are
// when they are due, nil in a closed loop.
func (w *writer) split(commands []engine.Command, n int, dues []time.Duration) *crew {
	hands, times := make([][]engine.Command, n), make([][]time.Duration, n)
	for i, command := range commands {
		k := int(command.Owner) % n
		hands[k] = append(hands[k], command)
		if dues != nil {
			times[k] = append(times[k], dues[i])
		}
	}
	c := &crew{}
	for k, commands := range hands {
		c.join(w.loop(commands, times[k]...))
	}
	return c
}

// script makes the Commands that come before the clock runs, and those after.
func (t *trial) script(ctx context.Context) (before, rest []engine.Command, err error) {
	if t.Data != "" {
		return workload.Rehearse(ctx, t.Data)
	}
	prefill := cmp.Or(t.prefill, max(t.Workload.Warmup(Prefill), t.Warmup))
	ops, _, err := t.Workload.Draw(ctx, t.Seed, prefill, t.operations())
	if err != nil {
		return nil, nil, err
	}
	before = append(t.Workload.Setup(), workload.Commands(ops, 0, prefill)...)
	for from := prefill; from < len(ops) && ctx.Err() == nil; from += block {
		rest = append(rest, workload.Commands(ops, from, min(from+block, len(ops)))...)
	}
	return before, rest, ctx.Err()
}

// runWriter sets the world up, measures Submit to acknowledgement, and stops the Sequencer. It
// stops it after a failure too.
func (t *trial) runWriter(ctx context.Context, w *writer) error {
	err := t.submitAll(ctx, w)
	return errors.Join(err, w.s.Close(), <-w.ended, ctx.Err())
}

func (t *trial) submitAll(ctx context.Context, w *writer) error {
	before, rest, err := t.script(ctx)
	if err != nil {
		return err
	}
	setup := &crew{}
	setup.join(w.loop(before))
	setup.drive(ctx, 0)
	first, _ := setup.sum()
	if first.err != nil {
		return fmt.Errorf("warm-up: %w", first.err)
	}
	t.report.Warmup, t.placed = int(first.acked), first.placed
	var dues []time.Duration
	if t.Rate > 0 {
		dues = arrivals(t.Rate, t.Poisson, t.Seed, len(rest))
		for len(rest) > 0 && dues[len(rest)-1] >= t.Duration {
			rest = rest[:len(rest)-1]
		}
		w.giveUp = t.Duration
	}
	work := w.split(rest, t.Connections, dues)
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
