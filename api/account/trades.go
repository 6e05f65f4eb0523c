package account

import (
	"fmt"
	"slices"
	"strconv"
	"time"

	"github.com/valyala/fasthttp"

	"clobd/api/wire"
	"clobd/engine"
	"clobd/engine/view"
	"clobd/journal/history"
)

// The two lists look at a bounded part of what there is. Where little of it matches, so many parts
// are looked at before a page goes out without an item.
const maxScans = 4

// orders answers GET /data/orders: the caller's live orders, oldest first.
func (h *Account) orders(ctx *fasthttp.RequestCtx, c *caller) {
	end := wire.EndCursor
	if c.dialect == wire.SVC {
		end = wire.EmptyCursor
	}
	w, ok := h.readList(ctx, c)
	if !ok || !w.readOrders(ctx) || w.Maker != 0 {
		errOrderParams.Send(ctx)
		return
	}
	var rows []history.OrderRow
	next := uint64(0)
	for scan := 0; !w.none && scan < maxScans && len(rows) == 0; scan++ {
		var err error
		rows, next, err = h.o.History.Orders(c.no, &w.Filter, history.Page{
			From: w.at.From, Limit: wire.PageLimit})
		if err != nil {
			wire.Internal(h.o.Log, "list orders", c.address.Hex(), err).Send(ctx)
			return
		}
		rows = slices.DeleteFunc(rows, func(r history.OrderRow) bool {
			return w.own != 0 && r.Wallet != w.own
		})
		if w.at.From = next; next == 0 {
			break
		}
	}
	b := wire.BeginPage(make([]byte, 0, 128+1024*len(rows)))
	for i := range rows {
		r, err := h.describe(&rows[i], c.address)
		if err != nil {
			wire.Internal(h.o.Log, "describe order", rows[i].ID.Hex(), err).Send(ctx)
			return
		}
		b = r.appendRecord(append(wire.AppendComma(b), '{'), c.dialect)
		b = wire.CloseObject(b)
	}
	page := wire.PageSize{Limit: wire.PageLimit, Count: len(rows)}
	wire.AnswerRaw(ctx, wire.EndPage(b, next, end, page))
}

// trades answers GET /data/trades: what the caller traded, newest first.
func (h *Account) trades(ctx *fasthttp.RequestCtx, c *caller) {
	w, ok := h.readList(ctx, c)
	if !ok || !h.readTrades(ctx, &w) {
		errTradeParams.Send(ctx)
		return
	}
	var rows []history.TradeRow
	next := uint64(0)
	for scan := 0; !w.none && scan < maxScans && len(rows) == 0; scan++ {
		var err error
		rows, next, err = h.o.History.Trades(c.no, &w.Filter, history.Page{
			From: w.at.From, Limit: wire.PageLimit})
		if err != nil {
			wire.Internal(h.o.Log, "list trades", c.address.Hex(), err).Send(ctx)
			return
		}
		rows = slices.DeleteFunc(rows, func(r history.TradeRow) bool {
			return w.own != 0 && !partOf(&r, w.own)
		})
		if w.at.From = next; next == 0 {
			break
		}
	}
	b := wire.BeginPage(make([]byte, 0, 128+1280*len(rows)))
	for i := range rows {
		var err error
		if b, err = h.appendTrade(append(wire.AppendComma(b), '{'), &rows[i], c.dialect); err != nil {
			wire.Internal(h.o.Log, "describe trade", fmt.Sprintf("%x", rows[i].ID), err).Send(ctx)
			return
		}
		b = wire.CloseObject(b)
	}
	page := wire.PageSize{Limit: wire.PageLimit, Count: len(rows)}
	wire.AnswerRaw(ctx, wire.EndPage(b, next, wire.EndCursor, page))
}

// partOf reports whether a wallet is on either side of a trade.
func partOf(r *history.TradeRow, wallet engine.WalletNo) bool {
	return r.Wallet == wallet || slices.ContainsFunc(r.Makers, func(m history.MakerFill) bool {
		return m.Wallet == wallet
	})
}

