package history

import (
	"fmt"
	"sync/atomic"

	"clobd/engine"
	"clobd/journal"
	"clobd/journal/disk"

	"github.com/cockroachdb/pebble/v2"
)

// History answers questions about the past from the index. Any goroutine may use it. A reader waits
// for the folding goroutine only in Await, and for the short locks of what is in memory.
type History struct {
	db      *pebble.DB
	journal uint64
	filter  *filter
	resting *resting
	recent  *recent
	leaders *leaders
	gate    disk.Gate
	walked  atomic.Bool // a reader has walked the holders in the database since the last flush
	progress
}

// close wakes all waiting callers for the last time, and waits until no reader is left.
func (h *History) close() {
	h.end(nil)
	h.filter.complete.Store(false) // so that readers come to the gate and get ErrClosed
	h.gate.Shut()
}

// view calls read while the database is open. It returns journal.ErrClosed if it is not open, and
// else the error of read behind what it is about: what, and the number no unless it is 0.
func (h *History) view(read func() error, what string, no uint32) error {
	if !h.gate.Enter() {
		return journal.ErrClosed
	}
	defer h.gate.Leave()
	err := read()
	switch {
	case err == nil:
		return nil
	case no == 0:
		return fmt.Errorf("%s: %w", what, err)
	}
	return fmt.Errorf("%s %d: %w", what, no, err)
}

// Past finds the Receipt of a Place, with status, amounts and remainder of today. If known is
// false, no Sequence up to seen placed the order, or refused it for good. The error is
// journal.ErrClosed, or names what cannot be read.
func (h *History) Past(id engine.OrderID) (
	r engine.Receipt, known bool, seen engine.Sequence, err error) {
	seen = h.Sequence()
	if !h.filter.may(&id) {
		return r, false, seen, nil
	}
	if !h.gate.Enter() {
		return r, false, seen, journal.ErrClosed
	}
	defer h.gate.Leave()
	var o row
	known, err = o.load(h.db, &id)
	if known {
		r = o.receipt()
	}
	return r, known, seen, err
}

// Order finds the order id; false if there is none. The error is as for Past.
func (h *History) Order(id engine.OrderID) (OrderRow, bool, error) {
	if !h.filter.may(&id) {
		return OrderRow{}, false, nil
	}
	if !h.gate.Enter() {
		return OrderRow{}, false, journal.ErrClosed
	}
	defer h.gate.Leave()
	var o row
	known, err := o.load(h.db, &id)
	if err != nil || !known {
		return OrderRow{}, false, err
	}
	if err := h.trades(&o); err != nil {
		return OrderRow{}, false, fmt.Errorf("read trades of order %x: %w", id, err)
	}
	return o.OrderRow, true, nil
}

func (r *row) load(db *pebble.DB, id *engine.OrderID) (bool, error) {
	key := orderKey(id)
	found, err := read(db, key[:], func(b []byte) error { return r.decode(id, b) })
	if err != nil {
		return false, fmt.Errorf("read order %x: %w", *id, err)
	}
	return found, nil
}

// trades fills in the ids of the trades of o. A batch writes a row with the chunks that it counts,
// and chunks never change, so that every chunk of a row is there.
func (h *History) trades(o *row) error {
	n := int(o.own) + int(o.chunks)*chunkTrades + len(o.made)
	if n == 0 {
		return nil
	}
	o.Trades = make([][16]byte, 0, n)
	for i := range o.own {
		o.Trades = append(o.Trades, engine.TradeID(h.journal, o.Sequence, i))
	}
	var refs []tradeRef
	for i := range o.chunks {
		key := chunkKey(&o.ID, i)
		good := false
		_, err := read(h.db, key[:], func(b []byte) error {
			c := varints{rest: b}
			refs = c.trades(refs[:0])
			good = !c.bad && len(refs) == chunkTrades
			return nil
		})
		if err != nil {
			return err
		}
		if !good {
			return fmt.Errorf("chunk %d: %w", i, errRow)
		}
		for _, t := range refs {
			o.Trades = append(o.Trades, engine.TradeID(h.journal, t.seq, t.index))
		}
	}
	for _, t := range o.made {
		o.Trades = append(o.Trades, engine.TradeID(h.journal, t.seq, t.index))
	}
	return nil
}
