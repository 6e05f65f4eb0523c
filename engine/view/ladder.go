package view

import (
	"math/bits"

	"clobd/engine"
)

const (
	chunkLevels = 64
	fanout      = 16 // chunks of a group, groups of a ladder: 16,384 levels, and 9,999 are needed

	chunkBits = 6
	groupBits = chunkBits + 4
)

// ladder is one market's levels by index (price / tick), in prices of outcome 0. It has two sides:
// engine.Buy are the bids, engine.Sell the asks. A level is never both. A published ladder never
// changes: the next one shares its unchanged parts.
type ladder struct {
	groups [fanout]*group
	any    [2]uint16 // by side: groups with a live level
}

// group is 1,024 levels. The bits of the levels lie here and not in the chunk: so the search for a
// level reads no chunk, and a chunk has no pointers and fills exactly 512 bytes.
type group struct {
	chunks [fanout]*chunk
	live   [2][fanout]uint64 // by side and chunk: the non-empty levels
	any    [2]uint16         // by side: chunks with a live level
}

type chunk [chunkLevels]engine.Size

// empty is the ladder of every market without orders. Nobody writes to it.
var empty ladder

// front returns the best of the set bits: the highest of bids, the lowest of asks. w is not 0.
func front(side engine.Side, w uint64) int {
	if side == engine.Buy {
		return bits.Len64(w) - 1
	}
	return bits.TrailingZeros64(w)
}

// best returns the index of the best level of a side, 0 if the side is empty: no price has index 0.
func (l *ladder) best(side engine.Side) int {
	if l.any[side] == 0 {
		return 0
	}
	g := front(side, uint64(l.any[side]))
	c := front(side, uint64(l.groups[g].any[side]))
	return g<<groupBits | c<<chunkBits | front(side, l.groups[g].live[side][c])
}

// walk calls each with index and size of the side's levels, best first, until each returns false.
func (l *ladder) walk(side engine.Side, each func(index int, size engine.Size) bool) {
	for gs := uint64(l.any[side]); gs != 0; {
		g := front(side, gs)
		gs &^= 1 << g
		grp := l.groups[g]
		for cs := uint64(grp.any[side]); cs != 0; {
			c := front(side, cs)
			cs &^= 1 << c
			sizes := grp.chunks[c]
			for ls := grp.live[side][c]; ls != 0; {
				i := front(side, ls)
				ls &^= 1 << i
				if !each(g<<groupBits|c<<chunkBits|i, sizes[i]) {
					return
				}
			}
		}
	}
}
