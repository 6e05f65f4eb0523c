package view

import (
	"errors"
	"fmt"
	"maps"
	"slices"

	"clobd/engine"
)

// saveFormat 2 has the times at which markets ended and were resolved.
const saveFormat = 2

// Save hands all that the Board shows to sink, in the chunks of an engine.Packer. That includes
// last trades and times of changes, which no Exchange keeps. Boards that published the same frames
// save the same bytes. The writer calls Save between frames; Save calls Show.
func (b *Board) Save(sink func(chunk []byte) error) error {
	b.Show()
	p, d := engine.NewPacker(sink), b.Directory
	n := d.numbered.Load()
	p.Uints(saveFormat, b.sequence.Load(), uint64(d.Mode()), uint64(n))
	for no := engine.WalletNo(1); uint32(no) <= n; no++ {
		row := d.wallet(no)
		p.Bytes(row.address[:])
		p.Uint(row.lastNamed.Load())
	}
	n = d.listed.Load()
	p.Uint(uint64(n))
	for no := uint32(1); no <= n; no++ {
		saveMarket(p, d.markets.at(no))
	}
	d.saveHoldings(p)
	return p.Close(b.sequence.Load())
}

func saveMarket(p *engine.Packer, row *marketRow) {
	m, s := row.market.Load(), row.snapshot.Load()
	p.Bytes(m.Condition[:])
	p.Bytes(m.Tokens[0][:])
	p.Bytes(m.Tokens[1][:])
	flags := uint64(0)
	if m.NegRisk {
		flags |= 1
	}
	if m.Open {
		flags |= 2
	}
	p.Uints(flags, m.Group, uint64(m.Tick), uint64(m.Fee.Rate), uint64(m.Fee.Exponent),
		uint64(m.State), uint64(m.Mode), uint64(m.Payout), uint64(s.Sequence), uint64(s.last),
		uint64(s.taker))
	p.Int(int64(m.MinSize))
	p.Int(int64(m.MinBuy))
	p.Int(int64(s.Time))
	p.Int(int64(m.Ended))
	p.Int(int64(m.Resolved))
	for side := range engine.Side(2) {
		p.Uint(uint64(s.depth[side]))
		s.ladder.walk(side, func(index int, size engine.Size) bool {
			p.Uint(uint64(index))
			p.Int(int64(size))
			return true
		})
	}
}

func (d *Directory) saveHoldings(p *engine.Packer) {
	p.Uint(uint64(len(d.owned)))
	for _, owner := range slices.Sorted(maps.Keys(d.owned)) {
		h := d.owned[owner]
		p.Uints(uint64(owner), uint64(len(h.wallets)))
		for _, w := range h.wallets {
			p.Uint(uint64(w))
		}
		for class := range h.keys {
			p.Uint(uint64(len(h.keys[class])))
			for i := range h.keys[class] {
				k, revoked := &h.keys[class][i], uint64(0)
				if k.Revoked {
					revoked = 1
				}
				p.Uint(uint64(k.Number)<<1 | revoked)
				p.Int(int64(k.Timeout))
				p.Int(int64(k.Created))
				p.Int(int64(k.Changed))
			}
		}
	}
	p.Uint(uint64(len(d.modes)))
	for _, w := range slices.Sorted(maps.Keys(d.modes)) {
		p.Uints(uint64(w), uint64(d.modes[w]))
	}
}

// Load makes a new Board show what Save packed, as if it had published all those frames. The error
// wraps engine.ErrState, engine.ErrVersion or the error of next; then do not use the Board.
func (b *Board) Load(next func() ([]byte, error)) (err error) {
	defer func() { // the Directory and the drafts panic on contradictions
		if cause := recover(); cause != nil {
			err = fmt.Errorf("%w: %v", engine.ErrState, cause)
		}
	}()
	u, d := engine.NewUnpacker(next), b.Directory
	format := u.Uint()
	if u.Err == nil && format > saveFormat {
		return fmt.Errorf("%w: format %d of a board; this is %d", engine.ErrVersion, format, saveFormat)
	}
	sequence := u.Uint()
	d.mode.Store(uint32(u.Most(uint64(engine.CancelOnly))))
	each(u, func(no uint32) {
		var a engine.Address
		u.Bytes(a[:])
		lastNamed := engine.Sequence(u.Uint())
		if u.Err == nil {
			d.number(engine.WalletNo(no), a, lastNamed)
		}
	})
	each(u, func(no uint32) { b.loadMarket(u, engine.MarketNo(no), format) })
	d.loadHoldings(u)
	sum, err := u.Close()
	if err == nil && sum != sequence {
		err = errors.Join(engine.ErrState, errors.New("the end is of another board"))
	}
	b.sequence.Store(sequence)
	b.shown.Store(sequence)
	return err
}

