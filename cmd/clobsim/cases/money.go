package cases

import (
	"errors"
	"maps"
	"slices"

	"clobd/engine"
)

// money relates the balances of a file to the engine's: outcome 0 is the base asset of its symbol,
// collateral the quote asset.
type money struct {
	symbol
	reserve  map[string]int64 // price at which an order reserves, where the file states it
	known    bool             // whether the symbol's scales are
	perUnit  int64            // quote amount of one source unit at price 1, in base units
	linear   bool             // quote amounts keep their proportions
	baseUnit engine.Size      // one source unit, in base units
	div      int64            // of prices
}

// symbol says in which units a source counts balances: a size of 1 is baseScale of the base asset,
// and costs its price times quoteScale.
type symbol struct {
	name, base, quote     string
	baseScale, quoteScale int64
}

// symbols are those whose scales their source publishes.
func symbols() []symbol {
	return []symbol{{"ETH_XBT", "ETH", "XBT", 100_000, 10}}
}

// finer is by how much a source unit grows where balances are compared, so that the amounts of a
// balance, which are finer than a size, are whole base units.
const finer = 100

// moneyOf is nil if no balance is stated: then orders get what they need.
func moneyOf(steps []step) *money {
	m := &money{reserve: map[string]int64{}}
	stated := false
	for i := range steps {
		st := &steps[i]
		stated = stated || st.Op == "balance"
		for _, s := range symbols() {
			if st.Symbol == s.name {
				m.symbol, m.known = s, true
			}
		}
		if st.Orders == nil {
			continue
		}
		for _, o := range *st.Orders {
			if o.Side == "BID" && o.Reserve != 0 {
				m.reserve[o.ID] = o.Reserve
			}
		}
	}
	if !stated {
		return nil
	}
	return m
}

// fit chooses the scale: a linear map if there is one for these prices, and units fine enough.
func (m *money) fit(s *scale, steps []step) {
	var prices []int64
	for i := range steps {
		if p := steps[i].Price; p != nil {
			prices = append(prices, *p)
		}
	}
	s.unit *= finer
	s.ratio(prices)
	m.baseUnit, m.linear = s.unit, s.rank == nil
	m.perUnit, m.div = int64(s.unit/engine.Lot)*s.mul, s.div
}

// admits returns an error if the engine cannot take an order for which the file states a balance.
func (m *money) admits(o *placed) error {
	if at, ok := m.reserve[o.name]; ok && o.side == engine.Buy && at != o.price {
		return cannot("an amend within a reserve: the order reserves at %d, not at its limit %d",
			at, o.price)
	}
	if !m.known {
		return cannot("balances of a symbol whose scales are not known")
	}
	if o.side == engine.Buy && !m.linear {
		return cannot("a BUY from a stated balance, at prices that no linear map keeps")
	}
	return nil
}

// convert is an amount of an asset in base units.
func (m *money) convert(name string, amount int64) (asset, int64, error) {
	num, den := int64(m.baseUnit), m.baseScale
	a := asset(0)
	switch {
	case !m.known:
		return 0, 0, cannot("balances of a symbol whose scales are not known")
	case name == m.base:
	case name == m.quote && !m.linear:
		return 0, 0, cannot("a balance of %s, at prices that no linear map keeps", name)
	case name == m.quote:
		a, num, den = collateral, m.perUnit, m.div*m.quoteScale
	default:
		return 0, 0, cannot("a balance of %s, which is not traded", name)
	}
	if amount < 0 || amount > engine.MaxAmount/num || amount*num%den != 0 {
		return 0, 0, cannot("a balance of %d %s, which is no whole number of base units", amount, name)
	}
	return a, amount * num / den, nil
}

// step pays in what an account is stated to have, or compares it with what is free.
func (m *money) step(v *venue, st *step) error {
	for _, name := range slices.Sorted(maps.Keys(st.Balances)) {
		a, amount, err := m.convert(name, st.Balances[name])
		if err == nil && st.Op == "deposit" {
			err = v.deposit(st.Account, a, amount)
		} else if err == nil {
			err = m.compare(v, st.Account, name, amount)
		}
		var skip inexpressible
		if st.Op == "deposit" && errors.As(err, &skip) {
			continue // what depends on it is skipped, if anything does
		}
		if err != nil {
			return err
		}
	}
	return nil
}

// compare holds what an account has free of an asset against what it should.
func (m *money) compare(v *venue, account, name string, want int64) error {
	a := asset(0)
	if name == m.quote {
		a = collateral
	}
	total, held, err := v.balance(account, a)
	if err == nil && total-held != want {
		err = differ("free "+name+" in base units", want, total-held)
	}
	return err
}
