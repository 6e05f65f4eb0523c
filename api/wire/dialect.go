package wire

// Dialect is the family of a client's authentication headers: the prefix of their names. Answers to
// a caller differ by it:
//
//	            order result     orders, trades         lists of orders    API keys
//	SVC         six keys         camelCase, enveloped   end with ""        as KUEST
//	POLY        all keys         both, words capital    end with "LTE="    a shape of its own
//	KUEST       all keys         both                   end with "LTE="    with metadata
type Dialect string

// The dialects.
const (
	SVC   Dialect = "SVC_"
	POLY  Dialect = "POLY_"
	KUEST Dialect = "KUEST_"
)
