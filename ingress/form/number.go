package form

import (
	"strconv"
	"strings"

	"clobd/engine"
)

// Decimal reads a positive amount of whole units, up to 6 decimals, and returns it in base units.
func Decimal(s string) (int64, bool) {
	whole, part, point := strings.Cut(s, ".")
	if whole == "" || len(whole) > 10 || len(part) > 6 || point && part == "" {
		return 0, false
	}
	v, ok := Amount(whole + part + "000000"[len(part):])
	return int64(v), ok && v >= 1 && v <= engine.MaxAmount
}

// Price reads a decimal in [0, 1] with at most 4 decimals.
func Price(s string) (engine.Price, bool) {
	whole, part, point := strings.Cut(strings.TrimSpace(s), ".")
	if len(whole) != 1 || len(part) > 4 || point && part == "" {
		return 0, false
	}
	v, err := strconv.ParseUint(whole+part+"0000"[len(part):], 10, 16)
	return engine.Price(v), err == nil && v <= uint64(engine.PriceOne)
}
