//go:build !amd64 && !arm64

package engine

func fetchBucket(*bucket)       {}
func fetchOrder(*order)         {}
func fetchHead(*order)          {}
func fetchLink(*link)           {}
func fetchLevel(*level)         {}
func fetchPage(*page)           {}
func fetchPosition(*position)   {}
func fetchAccount(*account)     {}
func fetchMarket(*market)       {}
func fetchBareOrder(*bareOrder) {}

func fetchNear(_, _ []uint32, _ *[nearRecords]link, _ *[nearRecords]bareOrder) {}

// FetchHandles fetches nothing here.
func FetchHandles(_, _ []uint32) {}
