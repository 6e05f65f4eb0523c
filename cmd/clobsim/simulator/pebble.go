package simulator

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"math/rand/v2"
	"slices"
	"strings"
	"sync/atomic"
	"syscall"
	"time"

	"clobd/engine"
	"clobd/journal"
	"clobd/journal/history"

	"github.com/cockroachdb/pebble/v2/vfs"
	"github.com/cockroachdb/pebble/v2/vfs/errorfs"
)

// dataFolder is the node's folder on the filesystem in memory.
const dataFolder = "data"

// pebbleDisk is the real journal on a filesystem in memory that can crash. Its database syncs the
// log in a goroutine of its own; the gate makes each of those syncs wait until the simulation lets
// it through, so that the same data are synced and written in every run.
type pebbleDisk struct {
	s       *simulation
	disk    *disk
	fs      *vfs.MemFS
	gate    *gate
	journal *journal.Journal

	appended uint64 // the last frame given to the journal
	waiting  bool   // a sync stands at the gate
	covers   uint64 // the frames up to this one are done when it is
	synced   uint64
	written  int  // bytes since the start
	relaxed  bool // the gate lets everything through
}

// logBytes is how much one process writes to its log. The database starts a new log after about 256
// KiB, at a moment that it draws itself. The process ends in order before that.
const logBytes = 128 << 10

// gate stops the syncs of the log. Once it is open for good, everything passes.
type gate struct {
	armed   atomic.Bool
	full    atomic.Bool // the next write is refused
	dead    atomic.Bool // so is everything, since something failed
	arrived chan bool   // false: a write that is refused
	permit  chan error
	open    chan struct{}
}

func newGate() *gate {
	return &gate{arrived: make(chan bool), permit: make(chan error), open: make(chan struct{})}
}

// pass is called before every operation on a file.
func (g *gate) pass(op errorfs.Op) error {
	if !g.armed.Load() || !strings.HasSuffix(op.Path, ".log") ||
		!strings.Contains(op.Path, "journal/") {
		return nil // the index's log is nobody's promise
	}
	answer := error(nil)
	if g.dead.Load() {
		return errSync
	}
	switch op.Kind {
	case errorfs.OpFileWrite:
		if !g.full.Load() {
			return nil
		}
		answer = syscall.ENOSPC
		g.dead.Store(true)
	case errorfs.OpFileSync, errorfs.OpFileSyncData, errorfs.OpFileSyncTo:
	default:
		return nil
	}
	select {
	case g.arrived <- answer == nil:
	case <-g.open:
		return answer
	}
	if answer != nil {
		return answer
	}
	select {
	case err := <-g.permit:
		return err
	case <-g.open:
		return nil
	}
}

// newPebble makes an empty one.
func newPebble(s *simulation) *pebbleDisk {
	p := &pebbleDisk{s: s, fs: vfs.NewCrashableMem()}
	p.disk = &disk{append: p.append, wait: p.wait, sync: p.sync, crash: p.crash,
		restore: p.restore, index: p.index,
		done: func() uint64 { return p.synced }, close: p.leave, relax: p.relax,
		tired: func() bool { return p.relaxed }}
	return p
}

// restore opens the journal, and reads every third time all of it, else what comes after the newest
// checkpoint. Every other time it writes a checkpoint. From then on the gate is closed.
func (p *pebbleDisk) restore(fresh func() *journal.State) (*journal.State, engine.Head, error) {
	p.leave()
	p.gate = newGate()
	var err error
	p.journal, err = journal.Open(journal.Options{Dir: dataFolder,
		FS:    errorfs.Wrap(p.fs, errorfs.InjectorFunc(p.gate.pass)),
		Async: p.s.options.Sabotage == EarlyAck,
		Log:   slog.New(slog.NewTextHandler(io.Discard, nil)),
		Words: io.Discard,
		Exit:  func(int) {}})
	if err != nil {
		return nil, engine.Head{}, err
	}
	starts := p.s.result.Starts
	state, head, err := p.read(fresh, starts%3 == 0)
	if err == nil && starts%2 == 0 && head.Frame > 0 {
		_, err = p.journal.Checkpoint(context.Background(), state, head)
	}
	p.appended, p.synced, p.covers, p.waiting = head.Frame, head.Frame, head.Frame, false
	p.written, p.relaxed = 0, false
	p.gate.armed.Store(true)
	return state, head, err
}

// read replays the journal, the whole of it or after the newest checkpoint.
func (p *pebbleDisk) read(fresh func() *journal.State, whole bool) (
	*journal.State, engine.Head, error) {
	if !whole {
		r, err := p.journal.Restore(context.Background(), fresh)
		return r.State, r.Head, err
	}
	state := fresh()
	state.Exchange = engine.NewExchange(state.Seed)
	head, err := p.journal.Recover(state.Exchange, state.Each)
	return state, head, err
}

// index builds the index of the journal and looks up every order that ever counted. Its state must
// be the one that the witness has.
func (p *pebbleDisk) index() {
	x, err := history.Open(p.journal,
		history.Options{Log: slog.New(slog.NewTextHandler(io.Discard, nil))})
	if err != nil {
		p.s.fail("index: %v", err)
	}
	ended := make(chan error, 1)
	go func() { ended <- x.Run() }()
	w, h := p.s.witness, x.History
	p.s.check(h.Await(w.last, time.Minute), "the index stays at Sequence %d of %d: %v", h.Sequence(),
		w.last, h.Failed())
	for id, seq := range w.bound {
		row, known, err := h.Order(id)
		p.s.check(known && err == nil && row.Sequence == seq,
			"the index says of order %x of Sequence %d: %+v, %v", id[:4], seq, row, err)
		o := w.orders[id]
		p.s.check((o != nil) == (row.Status == engine.Live),
			"order %x: the index says %+v, resting is %+v", id[:4], row, o)
		if o != nil && row.Size-row.Matched != o.remaining {
			p.s.fail("order %x: the index says %+v, %d rest", id[:4], row, o.remaining)
		}
	}
	if err := errors.Join(x.Close(), <-ended); err != nil {
		p.s.fail("index: %v", err)
	}
}

