//go:build amd64 || arm64

package engine

// The processor is told to get what will be needed, and does not wait for it: a read that nobody
// waits for still holds up what comes some hundred instructions behind it. nil is nothing to get.

//go:noescape
func fetchBucket(b *bucket)

//go:noescape
func fetchOrder(o *order)

// fetchHead fetches the first line of an order: it names the order's neighbours.
//
//go:noescape
func fetchHead(o *order)

//go:noescape
func fetchLink(l *link)

//go:noescape
func fetchLevel(l *level)

//go:noescape
func fetchPage(p *page)

//go:noescape
func fetchPosition(p *position)

//go:noescape
func fetchAccount(a *account)

//go:noescape
func fetchMarket(m *market)

//go:noescape
func fetchBareOrder(o *bareOrder)

// fetchNear fetches the links and the records of the orders of a Bare, where they lie in one piece.
// An id beyond handles is passed over.
//
//go:noescape
func fetchNear(handles, ids []uint32, links *[nearRecords]link, orders *[nearRecords]bareOrder)

// FetchHandles fetches where the caller of a Bare keeps the handles of these ids, BareAhead at a
// time, which it will read or write.
//
//go:noescape
func FetchHandles(handles, ids []uint32)
