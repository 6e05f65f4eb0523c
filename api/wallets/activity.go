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

// act is one thing that a wallet did: its part in a trade, a split, a merge or a redemption.
type act struct {
	kind     string
	wallet   engine.WalletNo
	market   *view.Market
	time     engine.Time
	sequence engine.Sequence
	index    uint32
	size     engine.Size
	cash     engine.Cash

	// Zero unless kind is TRADE.
	outcome engine.Outcome
	side    engine.Side
	price   engine.Price
}

const trade = "TRADE"

// moveKinds are the names of moves of tokens outside of trades.
var moveKinds = [...]string{
	engine.Split: "SPLIT", engine.Merged: "MERGE", engine.Redeemed: "REDEEM",
}

const (
	scanRows  = 50_000 // trades and moves that one request looks at; older ones are not found
	maxOffset = 10_000 // into a list
)

type activityQuery struct {
	history.Scan
	user       user
	events     []string // ids; none: all
	kinds      []string // none: all
	sided      bool
	side       engine.Side
	takers     bool        // leave out the parts of makers
	leastCash  engine.Cash // of a trade
	leastSize  engine.Size
	start, end engine.Time // both included; end 0: none
	offset     int
	limit      int
	none       bool            // nothing can match
	each       func(*act) bool // false ends the search
}

// readScope reads the wallet, the markets and the side that acts must have.
func (ws *Wallets) readScope(q *query, s *activityQuery) {
	listed, named := ws.markets(q)
	for _, m := range listed {
		s.Markets = append(s.Markets, m.No)
	}
	s.none = named && len(listed) == 0
	s.events = q.events(named)
	if s.user.no != 0 {
		s.Owners = []engine.WalletNo{s.user.no}
		if owner := ws.o.Board.Directory.Owner(s.user.no); owner != 0 && owner != s.user.no {
			s.Owners = append(s.Owners, owner)
		}
	}
	if q.Text("side") != "" {
		s.sided = true
		if q.word("side", "BUY", "SELL") == "SELL" {
			s.side = engine.Sell
		}
	}
}

// publicTrades lists the newest trades of everybody, of markets, or of a wallet.
func (ws *Wallets) publicTrades(ctx *fasthttp.RequestCtx) ([]byte, *wire.Refusal) {
	q := askFor(ctx, "limit", "offset", "takerOnly", "filterType", "filterAmount", "market",
		"eventId", "user", "side")
	var s activityQuery
	asksUser := q.Text("user") != ""
	if asksUser {
		s.user = ws.user(q)
	}
	ws.readScope(q, &s)
	s.limit, s.offset = q.Count("limit", 100, 10_000), q.Count("offset", 0, maxOffset)
	s.takers, s.kinds = q.flag("takerOnly", true), []string{trade}
	readLeast(q, &s)
	s.none = s.none || asksUser && s.user.no == 0
	rows, refused := ws.newest(q, &s)
	return listed(rows, ws.appendPart), refused
}

func listed(rows []act, appendMembers func([]byte, *act) []byte) []byte {
	b := append(make([]byte, 0, 2+768*len(rows)), '[')
	for i := range rows {
		b = wire.CloseObject(appendMembers(append(wire.AppendComma(b), '{'), &rows[i]))
	}
	return append(b, ']')
}

// readLeast reads the least size or value of a trade. The two parameters need each other. A wrong
// value of one is refused before the absence of the other.
func readLeast(q *query, s *activityQuery) {
	kind, amount := q.word("filterType", "CASH", "TOKENS"), q.amount("filterAmount", 0)
	switch typed, has := q.Text("filterType") != "", q.Text("filterAmount") != ""; {
	case has && !typed:
		q.Missing("filterType")
	case typed && !has:
		q.Missing("filterAmount")
	case kind == "CASH":
		s.leastCash = engine.Cash(amount)
	default:
		s.leastSize = engine.Size(amount)
	}
}

