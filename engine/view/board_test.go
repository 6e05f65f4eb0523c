package view

import (
	"fmt"
	"runtime"
	"strings"
	"testing"

	"clobd/engine"
)

// level is one line of a side, as Levels reports it.
type level struct {
	price engine.Price
	size  engine.Size
}

func levelsOf(s *Snapshot, o engine.Outcome, side engine.Side) []level {
	var out []level
	s.Levels(o, side, func(p engine.Price, z engine.Size) bool {
		out = append(out, level{p, z})
		return true
	})
	return out
}

// checkSide compares one side of a Snapshot with the model.
func (n *naive) checkSide(t *testing.T, s *Snapshot, o engine.Outcome, side engine.Side) {
	t.Helper()
	want, got := n.levels(o, side), levelsOf(s, o, side)
	if len(got) != len(want) || s.Depth(o, side) != len(want) {
		t.Fatalf("market %d outcome %d side %d: %d levels, depth %d, want %d",
			n.no, o, side, len(got), s.Depth(o, side), len(want))
	}
	best := engine.Price(0)
	for i, l := range got {
		if want[l.price] != l.size {
			t.Fatalf("market %d outcome %d side %d: %d at %d, want %d",
				n.no, o, side, l.size, l.price, want[l.price])
		}
		if i == 0 {
			best = l.price
			continue
		}
		if worse := l.price < got[i-1].price; worse != (side == engine.Buy) {
			t.Fatalf("market %d side %d: %d follows %d", n.no, side, l.price, got[i-1].price)
		}
	}
	bid, ask := s.Best(o)
	if p := [2]engine.Price{bid, ask}[side]; p != best {
		t.Fatalf("market %d outcome %d side %d: best %d, first level %d", n.no, o, side, p, best)
	}
}

// checkMarket compares everything that is published of one market with the model.
func checkMarket(t *testing.T, b *Board, n *naive) *Snapshot {
	t.Helper()
	s := b.Condition(n.list.Condition)
	m := b.Directory.Market(n.no)
	want := Market{n.no, n.list, n.state, n.mode, n.payout, n.ends[0], n.ends[1]}
	if s == nil || s.Market != m || *m != want {
		t.Fatalf("market %d: snapshot %v, row %+v", n.no, s, m)
	}
	if s.Sequence != n.seq {
		t.Fatalf("market %d: Sequence %d, want %d", n.no, s.Sequence, n.seq)
	}
	for o := engine.Outcome(0); o < 2; o++ {
		got, outcome, ok := b.Book(n.list.Tokens[o])
		row, same, known := b.Directory.Token(n.list.Tokens[o])
		if got != s || outcome != o || !ok || row != m || same != o || !known {
			t.Fatalf("market %d: token %d leads to %v, %d", n.no, o, got, outcome)
		}
		n.checkSide(t, s, o, engine.Buy)
		n.checkSide(t, s, o, engine.Sell)
		price, side, traded := s.Last(o)
		want, taker := n.price, n.side
		if o != n.out {
			want, taker = engine.PriceOne-want, taker.Other()
		}
		if traded != n.traded || traded && (price != want || side != taker) {
			t.Fatalf("market %d outcome %d: last %d side %d, want %d side %d",
				n.no, o, price, side, want, taker)
		}
	}
	return s
}

func checkWallets(t *testing.T, b *Board, w *world) {
	t.Helper()
	if m := b.Directory.Mode(); m != w.mode {
		t.Fatalf("mode %d, want %d", m, w.mode)
	}
	for no := engine.WalletNo(1); uint32(no) <= w.wallets; no++ {
		a, known := b.Directory.Address(no)
		back, found := b.Directory.Wallet(addressOf(no))
		if !known || !found || a != addressOf(no) || back != no {
			t.Fatalf("wallet %d: address %x, found as %d", no, a, back)
		}
		if o := b.Directory.Owner(no); o != w.owners[no] {
			t.Fatalf("wallet %d: owner %d, want %d", no, o, w.owners[no])
		}
		if s := b.Directory.LastNamed(no); s != w.touched[no] {
			t.Fatalf("wallet %d: touched at %d, want %d", no, s, w.touched[no])
		}
	}
}

