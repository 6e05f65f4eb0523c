package history

import (
	"cmp"
	"math/rand/v2"
	"reflect"
	"slices"
	"testing"
	"time"

	"clobd/engine"
	"clobd/journal"

	"github.com/cockroachdb/pebble/v2"
	"github.com/cockroachdb/pebble/v2/vfs"
)

// liveOf is what Orders must say, plainly.
func (m *maker) liveOf(owner engine.WalletNo, f *Filter) []OrderRow {
	var all []OrderRow
	for _, o := range m.orders {
		if o.Owner == owner && o.Status == engine.Live &&
			(f.Market == 0 || f.Market == o.Market) && (!f.OneToken || f.Outcome == o.Outcome) &&
			(f.Before == 0 || o.Time < f.Before) && (f.After == 0 || o.Time > f.After) {
			all = append(all, *o)
		}
	}
	slices.SortFunc(all, func(a, b OrderRow) int { return cmp.Compare(a.Sequence, b.Sequence) })
	return all
}

// tradesOf is what Trades must say, plainly; owner 0: MarketTrades.
func (m *maker) tradesOf(owner engine.WalletNo, f *Filter) []TradeRow {
	var all []TradeRow
	for _, t := range slices.Backward(m.trades) {
		moved, maker, named := [2]bool{}, f.Maker == 0, f.ID == (engine.OrderID{}) || f.ID == t.Taker
		for _, o := range t.Makers {
			if o.Owner == owner && t.Owner != owner {
				moved[o.Outcome] = true
			}
			maker = maker || o.Wallet == f.Maker || o.Owner == f.Maker
			named = named || o.Order == f.ID
		}
		if owner == 0 || t.Owner == owner {
			moved[t.Outcome] = true
		} else {
			t.AsMaker = true
		}
		if moved != [2]bool{} && (!f.OneToken || moved[f.Outcome]) && maker && named &&
			(f.Taker == 0 || f.Taker == t.Wallet || f.Taker == t.Owner) &&
			(f.Market == 0 || f.Market == t.Market) &&
			(f.Before == 0 || t.Time < f.Before) && (f.After == 0 || t.Time > f.After) {
			all = append(all, t)
		}
	}
	return all
}

// builtOf is what BuilderTrades must say of a filter with a market and a token alone, plainly.
func (m *maker) builtOf(b BuilderNo, f *Filter) []TradeRow {
	var all []TradeRow
	for _, t := range slices.Backward(m.trades) {
		moved := [2]bool{}
		if t.Builder == b {
			moved[t.Outcome] = true
		}
		for _, o := range t.Makers {
			moved[o.Outcome] = moved[o.Outcome] || o.Builder == b
		}
		if moved != [2]bool{} && (!f.OneToken || moved[f.Outcome]) &&
			(f.Market == 0 || f.Market == t.Market) {
			all = append(all, t)
		}
	}
	return all
}

// mustAttribute compares the trades of all builders with the model.
func mustAttribute(t *testing.T, h *History, m *maker) {
	t.Helper()
	for code, want := range m.codes {
		no, err := h.Builder(code)
		if err != nil || no != want {
			t.Fatalf("builder %x has number %d, %v, want %d", code, no, err, want)
		}
		for _, f := range []Filter{{}, {Market: 2}, {Market: 1, OneToken: true, Outcome: 1}} {
			check(t, f, m.builtOf(no, &f), pages(t, 37, func(p Page) ([]TradeRow, uint64, error) {
				return h.BuilderTrades(no, &f, p)
			}))
		}
	}
	if no, err := h.Builder(BuilderCode{9}); no != 0 || err != nil {
		t.Fatalf("a builder that nobody knows has number %d, %v", no, err)
	}
}

