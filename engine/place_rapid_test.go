package engine

import (
	"encoding/binary"
	"math/big"
	"slices"
	"testing"

	"pgregory.net/rapid"
)

// plain is an exchange of one market as its rules are told, not as it is built: one list of orders,
// searched from end to end, sizes in lots and counted up lot by lot, fees as fractions.
type plain struct {
	ticks      int64
	min        int64 // base units
	minBuy     Cash
	fee        Fee
	fees       Cash
	cash       map[WalletNo]Cash
	tokens     map[WalletNo][2]int64 // lots
	prevention map[WalletNo]Prevention
	resting    []plainOrder // by arrival
	bound      map[OrderID]Sequence
}

type plainOrder struct {
	id      OrderID
	seq     Sequence
	wallet  WalletNo
	side    Side
	outcome Outcome
	price   Price
	lots    int64
	expiry  Time
	spent   Cash
}

// inA is the side and price in outcome 0.
func (o *plainOrder) inA() (Side, Price) {
	if o.outcome == 0 {
		return o.side, o.price
	}
	return o.side.Other(), PriceOne - o.price
}

func (m *plain) clone() *plain {
	n := *m
	n.cash, n.tokens = map[WalletNo]Cash{}, map[WalletNo][2]int64{}
	for w := range m.cash {
		n.cash[w], n.tokens[w] = m.cash[w], m.tokens[w]
	}
	n.resting = slices.Clone(m.resting)
	return &n
}

// held is what a wallet's resting orders lock: collateral, and lots of each token.
func (m *plain) held(w WalletNo) (cash Cash, tokens [2]int64) {
	for _, o := range m.resting {
		switch {
		case o.wallet != w:
		case o.side == Buy:
			cash += Cash(o.lots * int64(o.price))
		default:
			tokens[o.outcome] += o.lots
		}
	}
	return cash, tokens
}

func (m *plain) freeCash(w WalletNo) Cash {
	held, _ := m.held(w)
	return m.cash[w] - held
}

// best is the place of the first resting order that o meets, -1 if none.
func (m *plain) best(o *plainOrder) int {
	at := -1
	side, limit := o.inA()
	for i := range m.resting {
		other, price := m.resting[i].inA()
		if other == side || side == Buy && price > limit || side == Sell && price < limit {
			continue
		}
		if at >= 0 {
			if _, found := m.resting[at].inA(); side == Buy && price >= found ||
				side == Sell && price <= found {
				continue
			}
		}
		at = i
	}
	return at
}

// roundedFee is the fee of a fill, half a step up.
func (m *plain) roundedFee(lots int64, p Price) Cash {
	steps := exactFee(m.fee, Size(lots)*Lot, p)
	steps.Quo(steps, big.NewRat(feeStep, 1))
	return Cash(floorRat(steps.Add(steps, big.NewRat(1, 2))) * feeStep)
}

// highestFee is the fee of an order at its limit, rounded up.
func (m *plain) highestFee(lots int64, p Price) Cash {
	steps := exactFee(m.fee, Size(lots)*Lot, p)
	return Cash(-floorRat(steps.Quo(steps, big.NewRat(-feeStep, 1))) * feeStep)
}

// limit is the price of the signed amounts in ticks, and whether they lie near enough to it.
func (m *plain) limit(c *Command) (int64, bool) {
	price := big.NewRat(int64(c.Cash)*m.ticks, int64(c.Size)) // in ticks
	n := floorRat(new(big.Rat).Add(price, big.NewRat(1, 2)))
	off := new(big.Rat).Sub(price, big.NewRat(n, 1))
	most := big.NewRat(1, 50)
	if c.Type <= GTD { // one base unit of collateral
		most = big.NewRat(m.ticks, int64(c.Size))
	}
	return n, n >= 1 && n < m.ticks && off.Abs(off).Cmp(most) <= 0
}

func (m *plain) refuse(c *Command, why Reject, args ...int64) []Event {
	e := Event{
		Kind: Rejected, Reject: why, Side: c.Side, Outcome: c.Outcome, Market: c.Market,
		Wallet: c.Wallet, Owner: c.Owner, Order: c.ID,
	}
	copy(e.Args[:], args)
	return []Event{e}
}

