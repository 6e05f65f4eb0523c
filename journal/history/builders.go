package history

import (
	"encoding/binary"
	"fmt"

	"clobd/engine"
	"clobd/journal"

	"github.com/cockroachdb/pebble/v2"
)

// BuilderCode names the program that brought an order. It is part of the signed order. All zero
// means nobody.
type BuilderCode [32]byte

// BuilderNo numbers the codes in the order in which they first came, from 1; 0 is nobody. Rows and
// lists of trades hold this number of 4 bytes instead of the code of 32.
type BuilderNo uint32

// builderLists is added to a builder's number to make the owner of a list. No wallet has such a
// number.
const builderLists = 1 << 31

// list returns the owner of the builder's lists.
func (b BuilderNo) list() engine.WalletNo { return engine.WalletNo(b | builderLists) }

// builders gives codes their numbers. It belongs to the goroutine of Index.Run.
type builders struct {
	db *pebble.DB
	// of finds the code in the evidence of an order; nil if no order has one.
	of    func(proof []byte) BuilderCode
	known map[BuilderCode]BuilderNo
	last  BuilderNo
}

// keepCodes bounds the codes that are kept in memory between batches.
const keepCodes = 4096

// number returns the number of the code in the evidence of an order. A new code gets the next
// number, which number writes into the batch.
func (d *builders) number(batch *pebble.Batch, proof []byte) (BuilderNo, error) {
	if d.of == nil {
		return 0, nil
	}
	code := d.of(proof)
	if code == (BuilderCode{}) {
		return 0, nil
	}
	if no, known := d.known[code]; known {
		return no, nil
	}
	no, err := builderNumber(d.db, &code)
	if err != nil {
		return 0, err
	}
	if no == 0 {
		d.last++
		no = d.last
		key := builderKey(&code)
		if err := batch.Set(key[:], binary.AppendUvarint(nil, uint64(no)), nil); err != nil {
			return 0, fmt.Errorf("write builder %x: %w", code, err)
		}
	}
	d.known[code] = no
	return no, nil
}

func builderNumber(db *pebble.DB, code *BuilderCode) (BuilderNo, error) {
	key := builderKey(code)
	var no BuilderNo
	_, err := read(db, key[:], func(b []byte) error {
		c := varints{rest: b}
		if no = BuilderNo(c.uvarint()); no == 0 || no >= builderLists {
			return errRow
		}
		return c.end()
	})
	if err != nil {
		return 0, fmt.Errorf("read builder %x: %w", *code, err)
	}
	return no, nil
}

// Builder returns the number of a code; 0 if no order in the index carries it. The error is as for
// Past.
func (h *History) Builder(code BuilderCode) (BuilderNo, error) {
	if !h.gate.Enter() {
		return 0, journal.ErrClosed
	}
	defer h.gate.Leave()
	return builderNumber(h.db, &code)
}

// BuilderTrades lists the trades with orders that builder b brought, newest first: those where
// TradeRow.Builder or a MakerFill.Builder is b. With Filter.OneToken it lists those in which one of
// these orders moved the token. next and the error are as for Trades.
func (h *History) BuilderTrades(b BuilderNo, f *Filter, p Page) (
	rows []TradeRow, next uint64, err error) {
	if b == 0 {
		return nil, 0, nil
	}
	return h.tradesOf(b.list(), f, p)
}
