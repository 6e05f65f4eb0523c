package engine

import (
	"errors"
	"fmt"
	"math/bits"
	"reflect"
)

// The audit computes everything anew and compares: it shares no counter with the state it checks.
// With -tags audit it runs after each Apply; tests call it by name.

func mustAudit(x *Exchange) {
	if err := audit(x); err != nil {
		panic(fmt.Sprintf("BUG: after Sequence %d: %v", x.last, err))
	}
}

type auditor struct {
	x      *Exchange
	open   []uint32 // open orders by wallet
	queued []uint32 // open orders by position that no list has named yet
	live   uint32
	recent uint32 // open orders that are among the last placements
	timed  uint32 // open orders that expire
	digest uint64
	errs   []error
}

func audit(x *Exchange) error {
	a := auditor{
		x: x, open: make([]uint32, x.accounts.used+1),
		queued: make([]uint32, x.positions.used+1),
		digest: x.externalLeaf() + x.feesLeaf() + versionLeaf(x.version),
	}
	for no := uint32(1); no <= x.markets.used; no++ {
		a.book(MarketNo(no), &x.markets.at(no).book)
	}
	a.accounts()
	a.assets()
	a.placements()
	a.controls()
	a.timers()
	for i := uint32(1); i <= x.references.used; i++ {
		a.digest += mix(fold32((*[32]byte)(x.references.at(i))), mixRef)
	}
	a.check(int(x.references.used) == len(x.refs), "references %d, known %d",
		x.references.used, len(x.refs))
	a.check(a.digest == x.digest, "digest %016x, from scratch %016x", x.digest, a.digest)
	return errors.Join(a.errs...)
}

func (a *auditor) check(ok bool, format string, args ...any) {
	if !ok {
		a.errs = append(a.errs, fmt.Errorf(format, args...))
	}
}

func (a *auditor) book(no MarketNo, b *Book) {
	bestBid, bestAsk, orders := uint32(0), b.ticks, uint32(0)
	for n := range b.pages {
		p := &b.pages[n]
		marked := b.summary[n>>6]>>(n&63)&1 == 1
		a.check(marked == (p.set != 0), "market %d: summary of page %d", no, n)
		if p.levels == nil {
			continue
		}
		for i := range p.levels {
			l, index := &p.levels[i], uint32(n<<pageBits+i)
			a.check(p.set>>i&1 == 1 == (l.Head != 0), "market %d: set of level %d", no, index)
			if l.Head == 0 {
				a.check(*l == level{}, "market %d: empty level %d holds %+v", no, index, *l)
				continue
			}
			side, count := a.level(no, b, l, index)
			if side == Buy {
				bestBid = index
			} else {
				bestAsk = min(bestAsk, index)
			}
			orders += count
		}
	}
	a.check(b.Best == [2]uint32{bestBid, bestAsk}, "market %d: best %v, found %d %d",
		no, b.Best, bestBid, bestAsk)
	a.check(bestBid < bestAsk, "market %d: crossed at %d, %d", no, bestBid, bestAsk)
	a.check(orders == b.Orders, "market %d: counts %d orders, has %d", no, b.Orders, orders)
}

// level walks one queue and returns its ladder side and its number of orders.
func (a *auditor) level(no MarketNo, b *Book, l *level, index uint32) (Side, uint32) {
	size, count, prev, rank := Size(0), uint32(0), uint32(0), uint64(0)
	first := a.x.orders.at(l.Head)
	side := ladderSide(first.side, first.outcome)
	for h := l.Head; h != 0; {
		o, k := a.x.orders.at(h), a.x.queues.Links.At(h)
		ladder := Price(index) * a.x.markets.known(no).tick
		if o.outcome == 1 {
			ladder = PriceOne - ladder
		}
		good := o.market == no && uint32(o.index) == index && k.Prev == prev && o.rank > rank &&
			o.rank <= b.rank && o.remaining > 0 && o.remaining%Lot == 0 && o.price == ladder &&
			ladderSide(o.side, o.outcome) == side && o.fold == foldOrder(o, foldID(&o.id))
		a.check(good, "market %d, level %d: order %d is %+v", no, index, h, *o)
		a.order(h, o)
		size, count = size+o.remaining, count+1
		prev, rank, h = h, o.rank, k.Next
	}
	a.check(l.Tail == prev && l.Size == size && l.Size >= 0,
		"market %d, level %d: %+v, %d orders sum to %d", no, index, *l, count, size)
	return side, count
}

