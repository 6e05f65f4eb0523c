package account

import (
	"fmt"
	"strconv"
	"time"

	"github.com/valyala/fasthttp"

	"clobd/api/wire"
	"clobd/engine"
	"clobd/engine/view"
	"clobd/journal/history"
)

// isBuilder reports whether s has the form of a builder's code: 32 bytes.
func isBuilder(s string) bool {
	var code history.BuilderCode
	return engine.ParseHex(code[:], s)
}

// built is which trades of a builder are wanted.
type built struct {
	listQuery
	code history.BuilderCode
	no   history.BuilderNo
}

// builderTrades answers GET /builder/trades: what the orders of a builder traded, newest first. The
// code is in each of these orders, which their makers have signed; who asks with a builder's key
// instead has been given the code of that key by the door. Nobody knows whose orders carry the code
// before they are found, so the index must have come as far as what anybody was told of.
func (h *Account) builderTrades(ctx *fasthttp.RequestCtx) {
	var w built
	refused := h.readBuilt(ctx, &w)
	if refused == nil && !h.o.Await(h.o.Board.Sequence()) {
		refused = errLagging
	}
	if refused == nil {
		refused = h.numberBuilder(&w)
	}
	if refused != nil {
		refused.Send(ctx)
		return
	}
	b, next, count := wire.BeginPage(make([]byte, 0, 4096)), uint64(0), 0
	for scan := 0; !w.none && scan < maxScans && count == 0; scan++ {
		var rows []history.TradeRow
		var err error
		rows, next, err = h.o.History.BuilderTrades(w.no, &w.Filter, history.Page{
			From: w.at.From, Limit: wire.PageLimit})
		for i := range rows {
			if err == nil {
				b, count, err = h.appendBuilt(b, count, &rows[i], &w)
			}
		}
		if err != nil {
			wire.Internal(h.o.Log, "list the trades of builder", fmt.Sprintf("%x", w.code), err).Send(ctx)
			return
		}
		if w.at.From = next; next == 0 {
			break
		}
	}
	page := wire.PageSize{Limit: wire.PageLimit, Count: count}
	wire.AnswerRaw(ctx, wire.EndPage(b, next, wire.EndCursor, page))
}

// readBuilt reads the query.
func (h *Account) readBuilt(ctx *fasthttp.RequestCtx, w *built) *wire.Refusal {
	code, ok := wire.Parameter(ctx, "builder_code", "builderCode"), false
	switch {
	case code == "":
		return errNoBuilder
	case !engine.ParseHex(w.code[:], code):
		return errBuilder
	}
	if w.at, ok = wire.ReadCursor(ctx); !ok {
		return errTradeParams
	}
	w.none = w.at.Past
	q := &w.listQuery
	if !h.readMarket(ctx, q) || !h.readToken(ctx, q) || !h.readTrades(ctx, q) {
		return errTradeParams
	}
	if maker := wire.Parameter(ctx, "maker_address"); maker != "" {
		no, known, ok := h.readAddress(maker)
		if !ok {
			return errTradeParams
		}
		w.own, w.none = no, w.none || !known
	}
	return nil
}

// numberBuilder finds out whether anybody ever traded with the code.
func (h *Account) numberBuilder(w *built) *wire.Refusal {
	var err error
	if w.no, err = h.o.History.Builder(w.code); err != nil {
		return wire.Internal(h.o.Log, "look up builder", fmt.Sprintf("%x", w.code), err)
	}
	w.none = w.none || w.no == 0
	return nil
}

// wants reports whether an order that took part in a trade is one of those asked for.
func (w *built) wants(no history.BuilderNo, wallet engine.WalletNo, o engine.Outcome) bool {
	return no == w.no && (w.own == 0 || w.own == wallet) && (!w.OneToken || w.Outcome == o)
}

