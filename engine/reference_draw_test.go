package engine

import "encoding/binary"

// A deck draws Commands that meet each other: few wallets, markets, prices and names, little money,
// and now and then a value out of range or a Command out of place. Each choice is a number below n
// from a seed, from bytes or from rapid; 0 is the simplest choice, which rapid shrinks to.
type deck struct {
	draw    func(n int) int
	seq     Sequence
	now     Time
	orders  int       // ids handed out
	rules   []Listing // by market, as they were taken
	middle  []int     // around which a market trades, as a price of outcome 0
	resting []Event   // orders that came to rest
	undo    []Command // what lets orders in again: without it little would happen
	queue   []Command // what comes next whatever is drawn
	settled []Event   // what markets were resolved with
	asked   Command   // the last request of a wallet, and when its id may be used again
	over    Time
	x       *Exchange // to see who has how much, if it is set
	plain   bool      // no order replaces another
	last    Command
}

const (
	deckWallets = 4
	deckMarkets = 3
)

func newDeck(draw func(n int) int) *deck { return &deck{draw: draw, now: 1} }

// one is true once in n draws.
func (d *deck) one(n int) bool { return d.draw(n) == n-1 }

// pick returns one of several numbers; the first is the simplest.
func (d *deck) pick(n ...int) int { return n[d.draw(len(n))] }

// opening draws how a history begins: markets, wallets and their balances.
func (d *deck) opening() (all []Command) {
	for i := range deckMarkets {
		l := d.listing(i + 1)
		l.Tick = Price(d.pick(100, 1000, 50, 25, 10, 1))
		all = append(all, Command{Kind: List, Listing: l})
	}
	for w := range byte(deckWallets) {
		a := Address{19: w + 1}
		all = append(all, Command{Kind: Deposit, Address: a, Cash: 1 + Cash(d.draw(5000)*1000)})
		for m := range deckMarkets {
			for out := range Outcome(2) {
				all = append(all, Command{Kind: Deposit, Address: a, Market: MarketNo(m + 1),
					Outcome: out, Size: 1 + Size(d.draw(100))*Lot})
			}
		}
		if how := d.draw(6); how > 0 {
			all = append(all, Command{Kind: SetPrevention, Wallet: WalletNo(w + 1),
				Prevention: Prevention(how % 4)})
		}
	}
	if d.one(8) {
		for key := range uint32(MaxReadOnlyKeys) {
			all = append(all, Command{Kind: SetKey, Owner: 1, Class: ReadOnlyKey, Key: key})
		}
	}
	if d.one(12) {
		for key := range uint32(MaxTradingKeys - 1) {
			all = append(all, Command{Kind: Arm, Owner: 1, Key: 100 + key, Expiry: 10_000})
		}
	}
	if !d.one(2) {
		all = append(all, Command{Kind: Link, Address: Address{19: 2}, Holder: Address{19: 3}})
	}
	return all
}

// listing draws the rules of market no, now and then out of range.
func (d *deck) listing(no int) *Listing {
	l := &Listing{Tick: 100, Open: !d.one(30), NegRisk: no == 2, Group: uint64(no)}
	l.Condition[31], l.Tokens[0][31], l.Tokens[1][31] = byte(no), byte(2*no), byte(2*no+1)
	l.MinSize = Size(d.pick(0, 0, 30_000, 50_000, 1))
	l.MinBuy = Cash(d.pick(0, 0, 0, 10_000, 40_000))
	if !d.one(3) {
		l.Fee = Fee{uint16(d.pick(441, 0, 9999, 1, 5, 7, 15, 26, 2000)), uint8(d.pick(1, 0, 0, 2, 3))}
	}
	if d.one(60) {
		l.Fee.Rate = uint16(9_990 + d.draw(20))
		l.Fee.Exponent = uint8(d.draw(6))
		l.MinSize = Size(d.pick(0, -1, int(MaxOrder), int(MaxOrder)+1))
		l.MinBuy = Cash(d.pick(0, -1, MaxAmount+1))
	}
	return l
}

