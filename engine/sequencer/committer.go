package sequencer

import (
	"fmt"
	"time"

	"clobd/engine"
)

func (s *Sequencer) runCommitter() {
	for b := range s.appended {
		s.Commit(b) // its error is in s.failed: Run returns it
	}
}

// Commit waits until the batch's frame is durable, publishes the frame, and answers the callers in
// the order of their Sequences. Before that nobody has seen anything of the frame. The first
// failure of the Journal, or a panic of the Board, is final: the callers of that batch and of every
// later one get ErrUnknown. The batch is free again after Commit; do not use it. Committer only.
func (s *Sequencer) Commit(b *Batch) error {
	start := time.Now()
	if s.commitError == nil {
		s.commitError = b.err
	}
	empty := len(b.Frame.Commands) == 0
	if s.commitError == nil && !empty {
		if err := s.journal.Wait(b.Frame.No); err != nil {
			s.commitError = fmt.Errorf("wait for frame %d: %w", b.Frame.No, err)
			s.fail(s.commitError)
		}
	}
	durable := time.Now()
	b.spent.wait = durable.Sub(start)
	if s.commitError == nil && !empty {
		s.commitError = s.guard("publish", b.Frame.No, func() { s.board.Publish(&b.Frame) })
		b.spent.publish = time.Since(durable)
	}
	if s.commitError == nil {
		s.counters.count(b)
	}
	var spent Spent
	if first := b.first(); first != nil {
		spent = b.spent.of(first)
	}
	for i, call := range b.calls {
		switch {
		case call == nil: // an Advance of the matcher
		case s.commitError != nil:
			call.answer(engine.Receipt{}, ErrUnknown)
		default:
			b.acknowledge(i)
		}
	}
	// What the idle ones saw is in this frame, or in one before. With a frame behind it, it was
	// the truth; else another writer may have changed it.
	stale := s.commitError
	if stale == nil && b.asked != 0 {
		stale = s.options.Confirm(b.asked)
	}
	for _, i := range b.idle {
		if stale != nil {
			i.call.answer(engine.Receipt{}, ErrUnknown)
		} else {
			i.call.answer(i.receipt, nil)
		}
	}
	if s.commitError == nil {
		s.counters.committed(time.Since(durable))
		if s.options.Spent != nil && spent != (Spent{}) {
			s.options.Spent(&spent)
		}
	}
	b.reset()
	s.free <- b
	return s.commitError
}

// first returns the Call of the first Command that somebody waits for, or nil.
func (b *Batch) first() *Call {
	for _, call := range b.calls {
		if call != nil {
			return call
		}
	}
	return nil
}

// acknowledge answers call i with the Receipt of its Command. A Receipt has no space for the ids of
// the orders that a CancelAll or a Place canceled, so the Call carries them. For a Place the
// replaced order comes first.
func (b *Batch) acknowledge(i int) {
	f := &b.Frame
	c, call, events := &f.Commands[i], b.calls[i], f.EventsOf(i)
	call.spent = b.spent.of(call)
	// The last Event of either is the answer.
	if c.Kind == engine.CancelAll || c.Kind == engine.Place {
		for j := range len(events) - 1 {
			if events[j].Kind != engine.Cancelled {
				continue
			} else if call.canceled == nil {
				call.canceled = make([]engine.OrderID, 0, len(events)-1-j)
			}
			call.canceled = append(call.canceled, events[j].Order)
		}
	}
	call.answer(engine.ReceiptOf(c, f.First+engine.Sequence(i), f.Time, events), nil)
}

// reset empties the batch. It clears pointers: an idle batch keeps no Call or Listing alive.
func (b *Batch) reset() {
	f := &b.Frame
	clear(f.Commands)
	clear(b.calls)
	clear(b.idle)
	f.Commands, f.Events, f.Ends = f.Commands[:0], f.Events[:0], f.Ends[:0]
	f.Bytes = nil
	b.calls, b.idle, b.err, b.spent = b.calls[:0], b.idle[:0], nil, stages{}
	b.asked = 0
}
