package engine

import (
	"math/big"
	"testing"

	"clobd/scripts/setting"
)

// Edges that drawn histories seldom touch: amounts at their tolerance, cash that just suffices, and
// the largest supply.

// TestReferenceAmounts signs amounts of all magnitudes that are just near enough to a price, or
// just too far.
func TestReferenceAmounts(t *testing.T) {
	dice := dice(1)
	d, took := newDuel(dice.below, 8), map[bool]int{}
	for no, tick := range []Price{1000, 100, 50, 25, 10, 1} {
		l := &Listing{Tick: tick, Open: true}
		l.Condition[0], l.Tokens[0][0], l.Tokens[1][0] = byte(no+1), byte(2*no+1), byte(2*no+2)
		d.both(t, Command{Kind: List, Listing: l})
		d.both(t, Command{Kind: Deposit, Address: Address{1}, Cash: MaxAmount})
		d.both(t, Command{Kind: Deposit, Address: Address{1}, Market: MarketNo(no + 1),
			Size: MaxAmount})
	}
	amounts := 60_000
	if auditing {
		amounts /= 10 // each Command is followed by a look at everything
	}
	for i := range amounts {
		no, ticks := MarketNo(1+i%6), []int64{10, 100, 200, 400, 1000, 10_000}[i%6]
		size := int64(Lot)*int64(1+d.draw(3)) + int64(dice.next()>>(18+d.draw(36)))
		n := int64(d.pick(0, 1, int(ticks)-1, int(ticks), d.draw(int(ticks)), d.draw(int(ticks))))
		c := Command{Kind: Place, Market: no, Wallet: 1, Owner: 1, Seen: d.seq,
			Type: OrderType(d.pick(0, 3, 2)), Side: Side(d.draw(2)), Size: Size(size)}
		off := 0
		if c.Type > GTD {
			off = int(size / (50 * ticks))
		}
		exact := whole(new(big.Rat).Mul(fraction(n, ticks), fraction(size, 1))).Int64()
		c.Cash = Cash(exact + int64(off*d.pick(1, -1)+d.pick(0, 1, 2, -1, -2)))
		d.orders++
		c.ID = d.id(0)
		last := d.both(t, c)[0]
		took[last.Reject != RejectTick]++
		if last.Kind == Placed {
			d.both(t, Command{Kind: Cancel, Owner: 1, ID: c.ID})
		}
	}
	if min(took[true], took[false]) < amounts/6 {
		t.Errorf("taken and not: %v", took)
	}
	d.compare(t)
}

// bound is a duel at the bounds: some market and two rich wallets.
func bound(t *testing.T) *duel {
	dice := dice(1)
	d := newDuel(dice.below, 64)
	d.both(t, Command{Kind: List,
		Listing: &Listing{Tick: 100, Open: true, Tokens: [2]Token{{1}, {2}}}})
	for w := range byte(2) {
		d.both(t, Command{Kind: Deposit, Address: Address{w + 1}, Cash: 1000 * Unit})
	}
	return d
}

// offer places an order in the market of bound and returns its last Event.
func (d *duel) offer(t *testing.T, c Command, size Size) Event {
	d.orders++
	c.Kind, c.ID, c.Market, c.Size, c.Owner, c.Seen = Place, d.id(0), 1, size, c.Wallet, d.seq
	events := d.both(t, c)
	d.fair(t, &c, events)
	return events[len(events)-1]
}

// TestReferenceExpiry cancels many of the orders that expire, and lets more of them expire at once
// than one Advance takes.
func TestReferenceExpiry(t *testing.T) {
	d := bound(t)
	const timed = AdvanceOrders + 600
	for range timed {
		d.offer(t, Command{Wallet: WalletNo(1 + d.draw(2)), Cash: Cash(1+d.draw(9)) * 100,
			Type: GTD, Expiry: 2 + Time(d.draw(5000))}, Lot)
	}
	for range 500 {
		d.both(t, Command{Kind: Cancel, Reason: ByOperator, ID: d.id(d.draw(timed))})
	}
	d.step(t, Command{Kind: Advance})
	for d.now = 50; d.now < 1000; d.now += 50 {
		d.step(t, Command{Kind: Advance})
	}
	for range timed {
		d.offer(t, Command{Wallet: 1, Cash: 1000, Type: GTD, Expiry: 1005}, Lot)
	}
	for d.now = 1004; d.now < 1007; d.now++ {
		d.step(t, Command{Kind: Advance})
		d.step(t, Command{Kind: Advance})
	}
	for d.now = 10_000; len(d.r.orders) > 0; {
		d.step(t, Command{Kind: Advance})
	}
}

// TestReferenceMany gives a wallet the most orders that it may hold. An order that may rest is then
// refused, even if it would trade at once; an order that never rests is accepted.
func TestReferenceMany(t *testing.T) {
	setting.Full(t, "TestReferenceSeeded stays")
	if auditing {
		t.Skip("an audit after each of 10,000 orders takes too long")
	}
	d := bound(t)
	for range MaxWalletOrders + 3 {
		d.offer(t, Command{Wallet: 1, Cash: 1000}, Lot)
	}
	for range 3 {
		d.offer(t, Command{Wallet: 2, Cash: 9000, Outcome: 1}, Lot)
		d.offer(t, Command{Wallet: 1, Cash: 1000}, Lot)
		d.offer(t, Command{Wallet: 1, Cash: 1000}, Lot)
		d.offer(t, Command{Wallet: 1, Cash: 1000, Type: FAK}, Lot)
		d.offer(t, Command{Wallet: 1, Cash: 9500, Outcome: 1}, Lot)
	}
	d.compare(t)
	d.step(t, Command{Kind: CancelAll, Wallet: 1, Owner: 1, Reason: ByOwner})
}

