package engine

// TouchAhead is how many Commands are best touched together before lines leave the cache.
const TouchAhead = 16

// Indexes are masked with TouchAhead-1: it is a power of 2, else this does not compile.
const _ = -uint(TouchAhead & (TouchAhead - 1))

// Touch fetches the memory that Apply will read and write for these Commands, at most TouchAhead.
// It follows the pointers of all Commands one step at a time, so that their cache misses overlap.
// It changes no state but hints for Apply.
func (x *Exchange) Touch(commands []*Command) {
	x.hints = hints{}
	if x.seen.ring.used == 0 || x.orders.used == 0 {
		return
	}
	// Apply reports a damaged state, because Apply knows the Command that led there.
	defer func() { _ = recover() }()
	t := toucher{x: x}
	t.touch(commands)
}

// touch does the work of Touch. Only a damaged state makes it panic: Touch hides that panic.
func (t *toucher) touch(commands []*Command) {
	t.wide = !isNear(t.x)
	t.ids(commands[:min(len(commands), TouchAhead)])
	t.cancelled()
	t.neighbours()
	if t.wide {
		t.wallets()
		t.levels()
	}
}

// Up to this many, records, rows, levels and ends of queues stay in the nearer caches.
const (
	nearPositions = 1 << 12 // and so wallets
	NearMarkets   = 1 << 6  // of 16 KB of levels each
	NearOrders    = 1 << 17
)

// isNear reports whether the state is no larger than that.
func isNear(x *Exchange) bool {
	return x.positions.used <= nearPositions && x.markets.used <= NearMarkets &&
		x.orders.used <= NearOrders
}

// toucher is one run of Touch: what it knows of the memory that the Commands will need.
type toucher struct {
	x       *Exchange
	wide    bool // fetch wallets, markets, levels and positions, too
	cancels uint32
	count   uint32                 // of the new orders in places
	tags    [TouchAhead]uint32     // of the cancels
	slots   [TouchAhead]uint32     // of their hints
	orders  [TouchAhead]uint32     // that they cancel
	places  [TouchAhead]placeTouch // the new orders, without those that Apply will refuse
}

type placeTouch struct {
	c        *Command
	market   *market
	index    uint32 // of its level, if it rests
	position uint32 // of its wallet: a guess
	slot     uint32 // of its hint
	tag      uint32 // of its id
	leaving  uint32 // the tag of the placement that it pushes out
}

// hints are the guesses of Touch, one per Command: the number of the order to cancel or to replace,
// or else of the position. Apply verifies a guess.
type hints struct {
	refs        [TouchAhead]uint32
	next, count uint32
}

// pop returns the next hint, 0 if there is none. It is for the next Place or Cancel.
func (h *hints) pop() uint32 {
	if h.next == h.count {
		return 0
	}
	h.next++
	return h.refs[(h.next-1)&(TouchAhead-1)]
}

func (h *hints) set(slot, ref uint32) { h.refs[slot&(TouchAhead-1)] = ref }

const _ = -uint(Cancel - Place - 1) // else ids cannot count as it does

// ids fetches the buckets of the orders' ids and of the ids that new orders push out, and starts on
// the other needs of new orders. Each Command goes into both lists, so that no branch needs its
// kind.
func (t *toucher) ids(commands []*Command) {
	x, s, slot := t.x, &t.x.seen, uint32(0)
	for _, c := range commands {
		cancels := uint32(c.Kind - Place) // 0 or 1
		if cancels > 1 {
			continue
		}
		tag := s.salt.tag(&c.ID)
		fetchBucket(s.table.home(tag))
		i, p := t.cancels&(TouchAhead-1), &t.places[t.count&(TouchAhead-1)]
		t.tags[i], t.slots[i] = tag, slot
		p.c, p.tag, p.slot = c, tag, slot
		if cancels == 0 && c.replaces() {
			id, _ := c.Replaced()
			t.tags[i] = s.salt.tag(&id)
			fetchBucket(s.table.home(t.tags[i]))
			t.cancels++
		}
		t.cancels += cancels
		t.count += 1 - cancels
		slot++
	}
	x.hints.count = slot
	places := t.places[:t.count]
	t.count = 0
	for i := range places {
		p := &places[i]
		if t.wide && !p.touch(x) {
			continue
		}
		p.leaving = s.leaving(t.count)
		fetchBucket(s.table.home(p.leaving))
		if p.c.Type > GTD && !t.wide {
			touchFront(x, p.c)
		}
		if uint32(i) != t.count {
			places[t.count] = *p
		}
		t.count++
	}
}

