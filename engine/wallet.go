package engine

import "math/bits"

// request is an accepted split, merge or redemption, remembered so that it counts once: one cache
// line.
type request struct {
	id     OrderID
	first  Sequence
	at     Time
	amount int64 // what it moved, in base units
	tag    uint32
	next   uint32 // the one after it
}

// requests are those of the last RequestWindow, oldest first, and the way from an id to its
// record. Each new one lets go of up to requestsLeave that are over: so their number is bounded by
// what is accepted in a window, and no Command pays for a whole one.
type requests struct {
	table          table
	all            slab[request]
	oldest, newest uint32
	freed          uint32 // first of the records to be used again, linked by next
	gone           uint64 // let go so far: the oldest is the next one
}

const requestsLeave = 8

// over says whether a request is remembered no more. Its record may still be there: then it is
// ignored, whatever is bound to its id later.
func (r *request) over(now Time) bool { return now-r.at >= RequestWindow }

// requested is the remembered request of an id, nil if there is none.
func (x *Exchange) requested(id *OrderID, now Time) *request {
	for i, e := x.requests.table.search(x.seen.tag(id)); i != 0; i, e = e.next() {
		if r := x.requests.all.at(i); r.id == *id && !r.over(now) {
			return r
		}
	}
	return nil
}

// note remembers an accepted request.
func (x *Exchange) note(id *OrderID, seq Sequence, now Time, amount int64) {
	if *id == (OrderID{}) {
		return
	}
	q := &x.requests
	for range requestsLeave {
		if q.oldest == 0 || !q.all.at(q.oldest).over(now) {
			break
		}
		x.leave()
	}
	h := q.freed
	if h != 0 {
		q.freed = q.all.at(h).next
	} else {
		h = q.all.next()
	}
	r := q.all.at(h)
	*r = request{id: *id, first: seq, at: now, amount: amount, tag: x.seen.tag(id)}
	q.table.insert(entryOf(r.tag, h))
	if q.newest != 0 {
		q.all.at(q.newest).next = h
	} else {
		q.oldest = h
	}
	q.newest = h
	x.digest += r.leaf(q.gone + uint64(q.table.used))
}

// leave forgets the oldest request.
func (x *Exchange) leave() {
	q := &x.requests
	h := q.oldest
	r := q.all.at(h)
	q.gone++
	x.digest += mixGone - r.leaf(q.gone)
	q.table.remove(entryOf(r.tag, h))
	if q.oldest = r.next; q.oldest == 0 {
		q.newest = 0
	}
	*r = request{next: q.freed}
	q.freed = h
}

// petition judges what a wallet's own requests have in common. The market is nil if it is refused.
func (x *Exchange) petition(c *Command, now Time) (*market, refusal) {
	if c.Wallet == 0 || uint32(c.Wallet) > x.accounts.used {
		return nil, refusal{reject: RejectWallet}
	}
	owner := x.accounts.at(uint32(c.Wallet)).owner
	if c.Owner != c.Wallet && (c.Owner == 0 || c.Owner != owner) {
		return nil, refusal{reject: RejectLink}
	}
	if r := x.requested(&c.ID, now); r != nil {
		return nil, refusal{
			reject: RejectDuplicate, first: r.first, args: [3]int64{r.amount}}
	}
	m := x.known(c.Market)
	switch {
	case m == nil:
		return nil, refusal{reject: RejectMarket}
	case (c.Kind == RedeemTokens) != (m.state == Settled):
		return nil, refusal{reject: RejectState}
	case c.Kind != RedeemTokens && (c.Size < 1 || c.Size > MaxAmount):
		return nil, refusal{reject: RejectAmount}
	}
	return m, refusal{}
}

// split answers SplitTokens: collateral goes into the vault, a pair of tokens comes out.
func (x *Exchange) split(c *Command, seq Sequence, now Time, events []Event) []Event {
	m, no := x.petition(c, now)
	if m == nil {
		return refuse(events, c, no)
	}
	a, amount := x.accounts.at(uint32(c.Wallet)), int64(c.Size)
	if a.cash.free() < amount {
		return refuse(events, c, short(&a.cash, amount))
	}
	i := x.position(c.Wallet, c.Market)
	if i == 0 {
		i = x.addPosition(c.Wallet, c.Market)
	}
	x.exchangePairs(m, x.positions.at(i), amount)
	x.note(&c.ID, seq, now, amount)
	return append(events, Event{
		Kind: Split, Market: c.Market, Wallet: c.Wallet, Size: c.Size, Order: c.ID})
}

// merge answers MergeTokens: a pair of tokens goes in, collateral comes out of the vault.
func (x *Exchange) merge(c *Command, seq Sequence, now Time, events []Event) []Event {
	m, no := x.petition(c, now)
	if m == nil {
		return refuse(events, c, no)
	}
	amount, none := int64(c.Size), entry{}
	i := x.position(c.Wallet, c.Market)
	if i == 0 {
		return refuse(events, c, short(&none, amount))
	}
	p := x.positions.at(i)
	for o := range p.tokens {
		if e := &p.tokens[o]; e.free() < amount {
			return refuse(events, c, short(e, amount))
		}
	}
	x.exchangePairs(m, p, -amount)
	x.note(&c.ID, seq, now, amount)
	return append(events, Event{
		Kind: Merged, Market: c.Market, Wallet: c.Wallet, Size: c.Size, Order: c.ID})
}

// short is the refusal of who has too little free.
func short(e *entry, need int64) refusal {
	return refusal{reject: RejectBalance, args: [3]int64{e.total, e.held, need}}
}

// exchangePairs turns collateral of a position's wallet into so many of both tokens, or back if
// pairs is negative.
func (x *Exchange) exchangePairs(m *market, p *position, pairs int64) {
	x.issue(m, pairs)
	x.postCash(x.accounts.at(uint32(p.wallet)), -pairs, 0)
	x.postToken(p, 0, pairs, 0)
	x.postToken(p, 1, pairs, 0)
}

// redeem answers RedeemTokens: all the wallet's tokens of a settled market are burnt and paid for,
// rounded down once. No order holds any of them: resolving cancelled those.
func (x *Exchange) redeem(c *Command, seq Sequence, now Time, events []Event) []Event {
	m, no := x.petition(c, now)
	if m == nil {
		return refuse(events, c, no)
	}
	i := x.position(c.Wallet, c.Market)
	if i == 0 || x.positions.at(i).tokens == ([2]entry{}) {
		return refuse(events, c, refusal{reject: RejectNothing})
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
	x.note(&c.ID, seq, now, paid)
	return append(events, Event{
		Kind: Redeemed, Market: c.Market, Wallet: c.Wallet, Size: Size(paid),
		Args: [3]int64{held[0], held[1]}, Order: c.ID,
	})
}

// worth is what so many of both tokens are paid, rounded down, if outcome 0 pays payout: in 128
// bits, as a market may have issued MaxSupply.
func worth(tokens [2]int64, payout Price) int64 {
	hi, lo := claim(tokens, payout)
	paid, _ := bits.Div64(hi, lo, uint64(PriceOne))
	return int64(paid)
}

// claim is the same in 1/10,000 of a base unit, exactly.
func claim(tokens [2]int64, payout Price) (hi, lo uint64) {
	hi0, lo0 := bits.Mul64(uint64(tokens[0]), uint64(payout))
	hi1, lo1 := bits.Mul64(uint64(tokens[1]), uint64(PriceOne-payout))
	lo, carry := bits.Add64(lo0, lo1, 0)
	return hi0 + hi1 + carry, lo
}
