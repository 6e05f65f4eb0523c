package history

import (
	"errors"
	"fmt"
	"sync/atomic"
	"time"

	"clobd/engine"
	"clobd/journal"
	"clobd/journal/disk"
)

// durability is what the index knows of itself on disk. But for sequence it belongs to Run, and
// after it to Close.
type durability struct {
	sequence atomic.Uint64 // that survives a crash, at least

	began  time.Time       // of the last flush that was asked for
	done   <-chan struct{} // closed when that is done; nil if there is none under way
	target engine.Sequence // what is durable then
}

// load is the Sequence that survives a crash, at least.
func (d *durability) load() engine.Sequence { return engine.Sequence(d.sequence.Load()) }

const (
	// holdMemTables is how many full memtables may wait for a disk that takes none: then Run waits.
	holdMemTables = 4
	// holdSublevels is how many levels of fresh tables may wait to be compacted: then Run waits.
	holdSublevels = 64
	// roomPoll is how often Run looks whether the disk takes something again.
	roomPoll = 50 * time.Millisecond
	// giveUp is how long a stop waits for the disk.
	giveUp = 2 * time.Second
)

// patience is how long a stop waits for the disk. What it gives up is folded again, so that only
// those who must know what a disk took have more of it: tests.
type patience struct {
	flush time.Duration // for what is in memory to be durable
	close time.Duration // for the database to be closed, flush included
	leave time.Duration // for a database that was given up to be closed
}

// flush tells Pebble to make the index durable, now and then, or when many holders have moved:
// without a log, a crash takes back all that is still in a memtable, whole batches, and the place
// with them. As long as one flush is not done no other one is asked for: it would only add
// memtables.
func (x *Index) flush() {
	d := &x.durable
	if d.done != nil {
		select {
		case <-d.done:
			d.done = nil
			d.sequence.Store(uint64(d.target))
		default:
			return
		}
	}
	if time.Since(d.began) < x.options.Flush && x.fold.ledger.moves < holderMoves {
		return
	}
	if err := x.startFlush(); err != nil {
		x.options.Log.Error("flush of the index failed", "path", x.Path, "error", err)
	}
}

// ask begins a flush of all that is folded.
func (x *Index) startFlush() error {
	done, err := x.db.AsyncFlush()
	if err != nil {
		return err
	}
	x.durable.began, x.durable.done, x.durable.target = time.Now(), done, x.History.Sequence()
	x.fold.ledger.moves = 0
	x.gauges.flushes.Inc()
	return nil
}

// settle makes the index durable in time, or says why it could not.
func (x *Index) makeDurable() error {
	if torn := x.torn.Load(); torn != nil {
		return *torn
	}
	if err := x.startFlush(); err != nil {
		return err
	}
	most := x.options.patience.flush
	late := time.NewTimer(most)
	defer late.Stop()
	select {
	case <-x.durable.done:
		x.durable.done = nil
		x.durable.sequence.Store(uint64(x.durable.target))
		return nil
	case <-late.C:
	case <-x.guard.Abandoned():
	}
	if torn := x.torn.Load(); torn != nil {
		return *torn
	}
	return errors.Join(fmt.Errorf("it was not flushed within %v", most), x.guard.Failing())
}

// room waits while rows pile up in memory because the disk takes none. History.Failed says so
// meanwhile, because answers get old; when the disk takes them again the index goes on by itself.
// Pebble would wait, too, but for ever, and could not be closed.
func (x *Index) waitForDisk() error {
	if x.torn.Load() != nil {
		return journal.ErrClosed
	}
	if x.fold.written < x.options.MemTable/4 {
		return nil
	}
	x.fold.written = 0
	defer x.History.hold(nil)
	for told := false; x.full(); {
		if err := x.guard.Failing(); err != nil {
			err = fmt.Errorf("index %s stands at Sequence %d: %w; it goes on as soon as it can be "+
				"written; if its folder is gone, start again: it is made anew from the journal",
				x.Path, x.fold.at.sequence, err)
			x.History.hold(err)
			if !told {
				told = true
				x.options.Log.Error("the index waits for its disk", "error", err)
			}
		}
		select {
		case <-x.closing:
			return journal.ErrClosed
		case <-time.After(roomPoll):
		}
		if x.torn.Load() != nil {
			return journal.ErrClosed
		}
	}
	return nil
}

// full says whether no more rows should be written for now.
func (x *Index) full() bool {
	m := x.db.Metrics()
	return m.MemTable.Size >= uint64(holdMemTables*x.options.MemTable) ||
		m.Levels[0].Sublevels >= holdSublevels
}

// tear is called by Pebble when it cannot go on: its manifest could not be written, so that it
// knows no more what its folder holds. The folder stays as it is, Run ends and says why, readers
// get what they got. It is no reason to end the process: no promise was in the index.
func (x *Index) tear(err error) {
	err = disk.Advise(fmt.Errorf("the database cannot go on: %w", err), "start again: it is "+
		"folded again from where it was durable, or made anew from the journal")
	if x.torn.CompareAndSwap(nil, &err) {
		x.guard.Abandon()
	}
	x.options.Log.Error("the index failed", "path", x.Path, "error", err)
	x.tail.Close()
}
