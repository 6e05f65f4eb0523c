package engine

import (
	"encoding/binary"
	"slices"
	"testing"

	"pgregory.net/rapid"
)

// model is the same exchange, naively: slices, searched from end to end, and nothing counted twice.
type model struct {
	cash    map[WalletNo]int64
	tokens  map[WalletNo]map[MarketNo]*[2]int64
	resting []resting // in order of arrival
	bound   map[OrderID]Sequence
	tick    map[MarketNo]Price
}

type resting struct {
	id            OrderID
	seq           Sequence
	wallet, owner WalletNo
	market        MarketNo
	side          Side
	outcome       Outcome
	price         Price
	left          Size
}

// inA is the ladder side and price in outcome 0.
func (r *resting) inA() (Side, Price) {
	if r.outcome == 0 {
		return r.side, r.price
	}
	return r.side.Other(), PriceOne - r.price
}

func (m *model) held(w WalletNo, no MarketNo, side Side, o Outcome) int64 {
	sum := int64(0)
	for _, r := range m.resting {
		switch {
		case r.wallet != w || r.side != side:
		case side == Buy:
			sum += int64(r.left) * int64(r.price) / int64(PriceOne)
		case r.market == no && r.outcome == o:
			sum += int64(r.left)
		}
	}
	return sum
}

func (m *model) own(w WalletNo, no MarketNo) *[2]int64 {
	if m.tokens[w] == nil {
		m.tokens[w] = map[MarketNo]*[2]int64{}
	}
	if m.tokens[w][no] == nil {
		m.tokens[w][no] = new([2]int64)
	}
	return m.tokens[w][no]
}

// best is the place of the first resting order that r meets, -1 if none.
func (m *model) best(r *resting) int {
	side, limit := r.inA()
	found, at := Price(0), -1
	for i := range m.resting {
		other, price := m.resting[i].inA()
		if m.resting[i].market != r.market || other == side {
			continue
		}
		if side == Buy && price <= limit && (at < 0 || price < found) ||
			side == Sell && price >= limit && (at < 0 || price > found) {
			found, at = price, i
		}
	}
	return at
}

func (m *model) refuse(c *Command, why Reject, first Sequence, args ...int64) []Event {
	e := Event{
		Kind: Rejected, Reject: why, First: first, Side: c.Side, Outcome: c.Outcome,
		Market: c.Market, Wallet: c.Wallet, Owner: c.Owner, Order: c.ID,
	}
	copy(e.Args[:], args)
	return []Event{e}
}

func (r *resting) cancelled(why Reason) Event {
	return Event{
		Kind: Cancelled, Reason: why, Side: r.side, Outcome: r.outcome, Price: r.price,
		Market: r.market, Wallet: r.wallet, Owner: r.owner, Remaining: r.left, First: r.seq,
		Order: r.id,
	}
}

func (m *model) cancel(c *Command) []Event {
	for i := range m.resting {
		if r := m.resting[i]; r.id == c.ID && r.owner == c.Owner {
			m.resting = slices.Delete(m.resting, i, i+1)
			return []Event{r.cancelled(ByOwner)}
		}
	}
	return m.refuse(c, RejectNotFound, 0)
}

// place expects amounts on the grid and in lots: the rest has scenarios of its own.
func (m *model) place(c *Command, seq Sequence) []Event {
	if first, ok := m.bound[c.ID]; ok {
		return m.refuse(c, RejectDuplicate, first)
	}
	price := Price(int64(c.Cash) * int64(PriceOne) / int64(c.Size))
	if price%m.tick[c.Market] != 0 || price == 0 || price == PriceOne {
		return m.refuse(c, RejectTick, 0, int64(price), int64(m.tick[c.Market]))
	}
	have, need := m.cash[c.Wallet], int64(c.Cash)
	if c.Side == Sell {
		have, need = m.own(c.Wallet, c.Market)[c.Outcome], int64(c.Size)
	}
	if held := m.held(c.Wallet, c.Market, c.Side, c.Outcome); have-held < need {
		return m.refuse(c, RejectBalance, 0, have, held, need)
	}
	m.bound[c.ID] = seq
	r := resting{
		c.ID, seq, c.Wallet, c.Owner, c.Market, c.Side, c.Outcome, price, c.Size}
	events := m.match(&r)
	last := Event{
		Kind: Completed, Side: r.side, Outcome: r.outcome, Price: r.price, Market: r.market,
		Wallet: r.wallet, Owner: r.owner, Size: c.Size, Remaining: r.left, Order: r.id,
	}
	if r.left > 0 {
		last.Kind = Placed
		m.resting = append(m.resting, r)
	}
	return append(events, last)
}

