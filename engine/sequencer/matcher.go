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
	calls []*Call // call i parks for Command i
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
	}
}

// Step takes the Commands that wait in the ring, as many as one frame holds, stamps them and
// applies them. It never waits: it returns nil if the ring is empty or all batches are in flight.
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
	if s.ring.peek(0) == nil {
		return nil, nil
	}
	b := s.spare
	s.spare = nil
	start := time.Now()
	s.stamp(&b.Frame)
	b.err = s.fill(b)
	b.spent.apply = time.Since(start)
	return b, b.err
}

// stamp opens the frame: its number, its first Sequence, and the one Time of all its Commands.
func (s *Sequencer) stamp(f *engine.Frame) {
	s.number++
	s.now = max(s.now, s.options.Now())
	f.No, f.First, f.Time = s.number, s.last+1, s.now
}

// fill moves Commands from the ring into the frame and applies them, until the ring is empty or
// the frame full. A frame is full when the next Command might lift it over engine.FrameBytes;
// the first one always goes in. The Events of the last Command may lift it over, because they
// are not known before and cannot be taken back after.
func (s *Sequencer) fill(b *Batch) (err error) {
	f := &b.Frame
	defer func() {
		if cause := recover(); cause != nil {
			err = s.poison(b, cause)
		}
		s.ring.release(uint64(len(f.Commands)))
	}()
	for size, n := engine.FrameOverhead, 0; n < s.options.Batch; n++ {
		e := s.ring.peek(uint64(n))
		if e == nil {
			break
		}
		size += e.command.EncodedMax()
		if n > 0 && size > engine.FrameBytes {
			break
		}
		f.Commands = append(f.Commands, e.command)
		b.calls = append(b.calls, e.call)
		s.last++
		before := len(f.Events)
		f.Events = s.exchange.Apply(&f.Commands[n], s.last, f.Time, f.Events)
		f.Ends = append(f.Ends, uint32(len(f.Events)))
		size += (len(f.Events) - before) * engine.EventMax
	}
	f.Digest = s.exchange.Digest()
	return nil
}

// poison reports the panic of the Command that was being applied and fails the Sequencer.
func (s *Sequencer) poison(b *Batch, cause any) error {
	err := &PoisonError{s.last, cause, debug.Stack()}
	if s.options.Poison != nil {
		c := &b.Frame.Commands[len(b.Frame.Commands)-1]
		s.options.Poison(c, err.Sequence, cause, err.Stack)
	}
	s.fail(err)
	return err
}
