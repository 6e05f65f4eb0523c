package sequencer

import (
	"fmt"
	"runtime/debug"
	"time"

	"clobd/engine"
)

// Batch is what one Step produced, on its way to the journal and back to its callers. A few of
// them circulate, with slices that are used again: what outlives Commit is Frame.Bytes alone.
type Batch struct {
	Frame engine.Frame
	calls []*Call // call i parks for Command i; nil for one that nobody asked for
	err   error   // why this frame must not be acknowledged
	spent stages
}

// newBatch makes an empty batch with room for o.Batch Commands. Events grow to what a sweep needs
// and stay there.
func newBatch(o Options) *Batch {
	return &Batch{
		Frame: engine.Frame{
			Engine:   engine.Version,
			Epoch:    o.Head.Epoch + 1,
			Commands: make([]engine.Command, 0, o.Batch),
			Events:   make([]engine.Event, 0, 8*o.Batch),
			Ends:     make([]uint32, 0, o.Batch),
		},
		calls: make([]*Call, 0, o.Batch),
	}
}

// PoisonError is the failure that a panic in Apply becomes. The Exchange is torn: the only way on
// is to recover the journal without this Command, which is not in it.
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
// meanwhile the ring fills, and then Submit says ErrBusy.
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

// farOff bounds how long an alarm is set for: one that rings before its time, for this reason or
// because the clock is slewed, is set again.
const farOff = engine.Time(time.Hour / time.Millisecond)

// setAlarm sees to it that the matcher is woken when the next order expires, if it is idle then.
func (s *Sequencer) setAlarm() {
	due := s.exchange.Due()
	if due == s.alarmed && !s.rang.Swap(false) {
		return
	}
	if s.alarmed = due; due != 0 {
		// At least a millisecond: the Time of a frame has no finer step.
		s.alarm.Reset(time.Duration(min(max(due-s.now, 1), farOff)) * time.Millisecond)
	}
}

// Step takes the Commands that wait in the ring, as many as one frame holds, stamps them and
// applies them. If an order has expired, an Advance comes before them. It never waits: it returns
// nil if there is nothing to do or all batches are in flight.
// After a failure it takes nothing and returns that failure. The batch, which a PoisonError
// returns too, goes to Append next. Matcher only.
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
	s.stamp(&b.Frame)
	b.err = s.fill(b, expired)
	b.spent.apply = time.Since(start)
	return b, b.err
}

// stamp opens the frame: its number, its first Sequence, and the one Time of all its Commands.
func (s *Sequencer) stamp(f *engine.Frame) {
	s.number++
	f.No, f.First, f.Time = s.number, s.last+1, s.now
}

// ringAlarm is what the alarm does: there may be something to do although nobody asked.
func (s *Sequencer) ringAlarm() {
	s.rang.Store(true)
	s.ring.nudge()
}

// fill moves Commands from the ring into the frame and applies them, until the ring is empty or
// the frame full. A frame is full when the next Command might lift it over engine.FrameBytes;
// the first one always goes in. The Events of the last Command may lift it over, because they
// are not known before and cannot be taken back after. An Advance is nobody's: no slot, no call. If
// it left something that has expired, nothing comes behind it: no such order trades.
func (s *Sequencer) fill(b *Batch, expired bool) (err error) {
	f, taken := &b.Frame, uint64(0)
	defer func() {
		if cause := recover(); cause != nil {
			err = s.poison(b, cause)
		}
		s.ring.release(taken)
	}()
	size := engine.FrameOverhead
	if expired {
		size += s.apply(b, &engine.Command{Kind: engine.Advance}, nil)
	}
	for len(f.Commands) < s.options.Batch && !s.due(f.Time) {
		if taken%engine.TouchAhead == 0 {
			s.touch(taken)
		}
		e := s.ring.peek(taken)
		if e == nil {
			break
		}
		if len(f.Commands) > 0 && size+e.command.EncodedMax() > engine.FrameBytes {
			break
		}
		taken++
		size += s.apply(b, &e.command, e.call)
	}
	f.Digest = s.exchange.Digest()
	return nil
}

// due says whether an order has expired at now.
func (s *Sequencer) due(now engine.Time) bool {
	due := s.exchange.Due()
	return due != 0 && due <= now
}

// touch has the Exchange read ahead for the Commands that wait in the ring, from the n-th on.
func (s *Sequencer) touch(n uint64) {
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

// apply adds a Command to the frame and applies it. It returns what the two and its Events take of
// the frame at most, in bytes.
func (s *Sequencer) apply(b *Batch, c *engine.Command, call *Call) int {
	f := &b.Frame
	f.Commands = append(f.Commands, *c)
	b.calls = append(b.calls, call)
	s.last++
	c, before := &f.Commands[len(f.Commands)-1], len(f.Events)
	f.Events = s.exchange.Apply(c, s.last, f.Time, f.Events)
	f.Ends = append(f.Ends, uint32(len(f.Events)))
	return c.EncodedMax() + (len(f.Events)-before)*engine.EventMax
}

// poison reports the panic of the Command that was being applied and fails the Sequencer.
func (s *Sequencer) poison(b *Batch, cause any) error {
	err := &PoisonError{s.last, cause, debug.Stack()}
	if n := len(b.Frame.Commands); s.options.Poison != nil && n > 0 {
		s.options.Poison(&b.Frame.Commands[n-1], err.Sequence, cause, err.Stack)
	}
	s.fail(err)
	return err
}
