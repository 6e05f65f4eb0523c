package view

import (
	"fmt"

	"clobd/engine"
)

// draft is the next Snapshot of one market. It copies each part of the ladder once per frame.
type draft struct {
	row    *marketRow
	next   *Snapshot
	own    *whole         // that next is part of; nil: it stands alone
	root   bool           // next.ladder is a copy of the draft
	groups uint16         // the set of copied groups
	chunks [fanout]uint16 // by group: the set of copied chunks
	copied int            // chunks copied or made
}

// add changes the level at price (of outcome 0) by delta.
func (d *draft) add(side engine.Side, price engine.Price, delta engine.Size) {
	m := d.next.Market
	if price == 0 || price >= engine.PriceOne || price%m.Tick != 0 {
		panic(fmt.Sprintf("BUG: market %d with tick %d has no price %d", m.No, m.Tick, price))
	}
	index := int(price / m.Tick)
	g, c, i := index>>groupBits, index>>chunkBits%fanout, index%chunkLevels
	grp := d.group(g)
	sizes := d.chunk(grp, g, c)
	bit := uint64(1) << i
	if grp.live[side.Other()][c]&bit != 0 {
		panic(fmt.Sprintf("BUG: market %d has both bids and asks at %d", m.No, price))
	}
	was, size := sizes[i], sizes[i]+delta
	if size < 0 {
		panic(fmt.Sprintf("BUG: market %d level %d side %d size %d changes by %d",
			m.No, price, side, was, delta))
	}
	sizes[i] = size
	switch {
	case was == 0 && size != 0:
		grp.live[side][c] |= bit
		grp.any[side] |= 1 << c
		d.next.ladder.any[side] |= 1 << g
		d.next.depth[side]++
	case was != 0 && size == 0:
		d.clear(side, g, c, bit)
	}
}

// retick builds the ladder anew after the market's tick has changed from was.
func (d *draft) retick(was engine.Price) {
	old := d.next.ladder
	d.next.ladder, d.next.depth = &empty, [2]uint16{}
	d.root, d.groups, d.chunks, d.own = false, 0, [fanout]uint16{}, nil
	for _, side := range [2]engine.Side{engine.Buy, engine.Sell} {
		old.walk(side, func(index int, size engine.Size) bool {
			d.add(side, engine.Price(index)*was, size)
			return true
		})
	}
}

// clear clears the bit of a level, and the bits of its chunk and its group if they become empty.
func (d *draft) clear(side engine.Side, g, c int, bit uint64) {
	l := d.next.ladder
	grp := l.groups[g]
	d.next.depth[side]--
	if grp.live[side][c] &^= bit; grp.live[side][c] != 0 {
		return
	}
	if grp.any[side] &^= 1 << c; grp.any[side] == 0 {
		l.any[side] &^= 1 << g
	}
}

func (d *draft) group(g int) *group {
	if !d.root {
		var own *ladder
		if d.own != nil {
			own = &d.own.ladder
		} else {
			own = new(ladder)
		}
		*own = *d.next.ladder
		d.next.ladder, d.root = own, true
	}
	l := d.next.ladder
	if d.groups&(1<<g) == 0 {
		var own *group
		if d.own != nil {
			own = &d.own.group
		} else {
			own = new(group)
		}
		if was := l.groups[g]; was != nil {
			*own = *was
		}
		l.groups[g] = own
		d.groups |= 1 << g
	}
	return l.groups[g]
}

func (d *draft) chunk(grp *group, g, c int) *chunk {
	if d.chunks[g]&(1<<c) == 0 {
		own := new(chunk)
		if was := grp.chunks[c]; was != nil {
			*own = *was
		}
		grp.chunks[c] = own
		d.chunks[g] |= 1 << c
		d.copied++
	}
	return grp.chunks[c]
}

// finish drops the empty parts of the ladder and sets the best prices of next.
func (d *draft) finish() {
	l := d.next.ladder
	if d.root {
		d.prune(l)
		if l.any == [2]uint16{} {
			l = &empty
			d.next.ladder = l
			d.shrink()
		}
	} else {
		d.shrink()
	}
	tick := d.next.Market.Tick
	bid := engine.Price(l.best(engine.Buy)) * tick
	ask := engine.Price(l.best(engine.Sell)) * tick
	if bid != 0 && ask != 0 && bid >= ask {
		panic(fmt.Sprintf("BUG: market %d is crossed: bid %d, ask %d", d.next.Market.No, bid, ask))
	}
	d.next.best = [2]engine.Price{bid, ask}
}

// whole is a Snapshot and the parts of its ladder that each change copies, made in one piece. It is
// for markets whose levels are all in group 0: no other ladder points to that group, so that a
// Snapshot does not keep those before it in memory.
type whole struct {
	Snapshot
	ladder ladder
	group  group
}

// newDraft begins a draft. The next Snapshot has everything of was, which may be nil, but for its
// Sequence and Time.
func newDraft(row *marketRow, was *Snapshot) draft {
	d, m := draft{row: row}, row.market.Load()
	if int(engine.PriceOne/m.Tick) <= chunkLevels*fanout {
		d.own = new(whole)
		d.next = &d.own.Snapshot
	} else {
		d.next = new(Snapshot)
	}
	d.next.Market, d.next.ladder = m, &empty
	if was != nil {
		d.next.take(was)
	}
	return d
}

// take makes s like was, but for its Market, Sequence and Time.
func (s *Snapshot) take(was *Snapshot) {
	s.ladder, s.depth, s.last, s.taker = was.ladder, was.depth, was.last, was.taker
}

// shrink lets go of the room for a ladder.
func (d *draft) shrink() {
	if d.own != nil {
		d.next = &Snapshot{Market: d.next.Market, Sequence: d.next.Sequence, Time: d.next.Time}
		d.next.take(&d.own.Snapshot)
		d.own = nil
	}
}

// prune drops copied groups and chunks without orders: an empty market costs little.
func (d *draft) prune(l *ladder) {
	for g := range l.groups {
		if d.groups&(1<<g) == 0 {
			continue
		}
		grp := l.groups[g]
		if grp.any == [2]uint16{} {
			l.groups[g] = nil
			continue
		}
		for gone := d.chunks[g] &^ (grp.any[0] | grp.any[1]); gone != 0; gone &= gone - 1 {
			grp.chunks[front(engine.Sell, uint64(gone))] = nil
		}
	}
}
