package history

import (
	"encoding/binary"
	"math/rand/v2"
	"runtime"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"clobd/engine"

	"github.com/cockroachdb/pebble/v2/vfs"
)

// randomID draws an id.
func randomID(r *rand.Rand) (id engine.OrderID) {
	for w := range 4 {
		binary.BigEndian.PutUint64(id[8*w:], r.Uint64())
	}
	return id
}

// fill puts n rows of live orders into the index of an empty journal, past the journal, and gives
// their ids.
func fill(t testing.TB, x *Index, n int) []engine.OrderID {
	t.Helper()
	r := rand.New(rand.NewPCG(uint64(n), 5))
	ids := make([]engine.OrderID, n)
	events := make([]engine.Event, 1)
	for i := range ids {
		ids[i] = randomID(r)
		c := engine.Command{Kind: engine.Place, ID: ids[i], Market: 1, Wallet: 1, Owner: 1, Key: 7,
			Size: 5 * engine.Unit, Cash: engine.Unit}
		events[0] = engine.Event{Kind: engine.Placed, Order: ids[i], Price: 2000, Size: c.Size,
			Remaining: c.Size}
		seq := engine.Sequence(i + 1)
		if err := x.fold.command(&c, seq, makerTime, events); err != nil {
			t.Fatal(err)
		}
		x.fold.at.sequence = seq
		if i%1000 == 999 || i == n-1 {
			if err := x.fold.commit(); err != nil {
				t.Fatal(err)
			}
			x.History.publish(seq)
		}
	}
	return ids
}

// TestFilter: what was added is never unknown, what was not nearly always is, in any generation,
// for ids that are random and for ids that are alike; and the memory is as promised.
func TestFilter(t *testing.T) {
	const ids = 3 * filterLeast
	for name, id := range map[string]func(r *rand.Rand, n uint64) engine.OrderID{
		"random": func(r *rand.Rand, _ uint64) engine.OrderID { return randomID(r) },
		"alike": func(_ *rand.Rand, n uint64) (id engine.OrderID) {
			binary.BigEndian.PutUint64(id[24:], n)
			return id
		},
	} {
		for _, expected := range []int{0, ids} {
			if testing.Short() && (name == "alike") == (expected == 0) {
				continue
			}
			f := newFilter(expected)
			r := rand.New(rand.NewPCG(1, uint64(expected)))
			n := uint64(0)
			known := make([]engine.OrderID, ids)
			for i := range known {
				n++
				known[i] = id(r, n)
				f.add(&known[i])
			}
			if !f.may(&engine.OrderID{31: 1}) || f.bytes() > 2*2*ids+1<<20 {
				t.Errorf("%s: incomplete, or %d bytes for %d ids", name, f.bytes(), ids)
			}
			f.complete.Store(true)
			for i := range known {
				if !f.may(&known[i]) {
					t.Fatalf("%s: id %d is not known", name, i)
				}
			}
			wrong := 0
			for range 200_000 {
				n++
				other := id(r, n)
				if f.may(&other) {
					wrong++
				}
			}
			if wrong > 2000 {
				t.Errorf("%s: wrong about %d of 200000 unknown ids", name, wrong)
			}
		}
	}
}

// TestFilterIsBounded: at the bound no more memory is taken, and answers stay right.
func TestFilterIsBounded(t *testing.T) {
	f := newFilter(0)
	f.total = filterMost
	f.room = 0
	before := f.bytes()
	r := rand.New(rand.NewPCG(1, 2))
	var ids []engine.OrderID
	for range 1000 {
		id := randomID(r)
		ids = append(ids, id)
		f.add(&id)
	}
	f.complete.Store(true)
	for i := range ids {
		if !f.may(&ids[i]) {
			t.Fatal("forgotten")
		}
	}
	if f.bytes() != before {
		t.Errorf("%d bytes, was %d", f.bytes(), before)
	}
}

// TestPastKnowsWhatItPromises asks for each order as soon as the index says that it has come as far
// as the frame that placed it, while the index folds on, and beside the scan after a restart: it is
// always found.
func TestPastKnowsWhatItPromises(t *testing.T) {
	j, m := newJournal(t, vfs.NewMem(), 9)
	defer shut(t, j)
	frames := 150
	if testing.Short() {
		frames = 50
	}
	for range 3 {
		x, stop := run(t, j, Options{})
		var placed sync.Map // Sequence → id
		var last atomic.Uint64
		ended := make(chan struct{})
		var readers sync.WaitGroup
		for range 3 {
			readers.Add(1)
			go func() {
				defer readers.Done()
				for at := engine.Sequence(1); ; {
					v, ok := placed.Load(at)
					switch {
					case !ok && uint64(at) <= last.Load():
						at++
						continue
					case !ok:
						select {
						case <-ended:
							return
						case <-time.After(10 * time.Microsecond):
						}
						continue
					case x.History.Sequence() < at:
						runtime.Gosched() // for whom it waits
						continue
					}
					_, known, seen, err := x.History.Past(v.(engine.OrderID))
					if !known || seen < at || err != nil {
						t.Errorf("order of Sequence %d: known %v at %d: %v", at, known, seen, err)
						return
					}
					at++
				}
			}()
		}
		for range frames {
			f := m.frame(20)
			for i := range f.Commands {
				if o := m.orders[f.Commands[i].ID]; o != nil &&
					o.Sequence == f.First+engine.Sequence(i) {
					placed.Store(o.Sequence, o.ID)
				}
			}
			last.Store(uint64(f.Last()))
			if err := j.Append(f); err != nil {
				t.Fatal(err)
			}
			if err := j.Wait(f.No); err != nil {
				t.Fatal(err)
			}
		}
		mustEqual(t, x, m)
		close(ended)
		readers.Wait()
		await(t, "the scan's end", func() bool { return x.fold.filter.complete.Load() })
		mustEqual(t, x, m)
		stop()
	}
}
