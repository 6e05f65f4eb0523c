package gamma

import (
	"encoding/json"
	"slices"
	"strconv"
	"strings"

	"clobd/api/catalog"
	"clobd/api/wire"
	"clobd/engine"
	"clobd/engine/view"
)

// entryFacts are what both forms of an entry say. The engine tells them of a market that trades
// here, the source of all others.
type entryFacts struct {
	condition                         engine.Condition
	tokens                            [2]engine.Token
	labels                            []string
	id                                uint64 // the catalog's; 0: none
	question, slug, status            string
	active, closed, archived, accepts bool
	negRisk, half                     bool
	tick                              engine.Price
	minimum                           engine.Size
	prices                            [2]int64 // in 1/100,000
	winner                            [2]bool
	rewards, metadata                 []byte // of the order book's record, as written, or nil
}

func (d *describer) facts(l *bookMarket) (a entryFacts) {
	if l.m != nil {
		a.described(l.m)
	}
	if l.m != nil && l.m.HasBook {
		for key, value := range catalog.Members(d.entryRecord(l.m).Core) {
			switch string(key) {
			case "rewards":
				a.rewards = value
			case "raw_metadata":
				a.metadata = value
			}
		}
	}
	switch {
	case l.listed != nil:
		a.trading(l.listed, d.g.o.Values.Price(l.listed))
		a.accepts = Accepts(d.g.o.Board, l.listed)
	case l.m.HasBook:
		a.recorded(d.entryRecord(l.m).Live)
	default:
		a.foretold(d.entryRecord(l.m).Live)
	}
	if a.archived {
		a.status = "archived"
	}
	return a
}

// entryRecord reads the record that an entry is made of: the order book's, else the catalog's. It
// is good until another market's is read.
func (d *describer) entryRecord(m *catalog.Market) catalog.Record {
	if d.told != m {
		read := d.c.MarketRecord
		if m.HasBook {
			read = d.c.BookRecord
		}
		d.told, d.toldItem = m, record(d, &d.entry, m, read)
	}
	return d.toldItem
}

func (a *entryFacts) trading(m *view.Market, price int64) {
	if a.condition != m.Condition {
		a.active, a.labels = true, []string{"Yes", "No"} // the catalog does not know the market
	}
	a.condition, a.tokens, a.negRisk = m.Condition, m.Tokens, m.NegRisk
	a.tick, a.minimum = m.Tick, m.MinSize
	a.closed = a.closed || ended(m)
	const whole = 10 * int64(engine.PriceOne)
	settled := m.State == engine.Settled
	if a.prices[0] = price; a.prices[0] != 0 || settled {
		a.prices[1] = whole - a.prices[0]
	}
	for o, p := range a.prices {
		a.winner[o] = settled && p == whole
	}
	a.half = settled && m.Payout == engine.PriceOne/2
	if a.status = stateWords[m.State]; a.closed && !ended(m) {
		a.status = "closed"
	}
}

// stateWords are the states of markets that trade here, as entries name them.
var stateWords = [...]string{engine.Unopened: "active", engine.Open: "active",
	engine.Paused: "paused", engine.Closed: "closed", engine.Settled: "resolved"}

func (a *entryFacts) described(m *catalog.Market) {
	a.condition, a.tokens, a.labels = m.Condition, m.Tokens, m.Outcomes
	a.question, a.slug = m.Question, m.Slug
	a.active, a.closed, a.archived = m.Active, m.Closed, m.Archived
	a.negRisk, a.tick, a.minimum = m.NegRisk, m.Tick, m.MinSize
	a.id = number(m.ID)
}

// number reads an id that is a number as numbers are written, and that every client can hold; any
// other is 0. GET /markets/{number} finds the row again: it compares texts.
func number(id string) uint64 {
	n, err := strconv.ParseUint(id, 10, 53)
	if err != nil || id[0] == '0' {
		return 0
	}
	return n
}

// recorded takes the facts of the order book's record of a market that does not trade here.
func (a *entryFacts) recorded(live []byte) {
	for key, value := range catalog.Members(live) {
		switch string(key) {
		case "accepting_orders":
			a.accepts = string(value) == "true"
		case "is_50_50_outcome":
			a.half = string(value) == "true"
		case "tokens":
			var tokens []struct {
				Price  json.Number `json:"price"`
				Winner bool        `json:"winner"`
			}
			if json.Unmarshal(value, &tokens) != nil {
				continue
			}
			for o := range min(len(tokens), len(a.prices)) {
				a.prices[o], a.winner[o] = fraction(tokens[o].Price.String()), tokens[o].Winner
			}
		}
	}
	a.ending()
}

// foretold takes the facts of the catalog's record of a market that does not trade here. The last
// prices of a closed market are its payouts.
func (a *entryFacts) foretold(live []byte) {
	for key, value := range catalog.Members(live) {
		if string(key) != "outcomePrices" {
			continue
		}
		prices := pricesIn(value)
		for o := range min(len(prices), len(a.prices)) {
			a.prices[o] = fraction(prices[o])
			a.winner[o] = a.closed && a.prices[o] == 10*int64(engine.PriceOne)
		}
	}
	a.half = a.closed && a.prices[0] != 0 && a.prices[0] == a.prices[1]
	a.ending()
}

