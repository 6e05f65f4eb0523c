package api

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

// asked reads the parameters of a route about wallets and keeps the first complaint: about a
// name that the route does not know, then about one that every request needs, then about values,
// and last about one that another one needs beside it. An empty value counts as none.
type asked struct {
	args *fasthttp.Args
	bad  *wire.Refusal
}

// ask begins to read a query that may have parameters of these names.
func askFor(ctx *fasthttp.RequestCtx, names ...string) *asked {
	a := &asked{args: ctx.QueryArgs()}
	for key := range a.args.All() {
		if !slices.Contains(names, string(key)) {
			a.complain("unknown_field", printable(string(key)))
			break
		}
	}
	return a
}

// printable is a name as an error repeats it.
func printable(name string) string {
	const longest = 64
	name = strings.Map(func(r rune) rune {
		if r < ' ' || r == utf8.RuneError || r == 0x7f {
			return '?'
		}
		return r
	}, name[:min(len(name), longest)])
	if name == "" {
		return "?"
	}
	return name
}

// complain keeps an error if it is the first one.
func (a *asked) complain(code, name string) {
	if a.bad == nil {
		a.bad = wire.Wallets.Refuse(fasthttp.StatusBadRequest, code, name, "")
	}
}

func (a *asked) missing(name string) { a.complain("missing_field", name) }

func (a *asked) invalid(name string) { a.complain("invalid_field", name) }

// text is a parameter as it came.
func (a *asked) text(name string) string { return wire.Text(a.args.Peek(name)) }

// count reads a whole number in [0, most].
func (a *asked) count(name string, otherwise, most int) int {
	s := a.text(name)
	if s == "" {
		return otherwise
	}
	n, err := strconv.ParseUint(s, 10, 63)
	if err != nil || n > uint64(most) {
		a.invalid(name)
		return otherwise
	}
	return int(n)
}

// flag reads true or false.
func (a *asked) flag(name string, otherwise bool) bool {
	s := a.text(name)
	if s == "" {
		return otherwise
	}
	yes, ok := truth(s)
	if !ok {
		a.invalid(name)
		return otherwise
	}
	return yes
}

// amount reads a decimal number of tokens, or of collateral, that is not negative. What is finer
// than a base unit is rounded up, for it is a least amount.
func (a *asked) amount(name string, otherwise int64) int64 {
	s := a.text(name)
	if s == "" {
		return otherwise
	}
	v, err := strconv.ParseFloat(s, 64)
	if err != nil || strings.Trim(s, "0123456789.eE+-") != "" || !(v >= 0) ||
		v > engine.MaxSupply/engine.Unit {
		a.invalid(name)
		return otherwise
	}
	const noise = 1e-6 // of a base unit: what a decimal number loses as a binary one
	return int64(math.Ceil(v*engine.Unit - noise))
}

// word reads one of several words of either letter case; the first is meant without one.
func (a *asked) word(name string, words ...string) string {
	s := a.text(name)
	if s == "" {
		return words[0]
	}
	for _, w := range words {
		if strings.EqualFold(s, w) {
			return w
		}
	}
	a.invalid(name)
	return words[0]
}

// descending reads the direction of a sort.
func (a *asked) descending() bool {
	switch a.word("sortDirection", "DESC", "descending", "ASC", "ascending") {
	case "DESC", "descending":
		return true
	}
	return false
}

// maxTitle is how many characters a title that is searched for may have.
const maxTitle = 100

// title reads a part of a title, in small letters.
func (a *asked) title() string {
	s := a.text("title")
	if utf8.RuneCountInString(s) > maxTitle {
		a.invalid("title")
	}
	return strings.ToLower(s)
}

// list reads a parameter that holds several values, with commas between them, or comes several
// times.
func (a *asked) list(name string) (values []string) {
	for _, v := range a.args.PeekMulti(name) {
		for part := range strings.SplitSeq(wire.Text(v), ",") {
			if part = strings.TrimSpace(part); part != "" {
				values = append(values, part)
			}
		}
	}
	return values
}

// maxMarkets is how many conditions one request may name.
const maxMarkets = 100

// markets reads the conditions that are asked for, each once, in order. named says that there were
// any: those that are not listed are left out.
func (h *Handler) markets(a *asked) (listed []*view.Market, named bool) {
	ids := a.list("market")
	if len(ids) > maxMarkets {
		a.invalid("market")
		return nil, true
	}
	for _, id := range ids {
		c, ok := engine.ParseCondition(id)
		if !ok {
			a.invalid("market")
			return nil, true
		}
		if m := h.o.Board.Directory.Condition(c); m != nil && !slices.Contains(listed, m) {
			listed = append(listed, m)
		}
	}
	return listed, len(ids) > 0
}

// containsFold says whether s holds part, which is in small letters, whatever the letter case of s.
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
