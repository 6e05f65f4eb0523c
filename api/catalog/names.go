package catalog

import (
	"hash/fnv"
	"strconv"

	"clobd/api/wire/scan"
	"clobd/engine"
)

// What a market has that says nothing else: a cent, five shares.
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

// parseCondition reads 0x and 64 hex digits, of either letter case.
func parseCondition(s string) (c engine.Condition, ok bool) {
	if len(s) != 2+2*len(c) || s[:2] != "0x" {
		return c, false
	}
	for i := range c {
		hi, ok0 := scan.Nibble(s[2+2*i])
		lo, ok1 := scan.Nibble(s[3+2*i])
		if !ok0 || !ok1 {
			return engine.Condition{}, false
		}
		c[i] = hi<<4 | lo
	}
	return c, true
}

// clip keeps a quoted piece of a record short.
func clip(s string) string {
	if len(s) > 90 {
		return s[:90] + "…"
	}
	return s
}
