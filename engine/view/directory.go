package view

import (
	"fmt"
	"hash/maphash"
	"slices"
	"sync"
	"sync/atomic"

	"clobd/engine"
)

// Market is what readers know of a listed condition: an immutable row, which a change replaces.
type Market struct {
	No engine.MarketNo
	engine.Listing
	State  engine.MarketState
	Mode   engine.Mode
	Payout engine.Price // of outcome 0, once the State is Settled
	// Ended is when the market was closed, or resolved while it was not, and Resolved when it was
	// resolved; 0 before. Of what a Board of format 1 has as ended, the last change counts.
	Ended, Resolved engine.Time
}

// enter brings the market into a State at a Time.
func (m *Market) enter(s engine.MarketState, now engine.Time) {
	if m.State = s; s < engine.Closed {
		m.Ended = 0
	} else if m.Ended == 0 {
		m.Ended = now
	}
	if s == engine.Settled && m.Resolved == 0 {
		m.Resolved = now
	}
}

// Directory is what ingress must know to turn requests into Commands: tokens, conditions, wallets,
// links and keys. The writer changes it inside Board.Publish; any goroutine may read it.
type Directory struct {
	seed maphash.Seed // of all tables: strangers choose their keys

	markets pages[marketRow] // by MarketNo
	wallets pages[walletRow] // by WalletNo

	tokens     table // to MarketNo<<1 | Outcome
	conditions table // to MarketNo
	addresses  table // to WalletNo

	listed, numbered atomic.Uint32 // rows in use; only the writer changes them
	mode             atomic.Uint32
	changes          atomic.Uint64 // of listings, states, rules and modes, each counted when visible
	revoked          atomic.Uint32 // revoked trading keys

	mutex sync.RWMutex                    // guards what follows
	owned map[engine.WalletNo]*holding    // by owner
	modes map[engine.WalletNo]engine.Mode // of the few wallets that are restricted
}

// marketRow points to a market's current row and Snapshot.
type marketRow struct {
	market   atomic.Pointer[Market]
	snapshot atomic.Pointer[Snapshot]
	draft    int32 // the writer's own: 1 + index in Board.drafts while a frame is folded, else 0
}

// walletRow is 32 bytes: two to a cache line.
type walletRow struct {
	address   engine.Address // written once, before lastNamed
	owner     atomic.Uint32
	lastNamed atomic.Uint64 // 0: no such wallet
}

// holding is what an owner has besides its own account.
type holding struct {
	wallets []engine.WalletNo // linked wallets, first linked first
	keys    [keyClasses][]Key // oldest first
}

const keyClasses = engine.BuilderKey + 1

// Key is an API key on record.
type Key struct {
	Class   engine.KeyClass
	Number  uint32
	Revoked bool
	Timeout engine.Time // the longest time without a heartbeat, in milliseconds; 0: unlimited
	Created engine.Time // when it came on record
	Changed engine.Time // when it was last revoked or restored
}

func newDirectory(seed maphash.Seed) *Directory {
	d := &Directory{seed: seed, owned: make(map[engine.WalletNo]*holding),
		modes: make(map[engine.WalletNo]engine.Mode)}
	for _, t := range []*table{&d.tokens, &d.conditions, &d.addresses} {
		t.current.Store(newCells(tableBits))
	}
	return d
}

func (d *Directory) hash(key []byte) uint32 { return uint32(maphash.Bytes(d.seed, key) >> 32) }

// Token returns the market of t, and which of its outcomes t is.
func (d *Directory) Token(t engine.Token) (*Market, engine.Outcome, bool) {
	_, m, o := d.token(&t)
	return m, o, m != nil
}

// token is Token with the row from which it read the Market.
func (d *Directory) token(t *engine.Token) (*marketRow, *Market, engine.Outcome) {
	h, c := d.hash(t[:]), d.tokens.current.Load()
	for ref, at := c.seek(h, 0); ref != 0; ref, at = c.seek(h, at) {
		row, o := d.markets.at(ref>>1), engine.Outcome(ref&1)
		if m := row.market.Load(); m.Tokens[o] == *t {
			return row, m, o
		}
	}
	return nil, nil, 0
}

// Market returns the row of market no, nil if there is none. Numbers start at 1 and have no gaps.
func (d *Directory) Market(no engine.MarketNo) *Market {
	if row := d.markets.at(uint32(no)); row != nil {
		return row.market.Load()
	}
	return nil
}

// Condition returns the row of the condition, nil if it is not listed.
func (d *Directory) Condition(c engine.Condition) *Market {
	_, m := d.condition(&c)
	return m
}

func (d *Directory) condition(key *engine.Condition) (*marketRow, *Market) {
	h, c := d.hash(key[:]), d.conditions.current.Load()
	for ref, at := c.seek(h, 0); ref != 0; ref, at = c.seek(h, at) {
		row := d.markets.at(ref)
		if m := row.market.Load(); m.Condition == *key {
			return row, m
		}
	}
	return nil, nil
}

