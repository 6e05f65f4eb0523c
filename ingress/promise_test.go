package ingress

import (
	"bufio"
	"fmt"
	"io"
	"net"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/fasthttp/router"
	"github.com/valyala/fasthttp"

	"clobd/ingress/limits"
	"clobd/scripts/openapi"
)

// tags are all kinds of documented routes. What is not the door's own is refused by it all the
// same, before anybody else sees the request.
func tags() []string {
	return []string{"service", "streams", "description", "trading", "keys", "account", "books", "markets",
		"catalog", "wallets"}
}

// closedDoor is one way to be refused at the door whatever one asks for.
type closedDoor struct {
	status string
	change func(*Options)
	ready  bool
	// meets says whether a route, by its name and tag, is refused so; nil: every one is.
	meets func(route, tag string) bool
	// send gives the request's method and path the form that is refused, and returns the answer.
	send func(h *house, dial func() net.Conn, method, path string) *fasthttp.Response
}

// byWallet are the routes whose requests are counted once it is known who asks: strangers cannot
// use up what a wallet has. limits.txt has them.
func byWallet() []string {
	return []string{"POST /order", "POST /orders", "DELETE /order", "DELETE /orders",
		"DELETE /cancel-all", "DELETE /cancel-market-orders"}
}

// doors are all of them.
func doors() []closedDoor {
	text := func(more string) func(*house, func() net.Conn, string, string) *fasthttp.Response {
		return func(h *house, dial func() net.Conn, method, path string) *fasthttp.Response {
			return exchange(h, dial(), method+" "+path+" HTTP/1.1\r\nHost: x\r\n"+more+"\r\n")
		}
	}
	keyed := func(route, tag string) bool {
		return slices.Contains([]string{"trading", "keys", "account"}, tag) &&
			route != "GET /auth/validate-readonly-api-key" && route != "GET /builder/trades"
	}
	open := func(route, _ string) bool { return !slices.Contains(byWallet(), route) }
	gated := func(_, tag string) bool { return tag != "service" }
	crowded := func(o *Options) { o.Concurrency, o.ConnsPerAddress = 1, 64 }
	return []closedDoor{
		{status: "400", ready: true, send: text("a line that is no header\r\n")},
		{status: "401", ready: true, meets: keyed, send: text("")},
		{status: "408", ready: true, send: text("X-Slow: 1")},
		{status: "413", ready: true, send: text("Content-Length: 1000000\r\n")},
		{status: "415", ready: true, // the last two bytes are the body
			send:  text("Content-Encoding: gzip\r\nContent-Length: 2\r\n\r\n"),
			meets: func(route, _ string) bool { return !strings.HasPrefix(route, "GET ") }},
		{status: "425", send: text(""), meets: gated},
		{status: "429", ready: true, change: func(o *Options) { o.Windows = limits.New(o.Now) },
			meets: open, send: tooOften},
		{status: "431", ready: true, send: text("X-Big: " + strings.Repeat("x", headerBytes+1<<10) + "\r\n")},
		{status: "500", ready: true, send: text("")},
		{status: "503", ready: true, change: crowded, send: text("")},
	}
}

// exchange sends a request as it is and reads the answer, which must be as documented.
func exchange(h *house, conn net.Conn, raw string) *fasthttp.Response {
	h.t.Helper()
	defer conn.Close()
	_ = conn.SetDeadline(time.Now().Add(4 * patience))
	go func() { _, _ = io.WriteString(conn, raw) }() // the server may hang up in the middle
	r := new(fasthttp.Response)
	if err := r.Read(bufio.NewReader(conn)); err != nil {
		h.t.Fatalf("read response of %.60q: %v", raw, err)
	}
	h.conforms(raw, r)
	return r
}

