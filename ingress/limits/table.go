package limits

import (
	"net/http"
	"strings"
	"time"
)

const ten = 10 * time.Second

// addressTable is the table for callers who are known by their address only: each window with the
// requests that count in it, by method and first segment of the path. The first window counts all
// requests that no row up to ownWindows names. So orders, cancels and heartbeats do not count with
// the rest, and no other traffic from an address takes a cancel's place. Their windows hold what
// five accounts may send.
var addressTable = [...]struct {
	Window
	counts string
}{
	{Window{5000, ten}, ""},
	{Window{12000, ten}, "POST /order, POST /orders"},
	{Window{12000, ten},
		"DELETE /order, DELETE /orders, DELETE /cancel-all, DELETE /cancel-market-orders"},
	{Window{5000, ten}, "POST /heartbeats, POST /v1"},
	{Window{4000, ten}, "GET /events, GET /markets, GET /series, GET /tags, GET /public-search"},
	{Window{500, ten}, "GET /events"},
	{Window{300, ten}, "GET /markets"},
	{Window{900, ten}, "GET /events, GET /markets"},
	{Window{200, ten}, "GET /tags"},
	{Window{350, ten}, "GET /public-search"},
	{Window{50, ten}, "GET /, GET /ok"},
	{Window{200, ten}, "GET /book"},
	{Window{80, ten}, "POST /books"},
	{Window{200, ten}, "GET /price"},
	{Window{80, ten}, "GET /prices, POST /prices"},
	{Window{200, ten}, "GET /midpoint"},
	{Window{80, ten}, "GET /midpoints, POST /midpoints"},
	{Window{80, ten}, "POST /spreads"},
	{Window{80, ten}, "GET /last-trades-prices, POST /last-trades-prices"},
	{Window{100, ten}, "GET /prices-history"},
	{Window{80, ten}, "POST /batch-prices-history"},
	{Window{150, ten}, "GET /trades, GET /builder"},
	{Window{100, ten}, "GET /auth/derive-api-key, POST /auth/api-key"}, // a signature to check
}

// The requests of the rows 1 to ownWindows of addressTable count in no other window.
const ownWindows = 3

// entrance is a method and the first segment of a path without the prefix of its family. HEAD
// counts as GET.
type entrance struct{ method, segment string }

// addressWindows are the windows of addressTable, and addressScopes those that a request counts in.
var addressWindows, addressScopes = func() (windows []Window, scopes map[entrance][]int) {
	scopes = make(map[entrance][]int)
	for i, row := range addressTable {
		windows = append(windows, row.Window)
		for counted := range strings.SplitSeq(row.counts, ", ") {
			method, segment, _ := strings.Cut(counted, " /")
			at := entrance{method, segment}
			if i > ownWindows && scopes[at] == nil {
				scopes[at] = []int{0}
			}
			scopes[at] = append(scopes[at], i)
		}
	}
	return windows, scopes
}()

// rest are the windows of an entrance that addressTable does not name.
var rest = []int{0}

// accountWindows is the table for authenticated writes. Keys are free, so accounts are counted, not
// keys. Cancels have windows of their own, so that a flood of orders never blocks them.
var accountWindows = [...]Window{
	{2400, ten}, {24000, 10 * time.Minute}, // OrderScope
	{2400, ten}, {24000, 10 * time.Minute}, // CancelScope
	{100, ten}, // BeatScope
	{100, ten}, // TransferScope
	{50, ten},  // KeyScope
}

// giftWindows bounds the gifts of the faucet that one network address may cause.
var giftWindows = [...]Window{{64, 10 * time.Minute}}

// The rows of accountWindows that each kind of write counts in.
var (
	OrderScope    = []int{0, 1}
	CancelScope   = []int{2, 3}
	BeatScope     = []int{4}
	TransferScope = []int{5}
	KeyScope      = []int{6}
)

// Demand is the windows that a request counts in, and how often: a list counts once an entry.
type Demand struct {
	Scope []int
	N     uint32 // at least 1, at most the least limit of the scope
}

// AddressScope lists the address windows that a request counts against.
func AddressScope(method, path string, cursor bool) []int {
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
	segment, below, _ := strings.Cut(path, "/")
	switch {
	case segment == "markets" && (family == "/clob" || family == "" && below == "" && cursor):
		return rest // the order book lists markets under the same paths
	case segment == "auth":
		segment = path
	case segment == "v1" && below == "market-positions":
		segment = "trades" // as much work: both share a window
	case segment == "v1" && below != "heartbeats":
		return rest
	}
	if scope, ok := addressScopes[entrance{method, segment}]; ok {
		return scope
	}
	return rest
}
