package history

import (
	"clobd/engine"
)

// Supply returns how many of each token of a market wallets hold, in base units. places is the
// number of holders of both tokens: Supply takes a step for each. The error is as for Past.
func (h *History) Supply(market engine.MarketNo) (sum [2]engine.Size, places int, err error) {
	visit := func(o engine.Outcome, x Holder) bool {
		sum[o] += x.Size
		places++
		return true
	}
	err = h.view(func() error { return h.eachHolder(market, [2]engine.Outcome{0, 1}, visit) },
		"add up the holders of market", uint32(market))
	return sum, places, err
}