// Wallet returns the number of an address that was ever deposited to or linked.
func (d *Directory) Wallet(a engine.Address) (engine.WalletNo, bool) {
	h, c := d.hash(a[:]), d.addresses.current.Load()
	for ref, at := c.seek(h, 0); ref != 0; ref, at = c.seek(h, at) {
		if d.wallets.at(ref).address == a {
			return engine.WalletNo(ref), true
		}
	}
	return 0, false
}

// Address returns the address of wallet or owner no.
func (d *Directory) Address(no engine.WalletNo) (engine.Address, bool) {
	row := d.wallet(no)
	if row == nil {
		return engine.Address{}, false
	}
	return row.address, true
}

// Owner returns the owner linked to a wallet, 0 if there is none.
func (d *Directory) Owner(wallet engine.WalletNo) engine.WalletNo {
	row := d.wallet(wallet)
	if row == nil {
		return 0
	}
	return engine.WalletNo(row.owner.Load())
}

// Owned appends the wallets linked to an owner to dst, first linked first.
func (d *Directory) Owned(owner engine.WalletNo, dst []engine.WalletNo) []engine.WalletNo {
	d.mutex.RLock()
	defer d.mutex.RUnlock()
	if h := d.owned[owner]; h != nil {
		dst = append(dst, h.wallets...)
	}
	return dst
}

// Keys appends an owner's API keys of one class on record to dst, oldest first.
func (d *Directory) Keys(owner engine.WalletNo, class engine.KeyClass, dst []Key) []Key {
	d.mutex.RLock()
	defer d.mutex.RUnlock()
	if h := d.owned[owner]; h != nil {
		for i := range h.keys[class] {
			if k := &h.keys[class][i]; k.Created != 0 {
				dst = append(dst, *k)
			}
		}
	}
	return dst
}

// Key returns one of an owner's API keys. The bool is false if the key is not on record.
func (d *Directory) Key(owner engine.WalletNo, class engine.KeyClass, number uint32) (Key, bool) {
	d.mutex.RLock()
	defer d.mutex.RUnlock()
	if h := d.owned[owner]; h != nil {
		if k := h.key(class, number); k != nil && k.Created != 0 {
			return *k, true
		}
	}
	return Key{}, false
}

// Armed calls each with every key that must send heartbeats, in any order.
func (d *Directory) Armed(each func(owner engine.WalletNo, number uint32, timeout engine.Time)) {
	d.mutex.RLock()
	defer d.mutex.RUnlock()
	for owner, h := range d.owned {
		for i := range h.keys[engine.TradingKey] {
			if k := &h.keys[engine.TradingKey][i]; k.Timeout != 0 {
				each(owner, k.Number, k.Timeout)
			}
		}
	}
}

func (h *holding) key(class engine.KeyClass, number uint32) *Key {
	for i := range h.keys[class] {
		if k := &h.keys[class][i]; k.Number == number {
			return k
		}
	}
	return nil
}

// holding returns an owner's holding and makes a missing one. Callers hold mutex.
func (d *Directory) holding(owner engine.WalletNo) *holding {
	h := d.owned[owner]
	if h == nil {
		h = new(holding)
		d.owned[owner] = h
	}
	return h
}

func (d *Directory) link(wallet, owner engine.WalletNo) {
	row := d.wallet(wallet)
	if engine.WalletNo(row.owner.Load()) == owner {
		return
	}
	d.mutex.Lock()
	defer d.mutex.Unlock()
	row.owner.Store(uint32(owner))
	h := d.holding(owner)
	h.wallets = append(h.wallets, wallet)
}

func (d *Directory) setKey(e *engine.Event, now engine.Time) {
	class, number := engine.KeyClass(e.Args[1]), uint32(e.Args[0])
	d.mutex.Lock()
	defer d.mutex.Unlock()
	k := d.holding(e.Owner).record(class, number)
	if k.Created == 0 {
		k.Created, k.Changed = now, now
	}
	revoked := e.Args[2] != 0
	if revoked == k.Revoked {
		return
	}
	k.Revoked, k.Changed = revoked, now
	if class == engine.TradingKey && revoked {
		d.revoked.Add(1)
	} else if class == engine.TradingKey {
		d.revoked.Add(^uint32(0))
	}
}

// Revoked reports whether a trading key is revoked. It takes a lock only if any key is revoked.
func (d *Directory) Revoked(a engine.Address, number uint32) bool {
	if d.revoked.Load() == 0 {
		return false
	}
	owner, known := d.Wallet(a)
	if !known {
		return false
	}
	k, known := d.Key(owner, engine.TradingKey, number)
	return known && k.Revoked
}

// WalletMode returns the mode of one wallet.
func (d *Directory) WalletMode(wallet engine.WalletNo) engine.Mode {
	d.mutex.RLock()
	defer d.mutex.RUnlock()
	return d.modes[wallet]
}

