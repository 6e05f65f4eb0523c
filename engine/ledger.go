package engine

import "fmt"

// The ledger is double entry. Collateral lies with wallets, with the vault of each market and with
// the external account, which is negative by all that was paid in; each token lies with wallets,
// with its market's vault, negative by what it issued, and with the market's external account.
// Every asset sums to zero at all times.

// ledger is what everybody has: wallets, positions, the external account and the fee account.
type ledger struct {
	digest uint64 // of all trading state: every posting changes it

	accounts  slab[account] // by WalletNo
	wallets   map[Address]WalletNo
	positions slab[position]
	index     table // of positions, by wallet and market
	external  Cash  // at most 0: less all collateral that was paid in
	fees      Cash  // the fee account

	refs       map[OrderID]Sequence // the operators' references
	references slab[OrderID]        // the keys of refs, in order
}

// entry is one account of one asset, in base units; held of total backs open orders.
type entry struct {
	total, held int64
}

// free is what an entry can still spend or pay out.
func (e *entry) free() int64 { return e.total - e.held }

// account is a wallet: one cache line.
type account struct {
	cash      entry
	fold      uint64 // digest of address and number
	address   Address
	owner     WalletNo // the address that may trade for it, 0 if only itself
	open      uint32   // open orders
	positions uint32   // first position that has some

	mode       Mode
	prevention Prevention
	_          [6]byte
}

// position is what a wallet has in one market: one cache line. Positions stay when they are empty.
type position struct {
	tokens [2]entry
	fold   uint64 // digest of wallet and market
	wallet WalletNo
	market MarketNo
	orders uint32 // first open order
	next   uint32 // neighbours among the wallet's positions with open orders
	prev   uint32
	_      uint32
}

// is reports whether the position is that wallet's in that market.
func (p *position) is(w WalletNo, m MarketNo) bool { return p.wallet == w && p.market == m }

// foldOf names the token account of one outcome.
func (p *position) foldOf(o Outcome) uint64 { return p.fold + uint64(o)*mixAsset }

// post changes an entry and its digest. fold names the entry.
func (l *ledger) post(e *entry, fold uint64, total, held int64) {
	l.digest -= e.leaf(fold)
	e.total += total
	e.held += held
	if e.held < 0 || e.held > e.total {
		panic(fmt.Sprintf("BUG: account holds %d, reserved %d", e.total, e.held))
	}
	l.digest += e.leaf(fold)
}

// postCash changes a wallet's collateral.
func (l *ledger) postCash(a *account, total, held int64) {
	l.post(&a.cash, a.fold, total, held)
}

// postToken changes a wallet's tokens of one outcome.
func (l *ledger) postToken(p *position, o Outcome, total, held int64) {
	l.post(&p.tokens[o], p.foldOf(o), total, held)
}

// postFees credits the fee account, or debits it if amount is negative.
func (l *ledger) postFees(amount Cash) {
	l.digest -= feesLeaf(l.fees)
	l.fees += amount
	if l.fees < 0 {
		panic(fmt.Sprintf("BUG: fee account holds %d", l.fees))
	}
	l.digest += feesLeaf(l.fees)
}

// resize sets what remains of an order and moves its reserve with it, the one place where reserves
// move; paid leaves the account that backs the order in the same breath.
func (l *ledger) resize(o *order, to Size, paid int64) {
	l.digest -= o.leaf()
	held := reserved(o.side, o.price, to-o.remaining)
	o.remaining = to
	l.digest += o.leaf()
	e, fold := backing(o.side, o.outcome, l.accounts.at(uint32(o.wallet)), l.positions.at(o.position))
	l.post(e, fold, -paid, held)
}

// backing is what backs an order of this side, and what names that: cash or tokens. Which side
// comes next cannot be foreseen, so that nothing here branches on it. The outcome is 0 or 1, which
// the mask tells the compiler.
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

// number is the wallet of an address, made if it is new.
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

// positionTag is the hash of a wallet and a market in the table of positions.
func positionTag(w WalletNo, m MarketNo) uint32 {
	h := mix(uint64(w), uint64(m))
	return uint32(h>>32) ^ uint32(h)
}

// position is the number of the wallet's position in a market, 0 if it has none yet.
func (l *ledger) position(w WalletNo, m MarketNo) uint32 {
	i, e := l.index.search(positionTag(w, m))
	for i != 0 && !l.positions.at(i).is(w, m) {
		i, e = e.next()
	}
	return i
}

