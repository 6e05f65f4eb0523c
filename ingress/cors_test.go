package ingress

import (
	"bufio"
	"fmt"
	"io"
	"net"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/valyala/fasthttp"

	"clobd/ingress/cors"
	"clobd/ingress/limits"
)

const page = "https://desk.example"

// openHeaders are what a refusal tells browsers if its request was not read.
const openHeaders = "Access-Control-Allow-Origin: *\n" +
	"Access-Control-Expose-Headers: *, Retry-After, X-Node-Version\n"

// browse sends bytes as they are and returns the answer with its body read.
func browse(h *house, raw string) *http.Response {
	h.t.Helper()
	c, err := h.listener.Dial()
	if err != nil {
		h.t.Fatal(err)
	}
	defer c.Close()
	_ = c.SetDeadline(time.Now().Add(4 * patience))
	go func() { _, _ = io.WriteString(c, raw) }()
	return readAnswer(h.t, c, strings.HasPrefix(raw, "HEAD "))
}

func readAnswer(t testing.TB, c net.Conn, head bool) *http.Response {
	t.Helper()
	r := &http.Request{Method: "GET"}
	if head {
		r.Method = "HEAD"
	}
	answer, err := http.ReadResponse(bufio.NewReader(c), r)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := io.Copy(io.Discard, answer.Body); err != nil {
		t.Fatal(err)
	}
	return answer
}

// holds reports whether a list with commas names a value.
func holds(list, want string) bool {
	for item := range strings.SplitSeq(list, ",") {
		if strings.EqualFold(strings.TrimSpace(item), want) {
			return true
		}
	}
	return false
}

// TestPreflightOfEveryRoute: a browser may send each method of each route that the router knows,
// with all headers of all families, and need not ask again for two hours.
func TestPreflightOfEveryRoute(t *testing.T) {
	h := newHouse(t, nil)
	h.server.Ready(false) // a page may ask before the node is ready
	seen := 0
	for method, paths := range h.server.routes.List() {
		for _, path := range paths {
			if method == "OPTIONS" {
				continue
			}
			path = strings.ReplaceAll(path, "{rest:*}", "0x00")
			a := browse(h, "OPTIONS "+path+" HTTP/1.1\r\nHost: x\r\nOrigin: "+page+
				"\r\nAccess-Control-Request-Method: "+method+"\r\n\r\n")
			got := a.Header.Get
			if a.StatusCode != 204 || got("Access-Control-Allow-Origin") != "*" ||
				!holds(got("Access-Control-Allow-Methods"), method) ||
				got("Access-Control-Max-Age") != "7200" ||
				got("Access-Control-Allow-Credentials") != "" {
				t.Errorf("%s %s: %d %v", method, path, a.StatusCode, a.Header)
			}
			for _, name := range strings.Fields("POLY_SIGNATURE svc_api_key KUEST_PASSPHRASE " +
				"POLY-ADDRESS POLY_BUILDER_SIGNATURE KUEST_BUILDER_API_KEY SVC_MAX_AGE_MS " +
				"SVC_READONLY_API_KEY POLY_NONCE Idempotency-Key Content-Type If-None-Match X-Chain-Id") {
				if !holds(got("Access-Control-Allow-Headers"), name) {
					t.Fatalf("%s %s: a page may not send %s", method, path, name)
				}
			}
			seen++
		}
	}
	if seen < 60 {
		t.Errorf("only %d routes", seen)
	}
}

// TestPagesReadRefusals: whatever a page is answered, it may read, and the headers of it as well.
func TestPagesReadRefusals(t *testing.T) {
	h := newHouse(t, func(o *Options) { o.Windows = limits.New(o.Now) })
	from := "Host: x\r\nOrigin: " + page + "\r\n"
	ask := func(want int, raw string) {
		t.Helper()
		a := browse(h, raw)
		if a.StatusCode != want || a.Header.Get("Access-Control-Allow-Origin") != "*" {
			t.Errorf("want %d, got %d %v", want, a.StatusCode, a.Header)
		}
		if a.Close && want != 413 { // nothing of the request was read
			return
		}
		for _, name := range strings.Fields("Retry-After ETag X-Sequence X-Fee X-Canceled " +
			"X-Idempotent-Replay X-Unknown-Query X-Node-Version Poly-RateLimit-Remaining " +
			"Poly-RateLimit-Reset Poly-RateLimit-Tier RateLimit RateLimit-Policy") {
			if !holds(a.Header.Get("Access-Control-Expose-Headers"), name) {
				t.Fatalf("%d: a page may not read %s", want, name)
			}
		}
	}
	ask(200, "GET /time HTTP/1.1\r\n"+from+"\r\n")
	ask(200, "GET /book?token_id=1 HTTP/1.1\r\n"+from+"\r\n")
	ask(401, "POST /order HTTP/1.1\r\n"+from+"Content-Length: 2\r\n\r\n{}")
	ask(401, "GET /data/orders HTTP/1.1\r\n"+from+"\r\n")
	ask(401, "GET /auth/derive-api-key HTTP/1.1\r\n"+from+"\r\n")
	ask(404, "DELETE /auth/nothing HTTP/1.1\r\n"+from+"\r\n")
	ask(405, "PUT /order HTTP/1.1\r\n"+from+"\r\n")
	ask(413, "POST /order HTTP/1.1\r\n"+from+"Content-Length: 999999\r\n\r\n")
	ask(400, "GET /ok HTTP/1.1\r\n"+from+"Expect: more\r\n\r\n")
	ask(400, "GET\r\n\r\n")
	ask(431, "GET /ok HTTP/1.1\r\nX: "+strings.Repeat("x", headerBytes)+"\r\n"+from+"\r\n")
	for range 50 {
		browse(h, "GET /ok HTTP/1.1\r\n"+from+"\r\n")
	}
	ask(429, "GET /ok HTTP/1.1\r\n"+from+"\r\n")
	h.server.Ready(false)
	ask(425, "POST /order HTTP/1.1\r\n"+from+"Content-Length: 2\r\n\r\n{}")
}

