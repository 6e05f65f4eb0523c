package engine

// TouchAhead is how many Commands are best touched together: enough that their cache misses
// overlap, few enough that nothing is displaced again before Apply comes to it.
const TouchAhead = 16

// Beyond so many orders or markets more is touched than what the ids lead to. With fewer the rest
// lies in the caches anyway, and looking twice would only cost.
const (
	touchOrders  = 1 << 15
	touchMarkets = 1 << 8
)

// Touch reads what Apply will read and write first for these Commands, at most TouchAhead. Apply
// follows one pointer after the other and waits for each, and a write to what is far away holds up
// all those behind it; here the misses of many Commands are under way at the same time: each loop
// goes one step along the pointers of all, and does little else. It changes nothing, and its result
// means nothing.
func (x *Exchange) Touch(commands []*Command) (nothing uint64) {
	s := &x.seen
	if s.ring.used == 0 || x.orders.used == 0 {
		return 0
	}
	commands = commands[:min(len(commands), TouchAhead)]
	deep := x.orders.used > touchOrders || x.markets.used > touchMarkets
	var tags, orders [TouchAhead]uint32
	for i, c := range commands {
		tags[i] = s.tag(&c.ID)
		nothing += s.table.peek(tags[i])
	}
	if deep {
		nothing += x.touchPlaces(commands)
	}
	n := 0
	for i, c := range commands {
		if c.Kind == Cancel {
			orders[n] = s.resting(tags[i])
			n++
		}
	}
	for _, h := range orders[:n] {
		o := x.orders.at(h)
		nothing += uint64(o.position) + uint64(o.first) // one of each cache line
		nothing += uint64(x.queues.links.at(h).next)
	}
	if deep {
		nothing += x.touchCancels(orders[:n])
	}
	return nothing
}

// placeTouch is what a new order will meet.
type placeTouch struct {
	c        *Command
	market   *market
	index    uint32 // of its level, if it rests
	position uint32 // of its wallet, if that is where it should be
}

// touchPlaces reads what new orders meet: market, wallet and position, the level at their limit and
// who is last there, and the cells of those placements that will be forgotten for them.
func (x *Exchange) touchPlaces(commands []*Command) (nothing uint64) {
	var all [TouchAhead]placeTouch
	n := 0
	for _, c := range commands {
		m := x.known(c.Market)
		if c.Kind != Place || m == nil || c.Size < 1 || uint32(c.Wallet) > x.accounts.used {
			continue
		}
		e := x.places.peek(positionTag(c.Wallet, c.Market))
		all[n] = placeTouch{c: c, market: m, position: uint32(e)}
		n++
		nothing += m.book.rank + uint64(m.state) + uint64(x.accounts.at(uint32(c.Wallet)).open)
	}
	for i := range all[:n] {
		t := &all[i]
		size, ticks := uint64(t.c.Size), uint64(t.market.book.ticks)
		index := min((uint64(t.c.Cash)*ticks+size/2)/size, ticks)
		if t.c.Outcome == 1 {
			index = ticks - index
		}
		t.index = uint32(index)
		nothing += t.market.book.set(t.index)
	}
	var tails, heads [TouchAhead]uint32
	for i := range all[:n] {
		t := &all[i]
		tails[i], heads[i] = t.market.book.peek(t.index).tail, x.positions.at(t.position).orders
		nothing += x.seen.next(uint32(i))
	}
	for i, h := range tails[:n] {
		nothing += uint64(x.queues.links.at(h).next) + uint64(x.orders.at(heads[i]).ring)
	}
	return nothing
}

// touchCancels reads the neighbours of orders, and who else is told that they go.
func (x *Exchange) touchCancels(orders []uint32) (nothing uint64) {
	links := &x.queues.links
	for _, h := range orders {
		o, l := x.orders.at(h), *links.at(h)
		nothing += x.markets.at(uint32(o.market)).book.rank
		nothing += uint64(x.orders.at(o.mineNext).ring) + uint64(x.orders.at(o.minePrev).ring)
		nothing += uint64(x.positions.at(o.position).wallet)
		nothing += uint64(x.accounts.at(uint32(o.wallet)).open)
		nothing += uint64(links.at(l.next).prev) + uint64(links.at(l.prev).next)
	}
	for _, h := range orders {
		o := x.orders.at(h)
		nothing += uint64(x.markets.at(uint32(o.market)).book.peek(uint32(o.index)).head)
	}
	return nothing
}

// resting is the order that the first entry of a tag leads to, 0 if none.
func (s *seen) resting(tag uint32) uint32 {
	h := s.table.reference(tag)
	if h&inRing != 0 {
		return 0
	}
	return h
}

// next reads the cell of the placement that the n-th new one from now, from 0, will push out.
func (s *seen) next(n uint32) uint64 {
	at := s.at + n + 1
	if at > s.window {
		at -= s.window
	}
	if at > s.ring.used {
		return 0
	}
	p := s.ring.at(at)
	if p.order != 0 {
		return 0
	}
	return s.table.peek(p.tag)
}

// set is the set of the page that holds a level, 0 if there is no such page.
func (b *book) set(index uint32) uint64 {
	n := index >> pageBits
	if n >= uint32(len(b.pages)) {
		return 0
	}
	return b.pages[n].set
}

// peek is the level of an index, an empty one if its page was not made.
func (b *book) peek(index uint32) level {
	n := index >> pageBits
	if n >= uint32(len(b.pages)) || b.pages[n].levels == nil {
		return level{}
	}
	return *b.pages[n].level(index)
}
