package sequencer

import (
	"fmt"
	"runtime/debug"
	"time"

	"clobd/engine"
)

// Batch is what one Step produced, on its way to the journal and back to its callers. A few of
// them circulate and keep their slices: only Frame.Bytes outlives Commit.
type Batch struct {
	Frame engine.Frame
	calls []*Call // call i waits for Command i; nil for an Advance of the matcher
	idle  []idle  // who asked for what changes nothing: no Command of the frame
	asked uint64  // number of the question whether idle may be answered; 0: none was asked
	err   error   // why this frame must not be acknowledged
	spent stages
}

// idle is a Command that changed nothing, and so is not journaled: it has no Sequence. Its answer
// follows from all Commands before it, and leaves when they are durable.
type idle struct {
	call    *Call
	receipt engine.Receipt // with the Sequence of the last Command before it
}

// Idle is how many Commands changed nothing and are not in the frame.
func (b *Batch) Idle() int { return len(b.idle) }

// Asked is the number of the question on which Commit will wait, 0 if none was asked.
func (b *Batch) Asked() uint64 { return b.asked }

// isIdle reports whether a Command with these Events has changed nothing, and may be forgotten: a
// cancel that found no order. Whoever sends many of them shall not fill the disk.
func isIdle(c *engine.Command, events []engine.Event) bool {
	if len(events) != 1 || c.Kind != engine.Cancel && c.Kind != engine.CancelAll {
		return false
	}
	e := &events[0]
	return e.Kind == engine.Rejected || e.Kind == engine.Swept && e.Size == 0
}

// newBatch makes a batch with room for o.Batch Commands. Its Events grow to the longest sweep.
func newBatch(o Options) *Batch {
	return &Batch{
		Frame: engine.Frame{
			Epoch:    o.Epoch,
			Commands: make([]engine.Command, 0, o.Batch),
			Events:   make([]engine.Event, 0, 8*o.Batch),
			Ends:     make([]uint32, 0, o.Batch),
		},
		calls: make([]*Call, 0, o.Batch),
		idle:  make([]idle, 0, o.Batch),
	}
}

// PoisonError is the failure after a panic in Apply. The Exchange is torn, so the process must
// recover from the journal, which does not contain the Command that caused the panic.
type PoisonError struct {
	Sequence engine.Sequence
	Cause    any
	Stack    []byte
}

// Error names the Sequence and the cause.
func (e *PoisonError) Error() string {
	return fmt.Sprintf("apply sequence %d: panic: %v", e.Sequence, e.Cause)
}

// runMatcher is the matcher's loop. Waiting for a free batch is the whole of backpressure:
// meanwhile the ring fills, and then Enter returns ErrBusy.
func (s *Sequencer) runMatcher() {
	defer close(s.applied)
	for s.ring.wait() {
		if s.spare == nil {
			s.spare = <-s.free
		}
		b, err := s.Step()
		if b != nil {
			s.applied <- b
		}
		if err != nil {
			return
		}
		s.setAlarm()
	}
}

// Step moves the Commands that wait in the ring into one frame, stamps them with the frame's Time
// and a Sequence each, and applies them. If an order has expired, an Advance comes first. Step
// never waits: it returns nil if there is nothing to do or all batches are in flight. If no Command
// changed anything, the frame is empty and has no number: nothing is journaled. After a failure it
// returns that failure and leaves the ring alone. The caller passes the batch to Append
// in every case, also with a PoisonError. Matcher only.
func (s *Sequencer) Step() (*Batch, error) {
	if err := s.failure(); err != nil {
		return nil, err
	}
	if s.spare == nil {
		select {
		case s.spare = <-s.free:
		default:
			return nil, nil
		}
	}
	s.now = max(s.now, s.options.Now())
	expired := s.due(s.now)
	if !expired && s.ring.peek(0) == nil {
		return nil, nil
	}
	b := s.spare
	s.spare = nil
	start := time.Now()
	s.number++
	b.Frame.No, b.Frame.First, b.Frame.Time = s.number, s.last+1, s.now
	b.err = s.fill(b, expired)
	if len(b.Frame.Commands) == 0 {
		s.number--
	}
	b.spent.began, b.spent.apply = start, time.Since(start)
	return b, b.err
}

