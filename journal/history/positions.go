package history

import (
	"encoding/binary"
	"errors"
	"fmt"
	"math/bits"

	"clobd/engine"
	"clobd/journal"
	"clobd/journal/disk"

	"github.com/cockroachdb/pebble/v2"
)

// PositionRow is what a wallet has, or once had, of one token, and what that cost it. All amounts
// are in base units. Cost follows the average: what leaves takes its share of it along, rounded
// down, and the last of it takes the rest. So for every row
//
//	Cost - Realized = all that was paid for the tokens - all that was got for them
//
// exactly. A pair is split and merged, and tokens are paid in and out from outside, at 0.50 each.
type PositionRow struct {
	Wallet  engine.WalletNo
	Market  engine.MarketNo
	Outcome engine.Outcome
	// Size is what it holds, Reserved what of that backs its orders.
	Size, Reserved engine.Size
	// Bought is all that ever came in, BoughtCash what was paid for it, without fees.
	Bought     engine.Size
	BoughtCash engine.Cash
	// Cost is what was paid, with fees, for what it holds; HeldFees is the share of fees in it.
	Cost, HeldFees engine.Cash
	// Realized is the profit, less the loss, on what it holds no more: fees are taken off. Without
	// them it is Realized + Fees - HeldFees.
	Realized engine.Cash
	// Fees are all that were paid in trades of the token.
	Fees engine.Cash
	// Redeemed is what the resolved market paid out.
	Redeemed engine.Cash
	// Taken and Made are the collateral value of its fills, as the taker and as a maker.
	Taken, Made engine.Cash
	// Opened is when Size was last raised from 0, Updated when it last changed.
	Opened, Updated engine.Time
}

// half is the price of size tokens at 0.50 each. For an odd size outcome 1 is dearer by one base
// unit, so that a pair costs exactly 1.00.
func half(o engine.Outcome, size engine.Size) engine.Cash {
	if o == 0 {
		return engine.Cash(size / 2)
	}
	return engine.Cash(size - size/2)
}

// share is the part of total that goes with part of whole, rounded down. part is at most whole.
func share(total engine.Cash, part, whole engine.Size) engine.Cash {
	if part == whole {
		return total
	}
	hi, lo := bits.Mul64(uint64(total), uint64(part))
	q, _ := bits.Div64(hi, lo, uint64(whole))
	return engine.Cash(q)
}

// come adds size tokens for which price was paid, and fee on top.
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

// part takes away size tokens for which price was got, less fee. It says whether they were there.
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

// position is what a wallet has in one market, as it is kept in memory.
type position struct {
	tokens [2]PositionRow
	listed [2]engine.Size // by which the holders' list has them
	wallet engine.WalletNo
	market engine.MarketNo
	dirty  bool
}

// The first byte of a stored position tells which outcomes follow, in order.
const (
	hasOutcome0 = 1 << iota
	hasOutcome1
	hasBoth = hasOutcome0 | hasOutcome1
)

// append appends the stored form: integers as varints, without the numbers in the key.
func (p *position) append(b []byte) []byte {
	at := len(b)
	b = append(b, 0)
	for o := range p.tokens {
		r := &p.tokens[o]
		if r.Bought == 0 {
			continue
		}
		b[at] |= hasOutcome0 << o
		for _, v := range [...]uint64{
			uint64(r.Size), uint64(r.Reserved), uint64(r.Bought), uint64(r.BoughtCash),
			uint64(r.Cost), uint64(r.HeldFees), uint64(r.Fees), uint64(r.Redeemed),
			uint64(r.Taken), uint64(r.Made),
		} {
			b = binary.AppendUvarint(b, v)
		}
		b = binary.AppendVarint(b, int64(r.Realized))
		b = binary.AppendVarint(b, int64(r.Opened))
		b = binary.AppendVarint(b, int64(r.Updated-r.Opened))
	}
	return b
}

// decode reads the stored form b of a position of wallet in market.
func (p *position) decode(wallet engine.WalletNo, market engine.MarketNo, b []byte) error {
	*p = position{wallet: wallet, market: market}
	p.name()
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
	if c.bad || len(c.rest) > 0 {
		return errRow
	}
	return nil
}

