package engine

// place answers Place: it judges, matches and settles the order, and rests the remainder.
func (x *Exchange) place(c *Command, seq Sequence, now Time, events []Event) []Event {
	t := taker{c: c, hint: x.hints.pop()}
	if refused := t.identify(x); refused != Accepted {
		return refuse(events, c, refused)
	}
	t.tag = x.seen.salt.tag(&c.ID)
	if _, first, known := x.seen.find(&x.orders, &c.ID, t.tag); known {
		return refuseSince(events, c, RejectDuplicate, first)
	}
	if c.Seen < x.seen.floor {
		return refuseSince(events, c, RejectRecheck, x.seen.floor)
	}
	t.id = foldID(&c.ID)
	var refused Reject
	if c.replaces() {
		refused, events = t.replace(x, now, events)
	} else {
		refused = x.admit(&t, now)
	}
	if refused != Accepted {
		if Rejects[refused].Final {
			x.digest += x.seen.remember(&t, seq, 0, nil)
		}
		return refuse(events, c, refused, t.args[:]...)
	}
	x.index.step()
	if t.position == 0 {
		t.position = x.addPosition(c.Wallet, c.Market)
	}
	events = x.match(&t, events)
	if t.filled != 0 {
		x.settle(&t)
	}
	t.assertMet()
	h, o, kind, why := uint32(0), (*order)(nil), Completed, t.left()
	if t.remaining > 0 && why == 0 {
		h, o = x.rest(&t, seq)
		kind = Placed
	}
	x.digest += x.seen.remember(&t, seq, h, o)
	events, e := another(events)
	e.Kind, e.Reason = kind, why
	e.Side, e.Outcome, e.Price = c.Side, c.Outcome, t.price
	e.Market, e.Wallet, e.Owner = c.Market, c.Wallet, c.Owner
	e.Size, e.Remaining = t.size, t.remaining
	e.Order = c.ID // on its own: see rest
	return events
}

// identify checks who sends an order: only the owner may learn whether the id is known.
func (t *taker) identify(x *Exchange) Reject {
	c := t.c
	if c.Wallet == 0 || uint32(c.Wallet) > x.accounts.used {
		return RejectWallet
	}
	t.account = x.accounts.at(uint32(c.Wallet))
	if c.Owner != c.Wallet && (c.Owner == 0 || c.Owner != t.account.owner) {
		return RejectLink
	}
	return Accepted
}

// replace is admit for an order that replaces a resting one: it judges the order as if the old one
// were gone. If it accepts the order, it cancels the old one; otherwise the old one stays in place.
func (t *taker) replace(x *Exchange, now Time, events []Event) (Reject, []Event) {
	id, _ := t.c.Replaced()
	h, o := x.seen.resting(&x.orders, &id, t.hint)
	if h == 0 || o.owner != t.c.Owner || o.wallet != t.c.Wallet {
		return RejectReplaced, events
	}
	b, k, size := &x.markets.at(uint32(o.market)).book, *x.queues.Links.At(h), o.remaining
	b.Remove(h, uint32(o.index), size)
	x.resize(o, 0, 0)
	t.account.open--
	refused := x.admit(t, now)
	t.account.open++
	x.resize(o, size, 0)
	b.putBack(h, o, k)
	if refused == Accepted {
		events = x.drop(h, o, ByOwner, events)
	}
	return refused, events
}

// admit judges an arriving order and finds its market and position. It changes nothing.
func (x *Exchange) admit(t *taker, now Time) Reject {
	c := t.c
	t.market = x.markets.known(c.Market)
	switch {
	case c.Deadline != 0 && now > c.Deadline:
		return t.refuse(RejectStale, int64(c.Deadline), int64(now))
	case c.Type > FAK || c.Side > 1 || c.PostOnly && c.Type > GTD:
		return RejectType
	case c.Type == GTD && c.Expiry <= now || c.Type != GTD && c.Expiry != 0:
		return RejectExpiry
	case t.market == nil || c.Outcome > 1:
		return RejectMarket
	case x.mode|t.market.mode|t.account.mode != Normal || t.market.state != Open:
		if refused := t.closed(x); refused != Accepted {
			return refused
		}
	}
	if refused := t.judge(); refused != Accepted {
		return refused
	}
	if refused := t.limits(); refused != Accepted {
		return refused
	}
	t.position = t.hint
	if i := t.hint; i == 0 || i > x.positions.used || !x.positions.at(i).is(c.Wallet, c.Market) {
		t.position = x.position(c.Wallet, c.Market)
	}
	if refused := t.afford(x); refused != Accepted {
		return refused
	}
	switch {
	case c.Type == FOK && !t.fillable(x):
		return RejectFOK
	case c.Type == FAK && !t.meets(x):
		return RejectFAK
	}
	return Accepted
}

