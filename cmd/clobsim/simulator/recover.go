package simulator

import (
	"bytes"
	"math/rand/v2"
	"time"

	"clobd/engine"
	"clobd/engine/sequencer"
	"clobd/engine/view"
	"clobd/journal"
)

// disk is where frames go: the Journal of the Sequencer, and what the simulation does to it. Its
// functions are those of the memory disk or of the Pebble disk.
type disk struct {
	append func(f *engine.Frame) error
	wait   func(frame uint64) error
	sync   func()         // one sync, without anybody waiting for it
	index  func()         // compares the index, if there is one
	done   func() uint64  // the last frame that is synced
	crash  func(e ending) // the process ends: what stays is drawn
	mend   func()         // takes a flipped bit back
	// restore replays what is on the disk into a State, from a checkpoint on if it has a good one.
	restore func(fresh func() *journal.State) (*journal.State, engine.Head, error)
	relax   func()      // nothing goes wrong any more until the process ends
	tired   func() bool // the process has to come to an orderly end
	close   func()

	// What goes wrong next, and what did.
	failSync, full bool
	failed         bool     // the process has to end
	claimed        uint64   // what EarlyAck says to be durable
	limbo          [][]byte // frames that were written, and whose Commit failed
}

// ending is how a process ends.
type ending struct {
	orderly bool
	keep    int  // percent of what was not synced that stays
	torn    bool // the log is cut somewhere behind its last sync
	flip    bool // one bit is another one afterwards, of an orderly end
	dice    *rand.Rand
}

// newDisk makes the disk of the plan.
func newDisk(s *simulation) *disk {
	if s.plan.disk == PebbleDisk {
		return newPebble(s).disk
	}
	return newMemory(s)
}

// Append takes a frame: it is sequencer.Journal's.
func (d *disk) Append(f *engine.Frame) error { return d.append(f) }

// Wait is sequencer.Journal's.
func (d *disk) Wait(frame uint64) error { return d.wait(frame) }

// durable is the last frame that a crash leaves for sure.
func (d *disk) durable() uint64 { return max(d.done(), d.claimed) }

// fault makes a fault happen, or begin.
func (s *simulation) fault() {
	switch f := Faults(1 << s.dice.IntN(len(faultNames))); {
	case !s.may(f):
	case f == Crash:
		s.die(s.crash())
	case f == Torn:
		e := s.crash()
		e.torn = true
		s.die(e)
	case f == Flip:
		s.rest(true)
	case f == Sync && !s.dying:
		s.disk.failSync = true
		s.say("the next sync fails")
	case f == Full && !s.dying:
		s.disk.full = true
		s.say("the disk is full")
	case f == Duplicate:
		s.traders.repeat = 3
	case f == Burst && !s.dying:
		s.say("burst")
		for range s.plan.ring + s.dice.IntN(s.plan.ring) {
			c := s.traders.command(s)
			s.submit(&c)
		}
	case f == Clock:
		jump := []engine.Time{-3_600_000, -1000, -1, 1, 1000, 3_600_000, 90_000_000}
		s.now += jump[s.dice.IntN(len(jump))]
		s.say("the clock says %d", s.now)
	}
}

// crash draws an ending without warning.
func (s *simulation) crash() ending {
	return ending{keep: 50 * s.dice.IntN(3), dice: rand.New(rand.NewPCG(s.dice.Uint64(), 3))}
}

// die ends the simulated process and starts the next one.
func (s *simulation) die(e ending) {
	s.say("end: orderly %v, keep %d %%, torn %v, flip %v; %d in the ring, %d stepped, %d appended",
		e.orderly, e.keep, e.torn, e.flip, len(s.entered), len(s.stepped), len(s.appended))
	for _, b := range s.appended {
		if b.bytes != nil {
			s.disk.limbo = append(s.disk.limbo, b.bytes)
		}
	}
	for _, b := range append(s.appended, s.stepped...) {
		for i := range b.sent {
			s.unanswered(&b.sent[i].command)
		}
		for i := range b.idle {
			s.unanswered(&b.idle[i].command)
		}
	}
	for i := range s.entered {
		s.unanswered(&s.entered[i].command)
	}
	s.entered, s.stepped, s.appended, s.late, s.pictures = nil, nil, nil, nil, nil
	s.dying = false
	if e.flip {
		s.result.Flips++
	}
	s.disk.crash(e)
	s.disk.failSync, s.disk.full, s.disk.failed = false, false, false
	s.start()
}