// fill applies Commands from the ring and adds them to the frame, until the ring is empty or the
// frame is full. A frame is full when the bound of the next Command would exceed
// engine.FrameBytes; the first Command always fits. The Events of the last Command may exceed the
// limit, because nobody knows them before Apply. An Advance has no slot and no Call. If expired
// orders remain after it, the frame ends there: an expired order never trades.
// A Raise is alone in its frame, before what has expired, so that all Commands of a frame follow
// the same rules.
func (s *Sequencer) fill(b *Batch, expired bool) (err error) {
	f, advance, used := &b.Frame, entered{command: engine.Command{Kind: engine.Advance}}, uint64(0)
	most := s.options.Batch
	if next := s.ring.peek(0); next != nil && next.command.Kind == engine.Raise {
		most, expired = 1, false
	}
	defer func() {
		if cause := recover(); cause != nil {
			err = s.poison(b, cause)
		}
		s.ring.release(used)
	}()
	for size := engine.FrameOverhead; max(len(f.Commands), len(b.idle)) < most; {
		next := &advance
		if !expired {
			if len(f.Commands) > 0 && s.due(f.Time) {
				break
			}
			if used%engine.TouchAhead == 0 {
				s.lookAhead(used)
			}
			next = s.ring.peek(used)
			if next == nil || len(b.calls)+len(b.idle) > 0 && next.command.Kind == engine.Raise ||
				len(f.Commands) > 0 && size+next.command.EncodedMax() > engine.FrameBytes {
				break
			}
			used++
		}
		expired = false
		f.Commands = append(f.Commands, next.command)
		b.calls = append(b.calls, next.call)
		s.last++
		c, before := &f.Commands[len(f.Commands)-1], len(f.Events)
		f.Events = s.exchange.Apply(c, s.last, f.Time, f.Events)
		if isIdle(c, f.Events[before:]) {
			s.forget(b, before)
			continue
		}
		f.Ends = append(f.Ends, uint32(len(f.Events)))
		size += c.EncodedMax() + (len(f.Events)-before)*engine.EventMax
	}
	f.Engine, f.Digest = s.exchange.Version(), s.exchange.Digest()
	return nil
}

// forget takes the last Command out of the frame again, with its Events from the index before on.
func (s *Sequencer) forget(b *Batch, before int) {
	f, n := &b.Frame, len(b.calls)-1
	s.exchange.Forget() // whoever gets the Exchange after this writer goes on with frames
	s.last--
	b.idle = append(b.idle, idle{b.calls[n],
		engine.ReceiptOf(&f.Commands[n], s.last, f.Time, f.Events[before:])})
	f.Commands, f.Events, b.calls = f.Commands[:n], f.Events[:before], b.calls[:n]
}

func (s *Sequencer) due(now engine.Time) bool {
	due := s.exchange.Due()
	return due != 0 && due <= now
}

// lookAhead lets the Exchange touch the memory of the Commands in the ring from the n-th on.
func (s *Sequencer) lookAhead(n uint64) {
	var commands [engine.TouchAhead]*engine.Command
	for i := range commands {
		e := s.ring.peek(n + uint64(i))
		if e == nil {
			s.exchange.Touch(commands[:i])
			return
		}
		commands[i] = &e.command
	}
	s.exchange.Touch(commands[:])
}

// poison reports the panic of the last Command in the frame and fails the Sequencer.
func (s *Sequencer) poison(b *Batch, cause any) error {
	err := &PoisonError{s.last, cause, debug.Stack()}
	if n := len(b.Frame.Commands); s.options.Poison != nil && n > 0 {
		s.options.Poison(&b.Frame.Commands[n-1], err.Sequence, cause, err.Stack)
	}
	s.fail(err)
	return err
}

// longestAlarm bounds how long an alarm is set for. An alarm that rings too early, for this reason
// or because the clock is slewed, is set again.
const longestAlarm = engine.Time(time.Hour / time.Millisecond)

// setAlarm sets the timer that wakes an idle matcher when the next order expires.
func (s *Sequencer) setAlarm() {
	due := s.exchange.Due()
	if due == s.alarmed && !s.rang.Swap(false) {
		return
	}
	if s.alarmed = due; due != 0 {
		// At least a millisecond: the Time of a frame has no finer step.
		s.alarm.Reset(time.Duration(min(max(due-s.now, 1), longestAlarm)) * time.Millisecond)
	}
}

// ringAlarm wakes the matcher although nobody entered a Command.
func (s *Sequencer) ringAlarm() {
	s.rang.Store(true)
	s.ring.nudge()
}
