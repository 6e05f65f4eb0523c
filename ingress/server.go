package ingress

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"net/netip"
	"runtime"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/fasthttp/router"
	"github.com/prometheus/client_golang/prometheus"
	"github.com/valyala/fasthttp"

	"clobd/engine"
	"clobd/engine/sequencer"
	"clobd/engine/view"
	"clobd/ingress/auth"
)

// Limits of the listener. A body that announces more is refused before a byte of it is stored: with
// a limit of 4 MB, 500 sockets that send one byte each were measured to hold half a gigabyte. A
// header has room for a hundred token ids of 78 digits, which clients ask for with one GET.
const (
	bodyBytes    = 64 << 10
	listBytes    = 256 << 10 // of POST /orders and DELETE /orders
	headerBytes  = 16 << 10
	readTimeout  = 5 * time.Second
	writeTimeout = 8 * time.Second // below the time that a stop waits
	idleTimeout  = 60 * time.Second
	// refusalTimeout is short: the listener waits while somebody is turned away.
	refusalTimeout = 100 * time.Millisecond
	farewell       = 250 * time.Millisecond // how long clients are told to go before Close hangs up
)

// Options are what the door needs. Those of the first group may be left out of New while the
// journal is being recovered; Attach sets them before Ready(true).
type Options struct {
	Sequencer *sequencer.Sequencer
	Board     *view.Board
	// Public serves every route that reads and needs no key.
	Public func(ctx *fasthttp.RequestCtx)
	// Account serves what reads and needs a key, for the authenticated owner. dialect is the prefix of
	// its headers.
	Account func(ctx *fasthttp.RequestCtx, owner engine.Address, dialect string)
	// Past finds an older order: its result brought up to date, and the Sequence up to which the
	// index had been searched. seen is read before the lookup.
	Past func(id engine.OrderID) (r engine.Receipt, known bool, seen engine.Sequence, err error)
	// Await waits at most d until the index holds seq, and says whether it does.
	Await     func(seq engine.Sequence, d time.Duration) bool
	JournalID uint64

	Keyring  *auth.Keyring
	Verifier *auth.Verifier
	// Chains are the chain ids under which a key may be derived.
	Chains []uint64
	// Faucet is the paper collateral that a wallet without an account gets when it derives a key:
	// 0 is none. Nobody gets it once FaucetWallets wallets have numbers, whoever paid into them;
	// default 10,000.
	Faucet        engine.Cash
	FaucetWallets int
	// LinkOnFirstUse links a funded, unlinked wallet to the first owner who signs for it, and a
	// funded address that derives a key or trades for itself to itself: then it has no other owner.
	LinkOnFirstUse bool
	// Limits turns the table of request windows on.
	Limits bool
	// AdminToken opens the admin routes; with "" they are all refused.
	AdminToken string
	// Quarantined, if set, says that a Command once made the engine panic and must not enter.
	Quarantined func(*engine.Command) bool
	// TrustedProxies may name their client in X-Forwarded-For.
	TrustedProxies []netip.Prefix
	// Workers is how many orders are worked on at once, one less while somebody reads; default: one
	// per CPU.
	Workers int
	// Concurrency caps the connections served at once; default 8,192. It is lowered to the limit of
	// open files less 512, but not below 64.
	Concurrency int
	// ConnsPerAddress caps the connections of one address (of IPv6: of one /64); default: an eighth
	// of Concurrency. Those of TrustedProxies are not counted.
	ConnsPerAddress int
	// Version is the X-Node-Version of every answer.
	Version string
	// Now is the wall clock; default time.Now.
	Now func() time.Time
	Log *slog.Logger
}

