package view

import (
	"math/bits"

	"clobd/engine"
)

// Changes calls each with every level of outcome o whose size differs between was, an earlier
// Snapshot of the same market, and s: its size in s, 0 if it is gone. A level that went from one
// side to the other is two changes. Levels come by rising price of outcome 0. Changes skips what
// the two Snapshots share: its cost grows with what changed between them, not with what rests. If
// the market's tick has changed, all levels are new: Changes then calls nothing and returns false.
func (s *Snapshot) Changes(
	was *Snapshot, o engine.Outcome, each func(engine.Side, engine.Price, engine.Size),
) bool {
	tick := s.Market.Tick
	if was.Market.Tick != tick {
		return false
	}
	for g, now := range s.ladder.groups {
		before := was.ladder.groups[g]
		if before == now {
			continue
		}
		before, now = before.orEmpty(), now.orEmpty()
		for c := range fanout {
			if before.chunks[c] == now.chunks[c] {
				continue
			}
			eachChange(before, now, c, func(side engine.Side, i int, size engine.Size) {
				price := engine.Price(g<<groupBits|c<<chunkBits|i) * tick
				each(turn(o, side), mirror(o, price), size)
			})
		}
	}
	return true
}

// eachChange calls each with every level of chunk c whose size differs between two groups.
func eachChange(before, now *group, c int, each func(engine.Side, int, engine.Size)) {
	old, sizes := before.chunks[c].orEmpty(), now.chunks[c].orEmpty()
	live := before.live[0][c] | before.live[1][c] | now.live[0][c] | now.live[1][c]
	for ; live != 0; live &= live - 1 {
		i := bits.TrailingZeros64(live)
		for side := engine.Buy; side <= engine.Sell; side++ {
			was, size := sizeOf(before.live[side][c], old, i), sizeOf(now.live[side][c], sizes, i)
			if was != size {
				each(side, i, size)
			}
		}
	}
}

// sizeOf returns the size of level i of a side, whose levels are live; 0 if i is none of them.
func sizeOf(live uint64, sizes *chunk, i int) engine.Size {
	if live>>i&1 == 0 {
		return 0
	}
	return sizes[i]
}

var (
	emptyGroup group
	emptyChunk chunk
)

func (g *group) orEmpty() *group {
	if g == nil {
		return &emptyGroup
	}
	return g
}

func (c *chunk) orEmpty() *chunk {
	if c == nil {
		return &emptyChunk
	}
	return c
}
