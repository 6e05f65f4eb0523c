package history

import (
	"errors"
	"maps"
	"math/big"
	"slices"
	"testing"
	"time"

	"clobd/engine"
	"clobd/journal"

	"github.com/cockroachdb/pebble/v2"
	"github.com/cockroachdb/pebble/v2/vfs"
)

// moneySpaces are the key spaces of the ledger, of what was moved and of the prices.
const moneySpaces = "alphqxkn"

// money are all keys of those spaces, with their values.
func money(t *testing.T, x *Index) map[string]string {
	t.Helper()
	all := make(map[string]string)
	for _, space := range []byte(moneySpaces) {
		it, err := x.db.NewIter(&pebble.IterOptions{LowerBound: []byte{space},
			UpperBound: []byte{space + 1}})
		if err != nil {
			t.Fatal(err)
		}
		for ok := it.First(); ok; ok = it.Next() {
			all[string(it.Key())] = string(it.Value())
		}
		if err := it.Close(); err != nil {
			t.Fatal(err)
		}
	}
	return all
}

// await waits until the index has come to the end of the world.
func (w *expectation) await(t *testing.T, x *Index) {
	t.Helper()
	if !x.History.Await(w.head.Sequence, soon) {
		t.Fatalf("index at %d, journal at %d: %v", x.History.Sequence(), w.head.Sequence,
			x.History.Failed())
	}
}

// mustEqualWorld compares all that the index knows of wallets with the engine and with the plain
// reader.
func mustEqualWorld(t *testing.T, x *Index, w *expectation) {
	t.Helper()
	w.await(t, x)
	supply := make(map[expectedToken]engine.Size)
	var fees engine.Cash
	for wallet := engine.WalletNo(1); wallet <= modelWallets; wallet++ {
		total, held, err := x.History.Balance(wallet)
		wantTotal, wantHeld := w.probe(t, wallet, 0, 0)
		if err != nil || int64(total) != wantTotal || int64(held) != wantHeld {
			t.Fatalf("wallet %d has %d (%d), want %d (%d): %v", wallet, total, held, wantTotal,
				wantHeld, err)
		}
		rows, err := positions(x.History, wallet)
		if err != nil {
			t.Fatal(err)
		}
		cash := w.cash[wallet]
		for i := range rows {
			r := &rows[i]
			mustEqualPosition(t, w, r)
			one, err := x.History.Position(wallet, r.Market)
			if err != nil || one[r.Outcome] != *r {
				t.Fatalf("%+v alone, %+v among all: %v", one[r.Outcome], *r, err)
			}
			supply[expectedToken{0, r.Market, r.Outcome}] += r.Size
			fees += r.Fees
			cash += int64(r.Realized - r.Cost)
			cash += w.outside[expectedToken{wallet, r.Market, r.Outcome}]
		}
		if cash != int64(total) {
			t.Fatalf("wallet %d: its positions explain a balance of %d, it is %d", wallet, cash, total)
		}
	}
	if fees != w.fees {
		t.Fatalf("the positions paid fees of %d, taken were %d", fees, w.fees)
	}
	for no := engine.MarketNo(1); int(no) <= len(w.listed); no++ {
		mustEqualMarket(t, x, w, no)
		if _, over := w.payout[no]; over {
			continue // redeemed tokens are burnt one by one
		}
		a, b := supply[expectedToken{0, no, 0}]+w.external[no][0], supply[expectedToken{0, no, 1}]+
			w.external[no][1]
		if a != b {
			t.Fatalf("market %d: %d of outcome 0, %d of outcome 1", no, a, b)
		}
	}
}

