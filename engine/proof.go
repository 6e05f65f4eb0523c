package engine

import (
	"errors"
	"fmt"
)

// ErrDrift says that a state does not add up: a counter differs from what it counts.
var ErrDrift = errors.New("the state does not add up")

// proof checks a state while it is packed: each account must hold back what its open orders
// reserve, and each asset must sum to zero. One word serves all accounts: each has an odd weight of
// its own, so that differences hide with a probability of one in 2^63.
type proof struct {
	reserves uint64 // held by accounts, less the reserves of orders
	assets   uint64
}

func weighCash(w WalletNo) uint64 { return mix(uint64(w), mixLink) | 1 }

func weighTokens(position uint32, o Outcome) uint64 {
	return mix(uint64(position)<<1|uint64(o), mixAsset) | 1
}

// weighAsset returns the weight of a market's token. The weight of collateral is 1.
func weighAsset(m MarketNo, o Outcome) uint64 { return mix(uint64(m)<<1|uint64(o), mixState) | 1 }

func (f *proof) account(no WalletNo, a *account) {
	f.reserves += uint64(a.cash.held) * weighCash(no)
	f.assets += uint64(a.cash.total)
}

func (f *proof) market(no MarketNo, m *market) {
	f.assets += uint64(m.vault)
	for o := range m.issued {
		f.assets += uint64(m.issued[o]+m.external[o]) * weighAsset(no, Outcome(o))
	}
}

func (f *proof) position(no uint32, p *position) {
	for o := range p.tokens {
		e := &p.tokens[o]
		f.reserves += uint64(e.held) * weighTokens(no, Outcome(o))
		f.assets += uint64(e.total) * weighAsset(p.market, Outcome(o))
	}
}

func (f *proof) order(o *order) {
	held := uint64(reserved(o.side, o.price, o.remaining))
	if o.side == Buy {
		f.reserves -= held * weighCash(o.wallet)
	} else {
		f.reserves -= held * weighTokens(o.position, o.outcome)
	}
}

// verdict returns nil if everything adds up. Else it names the first accounts with a wrong reserve.
func (f *proof) verdict(x *Exchange) error {
	if f.reserves == 0 && f.assets == 0 {
		return nil
	}
	errs := misreserved(x)
	if f.assets != 0 {
		errs = append(errs, errors.New("an asset does not sum to zero"))
	}
	return fmt.Errorf("%w: %w", ErrDrift, errors.Join(errs...))
}

const mostDrifts = 8

// misreserved compares what open orders reserve with what accounts hold back, account by account.
func misreserved(x *Exchange) (errs []error) {
	cash := make([]int64, x.accounts.used+1)
	tokens := make([][2]int64, x.positions.used+1)
	for no := uint32(1); no <= x.markets.used; no++ {
		x.markets.at(no).book.each(func(h uint32) {
			o := x.orders.at(h)
			held := reserved(o.side, o.price, o.remaining)
			if o.side == Buy {
				cash[o.wallet] += held
			} else {
				tokens[o.position][o.outcome] += held
			}
		})
	}
	for no := uint32(1); no <= x.accounts.used && len(errs) < mostDrifts; no++ {
		if held := x.accounts.at(no).cash.held; held != cash[no] {
			errs = append(errs, fmt.Errorf("wallet %d: reserved collateral %d, its orders come to %d",
				no, held, cash[no]))
		}
	}
	for no := uint32(1); no <= x.positions.used && len(errs) < mostDrifts; no++ {
		p := x.positions.at(no)
		for o := range p.tokens {
			if held := p.tokens[o].held; held != tokens[no][o] {
				errs = append(errs, fmt.Errorf("wallet %d in market %d: reserved tokens of outcome %d %d, "+
					"its orders come to %d", p.wallet, p.market, o, held, tokens[no][o]))
			}
		}
	}
	return errs
}
