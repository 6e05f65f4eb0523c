package engine

// level is the queue of orders at one price: four to a cache line. All bids are below all asks.
type level struct {
	Head, Tail uint32
	Size       Size // of all its orders
}

const (
	pageBits     = 6
	pageSize     = 1 << pageBits
	summaryWords = 3 // bounds a ladder: 9,999 levels are 157 pages are 3 words
)

// page is 64 levels and the set of non-empty ones: a search reads the sets, side by side in a book.
type page struct {
	set    uint64
	levels *[pageSize]level // 1 KB, nil until something rests here
}

// level returns the level of an index on this page. The page must exist. As in slab.at, the
// explicit comparison keeps the compiler from reading the page to check the pointer.
func (p *page) level(index uint32) *level {
	l := p.levels
	if l == nil {
		panic("BUG: a page of levels is missing")
	}
	return &l[index&(pageSize-1)]
}

// link holds the numbers of an order's neighbours in its queue, 0 at the ends.
type link struct{ Next, Prev uint32 }

// Queues holds the links of all orders of all Books by number, and the free numbers. The links lie
// apart from the orders: eight share a cache line. The number freed last is used first.
type Queues struct {
	Links Tray[link] // link 0 belongs to no order: nobody reads what is written there
	Freed uint32     // the first free number; next of its link leads to the others
}

// behind returns the order behind h at the same price, 0 if there is none.
func (q *Queues) behind(h uint32) uint32 { return q.Links.At(h).Next }
