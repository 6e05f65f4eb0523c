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

// durability is how much of the index is on disk. Run owns all but sequence, and then Close.
type durability struct {
	sequence atomic.Uint64 // a crash leaves at least this Sequence

	began  time.Time       // when the last flush began
	done   <-chan struct{} // closed when that flush is done; nil if none is under way
	target engine.Sequence // durable after that flush
}

func (d *durability) load() engine.Sequence { return engine.Sequence(d.sequence.Load()) }

const (
	holdMemTables = 4                     // full memtables at which Run waits for the disk
	holdSublevels = 64                    // levels of uncompacted tables at which Run waits for it
	roomPoll      = 50 * time.Millisecond // how often a waiting Run looks again
	giveUp        = 2 * time.Second       // how long a stop waits for the disk
)

// patience is how long a stop waits for the disk: the next start folds again what a stop gives up.
type patience struct {
	flush time.Duration // for a flush
	close time.Duration // for the flush and for closing the database
	leave time.Duration // for closing a database that was given up
}

// flush starts to make the index durable when Options.Flush has passed, or when as many holders
// have moved as their readers bear. Only one flush runs at a time, because another would only add
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
	most := holderMost
	if x.History.walked.Load() {
		most = holderMoves
	}
	if time.Since(d.began) < x.options.Flush && x.fold.ledger.moves < most {
		return
	}
	if err := x.startFlush(); err != nil {
		x.options.Log.Error("flush of the index failed", "path", x.Path, "error", err)
	}
}

func (x *Index) startFlush() error {
	done, err := x.db.AsyncFlush()
	if err != nil {
		return err
	}
	x.durable.began, x.durable.done, x.durable.target = time.Now(), done, x.History.Sequence()
	x.fold.ledger.moves = 0
	x.History.walked.Store(false)
	x.gauges.flushes.Inc()
	return nil
}

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

// waitForDisk waits while rows pile up in memory because the disk takes none. History.Failed
// returns why meanwhile. Pebble would wait without end, and could not be closed then.
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

func (x *Index) full() bool {
	m := x.db.Metrics()
	return m.MemTable.Size >= uint64(holdMemTables*x.options.MemTable) ||
		m.Levels[0].Sublevels >= holdSublevels
}

// tear is what Pebble calls when it failed to write its manifest and cannot go on. Run ends with
// the reason, and readers keep the answers of the last Sequence. The process goes on.
func (x *Index) tear(err error) {
	err = disk.Advise(fmt.Errorf("the database cannot go on: %w", err), "start again: it is "+
		"folded again from where it was durable, or made anew from the journal")
	if x.torn.CompareAndSwap(nil, &err) {
		x.guard.Abandon()
	}
	x.options.Log.Error("the index failed", "path", x.Path, "error", err)
	x.tail.Close()
}
