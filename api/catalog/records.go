package catalog

import (
	"fmt"
	"slices"

	"clobd/engine"
)

// The fields of an event and of a market that matter here, and their places in the arrays that
// hold them.
var (
	eventKeys  = [...]string{"id", "slug", "title", "markets", "conditionId"}
	marketKeys = [...]string{
		"id", "conditionId", "question", "slug", "outcomes", "clobTokenIds", "closed", "archived",
		"enableOrderBook", "acceptingOrders", "negRisk", "orderPriceMinTickSize", "orderMinSize",
	}
)

const (
	eventID = iota
	eventSlug
	eventTitle
	eventMarkets
	eventCondition
)

const (
	marketID = iota
	marketCondition
	marketQuestion
	marketSlug
	marketOutcomes
	marketTokens
	marketClosed
	marketArchived
	marketOrderBook
	marketAccepting
	marketNegRisk
	marketTick
	marketMinimum
)

// What a market has that says nothing else: a cent, five shares.
const (
	defaultTick = 100
	defaultMin  = 5 * engine.Unit
)

// takeEvent takes one event record with its markets.
func (l *loader) takeEvent(record []byte, line int) {
	if !fields(record, eventKeys[:], l.event[:]) {
		l.broken(line, "", "broken JSON")
		return
	}
	id, ok := asText(l.event[eventID])
	switch {
	case !ok || id == "":
		l.broken(line, "", "no event: it has no id")
		return
	case absent(l.event[eventMarkets]) && !absent(l.event[eventCondition]):
		l.broken(line, id, "a market outside of an event")
		return
	}
	slug, ok1 := asText(l.event[eventSlug])
	title, ok2 := asText(l.event[eventTitle])
	if !ok1 || !ok2 {
		l.broken(line, id, "slug or title is not text")
		return
	}
	e := &Event{ID: id, Slug: slug, Title: title, Group: group(id)}
	markets := l.event[eventMarkets]
	if !absent(markets) && !elements(markets, func([]byte) {}) {
		l.broken(line, id, "markets is not an array")
		return
	}
	l.report.Events++
	l.c.Events = append(l.c.Events, e)
	elements(markets, func(record []byte) { l.takeMarket(e, record, line) })
}

// takeMarket takes one market record: describes it, and decides whether it is tradable.
func (l *loader) takeMarket(e *Event, record []byte, line int) {
	l.report.Markets++
	m := &Market{Event: e, line: line}
	if !fields(record, marketKeys[:], l.market[:]) {
		l.refuse(m, "broken JSON")
		return
	}
	if why := l.describe(m); why != "" {
		l.refuse(m, why)
		return
	}
	if before := l.c.byCondition[m.Condition]; before != nil {
		if before.tokens != m.tokens || !slices.Equal(before.Outcomes, m.Outcomes) {
			l.refuse(m, fmt.Sprintf("contradicts the same condition on line %d", before.line))
			return
		}
		l.report.Skipped[Duplicate]++
		return
	}
	listing := engine.Listing{Condition: m.Condition, Tokens: m.tokens, Group: e.Group}
	var why string
	if m.Skipped, why = l.judge(m, &listing); why != "" {
		l.refuse(m, why)
		return
	}
	l.c.byCondition[m.Condition] = m
	l.c.Markets = append(l.c.Markets, m)
	if m.Skipped != "" {
		l.report.Skipped[m.Skipped]++
		return
	}
	l.tokens[m.tokens[0]], l.tokens[m.tokens[1]] = m.Condition, m.Condition
	l.listings = append(l.listings, listing)
	l.listed = append(l.listed, m)
}