// withDefaults fills the fields that were left out.
func (o Options) withDefaults() Options {
	if o.FaucetWallets == 0 {
		o.FaucetWallets = 10_000
	}
	if o.Workers == 0 {
		o.Workers = runtime.NumCPU()
	}
	if o.Concurrency == 0 {
		o.Concurrency = 8192
	}
	if o.Concurrency > 0 {
		o.Concurrency = connections(o.Concurrency)
	}
	if o.ConnsPerAddress == 0 {
		o.ConnsPerAddress = max(o.Concurrency/8, 1)
	}
	if o.Version == "" {
		o.Version = "dev"
	}
	if o.Now == nil {
		o.Now = time.Now
	}
	if o.Log == nil {
		o.Log = slog.New(slog.DiscardHandler)
	}
	return o
}

// validate names everything that is wrong with the options that New needs.
func (o *Options) validate() error {
	var problems []error
	need := func(ok bool, name string) {
		if !ok {
			problems = append(problems, fmt.Errorf("%s is not set", name))
		}
	}
	need(o.Keyring != nil, "Keyring")
	need(o.Verifier != nil, "Verifier")
	need(len(o.Chains) > 0, "Chains")
	if o.Faucet < 0 || o.Faucet > engine.MaxAmount {
		problems = append(problems, fmt.Errorf("option Faucet %s: out of range", o.Faucet))
	}
	if o.FaucetWallets < 0 {
		problems = append(problems, fmt.Errorf("option FaucetWallets %d: negative", o.FaucetWallets))
	}
	if o.Workers < 1 || o.Workers > 1024 {
		problems = append(problems, fmt.Errorf("option Workers %d: not in [1, 1024]", o.Workers))
	}
	if o.Concurrency < 1 {
		problems = append(problems, fmt.Errorf("option Concurrency %d: not positive", o.Concurrency))
	}
	if o.ConnsPerAddress < 0 {
		problems = append(problems,
			fmt.Errorf("option ConnsPerAddress %d: negative", o.ConnsPerAddress))
	}
	return errors.Join(problems...)
}

// validateAttached names everything that is missing before the node can be ready.
func (o *Options) validateAttached() error {
	var problems []error
	need := func(ok bool, name string) {
		if !ok {
			problems = append(problems, fmt.Errorf("%s is not set", name))
		}
	}
	need(o.Sequencer != nil, "Sequencer")
	need(o.Board != nil, "Board")
	need(o.Public != nil, "Public")
	need(o.Account != nil, "Account")
	need(o.Past != nil, "Past")
	need(o.Await != nil, "Await")
	return errors.Join(problems...)
}

// Server is the public door. Everything but Attach may be called by anybody at any time.
type Server struct {
	options   Options // the first group is written before ready, read after
	ready     atomic.Bool
	draining  atomic.Bool
	full      atomic.Bool // only cancels are taken
	http      *fasthttp.Server
	routes    *router.Router
	windows   *windows // nil: no limits
	pool      *pool
	deriving  atomic.Int32 // key derivations in the pool
	faucet    *faucet
	turnstile *turnstile
	timeouts  timeouts
	metrics   *metrics
	attached  bool

	version    []byte                  // of the node, for every answer
	unreadable *routeMetrics           // of what was no request
	elsewhere  fasthttp.RequestHandler // of what the table does not hold

	placements placements
	beats      heartbeats
	adding     [16]sync.Mutex // held by who numbers a key, by owner

	serving   sync.Mutex // guards what follows
	listeners []net.Listener
	closed    bool

	watching sync.WaitGroup // the goroutine that looks for silent keys
	begin    sync.Once
	stop     chan struct{}
	end      sync.Once
}