// TestReferenceSupply brings in the largest supply, to the base unit.
func TestReferenceSupply(t *testing.T) {
	d := bound(t)
	for i := 0; d.r.outside < MaxSupply; i++ {
		left := MaxSupply - d.r.outside
		for _, amount := range []int64{left + 1, left} {
			amount = min(amount, MaxAmount)
			d.step(t, Command{Kind: Deposit, Address: Address{byte(1 + i%4)}, Cash: Cash(amount),
				Size: Size(amount), Market: MarketNo(i % 2)})
		}
		d.step(t, Command{Kind: Withdraw, Address: Address{1}, Cash: Cash(i % 2 * i % 3)})
	}
	d.step(t, Command{Kind: Deposit, Address: Address{3}, Cash: 1})
}

// TestReferenceLastCent places orders to buy whose wallet has exactly enough, a little less or a
// little more. Many small fills are rounded up one by one, and a budget may buy far more.
func TestReferenceLastCent(t *testing.T) {
	d := bound(t)
	d.step(t, Command{Kind: Deposit, Address: Address{1}, Market: 1, Size: 1000 * Unit})
	fees := map[bool]int{}
	for range 4000 {
		l := d.r.market(1).listing
		l.Tick = Price(d.pick(1, 10, 100, 1000))
		l.Fee = Fee{uint16(d.draw(32)), uint8(d.pick(0, 0, 1))}
		if d.one(4) {
			l.Fee = Fee{uint16(d.draw(10_000)), uint8(d.draw(4))}
		}
		d.both(t, Command{Kind: Adjust, Market: 1, Listing: &l})
		ticks := int(PriceOne / l.Tick)
		n := d.pick(1, 2, 1+d.draw(ticks-1), 1+d.draw(ticks-1))
		for range 1 + d.draw(6) {
			c := Command{Wallet: 1, Side: Sell, Cash: Cash(min(n, ticks-1)) * Cash(l.Tick)}
			if d.one(4) {
				c.Cash = Cash(1+d.draw(min(n, ticks-1))) * Cash(l.Tick)
			}
			lots := d.pick(1, 1, 1, 2, 1+d.draw(60))
			c.Cash *= Cash(lots)
			d.offer(t, c, Size(lots)*Lot)
		}
		c := Command{Wallet: 2, Type: OrderType(d.pick(0, 2, 3))}
		size := Size(d.pick(1+d.draw(8), 1+d.draw(120))) * Lot
		c.Cash = Cost(size, Price(min(n, ticks-1))*l.Tick)
		if c.Type > GTD {
			c.Cash += Cash(int64(size) * int64(l.Tick) / (50 * int64(PriceOne)) * int64(d.draw(3)-1))
		}
		need := int64(c.Cash) + feeUp(l.Fee, int64(size/Lot), int64(min(n, ticks-1))*int64(l.Tick))
		need += int64(d.pick(0, 0, 1, 5, 10, -1, 10*d.draw(30)))
		d.both(t, Command{Kind: Withdraw, Address: Address{2}, Cash: Cash(d.r.free(2) - need)})
		last := d.offer(t, c, size)
		fees[last.Reject != RejectBalance]++
		d.compare(t)
		d.both(t, Command{Kind: Deposit, Address: Address{2}, Cash: 10 * Unit})
		d.both(t, Command{Kind: CancelAll, Wallet: 1, Reason: ByOperator})
		d.both(t, Command{Kind: CancelAll, Wallet: 2, Reason: ByOperator})
	}
	if err := audit(d.x); err != nil {
		t.Error(err)
	}
	t.Logf("could pay: %v", fees)
}

// TestReferenceRedeem redeems pairs of holdings that are worth a ten-thousandth of a base unit less
// than a whole one.
func TestReferenceRedeem(t *testing.T) {
	d := bound(t)
	for no := range 40 {
		l := &Listing{Tick: 10, Open: true}
		l.Condition[0], l.Tokens[0][0], l.Tokens[1][0] = byte(no+1), byte(2*no+3), byte(2*no+4)
		payout, market := 1+10*d.draw(1000), MarketNo(no+2)
		d.both(t, Command{Kind: List, Listing: l})
		for w := range byte(10) {
			a := int64(1 + d.draw(20_000))
			b := a + 1
			for (a*int64(payout)+b*int64(int(PriceOne)-payout))%int64(PriceOne) != 9999 {
				b++
			}
			for o, size := range []int64{a, b} {
				d.both(t, Command{Kind: Deposit, Address: Address{w + 1}, Market: market,
					Outcome: Outcome(o), Size: Size(size)})
			}
		}
		d.both(t, Command{Kind: Resolve, Market: market, Price: Price(payout)})
		for w := range WalletNo(10) {
			d.both(t, Command{Kind: RedeemTokens, Market: market, Wallet: w + 1, Owner: w + 1})
		}
		d.step(t, Command{Kind: RedeemTokens, Market: market, Wallet: 1, Owner: 1})
	}
}
