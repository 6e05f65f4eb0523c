//go:build !amd64 && !arm64

package engine

func fetchBucket(*bucket)     {}
func fetchOrder(*order)       {}
func fetchHead(*order)        {}
func fetchLink(*link)         {}
func fetchLevel(*level)       {}
func fetchPage(*page)         {}
func fetchPosition(*position) {}
func fetchAccount(*account)   {}
func fetchMarket(*market)     {}
