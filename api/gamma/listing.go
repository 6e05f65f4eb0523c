package gamma

import (
	"strconv"

	"github.com/valyala/fasthttp"

	"clobd/api/catalog"
	"clobd/api/wire"
	"clobd/engine"
	"clobd/engine/view"
)

const (
	// marketLimit is how many markets a page holds at most.
	marketLimit = 500
	// marketScan is how many are looked at for one page.
	marketScan = 10_000
	// engineOnly is where the ordinals of markets begin that the catalog says nothing about. Below
	// are those of the catalog's rows, from 1.
	engineOnly = 1 << 32
)

// bookMarket is a market of the order book's lists: the catalog describes it, or it trades here, or
// both.
type bookMarket struct {
	m      *catalog.Market // nil: nothing is said of it
	listed *view.Market    // nil: it does not trade here
}

// hasBook reports whether there is an order book, or was one elsewhere: only then it has two
// tokens.
func (l *bookMarket) hasBook() bool {
	return l.listed != nil || l.m != nil && l.m.Tokens[0] != l.m.Tokens[1]
}

// marketForm appends the members of an entry.
type marketForm func(*describer, []byte, *bookMarket) []byte

// bookList answers a list of all markets, or of those that take orders, as pages of entries.
func (h *Gamma) bookList(form marketForm, accepting bool) fasthttp.RequestHandler {
	return func(ctx *fasthttp.RequestCtx) {
		at, ok := wire.ReadCursor(ctx)
		if !ok {
			errCursor.Send(ctx)
			return
		}
		c := h.o.Catalog()
		h.writeOr(wire.ErrInternal, ctx, c, func(d *describer, b []byte) []byte {
			b, count := wire.BeginPage(b), 0
			next := uint64(0)
			if !at.Past {
				next = h.eachEntry(c, max(at.From, 1), func(l *bookMarket) bool {
					if accepting && (l.listed == nil || !Accepts(h.o.Board, l.listed)) {
						return true
					}
					if count == marketLimit {
						return false
					}
					b = wire.CloseObject(form(d, append(wire.AppendComma(b), '{'), l))
					count++
					return true
				})
			}
			return wire.EndPage(b, next, wire.EndCursor, wire.PageSize{Limit: marketLimit, Count: count})
		})
	}
}

// eachEntry calls each with the markets from an ordinal on until it does not take one, and returns
// the ordinal of that, 0 behind the last one. It looks at marketScan of them at most.
func (h *Gamma) eachEntry(
	c *catalog.Catalog, from uint64, each func(*bookMarket) bool,
) (next uint64) {
	rows, directory := uint64(0), h.o.Board.Directory
	if c != nil {
		rows = uint64(c.Markets.Len())
	}
	for scanned := 0; ; scanned++ {
		if from > rows && from <= engineOnly {
			from = engineOnly + 1
		}
		var l bookMarket
		if from <= rows {
			l.m = c.Markets.At(int32(from - 1))
			l.listed = directory.Condition(l.m.Condition)
		} else {
			no := from - engineOnly
			if no >= engineOnly {
				return 0
			}
			l.listed = directory.Market(engine.MarketNo(no))
			if l.listed == nil {
				return 0
			}
			if c.Market(l.listed.Condition) != nil {
				l.listed = nil
			}
		}
		if scanned == marketScan {
			return from
		}
		if l.hasBook() && !each(&l) {
			return from
		}
		from++
	}
}

// bookMarkets answers GET /markets with the order book's markets.
func (h *Gamma) bookMarkets(ctx *fasthttp.RequestCtx) {
	h.bookList((*describer).fullEntry, false)(ctx)
}

// simpleEntry appends the members of the short form.
func (d *describer) simpleEntry(b []byte, l *bookMarket) []byte {
	a := d.facts(l)
	b = a.appendStates(b)
	b = wire.AppendHexField(b, "condition_id", a.condition[:])
	b = strconv.AppendBool(wire.AppendKey(b, "neg_risk"), a.negRisk)
	b = wire.AppendField(b, "question", a.question)
	b = a.appendTokens(b)
	b = a.appendRewards(b)
	return a.appendNames(b)
}

// fullEntry appends the members of the long form.
func (d *describer) fullEntry(b []byte, l *bookMarket) []byte {
	a := d.facts(l)
	if l.m != nil && l.m.HasBook {
		b = d.recordedEntry(b, l, &a)
	} else {
		b = d.madeEntry(b, l, &a)
	}
	b = a.appendNames(b)
	b = d.appendEventOf(b, l.m)
	if a.metadata == nil {
		return append(b, `,"raw_metadata":{}`...)
	}
	return appendMember(b, []byte("raw_metadata"), a.metadata)
}