// pricesIn reads a text that holds a list of texts. That of two prices, as nearly all sources write
// it, is read in place.
func pricesIn(value []byte) (prices []string) {
	whole := wire.Text(value)
	if list, is := strings.CutPrefix(whole, `"[\"`); is {
		first, rest, _ := strings.Cut(list, `\"`)
		between, rest, _ := strings.Cut(rest, `\"`)
		second, end, _ := strings.Cut(rest, `\"`)
		if strings.Trim(between, " ") == "," && end == `]"` &&
			!strings.Contains(first, `\`) && !strings.Contains(second, `\`) {
			return []string{first, second}
		}
	}
	var text string
	if json.Unmarshal(value, &text) != nil || json.Unmarshal([]byte(text), &prices) != nil {
		return nil
	}
	return prices
}

func (a *entryFacts) ending() {
	switch {
	case a.closed && (a.winner[0] || a.winner[1] || a.half):
		a.status = "resolved"
	case a.closed:
		a.status = "closed"
	default:
		a.status = "active"
	}
}

// fraction reads a price from 0 to 1 in 1/100,000; any other text is 0.
func fraction(text string) int64 {
	const whole = 10 * int64(engine.PriceOne)
	p, err := strconv.ParseFloat(text, 64)
	if err != nil || !(p >= 0 && p <= 1) {
		return 0
	}
	return int64(p*float64(whole) + 0.5)
}

func (a *entryFacts) appendStates(b []byte) []byte {
	b = strconv.AppendBool(wire.AppendKey(b, "active"), a.active)
	b = strconv.AppendBool(wire.AppendKey(b, "closed"), a.closed)
	b = strconv.AppendBool(wire.AppendKey(b, "archived"), a.archived)
	return strconv.AppendBool(wire.AppendKey(b, "accepting_orders"), a.accepts)
}

func (a *entryFacts) appendRules(b []byte) []byte {
	b = wire.AppendNumber(b, "minimum_order_size", int64(a.minimum), 6)
	return wire.AppendNumber(b, "minimum_tick_size", int64(a.tick), 4)
}

// appendRewards appends the rewards of the record. A market without a record has none.
func (a *entryFacts) appendRewards(b []byte) []byte {
	if len(a.rewards) == 0 || a.rewards[0] != '{' {
		return append(wire.AppendKey(b, "rewards"), `{"rates":[],"min_size":0,"max_spread":0}`...)
	}
	b = append(wire.AppendKey(b, "rewards"), '{')
	for key, value := range catalog.MembersOf(a.rewards) {
		if string(key) == "rates" {
			value = listOf(value)
		}
		b = appendMember(b, key, value)
	}
	return wire.CloseObject(b)
}

// listOf is a list as written; sources write null for an empty one, which clients cannot read.
func listOf(value []byte) []byte {
	if string(value) == "null" {
		return wire.EmptyList
	}
	return value
}

func (a *entryFacts) appendTokens(b []byte) []byte {
	b = append(wire.AppendKey(b, "tokens"), '[')
	for o := range a.tokens {
		b = append(wire.AppendComma(b), '{')
		b = wire.AppendTokenField(b, "token_id", a.tokens[o])
		b = wire.AppendField(b, "outcome", a.labels[o])
		b = wire.AppendNumber(b, "price", a.prices[o], 5)
		b = wire.CloseObject(strconv.AppendBool(wire.AppendKey(b, "winner"), a.winner[o]))
	}
	return append(b, ']')
}

// appendNames appends members that only some clients read. market_id is the catalog's id if that is
// a number, else null: a number of the engine would name another market of the catalog.
func (a *entryFacts) appendNames(b []byte) []byte {
	b = wire.AppendField(b, "status", a.status)
	if b = wire.AppendKey(b, "market_id"); a.id == 0 {
		b = append(b, "null"...)
	} else {
		b = strconv.AppendUint(b, a.id, 10)
	}
	b = wire.AppendField(b, "slug", a.slug)
	b = append(wire.AppendKey(b, "assets_ids"), '[')
	for o := range a.tokens {
		b = append(wire.AppendComma(b), '"')
		b = append(a.tokens[o].AppendDecimal(b), '"')
	}
	b = append(wire.AppendKey(append(b, ']'), "outcomes"), '[')
	for _, label := range a.labels {
		b = wire.AppendText(wire.AppendComma(b), label)
	}
	return append(b, ']')
}

// saidKeys are the members of a catalog's record that the order book's shape has under other names,
// or cannot do without.
var saidKeys = [...]string{"enableOrderBook", "acceptingOrdersTimestamp", "questionID", "description",
	"endDate", "gameStartTime", "secondsDelay", "notificationsEnabled", "negRiskMarketID",
	"negRiskRequestID", "icon", "image"}

// said are the values of saidKeys as written, nil where absent or null.
type said [len(saidKeys)][]byte

// maxSaid and saidFirst are the length of the longest of saidKeys, and how they begin.
const maxSaid = len("acceptingOrdersTimestamp")

var saidFirst = func() (first [256]bool) {
	for _, key := range saidKeys {
		first[key[0]] = true
	}
	return first
}()

func (s *said) read(members []byte) {
	for key, value := range catalog.Members(members) {
		if len(key) == 0 || len(key) > maxSaid || !saidFirst[key[0]] {
			continue // as most members
		}
		if i := slices.Index(saidKeys[:], wire.Text(key)); i >= 0 && string(value) != "null" {
			s[i] = value
		}
	}
}

// of is the value of one of saidKeys.
func (s *said) of(key string) []byte { return s[slices.Index(saidKeys[:], key)] }

// append appends the value of one of saidKeys under another key, or what stands for its absence.
func (s *said) append(b []byte, key, source, otherwise string) []byte {
	b = wire.AppendKey(b, key)
	if value := s.of(source); value != nil {
		return append(b, value...)
	}
	return append(b, otherwise...)
}
