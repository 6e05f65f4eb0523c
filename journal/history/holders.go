package history

import (
	"encoding/binary"
	"fmt"
	"slices"

	"clobd/engine"
	"clobd/journal"

	"github.com/cockroachdb/pebble/v2"
)

// Holder is a wallet and how many tokens it holds, reserved ones included.
type Holder struct {
	Wallet engine.WalletNo
	Size   engine.Size
}

// holderKeyLen is the length of a holder's key: space, market, outcome, inverted size, wallet.
const holderKeyLen = 1 + 4 + 1 + 8 + 4

// holderKey is the key under which a holder is listed: the size is inverted, so that the largest
// comes first, and of equal ones the oldest wallet.
func holderKey(m engine.MarketNo, o engine.Outcome, x Holder) [holderKeyLen]byte {
	var k [holderKeyLen]byte
	k[0] = spaceHolder
	binary.BigEndian.PutUint32(k[1:], uint32(m))
	k[5] = byte(o)
	binary.BigEndian.PutUint64(k[6:], ^uint64(x.Size))
	binary.BigEndian.PutUint32(k[14:], uint32(x.Wallet))
	return k
}

// holderOf is the holder in such a key.
func holderOf(key []byte) (x Holder, good bool) {
	if len(key) != holderKeyLen {
		return x, false
	}
	x.Size = engine.Size(^binary.BigEndian.Uint64(key[6:]))
	x.Wallet = engine.WalletNo(binary.BigEndian.Uint32(key[14:]))
	return x, true
}

// holderMoves is how many holders may move before the memtable is flushed: whoever adds up a list,
// or reads it for the first time, steps over all that moved in it since then.
const holderMoves = 1 << 12

// list moves a changed position to its new places among the holders. Each key is set once before it
// is deleted, so that the pair vanishes when a memtable is flushed.
func (l *ledger) list(p *position, batch *pebble.Batch) error {
	for o := range p.tokens {
		size, outcome := p.tokens[o].Size, engine.Outcome(o)
		if size == p.listed[o] {
			continue
		}
		l.shifts = append(l.shifts, shift{token{p.market, outcome}, p.wallet, size, p.listed[o]})
		if p.listed[o] != 0 {
			key := holderKey(p.market, outcome, Holder{p.wallet, p.listed[o]})
			if err := batch.SingleDelete(key[:], nil); err != nil {
				return err
			}
			l.moves++
		}
		if size != 0 {
			key := holderKey(p.market, outcome, Holder{p.wallet, size})
			if err := batch.Set(key[:], nil, nil); err != nil {
				return err
			}
		}
		p.listed[o] = size
	}
	return nil
}

// Holders are at most limit wallets that hold at least least of a token, the largest first; among
// equals the wallet that is known longer; limit is at most 1<<30. The error is ErrClosed, or names
// what cannot be read.
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
	// Some more than are wanted: others may leave the first places.
	most := limit + min(limit, 1024)/4 + 16
	r := h.leaders.begin(of, 2*most)
	if r == nil {
		most = limit
	}
	all, err := h.holders(of, most)
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

// holders reads at most most holders of a token.
func (h *History) holders(of token, most int) (all []Holder, err error) {
	from := holderKey(of.market, of.outcome, Holder{0, engine.Size(^uint64(0) >> 1)})
	to := holderKey(of.market, of.outcome, Holder{1<<32 - 1, 1})
	err = h.each(from[:], append(to[:], 0), func(key, _ []byte) (bool, error) {
		x, good := holderOf(key)
		if !good {
			return false, errRow
		}
		all = append(all, x)
		return len(all) < most, nil
	})
	return all, err
}
