package engine

import (
	"cmp"
	"fmt"
	"slices"
)

const saveFormat = 1

// Save hands the whole state to sink as chunks, which sink must not keep. Load makes of them an
// Exchange that behaves the same. Exchanges that applied the same Commands save the same bytes: all
// parts have an order of their own. The error is sink's, or wraps ErrDrift: the sums are wrong.
// Then the last chunk is missing, and Load refuses the state.
func (x *Exchange) Save(sink func(chunk []byte) error) error {
	p := NewPacker(sink)
	p.Uints(saveFormat, uint64(x.version), uint64(x.last), uint64(x.mode))
	p.Int(int64(x.external))
	p.Int(int64(x.fees))
	s := saver{x: x, p: p, proof: proof{assets: uint64(x.external + x.fees)}}
	s.accounts()
	s.markets()
	s.positions()
	s.orders()
	if err := s.proof.verdict(x); err != nil {
		return fmt.Errorf("save the state after Sequence %d: %w", x.last, err)
	}
	s.placements()
	s.controls()
	s.requests()
	return p.Close(x.digest)
}

type saver struct {
	x     *Exchange
	p     *Packer
	proof proof
}

type ranked struct {
	rank uint64
	h    uint32
}

func (s *saver) accounts() {
	x, p := s.x, s.p
	p.Uint(uint64(x.accounts.used))
	for no := uint32(1); no <= x.accounts.used; no++ {
		a := x.accounts.at(no)
		s.proof.account(WalletNo(no), a)
		p.Bytes(a.address[:])
		p.Int(a.cash.total)
		p.Uints(uint64(a.owner), uint64(a.mode)<<8|uint64(a.prevention))
	}
}

// markets packs the markets by number, without their orders.
func (s *saver) markets() {
	x, p := s.x, s.p
	p.Uint(uint64(x.markets.used))
	for no := uint32(1); no <= x.markets.used; no++ {
		m := x.markets.at(no)
		s.proof.market(MarketNo(no), m)
		p.Bytes(m.condition[:])
		p.Bytes(m.tokens[0][:])
		p.Bytes(m.tokens[1][:])
		p.Uints(bit(m.negRisk)|bit(m.stated)<<1, m.group, uint64(m.tick), uint64(m.fee.Rate),
			uint64(m.fee.Exponent), uint64(m.state), uint64(m.mode), uint64(m.payout), m.book.rank)
		for _, v := range []int64{int64(m.min), int64(m.minBuy), int64(m.vault),
			int64(m.issued[0]), int64(m.issued[1]), int64(m.external[0]), int64(m.external[1])} {
			p.Int(v)
		}
	}
}

func (s *saver) positions() {
	x, p := s.x, s.p
	p.Uint(uint64(x.positions.used))
	for no := uint32(1); no <= x.positions.used; no++ {
		at := x.positions.at(no)
		s.proof.position(no, at)
		p.Uints(uint64(at.wallet), uint64(at.market))
		p.Int(at.tokens[0].total)
		p.Int(at.tokens[1].total)
	}
}

// orders packs the resting orders by market and rank: Load rests them in this order.
func (s *saver) orders() {
	var rest []ranked // the orders of one market
	for no := uint32(1); no <= s.x.markets.used; no++ {
		rest = rest[:0]
		s.x.markets.at(no).book.each(func(h uint32) {
			rest = append(rest, ranked{s.x.orders.at(h).rank, h})
		})
		slices.SortFunc(rest, func(a, b ranked) int { return cmp.Compare(a.rank, b.rank) })
		s.p.Uint(uint64(len(rest)))
		rank := uint64(0)
		for i := range rest {
			o := s.x.orders.at(rest[i].h)
			s.order(o, o.rank-rank)
			rank = o.rank
		}
	}
}

// order packs one order. rank is the distance to the rank of the order before it.
func (s *saver) order(o *order, rank uint64) {
	s.proof.order(o)
	s.p.Bytes(o.id[:])
	s.p.Uints(rank, uint64(o.position), uint64(o.price)<<2|uint64(o.side)<<1|uint64(o.outcome),
		uint64(o.remaining/Lot), uint64(o.owner), uint64(o.key), uint64(o.first))
	s.p.Int(int64(o.expiry))
}

// placements packs the remembered ids, oldest first. The order of an id has its Sequence.
func (s *saver) placements() {
	seen, p := &s.x.seen, s.p
	p.Uints(uint64(seen.window), seen.count, uint64(seen.floor), uint64(seen.ring.used))
	for age := seen.ring.used; age > 0; age-- {
		at := seen.ring.at((seen.at+seen.ring.used-age)%seen.ring.used + 1)
		p.Bytes(at.id[:])
		in := seen.table.holds(entryOf(at.tag, (seen.at+seen.ring.used-age)%seen.ring.used+1|inRing))
		p.Uint(bit(in) * uint64(at.first))
	}
}

func (s *saver) controls() {
	x, p := s.x, s.p
	p.Uint(uint64(x.references.used))
	for i := uint32(1); i <= x.references.used; i++ {
		id := x.references.at(i)
		p.Bytes(id[:])
		p.Uint(uint64(x.refs[*id]))
	}
	watched := 0
	for no := WalletNo(1); uint32(no) <= x.accounts.used; no++ {
		watched += len(x.beats[no])
	}
	p.Uint(uint64(watched))
	for no := WalletNo(1); uint32(no) <= x.accounts.used; no++ {
		for _, b := range x.beats[no] {
			p.Uints(uint64(no), uint64(b.key))
			p.Int(int64(b.timeout))
		}
	}
	p.Uint(uint64(x.keys.all.used))
	for i := uint32(1); i <= x.keys.all.used; i++ {
		k := x.keys.all.at(i)
		p.Uints(uint64(k.owner), uint64(k.number), uint64(k.class)<<1|bit(x.keys.revoked[*k]))
	}
}

func (s *saver) requests() {
	q, p := &s.x.requests, s.p
	p.Uints(q.gone, uint64(q.table.used))
	for h := q.oldest; h != 0; {
		r := q.all.at(h)
		p.Bytes(r.id[:])
		p.Uint(uint64(r.first))
		p.Int(int64(r.at))
		p.Int(r.amount)
		h = r.next
	}
}
