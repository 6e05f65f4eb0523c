package history

import (
	"cmp"
	"encoding/binary"
	"errors"
	"fmt"
	"slices"

	"clobd/engine"
	"clobd/journal"
	"clobd/journal/disk"

	"github.com/cockroachdb/pebble/v2"
)

// ledger folds what wallets have: their collateral, their positions with what those cost, and the
// lists of holders. It follows the engine's ledger entry by entry. Like the rows of orders, what is
// touched many times in a batch is written once.
type ledger struct {
	db        *pebble.DB
	gauges    *gauges
	markets   *markets // knows what a resolved market pays
	purses    map[engine.WalletNo]*purse
	positions map[uint64]*position // by wallet and market

	dirtyPurses    []*purse
	dirtyPositions []*position
	links          [][linkKeyLen]byte // made in this batch
	moves          int                // of holders, since the last flush
	shifts         []shift            // of holders, in this batch
	value          []byte             // scratch
}

// purse is the collateral of a wallet: held of total backs its orders.
type purse struct {
	total, held engine.Cash
	wallet      engine.WalletNo
	dirty       bool
}

const (
	purseKeyLen = 1 + 4
	linkKeyLen  = 1 + 4 + 4
)

// purseKey is the key of a wallet's collateral.
func purseKey(w engine.WalletNo) [purseKeyLen]byte {
	var k [purseKeyLen]byte
	k[0] = spacePurse
	binary.BigEndian.PutUint32(k[1:], uint32(w))
	return k
}

// linkKey is the key that says that an owner trades for a wallet.
func linkKey(owner, wallet engine.WalletNo) [linkKeyLen]byte {
	var k [linkKeyLen]byte
	k[0] = spaceLink
	binary.BigEndian.PutUint32(k[1:], uint32(owner))
	binary.BigEndian.PutUint32(k[5:], uint32(wallet))
	return k
}

// append appends the stored form.
func (p *purse) append(b []byte) []byte {
	b = binary.AppendUvarint(b, uint64(p.total))
	return binary.AppendUvarint(b, uint64(p.held))
}

// decode reads the stored form.
func (p *purse) decode(b []byte) error {
	c := varints{rest: b}
	p.total, p.held = engine.Cash(c.uvarint()), engine.Cash(c.uvarint())
	if c.bad || len(c.rest) > 0 {
		return errRow
	}
	return nil
}

// newLedger makes an empty one.
func newLedger(db *pebble.DB, gauges *gauges, m *markets) *ledger {
	return &ledger{db: db, gauges: gauges, markets: m, purses: make(map[engine.WalletNo]*purse),
		positions: make(map[uint64]*position)}
}

// account folds what one Command did to wallets and prices.
func (d *fold) account(c *engine.Command, now engine.Time, events []engine.Event) error {
	if !d.markets.ready {
		if err := d.markets.load(d.resting); err != nil {
			return err
		}
	}
	if err := d.ledger.command(c, now, events); err != nil {
		return err
	}
	return d.markets.command(c, now, events)
}

// command folds what one Command moved.
func (l *ledger) command(c *engine.Command, now engine.Time, events []engine.Event) error {
	for i := range events {
		e := &events[i]
		var err error
		switch e.Kind {
		case engine.Filled:
			err = l.fill(c, e, now)
		case engine.Placed:
			err = l.reserve(e, e.Remaining)
		case engine.Cancelled:
			err = l.reserve(e, -e.Remaining)
		case engine.Deposited, engine.Withdrawn, engine.Collected:
			err = l.move(e, now)
		case engine.Split, engine.Merged:
			err = l.pair(e, now)
		case engine.Redeemed:
			err = l.redeem(e, now)
		case engine.Linked:
			l.links = append(l.links, linkKey(e.Owner, e.Wallet))
		}
		if err != nil {
			return err
		}
	}
	return nil
}

// reserve moves what backs a resting order when it gets longer by size.
func (l *ledger) reserve(e *engine.Event, size engine.Size) error {
	if e.Side == engine.Buy {
		return l.cash(e.Wallet, 0, engine.Cost(size, e.Price))
	}
	p, err := l.position(e.Wallet, e.Market)
	if err != nil {
		return err
	}
	r := &p.tokens[e.Outcome]
	if r.Reserved += size; r.Reserved < 0 {
		return l.short(r)
	}
	return nil
}

