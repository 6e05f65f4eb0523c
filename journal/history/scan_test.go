package history

import (
	"errors"
	"reflect"
	"slices"
	"testing"

	"clobd/engine"
	"clobd/journal"

	"github.com/cockroachdb/pebble/v2"
	"github.com/cockroachdb/pebble/v2/vfs"
)

// scanned are the rows that a Scan meets.
func scanned(t *testing.T, h *History, s *Scan) (trades []TradeRow, moves []MoveRow, whole bool) {
	t.Helper()
	whole, err := h.Scan(s, func(r *TradeRow, m *MoveRow) bool {
		if m != nil {
			moves = append(moves, *m)
			return true
		}
		one := *r
		one.Makers = slices.Clone(r.Makers)
		trades = append(trades, one)
		return true
	})
	if err != nil {
		t.Fatal(err)
	}
	return trades, moves, whole
}

// wants says whether a Scan must meet a trade.
func (s *Scan) wants(t *TradeRow) bool {
	took := len(s.Owners) == 0 || slices.Contains(s.Owners, t.Owner)
	for i := range t.Makers {
		took = took || slices.Contains(s.Owners, t.Makers[i].Owner)
	}
	return took && (len(s.Markets) == 0 || slices.Contains(s.Markets, t.Market))
}

// TestScan: walks of everybody's trades, of one or two owners', and of some markets' are what the
// model says, in its order, however long they are and wherever their entries lie.
func TestScan(t *testing.T) {
	j, m := newJournal(t, vfs.NewMem(), 41)
	defer shut(t, j)
	wildly(m)
	x, stop := runTight(t, j, Options{})
	defer func() { stop() }()
	longest := 0
	for range 3 {
		m.write(t, j, 80, 120)
		if !x.History.Await(m.head.Sequence, soon) {
			t.Fatal("not caught up")
		}
		for _, s := range []Scan{
			{}, {Markets: []engine.MarketNo{2}}, {Markets: []engine.MarketNo{1, 3, 99}},
			{Owners: []engine.WalletNo{4}}, {Owners: []engine.WalletNo{1, 5}},
			{Owners: []engine.WalletNo{2, 3}, Markets: []engine.MarketNo{1, 4}},
			{Owners: []engine.WalletNo{77}}, {Wallet: 3, NoTrades: true},
		} {
			s.Limit = 1 << 30
			var want []TradeRow
			for _, r := range slices.Backward(m.trades) {
				if s.wants(&r) && !s.NoTrades {
					want = append(want, r)
				}
			}
			got, moves, whole := scanned(t, x.History, &s)
			check(t, Filter{}, want, got)
			if !whole || len(moves) > 0 {
				t.Fatalf("whole %v, %d moves", whole, len(moves))
			}
			longest = max(longest, len(got))
			if s.Limit = len(want) / 2; s.Limit == 0 {
				continue
			}
			got, _, whole = scanned(t, x.History, &s)
			if check(t, Filter{}, want[:s.Limit], got); whole {
				t.Fatal("half of it is not all")
			}
		}
		stop()
		x, stop = runTight(t, j, Options{})
	}
	if longest < 2*maxEntries {
		t.Errorf("the longest walk met only %d trades", longest)
	}
}

// TestScanTimes: bounds of time leave out nothing that is within them, and little else.
func TestScanTimes(t *testing.T) {
	j, m := newJournal(t, vfs.NewMem(), 42)
	defer shut(t, j)
	x, stop := runTight(t, j, Options{})
	defer stop()
	wildly(m).write(t, j, 300, 10)
	if !x.History.Await(m.head.Sequence, soon) {
		t.Fatal("not caught up")
	}
	for range 50 {
		from := m.trades[m.r.IntN(len(m.trades))].Time
		s := Scan{Limit: 1 << 30, After: from, Before: from + engine.Time(m.r.IntN(200))}
		got, _, _ := scanned(t, x.History, &s)
		for _, r := range m.trades {
			met := slices.ContainsFunc(got, func(g TradeRow) bool { return g.ID == r.ID })
			within := r.Time > s.After && r.Time < s.Before
			if within && !met || met && (r.Time < s.After-2*markEvery || r.Time > s.Before+2*markEvery) {
				t.Fatalf("trade at %d between %d and %d: met %v", r.Time, s.After, s.Before, met)
			}
		}
	}
}