func (t *taker) closed(x *Exchange) Reject {
	a, m := t.account, t.market
	switch {
	case a.mode == CancelOnly:
		t.args = packAddress(&a.address)
		return RejectBanned
	case x.mode == CancelOnly || m.mode == CancelOnly:
		return RejectCancelOnly
	case x.mode|m.mode != Normal && !t.c.PostOnly:
		return RejectPostOnlyMode
	case a.mode != Normal && !t.c.PostOnly:
		t.args = packAddress(&a.address)
		return RejectPostWallet
	case m.state == Unopened:
		return RejectUnopened
	case m.state == Paused:
		return RejectPaused
	case m.state != Open:
		return RejectClosed
	}
	return Accepted
}

// afford checks that the wallet can pay at the limit. It computes the fee only if that matters.
func (t *taker) afford(x *Exchange) Reject {
	cash, tokens := t.account.cash, entry{}
	if t.position != 0 {
		tokens = x.positions.at(t.position).tokens[t.c.Outcome]
	}
	free, freeTokens := cash.free(), tokens.free()
	if t.c.Side == Sell {
		free = freeTokens
	}
	if free >= t.enough() {
		return Accepted
	}
	e := cash
	if t.c.Side == Sell {
		e = tokens
	}
	if need := t.need(); free < need {
		return t.refuse(RejectBalance, e.total, e.held, need)
	}
	return Accepted
}

// fillable is the dry run of a FOK: it reports whether match would fill the order from the same
// resting orders at the same prices. Orders of the same wallet do not count, or end the run, as its
// prevention says.
func (t *taker) fillable(x *Exchange) bool {
	book, left, cost := &t.market.book, t.size, int64(0)
	mixed := t.account.prevention != AllowSelfTrade && t.position != 0 &&
		x.positions.at(t.position).orders != 0
	for at := book.Best[t.side^1]; Within(t.side, t.index, at); at = book.behind(t.side, at) {
		offered, ends := book.Level(at).Size, false
		if mixed {
			offered, ends = t.offered(x, book.Level(at), left)
		}
		size := min(offered, left)
		left -= size
		price := Price(at) * t.market.tick
		if t.c.Outcome == 1 {
			price = PriceOne - price
		}
		cost += int64(Cost(size, price))
		if left == 0 {
			return t.c.Side == Sell || cost <= int64(t.c.Cash)
		}
		if ends {
			break
		}
	}
	return false
}

// meets is the dry run of a FAK: it reports whether the order meets anything within its limit. Own
// resting orders that the prevention would cancel do not count: a refusal must change nothing.
func (t *taker) meets(x *Exchange) bool {
	book := &t.market.book
	for at := book.Best[t.side^1]; Within(t.side, t.index, at); at = book.behind(t.side, at) {
		if sum, ends := t.offered(x, book.Level(at), Lot); sum != 0 || ends {
			return true
		}
	}
	return false
}

// offered adds up what the order can get from a level with orders of its own wallet, until the sum
// is enough. ends says that such an order stops the arriving order, or trades with it.
func (t *taker) offered(x *Exchange, l *level, enough Size) (sum Size, ends bool) {
	for h := l.Head; h != 0 && sum < enough; h = x.queues.behind(h) {
		o := x.orders.at(h)
		switch {
		case o.wallet != t.c.Wallet:
			sum += o.remaining
		case t.account.prevention != ExpireResting:
			return sum, true
		}
	}
	return sum, false
}

