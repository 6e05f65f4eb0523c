package main

import (
	"encoding/json"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/fasthttp/websocket"

	"clobd/ingress/auth"
	"clobd/scripts/asyncapi"
	"clobd/scripts/setting"
)

// ordersSocket is the client's end of a trader's socket for orders.
type ordersSocket struct {
	t  *testing.T
	x  *actor
	ws *websocket.Conn
}

// entryAnswer is an answer on a socket for orders.
type entryAnswer struct {
	ID     int             `json:"id"`
	Status int             `json:"status"`
	Result json.RawMessage `json:"result"`
	Error  json.RawMessage `json:"error"`
}

// openOrders opens a socket for orders and logs the trader in. more are further params of the
// login.
func (x *actor) openOrders(t *testing.T, node *process, more map[string]any) *ordersSocket {
	t.Helper()
	ws, _, err := websocket.DefaultDialer.Dial("ws://"+node.listen+"/ws/trade", nil) //nolint:bodyclose // 101
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { ws.Close() })
	r := auth.Request{Timestamp: strconv.FormatInt(time.Now().Unix(), 10), Method: "GET",
		Path: "/ws/trade"}
	if err := x.Trio.Sign(&r); err != nil {
		t.Fatal(err)
	}
	params := map[string]any{"apiKey": r.Key, "passphrase": r.Passphrase, "timestamp": r.Timestamp,
		"signature": r.Signature}
	for k, v := range more {
		params[k] = v
	}
	s := &ordersSocket{t, x, ws}
	if err := ws.WriteJSON(map[string]any{"id": -1, "method": "login", "params": params}); err != nil {
		t.Fatal(err)
	}
	if a, err := s.hear(); err != nil || a.Status != 200 {
		t.Fatalf("log in: %v %v %s", err, a, a.Error)
	}
	return s
}

// ask sends a request with an id.
func (s *ordersSocket) ask(id int, method string, params any) error {
	text, err := json.Marshal(map[string]any{"id": id, "method": method, "params": params})
	if err != nil {
		s.t.Fatal(err)
	}
	if err := asyncapi.CheckSent("/ws/trade", text); err != nil {
		s.t.Errorf("%v: %s", err, text)
	}
	return s.ws.WriteMessage(websocket.TextMessage, text)
}

// hear reads the next answer.
func (s *ordersSocket) hear() (a entryAnswer, err error) {
	_ = s.ws.SetReadDeadline(time.Now().Add(patience))
	_, text, err := s.ws.ReadMessage()
	if err != nil {
		return a, err
	}
	if err := asyncapi.Check("/ws/trade", text); err != nil {
		s.t.Errorf("%v: %s", err, text)
	}
	return a, json.Unmarshal(text, &a)
}

// inFlight is how many unanswered requests each trader keeps.
const inFlight = 16

// trade places, cancels and replaces orders until the socket ends, and counts the orders that were
// acknowledged.
func (s *ordersSocket) trade(acknowledged *atomic.Int64) {
	type request struct{ placed, ended *intent }
	work, next := map[int]request{}, 0
	for {
		for len(work) < inFlight {
			i := s.x.draw(s.t)
			r, method, params := request{placed: i}, "order.place", any(json.RawMessage(i.body))
			old := s.x.resting()
			switch what := s.x.rand.IntN(4); {
			case what == 0 && old != nil:
				r = request{ended: old}
				method, params = "order.cancel", map[string]string{"orderID": old.id.Hex()}
			case what == 1 && old != nil:
				r.ended = old
				method, params = "order.replace", map[string]any{
					"cancel": map[string]string{"orderID": old.id.Hex()}, "place": json.RawMessage(i.body)}
			}
			if r.placed != nil {
				s.x.sent = append(s.x.sent, r.placed)
			}
			next++
			work[next] = r
			if s.ask(next, method, params) != nil {
				return
			}
		}
		a, err := s.hear()
		if err != nil {
			return
		}
		r := work[a.ID]
		delete(work, a.ID)
		acknowledged.Add(s.note(&a, r.placed, r.ended))
	}
}

// resting returns an order that was acknowledged and that no answer has canceled, or nil.
func (x *actor) resting() *intent {
	for range 4 {
		if len(x.sent) == 0 {
			return nil
		}
		if i := x.sent[x.rand.IntN(len(x.sent))]; i.answered && !i.canceled {
			return i
		}
	}
	return nil
}

