package wallets

import (
	"math"
	"slices"
	"strconv"
	"strings"
	"unicode/utf8"

	"github.com/valyala/fasthttp"

	"clobd/api/wire"
	"clobd/engine"
	"clobd/engine/view"
)

// query reads the parameters of a route about wallets. Of several mistakes it refuses the first of:
// an unknown name, a missing parameter, a wrong value, a parameter without the one that it needs.
type query struct{ wire.Query }

// askFor begins to read a query that may have only parameters of these names.
func askFor(ctx *fasthttp.RequestCtx, names ...string) *query {
	q := &query{wire.ReadQuery(ctx, wire.Wallets)}
	q.Only(names...)
	return q
}

func (q *query) flag(name string, otherwise bool) bool {
	if yes, given := q.Truth(name); given {
		return yes
	}
	return otherwise
}

// amount reads a least amount of tokens or collateral, in base units: a decimal number that is not
// negative, rounded up to a whole base unit.
func (q *query) amount(name string, otherwise int64) int64 {
	s := q.Text(name)
	if s == "" {
		return otherwise
	}
	v, err := strconv.ParseFloat(s, 64)
	if err != nil || strings.Trim(s, "0123456789.eE+-") != "" || !(v >= 0) ||
		v > engine.MaxSupply/engine.Unit {
		q.Invalid(name, "")
		return otherwise
	}
	const noise = 1e-6 // of a base unit: bounds the error of a decimal number as a float64
	return int64(math.Ceil(v*engine.Unit - noise))
}

// word reads one of several words in any letter case. The first is the default.
func (q *query) word(name string, words ...string) string {
	s := q.Text(name)
	if s == "" {
		return words[0]
	}
	i := slices.IndexFunc(words, func(w string) bool { return strings.EqualFold(s, w) })
	if i < 0 {
		q.Invalid(name, "")
	}
	return words[max(i, 0)]
}

func (q *query) descending() bool {
	word := q.word("sortDirection", "DESC", "descending", "ASC", "ascending")
	return word[0] == 'D' || word[0] == 'd'
}

const maxTitle = 100

// title reads a part of a title and returns it in small letters.
func (q *query) title() string {
	s := q.Text("title")
	if utf8.RuneCountInString(s) > maxTitle {
		q.Invalid("title", "")
	}
	return strings.ToLower(s)
}

// list reads the values of a parameter: separated by commas, or each on its own. The caller bounds
// their number.
func (q *query) list(name string) []string { return q.List(math.MaxInt, name) }

const maxMarkets = 100

// markets reads the conditions that the query names and finds their markets, each once, in order.
// named says that the query names any. Conditions that are not listed here are left out.
func (ws *Wallets) markets(q *query) (listed []*view.Market, named bool) {
	ids := q.list("market")
	if len(ids) > maxMarkets {
		q.Invalid("market", "")
		return nil, true
	}
	for _, id := range ids {
		c, ok := engine.ParseCondition(id)
		if !ok {
			q.Invalid("market", "")
			return nil, true
		}
		if m := ws.o.Board.Directory.Condition(c); m != nil && !slices.Contains(listed, m) {
			listed = append(listed, m)
		}
	}
	return listed, len(ids) > 0
}

// events reads the ids of the events that the query names. It may not name markets as well.
func (q *query) events(named bool) (ids []string) {
	for _, id := range q.list("eventId") {
		number, err := strconv.ParseUint(id, 10, 64)
		if err != nil || named || len(ids) == maxMarkets {
			q.Invalid("eventId", "")
			return nil
		}
		ids = append(ids, strconv.FormatUint(number, 10))
	}
	return ids
}

// inEvents reports whether the catalog has a market in one of some events. No events mean all.
func (ws *Wallets) inEvents(m *view.Market, ids []string) bool {
	if len(ids) == 0 {
		return true
	}
	c := ws.o.Catalog()
	event := c.EventOf(c.Market(m.Condition))
	return event != nil && slices.Contains(ids, event.ID)
}

// containsFold reports whether s holds part, which is in small letters, in any letter case. Titles
// are nearly always ASCII; those are compared in place, because a wallet may have ten thousand.
func containsFold(s, part string) bool {
	if part == "" {
		return true
	}
	for i := range len(s) {
		if s[i] >= utf8.RuneSelf {
			return strings.Contains(strings.ToLower(s), part)
		}
	}
	for at := 0; at+len(part) <= len(s); at++ {
		n := 0
		for n < len(part) && lower(s[at+n]) == part[n] {
			n++
		}
		if n == len(part) {
			return true
		}
	}
	return false
}

func lower(c byte) byte {
	if c >= 'A' && c <= 'Z' {
		c += 'a' - 'A'
	}
	return c
}
