package main

import (
	"context"
	"encoding/binary"
	"encoding/json"
	"fmt"
	"log/slog"
	"math/rand/v2"
	"os"
	"strings"
	"testing"
	"time"

	"clobd/cmd/clobd/role"
	"clobd/engine"
	"clobd/ingress/auth"
	"clobd/journal"
	"clobd/journal/history"
	"clobd/scripts/setting"
)

// filler makes a journal of orders that rest and then of more Commands, as quick as it can.
type filler struct {
	state *journal.State
	j     *journal.Journal
	head  engine.Head
	rand  *rand.Rand
	live  []engine.OrderID
	owner []engine.WalletNo
	queue []engine.Command
}

const (
	fillerMarkets = 200
	fillerWallets = 2000
	fillerTime    = engine.Time(1_700_000_000_000)
)

// newFiller makes the journal in a new data folder, with markets and wallets.
func newFiller(t *testing.T, data string) *filler {
	t.Helper()
	return newFillerOf(t, journal.Options{Dir: data, Async: true})
}

// newFillerOf is newFiller of a journal with such options.
func newFillerOf(t *testing.T, o journal.Options) *filler {
	t.Helper()
	o.Log = slog.New(slog.DiscardHandler)
	j, err := journal.Open(o)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := j.Recover(nil, nil); err != nil {
		t.Fatal(err)
	}
	s, _ := role.NewState()
	s.Exchange = engine.NewExchange(1)
	f := &filler{state: s, j: j, rand: rand.New(rand.NewPCG(1, 2))}
	for i := range fillerMarkets {
		l := &engine.Listing{Tick: 10, MinSize: engine.Unit, Open: true}
		binary.BigEndian.PutUint64(l.Condition[:], uint64(i+1))
		binary.BigEndian.PutUint64(l.Tokens[0][:], uint64(2*i+1))
		binary.BigEndian.PutUint64(l.Tokens[1][:], uint64(2*i+2))
		f.add(t, engine.Command{Kind: engine.List, Listing: l})
	}
	for w := range fillerWallets {
		c := engine.Command{Kind: engine.Deposit, Cash: engine.MaxAmount / 2}
		binary.BigEndian.PutUint64(c.Address[:], uint64(w+1))
		f.add(t, c)
	}
	return f
}

// add puts a Command into the next frame, and frames that are full into the journal.
func (f *filler) add(t *testing.T, c engine.Command) {
	if f.queue = append(f.queue, c); len(f.queue) == engine.FrameCommands {
		f.flush(t)
	}
}

// flush makes a frame of what waits.
func (f *filler) flush(t *testing.T) {
	t.Helper()
	if len(f.queue) == 0 {
		return
	}
	frame := &engine.Frame{Engine: engine.Version, Epoch: 1, No: f.head.Frame + 1,
		First: f.head.Sequence + 1, Time: fillerTime, Commands: f.queue}
	for i := range f.queue {
		frame.Events = f.state.Exchange.Apply(&f.queue[i], frame.First+engine.Sequence(i), frame.Time,
			frame.Events)
		frame.Ends = append(frame.Ends, uint32(len(frame.Events)))
	}
	frame.Digest = f.state.Exchange.Digest()
	frame.Encode(f.head.Hash)
	for _, err := range []error{f.j.Append(frame), f.j.Wait(frame.No), f.state.Each(frame)} {
		if err != nil {
			t.Fatal(err)
		}
	}
	f.head, f.queue = frame.Head(), f.queue[:0]
}

// close makes the index, too, which a node would have made by and by.
func (f *filler) close(t *testing.T) {
	t.Helper()
	index, err := history.Open(f.j, history.Options{Log: slog.New(slog.DiscardHandler),
		Builder: func(proof []byte) history.BuilderCode { return auth.BuilderOf(proof) }})
	if err != nil {
		t.Fatal(err)
	}
	done := make(chan error, 1)
	go func() { done <- index.Run() }()
	start := time.Now()
	for !index.History.Await(f.head.Sequence, time.Second) {
		if err := index.History.Failed(); err != nil {
			t.Fatal(err)
		}
	}
	t.Logf("the index took %v", time.Since(start).Round(time.Millisecond))
	for _, err := range []error{index.Close(), <-done, f.j.Close()} {
		if err != nil {
			t.Fatal(err)
		}
	}
}

// place adds an order; one in ten trades.
func (f *filler) place(t *testing.T) {
	n := f.rand.Uint64()
	w := engine.WalletNo(n%fillerWallets + 1)
	c := engine.Command{Kind: engine.Place, Wallet: w, Owner: w, Outcome: engine.Outcome(n >> 16 & 1),
		Market: engine.MarketNo((uint64(w)*7+n>>32%16*13)%fillerMarkets + 1),
		Size:   engine.Size(5+n>>20%100) * engine.Unit, Seen: f.head.Sequence,
		Proof: make([]byte, 150)}
	price := engine.Price(10 * (300 + n>>40%195))
	if n>>50%10 == 0 {
		price = 10 * 510
	}
	c.Cash = engine.Cost(c.Size, price)
	for i := range 4 {
		binary.LittleEndian.PutUint64(c.ID[8*i:], f.rand.Uint64())
	}
	for i := 0; i < len(c.Proof)-8; i += 8 {
		binary.LittleEndian.PutUint64(c.Proof[i:], f.rand.Uint64())
	}
	f.live, f.owner = append(f.live, c.ID), append(f.owner, w)
	f.add(t, c)
}

