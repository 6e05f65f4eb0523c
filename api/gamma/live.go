package gamma

import (
	"bytes"
	"slices"
	"strconv"

	"clobd/api/catalog"
	"clobd/api/wire"
	"clobd/engine"
)

// marketValues are the figures of a market that trades here. They replace those of its source.
// Figures that the node does not keep, such as price changes, are left out: the source's are wrong.
type marketValues struct {
	worth
	price, other    int64 // of both outcomes, in 1/100,000
	bid, ask, last  engine.Price
	tick            engine.Price
	minimum         engine.Size
	accepts, closed bool
}

type liveField uint8

const (
	noLive liveField = iota
	livePrices
	liveBid
	liveAsk
	liveSpread
	liveLast
	liveVolume
	liveVolumeNumber
	liveLiquidity
	liveLiquidityNumber
	liveClosed
	liveAccepting
	liveTick
	liveMinimum
	liveDay
	liveWeek
	liveMonth
	liveYear
	// The fields below are written only if the source has them.
	liveVolumeBook
	liveLiquidityBook
	liveDayBook
	liveWeekBook
	liveMonthBook
	liveYearBook
	liveFields
)

var liveKeys = [liveFields]string{
	livePrices: "outcomePrices", liveBid: "bestBid", liveAsk: "bestAsk", liveSpread: "spread",
	liveLast: "lastTradePrice", liveVolume: "volume", liveVolumeNumber: "volumeNum",
	liveLiquidity: "liquidity", liveLiquidityNumber: "liquidityNum", liveClosed: "closed",
	liveAccepting: "acceptingOrders", liveTick: "orderPriceMinTickSize", liveMinimum: "orderMinSize",
	liveDay: "volume24hr", liveWeek: "volume1wk", liveMonth: "volume1mo", liveYear: "volume1yr",
	liveVolumeBook: "volumeClob", liveLiquidityBook: "liquidityClob",
	liveDayBook: "volume24hrClob", liveWeekBook: "volume1wkClob", liveMonthBook: "volume1moClob",
	liveYearBook: "volume1yrClob",
}

// liveMarket appends the members that a market has from its book: in the source's order, then those
// that the source does not have. For a market that does not trade here it appends the source's.
func (d *describer) liveMarket(b []byte, m *catalog.Market, members []byte) []byte {
	v, trades := d.values(m)
	if !trades {
		return appendMembers(b, members)
	}
	var had [liveFields]bool
	for key, value := range catalog.Members(members) {
		asText := value[0] == '"'
		switch f := slices.Index(liveKeys[:], wire.Text(key)); {
		case f > 0:
			had[f] = true
			b = v.append(b, liveField(f), asText)
		case ofPool(key):
			b = appendAmount(b, string(key), 0, asText)
		}
	}
	for f := noLive + 1; f < liveVolumeBook; f++ {
		if !had[f] {
			b = v.append(b, f, f == liveVolume || f == liveLiquidity)
		}
	}
	return b
}

// ofPool reports whether a figure is that of a pool beside the order book. The figures of pools are
// 0 here: the source's would not add up with those of our books.
func ofPool(key []byte) bool { return bytes.HasSuffix(key, []byte("Amm")) }

// append appends a field, an amount as a text if asText. It appends no price that the book lacks.
func (v *marketValues) append(b []byte, f liveField, asText bool) []byte {
	key := liveKeys[f]
	switch f {
	case livePrices:
		b = append(wire.AppendKey(b, key), `"[\"`...)
		b = append(engine.AppendDecimal(b, v.price, 5), `\", \"`...)
		return append(engine.AppendDecimal(b, v.other, 5), `\"]"`...)
	case liveClosed:
		return strconv.AppendBool(wire.AppendKey(b, key), v.closed)
	case liveAccepting:
		return strconv.AppendBool(wire.AppendKey(b, key), v.accepts)
	case liveVolume, liveVolumeNumber, liveVolumeBook:
		return appendAmount(b, key, v.volume, asText)
	case liveDay, liveWeek, liveMonth, liveYear:
		return appendAmount(b, key, v.windows[f-liveDay], asText)
	case liveDayBook, liveWeekBook, liveMonthBook, liveYearBook:
		return appendAmount(b, key, v.windows[f-liveDayBook], asText)
	case liveLiquidity, liveLiquidityNumber, liveLiquidityBook:
		return appendAmount(b, key, v.liquidity, asText)
	case liveTick:
		return wire.AppendNumber(b, key, int64(v.tick), 4)
	case liveMinimum:
		return wire.AppendNumber(b, key, int64(v.minimum), 6)
	case liveSpread:
		if v.bid == 0 || v.ask == 0 {
			return b
		}
		return wire.AppendNumber(b, key, int64(v.ask-v.bid), 4)
	}
	p := [...]engine.Price{liveBid: v.bid, liveAsk: v.ask, liveLast: v.last}[f]
	if p == 0 {
		return b
	}
	return wire.AppendNumber(b, key, int64(p), 4)
}

func appendAmount(b []byte, key string, v int64, asText bool) []byte {
	if asText {
		return wire.AppendDecimalField(b, key, v, 6)
	}
	return wire.AppendNumber(b, key, v, 6)
}

// liveEvent appends the members that an event has from the books of its markets: sums, and whether
// it has ended. For an event without a market that trades here it appends the source's.
func (d *describer) liveEvent(b []byte, e *catalog.Event, members []byte) []byte {
	var sum worth
	trades, over := false, true
	markets := d.c.MarketsOf(e)
	for _, m := range markets {
		w, closed := worth{volume: m.Volume, liquidity: m.Liquidity, windows: m.Windows}, m.Closed
		if listed := d.g.o.Board.Directory.Condition(m.Condition); listed != nil {
			var err error
			w, err = d.g.o.Values.of(listed)
			d.fail(err)
			trades, closed = true, closed || ended(listed)
		}
		over = over && closed
		sum.volume, sum.liquidity = sum.volume+w.volume, sum.liquidity+w.liquidity
		for i := range w.windows {
			sum.windows[i] += w.windows[i]
		}
	}
	b = strconv.AppendBool(wire.AppendKey(b, "closed"), e.Closed || over && len(markets) > 0)
	for key, value := range catalog.Members(members) {
		name := string(key)
		switch {
		case name == "closed":
		case !trades:
			b = appendMember(b, key, value)
		case name == "liquidityClob":
			b = appendAmount(b, name, sum.liquidity, value[0] == '"')
		case ofPool(key):
			b = appendAmount(b, name, 0, value[0] == '"')
		}
	}
	if !trades {
		return b
	}
	b = appendAmount(b, "volume", sum.volume, false)
	for i, key := range liveKeys[liveDay : liveYear+1] {
		b = appendAmount(b, key, sum.windows[i], false)
	}
	return appendAmount(b, "liquidity", sum.liquidity, false)
}
