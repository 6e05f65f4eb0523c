package engine

import (
	"cmp"
	"slices"
)

// cancelAll answers CancelAll by market number: no Digest covers the order of a wallet's positions.
func (x *Exchange) cancelAll(c *Command, events []Event) []Event {
	switch {
	case c.Wallet == 0 || uint32(c.Wallet) > x.accounts.used:
		return refuse(events, c, RejectWallet)
	case c.Reason != ByOwner && c.Reason != ByOperator && c.Reason != Timeout, c.Only&^allOnly != 0:
		return refuse(events, c, RejectType)
	case c.Owner == 0 && c.Reason != ByOperator:
		return refuse(events, c, RejectLink)
	case c.Market != 0 && x.markets.known(c.Market) == nil,
		c.Only&OnlyToken != 0 && (c.Market == 0 || c.Outcome > 1):
		return refuse(events, c, RejectMarket)
	}
	before := len(events)
	if c.Market != 0 {
		if i := x.position(c.Wallet, c.Market); i != 0 {
			events = x.cancelIn(x.positions.at(i), c, events)
		}
	} else {
		x.active = x.activeOf(c.Wallet, x.active[:0])
		for _, e := range x.active {
			events = x.cancelIn(x.positions.at(uint32(e)), c, events)
		}
	}
	return append(events, Event{Kind: Swept, Market: c.Market, Wallet: c.Wallet, Owner: c.Owner,
		Size: Size(len(events) - before), Order: c.ID})
}

// activeOf appends a wallet's positions with open orders, sorted, as market << 32 | position.
func (l *ledger) activeOf(w WalletNo, list []uint64) []uint64 {
	for i := l.accounts.at(uint32(w)).positions; i != 0; {
		p := l.positions.at(i)
		list = append(list, uint64(p.market)<<32|uint64(i))
		i = p.next
	}
	slices.Sort(list)
	return list
}

// cancelIn cancels the orders of one position that a CancelAll means, newest first.
func (x *Exchange) cancelIn(p *position, c *Command, events []Event) []Event {
	for h := p.orders; h != 0; {
		o, this := x.orders.at(h), h
		h = o.mineNext
		if (c.Owner == 0 || o.owner == c.Owner) && (c.Only&OnlyKey == 0 || o.key == c.Key) &&
			(c.Only&OnlyToken == 0 || o.outcome == c.Outcome) {
			events = x.drop(this, o, c.Reason, events)
		}
	}
	return events
}

func (x *Exchange) setMode(c *Command, events []Event) []Event {
	m := x.markets.known(c.Market)
	switch {
	case c.Mode > CancelOnly:
		return refuse(events, c, RejectType)
	case uint32(c.Wallet) > x.accounts.used:
		return refuse(events, c, RejectWallet)
	case c.Wallet != 0:
		a := x.accounts.at(uint32(c.Wallet))
		x.change(a.controlLeaf, func() { a.mode = c.Mode })
	case m != nil:
		x.change(m.leaf, func() { m.mode = c.Mode })
	case c.Market != 0:
		return refuse(events, c, RejectMarket)
	default:
		x.change(x.modeLeaf, func() { x.mode = c.Mode })
	}
	return append(events, Event{
		Kind: ModeSet, Mode: c.Mode, Market: c.Market, Wallet: c.Wallet, Order: c.ID})
}

func (x *Exchange) setPrevention(c *Command, events []Event) []Event {
	switch {
	case c.Wallet == 0 || uint32(c.Wallet) > x.accounts.used:
		return refuse(events, c, RejectWallet)
	case c.Prevention > AllowSelfTrade:
		return refuse(events, c, RejectType)
	}
	a := x.accounts.at(uint32(c.Wallet))
	x.change(a.controlLeaf, func() { a.prevention = c.Prevention })
	return append(events, Event{
		Kind: PreventionSet, Prevention: c.Prevention, Wallet: c.Wallet, Order: c.ID})
}

// beat is an API key whose heartbeats are watched, and how long it may be silent.
type beat struct {
	key     uint32
	timeout Time
}

// beats are the beats of each owner, sorted by key.
type beats map[WalletNo][]beat

// watch answers Arm. Owners can derive any number of keys, so watch bounds the armed ones.
func (x *Exchange) watch(c *Command, events []Event) []Event {
	_, known := x.beats.find(c.Owner, c.Key)
	switch {
	case c.Owner == 0 || uint32(c.Owner) > x.accounts.used:
		return refuse(events, c, RejectWallet)
	case c.Expiry < 0:
		return refuse(events, c, RejectExpiry)
	case !known && c.Expiry != 0 && len(x.beats[c.Owner]) >= MaxTradingKeys:
		return refuse(events, c, RejectKeys, MaxTradingKeys)
	}
	x.digest += x.beats.set(c.Owner, beat{c.Key, c.Expiry})
	return append(events, Event{
		Kind: Armed, Owner: c.Owner, Args: [3]int64{int64(c.Key), int64(c.Expiry)}, Order: c.ID})
}

// find returns the index of a key among the beats of its owner, and whether the key is there.
func (b beats) find(owner WalletNo, key uint32) (i int, known bool) {
	return slices.BinarySearchFunc(b[owner], key, func(k beat, key uint32) int {
		return cmp.Compare(k.key, key)
	})
}

// set stores the beat of a key, or deletes it if k has no timeout, and returns the Digest's change.
func (b beats) set(owner WalletNo, k beat) (grown uint64) {
	own := b[owner]
	i, known := b.find(owner, k.key)
	if known {
		grown -= own[i].leaf(owner)
		own = slices.Delete(own, i, i+1)
	}
	if k.timeout != 0 {
		grown += k.leaf(owner)
		own = slices.Insert(own, i, k)
	}
	if b[owner] = own; len(own) == 0 {
		delete(b, owner)
	}
	return grown
}

func (x *Exchange) collect(c *Command, seq Sequence, events []Event) []Event {
	first, known := x.refs[c.ID]
	switch {
	case known:
		return refuseSince(events, c, RejectDuplicate, first)
	case c.Address == (Address{}):
		return refuse(events, c, RejectWallet)
	case c.Cash < 1 || c.Cash > MaxAmount:
		return refuse(events, c, RejectAmount)
	case c.Cash > x.fees:
		return refuse(events, c, RejectBalance, int64(x.fees), 0, int64(c.Cash))
	}
	w := x.number(&c.Address)
	x.postFees(-c.Cash)
	x.postCash(x.accounts.at(uint32(w)), int64(c.Cash), 0)
	x.refer(&c.ID, seq)
	return append(events, Event{Kind: Collected, Wallet: w, Size: Size(c.Cash), Order: c.ID})
}
