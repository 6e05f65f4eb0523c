package api

import (
	"strconv"

	"github.com/valyala/fasthttp"

	"clobd/api/catalog"
	"clobd/engine"
	"clobd/engine/view"
)

const (
	// marketLimit is how many markets a page holds at most.
	marketLimit = 500
	// marketScan is how many are looked at for one page.
	marketScan = 10_000
)

// listed is a market with what is said about it: fields of the description are empty if the catalog
// has none.
type listed struct {
	*view.Market
	about   catalog.Market
	event   catalog.Event
	accepts bool
	prices  [2]int64 // in 1/100,000
}

// describeMarket fills in what is said about a market and what its tokens are worth.
func (h *Handler) describeMarket(m *view.Market) listed {
	l := listed{Market: m, accepts: h.accepts(m)}
	c := h.o.Catalog()
	if about := c.Market(m.Condition); about != nil {
		l.about = *about
		if about.Event != nil {
			l.event = *about.Event
		}
	}
	l.about.Outcomes = []string{c.Label(m.Condition, 0), c.Label(m.Condition, 1)}
	l.prices[0] = currentPrice(h.o.Board.Condition(m.Condition), m)
	if l.prices[0] != 0 || m.State == engine.Settled {
		l.prices[1] = 10*int64(engine.PriceOne) - l.prices[0]
	}
	return l
}

// currentPrice is what outcome 0 is worth, in 1/100,000: its payout, else the midpoint, else the
// last trade, else 0.
func currentPrice(s *view.Snapshot, m *view.Market) int64 {
	if m.State == engine.Settled {
		return 10 * int64(m.Payout)
	}
	if bid, ask := s.Best(0); bid != 0 && ask != 0 {
		return 5 * (int64(bid) + int64(ask))
	}
	p, _, _ := s.Last(0)
	return 10 * int64(p)
}

// status is the market's state as a word.
func (l *listed) status() string {
	switch l.State {
	case engine.Paused:
		return "paused"
	case engine.Closed:
		return "closed"
	case engine.Settled:
		return "resolved"
	}
	return "active"
}

// marketList answers a list of all markets, or of those that take orders, as pages of entries.
func (h *Handler) marketList(
	entry func(*listed, []byte) []byte, accepting bool,
) fasthttp.RequestHandler {
	return func(ctx *fasthttp.RequestCtx) {
		at, ok := parseCursor(ctx)
		if !ok {
			errCursor.send(ctx)
			return
		}
		b, count, next := beginPage(make([]byte, 0, 64<<10)), 0, uint64(0)
		from := max(at.from, 1)
		for no := from; !at.past && no < 1<<32; no++ {
			m := h.o.Board.Directory.Market(engine.MarketNo(no))
			if m == nil {
				break
			}
			if count == marketLimit || no-from == marketScan {
				next = no
				break
			}
			if !accepting || h.accepts(m) {
				l := h.describeMarket(m)
				b = closeObject(entry(&l, append(appendComma(b), '{')))
				count++
			}
		}
		ctx.SetContentType(jsonType)
		ctx.Response.SetBodyRaw(endPage(b, next, endCursor, page{marketLimit, count}))
	}
}

// marketPages answers GET /markets if it asks for a page of the order book's markets, which only
// a cursor says.
func (h *Handler) marketPages() fasthttp.RequestHandler {
	list := h.marketList((*listed).appendFull, false)
	return func(ctx *fasthttp.RequestCtx) {
		if !ctx.QueryArgs().Has("next_cursor") {
			notFound(ctx)
			return
		}
		list(ctx)
	}
}

// marketByCondition answers GET /markets/{condition}.
func (h *Handler) marketByCondition(ctx *fasthttp.RequestCtx) {
	id, _ := ctx.UserValue("condition").(string)
	if c, ok := parseCondition(id); ok {
		if m := h.o.Board.Directory.Condition(c); m != nil {
			l := h.describeMarket(m)
			answer(ctx, closeObject(l.appendFull(append(make([]byte, 0, 2048), '{'))))
			return
		}
	}
	errNoID.send(ctx)
}

// appendSimple appends the members of the short form.
func (l *listed) appendSimple(b []byte) []byte {
	b = l.appendStates(b)
	b = appendHexField(b, "condition_id", l.Condition[:])
	b = strconv.AppendBool(appendKey(b, "neg_risk"), l.NegRisk)
	b = appendField(b, "question", l.about.Question)
	b = l.appendTokens(b)
	b = appendRewards(b)
	return l.appendNames(b)
}

