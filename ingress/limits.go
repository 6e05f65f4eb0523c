package ingress

import (
	"container/list"
	"hash/maphash"
	"net/netip"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/valyala/fasthttp"

	"clobd/api/wire"
	"clobd/engine"
	"clobd/ingress/conn"
)

const ten = 10 * time.Second

// addressTable is the table for callers who are known by their address only: each window with the
// requests that count in it, by method and first segment of the path. The first window counts all
// requests that no row up to ownWindows names. So orders, cancels and heartbeats do not count with
// the rest, and no other traffic from an address takes a cancel's place. Their windows hold what
// five accounts may send.
var addressTable = [...]struct {
	window
	counts string
}{
	{window{5000, ten}, ""},
	{window{12000, ten}, "POST /order, POST /orders"},
	{window{12000, ten},
		"DELETE /order, DELETE /orders, DELETE /cancel-all, DELETE /cancel-market-orders"},
	{window{5000, ten}, "POST /heartbeats, POST /v1"},
	{window{4000, ten}, "GET /events, GET /markets, GET /series, GET /tags, GET /public-search"},
	{window{500, ten}, "GET /events"},
	{window{300, ten}, "GET /markets"},
	{window{900, ten}, "GET /events, GET /markets"},
	{window{200, ten}, "GET /tags"},
	{window{350, ten}, "GET /public-search"},
	{window{50, ten}, "GET /, GET /ok"},
	{window{200, ten}, "GET /book"},
	{window{80, ten}, "POST /books"},
	{window{200, ten}, "GET /price"},
	{window{80, ten}, "GET /prices, POST /prices"},
	{window{200, ten}, "GET /midpoint"},
	{window{80, ten}, "GET /midpoints, POST /midpoints"},
	{window{80, ten}, "POST /spreads"},
	{window{80, ten}, "GET /last-trades-prices, POST /last-trades-prices"},
	{window{100, ten}, "GET /prices-history"},
	{window{80, ten}, "POST /batch-prices-history"},
	{window{150, ten}, "GET /trades, GET /builder"},
	{window{100, ten}, "GET /auth/derive-api-key, POST /auth/api-key"}, // a signature to check
}

// The requests of the rows 1 to ownWindows of addressTable count in no other window.
const ownWindows = 3

// entrance is a method and the first segment of a path without the prefix of its family. HEAD
// counts as GET.
type entrance struct{ method, segment string }

