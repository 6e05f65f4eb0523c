package ingress

import (
	"context"
	"fmt"
	"math/rand/v2"
	"net"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/fasthttp/websocket"
	"github.com/goccy/go-json"
	"github.com/prometheus/client_golang/prometheus"
	"github.com/valyala/fasthttp"

	"clobd/api/wire"
	"clobd/engine"
	"clobd/scripts/asyncapi"
)

// order returns the body of a new order of a trader, and the id of the order.
func (h entrance) order(name, text string, salt int) (body string, id engine.OrderID) {
	h.t.Helper()
	o := &words{strings.Fields(fmt.Sprintf("%s %s salt=%d dialect=POLY_ as=x", name, text, salt))}
	x, _ := h.parseOrder(o)
	body = h.orderBody(x, name, o)
	return body, h.names["x"]
}

// closed reads until the socket is closed, and returns the close code, the reason and the answers
// that came before.
func (c *trading) closed() (code int, text string, answers []reply) {
	c.t.Helper()
	_ = c.ws.SetReadDeadline(time.Now().Add(4 * patience))
	for {
		_, b, err := c.ws.ReadMessage()
		if e, ok := err.(*websocket.CloseError); ok {
			return e.Code, e.Text, answers
		} else if err != nil {
			return 0, err.Error(), answers
		}
		var r reply
		if err := json.Unmarshal(b, &r); err != nil {
			c.t.Fatal(err)
		}
		answers = append(answers, r)
	}
}

// commands returns the kinds and ids of all orders and cancels, in the order of the journal.
func (h entrance) commands() (ids []string) {
	var f engine.Frame
	for _, b := range h.journal.Frames() {
		if err := engine.DecodeFrame(b, &f); err != nil {
			h.t.Fatal(err)
		}
		for i := range f.Commands {
			if k := f.Commands[i].Kind; k == engine.Place || k == engine.Cancel {
				ids = append(ids, fmt.Sprint(k, f.Commands[i].ID.Hex()))
			}
		}
	}
	return ids
}

// TestEntryOrder: requests that a client sends without waiting for answers enter the journal in the
// order in which they were sent, so a cancel finds the order before it. Each request has its
// answer, however the requests were batched.
func TestEntryOrder(t *testing.T) {
	h := entrance{newHouse(t, func(o *Options) { o.Workers = 2 })}
	h.run([]string{"fund alice 100000"})
	c := h.loggedIn("alice", nil)
	var want, texts []string
	words := map[string]string{}
	const rounds = 60
	add := func(word, method, params string) {
		no := strconv.Itoa(len(texts))
		words[no] = word
		text := fmt.Sprintf(`{"id":%s,"method":%q,"params":%s}`, no, method, params)
		if err := asyncapi.CheckSent(tradePath, []byte(text)); err != nil {
			t.Errorf("%v: %s", err, text)
		}
		texts = append(texts, text)
	}
	for i := range rounds {
		body, id := h.order("alice", "buy A 10 @ 0.40", i)
		next, nextID := h.order("alice", "buy A 10 @ 0.41", 1000+i)
		add("live", "order.place", body)
		add(`{"canceled":"`+id.Hex(), "order.replace",
			fmt.Sprintf(`{"cancel":{"orderID":%q},"place":%s}`, id.Hex(), next))
		add(`{"canceled":["`+nextID.Hex(), "order.cancel", `{"orderID":"`+nextID.Hex()+`"}`)
		add("server_ts_ms", "ping", "null")
		want = append(want, fmt.Sprint(engine.Place, id.Hex()), fmt.Sprint(engine.Place, nextID.Hex()),
			fmt.Sprint(engine.Cancel, nextID.Hex()))
	}
	room := make(chan struct{}, testRing/2)
	go func() {
		for _, text := range texts {
			room <- struct{}{}
			_ = c.ws.WriteMessage(websocket.TextMessage, []byte(text))
		}
	}()
	for range texts {
		r := c.hear()
		<-room
		if word := words[string(r.ID)]; r.Status != 200 || word == "" ||
			!strings.Contains(string(r.Result), word) {
			t.Errorf("answer %s: %d %s%s, want %s", r.ID, r.Status, r.Result, r.Error, word)
		}
		delete(words, string(r.ID))
	}
	if got := h.commands(); strings.Join(got, " ") != strings.Join(want, " ") {
		t.Errorf("the journal has another order:\n%s\nwant\n%s", got, want)
	}
}

