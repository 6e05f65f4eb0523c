package engine

// The limits of open orders of one wallet and of one market.
const (
	MaxWalletOrders = 10_000
	MaxMarketOrders = 65_536
)

// The largest level, a whole market of the largest orders, fits a Size: else this does not compile.
const _ = uint64(1<<63 - 1 - MaxMarketOrders*MaxOrder)

// market is one condition's trading rules and state; it owns its book and its vault.
type market struct {
	book    Book
	min     Size // of GTC and GTD
	minBuy  Cash // of a BUY that trades at once
	tick    Price
	payout  Price // of outcome 0, once Settled
	fee     Fee
	state   MarketState
	mode    Mode
	negRisk bool
	stated  bool // an operator set the state: a second List leaves it alone

	fold uint64 // the part of the leaf that number and listing determine; every resting order reads it

	// The vault holds 1.00 of collateral for each pair of tokens in being, and once the market is
	// Settled their payout. issued is what the vault owes, at most 0. external is what was
	// withdrawn.
	vault    Cash
	issued   [2]Size
	external [2]Size

	group     uint64
	condition Condition
	tokens    [2]Token
}

type markets struct {
	slab[market]
	conditions table // MarketNo by condition
	tokens     table // MarketNo by token
	salt       salt
}

// listing returns the market's present rules, without Open.
func (m *market) listing() Listing {
	return Listing{Condition: m.condition, Tokens: m.tokens, Group: m.group, Tick: m.tick,
		MinSize: m.min, MinBuy: m.minBuy, Fee: m.fee, NegRisk: m.negRisk}
}

func tickAllowed(p Price) bool {
	switch p {
	case 1000, 100, 50, 25, 10, 1:
		return true
	}
	return false
}

func (l *Listing) judge() Reject {
	switch {
	case l.Tokens[0] == l.Tokens[1]:
		return RejectListing
	case !tickAllowed(l.Tick), l.MinSize < 0, l.MinSize > MaxOrder, l.MinBuy < 0,
		l.MinBuy > MaxAmount, l.Fee.Rate > MaxFeeRate, l.Fee.Exponent > MaxFeeExponent:
		return RejectRules
	}
	return Accepted
}

func (x *Exchange) list(c *Command, events []Event) []Event {
	l := c.Listing
	if l == nil {
		return refuse(events, c, RejectListing)
	}
	if refused := l.judge(); refused != Accepted {
		return refuse(events, c, refused)
	}
	no := x.markets.listed(&l.Condition)
	if no == 0 {
		if x.markets.trades(&l.Tokens[0]) || x.markets.trades(&l.Tokens[1]) {
			return refuse(events, c, RejectListing)
		}
		added, m := x.markets.add(l, &x.queues)
		no = added
		x.digest += m.leaf()
	}
	m := x.markets.at(uint32(no))
	same := m.listing()
	same.Open = l.Open
	if same != *l {
		return refuse(events, c, RejectListing)
	}
	if l.Open && m.state == Unopened && !m.stated {
		x.change(m.leaf, func() { m.state = Open })
	}
	return append(events, Event{Kind: Listed, State: m.state, Market: no, Order: c.ID})
}

// add numbers a condition. Its market begins unopened.
func (s *markets) add(l *Listing, q *Queues) (MarketNo, *market) {
	i := s.next()
	m, no := s.at(i), MarketNo(i)
	m.book, m.state = NewBook(uint32(PriceOne/l.Tick), q), Unopened
	m.adopt(l, no)
	s.conditions.insert(entryOf(s.salt.tag((*OrderID)(&l.Condition)), i))
	for o := range l.Tokens {
		s.tokens.insert(entryOf(s.salt.tag((*OrderID)(&l.Tokens[o])), i))
	}
	return no, m
}

func (m *market) adopt(l *Listing, no MarketNo) {
	m.condition, m.tokens, m.group, m.negRisk = l.Condition, l.Tokens, l.Group, l.NegRisk
	m.fold = foldListing(l, no)
	m.min, m.minBuy, m.tick, m.fee = l.MinSize, l.MinBuy, l.Tick, l.Fee
}

// listed returns the market of a condition, 0 if there is none.
func (s *markets) listed(c *Condition) MarketNo {
	no, e := s.conditions.search(s.salt.tag((*OrderID)(c)))
	for no != 0 && s.at(no).condition != *c {
		no, e = e.next()
	}
	return MarketNo(no)
}