// append gives the frame to the journal and waits until the log is idle again.
func (p *pebbleDisk) append(f *engine.Frame) error {
	if p.written += len(f.Bytes); p.written > logBytes {
		p.relax()
	}
	p.gate.full.Store(p.disk.full)
	if err := p.journal.Append(f); err != nil {
		p.disk.failed = true
		return err
	}
	p.appended = f.No
	p.settle()
	return nil
}

// relax lets everything through from now on, for an orderly end.
func (p *pebbleDisk) relax() {
	if p.relaxed || p.disk.failed {
		return
	}
	p.relaxed, p.disk.full, p.disk.failSync = true, false, false
	p.gate.full.Store(false)
	p.gate.armed.Store(false)
	if p.waiting {
		p.waiting = false
		p.gate.permit <- nil
	}
}

// settle waits until the goroutine of the log is at the gate, if it has something to sync.
func (p *pebbleDisk) settle() {
	if p.waiting || p.relaxed || p.disk.failed || p.covers == p.appended ||
		p.s.options.Sabotage == EarlyAck {
		return
	}
	if p.waiting = <-p.gate.arrived; !p.waiting {
		p.disk.failed = true
		return
	}
	p.covers = p.appended
}

// sync lets the sync at the gate through, or makes it fail.
func (p *pebbleDisk) sync() {
	if !p.waiting {
		return
	}
	p.waiting = false
	if p.disk.failSync {
		p.disk.failed = true
		p.gate.dead.Store(true)
		p.gate.permit <- errSync
		return
	}
	p.gate.permit <- nil
	p.synced = p.covers
	p.settle()
}

// wait lets as many syncs through as the frame needs, and then waits for the journal.
func (p *pebbleDisk) wait(frame uint64) error {
	if p.s.options.Sabotage == EarlyAck {
		p.disk.claimed = max(p.disk.claimed, frame)
	}
	for p.synced < frame && p.waiting {
		p.sync()
	}
	err := p.journal.Wait(frame)
	if err == nil && p.relaxed {
		p.synced = frame
	}
	return err
}

// leave abandons the journal. Its goroutines can only change the old filesystem.
func (p *pebbleDisk) leave() {
	if p.journal == nil {
		return
	}
	close(p.gate.open)
	gone := make(chan struct{})
	go func() {
		defer close(gone)
		defer func() { _ = recover() }() // a database whose log failed may panic on its way out
		p.journal.Close()
	}()
	select {
	case <-gone:
	case <-time.After(time.Minute): // what a failed log still holds is left alone
	}
	p.journal = nil
}

// crash takes what a power cut leaves. An orderly end closes the journal first.
func (p *pebbleDisk) crash(e ending) {
	if e.orderly {
		p.leave()
	}
	seed := e.dice.Uint64()
	whatever := rand.New(rand.NewPCG(seed, 4)) // all is all: how often it is asked, nobody knows
	sure := p.fs.CrashClone(vfs.CrashCloneCfg{})
	all := p.fs.CrashClone(vfs.CrashCloneCfg{UnsyncedDataPercent: 100, RNG: whatever})
	p.leave()
	m := &mixer{sure: sure, all: all, to: vfs.NewCrashableMem(), keep: e.keep, torn: e.torn,
		dice: func(name string) *rand.Rand { return rand.New(rand.NewPCG(seed, hashed(name))) }}
	if e.orderly {
		m.keep, m.torn = 100, false
	}
	if err := m.folder(""); err != nil {
		p.s.fail("crash: %v", err)
	}
	if p.fs = m.to; e.flip {
		p.flip(e.dice)
	}
}

// flip inverts one bit of one file of any kind.
func (p *pebbleDisk) flip(dice *rand.Rand) {
	var names []string
	if err := p.files(dataFolder, &names); err != nil {
		p.s.fail("flip: %v", err)
	}
	name := names[dice.IntN(len(names))]
	b, err := load(p.fs, name)
	if err != nil || len(b) == 0 {
		return
	}
	whole := p.fs.CrashClone(vfs.CrashCloneCfg{})
	b[dice.IntN(len(b))] ^= 1 << dice.IntN(8)
	if err := store(p.fs, name, b); err != nil {
		p.s.fail("flip: %v", err)
	}
	p.disk.mend = func() {
		p.leave()
		p.fs = whole
	}
}

// files lists all files below a folder.
func (p *pebbleDisk) files(folder string, names *[]string) error {
	entries, err := p.fs.List(folder)
	if err != nil {
		return describe("list", folder, err)
	}
	slices.Sort(entries)
	for _, entry := range entries {
		full := p.fs.PathJoin(folder, entry)
		info, err := p.fs.Stat(full)
		switch {
		case err != nil:
			return describe("look at", full, err)
		case info.IsDir():
			if err := p.files(full, names); err != nil {
				return err
			}
		default:
			*names = append(*names, full)
		}
	}
	return nil
}

// describe names what went wrong with a file.
func describe(what, name string, err error) error {
	return fmt.Errorf("%s %s: %w", what, name, err)
}