// mustEqualPosition compares one row.
func mustEqualPosition(t *testing.T, w *expectation, r *PositionRow) {
	t.Helper()
	size, held := w.probe(t, r.Wallet, r.Market, r.Outcome)
	p := w.token(r.Wallet, r.Market, r.Outcome)
	if int64(r.Size) != size || int64(r.Reserved) != held || p.size != size {
		t.Fatalf("%+v: the engine has %d (%d)", *r, size, held)
	}
	got := [...]int64{int64(r.Bought), int64(r.Fees), int64(r.Redeemed), int64(r.Taken), int64(r.Made),
		int64(r.Cost - r.Realized)}
	want := [...]int64{p.bought, p.fees, p.redeemed, p.taken, p.made, p.paid - p.got}
	if got != want {
		t.Fatalf("%+v: %v, want %v", *r, got, want)
	}
	off := new(big.Rat).Sub(big.NewRat(int64(r.Cost), 1), p.cost)
	if off.Sign() < 0 || off.Cmp(big.NewRat(p.parted+1, 1)) > 0 {
		t.Fatalf("%+v: cost %s after %d partings", *r, p.cost.FloatString(3), p.parted)
	}
	if r.Size == 0 && (r.Cost != 0 || r.HeldFees != 0) || r.HeldFees < 0 || r.HeldFees > r.Cost ||
		r.Opened > r.Updated || r.Opened < modelStart || r.Updated > w.now || r.BoughtCash < 0 {
		t.Fatalf("%+v", *r)
	}
}

// mustEqualMarket compares holders, volume and prices of one market.
func mustEqualMarket(t *testing.T, x *Index, w *expectation, no engine.MarketNo) {
	t.Helper()
	var supply [2]engine.Size
	places := 0
	for o := range engine.Outcome(2) {
		all := w.holders(no, o)
		for i := range all {
			supply[o] += all[i].Size
			places++
		}
		for _, limit := range []int{1, 3, 100} {
			least := engine.Size(w.r.IntN(20 * engine.Unit))
			want := slices.DeleteFunc(slices.Clone(all), func(x Holder) bool { return x.Size < least })
			want = want[:min(limit, len(want))]
			got, err := x.History.Holders(no, o, limit, least)
			if err != nil || !slices.Equal(got, want) {
				t.Fatalf("market %d, outcome %d: holders %v, want %v: %v", no, o, got, want, err)
			}
		}
	}
	if got, n, err := x.History.Supply(no); err != nil || got != supply || n != places {
		t.Fatalf("market %d: %v of %d, want %v of %d: %v", no, got, n, supply, places, err)
	}
	cash, trades, err := x.History.Volume(no)
	if err != nil || int64(cash) != w.volume[no] || trades != w.trades[no] {
		t.Fatalf("market %d: volume %d in %d trades, want %d in %d: %v", no, cash, trades, w.volume[no],
			w.trades[no], err)
	}
	mustEqualVolumes(t, x, w, no)
	mustEqualPrices(t, x, w, no)
}

func TestPositionsEqualTheEngine(t *testing.T) {
	kinds, settled := make(map[engine.EventKind]int), make(map[engine.Settlement]int)
	for seed := range uint64(6) {
		j := open(t, journal.Options{Dir: "data", FS: vfs.NewMem(), Async: true})
		w := newExpectation(seed)
		x, stop := run(t, j, Options{})
		for range 15 {
			w.write(t, j, 10, 1+w.r.IntN(40))
			mustEqualWorld(t, x, w)
		}
		before := money(t, x)
		stop()
		if err := j.Options.FS.RemoveAll("data/index"); err != nil {
			t.Fatal(err)
		}
		x, stop = run(t, j, Options{})
		mustEqualWorld(t, x, w)
		if !maps.Equal(money(t, x), before) {
			t.Fatal("made anew it differs")
		}
		stop()
		shut(t, j)
		for k, n := range w.kinds {
			kinds[k] += n
		}
		for s, n := range w.settled {
			settled[s] += n
		}
	}
	for _, k := range []engine.EventKind{engine.Deposited, engine.Withdrawn, engine.Linked,
		engine.Filled, engine.Placed, engine.Completed, engine.Cancelled, engine.Rejected, engine.Swept,
		engine.Split, engine.Merged, engine.Redeemed, engine.StateChanged, engine.Adjusted,
		engine.Resolved, engine.PreventionSet, engine.Advanced, engine.Collected} {
		if kinds[k] < 5 {
			t.Errorf("only %d Events of kind %d", kinds[k], k)
		}
	}
	if min(settled[engine.Transfer], settled[engine.Mint], settled[engine.Merge]) < 50 {
		t.Errorf("settlements: %v", settled)
	}
}

