package engine

// Limits of what one wallet and one market may hold open.
const (
	MaxWalletOrders = 10_000
	MaxMarketOrders = 65_536
)

// The largest level, of a whole market of the largest orders, is a Size: or this does not compile.
const _ = uint64(1<<63 - 1 - MaxMarketOrders*MaxOrder)

// market is one condition's trading rules and state; it owns its book and its vault.
type market struct {
	book  book
	min   Size
	tick  Price
	state MarketState

	// The vault backs the tokens: it holds 1.00 of collateral for each pair in being, and owes what
	// it issued, counted below zero. external holds the tokens that left the exchange.
	vault    Cash
	issued   [2]Size
	external [2]Size

	fold    uint64 // digest of no and listing
	listing Listing
}

// tickAllowed says whether a price step is one of the six.
func tickAllowed(p Price) bool {
	switch p {
	case 1000, 100, 50, 25, 10, 1:
		return true
	}
	return false
}

// list answers List: a new market, the same one again, or a contradiction.
func (x *Exchange) list(c *Command, events []Event) []Event {
	l := c.Listing
	if l == nil || !tickAllowed(l.Tick) || l.Tokens[0] == l.Tokens[1] ||
		l.MinSize < 0 || l.MinSize > MaxAmount {
		return refuse(events, c, refusal{reject: RejectListing})
	}
	no := x.conditions[l.Condition]
	if no == 0 {
		if x.tokens[l.Tokens[0]] != 0 || x.tokens[l.Tokens[1]] != 0 {
			return refuse(events, c, refusal{reject: RejectListing})
		}
		no = x.addMarket(l)
	}
	m := &x.markets[no]
	same := m.listing
	same.Open = l.Open
	if same != *l {
		return refuse(events, c, refusal{reject: RejectListing})
	}
	if l.Open && m.state == Unopened {
		x.digest -= m.leaf()
		m.state = Open
		x.digest += m.leaf()
	}
	return append(events, Event{Kind: Listed, State: m.state, Market: no, Order: c.ID})
}

// addMarket numbers a condition. It begins unopened.
func (x *Exchange) addMarket(l *Listing) MarketNo {
	no := MarketNo(len(x.markets))
	x.markets = append(x.markets, market{
		book:    newBook(uint32(PriceOne / l.Tick)),
		min:     l.MinSize,
		tick:    l.Tick,
		state:   Unopened,
		fold:    foldListing(l, no),
		listing: *l,
	})
	x.conditions[l.Condition] = no
	x.tokens[l.Tokens[0]], x.tokens[l.Tokens[1]] = no, no
	x.digest += x.markets[no].leaf()
	return no
}

// known is market no, or nil.
func (x *Exchange) known(no MarketNo) *market {
	if no == 0 || int(no) >= len(x.markets) {
		return nil
	}
	return &x.markets[no]
}

// issue turns pairs base units of collateral into as many of both tokens, or back if negative.
func (x *Exchange) issue(m *market, pairs int64) {
	x.digest -= m.leaf()
	m.vault += Cash(pairs)
	m.issued[0] -= Size(pairs)
	m.issued[1] -= Size(pairs)
	x.digest += m.leaf()
}

// export moves size of an outcome to the market's external account.
func (x *Exchange) export(m *market, o Outcome, size Size) {
	x.digest -= m.leaf()
	m.external[o] += size
	x.digest += m.leaf()
}
