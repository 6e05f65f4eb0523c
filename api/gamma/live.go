package gamma

import (
	"bytes"
	"strconv"

	"clobd/api/catalog"
	"clobd/api/wire"
	"clobd/engine"
)

// A market that trades here has its own prices, volumes and liquidity, which stand in the place of
// the source's. What the node does not keep (changes of a price) is left out of such a market: the
// source's figure would be another place's.

// marketValues are what a market that trades here is worth.
type marketValues struct {
	worth
	price, other    int64 // of both outcomes, in 1/100,000
	bid, ask, last  engine.Price
	tick            engine.Price
	minimum         engine.Size
	accepts, closed bool
}

// liveField is a member that a market has from its book.
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
	// What a market has only if its source has it.
	liveVolumeBook
	liveLiquidityBook
	liveDayBook
	liveWeekBook
	liveMonthBook
	liveYearBook
	liveFields
)

// liveKeys are the keys of the fields.
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

// liveFieldOf is the field of a key.
func liveFieldOf(key []byte) liveField {
	for f := noLive + 1; f < liveFields; f++ {
		if string(key) == liveKeys[f] {
			return f
		}
	}
	return noLive
}

// liveMarket appends the members that a market has from its book: in the source's order, then those
// that the source did not have. One that does not trade here has what its source says.
func (d *describer) liveMarket(b []byte, m *catalog.Market, members []byte) []byte {
	v, trades := d.values(m)
	if !trades {
		return appendMembers(b, members)
	}
	var had [liveFields]bool
	for key, value := range catalog.Members(members) {
		f, asText := liveFieldOf(key), value[0] == '"'
		switch {
		case f != noLive:
			had[f] = true
			b = v.append(b, f, asText)
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

// ofPool reports whether a figure is that of a pool beside the order book, of which there is none
// here: the source's would not add up with ours.
func ofPool(key []byte) bool { return bytes.HasSuffix(key, []byte("Amm")) }

// append appends a field, as a text if asked for; nothing if the book does not have it.
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
	}
	var p engine.Price
	switch f {
	case liveBid:
		p = v.bid
	case liveAsk:
		p = v.ask
	case liveLast:
		p = v.last
	case liveSpread:
		if v.bid != 0 && v.ask != 0 {
			return wire.AppendNumber(b, key, int64(v.ask-v.bid), 4)
		}
	}
	if p == 0 {
		return b
	}
	return wire.AppendNumber(b, key, int64(p), 4)
}

// appendAmount appends an amount of base units as a number, or as a text.
func appendAmount(b []byte, key string, v int64, asText bool) []byte {
	if asText {
		return wire.AppendDecimalField(b, key, v, 6)
	}
	return wire.AppendNumber(b, key, v, 6)
}

// liveEvent appends the members that an event has from the books of its markets: sums, and whether
// it has ended. An event of which no market trades here has what its source says.
func (d *describer) liveEvent(b []byte, e *catalog.Event, members []byte) []byte {
	var sum worth
	trades, over := false, true
	markets := d.c.MarketsOf(e)
	for _, m := range markets {
		w, closed := worth{volume: m.Volume, liquidity: m.Liquidity, windows: m.Windows}, m.Closed
		if listed := d.h.o.Board.Directory.Condition(m.Condition); listed != nil {
			var err error
			w, err = d.h.o.Values.of(listed)
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
