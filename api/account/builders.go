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

type built struct {
	listQuery
	code history.BuilderCode
	no   history.BuilderNo
}

// builderTrades lists what the orders of a builder traded, newest first. A caller with a builder's
// key need not write the code: the door fills it in. Any wallet may own such an order, so the read
// waits until the index holds all that any client was told.
func (a *Account) builderTrades(ctx *fasthttp.RequestCtx) ([]byte, *wire.Refusal) {
	var w built
	refused := a.readBuilt(ctx, &w)
	if refused == nil && !a.o.Await(a.o.Board.Sequence()) {
		refused = errLagging
	}
	if refused != nil {
		return nil, refused
	}
	var err error
	if w.no, err = a.o.History.Builder(w.code); err != nil {
		return nil, wire.Internal(a.o.Log, "look up builder", fmt.Sprintf("%x", w.code), err)
	}
	w.none = w.none || w.no == 0
	l := list[history.TradeRow]{query: &w.listQuery,
		read: func(p history.Page) ([]history.TradeRow, uint64, error) {
			return a.o.History.BuilderTrades(w.no, &w.Filter, p)
		},
		items: w.shares}
	rows, err := l.page()
	b, count := wire.BeginPage(make([]byte, 0, 4096)), -l.within
	for i := range rows {
		if err == nil {
			b, count, err = a.appendBuilt(b, count, &rows[i], &w)
		}
	}
	if err != nil {
		return nil, a.unread("list the trades of builder", fmt.Sprintf("%x", w.code), err)
	}
	return l.end(b, wire.EndCursor, max(count, 0), wire.DialectOf(&ctx.Request.Header)), nil
}

func (a *Account) readBuilt(ctx *fasthttp.RequestCtx, w *built) *wire.Refusal {
	code, ok := wire.Parameter(ctx, "builder_code", "builderCode"), false
	switch {
	case code == "":
		return errNoBuilder
	case !engine.ParseHex(w.code[:], code):
		return errBuilder
	}
	q := &w.listQuery
	if w.at, ok = wire.ReadCursor(ctx); !ok {
		return errTradeParams
	}
	w.none = w.at.Past
	maker := wire.Parameter(ctx, "maker_address")
	if !a.readMarket(ctx, q) || !a.readToken(ctx, q) || !a.readTrades(ctx, q) ||
		!a.readWallet(maker, &w.own, q) {
		return errTradeParams
	}
	return nil
}

func (w *built) wants(no history.BuilderNo, wallet engine.WalletNo, o engine.Outcome) bool {
	return no == w.no && (w.own == 0 || w.own == wallet) && (!w.OneToken || w.Outcome == o)
}

// shares counts the orders of the builder that took part in a trade.
func (w *built) shares(r *history.TradeRow) (n int) {
	n = count(w.wants(r.Builder, r.Wallet, r.Outcome))
	for i := range r.Makers {
		f := &r.Makers[i]
		n += count(w.wants(f.Builder, f.Wallet, f.Outcome))
	}
	return n
}

// appendBuilt appends a trade once for each order of the builder that took part in it, and counts
// these. It leaves out those that it counts below 1.
func (a *Account) appendBuilt(b []byte, count int, r *history.TradeRow, w *built) (
	[]byte, int, error) {
	m := a.o.Board.Directory.Market(r.Market)
	if m == nil {
		return b, count, fmt.Errorf("market %d of the trade is not published", r.Market)
	}
	var err error
	if w.wants(r.Builder, r.Wallet, r.Outcome) {
		taker := history.MakerFill{Wallet: r.Wallet, Owner: r.Owner, Key: r.Key, Side: r.Side,
			Outcome: r.Outcome, Price: r.Price, Size: r.Size}
		if count++; count > 0 {
			b, err = a.appendShare(b, r, &share{m, w, &taker, "TAKER", r.Fee})
		}
	}
	for i := range r.Makers {
		if f := &r.Makers[i]; err == nil && w.wants(f.Builder, f.Wallet, f.Outcome) {
			if count++; count > 0 {
				b, err = a.appendShare(b, r, &share{m, w, f, "MAKER", 0})
			}
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

// appendShare appends a share in terms of the order's own token. Fees are in collateral, so fee and
// feeUsdc are equal.
func (a *Account) appendShare(b []byte, r *history.TradeRow, s *share) ([]byte, error) {
	f := s.fill
	maker, owner, err := a.party(f.Wallet, f.Owner, f.Key)
	if err != nil {
		return b, err
	}
	hash := engine.TxHash(a.o.JournalID, r.Sequence, r.Index)
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
	b = wire.AppendField(b, "outcome", a.o.Catalog().Label(s.market.Condition, f.Outcome))
	b = strconv.AppendUint(wire.AppendKey(b, "outcomeIndex"), uint64(f.Outcome), 10)
	b = wire.AppendField(b, "owner", owner)
	b = wire.AppendField(b, "maker", maker)
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