// appendTrade appends the members of a trade. All that is not in maker_orders is about the taker,
// whoever asks. It was settled in the frame that matched it, before anybody could see it.
func (h *Account) appendTrade(b []byte, r *history.TradeRow, dialect wire.Dialect) ([]byte, error) {
	m := h.o.Board.Directory.Market(r.Market)
	if m == nil {
		return b, fmt.Errorf("market %d of the trade is not published", r.Market)
	}
	hash := engine.TxHash(h.o.JournalID, r.Sequence, r.Index)
	b = wire.AppendUUID(wire.AppendKey(b, "id"), r.ID)
	b = wire.AppendHexField(b, "taker_order_id", r.Taker[:])
	b = wire.AppendHexField(b, "market", m.Condition[:])
	b = wire.AppendTokenField(b, "asset_id", m.Tokens[r.Outcome])
	b = wire.AppendField(b, "side", wire.SideText(r.Side))
	b = wire.AppendDecimalField(b, "size", int64(r.Size), 6)
	b = wire.AppendDecimalField(b, "fee_rate_bps", int64(r.FeeRate), 0)
	b = wire.AppendDecimalField(b, "price", int64(r.Price), 4)
	b = wire.AppendField(b, "status", "CONFIRMED")
	b = appendMatchTime(wire.AppendKey(b, "match_time"), r.Time, dialect)
	b = appendMatchTime(wire.AppendKey(b, "last_update"), r.Time, dialect)
	b = wire.AppendField(b, "outcome", h.o.Catalog().Label(m.Condition, r.Outcome))
	b, err := h.appendParty(b, r.Wallet, r.Owner, r.Key)
	if err != nil {
		return b, err
	}
	b = wire.AppendHexField(b, "transaction_hash", hash[:])
	b = strconv.AppendUint(wire.AppendKey(b, "bucket_index"), uint64(r.Index), 10)
	b = append(wire.AppendKey(b, "maker_orders"), '[')
	for i := range r.Makers {
		if b, err = h.appendMaker(append(wire.AppendComma(b), '{'), m, &r.Makers[i]); err != nil {
			return b, err
		}
		b = wire.CloseObject(b)
	}
	role := "TAKER"
	if r.AsMaker {
		role = "MAKER"
	}
	b = wire.AppendField(append(b, ']'), "type", role)
	if dialect != wire.SVC {
		b = wire.AppendField(b, "trader_side", role)
	}
	return b, nil
}

// appendMaker appends one maker of a trade, in terms of its own token.
func (h *Account) appendMaker(b []byte, m *view.Market, f *history.MakerFill) ([]byte, error) {
	b = wire.AppendHexField(b, "order_id", f.Order[:])
	b, err := h.appendParty(b, f.Wallet, f.Owner, f.Key)
	if err != nil {
		return b, err
	}
	b = wire.AppendDecimalField(b, "matched_amount", int64(f.Size), 6)
	b = wire.AppendField(b, "fee_rate_bps", "0")
	b = wire.AppendDecimalField(b, "price", int64(f.Price), 4)
	b = wire.AppendTokenField(b, "asset_id", m.Tokens[f.Outcome])
	b = wire.AppendField(b, "outcome", h.o.Catalog().Label(m.Condition, f.Outcome))
	return wire.AppendField(b, "side", wire.SideText(f.Side)), nil
}

// appendParty appends whose money an order moved and which API key sent it.
func (h *Account) appendParty(
	b []byte, wallet, owner engine.WalletNo, key uint32,
) ([]byte, error) {
	d := h.o.Board.Directory
	maker, ok0 := d.Address(wallet)
	holder, ok1 := d.Address(owner)
	if !ok0 || !ok1 {
		return b, fmt.Errorf("wallet %d or owner %d is not published", wallet, owner)
	}
	b = wire.AppendField(b, "maker_address", h.o.Checksum(maker))
	return wire.AppendField(b, "owner", h.o.KeyID(holder, key)), nil
}

// appendMatchTime appends when a trade happened, in whole seconds: as a date for clients of the
// seed shape, as a number in a text for all others.
func appendMatchTime(b []byte, t engine.Time, dialect wire.Dialect) []byte {
	seconds := int64(t) / 1000
	b = append(b, '"')
	if dialect == wire.SVC {
		b = time.Unix(seconds, 0).UTC().AppendFormat(b, time.RFC3339)
	} else {
		b = strconv.AppendInt(b, seconds, 10)
	}
	return append(b, '"')
}