// filter draws one. Most say nothing of most.
func (m *maker) filter() *Filter {
	f := new(Filter)
	when := func() engine.Time {
		if m.r.IntN(2) == 0 && len(m.trades) > 0 { // to the millisecond
			return m.trades[m.r.IntN(len(m.trades))].Time
		}
		return makerTime + engine.Time(m.r.Int64N(int64(m.head.Time-makerTime)+50))
	}
	if m.r.IntN(2) == 0 {
		f.Market = engine.MarketNo(m.r.IntN(makerMarkets + 1))
	}
	if m.r.IntN(3) == 0 {
		f.OneToken, f.Outcome = true, engine.Outcome(m.r.IntN(2))
	}
	if m.r.IntN(4) == 0 {
		f.Before = when()
	}
	if m.r.IntN(4) == 0 {
		f.After = when()
	}
	if m.r.IntN(6) == 0 {
		f.Taker = engine.WalletNo(1 + m.r.IntN(makerWallets))
	}
	if m.r.IntN(6) == 0 {
		f.Maker = engine.WalletNo(1 + m.r.IntN(makerWallets))
	}
	if m.r.IntN(12) == 0 && len(m.trades) > 0 {
		t := &m.trades[m.r.IntN(len(m.trades))]
		f.ID = t.Makers[0].Order
	}
	return f
}

// pages walks a list to its end, in pages of limit rows.
func pages[R any](t *testing.T, limit int, list func(p Page) ([]R, uint64, error)) []R {
	t.Helper()
	var all []R
	for p := (Page{Limit: limit}); ; {
		rows, next, err := list(p)
		if err != nil || len(rows) > max(limit, 1) {
			t.Fatalf("page from %d: %d rows: %v", p.From, len(rows), err)
		}
		all = append(all, rows...)
		if next == 0 {
			return all
		}
		if next == p.From {
			t.Fatalf("page from %d does not go on", p.From)
		}
		p.From = next
	}
}

// runTight is run for an index that keeps little in memory, so that its lists are everywhere.
func runTight(t *testing.T, j *journal.Journal, o Options) (x *Index, stop func()) {
	t.Helper()
	x, err := openIndex(j, o)
	if err != nil {
		t.Fatal(err)
	}
	x.recent.keep, x.resting.slack = 500, 1<<10
	done := make(chan error)
	go func() { done <- x.Run() }()
	return x, func() {
		t.Helper()
		shut(t, x)
		if err := <-done; err != nil {
			t.Fatal(err)
		}
	}
}

// mustList compares n random lists with the model, after the index has caught up.
func mustList(t *testing.T, x *Index, m *maker, n int) {
	t.Helper()
	h := x.History
	if !h.Await(m.head.Sequence, soon) {
		t.Fatalf("index at %d, journal at %d", h.Sequence(), m.head.Sequence)
	}
	for range n {
		f, limit := m.filter(), 1+m.r.IntN(300)
		owner := engine.WalletNo(1 + m.r.IntN(makerWallets))
		check(t, *f, m.tradesOf(owner, f), pages(t, limit, func(p Page) ([]TradeRow, uint64, error) {
			return h.Trades(owner, f, p)
		}))
		if f.Market != 0 {
			check(t, *f, m.tradesOf(0, f), pages(t, limit, func(p Page) ([]TradeRow, uint64, error) {
				return h.MarketTrades(f, p)
			}))
		}
		f.ID = engine.OrderID{}
		check(t, *f, m.liveOf(owner, f), pages(t, limit, func(p Page) ([]OrderRow, uint64, error) {
			return h.Orders(owner, f, p)
		}))
	}
}

// check compares two lists.
func check[R any](t *testing.T, f Filter, want, got []R) {
	t.Helper()
	if len(want) != len(got) {
		t.Fatalf("%+v: %d rows, want %d", f, len(got), len(want))
	}
	for i := range want {
		if !reflect.DeepEqual(want[i], got[i]) {
			t.Fatalf("%+v: row %d is\n%+v, want\n%+v", f, i, got[i], want[i])
		}
	}
}

