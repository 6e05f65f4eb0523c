package engine

import (
	"runtime"
	"runtime/debug"
	"testing"
	"time"
)

// mallocs counts the allocations of f. testing.AllocsPerRun rounds an average down, so it misses an
// allocation in every other run.
func mallocs(f func()) uint64 {
	defer debug.SetGCPercent(debug.SetGCPercent(-1))
	runtime.GC()
	time.Sleep(10 * time.Millisecond) // its own goroutines clean up what earlier tests left
	defer runtime.GOMAXPROCS(runtime.GOMAXPROCS(1))
	var before, after runtime.MemStats
	runtime.ReadMemStats(&before)
	f()
	runtime.ReadMemStats(&after)
	return after.Mallocs - before.Mallocs
}

// least returns the least of up to five counts and stops at 0. The runtime's own goroutines
// allocate now and then; an allocation of the engine occurs in every count.
func least(count func() uint64) uint64 {
	got := count()
	for range 4 {
		if got > 0 {
			got = min(got, count())
		}
	}
	return got
}

// cleared returns the Commands that empty all books, so that later Commands reuse records.
func (m *mixed) cleared() (all []Command) {
	for w := range WalletNo(m.wallets) {
		all = append(all, Command{Kind: CancelAll, Wallet: w + 1, Reason: ByOperator})
	}
	m.ids, m.owners = nil, nil
	return all
}

// stream draws the next n Commands.
type stream func(n int) []Command

// steady applies Commands to a fresh Exchange in three parts: first to grow, then to empty the
// books, then half as many to count their allocations, which must be 0.
func steady(t *testing.T, fresh func() (*Exchange, *mixed, stream)) (x *Exchange, ends []int) {
	t.Helper()
	if got := least(func() (n uint64) {
		x, ends, n = steadyOnce(fresh())
		return n
	}); got != 0 {
		t.Errorf("%d allocations", got)
	}
	return x, ends
}

func steadyOnce(x *Exchange, m *mixed, stream stream) (_ *Exchange, ends []int, allocs uint64) {
	const warm = 40_000
	all := append(stream(warm), m.cleared()...)
	begin := len(all)
	all = append(all, stream(warm/2)...)
	events := make([]Event, 0, 4096)
	ends = make([]int, lastEvent+1)
	run := func(from, to int) {
		for i := from; i < to; i++ {
			events = x.Apply(&all[i], Sequence(1<<20+i), Time(i), events[:0])
			for j := range events {
				ends[events[j].Kind]++
			}
		}
	}
	run(0, begin)
	clear(ends)
	allocs = mallocs(func() { run(begin, len(all)) })
	return x, ends, allocs
}

// TestApplyAllocatesNothing: Place, Cancel and fills allocate nothing in steady state: the window
// of placements is full, and records are reused.
func TestApplyAllocatesNothing(t *testing.T) {
	if auditing {
		t.Skip("the audit allocates")
	}
	_, ends := steady(t, func() (*Exchange, *mixed, stream) {
		x := newExchange(1, 1<<10)
		m := newMixed(x, 3)
		return x, m, m.stream
	})
	if ends[Filled] < 1000 || ends[Cancelled] < 1000 {
		t.Errorf("events %v", ends)
	}
}

// TestTypesAllocateNothing: the same for every order type, with fees, expiries and orders that meet
// their own wallet.
func TestTypesAllocateNothing(t *testing.T) {
	if auditing {
		t.Skip("the audit allocates")
	}
	x, ends := steady(t, func() (*Exchange, *mixed, stream) {
		x := newExchange(1, 1<<10)
		m := newVaried(x, 3)
		return x, m.mixed, m.stream
	})
	for _, kind := range []EventKind{Filled, Placed, Completed, Cancelled, Rejected, Advanced} {
		if ends[kind] < 100 {
			t.Errorf("%d times Event %d", ends[kind], kind)
		}
	}
	if x.fees == 0 {
		t.Error("no fees")
	}
}

// TestReplayAllocatesNothing: decoding into the same Frame and replaying allocate nothing either,
// and Encode makes the frame's bytes and no more.
func TestReplayAllocatesNothing(t *testing.T) {
	if auditing {
		t.Skip("the audit allocates")
	}
	x := newExchange(1, 1<<10)
	m := newMixed(x, 3)
	all := append(m.stream(20_000), m.cleared()...)
	warm := len(all)
	all = append(all, m.stream(5000)...)
	var frames [][]byte
	f := Frame{Engine: Version, First: 1<<20 + 1}
	for ; len(all) > 0; all = all[len(f.Commands):] {
		f.Commands, f.Events, f.Ends = all[:min(len(all), 100)], f.Events[:0], f.Ends[:0]
		for i := range f.Commands {
			f.Events = x.Apply(&f.Commands[i], f.First+Sequence(i), 1, f.Events)
			f.Ends = append(f.Ends, uint32(len(f.Events)))
		}
		f.Digest = x.Digest()
		f.Encode(f.Hash)
		frames = append(frames, f.Bytes)
		f.First += Sequence(len(f.Commands))
	}
	back := Frame{}
	run := func(twin *Exchange, frames [][]byte) {
		for _, b := range frames {
			if err := DecodeFrame(b, &back); err != nil {
				t.Fatal(err)
			}
			if err := twin.ApplyFrame(&back); err != nil {
				t.Fatal(err)
			}
		}
	}
	got := least(func() uint64 {
		twin := newExchange(2, 1<<10)
		newMixed(twin, 3)
		twin.last = 1 << 20
		run(twin, frames[:warm/100+1])
		return mallocs(func() { run(twin, frames[warm/100+1:]) })
	})
	if got != 0 || len(frames) < warm/100+40 {
		t.Errorf("%d allocations in %d replayed frames", got, len(frames)-warm/100-1)
	}
	back.Encode(back.Prev)
	got = least(func() uint64 {
		return mallocs(func() {
			for range 50 {
				back.Encode(back.Prev)
			}
		})
	})
	if got != 50 {
		t.Errorf("%d allocations in 50 times Encode", got)
	}
}