// TestModel publishes random frames and compares the Board with the naive books after each. Old
// Snapshots are kept and must print the same at the end.
func TestModel(t *testing.T) {
	type printed struct {
		snapshot *Snapshot
		text     string
	}
	for seed := uint64(1); seed <= 6; seed++ {
		w, b := newWorld(seed), NewBoard()
		var old []printed
		for i := range 400 {
			f := w.random(1 + w.rng.IntN(30))
			b.Publish(f)
			if b.Sequence() != f.Last() {
				t.Fatalf("Sequence %d, want %d", b.Sequence(), f.Last())
			}
			for _, n := range w.markets {
				s := checkMarket(t, b, n)
				if s.Sequence == f.Last() && s.Time != f.Time {
					t.Fatalf("Time %d, want %d", s.Time, f.Time)
				}
				if i%50 == 0 {
					old = append(old, printed{s, written(s)})
				}
			}
		}
		checkWallets(t, b, w)
		for _, k := range old {
			if now := written(k.snapshot); now != k.text {
				t.Fatalf("a published Snapshot changed from\n%s to\n%s", k.text, now)
			}
		}
		checkCounters(t, b, w)
	}
}

func checkCounters(t *testing.T, b *Board, w *world) {
	t.Helper()
	c := b.Counters()
	if c.Frames != w.frames || c.Markets != uint32(len(w.markets)) || c.Wallets != w.wallets {
		t.Fatalf("counters %+v, want %d frames, %d markets, %d wallets",
			c, w.frames, len(w.markets), w.wallets)
	}
}

func written(s *Snapshot) string {
	p, side, ok := s.Last(0)
	return fmt.Sprintln(s.Sequence, s.Time, p, side, ok, *s.Market,
		levelsOf(s, 0, engine.Buy), levelsOf(s, 0, engine.Sell))
}

// TestDrained finds nothing left of a book that was filled and emptied again.
func TestDrained(t *testing.T) {
	w, b := newWorld(1), NewBoard()
	f := w.begin()
	f.list(1, 1, engine.Open)
	f.deposit(1)
	for p := engine.Price(1); p < engine.PriceOne; p += 7 {
		f.rest(1, resting{side: side(p), price: p, size: engine.Lot, wallet: 1})
	}
	b.Publish(f.end())
	checkMarket(t, b, w.markets[0])
	for len(w.markets[0].orders) > 0 {
		f = w.begin()
		for i := 0; i < 300 && len(w.markets[0].orders) > 0; i++ {
			f.cancel(1, w.rng.IntN(len(w.markets[0].orders)))
		}
		b.Publish(f.end())
		s := checkMarket(t, b, w.markets[0])
		for g, grp := range s.ladder.groups {
			checkGroup(t, grp, s.ladder, g)
		}
	}
	if s := b.Condition(conditionOf(1)); s.ladder != &empty {
		t.Fatal("an empty book keeps a ladder of its own")
	}
	if empty != (ladder{}) {
		t.Fatal("the shared empty ladder was written")
	}
}

// side puts everything below one half on the bids.
func side(p engine.Price) engine.Side {
	if p < engine.PriceOne/2 {
		return engine.Buy
	}
	return engine.Sell
}

// checkGroup finds no group and no chunk without a level, and no bit without a size.
func checkGroup(t *testing.T, grp *group, l *ladder, g int) {
	t.Helper()
	if any := (l.any[0]|l.any[1])&(1<<g) != 0; any != (grp != nil) {
		t.Fatalf("group %d: bit %v, group %v", g, any, grp != nil)
	}
	if grp == nil {
		return
	}
	for c, sizes := range grp.chunks {
		live := grp.live[0][c] | grp.live[1][c]
		if (live != 0) != (sizes != nil) {
			t.Fatalf("group %d chunk %d: bits %x, chunk %v", g, c, live, sizes != nil)
		}
		for i := 0; sizes != nil && i < chunkLevels; i++ {
			if (live>>i&1 != 0) != (sizes[i] > 0) {
				t.Fatalf("group %d chunk %d level %d: size %d", g, c, i, sizes[i])
			}
		}
	}
}

