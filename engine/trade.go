package engine

import (
	"crypto/sha256"
	"encoding/binary"
)

// Bits of a trade id, 122 in all. A taker has at most one trade per price, so 14 bits of index are
// enough; 48 bits of Sequence last nine years at a million Commands per second.
const (
	tradeSequenceBits = 48
	tradeIndexBits    = 14
	tradeJournalBits  = 60
)

// TradeID is the id of trade number index (from 0, in matching order, a new one whenever the
// execution price changes) of the taker placed at seq: the bytes of a UUID of version 8 that hold
// seq, index and the low 60 bits of the journal's id.
func TradeID(journal uint64, seq Sequence, index uint32) [16]byte {
	if seq >= 1<<tradeSequenceBits || index >= 1<<tradeIndexBits {
		panic("BUG: trade id does not hold this Sequence or index")
	}
	hi := uint64(seq)<<16 | 8<<12 | uint64(index>>2)
	lo := 2<<62 | uint64(index&3)<<tradeJournalBits | journal&(1<<tradeJournalBits-1)
	var id [16]byte
	binary.BigEndian.PutUint64(id[:8], hi)
	binary.BigEndian.PutUint64(id[8:], lo)
	return id
}

// ParseTradeID takes a trade id apart again: the low 60 bits of the journal's id, the taker's
// Sequence, the index. False if the bytes are no UUID of version 8.
func ParseTradeID(id [16]byte) (journal uint64, seq Sequence, index uint32, ok bool) {
	hi, lo := binary.BigEndian.Uint64(id[:8]), binary.BigEndian.Uint64(id[8:])
	if hi>>12&15 != 8 || lo>>62 != 2 {
		return 0, 0, 0, false
	}
	index = uint32(hi&0xfff)<<2 | uint32(lo>>tradeJournalBits&3)
	return lo & (1<<tradeJournalBits - 1), Sequence(hi >> 16), index, true
}

// TxHash is the ledger receipt of the same trade, in the shape of a transaction hash: journal,
// seq, index and twelve bytes of checksum. It names an entry of this journal, not a transaction
// of a chain.
func TxHash(journal uint64, seq Sequence, index uint32) [32]byte {
	var h [32]byte
	binary.BigEndian.PutUint64(h[0:], journal)
	binary.BigEndian.PutUint64(h[8:], uint64(seq))
	binary.BigEndian.PutUint32(h[16:], index)
	sum := sha256.Sum256(h[:20])
	copy(h[20:], sum[:12])
	return h
}

// ParseTxHash takes a ledger receipt apart again; false if its checksum is wrong.
func ParseTxHash(h [32]byte) (journal uint64, seq Sequence, index uint32, ok bool) {
	journal = binary.BigEndian.Uint64(h[0:])
	seq = Sequence(binary.BigEndian.Uint64(h[8:]))
	index = binary.BigEndian.Uint32(h[16:])
	return journal, seq, index, h == TxHash(journal, seq, index)
}
