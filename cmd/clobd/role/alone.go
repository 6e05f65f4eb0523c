package role

import (
	"context"
	"crypto/rand"
	"encoding/binary"
	"errors"
	"fmt"
	"log/slog"
	"strings"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"clobd/cmd/cli"
	"clobd/engine"
	"clobd/engine/sequencer"
	"clobd/engine/view"
	"clobd/ingress"
	"clobd/journal"
	"clobd/journal/disk"
)

// Options are what a role is told by the node that plays it. All are required.
type Options struct {
	Data  string     // the node's folder, with the journal in it
	Async bool       // acknowledge before the sync: for measuring only
	Claim disk.Claim // of the folder
	// Witnesses are those in the folder who know how far the journal went.
	Witnesses func() []journal.Witness
	// Commands and Interval say when a checkpoint is due; none is written while Hold is true.
	Commands uint64
	Interval time.Duration
	Hold     func() bool
	// Poisoned gets a Command that made Apply panic, Torn a panic behind Apply. Both end the
	// process.
	Poisoned func(c *engine.Command, seq engine.Sequence, cause any, stack []byte)
	Torn     func(what string, frame uint64, cause any, stack []byte)
	// Spent is told where each frame has spent its time.
	Spent func(*sequencer.Spent)
	// Failed gets the error that ended the writer or the follower, or nil when that ended in order.
	Failed  func(what string, err error)
	Metrics *prometheus.Registry
	Log     *slog.Logger
}

// Alone is a node without others. Call Start once, before any goroutine enters a Command.
type Alone struct {
	Journal  *journal.Journal
	Board    *view.Board
	Follower *journal.Follower // nil before Start
	// Enter and Submit hand the node's own Commands to the writer; nil before Start.
	Enter  func(*engine.Command) (*sequencer.Call, error)
	Submit func(*engine.Command) (engine.Receipt, error)

	options  Options
	began    time.Time
	restored *journal.Restored
	writer   *sequencer.Sequencer // nil before Start
}

// Recover restores Exchange and Board from the newest checkpoint and the frames after it. Unless it
// returns nil the caller closes Journal, also after an error. The error carries its hint. If ctx
// ends, the error is that of ctx, and nothing was written.
func Recover(ctx context.Context, o Options) (*Alone, error) {
	a := &Alone{options: o, began: time.Now()}
	var err error
	a.Journal, err = journal.Open(journal.Options{Dir: o.Data, Async: o.Async, Log: o.Log,
		Claim: o.Claim, Witnesses: o.Witnesses})
	if err != nil {
		return nil, Advised(err)
	}
	o.Metrics.MustRegister(a.Journal.Collectors()...)
	a.restored, err = a.Journal.Restore(ctx, func() *journal.State {
		var s *journal.State
		s, a.Board = NewState() // the last one made is the one that is used
		return s
	})
	if ctx.Err() != nil {
		return a, ctx.Err()
	} else if err != nil {
		return a, Advised(err)
	}
	a.Board.Show()
	return a, nil
}

// NewState returns an Exchange to be restored, and the Board that follows it.
func NewState() (*journal.State, *view.Board) {
	var seed [8]byte
	rand.Read(seed[:])
	board := view.NewBoard()
	return &journal.State{
		Seed: binary.LittleEndian.Uint64(seed[:]),
		Each: func(f *engine.Frame) error { board.Replay(f); return nil },
		Save: board.Save, Load: board.Load,
	}, board
}

// Fresh is NewState for a caller that does not read the Board.
func Fresh() *journal.State {
	s, _ := NewState()
	return s
}

// Start starts the writer, and the follower, which computes everything again and writes
// checkpoints.
func (a *Alone) Start() error {
	head, o := a.restored.Head, &a.options
	var err error
	a.writer, err = sequencer.New(a.restored.State.Exchange, a.Board, a.Journal, sequencer.Options{
		Head: head, Poison: o.Poisoned, Fatal: o.Torn, Spent: o.Spent})
	if err != nil {
		return err
	}
	a.Enter, a.Submit = a.writer.Enter, a.writer.Submit
	go a.write()
	o.Metrics.MustRegister(a.metrics()...)
	from := uint64(0)
	if a.restored.From != nil {
		from = uint64(a.restored.From.Head.Sequence)
	}
	o.Log.Info("recovered", "sequence", head.Sequence, "frame", head.Frame, "checkpoint", from,
		"replayed", a.restored.Commands, "digest", fmt.Sprintf("%016x", uint64(head.Digest)),
		"took", time.Since(a.began).String())
	a.restored.State = nil // the writer owns the Exchange
	a.Follower, err = a.Journal.Follow(journal.FollowerOptions{Fresh: Fresh, Commands: o.Commands,
		Interval: o.Interval, Hold: o.Hold})
	if err != nil {
		return err
	}
	o.Metrics.MustRegister(a.Follower.Collectors()...)
	go func() { o.Failed("follower", Advised(a.Follower.Run())) }()
	return nil
}

// write runs the writer. After a failure nothing is acknowledged, and the last Commands have no
// answer.
func (a *Alone) write() {
	if err := a.writer.Run(); err != nil {
		err = &cli.BrokenError{Err: cli.Hint(err, "what was acknowledged is in the "+
			"journal; look at the log for why, then start again: callers without an answer may send again")}
		a.options.Failed("sequencer", err)
	}
}

// Supply sets Enter and EnterAll of the door. Start comes before.
func (a *Alone) Supply(door *ingress.Options) {
	door.Enter, door.EnterAll = a.writer.Enter, a.writer.EnterAll
}