// TestEntryTogether: requests that arrive in one TCP segment are answered in few writes.
func TestEntryTogether(t *testing.T) {
	h := entrance{newHouse(t, nil)}
	h.run([]string{"fund alice 100000"})
	d := h.dial(t)
	h.logIn(t, d)
	send := func(texts ...string) {
		var all strings.Builder
		for _, text := range texts {
			all.WriteString(longMasked(text))
		}
		d.write(all.String())
	}
	next := func() string {
		t.Helper()
		return readText(t, d.reader)
	}
	var texts []string
	for i := range 16 {
		body, _ := h.order("alice", "buy A 10 @ 0.40", i)
		texts = append(texts, fmt.Sprintf(`{"id":%d,"method":"order.place","params":%s}`, i, body))
	}
	release := h.block()
	send(texts...)
	h.requested(16)
	release()
	missing := map[string]bool{}
	for i := range texts {
		missing[fmt.Sprintf(`{"id":%d,"status":200`, i)] = true
	}
	for range texts { // in any order
		got := next()
		start, _, _ := strings.Cut(got, `,"result"`)
		if !missing[start] {
			t.Errorf("answer: %s", got)
		}
		delete(missing, start)
	}
	if writes := h.figure("clobd_entry_writes_total"); writes > 8 {
		t.Errorf("16 requests were answered in %v writes", writes)
	}
}

// spoilt returns the body of an order, some of them with a fault.
func (h entrance) spoilt(dice *rand.Rand, salt int) (body string, good bool) {
	body, _ = h.order("alice", "buy A 10 @ 0.40", salt)
	switch dice.IntN(6) {
	case 0: // another r
		digit := strings.Index(body, `"signature":"0x`) + len(`"signature":"0x`) + dice.IntN(64)
		other := "1"
		if body[digit] == '1' {
			other = "2"
		}
		return body[:digit] + other + body[digit+1:], false
	case 1:
		return `{"order":7}`, false
	}
	return body, true
}

// TestEntryMixed: requests in one TCP segment, some of them with a fault, are judged as each would
// be alone, however many seats there are: a fault refuses its own request only. The signatures of a
// batch are checked together.
func TestEntryMixed(t *testing.T) {
	for _, seats := range []int{1, 2, 8} {
		t.Run(strconv.Itoa(seats), func(t *testing.T) { testEntryMixed(t, seats) })
	}
}

