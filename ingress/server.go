package ingress

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"log"
	"net"
	"net/http"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/fasthttp/router"
	"github.com/prometheus/client_golang/prometheus"
	"github.com/valyala/fasthttp"

	"clobd/api/wire"
	"clobd/engine/view"
	"clobd/ingress/conn"
	"clobd/ingress/head"
	"clobd/ingress/limits"
	"clobd/ingress/operator"
	"clobd/ingress/socket"
)

// Limits of the listener. A larger body is refused before a byte of it is stored: with 4 MB, 500
// sockets that send one byte each held half a gigabyte. A header has room for a hundred token ids.
const (
	headerBytes = 16 << 10
	farewell    = 250 * time.Millisecond // how long clients are told to go before Close hangs up
)

// Server is the public door. Everything but Attach may be called by anybody at any time.
type Server struct {
	door
	orders  orders
	cancels cancels
	beats   heartbeats
	keys    keys
	faucet  faucet
	tokens  tokens
	sockets sockets
	room    *socket.Room       // holds the sockets for orders
	trading map[string]*action // methods of the sockets for orders, by name

	ready    atomic.Bool
	draining atomic.Bool
	attached bool

	http       *fasthttp.Server
	turnstile  *conn.Turnstile
	routes     *router.Router
	elsewhere  fasthttp.RequestHandler // of paths that the table does not hold
	version    []byte                  // of the node, for every answer
	busy       []byte                  // the answer to an order that the queue has no room for
	secureBusy []byte                  // the same over TLS
	unreadable *routeMetrics           // of bytes that were no request
	panicked   *routeMetrics           // of requests whose handler panicked
	stacks     atomic.Int64            // panics whose stacks may be in the log
	bodies     *conn.Budget            // bytes of bodies whose requests are not answered yet
	answers    *conn.Budget            // bytes of large answers that are not read yet

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
	s := &Server{door: door{options: o, pool: newPool(o.Workers), windows: o.Windows,
		rests: limits.NewRests(turnAwayPause)},
		version: []byte(o.Version), stop: make(chan struct{}),
		bodies:  conn.NewBudget(bodyBudget, bodyBudgetOf),
		answers: conn.NewBudget(answerBudget, answerBudgetOf)}
	d := &s.door
	d.metrics = newMetrics(d.pool)
	s.cancels = cancels{d}
	s.beats = heartbeats{cancels: &s.cancels, chains: make(map[beatKey]*chain),
		open: make(map[beatKey]int)}
	s.orders = orders{door: d}
	s.orders.crew.Work, s.orders.crew.Leave = s.orders.judgeSome, func() { s.pool.leave(alone) }
	s.tokens = tokens{d}
	s.faucet = faucet{door: d, callers: limits.New(o.Now)}
	s.keys = keys{door: d, faucet: &s.faucet, beats: &s.beats}
	if o.Enter != nil {
		if err := s.Attach(o); err != nil {
			return nil, err
		}
	}
	s.busy = conn.Answer(refuseBusy, o.Version, noSniffLine)
	s.secureBusy = conn.Answer(refuseBusy, o.Version, noSniffLine+strictLine)
	s.turnstile = conn.NewTurnstile(conn.Options{Most: o.Concurrency,
		MostPerAddress: o.ConnsPerAddress, Sockets: o.Sockets, SocketsPerAddress: o.SocketsPerAddress,
		Proxies: o.TrustedProxies, Version: o.Version, Log: o.Log,
		Headers: noSniffLine + o.Origins.Lines(), Secure: o.TLS != nil,
		Refused: func(status int) {
			d.metrics.requests.WithLabelValues("connect", strconv.Itoa(status)).Inc()
		}})
	s.SetLimits(cmp.Or(o.Policy, limits.Standard()))
	s.unreadable, s.panicked = d.metrics.route("unreadable"), d.metrics.route("panicked")
	s.sockets.Server = s
	s.room, s.trading = socket.NewRoom(), s.actions()
	s.makeRoutes()
	s.http = s.newHTTP()
	return s, nil
}

// spareWorkers are those that have closed a connection and are not free for another one yet.
const spareWorkers = 1024

// newHTTP makes the HTTP server. Its Concurrency exceeds the turnstile's, so that nobody meets its
// own refusal, which is no JSON. The connections have the timeouts. Strangers could fill a log.
func (s *Server) newHTTP() *fasthttp.Server {
	return &fasthttp.Server{
		Handler:                      s.handle,
		HeaderReceived:               head.Received,
		ExpectHandler:                s.expect,
		ConnState:                    turned,
		ErrorHandler:                 s.refuse,
		Concurrency:                  s.options.Concurrency + spareWorkers,
		ReadBufferSize:               headerBytes,
		StreamRequestBody:            true, // readBody reads it
		NoDefaultServerHeader:        true,
		NoDefaultContentType:         true,
		DisablePreParseMultipartForm: true,
		CloseOnShutdown:              true,
		KeepHijackedConns:            true, // sockets close them
		Logger:                       log.New(io.Discard, "", 0),
	}
}

