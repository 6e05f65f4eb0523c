package engine

// level is the queue of orders at one price of one book. Which side they are on follows from
// where the level lies: all bids are below all asks.
type level struct {
	head, tail uint32
	count      uint32
	_          uint32
	size       Size // of all its orders
}

const (
	pageBits = 6
	pageSize = 1 << pageBits
	// summaryWords bounds a ladder: 9,999 levels are 157 pages are 3 words.
	summaryWords = 3
)

// page is 64 neighbouring levels and the set of those that are not empty.
type page struct {
	set    uint64
	levels [pageSize]level
}