// recordedEntry appends what the order book's record says, with what the book says in its place
// where the market trades here.
func (d *describer) recordedEntry(b []byte, l *bookMarket, a *entryFacts) []byte {
	r := d.bookRecord(l.m)
	for key, value := range catalog.Members(r.Core) {
		switch string(key) {
		case "status", "market_id", "slug", "assets_ids", "outcomes", "event", "raw_metadata":
			// written anew, below
		default:
			b = appendMember(b, key, value)
		}
	}
	if l.listed == nil {
		return appendMembers(b, r.Live)
	}
	b = strconv.AppendBool(wire.AppendKey(b, "closed"), a.closed)
	b = strconv.AppendBool(wire.AppendKey(b, "accepting_orders"), a.accepts)
	b = a.appendRules(b)
	b = strconv.AppendUint(wire.AppendKey(b, "taker_base_fee"), uint64(l.listed.Fee.Rate), 10)
	b = strconv.AppendBool(wire.AppendKey(b, "is_50_50_outcome"), a.half)
	return a.appendTokens(b)
}

// madeEntry appends what is known of a market that the source has no order-book record of. What is
// not known is empty, null where clients take an absent date as one.
func (d *describer) madeEntry(b []byte, l *bookMarket, a *entryFacts) []byte {
	var said said
	if l.m != nil {
		r := d.marketRecord(l.m)
		said.read(r.Core)
	}
	fee := engine.Fee{}
	if l.listed != nil {
		fee = l.listed.Fee
	}
	b = strconv.AppendBool(wire.AppendKey(b, "enable_order_book"),
		l.listed != nil || string(said.orderBook) == "true")
	b = a.appendStates(b)
	b = appendSaid(b, "accepting_order_timestamp", said.accepting, "null")
	b = a.appendRules(b)
	b = wire.AppendHexField(b, "condition_id", a.condition[:])
	if said.questionID == nil {
		b = wire.AppendHexField(b, "question_id", a.condition[:])
	} else {
		b = appendMember(b, []byte("question_id"), said.questionID)
	}
	b = wire.AppendField(b, "question", a.question)
	b = appendSaid(b, "description", said.description, `""`)
	b = wire.AppendField(b, "market_slug", a.slug)
	b = appendSaid(b, "end_date_iso", said.end, "null")
	b = appendSaid(b, "game_start_time", said.start, "null")
	b = appendSaid(b, "seconds_delay", said.delay, "0")
	b = append(b, `,"fpmm":"","maker_base_fee":0`...)
	b = strconv.AppendUint(wire.AppendKey(b, "taker_base_fee"), uint64(fee.Rate), 10)
	b = appendSaid(b, "notifications_enabled", said.notifications, "false")
	b = strconv.AppendBool(wire.AppendKey(b, "neg_risk"), a.negRisk)
	b = appendSaid(b, "neg_risk_market_id", said.negRiskMarket, `""`)
	b = appendSaid(b, "neg_risk_request_id", said.negRiskRequest, `""`)
	b = appendSaid(b, "icon", said.icon, `""`)
	b = appendSaid(b, "image", said.image, `""`)
	b = a.appendRewards(b)
	b = strconv.AppendBool(wire.AppendKey(b, "is_50_50_outcome"), a.half)
	b = a.appendTokens(b)
	b = append(wire.AppendKey(b, "tags"), '[')
	if l.m != nil {
		for _, t := range d.c.MarketTags(l.m) {
			b = wire.AppendText(wire.AppendComma(b), t.Label)
		}
	}
	return append(b, ']')
}

// appendEventOf appends the event that a market belongs to; its texts are empty if there is none.
func (d *describer) appendEventOf(b []byte, m *catalog.Market) []byte {
	b = append(wire.AppendKey(b, "event"), '{')
	e, description := d.c.EventOf(m), []byte(`""`)
	if e == nil {
		e = new(catalog.Event)
	} else {
		r := d.eventRecord(e)
		for key, value := range catalog.Members(r.Core) {
			if string(key) == "description" && value[0] == '"' {
				description = value
				break
			}
		}
	}
	b = wire.AppendField(b, "id", e.ID)
	b = wire.AppendField(b, "slug", e.Slug)
	b = wire.AppendField(b, "title", e.Title)
	b = wire.AppendField(b, "ticker", e.Ticker)
	return wire.CloseObject(appendMember(b, []byte("description"), description))
}

// othersOf appends the members of a market in the catalog's shape that the order book's shape has
// none of the same name.
func (d *describer) othersOf(b []byte, m *catalog.Market) []byte {
	d.draft = d.plainMarket(d.draft[:0], m)
	for key, value := range catalog.Members(d.draft) {
		if !alsoInBook(key) {
			b = appendMember(b, key, value)
		}
	}
	return b
}

// alsoInBook reports whether a member of the catalog's shape is also one of the order book's,
// perhaps in another form.
func alsoInBook(key []byte) bool {
	switch string(key) {
	case "question", "description", "slug", "icon", "image", "outcomes", "tags", "active", "closed",
		"archived", "rewards", "event", "status", "fpmm", "tokens":
		return true
	}
	return false
}

var errCursor = wire.Refuse(fasthttp.StatusBadRequest, "bad_payload", "invalid next_cursor",
	"next_cursor is one that was answered, or MA== for the first page")