// TestMoves: splits, merges and redemptions of each wallet are met, newest first, and by the id of
// the request, also by an index that was opened again.
func TestMoves(t *testing.T) {
	j := open(t, journal.Options{Dir: "data", FS: vfs.NewMem(), Async: true})
	defer shut(t, j)
	w := newExpectation(11)
	x, stop := run(t, j, Options{})
	defer func() { stop() }()
	want := make(map[engine.WalletNo][]MoveRow)
	ids := make(map[engine.OrderID]engine.Sequence)
	kinds := make(map[engine.EventKind]int)
	for range 80 {
		f := w.frame(25)
		if err := errors.Join(j.Append(f), j.Wait(f.No)); err != nil {
			t.Fatal(err)
		}
		for i := range f.Commands {
			for _, e := range f.EventsOf(i) {
				r := MoveRow{Sequence: f.First + engine.Sequence(i), Time: f.Time, Kind: e.Kind,
					Wallet: e.Wallet, Market: e.Market, Tokens: [2]engine.Size{e.Size, e.Size},
					Cash: engine.Cash(e.Size)}
				switch e.Kind {
				case engine.Redeemed:
					r.Tokens = [2]engine.Size{engine.Size(e.Args[0]), engine.Size(e.Args[1])}
				case engine.Split, engine.Merged:
				default:
					continue
				}
				kinds[e.Kind]++
				ids[e.Order] = r.Sequence
				want[e.Wallet] = slices.Insert(want[e.Wallet], 0, r)
			}
		}
	}
	for range 2 {
		w.await(t, x)
		for id, want := range ids {
			at, known, seen, err := x.History.Request(id)
			if at != want || !known || seen != w.head.Sequence || err != nil {
				t.Fatalf("request %x: %d, %v, %d, %v, want %d", id, at, known, seen, err, want)
			}
		}
		if _, known, _, err := x.History.Request(engine.OrderID{31: 1}); known || err != nil {
			t.Fatalf("an id of nobody: %v, %v", known, err)
		}
		for wallet := engine.WalletNo(1); wallet <= modelWallets; wallet++ {
			_, got, whole := scanned(t, x.History, &Scan{Wallet: wallet, NoTrades: true, Limit: 1 << 30})
			if !whole || !reflect.DeepEqual(got, want[wallet]) {
				t.Fatalf("wallet %d moved %+v, want %+v", wallet, got, want[wallet])
			}
			trades, moves, _ := scanned(t, x.History, &Scan{Wallet: wallet, Limit: 1 << 30})
			if len(trades) == 0 || len(moves) != len(got) {
				t.Fatalf("%d trades and %d moves", len(trades), len(moves))
			}
		}
		stop()
		x, stop = run(t, j, Options{})
	}
	if min(kinds[engine.Split], kinds[engine.Merged], kinds[engine.Redeemed]) < 5 {
		t.Errorf("kinds: %v", kinds)
	}
}

// TestScanThatCannotBeRead: a damaged move is told, and that the index is closed.
func TestScanThatCannotBeRead(t *testing.T) {
	s := newPriceTest(t)
	h := s.x.History
	scan := func() error {
		_, err := h.Scan(&Scan{Wallet: 1, Limit: 5}, func(*TradeRow, *MoveRow) bool { return true })
		return err
	}
	if err := scan(); err != nil {
		t.Fatal(err)
	}
	key := moveKey(1, 5)
	if err := s.x.db.Set(key[:], []byte{0xff}, pebble.NoSync); err != nil {
		t.Fatal(err)
	}
	if err := scan(); !errors.Is(err, errRow) {
		t.Errorf("a damaged move: %v", err)
	}
	id := requestKey(&engine.OrderID{1})
	if err := s.x.db.Set(id[:], []byte{0xff}, pebble.NoSync); err != nil {
		t.Fatal(err)
	}
	if _, known, _, err := h.Request(engine.OrderID{1}); known || !errors.Is(err, errRow) {
		t.Errorf("a damaged request: %v, %v", known, err)
	}
	h.close()
	if err := scan(); !errors.Is(err, journal.ErrClosed) {
		t.Errorf("after Close: %v", err)
	}
}
