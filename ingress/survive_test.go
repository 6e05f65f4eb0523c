package ingress

import (
	"bytes"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"regexp"
	"strings"
	"testing"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/valyala/fasthttp"

	"clobd/api/wire"
	"clobd/engine"
	"clobd/ingress/head"
)

var idForm = regexp.MustCompile(`[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}`)

// TestPanics: a handler that panics is one answer 500 in the shape of its family. The answer has
// the id under which the log has the cause, and the node goes on.
func TestPanics(t *testing.T) {
	var log bytes.Buffer
	h := newHouse(t, func(o *Options) {
		o.Log = slog.New(slog.NewTextHandler(&log, nil))
		o.Public = func(*fasthttp.RequestCtx) { panic("no book") }
		o.Account = func(*fasthttp.RequestCtx, engine.Address, wire.Dialect) { panic("no account") }
		past := o.Past
		o.Past = func(id engine.OrderID) (engine.Receipt, bool, engine.Sequence, error) {
			if strings.Contains(log.String(), "no index") {
				return past(id)
			}
			panic("no index")
		}
	})
	h.run([]string{"fund alice 1000"})
	signedRead := rawRequest{method: "GET", path: "/data/orders"}
	h.signed(&signedRead, "alice", &words{})
	for i, c := range []struct{ raw, cause, want string }{
		{"GET /book HTTP/1.1\r\nHost: x\r\n\r\n", "no book", `{"error":"internal_error","code":"internal"`},
		{"GET /events?limit=5 HTTP/1.1\r\nHost: x\r\n\r\n", "no book",
			`{"type":"internal error","error":"internal_error","detail":"`},
		{"GET /positions HTTP/1.1\r\nHost: x\r\n\r\n", "no book", `{"error":"internal_error: this is a bug of the node`},
		{"POST /books HTTP/1.1\r\nHost: x\r\nContent-Length: 2\r\n\r\n[]", "no book",
			`{"error":"internal_error","code":"internal"`},
		{signedRead.String(), "no account", `{"error":"internal_error","code":"internal"`},
		{h.orderWire("alice buy A 10 @ 0.40"), "no index", `{"error":"internal_error","code":"internal"`},
	} {
		log.Reset()
		got := h.send(c.raw)
		id := idForm.FindString(got)
		if !strings.HasPrefix(got, "500\n") || !strings.Contains(got, c.want) || id == "" {
			t.Errorf("%s: %s", c.raw, got)
		}
		if text := log.String(); !strings.Contains(text, id) || !strings.Contains(text, c.cause) ||
			!strings.Contains(text, "survive_test.go") {
			t.Errorf("the log of %s: %s", id, text)
		}
		if n := counted(t, h.server.metrics.panics); n != float64(i+1) {
			t.Errorf("%v panics counted, want %d", n, i+1)
		}
	}
	if got := h.send(h.orderWire("alice buy A 10 @ 0.40 salt=2")); !strings.HasPrefix(got, "200\n") {
		t.Errorf("an order after panics: %s", got)
	}
}

// TestPanicBeside: a panic of a goroutine that judges an order of a list ends its request only.
func TestPanicBeside(t *testing.T) {
	h := newHouse(t, func(o *Options) { o.Workers = 8 })
	h.run([]string{"fund alice 1000"})
	h.server.options.Verifier = nil // judging panics on it
	w := rawRequest{method: "POST", path: "/orders"}
	var bodies []string
	for i := range maxBundle {
		x, item := h.parseOrder(&words{strings.Fields("alice buy A 10 @ 0.40 salt=" + strings.Repeat("1", i+1))})
		bodies = append(bodies, h.orderBody(x, "alice", item))
	}
	w.body = "[" + strings.Join(bodies, ",") + "]"
	h.signed(&w, "alice", &words{})
	for range 20 {
		if got := h.send(w.String()); !strings.HasPrefix(got, "500\n") || idForm.FindString(got) == "" {
			t.Fatal(got)
		}
	}
	if n := h.server.pool.running; n != 0 {
		t.Errorf("%d seats are taken", n)
	}
}