// place judges and carries out what a wallet with an open market asks for.
func (m *plain) place(c *Command, seq Sequence, now Time) []Event {
	if first, ok := m.bound[c.ID]; ok {
		events := m.refuse(c, RejectDuplicate)
		events[0].First = first
		return events
	}
	events := m.judge(c, now)
	if events == nil {
		events = m.trade(c, seq)
	}
	if last := events[len(events)-1]; last.Kind != Rejected || Rejects[last.Reject].Final {
		m.bound[c.ID] = seq
	}
	return events
}

func (m *plain) judge(c *Command, now Time) []Event {
	n, good := m.limit(c)
	p := Price(n * int64(PriceOne) / m.ticks)
	o := plainOrder{side: c.Side, outcome: c.Outcome, price: p}
	marketable := c.Type > GTD || good && m.best(&o) >= 0
	lots := m.lots(c, p)
	switch {
	case c.Deadline != 0 && c.Deadline < now:
		return m.refuse(c, RejectStale, int64(c.Deadline), int64(now))
	case c.PostOnly && (c.Type == FOK || c.Type == FAK):
		return m.refuse(c, RejectType)
	case c.Type == GTD && c.Expiry <= now, c.Type != GTD && c.Expiry != 0:
		return m.refuse(c, RejectExpiry)
	case c.FeeBound != 0 && int(c.FeeBound) <= int(m.fee.Rate):
		return m.refuse(c, RejectFee, int64(c.FeeBound)-1, int64(m.fee.Rate))
	case !good:
		return m.refuse(c, RejectTick, roundPrice(c), int64(PriceOne)/m.ticks)
	case c.Type <= GTD && int64(c.Size) < m.min:
		return m.refuse(c, RejectMinSize, int64(c.Size), m.min)
	case c.Size < Lot:
		return m.refuse(c, RejectMinSize, int64(c.Size), int64(Lot))
	case lots == 0:
		return m.refuse(c, RejectAmount)
	case c.PostOnly && m.best(&o) >= 0:
		return m.refuse(c, RejectCrosses)
	case c.Side == Buy && marketable && c.Cash < m.minBuy:
		return m.refuse(c, RejectMinBuy, int64(c.Cash), int64(m.minBuy))
	}
	return m.afford(c, lots, p)
}

// lots is the size of an order: what is signed, and for a BUY that need not be filled whole not
// more than its cash pays for.
func (m *plain) lots(c *Command, p Price) int64 {
	lots := int64(c.Size / Lot)
	for c.Side == Buy && c.Type != FOK && lots*int64(p) > int64(c.Cash) {
		lots--
	}
	return lots
}

func (m *plain) afford(c *Command, lots int64, p Price) []Event {
	cash, tokens := m.held(c.Wallet)
	total, held, need := int64(m.cash[c.Wallet]), int64(cash), lots*int64(p)
	if c.Side == Sell {
		total, held = m.tokens[c.Wallet][c.Outcome]*int64(Lot), tokens[c.Outcome]*int64(Lot)
		need = lots * int64(Lot)
	} else {
		if c.Type > GTD {
			need = int64(c.Cash)
		}
		if !c.PostOnly {
			need += int64(m.highestFee(lots, p))
		}
	}
	if total-held < need {
		return m.refuse(c, RejectBalance, total, held, need)
	}
	return nil
}

// trade matches what was judged. A FOK is tried on a copy first.
func (m *plain) trade(c *Command, seq Sequence) []Event {
	n, _ := m.limit(c)
	o := plainOrder{
		id: c.ID, seq: seq, wallet: c.Wallet, side: c.Side, outcome: c.Outcome,
		price: Price(n * int64(PriceOne) / m.ticks), expiry: c.Expiry,
	}
	o.lots = m.lots(c, o.price)
	last := Event{
		Kind: Completed, Side: o.side, Outcome: o.outcome, Price: o.price, Market: c.Market,
		Wallet: o.wallet, Owner: c.Owner, Size: Size(o.lots) * Lot, Order: o.id,
	}
	if c.Type == FOK {
		try := o
		if m.clone().match(c, &try); try.lots > 0 {
			return m.refuse(c, RejectFOK)
		}
	}
	if c.Type == FAK {
		try := o
		events, met := m.clone().match(c, &try)
		fills := slices.ContainsFunc(events, func(e Event) bool { return e.Kind == Filled })
		if !fills && !met {
			return m.refuse(c, RejectFAK)
		}
	}
	events, met := m.match(c, &o)
	last.Remaining = Size(o.lots) * Lot
	switch {
	case o.lots == 0:
	case met:
		last.Reason = SelfTrade
	case c.Type == FAK:
		last.Reason = Unfilled
	default:
		last.Kind = Placed
		m.resting = append(m.resting, o)
	}
	return append(events, last)
}

