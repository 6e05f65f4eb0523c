package history

import (
	"encoding/binary"
	"fmt"
	"slices"

	"clobd/engine"

	"github.com/cockroachdb/pebble/v2"
)

// MakerFill is the part of a resting order in a trade, in that order's own terms.
type MakerFill struct {
	Order   engine.OrderID
	Wallet  engine.WalletNo
	Owner   engine.WalletNo
	Key     uint32 // nonce of the API key that sent it
	Side    engine.Side
	Outcome engine.Outcome
	Price   engine.Price // of its own token
	Size    engine.Size  // in base units
	Builder BuilderNo    // who brought the order; 0: nobody
}

// TradeRow is a trade: all that one taker got at one price. Fields outside Makers are the taker's.
type TradeRow struct {
	ID       [16]byte
	Sequence engine.Sequence // of the Place of the taker
	Index    uint32          // among the trades of that Place, from 0
	Taker    engine.OrderID
	Market   engine.MarketNo
	Outcome  engine.Outcome
	Side     engine.Side
	Price    engine.Price
	Size     engine.Size // in base units, the sum of the makers' sizes
	Fee      engine.Cash // paid by the taker, in base units of collateral
	FeeRate  uint16      // of the market at the time, in basis points: engine.Fee
	Wallet   engine.WalletNo
	Owner    engine.WalletNo
	Key      uint32    // nonce of the API key that sent the taker
	Builder  BuilderNo // who brought the taker; 0: nobody
	Time     engine.Time
	AsMaker  bool // the owner whose list was asked for is a maker and not the taker
	Makers   []MakerFill
}

// number sorts trades by the taker's Sequence and then by index. Pages begin at such numbers.
func (t tradeRef) number() uint64 { return uint64(t.seq)<<tradeIndexBits | uint64(t.index) }

func refOf(number uint64) tradeRef {
	const mask = 1<<tradeIndexBits - 1
	return tradeRef{engine.Sequence(number >> tradeIndexBits), uint32(number & mask)}
}

const (
	tradeIndexBits = 14        // of the index in a number, as in the id of a trade
	lastNumber     = 1<<62 - 1 // above the number of every trade
	// dealChunk is the size in bytes at which a chunk of whole trades is written.
	dealChunk = 4 << 10
)

// deals gathers the trades of one batch: chunks of records, and the entries of lists.
type deals struct {
	chunk []byte          // records not yet in the batch
	first engine.Sequence // the Sequences in chunk are distances from this one
	key   uint64          // number of the first record in chunk
	body  []byte          // scratch
	entry []listEntry     // of this batch, oldest first

	// The trade under way.
	index  uint32
	count  int // of makers
	price  engine.Price
	fee    engine.Cash
	rate   uint16 // of fees, in basis points
	makers []byte

	builder BuilderNo // of the arriving order
}

// Bits of the first byte of a stored trade, beside outcome and side, and of a maker.
const (
	dealOwn    = 1 << 2 // the taker's wallet is the owner's
	dealBuilt  = 1 << 3 // a builder brought the taker: the number follows the key
	makerOne   = 1 << 0 // the maker's token is the taker's
	makerOwn   = 1 << 1 // the maker's wallet is the owner's
	makerBuilt = 1 << 2 // a builder brought the maker: the number follows the key
)

func (d *deals) add(o *row, e *engine.Event, same bool) {
	bits := byte(0)
	if same {
		bits |= makerOne
	}
	if o.Wallet == o.Owner {
		bits |= makerOwn
	}
	if o.Builder != 0 {
		bits |= makerBuilt
	}
	b := append(append(d.makers, bits), o.ID[:]...)
	b = appendParty(b, o.Wallet, o.Owner, o.Key)
	b = appendBuilder(b, o.Builder)
	d.makers = binary.AppendUvarint(b, uint64(e.Size))
	d.fee += e.Fee
	d.count++
}

func appendParty(b []byte, wallet, owner engine.WalletNo, key uint32) []byte {
	b = binary.AppendUvarint(b, uint64(wallet))
	if owner != wallet {
		b = binary.AppendUvarint(b, uint64(owner))
	}
	return binary.AppendUvarint(b, uint64(key))
}

func appendBuilder(b []byte, no BuilderNo) []byte {
	if no == 0 {
		return b
	}
	return binary.AppendUvarint(b, uint64(no))
}

func (d *deals) finish(c *engine.Command, s stamp) {
	if d.count == 0 {
		return
	}
	if len(d.chunk) == 0 {
		d.first, d.key = s.seq, tradeRef{s.seq, d.index}.number()
	}
	bits := byte(c.Outcome) | byte(c.Side)<<1
	if c.Owner == c.Wallet {
		bits |= dealOwn
	}
	if d.builder != 0 {
		bits |= dealBuilt
	}
	b := appendUvarints(d.body[:0], uint64(s.seq-d.first), uint64(d.index))
	b = append(append(b, bits), c.ID[:]...)
	b = appendBuilder(appendParty(b, c.Wallet, c.Owner, c.Key), d.builder)
	b = appendUvarints(b, uint64(c.Market), uint64(d.price), uint64(d.fee), uint64(d.rate))
	b = binary.AppendVarint(b, int64(s.now))
	d.body = binary.AppendUvarint(b, uint64(d.count))
	d.chunk = binary.AppendUvarint(d.chunk, uint64(len(d.body)+len(d.makers)))
	d.chunk = append(append(d.chunk, d.body...), d.makers...)
	d.count, d.fee, d.makers = 0, 0, d.makers[:0]
	d.index++
}

