package view

import (
	"encoding/binary"
	"math/rand/v2"

	"clobd/engine"
)

// world makes frames as an Exchange would, with the most naive books there are: a list of orders
// per market. It is the model that the Board is compared with.
type world struct {
	rng     *rand.Rand
	seq     engine.Sequence
	frames  uint64
	markets []*naive // by MarketNo - 1
	wallets uint32
	mode    engine.Mode
	owners  map[engine.WalletNo]engine.WalletNo
	touched map[engine.WalletNo]engine.Sequence
}

type naive struct {
	no     engine.MarketNo
	list   engine.Listing
	state  engine.MarketState
	mode   engine.Mode
	payout engine.Price
	ends   [2]engine.Time // closed or resolved, resolved
	orders []resting
	traded bool
	price  engine.Price // of the last trade, for the outcome of its taker
	side   engine.Side
	out    engine.Outcome
	seq    engine.Sequence // of the last frame that changed it
}

type resting struct {
	outcome engine.Outcome
	side    engine.Side
	price   engine.Price // of outcome
	size    engine.Size
	wallet  engine.WalletNo
}

// bid reports whether an order is a bid for outcome 0, and returns its price of outcome 0.
func (r *resting) bid() (bool, engine.Price) {
	if r.outcome == 0 {
		return r.side == engine.Buy, r.price
	}
	return r.side == engine.Sell, engine.PriceOne - r.price
}

func newWorld(seed uint64) *world {
	return &world{
		rng:     rand.New(rand.NewPCG(seed, 1)),
		owners:  map[engine.WalletNo]engine.WalletNo{},
		touched: map[engine.WalletNo]engine.Sequence{},
	}
}

func tokenOf(no engine.MarketNo, o engine.Outcome) (t engine.Token) {
	binary.BigEndian.PutUint32(t[:], uint32(no))
	t[31] = byte(o)
	return t
}

func conditionOf(no engine.MarketNo) (c engine.Condition) {
	binary.BigEndian.PutUint32(c[28:], uint32(no))
	return c
}

func addressOf(no engine.WalletNo) (a engine.Address) {
	binary.BigEndian.PutUint32(a[8:], uint32(no))
	return a
}

func listingOf(no engine.MarketNo, tick engine.Price) engine.Listing {
	return engine.Listing{
		Condition: conditionOf(no),
		Tokens:    [2]engine.Token{tokenOf(no, 0), tokenOf(no, 1)},
		Tick:      tick,
		MinSize:   5 * engine.Unit,
		Open:      true,
	}
}

// builder collects one frame.
type builder struct {
	w *world
	f *engine.Frame
}

func (w *world) begin() builder {
	w.frames++
	return builder{w, &engine.Frame{No: w.frames, First: w.seq + 1, Time: engine.Time(w.frames)}}
}

func (b builder) add(c engine.Command, events ...engine.Event) {
	b.f.Commands = append(b.f.Commands, c)
	b.f.Events = append(b.f.Events, events...)
	b.f.Ends = append(b.f.Ends, uint32(len(b.f.Events)))
}

// end records the Sequence of the markets and wallets that the frame named.
func (b builder) end() *engine.Frame {
	w := b.w
	w.seq = b.f.Last()
	touch := func(no engine.WalletNo) {
		if no != 0 && uint32(no) <= w.wallets {
			w.touched[no] = w.seq
		}
	}
	for i := range b.f.Commands {
		touch(b.f.Commands[i].Wallet)
		touch(b.f.Commands[i].Owner)
	}
	for i := range b.f.Events {
		e := &b.f.Events[i]
		touch(e.Wallet)
		touch(e.Owner)
		switch e.Kind {
		case engine.Listed, engine.Placed, engine.Filled, engine.Cancelled,
			engine.StateChanged, engine.Adjusted, engine.Resolved, engine.ModeSet:
			if e.Market != 0 {
				w.markets[e.Market-1].seq = w.seq
			}
		}
	}
	return b.f
}

// list lists a new market, or the market no again with another state.
func (b builder) list(no engine.MarketNo, tick engine.Price, state engine.MarketState) {
	l := listingOf(no, tick)
	l.Open = state == engine.Open
	if int(no) > len(b.w.markets) {
		b.w.markets = append(b.w.markets, &naive{no: no})
	}
	n := b.w.markets[no-1]
	n.list, n.state = l, state
	b.add(engine.Command{Kind: engine.List, Listing: &l},
		engine.Event{Kind: engine.Listed, Market: no, State: state})
}

