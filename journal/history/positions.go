package history

import (
	"encoding/binary"
	"fmt"
	"math/bits"

	"clobd/engine"
	"clobd/journal"

	"github.com/cockroachdb/pebble/v2"
)

// PositionRow is what a wallet has, or had, of one token, and what that cost, in base units. Tokens
// that leave take their share of Cost along, rounded down; the last ones take the rest. So exactly:
//
//	Cost - Realized = paid for the tokens - got for them
//
// A split, a merge, a deposit and a withdrawal count each token at 0.50.
type PositionRow struct {
	Wallet  engine.WalletNo
	Market  engine.MarketNo
	Outcome engine.Outcome
	// Size is what the wallet holds; the part Reserved backs orders.
	Size, Reserved engine.Size
	Bought         engine.Size // all that ever came in; BoughtCash was paid for it, without fees
	BoughtCash     engine.Cash
	// Cost was paid, with fees, for Size; HeldFees is the part of Cost that is fees.
	Cost, HeldFees engine.Cash
	// Realized is the profit or loss on tokens that left, after fees: before, add Fees - HeldFees.
	Realized engine.Cash
	Fees     engine.Cash // were paid in trades of the token
	Redeemed engine.Cash // was paid out by the resolved market
	// Taken and Made are the collateral value of its fills, as the taker and as a maker.
	Taken, Made engine.Cash
	// Opened is when Size was last raised from 0, Updated when it last changed.
	Opened, Updated engine.Time
}

// half is the price of size tokens at 0.50 each. Outcome 1 rounds up, so that a pair costs 1.00.
func half(o engine.Outcome, size engine.Size) engine.Cash {
	if o == 0 {
		return engine.Cash(size / 2)
	}
	return engine.Cash(size - size/2)
}

// share is total * part / whole, rounded down. part is at most whole.
func share(total engine.Cash, part, whole engine.Size) engine.Cash {
	if part == whole {
		return total
	}
	hi, lo := bits.Mul64(uint64(total), uint64(part))
	q, _ := bits.Div64(hi, lo, uint64(whole))
	return engine.Cash(q)
}

// receive adds size tokens, for which price was paid, and fee on top.
func (r *PositionRow) receive(size engine.Size, price, fee engine.Cash, now engine.Time) {
	if r.Size == 0 {
		r.Opened = now
	}
	r.Size += size
	r.Bought += size
	r.BoughtCash += price
	r.Cost += price + fee
	r.HeldFees += fee
	r.Fees += fee
	r.Updated = now
}

// give takes size tokens away for price less fee, and reports whether they were there.
func (r *PositionRow) give(size engine.Size, price, fee engine.Cash, now engine.Time) bool {
	if size < 0 || size > r.Size {
		return false
	}
	if size == 0 {
		return true
	}
	cost := share(r.Cost, size, r.Size)
	r.HeldFees -= share(r.HeldFees, size, r.Size)
	r.Size -= size
	r.Cost -= cost
	r.Realized += price - fee - cost
	r.Fees += fee
	r.Updated = now
	return true
}

type position struct {
	tokens [2]PositionRow
	listed [2]engine.Size // sizes in the list of holders
	dirty  bool
}

func newPosition(w engine.WalletNo, m engine.MarketNo) position {
	return position{tokens: [2]PositionRow{
		{Wallet: w, Market: m}, {Wallet: w, Market: m, Outcome: 1}}}
}

// hasBoth are the bits of the first byte of a stored position: one for each outcome that follows.
const hasBoth = 1<<0 | 1<<1

func (p *position) append(b []byte) []byte {
	at := len(b)
	b = append(b, 0)
	for o := range p.tokens {
		r := &p.tokens[o]
		if r.Bought == 0 {
			continue
		}
		b[at] |= 1 << o
		b = appendUvarints(b, uint64(r.Size), uint64(r.Reserved), uint64(r.Bought),
			uint64(r.BoughtCash), uint64(r.Cost), uint64(r.HeldFees), uint64(r.Fees),
			uint64(r.Redeemed), uint64(r.Taken), uint64(r.Made))
		b = binary.AppendVarint(b, int64(r.Realized))
		b = binary.AppendVarint(b, int64(r.Opened))
		b = binary.AppendVarint(b, int64(r.Updated-r.Opened))
	}
	return b
}

func (p *position) decode(b []byte) error {
	if len(b) == 0 || b[0]&^hasBoth != 0 {
		return errRow
	}
	c := varints{rest: b[1:]}
	for o := range p.tokens {
		if b[0]>>o&1 == 0 {
			continue
		}
		r := &p.tokens[o]
		r.Size, r.Reserved = engine.Size(c.uvarint()), engine.Size(c.uvarint())
		r.Bought, r.BoughtCash = engine.Size(c.uvarint()), engine.Cash(c.uvarint())
		r.Cost, r.HeldFees = engine.Cash(c.uvarint()), engine.Cash(c.uvarint())
		r.Fees, r.Redeemed = engine.Cash(c.uvarint()), engine.Cash(c.uvarint())
		r.Taken, r.Made = engine.Cash(c.uvarint()), engine.Cash(c.uvarint())
		r.Realized = engine.Cash(c.varint())
		r.Opened = engine.Time(c.varint())
		r.Updated = r.Opened + engine.Time(c.varint())
		p.listed[o] = r.Size
	}
	return c.end()
}

// EachPosition calls visit for each market in which a wallet has or had tokens, by market number:
// zeros for a token that it never had. Rows are valid until visit returns. The error is as for
// Past.
func (h *History) EachPosition(wallet engine.WalletNo, visit func(both *[2]PositionRow)) error {
	from, to := pairKey(spacePosition, wallet, 0), pairKey(spacePosition, wallet, 1<<32-1)
	var p position
	visitRow := func(key, value []byte) (bool, error) {
		if len(key) != pairKeyLen {
			return false, errRow
		}
		p = newPosition(wallet, engine.MarketNo(binary.BigEndian.Uint32(key[5:])))
		err := p.decode(value)
		if err == nil {
			visit(&p.tokens)
		}
		return true, err
	}
	return h.view(func() error { return each(h.db, from[:], append(to[:], 0), visitRow) },
		"read positions of wallet", uint32(wallet))
}

// Position returns what a wallet has, or had, of both tokens. The error is as for EachPosition.
func (h *History) Position(wallet engine.WalletNo, market engine.MarketNo) (
	rows [2]PositionRow, err error) {
	if !h.gate.Enter() {
		return rows, journal.ErrClosed
	}
	defer h.gate.Leave()
	p, err := readPosition(h.db, wallet, market)
	return p.tokens, err
}

func readPosition(db *pebble.DB, w engine.WalletNo, m engine.MarketNo) (*position, error) {
	p, key := newPosition(w, m), pairKey(spacePosition, w, uint32(m))
	_, err := read(db, key[:], p.decode)
	if err != nil {
		err = fmt.Errorf("read position of wallet %d in market %d: %w", w, m, err)
	}
	return &p, err
}
