package history

import (
	"encoding/binary"
	"fmt"

	"clobd/engine"
	"clobd/journal"
	"clobd/journal/disk"

	"github.com/cockroachdb/pebble/v2"
)

// BuilderCode names who brought an order: the maker of a program, paid by volume, say. It is part
// of what was signed. All zero: nobody.
type BuilderCode [32]byte

// BuilderNo numbers the codes in the order in which orders brought them, from 1: rows and lists of
// trades hold four bytes, not 32. 0 is nobody.
type BuilderNo uint32

// builderLists is in the owner's place of lists of builders' trades, beside the number: there are
// never as many wallets.
const builderLists = 1 << 31

// list is the owner's place of this builder's lists.
func (b BuilderNo) list() engine.WalletNo { return engine.WalletNo(b | builderLists) }

// builders gives codes their numbers. It belongs to the goroutine of Index.Run.
type builders struct {
	db *pebble.DB
	// of finds the code in the evidence of an order; nil: there is none in any.
	of    func(proof []byte) BuilderCode
	known map[BuilderCode]BuilderNo
	fresh []BuilderCode // numbered in this batch
	last  BuilderNo
}

// keepCodes bounds the codes that are kept in memory between batches.
const keepCodes = 4096

// number is that of the code in the evidence of an order, a new one if nobody brought it before.
func (d *builders) number(proof []byte) (BuilderNo, error) {
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
		d.fresh = append(d.fresh, code)
	}
	d.known[code] = no
	return no, nil
}

// write adds the new numbers to a batch.
func (d *builders) write(b *pebble.Batch) error {
	for i := range d.fresh {
		key := builderKey(&d.fresh[i])
		value := binary.AppendUvarint(nil, uint64(d.known[d.fresh[i]]))
		if err := b.Set(key[:], value, nil); err != nil {
			return fmt.Errorf("write builder %x: %w", d.fresh[i], err)
		}
	}
	return nil
}

// sweep is for when the batch is in the database.
func (d *builders) sweep() {
	d.fresh = d.fresh[:0]
	if len(d.known) > keepCodes {
		clear(d.known)
	}
}

// builderNumber reads the number of a code, 0 if it has none.
func builderNumber(db *pebble.DB, code *BuilderCode) (BuilderNo, error) {
	key := builderKey(code)
	b, found, err := disk.Get(db, key[:], nil)
	if err != nil || !found {
		return 0, err
	}
	c := varints{rest: b}
	no := BuilderNo(c.uvarint())
	if c.bad || len(c.rest) > 0 || no == 0 || no >= builderLists {
		return 0, fmt.Errorf("read builder %x: %w", *code, errRow)
	}
	return no, nil
}

// Builder is the number of a code; 0 if no order that the index has seen carried it. The error is
// as for Past.
func (h *History) Builder(code BuilderCode) (BuilderNo, error) {
	if !h.gate.Enter() {
		return 0, journal.ErrClosed
	}
	defer h.gate.Leave()
	return builderNumber(h.db, &code)
}

// BuilderTrades lists the trades in which orders of a builder took part, newest first: those of
// which TradeRow.Builder or a MakerFill.Builder is b. Filter.OneToken wants those in which one of
// these orders moved the token. next and the error are as for Trades.
func (h *History) BuilderTrades(b BuilderNo, f *Filter, p Page) (
	rows []TradeRow, next uint64, err error) {
	if b == 0 {
		return nil, 0, nil
	}
	return h.tradesOf(b.list(), f, p)
}
