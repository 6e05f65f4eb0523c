package sequencer

import (
	"sync"
	"sync/atomic"
	"time"

	"clobd/engine"
)

// Counters are totals since New. A frame counts when it is durable and published.
type Counters struct {
	Commands uint64
	Idle     uint64 // Commands that changed nothing and were not journaled
	Events   uint64
	Frames   uint64
	Bytes    uint64 // of encoded frames
	Largest  uint64 // Commands of the largest frame
	Busy     uint64 // refused because the ring was full
	Timeouts uint64 // callers who left before their answer
	Slots    uint64 // of the ring
	Depth    uint64 // slots in use now
	Answered uint64 // Commands whose callers have an answer, durable or idle
	Waiting  uint64 // Commands that were entered and not answered: in the ring or in a frame

	// What the Commands of journaled frames did.
	Orders  uint64 // that were accepted
	Fills   uint64
	Cancels uint64                      // orders that left the book with something unfilled
	Keys    uint64                      // API keys that were made
	Revoked uint64                      // API keys that were given up
	Rejects [len(engine.Rejects)]uint64 // by Reject

	// Where frames spent their time. Commands / Frames is the mean batch size.
	Apply  time.Duration // matcher: stamp and apply
	Encode time.Duration // appender
	Append time.Duration // appender: in Journal.Append
	Wait   time.Duration // committer: in Journal.Wait
	Commit time.Duration // committer: publish and acknowledge
}

// stages holds the time of one batch in each stage, and when the first stage began. The goroutine
// of a stage sets its field.
type stages struct {
	began                                time.Time
	apply, encode, append, wait, publish time.Duration
}

// of returns where a frame has spent its time, with the wait of one of its Commands.
func (t *stages) of(c *Call) Spent {
	return Spent{Wait: t.began.Sub(c.entered), Match: t.apply, Append: t.encode + t.append,
		Sync: t.wait, Publish: t.publish}
}

// counters are the live form of Counters.
type counters struct {
	mutex sync.Mutex
	total Counters // what the committer counts
	_     [line]byte
	busy  atomic.Uint64
}

// count adds a durable batch. The committer calls it once per batch, before it answers the callers.
func (c *counters) count(b *Batch) {
	n := uint64(len(b.Frame.Commands))
	c.mutex.Lock()
	defer c.mutex.Unlock()
	t := &c.total
	t.Commands += n
	t.Idle += uint64(len(b.idle))
	t.Answered += uint64(len(b.idle))
	for _, call := range b.calls {
		if call != nil { // not an Advance of the matcher, which had no slot
			t.Answered++
		}
	}
	t.Events += uint64(len(b.Frame.Events))
	if n > 0 {
		t.Frames++
	}
	t.Bytes += uint64(len(b.Frame.Bytes))
	t.Largest = max(t.Largest, n)
	t.Apply += b.spent.apply
	t.Encode += b.spent.encode
	t.Append += b.spent.append
	t.Wait += b.spent.wait
	for i := range b.Frame.Commands {
		t.read(&b.Frame, i)
	}
}

// read counts what a Command of a frame did. The last Event answers the Command.
func (t *Counters) read(f *engine.Frame, command int) {
	events := f.EventsOf(command)
	for i := range events {
		switch events[i].Kind {
		case engine.Filled:
			t.Fills++
		case engine.Cancelled:
			t.Cancels++
		case engine.Rejected:
			t.Rejects[events[i].Reject]++
			return
		}
	}
	switch f.Commands[command].Kind {
	case engine.Place:
		t.Orders++
	case engine.SetKey:
		if f.Commands[command].Revoke {
			t.Revoked++
		} else {
			t.Keys++
		}
	}
}

// committed adds what the committer needed to publish and acknowledge a batch.
func (c *counters) committed(d time.Duration) {
	c.mutex.Lock()
	defer c.mutex.Unlock()
	c.total.Commit += d
}

// Counters returns the totals.
func (s *Sequencer) Counters() Counters {
	c := &s.counters
	c.mutex.Lock()
	total := c.total
	c.mutex.Unlock()
	total.Busy, total.Timeouts, total.Depth = c.busy.Load(), s.calls.timeouts.Load(), s.ring.depth()
	total.Slots = uint64(len(s.ring.slots))
	// The ring is asked last: what was answered above had entered before.
	total.Waiting = s.ring.entered() - total.Answered
	return total
}
