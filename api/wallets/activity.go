package wallets

import (
	"cmp"
	"slices"
	"strconv"
	"strings"

	"github.com/valyala/fasthttp"

	"clobd/api/wire"
	"clobd/engine"
	"clobd/engine/view"
	"clobd/journal/history"
)

// act is one thing that a wallet did, as the public sees it: its part in a trade, or what it
// split, merged or redeemed.
type act struct {
	kind     string
	wallet   engine.WalletNo
	market   *view.Market
	time     engine.Time
	sequence engine.Sequence
	index    uint32
	size     engine.Size
	cash     engine.Cash

	// Only of trades.
	outcome engine.Outcome
	side    engine.Side
	price   engine.Price
}

const trade = "TRADE"

// moveKinds are what moves of tokens outside of trades are called.
var moveKinds = [...]string{
	engine.Split: "SPLIT", engine.Merged: "MERGE", engine.Redeemed: "REDEEM",
}

// scanRows is how many trades and moves one request looks at: what lies behind them is not found.
const scanRows = 50_000

// maxOffset is how much of a list may be passed over.
const maxOffset = 10_000

// activityQuery is what a request for acts asks for.
type activityQuery struct {
	history.Scan
	user       user
	events     []uint64 // groups of markets; none: all
	kinds      []string // none: all
	sided      bool
	side       engine.Side
	takers     bool        // no part of a maker
	leastCash  engine.Cash // of a trade
	leastSize  engine.Size
	start, end engine.Time // both included; end 0: none
	offset     int
	limit      int
	none       bool // nothing can match
	each       func(*act) bool
}

// readScope reads whose acts are asked for, in which markets.
func (h *Wallets) readScope(a *query, s *activityQuery) {
	listed, named := h.markets(a)
	for _, m := range listed {
		s.Markets = append(s.Markets, m.No)
	}
	s.none = named && len(listed) == 0
	for _, id := range a.list("eventId") {
		group, err := strconv.ParseUint(id, 10, 64)
		if err != nil || named || len(s.events) == maxMarkets {
			a.Invalid("eventId", "")
			return
		}
		s.events = append(s.events, group)
	}
	if s.user.no != 0 {
		s.Owners = []engine.WalletNo{s.user.no}
		if owner := h.o.Board.Directory.Owner(s.user.no); owner != 0 && owner != s.user.no {
			s.Owners = append(s.Owners, owner)
		}
	}
	if a.Text("side") != "" {
		s.sided = true
		if a.word("side", "BUY", "SELL") == "SELL" {
			s.side = engine.Sell
		}
	}
}

// publicTrades answers GET /trades: the newest trades of everybody, of markets, or of a wallet.
func (h *Wallets) publicTrades(ctx *fasthttp.RequestCtx) {
	a := askFor(ctx, "limit", "offset", "takerOnly", "filterType", "filterAmount", "market",
		"eventId", "user", "side")
	var s activityQuery
	asksUser := a.Text("user") != ""
	if asksUser {
		s.user = h.user(a)
	}
	h.readScope(a, &s)
	s.limit, s.offset = a.Count("limit", 100, 10_000), a.Count("offset", 0, maxOffset)
	s.takers, s.kinds = a.flag("takerOnly", true), []string{trade}
	readLeast(a, &s)
	s.none = s.none || asksUser && s.user.no == 0
	rows, refused := h.newest(a, &s)
	if refused != nil {
		refused.Send(ctx)
		return
	}
	b := append(make([]byte, 0, 2+768*len(rows)), '[')
	for i := range rows {
		b = append(wire.AppendComma(b), '{')
		b = wire.CloseObject(h.appendPart(b, &rows[i]))
	}
	wire.AnswerRaw(ctx, append(b, ']'))
}

// readLeast reads the least size or value of a trade. Its two parameters need each other; a wrong
// value of either is refused before the absence of the other.
func readLeast(a *query, s *activityQuery) {
	kind, amount := a.word("filterType", "CASH", "TOKENS"), a.amount("filterAmount", 0)
	switch typed, has := a.Text("filterType") != "", a.Text("filterAmount") != ""; {
	case has && !typed:
		a.Missing("filterType")
	case typed && !has:
		a.Missing("filterAmount")
	case kind == "CASH":
		s.leastCash = engine.Cash(amount)
	default:
		s.leastSize = engine.Size(amount)
	}
}

