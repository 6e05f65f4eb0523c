package history

import (
	"fmt"

	"clobd/engine"
	"clobd/journal"
)

// Supply returns how many of each token of a market wallets hold, in base units, with the reserved
// ones. places is the number of holders of both tokens: Supply takes a step for each. The error is
// journal.ErrClosed, or names what cannot be read.
func (h *History) Supply(market engine.MarketNo) (sum [2]engine.Size, places int, err error) {
	if !h.gate.Enter() {
		return sum, 0, journal.ErrClosed
	}
	defer h.gate.Leave()
	from := holderKey(market, 0, Holder{0, engine.Size(^uint64(0) >> 1)})
	to := holderKey(market, 1, Holder{1<<32 - 1, 1})
	err = each(h.db, from[:], append(to[:], 0), func(key, _ []byte) (bool, error) {
		x, good := holderOf(key)
		if !good || key[5] > 1 {
			return false, errRow
		}
		sum[key[5]] += x.Size
		places++
		return true, nil
	})
	if err != nil {
		return sum, places, fmt.Errorf("add up the holders of market %d: %w", market, err)
	}
	return sum, places, nil
}