func (m *model) match(r *resting) (events []Event) {
	for r.left > 0 {
		i := m.best(r)
		if i < 0 {
			break
		}
		o := &m.resting[i]
		if o.wallet == r.wallet {
			events = append(events, o.cancelled(SelfTrade))
			m.resting = slices.Delete(m.resting, i, i+1)
			continue
		}
		size := min(o.left, r.left)
		o.left, r.left = o.left-size, r.left-size
		how, cost := Transfer, int64(size)*int64(o.price)/int64(PriceOne)
		m.pay(o, size, cost)
		if o.outcome != r.outcome {
			cost = int64(size) - cost
			how = Mint
			if o.side == Sell {
				how = Merge
			}
		}
		m.pay(r, size, cost)
		events = append(events, Event{
			Kind: Filled, Settlement: how, Side: o.side, Outcome: o.outcome, Price: o.price,
			Market: o.market, Wallet: o.wallet, Owner: o.owner, Size: size, Remaining: o.left,
			First: o.seq, Order: o.id,
		})
		if o.left == 0 {
			m.resting = slices.Delete(m.resting, i, i+1)
		}
	}
	return events
}

func (m *model) pay(r *resting, size Size, cost int64) {
	own := m.own(r.wallet, r.market)
	if r.side == Buy {
		m.cash[r.wallet] -= cost
		own[r.outcome] += int64(size)
	} else {
		m.cash[r.wallet] += cost
		own[r.outcome] -= int64(size)
	}
}

// stage has markets and funded wallets, and draws Commands.
type stage struct {
	x     *Exchange
	seq   Sequence
	ids   []OrderID
	all   []Command
	ticks []Price
}

const stageWallets = 4

func newStage(window uint32, ticks ...Price) *stage {
	s := &stage{x: newExchange(uint64(window), window), ticks: ticks}
	for i, tick := range ticks {
		l := &Listing{Tick: tick, Open: true, MinSize: Lot}
		l.Condition[0], l.Tokens[0][0], l.Tokens[1][0] = byte(i+1), byte(2*i+1), byte(2*i+2)
		s.apply(Command{Kind: List, Listing: l})
	}
	return s
}

func (s *stage) fund(cash Cash, tokens Size) {
	for w := 1; w <= stageWallets; w++ {
		a := Address{byte(w)}
		s.apply(Command{Kind: Deposit, Address: a, Cash: cash})
		for m := range s.ticks {
			for o := range Outcome(2) {
				s.apply(Command{Kind: Deposit, Address: a, Size: tokens,
					Market: MarketNo(m + 1), Outcome: o})
			}
		}
	}
}

func (s *stage) apply(c Command) []Event {
	s.seq++
	s.all = append(s.all, c)
	return s.x.Apply(&c, s.seq, Time(s.seq), nil)
}

// draw makes a Place around the middle of the book, or a Cancel.
func (s *stage) draw(t *rapid.T) Command {
	w := WalletNo(rapid.IntRange(1, stageWallets).Draw(t, "wallet"))
	if len(s.ids) > 0 && rapid.IntRange(0, 9).Draw(t, "what") < 3 {
		return Command{Kind: Cancel, Owner: w, ID: rapid.SampledFrom(s.ids).Draw(t, "id")}
	}
	m := rapid.IntRange(1, len(s.ticks)).Draw(t, "market")
	tick := s.ticks[m-1]
	c := Command{Kind: Place, Market: MarketNo(m), Wallet: w, Owner: w, Seen: s.seq}
	c.Side = Side(rapid.IntRange(0, 1).Draw(t, "side"))
	c.Outcome = Outcome(rapid.IntRange(0, 1).Draw(t, "outcome"))
	n := rapid.IntRange(1, min(int(PriceOne/tick)-1, 12)).Draw(t, "price")
	if tick < 1000 { // around a half, so that both sides have room
		n += int(PriceOne/tick)/2 - 6
	}
	c.Size = Size(rapid.IntRange(1, 2000).Draw(t, "lots")) * Lot
	c.Cash = Cost(c.Size, Price(n)*tick)
	binary.BigEndian.PutUint64(c.ID[:], uint64(s.seq+1))
	if len(s.ids) > 0 && rapid.IntRange(0, 19).Draw(t, "again") == 0 {
		c.ID = rapid.SampledFrom(s.ids).Draw(t, "id")
	}
	s.ids = append(s.ids, c.ID)
	return c
}

