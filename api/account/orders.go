package account

import (
	"fmt"
	"strconv"
	"strings"
	"time"

	"github.com/valyala/fasthttp"

	"clobd/api/wire"
	"clobd/engine"
	"clobd/journal/history"
)

// order answers GET /data/order/{id}, of any order that was ever taken, live or not. That of
// somebody else is as unknown as one that never was.
func (h *Account) order(ctx *fasthttp.RequestCtx, c *caller) {
	_, id, _ := strings.Cut(wire.Text(ctx.URI().PathOriginal()), accountOrder)
	if id == "" {
		wire.NotFound(ctx)
		return
	}
	record, refused := h.find(c, id)
	if refused != nil {
		refused.Send(ctx)
		return
	}
	wire.Answer(ctx, record.appendAnswer(make([]byte, 0, 2048), c.dialect))
}

// find is the caller's order with that id, or says why there is none.
func (h *Account) find(c *caller, text string) (r orderRecord, refused *wire.Refusal) {
	id, ok := engine.ParseOrderID(text)
	if !ok {
		return r, errOrderID
	}
	if c.no == 0 {
		return r, errNoOrder
	}
	row, ok, err := h.o.History.Order(id)
	if err != nil {
		return r, wire.Internal(h.o.Log, "read order", text, err)
	}
	if !ok || row.Owner != c.no {
		return r, errNoOrder
	}
	if r, err = h.describe(&row, c.address); err != nil {
		return r, wire.Internal(h.o.Log, "describe order", text, err)
	}
	return r, nil
}

// orderRecord is an order as clients see it: a row of the index with its names filled in.
type orderRecord struct {
	*history.OrderRow
	market  engine.Condition
	token   engine.Token
	outcome string // the label
	maker   string
	owner   string // uuid of the API key that sent it
}

// describe fills in the names of a row. It is an error if the Board does not know what the row
// names: then index and Board are not of one journal.
func (h *Account) describe(row *history.OrderRow, owner engine.Address) (orderRecord, error) {
	d := h.o.Board.Directory
	m := d.Market(row.Market)
	maker, known := d.Address(row.Wallet)
	if m == nil || !known {
		return orderRecord{}, fmt.Errorf("market %d or wallet %d of the order is not published",
			row.Market, row.Wallet)
	}
	return orderRecord{
		OrderRow: row,
		market:   m.Condition,
		token:    m.Tokens[row.Outcome],
		outcome:  h.o.Catalog().Label(m.Condition, row.Outcome),
		maker:    h.o.Checksum(maker),
		owner:    h.o.KeyID(owner, row.Key),
	}, nil
}

// appendAnswer appends the answer in the caller's dialect. SVC_ clients read an envelope; all
// others read the record at the top level and find the envelope beside it.
func (r *orderRecord) appendAnswer(b []byte, dialect wire.Dialect) []byte {
	b = append(b, '{')
	if dialect == wire.SVC {
		b = append(wire.AppendKey(b, "order"), '{')
		return append(r.appendRecord(b, dialect), '}', '}')
	}
	from := len(b)
	b = r.appendRecord(b, dialect)
	to := len(b)
	b = append(wire.AppendKey(b, "order"), '{')
	b = append(b, b[from:to]...)
	return append(b, '}', '}')
}

// appendRecord appends the members of the record in the caller's dialect: SVC_ clients read it in
// camelCase, all others in snake_case and find the camelCase keys beside it.
func (r *orderRecord) appendRecord(b []byte, dialect wire.Dialect) []byte {
	status := statusText(r.OrderRow)
	if dialect == wire.POLY {
		status = strings.ToUpper(status)
	}
	b = r.appendCommon(b, status)
	if dialect != wire.SVC {
		b = r.appendSnake(b)
	}
	return r.appendCamel(b)
}

// appendCommon appends the fields that are called the same in both styles.
func (r *orderRecord) appendCommon(b []byte, status string) []byte {
	b = append(wire.AppendKey(b, "id"), '"')
	b = append(engine.AppendHex(b, r.ID[:]), '"')
	b = wire.AppendField(b, "status", status)
	b = append(wire.AppendKey(b, "market"), '"')
	b = append(engine.AppendHex(b, r.market[:]), '"')
	b = wire.AppendField(b, "outcome", r.outcome)
	b = wire.AppendField(b, "owner", r.owner)
	b = wire.AppendDecimalField(b, "price", int64(r.Price), 4)
	return wire.AppendField(b, "side", wire.SideText(r.Side))
}

// appendCamel appends the rest of the record in camelCase.
func (r *orderRecord) appendCamel(b []byte) []byte {
	b = r.appendToken(b, "assetId")
	b = wire.AppendField(b, "makerAddress", r.maker)
	b = wire.AppendDecimalField(b, "originalSize", int64(r.Size), 6)
	b = wire.AppendDecimalField(b, "sizeMatched", int64(r.Matched), 6)
	b = wire.AppendField(b, "type", typeText(r.Type))
	b = r.appendTrades(b, "associateTrades")
	b = append(wire.AppendKey(b, "createdAt"), '"')
	b = time.UnixMilli(int64(r.Time)).UTC().AppendFormat(b, "2006-01-02T15:04:05.000Z07:00")
	return append(b, '"')
}

// appendSnake appends the rest of the record in snake_case. Times are in seconds.
func (r *orderRecord) appendSnake(b []byte) []byte {
	b = r.appendToken(b, "asset_id")
	b = wire.AppendField(b, "maker_address", r.maker)
	b = wire.AppendDecimalField(b, "original_size", int64(r.Size), 6)
	b = wire.AppendDecimalField(b, "size_matched", int64(r.Matched), 6)
	b = wire.AppendField(b, "order_type", typeText(r.Type))
	b = r.appendTrades(b, "associate_trades")
	b = strconv.AppendInt(wire.AppendKey(b, "created_at"), int64(r.Time)/1000, 10)
	b = append(wire.AppendKey(b, "expiration"), '"')
	return append(strconv.AppendInt(b, int64(r.Expiry)/1000, 10), '"')
}

func (r *orderRecord) appendToken(b []byte, key string) []byte {
	b = append(wire.AppendKey(b, key), '"')
	return append(r.token.AppendDecimal(b), '"')
}

func (r *orderRecord) appendTrades(b []byte, key string) []byte {
	b = append(wire.AppendKey(b, key), '[')
	for i, id := range r.Trades {
		if i > 0 {
			b = append(b, ',')
		}
		b = wire.AppendUUID(b, id)
	}
	return append(b, ']')
}

// statusText is an order's status as most clients read it. What its own terms killed on arrival was
// canceled.
func statusText(r *history.OrderRow) string {
	switch {
	case r.Status == engine.Live:
		return "live"
	case r.Status == engine.Matched:
		return "matched"
	case r.Reason == engine.MarketResolved:
		return "canceled_market_resolved"
	}
	return "canceled"
}

// typeText is an order type as the wire names it.
func typeText(t engine.OrderType) string {
	return [...]string{engine.GTC: "GTC", engine.GTD: "GTD", engine.FOK: "FOK", engine.FAK: "FAK"}[t]
}
