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

// order tells of any order that the caller ever placed, live or not.
func (a *Account) order(ctx *fasthttp.RequestCtx, c *caller) ([]byte, *wire.Refusal) {
	_, id, _ := strings.Cut(wire.Text(ctx.URI().PathOriginal()), orderPath)
	id = wire.Unescape(id)
	if id == "" {
		return nil, wire.NoRoute(ctx)
	}
	record, refused := a.find(c, id)
	if refused != nil {
		return nil, refused
	}
	return record.appendAnswer(make([]byte, 0, 2048), c.dialect), nil
}

// find looks up the caller's order with that id. The order of another owner is as unknown as an
// order that never was.
func (a *Account) find(c *caller, text string) (r orderRecord, refused *wire.Refusal) {
	id, ok := engine.ParseOrderID(text)
	if !ok {
		return r, errOrderID
	}
	if c.no == 0 {
		return r, errNoOrder
	}
	row, ok, err := a.o.History.Order(id)
	if err != nil {
		return r, wire.Internal(a.o.Log, "read order", text, err)
	}
	if !ok || row.Owner != c.no {
		return r, errNoOrder
	}
	if r, err = a.describe(&row, c.address); err != nil {
		return r, wire.Internal(a.o.Log, "describe order", text, err)
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

// describe fills in the names of a row. The error says that the Board does not know the row's
// market or wallet: index and Board then come from different journals.
func (a *Account) describe(row *history.OrderRow, owner engine.Address) (orderRecord, error) {
	d := a.o.Board.Directory
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
		outcome:  a.o.Catalog().Label(m.Condition, row.Outcome),
		maker:    a.o.Checksum(maker),
		owner:    a.o.KeyID(owner, row.Key),
	}, nil
}

// appendAnswer appends the answer in the caller's dialect: the record under the key "order", and
// for all clients but those of SVC_ its members at the top level before it.
func (r *orderRecord) appendAnswer(b []byte, dialect wire.Dialect) []byte {
	if dialect == wire.SVC {
		return append(r.appendRecord(append(b, `{"order":{`...), dialect), '}', '}')
	}
	from := len(b) + 1
	b = r.appendRecord(append(b, '{'), dialect)
	record := b[from:]
	b = append(append(b, `,"order":{`...), record...)
	return append(b, '}', '}')
}

// appendRecord appends the members of the record: in camelCase for SVC_ clients, in both snake_case
// and camelCase for all others.
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

func (r *orderRecord) appendCommon(b []byte, status string) []byte {
	b = wire.AppendHexField(b, "id", r.ID[:])
	b = wire.AppendField(b, "status", status)
	b = wire.AppendHexField(b, "market", r.market[:])
	b = wire.AppendField(b, "outcome", r.outcome)
	b = wire.AppendField(b, "owner", r.owner)
	b = wire.AppendDecimalField(b, "price", int64(r.Price), 4)
	b = wire.AppendField(b, "side", wire.SideText(r.Side))
	if why := reasonText(r.OrderRow); why != "" {
		b = wire.AppendField(b, "cancel_reason", why)
	}
	return b
}

// reasonText says why an order is cancelled, "" if it is not: a FAK that traded is matched.
func reasonText(r *history.OrderRow) string {
	switch {
	case r.Status != engine.Canceled:
		return ""
	case r.Reject != engine.Accepted: // killed by its own terms
		return wire.CancelReason(engine.Unfilled)
	}
	return wire.CancelReason(r.Reason)
}

// appendCamel appends the rest of the record in camelCase.
func (r *orderRecord) appendCamel(b []byte) []byte {
	b = wire.AppendTokenField(b, "assetId", r.token)
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
	b = wire.AppendTokenField(b, "asset_id", r.token)
	b = wire.AppendField(b, "maker_address", r.maker)
	b = wire.AppendDecimalField(b, "original_size", int64(r.Size), 6)
	b = wire.AppendDecimalField(b, "size_matched", int64(r.Matched), 6)
	b = wire.AppendField(b, "order_type", typeText(r.Type))
	b = r.appendTrades(b, "associate_trades")
	b = strconv.AppendInt(wire.AppendKey(b, "created_at"), int64(r.Time)/1000, 10)
	return wire.AppendDecimalField(b, "expiration", int64(r.Expiry)/1000, 0)
}

func (r *orderRecord) appendTrades(b []byte, key string) []byte {
	b = append(wire.AppendKey(b, key), '[')
	for _, id := range r.Trades {
		b = wire.AppendUUID(wire.AppendComma(b), id)
	}
	return append(b, ']')
}

// statusText is an order's status as most clients read it. An order that its own terms killed on
// arrival counts as canceled.
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

func typeText(t engine.OrderType) string {
	return [...]string{engine.GTC: "GTC", engine.GTD: "GTD", engine.FOK: "FOK", engine.FAK: "FAK"}[t]
}