// tooOften asks until it is refused for that.
func tooOften(h *house, dial func() net.Conn, method, path string) *fasthttp.Response {
	h.t.Helper()
	conn := dial()
	defer conn.Close()
	reader := bufio.NewReader(conn)
	raw := method + " " + path + " HTTP/1.1\r\nHost: x\r\n\r\n"
	r := new(fasthttp.Response)
	for range 6000 {
		if _, err := io.WriteString(conn, raw); err != nil {
			h.t.Fatal(err)
		}
		if err := r.Read(reader); err != nil {
			h.t.Fatal(err)
		}
		if r.StatusCode() == 429 {
			break
		}
	}
	h.conforms(raw, r)
	return r
}

// breakRoutes makes every route panic.
func breakRoutes(s *Server) {
	broken := func(*fasthttp.RequestCtx) { panic("a bug") }
	s.elsewhere, s.routes = broken, router.New()
	s.routes.NotFound = broken
}

// everyRouteAtTheDoor asks every documented route for every refusal of the door, which must have
// the form that is documented for it.
func everyRouteAtTheDoor(t *testing.T, record *openapi.Record) {
	d, err := promise()
	if err != nil {
		t.Fatal(err)
	}
	for _, door := range doors() {
		t.Run(door.status, func(t *testing.T) {
			h := newHouse(t, door.change)
			h.record = record
			if door.status == "408" {
				h.server.turnstile.Timeouts.Request = 200 * time.Millisecond
			}
			if door.status == "500" {
				breakRoutes(h.server)
			}
			h.server.Ready(door.ready)
			dial := serveTCP(t, h)
			if door.status == "503" {
				begin(t, h, dial(), 1) // the only one that is let in; idle, it would give way
			}
			var joined sync.WaitGroup
			for _, route := range d.Routes(tags()...) {
				method, path, _ := strings.Cut(strings.ReplaceAll(route, "{}", "1"), " ")
				if door.meets != nil && !door.meets(route, d.Tag(method, path)) {
					continue
				}
				ask := func() {
					r := door.send(h, dial, method, path)
					if got := fmt.Sprint(r.StatusCode()); got != door.status {
						t.Errorf("%s: %s %s", route, got, r.Body())
					}
				}
				if door.status == "408" { // they wait
					joined.Go(ask)
				} else {
					ask()
				}
			}
			joined.Wait()
		})
	}
}

// keepsPromises fails for what the document promises of the door's own routes and the scripts do
// not show.
func keepsPromises(t *testing.T, record *openapi.Record) {
	d, err := promise()
	if err != nil {
		t.Fatal(err)
	}
	promises := d.Promises("service", "streams", "trading", "keys")
	for _, code := range d.Codes() {
		promises = append(promises, "code "+code)
	}
	for _, problem := range record.Unkept(promises, exceptions()) {
		t.Error(problem)
	}
}

// exceptions are what the scripts cannot provoke.
func exceptions() []openapi.Exception {
	const where = "ingress.TestSocketRefusals"
	return []openapi.Exception{
		{What: "GET /ws 101", Test: "ingress.TestSockets", Why: "it needs a real connection"},
		{What: "GET /ws/market 101", Test: "ingress.TestSockets", Why: "it needs a real connection"},
		{What: "GET /ws 403", Test: where, Why: "it needs a page that is refused"},
		{What: "GET /ws/user 101", Test: "ingress.TestSockets", Why: "it needs a real connection"},
		{What: "GET /ws/trade 101", Test: "ingress.TestContractOnSockets",
			Why: "it needs a real connection"},
		{What: "GET /ws/trade 403", Test: where, Why: "it needs a page that is refused"},
		{What: "code behind", Test: "api.TestMinSequence", Why: "the reads of these scripts are stand-ins"},
		{What: "code not_replaced", Test: "ingress.TestContract", Why: "sockets alone replace orders"},
		{What: "GET /ws/user 403", Test: where, Why: "it needs a page that is refused"},
		{What: "GET /ws/market 403", Test: where, Why: "it needs a page that is refused"},
		{What: "code origin", Test: where, Why: "it needs a page that is refused"},
	}
}