// each calls part with 1, 2 and so on up to the packed count, until one part is bad.
func each(u *engine.Unpacker, part func(no uint32)) {
	n := u.Most(1<<31 - 1)
	for no := uint32(1); uint64(no) <= n && u.Err == nil; no++ {
		part(no)
	}
}

func (b *Board) loadMarket(u *engine.Unpacker, no engine.MarketNo, format uint64) {
	var l engine.Listing
	u.Bytes(l.Condition[:])
	u.Bytes(l.Tokens[0][:])
	u.Bytes(l.Tokens[1][:])
	flags := u.Most(3)
	l.NegRisk, l.Open = flags&1 != 0, flags&2 != 0
	l.Group, l.Tick = u.Uint(), engine.Price(u.Most(uint64(engine.PriceOne)))
	l.Fee.Rate = uint16(u.Most(engine.MaxFeeRate))
	l.Fee.Exponent = uint8(u.Most(engine.MaxFeeExponent))
	state := engine.MarketState(u.Most(uint64(engine.Settled)))
	mode := engine.Mode(u.Most(uint64(engine.CancelOnly)))
	payout := engine.Price(u.Most(uint64(engine.PriceOne)))
	sequence := engine.Sequence(u.Uint())
	last, taker := engine.Price(u.Most(uint64(engine.PriceOne))), engine.Side(u.Most(1))
	l.MinSize, l.MinBuy = engine.Size(u.Int()), engine.Cash(u.Int())
	now := engine.Time(u.Int())
	was := Market{State: state}
	if was.enter(state, now); format > 1 {
		was.Ended, was.Resolved = engine.Time(u.Int()), engine.Time(u.Int())
	}
	if u.Err != nil {
		return
	}
	row := b.Directory.list(no, &l, state)
	b.Directory.change(row, func(m *Market) {
		m.Mode, m.Payout, m.Ended, m.Resolved = mode, payout, was.Ended, was.Resolved
	})
	d := draft{row: row, next: &Snapshot{Market: row.market.Load(), ladder: &empty,
		Sequence: sequence, Time: now, last: last, taker: taker}}
	for side := range engine.Side(2) {
		for n := u.Most(1<<14 - 1); n > 0 && u.Err == nil; n-- {
			index, size := u.Most(uint64(engine.PriceOne)), engine.Size(u.Int())
			if u.Err == nil {
				d.add(side, engine.Price(index)*l.Tick, size)
			}
		}
	}
	d.finish()
	row.snapshot.Store(d.next)
}

func (d *Directory) loadHoldings(u *engine.Unpacker) {
	each(u, func(uint32) {
		owner := engine.WalletNo(u.Most(1<<32 - 1))
		each(u, func(uint32) {
			if w := engine.WalletNo(u.Most(1<<32 - 1)); u.Err == nil {
				d.link(w, owner)
			}
		})
		h := d.holding(owner)
		for class := range h.keys {
			each(u, func(uint32) {
				word := u.Most(1<<33 - 1)
				k := h.record(engine.KeyClass(class), uint32(word>>1))
				k.Revoked, k.Timeout = word&1 != 0, engine.Time(u.Int())
				k.Created, k.Changed = engine.Time(u.Int()), engine.Time(u.Int())
				if k.Revoked && k.Class == engine.TradingKey {
					d.revoked.Add(1)
				}
			})
		}
	})
	each(u, func(uint32) {
		w, m := engine.WalletNo(u.Most(1<<32-1)), engine.Mode(u.Most(uint64(engine.CancelOnly)))
		d.setWalletMode(w, m)
	})
}
