package ingress

import (
	"bufio"
	"fmt"
	"io"
	"net"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/fasthttp/websocket"
	"github.com/goccy/go-json"

	"clobd/api/wire"
	"clobd/ingress/auth"
	"clobd/scripts/asyncapi"
)

// desks are the open sockets of a house's traders, by trader and dialect.
type desks struct {
	open  map[string]*trading
	fresh bool // a new socket for each request: nobody answers pings while the disk hangs
	asked int  // requests that went over sockets
	not   int  // requests that only HTTP can carry

	answered func() // called after each answer, if set
}

// trading is a client's end of a socket for orders.
type trading struct {
	t   testing.TB
	ws  *websocket.Conn
	no  int
	odd bool // the house answers with stubs, which match no document
}

// reply is an answer on a socket.
type reply struct {
	ID        json.RawMessage `json:"id"`
	Status    int             `json:"status"`
	Result    json.RawMessage `json:"result"`
	Error     json.RawMessage `json:"error"`
	Seq       uint64          `json:"seq"`
	Replay    bool            `json:"replay"`
	Fee       string          `json:"fee"`
	Displaced string          `json:"displaced"`
	RateLimit string          `json:"rate_limit"`
}

// entrance is a house whose clients trade over sockets.
type entrance struct{ *house }

// tradingSocket opens a socket for orders.
func (h entrance) tradingSocket() *trading {
	h.t.Helper()
	d := websocket.Dialer{NetDial: func(string, string) (net.Conn, error) { return h.listener.Dial() }}
	ws, _, err := d.Dial("ws://door/ws/trade", nil)
	if err != nil {
		h.t.Fatal(err)
	}
	h.t.Cleanup(func() { _ = ws.Close() })
	return &trading{t: h.t, ws: ws}
}

// login returns the params with which a trader logs in, and the members of more.
func (h entrance) login(name string, nonce uint32, more map[string]any) map[string]any {
	trio := h.keyring.Derive(trader(name).Address, nonce)
	r := auth.Request{Timestamp: strconv.FormatInt(h.now(), 10), Method: "GET", Path: tradePath}
	if err := trio.Sign(&r); err != nil {
		h.t.Fatal(err)
	}
	all := map[string]any{"apiKey": r.Key, "passphrase": r.Passphrase, "timestamp": r.Timestamp,
		"signature": r.Signature}
	for k, v := range more {
		all[k] = v
	}
	return all
}

// say sends a text message.
func (c *trading) say(text string) {
	c.t.Helper()
	if err := c.ws.WriteMessage(websocket.TextMessage, []byte(text)); err != nil {
		c.t.Fatal(err)
	}
}

// ask sends a request and returns its number.
func (c *trading) ask(method string, params any, more ...string) int {
	c.t.Helper()
	c.no++
	text, ok := params.(string)
	if !ok {
		b, err := json.Marshal(params)
		if err != nil {
			c.t.Fatal(err)
		}
		text = string(b)
	}
	if text = strings.Join(append([]string{text}, more...), ","); text == "" {
		text = "null"
	}
	c.say(fmt.Sprintf(`{"id":%d,"method":%q,"params":%s}`, c.no, method, text))
	return c.no
}

// hear reads the next answer.
func (c *trading) hear() (r reply) {
	c.t.Helper()
	text := c.text()
	if err := json.Unmarshal([]byte(text), &r); err != nil {
		c.t.Fatalf("%v: %s", err, text)
	}
	return r
}

func (c *trading) text() string {
	c.t.Helper()
	_ = c.ws.SetReadDeadline(time.Now().Add(4 * patience))
	_, text, err := c.ws.ReadMessage()
	if err != nil {
		c.t.Fatal(err)
	}
	c.documented(text)
	return string(text)
}

// documented checks an answer against the AsyncAPI document. It skips answers about accounts, which
// most houses make up.
func (c *trading) documented(text []byte) {
	c.t.Helper()
	if c.odd || strings.Contains(string(text), `"result":account`) || strings.Contains(string(text), `"result":{}`) {
		return
	}
	if err := asyncapi.Check(tradePath, text); err != nil {
		c.t.Errorf("%v: %.300s", err, text)
	}
}

// call sends a request and returns its answer. No other request may be in work.
func (c *trading) call(method string, params any, more ...string) reply {
	c.t.Helper()
	no := c.ask(method, params, more...)
	r := c.hear()
	if string(r.ID) != strconv.Itoa(no) {
		c.t.Fatalf("answer %s to request %d", r.ID, no)
	}
	return r
}