// relist lists a market again as it is, in another state.
func (b builder) relist(no engine.MarketNo) {
	n := b.w.markets[no-1]
	n.list.Open = b.w.rng.IntN(2) == 0
	n.state = engine.Unopened
	if n.list.Open {
		n.state = engine.Open
	}
	l := n.list
	b.add(engine.Command{Kind: engine.List, Listing: &l},
		engine.Event{Kind: engine.Listed, Market: no, State: n.state})
}

func (b builder) deposit(no engine.WalletNo) {
	b.w.wallets = max(b.w.wallets, uint32(no))
	b.add(engine.Command{Kind: engine.Deposit, Address: addressOf(no)},
		engine.Event{Kind: engine.Deposited, Wallet: no})
}

// link links two new wallets, the owner numbered first.
func (b builder) link() {
	owner, wallet := engine.WalletNo(b.w.wallets+1), engine.WalletNo(b.w.wallets+2)
	b.w.wallets += 2
	b.w.owners[wallet] = owner
	b.add(engine.Command{Kind: engine.Link, Address: addressOf(wallet), Holder: addressOf(owner)},
		engine.Event{Kind: engine.Linked, Wallet: wallet, Owner: owner})
}

// control is one of the operator's Commands for market no.
func (b builder) control(no engine.MarketNo, k int) {
	w, n := b.w, b.w.markets[no-1]
	switch k {
	case 0:
		n.state = engine.Unopened + engine.MarketState(w.rng.IntN(4))
		if n.state != engine.Closed {
			n.ends[0] = 0
		} else if n.ends[0] == 0 {
			n.ends[0] = b.f.Time
		}
		b.add(engine.Command{Kind: engine.SetState, Market: no, State: n.state},
			engine.Event{Kind: engine.StateChanged, Market: no, State: n.state})
	case 1:
		n.mode = engine.Mode(w.rng.IntN(3))
		b.add(engine.Command{Kind: engine.SetMode, Market: no, Mode: n.mode},
			engine.Event{Kind: engine.ModeSet, Market: no, Mode: n.mode})
	case 2:
		w.mode = engine.Mode(w.rng.IntN(3))
		b.add(engine.Command{Kind: engine.SetMode, Mode: w.mode},
			engine.Event{Kind: engine.ModeSet, Mode: w.mode})
	case 3:
		b.add(engine.Command{Kind: engine.SetMode, Wallet: 1, Mode: engine.CancelOnly},
			engine.Event{Kind: engine.ModeSet, Wallet: 1, Mode: engine.CancelOnly})
	case 4:
		b.adjust(no)
	case 5:
		b.resolve(no)
	}
}

// adjust gives a market a tick that all its levels are on, and other rules.
func (b builder) adjust(no engine.MarketNo) {
	n := b.w.markets[no-1]
	l := n.list
	ticks := []engine.Price{1, 10, 25, 50, 100, 1000}
	for l.Tick = ticks[b.w.rng.IntN(len(ticks))]; !n.on(l.Tick); {
		l.Tick = ticks[b.w.rng.IntN(len(ticks))]
	}
	l.MinSize, l.MinBuy, l.Fee = engine.Unit, 7, engine.Fee{Rate: uint16(no), Exponent: 1}
	n.list = l
	b.add(engine.Command{Kind: engine.Adjust, Market: no, Listing: &l},
		engine.Event{Kind: engine.Adjusted, Market: no})
}

// on reports whether all resting orders have prices of that tick.
func (n *naive) on(tick engine.Price) bool {
	for i := range n.orders {
		if n.orders[i].price%tick != 0 {
			return false
		}
	}
	return true
}

// resolve cancels all orders of a market and settles it. Later frames may open it again: the Board
// does not judge.
func (b builder) resolve(no engine.MarketNo) {
	n := b.w.markets[no-1]
	var events []engine.Event
	for i := range n.orders {
		events = append(events, n.orders[i].event(no, engine.Cancelled, 0))
	}
	if n.ends[0] == 0 {
		n.ends[0] = b.f.Time
	}
	if n.ends[1] == 0 {
		n.ends[1] = b.f.Time
	}
	n.orders, n.state, n.payout = nil, engine.Settled, 10_000
	b.add(engine.Command{Kind: engine.Resolve, Market: no, Price: n.payout},
		append(events, engine.Event{Kind: engine.Resolved, Market: no, Price: n.payout})...)
}

// rest places an order that nothing crosses.
func (b builder) rest(no engine.MarketNo, r resting) {
	n := b.w.markets[no-1]
	n.orders = append(n.orders, r)
	b.add(engine.Command{Kind: engine.Place, Market: no, Wallet: r.wallet},
		r.event(no, engine.Placed, 0))
}

