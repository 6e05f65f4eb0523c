package sequencer

import (
	"fmt"
	"time"
)

func (s *Sequencer) runAppender() {
	defer close(s.appended)
	for b := range s.applied {
		s.Append(b) // its error is in the batch and in s.failed: the committer refuses the calls
		s.appended <- b
	}
}

// Append encodes the batch's frame once, chains it to the frame before and hands it to the Journal.
// The first failure is final: an error, a panic, or a batch that Step failed. From then on Append
// only marks batches. An empty frame is not journaled; Append begins to ask whether its idle
// Commands may be answered, if Options.Ask is set. The caller passes the batch to Commit in either
// case. Appender only.
func (s *Sequencer) Append(b *Batch) error {
	if s.appendError == nil {
		s.appendError = b.err
	}
	if b.err = s.appendError; len(b.Frame.Commands) == 0 {
		if s.options.Ask != nil && b.err == nil && len(b.idle) > 0 {
			b.asked = s.options.Ask()
		}
		return b.err
	}
	if s.appendError == nil {
		start := time.Now()
		s.appendError = s.guard("encode", b.Frame.No, func() { b.Frame.Encode(s.previous) })
		b.spent.encode = time.Since(start)
	}
	if s.appendError == nil {
		start := time.Now()
		if err := s.journal.Append(&b.Frame); err != nil {
			s.appendError = fmt.Errorf("append frame %d: %w", b.Frame.No, err)
			s.fail(s.appendError)
		}
		s.previous = b.Frame.Hash
		b.spent.append = time.Since(start)
	}
	b.err = s.appendError
	return b.err
}
