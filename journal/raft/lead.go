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
	tail    engine.Hash // of the last frame given to Append; Append's
	waiting []inLog     // frames in the log that are not committed; the Core's
	own     []proposal  // given to the library, not yet in the log; the Core's

	mu        sync.Mutex
	moved     sync.Cond
	committed uint64
	over      error // why it ended
}

// proposal is a frame on its way into the log.
type proposal struct {
	bytes []byte
	head  engine.Head
}

// inLog says which entry of the log, by its index, holds which frame, by its number.
type inLog struct{ index, frame uint64 }

func newLead(term uint64, head engine.Head, propose func(*Lead, proposal) error) *Lead {
	l := &Lead{Term: term, Head: head, propose: propose, tail: head.Hash, committed: head.Frame}
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

// Committed is the last frame for which Wait would return nil, and why no more will follow, nil if
// more may.
func (l *Lead) Committed() (frame uint64, over error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.committed, l.over
}

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
	}
	l.mu.Unlock()
	l.moved.Broadcast()
}
