package cases

import (
	"cmp"
	"errors"
	"fmt"
	"strconv"

	"clobd/engine"
)

// The states of an order, as files name them.
const (
	live     = "LIVE"
	filled   = "FILLED"
	canceled = "CANCELED"
	rejected = "REJECTED"
)

// placed is an order of a book scenario under the name that its file gives it. Prices and sizes are
// the source's. A replaced order keeps its record and gets new ids.
type placed struct {
	name, account string
	ids           []engine.OrderID // more than one if it is larger than an order may be
	side          engine.Side
	price, size   int64
	filled        int64
	state         string
}

// bookRun is one run of a book scenario.
type bookRun struct {
	venue  *venue
	scale  *scale
	money  *money // nil unless the file states balances
	orders map[string]*placed
	names  map[engine.OrderID]*placed
	sent   int

	complement func(n int) bool // of the n-th order sent, if it may rest
}

// dressing is one way to put resting orders to the engine.
type dressing struct {
	name       string
	complement func(n int) bool
}

// dressings are the ways that must agree. Balances can be compared with the file's only if orders
// are for the token that the file means.
func dressings(audited bool) []dressing {
	all := []dressing{
		{"as it is", func(int) bool { return false }},
		{"resting orders as complements", func(int) bool { return true }},
		{"every other order as its complement", func(n int) bool { return n%2 == 1 }},
	}
	if audited {
		return all[:1]
	}
	return all
}

// runBook replays a scenario of one book in all its dressings.
func (s *scenario) runBook() error {
	steps, err := s.read()
	if err != nil {
		return err
	}
	m := moneyOf(steps)
	for i, d := range dressings(m != nil) {
		r := &bookRun{money: m, complement: d.complement,
			orders: map[string]*placed{}, names: map[engine.OrderID]*placed{}}
		if r.scale, err = newScale(&s.PriceMap, s.SizeMul); err != nil {
			return err
		}
		if m != nil {
			m.fit(r.scale, steps)
		}
		if r.venue, err = newVenue(engine.Fee{}); err != nil {
			return err
		}
		err := r.all(steps)
		if err != nil && i > 0 {
			return fmt.Errorf("%s: %w", d.name, err)
		}
		if err != nil {
			return err
		}
	}
	return nil
}

// all carries out the steps up to the first that disagrees.
func (r *bookRun) all(steps []step) error {
	symbol := ""
	for i := range steps {
		st := &steps[i]
		if st.Symbol != "" && symbol != "" && st.Symbol != symbol {
			return cannot("operation %d: a second book, %s", i+1, st.Symbol)
		}
		symbol = cmp.Or(st.Symbol, symbol)
		if err := r.step(st); err != nil {
			what := st.Op
			for _, name := range []string{st.Account, st.ID} {
				if name != "" {
					what += " " + name
				}
			}
			return fmt.Errorf("operation %d (%s): %w", i+1, what, err)
		}
	}
	return nil
}

// step carries out one of them.
func (r *bookRun) step(st *step) error {
	var got *result
	var err error
	switch st.Op {
	case "place":
		got, err = r.place(st)
	case "cancel":
		got, err = r.cancel(st)
	case "replace":
		got, err = r.replace(st)
	default:
		if st.Expect != nil {
			return fmt.Errorf("%s with an expect", st.Op)
		}
		return r.check(st)
	}
	if err != nil || st.Expect == nil {
		return err
	}
	return st.Expect.compare(got)
}

// result is the outcome of a place, cancel or replace, in source units.
type result struct {
	order  *placed
	state  string // of the order, or that the step was refused
	before string // of an order that the step could not change
	reject engine.Reject
	left   int64
	trades []trade
	fills  map[string]taken
}

// place sends a new order.
func (r *bookRun) place(st *step) (*result, error) {
	if st.ID == "" || st.Size == nil {
		return nil, errors.New("an order needs id and size")
	}
	o := &placed{name: st.ID, account: st.Account, size: *st.Size}
	switch st.Side {
	case "BUY":
	case "SELL":
		o.side = engine.Sell
	default:
		return nil, fmt.Errorf("unknown side %q", st.Side)
	}
	if st.Price != nil {
		o.price = *st.Price
	}
	if o.account == "" {
		o.account = "order " + strconv.Itoa(r.sent)
	}
	if r.money != nil {
		if err := r.money.admits(o); err != nil {
			return nil, err
		}
	}
	of, err := r.offer(o, st)
	if err != nil {
		return nil, err
	}
	return r.send(o, of)
}