// activity answers GET /activity: all that a wallet did.
func (h *Wallets) activity(ctx *fasthttp.RequestCtx) {
	a := askFor(ctx, "user", "limit", "offset", "market", "eventId", "type", "start", "end", "sortBy",
		"sortDirection", "side")
	s := activityQuery{user: h.user(a)}
	h.readScope(a, &s)
	s.limit, s.offset = a.Count("limit", 100, 500), a.Count("offset", 0, maxOffset)
	s.readKinds(a)
	s.start = 1000 * engine.Time(a.Count("start", 0, wire.MaxSeconds))
	if end := a.Count("end", 0, wire.MaxSeconds); a.Text("end") != "" {
		s.end = 1000*engine.Time(end) + 999
	}
	by, down := a.word("sortBy", "TIMESTAMP", "TOKENS", "CASH"), a.descending()
	s.none = s.none || s.user.no == 0
	s.Wallet = s.user.no
	var rows []act
	var refused *wire.Refusal
	if by == "TIMESTAMP" && down {
		rows, refused = h.newest(a, &s)
	} else {
		rows, refused = h.sorted(a, &s, by, down)
	}
	if refused != nil {
		refused.Send(ctx)
		return
	}
	b := append(make([]byte, 0, 2+768*len(rows)), '[')
	for i := range rows {
		b = append(wire.AppendComma(b), '{')
		b = wire.CloseObject(h.appendAct(b, &rows[i]))
	}
	wire.AnswerRaw(ctx, append(b, ']'))
}

// readKinds reads the kinds of acts that are asked for. Of some there is never one here.
func (s *activityQuery) readKinds(a *query) {
	for _, kind := range a.list("type") {
		kind = strings.ToUpper(kind)
		if !slices.Contains([]string{trade, "SPLIT", "MERGE", "REDEEM", "REWARD", "CONVERSION",
			"MAKER_REBATE"}, kind) {
			a.Invalid("type", "")
			return
		}
		s.kinds = append(s.kinds, kind)
	}
}

// newest finds one page of acts, the newest first.
func (h *Wallets) newest(a *query, s *activityQuery) (rows []act, refused *wire.Refusal) {
	skip := s.offset
	s.each = func(d *act) bool {
		if skip--; skip < 0 {
			rows = append(rows, *d)
		}
		return len(rows) < s.limit
	}
	s.none = s.none || s.limit == 0
	return rows, h.seek(a, s, &rows)
}

// sorted finds one page of acts in another order: all of them are looked at.
func (h *Wallets) sorted(
	a *query, s *activityQuery, by string, down bool,
) (rows []act, refused *wire.Refusal) {
	s.each = func(d *act) bool {
		rows = append(rows, *d)
		return true
	}
	if refused := h.seek(a, s, &rows); refused != nil {
		return nil, refused
	}
	slices.SortStableFunc(rows, func(x, y act) int {
		order := cmp.Compare(x.sequence, y.sequence)
		switch by {
		case "TOKENS":
			order = cmp.Compare(x.size, y.size)
		case "CASH":
			order = cmp.Compare(x.cash, y.cash)
		}
		if down {
			return -order
		}
		return order
	})
	rows = rows[min(s.offset, len(rows)):]
	return rows[:min(s.limit, len(rows))], nil
}

// seek calls s.each with what is asked for, newest first, or says what is wrong with the request.
func (h *Wallets) seek(a *query, s *activityQuery, rows *[]act) *wire.Refusal {
	if a.Refused != nil {
		return a.Refused
	}
	if s.none {
		return nil
	}
	if s.user.no != 0 && !h.settled(s.user) {
		return errBehind
	}
	s.Limit = scanRows
	if s.start > 0 {
		s.After = s.start - 1
	}
	if s.end > 0 {
		s.Before = s.end + 1
	}
	s.NoTrades = len(s.kinds) > 0 && !slices.Contains(s.kinds, trade)
	if _, err := h.o.History.Scan(&s.Scan, func(t *history.TradeRow, r *history.MoveRow) bool {
		if t != nil {
			return h.passTrade(s, t)
		}
		d := act{kind: moveKinds[r.Kind], wallet: r.Wallet, time: r.Time, sequence: r.Sequence,
			size: r.Tokens[0], cash: r.Cash}
		if r.Kind == engine.Redeemed {
			d.size += r.Tokens[1]
		}
		return h.pass(s, &d, r.Market)
	}); err != nil {
		*rows = nil
		return h.unread("read trades", s.user.address.Hex(), err)
	}
	return nil
}