// fill settles a resting order with the arriving one. Both are charged as what they signed: the two
// buyers of a minted pair have bought, the two sellers of a merged one have sold.
func (l *ledger) fill(c *engine.Command, e *engine.Event, now engine.Time) error {
	cost := engine.Cost(e.Size, e.Price)
	p, err := l.position(e.Wallet, e.Market)
	if err != nil {
		return err
	}
	r, held := &p.tokens[e.Outcome], engine.Cash(0)
	r.Made += cost
	if e.Side == engine.Buy {
		held = -cost
	} else if r.Reserved -= e.Size; r.Reserved < 0 {
		return l.short(r)
	}
	if err := l.trade(r, leg{e.Side, e.Size, cost, 0, held}, now); err != nil {
		return err
	}
	if e.Outcome != c.Outcome {
		cost = engine.Cash(e.Size) - cost
	}
	if p, err = l.position(c.Wallet, e.Market); err != nil {
		return err
	}
	r = &p.tokens[c.Outcome]
	r.Taken += cost
	return l.trade(r, leg{c.Side, e.Size, cost, e.Fee, 0}, now)
}

// leg is one party's half of a fill.
type leg struct {
	side  engine.Side
	size  engine.Size
	price engine.Cash // of all of it
	fee   engine.Cash
	held  engine.Cash // what the wallet's reserve grows by
}

// trade changes one party's token and collateral.
func (l *ledger) trade(r *PositionRow, g leg, now engine.Time) error {
	if g.side == engine.Buy {
		r.receive(g.size, g.price, g.fee, now)
		return l.cash(r.Wallet, -g.price-g.fee, g.held)
	}
	if !r.give(g.size, g.price, g.fee, now) {
		return l.short(r)
	}
	return l.cash(r.Wallet, g.price-g.fee, 0)
}

// move follows what comes in from outside, goes there, or comes out of the fee account.
func (l *ledger) move(e *engine.Event, now engine.Time) error {
	if e.Market == 0 {
		amount := engine.Cash(e.Size)
		if e.Kind == engine.Withdrawn {
			amount = -amount
		}
		return l.cash(e.Wallet, amount, 0)
	}
	p, err := l.position(e.Wallet, e.Market)
	if err != nil {
		return err
	}
	r, price := &p.tokens[e.Outcome], half(e.Outcome, e.Size)
	if e.Kind == engine.Deposited {
		r.receive(e.Size, price, 0, now)
	} else if !r.give(e.Size, price, 0, now) {
		return l.short(r)
	}
	return nil
}

// pair follows a split or a merge.
func (l *ledger) pair(e *engine.Event, now engine.Time) error {
	p, err := l.position(e.Wallet, e.Market)
	if err != nil {
		return err
	}
	amount := engine.Cash(e.Size)
	if e.Kind == engine.Split {
		amount = -amount
	}
	for o := range p.tokens {
		r, price := &p.tokens[o], half(engine.Outcome(o), e.Size)
		if e.Kind == engine.Split {
			r.receive(e.Size, price, 0, now)
		} else if !r.give(e.Size, price, 0, now) {
			return l.short(r)
		}
	}
	return l.cash(e.Wallet, amount, 0)
}

// redeem follows a payout. It is rounded once for both tokens: outcome 0 gets its own, rounded
// down, and outcome 1 the rest.
func (l *ledger) redeem(e *engine.Event, now engine.Time) error {
	p, err := l.position(e.Wallet, e.Market)
	if err != nil {
		return err
	}
	m, err := l.markets.market(e.Market)
	if err != nil {
		return err
	}
	first := share(engine.Cash(e.Args[0]), engine.Size(m.payout), engine.Size(engine.PriceOne))
	paid := [2]engine.Cash{first, engine.Cash(e.Size) - first}
	for o := range p.tokens {
		r := &p.tokens[o]
		if !r.give(engine.Size(e.Args[o]), paid[o], 0, now) {
			return l.short(r)
		}
		r.Redeemed += paid[o]
	}
	return l.cash(e.Wallet, engine.Cash(e.Size), 0)
}

// cash changes a wallet's collateral.
func (l *ledger) cash(w engine.WalletNo, total, held engine.Cash) error {
	p := l.purses[w]
	if p == nil {
		var err error
		if p, err = l.loadPurse(w); err != nil {
			return err
		}
	}
	if !p.dirty {
		p.dirty = true
		l.dirtyPurses = append(l.dirtyPurses, p)
	}
	p.total += total
	if p.held += held; p.total < 0 || p.held < 0 {
		return fmt.Errorf("%w: wallet %d has %d collateral, %d of it reserved", errContradiction, w,
			p.total, p.held)
	}
	return nil
}

// loadPurse reads a wallet's collateral; zeros if it never had any.
func (l *ledger) loadPurse(w engine.WalletNo) (*purse, error) {
	l.gauges.reads.Inc()
	p, key := &purse{wallet: w}, purseKey(w)
	b, found, err := disk.Get(l.db, key[:], l.value)
	if err == nil && found {
		err = p.decode(b)
	}
	if err != nil {
		return nil, fmt.Errorf("read collateral of wallet %d: %w", w, err)
	}
	l.value = b
	l.purses[w] = p
	return p, nil
}