// match lets o meet what rests; what is left of its lots is what is missing of its size.
func (m *plain) match(c *Command, o *plainOrder) (events []Event, met bool) {
	budget := c.Side == Buy && c.Type > GTD
	for o.lots > 0 || budget {
		i := m.best(o)
		if i < 0 {
			break
		}
		r := &m.resting[i]
		p := r.price
		if r.outcome != o.outcome {
			p = PriceOne - p
		}
		lots := min(r.lots, o.lots)
		if budget {
			lots = m.within(o, r.lots, p, c.Cash-o.spent)
		}
		if lots == 0 {
			break
		}
		if how := m.prevention[o.wallet]; r.wallet == o.wallet && how != AllowSelfTrade {
			met = how != ExpireResting
			if how != ExpireArriving {
				events = append(events, r.gone(c.Market, SelfTrade))
				m.resting = slices.Delete(m.resting, i, i+1)
			}
			if met {
				break
			}
			continue
		}
		events = append(events, m.fill(c, o, i, lots))
		if events[len(events)-1].Remaining > 0 {
			break
		}
		m.resting = slices.Delete(m.resting, i, i+1)
	}
	return events, met
}

// within is how many lots at price p a budget takes, counted one by one: all that are missing of
// its size, and beyond it those that it can pay for with their fee.
func (m *plain) within(o *plainOrder, most int64, p Price, budget Cash) (lots int64) {
	for lots < most && Cash((lots+1)*int64(p)) <= budget {
		all := Cash((lots+1)*int64(p)) + m.roundedFee(lots+1, p)
		if lots >= o.lots && m.fee.Rate != 0 && all > m.freeCash(o.wallet) {
			break
		}
		lots++
	}
	return lots
}

// fill moves lots between o and resting order i.
func (m *plain) fill(c *Command, o *plainOrder, i int, lots int64) Event {
	r := &m.resting[i]
	how, p := Transfer, r.price
	if r.outcome != o.outcome {
		how, p = Mint, PriceOne-p
		if r.side == Sell {
			how = Merge
		}
	}
	r.lots -= lots
	m.pay(r, r.price, lots)
	missing := o.lots
	o.lots = max(o.lots-lots, 0)
	fee := m.roundedFee(lots, p)
	if o.side == Sell {
		fee = min(fee, Cash(lots*int64(p)))
	} else {
		rest := min(Cash(o.lots*int64(o.price)), c.Cash-o.spent-Cash(lots*int64(p)))
		spare := m.freeCash(o.wallet) - Cash(lots*int64(p)) - rest
		if lots > missing && fee > spare {
			panic("what is beyond the size is not paid for")
		}
		fee = min(fee, spare)
	}
	m.pay(o, p, lots)
	o.spent += Cash(lots * int64(p))
	m.cash[o.wallet] -= fee
	m.fees += fee
	return Event{
		Kind: Filled, Settlement: how, Side: r.side, Outcome: r.outcome, Price: r.price,
		Market: c.Market, Wallet: r.wallet, Owner: r.wallet, Size: Size(lots) * Lot,
		Remaining: Size(r.lots) * Lot, Fee: fee, First: r.seq, Order: r.id,
	}
}

// pay gives one side its tokens for its cash.
func (m *plain) pay(o *plainOrder, p Price, lots int64) {
	tokens := m.tokens[o.wallet]
	if o.side == Sell {
		lots = -lots
	}
	tokens[o.outcome] += lots
	m.tokens[o.wallet] = tokens
	m.cash[o.wallet] -= Cash(lots * int64(p))
}

func (o *plainOrder) gone(market MarketNo, why Reason) Event {
	return Event{
		Kind: Cancelled, Reason: why, Side: o.side, Outcome: o.outcome, Price: o.price,
		Market: market, Wallet: o.wallet, Owner: o.wallet, Remaining: Size(o.lots) * Lot,
		First: o.seq, Order: o.id,
	}
}

