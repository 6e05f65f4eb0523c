package wire

import "github.com/valyala/fasthttp"

// Dialect is the family of a client's authentication headers: the prefix of their names. Answers to
// a caller differ by it:
//
//	            order result     orders, trades         lists of orders    API keys
//	SVC         six keys         camelCase, enveloped   end with ""        as KUEST
//	POLY        all keys         both, words capital    end with "LTE="    a shape of its own
//	KUEST       all keys         both                   end with "LTE="    with metadata
//
// Cursors of SVC are offsets, those of the others are Exact.
type Dialect string

// The dialects.
const (
	SVC   Dialect = "SVC_"
	POLY  Dialect = "POLY_"
	KUEST Dialect = "KUEST_"
)

// Exact reports whether the cursors of a dialect also tell the ordinal.
func (d Dialect) Exact() bool { return d == POLY || d == KUEST }

// DialectOf is the dialect of a request that needs no key: SVC if none of its headers has a prefix.
// Some proxies write '-' for '_'.
func DialectOf(h *fasthttp.RequestHeader) Dialect {
	found := SVC
	for name := range h.All() {
		switch {
		case hasPrefix(name, SVC):
			return SVC
		case hasPrefix(name, POLY):
			found = POLY
		case hasPrefix(name, KUEST) && found == SVC:
			found = KUEST
		}
	}
	return found
}

func hasPrefix(name []byte, d Dialect) bool {
	if len(name) < len(d) {
		return false
	}
	for i := range len(d) - 1 {
		if name[i]&^0x20 != d[i] {
			return false
		}
	}
	last := name[len(d)-1]
	return last == '_' || last == '-'
}
