package history

import (
	"encoding/binary"
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

// list writes what changed of a position into the lists of holders.
func (l *ledger) list(p *position, batch *pebble.Batch) error {
	for o := range p.tokens {
		r, was := &p.tokens[o], p.listed[o]
		if r.Size == was {
			continue
		}
		l.shifts = append(l.shifts, shift{token{r.Market, r.Outcome}, r.Wallet, r.Size, was})
		key := holderKey(r.Market, r.Outcome, r.Wallet)
		var err error
		if r.Size == 0 {
			err = batch.Delete(key[:], nil)
		} else {
			l.value = binary.AppendUvarint(l.value[:0], uint64(r.Size))
			err = batch.Set(key[:], l.value, nil)
		}
		if err != nil {
			return err
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
	all, whole, err := h.largest(of, most)
	if r != nil {
		h.leaders.finish(r, all, whole, err)
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

// largest returns the largest holders of a token, at most so many, and whether these are all.
func (h *History) largest(of token, most int) (all []Holder, whole bool, err error) {
	whole = true
	cut := func() {
		slices.SortFunc(all, compareHolders)
		if len(all) > most {
			all, whole = all[:most], false
		}
	}
	err = h.eachHolder(of.market, [2]engine.Outcome{of.outcome, of.outcome},
		func(_ engine.Outcome, x Holder) {
			if !whole && compareHolders(x, all[most-1]) > 0 {
				return
			}
			if all = append(all, x); len(all) == 2*most {
				cut()
			}
		})
	cut()
	return all, whole, err
}