// TestShared counts what one order costs: one chunk, everything else is the old Snapshot's.
func TestShared(t *testing.T) {
	b, w := full(1)
	before := b.Condition(conditionOf(1))
	chunks := b.Counters().Chunks
	f := w.begin()
	f.rest(1, resting{side: engine.Buy, price: 100, size: engine.Lot, wallet: 1})
	f.rest(1, resting{side: engine.Buy, price: 101, size: engine.Lot, wallet: 1})
	f.rest(1, resting{outcome: 1, side: engine.Sell, price: 9_900, size: engine.Lot, wallet: 1})
	b.Publish(f.end())
	after := b.Condition(conditionOf(1))
	if n := b.Counters().Chunks - chunks; n != 1 {
		t.Fatalf("three orders in one chunk copied %d chunks", n)
	}
	if before == after || before.ladder == after.ladder {
		t.Fatal("the Snapshot was changed in place")
	}
	for g := range after.ladder.groups {
		if same := before.ladder.groups[g] == after.ladder.groups[g]; same != (g != 0) {
			t.Fatalf("group %d shared: %v", g, same)
		}
	}
	for c := range after.ladder.groups[0].chunks {
		same := before.ladder.groups[0].chunks[c] == after.ladder.groups[0].chunks[c]
		if same != (c != 1) {
			t.Fatalf("chunk %d shared: %v", c, same)
		}
	}
}

// full is a Board with one market in which every price has a level.
func full(tick engine.Price) (*Board, *world) {
	w, b := newWorld(1), NewBoard()
	f := w.begin()
	f.list(1, tick, engine.Open)
	f.deposit(1)
	for p := tick; p < engine.PriceOne; p += tick {
		f.rest(1, resting{side: side(p), price: p, size: 10 * engine.Lot, wallet: 1})
	}
	b.Publish(f.end())
	return b, w
}

// TestListedAgain keeps the levels and swaps the row.
func TestListedAgain(t *testing.T) {
	b, w := full(100)
	before := b.Condition(conditionOf(1))
	f := w.begin()
	f.list(1, 100, engine.Unopened)
	b.Publish(f.end())
	after := checkMarket(t, b, w.markets[0])
	if after == before || after.ladder != before.ladder || before.Market.State != engine.Open {
		t.Fatal("listing again must make a new Snapshot of the same levels")
	}
	if c := b.Counters(); c.Markets != 1 {
		t.Fatalf("%d markets", c.Markets)
	}
}

func TestUnknown(t *testing.T) {
	b, _ := full(100)
	if s, _, ok := b.Book(tokenOf(2, 0)); ok || s != nil {
		t.Fatal("unknown token has a book")
	}
	d := b.Directory
	if b.Condition(conditionOf(2)) != nil || d.Condition(conditionOf(2)) != nil {
		t.Fatal("unknown condition has a book")
	}
	for _, no := range []engine.MarketNo{0, 2, pageRows, 1 << 31} {
		if d.Market(no) != nil {
			t.Fatalf("market %d exists", no)
		}
	}
	for _, no := range []engine.WalletNo{0, 2, pageRows, 1<<32 - 1} {
		_, ok := d.Address(no)
		if ok || d.Owner(no) != 0 || d.LastNamed(no) != 0 {
			t.Fatalf("wallet %d exists", no)
		}
	}
	if _, ok := d.Wallet(engine.Address{}); ok {
		t.Fatal("the zero address has a wallet")
	}
}

