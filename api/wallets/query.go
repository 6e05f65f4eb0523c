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

// query reads the parameters of a route about wallets. The first complaint is about a name that the
// route does not know, then about a parameter that every request needs, then about values, and last
// about a parameter that another one needs beside it.
type query struct{ wire.Query }

// askFor begins to read a query that may have parameters of these names.
func askFor(ctx *fasthttp.RequestCtx, names ...string) *query {
	q := &query{wire.ReadQuery(ctx, wire.Wallets)}
	q.Only(names...)
	return q
}

// flag reads true or false.
func (a *query) flag(name string, otherwise bool) bool {
	if yes, given := a.Truth(name); given {
		return yes
	}
	return otherwise
}

// amount reads a decimal number of tokens, or of collateral, that is not negative. What is finer
// than a base unit is rounded up, for it is a least amount.
func (a *query) amount(name string, otherwise int64) int64 {
	s := a.Text(name)
	if s == "" {
		return otherwise
	}
	v, err := strconv.ParseFloat(s, 64)
	if err != nil || strings.Trim(s, "0123456789.eE+-") != "" || !(v >= 0) ||
		v > engine.MaxSupply/engine.Unit {
		a.Invalid(name, "")
		return otherwise
	}
	const noise = 1e-6 // of a base unit: what a decimal number loses as a binary one
	return int64(math.Ceil(v*engine.Unit - noise))
}

// word reads one of several words of either letter case; the first is meant without one.
func (a *query) word(name string, words ...string) string {
	s := a.Text(name)
	if s == "" {
		return words[0]
	}
	for _, w := range words {
		if strings.EqualFold(s, w) {
			return w
		}
	}
	a.Invalid(name, "")
	return words[0]
}

// descending reads the direction of a sort.
func (a *query) descending() bool {
	switch a.word("sortDirection", "DESC", "descending", "ASC", "ascending") {
	case "DESC", "descending":
		return true
	}
	return false
}

// maxTitle is how many characters a title that is searched for may have.
const maxTitle = 100

// title reads a part of a title, in small letters.
func (a *query) title() string {
	s := a.Text("title")
	if utf8.RuneCountInString(s) > maxTitle {
		a.Invalid("title", "")
	}
	return strings.ToLower(s)
}

// list reads a parameter that holds several values, with commas between them, or comes several
// times. The caller bounds their number.
func (a *query) list(name string) []string { return a.List(math.MaxInt, name) }

// maxMarkets is how many conditions one request may name.
const maxMarkets = 100

// markets reads the conditions that are asked for, each once, in order. named says that there were
// any: those that are not listed are left out.
func (h *Wallets) markets(a *query) (listed []*view.Market, named bool) {
	ids := a.list("market")
	if len(ids) > maxMarkets {
		a.Invalid("market", "")
		return nil, true
	}
	for _, id := range ids {
		c, ok := engine.ParseCondition(id)
		if !ok {
			a.Invalid("market", "")
			return nil, true
		}
		if m := h.o.Board.Directory.Condition(c); m != nil && !slices.Contains(listed, m) {
			listed = append(listed, m)
		}
	}
	return listed, len(ids) > 0
}

// containsFold reports whether s holds part, which is in small letters, whatever the letter case
// of s.
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

// lower is the small letter of c.
func lower(c byte) byte {
	if c >= 'A' && c <= 'Z' {
		c += 'a' - 'A'
	}
	return c
}