// flush writes the chunk into the batch if it has least bytes or more, and begins another.
func (d *deals) flush(b *pebble.Batch, least int) error {
	if len(d.chunk) < least || len(d.chunk) == 0 {
		return nil
	}
	key := numberKey(spaceDeals, d.key)
	if err := b.Set(key[:], d.chunk, nil); err != nil {
		return fmt.Errorf("write trades from Sequence %d: %w", d.first, err)
	}
	d.chunk = d.chunk[:0]
	return nil
}

// eachRecord calls visit with the trades of a chunk, oldest first, until false or an error.
func eachRecord(key, chunk []byte, visit func(tradeRef, varints) (bool, error)) (
	more bool, err error) {
	no, known := numberOf(key)
	c := varints{rest: chunk}
	for more = true; more && err == nil && len(c.rest) > 0; {
		at, record, ok := c.record(refOf(no).seq)
		if !ok || !known || record.bad {
			return false, errRow
		}
		more, err = visit(at, record)
	}
	return more, err
}

// decode reads the record c of the trade at, except the ID.
func (t *TradeRow) decode(at tradeRef, c varints) bool {
	*t = TradeRow{Sequence: at.seq, Index: at.index, Makers: t.Makers}
	bits := c.byte()
	t.Outcome, t.Side = engine.Outcome(bits&1), engine.Side(bits>>1&1)
	c.copy(t.Taker[:])
	t.Wallet, t.Owner, t.Key = c.party(bits&dealOwn != 0)
	if bits&dealBuilt != 0 {
		t.Builder = BuilderNo(c.uvarint())
	}
	t.Market = engine.MarketNo(c.uvarint())
	t.Price = engine.Price(c.uvarint())
	t.Fee = engine.Cash(c.uvarint())
	t.FeeRate = uint16(c.uvarint())
	t.Time = engine.Time(c.varint())
	n := c.uvarint()
	if n > uint64(len(c.rest)) {
		return false
	}
	t.Makers = slices.Grow(t.Makers[:0], int(n))
	for range n {
		t.Makers = append(t.Makers, t.maker(&c))
		t.Size += t.Makers[len(t.Makers)-1].Size
	}
	return c.end() == nil
}

func (t *TradeRow) maker(c *varints) MakerFill {
	m := MakerFill{Side: t.Side.Other(), Outcome: t.Outcome, Price: t.Price}
	bits := c.byte()
	if bits&makerOne == 0 { // a pair was minted or merged: both orders are on one side
		m.Side, m.Outcome, m.Price = t.Side, t.Outcome.Other(), engine.PriceOne-t.Price
	}
	c.copy(m.Order[:])
	m.Wallet, m.Owner, m.Key = c.party(bits&makerOwn != 0)
	if bits&makerBuilt != 0 {
		m.Builder = BuilderNo(c.uvarint())
	}
	m.Size = engine.Size(c.uvarint())
	return m
}

// dealReader finds trades by number. For falling numbers it reads each chunk once.
type dealReader struct {
	it    *pebble.Iterator
	first tradeRef // of the chunk at the iterator
}

func newDealReader(db *pebble.DB) (*dealReader, error) {
	it, err := iterate(db, spaceDeals)
	return &dealReader{it: it}, err
}

// read reads the trade of a number into t, except the ID; false if there is none.
func (d *dealReader) read(number uint64, t *TradeRow) (bool, error) {
	if !d.it.Valid() || number < d.first.number() {
		key := numberKey(spaceDeals, number+1)
		if !d.it.SeekLT(key[:]) {
			return false, d.it.Error()
		}
		no, _ := numberOf(d.it.Key())
		d.first = refOf(no)
	}
	b, err := d.it.ValueAndErr()
	if err != nil {
		return false, err
	}
	want := refOf(number)
	for c := (varints{rest: b}); len(c.rest) > 0; {
		at, record, ok := c.record(d.first.seq)
		if ok && at != want {
			continue
		}
		if !ok || !t.decode(at, record) {
			return false, errRow
		}
		return true, nil
	}
	return false, nil
}

func (d *dealReader) must(journal, number uint64, t *TradeRow) error {
	at := refOf(number)
	known, err := d.read(number, t)
	if err == nil && !known {
		err = fmt.Errorf("trade %d of Sequence %d: %w", at.index, at.seq, errRow)
	}
	t.ID = engine.TradeID(journal, at.seq, at.index)
	return err
}