func TestAgainstModel(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		s := newStage(Window, 100, 1, 1000)
		s.fund(500*Unit, 100*Unit)
		m := &model{
			cash:   map[WalletNo]int64{},
			tokens: map[WalletNo]map[MarketNo]*[2]int64{},
			bound:  map[OrderID]Sequence{},
			tick:   map[MarketNo]Price{1: 100, 2: 1, 3: 1000},
		}
		for w := WalletNo(1); w <= stageWallets; w++ {
			m.cash[w] = 500 * Unit
			for no := MarketNo(1); no <= 3; no++ {
				*m.own(w, no) = [2]int64{100 * Unit, 100 * Unit}
			}
		}
		for range rapid.IntRange(1, 120).Draw(t, "commands") {
			c := s.draw(t)
			before := s.x.Digest()
			got := s.apply(c)
			want := m.cancel
			if c.Kind == Place {
				want = func(c *Command) []Event { return m.place(c, s.seq) }
			}
			if expected := want(&c); !slices.Equal(got, expected) {
				t.Fatalf("%+v\ngot  %+v\nwant %+v", c, got, expected)
			}
			if got[0].Kind == Rejected && s.x.Digest() != before {
				t.Fatalf("a rejected command changed the state")
			}
		}
		m.compare(t, s.x)
		if err := s.x.audit(); err != nil {
			t.Fatal(err)
		}
	})
}

func (m *model) compare(t *rapid.T, x *Exchange) {
	for w := WalletNo(1); w <= stageWallets; w++ {
		cash := entry{m.cash[w], m.held(w, 0, Buy, 0)}
		if got := x.accounts.at(uint32(w)).cash; got != cash {
			t.Fatalf("wallet %d: %+v, model %+v", w, got, cash)
		}
		for no, own := range m.tokens[w] {
			p := x.positions.at(x.position(w, no))
			for o := range own {
				want := entry{own[o], m.held(w, no, Sell, Outcome(o))}
				if p.tokens[o] != want {
					t.Fatalf("wallet %d in %d.%d: %+v, model %+v", w, no, o, p.tokens[o], want)
				}
			}
		}
	}
}

// TestSmallWindow audits after every Command while placements fall out of the window.
func TestSmallWindow(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		s := newStage(uint32(rapid.IntRange(1, 9).Draw(t, "window")), 25)
		s.fund(5000*Unit, 1000*Unit)
		for range rapid.IntRange(1, 60).Draw(t, "commands") {
			s.apply(s.draw(t))
			if err := s.x.audit(); err != nil {
				t.Fatal(err)
			}
		}
	})
}

// TestReplay cuts a stream into frames of any size, and replays the decoded frames elsewhere.
func TestReplay(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		s := newStage(8, 100, 10)
		s.fund(300*Unit, 100*Unit)
		for range rapid.IntRange(1, 60).Draw(t, "commands") {
			s.draw(t)
			s.apply(s.draw(t))
		}
		first, second := newExchange(11, 8), newExchange(12, 8)
		prev, back := Hash{}, Frame{}
		f := Frame{Engine: Version, First: 1}
		for i := 0; i < len(s.all); {
			n := min(rapid.IntRange(1, 20).Draw(t, "frame"), len(s.all)-i)
			f.No, f.First, f.Time = f.No+1, Sequence(i+1), Time(i)
			f.Commands, f.Events, f.Ends = s.all[i:i+n], f.Events[:0], f.Ends[:0]
			for j := range f.Commands {
				f.Events = first.Apply(&f.Commands[j], Sequence(i+j+1), f.Time, f.Events)
				f.Ends = append(f.Ends, uint32(len(f.Events)))
			}
			f.Digest = first.Digest()
			f.Encode(prev)
			prev = f.Hash
			if err := DecodeFrame(f.Bytes, &back); err != nil {
				t.Fatal(err)
			}
			if err := second.ApplyFrame(&back); err != nil {
				t.Fatal(err)
			}
			i += n
		}
		if first.Digest() != s.x.Digest() || second.Digest() != s.x.Digest() {
			t.Fatal("another cut or seed, another end")
		}
	})
}

// TestMirror swaps the tokens in every Command: the same happens, swapped.
func TestMirror(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		s, mirror := newStage(Window, 10), newStage(Window, 10)
		s.fund(500*Unit, 100*Unit)
		mirror.fund(500*Unit, 100*Unit)
		for range rapid.IntRange(1, 80).Draw(t, "commands") {
			c := s.draw(t)
			events := s.apply(c)
			c.Outcome ^= 1
			swapped := mirror.apply(c)
			for i := range swapped {
				swapped[i].Outcome ^= 1
				if c.Kind == Cancel && swapped[i].Kind == Rejected {
					swapped[i].Outcome = 0
				}
			}
			for i := range events {
				if c.Kind == Cancel && events[i].Kind == Rejected {
					events[i].Outcome = 0
				}
			}
			if !slices.Equal(events, swapped) {
				t.Fatalf("%+v\nevents  %+v\nmirror %+v", c, events, swapped)
			}
		}
	})
}

