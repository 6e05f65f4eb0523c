package history

import (
	"cmp"
	"errors"
	"fmt"
	"slices"
	"sync"

	"clobd/engine"

	"github.com/cockroachdb/pebble/v2"
)

// recent holds what the lists in the database do not have yet: the entries of the latest trades.
// They are written now and then, many of a list under one key, for a key is what a list costs.
// Nothing is lost with them: trades say themselves whose they are.
//
// Readers hold mu; all else belongs to the goroutine of Index.Run.
type recent struct {
	mu      sync.RWMutex
	lists   map[listNo][]uint64 // listEntry.at, oldest first
	written uint64              // trades up to this number are in the database's lists
	last    uint64              // number of the latest trade
	count   int                 // of entries
	keep    int                 // how many before they are written
}

// recentEntries is how many entries are kept: some milliseconds of writing.
const recentEntries = 1 << 14

// newRecent makes one for an index whose lists have the trades up to the number written.
func newRecent(written uint64) *recent {
	return &recent{lists: make(map[listNo][]uint64), written: written, last: written,
		keep: recentEntries}
}

// note notes that a list has a trade that is no older than those it has.
func (r *recent) note(e listEntry) {
	l := r.lists[e.list]
	if n := len(l); n > 0 && l[n-1]>>entryBits == e.number() {
		l[n-1] |= e.at
		return
	}
	r.lists[e.list] = append(l, e.at)
	r.count++
	r.last = max(r.last, e.number())
}

// write writes all entries into a batch if they are many, and says up to which trade the lists in
// the database go then. value is scratch.
func (r *recent) write(b *pebble.Batch, value *[]byte) (written uint64, err error) {
	if r.count < r.keep {
		return r.written, nil
	}
	order := make([]listNo, 0, len(r.lists))
	for list := range r.lists {
		order = append(order, list)
	}
	slices.Sort(order)
	for _, list := range order {
		for run := range slices.Chunk(r.lists[list], runEntries) {
			key := listKey(list, run[0]>>entryBits)
			*value = appendRun((*value)[:0], run)
			if err := b.Set(key[:], *value, nil); err != nil {
				return 0, fmt.Errorf("write the list %x: %w", uint64(list), err)
			}
		}
	}
	return r.last, nil
}

// update notes the entries of a batch that is in the database, and that the lists there go up to
// written now.
func (r *recent) update(some []listEntry, written uint64) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if written > r.written {
		r.lists, r.count, r.written = make(map[listNo][]uint64, len(r.lists)), 0, written
	}
	for _, e := range some {
		r.note(e)
	}
}

// copy copies entries of a list up to the number high, at most limit and the newest, oldest first.
// Older ones than written are in the database.
func (r *recent) copy(list listNo, high uint64, limit int) (some []uint64, written uint64) {
	r.mu.RLock()
	defer r.mu.RUnlock()
	l := r.lists[list]
	n, _ := slices.BinarySearchFunc(l, high, func(at, high uint64) int {
		return cmp.Or(cmp.Compare(at>>entryBits, high), -1) // behind high itself
	})
	return slices.Clone(l[max(n-limit, 0):n]), r.written
}

// load notes the trades that the lists in the database do not have.
func (r *recent) load(db *pebble.DB) (err error) {
	from := numberKey(spaceDeals, r.written+1)
	it, err := db.NewIter(&pebble.IterOptions{LowerBound: from[:], UpperBound: []byte{spaceDeals + 1}})
	if err != nil {
		return fmt.Errorf("read the latest trades: %w", err)
	}
	defer func() {
		if err = errors.Join(err, it.Error(), it.Close()); err != nil {
			err = fmt.Errorf("read the latest trades: %w", err)
		}
	}()
	var t TradeRow
	for ok := it.First(); ok; ok = it.Next() {
		no, known := numberOf(it.Key())
		b, err := it.ValueAndErr()
		if err == nil && !known {
			err = errRow
		}
		if err != nil {
			return err
		}
		for c := (varints{rest: b}); len(c.rest) > 0; {
			record, ok := c.record()
			if ok {
				ok = t.decode(record, refOf(no).seq)
			}
			if !ok {
				return errRow
			}
			t.entries(r.note)
		}
	}
	return nil
}

// entries gives the entries of a trade: whose it is, and where.
func (t *TradeRow) entries(note func(listEntry)) {
	at := tradeRef{t.Sequence, t.Index}.number() << entryBits
	list := func(owner engine.WalletNo, o engine.Outcome) {
		note(listEntry{listOf(owner, t.Market), at | 1<<o})
		if owner != 0 {
			note(listEntry{listOf(owner, 0), at | 1<<o})
		}
	}
	list(0, t.Outcome)
	list(t.Owner, t.Outcome)
	if t.Builder != 0 {
		list(t.Builder.list(), t.Outcome)
	}
	for i := range t.Makers {
		m := &t.Makers[i]
		if m.Owner != t.Owner {
			list(m.Owner, m.Outcome)
		}
		if m.Builder != 0 {
			list(m.Builder.list(), m.Outcome)
		}
	}
}