// New makes a Server that answers 425 until Ready(true). The error names every bad option.
func New(o Options) (*Server, error) {
	o = o.withDefaults()
	if err := o.validate(); err != nil {
		return nil, fmt.Errorf("ingress options: %w", err)
	}
	s := &Server{options: o, metrics: newMetrics(), version: []byte(o.Version),
		beats: heartbeats{chains: make(map[beatKey]*chain)},
		timeouts: timeouts{request: readTimeout, idle: idleTimeout, answer: writeTimeout,
			refusal: refusalTimeout},
		stop: make(chan struct{})}
	s.unreadable = s.metrics.route("unreadable")
	if o.Sequencer != nil {
		if err := s.Attach(o); err != nil {
			return nil, err
		}
	}
	if o.Limits {
		s.windows = newWindows(o.Now)
	}
	s.faucet = newFaucet(&s.options)
	s.turnstile = newTurnstile(o.Concurrency, o.ConnsPerAddress)
	s.pool = newPool(o.Workers)
	s.metrics.watch(s.pool)
	s.routes = s.table()
	s.http = s.newHTTP()
	return s, nil
}

// spareWorkers are those that have closed a connection and are not free for another one yet.
const spareWorkers = 64

// newHTTP makes the HTTP server. It could serve more than the turnstile lets in, so that its own
// refusal, which is no JSON, is never seen. It has no timeouts: the connections have their own.
func (s *Server) newHTTP() *fasthttp.Server {
	return &fasthttp.Server{
		Handler:                      s.handle,
		HeaderReceived:               roomFor,
		ConnState:                    turned,
		ErrorHandler:                 s.refuse,
		Concurrency:                  s.options.Concurrency + spareWorkers,
		ReadBufferSize:               headerBytes,
		MaxRequestBodySize:           bodyBytes,
		NoDefaultServerHeader:        true,
		NoDefaultContentType:         true,
		DisablePreParseMultipartForm: true,
		CloseOnShutdown:              true,
		Logger:                       discard{},
	}
}

// turned tells a connection that a request has begun, and that one is answered.
func turned(nc net.Conn, state fasthttp.ConnState) {
	if c, ok := nc.(*countedConn); ok {
		switch state {
		case fasthttp.StateActive:
			c.deadlines.begins()
		case fasthttp.StateIdle:
			c.deadlines.idle = true
		}
	}
}

// roomFor lets the bodies of lists be longer.
func roomFor(h *fasthttp.RequestHeader) fasthttp.RequestConfig {
	path, _, _ := bytes.Cut(h.RequestURI(), []byte{'?'})
	if string(path) == "/orders" || string(path) == "/clob/orders" {
		return fasthttp.RequestConfig{MaxRequestBodySize: listBytes}
	}
	return fasthttp.RequestConfig{}
}

// Attach sets what exists only after recovery: the first group of Options, the rest of o is left
// alone. It must be called before Ready(true), unless New was given them.
func (s *Server) Attach(o Options) error {
	if err := o.validateAttached(); err != nil {
		return fmt.Errorf("ingress options: %w", err)
	}
	if s.ready.Load() {
		panic("BUG: Attach to a server that is ready")
	}
	s.options.Sequencer, s.options.Board = o.Sequencer, o.Board
	s.options.Public, s.options.Account = o.Public, o.Account
	s.options.Past, s.options.Await = o.Past, o.Await
	s.options.JournalID = o.JournalID
	if o.Quarantined != nil {
		s.options.Quarantined = o.Quarantined
	}
	s.attached = true
	return nil
}

// Serve answers connections of ln until Close. It returns nil after Close, at once if that came
// before. It may be called for several listeners.
func (s *Server) Serve(ln net.Listener) error {
	if !s.listen(ln) {
		return ln.Close()
	}
	if err := s.http.Serve(counted{newPatient(ln, s.options.Log), s}); err != nil {
		return fmt.Errorf("serve %s: %w", ln.Addr(), err)
	}
	return nil
}

// listen notes a listener, and says false if the Server is closed: the HTTP server would not know,
// and serve for ever.
func (s *Server) listen(ln net.Listener) bool {
	s.serving.Lock()
	defer s.serving.Unlock()
	if s.closed {
		return false
	}
	s.listeners = append(s.listeners, ln)
	return true
}

// hangUp closes the listeners that the HTTP server has not closed, because it had not yet begun to
// serve them.
func (s *Server) hangUp() {
	s.serving.Lock()
	defer s.serving.Unlock()
	s.closed = true
	for _, ln := range s.listeners {
		_ = ln.Close() // most are closed already
	}
}