func (d *Directory) setWalletMode(wallet engine.WalletNo, m engine.Mode) {
	d.mutex.Lock()
	defer d.mutex.Unlock()
	if m == engine.Normal {
		delete(d.modes, wallet)
		return
	}
	d.modes[wallet] = m
}

func (d *Directory) arm(e *engine.Event) {
	d.mutex.Lock()
	defer d.mutex.Unlock()
	h := d.holding(e.Owner)
	k := h.record(engine.TradingKey, uint32(e.Args[0]))
	if k.Timeout = engine.Time(e.Args[1]); k.Timeout == 0 && k.Created == 0 {
		keys := &h.keys[engine.TradingKey]
		*keys = slices.DeleteFunc(*keys, func(k Key) bool { return k.Timeout == 0 && k.Created == 0 })
	}
}

// record is key, but makes a missing record. A key that only sends heartbeats has a record without
// a time of creation, and does not count as on record.
func (h *holding) record(class engine.KeyClass, number uint32) *Key {
	if k := h.key(class, number); k != nil {
		return k
	}
	keys := append(h.keys[class], Key{Class: class, Number: number})
	h.keys[class] = keys
	return &keys[len(keys)-1]
}

// LastNamed returns the last Sequence of the newest frame that named this wallet or owner, 0 if
// none did. A reader that waits until the index has this Sequence sees every acknowledged write.
func (d *Directory) LastNamed(no engine.WalletNo) engine.Sequence {
	row := d.wallet(no)
	if row == nil {
		return 0
	}
	return engine.Sequence(row.lastNamed.Load())
}

// wallet returns the row of a known number, else nil. Loading lastNamed makes address safe to read.
func (d *Directory) wallet(no engine.WalletNo) *walletRow {
	row := d.wallets.at(uint32(no))
	if row == nil || row.lastNamed.Load() == 0 {
		return nil
	}
	return row
}

// Mode returns the mode of all markets.
func (d *Directory) Mode() engine.Mode { return engine.Mode(d.mode.Load()) }

func (d *Directory) change(row *marketRow, how func(*Market)) {
	m := *row.market.Load()
	how(&m)
	row.market.Store(&m)
	d.changes.Add(1)
}

// list adds market no, or updates a market that is listed again. Its tokens never change.
func (d *Directory) list(no engine.MarketNo, l *engine.Listing, s engine.MarketState) *marketRow {
	m := &Market{No: no, Listing: *l, State: s}
	if old := d.Market(no); old != nil {
		if old.Condition != m.Condition || old.Tokens != m.Tokens || old.Tick != m.Tick {
			panic(fmt.Sprintf("BUG: market %d is listed again as another one", no))
		}
		row := d.markets.at(uint32(no))
		d.change(row, func(m *Market) { m.Listing, m.State = *l, s })
		return row
	}
	if uint32(no) != d.listed.Load()+1 || no >= 1<<31 || m.Tick == 0 {
		panic(fmt.Sprintf("BUG: market %d with tick %d listed after %d others",
			no, m.Tick, d.listed.Load()))
	}
	for _, t := range m.Tokens {
		if other, _, known := d.Token(t); known {
			panic(fmt.Sprintf("BUG: market %d has a token of market %d", no, other.No))
		}
	}
	if other := d.Condition(m.Condition); other != nil {
		panic(fmt.Sprintf("BUG: market %d has the condition of market %d", no, other.No))
	}
	row := d.markets.grow(uint32(no))
	row.market.Store(m)
	for o := range m.Tokens {
		d.tokens.insert(d.hash(m.Tokens[o][:]), uint32(no)<<1|uint32(o))
	}
	d.conditions.insert(d.hash(m.Condition[:]), uint32(no))
	d.listed.Add(1)
	d.changes.Add(1)
	return row
}

// number binds a wallet number to its address. One Command binds at most two, in either order.
func (d *Directory) number(no engine.WalletNo, a engine.Address, now engine.Sequence) {
	if row := d.wallet(no); row != nil {
		if row.address != a {
			panic(fmt.Sprintf("BUG: wallet %d has two addresses, %x and %x", no, row.address, a))
		}
		return
	}
	if old, known := d.Wallet(a); known {
		panic(fmt.Sprintf("BUG: address %x has two numbers, %d and %d", a, old, no))
	}
	if n := d.numbered.Load(); no == 0 || uint32(no) > n+2 {
		panic(fmt.Sprintf("BUG: wallet %d numbered after %d others", no, n))
	}
	row := d.wallets.grow(uint32(no))
	row.address = a
	row.lastNamed.Store(uint64(now))
	d.addresses.insert(d.hash(a[:]), uint32(no))
	d.numbered.Add(1)
}

// named notes that a frame named a wallet. An unknown number comes from a refused Command.
func (d *Directory) named(no engine.WalletNo, now engine.Sequence) {
	if row := d.wallet(no); row != nil && row.lastNamed.Load() != uint64(now) {
		row.lastNamed.Store(uint64(now))
	}
}
