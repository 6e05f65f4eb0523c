package simulator

import (
	"encoding/binary"
	"math/rand/v2"
	"slices"

	"clobd/engine"
)

// traders are all callers: they draw Commands, remember what they sent, and send unanswered
// Commands again.
type traders struct {
	plan   *plan
	r      *rand.Rand
	ids    uint64
	script []engine.Command // comes before anything random
	again  []engine.Command // to be sent again
	repeat int              // how often the next orders come

	orders []engine.Command // placed, live or not: a bounded choice of the last
	owners map[engine.WalletNo]engine.WalletNo
}

const (
	remembered  = 400 // orders that traders choose from
	impatience  = 200 // Commands that wait to be sent again
	mostMarkets = 12
)

// newTraders makes them. They first list the markets and fund their wallets.
func newTraders(p *plan, r *rand.Rand) *traders {
	t := &traders{plan: p, r: r, owners: map[engine.WalletNo]engine.WalletNo{}}
	for _, l := range p.markets {
		t.script = append(t.script, engine.Command{Kind: engine.List, Listing: &l})
	}
	for i := range p.wallets {
		t.script = append(t.script, engine.Command{Kind: engine.Deposit, ID: t.id(),
			Address: address(i), Cash: p.rich})
	}
	for i := range p.wallets / 3 {
		a, b := p.wallets-1-i, i
		t.script = append(t.script, engine.Command{Kind: engine.Link, Address: address(a),
			Holder: address(b)})
		t.owners[engine.WalletNo(a+1)] = engine.WalletNo(b + 1)
	}
	for i := range p.wallets / 2 {
		t.script = append(t.script, engine.Command{Kind: engine.SetPrevention,
			Wallet: engine.WalletNo(i + 1), Prevention: engine.Prevention(r.IntN(4))})
	}
	return t
}

// address is that of the i-th wallet, from 0.
func address(i int) engine.Address { return engine.Address{0: 7, 19: byte(i + 1)} }

// id draws an id that was never used.
func (t *traders) id() (id engine.OrderID) {
	t.ids++
	binary.BigEndian.PutUint64(id[:], t.r.Uint64())
	binary.BigEndian.PutUint64(id[24:], t.ids)
	return id
}

// command is the next Command that somebody sends.
func (t *traders) command(s *simulation) engine.Command {
	if len(t.script) > 0 {
		c := t.script[0]
		t.script = t.script[1:]
		return c
	}
	if n := len(t.again); n > 0 && t.r.IntN(4) == 0 {
		i := t.r.IntN(n)
		c := t.again[i]
		t.again = slices.Delete(t.again, i, i+1)
		return t.resend(s, c)
	}
	if s.may(Duplicate) && len(t.orders) > 0 && t.r.IntN(25) == 0 {
		return t.resend(s, t.orders[t.r.IntN(len(t.orders))])
	}
	c := t.draw(s)
	if c.Kind == engine.Place {
		t.remember(&c)
		for ; t.repeat > 1; t.repeat-- { // the same order, three times in all
			t.again = append(t.again, c)
		}
		t.repeat = 0
	}
	return c
}

// remember keeps an order to choose from.
func (t *traders) remember(c *engine.Command) {
	if len(t.orders) == remembered {
		t.orders = slices.Delete(t.orders, 0, remembered/2)
	}
	t.orders = append(t.orders, *c)
}

// resend sends a Command again. The door looks the id up again, so Seen is higher.
func (t *traders) resend(s *simulation, c engine.Command) engine.Command {
	if c.Kind == engine.Place {
		c.Seen = s.head.Sequence
		if s.options.Sabotage == SecondOrder {
			c.ID = t.id()
			s.witness.bound[c.ID] = 1
		}
	}
	return c
}

// doubt is called for a Command that got no answer. Usually it is sent again.
func (t *traders) doubt(c *engine.Command) {
	if len(t.again) > impatience || t.r.IntN(4) == 0 {
		return
	}
	switch c.Kind {
	case engine.Place, engine.Deposit, engine.Withdraw, engine.Collect:
		for range 1 + t.r.IntN(2) {
			t.again = append(t.again, *c)
		}
	case engine.List, engine.Link, engine.SetPrevention:
		t.again = append(t.again, *c)
	}
}

// restart is called when a process begins. It sends the Commands that set up the markets until they
// are durable.
func (t *traders) restart(s *simulation) {
	for _, l := range t.plan.markets {
		if s.board.Directory.Condition(l.Condition) == nil {
			t.script = append(t.script, engine.Command{Kind: engine.List, Listing: &l})
		}
	}
}

// hear is called with the result of a Command. Traders learn the markets' rules from it, and list a
// new market when one ends.
func (t *traders) hear(c *engine.Command, r *engine.Receipt) {
	switch {
	case r.Reject != engine.Accepted:
	case c.Kind == engine.Adjust:
		l := *c.Listing
		l.Open = true
		t.plan.markets[c.Market-1] = l
	case c.Kind == engine.Resolve && len(t.plan.markets) < mostMarkets:
		next := listing(t.r.IntN, len(t.plan.markets))
		t.plan.markets = append(t.plan.markets, next)
		t.script = append(t.script, engine.Command{Kind: engine.List, Listing: &next})
	}
}

