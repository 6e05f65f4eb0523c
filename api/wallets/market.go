package wallets

import (
	"cmp"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/valyala/fasthttp"

	"clobd/api/wire"
	"clobd/engine"
	"clobd/engine/view"
	"clobd/journal/history"
)

var (
	noCombos     = []byte(`{"combos":[]` + onePage)
	noComboMoves = []byte(`{"activity":[]` + onePage)
)

const onePage = `,"pagination":{"limit":100,"offset":0,"has_more":false,"next_cursor":null}}`

// owedBefore is the open interest of a market at a time.
type owedBefore struct {
	at    time.Time
	value int64
}

// The open interest of a market with more than quickHolders is cached for owedKept.
const (
	quickHolders = 2_000
	owedKept     = 5 * time.Second
)

// owed is the open interest of a market, in base units of collateral. Before the resolution it is
// the number of tokens of the outcome that has more of them; afterwards it is the sum that
// holders may still redeem.
func (ws *Wallets) owed(m *view.Market) (int64, error) {
	if kept, ok := ws.kept.Load(m.No); ok && m.State != engine.Settled {
		if k := kept.(owedBefore); ws.o.Now().Sub(k.at) < owedKept {
			return k.value, nil
		}
	}
	supply, places, err := ws.o.History.Supply(m.No)
	if err != nil {
		return 0, err
	}
	if m.State == engine.Settled {
		const whole = uint64(engine.PriceOne)
		first := uint64(m.Payout)
		return ratio(int64(supply[0]), first, whole) +
			ratio(int64(supply[1]), whole-first, whole), nil
	}
	value := int64(max(supply[0], supply[1]))
	if places > quickHolders {
		ws.kept.Store(m.No, owedBefore{ws.o.Now(), value})
	}
	return value, nil
}

func (ws *Wallets) openInterest(ctx *fasthttp.RequestCtx) ([]byte, *wire.Refusal) {
	q := askFor(ctx, "market")
	listed, _ := ws.markets(q)
	if q.Refused != nil {
		return nil, q.Refused
	}
	b := append(make([]byte, 0, 2+128*len(listed)), '[')
	for _, m := range listed {
		value, err := ws.owed(m)
		if err != nil {
			return nil, ws.unread("read the open interest", m.Condition.Hex(), err)
		}
		b = wire.AppendHexField(append(wire.AppendComma(b), '{'), "market", m.Condition[:])
		b = wire.CloseObject(wire.AppendNumber(b, "value", value, 6))
	}
	return append(b, ']'), nil
}

// liveVolume tells what was traded here in the markets of events.
func (ws *Wallets) liveVolume(ctx *fasthttp.RequestCtx) ([]byte, *wire.Refusal) {
	q := askFor(ctx, "id")
	ids := q.list("id")
	switch {
	case len(ids) == 0:
		q.Missing("id")
	case len(ids) > maxMarkets,
		slices.ContainsFunc(ids, func(id string) bool { return !wire.IsNumber(id) }):
		q.Invalid("id", "")
	}
	if q.Refused != nil {
		return nil, q.Refused
	}
	b := append(make([]byte, 0, 1024), '[')
	for _, id := range ids {
		var err error
		if b, err = ws.appendEventVolume(b, id); err != nil {
			return nil, ws.unread("read the volume of event", id, err)
		}
	}
	return append(b, ']'), nil
}

// appendEventVolume appends the volume of an event and of each of its markets that trade here. An
// unknown event appends nothing.
func (ws *Wallets) appendEventVolume(b []byte, id string) ([]byte, error) {
	c := ws.o.Catalog()
	e := c.EventByID(id)
	if e == nil {
		return b, nil
	}
	total, rows := int64(0), []byte{'['}
	for _, described := range c.MarketsOf(e) {
		m := ws.o.Board.Directory.Condition(described.Condition)
		if m == nil {
			continue
		}
		volume, err := ws.o.Volume(m)
		if err != nil {
			return b, err
		}
		total += volume
		rows = wire.AppendHexField(append(wire.AppendComma(rows), '{'), "market", m.Condition[:])
		rows = wire.CloseObject(wire.AppendNumber(rows, "value", volume, 6))
	}
	b = wire.AppendNumber(append(wire.AppendComma(b), '{'), "total", total, 6)
	return wire.CloseObject(append(append(wire.AppendKey(b, "markets"), rows...), ']')), nil
}

// maxRanked bounds the positions of a token that are sorted: those of its largest holders.
const maxRanked = 1_000

// standing says which positions in a market a request asks for.
type standing struct {
	market        *view.Market // nil: it does not trade here
	user          user
	named         bool // user was given
	open, closed  bool
	sort          string
	descending    bool
	limit, offset int
}

type marketHolding struct {
	holding
	wallet engine.WalletNo
}

