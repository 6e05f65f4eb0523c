package account

import (
	"encoding/hex"
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
	none bool            // it names something that nobody ever heard of: nothing matches
	own  engine.WalletNo // only what this wallet of the caller took part in; 0: all of them
}

// readList reads what lists of orders and of trades have in common. It says false if a value has
// not the form of what it should name.
func (h *Account) readList(ctx *fasthttp.RequestCtx, c *caller) (w listQuery, ok bool) {
	if w.at, ok = wire.ReadCursor(ctx); !ok {
		return w, false
	}
	w.none = c.no == 0 || w.at.Past
	return w, h.readMarket(ctx, &w) && h.readToken(ctx, &w) && h.readMaker(ctx, c, &w)
}

// readMarket reads the condition that is asked for.
func (h *Account) readMarket(ctx *fasthttp.RequestCtx, w *listQuery) bool {
	id := wire.Parameter(ctx, "market", "condition_id", "conditionId")
	if id == "" {
		return true
	}
	condition, ok := engine.ParseCondition(id)
	if !ok {
		return false
	}
	if m := h.o.Board.Directory.Condition(condition); m != nil {
		w.Market = m.No
	} else {
		w.none = true
	}
	return true
}

// readToken reads the token that is asked for. One of another market than asked for has nothing.
func (h *Account) readToken(ctx *fasthttp.RequestCtx, w *listQuery) bool {
	id := wire.Parameter(ctx, "asset_id", "assetId", "token_id")
	if id == "" {
		return true
	}
	token, ok := engine.ParseToken(id)
	if !ok {
		return false
	}
	m, o, known := h.o.Board.Directory.Token(token)
	if !known || w.Market != 0 && w.Market != m.No {
		w.none = true
		return true
	}
	w.Market, w.Outcome, w.OneToken = m.No, o, true
	return true
}

// readMaker reads maker_address. With an address of their own clients ask for their own rows, with
// another address for what they traded with its wallet.
func (h *Account) readMaker(ctx *fasthttp.RequestCtx, c *caller, w *listQuery) bool {
	id := wire.Parameter(ctx, "maker_address")
	if id == "" {
		return true
	}
	no, known, ok := h.readAddress(id)
	switch {
	case !ok:
		return false
	case !known:
		w.none = true
	case no == c.no:
	case c.owns(no):
		w.own = no
	default:
		w.Maker = no
	}
	return true
}

// readAddress reads 0x and 40 hex digits of either letter case and finds the wallet of that
// address.
func (h *Account) readAddress(s string) (no engine.WalletNo, known, ok bool) {
	var a engine.Address
	if !engine.ParseHex(a[:], s) {
		return 0, false, false
	}
	no, known = h.o.Board.Directory.Wallet(a)
	return no, known, true
}

// readOrders reads the rest of what a list of orders may be asked for: id.
func (w *listQuery) readOrders(ctx *fasthttp.RequestCtx) (ok bool) {
	if id := wire.Parameter(ctx, "id"); id != "" {
		w.ID, ok = engine.ParseOrderID(id)
		return ok
	}
	return true
}

// readTrades reads the rest of what a list of trades may be asked for: id, taker, maker, before,
// after.
func (h *Account) readTrades(ctx *fasthttp.RequestCtx, w *listQuery) bool {
	if id := wire.Parameter(ctx, "id"); id != "" {
		var ok bool
		if w.TradeID, ok = parseUUID(id); !ok {
			return false
		}
	}
	for _, party := range []struct {
		name string
		no   *engine.WalletNo
	}{{"taker", &w.Taker}, {"maker", &w.Maker}} {
		id := wire.Parameter(ctx, party.name)
		if id == "" {
			continue
		}
		no, known, ok := h.readAddress(id)
		if !ok {
			return false
		}
		*party.no, w.none = no, w.none || !known
	}
	return w.readTimes(wire.Parameter(ctx, "before"), wire.Parameter(ctx, "after"))
}

// fromMillis is from where up a time counts as milliseconds, as in the headers that sign requests.
const fromMillis = 1_000_000_000_000

// readTimes reads before and after, in unix seconds or milliseconds, both strict. Trades are told
// the time in whole seconds: what was matched within a second is neither before nor after it.
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
		w.none = true // nothing was before 1970, and 0 would mean any time
	}
	return true
}

// parseUUID reads 32 hex digits of either letter case with four dashes.
func parseUUID(s string) (id [16]byte, ok bool) {
	if len(s) != 36 || s[8] != '-' || s[13] != '-' || s[18] != '-' || s[23] != '-' {
		return id, false
	}
	_, err := hex.Decode(id[:], []byte(s[:8]+s[9:13]+s[14:18]+s[19:23]+s[24:]))
	return id, err == nil
}
