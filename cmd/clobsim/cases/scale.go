package cases

import (
	"fmt"
	"math/big"
	"slices"
	"strconv"
	"strings"

	"clobd/engine"
)

// scale turns prices and sizes of a file into the engine's units and back.
type scale struct {
	mul, div int64                  // a linear price: engine = source * mul / div
	rank     map[int64]engine.Price // or any that keeps the order
	back     map[engine.Price]int64
	unit     engine.Size // one source unit of size, in base units
}

// maxUnits bounds size_mul, and so what a source unit can be: sizes still fit 64 bits.
const maxUnits = 1 << 20

// mostShares bounds a size of a file, in base units: a hundred of the largest orders.
const mostShares = 100 * engine.MaxOrder

// newScale reads a price map. A map that is not one to one and in order is an error.
func newScale(m *priceMap, sizeMul int64) (*scale, error) {
	if sizeMul < 1 || sizeMul > maxUnits {
		return nil, fmt.Errorf("size_mul %d lies outside [1, %d]", sizeMul, maxUnits)
	}
	s := &scale{unit: engine.Size(sizeMul) * engine.Lot}
	switch m.Kind {
	case "linear":
		return s, s.linear(m.Decimal)
	case "rank":
		return s, s.ranked(m.Map)
	}
	return nil, fmt.Errorf("price_map of unknown kind %q", m.Kind)
}

// linear reads "price/10000", or any other power of ten up to that.
func (s *scale) linear(decimal string) error {
	_, divisor, _ := strings.Cut(decimal, "/")
	n, err := strconv.ParseInt(divisor, 10, 64)
	if err != nil || n < 1 || int64(engine.PriceOne)%n != 0 {
		return fmt.Errorf("linear price map %q: want price / a power of ten up to 10000", decimal)
	}
	s.mul, s.div = int64(engine.PriceOne)/n, 1
	return nil
}

// ranked reads a table of prices.
func (s *scale) ranked(table map[string]string) error {
	s.rank, s.back = map[int64]engine.Price{}, map[engine.Price]int64{}
	var sources []int64
	for from, to := range table {
		n, err := strconv.ParseInt(from, 10, 64)
		if err != nil {
			return fmt.Errorf("price map: %w", err)
		}
		r, ok := new(big.Rat).SetString(to)
		if !ok {
			return fmt.Errorf("price map: %q is no number", to)
		}
		r.Mul(r, big.NewRat(int64(engine.PriceOne), 1))
		if !r.IsInt() || r.Sign() <= 0 || r.Cmp(big.NewRat(int64(engine.PriceOne), 1)) >= 0 {
			return fmt.Errorf("price map: %q is not on the grid of 0.0001 to 0.9999", to)
		}
		p := engine.Price(r.Num().Int64())
		s.rank[n], s.back[p] = p, n
		sources = append(sources, n)
	}
	slices.Sort(sources)
	for i := 1; i < len(sources); i++ {
		if s.rank[sources[i-1]] >= s.rank[sources[i]] {
			return fmt.Errorf("price map: %d and %d are not in order", sources[i-1], sources[i])
		}
	}
	return nil
}

// ratio makes the map linear with the smallest power of ten that brings all prices onto the grid:
// amounts of money keep their proportions then. It does nothing if there is none.
func (s *scale) ratio(prices []int64) {
	for div := int64(1); div <= 1_000_000_000; div *= 10 {
		if !slices.ContainsFunc(prices, func(p int64) bool {
			return p%div != 0 || p/div < 1 || p/div >= int64(engine.PriceOne)
		}) {
			s.mul, s.div, s.rank, s.back = 1, div, nil, nil
			return
		}
	}
}

// price is a source price in the engine's units.
func (s *scale) price(source int64) (engine.Price, error) {
	if s.rank != nil {
		p, ok := s.rank[source]
		if !ok {
			return 0, fmt.Errorf("price %d is not in the price map", source)
		}
		return p, nil
	}
	if source < 1 || source > int64(engine.PriceOne)*s.div || source*s.mul%s.div != 0 ||
		source*s.mul/s.div >= int64(engine.PriceOne) {
		return 0, cannot("price %d is not on the grid of 0.0001 to 0.9999", source)
	}
	return engine.Price(source * s.mul / s.div), nil
}

// source is the file's price for one of the engine's; false if the file has none.
func (s *scale) source(p engine.Price) (int64, bool) {
	if s.rank != nil {
		n, ok := s.back[p]
		return n, ok
	}
	return int64(p) * s.div / s.mul, int64(p)*s.div%s.mul == 0
}

// size is a source size in base units.
func (s *scale) size(source int64) (engine.Size, error) {
	if most := mostShares / s.unit; source < 0 || source > int64(most) {
		return 0, fmt.Errorf("size %d lies outside [0, %d]", source, most)
	}
	return engine.Size(source) * s.unit, nil
}

// units is a size in source units; false if it is no whole number of them.
func (s *scale) units(size engine.Size) (int64, bool) {
	return int64(size / s.unit), size%s.unit == 0
}