// marketPositions lists what wallets hold in a market, by token. Closed positions are found only by
// the address of their wallet.
func (ws *Wallets) marketPositions(ctx *fasthttp.RequestCtx) ([]byte, *wire.Refusal) {
	q := askFor(ctx, "market", "user", "status", "sortBy", "sortDirection", "limit", "offset")
	w := standing{named: q.Text("user") != ""}
	switch listed, named := ws.markets(q); {
	case !named:
		q.Missing("market")
	case len(q.list("market")) > 1:
		q.Invalid("market", "")
	case len(listed) == 1:
		w.market = listed[0]
	}
	if w.named {
		w.user = ws.user(q)
	}
	status := q.word("status", "ALL", "OPEN", "CLOSED")
	w.open, w.closed = status != "CLOSED", status != "OPEN"
	w.sort = q.word("sortBy", "TOTAL_PNL", "TOKENS", "CASH_PNL", "REALIZED_PNL")
	w.descending = q.descending()
	w.limit, w.offset = q.Count("limit", 50, 500), q.Count("offset", 0, 10_000)
	if q.Refused != nil {
		return nil, q.Refused
	}
	if w.named && !ws.settled(w.user) {
		return nil, errBehind
	}
	b := append(make([]byte, 0, 4096), '[')
	for o := engine.Outcome(0); w.market != nil && o < 2; o++ {
		all, err := ws.stand(&w, o)
		if err != nil {
			return nil, ws.unread("read the positions in market", w.market.Condition.Hex(), err)
		}
		b = ws.appendStanding(b, &w, o, all)
	}
	return append(b, ']'), nil
}

func (ws *Wallets) stand(w *standing, o engine.Outcome) ([]marketHolding, error) {
	who := []history.Holder{{Wallet: w.user.no}}
	if !w.named {
		var err error
		if who, err = ws.o.History.Holders(w.market.No, o, maxRanked, 1); err != nil {
			return nil, err
		}
	}
	price := ws.o.Price(w.market)
	var all []marketHolding
	for _, x := range who {
		both, err := ws.o.History.Position(x.Wallet, w.market.No)
		if err != nil {
			return nil, err
		}
		r := &both[o]
		if r.Bought == 0 || r.Size > 0 && !w.open || r.Size == 0 && !w.closed {
			continue
		}
		p := marketHolding{hold(w.market, &both, o), x.Wallet}
		p.appraise(price)
		switch cash := p.current() - p.initial(); w.sort {
		case "TOKENS":
			p.key = int64(p.size)
		case "CASH_PNL":
			p.key = cash
		case "REALIZED_PNL":
			p.key = p.realized
		default:
			p.key = cash + p.realized
		}
		all = append(all, p)
	}
	slices.SortStableFunc(all, func(x, y marketHolding) int {
		if w.descending {
			return cmp.Compare(y.key, x.key)
		}
		return cmp.Compare(x.key, y.key)
	})
	all = all[min(w.offset, len(all)):]
	return all[:min(w.limit, len(all))], nil
}

// appendStanding appends the positions in a token. A token without positions is left out: clients
// that read page after page stop at an empty answer.
func (ws *Wallets) appendStanding(
	b []byte, w *standing, o engine.Outcome, all []marketHolding,
) []byte {
	if len(all) == 0 {
		return b
	}
	b = append(wire.AppendComma(b), '{')
	b = appendAssetField(b, "token", &w.market.Condition, o)
	b = append(wire.AppendKey(b, "positions"), '[')
	label := ws.o.Catalog().Label(w.market.Condition, o)
	for i := range all {
		p := &all[i]
		address, known := ws.o.Board.Directory.Address(p.wallet)
		if !known {
			continue // the index is ahead of what is published
		}
		profile := ws.o.Profiles.Of(address)
		cash, realized := cents(p.current())-cents(p.initial()), cents(p.realized)
		b = append(wire.AppendComma(b), '{')
		b = wire.AppendField(b, "proxyWallet", ws.checksums.of(p.wallet, address, ws.o.Checksum))
		b = wire.AppendField(b, "name", profile.Name)
		b = wire.AppendField(b, "profileImage", profile.Image)
		b = append(wire.AppendKey(b, "verified"), "false"...)
		b = appendAssetField(b, "asset", &w.market.Condition, o)
		b = wire.AppendHexField(b, "conditionId", w.market.Condition[:])
		b = wire.AppendNumber(b, "avgPrice", p.average(), 6)
		b = wire.AppendNumber(b, "size", int64(p.size), 6)
		b = wire.AppendNumber(b, "currPrice", p.price, 5)
		b = wire.AppendNumber(b, "currentValue", cents(p.current()), 2)
		b = wire.AppendNumber(b, "cashPnl", cash, 2)
		b = wire.AppendNumber(b, "totalBought", int64(p.bought), 6)
		b = wire.AppendNumber(b, "realizedPnl", realized, 2)
		b = wire.AppendNumber(b, "totalPnl", cash+realized, 2)
		b = wire.AppendField(b, "outcome", label)
		b = wire.CloseObject(strconv.AppendUint(wire.AppendKey(b, "outcomeIndex"), uint64(o), 10))
	}
	return append(b, ']', '}')
}

// publicProfile tells what the operator says of a wallet.
func (ws *Wallets) publicProfile(ctx *fasthttp.RequestCtx) ([]byte, *wire.Refusal) {
	q := askFor(ctx, "address")
	var address engine.Address
	if s := q.Text("address"); strings.TrimSpace(s) == "" {
		q.Missing("address")
	} else if !engine.ParseHex(address[:], s) {
		q.Invalid("address", "")
	}
	if q.Refused != nil {
		return nil, q.Refused
	}
	p := ws.o.Profiles.Of(address)
	if p == (Profile{}) {
		return nil, errNoProfile
	}
	b := append(make([]byte, 0, 512), '{')
	b = wire.AppendField(b, "proxyWallet", ws.o.Checksum(address))
	b = strconv.AppendBool(wire.AppendKey(b, "displayUsernamePublic"), p.Public)
	return wire.CloseObject(p.append(b)), nil
}

var errNoProfile = wire.Wallets.Refuse(fasthttp.StatusNotFound, "not_found",
	"the operator has no profile of this wallet", "")
