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
	micros int // of CPU that a request with a long answer costs, 0 if its other window says so
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
	turnedAway           // requests that a full window has refused
	gifts                // of the faucet
	handshakes           // of TLS, which cost a signature each
	named                // the first row with names
)

// addressTable is the table for callers who are known by their address only. Every route has a
// window of its own, here or in accountTable. The costs are CPU time of a node with 2,500 markets
// that was asked over a socket, on 2 GHz; of lists that were short there, in proportion to bytes.
// Of pages that are shared, the cost is that of the request that makes one: the next take a tenth.
var addressTable = [...]limit{
	general:       {"general", Window{5000, ten}, 0, ""},
	cancels:       {"cancels", Window{12000, ten}, 0, ""}, // of five accounts
	sweeps:        {"sweeps", Window{250, ten}, 0, ""},
	failedClaims:  {"failed-logins", Window{100, ten}, 0, ""},
	failedCancels: {"failed-cancels", Window{100, ten}, 0, ""},
	failedOrders:  {"failed-orders", Window{200, ten}, 0, ""},
	turnedAway:    {"turned-away", Window{300, ten}, 0, ""},
	gifts:         {"gifts", Window{64, 10 * time.Minute}, 0, ""},
	handshakes:    {"handshakes", Window{300, ten}, 2000, ""},

	// The interface's rows.
	{"catalog", Window{4000, ten}, 0, "GET /events, GET /markets, GET /series, GET /tags, " +
		"GET /public-search, GET /sports, GET /teams, GET /comments, GET /market-clarifications"},
	{"events", Window{500, ten}, 870, "GET /events"},
	{"markets", Window{300, ten}, 1230, "GET /markets"},
	{"listing", Window{900, ten}, 0, "GET /events, GET /markets"},
	{"tags", Window{200, ten}, 94, "GET /tags"},
	{"public-search", Window{350, ten}, 64, "GET /public-search"},
	{"health", Window{50, ten}, 16, "GET /, GET /ok, GET /status"},
	{"book", Window{200, ten}, 67, "GET /book"},
	{"books", Window{80, ten}, 1280, "POST /books"},
	{"price", Window{200, ten}, 23, "GET /price"},
	{"prices", Window{80, ten}, 1040, "GET /prices, POST /prices"},
	{"midpoint", Window{200, ten}, 27, "GET /midpoint"},
	{"midpoints", Window{80, ten}, 700, "GET /midpoints, POST /midpoints"},
	{"prices-history", Window{100, ten}, 35, "GET /prices-history"},
	{"batch-prices-history", Window{80, ten}, 113, "POST /batch-prices-history"},
	{"trades", Window{150, ten}, 1650, "GET /trades"},

	// What the interface names no limit for gets what a second of one CPU can do in ten, at most
	// 2,000; lists of tokens and trades get as much as the interface's of their kind.
	{"spreads", Window{80, ten}, 700, "POST /spreads"},
	{"last-trades-prices", Window{80, ten}, 660, "GET /last-trades-prices, POST /last-trades-prices"},
	{"clob-markets-list", Window{240, ten}, 4100, "GET /clob-list"},
	{"sampling-markets", Window{200, ten}, 4900, "GET /sampling-markets"},
	{"simplified-markets", Window{900, ten}, 1100, "GET /simplified-markets"},
	{"sampling-simplified", Window{1200, ten}, 800, "GET /sampling-simplified-markets"},
	{"series", Window{400, ten}, 2200, "GET /series"},
	{"data-trades", Window{600, ten}, 1650, "GET /data/trades"},
	{"data-orders", Window{600, ten}, 1650, "GET /data/orders, POST /data/orders"},
	{"builder-trades", Window{150, ten}, 1650, "GET /builder"},
	{"activity", Window{1000, ten}, 820, "GET /activity"},
	{"derive", Window{100, ten}, 150, "GET /auth/derive-api-key, POST /auth/api-key"},
	{"live-activity", Window{2000, ten}, 175, "GET /live-activity"},
	{"positions", Window{600, ten}, 1600, "GET /positions"},
	{"holders", Window{600, ten}, 1600, "GET /holders"},
	{"traded", Window{2000, ten}, 94, "GET /traded"},
	{"market-positions", Window{150, ten}, 83, "GET /v1/market-positions"},
	{"value", Window{2000, ten}, 76, "GET /value"},
	{"clob-market", Window{2000, ten}, 67, "GET /clob-market, GET /clob-markets"},
	{"oi", Window{2000, ten}, 67, "GET /oi"},
	{"closed-positions", Window{2000, ten}, 230, "GET /closed-positions"},
	{"openapi", Window{2000, ten}, 64, "GET /openapi.json, GET /asyncapi.json"},
	{"console", Window{2000, ten}, 64, "GET /console"},
	{"public-profile", Window{2000, ten}, 54, "GET /public-profile"},
	{"live-volume", Window{2000, ten}, 53, "GET /live-volume"},
	{"markets-by-token", Window{2000, ten}, 51, "GET /markets-by-token"},
	{"rewards-markets", Window{2000, ten}, 51, "GET /rewards/markets"},
	{"leaderboard", Window{2000, ten}, 49, "GET /v1/leaderboard"},
	{"builders", Window{2000, ten}, 49, "GET /v1/builders"},
	{"combos", Window{2000, ten}, 49, "GET /v1/positions, GET /v1/activity"},
	{"teams", Window{2000, ten}, 48, "GET /teams"},
	{"comments", Window{2000, ten}, 49, "GET /comments"},
	{"clarifications", Window{2000, ten}, 42, "GET /market-clarifications"},
	{"sports", Window{2000, ten}, 46, "GET /sports"},
	{"rebates", Window{2000, ten}, 48, "GET /rebates"},
	{"rfq", Window{2000, ten}, 48, "GET /rfq"},
	{"fee-rate", Window{2000, ten}, 48, "GET /fee-rate"},
	{"builder-fees", Window{2000, ten}, 47, "GET /fees"},
	{"last-trade-price", Window{2000, ten}, 43, "GET /last-trade-price"},
	{"neg-risk", Window{2000, ten}, 34, "GET /neg-risk"},
	{"tick-size", Window{2000, ten}, 28, "GET /tick-size"},
	{"spread", Window{2000, ten}, 19, "GET /spread"},
	{"time", Window{2000, ten}, 19, "GET /time"},
	{"version", Window{2000, ten}, 16, "GET /version"},

	// A socket may be opened as often as a TLS handshake may be begun.
	{"sockets", Window{300, ten}, 0, "GET /ws"},

	// Reads of an account: an HMAC, and then as much as the cheap ones above.
	{"data-order", Window{2000, ten}, 60, "GET /data/order"},
	{"data-volumes", Window{2000, ten}, 60, "POST /data/volumes"},
	{"pre-migration-orders", Window{2000, ten}, 60, "GET /data/pre-migration-orders"},
	{"balance-allowance", Window{2000, ten}, 60, "GET /balance-allowance"},
	{"order-scoring", Window{2000, ten}, 60, "GET /order-scoring"},
	{"orders-scoring", Window{2000, ten}, 60, "POST /orders-scoring"},
	{"notifications", Window{600, ten}, 1650, "GET /notifications, DELETE /notifications"},
	{"rewards-user", Window{2000, ten}, 60, "GET /rewards/user"},
	{"api-keys", Window{2000, ten}, 60, "GET /auth/api-keys"},
	{"ban-status", Window{2000, ten}, 60, "GET /auth/ban-status"},
	{"readonly-keys", Window{2000, ten}, 60, "GET /auth/readonly-api-keys"},
	{"validate-key", Window{2000, ten}, 60, "GET /auth/validate-readonly-api-key"},
	{"builder-keys", Window{2000, ten}, 60, "GET /auth/builder-api-key"},
}

// pairTable is the table for an address and a key together: a stranger who knows the public parts
// of a key uses up nothing of the key's owner, unless both come from one address.
var pairTable = [...]limit{{"failed-keys", Window{20, ten}, 0, ""}}

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
	{"order-burst", Window{2400, ten}, 0, ""},
	{"order-sustained", Window{24000, 10 * time.Minute}, 0, ""},
	{"cancel-burst", Window{2400, ten}, 0, ""},
	{"cancel-sustained", Window{24000, 10 * time.Minute}, 0, ""},
	{"cancel-all", Window{50, ten}, 0, ""},
	{"heartbeats", Window{100, ten}, 0, ""},
	{"transfers", Window{100, ten}, 0, ""},
	{"keys", Window{50, ten}, 0, ""},
	{"bad-signatures", Window{50, ten}, 0, ""}, // orders whose signature is wrong
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
		if below != "" {
			first = "clob-market"
		}
	}
	var text [64]byte
	key := append(append(append(text[:0], method...), " /"...), first...)
	second, _, _ := strings.Cut(below, "/")
	if scope, ok := entrances[string(append(append(key, '/'), second...))]; ok && second != "" {
		return scope
	}
	if scope, ok := entrances[string(key)]; ok {
		return scope
	}
	return General
}