// Ready opens the door, or shuts it again: while shut, every route but /, /ok, /time and /version
// answers 425. From the first time on the keys that send heartbeats are watched, until Close.
func (s *Server) Ready(ok bool) {
	if ok && !s.attached {
		panic("BUG: ready without a Sequencer")
	}
	if ok {
		s.begin.Do(func() {
			s.beats.resume(s.options.Board.Directory.Armed, s.options.Now())
			s.watching.Go(s.watch)
		})
	}
	s.ready.Store(ok)
}

// Close stops listening, lets the requests in work finish, at most until ctx is done, and joins
// the workers. For a moment before that every answer tells its client to close the connection: a
// request that meets a connection closed under it would leave its sender in doubt. Close the
// Sequencer after it.
func (s *Server) Close(ctx context.Context) error {
	s.draining.Store(true)
	if s.http.GetOpenConnectionsCount() > 0 {
		select {
		case <-ctx.Done():
		case <-time.After(farewell):
		}
	}
	err := s.http.ShutdownWithContext(ctx)
	s.hangUp()
	s.pool.close()
	s.end.Do(func() { close(s.stop) })
	s.watching.Wait()
	if err != nil {
		return fmt.Errorf("drain connections: %w", err)
	}
	return nil
}

// Collectors are the Server's metrics, for the one registry of the process.
func (s *Server) Collectors() []prometheus.Collector { return s.metrics.collectors() }

// handle is the first and last function of every request.
func (s *Server) handle(ctx *fasthttp.RequestCtx) {
	if c, ok := ctx.Conn().(*countedConn); ok {
		c.orders.next(ctx.IsPost() && string(ctx.Path()) == orderPath)
	}
	if length := ctx.Request.Header.ContentLength(); length != noBody && framedTwice(ctx) {
		fail(ctx, 400, "bad_request", "malformed HTTP request")
		ctx.SetConnectionClose()
		s.unreadable.observe(ctx)
	} else if ctx.IsGet() && !owned(ctx.Path()) {
		s.elsewhere(ctx) // most requests read books: they need not walk two route tables
	} else {
		s.routes.Handler(ctx)
	}
	s.stamp(ctx)
}

// noBody is the length of a request with neither Content-Length nor chunks.
const noBody = -2

// framedTwice says whether a request tells its length in both ways. The HTTP server follows one of
// the two; a proxy that follows the other one would see another request behind this one.
func framedTwice(ctx *fasthttp.RequestCtx) bool {
	length, encoding := false, false
	for line := range bytes.Lines(ctx.Request.Header.RawHeaders()) {
		name, _, _ := bytes.Cut(line, []byte{':'})
		length = length || foldEqual(name, "CONTENT_LENGTH")
		encoding = encoding || foldEqual(name, "TRANSFER_ENCODING")
	}
	return length && encoding
}

// owned says whether a path may be in this package's table.
func owned(path []byte) bool {
	first, _, _ := bytes.Cut(path[1:], []byte{'/'})
	switch string(first) {
	case "", "ok", "time", "version", "order", "orders", "cancel-all", "cancel-market-orders", "v1",
		"heartbeats", "split", "merge", "redeem", "auth", "data", "clob", "builder":
		return true
	}
	return private(path)
}

// accountPaths are the reads that need a key, with the methods that they answer. HEAD is GET.
var accountPaths = [...]struct{ path, methods string }{
	{"/data/orders", "GET POST"}, {"/data/order/{rest:*}", "GET"}, {"/data/trades", "GET"},
	{"/data/volumes", "POST"}, {"/data/pre-migration-orders", "GET"},
	{"/balance-allowance", "GET"}, {"/balance-allowance/update", "GET"},
	{"/order-scoring", "GET"}, {"/orders-scoring", "POST"}, {"/notifications", "GET DELETE"},
	{"/rewards/user", "GET"}, {"/rewards/user/total", "GET"},
	{"/rewards/user/percentages", "GET"}, {"/rewards/user/markets", "GET"},
}

