package engine

import (
	"errors"
	"fmt"
)

// ErrVersion says that a state was saved by a later version.
var ErrVersion = errors.New("state of a later version")

// Load makes an Exchange of the chunks that Save packed, and returns the last Sequence of the
// state. The seed is NewExchange's. The computed Digest must equal the saved one. In the state of a
// version before Oldest that one is in force from then on, and the Digest may differ. The error
// wraps ErrState, ErrVersion or the error of next.
func Load(seed uint64, next func() ([]byte, error)) (x *Exchange, last Sequence, err error) {
	defer func() { // the checks of the ledger and the books panic on a contradictory state
		if cause := recover(); cause != nil {
			x, last, err = nil, 0, fmt.Errorf("%w: %v", ErrState, cause)
		}
	}()
	l := loader{u: NewUnpacker(next)}
	version := l.begin(seed)
	for _, part := range []func(){
		l.accounts, l.markets, l.positions, l.orders, l.placements, l.references, l.watched, l.keys,
		l.requests} {
		if part(); l.u.Err != nil {
			return nil, 0, l.u.Err
		}
	}
	digest, err := l.u.Close()
	switch {
	case err != nil:
		return nil, 0, err
	case version >= Oldest && digest != l.x.digest:
		return nil, 0, fmt.Errorf("%w: Digest %016x, saved as %016x", ErrState, l.x.digest, digest)
	}
	if auditing {
		mustAudit(l.x)
	}
	return l.x, l.x.last, nil
}

type loader struct {
	u *Unpacker
	x *Exchange

	some   [64]placement // scratch
	warmed uint64        // a sum that keeps the compiler from dropping the reads of placements
}

// begin reads the first values and makes the Exchange. It returns the version that was in force.
func (l *loader) begin(seed uint64) (version uint64) {
	u := l.u
	format, version := u.Uint(), u.Uint()
	if u.Err == nil && (format > saveFormat || version > Version) {
		u.Err = fmt.Errorf("%w: format %d of engine version %d; this is %d of version %d",
			ErrVersion, format, version, saveFormat, Version)
	}
	x := newExchange(seed, Window)
	x.last = Sequence(u.Uint())
	x.version = uint16(max(version, Oldest))
	x.digest += versionLeaf(x.version) - versionLeaf(Oldest)
	x.digest -= x.modeLeaf() + x.externalLeaf() + x.feesLeaf()
	x.mode, x.external, x.fees = Mode(u.Most(uint64(CancelOnly))), Cash(u.Int()), Cash(u.Int())
	x.digest += x.modeLeaf() + x.externalLeaf() + x.feesLeaf()
	l.x = x
	return version
}

// each calls part as often as the packed count says, until one part is bad.
func (l *loader) each(part func()) {
	for n := l.u.Most(1<<32 - 2); n > 0 && l.u.Err == nil; n-- {
		part()
	}
}

// wallet reads the number of a known wallet, or 0.
func (l *loader) wallet() WalletNo { return WalletNo(l.u.Most(uint64(l.x.accounts.used))) }

// accounts reads the wallets. The owner of a wallet may come after it.
func (l *loader) accounts() {
	x, u := l.x, l.u
	var owners []WalletNo
	l.each(func() {
		var address Address
		u.Bytes(address[:])
		before := x.accounts.used
		a := x.accounts.at(uint32(x.number(&address)))
		if x.accounts.used == before {
			u.fail("address %x twice", address)
			return
		}
		x.postCash(a, u.Int(), 0)
		owners = append(owners, WalletNo(u.Uint()))
		control := u.Most(uint64(CancelOnly)<<8 | uint64(AllowSelfTrade))
		mode, prevention := Mode(control>>8), Prevention(control&0xff)
		x.change(a.controlLeaf, func() { a.mode, a.prevention = mode, prevention })
	})
	for i, owner := range owners {
		if uint32(owner) > x.accounts.used {
			u.fail("wallet %d belongs to wallet %d of %d", i+1, owner, x.accounts.used)
			return
		}
		a := x.accounts.at(uint32(i + 1))
		x.change(a.linkLeaf, func() { a.owner = owner })
	}
}