// TestPositionsSurviveCrashes: what a crash left, folded on, has the same keys and values as an
// index that never crashed, and so has one that was closed and opened many times.
func TestPositionsSurviveCrashes(t *testing.T) {
	fs := vfs.NewCrashableMem()
	j := open(t, journal.Options{Dir: "data", FS: fs})
	w := newExpectation(9)
	x, stop := run(t, j, Options{Flush: time.Millisecond})
	resumed := 0
	for i := range 10 {
		w.write(t, j, 15, 20)
		if i%3 == 0 {
			w.await(t, x)
		}
		if i == 6 {
			mustSurvive(t, x)
		}
		crashed := fs.CrashClone(vfs.CrashCloneCfg{UnsyncedDataPercent: 50 * (i % 3), RNG: w.r})
		k := open(t, journal.Options{Dir: "data", FS: crashed})
		y, stopY := run(t, k, Options{})
		if !y.fresh {
			resumed++
		}
		mustEqualWorld(t, y, w)
		w.await(t, x)
		if !maps.Equal(money(t, y), money(t, x)) {
			t.Fatalf("clone %d differs", i)
		}
		stopY()
		shut(t, k)
		if i%2 == 0 {
			stop()
			x, stop = run(t, j, Options{Flush: time.Millisecond})
		}
	}
	if resumed == 0 {
		t.Error("no clone resumed from a stored Sequence")
	}
	before := money(t, x)
	stop()
	if err := j.Options.FS.RemoveAll("data/index"); err != nil {
		t.Fatal(err)
	}
	x, stop = run(t, j, Options{})
	mustEqualWorld(t, x, w)
	if !maps.Equal(money(t, x), before) {
		t.Error("an index that was opened many times differs from a new one")
	}
	stop()
	shut(t, j)
}

// TestPositionByHand: what a wallet's tokens cost, step by step.
func TestPositionByHand(t *testing.T) {
	const u = engine.Unit
	r := PositionRow{Wallet: 7}
	r.receive(100*u, 40*u, 1*u, 10) // 100 at 0.40, fee 1
	r.receive(100*u, 60*u, 0, 20)   // 100 at 0.60 as a maker
	want := PositionRow{Wallet: 7, Size: 200 * u, Bought: 200 * u, BoughtCash: 100 * u, Cost: 101 * u,
		HeldFees: u, Fees: u, Opened: 10, Updated: 20}
	if r != want {
		t.Fatalf("bought: %+v", r)
	}
	if r.give(200*u+1, 1, 0, 25) {
		t.Fatal("sold what was not there")
	}
	r.give(50*u, 35*u, 2*u, 30) // 50 at 0.70, fee 2: a quarter of 101 goes along
	want.Size, want.Cost, want.HeldFees, want.Fees, want.Updated = 150*u, 75_750_000, 750_000, 3*u, 30
	want.Realized = 35*u - 2*u - 25_250_000
	if r != want {
		t.Fatalf("sold: %+v", r)
	}
	r.give(1, 0, 0, 40) // half a base unit is rounded down, and stays
	if r.Size != want.Size-1 || r.Cost != want.Cost || r.Realized != want.Realized {
		t.Fatalf("a crumb: %+v", r)
	}
	r.give(r.Size, 0, 0, 50)
	if r.Size != 0 || r.Cost != 0 || r.HeldFees != 0 || r.Realized != (35-2-101)*u {
		t.Fatalf("all lost: %+v", r)
	}
	r.receive(u, half(0, u), 0, 60)
	if r.Opened != 60 || r.Bought != 201*u {
		t.Fatalf("opened again: %+v", r)
	}
	if half(0, 7)+half(1, 7) != 7 || share(1<<60, 1<<60-1, 1<<60) != 1<<60-1 {
		t.Fatal("halves and shares")
	}
}

