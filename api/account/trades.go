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

// orders lists the caller's live orders, oldest first.
func (a *Account) orders(ctx *fasthttp.RequestCtx, c *caller) ([]byte, *wire.Refusal) {
	w, ok := a.readList(ctx, c)
	if !ok || !w.readOrders(ctx) || w.Maker != 0 {
		return nil, errOrderParams
	}
	l := list[history.OrderRow]{query: &w,
		read: func(p history.Page) ([]history.OrderRow, uint64, error) {
			return a.o.History.Orders(c.no, &w.Filter, p)
		},
		items: func(r *history.OrderRow) int { return count(w.own == 0 || r.Wallet == w.own) }}
	rows, err := l.page()
	if err != nil {
		return nil, a.unread("list orders", c.address.Hex(), err)
	}
	b := wire.BeginPage(make([]byte, 0, 128+1024*len(rows)))
	for i := range rows {
		r, err := a.describe(&rows[i], c.address)
		if err != nil {
			return nil, wire.Internal(a.o.Log, "describe order", rows[i].ID.Hex(), err)
		}
		b = wire.CloseObject(r.appendRecord(append(wire.AppendComma(b), '{'), c.dialect))
	}
	end := wire.EndCursor
	if c.dialect == wire.SVC {
		end = wire.EmptyCursor
	}
	return l.end(b, end, len(rows), c.dialect), nil
}

// trades lists what the caller traded, newest first.
func (a *Account) trades(ctx *fasthttp.RequestCtx, c *caller) ([]byte, *wire.Refusal) {
	w, ok := a.readList(ctx, c)
	if !ok || !a.readTrades(ctx, &w) {
		return nil, errTradeParams
	}
	l := list[history.TradeRow]{query: &w,
		read: func(p history.Page) ([]history.TradeRow, uint64, error) {
			return a.o.History.Trades(c.no, &w.Filter, p)
		},
		items: func(r *history.TradeRow) int { return count(w.own == 0 || partOf(r, w.own)) }}
	rows, err := l.page()
	if err != nil {
		return nil, a.unread("list trades", c.address.Hex(), err)
	}
	b := wire.BeginPage(make([]byte, 0, 128+1280*len(rows)))
	for i := range rows {
		b, err = a.appendTrade(append(wire.AppendComma(b), '{'), &rows[i], c.dialect, nil)
		if err != nil {
			return nil, wire.Internal(a.o.Log, "describe trade", fmt.Sprintf("%x", rows[i].ID), err)
		}
		b = wire.CloseObject(b)
	}
	return l.end(b, wire.EndCursor, len(rows), c.dialect), nil
}

func partOf(r *history.TradeRow, wallet engine.WalletNo) bool {
	return r.Wallet == wallet || slices.ContainsFunc(r.Makers, func(m history.MakerFill) bool {
		return m.Wallet == wallet
	})
}

// telling is what a message of the user channel says of a trade in its own way.
type telling struct{ status, owner string }

// appendTrade appends the members of a trade. Members outside maker_orders describe the taker,
// whoever asks. The status is CONFIRMED, as the frame that matched a trade also settled it, unless
// the trade is told as a message, which comes once before that.
func (a *Account) appendTrade(
	b []byte, r *history.TradeRow, dialect wire.Dialect, t *telling,
) ([]byte, error) {
	m := a.o.Board.Directory.Market(r.Market)
	if m == nil {
		return b, fmt.Errorf("market %d of the trade is not published", r.Market)
	}
	hash := engine.TxHash(a.o.JournalID, r.Sequence, r.Index)
	b = wire.AppendUUID(wire.AppendKey(b, "id"), r.ID)
	b = wire.AppendHexField(b, "taker_order_id", r.Taker[:])
	b = wire.AppendHexField(b, "market", m.Condition[:])
	b = wire.AppendTokenField(b, "asset_id", m.Tokens[r.Outcome])
	b = wire.AppendField(b, "side", wire.SideText(r.Side))
	b = wire.AppendDecimalField(b, "size", int64(r.Size), 6)
	b = wire.AppendDecimalField(b, "fee_rate_bps", int64(r.FeeRate), 0)
	b = wire.AppendDecimalField(b, "price", int64(r.Price), 4)
	status := "CONFIRMED"
	if t != nil {
		status = t.status
	}
	b = wire.AppendField(b, "status", status)
	b = appendMatchTime(wire.AppendKey(b, "match_time"), r.Time, dialect)
	b = appendMatchTime(wire.AppendKey(b, "last_update"), r.Time, dialect)
	b = wire.AppendField(b, "outcome", a.o.Catalog().Label(m.Condition, r.Outcome))
	maker, owner, err := a.party(r.Wallet, r.Owner, r.Key)
	if err != nil {
		return b, err
	}
	if b = wire.AppendField(b, "maker_address", maker); t != nil {
		owner = t.owner
		b = wire.AppendField(b, "trade_owner", owner)
	}
	b = wire.AppendField(b, "owner", owner)
	b = wire.AppendHexField(b, "transaction_hash", hash[:])
	b = strconv.AppendUint(wire.AppendKey(b, "bucket_index"), uint64(r.Index), 10)
	b = append(wire.AppendKey(b, "maker_orders"), '[')
	for i := range r.Makers {
		if b, err = a.appendMaker(append(wire.AppendComma(b), '{'), m, &r.Makers[i]); err != nil {
			return b, err
		}
		b = wire.CloseObject(b)
	}
	role := "TAKER"
	if r.AsMaker {
		role = "MAKER"
	}
	kind := role
	if t != nil {
		kind = "TRADE"
	}
	b = wire.AppendField(append(b, ']'), "type", kind)
	if dialect != wire.SVC {
		b = wire.AppendField(b, "trader_side", role)
	}
	return b, nil
}

func (a *Account) appendMaker(b []byte, m *view.Market, f *history.MakerFill) ([]byte, error) {
	b = wire.AppendHexField(b, "order_id", f.Order[:])
	b, err := a.appendParty(b, f.Wallet, f.Owner, f.Key)
	if err != nil {
		return b, err
	}
	b = wire.AppendDecimalField(b, "matched_amount", int64(f.Size), 6)
	b = wire.AppendField(b, "fee_rate_bps", "0")
	b = wire.AppendDecimalField(b, "price", int64(f.Price), 4)
	b = wire.AppendTokenField(b, "asset_id", m.Tokens[f.Outcome])
	b = wire.AppendField(b, "outcome", a.o.Catalog().Label(m.Condition, f.Outcome))
	return wire.AppendField(b, "side", wire.SideText(f.Side)), nil
}

// appendParty appends whose money an order moved and which API key sent it.
func (a *Account) appendParty(
	b []byte, wallet, owner engine.WalletNo, key uint32,
) ([]byte, error) {
	maker, id, err := a.party(wallet, owner, key)
	b = wire.AppendField(b, "maker_address", maker)
	return wire.AppendField(b, "owner", id), err
}

// party is the address whose money an order moved, and the uuid of the API key that sent it.
func (a *Account) party(wallet, owner engine.WalletNo, key uint32) (maker, id string, err error) {
	d := a.o.Board.Directory
	address, ok0 := d.Address(wallet)
	holder, ok1 := d.Address(owner)
	if !ok0 || !ok1 {
		return "", "", fmt.Errorf("wallet %d or owner %d is not published", wallet, owner)
	}
	return a.o.Checksum(address), a.o.KeyID(holder, key), nil
}

// appendMatchTime appends the time of a trade in whole seconds: as a date for SVC_ clients, as
// quoted unix seconds for all others.
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