// markets reads the markets, still without orders.
func (l *loader) markets() {
	x, u := l.x, l.u
	l.each(func() {
		var s Listing
		u.Bytes(s.Condition[:])
		u.Bytes(s.Tokens[0][:])
		u.Bytes(s.Tokens[1][:])
		flags := u.Most(3)
		s.NegRisk = flags&1 != 0
		s.Group, s.Tick = u.Uint(), Price(u.Most(uint64(PriceOne)))
		s.Fee.Rate, s.Fee.Exponent = uint16(u.Most(MaxFeeRate)), uint8(u.Most(MaxFeeExponent))
		state, mode := MarketState(u.Most(uint64(Settled))), Mode(u.Most(uint64(CancelOnly)))
		payout, rank := Price(u.Most(uint64(PriceOne))), u.Uint()
		s.MinSize, s.MinBuy = Size(u.Int()), Cash(u.Int())
		if u.Err == nil && (!tickAllowed(s.Tick) || x.markets.listed(&s.Condition) != 0) {
			u.fail("market %d: tick %d, or listed twice", x.markets.used+1, s.Tick)
		}
		if u.Err != nil {
			return
		}
		_, m := x.markets.add(&s, &x.queues)
		m.state, m.mode, m.payout, m.stated = state, mode, payout, flags&2 != 0
		m.vault = Cash(u.Int())
		m.issued = [2]Size{Size(u.Int()), Size(u.Int())}
		m.external = [2]Size{Size(u.Int()), Size(u.Int())}
		m.book.rank = rank
		x.digest += m.leaf() + m.rankLeaf()
	})
}

func (l *loader) positions() {
	x, u := l.x, l.u
	l.each(func() {
		w, m := l.wallet(), MarketNo(u.Most(uint64(x.markets.used)))
		if w == 0 || m == 0 || x.position(w, m) != 0 {
			u.fail("position of wallet %d in market %d", w, m)
			return
		}
		p := x.positions.at(x.addPosition(w, m))
		x.postToken(p, 0, u.Int(), 0)
		x.postToken(p, 1, u.Int(), 0)
	})
}

func (l *loader) orders() {
	x := l.x
	for no := uint32(1); no <= x.markets.used && l.u.Err == nil; no++ {
		m, rank := x.markets.at(no), uint64(0)
		l.each(func() {
			o := l.order(m)
			if o.rank += rank; l.u.Err == nil && (o.rank <= rank || o.rank > m.book.rank) {
				l.u.fail("an order of market %d has rank %d, after %d", no, o.rank, rank)
			}
			rank = o.rank
			if l.u.Err == nil {
				l.rest(m, &o)
			}
		})
		if m.book.Best[Buy] >= m.book.Best[Sell] {
			l.u.fail("market %d is crossed", no)
		}
	}
}

// order reads one order of a market. Its rank is still the distance to the rank before it.
func (l *loader) order(m *market) (o order) {
	x, u := l.x, l.u
	u.Bytes(o.id[:])
	o.rank, o.position = u.Uint(), uint32(u.Most(uint64(x.positions.used)))
	word := u.Most(uint64(PriceOne)<<2 - 1)
	o.price, o.side, o.outcome = Price(word>>2), Side(word>>1&1), Outcome(word&1)
	o.remaining = Size(u.Most(uint64(MaxOrder/Lot))) * Lot
	o.owner, o.key = l.wallet(), uint32(u.Most(1<<32-1))
	o.first, o.expiry = Sequence(u.Uint()), Time(u.Int())
	if u.Err != nil {
		return o
	}
	if o.position == 0 || o.remaining == 0 || o.price == 0 || o.price%m.tick != 0 ||
		x.markets.known(x.positions.at(o.position).market) != m {
		u.fail("order %x: %d at %d, position %d", o.id[:4], o.remaining, o.price, o.position)
		return o
	}
	p := x.positions.at(o.position)
	o.wallet, o.market = p.wallet, p.market
	ladder := o.price
	if o.outcome == 1 {
		ladder = PriceOne - ladder
	}
	o.index, o.tag = uint16(ladder/m.tick), x.seen.salt.tag(&o.id)
	return o
}

func (l *loader) rest(m *market, from *order) {
	x, size := l.x, from.remaining
	from.fold = foldOrder(from, foldID(&from.id))
	side := ladderSide(from.side, from.outcome)
	h := m.book.Rest(uint32(from.index), side, size)
	o := x.orders.upTo(h)
	*o = *from
	o.remaining = 0
	x.resize(o, size, 0)
	x.enlist(h, o, x.accounts.at(uint32(o.wallet)), x.positions.at(o.position))
	x.seen.table.insert(entryOf(o.tag, h))
}

