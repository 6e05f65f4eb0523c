package raft

import (
	"bytes"
	"crypto/rand"
	"encoding/binary"
	"errors"

	"clobd/engine"
)

// ErrUnconfirmed is the error of a Confirm that nobody who leads has answered in time.
var ErrUnconfirmed = errors.New("nobody who leads says what is committed")

const (
	// questionSize is the length of what tells a question from all others.
	questionSize = 16
	// A member repeats a question that has no answer after "again" ticks. After "enough" ticks the
	// caller gets ErrUnconfirmed.
	again  = 4
	enough = 40
	// readers bounds those who wait for an answer.
	readers = 4096
)

// asks are the questions whether this member is up to date. One is on its way to the member that
// leads, which asks the others with its heartbeats; what comes meanwhile waits for the next one,
// because an answer is good only for those who asked before the question.
type asks struct {
	origin [8]byte // of this process: an answer to the one before it counts for nothing
	number uint64

	asking  bool
	lead    *Lead // asks, too, up to its number
	upto    uint64
	asked   uint64 // the tick
	readers []asker
	next    []asker
	want    *Lead // asks with the next question
	reached []asker
}

// asker waits until what was committed is here.
type asker struct {
	done  func(engine.Head, error)
	until uint64 // the tick at which there is no more hope
	index uint64 // of the last entry committed when there was an answer
}

// Confirm calls done once everything that was committed before, wherever that was known, is
// committed and durable here, with the end of the frames by then: what this member reads from there
// on misses nothing that anybody was told. Any member may ask. Done is called in the Core's
// goroutine, at once or later; the error is ErrUnconfirmed.
func (c *Core) Confirm(done func(engine.Head, error)) {
	a := &c.asks
	if len(a.readers)+len(a.next)+len(a.reached) >= readers {
		done(engine.Head{}, ErrUnconfirmed)
		return
	}
	a.next = append(a.next, asker{done: done, until: c.guard.ticks + enough})
	a.begin(c)
}

// ask is Confirm for a Lead, which need not have everything on its own disk.
func (c *Core) ask(l *Lead) {
	if c.lead == l {
		c.asks.want = l
		c.asks.begin(c)
	}
}

// begin puts the next question, unless one is on its way.
func (a *asks) begin(c *Core) {
	if a.asking || len(a.next) == 0 && a.want == nil {
		return
	}
	a.asking = true
	a.number++
	a.readers, a.next = append(a.readers, a.next...), a.next[:0]
	if a.lead, a.want = a.want, nil; a.lead != nil {
		a.upto = a.lead.question()
	}
	a.put(c)
}

// put asks. The number stays when it asks again.
func (a *asks) put(c *Core) {
	if a.origin == [8]byte{} {
		rand.Read(a.origin[:])
	}
	if a.asked = c.guard.ticks; c.leader {
		if !sure(c) {
			return
		}
		c.guard.reads++
	}
	c.raw.ReadIndex(a.text())
}

func (a *asks) text() []byte {
	return binary.LittleEndian.AppendUint64(append(make([]byte, 0, questionSize), a.origin[:]...),
		a.number)
}

// answer takes the index of an answer to a question.
func (a *asks) answer(c *Core, index uint64, text []byte) {
	if !a.asking || !bytes.Equal(text, a.text()) {
		return
	}
	if a.asking = false; a.lead != nil && a.lead == c.lead {
		a.lead.prove(a.upto)
	}
	for _, r := range a.readers {
		r.index = index
		a.reached = append(a.reached, r)
	}
	clear(a.readers)
	a.lead, a.readers = nil, a.readers[:0]
	a.reach(c)
	a.begin(c)
}

// reach tells those who wait for what is here now.
func (a *asks) reach(c *Core) {
	if len(a.reached) == 0 {
		return
	}
	_, head := c.storage.agreed.Committed()
	a.reached = keep(a.reached, func(r *asker) bool { return r.index > c.applied },
		func(r *asker) { r.done(head, nil) })
}

// tick asks again, and gives up.
func (a *asks) tick(c *Core) {
	late := func(r *asker) bool { return r.until > c.guard.ticks }
	end := func(r *asker) { r.done(engine.Head{}, ErrUnconfirmed) }
	a.readers, a.next, a.reached = keep(a.readers, late, end), keep(a.next, late, end),
		keep(a.reached, late, end)
	switch {
	case !a.asking:
	case len(a.readers) == 0 && (a.lead == nil || a.lead != c.lead):
		a.asking, a.lead = false, nil
		a.begin(c)
	case c.guard.ticks-a.asked >= again:
		a.put(c)
	}
}

// keep returns those that stay, and calls out with the others.
func keep(all []asker, stays func(*asker) bool, out func(*asker)) []asker {
	left := all[:0]
	for i := range all {
		if r := all[i]; stays(&r) {
			left = append(left, r)
		} else {
			out(&r)
		}
	}
	clear(all[len(left):])
	return left
}
