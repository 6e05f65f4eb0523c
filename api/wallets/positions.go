package wallets

import (
	"cmp"
	"slices"
	"strconv"
	"strings"

	"github.com/valyala/fasthttp"

	"clobd/api/wire"
	"clobd/engine"
	"clobd/engine/view"
	"clobd/journal/history"
)

// holding is one position. Before the page is cut only the fields that filter and sort are filled
// in: a wallet may have ten thousand positions.
type holding struct {
	market    *view.Market
	size      engine.Size
	bought    engine.Size
	cost      int64 // of what is held, else of all that was bought; without fees
	realized  int64 // less all fees, also those of what is held
	updated   engine.Time
	outcome   engine.Outcome
	mergeable bool

	price int64 // of the token, in 1/100,000
	paid  bool  // price is the average that was paid: nobody knows a better one
	key   int64 // sorts the list, unless text does
	text  string
}

func hold(m *view.Market, both *[2]history.PositionRow, o engine.Outcome) holding {
	r := &both[o]
	p := holding{market: m, outcome: o, size: r.Size, bought: r.Bought, updated: r.Updated,
		cost: int64(r.Cost - r.HeldFees), realized: int64(r.Realized - r.HeldFees),
		mergeable: both[0].Size > 0 && both[1].Size > 0 && m.State != engine.Settled}
	if r.Size == 0 {
		p.cost = int64(r.BoughtCash)
	}
	return p
}

// average is what a share cost, in 1/1,000,000.
func (p *holding) average() int64 {
	return ratio(p.cost, engine.Unit, uint64(cmp.Or(p.size, p.bought)))
}

// initial is the cost of the shares that are held, and current their worth, in base units.
func (p *holding) initial() int64 {
	if p.size == 0 {
		return 0
	}
	return p.cost
}

func (p *holding) current() int64 {
	if p.paid {
		return p.initial()
	}
	return ratio(int64(p.size), uint64(p.price), 100_000)
}

// redeemable reports whether the market takes the position back for what it pays, perhaps nothing.
func (p *holding) redeemable() bool { return p.size > 0 && p.market.State == engine.Settled }

// appraise says what the position is worth: what the market says, else what was paid for it. first
// is the price of outcome 0, in 1/100,000; 0 says nothing before the market is resolved.
func (p *holding) appraise(first int64) {
	p.paid = first == 0 && p.market.State != engine.Settled
	switch {
	case p.paid:
		p.price = ratio(p.cost, 100_000, uint64(cmp.Or(p.size, p.bought)))
	case p.outcome == 0:
		p.price = first
	default:
		p.price = 10*int64(engine.PriceOne) - first
	}
}

type portfolio struct {
	closed                bool
	markets               []*view.Market
	named                 bool     // markets were given
	events                []string // ids; none: all
	least                 engine.Size
	redeemable, mergeable bool
	title                 string
	limit, offset         int
	sort                  string
	descending            bool
}

func (ws *Wallets) positions(ctx *fasthttp.RequestCtx) ([]byte, *wire.Refusal) {
	q := askFor(ctx, "user", "market", "sizeThreshold", "redeemable", "mergeable", "limit", "offset",
		"sortBy", "sortDirection", "title", "eventId")
	u := ws.user(q)
	var w portfolio
	w.markets, w.named = ws.markets(q)
	w.events = q.events(w.named)
	w.least = engine.Size(q.amount("sizeThreshold", engine.Unit))
	w.redeemable, w.mergeable = q.flag("redeemable", false), q.flag("mergeable", false)
	w.limit, w.offset = q.Count("limit", 100, 500), q.Count("offset", 0, 10_000)
	w.sort = q.word("sortBy", "TOKENS", "CURRENT", "INITIAL", "CASHPNL", "PERCENTPNL", "TITLE",
		"RESOLVING", "PRICE", "AVGPRICE")
	w.descending, w.title = q.descending(), q.title()
	return ws.listPositions(q, u, &w)
}

// closedPositions lists what a wallet held once and holds no more.
func (ws *Wallets) closedPositions(ctx *fasthttp.RequestCtx) ([]byte, *wire.Refusal) {
	q := askFor(ctx, "user", "market", "title", "limit", "offset", "sortBy", "sortDirection")
	u := ws.user(q)
	w := portfolio{closed: true}
	w.markets, w.named = ws.markets(q)
	w.limit, w.offset = q.Count("limit", 10, 50), q.Count("offset", 0, 100_000)
	w.sort = q.word("sortBy", "REALIZEDPNL", "TITLE", "PRICE", "AVGPRICE", "TIMESTAMP")
	w.descending, w.title = q.descending(), q.title()
	return ws.listPositions(q, u, &w)
}

