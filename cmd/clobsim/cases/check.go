package cases

import (
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"

	"clobd/engine"
)

// reasonOf is the refusal of the engine that a file's reason means.
func reasonOf(name string) (engine.Reject, error) {
	switch name {
	case "zero size", "ErrInvalidQuantity":
		return engine.RejectAmount, nil
	case "MATCHING_UNKNOWN_ORDER_ID":
		return engine.RejectNotFound, nil
	case "RISK_NSF":
		return engine.RejectBalance, nil
	}
	return 0, fmt.Errorf("unknown reason %q", name)
}

// compare compares the result of a step with everything that the file states about that step.
func (x *expect) compare(got *result) error {
	states := []string{got.state, got.before}
	if x.State != "" && !slices.Contains(states, x.State) && (x.Or == "" || x.Or != got.state) {
		state := got.state
		if got.reject != engine.Accepted {
			state += " (" + engine.Rejects[got.reject].Code + ")"
		}
		return differ("state", strings.TrimSuffix(x.State+" or "+x.Or, " or "), state)
	}
	if x.Reason != "" {
		want, err := reasonOf(x.Reason)
		if err != nil {
			return err
		}
		if got.reject != want {
			return differ("reason", engine.Rejects[want].Code, engine.Rejects[got.reject].Code)
		}
	}
	sum := int64(0)
	for i := range got.trades {
		sum += got.trades[i].Size
	}
	if x.Matched != nil && *x.Matched != (sum > 0) {
		return differ("matched", *x.Matched, sum > 0)
	}
	if err := cmp.Or(
		same("matched size", x.Traded, sum), same("filled", x.Filled, sum),
		same("unfilled", x.Unfilled, got.left), same("remaining", x.Remaining, got.left),
	); err != nil {
		return err
	}
	if x.Trades != nil && !slices.EqualFunc(x.Trades, got.trades, trade.same) {
		return differ("trades", x.Trades, got.trades)
	}
	for _, name := range slices.Sorted(maps.Keys(x.Fills)) {
		if want := x.Fills[name]; want != got.fills[name] {
			return differ("fills of "+name, want, got.fills[name])
		}
	}
	return nil
}

// same compares a number, if it is stated.
func same(what string, want *int64, got int64) error {
	if want != nil && *want != got {
		return differ(what, *want, got)
	}
	return nil
}

// same reports whether another trade is as stated; the maker's state need not be.
func (t trade) same(o trade) bool {
	if t.State == "" {
		o.State = ""
	}
	return t == o
}

// String is a trade in a report.
func (t trade) String() string {
	return strings.TrimSuffix(fmt.Sprintf("%s %d@%d %s", t.Maker, t.Size, t.Price, t.State), " ")
}

// String is what an order got, in a report.
func (t taken) String() string { return fmt.Sprintf("%d for %d", t.Size, t.Cost) }

// check carries out a step that looks at something.
func (r *bookRun) check(st *step) error {
	switch st.Op {
	case "book":
		return cmp.Or(
			r.checkLevels("bids", engine.Buy, st.Bids, st.Complete || st.BidsEnd),
			r.checkLevels("asks", engine.Sell, st.Asks, st.Complete || st.AsksEnd))
	case "counts":
		return cmp.Or(
			r.checkCount("bids", engine.Buy, st.Bids), r.checkCount("asks", engine.Sell, st.Asks))
	case "queue":
		return r.checkQueue(st)
	case "order":
		return r.checkOrder(st)
	case "orders":
		return r.checkOrders(st)
	case "deposit", "balance":
		if len(st.Balances) == 0 {
			return fmt.Errorf("%s without balances", st.Op)
		}
		if r.money == nil {
			return nil // a deposit of a file that states no balances: orders have what they need
		}
		return r.money.step(r.venue, st)
	}
	return fmt.Errorf("unknown op %q", st.Op)
}