// TestDual replaces BUY B at p by SELL A at 1-p: the same orders fill at the same prices of A,
// whatever the settlement.
func TestDual(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		s, dual := newStage(Window, 10), newStage(Window, 10)
		s.fund(1<<45, 1<<45)
		dual.fund(1<<45, 1<<45)
		for range rapid.IntRange(1, 80).Draw(t, "commands") {
			c := s.draw(t)
			events := s.apply(c)
			if c.Kind == Place && c.Side == Buy && c.Outcome == 1 {
				c.Side, c.Outcome, c.Cash = Sell, 0, Cash(c.Size)-c.Cash
			}
			same := dual.apply(c)
			if len(events) != len(same) {
				t.Fatalf("%+v\nevents %+v\ndual   %+v", c, events, same)
			}
			for i := range events {
				a, b := &events[i], &same[i]
				if a.Kind != b.Kind || a.Order != b.Order || a.Size != b.Size ||
					a.Remaining != b.Remaining || inA(a) != inA(b) {
					t.Fatalf("%+v\nevent %+v\ndual  %+v", c, a, b)
				}
			}
		}
	})
}

func inA(e *Event) Price {
	if e.Outcome == 1 && e.Kind != Rejected {
		return PriceOne - e.Price
	}
	return e.Price
}

// trading is the Digest without the remembered placements, whose order it holds.
func (x *Exchange) trading() uint64 { return x.digest - x.seen.sum() }

// TestInterleaving runs two markets in another order: the same state, but for the order of the ids.
func TestInterleaving(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		s, other := newStage(Window, 100, 50), newStage(Window, 100, 50)
		s.fund(1<<45, 1<<45)
		other.fund(1<<45, 1<<45)
		market := map[OrderID]MarketNo{}
		var later []Command
		for range rapid.IntRange(1, 80).Draw(t, "commands") {
			c := s.draw(t)
			if _, known := market[c.ID]; known && c.Kind == Place {
				continue // an id in both markets ties them together
			}
			if c.Kind == Place {
				market[c.ID] = c.Market
			}
			s.apply(c)
			if market[c.ID] == 2 {
				later = append(later, c)
				continue
			}
			other.apply(c)
		}
		for _, c := range later {
			other.apply(c)
		}
		if s.x.trading() != other.x.trading() {
			t.Fatal("another order of independent commands, another digest")
		}
		same := slices.Equal(placed(s.x), placed(other.x))
		if same != (s.x.Digest() == other.x.Digest()) {
			t.Fatalf("ids in the same order: %v, digests the same: %v", same, !same)
		}
	})
}

// placed is the remembered ids in the order of the ring, which has not run over.
func placed(x *Exchange) (ids []OrderID) {
	for i := uint32(1); i <= x.seen.ring.used; i++ {
		ids = append(ids, x.seen.ring.at(i).id)
	}
	return ids
}

// TestPlacementOrder: the same live orders, the same ids bound, in another order or with another
// number of forgotten ones: another Digest, because other ids will be forgotten next.
func TestPlacementOrder(t *testing.T) {
	run := func(window uint32, ids ...byte) *Exchange {
		s := newStage(window, 100, 100)
		s.fund(100*Unit, 0)
		for _, n := range ids {
			c := Command{Kind: Place, Wallet: 1, Owner: 1, Market: MarketNo(1 + n%2), Seen: s.seq,
				Size: Unit, Cash: Unit / 10, ID: OrderID{n}}
			s.apply(c)
			s.apply(Command{Kind: Cancel, Owner: 1, ID: c.ID})
		}
		if err := s.x.audit(); err != nil {
			t.Fatal(err)
		}
		return s.x
	}
	first := run(4, 1, 2, 3)
	for name, other := range map[string]*Exchange{
		"another order":                 run(4, 2, 1, 3),
		"another order in the ring":     run(4, 3, 1, 2),
		"the same, after forgotten":     run(3, 4, 1, 2, 3),
		"the same, after two forgotten": run(3, 5, 4, 1, 2, 3),
	} {
		if other.Digest() == first.Digest() {
			t.Errorf("%s: the same digest", name)
		}
		if other.seen.ring.used != first.seen.ring.used {
			t.Errorf("%s: %d remembered", name, other.seen.ring.used)
		}
	}
	if run(4, 1, 2, 3).Digest() != first.Digest() {
		t.Error("the same, another digest")
	}
	two, three := run(3, 4, 1, 2, 3), run(3, 5, 4, 1, 2, 3)
	if two.Digest() == three.Digest() {
		t.Error("another number of forgotten ids: the same digest")
	}
}