// loggedIn opens a socket for orders and logs a trader in.
func (h entrance) loggedIn(name string, more map[string]any) *trading {
	h.t.Helper()
	c := h.tradingSocket()
	if r := c.call("login", h.login(name, 0, more)); r.Status != 200 {
		h.t.Fatalf("%d %s", r.Status, r.Error)
	}
	return c
}

// String returns the answer in the form in which the cases show answers over HTTP.
func (r reply) String() string {
	var b strings.Builder
	fmt.Fprintf(&b, "%d\n", r.Status)
	for _, h := range [...][2]string{{"X-Canceled", r.Displaced}, {"X-Fee", r.Fee}} {
		if h[1] != "" {
			fmt.Fprintf(&b, "%s: %s\n", h[0], h[1])
		}
	}
	if r.Replay {
		b.WriteString("X-Idempotent-Replay: true\n")
	}
	if r.RateLimit != "" {
		b.WriteString("Ratelimit: " + r.RateLimit + "\n")
	}
	return b.String() + string(r.Result) + string(r.Error) + "\n"
}

// methods are the methods of a socket, by the HTTP requests that do the same.
var methods = map[string]string{
	"POST /order": "order.place", "POST /orders": "order.place_many",
	"DELETE /order": "order.cancel", "DELETE /orders": "order.cancel_many",
	"DELETE /cancel-all": "order.cancel_all", "DELETE /cancel-market-orders": "order.cancel_all",
}

// asHTTP are the options of a case that only HTTP can carry: they are about headers, or about a
// body that is not JSON.
var asHTTP = []string{"key", "keynonce", "late", "signpath", "base64", "address", "apikey",
	"passphrase", "mac", "drop", "form", "tamper", "path", "once", "cut"}

// ask sends a request of a trader: over a socket if the house has desks and a socket can carry it,
// else over HTTP.
func (h entrance) ask(w *rawRequest, o *words) string {
	h.t.Helper()
	method := methods[w.method+" "+w.path]
	plain := method != "" && (json.Valid([]byte(w.body)) || w.body == "") && len(w.body) < 1<<17
	if method == "order.cancel_all" { // without params it cancels everything
		plain = plain && (w.body == "") == (w.path == "/cancel-all") && w.body != "{}"
	}
	plain = plain && w.body != "null" && o.text("dialect", "") != "OTHER_"
	for _, name := range asHTTP {
		plain = plain && !o.has(name)
	}
	if h.desk == nil || !plain {
		if h.desk != nil {
			h.desk.not++
		}
		return h.send(w.String())
	}
	who, dialect := o.list[0], o.text("dialect", string(wire.SVC))
	c := h.desk.open[who+dialect]
	if c == nil || h.desk.fresh {
		c = h.tradingSocket()
		as := h.login(who, 0, map[string]any{"dialect": dialect})
		if r := c.call("login", as); r.Status != 200 {
			h.desk.not++
			return h.send(w.String()) // the key is revoked
		}
		h.desk.open[who+dialect] = c
	}
	h.desk.asked++
	body := w.body
	if body == "" {
		body = "null"
	}
	var more []string
	if age, ok := o.find("max-age"); ok {
		more = append(more, `"max_age_ms":"`+age+`"`)
	}
	got := c.call(method, body, more...).String()
	if h.desk.answered != nil {
		h.desk.answered()
	}
	return got
}

// notOnSockets matches the HTTP headers that no answer on a socket has.
var notOnSockets = regexp.MustCompile(`(?mi)^(RateLimit-Policy|Retry-After|Poly-Ratelimit-.*): .*\n`)

// general matches what is left of the general window: on a socket it differs, because opening
// sockets counts there, too.
var general = regexp.MustCompile(`"general";r=\d+`)

// asOnSockets changes an answer so that it is the same over HTTP and on a socket: it removes these
// headers and numbers, and sorts the other headers.
func asOnSockets(answer string) string {
	answer = general.ReplaceAllString(notOnSockets.ReplaceAllString(answer, ""), `"general"`)
	lines := strings.SplitAfter(answer, "\n")
	n := 1
	for n < len(lines) && regexp.MustCompile(`^[A-Z][A-Za-z-]+: `).MatchString(lines[n]) {
		n++
	}
	slices.Sort(lines[min(1, len(lines)):n])
	return strings.Join(lines, "")
}

// onSockets are the cases that hold on sockets, too.
var onSockets = []string{"order", "bundles", "cancels", "refused", "minimum", "modes", "strict",
	"types", "trouble", "limits", "first_use", "tokens", "records"}