// cancel cancels order i of a market.
func (b builder) cancel(no engine.MarketNo, i int) {
	n := b.w.markets[no-1]
	r := n.orders[i]
	n.orders = append(n.orders[:i], n.orders[i+1:]...)
	b.add(engine.Command{Kind: engine.Cancel, Owner: 1 + r.wallet/2}, r.event(no, engine.Cancelled, 0))
}

// event returns an Event of a resting order.
func (r *resting) event(no engine.MarketNo, k engine.EventKind, size engine.Size) engine.Event {
	return engine.Event{Kind: k, Market: no, Wallet: r.wallet, Owner: 1 + r.wallet/2,
		Outcome: r.outcome, Side: r.side, Price: r.price, Size: size, Remaining: r.size - size}
}

// place matches an order as an Exchange would: fills at the best prices, then the answer.
func (b builder) place(no engine.MarketNo, r resting) {
	n := b.w.markets[no-1]
	var events []engine.Event
	bid, limit := r.bid()
	for r.size > 0 {
		i := n.front(!bid)
		if i < 0 {
			break
		}
		m := &n.orders[i]
		_, p := m.bid()
		if bid && p > limit || !bid && p < limit {
			break
		}
		if m.wallet == r.wallet {
			events = append(events, m.event(no, engine.Cancelled, 0))
			n.orders = append(n.orders[:i], n.orders[i+1:]...)
			continue
		}
		size := min(r.size, m.size)
		events = append(events, m.event(no, engine.Filled, size))
		n.traded, n.out, n.side, n.price = true, r.outcome, r.side, m.price
		if m.outcome != r.outcome {
			n.price = engine.PriceOne - m.price
		}
		r.size -= size
		if m.size -= size; m.size == 0 {
			n.orders = append(n.orders[:i], n.orders[i+1:]...)
		}
	}
	e := r.event(no, engine.Completed, 0)
	if r.size > 0 {
		e.Kind = engine.Placed
		n.orders = append(n.orders, r)
	}
	b.add(engine.Command{Kind: engine.Place, Market: no, Outcome: r.outcome, Side: r.side,
		Wallet: r.wallet}, append(events, e)...)
}

// front is the first best order among the bids or the asks, -1 if there is none.
func (n *naive) front(bids bool) int {
	found, best := -1, engine.Price(0)
	for i := range n.orders {
		bid, p := n.orders[i].bid()
		if bid != bids {
			continue
		}
		if found < 0 || bids && p > best || !bids && p < best {
			found, best = i, p
		}
	}
	return found
}

// levels are the sizes by price of one side of outcome o.
func (n *naive) levels(o engine.Outcome, side engine.Side) map[engine.Price]engine.Size {
	out := map[engine.Price]engine.Size{}
	for i := range n.orders {
		r := &n.orders[i]
		p, s := r.price, r.side
		if r.outcome != o {
			p, s = engine.PriceOne-p, s.Other()
		}
		if s == side {
			out[p] += r.size
		}
	}
	return out
}

// random is a frame of n random Commands.
func (w *world) random(n int) *engine.Frame {
	b := w.begin()
	for range n {
		no := engine.MarketNo(1)
		if len(w.markets) > 0 {
			no += engine.MarketNo(w.rng.IntN(len(w.markets)))
		}
		switch k := w.rng.IntN(100); {
		case len(w.markets) == 0 || k == 0 && len(w.markets) < 20:
			ticks := []engine.Price{1, 10, 25, 50, 100, 1000}
			b.list(engine.MarketNo(len(w.markets)+1), ticks[w.rng.IntN(len(ticks))], engine.Open)
		case k == 1:
			b.relist(no)
		case k == 2 || w.wallets == 0:
			b.deposit(engine.WalletNo(w.wallets + 1))
		case k == 3:
			b.link()
		case k == 5:
			b.control(no, w.rng.IntN(6))
		case k == 4:
			b.add(engine.Command{Kind: engine.Place, Wallet: 1 << 30, Owner: 1},
				engine.Event{Kind: engine.Rejected, Reject: engine.RejectWallet})
		case k < 35 && len(w.markets[no-1].orders) > 0:
			b.cancel(no, w.rng.IntN(len(w.markets[no-1].orders)))
		default:
			b.place(no, w.order(no))
		}
	}
	return b.end()
}

func (w *world) order(no engine.MarketNo) resting {
	tick := w.markets[no-1].list.Tick
	return resting{
		outcome: engine.Outcome(w.rng.IntN(2)),
		side:    engine.Side(w.rng.IntN(2)),
		price:   engine.Price(1+w.rng.IntN(int(engine.PriceOne/tick)-1)) * tick,
		size:    engine.Lot * engine.Size(1+w.rng.IntN(1000)),
		wallet:  engine.WalletNo(1 + w.rng.IntN(int(w.wallets))),
	}
}