// TestOperatorsPanic: a panic in a handler of the admin listener is answered too.
func TestOperatorsPanic(t *testing.T) {
	h := newHouse(t, nil)
	w := httptest.NewRecorder()
	h.server.Surviving(http.HandlerFunc(func(http.ResponseWriter, *http.Request) { panic("x") })).
		ServeHTTP(w, httptest.NewRequest(http.MethodPost, "/admin/fund", nil))
	if body := w.Body.String(); w.Code != 500 || !strings.HasPrefix(body, `{"error":"internal_error","hint":"`) ||
		idForm.FindString(body) == "" || w.Header().Get("Content-Type") != wire.JSON {
		t.Errorf("%d %s", w.Code, body)
	}
}

// TestFamilyOfRefusals: what the door itself refuses has the shape of the route's family.
func TestFamilyOfRefusals(t *testing.T) {
	trading, described, wallets := `{"error":"`, `{"type":"`, `{"error":"`
	for _, c := range []struct{ target, begin, limited string }{
		{"/book", trading, `{"error":"Too Many Requests","code":"rate_limited","retry_after_seconds":`},
		{"/events", described, `{"type":"rate limit error","error":"Too Many Requests"}`},
		{"/gamma/tags", described, `{"type":"rate limit error","error":"Too Many Requests"}`},
		{"/markets", described, `{"type":"rate limit error","error":"Too Many Requests"}`},
		{"/markets?next_cursor=MA==", trading, `{"error":"Too Many Requests","code":"rate_limited"`},
		{"/clob/markets", trading, `{"error":"Too Many Requests","code":"rate_limited"`},
		{"/positions", wallets, `{"error":"rate_limited: Too Many Requests"}`},
		{"/data-api/trades", wallets, `{"error":"rate_limited: Too Many Requests"}`},
		{"/data/orders", trading, `{"error":"Too Many Requests","code":"rate_limited","retry_after_seconds":`},
	} {
		var ctx fasthttp.RequestCtx
		ctx.Request.SetRequestURI(c.target)
		if noWait(&ctx, 1); !strings.HasPrefix(string(ctx.Response.Body()), c.limited) {
			t.Errorf("%s: %s", c.target, ctx.Response.Body())
		}
		for _, r := range []*wire.Refusal{refuseEarly, head.Large, refuseSlow, refuseHeader,
			refuseBodies, refuseBodyOf, refuseAnswers, refuseAnswerOf} {
			var ctx fasthttp.RequestCtx
			ctx.Request.SetRequestURI(c.target)
			send(&ctx, r)
			body := string(ctx.Response.Body())
			words := `": "`
			switch {
			case c.begin == described:
				words = `,"error":"` + r.Text + `"`
			case strings.HasPrefix(c.limited, `{"error":"rate_limited: `):
				words = `"` + r.Code + ": " + r.Text
			default:
				words = `"` + r.Text + `","code":"` + r.Code + `"`
			}
			if !strings.HasPrefix(body, c.begin) || !strings.Contains(body, words) ||
				ctx.Response.StatusCode() != r.Status {
				t.Errorf("%s: %d %s, want %s", c.target, ctx.Response.StatusCode(), body, words)
			}
		}
	}
}

// TestEarlyFamilies: before the node is ready, and for a body that is too long, over a socket.
func TestEarlyFamilies(t *testing.T) {
	h := newHouse(t, nil)
	long := "POST /positions HTTP/1.1\r\nHost: x\r\nContent-Length: 300000\r\n\r\n"
	if got := h.send(long); !strings.HasPrefix(got, "413\n") ||
		!strings.Contains(got, `{"error":"too_large: request body too large, a body may have`) {
		t.Error(got)
	}
	h.server.Ready(false)
	for target, want := range map[string]string{
		"/events":    `{"type":"bad request","error":"service not ready","detail":"the node is starting`,
		"/positions": `{"error":"not_ready: service not ready, the node is starting`,
		"/book":      `{"error":"service not ready","code":"not_ready","detail":"the node is starting`,
	} {
		got := h.send("GET " + target + " HTTP/1.1\r\nHost: x\r\n\r\n")
		if !strings.HasPrefix(got, "425\n") || !strings.Contains(got, want) {
			t.Errorf("%s: %s", target, got)
		}
	}
}

// counted is the value of a counter.
func counted(t *testing.T, c prometheus.Collector) float64 {
	t.Helper()
	registry := prometheus.NewRegistry()
	registry.MustRegister(c)
	families, err := registry.Gather()
	if err != nil || len(families) != 1 {
		t.Fatal(families, err)
	}
	return families[0].GetMetric()[0].GetCounter().GetValue()
}