// turned tells a connection that a request has begun, and that it is answered.
func turned(nc net.Conn, state fasthttp.ConnState) {
	if c, ok := nc.(*orderConn); ok {
		switch state {
		case fasthttp.StateActive:
			c.lines.Begun()
			c.Begins()
		case fasthttp.StateIdle:
			c.answer.Release()
			c.free()
			c.lines.Answered()
			c.Idle()
		}
	}
}

// Attach sets the first group of Options, which exists only after recovery. It must be called
// before Ready(true), unless New was given that group.
func (s *Server) Attach(o Options) error {
	if err := o.validateAttached(); err != nil {
		return fmt.Errorf("ingress options: %w", err)
	}
	if s.ready.Load() {
		panic("BUG: Attach to a server that is ready")
	}
	s.options.Enter, s.options.EnterAll, s.options.Board = o.Enter, o.EnterAll, o.Board
	s.options.Public, s.options.Account, s.options.Market = o.Public, o.Account, o.Market
	s.options.User, s.options.Past, s.options.Request = o.User, o.Past, o.Request
	s.options.Moved, s.options.Await, s.options.JournalID = o.Moved, o.Await, o.JournalID
	s.options.Watches, s.options.Heard, s.options.Current = o.Watches, o.Heard, o.Current
	s.options.Confirm = o.Confirm
	s.attached = true
	return nil
}

// Serve answers connections of ln until Close, and then returns nil. It may be called for several
// listeners.
func (s *Server) Serve(ln net.Listener) error {
	s.serving.Lock()
	closed := s.closed
	s.listeners = append(s.listeners, ln)
	s.serving.Unlock()
	if closed { // the HTTP server would not know, and serve for ever
		return ln.Close()
	}
	if err := s.http.Serve(orderListener{s.turnstile.Listen(ln), s}); err != nil {
		return fmt.Errorf("serve %s: %w", ln.Addr(), err)
	}
	return nil
}

// Ready opens the door, or shuts it again: while shut, every route but /, /ok, /time and /version
// answers 425. From the first time on the keys that send heartbeats are watched, until Close.
func (s *Server) Ready(ok bool) {
	if ok && !s.attached {
		panic("BUG: ready without a way to enter Commands")
	}
	if ok {
		s.begin.Do(func() {
			s.beats.resume(s.options.Board.Directory.Armed, s.options.Now())
			s.watching.Go(func() { s.beats.watch(s.stop) })
		})
	}
	s.ready.Store(ok)
}

// Full makes the door take only what ends orders and what operators ask for, or everything again,
// because the disk is nearly full. An order that was taken before still gets its result.
func (s *Server) Full(full bool) { s.full.Store(full) }

// SetLimits makes p the limits that hold from now on, unless limits are off or p is nil.
func (s *Server) SetLimits(p *limits.Policy) {
	if s.windows != nil && p != nil {
		s.windows.Use(p)
		s.turnstile.Limit(p.Arrivals())
	}
}

// Close stops listening, lets the requests in work finish, at most until ctx is done, and joins
// the workers. Before that, every answer tells its client for a moment to close the connection, so
// that few requests meet a closed one. Close the Sequencer after the Server.
func (s *Server) Close(ctx context.Context) error {
	s.draining.Store(true)
	s.rests.Stop()
	if s.turnstile.Open() > 0 {
		select {
		case <-ctx.Done():
		case <-time.After(farewell):
		}
	}
	s.turnstile.Hurry(farewell)
	s.room.Close(ctx)
	err := s.http.ShutdownWithContext(ctx)
	s.serving.Lock()
	s.closed = true
	for _, ln := range s.listeners {
		_ = ln.Close() // the HTTP server closes only those that it has begun to serve
	}
	s.serving.Unlock()
	s.pool.close()
	s.end.Do(func() { close(s.stop) })
	s.watching.Wait()
	if err != nil {
		return fmt.Errorf("drain connections: %w", err)
	}
	return nil
}

// Collectors are the Server's metrics, for the one registry of the process.
func (s *Server) Collectors() []prometheus.Collector {
	m := s.metrics
	all := append([]prometheus.Collector{m.requests, m.seconds, m.busy, m.panics, m.limited,
		m.sizes, m.together}, m.pool...)
	return append(all, s.room.Collectors()...)
}

// Admin returns the handler of the operator's requests, which need the token.
func (s *Server) Admin() http.Handler {
	return operator.Handler(operator.Options{Token: s.options.AdminToken, Ready: s.ready.Load,
		Board: func() *view.Board { return s.options.Board }, Enter: s.faucet.enterFor,
		Now: s.options.Now})
}

