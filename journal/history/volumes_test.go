package history

import (
	"math/rand/v2"
	"slices"
	"testing"

	"clobd/engine"
	"clobd/journal"

	"github.com/cockroachdb/pebble/v2/vfs"
)

// mustEqualVolumes compares what of a market's volume was traded before some times with a sum over
// all that takers paid.
func mustEqualVolumes(t *testing.T, x *Index, w *expectation, no engine.MarketNo) {
	t.Helper()
	at := []engine.Time{-1, modelStart, w.now, w.now + hour, w.now - 24*hour, 1 << 60}
	for range 10 {
		at = append(at, modelStart+engine.Time(w.r.Int64N(int64(w.now-modelStart)+1)))
	}
	want := make([]engine.Cash, len(at))
	for i, until := range at {
		for _, s := range w.sold[no] {
			if s.at/hour < until/hour {
				want[i] += engine.Cash(s.cash)
			}
		}
	}
	got, err := x.History.VolumesUntil(no, at)
	if err != nil || !slices.Equal(got, want) {
		t.Fatalf("market %d, volumes until %v: %v, want %v: %v", no, at, got, want, err)
	}
}

// TestVolumesByHand: trades in the same hour, at its very end, at the start of the next one and
// long after are where they belong, also while nothing of them is written yet; one key for each
// hour that is over.
func TestVolumesByHand(t *testing.T) {
	s := newPriceTest(t)
	const day = 24 * hour
	trade := func(at engine.Time, shares int) {
		s.frame(at, engine.Event{Kind: engine.Filled, Price: 5000, Remaining: engine.Lot,
			Size: engine.Size(2*shares) * engine.Unit})
	}
	check := func(at engine.Time, want int) {
		t.Helper()
		got, err := s.x.History.VolumesUntil(1, []engine.Time{at})
		if err != nil || got[0] != engine.Cash(want)*engine.Unit {
			t.Errorf("until hour %d: %v %v, want %d", at/hour, got, err, want)
		}
	}
	check(100*day, 0)
	trade(10*day+1, 1)
	trade(10*day+hour-1, 2)
	trade(10*day+hour, 4)
	check(100*day, 0) // the batch is not written
	if err := s.x.fold.commit(); err != nil {
		t.Fatal(err)
	}
	check(10*day+hour-1, 0)
	check(10*day+hour, 3)
	check(10*day+2*hour-1, 3)
	check(10*day+2*hour, 7)
	trade(30*day, 8)
	trade(30*day+5*hour, 16)
	trade(30*day+5*hour+7, 32)
	if err := s.x.fold.commit(); err != nil {
		t.Fatal(err)
	}
	for _, c := range []struct {
		at   engine.Time
		want int
	}{{10*day + hour, 3}, {10*day + 2*hour, 7}, {30 * day, 7}, {30*day + hour, 15},
		{30*day + 5*hour + 9, 15}, {30*day + 6*hour, 63}, {-hour, 0}, {1 << 61, 63}} {
		check(c.at, c.want)
	}
	keys := 0
	it, err := iterate(s.x.db, spaceVolume)
	if err != nil {
		t.Fatal(err)
	}
	defer shut(t, it)
	for ok := it.First(); ok; ok = it.Next() {
		keys++
	}
	if keys != 3 {
		t.Errorf("%d keys for 3 hours that are over", keys)
	}
}

// TestVolumesOverHours: trades at random hours, asked for while the index follows, after a restart
// and after it was made anew, are what a sum over all of them is.
func TestVolumesOverHours(t *testing.T) {
	for seed := range uint64(4) {
		j := open(t, journal.Options{Dir: "data", FS: vfs.NewMem(), Async: true})
		w := newExpectation(100 + seed)
		r := rand.New(rand.NewPCG(seed, 5))
		x, stop := run(t, j, Options{})
		check := func() {
			w.await(t, x)
			for no := engine.MarketNo(1); int(no) <= len(w.listed); no++ {
				mustEqualVolumes(t, x, w, no)
			}
		}
		for range 20 {
			w.now += engine.Time(r.Int64N(int64(hour) * (1 + r.Int64N(200)*r.Int64N(2))))
			w.write(t, j, 3, 40)
			if r.IntN(4) == 0 {
				stop()
				x, stop = run(t, j, Options{})
			}
			check()
		}
		before := money(t, x)
		stop()
		if err := j.Options.FS.RemoveAll("data/index"); err != nil {
			t.Fatal(err)
		}
		x, stop = run(t, j, Options{})
		check()
		if after := money(t, x); len(after) != len(before) {
			t.Fatalf("%d keys, made anew %d", len(before), len(after))
		}
		sold := 0
		for _, all := range w.sold {
			sold += len(all)
		}
		if sold < 100 {
			t.Fatalf("only %d trades", sold)
		}
		stop()
		shut(t, j)
	}
}