// TestContractOnSockets: a request on a socket gets the same answer, and has the same effect, as
// over HTTP. The cases of heartbeats are left out, because an open socket counts as a heartbeat.
func TestContractOnSockets(t *testing.T) {
	all := desks{}
	for _, name := range onSockets {
		t.Run(name, func(t *testing.T) {
			inBubble(t, func(t *testing.T) {
				file := filepath.Join("testdata", name+".txt")
				h := newCaseHouse(t, file)
				h.desk = &desks{open: make(map[string]*trading), fresh: name == "trouble"}
				runCases(h, file, nil, nil)
				all.asked, all.not = all.asked+h.desk.asked, all.not+h.desk.not
			})
		})
	}
	t.Logf("%d requests over sockets, %d that HTTP alone can carry", all.asked, all.not)
	if all.asked < 300 {
		t.Errorf("only %d requests went over sockets", all.asked)
	}
}

// trade: TRADER METHOD, then the params as JSON on further lines, where $NAME$ stands for the value
// that has this name. Options: raw, the lines are the whole message; dialect.
func (h entrance) trade(o *words, lines []string) string {
	c := h.tradingSocket()
	if o.list[0] != "nobody" {
		c = h.loggedIn(o.list[0], map[string]any{"dialect": o.text("dialect", "POLY_")})
	}
	text := h.fill(strings.Join(lines, ""))
	if o.list[1] == "raw" {
		c.say(text)
	} else {
		c.ask(o.list[1], text)
	}
	return h.heard(c)
}

// heard returns the next answer in the form in which the cases show it.
func (h entrance) heard(c *trading) string {
	var r reply
	got := c.text()
	if h.seen != nil {
		h.seen.answer(got)
	}
	if err := json.Unmarshal([]byte(got), &r); err != nil {
		return got + "\n" // the house's stub about an account is not JSON
	}
	return "id " + string(r.ID) + "\n" + r.String()
}

// replace: TRADER SIDE OUTCOME SIZE @ PRICE for=ID, then options.
func (h entrance) replace(o *words) string {
	x, _ := h.parseOrder(o)
	old := o.text("for", "")
	if id, ok := h.names[old]; ok {
		old = id.Hex()
	}
	c := h.loggedIn(o.list[0], map[string]any{"dialect": o.text("dialect", "POLY_")})
	c.ask("order.replace", fmt.Sprintf(`{"cancel":{"orderID":%q},"place":%s}`, old,
		h.orderBody(x, o.list[0], o)))
	return h.heard(c)
}

// enter: TRADER, then options.
func (h entrance) enter(o *words) string {
	more := map[string]any{}
	if on, ok := o.find("cancel_on_disconnect"); ok {
		more["cancel_on_disconnect"] = on == "true"
	}
	if o.has("grace_ms") {
		more["grace_ms"] = o.number("grace_ms", 0)
	}
	trio := h.keyring.Derive(trader(o.list[0]).Address, 0)
	r := auth.Request{Timestamp: strconv.FormatInt(h.now()+int64(o.number("late", 0)), 10),
		Method: "GET", Path: o.text("signpath", tradePath)}
	if err := trio.Sign(&r); err != nil {
		h.t.Fatal(err)
	}
	if o.has("late") || o.has("signpath") {
		more["timestamp"], more["signature"] = r.Timestamp, r.Signature
	}
	c, all := h.tradingSocket(), h.login(o.list[0], 0, more)
	if o.has("nested") {
		b, _ := json.Marshal(map[string]any{"type": "trade", "auth": all})
		c.say(string(b))
	} else {
		c.ask("login", all)
	}
	return h.heard(c)
}

// longMasked is masked for a message of any length below 64 KiB.
func longMasked(text string) string {
	if len(text) < 126 {
		return masked(text)
	}
	return "\x81\xfe" + string([]byte{byte(len(text) >> 8), byte(len(text)), 0, 0, 0, 0}) + text
}

// readText reads a text message of less than 64 KiB.
func readText(t *testing.T, r *bufio.Reader) string {
	t.Helper()
	head := make([]byte, 2)
	if _, err := io.ReadFull(r, head); err != nil {
		t.Fatal(err)
	}
	n := int(head[1])
	if n == 126 {
		if _, err := io.ReadFull(r, head); err != nil {
			t.Fatal(err)
		}
		n = int(head[0])<<8 | int(head[1])
	}
	text := make([]byte, n)
	if _, err := io.ReadFull(r, text); err != nil {
		t.Fatal(err)
	}
	return string(text)
}
