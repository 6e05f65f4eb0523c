package engine

import "fmt"

// ledger is the double-entry account of all assets; every asset sums to zero. Collateral lies in
// wallets, in vaults, in the fee account and, negative, in the external account. A token lies in
// wallets, in its market's external account and, negative, in the market's issued.
type ledger struct {
	digest uint64 // of all trading state, since every posting changes it

	accounts  slab[account] // by WalletNo
	positions slab[position]
	index     table // of positions, by wallet and market
	external  Cash  // at most 0
	fees      Cash

	wallets    map[Address]WalletNo
	refs       map[OrderID]Sequence // the operators' references
	references slab[OrderID]        // the keys of refs, in order
}

// entry is one account of one asset, in base units. held is the part of total behind open orders.
type entry struct {
	total, held int64
}

// free returns what an entry can still spend or pay out.
func (e *entry) free() int64 { return e.total - e.held }

// account is a wallet: one cache line.
type account struct {
	cash      entry
	fold      uint64 // of address and number
	address   Address
	owner     WalletNo // may trade for the wallet; 0 if nobody else may
	open      uint32   // open orders
	positions uint32   // first position with open orders

	mode       Mode
	prevention Prevention
	_          [6]byte
}

// position is a wallet's tokens of one market: one cache line. Empty positions stay.
type position struct {
	tokens [2]entry
	fold   uint64 // of wallet and market
	wallet WalletNo
	market MarketNo
	orders uint32 // first open order
	next   uint32 // neighbours among the wallet's positions with open orders
	prev   uint32
	_      uint32
}

func (p *position) is(w WalletNo, m MarketNo) bool { return p.wallet == w && p.market == m }

func (p *position) foldOf(o Outcome) uint64 { return p.fold + uint64(o)*mixAsset }

// change does how, which changes the leaf of one thing.
func (l *ledger) change(leaf func() uint64, how func()) {
	l.digest -= leaf()
	how()
	l.digest += leaf()
}

// post changes an entry and the Digest. fold is the entry's.
func (l *ledger) post(e *entry, fold uint64, total, held int64) {
	l.digest -= e.leaf(fold)
	e.total += total
	e.held += held
	if e.held < 0 || e.held > e.total {
		panic(fmt.Sprintf("BUG: account holds %d, reserved %d", e.total, e.held))
	}
	l.digest += e.leaf(fold)
}

func (l *ledger) postCash(a *account, total, held int64) {
	l.post(&a.cash, a.fold, total, held)
}

func (l *ledger) postToken(p *position, o Outcome, total, held int64) {
	l.post(&p.tokens[o], p.foldOf(o), total, held)
}

func (l *ledger) postFees(amount Cash) {
	l.digest -= l.feesLeaf()
	l.fees += amount
	if l.fees < 0 {
		panic(fmt.Sprintf("BUG: fee account holds %d", l.fees))
	}
	l.digest += l.feesLeaf()
}

// resize sets what remains of an order and adapts its reserve: no other function changes reserves.
// paid leaves the entry that backs the order in the same posting.
func (l *ledger) resize(o *order, to Size, paid int64) {
	l.digest -= o.leaf()
	held := reserved(o.side, o.price, to-o.remaining)
	o.remaining = to
	l.digest += o.leaf()
	e, fold := backing(o.side, o.outcome, l.accounts.at(uint32(o.wallet)), l.positions.at(o.position))
	l.post(e, fold, -paid, held)
}

// backing returns the entry that backs an order of this side, and its fold. Both conditions compile
// to selections, because the processor cannot predict the side. The mask saves a check of bounds.
func backing(s Side, o Outcome, a *account, p *position) (e *entry, fold uint64) {
	cash, cashFold := &a.cash, a.fold
	e, fold = &p.tokens[o&1], p.foldOf(o)
	if s == Buy {
		e = cash
	}
	if s == Buy {
		fold = cashFold
	}
	return e, fold
}

// number returns the wallet of an address and makes a missing one.
func (l *ledger) number(address *Address) WalletNo {
	if no, ok := l.wallets[*address]; ok {
		return no
	}
	no := WalletNo(l.accounts.next())
	l.wallets[*address] = no
	a := l.accounts.at(uint32(no))
	a.address, a.fold = *address, foldAccount(address, no)
	l.digest += a.cash.leaf(a.fold)
	return no
}

func positionTag(w WalletNo, m MarketNo) uint32 {
	h := mix(uint64(w), uint64(m))
	return uint32(h>>32) ^ uint32(h)
}

// position returns the number of the wallet's position in a market, 0 if there is none.
func (l *ledger) position(w WalletNo, m MarketNo) uint32 {
	i, e := l.index.search(positionTag(w, m))
	for i != 0 && !l.positions.at(i).is(w, m) {
		i, e = e.next()
	}
	return i
}