// TestPositionsRefuseToGuess: collateral or tokens leave that never came.
func TestPositionsRefuseToGuess(t *testing.T) {
	s := newPriceTest(t)
	e := engine.Event{Wallet: 1, Market: 1, Size: engine.Unit, Remaining: engine.Unit, Price: 5000}
	for _, kind := range []engine.EventKind{engine.Withdrawn, engine.Merged, engine.Cancelled,
		engine.Filled, engine.Split} {
		for _, side := range []engine.Side{engine.Buy, engine.Sell} {
			for _, no := range []engine.MarketNo{0, 1} {
				if no == 0 && kind != engine.Withdrawn {
					continue
				}
				e.Kind, e.Side, e.Market = kind, side, no
				c := engine.Command{Wallet: 2, Market: 1, Side: side.Other()}
				err := s.x.fold.ledger.command(s.x.fold.batch, &c, 1, []engine.Event{e})
				if !errors.Is(err, errContradiction) {
					t.Errorf("%d %d %d: %v", kind, side, no, err)
				}
			}
		}
	}
}

// TestMoneyThatCannotBeRead: every reader says what it cannot read, and that the index is closed.
func TestMoneyThatCannotBeRead(t *testing.T) {
	s := newPriceTest(t)
	h := s.x.History
	const one = uint32(1)
	position, purse := pairKey(spacePosition, one, 1), shortKey(spacePurse, one)
	market := shortKey(spaceMarket, one)
	quote, holder := pairKey(spacePoint, one, 5), holderKey(1, 0, Holder{1, engine.Unit})
	link := pairKey(spaceLink, one, 2)
	reads := map[string]func() error{
		"Positions":    func() error { _, err := positions(h, 1); return err },
		"Position":     func() error { _, err := h.Position(1, 1); return err },
		"Balance":      func() error { _, _, err := h.Balance(1); return err },
		"Volume":       func() error { _, _, err := h.Volume(1); return err },
		"VolumesUntil": func() error { _, err := h.VolumesUntil(1, []engine.Time{hour}); return err },
		"Prices":       func() error { _, err := h.Prices(1, 0, 60*minute, time.Minute); return err },
		"Supply":       func() error { _, _, err := h.Supply(1); return err },
		"Holders":      func() error { _, err := h.Holders(1, 0, 5, 1); return err },
	}
	for name, read := range reads {
		if err := read(); err != nil {
			t.Errorf("%s of an empty index: %v", name, err)
		}
	}
	for _, key := range [][]byte{position[:], purse[:], market[:], quote[:], append(holder[:], 9),
		append(link[:], 9)} {
		if err := s.x.db.Set(key, []byte{0xff}, pebble.NoSync); err != nil {
			t.Fatal(err)
		}
	}
	h.leaders.lists = make(map[token]*leaderList) // what was read once is not read again
	for name, read := range reads {
		if err := read(); !errors.Is(err, errRow) {
			t.Errorf("%s: %v", name, err)
		}
	}
	h.close()
	for name, read := range reads {
		if err := read(); !errors.Is(err, journal.ErrClosed) {
			t.Errorf("%s after Close: %v", name, err)
		}
	}
}

// FuzzPosition: a position that decodes encodes to something that decodes to the same, and nothing
// panics.
func FuzzPosition(f *testing.F) {
	full := position{}
	full.tokens[1].receive(7, 3, 2, modelStart)
	full.tokens[1].give(2, 1, 1, modelStart+5)
	f.Add(full.append(nil))
	full.tokens[0].receive(1<<60, 1<<59, 0, 1)
	f.Add(full.append(nil))
	f.Add([]byte{3})
	f.Fuzz(func(t *testing.T, b []byte) {
		p, q := newPosition(1, 2), newPosition(1, 2)
		if p.decode(b) != nil {
			return
		}
		if err := q.decode(p.append(nil)); err != nil {
			t.Fatal(err)
		}
		for o := range p.tokens {
			if p.tokens[o].Bought != 0 && p.tokens[o] != q.tokens[o] {
				t.Fatalf("%+v, then %+v", p.tokens[o], q.tokens[o])
			}
		}
	})
}