// private says whether a path is one of them.
func private(path []byte) bool {
	for i := range accountPaths {
		if string(path) == accountPaths[i].path {
			return true
		}
	}
	return false
}

var versionHeader = []byte("X-Node-Version")

// stamp adds what every answer carries.
func (s *Server) stamp(ctx *fasthttp.RequestCtx) {
	ctx.Response.Header.SetCanonical(versionHeader, s.version)
	if s.draining.Load() {
		ctx.SetConnectionClose()
	}
}

// The refusals of what no route has seen.
var (
	refuseLarge = refuse(413, "too_large", "request body too large",
		"a body may have "+strconv.Itoa(bodyBytes)+" bytes, one of /orders "+strconv.Itoa(listBytes))
	refuseHeader = refuse(431, "too_large", "request header too large",
		"request line and headers may have "+strconv.Itoa(headerBytes)+" bytes together")
	refuseSlow = refuse(408, "timeout", "request timed out",
		"send a request as a whole within "+readTimeout.String())
	refuseRoute  = refuse(404, "not_found", "not found", "GET /openapi.json names all routes")
	refuseMethod = refuse(405, "method_not_allowed", "method not allowed",
		"the header Allow names the methods of this path")
	refuseEarly = refuse(425, "not_ready", "service not ready",
		"the node is starting, nothing was entered: send again")
)

// refuse answers what fasthttp could not read as a request. The connection is closed after it,
// because nobody knows where the next request would begin.
func (s *Server) refuse(ctx *fasthttp.RequestCtx, err error) {
	var small *fasthttp.ErrSmallBuffer
	switch {
	case errors.Is(err, fasthttp.ErrBodyTooLarge):
		refuseLarge.send(ctx)
	case errors.As(err, &small):
		refuseHeader.send(ctx)
	case timedOut(err):
		refuseSlow.send(ctx)
	default:
		fail(ctx, 400, "bad_request", "malformed HTTP request")
	}
	s.stamp(ctx)
	s.unreadable.observe(ctx)
}

// table is the route table. Paths under /clob are the same routes.
func (s *Server) table() *router.Router {
	r := router.New()
	r.RedirectTrailingSlash, r.RedirectFixedPath = false, false
	s.elsewhere = s.rest()
	r.NotFound = s.elsewhere
	r.MethodNotAllowed = s.route("unknown", notAllowed)
	r.GlobalOPTIONS = s.route("options", func(ctx *fasthttp.RequestCtx) { ctx.SetStatusCode(204) })
	read := func(path string, h fasthttp.RequestHandler) {
		r.GET(path, h)
		r.HEAD(path, h)
	}
	for _, prefix := range []string{"", "/clob"} {
		read(prefix+"/", anyOrigin(s.route("health", health)))
		read(prefix+"/ok", anyOrigin(s.route("health", okay)))
		read(prefix+"/time", anyOrigin(s.route("time", s.time)))
		read(prefix+"/version", anyOrigin(s.route("version", version)))
		for _, path := range []string{"/", "/ok", "/time", "/version"} {
			r.OPTIONS(prefix+path, s.route("options", allowReads))
		}
		s.writes(r, prefix)
		s.keyRoutes(r, prefix)
		r.OPTIONS(prefix+"/builder/trades", s.route("options", allowReads))
		read(prefix+"/builder/trades", sharedRefusals(s.gate("public", s.builderTrades)))
		account := s.gate("account", s.account)
		for _, route := range accountPaths {
			for _, method := range strings.Fields(route.methods) {
				r.Handle(method, prefix+route.path, account)
				if method == "GET" {
					r.HEAD(prefix+route.path, account)
				}
			}
		}
	}
	return r
}