// addressWindows are the windows of addressTable, and addressScopes those that a request counts in.
var addressWindows, addressScopes = func() (windows []window, scopes map[entrance][]int) {
	scopes = make(map[entrance][]int)
	for i, row := range addressTable {
		windows = append(windows, row.window)
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
var accountWindows = [...]window{
	{2400, ten}, {24000, 10 * time.Minute}, // orderScope
	{2400, ten}, {24000, 10 * time.Minute}, // cancelScope
	{100, ten}, // beatScope
	{100, ten}, // transferScope
	{50, ten},  // keyScope
}

// The rows of accountWindows that each kind of write counts in.
var (
	orderScope    = []int{0, 1}
	cancelScope   = []int{2, 3}
	beatScope     = []int{4}
	transferScope = []int{5}
	keyScope      = []int{6}
)

// demand is the windows that a request counts in, and how often: a list counts once an entry.
type demand struct {
	scope []int
	n     uint32 // at least 1, at most the least limit of the scope
}

// addressScope lists the address windows that a request counts against.
func addressScope(method, path string, cursor bool) []int {
	family := ""
	for _, prefix := range [...]string{"/clob", "/gamma", "/data-api"} {
		if below, ok := strings.CutPrefix(path, prefix); ok && (below == "" || below[0] == '/') {
			path, family = below, prefix
			break
		}
	}
	if method == fasthttp.MethodHead {
		method = fasthttp.MethodGet
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

// shards bounds contention. Each shard keeps at most shardCallers callers and forgets the one that
// was silent longest. 16 * 2,048 callers with 23 counters of 32 bytes are 24 MB. A counter whose
// caller sent something in each slot has 520 bytes more.
const (
	shards       = 16
	shardCallers = 2048
)

// windows holds the counters of all callers. Any goroutine may use it.
type windows struct {
	now       func() time.Time
	seed      maphash.Seed
	addresses [shards]shard
	accounts  [shards]shard
}

// shard is a part of the callers, the most recent first.
type shard struct {
	mutex   sync.Mutex
	callers map[[20]byte]*list.Element
	order   list.List
}

// caller is one address or account with its counters.
type caller struct {
	key      [20]byte
	counters []counter
}

func newWindows(now func() time.Time) *windows {
	w := &windows{now: now, seed: maphash.MakeSeed()}
	for i := range shards {
		w.addresses[i].callers = make(map[[20]byte]*list.Element)
		w.accounts[i].callers = make(map[[20]byte]*list.Element)
	}
	return w
}

// address counts a request in all windows of scope, or in none: then it returns how long to wait.
func (w *windows) address(a netip.Addr, scope []int) time.Duration {
	return w.decide(&w.addresses, addressWindows, conn.AddressKey(a), demand{scope, 1})
}

func (w *windows) account(a engine.Address, d demand) time.Duration {
	return w.decide(&w.accounts, accountWindows[:], a, d)
}

func (w *windows) gift(a netip.Addr) bool {
	return w.decide(&w.accounts, []window{faucetWindow}, conn.AddressKey(a), demand{[]int{0}, 1}) == 0
}

func (w *windows) decide(
	set *[shards]shard, table []window, key [20]byte, d demand,
) time.Duration {
	s := &set[maphash.Bytes(w.seed, key[:])%shards]
	t := w.now().UnixNano()
	s.mutex.Lock()
	defer s.mutex.Unlock()
	c := s.caller(key, len(table))
	longest := time.Duration(0) // every window is asked before any of them counts
	for _, i := range d.scope {
		longest = max(longest, c.counters[i].wait(table[i], t, d.n))
	}
	if longest > 0 {
		return longest
	}
	for _, i := range d.scope {
		c.counters[i].count(table[i], t, d.n)
	}
	return 0
}

// caller returns the counters of a key and moves them to the front.
func (s *shard) caller(key [20]byte, n int) *caller {
	if e := s.callers[key]; e != nil {
		s.order.MoveToFront(e)
		return e.Value.(*caller)
	}
	if s.order.Len() >= shardCallers {
		last := s.order.Back()
		delete(s.callers, s.order.Remove(last).(*caller).key)
	}
	c := &caller{key, make([]counter, n)}
	s.callers[key] = s.order.PushFront(c)
	return c
}

var refuseLimited = wire.Refuse(429, "rate_limited", "Too Many Requests", "")

// admit counts a request in the windows of its address and its route. If one of them is full, the
// request counts in none of them: admit answers 429 and returns false.
func (s *door) admit(ctx *fasthttp.RequestCtx) bool {
	if s.windows == nil {
		return true
	}
	path := string(ctx.Path())
	// Only on /markets does a cursor decide: most queries are never taken apart.
	cursor := strings.HasPrefix(path, "/markets") && ctx.QueryArgs().Has("next_cursor")
	scope := addressScope(string(ctx.Method()), path, cursor)
	return noWait(ctx, s.windows.address(s.ClientAddress(ctx), scope))
}

// admitAccount is admit for the windows of an account.
func (s *door) admitAccount(ctx *fasthttp.RequestCtx, caller *identity, d demand) bool {
	if s.windows == nil {
		return true
	}
	wait := s.windows.account(caller.Address, d)
	if wait > 0 {
		h := &ctx.Response.Header
		reset := s.options.Now().Add(wait + time.Second).Unix()
		h.Set("Poly-RateLimit-Remaining", "0")
		h.Set("Poly-RateLimit-Reset", strconv.FormatInt(reset, 10))
		h.Set("Poly-RateLimit-Tier", "standard")
	}
	return noWait(ctx, wait)
}

// noWait reports whether a request need not wait. If it must, noWait answers 429.
func noWait(ctx *fasthttp.RequestCtx, wait time.Duration) bool {
	if wait == 0 {
		return true
	}
	seconds := strconv.FormatInt(int64((wait+time.Second-1)/time.Second), 10)
	ctx.Response.Header.Set("Retry-After", seconds)
	refuseLimited.With(retryAfter(seconds)).Send(ctx)
	return false
}

// ClientAddress returns who sent a request: the peer, or whom a trusted proxy names.
func (s *door) ClientAddress(ctx *fasthttp.RequestCtx) netip.Addr {
	peer, proxies := conn.PeerAddress(ctx.RemoteAddr()), s.options.TrustedProxies
	if !proxies.Trusts(peer) {
		return peer
	}
	return proxies.Client(peer, ctx.Request.Header.PeekAll("X-Forwarded-For"))
}