// advance takes out what is due, by expiry and then by age.
func (m *plain) advance(now Time) (events []Event) {
	due := slices.Clone(m.resting)
	slices.SortStableFunc(due, func(a, b plainOrder) int { return int(a.expiry - b.expiry) })
	n := Size(0)
	for _, o := range due {
		if o.expiry == 0 || o.expiry > now {
			continue
		}
		events = append(events, o.gone(1, Expired))
		m.resting = slices.DeleteFunc(m.resting, func(r plainOrder) bool { return r.id == o.id })
		n++
	}
	return append(events, Event{Kind: Advanced, Size: n})
}

const plainWallets = 3

// newPlain throws a market and what its wallets have, and makes an exchange that is the same, and
// one with the tokens swapped.
func newPlain(d *dice) (m *plain, x, mirror *stage) {
	m = &plain{
		ticks: []int64{100, 1000, 10}[d.below(3)],
		cash:  map[WalletNo]Cash{}, tokens: map[WalletNo][2]int64{},
		prevention: map[WalletNo]Prevention{}, bound: map[OrderID]Sequence{},
		min: int64(d.below(2)) * 5 * int64(Lot), minBuy: Cash(d.below(2)) * 9000,
	}
	if d.below(3) > 0 {
		m.fee = Fee{Rate: uint16(d.below(10_000) >> d.below(8)), Exponent: uint8(d.below(4))}
	}
	x, mirror = &stage{x: NewExchange(1)}, &stage{x: NewExchange(2)}
	l := Listing{Tick: PriceOne / Price(m.ticks), MinSize: Size(m.min), MinBuy: m.minBuy,
		Fee: m.fee, Tokens: [2]Token{{1}, {2}}, Open: true}
	x.apply(Command{Kind: List, Listing: &l})
	mirror.apply(Command{Kind: List, Listing: &l})
	for w := WalletNo(1); w <= plainWallets; w++ {
		cash := int64(1+d.below(2_000_000)) >> d.below(6)
		own := [2]int64{1 + int64(d.below(500)), 1 + int64(d.below(500))}
		how := Prevention(d.below(4))
		m.cash[w], m.tokens[w], m.prevention[w] = Cash(cash), own, how
		for i, s := range []*stage{x, mirror} {
			a := Address{byte(w)}
			s.apply(Command{Kind: Deposit, Address: a, Cash: Cash(cash)})
			for o := range own {
				s.apply(Command{Kind: Deposit, Address: a, Market: 1, Outcome: Outcome(o ^ i),
					Size: Size(own[o]) * Lot})
			}
			s.apply(Command{Kind: SetPrevention, Wallet: w, Prevention: how})
		}
	}
	return m, x, mirror
}

// draw throws an order of any type, mostly near the middle, often for all that its wallet has, with
// amounts that lie on its price or about as far from it as they may.
func (m *plain) draw(d *dice, seq Sequence, middle int64) Command {
	w := WalletNo(1 + d.below(plainWallets))
	c := Command{Kind: Place, Market: 1, Wallet: w, Owner: w, Seen: seq}
	c.Type, c.Side, c.Outcome = OrderType(d.below(4)), Side(d.below(2)), Outcome(d.below(2))
	c.Size = Size(1+d.below(60)) * Lot
	n := middle + int64(d.below(11)) - 5
	if d.below(4) == 0 {
		n = int64(d.below(int(m.ticks)))
	}
	if c.Outcome == 1 {
		n = m.ticks - n
	}
	n = min(max(n, 1), m.ticks-1)
	price := Price(n * int64(PriceOne) / m.ticks)
	if c.Side == Buy && d.below(3) == 0 {
		lots := int64(m.freeCash(w)) / (int64(price) + int64(m.highestFee(100, price))/100 + 1)
		c.Size = Size(min(max(lots, 1), 400)) * Lot
	}
	c.Cash = Cost(c.Size, price)
	if d.below(5) == 0 {
		c.Size += Size(d.below(10_000))
		off := int(c.Size)/int(m.ticks)/45 + 2
		c.Cash = max(Cash(int64(c.Size)*n/m.ticks)+Cash(d.below(2*off)-off), 1)
	}
	if c.Type == GTD {
		c.Expiry = Time(int(seq) + d.below(40))
	}
	switch d.below(30) {
	case 0:
		c.Expiry = 5
	case 1:
		c.Deadline = Time(int(seq) + d.below(7) - 3)
	case 2, 3, 4, 5:
		c.PostOnly = true
	case 6:
		c.FeeBound = uint16(1 + d.below(10_000))
	}
	binary.BigEndian.PutUint64(c.ID[:], uint64(seq+1))
	if d.below(30) == 0 {
		binary.BigEndian.PutUint64(c.ID[:], uint64(seq)/2)
	}
	return c
}

