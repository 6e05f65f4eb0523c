package history

import (
	"cmp"
	"sync"
	"sync/atomic"
	"time"

	"clobd/engine"
)

// progress is how far the index has come, and who waits for it to go on.
type progress struct {
	sequence atomic.Uint64
	writing  atomic.Uint64 // the last Sequence of the batch that was written last
	wanted   chan struct{} // gets a value when a caller begins to wait

	mu     sync.Mutex
	moved  chan struct{} // closed at the next publish; nil while nobody waits
	ended  bool          // the index will not move again
	failed error         // why, unless Close ended it
	held   error         // why the index does not move for now
}

// Sequence is the last Sequence in the index: what an answer that begins after the call knows.
func (p *progress) Sequence() engine.Sequence { return engine.Sequence(p.sequence.Load()) }

// Ahead is the last Sequence of which an answer that ended before the call may know something. It
// is above Sequence while a batch is written.
func (p *progress) Ahead() engine.Sequence {
	return max(engine.Sequence(p.writing.Load()), p.Sequence())
}

func (p *progress) publish(seq engine.Sequence) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.sequence.Store(uint64(seq))
	p.wake()
}

// wake lets all waiting callers look again. Callers hold mu.
func (p *progress) wake() {
	if p.moved != nil {
		close(p.moved)
		p.moved = nil
	}
}

// end records that the index will not move again, because of err if not nil, and wakes all callers.
func (p *progress) end(err error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.ended = true; p.failed == nil {
		p.failed = err
	}
	p.wake()
}

// hold wakes all callers: the index does not move for now, because of err. nil: it moves again.
func (p *progress) hold(err error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.held = err; err != nil {
		p.wake()
	}
}

// Failed returns why the index does not move: the error that ended Index.Run, or that the disk
// takes no writes, as long as that lasts. Answers are then as of Sequence. nil: the index moves.
func (p *progress) Failed() error {
	p.mu.Lock()
	defer p.mu.Unlock()
	return cmp.Or(p.failed, p.held)
}

// Await waits until the index has come to seq, at most for d, and reports whether it has. It
// returns false at once if the index does not move: it was closed, or Failed returns why.
func (p *progress) Await(seq engine.Sequence, d time.Duration) bool {
	if p.Sequence() >= seq {
		return true
	}
	timer := time.NewTimer(d)
	defer timer.Stop()
	for {
		moved := p.next(seq)
		if moved == nil {
			return p.Sequence() >= seq
		}
		select {
		case <-moved:
		case <-timer.C:
			return p.Sequence() >= seq
		}
	}
}

// next returns a channel that closes when the index moves; nil if there is nothing to wait for.
func (p *progress) next(seq engine.Sequence) <-chan struct{} {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.ended || p.held != nil || p.Sequence() >= seq {
		return nil
	}
	if p.moved == nil {
		p.moved = make(chan struct{})
	}
	select {
	case p.wanted <- struct{}{}:
	default:
	}
	return p.moved
}

func (p *progress) awaited() bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.moved != nil
}