func (s *markets) trades(k *Token) bool {
	no, e := s.tokens.search(s.salt.tag((*OrderID)(k)))
	for ; no != 0; no, e = e.next() {
		if m := s.at(no); m.tokens[0] == *k || m.tokens[1] == *k {
			return true
		}
	}
	return false
}

// known returns market no, nil if there is none.
func (s *markets) known(no MarketNo) *market {
	if no == 0 || uint32(no) > s.used {
		return nil
	}
	return s.at(uint32(no))
}

// setState answers SetState. A closed market can only be opened; a settled one never changes.
func (x *Exchange) setState(c *Command, events []Event) []Event {
	m := x.markets.known(c.Market)
	switch {
	case m == nil:
		return refuse(events, c, RejectMarket)
	case c.State < Unopened || c.State > Closed, m.state == Settled,
		m.state == Closed && c.State != Closed && c.State != Open:
		return refuse(events, c, RejectState)
	}
	if c.State == Closed {
		events = x.sweep(m, MarketClosed, events)
	}
	x.change(m.leaf, func() { m.state, m.stated = c.State, true })
	return append(events, Event{Kind: StateChanged, State: c.State, Market: c.Market, Order: c.ID})
}

// sweep cancels all orders of a market: the bids best first, then the asks.
func (x *Exchange) sweep(m *market, why Reason, events []Event) []Event {
	for b := &m.book; b.Orders > 0; {
		index := b.Best[Buy]
		if index == 0 {
			index = b.Best[Sell]
		}
		h := b.Level(index).Head
		events = x.drop(h, x.orders.at(h), why, events)
	}
	return events
}

func (x *Exchange) resolve(c *Command, seq Sequence, events []Event) []Event {
	m := x.markets.known(c.Market)
	first, known := x.refs[c.ID]
	switch {
	case known:
		return refuseSince(events, c, RejectDuplicate, first)
	case m == nil:
		return refuse(events, c, RejectMarket)
	case c.Price > PriceOne, m.state == Settled && m.payout != c.Price:
		return refuse(events, c, RejectPayout)
	}
	events = x.sweep(m, MarketResolved, events)
	x.change(m.leaf, func() { m.state, m.payout = Settled, c.Price })
	x.refer(&c.ID, seq)
	return append(events, Event{Kind: Resolved, Market: c.Market, Price: c.Price, Order: c.ID})
}

// adjust answers Adjust: new rules for later orders. Resting orders keep their price and priority.
func (x *Exchange) adjust(c *Command, events []Event) []Event {
	m, l := x.markets.known(c.Market), c.Listing
	switch {
	case m == nil:
		return refuse(events, c, RejectMarket)
	case l == nil || !m.is(l):
		return refuse(events, c, RejectListing)
	case m.state == Settled:
		return refuse(events, c, RejectState)
	}
	if refused := l.judge(); refused != Accepted {
		return refuse(events, c, refused)
	}
	if !m.book.onGrid(uint32(m.tick), uint32(l.Tick)) {
		return refuse(events, c, RejectRules)
	}
	x.digest -= m.leaf() + m.rankLeaf()
	if l.Tick != m.tick {
		m.book = m.book.regrid(&x.orders, uint32(m.tick), uint32(l.Tick))
	}
	m.adopt(l, c.Market)
	x.digest += m.leaf() + m.rankLeaf()
	return append(events, Event{Kind: Adjusted, Market: c.Market, Order: c.ID})
}

// is reports whether a listing agrees with the market's in all that Adjust may not change.
func (m *market) is(l *Listing) bool {
	return m.condition == l.Condition && m.tokens == l.Tokens && m.group == l.Group &&
		m.negRisk == l.NegRisk
}

// issue turns collateral in the vault into as many of both tokens, or back if pairs is negative.
func (l *ledger) issue(m *market, pairs int64) {
	l.digest -= m.leaf()
	m.vault += Cash(pairs)
	m.issued[0] -= Size(pairs)
	m.issued[1] -= Size(pairs)
	l.digest += m.leaf()
}

// export moves size of an outcome to the market's external account, or back if negative.
func (l *ledger) export(m *market, o Outcome, size Size) {
	l.digest -= m.leaf()
	m.external[o] += size
	l.digest += m.leaf()
}
