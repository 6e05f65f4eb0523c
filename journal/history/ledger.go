package history

import (
	"cmp"
	"errors"
	"fmt"
	"slices"

	"clobd/engine"
	"clobd/journal"

	"github.com/cockroachdb/pebble/v2"
)

// ledger folds collateral, positions with their cost, and the lists of holders.
type ledger struct {
	db        *pebble.DB
	gauges    *gauges
	markets   *markets // for what a resolved market pays
	purses    map[engine.WalletNo]*purse
	positions map[uint64]*position // by wallet and market

	dirtyPurses    []*purse
	dirtyPositions []*position
	moves          int     // of holders, since the last flush
	shifts         []shift // of holders, in this batch
	value          []byte  // scratch
}

type purse struct {
	total, held engine.Cash
	wallet      engine.WalletNo
	dirty       bool
}

func (p *purse) append(b []byte) []byte {
	return appendUvarints(b, uint64(p.total), uint64(p.held))
}

func (p *purse) decode(b []byte) error {
	c := varints{rest: b}
	p.total, p.held = engine.Cash(c.uvarint()), engine.Cash(c.uvarint())
	return c.end()
}

func readPurse(db *pebble.DB, w engine.WalletNo) (*purse, error) {
	p, key := &purse{wallet: w}, shortKey(spacePurse, w)
	_, err := read(db, key[:], p.decode)
	if err != nil {
		err = fmt.Errorf("read collateral of wallet %d: %w", w, err)
	}
	return p, err
}

func (l *ledger) command(batch *pebble.Batch, c *engine.Command, now engine.Time,
	events []engine.Event) error {
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
			key := pairKey(spaceLink, e.Owner, uint32(e.Wallet))
			if err = batch.Set(key[:], nil, nil); err != nil {
				err = fmt.Errorf("write link %x: %w", key, err)
			}
		}
		if err != nil {
			return err
		}
	}
	return nil
}

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

// fill charges both parties as they signed: a minted pair has two buyers, a merged one two sellers.
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

type leg struct {
	side  engine.Side
	size  engine.Size
	price engine.Cash // of the whole size
	fee   engine.Cash
	held  engine.Cash // change of the wallet's reserve
}

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
	return l.atHalf(&p.tokens[e.Outcome], e, e.Kind == engine.Deposited, now)
}

// atHalf adds the tokens of e to a row, or takes them away, at 0.50 each.
func (l *ledger) atHalf(r *PositionRow, e *engine.Event, in bool, now engine.Time) error {
	price := half(r.Outcome, e.Size)
	if in {
		r.receive(e.Size, price, 0, now)
	} else if !r.give(e.Size, price, 0, now) {
		return l.short(r)
	}
	return nil
}

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
		if err := l.atHalf(&p.tokens[o], e, e.Kind == engine.Split, now); err != nil {
			return err
		}
	}
	return l.cash(e.Wallet, amount, 0)
}

// redeem follows a payout. As in the engine, outcome 0 gets its share, rounded down, 1 the rest.
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

func (l *ledger) cash(w engine.WalletNo, total, held engine.Cash) error {
	p := l.purses[w]
	if p == nil {
		l.gauges.reads.Inc()
		var err error
		if p, err = readPurse(l.db, w); err != nil {
			return err
		}
		l.purses[w] = p
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

func (l *ledger) position(w engine.WalletNo, m engine.MarketNo) (*position, error) {
	at := uint64(w)<<32 | uint64(m)
	p := l.positions[at]
	if p == nil {
		l.gauges.reads.Inc()
		var err error
		if p, err = readPosition(l.db, w, m); err != nil {
			return nil, err
		}
		l.positions[at] = p
	}
	if !p.dirty {
		p.dirty = true
		l.dirtyPositions = append(l.dirtyPositions, p)
	}
	return p, nil
}

func (l *ledger) short(r *PositionRow) error {
	return fmt.Errorf("%w: wallet %d has %d of outcome %d in market %d, %d of it reserved",
		errContradiction, r.Wallet, r.Size, r.Outcome, r.Market, r.Reserved)
}

func (l *ledger) write(batch *pebble.Batch) error {
	if len(l.dirtyPositions) >= sortRows {
		slices.SortFunc(l.dirtyPositions, func(a, b *position) int {
			x, y := &a.tokens[0], &b.tokens[0]
			return cmp.Or(cmp.Compare(x.Wallet, y.Wallet), cmp.Compare(x.Market, y.Market))
		})
	}
	for _, p := range l.dirtyPurses {
		key := shortKey(spacePurse, p.wallet)
		l.value = p.append(l.value[:0])
		if err := batch.Set(key[:], l.value, nil); err != nil {
			return fmt.Errorf("write collateral of wallet %d: %w", p.wallet, err)
		}
	}
	for _, p := range l.dirtyPositions {
		of := &p.tokens[0]
		key := pairKey(spacePosition, of.Wallet, uint32(of.Market))
		l.value = p.append(l.value[:0])
		err := batch.Set(key[:], l.value, nil)
		if err = errors.Join(err, l.list(p, batch)); err != nil {
			return fmt.Errorf("write position of wallet %d in market %d: %w", of.Wallet, of.Market, err)
		}
	}
	return nil
}

func (l *ledger) sweep() {
	for i, p := range l.dirtyPurses {
		p.dirty, l.dirtyPurses[i] = false, nil
	}
	for i, p := range l.dirtyPositions {
		p.dirty, l.dirtyPositions[i] = false, nil
	}
	l.dirtyPurses, l.dirtyPositions = l.dirtyPurses[:0], l.dirtyPositions[:0]
	l.shifts = l.shifts[:0]
	if len(l.purses) > keepRows {
		clear(l.purses)
	}
	if len(l.positions) > keepRows {
		clear(l.positions)
	}
}

// Balance returns the collateral of a wallet and how much of it backs orders, in base units; zeros
// if there is no such wallet. The error is as for Past.
func (h *History) Balance(wallet engine.WalletNo) (total, reserved engine.Cash, err error) {
	if !h.gate.Enter() {
		return 0, 0, journal.ErrClosed
	}
	defer h.gate.Leave()
	p, err := readPurse(h.db, wallet)
	return p.total, p.held, err
}
