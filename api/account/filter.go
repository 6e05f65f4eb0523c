package account

import (
	"encoding/hex"
	"slices"
	"strconv"

	"github.com/valyala/fasthttp"

	"clobd/api/wire"
	"clobd/engine"
	"clobd/journal/history"
)

// listQuery is what the query of a list asks for.
type listQuery struct {
	history.Filter
	at   wire.Cursor
	none bool            // nothing matches: the query names an unknown market, token or wallet
	own  engine.WalletNo // only what this wallet of the caller took part in; 0: all of its wallets
}

// readList reads the parameters of all lists. It and the readers below are false for a wrong value.
func (a *Account) readList(ctx *fasthttp.RequestCtx, c *caller) (w listQuery, ok bool) {
	if w.at, ok = wire.ReadCursor(ctx); !ok {
		return w, false
	}
	w.none = c.no == 0 || w.at.Past
	return w, a.readMarket(ctx, &w) && a.readToken(ctx, &w) && a.readMaker(ctx, c, &w)
}

func (a *Account) readMarket(ctx *fasthttp.RequestCtx, w *listQuery) bool {
	id := wire.Parameter(ctx, "market", "condition_id", "conditionId")
	if id == "" {
		return true
	}
	condition, ok := engine.ParseCondition(id)
	if !ok {
		return false
	}
	if m := a.o.Board.Directory.Condition(condition); m != nil {
		w.Market = m.No
	} else {
		w.none = true
	}
	return true
}

// readToken reads a token. Nothing matches a token of another market than the query names.
func (a *Account) readToken(ctx *fasthttp.RequestCtx, w *listQuery) bool {
	id := wire.Parameter(ctx, "asset_id", "assetId", "token_id")
	if id == "" {
		return true
	}
	token, ok := engine.ParseToken(id)
	if !ok {
		return false
	}
	m, o, known := a.o.Board.Directory.Token(token)
	if !known || w.Market != 0 && w.Market != m.No {
		w.none = true
		return true
	}
	w.Market, w.Outcome, w.OneToken = m.No, o, true
	return true
}

// readMaker reads maker_address. An address of the caller selects what that wallet took part in;
// any other address selects trades with its wallet as a maker.
func (a *Account) readMaker(ctx *fasthttp.RequestCtx, c *caller, w *listQuery) bool {
	var no engine.WalletNo
	if !a.readWallet(wire.Parameter(ctx, "maker_address"), &no, w) {
		return false
	}
	switch {
	case no == c.no:
	case slices.Contains(c.wallets, no):
		w.own = no
	default:
		w.Maker = no
	}
	return true
}

// readWallet reads an address, 0x and 40 hex digits of either letter case, and sets no to the
// number of its wallet. An empty address changes nothing.
func (a *Account) readWallet(s string, no *engine.WalletNo, w *listQuery) bool {
	if s == "" {
		return true
	}
	var address engine.Address
	if !engine.ParseHex(address[:], s) {
		return false
	}
	var known bool
	*no, known = a.o.Board.Directory.Wallet(address)
	w.none = w.none || !known
	return true
}

func (w *listQuery) readOrders(ctx *fasthttp.RequestCtx) (ok bool) {
	if id := wire.Parameter(ctx, "id"); id != "" {
		w.ID, ok = engine.ParseOrderID(id)
		return ok
	}
	return true
}

func (a *Account) readTrades(ctx *fasthttp.RequestCtx, w *listQuery) bool {
	if id := wire.Parameter(ctx, "id"); id != "" {
		var ok bool
		if w.TradeID, ok = parseUUID(id); !ok {
			return false
		}
	}
	return a.readWallet(wire.Parameter(ctx, "taker"), &w.Taker, w) &&
		a.readWallet(wire.Parameter(ctx, "maker"), &w.Maker, w) &&
		w.readTimes(wire.Parameter(ctx, "before"), wire.Parameter(ctx, "after"))
}

// fromMillis is the least number that counts as a time in milliseconds, as in signed headers.
const fromMillis = 1_000_000_000_000

// readTimes reads before and after, in unix seconds or milliseconds; both bounds are exclusive.
// Answers hold whole seconds, so a trade within a second is neither before nor after that second.
func (w *listQuery) readTimes(before, after string) bool {
	for _, limit := range []struct {
		text string
		at   *engine.Time
		plus engine.Time
	}{{before, &w.Before, 0}, {after, &w.After, 999}} {
		if limit.text == "" {
			continue
		}
		at, err := strconv.ParseUint(limit.text, 10, 64)
		switch {
		case err != nil || at > wire.MaxSeconds*1000:
			return false
		case at >= fromMillis:
			*limit.at = engine.Time(at)
		default:
			*limit.at = engine.Time(at)*1000 + limit.plus
		}
	}
	if before != "" && w.Before == 0 {
		w.none = true // no trade is older than 1970; Before 0 would mean any time
	}
	return true
}

func parseUUID(s string) (id [16]byte, ok bool) {
	if len(s) != 36 || s[8] != '-' || s[13] != '-' || s[18] != '-' || s[23] != '-' {
		return id, false
	}
	_, err := hex.Decode(id[:], []byte(s[:8]+s[9:13]+s[14:18]+s[19:23]+s[24:]))
	return id, err == nil
}