// order counts a resting order for its wallet and its position, and looks it up by its id.
func (a *auditor) order(h uint32, o *order) {
	a.live++
	a.digest += o.leaf()
	if o.first > a.x.seen.floor {
		a.recent++
	}
	a.open[o.wallet]++
	a.queued[o.position]++
	if o.expiry != 0 {
		a.timed++
		n := a.x.timers.n
		a.check(o.timer >= 1 && o.timer <= n && *a.x.timers.heap.at(o.timer) == h,
			"order %d: expires at %d, timer %d", h, o.expiry, o.timer)
	}
	a.check((o.expiry == 0) == (o.timer == 0), "order %d: expires at %d, timer %d",
		h, o.expiry, o.timer)
	p := a.x.positions.at(o.position)
	a.check(p.wallet == o.wallet && p.market == o.market, "order %d: position %+v", h, *p)
	found, first, _ := a.x.seen.find(&a.x.orders, &o.id, o.tag)
	a.check(found == h && first == o.first, "order %d: its id leads to %d", h, found)
}

func (a *auditor) accounts() {
	x := a.x
	a.errs = append(a.errs, misreserved(x)...)
	for no := uint32(1); no <= x.accounts.used; no++ {
		w := x.accounts.at(no)
		a.digest += w.cash.leaf(w.fold) + w.linkLeaf() + w.controlLeaf()
		a.check(w.cash.free() >= 0 && w.cash.held >= 0, "wallet %d: %+v", no, w.cash)
		a.check(w.fold == foldAccount(&w.address, WalletNo(no)), "wallet %d: fold", no)
		a.check(x.wallets[w.address] == WalletNo(no), "wallet %d: its address", no)
		a.lists(no, w)
	}
	for no := uint32(1); no <= x.positions.used; no++ {
		p := x.positions.at(no)
		for o := range p.tokens {
			e := &p.tokens[o]
			a.digest += e.leaf(p.foldOf(Outcome(o)))
			a.check(e.free() >= 0 && e.held >= 0, "position %d: %+v", no, *e)
		}
		a.check(a.queued[no] == 0, "position %d: %d orders not in its list", no, a.queued[no])
		a.check(x.position(p.wallet, p.market) == no, "position %d: not found", no)
	}
}

// lists walks wallet → positions → orders; each open order must occur once.
func (a *auditor) lists(no uint32, w *account) {
	x, count, before := a.x, uint32(0), uint32(0)
	for i := w.positions; i != 0; i = x.positions.at(i).next {
		p := x.positions.at(i)
		a.check(uint32(p.wallet) == no && p.prev == before && p.orders != 0,
			"wallet %d: position %d in its list is %+v", no, i, *p)
		last := uint32(0)
		for h := p.orders; h != 0; h = x.orders.at(h).mineNext {
			o := x.orders.at(h)
			a.check(o.position == i && o.minePrev == last, "position %d: order %d", i, h)
			a.queued[i]--
			last = h
			count++
		}
		before = i
	}
	a.check(count == w.open && count == a.open[no], "wallet %d: counts %d orders, lists %d, has %d",
		no, w.open, count, a.open[no])
}

func (a *auditor) assets() {
	x, cash := a.x, int64(a.x.external+a.x.fees)
	sums := make([][2]int64, x.markets.used+1)
	for no := uint32(1); no <= x.accounts.used; no++ {
		cash += x.accounts.at(no).cash.total
	}
	for no := uint32(1); no <= x.positions.used; no++ {
		p := x.positions.at(no)
		for o := range p.tokens {
			sums[p.market][o] += p.tokens[o].total
		}
	}
	for no := uint32(1); no <= x.markets.used; no++ {
		m := x.markets.at(no)
		a.digest += m.leaf() + m.rankLeaf()
		cash += int64(m.vault)
		for o := range sums[no] {
			sum := sums[no][o] + int64(m.external[o]+m.issued[o])
			a.check(sum == 0, "market %d: outcome %d sums to %d", no, o, sum)
		}
		a.market(MarketNo(no), m)
	}
	a.check(cash == 0, "collateral sums to %d", cash)
}

// market checks that the vault covers what it owes, and that rules and listing agree.
func (a *auditor) market(no MarketNo, m *market) {
	x, l := a.x, m.listing()
	if m.state == Settled {
		hi, lo := claim([2]int64{-int64(m.issued[0]), -int64(m.issued[1])}, m.payout)
		haveHi, haveLo := bits.Mul64(uint64(m.vault), uint64(PriceOne))
		a.check(haveHi > hi || haveHi == hi && haveLo >= lo, "market %d: vault %d, issued %v at %v",
			no, m.vault, m.issued, m.payout)
		a.check(m.book.Orders == 0, "market %d: settled with %d orders", no, m.book.Orders)
	} else {
		a.check(m.issued == [2]Size{-Size(m.vault), -Size(m.vault)} && m.payout == 0,
			"market %d: vault %d, issued %v, payout %v", no, m.vault, m.issued, m.payout)
	}
	a.check(m.vault >= 0 && min(m.external[0], m.external[1]) >= 0 &&
		max(m.issued[0], m.issued[1]) <= 0, "market %d: vault %d, issued %v, external %v",
		no, m.vault, m.issued, m.external)
	a.check(m.fold == foldListing(&l, no), "market %d: fold", no)
	a.check(m.book.ticks == uint32(PriceOne/m.tick), "market %d: %d levels", no, m.book.ticks)
	a.check(x.markets.listed(&l.Condition) == no && x.markets.trades(&l.Tokens[0]) &&
		x.markets.trades(&l.Tokens[1]), "market %d: its names", no)
}

