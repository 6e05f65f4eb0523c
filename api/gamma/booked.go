package gamma

import (
	"encoding/json"
	"slices"
	"strconv"

	"clobd/api/catalog"
	"clobd/api/wire"
	"clobd/engine"
	"clobd/engine/view"
)

// entryFacts are what both forms of an entry say: of the engine where the market trades here, else
// of the source.
type entryFacts struct {
	condition                         engine.Condition
	tokens                            [2]engine.Token
	labels                            []string
	id                                uint64
	question, slug, status            string
	active, closed, archived, accepts bool
	negRisk, half                     bool
	tick                              engine.Price
	minimum                           engine.Size
	prices                            [2]int64 // in 1/100,000
	winner                            [2]bool
	rewards, metadata                 []byte // as the order book's record has them, or nil
}

// facts collects what is said of an entry.
func (d *describer) facts(l *bookMarket) (a entryFacts) {
	if l.m != nil {
		a.described(l.m)
	}
	var r catalog.Record
	if l.m != nil && l.m.HasBook {
		r = d.bookRecord(l.m)
		for key, value := range catalog.Members(r.Core) {
			switch string(key) {
			case "rewards":
				a.rewards = slices.Clone(value)
			case "raw_metadata":
				a.metadata = slices.Clone(value)
			}
		}
	}
	switch {
	case l.listed != nil:
		a.trading(l.listed, d.h.o.Values.Price(l.listed))
		a.accepts = Accepts(d.h.o.Board, l.listed)
	case l.m.HasBook:
		a.recorded(r.Live)
	default:
		r = d.marketRecord(l.m)
		a.foretold(r.Live)
	}
	if a.archived {
		a.status = "archived"
	}
	return a
}

// trading takes what a market that trades here is.
func (a *entryFacts) trading(m *view.Market, price int64) {
	if a.condition != m.Condition {
		a.active, a.labels = true, []string{"Yes", "No"} // nothing is said of it
	}
	if a.id == 0 {
		a.id = uint64(m.No)
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
	if a.status = stateWord(m.State); a.closed && !ended(m) {
		a.status = "closed"
	}
}

// stateWord is a market's state as a word.
func stateWord(s engine.MarketState) string {
	switch s {
	case engine.Paused:
		return "paused"
	case engine.Closed:
		return "closed"
	case engine.Settled:
		return "resolved"
	}
	return "active"
}

// described takes what the row says.
func (a *entryFacts) described(m *catalog.Market) {
	a.condition, a.tokens, a.labels = m.Condition, m.Tokens, m.Outcomes
	a.question, a.slug = m.Question, m.Slug
	a.active, a.closed, a.archived = m.Active, m.Closed, m.Archived
	a.negRisk, a.tick, a.minimum = m.NegRisk, m.Tick, m.MinSize
	a.id, _ = strconv.ParseUint(m.ID, 10, 53)
}

// recorded takes what the order book's record says of a market that does not trade here.
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

// foretold takes what the catalog's record says of a market that does not trade here: what a closed
// one has paid is its last price.
func (a *entryFacts) foretold(live []byte) {
	for key, value := range catalog.Members(live) {
		var text string
		var prices []string
		if string(key) != "outcomePrices" || json.Unmarshal(value, &text) != nil ||
			json.Unmarshal([]byte(text), &prices) != nil {
			continue
		}
		for o := range min(len(prices), len(a.prices)) {
			a.prices[o] = fraction(prices[o])
			a.winner[o] = a.closed && a.prices[o] == 10*int64(engine.PriceOne)
		}
	}
	a.half = a.closed && a.prices[0] != 0 && a.prices[0] == a.prices[1]
	a.ending()
}

// ending is the status of a market that does not trade here.
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

// fraction is a price in 1/100,000, 0 if it is none.
func fraction(text string) int64 {
	const whole = 10 * int64(engine.PriceOne)
	p, err := strconv.ParseFloat(text, 64)
	if err != nil || !(p >= 0 && p <= 1) {
		return 0
	}
	return int64(p*float64(whole) + 0.5)
}

// appendStates appends the flags of a market's life.
func (a *entryFacts) appendStates(b []byte) []byte {
	b = strconv.AppendBool(wire.AppendKey(b, "active"), a.active)
	b = strconv.AppendBool(wire.AppendKey(b, "closed"), a.closed)
	b = strconv.AppendBool(wire.AppendKey(b, "archived"), a.archived)
	return strconv.AppendBool(wire.AppendKey(b, "accepting_orders"), a.accepts)
}

// appendRules appends what an order must be like.
func (a *entryFacts) appendRules(b []byte) []byte {
	b = wire.AppendNumber(b, "minimum_order_size", int64(a.minimum), 6)
	return wire.AppendNumber(b, "minimum_tick_size", int64(a.tick), 4)
}

// appendRewards appends those of the record; here there are none.
func (a *entryFacts) appendRewards(b []byte) []byte {
	if a.rewards != nil {
		return appendMember(b, []byte("rewards"), a.rewards)
	}
	return append(wire.AppendKey(b, "rewards"), `{"rates":[],"min_size":0,"max_spread":0}`...)
}

// appendTokens appends both tokens with what they are worth.
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

// appendNames appends how another kind of client looks for the same. market_id is the catalog's
// number, or the engine's where that is none; null where there is neither.
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

// said are the values of a catalog's record that the order book's shape has under another name or
// without which it is empty, as written.
type said struct {
	orderBook, accepting, questionID, description, end, start, delay []byte
	notifications, negRiskMarket, negRiskRequest, icon, image        []byte
}

// read finds the values; one that is null counts as absent.
func (s *said) read(members []byte) {
	for key, value := range catalog.Members(members) {
		var at *[]byte
		switch string(key) {
		case "enableOrderBook":
			at = &s.orderBook
		case "acceptingOrdersTimestamp":
			at = &s.accepting
		case "questionID":
			at = &s.questionID
		case "description":
			at = &s.description
		case "endDate":
			at = &s.end
		case "gameStartTime":
			at = &s.start
		case "secondsDelay":
			at = &s.delay
		case "notificationsEnabled":
			at = &s.notifications
		case "negRiskMarketID":
			at = &s.negRiskMarket
		case "negRiskRequestID":
			at = &s.negRiskRequest
		case "icon":
			at = &s.icon
		case "image":
			at = &s.image
		default:
			continue
		}
		if string(value) != "null" {
			*at = value
		}
	}
}

// appendSaid appends a value as written, or what stands for its absence.
func appendSaid(b []byte, key string, value []byte, otherwise string) []byte {
	if b = wire.AppendKey(b, key); value == nil {
		return append(b, otherwise...)
	}
	return append(b, value...)
}
