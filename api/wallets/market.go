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
	noCombos = []byte(`{"combos":[],"pagination":` +
		`{"limit":100,"offset":0,"has_more":false,"next_cursor":null}}`)
	noComboMoves = []byte(`{"activity":[],"pagination":` +
		`{"limit":100,"offset":0,"has_more":false,"next_cursor":null}}`)
)

// owedBefore is what a market owed when it was looked at.
type owedBefore struct {
	at    time.Time
	value int64
}

const (
	// quickHolders is up to how many holders are counted anew for each request, and owedKept how
	// long the sum over more of them is told again.
	quickHolders = 2_000
	owedKept     = 5 * time.Second
)

// owed is the open interest of a market, in base units of collateral. Before the resolution it is
// the number of tokens of the outcome that has more of them; afterwards it is the sum that
// holders may still redeem.
func (h *Wallets) owed(m *view.Market) (int64, error) {
	if kept, ok := h.kept.Load(m.No); ok && m.State != engine.Settled {
		if k := kept.(owedBefore); h.o.Now().Sub(k.at) < owedKept {
			return k.value, nil
		}
	}
	supply, places, err := h.o.History.Supply(m.No)
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
		h.kept.Store(m.No, owedBefore{h.o.Now(), value})
	}
	return value, nil
}

// openInterest answers GET /oi: the open interest of the markets that are named, of no others.
func (h *Wallets) openInterest(ctx *fasthttp.RequestCtx) {
	a := askFor(ctx, "market")
	listed, _ := h.markets(a)
	if a.Refused != nil {
		a.Refused.Send(ctx)
		return
	}
	b := append(make([]byte, 0, 2+128*len(listed)), '[')
	for _, m := range listed {
		value, err := h.owed(m)
		if err != nil {
			h.unread("read the open interest", m.Condition.Hex(), err).Send(ctx)
			return
		}
		b = wire.AppendHexField(append(wire.AppendComma(b), '{'), "market", m.Condition[:])
		b = wire.CloseObject(wire.AppendNumber(b, "value", value, 6))
	}
	wire.Answer(ctx, append(b, ']'))
}

// liveVolume answers GET /live-volume: what was traded here in the markets of events.
func (h *Wallets) liveVolume(ctx *fasthttp.RequestCtx) {
	a := askFor(ctx, "id")
	ids := a.list("id")
	switch {
	case len(ids) == 0:
		a.Missing("id")
	case len(ids) > maxMarkets,
		slices.ContainsFunc(ids, func(id string) bool { return !wire.IsNumber(id) }):
		a.Invalid("id", "")
	}
	if a.Refused != nil {
		a.Refused.Send(ctx)
		return
	}
	b := append(make([]byte, 0, 1024), '[')
	for _, id := range ids {
		var err error
		if b, err = h.appendEventVolume(b, id); err != nil {
			h.unread("read the volume of event", id, err).Send(ctx)
			return
		}
	}
	wire.Answer(ctx, append(b, ']'))
}