// note records what an answer promises. It returns 1 if the answer acknowledges an order.
func (s *ordersSocket) note(a *entryAnswer, placed, ended *intent) int64 {
	result := string(a.Result)
	switch {
	case a.Status == 200:
	case a.Status == 503, a.Status == 400 && strings.Contains(string(a.Error), "not_replaced"):
		return 0
	default:
		s.t.Errorf("answer %d: %d %s", a.ID, a.Status, a.Error)
		return 0
	}
	if ended != nil && strings.Contains(result, `"canceled":["`+ended.id.Hex()) ||
		ended != nil && strings.Contains(result, `"canceled":"`+ended.id.Hex()) {
		ended.canceled = true
	}
	if placed == nil {
		return 0
	}
	if !strings.Contains(result, `"orderID":"`+placed.id.Hex()+`"`) {
		s.t.Errorf("order %s was answered %s", placed.id.Hex(), result)
	}
	placed.answered = true
	return 1
}

// TestEntry: after a kill -9 with requests in flight on sockets for orders, each order that was
// acknowledged exists, and each order that was canceled is over. CLOBD_SIZE is the number of kills.
func TestEntry(t *testing.T) {
	t.Parallel()
	w := newWorldOf(t, 3, 2)
	var acknowledged atomic.Int64
	for range setting.Size(t, 6, 3) {
		var group sync.WaitGroup
		before := acknowledged.Load()
		for _, x := range w.traders {
			s := x.openOrders(t, w.node, nil)
			group.Go(func() { s.trade(&acknowledged) })
		}
		time.Sleep(time.Duration(50+w.rand.IntN(250)) * time.Millisecond)
		waitFor(t, "an order that is acknowledged", func() bool { return acknowledged.Load() > before })
		w.node.kill(t)
		group.Wait()
		w.node.start(t)
	}
	for _, x := range w.traders {
		for _, i := range x.sent {
			r, known, err := x.lookup(i)
			switch {
			case err != nil:
				t.Fatal(err)
			case i.answered && !known:
				t.Errorf("order %s was acknowledged, and is gone", i.id.Hex())
			case i.canceled && strings.EqualFold(r.Status, "live"):
				t.Errorf("order %s was canceled, and is live", i.id.Hex())
			}
		}
	}
	t.Logf("figures: entry_acknowledged=%d", acknowledged.Load())
}

// TestDisconnectThroughRestart: after a kill -9, a key with cancel_on_disconnect loses its orders
// one grace after the start, unless a socket of the key opens before.
func TestDisconnectThroughRestart(t *testing.T) {
	setting.Full(t, "it waits for heartbeats to end")
	t.Parallel()
	grace := 2 * time.Second
	for !disconnectThroughRestart(t, grace) {
		if grace *= 2; grace > 32*time.Second {
			t.Fatal("no socket was opened within a grace")
		}
	}
}

// disconnectThroughRestart returns false if the node, or the socket that opens again, was too slow
// for the grace.
func disconnectThroughRestart(t *testing.T, grace time.Duration) (inTime bool) {
	t.Helper()
	w := newWorldOf(t, 2, 2)
	defer w.node.stop(t)
	w.traders[0].outcomes, w.traders[1].outcomes = w.tokens[:2], w.tokens[2:] // no trades
	arms := map[string]any{"cancel_on_disconnect": true, "grace_ms": grace.Milliseconds()}
	var orders [2]*intent
	for n, x := range w.traders {
		s := x.openOrders(t, w.node, arms)
		orders[n] = x.draw(t)
		if err := s.ask(1, "order.place", json.RawMessage(orders[n].body)); err != nil {
			t.Fatal(err)
		}
		if a, err := s.hear(); err != nil || a.Status != 200 {
			t.Fatalf("%v %v %s", err, a, a.Error)
		}
	}
	w.node.kill(t)
	begun := time.Now()
	w.node.start(t)
	back := w.traders[1].openOrders(t, w.node, nil)
	if took := time.Since(begun); took >= grace {
		t.Logf("again: the socket was open after %v", took)
		return false
	}
	status := func(n int) string {
		r, known, err := w.traders[n].lookup(orders[n])
		if err != nil || !known {
			t.Fatalf("order %d: %v %v", n, known, err)
		}
		return strings.ToLower(r.Status)
	}
	for end := time.Now().Add(patience); status(0) == "live"; time.Sleep(20 * time.Millisecond) {
		if time.Now().After(end) {
			t.Fatal("the order of the key that stayed away is live")
		}
	}
	time.Sleep(grace)
	if got := status(1); got != "live" {
		t.Errorf("the order of the key that came back is %s", got)
	}
	_ = back.ws.Close()
	for end := time.Now().Add(patience); status(1) == "live"; time.Sleep(20 * time.Millisecond) {
		if time.Now().After(end) {
			t.Fatal("the order is live although its socket has ended")
		}
	}
	return true
}