func (ws *Wallets) activity(ctx *fasthttp.RequestCtx) ([]byte, *wire.Refusal) {
	q := askFor(ctx, "user", "limit", "offset", "market", "eventId", "type", "start", "end", "sortBy",
		"sortDirection", "side")
	s := activityQuery{user: ws.user(q)}
	ws.readScope(q, &s)
	s.limit, s.offset = q.Count("limit", 100, 500), q.Count("offset", 0, maxOffset)
	s.readKinds(q)
	s.start = 1000 * engine.Time(q.Count("start", 0, wire.MaxSeconds))
	if end := q.Count("end", 0, wire.MaxSeconds); q.Text("end") != "" {
		s.end = 1000*engine.Time(end) + 999
	}
	by, down := q.word("sortBy", "TIMESTAMP", "TOKENS", "CASH"), q.descending()
	s.none = s.none || s.user.no == 0
	s.Wallet = s.user.no
	find := ws.newest
	if by != "TIMESTAMP" || !down {
		find = func(q *query, s *activityQuery) ([]act, *wire.Refusal) {
			return ws.sorted(q, s, by, down)
		}
	}
	rows, refused := find(q, &s)
	return listed(rows, ws.appendAct), refused
}

// readKinds reads the kinds of acts. Acts of the last three kinds never happen here.
func (s *activityQuery) readKinds(q *query) {
	for _, kind := range q.list("type") {
		kind = strings.ToUpper(kind)
		if !slices.Contains([]string{trade, "SPLIT", "MERGE", "REDEEM", "REWARD", "CONVERSION",
			"MAKER_REBATE"}, kind) {
			q.Invalid("type", "")
			return
		}
		s.kinds = append(s.kinds, kind)
	}
}

// newest finds one page of acts, the newest first.
func (ws *Wallets) newest(q *query, s *activityQuery) (rows []act, refused *wire.Refusal) {
	skip := s.offset
	s.each = func(d *act) bool {
		if skip--; skip < 0 {
			rows = append(rows, *d)
		}
		return len(rows) < s.limit
	}
	s.none = s.none || s.limit == 0
	refused = ws.seek(q, s)
	return rows, refused
}