// TestPlaceAgainstRules: orders of every type, with every prevention and fee, do what the rules
// say, and the same with the tokens swapped.
func TestPlaceAgainstRules(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		setup := dice(rapid.Uint64().Draw(t, "setup"))
		m, s, mirror := newPlain(&setup)
		middle := 1 + int64(setup.below(int(m.ticks-1)))
		for i, seed := range rapid.SliceOfN(rapid.Uint64(), 50, 150).Draw(t, "commands") {
			d := dice(seed + uint64(i)<<32)
			c := m.draw(&d, s.seq, middle)
			want := func() []Event { return m.place(&c, s.seq, Time(s.seq)) }
			if d.below(20) == 0 {
				c = Command{Kind: Advance}
				want = func() []Event { return m.advance(Time(s.seq)) }
			}
			before := s.x.Digest()
			got := s.apply(c)
			if expected := want(); !slices.Equal(got, expected) {
				t.Fatalf("%+v\ngot  %+v\nwant %+v", c, got, expected)
			}
			e := got[len(got)-1]
			if e.Kind == Rejected && !Rejects[e.Reject].Final && s.x.Digest() != before {
				t.Fatal("a rejected command changed the state")
			}
			m.fair(t, &c, got)
			if c.Kind == Place {
				c.Outcome ^= 1
			}
			swapped := mirror.apply(c)
			for i := range swapped {
				if swapped[i].Kind != Advanced {
					swapped[i].Outcome ^= 1
				}
			}
			if !slices.Equal(got, swapped) {
				t.Fatalf("%+v\ngot    %+v\nmirror %+v", c, got, swapped)
			}
		}
		m.compare(t, s.x)
	})
}

// fair compares what an order made and took with what it signed.
func (m *plain) fair(t *rapid.T, c *Command, events []Event) {
	r := ReceiptOf(c, 1, 1, events)
	if c.Kind != Place || r.Trades == 0 {
		return
	}
	cash, size := r.Making, r.Taking
	if c.Side == Sell {
		cash, size = size, cash
	}
	signed := big.NewRat(int64(c.Cash), int64(c.Size))
	over := new(big.Rat).Sub(big.NewRat(cash, size), signed)
	if c.Side == Sell {
		over.Neg(over)
	}
	most := big.NewRat(1, size) // one base unit in all
	if c.Type > GTD {
		most = big.NewRat(1, 50*m.ticks)
	}
	if over.Cmp(most) > 0 || c.Side == Buy && cash > int64(c.Cash) || size%int64(Lot) != 0 ||
		c.Type == FOK && r.Remaining != 0 {
		t.Fatalf("%+v made %d, took %d", c, r.Making, r.Taking)
	}
	if c.Side == Sell && int64(r.Fee) > cash || r.Fee < 0 {
		t.Fatalf("%+v made %d, took %d and paid %d", c, r.Making, r.Taking, r.Fee)
	}
}

func (m *plain) compare(t *rapid.T, x *Exchange) {
	if x.fees != m.fees {
		t.Fatalf("fees %d, want %d", x.fees, m.fees)
	}
	for w := range m.cash {
		cash, tokens := m.held(w)
		if got := x.accounts.at(uint32(w)).cash; got != (entry{int64(m.cash[w]), int64(cash)}) {
			t.Fatalf("wallet %d: %+v, want %d, %d held", w, got, m.cash[w], cash)
		}
		p := x.positions.at(x.position(w, 1))
		for o, lots := range m.tokens[w] {
			want := entry{lots * int64(Lot), tokens[o] * int64(Lot)}
			if p.tokens[o] != want {
				t.Fatalf("wallet %d, %d: %+v, want %+v", w, o, p.tokens[o], want)
			}
		}
	}
	if err := audit(x); err != nil {
		t.Fatal(err)
	}
}