// next draws the next Command and moves the clock.
func (d *deck) next() Command {
	if d.one(2) {
		d.now += Time(d.pick(0, 1, 2, 3, 5, 8, 1000))
		if d.one(40) {
			d.now += Time(d.pick(RequestWindow-1, RequestWindow/2, RequestWindow))
		}
	}
	if len(d.queue) > 0 {
		c := d.queue[0]
		d.queue = d.queue[1:]
		if c.Kind == Place {
			c.Seen = d.seq
		}
		return c
	}
	if n := len(d.undo); n > 0 && d.one(10) {
		c := d.undo[n-1]
		d.undo = d.undo[:n-1]
		return c
	}
	w := WalletNo(1 + d.draw(deckWallets))
	c := Command{Wallet: w, Owner: w, Market: MarketNo(max(1, len(d.rules)-d.draw(deckMarkets))),
		Outcome: Outcome(d.draw(2)), Side: Side(d.draw(2)), Key: uint32(d.draw(2))}
	if d.one(60) {
		c.Owner, c.Wallet = WalletNo(d.draw(deckWallets+3)), WalletNo(d.draw(deckWallets+3))
	} else if w == 2 && d.one(3) {
		c.Owner = 3
	}
	if d.one(30) {
		c.Market = MarketNo(d.draw(len(d.rules) + 3))
	}
	switch n := d.draw(100); {
	case n < 70:
		d.place(&c)
		if c.Side == Buy && !c.PostOnly && d.one(6) {
			d.tight(&c)
		} else if c.Side == Buy && d.one(12) {
			d.feed(&c)
		}
	case n < 78:
		c.Kind = Cancel
		c.ID = d.id(d.draw(max(1, min(d.orders, 20))))
		if n := len(d.resting); n > 0 && !d.one(5) {
			e := d.resting[n-1-d.draw(min(n, 12))]
			c.ID, c.Owner, c.Wallet, c.Market = e.Order, e.Owner, e.Wallet, e.Market
		}
		if d.one(6) { // whoever names an owner is judged as that owner
			c.Owner = WalletNo(d.pick(0, 0, 1, 3))
			c.Reason = Reason(d.pick(int(ByOperator), 0, int(Timeout)))
		}
	case n < 83:
		c.Kind = Advance
	case n < 89:
		d.request(&c)
		if d.over > d.now && d.one(10) { // the same again, when its id is just over or not quite
			c = d.again()
		}
	case n < 93:
		d.transfer(&c)
	case n < 98:
		d.control(&c)
	default:
		d.rare(&c)
	}
	if d.one(60) { // the same again, whatever it was
		c = d.last
	}
	d.last = c
	return c
}

// saw tells the deck the outcome of a Command, so that later draws can refer to it.
func (d *deck) saw(c *Command, events []Event) {
	switch e := &events[len(events)-1]; e.Kind {
	case Placed:
		d.resting = append(d.resting, *e)
	case Listed:
		if int(e.Market) > len(d.rules) {
			d.rules = append(d.rules, *c.Listing)
			d.middle = append(d.middle, d.pick(5000, 1000, 2000, 3000, 4000, 7000, 9000, 100, 9900))
		}
		if e.State == Unopened {
			d.undo = append(d.undo, Command{Kind: SetState, Market: e.Market, State: Open})
		}
	case Split, Merged, Redeemed:
		if c.ID != (OrderID{}) {
			d.asked, d.over = *c, d.now+RequestWindow
		}
	case Resolved:
		d.settled = append(d.settled, *e)
		for w := range WalletNo(deckWallets) {
			d.queue = append(d.queue, Command{Kind: RedeemTokens, Market: e.Market, Wallet: w + 1,
				Owner: w + 1, ID: d.name()})
		}
		l := d.listing(len(d.rules) + 1)
		l.Open = true
		d.undo = append(d.undo, Command{Kind: List, Listing: l})
	case Adjusted:
		d.rules[e.Market-1] = *c.Listing
	case StateChanged:
		if e.State != Open {
			d.undo = append(d.undo, Command{Kind: SetState, Market: e.Market, State: Open})
		}
	case ModeSet:
		if e.Mode != Normal {
			d.undo = append(d.undo, Command{Kind: SetMode, Market: e.Market, Wallet: e.Wallet})
		}
	}
}

