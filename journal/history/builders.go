package history

import (
	"encoding/binary"
	"errors"
	"fmt"

	"clobd/engine"
	"clobd/journal"

	"github.com/cockroachdb/pebble/v2"
)

// BuilderCode names the program that brought an order, as signed in the order. Zero: nobody.
type BuilderCode [32]byte

// BuilderNo numbers the codes in the order in which they first came, from 1; 0 is nobody.
type BuilderNo uint32

// builderLists plus a builder's number is the owner of a list. No wallet has such a number.
const builderLists = 1 << 31

func (b BuilderNo) list() engine.WalletNo { return engine.WalletNo(b | builderLists) }

// keepCodes bounds the codes that are kept in memory between batches.
const keepCodes = 4096

func (d *fold) builder(proof []byte) (BuilderNo, error) {
	if d.builderOf == nil {
		return 0, nil
	}
	code := d.builderOf(proof)
	if code == (BuilderCode{}) {
		return 0, nil
	}
	if no, known := d.builders[code]; known {
		return no, nil
	}
	no, err := builderNumber(d.db, &code)
	if err != nil {
		return 0, err
	}
	if no == 0 {
		d.at.builders++
		no = d.at.builders
		key := builderKey(&code)
		if err := d.batch.Set(key[:], binary.AppendUvarint(nil, uint64(no)), nil); err != nil {
			return 0, fmt.Errorf("write builder %x: %w", code, err)
		}
	}
	d.builders[code] = no
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
	if errors.Is(err, errRow) {
		err = fmt.Errorf("read builder %x: %w", *code, err)
	}
	if err != nil {
		return 0, err
	}
	return no, nil
}

// Builder returns the number of a code; 0 if no order carries it. The error is as for Past.
func (h *History) Builder(code BuilderCode) (BuilderNo, error) {
	if !h.gate.Enter() {
		return 0, journal.ErrClosed
	}
	defer h.gate.Leave()
	return builderNumber(h.db, &code)
}

// BuilderTrades lists the trades with orders that builder b brought, newest first. Filter.OneToken
// selects those in which one of these orders moved the token. next and the error are as for Trades.
func (h *History) BuilderTrades(b BuilderNo, f *Filter, p Page) (
	rows []TradeRow, next uint64, err error) {
	if b == 0 {
		return nil, 0, nil
	}
	return h.tradesOf(b.list(), f, p)
}
