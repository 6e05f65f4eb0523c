package catalog

import (
	"hash/fnv"
	"strconv"

	"clobd/engine"
)

// The rules of a market whose record has none: a cent, five shares.
const (
	defaultTick = 100
	defaultMin  = 5 * engine.Unit
)

// group numbers an event for the engine.
func group(id string) uint64 {
	const high = 1 << 63
	if n, err := strconv.ParseUint(id, 10, 63); err == nil {
		return n
	}
	h := fnv.New64a()
	h.Write([]byte(id))
	return h.Sum64() | high
}

func clip(s string) string {
	if len(s) > 90 {
		return s[:90] + "…"
	}
	return s
}
