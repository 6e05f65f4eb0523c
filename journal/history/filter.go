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

// filter is a Bloom filter of the ids of all rows, in layers that grow as they fill: 2 bytes an id,
// and fewer than one mistake in 100. A random seed keeps anybody from choosing mistaken ids.
//
// Any goroutine may ask. Until the scan at the start is done, every id may be known.
type filter struct {
	seed     maphash.Seed
	complete atomic.Bool
	layers   atomic.Pointer[[]layer]

	mu    sync.Mutex // guards the fields below, and adding
	room  int        // ids that the last layer still takes
	total int        // ids that all layers take
}

// layer consists of groups of 256 bits, so that a look reads one cache line.
type layer []group

// group has two bits of an id in each word.
type group [4]atomic.Uint64

const (
	groupBytes  = 32
	filterBits  = 16      // for each id of a layer
	filterLeast = 1 << 20 // the least number of ids of the first layer: 2 MiB
	// filterMost is the number of ids of all layers: 256 MiB. More ids crowd the last layer.
	filterMost = 1 << 27
)

func newFilter(expected int) *filter {
	f := &filter{seed: maphash.MakeSeed()}
	f.layers.Store(new([]layer))
	f.grow(expected)
	return f
}

// grow adds a layer. Callers hold mu, or nobody else has the filter yet.
func (f *filter) grow(ids int) {
	ids = min(max(ids, filterLeast), filterMost-f.total)
	if ids <= 0 {
		f.room = math.MaxInt
		return
	}
	f.room, f.total = ids, f.total+ids
	old := *f.layers.Load()
	grown := append(old[:len(old):len(old)], make(layer, (ids*filterBits+255)/256))
	f.layers.Store(&grown)
}

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

func (f *filter) bytes() int {
	n := 0
	for _, l := range *f.layers.Load() {
		n += len(l) * groupBytes
	}
	return n
}

// groupOf returns the group of the hash h, and 48 bits: twelve for each word of the group.
func (l layer) groupOf(h uint64) (at *group, which uint64) {
	no, _ := bits.Mul64(h, uint64(len(l)))
	return &l[no], h * 0x9e3779b97f4a7c15 >> 16
}

func mask(which uint64) uint64 { return 1<<(which&63) | 1<<(which>>6&63) }

// add sets the bits of h. The filter's mu keeps a word from changing between look and write.
func (l layer) add(h uint64) {
	at, which := l.groupOf(h)
	for i := range at {
		if was := at[i].Load(); was|mask(which) != was {
			at[i].Store(was | mask(which))
		}
		which >>= 12
	}
}

func (l layer) has(h uint64) bool {
	at, which := l.groupOf(h)
	for i := range at {
		if at[i].Load()&mask(which) != mask(which) {
			return false
		}
		which >>= 12
	}
	return true
}

// scanKeys ids are added before a scan pauses for as long as they took: it must not slow the start.
const scanKeys = 4096

// scan adds the ids of all rows of it and closes it. It ends early when stop is closed.
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
