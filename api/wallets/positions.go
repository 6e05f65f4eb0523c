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

// holding is one position on its way to an answer. What is not asked for is not filled in before
// the page is cut: a wallet may have ten thousand.
type holding struct {
	market    *view.Market
	size      engine.Size
	bought    engine.Size
	cost      int64 // of what it holds, or if that is nothing of all that it bought; without fees
	realized  int64 // without fees
	updated   engine.Time
	outcome   engine.Outcome
	mergeable bool

	price int64 // of the token, in 1/100,000
	key   int64 // what it is sorted by
	text  string
}

// hold makes a holding of one of both rows of a wallet in a market.
func hold(m *view.Market, both *[2]history.PositionRow, o engine.Outcome) holding {
	r := &both[o]
	p := holding{market: m, outcome: o, size: r.Size, bought: r.Bought, updated: r.Updated,
		cost: int64(r.Cost - r.HeldFees), realized: int64(r.Realized + r.Fees - r.HeldFees)}
	if r.Size == 0 {
		p.cost = int64(r.BoughtCash)
	}
	p.mergeable = both[0].Size > 0 && both[1].Size > 0 && m.State != engine.Settled
	return p
}

// average is what a share cost, in 1/1,000,000.
func (p *holding) average() int64 {
	if p.size == 0 {
		return ratio(p.cost, engine.Unit, uint64(p.bought))
	}
	return ratio(p.cost, engine.Unit, uint64(p.size))
}

// initial is what the shares that are held cost, current what they are worth; in base units.
func (p *holding) initial() int64 {
	if p.size == 0 {
		return 0
	}
	return p.cost
}

func (p *holding) current() int64 { return ratio(int64(p.size), uint64(p.price), 100_000) }

// redeemable reports whether the market pays something for it.
func (p *holding) redeemable() bool {
	return p.size > 0 && p.market.State == engine.Settled && p.price > 0
}

// tokenPrice is what a token is worth, in 1/100,000.
func (h *Wallets) tokenPrice(m *view.Market, o engine.Outcome) int64 {
	first := h.o.Price(m)
	if o == 0 || first == 0 && m.State != engine.Settled {
		return first
	}
	return 10*int64(engine.PriceOne) - first
}

// portfolio is the part of a wallet's positions that a request asks for.
type portfolio struct {
	closed                bool
	markets               []*view.Market
	named                 bool // markets were
	least                 engine.Size
	redeemable, mergeable bool
	title                 string
	limit, offset         int
	sort                  string
	descending            bool
}

// positions answers GET /positions: what a wallet holds.
func (h *Wallets) positions(ctx *fasthttp.RequestCtx) {
	a := askFor(ctx, "user", "market", "sizeThreshold", "redeemable", "mergeable", "limit", "offset",
		"sortBy", "sortDirection", "title")
	u := h.user(a)
	var w portfolio
	w.markets, w.named = h.markets(a)
	w.least = engine.Size(a.amount("sizeThreshold", engine.Unit))
	w.redeemable, w.mergeable = a.flag("redeemable", false), a.flag("mergeable", false)
	w.limit, w.offset = a.Count("limit", 100, 500), a.Count("offset", 0, 10_000)
	w.sort = a.word("sortBy", "TOKENS", "CURRENT", "INITIAL", "CASHPNL", "PERCENTPNL", "TITLE",
		"RESOLVING", "PRICE", "AVGPRICE")
	w.descending, w.title = a.descending(), a.title()
	h.answerPositions(ctx, a, u, &w)
}

// closedPositions answers GET /closed-positions: what a wallet held once and holds no more.
func (h *Wallets) closedPositions(ctx *fasthttp.RequestCtx) {
	a := askFor(ctx, "user", "market", "title", "limit", "offset", "sortBy", "sortDirection")
	u := h.user(a)
	w := portfolio{closed: true}
	w.markets, w.named = h.markets(a)
	w.limit, w.offset = a.Count("limit", 10, 50), a.Count("offset", 0, 100_000)
	w.sort = a.word("sortBy", "REALIZEDPNL", "TITLE", "PRICE", "AVGPRICE", "TIMESTAMP")
	w.descending, w.title = a.descending(), a.title()
	h.answerPositions(ctx, a, u, &w)
}

// answerPositions finds, sorts and encodes one page.
func (h *Wallets) answerPositions(ctx *fasthttp.RequestCtx, a *query, u user, w *portfolio) {
	if a.Refused != nil {
		a.Refused.Send(ctx)
		return
	}
	room := h.holdings.Get().(*[]holding)
	defer h.holdings.Put(room)
	all, refused := h.collect(u, w, (*room)[:0])
	*room = all
	if refused != nil {
		refused.Send(ctx)
		return
	}
	page := w.page(all)
	b := append(make([]byte, 0, 2+1024*len(page)), '[')
	wallet := h.o.Checksum(u.address)
	for i := range page {
		b = append(wire.AppendComma(b), '{')
		b = wire.CloseObject(h.appendPosition(b, wallet, &page[i], w.closed))
	}
	wire.AnswerRaw(ctx, append(b, ']'))
}