func testEntryMixed(t *testing.T, seats int) {
	h := entrance{newHouse(t, func(o *Options) { o.Workers = seats })}
	h.run([]string{"fund alice 100000"})
	d, alone := h.dial(t), h.loggedIn("alice", nil)
	_, r := socketAt(t, d, tradePath, "\r\n")
	b, err := json.Marshal(h.login("alice", 0, nil))
	if err != nil {
		t.Fatal(err)
	}
	d.write(longMasked(`{"id":0,"method":"login","params":` + string(b) + `}`))
	if got := readText(t, r); !strings.HasPrefix(got, `{"id":0,"status":200,`) {
		t.Fatal(got)
	}
	first, _ := h.order("alice", "buy A 10 @ 0.40", 0)
	if got := alone.call("order.place", first); got.Status != 200 {
		t.Fatal(got)
	}
	if n, _ := observed(t, h.server.metrics.together); n != 0 {
		t.Error("an order alone was checked as a list")
	}
	dice, salt := rand.New(rand.NewPCG(5, uint64(seats))), 0
	var count [2]int
	for range 20 { // alice has a table of her key after the first ones
		var all strings.Builder
		want := make([]reply, 1+dice.IntN(40))
		for i := range want {
			salt++
			body, good := h.spoilt(dice, salt)
			if want[i].Status = 200; !good {
				want[i] = alone.call("order.place", body)
			}
			count[want[i].Status/400]++
			all.WriteString(longMasked(
				fmt.Sprintf(`{"id":%d,"method":"order.place","params":%s}`, i, body)))
		}
		d.write(all.String())
		for range want { // refusals come first
			text := readText(t, r)
			for text == "" { // a ping of the node
				text = readText(t, r)
			}
			var got reply
			if err := json.Unmarshal([]byte(text), &got); err != nil {
				t.Fatal(err)
			}
			i, err := strconv.Atoi(string(got.ID))
			if err != nil || got.Status != want[i].Status || string(got.Error) != string(want[i].Error) {
				t.Fatalf("%v; want %v", got, want[i])
			}
			want[i].Status = 0 // answered
		}
	}
	n, sum := observed(t, h.server.metrics.together)
	t.Logf("%d good, %d bad, %.1f together", count[0], count[1], sum/n)
	if count[0] == 0 || count[1] == 0 || !(sum/n > 1.5) {
		t.Error("too few of a kind, or too few together")
	}
}

// observed returns how many observations a histogram has, and their sum.
func observed(t *testing.T, h prometheus.Histogram) (n, sum float64) {
	t.Helper()
	registry := prometheus.NewRegistry()
	registry.MustRegister(h)
	families, err := registry.Gather()
	if err != nil || len(families) != 1 {
		t.Fatal(families, err)
	}
	m := families[0].GetMetric()[0].GetHistogram()
	return float64(m.GetSampleCount()), m.GetSampleSum()
}

// figure returns the value of a metric of the sockets for orders.
func (h entrance) figure(name string) float64 {
	h.t.Helper()
	for _, c := range h.server.room.Collectors() {
		d := make(chan *prometheus.Desc, 1)
		if c.Describe(d); strings.Contains((<-d).String(), `"`+name+`"`) {
			return counted(h.t.(*testing.T), c)
		}
	}
	h.t.Fatal("no metric " + name)
	return 0
}

// requested waits until n requests have come, and then a moment for them to enter.
func (h entrance) requested(n float64) {
	h.t.Helper()
	for end := time.Now().Add(patience); h.figure("clobd_entry_requests_total") < n; {
		if time.Sleep(time.Millisecond); time.Now().After(end) {
			h.t.Fatal("the requests have not come")
		}
	}
	time.Sleep(50 * time.Millisecond)
}

// TestEntryInWork: a socket refuses requests while mostInWork of them are not answered yet.
func TestEntryInWork(t *testing.T) {
	inBubble(t, func(t *testing.T) {
		h := entrance{newHouse(t, func(o *Options) {
			o.Account = func(ctx *fasthttp.RequestCtx, _ engine.Address, _ wire.Dialect) {
				time.Sleep(time.Second) // the index lags
				ctx.SetBodyString("{}")
			}
		})}
		c := h.loggedIn("alice", nil)
		const asked = 300
		go func() {
			for range asked {
				c.ask("order.get", `{"orderID":"`+engine.OrderID{1}.Hex()+`"}`)
			}
		}()
		statuses := map[int]int{}
		for range asked {
			statuses[c.hear().Status]++
		}
		if statuses[200] != 256 || statuses[429] != asked-256 {
			t.Errorf("%v", statuses)
		}
	})
}

// TestCancelOnDisconnect: an open socket counts as a heartbeat of its key. When all sockets of the
// key have ended and no heartbeats come over HTTP, the orders of the key are canceled after the
// grace.
func TestCancelOnDisconnect(t *testing.T) { inBubble(t, testCancelOnDisconnect) }

