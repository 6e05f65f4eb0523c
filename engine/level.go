package engine

// level is the queue of orders at one price of one book: four to a cache line. Which side they are
// on follows from where the level lies: all bids are below all asks.
type level struct {
	head, tail uint32
	size       Size // of all its orders
}

const (
	pageBits = 6
	pageSize = 1 << pageBits
	// summaryWords bounds a ladder: 9,999 levels are 157 pages are 3 words.
	summaryWords = 3
)

// page is 64 neighbouring levels and the set of those that are not empty. The sets of a book lie
// side by side, so that the next best level is found without a look at the levels between.
type page struct {
	set    uint64
	levels *[pageSize]level // 1 KB, nil until something rests here
}

// level is the one of an index that lies on this page, which was made. As in slab.at, no page is
// read to see whether there is one.
func (p *page) level(index uint32) *level {
	l := p.levels
	if l == nil {
		panic("BUG: a page of levels is missing")
	}
	return &l[index&(pageSize-1)]
}

// link is an order's place in its queue: its neighbours' numbers, 0 at the ends.
type link struct{ next, prev uint32 }

// queues are the links of all orders of all books, by the orders' numbers, and who is free. They
// lie apart from the orders: taking one out of its queue writes to both its neighbours, and eight
// links share a cache line where an order fills two. A number that was given back is the next one
// taken, because its lines are still in the cache.
type queues struct {
	links tray[link] // 0 is nobody's: what is written there is never read
	freed uint32     // first of the numbers to be used again, linked by next
}

// fresh adds a number that was never used to those that are free.
func (q *queues) fresh() { q.give(q.links.next()) }

// give takes back the number of an order that is in no queue.
func (q *queues) give(h uint32) {
	q.links.at(h).next, q.freed = q.freed, h
}

// behind is the order that came to rest after h at the same price, 0 if none.
func (q *queues) behind(h uint32) uint32 { return q.links.at(h).next }