func TestListsEqualTheModel(t *testing.T) {
	j, m := newJournal(t, vfs.NewMem(), 33)
	defer shut(t, j)
	wildly(m)
	m.codes = make(map[BuilderCode]BuilderNo)
	o := Options{Builder: codeOf}
	x, stop := runTight(t, j, o)
	defer func() { stop() }()
	for i := range 8 {
		m.write(t, j, 20, 2<<i)
		mustList(t, x, m, 40)
		mustAttribute(t, x.History, m)
		stop()
		x, stop = runTight(t, j, o)
		mustList(t, x, m, 10)
		mustAttribute(t, x.History, m)
	}
	if len(m.codes) != 5 {
		t.Errorf("%d builders, want 5", len(m.codes))
	}
	r := x.resting
	if len(m.trades) < 500 || r.live < 40 || x.recent.written == 0 {
		t.Errorf("only %d trades, %d resting orders, lists up to %d", len(m.trades), r.live,
			x.recent.written)
	}
	if most := 2*segmentLoad*r.live + r.slack + 8<<10; r.size > most || r.log[0].no < 200 {
		t.Errorf("the log of resting orders has %d bytes since Sequence %d, want %d", r.size,
			r.log[0].no, most)
	}
}

// TestListsSurviveACrash takes the disk away again and again: what comes back is a state of before,
// and folding on from there leads to the same lists.
func TestListsSurviveACrash(t *testing.T) {
	fs := vfs.NewCrashableMem()
	j, m := newJournal(t, fs, 34)
	wildly(m)
	m.codes = make(map[BuilderCode]BuilderNo)
	x, stop := runTight(t, j, Options{Flush: time.Millisecond, Builder: codeOf})
	r := rand.New(rand.NewPCG(1, 2))
	resumed := 0
	for i := range 10 {
		m.write(t, j, 20, 20)
		if i%3 == 0 {
			x.History.Await(m.head.Sequence, soon)
		}
		if i == 6 {
			mustSurvive(t, x)
		}
		crashed := fs.CrashClone(vfs.CrashCloneCfg{UnsyncedDataPercent: 50 * (i % 3), RNG: r})
		k := open(t, journal.Options{Dir: "data", FS: crashed})
		y, stopY := runTight(t, k, Options{Builder: codeOf})
		if y.History.Sequence() > 0 {
			resumed++
		}
		mustList(t, y, m, 10)
		mustAttribute(t, y.History, m)
		stopY()
		shut(t, k)
	}
	if resumed == 0 {
		t.Error("no clone resumed from a stored Sequence")
	}
	stop()
	shut(t, j)
}

func TestTrade(t *testing.T) {
	j, m := newJournal(t, vfs.NewMem(), 35)
	defer shut(t, j)
	x, stop := runTight(t, j, Options{})
	defer stop()
	wildly(m).write(t, j, 30, 40)
	h := x.History
	if !h.Await(m.head.Sequence, soon) {
		t.Fatal("not caught up")
	}
	for _, want := range m.trades {
		f := &Filter{Market: want.Market, TradeID: want.ID}
		got, _, err := h.MarketTrades(f, Page{Limit: 5})
		if err != nil || len(got) != 1 || !reflect.DeepEqual(got[0], want) {
			t.Fatalf("%v\n%+v, want\n%+v", err, got, want)
		}
		f.Market = 0
		for owner := engine.WalletNo(1); owner <= makerWallets; owner++ {
			all := m.tradesOf(owner, new(Filter))
			all = slices.DeleteFunc(all, func(r TradeRow) bool { return r.ID != want.ID })
			rows, next, err := h.Trades(owner, f, Page{Limit: 5})
			if err != nil || next != 0 {
				t.Fatal(next, err)
			}
			check(t, *f, all, rows)
		}
	}
	last := m.trades[len(m.trades)-1]
	for what, id := range map[string][16]byte{
		"nothing":              {},
		"another journal's":    engine.TradeID(h.journal+1, last.Sequence, last.Index),
		"of no such index":     engine.TradeID(h.journal, last.Sequence, last.Index+1),
		"of no such Sequence":  engine.TradeID(h.journal, 1, 0),
		"of a Sequence to be":  engine.TradeID(h.journal, 1<<40, 0),
		"of no Sequence":       engine.TradeID(h.journal, 0, 0),
		"of the last possible": engine.TradeID(h.journal, 1<<48-1, 1<<14-1),
	} {
		if id == ([16]byte{}) {
			continue // wants any trade
		}
		rows, next, err := h.Trades(last.Owner, &Filter{TradeID: id}, Page{})
		if len(rows) > 0 || next != 0 || err != nil {
			t.Errorf("%s: %+v %d %v", what, rows, next, err)
		}
	}
	if _, _, err := h.MarketTrades(new(Filter), Page{}); err == nil {
		t.Error("a tape of no market")
	}
}

