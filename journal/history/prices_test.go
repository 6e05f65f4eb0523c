package history

import (
	"errors"
	"slices"
	"testing"
	"time"

	"clobd/engine"
	"clobd/journal"

	"github.com/cockroachdb/pebble/v2"
	"github.com/cockroachdb/pebble/v2/vfs"
)

var priceSteps = [...]time.Duration{time.Minute, 5 * time.Minute, 30 * time.Minute,
	180 * time.Minute, 720 * time.Minute}

// mustEqualPrices compares a market's prices in some windows, step by step.
func mustEqualPrices(t *testing.T, x *Index, w *expectation, no engine.MarketNo) {
	t.Helper()
	for _, step := range priceSteps {
		from := modelStart - 7_000_000 + engine.Time(w.r.Int64N(int64(w.now-modelStart)+9_000_000))
		to := from + engine.Time(w.r.Int64N(50*step.Milliseconds()))
		var want []PricePoint
		by := engine.Time(step.Milliseconds())
		for at := (from + by - 1) / by * by; at <= to; at += by {
			if twice, known := w.at(no, at-1); known {
				want = append(want, PricePoint{at, twice})
			}
		}
		if twice, known := w.at(no, to/minute*minute-1); known && to%by != 0 {
			want = append(want, PricePoint{to, twice})
		}
		got, err := x.History.Prices(no, from, to, step)
		if err != nil || !slices.Equal(got, want) {
			t.Fatalf("market %d, every %v in [%d, %d]: %v\n%v, want\n%v", no, step, from, to, err, got,
				want)
		}
	}
}

// priceTest folds Events that no engine made, so that a test can say what happens when.
type priceTest struct {
	t *testing.T
	x *Index
}

// newPriceTest opens an index past its empty journal.
func newPriceTest(t *testing.T) *priceTest {
	t.Helper()
	j := open(t, journal.Options{Dir: "data", FS: vfs.NewMem(), Async: true})
	x, err := openIndex(j, Options{})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		shut(t, x)
		shut(t, j)
	})
	return &priceTest{t, x}
}

// frame folds the live prices and the market's side of a frame.
func (s *priceTest) frame(at engine.Time, events ...engine.Event) {
	s.t.Helper()
	for i := range events {
		events[i].Market = 1
		c := engine.Command{Kind: engine.Place, Market: 1}
		if err := s.x.fold.markets.command(s.x.fold.batch, &c, at, events[i:i+1]); err != nil {
			s.t.Fatal(err)
		}
	}
	s.x.fold.markets.frame(at)
}

// TestPricesByHand: a midpoint, a one-sided book before and after the first trade, and a payout.
// Two changes in a minute count as the last one. Both outcomes make one set of live prices.
func TestPricesByHand(t *testing.T) {
	s := newPriceTest(t)
	const hour, lot = 60 * minute, engine.Lot
	placed := func(side engine.Side, o engine.Outcome, p engine.Price) engine.Event {
		return engine.Event{Kind: engine.Placed, Side: side, Outcome: o, Price: p, Remaining: lot}
	}
	cancelled := func(e engine.Event) engine.Event {
		e.Kind = engine.Cancelled
		return e
	}
	bid, ask := placed(engine.Buy, 0, 4000), placed(engine.Buy, 1, 5500) // an ask of 0.45
	s.frame(hour, bid)                                                   // nothing to know yet
	s.frame(hour+5*minute+1, ask, placed(engine.Sell, 0, 4700))
	s.frame(hour+5*minute+2, placed(engine.Sell, 1, 5999)) // a bid of 0.4001
	if err := s.x.fold.commit(); err != nil {
		t.Fatal(err)
	}
	s.frame(hour+5*minute+3, cancelled(placed(engine.Sell, 1, 5999)), placed(engine.Buy, 0, 4100))
	s.frame(hour+7*minute, cancelled(ask)) // 0.41 to 0.47
	s.frame(hour+9*minute,
		engine.Event{Kind: engine.Filled, Side: engine.Sell, Price: 4700, Size: lot})
	s.frame(hour+59*minute, engine.Event{Kind: engine.Resolved, Price: 10_000})
	if err := s.x.fold.commit(); err != nil {
		t.Fatal(err)
	}
	point := func(after engine.Time, twice uint32) PricePoint {
		return PricePoint{hour + after, twice}
	}
	for _, c := range []struct {
		from, to engine.Time
		step     time.Duration
		want     []PricePoint
	}{
		{0, hour + 5*minute, time.Minute, nil},
		{0, hour + 5*minute + 30_000, time.Minute, nil}, // the minute has yet to end
		{0, hour + 6*minute, 5 * time.Minute, []PricePoint{point(6*minute, 8600)}},
		{0, minute - 1, time.Minute, nil},
		{0, hour + 9*minute + 1, time.Minute, []PricePoint{point(6*minute, 8600), point(7*minute, 8600),
			point(8*minute, 8800), point(9*minute, 8800), point(9*minute+1, 8800)}},
		{0, hour + 9*minute + 59_999, 720 * time.Minute,
			[]PricePoint{point(9*minute+59_999, 8800)}},
		{0, hour + 10*minute, 720 * time.Minute, []PricePoint{point(10*minute, 9400)}},
		{hour + 7*minute, hour + 11*minute, 5 * time.Minute, []PricePoint{point(10*minute, 9400),
			point(11*minute, 9400)}},
		{0, hour + 90*minute, 30 * time.Minute, []PricePoint{point(30*minute, 9400),
			point(60*minute, 20_000), point(90*minute, 20_000)}},
		{0, 3 * hour, 180 * time.Minute, []PricePoint{point(2*hour, 20_000)}},
		{2*hour + 1, 2*hour + 2, 720 * time.Minute, []PricePoint{point(hour+2, 20_000)}},
		{2 * hour, hour, time.Minute, nil},
	} {
		got, err := s.x.History.Prices(1, c.from, c.to, c.step)
		if err != nil || !slices.Equal(got, c.want) {
			t.Errorf("[%d, %d] every %v: %v %v, want %v", c.from, c.to, c.step, got, err, c.want)
		}
	}
	h := s.x.History
	if _, err := h.Prices(1, 0, hour, time.Hour); !errors.Is(err, errSteps) {
		t.Errorf("every hour: %v", err)
	}
	if _, err := h.Prices(1, 0, (maxPoints+100)*minute, time.Minute); !errors.Is(err, errSteps) {
		t.Errorf("too many: %v", err)
	}
	if all, err := h.Prices(2, 0, 1<<62, time.Minute); err != nil || len(all) != 0 {
		t.Errorf("an unknown market: %v %v", all, err)
	}
}