// placements reads the remembered ids. Orders above the floor must be among the last placements.
func (l *loader) placements() {
	x, u := l.x, l.u
	s := &x.seen
	s.window = uint32(u.Most(1<<31 - 1))
	s.count = u.Uint()
	s.floor = Sequence(u.Uint())
	used := u.Most(uint64(s.window))
	if s.window == 0 || used > s.count {
		u.fail("%d of %d placements, %d counted", used, s.window, s.count)
		return
	}
	n := s.count - used
	x.digest += floorLeaf(n) - floorLeaf(0)
	s.table.reserve(min(used, Window))
	for u.Err == nil && used > 0 {
		some := l.some[:min(used, uint64(len(l.some)))]
		used -= uint64(len(some))
		for i := range some { // fetch all buckets at once instead of one after the other
			p := &some[i]
			u.Bytes(p.id[:])
			p.first, p.tag = Sequence(u.Uint()), s.salt.tag(&p.id)
			l.warmed += s.table.home(p.tag)[bucketEntries]
		}
		for i := 0; i < len(some) && u.Err == nil; i++ {
			n++
			l.placement(&some[i])
			x.digest += seenLeaf(foldID(&some[i].id), n)
		}
	}
	for h := uint32(1); h <= x.orders.used && u.Err == nil; h++ {
		if o := x.orders.at(h); (o.ring != 0) != (o.first > s.floor) {
			u.fail("order %x of Sequence %d, floor %d", o.id[:4], o.first, s.floor)
		}
	}
}

// placement puts one placement into the ring. Its Sequence is 0 if its order rests.
func (l *loader) placement(p *placement) {
	s := &l.x.seen
	h, at, known := l.x.seen.find(&l.x.orders, &p.id, p.tag)
	if known == (p.first != 0) || known && l.x.orders.at(h).ring != 0 {
		l.u.fail("placement %x of Sequence %d", p.id[:4], p.first)
		return
	}
	s.at = s.ring.next()
	if known {
		p.first = at
		l.x.orders.at(h).ring = s.at
	} else {
		s.table.insert(entryOf(p.tag, s.at|inRing))
	}
	*s.ring.at(s.at) = *p
}

// reserve makes room for n more entries at once.
func (t *table) reserve(n uint64) {
	size := len(t.all)
	for mostEntries(size) <= uint64(t.used)+n {
		size *= 2
	}
	if size == len(t.all) {
		return
	}
	grown := newBuckets(size)
	for _, some := range [][]bucket{t.old.all, t.all} {
		for i := range some {
			some[i].moveTo(&grown)
		}
	}
	t.buckets, t.old = grown, buckets{}
}

func (l *loader) references() {
	l.each(func() {
		var id OrderID
		l.u.Bytes(id[:])
		if _, known := l.x.refs[id]; known || id == (OrderID{}) {
			l.u.fail("reference %x twice, or empty", id[:4])
			return
		}
		l.x.refer(&id, Sequence(l.u.Uint()))
	})
}

func (l *loader) watched() {
	x := l.x
	l.each(func() {
		owner, key := l.wallet(), uint32(l.u.Most(1<<32-1))
		if _, known := x.beats.find(owner, key); known || owner == 0 {
			l.u.fail("beat of wallet %d, key %d", owner, key)
			return
		}
		x.digest += x.beats.set(owner, beat{key, Time(l.u.Int())})
	})
}

func (l *loader) keys() {
	x, u := l.x, l.u
	l.each(func() {
		k := keyRecord{owner: l.wallet(), number: uint32(u.Most(1<<32 - 1))}
		word := u.Most(uint64(keyClasses)<<1 - 1)
		k.class = KeyClass(word >> 1)
		if _, known := x.keys.revoked[k]; known || k.owner == 0 {
			u.fail("key %d of wallet %d", k.number, k.owner)
			return
		}
		x.keys.set(k, word&1 != 0)
		x.digest += k.leaf(word&1 != 0)
	})
}

func (l *loader) requests() {
	x, u := l.x, l.u
	q := &x.requests
	q.gone = u.Uint()
	x.digest += mixGone * q.gone
	l.each(func() {
		r := request{}
		u.Bytes(r.id[:])
		r.first, r.at, r.amount = Sequence(u.Uint()), Time(u.Int()), u.Int()
		h := q.all.next()
		q.append(h, r)
		x.digest += q.all.at(h).leaf(q.gone + uint64(q.table.used))
	})
}