// start recovers what is on the disk, compares it with what must be there, and begins to serve.
func (s *simulation) start() {
	s.result.Starts++
	if s.disk.mend != nil {
		s.damaged()
	}
	head, err := s.recover()
	if err != nil {
		s.fail("start: %v", err)
	}
	s.disk.limbo, s.disk.claimed = nil, 0
	s.check(head == s.head, "recovered %+v, want %+v", head, s.head)
	s.check(head.Frame == 0 || s.exchange.Digest() == head.Digest, "digest %016x after replay, journaled %016x",
		uint64(s.exchange.Digest()), uint64(head.Digest))
	s.all()
	s.writer, err = sequencer.New(s.exchange, s.board, s.disk, sequencer.Options{
		Head: head, Ring: s.plan.ring, Frames: s.plan.frames, Batch: s.plan.batch,
		Timeout: time.Second, Now: func() engine.Time { return s.now }})
	if err != nil {
		s.fail("start: %v", err)
	}
	s.traders.restart(s)
	s.submit(&engine.Command{Kind: engine.Started, Seen: engine.Sequence(head.Epoch + 1)})
	s.say("start %d at Sequence %d, frame %d, digest %016x", s.result.Starts, head.Sequence,
		head.Frame, uint64(head.Digest))
}

// damaged starts on a disk with a flipped bit, and then repairs it. The start must fail, or find
// all data. On a Pebble disk the database's own random bytes decide which of the two, so the trace
// does not say.
func (s *simulation) damaged() {
	head, err := s.recover()
	if err != nil {
		s.result.Refused++
	} else {
		s.check(head == s.head && s.exchange.Digest() == head.Digest,
			"SILENT: with a flipped bit it starts with %+v, want %+v", head, s.head)
		s.all()
	}
	s.disk.mend()
	s.disk.mend = nil
}

// recover replays the disk into a new Exchange and a new Board. All committed frames must be there.
// After them only the frames that were in flight may follow, in order.
func (s *simulation) recover() (engine.Head, error) {
	must := uint64(len(s.frames))
	var extra []*engine.Frame
	state, head, err := s.disk.restore(func() *journal.State {
		board := view.NewBoard()
		s.board, extra = board, nil // the last State made is the one that is used
		return &journal.State{
			Seed: s.options.Seed + uint64(s.result.Starts), Save: board.Save, Load: board.Load,
			Each: func(f *engine.Frame) error {
				s.expected(f, must)
				board.Publish(f)
				if f.No > must {
					extra = append(extra, s.read(bytes.Clone(f.Bytes)))
				}
				return nil
			},
		}
	})
	if err != nil {
		return head, err
	}
	s.exchange = state.Exchange
	s.check(head.Frame >= must, "LOST: %d frames are there, %d were acknowledged, up to Sequence %d",
		head.Frame, must, s.head.Sequence)
	for _, f := range extra {
		s.note(f)
		for i := range f.Commands {
			s.result.Returned++
			c := &f.Commands[i]
			r := engine.ReceiptOf(c, f.First+engine.Sequence(i), f.Time, f.EventsOf(i))
			s.traders.hear(c, &r)
		}
		s.say("frame %d is there, though nobody was told", f.No)
	}
	return head, nil
}

// expected compares a frame that was found with the one that was written. For each acknowledged
// Command the frame must have the result that was acknowledged.
func (s *simulation) expected(f *engine.Frame, must uint64) {
	if f.No > must {
		i := f.No - must - 1
		s.check(i < uint64(len(s.disk.limbo)), "frame %d is there and was never written", f.No)
		s.check(bytes.Equal(f.Bytes, s.disk.limbo[i]), "frame %d is not the one in flight", f.No)
		return
	}
	s.check(bytes.Equal(f.Bytes, s.frames[f.No-1]), "frame %d is another one", f.No)
	for i := range f.Commands {
		seq := f.First + engine.Sequence(i)
		want, told := s.witness.receipts[seq]
		if !told {
			continue
		}
		got := engine.ReceiptOf(&f.Commands[i], seq, f.Time, f.EventsOf(i))
		s.check(got == want, "Sequence %d was told %+v, and says %+v now", seq, want, got)
	}
}