// listPositions finds, sorts and encodes one page.
func (ws *Wallets) listPositions(q *query, u user, w *portfolio) ([]byte, *wire.Refusal) {
	if q.Refused != nil {
		return nil, q.Refused
	}
	room := ws.holdings.Get().(*[]holding)
	defer ws.holdings.Put(room)
	all, refused := ws.collect(u, w, (*room)[:0])
	*room = all
	if refused != nil {
		return nil, refused
	}
	page := w.page(all)
	b := append(make([]byte, 0, 2+1024*len(page)), '[')
	wallet := ws.o.Checksum(u.address)
	for i := range page {
		b = append(wire.AppendComma(b), '{')
		b = wire.CloseObject(ws.appendPosition(b, wallet, &page[i], w.closed))
	}
	return append(b, ']'), nil
}

// collect appends the positions of a wallet that w asks for to all, in no particular order.
func (ws *Wallets) collect(u user, w *portfolio, all []holding) ([]holding, *wire.Refusal) {
	if u.no == 0 || w.named && len(w.markets) == 0 {
		return all, nil
	}
	if !ws.settled(u) {
		return all, errBehind
	}
	take := func(both *[2]history.PositionRow) {
		m := ws.o.Board.Directory.Market(both[0].Market)
		for o := range engine.Outcome(2) {
			r := &both[o]
			if m == nil || r.Bought == 0 || (r.Size == 0) != w.closed || r.Size < w.least {
				continue
			}
			if p := hold(m, both, o); ws.inEvents(m, w.events) && ws.wants(&p, w) {
				all = append(all, p)
			}
		}
	}
	var err error
	if w.named {
		for i := 0; i < len(w.markets) && err == nil; i++ {
			var both [2]history.PositionRow
			if both, err = ws.o.History.Position(u.no, w.markets[i].No); err == nil {
				take(&both)
			}
		}
	} else {
		err = ws.o.History.EachPosition(u.no, take)
	}
	if err != nil {
		return all, ws.unread("read positions", u.address.Hex(), err)
	}
	return all, nil
}

// wants reports whether a position passes the filters, and fills in the key or text that sorts it.
func (ws *Wallets) wants(p *holding, w *portfolio) bool {
	if w.mergeable && !p.mergeable || w.redeemable && !p.redeemable() {
		return false
	}
	switch w.sort {
	case "CURRENT", "CASHPNL", "PERCENTPNL", "PRICE":
		p.appraise(ws.o.Price(p.market))
	}
	if w.title != "" || w.sort == "TITLE" || w.sort == "RESOLVING" {
		about := ws.about(p.market)
		if !containsFold(about.title, w.title) {
			return false
		}
		if p.text = about.title; w.sort == "RESOLVING" {
			p.text = about.endDate
		}
	}
	if rank := ranks[w.sort]; rank != nil {
		p.key = rank(p)
	}
	return true
}

// ranks are the numbers that positions are sorted by. The sorts by a text have none.
var ranks = map[string]func(*holding) int64{
	"TOKENS":      func(p *holding) int64 { return int64(p.size) },
	"CURRENT":     (*holding).current,
	"INITIAL":     (*holding).initial,
	"CASHPNL":     func(p *holding) int64 { return p.current() - p.initial() },
	"PERCENTPNL":  func(p *holding) int64 { return percent(p.current()-p.initial(), p.initial()) },
	"PRICE":       func(p *holding) int64 { return p.price },
	"AVGPRICE":    (*holding).average,
	"REALIZEDPNL": func(p *holding) int64 { return p.realized },
	"TIMESTAMP":   func(p *holding) int64 { return int64(p.updated) },
}

// page sorts positions and cuts one page out of them. Equal positions go in the order of their
// markets, so that pages do not overlap.
func (w *portfolio) page(all []holding) []holding {
	if w.offset >= len(all) {
		return nil
	}
	order := make([]int32, len(all))
	for i := range order {
		order[i] = int32(i)
	}
	textual := w.sort == "TITLE" || w.sort == "RESOLVING"
	slices.SortFunc(order, func(i, j int32) int {
		p, q := &all[i], &all[j]
		by := cmp.Compare(p.key, q.key)
		if textual {
			by = strings.Compare(p.text, q.text)
		}
		if w.descending {
			by = -by
		}
		return cmp.Or(by, cmp.Compare(p.market.No, q.market.No), cmp.Compare(p.outcome, q.outcome))
	})
	order = order[w.offset:]
	order = order[:min(w.limit, len(order))]
	page := make([]holding, len(order))
	for i, at := range order {
		page[i] = all[at]
	}
	return page
}