// collect appends what is asked for of a wallet's positions to all, in no order that counts.
func (h *Wallets) collect(u user, w *portfolio, all []holding) ([]holding, *wire.Refusal) {
	if u.no == 0 || w.named && len(w.markets) == 0 {
		return all, nil
	}
	if !h.settled(u) {
		return all, errBehind
	}
	take := func(both *[2]history.PositionRow) {
		m := h.o.Board.Directory.Market(both[0].Market)
		for o := range engine.Outcome(2) {
			r := &both[o]
			if m == nil || r.Bought == 0 || (r.Size == 0) != w.closed || r.Size < w.least {
				continue
			}
			if p := hold(m, both, o); h.wants(&p, w) {
				all = append(all, p)
			}
		}
	}
	var err error
	if w.named {
		for i := 0; i < len(w.markets) && err == nil; i++ {
			var both [2]history.PositionRow
			if both, err = h.o.History.Position(u.no, w.markets[i].No); err == nil {
				take(&both)
			}
		}
	} else {
		err = h.o.History.EachPosition(u.no, take)
	}
	if err != nil {
		return all, h.unread("read positions", u.address.Hex(), err)
	}
	return all, nil
}

// wants reports whether a position passes the filters, and fills in what it is sorted by.
func (h *Wallets) wants(p *holding, w *portfolio) bool {
	if w.mergeable && !p.mergeable {
		return false
	}
	switch w.sort {
	case "CURRENT", "CASHPNL", "PERCENTPNL", "PRICE":
		p.price = h.tokenPrice(p.market, p.outcome)
	}
	if w.redeemable {
		p.price = h.tokenPrice(p.market, p.outcome)
		if !p.redeemable() {
			return false
		}
	}
	if w.title != "" || w.sort == "TITLE" || w.sort == "RESOLVING" {
		about := h.about(p.market)
		if !containsFold(about.title, w.title) {
			return false
		}
		if p.text = about.title; w.sort == "RESOLVING" {
			p.text = about.endDate
		}
	}
	p.key = p.rank(w.sort)
	return true
}

// rank is the number that a position is sorted by.
func (p *holding) rank(sort string) int64 {
	switch sort {
	case "TOKENS":
		return int64(p.size)
	case "CURRENT":
		return p.current()
	case "INITIAL":
		return p.initial()
	case "CASHPNL":
		return p.current() - p.initial()
	case "PERCENTPNL":
		return percent(p.current()-p.initial(), p.initial())
	case "PRICE":
		return p.price
	case "AVGPRICE":
		return p.average()
	case "REALIZEDPNL":
		return p.realized
	case "TIMESTAMP":
		return int64(p.updated)
	}
	return 0
}

// page sorts what was found and cuts out what is asked for. Equals stay in the order in which their
// markets were listed, so that pages do not overlap.
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

// appendPosition appends the members of one position.
func (h *Wallets) appendPosition(b []byte, wallet string, p *holding, closed bool) []byte {
	m, c := p.market, h.o.Catalog()
	p.price = h.tokenPrice(m, p.outcome)
	about, other := h.about(m), p.outcome.Other()
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

// value answers GET /value: what all that a wallet holds is worth, or what it holds in the markets
// that are named.
func (h *Wallets) value(ctx *fasthttp.RequestCtx) {
	a := askFor(ctx, "user", "market")
	u := h.user(a)
	w := portfolio{sort: "CURRENT"}
	if w.markets, w.named = h.markets(a); a.Refused != nil {
		a.Refused.Send(ctx)
		return
	}
	all, refused := h.collect(u, &w, nil)
	if refused != nil {
		refused.Send(ctx)
		return
	}
	sum := int64(0)
	for i := range all {
		sum += all[i].key
	}
	b := append(make([]byte, 0, 128), '[', '{')
	b = wire.AppendField(b, "user", h.o.Checksum(u.address))
	b = wire.AppendNumber(b, "value", cents(sum), 2)
	wire.Answer(ctx, append(b, '}', ']'))
}

// tradedMarkets answers GET /traded: in how many markets a wallet has traded.
func (h *Wallets) tradedMarkets(ctx *fasthttp.RequestCtx) {
	a := askFor(ctx, "user")
	u := h.user(a)
	if a.Refused != nil {
		a.Refused.Send(ctx)
		return
	}
	if !h.settled(u) {
		errBehind.Send(ctx)
		return
	}
	count := uint64(0)
	err := h.o.History.EachPosition(u.no, func(both *[2]history.PositionRow) {
		if both[0].Taken+both[0].Made+both[1].Taken+both[1].Made > 0 {
			count++
		}
	})
	if err != nil {
		h.unread("read positions", u.address.Hex(), err).Send(ctx)
		return
	}
	b := append(make([]byte, 0, 128), '{')
	b = wire.AppendField(b, "user", h.o.Checksum(u.address))
	b = strconv.AppendUint(wire.AppendKey(b, "traded"), count, 10)
	wire.Answer(ctx, wire.CloseObject(b))
}
