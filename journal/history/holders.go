package history

import (
	"fmt"
	"slices"

	"clobd/engine"
	"clobd/journal"

	"github.com/cockroachdb/pebble/v2"
)

// Holder is a wallet and how many tokens it holds, with the reserved ones, in base units.
type Holder struct {
	Wallet engine.WalletNo
	Size   engine.Size
}

// A reader of the database steps over all that moved since the last flush. After such a reader,
// holderMoves moves start a flush. holderMost moves start one without a reader, so that the first
// reader of a list does not wait long.
const (
	holderMoves = 1 << 12
	holderMost  = 1 << 16
)

// list moves a changed position among the holders. One Set and one SingleDelete vanish in a flush.
func (l *ledger) list(p *position, batch *pebble.Batch) error {
	for o := range p.tokens {
		r, was := &p.tokens[o], p.listed[o]
		if r.Size == was {
			continue
		}
		l.shifts = append(l.shifts, shift{token{r.Market, r.Outcome}, r.Wallet, r.Size, was})
		if was != 0 {
			key := holderKey(r.Market, r.Outcome, Holder{r.Wallet, was})
			if err := batch.SingleDelete(key[:], nil); err != nil {
				return err
			}
			l.moves++
		}
		if r.Size != 0 {
			key := holderKey(r.Market, r.Outcome, Holder{r.Wallet, r.Size})
			if err := batch.Set(key[:], nil, nil); err != nil {
				return err
			}
		}
		p.listed[o] = r.Size
	}
	return nil
}

// Holders returns at most limit wallets that hold least or more of a token, the largest first, then
// by wallet number. limit is at most 1<<30. The error is as for Past.
func (h *History) Holders(market engine.MarketNo, o engine.Outcome, limit int, least engine.Size) (
	[]Holder, error) {
	if limit <= 0 {
		return nil, nil
	}
	if !h.gate.Enter() {
		return nil, journal.ErrClosed
	}
	defer h.gate.Leave()
	of, least := token{market, o}, max(least, 1)
	if all, known := h.leaders.first(of, limit, least); known {
		return all, nil
	}
	// Read a few more than asked, because some may lose their places.
	most := limit + min(limit, 1024)/4 + 16
	r := h.leaders.begin(of, 2*most)
	if r == nil {
		most = limit
	}
	var all []Holder
	err := h.eachHolder(market, [2]engine.Outcome{o, o}, func(_ engine.Outcome, x Holder) bool {
		all = append(all, x)
		return len(all) < most
	})
	if r != nil {
		h.leaders.finish(r, all, len(all) < most, err)
	}
	if err != nil {
		return nil, fmt.Errorf("read holders of outcome %d in market %d: %w", o, market, err)
	}
	few := slices.IndexFunc(all, func(x Holder) bool { return x.Size < least })
	if few < 0 {
		few = len(all)
	}
	return all[:min(limit, few)], nil
}