// name writes the position's numbers into its rows.
func (p *position) name() {
	for o := range p.tokens {
		r := &p.tokens[o]
		r.Wallet, r.Market, r.Outcome = p.wallet, p.market, engine.Outcome(o)
	}
}

// positionKeyLen is the length of a position's key: the space, wallet and market, big endian.
const positionKeyLen = 1 + 4 + 4

// positionKey is the key of the position of a wallet in a market.
func positionKey(w engine.WalletNo, m engine.MarketNo) [positionKeyLen]byte {
	var k [positionKeyLen]byte
	k[0] = spacePosition
	binary.BigEndian.PutUint32(k[1:], uint32(w))
	binary.BigEndian.PutUint32(k[5:], uint32(m))
	return k
}

// Positions are all that a wallet holds or ever held, by market and outcome. What it holds no more
// has Size 0. The error is ErrClosed, or names a row that cannot be read.
func (h *History) Positions(wallet engine.WalletNo) (rows []PositionRow, err error) {
	err = h.EachPosition(wallet, func(both *[2]PositionRow) {
		for o := range both {
			if both[o].Bought != 0 {
				rows = append(rows, both[o])
			}
		}
	})
	if err != nil {
		return nil, err
	}
	return rows, nil
}

// EachPosition calls visit with what a wallet has, or ever had, of both tokens of each market, by
// market: zeros for a token that it never had. The rows hold until visit returns. The error is as
// for Positions.
func (h *History) EachPosition(wallet engine.WalletNo, visit func(both *[2]PositionRow)) error {
	if !h.gate.Enter() {
		return journal.ErrClosed
	}
	defer h.gate.Leave()
	from, to := positionKey(wallet, 0), positionKey(wallet, 1<<32-1)
	var p position
	err := h.each(from[:], append(to[:], 0), func(key, value []byte) (bool, error) {
		if len(key) != positionKeyLen {
			return false, errRow
		}
		err := p.decode(wallet, engine.MarketNo(binary.BigEndian.Uint32(key[5:])), value)
		if err == nil {
			visit(&p.tokens)
		}
		return true, err
	})
	if err != nil {
		return fmt.Errorf("read positions of wallet %d: %w", wallet, err)
	}
	return nil
}

// Position is what a wallet has of both tokens of a market; zeros where it never had any. The error
// is as for Positions.
func (h *History) Position(wallet engine.WalletNo, market engine.MarketNo) (
	rows [2]PositionRow, err error) {
	if !h.gate.Enter() {
		return rows, journal.ErrClosed
	}
	defer h.gate.Leave()
	var p position
	if err := h.position(wallet, market, &p); err != nil {
		return rows, err
	}
	return p.tokens, nil
}

// position reads a position into p, zeros if there is none. The caller is inside the door.
func (h *History) position(w engine.WalletNo, m engine.MarketNo, p *position) error {
	*p = position{wallet: w, market: m}
	p.name()
	key := positionKey(w, m)
	b, found, err := disk.Get(h.db, key[:], nil)
	if err == nil && found {
		err = p.decode(w, m, b)
	}
	if err != nil {
		return fmt.Errorf("read position of wallet %d in market %d: %w", w, m, err)
	}
	return nil
}

// Tokens are what a wallet has of one token, and what of that backs its orders. The error is as for
// Positions.
func (h *History) Tokens(wallet engine.WalletNo, market engine.MarketNo, o engine.Outcome) (
	total, reserved engine.Size, err error) {
	rows, err := h.Position(wallet, market)
	r := &rows[o&1]
	return r.Size, r.Reserved, err
}

// each calls visit with the keys in [from, to) and their values, in order, until it says that it
// wants no more, or fails. The caller is inside the door.
func (h *History) each(from, to []byte, visit func(key, value []byte) (bool, error)) error {
	it, err := h.db.NewIter(&pebble.IterOptions{LowerBound: from, UpperBound: to})
	if err != nil {
		return err
	}
	for ok := it.First(); ok; ok = it.Next() {
		value, err := it.ValueAndErr()
		more := false
		if err == nil {
			more, err = visit(it.Key(), value)
		}
		if err != nil {
			return errors.Join(err, it.Close())
		}
		if !more {
			break
		}
	}
	return it.Close()
}
