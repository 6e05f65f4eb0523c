package history

import (
	"encoding/binary"
	"errors"

	"clobd/engine"
)

// OrderRow describes an order, live or not. A refused Place has no row, unless the refusal is final
// (engine.Rejects): then Reject and Args are set and Status is Canceled.
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
	Builder  BuilderNo    // who brought the order; 0: nobody
	Price    engine.Price // limit, in the order's own token
	Size     engine.Size  // as ordered, in base units, a multiple of engine.Lot
	// Matched is the size filled so far. It exceeds Size if a budget bought more than the order
	// asked.
	Matched engine.Size
	// Making and Taking are what the order gave and got so far, in base units of its own assets.
	// Fee is what it paid on top as the taker, in collateral.
	Making, Taking int64
	Fee            engine.Cash

	Status engine.Status
	// Reason is why the order, or its remainder, was cancelled: a Matched FAK may have one. 0:
	// neither was. ByOwnerAll and ByOwnerMarket are told apart.
	Reason   engine.Reason
	Reject   engine.Reject
	Args     [3]int64
	Sequence engine.Sequence // of the Place
	Time     engine.Time     // of the Place
	Updated  engine.Time     // of the last change
	Expiry   engine.Time     // 0: none
	Trades   [][16]byte      // ids of the order's trades, oldest first: as the taker, then as a maker
}

// tradeRef names a trade: the taker's Sequence, and the trade's index among those of the taker.
type tradeRef struct {
	seq   engine.Sequence
	index uint32
}

// chunkTrades is how many trades of a maker move from its row to a key of their own at once.
// Without that, an order with a million fills would rewrite a million trades with each.
const chunkTrades = 64

type row struct {
	OrderRow            // Trades is empty
	own      uint32     // number of trades as the taker, with indexes 0 to own-1
	chunks   uint32     // number of full chunks of trades as a maker
	made     []tradeRef // trades as a maker after the chunks
	dirty    bool
	listed   bool // it is among the resting orders of its owner
}

const rowVersion = 3

// The second byte of a stored row holds outcome, side, type, status and these bits. With
// rowBuilder, a builder's number follows the integers.
const (
	rowPostOnly = 1 << 6
	rowBuilder  = 1 << 7
)

var errRow = errors.New("malformed row")

func (r *row) append(b []byte) []byte {
	bits := byte(r.Outcome) | byte(r.Side)<<1 | byte(r.Type)<<2 | byte(r.Status)<<4
	if r.PostOnly {
		bits |= rowPostOnly
	}
	if r.Builder != 0 {
		bits |= rowBuilder
	}
	b = appendUvarints(append(b, rowVersion, bits, byte(r.Reason)),
		uint64(r.Market), uint64(r.Wallet), uint64(r.Owner), uint64(r.Key), uint64(r.Price),
		uint64(r.Size), uint64(r.Matched), uint64(r.Making), uint64(r.Taking), uint64(r.Fee),
		uint64(r.Sequence))
	b = appendBuilder(b, r.Builder)
	b = binary.AppendVarint(b, int64(r.Time))
	b = binary.AppendVarint(b, int64(r.Updated-r.Time))
	b = binary.AppendVarint(b, int64(r.Expiry))
	b = binary.AppendUvarint(b, uint64(r.Reject))
	if r.Reject != engine.Accepted {
		for _, v := range r.Args {
			b = binary.AppendVarint(b, v)
		}
	}
	return appendTrades(appendUvarints(b, uint64(r.own), uint64(r.chunks)), r.made)
}

// appendTrades appends the number of trades, and for each its distance in Sequence and its index.
func appendTrades(b []byte, trades []tradeRef) []byte {
	b = binary.AppendUvarint(b, uint64(len(trades)))
	last := engine.Sequence(0)
	for _, t := range trades {
		b = appendUvarints(b, uint64(t.seq-last), uint64(t.index))
		last = t.seq
	}
	return b
}

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
	return c.end()
}

// receipt is the answer if the same Place comes again: the first Receipt with today's status,
// amounts and remainder. Trades counts only those of the order's arrival.
func (r *row) receipt() engine.Receipt {
	out := engine.Receipt{
		Sequence: r.Sequence, Time: r.Time, Order: r.ID, Reject: r.Reject, Args: r.Args,
		Market: r.Market, Wallet: r.Wallet,
		Making: r.Making, Taking: r.Taking, Fee: r.Fee, Trades: r.own,
	}
	if r.Reject == engine.Accepted {
		out.Status, out.Remaining, out.Reason = r.Status, max(r.Size-r.Matched, 0), r.Reason
	}
	return out
}