// id returns the id of the order that was named n ids ago.
func (d *deck) id(n int) (id OrderID) {
	binary.BigEndian.PutUint64(id[24:], uint64(max(d.orders-n, 0)))
	return id
}

// place draws an order, mostly a good one near the middle of its market.
func (d *deck) place(c *Command) {
	c.Kind, c.Seen = Place, d.seq
	c.Type = OrderType(d.pick(int(GTC), int(GTC), int(GTD), int(FOK), int(FAK), int(FAK)))
	if c.Type == GTD {
		c.Expiry = d.now + Time(d.pick(3, 1, 10, 2, 2000, 5, 20, 4, 30, 0))
	}
	c.PostOnly = c.Type <= GTD && d.one(6)
	c.Size = Size(1+d.draw(12)) * Lot
	if d.one(8) {
		c.Size = Size(1+d.draw(400)) * Lot
	} else if d.one(4) {
		c.Size = Lot
	}
	d.amounts(c)
	if d.one(10) {
		c.Seen -= min(c.Seen, Sequence(d.draw(30)))
	}
	if d.one(12) {
		d.odd(c)
	}
	if !d.plain && d.one(8) {
		d.replace(c)
	}
	if d.orders > 0 && d.one(16) {
		c.ID = d.id(d.draw(min(d.orders, 30)))
		return
	}
	d.orders++
	c.ID = d.id(0)
}

// replace makes c replace another order, which usually rests and usually is of the same wallet.
func (d *deck) replace(c *Command) {
	id := d.id(d.draw(min(d.orders+1, 20)))
	if n := len(d.resting); n > 0 && !d.one(10) {
		e := d.resting[n-1-d.draw(min(n, 12))]
		id = e.Order
		if !d.one(12) {
			c.Wallet, c.Owner = e.Wallet, e.Owner
		}
		if !d.one(3) {
			c.Market, c.Outcome, c.Side = e.Market, e.Outcome, e.Side
			d.amounts(c)
		}
	}
	c.Replace(id)
}

// feed lets another wallet sell in small pieces what a BUY wants, some of it for much less. Then
// that BUY comes with just enough cash.
func (d *deck) feed(c *Command) {
	if c.Market == 0 || int(c.Market) > len(d.rules) || c.Size < Lot || c.Cash < 1 {
		return
	}
	tick := int64(d.rules[c.Market-1].Tick)
	var sold []Command
	for range 2 + d.draw(4) {
		m := Command{Kind: Place, Market: c.Market, Outcome: c.Outcome, Side: Sell, Seen: d.seq,
			Wallet: WalletNo(1 + d.draw(deckWallets)), Size: Size(1+d.draw(2)) * Lot}
		price := int64(c.Cash) / int64(c.Size/Lot)
		if d.one(3) {
			price /= int64(2 + d.draw(8))
			m.Size *= Size(1 + d.draw(20))
		}
		m.Owner, m.Cash = m.Wallet, Cost(m.Size, Price(max(price/tick, 1)*tick))
		d.orders++
		m.ID = d.id(0)
		sold = append(sold, m)
	}
	d.tight(c)
	d.queue = append(append(sold[1:], *c), d.queue...)
	*c = sold[0]
}