// describe reads what a market is called. It says what is wrong, or nothing.
func (l *loader) describe(m *Market) string {
	var ok [4]bool
	var condition string
	m.ID, ok[0] = asText(l.market[marketID])
	condition, ok[1] = asText(l.market[marketCondition])
	m.Question, ok[2] = asText(l.market[marketQuestion])
	m.Slug, ok[3] = asText(l.market[marketSlug])
	for i, key := range []string{"id", "conditionId", "question", "slug"} {
		if !ok[i] {
			return key + " is not text"
		}
	}
	if condition == "" {
		return "no conditionId"
	}
	if m.Condition, ok[0] = parseCondition(condition); !ok[0] {
		return "conditionId is not 0x and 64 hex digits"
	}
	labels, known := l.labels[string(l.market[marketOutcomes])]
	if !known {
		if labels, ok[0] = asList(l.market[marketOutcomes]); !ok[0] {
			return "outcomes is not a list of texts"
		}
		if len(l.labels) < 1<<10 {
			l.labels[string(l.market[marketOutcomes])] = labels
		}
	}
	m.Outcomes = labels
	ids, ok0 := asList(l.market[marketTokens])
	if !ok0 {
		return "clobTokenIds is not a list of token ids"
	}
	if len(ids) != len(m.Outcomes) {
		return fmt.Sprintf("%d outcomes but %d token ids", len(m.Outcomes), len(ids))
	}
	if len(ids) != 2 {
		return ""
	}
	for i, id := range ids {
		if m.tokens[i], ok[0] = engine.ParseToken(id); !ok[0] {
			return fmt.Sprintf("token id %q is not a decimal number of 256 bits", clip(id))
		}
	}
	return ""
}

// judge decides whether the market is tradable and fills its listing. It is skipped for a reason,
// refused for what is wrong with it, or neither.
func (l *loader) judge(m *Market, listing *engine.Listing) (skipped Reason, wrong string) {
	closed, ok0 := asBool(l.market[marketClosed], false)
	archived, ok1 := asBool(l.market[marketArchived], false)
	book, ok2 := asBool(l.market[marketOrderBook], true)
	open, ok3 := asBool(l.market[marketAccepting], true)
	negRisk, ok4 := asBool(l.market[marketNegRisk], false)
	switch {
	case !ok0 || !ok1 || !ok2 || !ok3 || !ok4:
		return "", "a flag is neither true nor false"
	case closed:
		return Closed, ""
	case archived:
		return Archived, ""
	case !book:
		return NoOrderBook, ""
	case len(m.Outcomes) == 0:
		return "", "no outcomes"
	case len(m.Outcomes) != 2:
		return NotBinary, ""
	case m.tokens[0] == m.tokens[1]:
		return "", "both outcomes have the same token id"
	}
	tick, ok := asDecimal(l.market[marketTick], 4, defaultTick)
	if !ok || !slices.Contains([]int64{1000, 100, 50, 25, 10, 1}, tick) {
		return "", fmt.Sprintf("tick %s is not offered", clip(string(l.market[marketTick])))
	}
	minimum, ok := asDecimal(l.market[marketMinimum], 6, defaultMin)
	if !ok || minimum > int64(engine.MaxOrder) {
		return "", fmt.Sprintf("minimum size %s is no size", clip(string(l.market[marketMinimum])))
	}
	for i := range m.tokens {
		if other, taken := l.tokens[m.tokens[i]]; taken {
			return "", "shares a token id with " + other.Hex()
		}
	}
	listing.Tick, listing.MinSize = engine.Price(tick), engine.Size(minimum)
	listing.NegRisk, listing.Open = negRisk, open
	return "", ""
}

// parseCondition reads 0x and 64 hex digits, of either letter case.
func parseCondition(s string) (c engine.Condition, ok bool) {
	if len(s) != 2+2*len(c) || s[:2] != "0x" {
		return c, false
	}
	for i := range c {
		hi, ok0 := nibble(s[2+2*i])
		lo, ok1 := nibble(s[3+2*i])
		if !ok0 || !ok1 {
			return engine.Condition{}, false
		}
		c[i] = hi<<4 | lo
	}
	return c, true
}

func nibble(c byte) (byte, bool) {
	switch {
	case c >= '0' && c <= '9':
		return c - '0', true
	case c >= 'a' && c <= 'f':
		return c - 'a' + 10, true
	case c >= 'A' && c <= 'F':
		return c - 'A' + 10, true
	}
	return 0, false
}

// clip keeps a quoted piece of a record short.
func clip(s string) string {
	if len(s) > 90 {
		return s[:90] + "…"
	}
	return s
}