// TestBugs publishes what no Exchange can produce.
func TestBugs(t *testing.T) {
	at := func(k engine.EventKind, s engine.Side, p engine.Price, size engine.Size) engine.Event {
		return engine.Event{Kind: k, Market: 1, Side: s, Price: p, Size: size, Remaining: size}
	}
	other, twin := listingOf(1, 10), listingOf(9, 100)
	twin.Tokens[1] = tokenOf(1, 0)
	listed := func(no engine.MarketNo) engine.Event {
		return engine.Event{Kind: engine.Listed, Market: no, State: engine.Open}
	}
	deposited := engine.Event{Kind: engine.Deposited, Wallet: 1}
	tests := map[string]struct {
		command engine.Command
		event   engine.Event
	}{
		"changes by":    {event: at(engine.Cancelled, engine.Buy, 100, 11*engine.Lot)},
		"changes by -1": {event: at(engine.Filled, engine.Sell, 9_900, 11*engine.Lot)},
		"both bids":     {event: at(engine.Placed, engine.Sell, 100, engine.Lot)},
		"no price 150":  {event: at(engine.Placed, engine.Buy, 150, engine.Lot)},
		"no price 0":    {event: at(engine.Placed, engine.Buy, 0, engine.Lot)},
		"not listed":    {event: engine.Event{Kind: engine.Placed, Market: 2, Price: 100}},
		"another one":   {engine.Command{Listing: &other}, listed(1)},
		"a token of":    {engine.Command{Listing: &twin}, listed(2)},
		"after 1":       {engine.Command{Listing: &twin}, listed(3)},
		"two addresses": {engine.Command{Address: addressOf(2)}, deposited},
		"two numbers": {engine.Command{Address: addressOf(1)},
			engine.Event{Kind: engine.Deposited, Wallet: 2}},
		"numbered after": {engine.Command{Address: addressOf(9)},
			engine.Event{Kind: engine.Deposited, Wallet: 9}},
	}
	for want, x := range tests {
		t.Run(want, func(t *testing.T) {
			b, w := full(100)
			f := w.begin()
			f.add(x.command, x.event)
			f.f.First = w.seq + 1
			mustPanic(t, want, func() { b.Publish(f.f) })
		})
	}
	t.Run("gap", func(t *testing.T) {
		b, w := full(100)
		w.seq++
		f := w.begin()
		f.deposit(2)
		mustPanic(t, "starts at", func() { b.Publish(f.end()) })
	})
	t.Run("crossed", func(t *testing.T) {
		b, w := full(100)
		f := w.begin()
		f.add(engine.Command{}, at(engine.Cancelled, engine.Sell, 9_900, 10*engine.Lot))
		f.add(engine.Command{}, at(engine.Placed, engine.Buy, 9_900, engine.Lot))
		mustPanic(t, "is crossed", func() { b.Publish(f.end()) })
	})
}

func mustPanic(t *testing.T, want string, do func()) {
	t.Helper()
	defer func() {
		text, _ := recover().(string)
		if !strings.HasPrefix(text, "BUG: ") || !strings.Contains(text, want) {
			t.Fatalf("panic %q, want BUG … %q", text, want)
		}
	}()
	do()
}

// TestIdleMarkets lists as many markets as the largest public catalog has and weighs them.
func TestIdleMarkets(t *testing.T) {
	const markets = 165_000
	heap := func() uint64 {
		var m runtime.MemStats
		runtime.GC()
		runtime.GC()
		runtime.ReadMemStats(&m)
		return m.HeapAlloc
	}
	before := heap()
	b, w := NewBoard(), newWorld(1)
	for no := engine.MarketNo(1); no <= markets; {
		f := w.begin()
		for range min(engine.FrameCommands, markets-no+1) {
			l := listingOf(no, 100)
			f.add(engine.Command{Kind: engine.List, Listing: &l},
				engine.Event{Kind: engine.Listed, Market: no, State: engine.Open})
			no++
		}
		w.seq = f.f.Last()
		b.Publish(f.f)
	}
	grown := heap() - before
	t.Logf("%d idle markets: %d MB, %d bytes each", markets, grown>>20, grown/markets)
	if grown > 100e6 {
		t.Fatalf("%d idle markets take %d bytes", markets, grown)
	}
	for no := engine.MarketNo(1); no <= markets; no += 9_973 {
		s, o, ok := b.Book(tokenOf(no, 1))
		if !ok || o != 1 || s.Market.No != no || s.ladder != &empty {
			t.Fatalf("market %d is not found", no)
		}
	}
	runtime.KeepAlive(b)
}

// TestChanges: whatever changes a market but its book counts as a change, and is visible by then;
// orders do not count.
func TestChanges(t *testing.T) {
	b, w := full(100)
	seen := b.Counters()
	f := w.begin()
	f.rest(1, resting{side: engine.Buy, price: 100, size: engine.Lot, wallet: 1})
	b.Publish(f.end())
	now := b.Counters()
	if now.Changes != seen.Changes || now.Snapshots == seen.Snapshots {
		t.Errorf("an order: %+v, before %+v", now, seen)
	}
	changes := map[string]engine.Event{
		"a state":       {Kind: engine.StateChanged, Market: 1, State: engine.Paused},
		"a mode":        {Kind: engine.ModeSet, Market: 1, Mode: engine.CancelOnly},
		"a mode of all": {Kind: engine.ModeSet, Mode: engine.CancelOnly},
		"a resolution":  {Kind: engine.Resolved, Market: 1, Price: engine.PriceOne},
	}
	for name, e := range changes {
		before := b.Counters().Changes
		b.control(&engine.Command{}, &e)
		if b.Counters().Changes == before {
			t.Errorf("%s does not count", name)
		}
	}
}
