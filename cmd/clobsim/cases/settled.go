package cases

import (
	"errors"
	"fmt"
	"slices"

	"clobd/engine"
)

// The accounts of a contract that are no wallets here.
const (
	theExchange = "exchange"    // holds nothing between two settlements
	feeReceiver = "feeReceiver" // gets what the fee account holds
)

// check compares everything that is stated of a settlement.
func (r *settleRun) check() error {
	for i, name := range r.MatchTypes {
		kind, ok := map[string]engine.Settlement{"COMPLEMENTARY": engine.Transfer,
			"MINT": engine.Mint, "MERGE": engine.Merge}[name]
		if !ok {
			return fmt.Errorf("unknown match type %q", name)
		}
		maker := makerName(i)
		if r.kinds[i] != kind {
			return differ("settlement with "+maker, name, r.kinds[i])
		}
		if r.gave[maker] != r.MakerFills[i] {
			return differ("fill of "+maker, r.MakerFills[i], r.gave[maker])
		}
	}
	if err := r.checkOrders(); err != nil {
		return err
	}
	if err := r.collect(); err != nil {
		return err
	}
	for _, h := range r.expect.Absolute {
		if err := r.checkBalance(h, false); err != nil {
			return err
		}
	}
	for _, h := range r.expect.Delta {
		if err := r.checkBalance(h, true); err != nil {
			return err
		}
	}
	return nil
}

// checkOrders compares what became of the orders.
func (r *settleRun) checkOrders() error {
	for _, name := range r.expect.Filled {
		if name == "taker" {
			if r.last.Kind != engine.Completed || r.last.Remaining != 0 {
				return differ("taker", "filled", text(r.last))
			}
			continue
		}
		i := slices.IndexFunc(r.ids, func(id engine.OrderID) bool {
			return makerName(r.makers[id]) == name
		})
		if i < 0 {
			return fmt.Errorf("filled order %q is not understood", name)
		}
		if o := r.venue.ladder.live[r.ids[i]]; o != nil {
			return differ(name, "filled", fmt.Sprintf("resting with %v", o.left))
		}
	}
	for name, want := range r.expect.Remaining {
		if name != "taker" {
			return fmt.Errorf("remaining of %q is not understood", name)
		}
		if left := r.Taker.MakerAmount - r.gave[name]; left != want {
			return differ("remaining of "+name, want, left)
		}
	}
	for i := range r.expect.Events {
		if err := r.checkEvent(&r.expect.Events[i]); err != nil {
			return fmt.Errorf("filled event of %s: %w", r.expect.Events[i].Order, err)
		}
	}
	return nil
}

// checkEvent compares what a contract recorded of one order with what it gave and got here.
func (r *settleRun) checkEvent(e *filledEvent) error {
	maker, taker := r.Taker.Account, theExchange
	for i := range r.Makers {
		if e.Order == makerName(i) {
			maker, taker = r.Makers[i].Account, r.Taker.Account
		}
	}
	if len(e.Args) != 5 || e.Maker != maker || e.Taker != taker {
		return errors.New("not the parties and the five arguments of that order")
	}
	got := [3]int64{r.gave[e.Order], r.got[e.Order], r.fees[e.Order]}
	for i, what := range []string{"given", "got", "fee"} {
		want, err := amount(e.Args[2+i])
		if err != nil {
			return err
		}
		if got[i] != want {
			return differ(what, want, got[i])
		}
	}
	return nil
}

// collect moves the taker's fee from the fee account to its receiver. Nothing more may be there.
func (r *settleRun) collect() error {
	if r.fees["taker"] != r.TakerFee {
		return differ("taker's fee", r.TakerFee, r.fees["taker"])
	}
	if r.TakerFee == 0 {
		return nil
	}
	if _, err := r.venue.wallet(feeReceiver); err != nil {
		return err
	}
	c := engine.Command{Kind: engine.Collect, Address: addressOf(feeReceiver),
		Cash: engine.Cash(r.TakerFee)}
	last, err := r.venue.apply(c)
	if err != nil {
		return err
	}
	if err := r.venue.accepted("Collect", last); err != nil {
		return err
	}
	c.Cash = 1
	if last, err = r.venue.apply(c); err == nil && last.Reject != engine.RejectBalance {
		err = differ("one unit more than the fee", "rejected (balance)", last.Kind)
	}
	return err
}

// checkBalance compares a balance or, with since, its change from the placing of the makers to the
// end of the taker's fills.
func (r *settleRun) checkBalance(h balanceOf, since bool) error {
	a, err := assetOf(h.Asset)
	if err != nil {
		return err
	}
	got := int64(0)
	if h.Account == theExchange {
		got, err = r.venue.stray(a)
	} else {
		got, _, err = r.venue.balance(h.Account, a)
	}
	if err != nil {
		return err
	}
	if since {
		got -= r.before[key(h.Account, a)]
	}
	if got != h.Amount {
		return differ(h.Account+"'s "+h.Asset, h.Amount, got)
	}
	return nil
}

// checkReverted requires that the taker was refused and that nothing moved.
func (r *settleRun) checkReverted() error {
	why := engine.RejectFAK
	if of, err := r.Taker.offer(engine.FAK); err != nil || !of.priced() {
		why = engine.RejectTick
	}
	if r.last.Kind != engine.Rejected || r.last.Reject != why || len(r.venue.events) != 1 {
		return differ("taker", "rejected ("+engine.Rejects[why].Code+")", text(r.last))
	}
	for account := range r.venue.wallets {
		for a := range collateral + 1 {
			total, _, err := r.venue.balance(account, a)
			if err != nil {
				return err
			}
			if want := r.before[key(account, a)]; total != want {
				return differ(account+"'s balance", want, total)
			}
		}
	}
	return nil
}
