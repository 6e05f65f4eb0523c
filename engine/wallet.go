package engine

import "math/bits"

// request is an accepted split, merge or redemption: one cache line.
type request struct {
	id     OrderID
	first  Sequence
	at     Time
	amount int64 // what it moved, in base units
	tag    uint32
	next   uint32 // the next newer one
}

// requests are the requests of the last RequestWindow, oldest first, and a table of their ids. Each
// new request forgets up to requestsLeave old ones, so that none pays for a whole window. The
// newest one is never forgotten.
type requests struct {
	salt           salt
	table          table
	all            slab[request]
	oldest, newest uint32
	freed          uint32 // the first free record; next leads to the others
	gone           uint64 // how many were forgotten so far
}

const requestsLeave = 8

// over reports whether a request is older than RequestWindow. Its record no longer counts.
func (r *request) over(now Time) bool { return now-r.at >= RequestWindow }

// known returns the newest remembered request of c's id, nil if there is none. If ingress has
// searched the index for the id, a record that is over counts as well: the index may not hold it.
func (q *requests) known(c *Command, now Time) (newest *request) {
	for i, e := q.table.search(q.salt.tag(&c.ID)); i != 0; i, e = e.next() {
		r := q.all.at(i)
		if r.id == c.ID && (c.Seen != 0 || !r.over(now)) && (newest == nil || r.first > newest.first) {
			newest = r
		}
	}
	return newest
}

// floor returns the Sequence that the index must have reached for a search of an id to be complete:
// all forgotten requests are older. It is 0 if none was forgotten.
func (q *requests) floor() Sequence {
	if q.gone == 0 {
		return 0
	}
	return q.all.at(q.oldest).first - 1
}

// remember binds the id of an accepted request, and returns what the Digest grows by.
func (q *requests) remember(c *Command, seq Sequence, now Time, amount int64) (grown uint64) {
	if c.ID == (OrderID{}) {
		return 0
	}
	for range requestsLeave {
		if q.oldest == 0 || !q.all.at(q.oldest).over(now) {
			break
		}
		grown += q.forget()
	}
	h := q.freed
	if h != 0 {
		q.freed = q.all.at(h).next
	} else {
		h = q.all.next()
	}
	q.append(h, request{id: c.ID, first: seq, at: now, amount: amount})
	return grown + q.all.at(h).leaf(q.gone+uint64(q.table.used))
}

// append puts a request behind the newest one, as record h.
func (q *requests) append(h uint32, r request) {
	r.tag = q.salt.tag(&r.id)
	*q.all.at(h) = r
	q.table.insert(entryOf(r.tag, h))
	if q.newest != 0 {
		q.all.at(q.newest).next = h
	} else {
		q.oldest = h
	}
	q.newest = h
}

// forget forgets the oldest request, and returns what the Digest grows by.
func (q *requests) forget() uint64 {
	h := q.oldest
	r := q.all.at(h)
	q.gone++
	grown := mixGone - r.leaf(q.gone)
	q.table.remove(entryOf(r.tag, h))
	if q.oldest = r.next; q.oldest == 0 {
		q.newest = 0
	}
	*r = request{next: q.freed}
	q.freed = h
	return grown
}

// petition judges a split, merge or redemption and returns its market, nil if it is refused.
func (x *Exchange) petition(c *Command, now Time, events []Event) (*market, []Event) {
	t := taker{c: c} // identify needs no more
	if refused := t.identify(x); refused != Accepted {
		return nil, refuse(events, c, refused)
	}
	if r := x.requests.known(c, now); r != nil {
		events = refuse(events, c, RejectDuplicate, r.amount)
		events[len(events)-1].First = r.first
		return nil, events
	}
	if floor := x.requests.floor(); c.Seen != 0 && c.Seen < floor {
		return nil, refuseSince(events, c, RejectRecheck, floor)
	}
	m := x.markets.known(c.Market)
	switch {
	case m == nil:
		return nil, refuse(events, c, RejectMarket)
	case (c.Kind == RedeemTokens) != (m.state == Settled):
		return nil, refuse(events, c, RejectState)
	case c.Kind != RedeemTokens && (c.Size < 1 || c.Size > MaxAmount):
		return nil, refuse(events, c, RejectAmount)
	}
	return m, events
}

