package gamma

import (
	"slices"
	"strconv"

	"github.com/valyala/fasthttp"

	"clobd/api/catalog"
	"clobd/api/wire"
	"clobd/engine"
	"clobd/engine/view"
)

const (
	marketLimit = 500    // markets of a page
	marketScan  = 10_000 // markets that are looked at for a page
	// engineOnly is the ordinal before the first market that the catalog does not know. The
	// ordinals of the catalog's rows are smaller and begin with 1.
	engineOnly = 1 << 32
)

// bookMarket is a market that the catalog describes, or that trades here, or both.
type bookMarket struct {
	m      *catalog.Market // nil: the catalog does not know the market
	listed *view.Market    // nil: the market does not trade here
}

// hasBook reports whether the market has an order book here or had one elsewhere. A market without
// a book has no two different tokens.
func (l *bookMarket) hasBook() bool {
	return l.listed != nil || l.m != nil && l.m.Tokens[0] != l.m.Tokens[1]
}

type marketForm func(*describer, []byte, *bookMarket) []byte

// bookList answers with a page of the list of all markets, or of those that accept orders.
// name is that of the form.
func (g *Gamma) bookList(
	name string, form marketForm, accepting bool,
) fasthttp.RequestHandler {
	return func(ctx *fasthttp.RequestCtx) {
		at, ok := wire.ReadCursor(ctx)
		if !ok {
			errCursor.Send(ctx)
			return
		}
		c, exact := g.o.Catalog(), wire.DialectOf(&ctx.Request.Header).Exact()
		key := keyOf(name).with(accepting).with(exact).with(at.Past).from(at.From).from(at.Offset)
		key = append(key, ctx.QueryArgs().Peek("creator")...)
		wanted := g.wanted(c, ctx, accepting)
		ok = g.page(ctx, c, key, func(d *describer, b []byte) []byte {
			b, count := wire.BeginPage(b), 0
			next := uint64(0)
			if !at.Past {
				next = g.eachEntry(c, g.start(c, &at, wanted), func(l *bookMarket) bool {
					if !wanted(l) {
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
			return wire.EndPage(b, at.Next(next, count, exact || count == 0), wire.EndCursor,
				wire.PageSize{Limit: marketLimit, Count: count})
		})
		if !ok {
			wire.ErrInternal.Send(ctx)
		}
	}
}

// wanted tells which markets a list has: all, or those that accept orders; if the query names a
// creator, only what he made.
func (g *Gamma) wanted(
	c *catalog.Catalog, ctx *fasthttp.RequestCtx, accepting bool,
) func(*bookMarket) bool {
	creator := ctx.QueryArgs().Peek("creator")
	made := c.MadeBy(string(creator))
	return func(l *bookMarket) bool {
		return (!accepting || l.listed != nil && Accepts(g.o.Board, l.listed)) &&
			(len(creator) == 0 || l.m != nil && made(l.m))
	}
}

// start finds the ordinal where a page begins; behind the end of the list it is behind all
// ordinals.
func (g *Gamma) start(
	c *catalog.Catalog, at *wire.Cursor, wanted func(*bookMarket) bool,
) uint64 {
	if at.From != 0 || at.Offset == 0 {
		return max(at.From, 1)
	}
	left := at.Offset
	for from := uint64(1); ; {
		from = g.eachEntry(c, from, func(l *bookMarket) bool {
			if !wanted(l) {
				return true
			}
			if left == 0 {
				return false
			}
			left--
			return true
		})
		switch {
		case from == 0:
			return 2 * engineOnly
		case left == 0:
			return from
		}
	}
}

// eachEntry calls each with at most marketScan markets from an ordinal on until each returns false.
// next is the ordinal of the first market that each did not take, 0 at the end of the list.
func (g *Gamma) eachEntry(
	c *catalog.Catalog, from uint64, each func(*bookMarket) bool,
) (next uint64) {
	rows, directory := uint64(0), g.o.Board.Directory
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
			if from >= 2*engineOnly {
				return 0
			}
			if l.listed = directory.Market(engine.MarketNo(from - engineOnly)); l.listed == nil {
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

// recordedEntry appends the order book's record. If the market trades here, the states and figures
// of its book replace those of the record.
func (d *describer) recordedEntry(b []byte, l *bookMarket, a *entryFacts) []byte {
	r := d.entryRecord(l.m)
	for key, value := range catalog.Members(r.Core) {
		switch string(key) {
		case "status", "market_id", "slug", "assets_ids", "outcomes", "event", "raw_metadata":
			// fullEntry writes these
		case "tags":
			b = appendMember(b, key, listOf(value))
		case "rewards":
			b = a.appendRewards(b)
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

// madeEntry appends an entry for a market without an order-book record. A value that nobody knows
// is empty, or null where clients expect a date or nothing.
func (d *describer) madeEntry(b []byte, l *bookMarket, a *entryFacts) []byte {
	var said said
	if l.m != nil {
		said.read(d.entryRecord(l.m).Core)
	}
	fee := engine.Fee{}
	if l.listed != nil {
		fee = l.listed.Fee
	}
	b = strconv.AppendBool(wire.AppendKey(b, "enable_order_book"),
		l.listed != nil || string(said.of("enableOrderBook")) == "true")
	b = a.appendStates(b)
	b = said.append(b, "accepting_order_timestamp", "acceptingOrdersTimestamp", "null")
	b = a.appendRules(b)
	b = wire.AppendHexField(b, "condition_id", a.condition[:])
	if id := said.of("questionID"); id != nil {
		b = appendMember(b, []byte("question_id"), id)
	} else {
		b = wire.AppendHexField(b, "question_id", a.condition[:])
	}
	b = wire.AppendField(b, "question", a.question)
	b = said.append(b, "description", "description", `""`)
	b = wire.AppendField(b, "market_slug", a.slug)
	b = said.append(b, "end_date_iso", "endDate", "null")
	b = said.append(b, "game_start_time", "gameStartTime", "null")
	b = said.append(b, "seconds_delay", "secondsDelay", "0")
	b = append(b, `,"fpmm":"","maker_base_fee":0`...)
	b = strconv.AppendUint(wire.AppendKey(b, "taker_base_fee"), uint64(fee.Rate), 10)
	b = said.append(b, "notifications_enabled", "notificationsEnabled", "false")
	b = strconv.AppendBool(wire.AppendKey(b, "neg_risk"), a.negRisk)
	b = said.append(b, "neg_risk_market_id", "negRiskMarketID", `""`)
	b = said.append(b, "neg_risk_request_id", "negRiskRequestID", `""`)
	b = said.append(b, "icon", "icon", `""`)
	b = said.append(b, "image", "image", `""`)
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

// appendEventOf appends the event of a market; all texts are empty if the market has none.
func (d *describer) appendEventOf(b []byte, m *catalog.Market) []byte {
	b = append(wire.AppendKey(b, "event"), '{')
	e, description := d.c.EventOf(m), []byte(`""`)
	if e == nil {
		e = new(catalog.Event)
	} else {
		description = d.eventDescription(e)
	}
	b = wire.AppendField(b, "id", e.ID)
	b = wire.AppendField(b, "slug", e.Slug)
	b = wire.AppendField(b, "title", e.Title)
	b = wire.AppendField(b, "ticker", e.Ticker)
	return wire.CloseObject(appendMember(b, []byte("description"), description))
}

// eventDescription is the description of an event, as written.
func (d *describer) eventDescription(e *catalog.Event) []byte {
	if d.eventOf == e {
		return d.eventText
	}
	d.eventOf, d.eventText = e, append(d.eventText[:0], `""`...)
	r := record(d, &d.spare, e, d.c.EventRecord)
	for key, value := range catalog.Members(r.Core) {
		if string(key) == "description" && value[0] == '"' {
			d.eventText = append(d.eventText[:0], value...)
			break
		}
	}
	return d.eventText
}

// othersOf appends the members of a market in the catalog's shape but for alsoInBook.
func (d *describer) othersOf(b []byte, m *catalog.Market) []byte {
	d.draft = d.plainMarket(d.draft[:0], m)
	for key, value := range catalog.Members(d.draft) {
		if !slices.Contains(alsoInBook[:], wire.Text(key)) {
			b = appendMember(b, key, value)
		}
	}
	return b
}

// alsoInBook are the members that both shapes have, perhaps in two forms.
var alsoInBook = [...]string{"question", "description", "slug", "icon", "image", "outcomes", "tags",
	"active", "closed", "archived", "rewards", "event", "status", "fpmm", "tokens"}

var errCursor = wire.Refuse(fasthttp.StatusBadRequest, "bad_payload", "invalid next_cursor",
	"next_cursor is one that was answered, or MA== for the first page")
