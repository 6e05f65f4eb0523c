package history

import (
	"encoding/binary"
	"fmt"

	"clobd/engine"

	"github.com/cockroachdb/pebble/v2"
)

// listNo names a list of trades: of an owner (the high half), in a market (the low half), or of
// all where one of them is 0.
type listNo uint64

// listOf is the list of an owner's trades in a market; 0 is everybody, everywhere.
func listOf(owner engine.WalletNo, market engine.MarketNo) listNo {
	return listNo(uint64(owner)<<32 | uint64(market))
}

// listEntry says that a list holds a trade: its number, and in the lowest bits which tokens it moved on
// the list's behalf.
type listEntry struct {
	list listNo
	at   uint64
}

// The bits of listEntry.at below the number.
const (
	entryBits   = 2
	entryTokens = 1<<entryBits - 1
)

// number is that of the trade.
func (e *listEntry) number() uint64 { return e.at >> entryBits }

// runEntries is how many entries of a list share a key at most.
const runEntries = 256

// list notes that owner took part in the trade that is being put together, with token o.
func (d *deals) list(owner engine.WalletNo, market engine.MarketNo, t tradeRef, o engine.Outcome) {
	at := t.number()<<entryBits | 1<<o
	d.entry = append(d.entry, listEntry{listOf(owner, market), at})
	if owner != 0 {
		d.entry = append(d.entry, listEntry{listOf(owner, 0), at})
	}
}

// appendRun appends entries of one list in order: each Sequence as the distance from the one before
// it with the tokens below it, and each index. The first Sequence is in the key.
func appendRun(b []byte, some []uint64) []byte {
	last := refOf(some[0] >> entryBits).seq
	for _, at := range some {
		t := refOf(at >> entryBits)
		b = binary.AppendUvarint(b, uint64(t.seq-last)<<entryBits|at&entryTokens)
		b = binary.AppendUvarint(b, uint64(t.index))
		last = t.seq
	}
	return b
}

// walker walks a list from the newest trade to the oldest, for maxEntries and one more at most.
type walker struct {
	db    *pebble.DB
	it    *pebble.Iterator // nil until the database is needed
	list  listNo
	run   []uint64 // what is left of the entries at hand: listEntry.at
	below uint64   // the number from which on the database is asked
}

// newWalker makes one that begins with the trade number from, or with the newest before it; the
// caller closes it.
func (h *History) newWalker(list listNo, from uint64) *walker {
	w := &walker{db: h.db, list: list}
	w.run, w.below = h.recent.copy(list, from, maxEntries+1)
	w.below = min(w.below, from)
	return w
}

// close ends it.
func (w *walker) close() error {
	if w.it == nil {
		return nil
	}
	return w.it.Close()
}

// more reads the next run of the database; false if there is none.
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

// read decodes the run at which the iterator stands, but for what is above below.
func (w *walker) read() error {
	b, err := w.it.ValueAndErr()
	if err != nil {
		return err
	}
	key := w.it.Key()
	last := refOf(binary.BigEndian.Uint64(key[listKeyLen-8:])).seq
	c := varints{rest: b}
	for w.run = w.run[:0]; len(c.rest) > 0; {
		v := c.uvarint()
		last += engine.Sequence(v >> entryBits)
		number := tradeRef{last, uint32(c.uvarint())}.number()
		if number <= w.below {
			w.run = append(w.run, number<<entryBits|v&entryTokens)
		}
	}
	if c.bad || len(w.run) == 0 {
		return fmt.Errorf("list %x: %w", uint64(w.list), errRow)
	}
	return nil
}

// next is the next listEntry.at; false at the end of the list.
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