// offer converts an order into the engine's units.
func (r *bookRun) offer(o *placed, st *step) (*offer, error) {
	kind, ok := map[string]engine.OrderType{
		"GTC": engine.GTC, "FOK": engine.FOK, "FAK": engine.FAK}[st.TIF]
	if !ok {
		return nil, fmt.Errorf("unknown tif %q", st.TIF)
	}
	size, err := r.scale.size(o.size)
	if err != nil {
		return nil, err
	}
	price := anyPrice(o.side)
	switch st.Type {
	case "LIMIT":
		if price, err = r.scale.price(o.price); err != nil {
			return nil, err
		}
	case "MARKET":
		_, _, enough := r.venue.ladder.cost(o.side.Other(), size)
		if kind == engine.GTC && !enough {
			return nil, cannot("a market order that would rest")
		}
	case "BUDGET":
		return r.budget(o, st, kind)
	default:
		return nil, fmt.Errorf("unknown type %q", st.Type)
	}
	of := limit(o.account, o.side, price, size)
	of.kind = kind
	if kind != engine.GTC && o.side == engine.Buy {
		if r.money != nil {
			return nil, cannot("a %s that buys a number of shares, from a stated balance", st.TIF)
		}
		of = of.complement()
	}
	if kind == engine.GTC && r.complement(r.sent) {
		of = of.complement()
	}
	return &of, nil
}

// anyPrice is the limit of an order that takes any price.
func anyPrice(side engine.Side) engine.Price {
	if side == engine.Buy {
		return engine.PriceOne - 1
	}
	return 1
}

// budget makes the offer for an order whose total is bounded, and so its average price. The engine
// bounds each price instead. So the limit is the price of the last share that the order needs, and
// the rest of the budget must not suffice for one more lot.
func (r *bookRun) budget(o *placed, st *step, kind engine.OrderType) (*offer, error) {
	size, err := r.scale.size(o.size)
	if err != nil {
		return nil, err
	}
	if kind != engine.FOK {
		return nil, cannot("a budget at an average price, of an order that may be filled in part")
	}
	exact, worst, enough := r.venue.ladder.cost(o.side.Other(), size)
	if !enough {
		of := limit(o.account, o.side, anyPrice(o.side), size)
		of.kind = kind
		if o.side == engine.Buy {
			of = of.complement()
		}
		return &of, nil
	}
	budget := exact + engine.Cash(st.Versus)
	if r.scale.rank == nil {
		each := r.scale.mul * int64(r.scale.unit/engine.Lot)
		if st.Budget < 1 || st.Budget > engine.MaxAmount/each {
			return nil, fmt.Errorf("budget %d lies outside [1, %d]", st.Budget, engine.MaxAmount/each)
		}
		budget = engine.Cash(st.Budget * each / r.scale.div)
	}
	of := limit(o.account, o.side, worst, size)
	of.kind = kind
	switch {
	case o.side == engine.Buy && budget < exact:
		return nil, cannot("a budget at an average price: the engine would fill what it allows")
	case o.side == engine.Sell && budget > exact:
		return nil, cannot("a least total at an average price: the engine bounds each price")
	case o.side == engine.Buy && budget-exact >= engine.Cash(worst):
		return nil, cannot("a budget that buys more than the size")
	case o.side == engine.Buy:
		// The signed shares are those that the budget buys at the limit: they are guaranteed, and
		// the better prices make them the size.
		of.cash = budget
		of.size = engine.Size((int64(budget)*int64(engine.PriceOne) + int64(worst)/2) / int64(worst))
	}
	return &of, nil
}

// send places an order and reads the outcome from the Events.
func (r *bookRun) send(o *placed, of *offer) (*result, error) {
	got := &result{order: o, fills: map[string]taken{}}
	parts := of.parts(r.scale.unit)
	if len(parts) > 1 && of.kind != engine.GTC {
		return nil, cannot("an order larger than one may be, which does not rest")
	}
	r.sent++
	o.ids = o.ids[:0]
	var last engine.Event
	for i := range parts {
		if r.money == nil {
			if err := r.venue.fund(&parts[i]); err != nil {
				return nil, err
			}
		}
		var id engine.OrderID
		var err error
		if id, last, err = r.venue.place(&parts[i]); err != nil {
			return nil, err
		}
		o.ids, r.names[id] = append(o.ids, id), o
		if err := r.settle(o, got); err != nil {
			return nil, err
		}
	}
	got.left = o.size - o.filled
	left, _, rests := r.rests(o)
	switch {
	case rests && left != got.left:
		return nil, differ("what rests", got.left, left)
	case rests:
		o.state = live
	case last.Kind == engine.Completed && got.left == 0:
		o.state = filled
	case last.Kind == engine.Completed, last.Reject == engine.RejectFOK,
		last.Reject == engine.RejectFAK:
		o.state = canceled
	default:
		o.state, got.reject = rejected, last.Reject
	}
	got.state = o.state
	if o.state != rejected {
		r.orders[o.name] = o
	}
	return got, nil
}