// TestOrdersOfOne asks for resting orders by id: only the owner's, only while they rest.
func TestOrdersOfOne(t *testing.T) {
	j, m := newJournal(t, vfs.NewMem(), 36)
	defer shut(t, j)
	x, stop := runTight(t, j, Options{})
	defer stop()
	wildly(m).write(t, j, 20, 40)
	if !x.History.Await(m.head.Sequence, soon) {
		t.Fatal("not caught up")
	}
	for id, o := range m.orders {
		for _, owner := range []engine.WalletNo{o.Owner, o.Owner + 1} {
			f := &Filter{ID: id, Market: o.Market}
			rows, next, err := x.History.Orders(owner, f, Page{Limit: 2})
			if err != nil || next != 0 {
				t.Fatal(next, err)
			}
			all := m.liveOf(owner, f)
			check(t, *f, slices.DeleteFunc(all, func(r OrderRow) bool { return r.ID != id }), rows)
		}
	}
}

// TestPagesHoldStill walks lists while everything changes: a walk meets what was there when it
// began and still is at its end, once and in order.
func TestPagesHoldStill(t *testing.T) {
	j, m := newJournal(t, vfs.NewMem(), 37)
	defer shut(t, j)
	wildly(m)
	x, stop := runTight(t, j, Options{})
	defer stop()
	h := x.History
	m.write(t, j, 40, 50)
	for round := range 20 {
		owner := engine.WalletNo(1 + round%makerWallets)
		if !h.Await(m.head.Sequence, soon) {
			t.Fatal("not caught up")
		}
		trades := m.tradesOf(owner, new(Filter))
		live := m.liveOf(owner, new(Filter))
		step := func() { // between two pages, and while the next is read
			m.write(t, j, 1+m.r.IntN(3), 20)
			if m.r.IntN(2) == 0 {
				h.Await(m.head.Sequence, soon)
			}
		}
		got := pages(t, 1+len(trades)/8, func(p Page) ([]TradeRow, uint64, error) {
			defer step()
			return h.Trades(owner, nil, p)
		})
		check(t, Filter{}, trades, got)
		rows := pages(t, 1+len(live)/8, func(p Page) ([]OrderRow, uint64, error) {
			defer step()
			return h.Orders(owner, nil, p)
		})
		met := make(map[engine.OrderID]bool)
		for i, o := range rows {
			if met[o.ID] || i > 0 && o.Sequence <= rows[i-1].Sequence {
				t.Fatalf("order %x is met again", o.ID)
			}
			met[o.ID] = true
		}
		for _, o := range live {
			if m.orders[o.ID].Status == engine.Live && !met[o.ID] {
				t.Fatalf("order %x was missed", o.ID)
			}
		}
	}
}

// TestAsked: of orders that were taken, the Events say what the engine found in their amounts.
func TestAsked(t *testing.T) {
	m := wildly(newMaker(38))
	n := 0
	for range 2000 {
		f := m.frame(1)
		last := &f.Events[len(f.Events)-1]
		if last.Kind != engine.Placed && last.Kind != engine.Completed {
			continue
		}
		n++
		price, size := asked(&f.Commands[0], 100)
		if price != last.Price || size != last.Size {
			t.Fatalf("%+v: %v for %v, want %v for %v", f.Commands[0], size, price, last.Size,
				last.Price)
		}
	}
	if n < 500 {
		t.Errorf("only %d orders", n)
	}
}

