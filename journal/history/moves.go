package history

import (
	"encoding/binary"
	"fmt"

	"clobd/engine"

	"github.com/cockroachdb/pebble/v2"
)

// MoveRow is what a wallet did with its tokens outside of trades: a split, a merge or a redemption.
type MoveRow struct {
	Sequence engine.Sequence
	Time     engine.Time
	Kind     engine.EventKind // engine.Split, engine.Merged or engine.Redeemed
	Wallet   engine.WalletNo
	Market   engine.MarketNo
	// Tokens are how many of each came or went, Cash the collateral that went or came for them; all in
	// base units.
	Tokens [2]engine.Size
	Cash   engine.Cash
}

// moveKeyLen is the length of a move's key: space, wallet, Sequence, big endian.
const moveKeyLen = 1 + 4 + 8

// moveKey is the key of what a wallet moved at a Sequence.
func moveKey(w engine.WalletNo, seq engine.Sequence) [moveKeyLen]byte {
	var k [moveKeyLen]byte
	k[0] = spaceMove
	binary.BigEndian.PutUint32(k[1:], uint32(w))
	binary.BigEndian.PutUint64(k[5:], uint64(seq))
	return k
}

// move notes a split, a merge or a redemption. Trades have lists of their own.
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
	return nil
}

// append appends the stored form, without the numbers in the key.
func (r *MoveRow) append(b []byte) []byte {
	b = append(b, byte(r.Kind))
	for _, v := range [...]uint64{uint64(r.Market), uint64(r.Tokens[0]), uint64(r.Tokens[1]),
		uint64(r.Cash)} {
		b = binary.AppendUvarint(b, v)
	}
	return binary.AppendVarint(b, int64(r.Time))
}

// decode reads key and stored form of a move.
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
	switch {
	case c.bad, len(c.rest) > 0:
		return errRow
	case r.Kind != engine.Split && r.Kind != engine.Merged && r.Kind != engine.Redeemed:
		return errRow
	}
	return nil
}

// moveWalker walks the moves of a wallet from the newest to the oldest.
type moveWalker struct {
	it  *pebble.Iterator
	row MoveRow // that next came to
}

// newMoveWalker makes one for the moves of a wallet within a span; the caller closes its iterator.
func newMoveWalker(db *pebble.DB, w engine.WalletNo, s numberRange) (*moveWalker, error) {
	low, high := moveKey(w, refOf(s.low).seq), moveKey(w, refOf(s.high).seq)
	it, err := db.NewIter(&pebble.IterOptions{LowerBound: low[:], UpperBound: append(high[:], 0)})
	return &moveWalker{it: it}, err
}

// next goes on to the next one and gives its number, as if it were a trade's: false at the end.
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