// position is what a wallet has in a market, to be changed.
func (l *ledger) position(w engine.WalletNo, m engine.MarketNo) (*position, error) {
	at := uint64(w)<<32 | uint64(m)
	p := l.positions[at]
	if p == nil {
		l.gauges.reads.Inc()
		p = &position{wallet: w, market: m}
		p.name()
		key := positionKey(w, m)
		b, found, err := disk.Get(l.db, key[:], l.value)
		if err == nil && found {
			err = p.decode(w, m, b)
		}
		if err != nil {
			return nil, fmt.Errorf("read position of wallet %d in market %d: %w", w, m, err)
		}
		l.value = b
		l.positions[at] = p
	}
	if !p.dirty {
		p.dirty = true
		l.dirtyPositions = append(l.dirtyPositions, p)
	}
	return p, nil
}

// short says that tokens left which were not there.
func (l *ledger) short(r *PositionRow) error {
	return fmt.Errorf("%w: wallet %d has %d of outcome %d in market %d, %d of it reserved",
		errContradiction, r.Wallet, r.Size, r.Outcome, r.Market, r.Reserved)
}

// write adds all that changed to the batch.
func (l *ledger) write(batch *pebble.Batch) error {
	if len(l.dirtyPositions) >= sortRows {
		slices.SortFunc(l.dirtyPositions, func(a, b *position) int {
			return cmp.Or(cmp.Compare(a.wallet, b.wallet), cmp.Compare(a.market, b.market))
		})
	}
	for _, p := range l.dirtyPurses {
		key := purseKey(p.wallet)
		l.value = p.append(l.value[:0])
		if err := batch.Set(key[:], l.value, nil); err != nil {
			return fmt.Errorf("write collateral of wallet %d: %w", p.wallet, err)
		}
	}
	for _, p := range l.dirtyPositions {
		key := positionKey(p.wallet, p.market)
		l.value = p.append(l.value[:0])
		err := batch.Set(key[:], l.value, nil)
		if err = errors.Join(err, l.list(p, batch)); err != nil {
			return fmt.Errorf("write position of wallet %d in market %d: %w", p.wallet, p.market, err)
		}
	}
	for i := range l.links {
		if err := batch.Set(l.links[i][:], nil, nil); err != nil {
			return fmt.Errorf("write link %x: %w", l.links[i], err)
		}
	}
	return nil
}

// sweep lets go of what was written, if there is too much of it.
func (l *ledger) sweep() {
	for i, p := range l.dirtyPurses {
		p.dirty, l.dirtyPurses[i] = false, nil
	}
	for i, p := range l.dirtyPositions {
		p.dirty, l.dirtyPositions[i] = false, nil
	}
	l.dirtyPurses, l.dirtyPositions = l.dirtyPurses[:0], l.dirtyPositions[:0]
	l.links, l.shifts = l.links[:0], l.shifts[:0]
	if len(l.purses) > keepRows {
		clear(l.purses)
	}
	if len(l.positions) > keepRows {
		clear(l.positions)
	}
}

// Balance is the collateral of a wallet and what of it backs its orders, in base units; zeros if
// there is no such wallet. The error is ErrClosed, or names a row that cannot be read.
func (h *History) Balance(wallet engine.WalletNo) (total, reserved engine.Cash, err error) {
	if !h.gate.Enter() {
		return 0, 0, journal.ErrClosed
	}
	defer h.gate.Leave()
	var p purse
	key := purseKey(wallet)
	b, found, err := disk.Get(h.db, key[:], nil)
	if err == nil && found {
		err = p.decode(b)
	}
	if err != nil {
		return 0, 0, fmt.Errorf("read collateral of wallet %d: %w", wallet, err)
	}
	return p.total, p.held, nil
}

// Turnover is the collateral value of fills, in base units.
type Turnover struct {
	Taken engine.Cash // as the taker
	Made  engine.Cash // as a maker
}

// OwnerVolume is what an owner traded of one token with his own account and with all wallets that
// are linked to him. The error is as for Balance.
func (h *History) OwnerVolume(owner engine.WalletNo, market engine.MarketNo, o engine.Outcome) (
	sum Turnover, err error) {
	if !h.gate.Enter() {
		return sum, journal.ErrClosed
	}
	defer h.gate.Leave()
	wallets := []engine.WalletNo{owner}
	from, to := linkKey(owner, 0), linkKey(owner, 1<<32-1)
	err = h.each(from[:], append(to[:], 0), func(key, _ []byte) (bool, error) {
		if len(key) != linkKeyLen {
			return false, errRow
		}
		if w := engine.WalletNo(binary.BigEndian.Uint32(key[5:])); w != owner {
			wallets = append(wallets, w)
		}
		return true, nil
	})
	if err != nil {
		return sum, fmt.Errorf("read wallets of owner %d: %w", owner, err)
	}
	for _, w := range wallets {
		var p position
		if err := h.position(w, market, &p); err != nil {
			return Turnover{}, err
		}
		sum.Taken += p.tokens[o&1].Taken
		sum.Made += p.tokens[o&1].Made
	}
	return sum, nil
}