// appendBuilt appends a trade once for each order of the builder that took part in it.
func (h *Account) appendBuilt(b []byte, count int, r *history.TradeRow, w *built) (
	[]byte, int, error) {
	m := h.o.Board.Directory.Market(r.Market)
	if m == nil {
		return b, count, fmt.Errorf("market %d of the trade is not published", r.Market)
	}
	var err error
	if w.wants(r.Builder, r.Wallet, r.Outcome) {
		taker := history.MakerFill{Wallet: r.Wallet, Owner: r.Owner, Key: r.Key, Side: r.Side,
			Outcome: r.Outcome, Price: r.Price, Size: r.Size}
		b, err = h.appendShare(b, r, &share{m, w, &taker, "TAKER", r.Fee})
		count++
	}
	for i := range r.Makers {
		if f := &r.Makers[i]; err == nil && w.wants(f.Builder, f.Wallet, f.Outcome) {
			b, err = h.appendShare(b, r, &share{m, w, f, "MAKER", 0})
			count++
		}
	}
	return b, count, err
}

// share is the part that one order of a builder had in a trade.
type share struct {
	market *view.Market
	built  *built
	fill   *history.MakerFill
	role   string
	fee    engine.Cash
}

// appendShare appends it in terms of that order's own token. Fees are in collateral, so there is
// one number for both of theirs.
func (h *Account) appendShare(b []byte, r *history.TradeRow, s *share) ([]byte, error) {
	d, f := h.o.Board.Directory, s.fill
	maker, ok0 := d.Address(f.Wallet)
	owner, ok1 := d.Address(f.Owner)
	if !ok0 || !ok1 {
		return b, fmt.Errorf("wallet %d or owner %d is not published", f.Wallet, f.Owner)
	}
	hash := engine.TxHash(h.o.JournalID, r.Sequence, r.Index)
	when := time.UnixMilli(int64(r.Time)).UTC().Format("2006-01-02T15:04:05.000Z")
	b = append(wire.AppendComma(b), '{')
	b = wire.AppendUUID(wire.AppendKey(b, "id"), r.ID)
	b = wire.AppendField(b, "tradeType", s.role)
	b = wire.AppendHexField(b, "takerOrderHash", r.Taker[:])
	b = wire.AppendHexField(b, "builder", s.built.code[:])
	b = wire.AppendHexField(b, "market", s.market.Condition[:])
	b = wire.AppendTokenField(b, "assetId", s.market.Tokens[f.Outcome])
	b = wire.AppendField(b, "side", wire.SideText(f.Side))
	b = wire.AppendDecimalField(b, "size", int64(f.Size), 6)
	b = wire.AppendDecimalField(b, "sizeUsdc", int64(engine.Cost(f.Size, f.Price)), 6)
	b = wire.AppendDecimalField(b, "price", int64(f.Price), 4)
	b = wire.AppendField(b, "status", "CONFIRMED")
	b = wire.AppendField(b, "outcome", h.o.Catalog().Label(s.market.Condition, f.Outcome))
	b = strconv.AppendUint(wire.AppendKey(b, "outcomeIndex"), uint64(f.Outcome), 10)
	b = wire.AppendField(b, "owner", h.o.KeyID(owner, f.Key))
	b = wire.AppendField(b, "maker", h.o.Checksum(maker))
	b = wire.AppendHexField(b, "transactionHash", hash[:])
	b = wire.AppendDecimalField(b, "matchTime", int64(r.Time)/1000, 0)
	b = strconv.AppendUint(wire.AppendKey(b, "bucketIndex"), uint64(r.Index), 10)
	b = wire.AppendDecimalField(b, "fee", int64(s.fee), 6)
	b = wire.AppendDecimalField(b, "feeUsdc", int64(s.fee), 6)
	b = wire.AppendField(b, "builderFee", "0") // builders take nothing here
	b = wire.AppendHexField(b, "builderCode", s.built.code[:])
	b = append(wire.AppendKey(b, "err_msg"), "null"...)
	b = wire.AppendField(b, "createdAt", when)
	return wire.CloseObject(wire.AppendField(b, "updatedAt", when)), nil
}
