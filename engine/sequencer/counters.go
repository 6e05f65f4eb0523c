package sequencer

import (
	"sync/atomic"
	"time"
)

// Counters are totals since New. A frame counts when it is durable and published.
type Counters struct {
	Commands uint64
	Events   uint64
	Frames   uint64
	Bytes    uint64 // of encoded frames
	Largest  uint64 // Commands of the largest frame
	Busy     uint64 // refused because the ring was full
	Timeouts uint64 // callers who left before their answer
	Depth    uint64 // slots in use now

	// Where frames spent their time. Commands / Frames is the mean batch size.
	Apply  time.Duration // matcher: stamp and apply
	Encode time.Duration // appender
	Append time.Duration // appender: in Journal.Append
	Wait   time.Duration // committer: in Journal.Wait
	Commit time.Duration // committer: publish and acknowledge
}

// stages holds the time of one batch in each stage. The goroutine of a stage sets its field.
type stages struct {
	apply, encode, append, wait time.Duration
}

// counters are the live form of Counters. The committer moves all but busy and timeouts.
type counters struct {
	commands, events, frames, bytes, largest                     atomic.Uint64
	applyNanos, encodeNanos, appendNanos, waitNanos, commitNanos atomic.Int64
	_                                                            [line]byte
	busy, timeouts                                               atomic.Uint64
}

// count adds a durable batch.
func (c *counters) count(b *Batch) {
	n := uint64(len(b.Frame.Commands))
	c.commands.Add(n)
	c.events.Add(uint64(len(b.Frame.Events)))
	c.frames.Add(1)
	c.bytes.Add(uint64(len(b.Frame.Bytes)))
	c.largest.Store(max(c.largest.Load(), n))
	c.applyNanos.Add(int64(b.spent.apply))
	c.encodeNanos.Add(int64(b.spent.encode))
	c.appendNanos.Add(int64(b.spent.append))
	c.waitNanos.Add(int64(b.spent.wait))
}

// Counters reads the counters one after the other: they may differ by the newest frame.
func (s *Sequencer) Counters() Counters {
	c := &s.counters
	return Counters{
		Commands: c.commands.Load(),
		Events:   c.events.Load(),
		Frames:   c.frames.Load(),
		Bytes:    c.bytes.Load(),
		Largest:  c.largest.Load(),
		Busy:     c.busy.Load(),
		Timeouts: c.timeouts.Load(),
		Depth:    s.ring.depth(),
		Apply:    time.Duration(c.applyNanos.Load()),
		Encode:   time.Duration(c.encodeNanos.Load()),
		Append:   time.Duration(c.appendNanos.Load()),
		Wait:     time.Duration(c.waitNanos.Load()),
		Commit:   time.Duration(c.commitNanos.Load()),
	}
}