func testCancelOnDisconnect(t *testing.T) {
	h := entrance{newHouse(t, nil)}
	h.run([]string{"fund alice 1000"})
	live := func() bool {
		t.Helper()
		book, outcome, _ := h.board.Book(h.market.Tokens[0])
		bid, _ := book.Best(outcome)
		return bid != 0
	}
	wait := func(seconds int) {
		t.Helper()
		h.run([]string{fmt.Sprintf("wait seconds=%d", seconds)})
	}
	gone := func(c *trading) {
		t.Helper()
		n := h.server.turnstile.Sockets()
		_ = c.ws.Close()
		awaitSockets(h.house, n-1)
	}
	arms := map[string]any{"cancel_on_disconnect": true, "grace_ms": 2000}
	a, b := h.loggedIn("alice", arms), h.loggedIn("alice", nil)
	body, _ := h.order("alice", "buy A 10 @ 0.40", 1)
	if r := a.call("order.place", body); r.Status != 200 {
		t.Fatal(r)
	}
	if wait(60); !live() {
		t.Error("canceled while two sockets were open")
	}
	gone(a)
	if wait(60); !live() {
		t.Error("canceled while one socket was open")
	}
	gone(b)
	if wait(1); !live() {
		t.Error("canceled within the grace")
	}
	if wait(1); live() {
		t.Error("not canceled after the grace")
	}
	if !strings.Contains(h.run([]string{"call alice POST /v1/heartbeats", `{"heartbeat_id":"x"}`}), "400") {
		t.Error("the key is still armed")
	}
	a = h.loggedIn("alice", arms)
	body, _ = h.order("alice", "buy A 10 @ 0.40", 2)
	a.call("order.place", body)
	gone(a)
	for range 5 { // heartbeats over HTTP count, too
		h.late.Add(1)
		h.run([]string{"call alice POST /v1/heartbeats", `{"heartbeat_id":""}`})
		h.server.beats.silence()
	}
	if !live() {
		t.Error("canceled in spite of heartbeats over HTTP")
	}
	c := h.loggedIn("alice", map[string]any{"cancel_on_disconnect": false})
	gone(c)
	if wait(60); !live() {
		t.Error("canceled although disarmed")
	}
}

// TestEntryLeaves: when the node stops, it answers the requests in work and then closes the socket.
func TestEntryLeaves(t *testing.T) {
	h := entrance{newHouse(t, nil)}
	h.run([]string{"fund alice 1000"})
	c := h.loggedIn("alice", nil)
	release := h.block()
	body, _ := h.order("alice", "buy A 10 @ 0.40", 1)
	no := c.ask("order.place", body)
	h.requested(1)
	stopped := make(chan error, 1)
	go func() {
		ctx, cancel := context.WithTimeout(context.Background(), patience)
		defer cancel()
		stopped <- h.server.Close(ctx)
	}()
	for !h.server.draining.Load() {
		time.Sleep(time.Millisecond)
	}
	late := c.ask("order.cancel_all", "")
	if r := c.hear(); string(r.ID) != strconv.Itoa(late) || r.Status != 503 {
		t.Errorf("a request while the node stops: %s %d", r.ID, r.Status)
	}
	release()
	code, text, answers := c.closed()
	if len(answers) != 1 || string(answers[0].ID) != strconv.Itoa(no) || answers[0].Status != 200 {
		t.Errorf("answers: %v", answers)
	}
	if code != websocket.CloseGoingAway || text != "the node stops" {
		t.Errorf("closed with %d %q", code, text)
	}
	if err := <-stopped; err != nil {
		t.Error(err)
	}
}