// match fills the arriving order from the resting ones, best price first and oldest first.
func (x *Exchange) match(t *taker, events []Event) []Event {
	book := &t.market.book
	for t.remaining > 0 || t.budget {
		h := book.front(t.side, t.index)
		if h == 0 {
			break
		}
		o := x.orders.at(h)
		size := t.portion(o)
		if size == 0 {
			break
		}
		if p := t.account.prevention; o.wallet == t.c.Wallet && p != AllowSelfTrade {
			if p != ExpireArriving {
				events = x.drop(h, o, SelfTrade, events)
			}
			if t.stopped = p != ExpireResting; t.stopped {
				break
			}
			continue
		}
		fee, how := x.fill(t, o, size)
		var e *Event
		events, e = another(events)
		e.Kind, e.Settlement = Filled, how
		e.Size, e.Fee, e.Remaining = size, fee, o.remaining
		o.tell(e)
		if o.remaining > 0 {
			break // the arriving order is complete, or cannot pay for more
		}
		fetchNext(x, book, t.side, book.Pop(uint32(o.index)))
		x.retire(h, o)
	}
	return events
}

// fill trades size between a resting order and the arriving one, at the resting order's price: a
// token changes hands, or two buyers make a pair, or two sellers share a pair's 1.00.
func (x *Exchange) fill(t *taker, o *order, size Size) (fee Cash, how Settlement) {
	cost, how := int64(Cost(size, o.price)), Transfer
	t.market.book.Level(uint32(o.index)).Size -= size
	if o.side == Buy {
		x.resize(o, o.remaining-size, cost)
		x.postToken(x.positions.at(o.position), o.outcome, int64(size), 0)
	} else {
		x.resize(o, o.remaining-size, int64(size))
		x.postCash(x.accounts.at(uint32(o.wallet)), cost, 0)
	}
	if o.outcome != t.c.Outcome {
		cost, how = int64(size)-cost, Mint
		if o.side == Buy {
			t.pairs += int64(size)
		} else {
			t.pairs, how = t.pairs-int64(size), Merge
		}
	}
	if t.market.fee.Rate != 0 {
		fee = t.charge(size, o.price, cost)
		t.fee += int64(fee)
	}
	t.cash += cost
	t.filled += size
	t.remaining = max(t.remaining-size, 0)
	return fee, how
}

// settle posts the sum of what the arriving order paid and got in all its fills.
func (l *ledger) settle(t *taker) {
	t.assertFair()
	p, tokens := l.positions.at(t.position), int64(t.filled)
	if t.c.Side == Buy {
		l.postCash(t.account, -t.cash-t.fee, 0)
		l.postToken(p, t.c.Outcome, tokens, 0)
	} else {
		l.postCash(t.account, t.cash-t.fee, 0)
		l.postToken(p, t.c.Outcome, -tokens, 0)
	}
	if t.fee != 0 {
		l.postFees(Cash(t.fee))
	}
	if t.pairs != 0 {
		l.issue(t.market, t.pairs)
	}
}

// rest puts what is left of an arriving order into the book.
func (x *Exchange) rest(t *taker, seq Sequence) (uint32, *order) {
	c, m := t.c, t.market
	h := m.book.Rest(t.index, t.side, t.remaining)
	o := x.orders.upTo(h)
	x.digest -= m.rankLeaf()
	m.book.rank += 1 + next*uint64(x.version-Oldest)
	x.digest += m.rankLeaf()
	*o = order{} // filled in place, like an Event
	o.wallet, o.owner, o.position, o.market = c.Wallet, c.Owner, t.position, c.Market
	o.index, o.price, o.side, o.outcome = uint16(t.index), t.price, c.Side, c.Outcome
	o.key, o.first, o.rank = c.Key, seq, m.book.rank
	o.id = c.ID // on its own: an assignment with several values would copy the id twice
	o.tag, o.expiry = t.tag, c.Expiry
	o.fold = foldOrder(o, t.id)
	x.resize(o, t.remaining, 0)
	x.enlist(h, o, t.account, x.positions.at(t.position))
	return h, o
}
