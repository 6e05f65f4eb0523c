package history

import (
	"encoding/binary"
	"errors"

	"clobd/engine"
)

// OrderRow is what is known of an order, live or not. A Place that was refused leaves no row,
// unless the refusal is final (engine.Rejects): then Reject and Args are set and Status is
// Canceled.
type OrderRow struct {
	ID       engine.OrderID
	Market   engine.MarketNo
	Outcome  engine.Outcome
	Side     engine.Side
	Type     engine.OrderType
	PostOnly bool
	Wallet   engine.WalletNo
	Owner    engine.WalletNo
	Key      uint32       // nonce of the API key that sent it
	Builder  BuilderNo    // who brought it; 0: nobody
	Price    engine.Price // its limit, in its own token
	Size     engine.Size  // what it asked for, in base units, a multiple of engine.Lot
	// Matched is what was filled so far: more than Size if a budget bought more than it had to.
	Matched engine.Size
	// Making and Taking are what it gave and got so far, in base units of its own assets, and Fee is
	// what it paid on top as the taker, in collateral.
	Making, Taking int64
	Fee            engine.Cash

	Status engine.Status
	// Reason is why it was cancelled, or what remained of it: a Matched FAK has one, too. 0: it was
	// not.
	Reason   engine.Reason
	Reject   engine.Reject
	Args     [3]int64
	Sequence engine.Sequence // that placed it
	Time     engine.Time     // of that
	Updated  engine.Time     // of its last change
	Expiry   engine.Time     // 0: none
	// Trades are the ids of the trades it took part in, in order: first as the taker, then as a maker.
	Trades [][16]byte
}

// tradeRef is a trade in short: the taker's Sequence and the trade's index.
type tradeRef struct {
	seq   engine.Sequence
	index uint32
}

// chunkTrades is how many trades of a maker are split off its row at once, so that an order filled
// a million times does not rewrite a million trades with each.
const chunkTrades = 64

// row is an OrderRow as it is stored: trades are references.
type row struct {
	OrderRow            // Trades stay empty
	own      uint32     // trades as the taker: indexes 0 to own-1 of its own Sequence
	chunks   uint32     // full chunks of trades as a maker, each under a key of its own
	made     []tradeRef // those after the chunks
	dirty    bool
	listed   bool // it is among the resting orders of its owner
}

// rowVersion is the first byte of every stored row.
const rowVersion = 3

// The second byte of a stored row: outcome, side, type and status, and these. With rowBuilder a
// builder's number follows the integers.
const (
	rowPostOnly = 1 << 6
	rowBuilder  = 1 << 7
)

var errRow = errors.New("malformed row")

// append appends the stored form: fixed order, integers as varints, without the ID (the key).
func (r *row) append(b []byte) []byte {
	bits := byte(r.Outcome) | byte(r.Side)<<1 | byte(r.Type)<<2 | byte(r.Status)<<4
	if r.PostOnly {
		bits |= rowPostOnly
	}
	if r.Builder != 0 {
		bits |= rowBuilder
	}
	b = append(b, rowVersion, bits, byte(r.Reason))
	for _, v := range [...]uint64{
		uint64(r.Market), uint64(r.Wallet), uint64(r.Owner), uint64(r.Key), uint64(r.Price),
		uint64(r.Size), uint64(r.Matched), uint64(r.Making), uint64(r.Taking), uint64(r.Fee),
		uint64(r.Sequence),
	} {
		b = binary.AppendUvarint(b, v)
	}
	if r.Builder != 0 {
		b = binary.AppendUvarint(b, uint64(r.Builder))
	}
	b = binary.AppendVarint(b, int64(r.Time))
	b = binary.AppendVarint(b, int64(r.Updated-r.Time))
	b = binary.AppendVarint(b, int64(r.Expiry))
	b = binary.AppendUvarint(b, uint64(r.Reject))
	if r.Reject != engine.Accepted {
		for _, v := range r.Args {
			b = binary.AppendVarint(b, v)
		}
	}
	b = binary.AppendUvarint(b, uint64(r.own))
	b = binary.AppendUvarint(b, uint64(r.chunks))
	return appendTrades(b, r.made)
}

