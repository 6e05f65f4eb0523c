package history

import (
	"clobd/engine"
)

// Supply returns how many of each token of a market wallets hold, in base units. places is the
// number of holders of both tokens: Supply takes a step for each. The error is as for Past.
func (h *History) Supply(market engine.MarketNo) (sum [2]engine.Size, places int, err error) {
	from := holderKey(market, 0, Holder{0, engine.Size(^uint64(0) >> 1)})
	to := holderKey(market, 1, Holder{1<<32 - 1, 1})
	visit := func(key, _ []byte) (bool, error) {
		x, good := holderOf(key)
		if !good || key[5] > 1 {
			return false, errRow
		}
		sum[key[5]] += x.Size
		places++
		return true, nil
	}
	err = h.view(func() error { return each(h.db, from[:], append(to[:], 0), visit) },
		"add up the holders of market %d", market)
	return sum, places, err
}