func (a *auditor) controls() {
	x, q, n, last := a.x, &a.x.requests, uint32(0), uint32(0)
	a.digest += x.modeLeaf()
	for no := WalletNo(1); uint32(no) <= x.accounts.used; no++ {
		own, most := x.beats[no], int64(-1)
		for i := range own {
			a.check(own[i].timeout > 0 && int64(own[i].key) > most, "wallet %d: beats %+v", no, own)
			a.digest += own[i].leaf(no)
			most = int64(own[i].key)
		}
	}
	counts := make(map[keyRecord]keyCount)
	for i := uint32(1); i <= x.keys.all.used; i++ {
		k := x.keys.all.at(i)
		revoked, known := x.keys.revoked[*k]
		a.check(known, "key %+v: not found", *k)
		a.digest += k.leaf(revoked)
		of := keyRecord{owner: k.owner, class: k.class}
		n := counts[of]
		if n.all++; revoked {
			n.revoked++
		}
		counts[of] = n
	}
	a.check(reflect.DeepEqual(counts, x.keys.counts), "keys by owner and class: %v, counted %v",
		counts, x.keys.counts)
	a.check(int(x.keys.all.used) == len(x.keys.revoked), "%d keys, known %d", x.keys.all.used,
		len(x.keys.revoked))
	for h := q.oldest; h != 0; h = q.all.at(h).next {
		r := q.all.at(h)
		n++
		a.check(last == 0 || q.all.at(last).at <= r.at, "request %d: before the one ahead", h)
		a.check(q.table.holds(entryOf(r.tag, h)) && r.tag == x.seen.salt.tag(&r.id),
			"request %d: not in the table", h)
		last = h
	}
	a.digest += q.sum()
	a.check(q.newest == last && q.table.used == n, "requests: %d of %d, newest %d", n,
		q.table.used, q.newest)
	for h := q.freed; h != 0; h = q.all.at(h).next {
		n++
	}
	a.check(n == q.all.used, "requests: %d records of %d", n, q.all.used)
}

// timers checks that every order with an expiry is in the heap, and the order of the heap.
func (a *auditor) timers() {
	t := &a.x.timers
	a.check(t.n == a.timed, "%d timers, %d orders with one", t.n, a.timed)
	for i := uint32(2); i <= t.n; i++ {
		o, above := a.x.orders.at(*t.heap.at(i)), a.x.orders.at(*t.heap.at(i / 2))
		a.check(!o.before(above), "timer %d: after its parent", i)
	}
}

func (s *seen) sum() uint64 {
	used := s.ring.used
	sum := floorLeaf(s.count - uint64(used))
	for i := uint32(1); i <= used; i++ {
		age := (s.at + used - i) % used
		sum += seenLeaf(foldID(&s.ring.at(i).id), s.count-uint64(age))
	}
	return sum
}

func (q *requests) sum() uint64 {
	n, sum := q.gone, mixGone*q.gone
	for h := q.oldest; h != 0; h = q.all.at(h).next {
		n++
		sum += q.all.at(h).leaf(n)
	}
	return sum
}

// placements checks the ring of remembered ids, the table, and that no record is lost.
func (a *auditor) placements() {
	x, both := a.x, uint32(0)
	a.digest += x.seen.sum()
	for i := uint32(1); i <= x.seen.ring.used; i++ {
		p := x.seen.ring.at(i)
		h, first, known := x.seen.find(&x.orders, &p.id, p.tag)
		a.check(known && first == p.first && first > x.seen.floor,
			"placement %d: %+v, floor %d", i, *p, x.seen.floor)
		if h != 0 {
			both++
			a.check(x.orders.at(h).ring == i, "placement %d: order %d points elsewhere", i, h)
		}
	}
	a.check(both == a.recent, "%d placements rest, %d orders above the floor", both, a.recent)
	a.check(x.seen.table.used == x.seen.ring.used+a.live-both, "table counts %d, has %d + %d - %d",
		x.seen.table.used, x.seen.ring.used, a.live, both)
	freed := uint32(0)
	for h := x.queues.Freed; h != 0; h = x.queues.behind(h) {
		freed++
		a.check(x.orders.at(h).remaining == 0, "free record %d: %+v", h, *x.orders.at(h)) // see resting
	}
	if x.orders.used != 0 {
		o := *x.orders.at(0)
		o.mineNext, o.minePrev = 0, 0 // see delist
		a.check(o == order{}, "the record that is nobody's: %+v", o)
	}
	a.check(freed+a.live == x.orders.used, "%d orders, %d free records of %d",
		a.live, freed, x.orders.used)
}