// TestAskedOfFOK: whatever its cash pays for at its limit, a FOK asks for all that it signed. So
// says the Event of one that was filled, and so must the row of one that was killed. A FAK asks for
// what its cash pays for.
func TestAskedOfFOK(t *testing.T) {
	x, seq := engine.NewExchange(1), engine.Sequence(0)
	do := func(c engine.Command) engine.Event {
		seq++
		events := x.Apply(&c, seq, 1, nil)
		return events[len(events)-1]
	}
	do(engine.Command{Kind: engine.List, Listing: &engine.Listing{Tick: 100, Open: true,
		Tokens: [2]engine.Token{{1}, {2}}}})
	do(engine.Command{Kind: engine.Deposit, Address: engine.Address{1}, Cash: 1000 * engine.Unit})
	do(engine.Command{Kind: engine.Deposit, Address: engine.Address{2}, Market: 1,
		Size: 1000 * engine.Unit})
	offer := func(id byte) {
		do(engine.Command{Kind: engine.Place, Side: engine.Sell, Market: 1, Wallet: 2, Owner: 2,
			Size: 100 * engine.Unit, Cash: 40 * engine.Unit, ID: engine.OrderID{id}})
	}
	for i, want := range []struct {
		kind   engine.OrderType
		size   engine.Size
		killed engine.Reject
	}{
		{engine.FOK, 100 * engine.Unit, engine.RejectFOK},
		{engine.FAK, 9998 * engine.Lot, engine.RejectFAK},
	} {
		c := engine.Command{Kind: engine.Place, Type: want.kind, Market: 1, Wallet: 1, Owner: 1,
			Size: 100 * engine.Unit, Cash: 49_990_000, ID: engine.OrderID{10, byte(i)}}
		if e := do(c); e.Reject != want.killed {
			t.Fatalf("%+v", e)
		}
		price, size := asked(&c, 100)
		offer(byte(20 + i))
		c.ID[0]++
		e := do(c)
		if e.Kind != engine.Completed || e.Price != price || e.Size != size || size != want.size {
			t.Errorf("%v for %v, want %v; the engine says %v for %v", size, price, want.size, e.Size,
				e.Price)
		}
		do(engine.Command{Kind: engine.CancelAll, Wallet: 2, Reason: engine.ByOperator})
	}
}

// meet writes a script: n times, wallet 1 sells and somebody buys the same.
func (m *maker) meet(n int, o engine.Outcome, taker engine.WalletNo) {
	for i := range 2 * n {
		c := engine.Command{Kind: engine.Place, Side: engine.Sell, Market: 1, Outcome: o, Wallet: 1,
			Owner: 1, Size: 5 * engine.Unit, Cash: 5 * engine.Unit / 2, ID: m.id()}
		if i%2 == 1 {
			c.Side, c.Wallet, c.Owner = engine.Buy, taker, taker
		}
		m.script = append(m.script, c)
	}
}

// TestPagesAreBounded: however little matches, a page ends, and a walk goes on until it has all.
func TestPagesAreBounded(t *testing.T) {
	j, m := newJournal(t, vfs.NewMem(), 39)
	defer shut(t, j)
	x, stop := run(t, j, Options{})
	defer stop()
	m.meet(1, 1, 2)
	m.meet(1, 0, 3)
	m.meet(2*maxEntries+100, 0, 2)
	for len(m.script) > 0 {
		m.write(t, j, 1, min(200, len(m.script)))
	}
	h := x.History
	if !h.Await(m.head.Sequence, soon) {
		t.Fatal("not caught up")
	}
	for _, c := range []struct {
		what  string
		f     Filter
		pages int // at least
	}{
		{"token", Filter{OneToken: true, Outcome: 1}, 3},
		{"token in a market", Filter{Market: 1, OneToken: true, Outcome: 1}, 3},
		{"taker", Filter{Taker: 3}, 2 * maxEntries / maxMisses},
	} {
		n := 0
		rows := pages(t, 10, func(p Page) ([]TradeRow, uint64, error) {
			n++
			return h.Trades(1, &c.f, p)
		})
		check(t, c.f, m.tradesOf(1, &c.f), rows)
		if len(rows) != 1 || n < c.pages {
			t.Errorf("%s: %d rows on %d pages", c.what, len(rows), n)
		}
	}
}