// touchFront fetches the neighbourhood of the order that a FOK or FAK meets first, and the order
// behind it. It reads the first order at once: the fill that brought it to the front has fetched
// it.
func touchFront(x *Exchange, c *Command) {
	m := x.markets.known(c.Market)
	if m == nil || c.Outcome > 1 || c.Side > 1 {
		return
	}
	l := m.book.Peek(m.book.Best[ladderSide(c.Side, c.Outcome)^1])
	if l == nil || l.Head == 0 {
		return
	}
	o := x.orders.at(l.Head)
	fetchBucket(x.seen.table.home(o.tag))
	fetchHead(x.orders.at(o.mineNext))
	fetchHead(x.orders.at(o.minePrev))
	fetchOrder(x.orders.at(x.queues.behind(l.Head)))
}

// touch fetches position bucket, wallet and market of a new order; false if Apply will refuse it.
func (t *placeTouch) touch(x *Exchange) bool {
	c := t.c
	t.market = x.markets.known(c.Market)
	if t.market == nil || c.Size < 1 || uint32(c.Wallet) > x.accounts.used {
		return false
	}
	fetchBucket(x.index.home(positionTag(c.Wallet, c.Market)))
	fetchAccount(x.accounts.at(uint32(c.Wallet)))
	fetchMarket(t.market)
	return true
}

// cancelled fetches the orders to be cancelled, and in a large state more of the new ones' needs.
func (t *toucher) cancelled() {
	x := t.x
	for i, tag := range t.tags[:t.cancels] {
		h, _ := x.seen.table.search(tag)
		if h&inRing != 0 {
			h = 0
		}
		t.orders[i] = h
		x.hints.set(t.slots[i], h)
		fetchOrder(x.orders.at(h))
		fetchLink(x.queues.Links.At(h))
	}
	if !t.wide {
		return
	}
	for i := range t.places[:t.count] {
		p := &t.places[i]
		fetchBucket(x.seen.table.second(p.tag))
		fetchBucket(x.seen.table.second(p.leaving))
		p.page(x)
		if !p.c.replaces() {
			x.hints.set(p.slot, p.position)
		}
	}
}

func (t *placeTouch) page(x *Exchange) {
	t.position, _ = x.index.search(positionTag(t.c.Wallet, t.c.Market))
	fetchPosition(x.positions.at(t.position))
	size, ticks := uint64(t.c.Size), uint64(t.market.book.ticks)
	index := min((uint64(t.c.Cash)*ticks+size/2)/size, ticks)
	if t.c.Outcome == 1 {
		index = ticks - index
	}
	t.index = uint32(index)
	fetchPage(t.market.book.pageAt(t.index))
}

func (t *toucher) levels() {
	x, places := t.x, t.places[:t.count]
	for i := range places {
		p := &places[i]
		fetchLevel(p.market.book.Peek(p.index))
		fetchHead(x.orders.at(x.positions.at(p.position).orders))
	}
	for i := range places {
		p := &places[i]
		if l := p.market.book.Peek(p.index); l != nil {
			fetchLink(x.queues.Links.At(l.Tail))
		}
	}
}

func (t *toucher) neighbours() {
	x := t.x
	links := x.queues.Links.All
	for _, h := range t.orders[:t.cancels] {
		o, l := x.orders.at(h), *links.At(h)
		fetchHead(x.orders.at(o.mineNext))
		fetchHead(x.orders.at(o.minePrev))
		fetchLink(links.At(l.Next))
		fetchLink(links.At(l.Prev))
	}
}

func (t *toucher) wallets() {
	x := t.x
	for _, h := range t.orders[:t.cancels] {
		o := x.orders.at(h)
		fetchMarket(x.markets.at(uint32(o.market)))
		fetchPosition(x.positions.at(o.position))
		fetchAccount(x.accounts.at(uint32(o.wallet)))
	}
	for _, h := range t.orders[:t.cancels] {
		o := x.orders.at(h)
		fetchLevel(x.markets.at(uint32(o.market)).book.Peek(uint32(o.index)))
	}
}

// leaving returns the tag of the placement that the n-th next one, from 0, will push out, or 0.
func (s *seen) leaving(n uint32) uint32 {
	at := s.at + n + 1
	if at > s.window {
		at -= s.window
	}
	if at > s.ring.used {
		return 0
	}
	return s.ring.at(at).tag
}

func (b *Book) pageAt(index uint32) *page {
	n := index >> pageBits
	if n >= uint32(len(b.pages)) {
		return nil
	}
	return &b.pages[n]
}

// Peek returns the level of an index, nil if its page was not made.
func (b *Book) Peek(index uint32) *level {
	if p := b.pageAt(index); p != nil && p.levels != nil {
		return p.level(index)
	}
	return nil
}

// fetchNext fetches the order that an arriving one of side meets next: h, or the first of the best
// level if h is 0. No Command has read that order since it was placed.
func fetchNext(x *Exchange, b *Book, side Side, h uint32) {
	if h == 0 {
		l := b.Peek(b.Best[side^1])
		if l == nil {
			return
		}
		h = l.Head
	}
	fetchOrder(x.orders.at(h))
	fetchLink(x.queues.Links.At(h))
}