// rests is what an order has left in the book, in source units, and its price; false if nothing.
func (r *bookRun) rests(o *placed) (left, price int64, rests bool) {
	sum := engine.Size(0)
	for _, id := range o.ids {
		if part := r.venue.ladder.live[id]; part != nil {
			sum, rests = sum+part.left, true
			price, _ = r.scale.source(part.price)
		}
	}
	left, _ = r.scale.units(sum)
	return left, price, rests
}

// settle counts the fills of an arriving order, for it and for each maker.
func (r *bookRun) settle(o *placed, got *result) error {
	for i := range r.venue.events {
		e := &r.venue.events[i]
		if e.Kind != engine.Filled {
			continue
		}
		maker := r.names[e.Order]
		_, at := inLadder(e.Side, e.Outcome, e.Price)
		price, exact := r.scale.source(at)
		size, whole := r.scale.units(e.Size)
		if !exact || !whole {
			return differ("fill", "a price and size of the source", fmt.Sprint(e.Size, " at ", at))
		}
		o.filled += size
		if maker.filled += size; maker.filled == maker.size {
			maker.state = filled
		}
		got.trade(trade{maker.name, price, size, maker.state})
		for _, name := range []string{maker.name, o.name} {
			f := got.fills[name]
			got.fills[name] = taken{f.Size + size, f.Cost + size*price}
		}
	}
	return nil
}

// trade adds a fill. Two consecutive fills of one order at one price count as one.
func (g *result) trade(t trade) {
	if n := len(g.trades); n > 0 && g.trades[n-1].Maker == t.Maker && g.trades[n-1].Price == t.Price {
		t.Size += g.trades[n-1].Size
		g.trades = g.trades[:n-1]
	}
	g.trades = append(g.trades, t)
}

// named returns the order that a step names, and the account that asks.
func (r *bookRun) named(st *step) (*placed, string) {
	o := r.orders[st.ID]
	switch {
	case st.Account != "":
		return o, st.Account
	case o != nil:
		return o, o.account
	}
	return nil, "nobody"
}

// cancel cancels an order, or is refused.
func (r *bookRun) cancel(st *step) (*result, error) {
	o, account := r.named(st)
	ids := []engine.OrderID{r.venue.nextID()} // one that nobody placed
	got := &result{order: o, state: canceled}
	if o != nil {
		ids, got.before = o.ids, o.state
	}
	sum := engine.Size(0)
	for _, id := range ids {
		last, err := r.venue.cancel(account, id)
		if err != nil {
			return nil, err
		}
		if last.Kind == engine.Rejected {
			got.state, got.reject = rejected, last.Reject
		}
		sum += last.Remaining
	}
	if len(ids) > 1 && sum > 0 {
		got.state, got.reject = canceled, engine.Accepted // parts of it were filled before
	}
	if got.state == rejected {
		return got, nil
	}
	whole := false
	if got.left, whole = r.scale.units(sum); !whole {
		return nil, differ("what a cancel leaves", "a size of the source", sum)
	}
	o.state, got.before = canceled, ""
	return got, nil
}

// replace changes price and size of an order: a cancel, and a new order for the rest.
func (r *bookRun) replace(st *step) (*result, error) {
	o, account := r.named(st)
	if o == nil || o.state != live || o.account != account {
		return r.cancel(st)
	}
	price, left := o.price, o.size+st.Delta-o.filled
	if st.Price != nil {
		price = *st.Price
	}
	if last := r.venue.ladder.live[o.ids[len(o.ids)-1]]; price == o.price && left > 0 &&
		!r.venue.ladder.last(last) {
		return nil, cannot("an amend in place, of an order with others behind it")
	}
	got, err := r.cancel(st)
	if err != nil || got.state != canceled {
		return got, err
	}
	o.size, o.price = o.size+st.Delta, price
	if got.left = max(left, 0); left <= 0 {
		return got, nil
	}
	at, err := r.scale.price(price)
	if err != nil {
		return nil, err
	}
	size, err := r.scale.size(left)
	if err != nil {
		return nil, err
	}
	of := limit(o.account, o.side, at, size)
	if r.complement(r.sent) {
		of = of.complement()
	}
	return r.send(o, &of)
}
