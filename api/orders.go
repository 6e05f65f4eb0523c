package api

import (
	"encoding/hex"
	"fmt"
	"strconv"
	"strings"
	"time"

	"github.com/valyala/fasthttp"

	"clobd/engine"
	"clobd/journal"
)

// awaitIndex is how long an account read waits for the index to see the account's last write.
const awaitIndex = 250 * time.Millisecond

// The dialect whose clients take the seed shape alone, and the one whose statuses are in capitals.
const (
	dialectService    = "SVC_"
	dialectPolymarket = "POLY_"
)

// order answers GET /data/order/{id}. Somebody else's order is as unknown as one that never was.
func (h *Handler) order(ctx *fasthttp.RequestCtx, owner engine.Address, dialect, text string) {
	id, ok := parseOrderID(text)
	if !ok {
		errOrderID.send(ctx)
		return
	}
	no, ok := h.o.Board.Directory.Wallet(owner)
	if !ok {
		errNoOrder.send(ctx)
		return
	}
	if !h.o.History.Await(h.o.Board.Directory.Touched(no), awaitIndex) {
		errLagging.send(ctx)
		return
	}
	row, ok, err := h.o.History.Order(id)
	if err != nil {
		h.internal(ctx, "read order", text, err)
		return
	}
	if !ok || row.Owner != no {
		errNoOrder.send(ctx)
		return
	}
	record, err := h.describe(&row, owner)
	if err != nil {
		h.internal(ctx, "describe order", text, err)
		return
	}
	answer(ctx, record.appendAnswer(make([]byte, 0, 2048), dialect))
}

// internal logs a failure and answers without its details.
func (h *Handler) internal(ctx *fasthttp.RequestCtx, what, id string, err error) {
	h.o.Log.Error(what, "id", id, "err", err)
	errInternal.send(ctx)
}

// parseOrderID reads 0x or 0X and 64 hex digits of either letter case.
func parseOrderID(s string) (id engine.OrderID, ok bool) {
	if len(s) != 2+2*len(id) || s[0] != '0' || s[1]|0x20 != 'x' {
		return id, false
	}
	_, err := hex.Decode(id[:], []byte(s[2:]))
	return id, err == nil
}

// orderRecord is an order as clients see it: a row of the index with its names filled in.
type orderRecord struct {
	*journal.OrderRow
	market  engine.Condition
	token   engine.Token
	outcome string // the label
	maker   string
	owner   string // uuid of the API key that sent it
}

// describe fills in the names of a row. It is an error if the Board does not know what the row
// names: then index and Board are not of one journal.
func (h *Handler) describe(row *journal.OrderRow, owner engine.Address) (orderRecord, error) {
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

// appendAnswer appends the answer in the caller's dialect. SVC_ clients read an envelope with the
// camelCase record; all others read the record at the top level, in snake_case, and find both
// the camelCase keys and the envelope beside it.
func (r *orderRecord) appendAnswer(b []byte, dialect string) []byte {
	status := statusText(r.Status)
	b = append(b, '{')
	if dialect == dialectService {
		b = append(appendKey(b, "order"), '{')
		b = r.appendCommon(b, status)
		b = r.appendCamel(b)
		return append(b, '}', '}')
	}
	if dialect == dialectPolymarket {
		status = strings.ToUpper(status)
	}
	from := len(b)
	b = r.appendCommon(b, status)
	b = r.appendSnake(b)
	b = r.appendCamel(b)
	to := len(b)
	b = append(appendKey(b, "order"), '{')
	b = append(b, b[from:to]...)
	return append(b, '}', '}')
}

// appendCommon appends the fields that are called the same in both styles.
func (r *orderRecord) appendCommon(b []byte, status string) []byte {
	b = append(appendKey(b, "id"), '"')
	b = append(engine.AppendHex(b, r.ID[:]), '"')
	b = appendField(b, "status", status)
	b = append(appendKey(b, "market"), '"')
	b = append(engine.AppendHex(b, r.market[:]), '"')
	b = appendField(b, "outcome", r.outcome)
	b = appendField(b, "owner", r.owner)
	b = appendDecimalField(b, "price", int64(r.Price), 4)
	return appendField(b, "side", sideText(r.Side))
}

// appendCamel appends the rest of the record in camelCase.
func (r *orderRecord) appendCamel(b []byte) []byte {
	b = r.appendToken(b, "assetId")
	b = appendField(b, "makerAddress", r.maker)
	b = appendDecimalField(b, "originalSize", int64(r.Size), 6)
	b = appendDecimalField(b, "sizeMatched", int64(r.Matched), 6)
	b = appendField(b, "type", typeText(r.Type))
	b = r.appendTrades(b, "associateTrades")
	b = append(appendKey(b, "createdAt"), '"')
	b = time.UnixMilli(int64(r.Time)).UTC().AppendFormat(b, "2006-01-02T15:04:05.000Z07:00")
	return append(b, '"')
}

// appendSnake appends the rest of the record in snake_case. Times are in seconds.
func (r *orderRecord) appendSnake(b []byte) []byte {
	b = r.appendToken(b, "asset_id")
	b = appendField(b, "maker_address", r.maker)
	b = appendDecimalField(b, "original_size", int64(r.Size), 6)
	b = appendDecimalField(b, "size_matched", int64(r.Matched), 6)
	b = appendField(b, "order_type", typeText(r.Type))
	b = r.appendTrades(b, "associate_trades")
	b = strconv.AppendInt(appendKey(b, "created_at"), int64(r.Time)/1000, 10)
	b = append(appendKey(b, "expiration"), '"')
	return append(strconv.AppendInt(b, int64(r.Expiry)/1000, 10), '"')
}

func (r *orderRecord) appendToken(b []byte, key string) []byte {
	b = append(appendKey(b, key), '"')
	return append(r.token.AppendDecimal(b), '"')
}

func (r *orderRecord) appendTrades(b []byte, key string) []byte {
	b = append(appendKey(b, key), '[')
	for i, id := range r.Trades {
		if i > 0 {
			b = append(b, ',')
		}
		b = appendUUID(b, id)
	}
	return append(b, ']')
}

// statusText is a status as most clients read it. An order that its own terms killed on arrival has
// none in the index: it was canceled.
func statusText(s engine.Status) string {
	switch s {
	case engine.Live:
		return "live"
	case engine.Matched:
		return "matched"
	}
	return "canceled"
}

// typeText is an order type as the wire names it.
func typeText(t engine.OrderType) string {
	return [...]string{engine.GTC: "GTC", engine.GTD: "GTD", engine.FOK: "FOK", engine.FAK: "FAK"}[t]
}