// isPosition says whether i is the number of the wallet's position in a market. Any i will do.
func (l *ledger) isPosition(i uint32, w WalletNo, m MarketNo) bool {
	return i != 0 && i <= l.positions.used && l.positions.at(i).is(w, m)
}

// addPosition makes the position that position did not find.
func (l *ledger) addPosition(w WalletNo, m MarketNo) uint32 {
	no := l.positions.next()
	p := l.positions.at(no)
	p.wallet, p.market, p.fold = w, m, foldPosition(w, m)
	l.index.insert(entryOf(positionTag(w, m), no))
	l.digest += p.tokens[0].leaf(p.foldOf(0)) + p.tokens[1].leaf(p.foldOf(1))
	return no
}

// deposit answers Deposit. Tokens that are outside come back from there: the vault backs them all
// the time, and what they are paid lies there once the market is settled. What is more comes fully
// backed: from outside 1.00 goes into the vault for each share, the wallet gets the token and the
// outside its complement. So nobody loses a token by taking it out, and none is backed twice.
func (x *Exchange) deposit(c *Command, seq Sequence, events []Event) []Event {
	amount, refused := x.transfer(c)
	if refused.Kind != 0 {
		return append(events, refused)
	}
	fresh, m := amount, x.markets.known(c.Market)
	if m != nil {
		fresh -= min(amount, int64(m.external[c.Outcome]))
	}
	switch {
	case fresh > MaxSupply+int64(x.external):
		return refuse(events, c, RejectAmount)
	case m != nil && m.state == Settled && fresh != 0:
		return refuse(events, c, RejectState) // nothing backs what is paid out
	}
	w := x.number(&c.Address)
	x.digest -= externalLeaf(x.external)
	x.external -= Cash(fresh)
	x.digest += externalLeaf(x.external)
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

// withdraw answers Withdraw, out of what is free.
func (x *Exchange) withdraw(c *Command, seq Sequence, events []Event) []Event {
	amount, refused := x.transfer(c)
	if refused.Kind != 0 {
		return append(events, refused)
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
		x.digest -= externalLeaf(x.external)
		x.external += Cash(amount)
		x.digest += externalLeaf(x.external)
		x.postCash(a, -amount, 0)
	} else {
		x.export(x.markets.at(uint32(c.Market)), c.Outcome, Size(amount))
		x.postToken(p, c.Outcome, -amount, 0)
	}
	x.refer(&c.ID, seq)
	return append(events, moved(c, Withdrawn, w, amount))
}

// transfer judges what Deposit and Withdraw have in common. refused has no Kind if nothing is wrong.
func (x *Exchange) transfer(c *Command) (amount int64, refused Event) {
	if first, ok := x.refs[c.ID]; ok {
		return 0, rejectedSince(c, RejectDuplicate, first)
	}
	amount = int64(c.Cash)
	if c.Market != 0 {
		if x.markets.known(c.Market) == nil || c.Outcome > 1 {
			return 0, rejected(c, RejectMarket)
		}
		amount = int64(c.Size)
	}
	switch {
	case c.Address == (Address{}):
		return 0, rejected(c, RejectWallet)
	case amount < 1 || amount > MaxAmount:
		return 0, rejected(c, RejectAmount)
	}
	return amount, refused
}

// refer remembers an operator's reference for ever.
func (l *ledger) refer(id *OrderID, seq Sequence) {
	if *id == (OrderID{}) {
		return
	}
	l.refs[*id] = seq
	*l.references.at(l.references.next()) = *id
	l.digest += mix(fold32((*[32]byte)(id)), mixRef)
}

// moved is the Event of a Deposit or Withdraw.
func moved(c *Command, kind EventKind, w WalletNo, amount int64) Event {
	return Event{Kind: kind, Market: c.Market, Outcome: c.Outcome, Wallet: w,
		Size: Size(amount), Order: c.ID}
}

// link answers Link. A wallet has one owner for good; an owner may have many wallets.
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
	x.digest -= a.linkLeaf()
	a.owner = owner
	x.digest += a.linkLeaf()
	return append(events, Event{Kind: Linked, Wallet: w, Owner: owner, Order: c.ID})
}