// TestManyMakers: trades of thousands of makers are whole, but few of them make a page.
func TestManyMakers(t *testing.T) {
	const makers, trades = maxParts/3 + 100, 5
	j, m := newJournal(t, vfs.NewMem(), 40)
	defer shut(t, j)
	x, stop := run(t, j, Options{})
	defer stop()
	for range trades {
		for i := range makers {
			w := engine.WalletNo(2 + i%4)
			m.script = append(m.script, engine.Command{Kind: engine.Place, Side: engine.Sell,
				Market: 1, Wallet: w, Owner: w, Size: 5 * engine.Unit, Cash: 5 * engine.Unit / 2, ID: m.id()})
		}
		m.script = append(m.script, engine.Command{Kind: engine.Place, Side: engine.Buy, Market: 1,
			Wallet: 1, Owner: 1, Size: 5 * engine.Unit * makers,
			Cash: 5 * engine.Unit * makers / 2, ID: m.id()})
	}
	for len(m.script) > 0 {
		m.write(t, j, 1, min(200, len(m.script)))
	}
	h := x.History
	if !h.Await(m.head.Sequence, soon) {
		t.Fatal("not caught up")
	}
	for owner := engine.WalletNo(1); owner <= 2; owner++ {
		var got []int
		rows := pages(t, 100, func(p Page) ([]TradeRow, uint64, error) {
			rows, next, err := h.Trades(owner, nil, p)
			got = append(got, len(rows))
			return rows, next, err
		})
		check(t, Filter{}, m.tradesOf(owner, new(Filter)), rows)
		if !slices.Equal(got, []int{3, 2}) {
			t.Errorf("pages of %v rows", got)
		}
	}
}

// TestWalkBesideASpill: entries that move from memory into the database while a page is read are
// met once.
func TestWalkBesideASpill(t *testing.T) {
	j, m := newJournal(t, vfs.NewMem(), 42)
	defer shut(t, j)
	x, err := openIndex(j, Options{})
	if err != nil {
		t.Fatal(err)
	}
	defer shut(t, x)
	x.lingers = 0
	m.write(t, j, 1, len(m.script))
	m.meet(50, 0, 2)
	fold := func(frames int) {
		t.Helper()
		m.write(t, j, frames, 10)
		if err := x.step(); err != nil {
			t.Fatal(err)
		}
	}
	fold(4)
	x.recent.keep = 1
	fold(1) // writes the lists
	fold(1)
	written := x.recent.written
	w := x.History.newWalker(listOf(2, 0), lastNumber)
	fold(1)
	if x.recent.written == written || len(w.run) == 0 {
		t.Fatal("nothing was written meanwhile")
	}
	met := 0
	for last := uint64(1 << 63); ; met++ {
		at, ok, err := w.next()
		if err != nil || ok && at >= last {
			t.Fatalf("%d after %d: %v", at, last, err)
		}
		if last = at; !ok {
			break
		}
	}
	if err := w.close(); err != nil {
		t.Fatal(err)
	}
	if want := len(m.tradesOf(2, new(Filter))) - 5; met != want {
		t.Errorf("met %d trades, want %d", met, want)
	}
}