// passTrade hands on the parts of a trade that are asked for: the taker's, then the makers'.
func (h *Wallets) passTrade(s *activityQuery, t *history.TradeRow) bool {
	d := act{kind: trade, wallet: t.Wallet, time: t.Time, sequence: t.Sequence, index: t.Index,
		size: t.Size, cash: engine.Cost(t.Size, t.Price), outcome: t.Outcome, side: t.Side,
		price: t.Price}
	goOn := h.pass(s, &d, t.Market)
	for i := 0; goOn && !s.takers && i < len(t.Makers); i++ {
		k := &t.Makers[i]
		d.wallet, d.size, d.cash = k.Wallet, k.Size, engine.Cost(k.Size, k.Price)
		d.outcome, d.side, d.price = k.Outcome, k.Side, k.Price
		goOn = h.pass(s, &d, t.Market)
	}
	return goOn
}

// pass hands on a act if it is asked for.
func (h *Wallets) pass(s *activityQuery, d *act, no engine.MarketNo) bool {
	d.market = h.o.Board.Directory.Market(no)
	switch {
	case d.market == nil, // the index is ahead of what is published
		s.user.no != 0 && d.wallet != s.user.no,
		len(s.kinds) > 0 && !slices.Contains(s.kinds, d.kind),
		len(s.Markets) > 0 && !slices.Contains(s.Markets, no),
		len(s.events) > 0 && !slices.Contains(s.events, d.market.Group),
		s.sided && (d.kind != trade || d.side != s.side),
		d.cash < s.leastCash, d.size < s.leastSize,
		d.time < s.start, s.end > 0 && d.time > s.end:
		return true
	}
	return s.each(d)
}

// appendPart appends the members of a wallet's part in a trade.
func (h *Wallets) appendPart(b []byte, d *act) []byte {
	m, about := d.market, h.about(d.market)
	b, p := h.appendDoer(b, d)
	b = wire.AppendField(b, "side", wire.SideText(d.side))
	b = appendAssetField(b, "asset", &m.Condition, d.outcome)
	b = wire.AppendHexField(b, "conditionId", m.Condition[:])
	b = wire.AppendNumber(b, "size", int64(d.size), 6)
	b = wire.AppendNumber(b, "price", int64(d.price), 4)
	b = wire.AppendNumber(b, "timestamp", int64(d.time)/1000, 0)
	b = wire.AppendNumber(b, "usdcSize", int64(d.cash), 6)
	b = appendAbout(b, &about)
	b = wire.AppendField(b, "outcome", h.o.Catalog().Label(m.Condition, d.outcome))
	b = strconv.AppendUint(wire.AppendKey(b, "outcomeIndex"), uint64(d.outcome), 10)
	b = p.append(b)
	return h.appendReceipt(b, d)
}

// noOutcome is the index of the outcome of what concerns both of them.
const noOutcome = 999

// appendAct appends the members of one row of a wallet's activity. What is no trade has neither
// token nor side.
func (h *Wallets) appendAct(b []byte, d *act) []byte {
	m, about := d.market, h.about(d.market)
	b, p := h.appendDoer(b, d)
	b = wire.AppendNumber(b, "timestamp", int64(d.time)/1000, 0)
	b = wire.AppendHexField(b, "conditionId", m.Condition[:])
	b = wire.AppendField(b, "type", d.kind)
	b = wire.AppendNumber(b, "size", int64(d.size), 6)
	b = wire.AppendNumber(b, "usdcSize", int64(d.cash), 6)
	b = h.appendReceipt(b, d)
	b = wire.AppendNumber(b, "price", int64(d.price), 4)
	index, label := uint64(noOutcome), ""
	if d.kind == trade {
		b = appendAssetField(b, "asset", &m.Condition, d.outcome)
		b = wire.AppendField(b, "side", wire.SideText(d.side))
		index, label = uint64(d.outcome), h.o.Catalog().Label(m.Condition, d.outcome)
	} else {
		b = append(b, `,"asset":"","side":""`...)
	}
	b = strconv.AppendUint(wire.AppendKey(b, "outcomeIndex"), index, 10)
	b = appendAbout(b, &about)
	b = wire.AppendField(b, "outcome", label)
	return p.append(b)
}

// appendDoer appends whose act it is, and finds what the operator says of him.
func (h *Wallets) appendDoer(b []byte, d *act) ([]byte, *Profile) {
	wallet, _ := h.o.Board.Directory.Address(d.wallet)
	p := h.o.Profiles.Of(wallet)
	return wire.AppendField(b, "proxyWallet", h.checksums.of(d.wallet, wallet, h.o.Checksum)), &p
}

// appendReceipt appends the ledger's receipt for it.
func (h *Wallets) appendReceipt(b []byte, d *act) []byte {
	hash := engine.TxHash(h.o.JournalID, d.sequence, d.index)
	return wire.AppendHexField(b, "transactionHash", hash[:])
}