// writes are the routes that trade.
func (s *Server) writes(r *router.Router, prefix string) {
	r.POST(prefix+"/order", s.gate("post_order", s.postOrder))
	r.POST(prefix+"/orders", s.gate("post_orders", s.postOrders))
	r.DELETE(prefix+"/order", s.gate("delete_order", s.deleteOrder))
	r.DELETE(prefix+"/orders", s.gate("delete_orders", s.deleteOrders))
	r.DELETE(prefix+"/cancel-all", s.gate("cancel_all", s.deleteAll))
	r.DELETE(prefix+"/cancel-market-orders", s.gate("cancel_market", s.deleteMarket))
	r.POST(prefix+"/v1/heartbeats", s.gate("heartbeat", s.heartbeat(false)))
	r.POST(prefix+"/heartbeats", s.gate("heartbeat", s.heartbeat(true)))
	r.POST(prefix+"/split", s.gate("split", s.exchangeTokens(engine.SplitTokens)))
	r.POST(prefix+"/merge", s.gate("merge", s.exchangeTokens(engine.MergeTokens)))
	r.POST(prefix+"/redeem", s.gate("redeem", s.exchangeTokens(engine.RedeemTokens)))
}

// keyRoutes are the routes about API keys.
func (s *Server) keyRoutes(r *router.Router, prefix string) {
	prefix += "/auth"
	for _, route := range []struct {
		method, path string
		handler      fasthttp.RequestHandler
	}{
		{"POST", "/api-key", s.deriveKey},
		{"GET", "/derive-api-key", s.deriveKey},
		{"GET", "/api-keys", s.listKeys},
		{"DELETE", "/api-key", s.deleteKey},
		{"GET", "/ban-status/closed-only", s.closedOnly},
		{"POST", "/readonly-api-key", s.addReadOnly},
		{"GET", "/readonly-api-keys", s.listReadOnly},
		{"DELETE", "/readonly-api-key", s.deleteReadOnly},
		{"GET", "/validate-readonly-api-key", s.validateReadOnly},
		{"POST", "/builder-api-key", s.addBuilder},
		{"GET", "/builder-api-key", s.listBuilder},
		{"DELETE", "/builder-api-key", s.deleteBuilder},
	} {
		name := "keys"
		if strings.HasSuffix(route.path, "derive-api-key") || route.method+route.path == "POST/api-key" {
			name = "derive"
		}
		h := s.gate(name, route.handler)
		r.Handle(route.method, prefix+route.path, h)
		if route.method == "GET" {
			r.HEAD(prefix+route.path, h)
		}
	}
}

// rest is every path that is not in the table: those that read belong to Public.
func (s *Server) rest() fasthttp.RequestHandler {
	root, public := anyOrigin(s.route("health", health)), sharedRefusals(s.gate("public", s.public))
	preflight := s.route("options", allowReads)
	unknown := s.route("unknown", func(ctx *fasthttp.RequestCtx) {
		refuseRoute.send(ctx)
	})
	return func(ctx *fasthttp.RequestCtx) {
		reads := ctx.IsGet() || ctx.IsHead()
		switch {
		case reads && string(ctx.Path()) == "/clob":
			root(ctx)
		case ctx.IsOptions():
			preflight(ctx)
		case reads || ctx.IsPost() || !owned(ctx.Path()):
			public(ctx) // which says so if it does not know the method
		default:
			unknown(ctx)
		}
	}
}

// route counts a request under a name and admits its address.
func (s *Server) route(name string, h fasthttp.RequestHandler) fasthttp.RequestHandler {
	counters := s.metrics.route(name)
	return func(ctx *fasthttp.RequestCtx) {
		if s.admit(ctx) {
			h(ctx)
		}
		counters.observe(ctx)
	}
}

