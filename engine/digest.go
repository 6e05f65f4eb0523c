package engine

import (
	"encoding/binary"
	"math/bits"
)

// The Digest is the sum, modulo 2^64, of one leaf per thing in the state. A change subtracts the
// old leaf and adds the new one. The order of independent changes leaves no trace, except the order
// in which ids were bound: it decides which id is forgotten next. The Digest finds accidents; the
// SHA-256 chain of the frames finds forgery.

// Constants without structure (parts of square roots of primes), one for each use of mix.
const (
	mixLeft     = 0x6a09e667f3bcc909
	mixRight    = 0xbb67ae8584caa73b
	mixAsset    = 0x3c6ef372fe94f82b // tells outcome 1 of a position from outcome 0
	mixLink     = 0xa54ff53a5f1d36f1
	mixSeen     = 0x510e527fade682d1
	mixRef      = 0x9b05688c2b3e6c1f
	mixExternal = 0x1f83d9abfb41bd6b
	mixState    = 0x5be0cd19137e2179
	mixFloor    = 0xcbbb9d5dc1059ed8
	mixFees     = 0x629a292a367cd507
	mixMode     = 0x9159015a3070dd17
	mixControl  = 0x152fecd8f70e5939
	mixRequest  = 0x67332667ffc00b31
	mixGone     = 0xdb0c2e0d64f98fa7 // for each forgotten request
	mixBeat     = 0x8eb44a8768581511
	mixKey      = 0x47b5481dbefa4fa4
	mixVersion  = 0xae5f9156e7b6d99b
)

// mix folds two words into one: the two halves of their product.
func mix(a, b uint64) uint64 {
	hi, lo := bits.Mul64(a^mixLeft, b^mixRight)
	return hi ^ lo
}

func bit(b bool) uint64 {
	if b {
		return 1
	}
	return 0
}

func fold32(b *[32]byte) uint64 {
	le := binary.LittleEndian
	left := mix(le.Uint64(b[0:]), le.Uint64(b[8:]))
	right := mix(le.Uint64(b[16:]), le.Uint64(b[24:]))
	return mix(left, right)
}

// leaf returns the leaf of an account's entry; fold names the account.
func (e *entry) leaf(fold uint64) uint64 {
	return mix(fold^uint64(e.total), uint64(e.held))
}

// leaf returns the leaf of a resting order, 0 if nothing remains of it.
func (o *order) leaf() uint64 {
	leaf := mix(o.fold, uint64(o.remaining))
	if o.remaining == 0 {
		leaf = 0
	}
	return leaf
}

func foldID(id *OrderID) uint64 { return fold32((*[32]byte)(id)) }

// foldOrder folds the fields of an order that never change while it rests. The rank stands for the
// position in the queue; id is already folded.
func foldOrder(o *order, id uint64) uint64 {
	f := mix(id, o.rank)
	f = mix(f^uint64(o.wallet), uint64(o.owner)<<32|uint64(o.key))
	f ^= uint64(o.market) ^ bits.RotateLeft64(uint64(o.expiry), 32)
	return mix(f, uint64(o.price)<<16|uint64(o.side)<<8|uint64(o.outcome))
}

func foldAccount(a *Address, no WalletNo) uint64 {
	le := binary.LittleEndian
	f := mix(le.Uint64(a[0:]), le.Uint64(a[8:]))
	return mix(f, uint64(le.Uint32(a[16:]))<<32|uint64(no))
}

func (a *account) linkLeaf() uint64 {
	return bit(a.owner != 0) * mix(a.fold^mixLink, uint64(a.owner))
}

func (a *account) controlLeaf() uint64 {
	word := uint64(a.mode)<<8 | uint64(a.prevention) // 0 is Normal and ExpireResting
	return bit(word != 0) * mix(a.fold^mixControl, word)
}

func (x *Exchange) modeLeaf() uint64 {
	return bit(x.mode != Normal) * mix(mixMode, uint64(x.mode))
}

// versionLeaf is 0 for version 6, and always will be: journals of before have no Raise.
func versionLeaf(v uint16) uint64 { return bit(v > 6) * mix(mixVersion, uint64(v)) }

func (b *beat) leaf(owner WalletNo) uint64 {
	return mix(uint64(owner)<<32|uint64(b.key), mixBeat^uint64(b.timeout))
}

func (k *keyRecord) leaf(revoked bool) uint64 {
	return mix(uint64(k.owner)^mixKey, uint64(k.number)<<16|uint64(k.class)<<8|bit(revoked))
}

// leaf returns the leaf of the n-th request: n decides between requests of the same Time.
func (r *request) leaf(n uint64) uint64 {
	return mix(fold32((*[32]byte)(&r.id))^mixRequest, mix(mix(uint64(r.at), uint64(r.amount)), n))
}

// rankLeaf returns the leaf of a market's last rank, which determines the next order's.
func (m *market) rankLeaf() uint64 { return (m.fold | 1) * m.book.rank }

func (m *market) leaf() uint64 {
	word := uint64(m.state) | uint64(m.mode)<<8 | uint64(m.payout)<<16
	if m.stated {
		word |= 1 << 32
	}
	f := mix(m.fold^mixState, word)
	f = mix(f^uint64(m.vault), uint64(m.issued[0]))
	f = mix(f^uint64(m.issued[1]), uint64(m.external[0]))
	return mix(f, uint64(m.external[1]))
}

func foldListing(l *Listing, no MarketNo) uint64 {
	f := mix(fold32((*[32]byte)(&l.Condition)), uint64(no))
	f = mix(f, fold32((*[32]byte)(&l.Tokens[0])))
	f = mix(f, fold32((*[32]byte)(&l.Tokens[1])))
	f = mix(f^l.Group, uint64(l.MinSize)^uint64(l.Tick)<<48^bit(l.NegRisk)<<63)
	return mix(f^uint64(l.MinBuy), uint64(l.Fee.Rate)<<8|uint64(l.Fee.Exponent))
}

// seenLeaf returns the leaf of the n-th bound id, from 1; id is folded. It counts instead of using
// the Sequence, so that Commands refused in between leave no trace.
func seenLeaf(id, n uint64) uint64 { return mix(id^mixSeen, n) }

func floorLeaf(forgotten uint64) uint64 { return mix(mixFloor, forgotten) }

func (l *ledger) externalLeaf() uint64 { return mix(mixExternal, uint64(l.external)) }

func (l *ledger) feesLeaf() uint64 { return mix(mixFees, uint64(l.fees)) }