// TestEntryEnds: each reason to close a socket has its close code, text and time.
func TestEntryEnds(t *testing.T) {
	inBubble(t, func(t *testing.T) {
		h := entrance{newHouse(t, nil)}
		h.run([]string{"fund alice 1000"})
		idle := h.tradingSocket() // never logs in
		began := time.Now()
		if code, text, _ := idle.closed(); time.Since(began) > 12*time.Second || code != 1008 {
			t.Errorf("a socket without a login: %d %q after %v", code, text, time.Since(began))
		}
		early := h.tradingSocket()
		early.ask("order.cancel_all", "")
		if code, text, answers := early.closed(); code != 1008 || text != "unauthorized" ||
			len(answers) != 1 || answers[0].Status != 401 {
			t.Errorf("a request before the login: %d %q %v", code, text, answers)
		}
		dumb := h.loggedIn("alice", nil)
		dumb.ws.SetPingHandler(func(string) error { return nil }) // never answers a ping
		began = time.Now()
		if code, why, _ := dumb.closed(); time.Since(began) > 11*time.Second ||
			time.Since(began) < 9*time.Second || code != 1008 || why != "no sign of life" {
			t.Errorf("a client without a sign of life: %d %q after %v", code, why, time.Since(began))
		}
		alive := h.loggedIn("alice", nil)
		revoked := make(chan string, 1)
		go func() {
			time.Sleep(time.Minute)
			revoked <- h.carryOut([]string{"call alice DELETE /auth/api-key"})
		}()
		began = time.Now()
		if code, text, _ := alive.closed(); code != 1008 || text != "the key is revoked" ||
			time.Since(began) > 64*time.Second {
			t.Errorf("an idle socket of a revoked key: %d %q after %v", code, text, time.Since(began))
		}
		if got := <-revoked; !strings.HasPrefix(got, "200\n") {
			t.Error(got)
		}
		busy := h.loggedIn("bob", nil)
		h.run([]string{"fund bob 1000"})
		h.run([]string{"call bob DELETE /auth/api-key"})
		busy.ask("order.cancel_all", "")
		if code, _, answers := busy.closed(); code != 1008 || len(answers) != 1 ||
			answers[0].Status != 401 {
			t.Errorf("a socket of a revoked key: %d %v", code, answers)
		}
		noisy := h.loggedIn("carol", nil)
		go func() {
			for range 200 {
				if noisy.ws.WriteMessage(websocket.TextMessage, []byte("noise")) != nil {
					return
				}
			}
		}()
		if code, text, _ := noisy.closed(); code != 1008 || text != "too many messages" {
			t.Errorf("200 texts that mean nothing: %d %q", code, text)
		}
	})
}

// TestEntrySlow: the node closes the socket of a client that does not read its answers.
func TestEntrySlow(t *testing.T) {
	h := entrance{newHouse(t, nil)}
	ln, err := net.Listen("tcp4", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	go func() { _ = h.server.Serve(ln) }() // ends when the house closes
	ws, _, err := websocket.DefaultDialer.Dial("ws://"+ln.Addr().String()+tradePath, nil)
	if err != nil {
		t.Fatal(err)
	}
	defer ws.Close()
	c := &trading{t: t, ws: ws}
	if r := c.call("login", h.login("alice", 0, nil)); r.Status != 200 {
		t.Fatal(r)
	}
	ids := make([]string, 1000)
	for i := range ids {
		ids[i] = `"` + engine.OrderID{30: byte(i >> 8), 31: byte(i)}.Hex() + `"`
	}
	many := fmt.Sprintf(`{"id":1,"method":"order.cancel_many","params":[%s]}`, strings.Join(ids, ","))
	end := time.Now().Add(patience)
	for h.server.turnstile.Sockets() > 0 && time.Now().Before(end) { // answers are longer
		_ = ws.SetWriteDeadline(time.Now().Add(time.Second))
		if ws.WriteMessage(websocket.TextMessage, []byte(many)) != nil {
			break
		}
	}
	awaitSockets(h.house, 0)
	if n := h.figure("clobd_entry_closes_total"); n != 1 {
		t.Errorf("%v sockets closed by the node", n)
	}
}