// cancel adds a cancel of an order, which may be gone.
func (f *filler) cancel(t *testing.T) {
	i, last := f.rand.IntN(len(f.live)), len(f.live)-1
	f.add(t, engine.Command{Kind: engine.Cancel, ID: f.live[i], Owner: f.owner[i]})
	f.live[i], f.owner[i] = f.live[last], f.owner[last]
	f.live, f.owner = f.live[:last], f.owner[:last]
}

// TestRestartTime: a node with many resting orders that crashed long after its last checkpoint
// replays what came after that and no more, and nothing after a stop. It says how long that takes.
// CLOBD_RESTING and CLOBD_TAIL say how many orders, and how many Commands after the checkpoint;
// CLOBD_REPLAY also measures a start without any checkpoint.
func TestRestartTime(t *testing.T) {
	setting.Full(t, "it measures many starts")
	resting, tail := setting.Number(t, "CLOBD_RESTING", 20_000), setting.Number(t, "CLOBD_TAIL", 40_000)
	p := newProcess(t, buildNode(t), t.TempDir(), "--limits", "off")
	f := newFiller(t, p.data)
	for range resting {
		f.place(t)
	}
	f.flush(t)
	saved, err := f.j.Checkpoint(context.Background(), f.state, f.head)
	if err != nil {
		t.Fatal(err)
	}
	for i := range tail {
		if i%2 == 0 {
			f.place(t)
		} else {
			f.cancel(t)
		}
	}
	f.flush(t)
	f.close(t)
	p.start(t)
	p.leave(t)
	t.Logf("stop: %s", logged(p, "checkpoint"))
	timed := func(what string, from engine.Sequence) {
		start := time.Now()
		p.start(t)
		took, line := time.Since(start), logged(p, "recovered")
		t.Logf("%s: ready after %v; %s", what, took.Round(time.Millisecond), line)
		var told struct{ Sequence, Checkpoint, Replayed engine.Sequence }
		if err := json.Unmarshal([]byte(line), &told); err != nil || told.Checkpoint < from ||
			told.Replayed != told.Sequence-told.Checkpoint {
			t.Errorf("%s: it goes on from Sequence %d at least: %s, %v", what, from, line, err)
		}
	}
	timed("after a stop", f.head.Sequence+1) // what the start wrote
	p.kill(t)
	for _, name := range checkpoints(t, p.data) {
		if name != saved.Path {
			if err := os.Remove(name); err != nil {
				t.Fatal(err)
			}
		}
	}
	timed("after a crash", saved.Head.Sequence)
	gathered(t, p)
	p.kill(t)
	if os.Getenv("CLOBD_REPLAY") == "" {
		return
	}
	if err := os.RemoveAll(p.data + "/checkpoints"); err != nil {
		t.Fatal(err)
	}
	timed("without a checkpoint", 0)
	p.kill(t)
}

// gathered wants the memory of a node that has just started in huge pages, as its metrics say, or a
// word in its log on why not. How much the kernel gave it is not known: where it keeps such pages
// at all, TestGather of engine/pages says what must be in them.
func gathered(t *testing.T, p *process) {
	t.Helper()
	var told struct{ HugeBytes int64 }
	if logged(p, "no huge pages") == "" {
		if err := json.Unmarshal([]byte(logged(p, "memory gathered")), &told); err != nil {
			t.Errorf("%v:\n%s", err, p.log.String())
		}
	}
	_, metrics := get(t, p.admin, "/metrics")
	_, after, _ := strings.Cut(metrics, "\nclobd_memory_huge_page_bytes ")
	var bytes float64
	if _, err := fmt.Sscan(after, &bytes); err != nil {
		t.Errorf("no metric of huge pages: %v", err)
	}
	t.Logf("%v bytes in huge pages, %d at the start", bytes, told.HugeBytes)
}

// TestKeepsGathering: a node looks again and again, until it is told to stop.
func TestKeepsGathering(t *testing.T) {
	t.Parallel()
	n := &node{}
	for range 2 {
		n.huge.Store(-1) // none is 0
		stop := n.keepGathering(t.Context(), time.Millisecond)
		waitFor(t, "a look", func() bool { return n.huge.Load() >= 0 })
		stop()
	}
}

// logged is what the log says of something: its last line with that message.
func logged(p *process, message string) (line string) {
	for _, l := range strings.Split(p.log.String(), "\n") {
		var told struct{ Msg string }
		if json.Unmarshal([]byte(l), &told) == nil && told.Msg == message {
			line = l
		}
	}
	return line
}
