package history

import (
	"encoding/binary"
	"fmt"

	"clobd/engine"

	"github.com/cockroachdb/pebble/v2"
)

// listNo names a list of trades: owner in the high half, market in the low half; 0 means all.
type listNo uint64

func listOf(owner engine.WalletNo, market engine.MarketNo) listNo {
	return listNo(uint64(owner)<<32 | uint64(market))
}

// listEntry puts a trade in a list. at is the number of the trade, above two bits that tell which
// tokens the trade moved for the owner of the list.
type listEntry struct {
	list listNo
	at   uint64
}

const (
	entryBits   = 2
	entryTokens = 1<<entryBits - 1
)

func (e *listEntry) number() uint64 { return e.at >> entryBits }

const runEntries = 256

// appendEntries appends the entries of a trade for the lists of an owner: the one in market, and
// the one of all markets. Nobody's builder has no lists. at is as in listEntry.
func appendEntries(some []listEntry, owner engine.WalletNo, market engine.MarketNo,
	at uint64) []listEntry {
	if owner == BuilderNo(0).list() {
		return some
	}
	some = append(some, listEntry{listOf(owner, market), at})
	if owner != 0 {
		some = append(some, listEntry{listOf(owner, 0), at})
	}
	return some
}

func (t tradeRef) entry(o engine.Outcome) uint64 { return t.number()<<entryBits | 1<<o }

// appendRun appends entries of one list in order. Each is the distance of its Sequence from the one
// before, with the bits of the tokens, and its index. The first Sequence is in the key.
func appendRun(b []byte, some []uint64) []byte {
	last := refOf(some[0] >> entryBits).seq
	for _, at := range some {
		t := refOf(at >> entryBits)
		b = appendUvarints(b, uint64(t.seq-last)<<entryBits|at&entryTokens, uint64(t.index))
		last = t.seq
	}
	return b
}

// walker walks a list from the newest trade to the oldest, for at most maxEntries+1 entries.
type walker struct {
	db    *pebble.DB
	it    *pebble.Iterator // nil until the database is needed
	list  listNo
	run   []uint64 // entries to come, as in listEntry.at, the next one last
	below uint64   // the database has the trades up to this number
}

// newWalker begins with the trade number from, or the next older one in the list. The caller closes
// the walker.
func (h *History) newWalker(list listNo, from uint64) *walker {
	w := &walker{db: h.db, list: list}
	w.run, w.below = h.recent.copy(list, from, maxEntries+1)
	w.below = min(w.below, from)
	return w
}

func (w *walker) close() error {
	if w.it == nil {
		return nil
	}
	return w.it.Close()
}

// more reads the next run from the database; false if there is none.
func (w *walker) more() (ok bool, err error) {
	if w.it != nil {
		ok = w.it.Prev()
	} else {
		low, high := listKey(w.list, 0), listKey(w.list+1, 0)
		o := &pebble.IterOptions{LowerBound: low[:], UpperBound: high[:]}
		if w.it, err = w.db.NewIter(o); err != nil {
			return false, err
		}
		key := listKey(w.list, w.below+1)
		ok = w.it.SeekLT(key[:])
	}
	if !ok {
		return false, w.it.Error()
	}
	return true, w.read()
}

// read decodes the run at the iterator, except entries above below.
func (w *walker) read() error {
	b, err := w.it.ValueAndErr()
	if err != nil {
		return err
	}
	key := w.it.Key()
	last := refOf(binary.BigEndian.Uint64(key[listKeyLen-8:])).seq
	c := varints{rest: b}
	for w.run = w.run[:0]; len(c.rest) > 0; {
		if at := c.entry(&last); at>>entryBits <= w.below {
			w.run = append(w.run, at)
		}
	}
	if c.bad || len(w.run) == 0 {
		return fmt.Errorf("list %x: %w", uint64(w.list), errRow)
	}
	return nil
}

// next returns the next listEntry.at; false at the end of the list.
func (w *walker) next() (at uint64, ok bool, err error) {
	if len(w.run) == 0 {
		if ok, err := w.more(); err != nil || !ok {
			return 0, false, err
		}
	}
	at = w.run[len(w.run)-1]
	w.run = w.run[:len(w.run)-1]
	return at, true, nil
}