// TestPricesRefuseToGuess: an order leaves that never came.
func TestPricesRefuseToGuess(t *testing.T) {
	s := newPriceTest(t)
	s.frame(minute, engine.Event{Kind: engine.Placed, Price: 4000, Remaining: engine.Lot})
	e := engine.Event{Kind: engine.Cancelled, Market: 1, Price: 4100}
	err := s.x.fold.markets.command(s.x.fold.batch, &engine.Command{Kind: engine.Cancel}, minute,
		[]engine.Event{e})
	if !errors.Is(err, errContradiction) {
		t.Error(err)
	}
}

// TestChartsReadFewPoints: a chart reads as much as it has points, not all minutes that are stored,
// and says the same.
func TestChartsReadFewPoints(t *testing.T) {
	s := newPriceTest(t)
	const days = 20
	start := 1000 * 24 * 60 * minute
	var all []uint32 // by minute
	for i := range engine.Time(days * 24 * 60) {
		price := engine.Price(1000 + i*i%7919)
		s.frame(start+i*minute, engine.Event{Kind: engine.Filled, Price: price, Size: engine.Lot,
			Remaining: engine.Lot})
		all = append(all, 2*uint32(price))
	}
	if err := s.x.fold.commit(); err != nil {
		t.Fatal(err)
	}
	end := start + engine.Time(len(all))*minute
	for _, step := range priceSteps {
		by := engine.Time(step.Milliseconds())
		for _, to := range []engine.Time{end, end - 1, end - 7*60*minute - 1, end + 50*minute} {
			it, err := points(s.x.db, 1, minuteOf(to))
			if err != nil {
				t.Fatal(err)
			}
			it.First()
			p := sampler{at: start, by: by}
			if err := p.walk(it, 1, to); err != nil {
				t.Fatal(err)
			}
			stats := it.Stats()
			shut(t, it)
			reads := stats.ForwardStepCount[pebble.InterfaceCall] +
				stats.ReverseSeekCount[pebble.InterfaceCall]
			if most := (nearPoints + 1) * (len(p.points) + 2); reads > most {
				t.Errorf("every %v: %d reads for %d points", step, reads, len(p.points))
			}
			for _, q := range p.points {
				if i := min(int((q.Time-start)/minute), len(all)) - 1; q.Twice != all[i] {
					t.Fatalf("every %v: %v, want %d", step, q, all[i])
				}
			}
			if n := int((to - start) / by); len(p.points) != n && len(p.points) != n-1 {
				t.Errorf("every %v to %d: %d points, want %d", step, to, len(p.points), n)
			}
			if last := all[min(int((to-start)/minute), len(all)-1)]; p.twice != last {
				t.Errorf("every %v to %d: ends with %d, want %d", step, to, p.twice, last)
			}
		}
	}
	at, known, err := s.x.History.PricedSince(1)
	if err != nil || !known || at != start+minute {
		t.Errorf("first price at %d, %v: %v", at, known, err)
	}
	if _, known, err := s.x.History.PricedSince(2); known || err != nil {
		t.Errorf("a market without a price has one: %v", err)
	}
}
