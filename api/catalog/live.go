package catalog

import (
	"slices"
	"sync/atomic"
	"time"

	"clobd/engine"
)

const (
	// liveAge is how old live values are when a page has them read again for later pages.
	liveAge = 2 * time.Second
	// liveLate is how old they may be for a page to use: the first page after a quiet time waits.
	liveLate = 3 * liveAge
)

// Live are the values that lists sort and filter a market or an event by.
type Live struct {
	Volume, Liquidity int64 // in units of 10^-6
	Windows           Windows
	Closed            bool
	Trades            bool // it trades here; of an event: one of its markets does
}

// liveBoard asks for live values, for one catalog at a time.
type liveBoard struct {
	ask  func(engine.Condition) (Live, bool)
	busy atomic.Bool
}

// liveColumns are the live values of one kind by row number.
type liveColumns struct {
	numbers        [liveOrders][]int64 // volume, liquidity, windows of the volume
	closed, trades bitset
}

func (l *liveColumns) at(no int32) Live {
	v := Live{Volume: l.numbers[0][no], Liquidity: l.numbers[1][no], Closed: l.closed.has(no),
		Trades: l.trades.has(no)}
	for i := range v.Windows {
		v.Windows[i] = l.numbers[2+i][no]
	}
	return v
}

// put enters the values of a row, and reports whether they have changed.
func (l *liveColumns) put(no int32, v Live) bool {
	if int(no) < len(l.numbers[0]) && l.at(no) == v {
		return false
	}
	w := &v.Windows
	for i, value := range [liveOrders]int64{v.Volume, v.Liquidity, w[0], w[1], w[2], w[3]} {
		for int(no) >= len(l.numbers[i]) {
			l.numbers[i] = append(l.numbers[i], 0)
		}
		l.numbers[i][no] = value
	}
	l.closed.put(no, v.Closed)
	l.trades.put(no, v.Trades)
	return true
}

func (l *liveColumns) clone() liveColumns {
	next := liveColumns{closed: slices.Clone(l.closed), trades: slices.Clone(l.trades)}
	for i, column := range l.numbers {
		next.numbers[i] = slices.Clone(column)
	}
	return next
}

// liveView has all live values of a moment, and the lists by them. It does not change.
type liveView struct {
	at      time.Time
	markets liveColumns
	events  liveColumns
	// byMarket and byEvent are the lists from ByVolume on.
	byMarket, byEvent [liveOrders]*sorted
	found             *foundCache
}

// askLive asks for the values of a market. Where it does not trade they are the source's.
func askLive(c *Catalog, m *Market) Live {
	v := Live{Volume: m.Volume, Liquidity: m.Liquidity, Windows: m.Windows, Closed: m.Closed}
	if c.live == nil || c.live.ask == nil || m.Tokens[0] == m.Tokens[1] {
		return v
	}
	if now, ok := c.live.ask(m.Condition); ok {
		v = now
		v.Closed, v.Trades = v.Closed || m.Closed, true
	}
	return v
}

// sumLive returns the values of an event: the sums over its markets once one of them trades here.
// Until then the source's figures of the event count, or the sums if it has none. An event is
// closed if its record says so or all of its markets are closed.
func sumLive(c *Catalog, e *Event, markets *liveColumns) Live {
	own := Live{Volume: e.Volume, Liquidity: e.Liquidity, Windows: e.Windows, Closed: e.Closed}
	if len(e.markets) == 0 {
		return own
	}
	sum := Live{Closed: true}
	for _, no := range e.markets {
		v := markets.at(no)
		sum.Volume, sum.Liquidity = sum.Volume+v.Volume, sum.Liquidity+v.Liquidity
		for i := range v.Windows {
			sum.Windows[i] += v.Windows[i]
		}
		sum.Closed, sum.Trades = sum.Closed && v.Closed, sum.Trades || v.Trades
	}
	sum.Closed = sum.Closed || e.Closed
	if own.Closed = sum.Closed; !sum.Trades && own != (Live{Closed: own.Closed}) {
		return own
	}
	return sum
}

// viewOf makes a view with the present values of some rows and the old values of the others. If
// nothing has changed it is the old view with another time.
func viewOf(c *Catalog, old *liveView, markets, events []int32) *liveView {
	v := &liveView{at: time.Now(), found: new(foundCache)}
	if old != nil {
		v.markets, v.events = old.markets.clone(), old.events.clone()
	}
	var movedMarkets, movedEvents []int32
	touched := slices.Clone(events)
	for _, no := range markets {
		m := c.Markets.At(no)
		if v.markets.put(no, askLive(c, m)) {
			movedMarkets = append(movedMarkets, no)
			if m.EventNo != None {
				touched = append(touched, m.EventNo)
			}
		}
	}
	slices.Sort(touched)
	touched = slices.Compact(touched)
	for _, no := range touched {
		if v.events.put(no, sumLive(c, c.Events.At(no), &v.markets)) {
			movedEvents = append(movedEvents, no)
		}
	}
	if len(markets) < c.Markets.Len() || old == nil {
		movedMarkets, movedEvents = markets, touched // rows have changed, perhaps their ids
	} else if len(movedMarkets)+len(movedEvents) == 0 && old.byMarket[0].count == len(markets) {
		same := *old
		same.at = v.at
		return &same
	}
	for i := range liveOrders {
		inMarkets, inEvents := v.markets.numbers[i], v.events.numbers[i]
		byID := c.orders[ofMarkets][ByID]
		v.byMarket[i] = &sorted{count: c.Markets.Len(), ids: byID.ids, id: byID.id,
			number: func(no int32) int64 { return inMarkets[no] }}
		byID = c.orders[ofEvents][ByID]
		v.byEvent[i] = &sorted{count: c.Events.Len(), ids: byID.ids, id: byID.id,
			number: func(no int32) int64 { return inEvents[no] }}
		if old != nil {
			v.byMarket[i].follow(old.byMarket[i], movedMarkets)
			v.byEvent[i].follow(old.byEvent[i], movedEvents)
		}
	}
	return v
}

// now returns the view that pages use: the last one made. An old view has another one made in the
// background; a very old one the caller replaces at once.
func (c *Catalog) now() *liveView {
	v := c.seen.Load()
	age := time.Since(v.at)
	if c.live == nil || c.live.ask == nil || age <= liveAge ||
		!c.live.busy.CompareAndSwap(false, true) {
		return v
	}
	renew := func() *liveView {
		defer c.live.busy.Store(false)
		all := make([]int32, c.Markets.Len())
		for i := range all {
			all[i] = int32(i)
		}
		next := viewOf(c, v, all, nil)
		c.seen.Store(next)
		return next
	}
	if age > liveLate {
		return renew()
	}
	go renew()
	return v
}
