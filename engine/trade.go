package engine

import (
	"crypto/sha256"
	"encoding/binary"
)

// The bits of a trade id, 122 in all. A taker has at most one trade per price, so 14 bits of index
// suffice; 48 bits of Sequence last nine years at a million Commands per second.
const (
	tradeSequenceBits = 48
	tradeIndexBits    = 14
	tradeJournalBits  = 60
)

// TradeID returns the id of a trade of the taker placed at seq: a UUID of version 8 that holds seq,
// index and the low 60 bits of the journal's id. index counts the taker's execution prices from 0.
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

// ParseTradeID is the inverse of TradeID; ok is false for other UUIDs. journal has its low 60 bits.
func ParseTradeID(id [16]byte) (journal uint64, seq Sequence, index uint32, ok bool) {
	hi, lo := binary.BigEndian.Uint64(id[:8]), binary.BigEndian.Uint64(id[8:])
	if hi>>12&15 != 8 || lo>>62 != 2 {
		return 0, 0, 0, false
	}
	index = uint32(hi&0xfff)<<2 | uint32(lo>>tradeJournalBits&3)
	return lo & (1<<tradeJournalBits - 1), Sequence(hi >> 16), index, true
}

// TxHash names a trade in the shape of a transaction hash: journal, seq, index and twelve bytes of
// checksum. No chain has such a transaction.
func TxHash(journal uint64, seq Sequence, index uint32) [32]byte {
	var h [32]byte
	binary.BigEndian.PutUint64(h[0:], journal)
	binary.BigEndian.PutUint64(h[8:], uint64(seq))
	binary.BigEndian.PutUint32(h[16:], index)
	sum := sha256.Sum256(h[:20])
	copy(h[20:], sum[:12])
	return h
}

// ParseTxHash is the inverse of TxHash; ok is false if the checksum is wrong.
func ParseTxHash(h [32]byte) (journal uint64, seq Sequence, index uint32, ok bool) {
	journal = binary.BigEndian.Uint64(h[0:])
	seq = Sequence(binary.BigEndian.Uint64(h[8:]))
	index = binary.BigEndian.Uint32(h[16:])
	return journal, seq, index, h == TxHash(journal, seq, index)
}