// addPosition makes the position of a wallet in a market. It must not exist yet.
func (l *ledger) addPosition(w WalletNo, m MarketNo) uint32 {
	no := l.positions.next()
	p := l.positions.at(no)
	p.wallet, p.market, p.fold = w, m, mix(uint64(w)<<32|uint64(m), mixAsset)
	l.index.insert(entryOf(positionTag(w, m), no))
	l.digest += p.tokens[0].leaf(p.foldOf(0)) + p.tokens[1].leaf(p.foldOf(1))
	return no
}

// deposit answers Deposit. Withdrawn tokens come back from the external account: the vault backs
// them all the time. Every further token brings its backing: 1.00 goes from outside into the vault,
// the wallet gets the token and the external account its complement.
func (x *Exchange) deposit(c *Command, seq Sequence, events []Event) []Event {
	amount, events := x.transfer(c, events)
	if amount == 0 {
		return events
	}
	fresh, m := amount, x.markets.known(c.Market)
	if m != nil {
		fresh -= min(amount, int64(m.external[c.Outcome]))
	}
	switch {
	case fresh > MaxSupply+int64(x.external):
		return refuse(events, c, RejectAmount)
	case m != nil && m.state == Settled && fresh != 0:
		return refuse(events, c, RejectState) // a settled market issues no tokens
	}
	w := x.number(&c.Address)
	x.change(x.externalLeaf, func() { x.external -= Cash(fresh) })
	if m == nil {
		x.postCash(x.accounts.at(uint32(w)), amount, 0)
	} else {
		p := x.position(w, c.Market)
		if p == 0 {
			p = x.addPosition(w, c.Market)
		}
		x.issue(m, fresh)
		x.export(m, c.Outcome.Other(), Size(fresh))
		x.export(m, c.Outcome, Size(fresh-amount))
		x.postToken(x.positions.at(p), c.Outcome, amount, 0)
	}
	x.refer(&c.ID, seq)
	return append(events, moved(c, Deposited, w, amount))
}

func (x *Exchange) withdraw(c *Command, seq Sequence, events []Event) []Event {
	amount, events := x.transfer(c, events)
	if amount == 0 {
		return events
	}
	w := x.wallets[c.Address]
	if w == 0 {
		return refuse(events, c, RejectWallet)
	}
	a := x.accounts.at(uint32(w))
	e, p := &a.cash, (*position)(nil)
	if c.Market != 0 {
		e = &entry{}
		if i := x.position(w, c.Market); i != 0 {
			p = x.positions.at(i)
			e = &p.tokens[c.Outcome]
		}
	}
	if e.free() < amount {
		return refuse(events, c, RejectBalance, e.total, e.held, amount)
	}
	if c.Market == 0 {
		x.change(x.externalLeaf, func() { x.external += Cash(amount) })
		x.postCash(a, -amount, 0)
	} else {
		x.export(x.markets.at(uint32(c.Market)), c.Outcome, Size(amount))
		x.postToken(p, c.Outcome, -amount, 0)
	}
	x.refer(&c.ID, seq)
	return append(events, moved(c, Withdrawn, w, amount))
}

// transfer judges a Deposit or a Withdraw and returns its amount, 0 if it is refused.
func (x *Exchange) transfer(c *Command, events []Event) (int64, []Event) {
	if first, ok := x.refs[c.ID]; ok {
		return 0, refuseSince(events, c, RejectDuplicate, first)
	}
	amount := int64(c.Cash)
	if c.Market != 0 {
		amount = int64(c.Size)
	}
	switch {
	case c.Market != 0 && (x.markets.known(c.Market) == nil || c.Outcome > 1):
		return 0, refuse(events, c, RejectMarket)
	case c.Address == (Address{}):
		return 0, refuse(events, c, RejectWallet)
	case amount < 1 || amount > MaxAmount:
		return 0, refuse(events, c, RejectAmount)
	}
	return amount, events
}

func (l *ledger) refer(id *OrderID, seq Sequence) {
	if *id == (OrderID{}) {
		return
	}
	l.refs[*id] = seq
	*l.references.at(l.references.next()) = *id
	l.digest += mix(fold32((*[32]byte)(id)), mixRef)
}

func moved(c *Command, kind EventKind, w WalletNo, amount int64) Event {
	return Event{Kind: kind, Market: c.Market, Outcome: c.Outcome, Wallet: w,
		Size: Size(amount), Order: c.ID}
}

// link answers Link. The owner of a wallet never changes; an owner may have many wallets.
func (x *Exchange) link(c *Command, events []Event) []Event {
	if c.Address == (Address{}) || c.Holder == (Address{}) {
		return refuse(events, c, RejectWallet)
	}
	if w := x.wallets[c.Address]; w != 0 {
		owner := x.accounts.at(uint32(w)).owner
		if owner != 0 && owner != x.wallets[c.Holder] {
			return refuse(events, c, RejectLink)
		}
	}
	w, owner := x.number(&c.Address), x.number(&c.Holder)
	a := x.accounts.at(uint32(w))
	x.change(a.linkLeaf, func() { a.owner = owner })
	return append(events, Event{Kind: Linked, Wallet: w, Owner: owner, Order: c.ID})
}