// checkLevels compares the stated levels of a side; with whole, the side may have no others. Each
// is price, size, and number of orders, which may be null.
func (r *bookRun) checkLevels(
	what string, side engine.Side, raw json.RawMessage, whole bool,
) error {
	var want [][]*int64
	if raw == nil {
		return nil
	}
	if err := strict(raw, &want); err != nil {
		return fmt.Errorf("%s: %w", what, err)
	}
	levels := r.venue.ladder.sides[side]
	if !whole {
		levels = levels[:min(len(levels), len(want))]
	}
	var expected, got []string
	for i, w := range want {
		if len(w) < 2 || len(w) > 3 || w[0] == nil || w[1] == nil {
			return fmt.Errorf("%s: level %d is not [price, size, orders]", what, i+1)
		}
		text := fmt.Sprintf("%d@%d", *w[1], *w[0])
		if len(w) == 3 && w[2] != nil {
			text += fmt.Sprintf(" in %d", *w[2])
		}
		expected = append(expected, text)
	}
	for i := range levels {
		price, exact := r.scale.source(levels[i].price)
		size, units := r.scale.units(levels[i].size())
		if !exact || !units {
			return differ(what, "prices and sizes of the source", levels[i].price)
		}
		text := fmt.Sprintf("%d@%d", size, price)
		if i >= len(want) || len(want[i]) == 3 && want[i][2] != nil {
			text += fmt.Sprintf(" in %d", len(r.queue(&levels[i])))
		}
		got = append(got, text)
	}
	if !slices.Equal(expected, got) {
		return differ(what, expected, got)
	}
	return nil
}

// checkCount compares how many orders rest on a side.
func (r *bookRun) checkCount(what string, side engine.Side, raw json.RawMessage) error {
	if raw == nil {
		return nil
	}
	var want int
	if err := strict(raw, &want); err != nil {
		return fmt.Errorf("%s: %w", what, err)
	}
	got := 0
	for i := range r.venue.ladder.sides[side] {
		got += len(r.queue(&r.venue.ladder.sides[side][i]))
	}
	if got != want {
		return differ("number of "+what, want, got)
	}
	return nil
}

// queue are the orders of a level, oldest first, each once however many parts it has.
func (r *bookRun) queue(l *priceLevel) (all []*placed) {
	for _, o := range l.orders {
		all = append(all, r.names[o.id])
	}
	return slices.Compact(all)
}

// checkQueue compares the orders of a side in the order in which they would be matched.
func (r *bookRun) checkQueue(st *step) error {
	var got []string
	side := engine.Buy
	switch st.Side {
	case "bids":
	case "asks":
		side = engine.Sell
	default:
		return fmt.Errorf("unknown side %q", st.Side)
	}
	for i := range r.venue.ladder.sides[side] {
		for _, o := range r.queue(&r.venue.ladder.sides[side][i]) {
			got = append(got, o.name)
		}
	}
	if !st.Complete {
		got = got[:min(len(got), len(st.Head))]
	}
	if !slices.Equal(st.Head, got) {
		return differ("queue of "+st.Side, st.Head, got)
	}
	return nil
}

// checkOrder compares the stated facts of one order.
func (r *bookRun) checkOrder(st *step) error {
	o := r.orders[st.ID]
	rests := false
	left, price := int64(0), int64(0)
	if o != nil {
		if left, price, rests = r.rests(o); !rests {
			price = o.price
		}
	}
	if st.Exists != nil && *st.Exists != rests {
		return differ("exists", *st.Exists, rests)
	}
	if o == nil {
		if st.Size != nil || st.Remaining != nil || st.Price != nil {
			return differ("order", "one of that name", "none")
		}
		return nil
	}
	size := o.size
	if rests {
		size = o.filled + left
	}
	return cmp.Or(same("size", st.Size, size), same("remaining", st.Remaining, left),
		same("price", st.Price, price))
}

// checkOrders compares an account's open orders. At what price they reserve is no fact of this
// engine.
func (r *bookRun) checkOrders(st *step) error {
	if st.Orders == nil {
		return errors.New("orders without a list")
	}
	expected, got := []string{}, []string{}
	text := "%s %s %d@%d filled %d"
	for _, o := range *st.Orders {
		expected = append(expected, fmt.Sprintf(text, o.ID, o.Side, o.Size, o.Price, o.Filled))
	}
	for _, o := range r.orders {
		left, price, rests := r.rests(o)
		if o.account != st.Account || !rests {
			continue
		}
		side := [...]string{"BID", "ASK"}[o.side]
		got = append(got, fmt.Sprintf(text, o.name, side, o.filled+left, price, o.filled))
	}
	slices.Sort(expected)
	slices.Sort(got)
	if !slices.Equal(expected, got) {
		return differ("open orders", expected, got)
	}
	return nil
}