// handle is the first and last function of every request.
func (s *Server) handle(ctx *fasthttp.RequestCtx) {
	refused := head.Judge(&ctx.Request.Header)
	if ctx.Request.Header.ConnectionClose() {
		ctx.SetConnectionClose()
	}
	wire.TrimSlash(ctx.URI())
	c, ok := ctx.Conn().(*orderConn)
	if ok {
		path := strings.TrimPrefix(wire.Text(ctx.Path()), "/clob")
		c.seat.next(ctx.IsPost() && (path == head.OrderPath || path == head.ListPath))
		if c.lines.Bare {
			refused = head.Malformed
		} else if c.Evicted() {
			refused = refuseEvicted
		}
	}
	held := 0
	if refused == nil && ctx.Request.IsBodyStream() {
		var err error
		if held, err = s.readBody(ctx); err != nil {
			refused = refusalOf(err)
		}
		if ok {
			c.whole = time.Now()
		}
	}
	if refused != nil {
		send(ctx, refused)
		ctx.SetConnectionClose()
		s.unreadable.observe(ctx)
	} else {
		func() {
			defer s.survive(ctx)
			if ctx.IsGet() && !owned(ctx.Path()) {
				s.elsewhere(ctx) // most requests read books: they need not walk two route tables
			} else {
				s.routes.Handler(ctx)
			}
		}()
	}
	if ok {
		s.holdAnswer(ctx, c)
	}
	if held > 0 {
		s.bodies.Give(s.ClientAddress(ctx), held)
	}
	s.stamp(ctx)
}

// gate makes the handler of a route: it counts requests under the route's name, and lets in those
// whose address has room in its windows. A route that needs a ready node answers 425 before that.
func (s *Server) gate(name string, needsReady bool, h fasthttp.RequestHandler,
) fasthttp.RequestHandler {
	counters := s.metrics.route(name)
	return func(ctx *fasthttp.RequestCtx) {
		if needsReady && !s.ready.Load() {
			ctx.Response.Header.Set("Retry-After", "1")
			send(ctx, refuseEarly)
			ctx.Response.Header.SetStatusMessage([]byte("Too Early"))
		} else if s.admit(ctx) && (!needsReady || s.options.Current == nil || s.options.Current(ctx)) {
			h(ctx)
		}
		counters.observe(ctx)
	}
}

var versionHeader = []byte("X-Node-Version")

func (s *Server) stamp(ctx *fasthttp.RequestCtx) {
	ctx.Response.Header.SetCanonical(versionHeader, s.version)
	harden(ctx)
	s.options.Origins.Stamp(ctx, sendable)
	if s.draining.Load() {
		ctx.SetConnectionClose()
	}
}

// The refusals of requests that reach no handler.
var (
	refuseHeader = wire.Refuse(431, "too_large", "request header too large",
		"request line and headers may have "+strconv.Itoa(headerBytes)+" bytes together")
	refuseSlow = wire.Refuse(408, "timeout", "request timed out",
		"send a request as a whole within "+conn.RequestTimeout.String())
	// The connection is closed already, so nobody reads this. Nothing must be entered for nobody.
	refuseEvicted = wire.Refuse(503, "busy",
		"too many connections, nothing was entered, send again", "")
	refuseRoute  = wire.Refuse(404, "not_found", "not found", "GET /openapi.json names all routes")
	refuseMethod = wire.Refuse(405, "method_not_allowed", "method not allowed",
		"the header Allow names the methods of this path")
	refuseEarly = wire.Refuse(425, "not_ready", "service not ready",
		"the node is starting, nothing was entered: send again")
)

// refuse answers bytes that fasthttp could not read as a request. fasthttp then closes the
// connection, because nobody knows where the next request would begin.
func (s *Server) refuse(ctx *fasthttp.RequestCtx, err error) {
	send(ctx, refusalOf(err))
	s.stamp(ctx)
	s.options.Origins.Unread(ctx)
	s.unreadable.observe(ctx)
}

// refusalOf returns the refusal of a request that could not be read.
func refusalOf(err error) *wire.Refusal {
	var small *fasthttp.ErrSmallBuffer
	switch {
	case errors.Is(err, fasthttp.ErrBodyTooLarge):
		return head.Large
	case errors.As(err, &small):
		return refuseHeader
	case conn.TimedOut(err):
		return refuseSlow
	case errors.Is(err, errBodies):
		return refuseBodies
	case errors.Is(err, errBody):
		return refuseBodyOf
	}
	return head.Malformed
}

// expect answers a request that asks whether its body is welcome. A head that is
// refused, also for the length of its body, is refused before the client sends more.
func (s *Server) expect(ctx *fasthttp.RequestCtx) (status int) {
	refused := head.Judge(&ctx.Request.Header)
	if refused == nil {
		return fasthttp.StatusContinue
	}
	send(ctx, refused)
	s.stamp(ctx)
	s.unreadable.observe(ctx)
	return refused.Status
}

// send refuses a request in the shape of its family, before its route could. What is no request at
// all has no family.
func send(ctx *fasthttp.RequestCtx, r *wire.Refusal) {
	if r.Status != http.StatusBadRequest {
		r = r.In(wire.FamilyFor(ctx))
	}
	r.Send(ctx)
}
