package raft

import (
	"errors"
	"fmt"
	"sync"

	"clobd/engine"
)

// ErrLost is the error of a frame whose outcome is unknown: this member may not append any more.
// What was not committed by then may come back with the next leader, or never.
var ErrLost = errors.New("leadership lost: the outcome is unknown")

// Lead is one member's right to append frames, from an end of the journal on that all of the
// majority have: a sequencer.Journal. It ends with the term, or with the first frame that the
// cluster cannot take, and never begins again: a writer that runs ahead can leave no gap. One
// goroutine calls Append, another one Wait.
type Lead struct {
	Term uint64      // the epoch of its frames
	Head engine.Head // its first frame follows it

	propose func(l *Lead, p proposal) error
	confirm func(l *Lead)
	tail    engine.Hash // of the last frame given to Append; Append's
	waiting []inLog     // frames in the log that are not committed; the Core's
	own     []proposal  // given to the library, not yet in the log; the Core's

	ended chan struct{} // closed when over is set

	mu        sync.Mutex
	moved     sync.Cond
	committed uint64
	asked     uint64 // the last number that Ask gave
	proved    uint64 // Confirm returns nil up to that number
	asking    bool   // confirm was called, and has not taken note of asked
	over      error  // why it ended
}

// proposal is a frame on its way into the log.
type proposal struct {
	bytes []byte
	head  engine.Head
}

// inLog says which entry of the log, by its index, holds which frame, by its number.
type inLog struct{ index, frame uint64 }

func newLead(c *Core, head engine.Head) *Lead {
	l := &Lead{Term: c.term, Head: head, propose: c.propose, confirm: c.confirm, tail: head.Hash,
		committed: head.Frame, ended: make(chan struct{})}
	l.moved.L = &l.mu
	return l
}

// Append takes the next frame: it goes to this member's disk and to the others at the same time.
func (l *Lead) Append(f *engine.Frame) error {
	if _, over := l.Committed(); over != nil {
		return over
	}
	if f.Epoch != l.Term || f.Prev != l.tail {
		return fmt.Errorf("append frame %d of epoch %d: it does not follow in term %d", f.No, f.Epoch,
			l.Term)
	}
	l.tail = f.Hash
	return l.propose(l, proposal{f.Bytes, f.Head()})
}

// Wait returns nil when all frames up to that number are on the disks of a majority, which is for
// ever. The error wraps ErrLost if that never came to be known.
func (l *Lead) Wait(frame uint64) error {
	l.mu.Lock()
	defer l.mu.Unlock()
	for l.committed < frame && l.over == nil {
		l.moved.Wait()
	}
	if l.committed < frame {
		return l.over
	}
	return nil
}

// Ask begins to ask a majority whether this member still leads, for who answers from his own state
// without a frame: another member may lead already, and have changed it. It returns a number for
// Confirm, and does not wait.
func (l *Lead) Ask() uint64 {
	l.mu.Lock()
	l.asked++
	n, begin := l.asked, !l.asking
	l.asking = true
	l.mu.Unlock()
	if begin {
		l.confirm(l)
	}
	return n
}

// Confirm returns nil once it is known that at some time after that Ask no other member led, and so
// nothing was committed that this one did not append. The error is that of Wait.
func (l *Lead) Confirm(asked uint64) error {
	l.mu.Lock()
	defer l.mu.Unlock()
	for l.proved < asked && l.over == nil {
		l.moved.Wait()
	}
	if l.proved < asked {
		return l.over
	}
	return nil
}

// Proved is the last number for which Confirm would return nil.
func (l *Lead) Proved() uint64 {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.proved
}

// question is called by the Core when it asks the others: up to the number returned.
func (l *Lead) question() uint64 {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.asking = false
	return l.asked
}

// prove is called by the Core: a majority has answered.
func (l *Lead) prove(asked uint64) {
	l.mu.Lock()
	l.proved = max(l.proved, asked)
	l.mu.Unlock()
	l.moved.Broadcast()
}

// Committed is the last frame for which Wait would return nil, and why no more will follow, nil if
// more may.
func (l *Lead) Committed() (frame uint64, over error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.committed, l.over
}

// Ended is closed when the Lead is over: Committed then says why.
func (l *Lead) Ended() <-chan struct{} { return l.ended }

// advance is called by the Core: entries up to index are committed.
func (l *Lead) advance(index uint64) {
	n := 0
	for n < len(l.waiting) && l.waiting[n].index <= index {
		n++
	}
	if n == 0 {
		return
	}
	l.mu.Lock()
	l.committed = l.waiting[n-1].frame
	l.mu.Unlock()
	l.waiting = l.waiting[n:]
	l.moved.Broadcast()
}

// end ends it, for the first reason given.
func (l *Lead) end(why error) {
	l.mu.Lock()
	if l.over == nil {
		l.over = why
		close(l.ended)
	}
	l.mu.Unlock()
	l.moved.Broadcast()
}
