package limits

import (
	"net/http"
	"strings"
	"time"
)

const ten = 10 * time.Second

// limit is a window with its name in the limits file and in RateLimit headers. counts are the
// requests that count in it, by method and the first one or two segments of the path.
type limit struct {
	name string
	Window
	counts string
}

// The rows of addressTable that no path leads to.
const (
	general       = iota // all requests but cancels of proven callers
	cancels              // cancels of proven callers: no other traffic of an address takes their place
	sweeps               // those of everything or a market, when cancels is used up
	failedClaims         // failed authentications of callers that never succeeded
	failedCancels        // the same of cancels: they are checked where failedClaims is used up
	failedOrders         // orders with a bad signature
	gifts                // of the faucet
	named                // the first row with names
)

// addressTable is the table for callers who are known by their address only. Every route has a
// window of its own. Where the interface names no limit, the limit is what a second of one CPU can
// do in ten, at most 2,000.
var addressTable = [...]limit{
	general:       {"general", Window{5000, ten}, ""},
	cancels:       {"cancels", Window{12000, ten}, ""}, // of five accounts
	sweeps:        {"sweeps", Window{250, ten}, ""},
	failedClaims:  {"failed-logins", Window{100, ten}, ""},
	failedCancels: {"failed-cancels", Window{100, ten}, ""},
	failedOrders:  {"failed-orders", Window{200, ten}, ""},
	gifts:         {"gifts", Window{64, 10 * time.Minute}, ""},

	// The interface's rows.
	{"catalog", Window{4000, ten}, "GET /events, GET /markets, GET /series, GET /tags, " +
		"GET /public-search, GET /sports, GET /teams, GET /comments, GET /market-clarifications"},
	{"events", Window{500, ten}, "GET /events"},
	{"markets", Window{300, ten}, "GET /markets"},
	{"listing", Window{900, ten}, "GET /events, GET /markets"},
	{"tags", Window{200, ten}, "GET /tags"},
	{"public-search", Window{350, ten}, "GET /public-search"},
	{"health", Window{50, ten}, "GET /, GET /ok, GET /status"},
	{"book", Window{200, ten}, "GET /book"},
	{"books", Window{80, ten}, "POST /books"},
	{"price", Window{200, ten}, "GET /price"},
	{"prices", Window{80, ten}, "GET /prices, POST /prices"},
	{"midpoint", Window{200, ten}, "GET /midpoint"},
	{"midpoints", Window{80, ten}, "GET /midpoints, POST /midpoints"},
	{"prices-history", Window{100, ten}, "GET /prices-history"},
	{"batch-prices-history", Window{80, ten}, "POST /batch-prices-history"},
	{"trades", Window{150, ten}, "GET /trades"},

	// Lists of tokens, as the interface's rows of the same kind.
	{"spreads", Window{80, ten}, "POST /spreads"},
	{"last-trades-prices", Window{80, ten}, "GET /last-trades-prices, POST /last-trades-prices"},
	{"market-positions", Window{150, ten}, "GET /v1/market-positions"},
	{"builder-trades", Window{150, ten}, "GET /builder"},
	{"derive", Window{100, ten}, "GET /auth/derive-api-key, POST /auth/api-key"},
}

// pairTable is the table for an address and a key together: a stranger who knows the public parts
// of a key uses up nothing of the key's owner, unless both come from one address.
var pairTable = [...]limit{{"failed-keys", Window{20, ten}, ""}}

// Scope is the windows that a request counts in.
type Scope struct {
	no   int // among the scopes of its table
	rows []uint8
	// Cancels: the request counts once its caller is proven, so that nothing that others send keeps
	// it out.
	Cancels bool
}

// entrances are the scopes of the requests that addressTable names, by method and path without the
// prefix of its family. HEAD counts as GET.
var entrances, addressScopes = func() (map[string]*Scope, []*Scope) {
	at, all := make(map[string]*Scope), []*Scope{General, cancel}
	for i := named; i < len(addressTable); i++ {
		for name := range strings.SplitSeq(addressTable[i].counts, ", ") {
			if at[name] == nil {
				at[name] = &Scope{no: len(all), rows: []uint8{general}}
				all = append(all, at[name])
			}
			at[name].rows = append(at[name].rows, uint8(i))
		}
	}
	for _, path := range []string{"order", "orders", "cancel-all", "cancel-market-orders"} {
		at["DELETE /"+path] = cancel
	}
	return at, all
}()

// General is the scope of requests that addressTable does not name.
var General = &Scope{no: 0, rows: []uint8{general}}

var cancel = &Scope{no: 1, Cancels: true}

// accountTable is the table for authenticated writes. Keys are free, so accounts are counted, not
// keys. Cancels have windows of their own, so that a flood of orders never blocks them.
var accountTable = [...]limit{
	{"order-burst", Window{2400, ten}, ""}, {"order-sustained", Window{24000, 10 * time.Minute}, ""},
	{"cancel-burst", Window{2400, ten}, ""}, {"cancel-sustained", Window{24000, 10 * time.Minute}, ""},
	{"cancel-all", Window{50, ten}, ""},
	{"heartbeats", Window{100, ten}, ""},
	{"transfers", Window{100, ten}, ""},
	{"keys", Window{50, ten}, ""},
	{"bad-signatures", Window{50, ten}, ""}, // orders whose signature is wrong, checked before others
}

// badSignatures is the row of accountTable with that name.
const badSignatures = 8

// What an account's writes count in.
var (
	OrderScope    = &Scope{no: 0, rows: []uint8{0, 1}}
	CancelScope   = &Scope{no: 1, rows: []uint8{2, 3}, Cancels: true}
	SweepScope    = &Scope{no: 2, rows: []uint8{4}, Cancels: true}
	BeatScope     = &Scope{no: 3, rows: []uint8{5}}
	TransferScope = &Scope{no: 4, rows: []uint8{6}}
	KeyScope      = &Scope{no: 5, rows: []uint8{7}}
)

var accountScopes = []*Scope{
	OrderScope, CancelScope, SweepScope, BeatScope, TransferScope, KeyScope,
}

// AddressScope returns the address windows that a request counts in. cursor: its query has a
// cursor.
func AddressScope(method, path string, cursor bool) *Scope {
	family := ""
	for _, prefix := range [...]string{"/clob", "/gamma", "/data-api"} {
		if below, ok := strings.CutPrefix(path, prefix); ok && (below == "" || below[0] == '/') {
			path, family = below, prefix
			break
		}
	}
	if method == http.MethodHead {
		method = http.MethodGet
	}
	path = strings.TrimPrefix(path, "/")
	first, below, _ := strings.Cut(path, "/")
	if first == "markets" && (family == "/clob" || family == "" && below == "" && cursor) {
		first = "clob-list" // the order book lists markets under the same paths
	}
	var text [64]byte
	key := append(append(append(text[:0], method...), " /"...), first...)
	second, _, _ := strings.Cut(below, "/")
	if scope, ok := entrances[string(append(append(key, '/'), second...))]; ok && second != "" {
		return scope
	}
	if scope, ok := entrances[string(key)]; ok && first != "v1" && first != "auth" {
		return scope
	}
	return General
}