// pair answers SplitTokens and MergeTokens. A split turns collateral into pairs of tokens; a merge
// turns pairs back into collateral.
func (x *Exchange) pair(c *Command, seq Sequence, now Time, events []Event) []Event {
	m, events := x.petition(c, now, events)
	if m == nil {
		return events
	}
	i, amount := x.position(c.Wallet, c.Market), int64(c.Size)
	kind, pairs, paying := Split, amount, []*entry{&x.accounts.at(uint32(c.Wallet)).cash}
	if c.Kind == MergeTokens {
		kind, pairs, paying = Merged, -amount, []*entry{{}}
		if i != 0 {
			p := x.positions.at(i)
			paying = []*entry{&p.tokens[0], &p.tokens[1]}
		}
	}
	for _, e := range paying {
		if e.free() < amount {
			return refuse(events, c, RejectBalance, e.total, e.held, amount)
		}
	}
	if i == 0 {
		i = x.addPosition(c.Wallet, c.Market)
	}
	x.exchangePairs(m, x.positions.at(i), pairs)
	x.digest += x.requests.remember(c, seq, now, amount)
	return append(events, Event{
		Kind: kind, Market: c.Market, Wallet: c.Wallet, Size: c.Size, Order: c.ID})
}

// exchangePairs turns collateral of p's wallet into as many of both tokens, or back if negative.
func (l *ledger) exchangePairs(m *market, p *position, pairs int64) {
	l.issue(m, pairs)
	l.postCash(l.accounts.at(uint32(p.wallet)), -pairs, 0)
	l.postToken(p, 0, pairs, 0)
	l.postToken(p, 1, pairs, 0)
}

// redeem answers RedeemTokens: it burns all the wallet's tokens of a settled market and pays for
// them, rounded down once. No order reserves any of them: resolve cancelled all orders.
func (x *Exchange) redeem(c *Command, seq Sequence, now Time, events []Event) []Event {
	m, events := x.petition(c, now, events)
	if m == nil {
		return events
	}
	i := x.position(c.Wallet, c.Market)
	if i == 0 || x.positions.at(i).tokens == ([2]entry{}) {
		return refuse(events, c, RejectNothing)
	}
	p := x.positions.at(i)
	held := [2]int64{p.tokens[0].total, p.tokens[1].total}
	paid := worth(held, m.payout)
	x.postToken(p, 0, -held[0], 0)
	x.postToken(p, 1, -held[1], 0)
	x.digest -= m.leaf()
	m.vault -= Cash(paid)
	m.issued[0] += Size(held[0])
	m.issued[1] += Size(held[1])
	x.digest += m.leaf()
	x.postCash(x.accounts.at(uint32(c.Wallet)), paid, 0)
	x.digest += x.requests.remember(c, seq, now, paid)
	return append(events, Event{Kind: Redeemed, Market: c.Market, Wallet: c.Wallet, Size: Size(paid),
		Args: [3]int64{held[0], held[1]}, Order: c.ID})
}

// worth returns the payout of these tokens, rounded down, if outcome 0 pays payout. It computes in
// 128 bits, because a market may have issued MaxSupply.
func worth(tokens [2]int64, payout Price) int64 {
	hi, lo := claim(tokens, payout)
	paid, _ := bits.Div64(hi, lo, uint64(PriceOne))
	return int64(paid)
}

// claim is worth in 1/10,000 of a base unit, not rounded.
func claim(tokens [2]int64, payout Price) (hi, lo uint64) {
	hi0, lo0 := bits.Mul64(uint64(tokens[0]), uint64(payout))
	hi1, lo1 := bits.Mul64(uint64(tokens[1]), uint64(PriceOne-payout))
	lo, carry := bits.Add64(lo0, lo1, 0)
	return hi0 + hi1 + carry, lo
}
