package engine

// TouchAhead is how many Commands are best touched together: enough that their cache misses
// overlap, few enough that nothing is displaced again before Apply comes to it.
const TouchAhead = 16

// Touch fetches what Apply will read and write for these Commands, at most TouchAhead. Apply
// follows one pointer after the other and waits for each, and a write to what is far away holds up
// all those behind it; here the misses of many Commands are under way at the same time: each loop
// goes one step along the pointers of all, and does little else. It changes nothing.
func (x *Exchange) Touch(commands []*Command) {
	s := &x.seen
	if s.ring.used == 0 || x.orders.used == 0 {
		return
	}
	// What is damaged is for Apply to stumble over, which knows the Command that led there.
	defer func() { _ = recover() }()
	commands = commands[:min(len(commands), TouchAhead)]
	var tags, orders [TouchAhead]uint32
	var places [TouchAhead]placeTouch
	cancels, n := 0, 0
	for _, c := range commands {
		tag := s.tag(&c.ID)
		fetchBucket(s.table.home(tag))
		switch c.Kind {
		case Cancel:
			tags[cancels] = tag
			cancels++
		case Place:
			if x.touchPlace(&places[n], c) {
				fetchBucket(s.leaving(uint32(n)))
				n++
			}
		}
	}
	for i, tag := range tags[:cancels] {
		orders[i] = s.resting(tag)
		fetchOrder(x.orders.at(orders[i]))
		fetchLink(x.queues.links.at(orders[i]))
	}
	for i := range places[:n] {
		places[i].page(x)
	}
	x.touchCancels(orders[:cancels])
	x.touchPlaces(places[:n])
}

// placeTouch is what a new order will meet.
type placeTouch struct {
	c        *Command
	market   *market
	index    uint32 // of its level, if it rests
	position uint32 // of its wallet, if that is where it should be
}

// touchPlace fetches where the position of a new order, its wallet and its market are to be found.
func (x *Exchange) touchPlace(t *placeTouch, c *Command) bool {
	m := x.known(c.Market)
	if m == nil || c.Size < 1 || uint32(c.Wallet) > x.accounts.used {
		return false
	}
	t.c, t.market = c, m
	fetchBucket(x.places.home(positionTag(c.Wallet, c.Market)))
	fetchAccount(x.accounts.at(uint32(c.Wallet)))
	fetchMarket(m)
	return true
}

// page fetches the position and the page of the level.
func (t *placeTouch) page(x *Exchange) {
	e := x.places.search(positionTag(t.c.Wallet, t.c.Market))
	t.position = e.next()
	fetchPosition(x.positions.at(t.position))
	size, ticks := uint64(t.c.Size), uint64(t.market.book.ticks)
	index := min((uint64(t.c.Cash)*ticks+size/2)/size, ticks)
	if t.c.Outcome == 1 {
		index = ticks - index
	}
	t.index = uint32(index)
	fetchPage(t.market.book.find(t.index))
}

// touchPlaces fetches the level at the limit of new orders and who is last there, and the wallet's
// last order.
func (x *Exchange) touchPlaces(places []placeTouch) {
	for i := range places {
		t := &places[i]
		fetchLevel(t.market.book.peek(t.index))
		fetchOrder(x.orders.at(x.positions.at(t.position).orders))
	}
	for i := range places {
		t := &places[i]
		if l := t.market.book.peek(t.index); l != nil {
			fetchLink(x.queues.links.at(l.tail))
		}
	}
}

// touchCancels fetches the neighbours of orders, and who else is told that they go.
func (x *Exchange) touchCancels(orders []uint32) {
	links := &x.queues.links
	for _, h := range orders {
		o, l := x.orders.at(h), *links.at(h)
		fetchMarket(x.markets.at(uint32(o.market)))
		fetchOrder(x.orders.at(o.mineNext))
		fetchOrder(x.orders.at(o.minePrev))
		fetchPosition(x.positions.at(o.position))
		fetchAccount(x.accounts.at(uint32(o.wallet)))
		fetchLink(links.at(l.next))
		fetchLink(links.at(l.prev))
	}
	for _, h := range orders {
		o := x.orders.at(h)
		fetchLevel(x.markets.at(uint32(o.market)).book.peek(uint32(o.index)))
	}
}

// resting is the order that the first entry of a tag leads to, 0 if none.
func (s *seen) resting(tag uint32) uint32 {
	e := s.table.search(tag)
	h := e.next()
	if h&inRing != 0 {
		return 0
	}
	return h
}

// leaving is where the entry of the placement is, that the n-th new one from now, from 0, will push
// out.
func (s *seen) leaving(n uint32) *bucket {
	at := s.at + n + 1
	if at > s.window {
		at -= s.window
	}
	if at > s.ring.used {
		return nil
	}
	return s.table.home(s.ring.at(at).tag)
}

// find is the page that holds a level, nil if there is no such page.
func (b *book) find(index uint32) *page {
	n := index >> pageBits
	if n >= uint32(len(b.pages)) {
		return nil
	}
	return &b.pages[n]
}

// peek is the level of an index, nil if its page was not made.
func (b *book) peek(index uint32) *level {
	if p := b.find(index); p != nil && p.levels != nil {
		return p.level(index)
	}
	return nil
}