// TestPageTrades: a page's browser sends header names in lower case and Origin with each request;
// the order of such a request rests, and its cancel ends it.
func TestPageTrades(t *testing.T) {
	h := newHouse(t, nil)
	h.run([]string{"fund alice 100"})
	raw := h.orderWire("alice buy A 10 @ 0.40")
	head, body, _ := strings.Cut(raw, "\r\n\r\n")
	line, fields, _ := strings.Cut(head, "\r\n")
	var lower strings.Builder
	for field := range strings.SplitSeq(fields, "\r\n") {
		name, value, _ := strings.Cut(field, ":")
		lower.WriteString("\r\n" + strings.ToLower(name) + ":" + value)
	}
	a := browse(h, line+lower.String()+"\r\norigin: "+page+"\r\n\r\n"+body)
	if a.StatusCode != 200 || a.Header.Get("Access-Control-Allow-Origin") != "*" {
		t.Errorf("%d %v", a.StatusCode, a.Header)
	}
}

// TestOriginsOfAList: with a list only its pages may read, and caches keep the answers apart; with
// an empty one none may.
func TestOriginsOfAList(t *testing.T) {
	for _, c := range []struct{ list, origin, allowed, vary string }{
		{"https://desk.example,http://localhost:3000", page, page, "Origin"},
		{"https://desk.example, http://localhost:3000", "http://localhost:3000",
			"http://localhost:3000", "Origin"},
		{"https://desk.example", "https://evil.example", "", "Origin"},
		{"https://desk.example", "https://desk.example.evil", "", "Origin"},
		{"https://desk.example", "", "", "Origin"},
		{"", page, "", ""},
		{"*", page, "*", ""},
	} {
		o, err := cors.Parse(c.list)
		if err != nil {
			t.Fatal(err)
		}
		h := newHouse(t, func(options *Options) { options.Origins = o })
		for _, request := range []string{"GET /time", "OPTIONS /order", "OPTIONS /book",
			"GET /data/orders"} {
			origin := ""
			if c.origin != "" {
				origin = "Origin: " + c.origin + "\r\n"
			}
			a := browse(h, request+" HTTP/1.1\r\nHost: x\r\n"+origin+"\r\n")
			if got := a.Header.Get("Access-Control-Allow-Origin"); got != c.allowed {
				t.Errorf("%q: %s from %q: allowed %q", c.list, request, c.origin, got)
			}
			if got := a.Header.Get("Vary"); got != c.vary {
				t.Errorf("%q: %s: Vary %q", c.list, request, got)
			}
			if methods := a.Header.Get("Access-Control-Allow-Methods"); c.allowed == "" && methods != "" {
				t.Errorf("%q: %s from %q: methods %q", c.list, request, c.origin, methods)
			}
		}
	}
	for _, wrong := range []string{"desk.example", "https://desk.example/", "https://a.b/c",
		"*,https://a", "null", "https://"} {
		if _, err := cors.Parse(wrong); err == nil {
			t.Errorf("%q is taken for an origin", wrong)
		}
	}
}

// TestCrowdedPages: a page whose connection is turned away reads why.
func TestCrowdedPages(t *testing.T) {
	h := newHouse(t, func(o *Options) { o.Concurrency = 1 })
	ln, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	go func() { _ = h.server.Serve(ln) }()
	busy, err := net.Dial("tcp", ln.Addr().String())
	if err != nil {
		t.Fatal(err)
	}
	defer busy.Close()
	fmt.Fprint(busy, "POST /order HTTP/1.1\r\nHost: x\r\nContent-Length: 9000\r\n\r\nbegun")
	for h.server.turnstile.Busy() == 0 {
		time.Sleep(time.Millisecond)
	}
	c, err := net.Dial("tcp", ln.Addr().String())
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	a := readAnswer(t, c, false)
	if a.StatusCode < 429 || a.Header.Get("Access-Control-Allow-Origin") != "*" ||
		!holds(a.Header.Get("Access-Control-Expose-Headers"), "Retry-After") {
		t.Errorf("%d %v", a.StatusCode, a.Header)
	}
}

// BenchmarkPreflight: what the headers of a browser cost.
func BenchmarkPreflight(b *testing.B) {
	var o cors.Origins
	var ctx fasthttp.RequestCtx
	ctx.Request.Header.SetMethod("OPTIONS")
	ctx.Request.Header.Set("Origin", page)
	for b.Loop() {
		ctx.Response.Reset()
		ctx.SetStatusCode(204)
		o.Stamp(&ctx, sendable)
	}
}