func (ws *Wallets) appendPosition(b []byte, wallet string, p *holding, closed bool) []byte {
	m, c := p.market, ws.o.Catalog()
	p.appraise(ws.o.Price(m))
	about, other := ws.about(m), p.outcome.Other()
	initial, current := cents(p.initial()), cents(p.current())
	cash, gain := current-initial, percent(p.current()-p.initial(), p.initial())
	realized, rate := cents(p.realized), percent(p.realized, int64(p.bought))
	if closed {
		cash, gain = realized, rate
	}
	b = wire.AppendField(b, "proxyWallet", wallet)
	b = appendAssetField(b, "asset", &m.Condition, p.outcome)
	b = wire.AppendHexField(b, "conditionId", m.Condition[:])
	b = wire.AppendNumber(b, "size", int64(p.size), 6)
	b = wire.AppendNumber(b, "avgPrice", p.average(), 6)
	b = wire.AppendNumber(b, "initialValue", initial, 2)
	b = wire.AppendNumber(b, "currentValue", current, 2)
	b = wire.AppendNumber(b, "cashPnl", cash, 2)
	b = wire.AppendNumber(b, "percentPnl", gain, 2)
	b = wire.AppendNumber(b, "totalBought", int64(p.bought), 6)
	b = wire.AppendNumber(b, "realizedPnl", realized, 2)
	b = wire.AppendNumber(b, "percentRealizedPnl", rate, 2)
	b = wire.AppendNumber(b, "curPrice", p.price, 5)
	b = strconv.AppendBool(wire.AppendKey(b, "redeemable"), p.redeemable())
	b = strconv.AppendBool(wire.AppendKey(b, "mergeable"), p.mergeable && !closed)
	b = appendAbout(b, &about)
	b = wire.AppendField(b, "outcome", c.Label(m.Condition, p.outcome))
	b = strconv.AppendUint(wire.AppendKey(b, "outcomeIndex"), uint64(p.outcome), 10)
	b = wire.AppendField(b, "oppositeOutcome", c.Label(m.Condition, other))
	b = appendAssetField(b, "oppositeAsset", &m.Condition, other)
	b = wire.AppendNumber(b, "timestamp", int64(p.updated)/1000, 0)
	b = wire.AppendField(b, "endDate", about.endDate)
	if !closed {
		b = strconv.AppendBool(wire.AppendKey(b, "negativeRisk"), m.NegRisk)
	}
	return b
}

// value tells what a wallet holds is worth, in all markets or in those that the query names.
func (ws *Wallets) value(ctx *fasthttp.RequestCtx) ([]byte, *wire.Refusal) {
	q := askFor(ctx, "user", "market")
	u := ws.user(q)
	w := portfolio{sort: "CURRENT"}
	if w.markets, w.named = ws.markets(q); q.Refused != nil {
		return nil, q.Refused
	}
	all, refused := ws.collect(u, &w, nil)
	if refused != nil {
		return nil, refused
	}
	sum := int64(0)
	for i := range all {
		sum += all[i].key
	}
	b := append(make([]byte, 0, 128), '[', '{')
	b = wire.AppendField(b, "user", ws.o.Checksum(u.address))
	b = wire.AppendNumber(b, "value", cents(sum), 2)
	return append(b, '}', ']'), nil
}

func (ws *Wallets) tradedMarkets(ctx *fasthttp.RequestCtx) ([]byte, *wire.Refusal) {
	q := askFor(ctx, "user")
	u := ws.user(q)
	if q.Refused != nil {
		return nil, q.Refused
	}
	if !ws.settled(u) {
		return nil, errBehind
	}
	count := uint64(0)
	err := ws.o.History.EachPosition(u.no, func(both *[2]history.PositionRow) {
		if both[0].Taken+both[0].Made+both[1].Taken+both[1].Made > 0 {
			count++
		}
	})
	if err != nil {
		return nil, ws.unread("read positions", u.address.Hex(), err)
	}
	b := append(make([]byte, 0, 128), '{')
	b = wire.AppendField(b, "user", ws.o.Checksum(u.address))
	b = strconv.AppendUint(wire.AppendKey(b, "traded"), count, 10)
	return wire.CloseObject(b), nil
}