// draw draws a Command.
func (t *traders) draw(s *simulation) engine.Command {
	market := engine.MarketNo(1 + t.r.IntN(len(t.plan.markets)))
	w := engine.WalletNo(1 + t.r.IntN(t.plan.wallets))
	switch n := t.r.IntN(1000); {
	case n < 180 && len(t.orders) > 0:
		o := &t.orders[t.r.IntN(len(t.orders))]
		return engine.Command{Kind: engine.Cancel, ID: o.ID, Owner: o.Owner}
	case n < 200:
		return engine.Command{Kind: engine.CancelAll, Wallet: w, Owner: t.owner(w),
			Reason: engine.ByOwner, Market: market * engine.MarketNo(t.r.IntN(2))}
	case n < 260:
		kind := []engine.Kind{engine.SplitTokens, engine.SplitTokens, engine.MergeTokens,
			engine.RedeemTokens}[t.r.IntN(4)]
		return engine.Command{Kind: kind, Market: market, Wallet: w, Owner: w, ID: t.id(),
			Size: engine.Size(1 + t.r.IntN(40*engine.Unit))}
	case n < 290:
		return t.operator(market, w)
	}
	return t.order(s, market, w)
}

// owner returns the owner of a wallet.
func (t *traders) owner(w engine.WalletNo) engine.WalletNo {
	if o := t.owners[w]; o != 0 && t.r.IntN(2) == 0 {
		return o
	}
	return w
}

// order draws a Place.
func (t *traders) order(s *simulation, m engine.MarketNo, w engine.WalletNo) engine.Command {
	l := &t.plan.markets[m-1]
	ticks := int(engine.PriceOne / l.Tick)
	index := ticks/2 - t.plan.spread + t.r.IntN(2*t.plan.spread+1)
	price := engine.Price(min(max(index, 1), ticks-1)) * l.Tick
	size := engine.Size(1+t.r.IntN(3000)) * engine.Lot
	if t.r.IntN(3) > 0 {
		size = engine.Size(1+t.r.IntN(30)) * engine.Unit
	}
	c := engine.Command{Kind: engine.Place, Market: m, Wallet: w, Owner: t.owner(w),
		Key: uint32(t.r.IntN(3)), Side: engine.Side(t.r.IntN(2)), Outcome: engine.Outcome(t.r.IntN(2)),
		Type: engine.OrderType(max(0, t.r.IntN(7)-3)), Size: size, Cash: engine.Cost(size, price),
		Seen: s.head.Sequence, ID: t.id(), Proof: make([]byte, t.r.IntN(200))}
	for i := range c.Proof {
		c.Proof[i] = byte(t.r.Uint32())
	}
	if c.Type == engine.GTD {
		c.Expiry = s.now + engine.Time(t.r.IntN(20_000)) - 100
	}
	if n := len(t.orders); n > 0 && t.r.IntN(8) == 0 {
		old := &t.orders[n-1-t.r.IntN(min(n, 20))]
		c.Wallet, c.Owner = old.Wallet, old.Owner
		c.Replace(old.ID)
	}
	switch t.r.IntN(24) {
	case 0:
		c.Cash++ // off by less than a tick
	case 1:
		c.Cash = engine.Cash(1 + t.r.IntN(engine.Unit)) // most likely off the grid
	case 2:
		c.PostOnly = c.Type <= engine.GTD
	case 3:
		c.Deadline = s.now + engine.Time(t.r.IntN(200)) - 50
	case 4:
		c.FeeBound = uint16(1 + t.r.IntN(800))
	}
	return c
}

// operator draws an operator's Command.
func (t *traders) operator(m engine.MarketNo, w engine.WalletNo) engine.Command {
	c := engine.Command{ID: t.id(), Address: address(int(w - 1))}
	switch t.r.IntN(10) {
	case 0, 1:
		c.Kind, c.Cash = engine.Deposit, engine.Cash(1+t.r.IntN(100*engine.Unit))
	case 2:
		c.Kind, c.Market, c.Outcome = engine.Deposit, m, engine.Outcome(t.r.IntN(2))
		c.Size = engine.Size(1 + t.r.IntN(50*engine.Unit))
	case 3:
		c.Kind, c.Cash = engine.Withdraw, engine.Cash(1+t.r.IntN(80*engine.Unit))
	case 4:
		c.Kind, c.Market, c.Outcome = engine.Withdraw, m, engine.Outcome(t.r.IntN(2))
		c.Size = engine.Size(1 + t.r.IntN(20*engine.Unit))
	case 5:
		c.Kind, c.Cash = engine.Collect, engine.Cash(1+t.r.IntN(engine.Unit))
	case 6, 7:
		states := []engine.MarketState{engine.Open, engine.Open, engine.Open, engine.Paused,
			engine.Closed}
		state := engine.Command{Kind: engine.SetState, Market: m, State: engine.Open}
		t.again = append(t.again, state) // not for long
		state.State = states[t.r.IntN(5)]
		return state
	case 8:
		l := t.plan.markets[m-1]
		l.Tick = []engine.Price{1000, 100, 50, 25, 10, 1}[t.r.IntN(6)]
		l.MinSize = engine.Size(t.r.IntN(6)) * engine.Unit
		return engine.Command{Kind: engine.Adjust, Market: m, Listing: &l}
	case 9:
		if t.r.IntN(8) == 0 {
			c.Kind, c.Market, c.Price = engine.Resolve, m, engine.Price(t.r.IntN(5)*2500)
			c.Address = engine.Address{}
			return c
		}
		modes := []engine.Mode{engine.Normal, engine.Normal, engine.PostOnly, engine.CancelOnly}
		mode := engine.Command{Kind: engine.SetMode, Market: m * engine.MarketNo(t.r.IntN(2))}
		t.again = append(t.again, mode)
		mode.Mode = modes[t.r.IntN(4)]
		return mode
	}
	return c
}
