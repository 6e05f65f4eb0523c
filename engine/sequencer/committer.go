package sequencer

import (
	"fmt"
	"time"

	"clobd/engine"
)

// runCommitter is the committer's loop.
func (s *Sequencer) runCommitter() {
	for b := range s.appended {
		s.Commit(b) // its error is in s.failed: Run returns it
	}
}

// Commit waits until the batch's frame is durable, publishes it, and acknowledges its callers in
// the order of their Sequences. Before that nobody has seen anything of the frame. The first
// failure, of the Journal or a panic of the Board, is final: it and every later batch answer
// ErrUnknown. The batch is free again afterwards and must not be used. Committer only.
func (s *Sequencer) Commit(b *Batch) error {
	start := time.Now()
	if s.commitError == nil {
		s.commitError = b.err
	}
	if s.commitError == nil {
		if err := s.journal.Wait(b.Frame.No); err != nil {
			s.commitError = fmt.Errorf("wait for frame %d: %w", b.Frame.No, err)
			s.fail(s.commitError)
		}
	}
	durable := time.Now()
	b.spent.wait = durable.Sub(start)
	if s.commitError == nil {
		s.commitError = s.guard("publish", b.Frame.No, func() { s.board.Publish(&b.Frame) })
	}
	if s.commitError == nil {
		s.counters.count(b)
		s.acknowledge(b)
		s.counters.commitNanos.Add(int64(time.Since(durable)))
	} else {
		for _, call := range b.calls {
			if call != nil {
				call.answer(engine.Receipt{}, ErrUnknown)
			}
		}
	}
	b.reset()
	s.free <- b
	return s.commitError
}

// acknowledge hands each caller the Receipt of its Command.
func (s *Sequencer) acknowledge(b *Batch) {
	f := &b.Frame
	for i, call := range b.calls {
		if call == nil {
			continue
		}
		c, events := &f.Commands[i], f.EventsOf(i)
		if c.Kind == engine.CancelAll {
			call.canceled = canceled(events)
		}
		seq := f.First + engine.Sequence(i)
		call.answer(engine.ReceiptOf(c, seq, f.Time, events), nil)
	}
}

// canceled are the ids of the orders that a CancelAll took out of the books: a Receipt has no room
// for them.
func canceled(events []engine.Event) []engine.OrderID {
	if len(events) < 2 { // the last word only
		return nil
	}
	ids := make([]engine.OrderID, 0, len(events)-1)
	for i := range events {
		if events[i].Kind == engine.Cancelled {
			ids = append(ids, events[i].Order)
		}
	}
	return ids
}

// reset empties the batch for its next round. Pointers are cleared, so that an idle batch keeps
// neither Calls nor Listings alive.
func (b *Batch) reset() {
	f := &b.Frame
	clear(f.Commands)
	clear(b.calls)
	f.Commands, f.Events, f.Ends = f.Commands[:0], f.Events[:0], f.Ends[:0]
	f.Bytes = nil
	b.calls, b.err, b.spent = b.calls[:0], nil, stages{}
}
