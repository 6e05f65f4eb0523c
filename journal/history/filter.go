package history

import (
	"errors"
	"fmt"
	"hash/maphash"
	"math"
	"math/bits"
	"sync"
	"sync/atomic"
	"time"

	"clobd/engine"

	"github.com/cockroachdb/pebble/v2"
)

// filter says of most orders that are unknown to the index that they are, without a look into the
// database: it holds the ids of all rows, in generations that grow as they fill. It takes 2 bytes
// an id and is wrong about fewer than one unknown id in 100; never about a known one. The hash has
// a seed of this process, so that nobody can choose ids about which it is wrong.
//
// Anybody may ask at any time. Two add: the goroutine of Index.Run, before it shows a Sequence, and
// the scan of the rows that were there when the index was opened. Until that is done every id may
// be known.
type filter struct {
	seed     maphash.Seed
	complete atomic.Bool
	layers   atomic.Pointer[[]*layer]

	mu    sync.Mutex // guards what is below, and adding
	room  int        // ids that the last layer still takes
	total int        // ids that all layers take
}

// layer is one generation: groups of 256 bits, so that a look is at one cache line. An id has two
// bits in each of a group's 4 words.
type layer struct {
	groups []group
}

type group [4]atomic.Uint64

const (
	groupBytes = 32
	// filterBits is how many bits a layer has for each id that it takes.
	filterBits = 16
	// filterLeast is how many ids the first layer takes at least: 2 MiB.
	filterLeast = 1 << 20
	// filterMost is how many ids all layers take together: 256 MiB. What comes on top crowds the last
	// one: answers stay right, but more of them need the database.
	filterMost = 1 << 27
)

// newFilter makes a filter for about expected ids.
func newFilter(expected int) *filter {
	f := &filter{seed: maphash.MakeSeed()}
	f.layers.Store(new([]*layer))
	f.grow(expected)
	return f
}

// grow adds a layer for some more ids. Callers hold mu, or are alone.
func (f *filter) grow(ids int) {
	ids = min(max(ids, filterLeast), filterMost-f.total)
	if ids <= 0 {
		f.room = math.MaxInt
		return
	}
	f.room, f.total = ids, f.total+ids
	old := *f.layers.Load()
	grown := append(old[:len(old):len(old)], &layer{make([]group, (ids*filterBits+255)/256)})
	f.layers.Store(&grown)
}

// add makes the filter know id.
func (f *filter) add(id *engine.OrderID) {
	h := maphash.Bytes(f.seed, id[:])
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.room == 0 {
		f.grow(f.total) // doubles
	}
	f.room--
	all := *f.layers.Load()
	all[len(all)-1].add(h)
}

// may says whether id may be known: false is certain.
func (f *filter) may(id *engine.OrderID) bool {
	if !f.complete.Load() {
		return true
	}
	h := maphash.Bytes(f.seed, id[:])
	for _, l := range *f.layers.Load() {
		if l.has(h) {
			return true
		}
	}
	return false
}

// bytes is how much memory the filter takes.
func (f *filter) bytes() int {
	n := 0
	for _, l := range *f.layers.Load() {
		n += len(l.groups) * groupBytes
	}
	return n
}

// find is the group of the hash h, and the 48 bits of which each word of the group takes twelve.
func (l *layer) groupOf(h uint64) (at *group, which uint64) {
	no, _ := bits.Mul64(h, uint64(len(l.groups)))
	return &l.groups[no], h * 0x9e3779b97f4a7c15 >> 16
}

// mask are two bits of a word.
func mask(which uint64) uint64 { return 1<<(which&63) | 1<<(which>>6&63) }

// add sets the bits of h. Only one adds at a time, so that no word changes between look and write.
func (l *layer) add(h uint64) {
	at, which := l.groupOf(h)
	for i := range at {
		if was := at[i].Load(); was|mask(which) != was {
			at[i].Store(was | mask(which))
		}
		which >>= 12
	}
}

// has says whether all bits of h are set.
func (l *layer) has(h uint64) bool {
	at, which := l.groupOf(h)
	for i := range at {
		if at[i].Load()&mask(which) != mask(which) {
			return false
		}
		which >>= 12
	}
	return true
}

// scanKeys is how many ids a scan adds before it rests as long as that took: what the door saves
// later must not be paid for with a slow start.
const scanKeys = 4096

// scan adds the ids of all rows that it yields, closes it, and completes the filter; or stops when
// stop is closed.
func (f *filter) scan(it *pebble.Iterator, stop <-chan struct{}) (err error) {
	defer func() { err = errors.Join(err, it.Close()) }()
	start, n := time.Now(), 0
	for ok := it.First(); ok; ok = it.Next() {
		if key := it.Key(); len(key) == orderKeyLen {
			f.add((*engine.OrderID)(key[1:]))
		}
		if n++; n%scanKeys == 0 {
			select {
			case <-stop:
				return nil
			case <-time.After(time.Since(start)):
			}
			start = time.Now()
		}
	}
	if err := it.Error(); err != nil {
		return fmt.Errorf("scan the ids of the index: %w", err)
	}
	f.complete.Store(true)
	return nil
}