// appendFull appends the members of the long form. What the catalog does not say is empty, null
// where clients take an absent date as one.
func (l *listed) appendFull(b []byte) []byte {
	b = append(appendKey(b, "enable_order_book"), "true"...)
	b = l.appendStates(b)
	b = append(b, `,"accepting_order_timestamp":null`...)
	b = engine.AppendDecimal(appendKey(b, "minimum_order_size"), int64(l.MinSize), 6)
	b = engine.AppendDecimal(appendKey(b, "minimum_tick_size"), int64(l.Tick), 4)
	b = appendHexField(b, "condition_id", l.Condition[:])
	b = appendHexField(b, "question_id", l.Condition[:])
	b = appendField(b, "question", l.about.Question)
	b = appendField(b, "description", "")
	b = appendField(b, "market_slug", l.about.Slug)
	b = append(b, `,"end_date_iso":null,"game_start_time":null,"seconds_delay":0,"fpmm":"",`...)
	b = append(b, `"maker_base_fee":0`...)
	b = strconv.AppendUint(appendKey(b, "taker_base_fee"), uint64(l.Fee.Rate), 10)
	b = append(b, `,"notifications_enabled":false`...)
	b = strconv.AppendBool(appendKey(b, "neg_risk"), l.NegRisk)
	b = append(b, `,"neg_risk_market_id":"","neg_risk_request_id":"","icon":"","image":""`...)
	b = appendRewards(b)
	half := l.State == engine.Settled && l.Payout == engine.PriceOne/2
	b = strconv.AppendBool(appendKey(b, "is_50_50_outcome"), half)
	b = l.appendTokens(b)
	b = append(b, `,"tags":[]`...)
	b = l.appendNames(b)
	b = append(appendKey(b, "event"), '{')
	b = appendField(b, "id", l.event.ID)
	b = appendField(b, "slug", l.event.Slug)
	b = appendField(b, "title", l.event.Title)
	b = appendField(b, "ticker", l.event.Slug)
	b = closeObject(appendField(b, "description", ""))
	return append(b, `,"raw_metadata":{}`...)
}

// appendStates appends the flags of a market's life.
func (l *listed) appendStates(b []byte) []byte {
	ended := l.State == engine.Closed || l.State == engine.Settled
	b = append(appendKey(b, "active"), "true"...)
	b = strconv.AppendBool(appendKey(b, "closed"), ended)
	b = append(appendKey(b, "archived"), "false"...)
	return strconv.AppendBool(appendKey(b, "accepting_orders"), l.accepts)
}

// appendRewards appends that there are none.
func appendRewards(b []byte) []byte {
	return append(appendKey(b, "rewards"), `{"rates":[],"min_size":0,"max_spread":0}`...)
}

// appendTokens appends both tokens with what they are worth.
func (l *listed) appendTokens(b []byte) []byte {
	b = append(appendKey(b, "tokens"), '[')
	for o := range l.Tokens {
		b = append(appendComma(b), '{')
		b = appendTokenField(b, "token_id", l.Tokens[o])
		b = appendField(b, "outcome", l.about.Outcomes[o])
		b = engine.AppendDecimal(appendKey(b, "price"), l.prices[o], 5)
		won := l.State == engine.Settled && l.prices[o] == 10*int64(engine.PriceOne)
		b = closeObject(strconv.AppendBool(appendKey(b, "winner"), won))
	}
	return append(b, ']')
}

// appendNames appends how another kind of client looks for the same. market_id is the catalog's
// number, or the engine's where that is none.
func (l *listed) appendNames(b []byte) []byte {
	b = appendField(b, "status", l.status())
	id, err := strconv.ParseUint(l.about.ID, 10, 53)
	if err != nil {
		id = uint64(l.No)
	}
	b = strconv.AppendUint(appendKey(b, "market_id"), id, 10)
	b = appendField(b, "slug", l.about.Slug)
	b = append(appendKey(b, "assets_ids"), '[')
	for o := range l.Tokens {
		b = append(appendComma(b), '"')
		b = append(l.Tokens[o].AppendDecimal(b), '"')
	}
	b = append(appendKey(append(b, ']'), "outcomes"), '[')
	for _, label := range l.about.Outcomes {
		b = appendText(appendComma(b), label)
	}
	return append(b, ']')
}
