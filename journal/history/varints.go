package history

import (
	"encoding/binary"

	"clobd/engine"
)

// varints reads stored rows: varints, bytes and lists of them. A read beyond the end sets bad,
// which stays set; callers check once, with end.
type varints struct {
	rest []byte
	bad  bool
}

// end returns errRow unless all bytes have been read and every read was good.
func (c *varints) end() error {
	if c.bad || len(c.rest) > 0 {
		return errRow
	}
	return nil
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
	v := c.uvarint() // zigzag, as in encoding/binary
	return int64(v>>1) ^ -int64(v&1)
}

func (c *varints) byte() byte {
	if len(c.rest) == 0 {
		c.bad = true
		return 0
	}
	b := c.rest[0]
	c.rest = c.rest[1:]
	return b
}

func (c *varints) copy(dst []byte) {
	if len(c.rest) < len(dst) {
		c.bad, c.rest = true, nil
		return
	}
	c.rest = c.rest[copy(dst, c.rest):]
}

// record reads the next record of a chunk of trades: the name of the trade, and the rest. Sequences
// in the chunk count from from. ok is false if the chunk ends before the record.
func (c *varints) record(from engine.Sequence) (t tradeRef, record varints, ok bool) {
	n := c.uvarint()
	if c.bad || n > uint64(len(c.rest)) {
		return t, record, false
	}
	record.rest, c.rest = c.rest[:n], c.rest[n:]
	t.seq, t.index = from+engine.Sequence(record.uvarint()), uint32(record.uvarint())
	return t, record, true
}

// entry reads the next listEntry.at of a run, whose Sequence is a distance from last, and moves
// last there.
func (c *varints) entry(last *engine.Sequence) uint64 {
	v := c.uvarint()
	*last += engine.Sequence(v >> entryBits)
	return tradeRef{*last, uint32(c.uvarint())}.number()<<entryBits | v&entryTokens
}

// party reads who sent an order; own tells that the wallet is its own owner.
func (c *varints) party(own bool) (wallet, owner engine.WalletNo, key uint32) {
	wallet = engine.WalletNo(c.uvarint())
	if owner = wallet; !own {
		owner = engine.WalletNo(c.uvarint())
	}
	return wallet, owner, uint32(c.uvarint())
}

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

func appendUvarints(b []byte, all ...uint64) []byte {
	for _, v := range all {
		b = binary.AppendUvarint(b, v)
	}
	return b
}
