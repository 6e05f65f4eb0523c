package history

import (
	"encoding/binary"
	"fmt"

	"clobd/engine"
	"clobd/journal/disk"

	"github.com/cockroachdb/pebble/v2"
)

// MoveRow is a change of tokens without a trade: a split, a merge or a redemption.
type MoveRow struct {
	Sequence engine.Sequence
	Time     engine.Time
	Kind     engine.EventKind // engine.Split, engine.Merged or engine.Redeemed
	Wallet   engine.WalletNo
	Market   engine.MarketNo
	// Tokens came or went, one size for each outcome; Cash went or came for them. In base units.
	Tokens [2]engine.Size
	Cash   engine.Cash
}

func (d *fold) move(e *engine.Event, s stamp) error {
	r := MoveRow{Sequence: s.seq, Time: s.now, Kind: e.Kind, Wallet: e.Wallet, Market: e.Market,
		Tokens: [2]engine.Size{e.Size, e.Size}, Cash: engine.Cash(e.Size)}
	if e.Kind == engine.Redeemed {
		r.Tokens = [2]engine.Size{engine.Size(e.Args[0]), engine.Size(e.Args[1])}
	}
	key := moveKey(e.Wallet, s.seq)
	d.value = r.append(d.value[:0])
	if err := d.batch.Set(key[:], d.value, nil); err != nil {
		return fmt.Errorf("write what wallet %d moved: %w", e.Wallet, err)
	}
	if e.Order == (engine.OrderID{}) {
		return nil
	}
	id := requestKey(&e.Order)
	d.value = binary.AppendUvarint(d.value[:0], uint64(s.seq))
	if err := d.batch.Set(id[:], d.value, nil); err != nil {
		return fmt.Errorf("write request %x: %w", e.Order, err)
	}
	return nil
}

func (r *MoveRow) append(b []byte) []byte {
	b = appendUvarints(append(b, byte(r.Kind)), uint64(r.Market), uint64(r.Tokens[0]),
		uint64(r.Tokens[1]), uint64(r.Cash))
	return binary.AppendVarint(b, int64(r.Time))
}

func (r *MoveRow) decode(key, b []byte) error {
	if len(key) != moveKeyLen || len(b) == 0 {
		return errRow
	}
	*r = MoveRow{Kind: engine.EventKind(b[0])}
	r.Wallet = engine.WalletNo(binary.BigEndian.Uint32(key[1:]))
	r.Sequence = engine.Sequence(binary.BigEndian.Uint64(key[5:]))
	c := varints{rest: b[1:]}
	r.Market = engine.MarketNo(c.uvarint())
	r.Tokens = [2]engine.Size{engine.Size(c.uvarint()), engine.Size(c.uvarint())}
	r.Cash = engine.Cash(c.uvarint())
	r.Time = engine.Time(c.varint())
	if r.Kind != engine.Split && r.Kind != engine.Merged && r.Kind != engine.Redeemed {
		return errRow
	}
	return c.end()
}

// Request finds the Sequence of the newest split, merge or redemption with an id. If known is
// false, no Sequence up to seen carried out such a request. The error is as for Past.
func (h *History) Request(id engine.OrderID) (
	at engine.Sequence, known bool, seen engine.Sequence, err error,
) {
	seen = h.Sequence()
	err = h.view(func() error {
		key := requestKey(&id)
		known, err = read(h.db, key[:], func(b []byte) error {
			c := varints{rest: b}
			at = engine.Sequence(c.uvarint())
			return c.end()
		})
		return err
	}, "read a request", 0)
	return at, known && err == nil, seen, err
}

// Move finds what a wallet split, merged or redeemed at a Sequence, as the Event that told of it,
// but for its id. known is false if it moved nothing then. The error is as for Past.
func (h *History) Move(w engine.WalletNo, seq engine.Sequence) (
	e engine.Event, known bool, err error,
) {
	var r MoveRow
	err = h.view(func() error {
		key := moveKey(w, seq)
		var b []byte
		if b, known, err = disk.Get(h.db, key[:], nil); err != nil || !known {
			return err
		}
		return r.decode(key[:], b)
	}, "read a move of wallet", uint32(w))
	if err != nil || !known {
		return e, false, err
	}
	e = engine.Event{Kind: r.Kind, Wallet: w, Market: r.Market, Size: r.Tokens[0]}
	if r.Kind == engine.Redeemed {
		e.Size, e.Args = engine.Size(r.Cash), [3]int64{int64(r.Tokens[0]), int64(r.Tokens[1])}
	}
	return e, true, nil
}

type moveWalker struct {
	it  *pebble.Iterator
	row MoveRow // the last result of next
}

// newMoveWalker walks the moves within a range of numbers. The caller closes the iterator.
func newMoveWalker(db *pebble.DB, w engine.WalletNo, s numberRange) (*moveWalker, error) {
	low, high := moveKey(w, refOf(s.low).seq), moveKey(w, refOf(s.high).seq)
	it, err := db.NewIter(&pebble.IterOptions{LowerBound: low[:], UpperBound: append(high[:], 0)})
	return &moveWalker{it: it}, err
}

// next reads the next move and returns its number, as if it were a trade's; false at the end.
func (w *moveWalker) next() (number uint64, ok bool, err error) {
	if w.row.Sequence == 0 {
		ok = w.it.Last()
	} else {
		ok = w.it.Prev()
	}
	if !ok {
		return 0, false, w.it.Error()
	}
	b, err := w.it.ValueAndErr()
	if err == nil {
		err = w.row.decode(w.it.Key(), b)
	}
	return tradeRef{w.row.Sequence, 0}.number(), err == nil, err
}