// Writer returns what the writer has counted, and for how long it has answered nobody although
// Commands wait. Start comes before.
func (a *Alone) Writer() (counts sequencer.Counters, stalled time.Duration) {
	return a.writer.Counters(), a.writer.Stalled()
}

// Begin journals that a new epoch began: the first Command of each start.
func (a *Alone) Begin() error {
	started := engine.Command{Kind: engine.Started, Seen: engine.Sequence(a.restored.Head.Epoch + 1),
		Expiry: engine.Time(time.Now().UnixMilli())}
	if _, err := a.Submit(&started); err != nil {
		return fmt.Errorf("journal the start: %w", err)
	}
	return nil
}

// Close drains the writer and stops the follower, which writes a last checkpoint before ctx ends.
// Journal stays open for its readers.
func (a *Alone) Close(ctx context.Context) error {
	var err error
	if a.writer != nil {
		err = a.writer.Close()
	}
	if a.Follower != nil {
		a.Follower.Close(ctx)
	}
	return err
}

func (a *Alone) metrics() []prometheus.Collector {
	const of disk.Subsystem = "sequencer"
	counter := func(name, help string, read func(sequencer.Counters) uint64) prometheus.Collector {
		return prometheus.NewCounterFunc(prometheus.CounterOpts{Namespace: "clobd",
			Subsystem: string(of), Name: name, Help: help},
			func() float64 { return float64(read(a.writer.Counters())) })
	}
	all := []prometheus.Collector{
		counter("commands_total", "Commands made durable and answered.",
			func(c sequencer.Counters) uint64 { return c.Commands }),
		counter("idle_total", "Cancels that found nothing: answered, and not journaled.",
			func(c sequencer.Counters) uint64 { return c.Idle }),
		counter("frames_total", "Frames made durable.",
			func(c sequencer.Counters) uint64 { return c.Frames }),
		counter("busy_total", "Commands refused because the ring was full.",
			func(c sequencer.Counters) uint64 { return c.Busy }),
		counter("timeouts_total", "Callers that left before their answer.",
			func(c sequencer.Counters) uint64 { return c.Timeouts }),
		of.Gauge("sequence", "Last published Sequence.",
			func() float64 { return float64(a.Board.Sequence()) }),
		of.Gauge("epoch", "Starts of a node on this journal, this one included.",
			func() float64 { return float64(a.restored.Head.Epoch + 1) }),
		of.Gauge("ring_depth", "Commands waiting in the ring.",
			func() float64 { return float64(a.writer.Counters().Depth) }),
		of.Gauge("ring_slots", "Commands that may wait in the ring. Orders may fill 7 of 8 slots.",
			func() float64 { return float64(a.writer.Counters().Slots) }),
		of.Gauge("stalled_seconds", "How long Commands have waited while none was answered, to half "+
			"a second; 0 if none waits.", func() float64 { return a.writer.Stalled().Seconds() }),
		counter("orders_total", "Orders that were accepted.",
			func(c sequencer.Counters) uint64 { return c.Orders }),
		counter("fills_total", "Matches of two orders.",
			func(c sequencer.Counters) uint64 { return c.Fills }),
		counter("cancels_total", "Orders that left a book with something unfilled.",
			func(c sequencer.Counters) uint64 { return c.Cancels }),
		counter("keys_made_total", "API keys that were made.",
			func(c sequencer.Counters) uint64 { return c.Keys }),
		counter("keys_revoked_total", "API keys that were given up.",
			func(c sequencer.Counters) uint64 { return c.Revoked }),
		of.Gauge("books", "Markets that are listed.",
			func() float64 { return float64(a.Board.Counters().Markets) }),
		of.Gauge("wallets", "Wallets and owners that have a number.",
			func() float64 { return float64(a.Board.Counters().Wallets) }),
	}
	return append(all, &rejects{a.writer})
}

// rejects collects how many Commands the engine has refused, by the code of the refusal.
type rejects struct{ writer *sequencer.Sequencer }

var rejected = prometheus.NewDesc("clobd_sequencer_rejects_total",
	"Commands that the engine has refused, by code.", []string{"code"}, nil)

// Describe describes the one metric.
func (r *rejects) Describe(to chan<- *prometheus.Desc) { to <- rejected }

// Collect adds up the rules that have the same code.
func (r *rejects) Collect(to chan<- prometheus.Metric) {
	counts, sums := r.writer.Counters().Rejects, make(map[string]uint64)
	for no, n := range counts {
		if code := engine.Rejects[no].Code; code != "" {
			sums[code] += n
		}
	}
	for code, n := range sums {
		to <- prometheus.MustNewConstMetric(rejected, prometheus.CounterValue, float64(n), code)
	}
}

// Advised turns the advice of an error of the journal or the index into a hint, and damage into a
// BrokenError. It returns any other error, or nil, as it is.
func Advised(err error) error {
	advice := journal.Advice(err)
	if advice == "" { // or no error
		return err
	}
	var locked *disk.LockedError
	text := strings.Replace(err.Error(), "; "+advice, "", 1)
	// Pebble adds this line to an error without details.
	what := errors.New(strings.ReplaceAll(text, "\n<corruption detail carrier>", ""))
	switch {
	case journal.IsDamage(err):
		return &cli.BrokenError{Err: cli.Hint(what, "%s", advice)}
	case errors.As(err, &locked):
		return cli.Hint(what, "--data names another folder; the process that has this one: %s",
			locked.Holder)
	}
	return cli.Hint(what, "%s", advice)
}