// tight withdraws what a BUY does not need, or a little more or less. Then that BUY comes.
func (d *deck) tight(c *Command) {
	if d.x == nil || c.Wallet == 0 || uint32(c.Wallet) > d.x.accounts.used || c.Market == 0 ||
		int(c.Market) > len(d.rules) || c.Size < Lot || c.Size > MaxOrder || c.Cash < 1 {
		return
	}
	lots := int64(c.Size / Lot)
	need := int64(c.Cash) + feeUp(d.rules[c.Market-1].Fee, lots, int64(c.Cash)/lots) +
		int64(d.pick(0, 1, 10, -1, 5, 20, 100))
	a := d.x.accounts.at(uint32(c.Wallet))
	if free := a.cash.free(); free > need && free-need <= MaxAmount {
		d.queue = append(d.queue, *c, Command{Kind: Deposit, Address: a.address, Cash: 2 * Unit})
		*c = Command{Kind: Withdraw, Address: a.address, Cash: Cash(free - need)}
	}
}

// amounts draws a price, and amounts exactly at it or about as far from it as the rules allow.
func (d *deck) amounts(c *Command) {
	tick, middle := 100, 5000
	if int(c.Market) <= len(d.rules) && c.Market > 0 {
		tick, middle = int(d.rules[c.Market-1].Tick), d.middle[c.Market-1]
	}
	if c.Outcome == 1 {
		middle = int(PriceOne) - middle
	}
	price := middle/tick*tick + d.pick(0, 1, -1, 2, -2, 3, -3)*tick
	if c.Type >= FOK && !d.one(3) { // what does not rest is in a hurry
		price += (1 - 2*int(c.Side)) * d.draw(4) * tick
	}
	if d.one(8) {
		price = (1 + d.draw(int(PriceOne)/tick-1)) * tick
	}
	price = min(max(price, tick), int(PriceOne)-tick)
	c.Cash = Cost(c.Size, Price(price))
	switch d.draw(14) {
	case 7:
		c.Size += Size(d.draw(10_000))
		c.Cash = Cash(int64(c.Size)*int64(price)/int64(PriceOne)) + Cash(d.draw(2))
	case 8:
		c.Cash += Cash(d.pick(1, -1, 2, -2))
	case 9:
		most := int64(c.Size) * int64(tick) / (50 * int64(PriceOne))
		c.Cash += Cash(most*int64(d.pick(1, -1)) + int64(d.pick(0, 1, -1)))
	}
}

// odd makes an order unusual.
func (d *deck) odd(c *Command) {
	switch d.draw(8) {
	case 0:
		c.Deadline = d.now + Time(d.pick(0, 1, -1, -5))
	case 1:
		c.FeeBound = uint16(d.pick(442, 441, 1, 10_000, 2000))
	case 2:
		c.Expiry = d.now + Time(d.pick(5, 1, -5))
	case 3:
		c.PostOnly = true
	case 4:
		c.Type = OrderType(d.draw(6))
	case 5:
		c.Cash, c.Size = Cash(d.pick(0, -1, MaxAmount, MaxAmount+1)), Size(d.pick(Unit, 1))
	case 6:
		c.Size = Size(d.pick(0, -1, int(MaxOrder), int(MaxOrder)+1))
	case 7:
		c.Outcome, c.Side = Outcome(d.draw(3)), Side(d.draw(3))
	}
}

// name draws one of few names, or none.
func (d *deck) name() OrderID { return OrderID{31: byte(d.draw(24) / 2)} }

// request draws a split, a merge or a redemption.
func (d *deck) request(c *Command) {
	c.Kind = Kind(d.pick(int(SplitTokens), int(MergeTokens), int(RedeemTokens)))
	c.ID = d.name()
	c.Size = Size(d.draw(50))*Lot + Size(d.draw(2)*d.draw(9))
	if d.one(20) {
		c.Size = Size(d.pick(0, -1, MaxAmount, MaxAmount+1))
	}
	d.searched(c)
}

// again is the last request, once its id is over or just before.
func (d *deck) again() Command {
	d.now = max(d.now, d.over-Time(d.draw(2)))
	c := d.asked
	d.searched(&c)
	return c
}

// searched draws whether the index was searched for the id of c, and how far it had come.
func (d *deck) searched(c *Command) {
	if d.one(2) {
		c.Seen = d.seq
		if d.one(3) {
			c.Seen -= min(c.Seen, Sequence(d.draw(400)))
		}
	}
}