// sorted looks at all acts and cuts one page out of them in another order.
func (ws *Wallets) sorted(
	q *query, s *activityQuery, by string, down bool,
) (rows []act, refused *wire.Refusal) {
	s.each = func(d *act) bool {
		rows = append(rows, *d)
		return true
	}
	if refused := ws.seek(q, s); refused != nil {
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

// seek calls s.each with the acts that the request asks for, the newest first.
func (ws *Wallets) seek(q *query, s *activityQuery) *wire.Refusal {
	if q.Refused != nil {
		return q.Refused
	}
	if s.none {
		return nil
	}
	if s.user.no != 0 && !ws.settled(s.user) {
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
	if _, err := ws.o.History.Scan(&s.Scan, func(t *history.TradeRow, r *history.MoveRow) bool {
		if t != nil {
			return ws.passTrade(s, t)
		}
		d := act{kind: moveKinds[r.Kind], wallet: r.Wallet, time: r.Time, sequence: r.Sequence,
			size: r.Tokens[0], cash: r.Cash}
		if r.Kind == engine.Redeemed {
			d.size += r.Tokens[1]
		}
		return ws.pass(s, &d, r.Market)
	}); err != nil {
		return ws.unread("read trades", s.user.address.Hex(), err)
	}
	return nil
}

// passTrade passes the taker's part in a trade, then the makers' parts unless s.takers.
func (ws *Wallets) passTrade(s *activityQuery, t *history.TradeRow) bool {
	d := act{kind: trade, wallet: t.Wallet, time: t.Time, sequence: t.Sequence, index: t.Index,
		size: t.Size, cash: engine.Cost(t.Size, t.Price), outcome: t.Outcome, side: t.Side,
		price: t.Price}
	goOn := ws.pass(s, &d, t.Market)
	for i := 0; goOn && !s.takers && i < len(t.Makers); i++ {
		k := &t.Makers[i]
		d.wallet, d.size, d.cash = k.Wallet, k.Size, engine.Cost(k.Size, k.Price)
		d.outcome, d.side, d.price = k.Outcome, k.Side, k.Price
		goOn = ws.pass(s, &d, t.Market)
	}
	return goOn
}

// pass calls s.each with an act if the request asks for it.
func (ws *Wallets) pass(s *activityQuery, d *act, no engine.MarketNo) bool {
	d.market = ws.o.Board.Directory.Market(no)
	switch {
	case d.market == nil, // the index is ahead of what is published
		s.user.no != 0 && d.wallet != s.user.no,
		len(s.kinds) > 0 && !slices.Contains(s.kinds, d.kind),
		len(s.Markets) > 0 && !slices.Contains(s.Markets, no),
		!ws.inEvents(d.market, s.events),
		s.sided && (d.kind != trade || d.side != s.side),
		d.cash < s.leastCash, d.size < s.leastSize,
		d.time < s.start, s.end > 0 && d.time > s.end:
		return true
	}
	return s.each(d)
}

func (ws *Wallets) appendPart(b []byte, d *act) []byte {
	m, about := d.market, ws.about(d.market)
	b, p := ws.appendDoer(b, d)
	b = wire.AppendField(b, "side", wire.SideText(d.side))
	b = appendAssetField(b, "asset", &m.Condition, d.outcome)
	b = wire.AppendHexField(b, "conditionId", m.Condition[:])
	b = wire.AppendNumber(b, "size", int64(d.size), 6)
	b = wire.AppendNumber(b, "price", int64(d.price), 4)
	b = wire.AppendNumber(b, "timestamp", int64(d.time)/1000, 0)
	b = wire.AppendNumber(b, "usdcSize", int64(d.cash), 6)
	b = appendAbout(b, &about)
	b = wire.AppendField(b, "outcome", ws.o.Catalog().Label(m.Condition, d.outcome))
	b = strconv.AppendUint(wire.AppendKey(b, "outcomeIndex"), uint64(d.outcome), 10)
	b = p.append(b)
	return ws.appendReceipt(b, d)
}

// noOutcome is the outcomeIndex of an act that concerns both outcomes.
const noOutcome = 999

// appendAct appends the members of one act. Acts other than trades have neither token nor side.
func (ws *Wallets) appendAct(b []byte, d *act) []byte {
	m, about := d.market, ws.about(d.market)
	b, p := ws.appendDoer(b, d)
	b = wire.AppendNumber(b, "timestamp", int64(d.time)/1000, 0)
	b = wire.AppendHexField(b, "conditionId", m.Condition[:])
	b = wire.AppendField(b, "type", d.kind)
	b = wire.AppendNumber(b, "size", int64(d.size), 6)
	b = wire.AppendNumber(b, "usdcSize", int64(d.cash), 6)
	b = ws.appendReceipt(b, d)
	b = wire.AppendNumber(b, "price", int64(d.price), 4)
	index, label := uint64(noOutcome), ""
	if d.kind == trade {
		b = appendAssetField(b, "asset", &m.Condition, d.outcome)
		b = wire.AppendField(b, "side", wire.SideText(d.side))
		index, label = uint64(d.outcome), ws.o.Catalog().Label(m.Condition, d.outcome)
	} else {
		b = append(b, `,"asset":"","side":""`...)
	}
	b = strconv.AppendUint(wire.AppendKey(b, "outcomeIndex"), index, 10)
	b = appendAbout(b, &about)
	b = wire.AppendField(b, "outcome", label)
	return p.append(b)
}

// appendDoer appends the wallet of an act and returns its profile.
func (ws *Wallets) appendDoer(b []byte, d *act) ([]byte, *Profile) {
	wallet, _ := ws.o.Board.Directory.Address(d.wallet)
	p := ws.o.Profiles.Of(wallet)
	return wire.AppendField(b, "proxyWallet", ws.checksums.of(d.wallet, wallet, ws.o.Checksum)), &p
}

func (ws *Wallets) appendReceipt(b []byte, d *act) []byte {
	hash := engine.TxHash(ws.o.JournalID, d.sequence, d.index)
	return wire.AppendHexField(b, "transactionHash", hash[:])
}
