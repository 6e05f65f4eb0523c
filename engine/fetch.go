//go:build amd64 || arm64

package engine

// Each function prefetches one record; nil is allowed. The processor does not wait for a prefetch,
// while an unused read still stalls the instructions some hundreds behind it.

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