// transfer draws a deposit, a withdrawal or a collection of fees.
func (d *deck) transfer(c *Command) {
	c.Kind = Kind(d.pick(int(Deposit), int(Withdraw), int(Collect)))
	c.ID, c.Address = d.name(), Address{19: byte(1 + d.draw(deckWallets))}
	c.Cash, c.Size = Cash(d.draw(500)*1000), Size(d.draw(50))*Lot
	if d.one(2) {
		c.Market = 0
	}
	if c.Kind == Collect {
		c.Market, c.Cash = 0, Cash(d.draw(200))
	}
	if d.one(20) {
		c.Cash = Cash(d.pick(0, -1, MaxAmount, MaxAmount+1))
		c.Size = Size(c.Cash)
		c.Address[19] = byte(d.draw(deckWallets + 2))
		c.Outcome = Outcome(d.draw(3))
	}
}

// control draws the settings of operators and owners.
func (d *deck) control(c *Command) {
	switch d.draw(6) {
	case 0:
		c.Kind, c.Prevention = SetPrevention, Prevention(d.draw(4)+d.draw(30)/29)
	case 1:
		c.Kind, c.ID = CancelAll, d.name()
		c.Reason = Reason(d.pick(int(ByOwner), int(ByOperator), int(Timeout), int(Expired), 0))
		c.Only = Only(d.pick(0, 0, 0, 1, 2, 3, 2, 0) + d.draw(40)/39*4)
		if d.one(3) {
			c.Owner = 0
		}
		c.Market *= MarketNo(d.draw(2))
	case 2:
		c.Kind = Adjust
		l := d.listing(int(c.Market))
		if c.Market > 0 && int(c.Market) <= len(d.rules) {
			l.Tick = d.rules[c.Market-1].Tick
			l.NegRisk = d.rules[c.Market-1].NegRisk
		}
		if d.one(2) {
			l.Tick = Price(d.pick(100, 1000, 50, 25, 10, 1, 7))
		}
		c.Listing = l
	case 3:
		c.Kind, c.Mode = SetMode, Mode(d.draw(3))
		c.Wallet *= WalletNo(d.draw(2))
		c.Market *= MarketNo(d.draw(2))
	case 4:
		c.Kind, c.Expiry = Arm, Time(d.pick(10_000, 0, 5000, -1))
	case 5:
		c.Kind, c.Class, c.Revoke = SetKey, KeyClass(d.pick(1, 0, 2, 3)), d.one(3)
		if c.Key = uint32(d.draw(d.pick(20, 2))); d.one(2) {
			c.Owner, c.Class = 1, ReadOnlyKey
		}
	}
}

// rare draws Commands that end markets or many orders.
func (d *deck) rare(c *Command) {
	switch d.draw(7) {
	case 0, 1:
		c.Kind, c.State = SetState, MarketState(d.pick(int(Paused), int(Closed), int(Unopened), 0, 5))
	case 2:
		c.Kind, c.Price, c.ID = Resolve, Price(d.pick(5000, 10_000, 0, 3333, 1, 10_001)), d.name()
		if n := len(d.settled); n > 0 && d.one(2) {
			c.Market, c.Price = d.settled[n-1].Market, d.settled[n-1].Price
		}
	case 3:
		c.Kind = List
		c.Listing = d.listing(1 + d.draw(deckMarkets+2))
		if no := int(c.Listing.Group); no <= len(d.rules) && d.one(2) {
			l := d.rules[no-1]
			c.Listing = &l
		}
		if d.one(4) {
			c.Listing.Tokens[d.draw(2)][31] = byte(2 + d.draw(12))
		}
		if d.one(30) {
			c.Listing = nil
		}
	case 4:
		c.Kind, c.Address = Link, Address{19: byte(d.draw(deckWallets + 2))}
		c.Holder = Address{19: byte(d.draw(deckWallets + 2))}
	case 5:
		c.Kind = Started
	default:
		c.Kind = Kind(d.draw(int(lastKind) + 3))
	}
}

// lastKind is the largest Kind.
const lastKind = SetKey