// gate is route for what needs a ready node.
func (s *Server) gate(name string, h fasthttp.RequestHandler) fasthttp.RequestHandler {
	counters := s.metrics.route(name)
	return func(ctx *fasthttp.RequestCtx) {
		if !s.ready.Load() {
			ctx.Response.Header.Set("Retry-After", "1")
			refuseEarly.send(ctx)
			ctx.Response.Header.SetStatusMessage([]byte("Too Early"))
		} else if s.admit(ctx) {
			h(ctx)
		}
		counters.observe(ctx)
	}
}

// allowReads answers a browser that asks whether a page may read market data: any page may.
func allowReads(ctx *fasthttp.RequestCtx) {
	h := &ctx.Response.Header
	h.Set("Access-Control-Allow-Origin", "*")
	h.Set("Access-Control-Allow-Methods", "GET, HEAD, POST")
	h.Set("Access-Control-Allow-Headers", "Content-Type")
	ctx.SetStatusCode(fasthttp.StatusNoContent)
}

// anyOrigin lets web pages read an answer that is nobody's secret.
func anyOrigin(h fasthttp.RequestHandler) fasthttp.RequestHandler {
	return func(ctx *fasthttp.RequestCtx) {
		ctx.Response.Header.Set("Access-Control-Allow-Origin", "*")
		h(ctx)
	}
}

// sharedRefusals lets web pages read why market data is refused, and when to ask again: without
// that they see no answer at all.
func sharedRefusals(h fasthttp.RequestHandler) fasthttp.RequestHandler {
	return func(ctx *fasthttp.RequestCtx) {
		h(ctx)
		if ctx.Response.StatusCode() >= fasthttp.StatusBadRequest {
			header := &ctx.Response.Header
			header.Set("Access-Control-Allow-Origin", "*")
			header.Set("Access-Control-Expose-Headers", "Retry-After")
		}
	}
}

// health is GET /: what the public clients and load balancers ask.
func health(ctx *fasthttp.RequestCtx) {
	ctx.SetContentType("text/plain; charset=utf-8")
	ctx.SetBodyString("OK")
}

// okay is GET /ok.
func okay(ctx *fasthttp.RequestCtx) { answer(ctx, 200, []byte(`"OK"`)) }

// version is GET /version: the version of the order struct that clients should sign.
func version(ctx *fasthttp.RequestCtx) { answer(ctx, 200, []byte(`{"version":2}`)) }

// time is GET /time: the bare unix seconds that clients stamp their headers with.
func (s *Server) time(ctx *fasthttp.RequestCtx) {
	answer(ctx, 200, engine.AppendDecimal(nil, s.options.Now().Unix(), 0))
}

// notAllowed answers a known path with the wrong method. The router has set Allow.
func notAllowed(ctx *fasthttp.RequestCtx) {
	refuseMethod.send(ctx)
}

// public hands a read to its owner.
func (s *Server) public(ctx *fasthttp.RequestCtx) {
	s.pool.reading(ctx.Time())
	s.options.Public(ctx)
}

// account hands a private read to its owner, once it is known who asks.
func (s *Server) account(ctx *fasthttp.RequestCtx) {
	s.pool.reading(ctx.Time())
	path := strings.TrimPrefix(string(ctx.Path()), "/clob")
	address, dialect, ok := engine.Address{}, "", false
	reads := ctx.IsGet() || ctx.IsHead()
	c := readCredentials(&ctx.Request.Header)
	if reads && strings.HasPrefix(path, "/data/") && c.readOnly != "" && c.key == "" {
		if address, ok = s.reader(c.address, c.readOnly); !ok || c.doubled {
			failRefusal(ctx, auth.ErrKey, time.Time{})
			return
		}
		dialect = c.dialect
	} else {
		caller, ok := s.authenticate(ctx)
		if !ok {
			return
		}
		address, dialect = caller.Address, caller.dialect
	}
	ctx.Request.URI().SetPath(path)
	s.options.Account(ctx, address, dialect)
}

// discard keeps fasthttp from logging what strangers can cause as often as they like.
type discard struct{}

// Printf does nothing.
func (discard) Printf(string, ...any) {}