// appendTrades appends a list of trades: their number, then each Sequence as the distance from the
// one before it, and each index.
func appendTrades(b []byte, trades []tradeRef) []byte {
	b = binary.AppendUvarint(b, uint64(len(trades)))
	last := engine.Sequence(0)
	for _, t := range trades {
		b = binary.AppendUvarint(b, uint64(t.seq-last))
		b = binary.AppendUvarint(b, uint64(t.index))
		last = t.seq
	}
	return b
}

// varints reads varints; bad stays set after the first that is none.
type varints struct {
	rest []byte
	bad  bool
}

func (c *varints) uvarint() uint64 {
	v, n := binary.Uvarint(c.rest)
	if n <= 0 {
		c.bad, c.rest = true, nil
		return 0
	}
	c.rest = c.rest[n:]
	return v
}

func (c *varints) varint() int64 {
	v, n := binary.Varint(c.rest)
	if n <= 0 {
		c.bad, c.rest = true, nil
		return 0
	}
	c.rest = c.rest[n:]
	return v
}

// trades appends a list of trades to dst.
func (c *varints) trades(dst []tradeRef) []tradeRef {
	n := c.uvarint()
	if n > uint64(len(c.rest)) { // each has at least two bytes
		c.bad = true
		return dst
	}
	last := engine.Sequence(0)
	for range n {
		last += engine.Sequence(c.uvarint())
		dst = append(dst, tradeRef{last, uint32(c.uvarint())})
	}
	return dst
}

// decode reads the stored form b of the order id into r, reusing its slice.
func (r *row) decode(id *engine.OrderID, b []byte) error {
	if len(b) < 3 || b[0] != rowVersion {
		return errRow
	}
	made := r.made[:0]
	*r = row{}
	r.ID, r.Reason = *id, engine.Reason(b[2])
	r.Outcome, r.Side = engine.Outcome(b[1]&1), engine.Side(b[1]>>1&1)
	r.Type, r.Status = engine.OrderType(b[1]>>2&3), engine.Status(b[1]>>4&3)
	r.PostOnly, r.listed = b[1]&rowPostOnly != 0, r.Status == engine.Live
	c := varints{rest: b[3:]}
	r.Market = engine.MarketNo(c.uvarint())
	r.Wallet = engine.WalletNo(c.uvarint())
	r.Owner = engine.WalletNo(c.uvarint())
	r.Key = uint32(c.uvarint())
	r.Price = engine.Price(c.uvarint())
	r.Size = engine.Size(c.uvarint())
	r.Matched = engine.Size(c.uvarint())
	r.Making = int64(c.uvarint())
	r.Taking = int64(c.uvarint())
	r.Fee = engine.Cash(c.uvarint())
	r.Sequence = engine.Sequence(c.uvarint())
	if b[1]&rowBuilder != 0 {
		r.Builder = BuilderNo(c.uvarint())
	}
	r.Time = engine.Time(c.varint())
	r.Updated = r.Time + engine.Time(c.varint())
	r.Expiry = engine.Time(c.varint())
	r.Reject = engine.Reject(c.uvarint())
	if r.Reject != engine.Accepted {
		for i := range r.Args {
			r.Args[i] = c.varint()
		}
	}
	r.own, r.chunks = uint32(c.uvarint()), uint32(c.uvarint())
	r.made = c.trades(made)
	if c.bad || len(c.rest) > 0 {
		return errRow
	}
	return nil
}

// receipt is the answer to the Place of this order if it came again: the first one, with status,
// amounts and remainder as they are now. Trades counts those of its arrival.
func (r *row) receipt() engine.Receipt {
	out := engine.Receipt{
		Sequence: r.Sequence, Time: r.Time, Order: r.ID, Reject: r.Reject, Args: r.Args,
		Market: r.Market, Wallet: r.Wallet,
		Making: r.Making, Taking: r.Taking, Fee: r.Fee, Trades: r.own,
	}
	if r.Reject == engine.Accepted {
		out.Status, out.Remaining = r.Status, max(r.Size-r.Matched, 0)
	}
	return out
}
