package engine

import "testing"

// TestApplyAllocatesNothing: in steady state, when the window has run over and records are used
// again, placing, cancelling and filling allocate nothing.
func TestApplyAllocatesNothing(t *testing.T) {
	if auditing {
		t.Skip("the audit allocates")
	}
	x := newExchange(1, 1<<10)
	m := newMixed(x, 3)
	warm := m.stream(20_000)
	events, seq := make([]Event, 0, 4096), Sequence(1<<20)
	run := func(c *Command) {
		seq++
		events = x.Apply(c, seq, 1, events[:0])
	}
	for i := range warm {
		run(&warm[i])
	}
	all := m.stream(10_000)
	var sum fills
	at := 0
	got := testing.AllocsPerRun(len(all)-1, func() {
		run(&all[at])
		sum.add(events)
		at++
	})
	if got != 0 || sum.count < 100 {
		t.Errorf("%v allocations per Apply, %d fills", got, sum.count)
	}
}

// TestTypesAllocateNothing: the same for every order type, with fees, expiries and orders that meet
// their own wallet.
func TestTypesAllocateNothing(t *testing.T) {
	if auditing {
		t.Skip("the audit allocates")
	}
	x := newExchange(1, 1<<10)
	m := newVaried(x, 3)
	all := m.stream(40_000)
	events, at := make([]Event, 0, 4096), 0
	var ends [lastEvent + 1]int
	next := func() {
		events = x.Apply(&all[at], Sequence(1<<20+at), Time(at), events[:0])
		ends[events[len(events)-1].Kind]++
		at++
	}
	for range 30_000 {
		next()
	}
	ends = [lastEvent + 1]int{}
	got := testing.AllocsPerRun(9_990, next)
	for _, kind := range []EventKind{Placed, Completed, Cancelled, Rejected, Advanced} {
		if ends[kind] < 50 {
			t.Errorf("%d times Event %d", ends[kind], kind)
		}
	}
	if got != 0 || x.fees == 0 {
		t.Errorf("%v allocations per Apply, fees %v", got, x.fees)
	}
}

// TestReplayAllocatesNothing: decoding into the same Frame and replaying allocate nothing either,
// and Encode makes the frame's bytes and no more.
func TestReplayAllocatesNothing(t *testing.T) {
	if auditing {
		t.Skip("the audit allocates")
	}
	frames, setup := mixedFrames(120)
	x, f, at := setup(), Frame{}, 0
	next := func() {
		if err := DecodeFrame(frames[at], &f); err != nil {
			t.Fatal(err)
		}
		if err := x.ApplyFrame(&f); err != nil {
			t.Fatal(err)
		}
		at++
	}
	for range 60 {
		next()
	}
	// Books and tables still grow now and then: fewer than one allocation a frame.
	if got := testing.AllocsPerRun(50, next); got >= 1 {
		t.Errorf("%v allocations per replayed frame", got)
	}
	f.Encode(f.Prev)
	if got := testing.AllocsPerRun(50, func() { f.Encode(f.Prev) }); got != 1 {
		t.Errorf("%v allocations per Encode", got)
	}
}