// appendEventVolume appends the volume of an event and of each of its markets that trade here. An
// unknown event appends nothing.
func (h *Wallets) appendEventVolume(b []byte, id string) ([]byte, error) {
	c := h.o.Catalog()
	e := c.EventByID(id)
	if e == nil {
		return b, nil
	}
	total, rows := int64(0), []byte{'['}
	for _, described := range c.MarketsOf(e) {
		m := h.o.Board.Directory.Condition(described.Condition)
		if m == nil {
			continue
		}
		volume, err := h.o.Volume(m)
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

// maxRanked is how many holders of a token, the largest, are put into an order.
const maxRanked = 1_000

// standing is the part of what wallets hold in a market that a request asks for.
type standing struct {
	market        *view.Market // nil: it does not trade here
	user          user
	named         bool // the user was
	open, closed  bool
	sort          string
	descending    bool
	limit, offset int
}

// marketHolding is a position and whose it is.
type marketHolding struct {
	holding
	wallet engine.WalletNo
}

// marketPositions answers GET /v1/market-positions: what wallets hold in a market, by token. Those
// who hold nothing any more are found only by their address.
func (h *Wallets) marketPositions(ctx *fasthttp.RequestCtx) {
	a := askFor(ctx, "market", "user", "status", "sortBy", "sortDirection", "limit", "offset")
	w := standing{named: a.Text("user") != ""}
	switch listed, named := h.markets(a); {
	case !named:
		a.Missing("market")
	case len(a.list("market")) > 1:
		a.Invalid("market", "")
	case len(listed) == 1:
		w.market = listed[0]
	}
	if w.named {
		w.user = h.user(a)
	}
	status := a.word("status", "ALL", "OPEN", "CLOSED")
	w.open, w.closed = status != "CLOSED", status != "OPEN"
	w.sort = a.word("sortBy", "TOTAL_PNL", "TOKENS", "CASH_PNL", "REALIZED_PNL")
	w.descending = a.descending()
	w.limit, w.offset = a.Count("limit", 50, 500), a.Count("offset", 0, 10_000)
	if a.Refused != nil {
		a.Refused.Send(ctx)
		return
	}
	if w.named && !h.settled(w.user) {
		errBehind.Send(ctx)
		return
	}
	b := append(make([]byte, 0, 4096), '[')
	for o := range engine.Outcome(2) {
		if w.market == nil {
			break
		}
		all, err := h.stand(&w, o)
		if err != nil {
			h.unread("read the positions in market", w.market.Condition.Hex(), err).Send(ctx)
			return
		}
		b = h.appendStanding(b, &w, o, all)
	}
	wire.AnswerRaw(ctx, append(b, ']'))
}

// stand is one page of the positions in a token.
func (h *Wallets) stand(w *standing, o engine.Outcome) ([]marketHolding, error) {
	who := []history.Holder{{Wallet: w.user.no}}
	if !w.named {
		var err error
		if who, err = h.o.History.Holders(w.market.No, o, maxRanked, 1); err != nil {
			return nil, err
		}
	}
	price := h.tokenPrice(w.market, o)
	var all []marketHolding
	for _, x := range who {
		both, err := h.o.History.Position(x.Wallet, w.market.No)
		if err != nil {
			return nil, err
		}
		r := &both[o]
		if r.Bought == 0 || r.Size > 0 && !w.open || r.Size == 0 && !w.closed {
			continue
		}
		p := marketHolding{hold(w.market, &both, o), x.Wallet}
		p.price = price
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

// appendStanding appends the positions in a token. A token without any is left out: clients that go
// from page to page stop where nothing comes.
func (h *Wallets) appendStanding(
	b []byte, w *standing, o engine.Outcome, all []marketHolding,
) []byte {
	if len(all) == 0 {
		return b
	}
	b = append(wire.AppendComma(b), '{')
	b = appendAssetField(b, "token", &w.market.Condition, o)
	b = append(wire.AppendKey(b, "positions"), '[')
	label := h.o.Catalog().Label(w.market.Condition, o)
	for i := range all {
		p := &all[i]
		address, known := h.o.Board.Directory.Address(p.wallet)
		if !known {
			continue // the index is ahead of what is published
		}
		profile := h.o.Profiles.Of(address)
		cash, realized := cents(p.current())-cents(p.initial()), cents(p.realized)
		b = append(wire.AppendComma(b), '{')
		b = wire.AppendField(b, "proxyWallet", h.checksums.of(p.wallet, address, h.o.Checksum))
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

// publicProfile answers GET /public-profile: what the operator says of a wallet.
func (h *Wallets) publicProfile(ctx *fasthttp.RequestCtx) {
	a := askFor(ctx, "address")
	var address engine.Address
	if s := a.Text("address"); strings.TrimSpace(s) == "" {
		a.Missing("address")
	} else if !engine.ParseHex(address[:], s) {
		a.Invalid("address", "")
	}
	if a.Refused != nil {
		a.Refused.Send(ctx)
		return
	}
	p := h.o.Profiles.Of(address)
	if p == (Profile{}) {
		errNoProfile.Send(ctx)
		return
	}
	b := append(make([]byte, 0, 512), '{')
	b = wire.AppendField(b, "proxyWallet", h.o.Checksum(address))
	b = strconv.AppendBool(wire.AppendKey(b, "displayUsernamePublic"), p.Public)
	wire.Answer(ctx, wire.CloseObject(p.append(b)))
}

var errNoProfile = wire.Wallets.Refuse(fasthttp.StatusNotFound, "not_found",
	"the operator has no profile of this wallet", "")