// TestDamagedListsAreMadeAnew: what is read into memory at the start is judged there.
func TestDamagedListsAreMadeAnew(t *testing.T) {
	for _, space := range []byte{spaceResting, spaceDeals} {
		j, m := newJournal(t, vfs.NewMem(), 41)
		wildly(m).write(t, j, 20, 40)
		x, stop := run(t, j, Options{})
		mustList(t, x, m, 5)
		key := numberKey(space, tradeRef{m.head.Sequence, 9}.number())
		if err := x.db.Set(key[:], []byte{9, 9, 9}, pebble.NoSync); err != nil {
			t.Fatal(err)
		}
		stop()
		x, stop = run(t, j, Options{})
		if !x.fresh {
			t.Error("not made anew")
		}
		mustList(t, x, m, 5)
		stop()
		shut(t, j)
	}
}

// FuzzDeals: no bytes make a reader panic, and a trade that is read is as long as it says.
func FuzzDeals(f *testing.F) {
	var d deals
	c := engine.Command{Side: engine.Buy, Market: 7, Wallet: 300, Owner: 4, Key: 9}
	for i := range 3 {
		d.price = 4000
		d.add(&row{OrderRow: OrderRow{Wallet: 5, Owner: 5, Key: 1}},
			&engine.Event{Size: engine.Unit, Fee: 10}, i%2 == 0)
		d.finish(&c, stamp{77, makerTime})
	}
	f.Add(d.chunk)
	f.Add(appendAddition(nil, 3, &restingOrder{seq: 9, market: 1}))
	f.Fuzz(func(t *testing.T, b []byte) {
		if some, err := readSegment(b, nil, nil); err == nil && 32*len(some) > len(b) {
			t.Fatalf("%d orders in %d bytes", len(some), len(b))
		}
		var row TradeRow
		for c := (varints{rest: b}); len(c.rest) > 0; {
			at, record, ok := c.record(77)
			if !ok {
				return
			}
			if n := len(record.rest); row.decode(at, record) && 32*(1+len(row.Makers)) > n {
				t.Fatalf("%d makers in %d bytes", len(row.Makers), n)
			}
		}
	})
}

// TestRestingLog: orders that rest are never lost from a log that forgets thousands of others, and
// it stays short.
func TestRestingLog(t *testing.T) {
	j, m := newJournal(t, vfs.NewMem(), 43)
	defer shut(t, j)
	x, err := openIndex(j, Options{})
	if err != nil {
		t.Fatal(err)
	}
	x.resting.slack, x.lingers = 1<<10, 0
	m.write(t, j, 1, len(m.script))
	for i := range 2000 { // one in 20 stays
		place := engine.Command{Kind: engine.Place, Market: 1, Wallet: 1, Owner: 1,
			Size: 5 * engine.Unit, Cash: engine.Unit, ID: m.id()}
		m.script = append(m.script, place)
		if i%20 != 0 || i > 1000 {
			m.script = append(m.script, engine.Command{Kind: engine.Cancel, ID: place.ID, Owner: 1})
		}
	}
	longest := 0
	for len(m.script) > 0 {
		m.write(t, j, 1, min(3, len(m.script)))
		if err := x.step(); err != nil {
			t.Fatal(err)
		}
		longest = max(longest, x.resting.size)
	}
	if most := 3*segmentLoad*51 + 2<<10; longest > most || x.resting.live != 51 {
		t.Errorf("the log of %d orders grew to %d bytes, want %d", x.resting.live, longest, most)
	}
	if first := x.resting.log[0].no; first < m.head.Sequence/2 {
		t.Errorf("the log begins with Sequence %d of %d", first, m.head.Sequence)
	}
	for range 2 {
		rows, _, err := x.History.Orders(1, nil, Page{Limit: 100})
		if err != nil {
			t.Fatal(err)
		}
		check(t, Filter{}, m.liveOf(1, new(Filter)), rows)
		shut(t, x)
		if x, err = openIndex(j, Options{}); err != nil {
			t.Fatal(err)
		}
	}
	shut(t, x)
}
