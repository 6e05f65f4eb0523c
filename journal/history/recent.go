package history

import (
	"cmp"
	"fmt"
	"maps"
	"slices"
	"sync"

	"github.com/cockroachdb/pebble/v2"
)

// recent holds the entries of the latest trades, which the lists in the database do not have yet.
// It writes seldom, many entries of a list under one key. After a crash, load makes them from
// trades.
//
// Readers hold mu. All else belongs to the goroutine of Index.Run.
type recent struct {
	mu      sync.RWMutex
	lists   map[listNo][]uint64 // listEntry.at, oldest first
	written uint64              // trades up to this number are in the database's lists
	last    uint64              // number of the latest trade
	free    [][]uint64          // empty ones, for new lists
	count   int                 // of entries
	keep    int                 // entries are written when there are this many
}

const (
	recentEntries = 1 << 14
	freeLists     = 1 << 10 // that are kept for later
	freeEntries   = 64      // that one of them has room for, at most
)

func newRecent(written uint64) *recent {
	return &recent{lists: make(map[listNo][]uint64), written: written, last: written,
		keep: recentEntries}
}

func (r *recent) note(e listEntry) {
	l := r.lists[e.list]
	if free := len(r.free); l == nil && free > 0 {
		l, r.free = r.free[free-1], r.free[:free-1]
	}
	if n := len(l); n > 0 && l[n-1]>>entryBits == e.number() {
		l[n-1] |= e.at
		return
	}
	r.lists[e.list] = append(l, e.at)
	r.count++
	r.last = max(r.last, e.number())
}

// write writes all entries into a batch if there are many, and returns the number of the last trade
// that the database's lists then have. value is scratch.
func (r *recent) write(b *pebble.Batch, value *[]byte) (written uint64, err error) {
	if r.count < r.keep {
		return r.written, nil
	}
	for _, list := range slices.Sorted(maps.Keys(r.lists)) {
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

// update adds the entries of a batch that is in the database by now. The lists in the database go
// up to the trade number written.
func (r *recent) update(some []listEntry, written uint64) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if written > r.written {
		for list, l := range r.lists {
			if len(r.free) < freeLists && cap(l) <= freeEntries { // a long list would stay long for ever
				r.free = append(r.free, l[:0])
			}
			delete(r.lists, list)
		}
		r.count, r.written = 0, written
	}
	for _, e := range some {
		r.note(e)
	}
}

// copy returns the newest entries of a list up to the trade number high, at most limit, oldest
// first. Trades up to the number written are in the database.
func (r *recent) copy(list listNo, high uint64, limit int) (some []uint64, written uint64) {
	r.mu.RLock()
	defer r.mu.RUnlock()
	l := r.lists[list]
	n, _ := slices.BinarySearchFunc(l, high, func(at, high uint64) int {
		return cmp.Or(cmp.Compare(at>>entryBits, high), -1) // behind high itself
	})
	return slices.Clone(l[max(n-limit, 0):n]), r.written
}

func (r *recent) load(db *pebble.DB) error {
	var t TradeRow
	var some []listEntry
	from := numberKey(spaceDeals, r.written+1)
	err := each(db, from[:], []byte{spaceDeals + 1}, func(key, chunk []byte) (bool, error) {
		return eachRecord(key, chunk, func(at tradeRef, record varints) (bool, error) {
			if !t.decode(at, record) {
				return false, errRow
			}
			some = t.appendEntries(some[:0])
			for _, e := range some {
				r.note(e)
			}
			return true, nil
		})
	})
	if err != nil {
		return fmt.Errorf("read the latest trades: %w", err)
	}
	return nil
}

// appendEntries appends the same entries that fold.fill made of the trade.
func (t *TradeRow) appendEntries(some []listEntry) []listEntry {
	at := tradeRef{t.Sequence, t.Index}
	some = appendEntries(some, 0, t.Market, at.entry(t.Outcome))
	some = appendEntries(some, t.Owner, t.Market, at.entry(t.Outcome))
	some = appendEntries(some, t.Builder.list(), t.Market, at.entry(t.Outcome))
	for i := range t.Makers {
		m := &t.Makers[i]
		if m.Owner != t.Owner {
			some = appendEntries(some, m.Owner, t.Market, at.entry(m.Outcome))
		}
		some = appendEntries(some, m.Builder.list(), t.Market, at.entry(m.Outcome))
	}
	return some
}
