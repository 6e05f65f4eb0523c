package ingress

import (
	"context"
	"fmt"
	"net"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/fasthttp/websocket"
	"github.com/valyala/fasthttp"

	"clobd/api/wire"
	"clobd/engine"
	"clobd/ingress/limits"
)

// overTCP opens a socket for orders over TCP and logs a trader in. Unlike in-memory connections,
// TCP keeps what the client does not read in the kernel.
func (h entrance) overTCP(t *testing.T, name string) *trading {
	t.Helper()
	ln, err := net.Listen("tcp4", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	go func() { _ = h.server.Serve(ln) }() // ends when the house closes
	ws, _, err := websocket.DefaultDialer.Dial("ws://"+ln.Addr().String()+tradePath, nil)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = ws.Close() })
	c := &trading{t: t, ws: ws}
	if r := c.call("login", h.login(name, 0, nil)); r.Status != 200 {
		t.Fatal(r)
	}
	return c
}

// TestEntryFarewell: a client that reads late still gets the answers that were ready when the node
// began to stop.
func TestEntryFarewell(t *testing.T) {
	h := entrance{newHouse(t, func(o *Options) {
		o.Account = func(ctx *fasthttp.RequestCtx, _ engine.Address, _ wire.Dialect) {
			ctx.SetBodyString(`{"text":"` + strings.Repeat("x", 60<<10) + `"}`)
		}
	})}
	c := h.overTCP(t, "alice")
	const asked = 12
	for range asked {
		c.ask("order.get", `{"orderID":"`+engine.OrderID{1}.Hex()+`"}`)
	}
	h.requested(asked)
	stopped := make(chan error, 1)
	go func() {
		ctx, cancel := context.WithTimeout(context.Background(), patience)
		defer cancel()
		stopped <- h.server.Close(ctx)
	}()
	time.Sleep(300 * time.Millisecond)
	c.odd = true
	code, text, answers := c.closed()
	if len(answers) != asked || code != websocket.CloseGoingAway {
		t.Errorf("%d of %d answers, and then %d %q", len(answers), asked, code, text)
	}
	if err := <-stopped; err != nil {
		t.Error(err)
	}
}

// talkative returns a house whose answers about accounts are n bytes long, and such a result.
func talkative(t *testing.T, n int) (h entrance, result string) {
	result = `{"text":"` + strings.Repeat("x", n-len(`{"text":""}`)) + `"}`
	return entrance{newHouse(t, func(o *Options) {
		o.Account = func(ctx *fasthttp.RequestCtx, _ engine.Address, _ wire.Dialect) {
			ctx.SetBodyString(result)
		}
	})}, result
}

// TestEntryLongAnswer: a client that reads gets an answer that is longer than maxBehind.
func TestEntryLongAnswer(t *testing.T) {
	h, want := talkative(t, 5<<20)
	c := h.overTCP(t, "alice")
	c.odd = true
	c.ask("order.get", `{"orderID":"`+engine.OrderID{1}.Hex()+`"}`)
	if r := c.hear(); string(r.Result) != want {
		t.Errorf("%d bytes instead of %d, or other ones", len(r.Result), len(want))
	}
}

// TestEntryPongAmidAnswer: pongs that the node sends while the client has read only a part of a
// long answer are not taken for a part of that answer.
func TestEntryPongAmidAnswer(t *testing.T) {
	h, want := talkative(t, 2<<20)
	c := h.overTCP(t, "alice")
	pongs := ""
	c.ws.SetPongHandler(func(text string) error {
		pongs += text
		return nil
	})
	c.odd = true
	c.ask("order.get", `{"orderID":"`+engine.OrderID{1}.Hex()+`"}`)
	h.requested(1)
	for _, text := range []string{"a", "b", "c"} {
		err := c.ws.WriteControl(websocket.PingMessage, []byte(text), time.Now().Add(patience))
		if err != nil {
			t.Fatal(err)
		}
		time.Sleep(50 * time.Millisecond) // for the node to answer
	}
	if r := c.hear(); string(r.Result) != want {
		t.Fatalf("%d bytes instead of %d, or other ones", len(r.Result), len(want))
	}
	c.say("PING")
	if text := c.text(); text != "PONG" || pongs != "abc" {
		t.Errorf("then %q, and pongs: %q", text, pongs)
	}
}

// TestEntryStrays: a client that sends too many messages that no window counts is closed, whatever
// is wrong with the messages.
func TestEntryStrays(t *testing.T) {
	for _, text := range []string{"noise", `{"id":1,"method":"order.take"}`, `{"id":1,"method":"login"}`,
		`{"id":1,"method":"ping"}`} {
		inBubble(t, func(t *testing.T) {
			h := entrance{newHouse(t, nil)}
			c := h.loggedIn("alice", nil)
			go func() {
				for range 200 {
					if c.ws.WriteMessage(websocket.TextMessage, []byte(text)) != nil {
						return
					}
				}
			}()
			if code, why, answers := c.closed(); code != 1008 || why != "too many messages" ||
				len(answers) > 101 {
				t.Errorf("%s: %d %q after %d answers", text, code, why, len(answers))
			}
		})
	}
}

// TestEntryUnblocked: a request that waits for the index, or whose client must rest, does not delay
// a cancel that was sent after it.
func TestEntryUnblocked(t *testing.T) {
	inBubble(t, func(t *testing.T) {
		h := entrance{newHouse(t, func(o *Options) {
			o.Windows = limits.New(o.Now)
			o.Await = func(_ engine.Sequence, d time.Duration) bool {
				time.Sleep(d)
				return false
			}
		})}
		h.run([]string{"fund alice 1000"})
		c := h.loggedIn("alice", nil)
		ask := func(method, params string) {
			t.Helper()
			began, no := time.Now(), c.ask(method, params)
			cancel := c.ask("order.cancel_all", "")
			r := c.hear()
			if string(r.ID) != strconv.Itoa(cancel) || r.Status != 200 ||
				time.Since(began) > time.Millisecond {
				t.Errorf("behind %s: %s %d after %v", method, r.ID, r.Status, time.Since(began))
			}
			if r := c.hear(); string(r.ID) != strconv.Itoa(no) {
				t.Errorf("%s was answered as %s", method, r.ID)
			}
		}
		bad, _ := h.order("alice", "buy A 10 @ 0.40 kind=FOK post-only", 1)
		ask("order.place_many", "["+bad+","+bad+"]")
		ask("order.place", bad)
		ask("order.cancel", `{"orderID":"`+engine.OrderID{1}.Hex()+`"}`)
		forged, _ := h.order("alice", "buy A 10 @ 0.40", 2)
		forged = strings.Replace(forged, `"salt":2`, `"salt":3`, 1)
		failed := 0
		for range 300 {
			if r := c.call("order.place", forged); r.Status == 429 {
				failed = r.Status
				break
			}
		}
		if failed != 429 {
			t.Fatal("there is no bound on wrong signatures")
		}
		ask("order.place", forged)
	})
}

// TestEntryReadsOwnWrites: a read that was sent after an order is answered after the order.
func TestEntryReadsOwnWrites(t *testing.T) {
	h := entrance{newHouse(t, nil)}
	h.run([]string{"fund alice 1000"})
	c := h.loggedIn("alice", nil)
	release := h.block()
	body, id := h.order("alice", "buy A 10 @ 0.40", 1)
	c.ask("order.place", body)
	c.ask("order.get", `{"orderID":"`+id.Hex()+`"}`)
	h.requested(2)
	release()
	if r := c.hear(); r.Status != 200 || !strings.Contains(string(r.Result), `"live"`) {
		t.Errorf("first %d %s", r.Status, r.Result)
	}
	if text := c.text(); !strings.Contains(text, "account /data/order/"+id.Hex()) {
		t.Error(text)
	}
}

// TestEntryArmsInTime: a key keeps its orders if its grace runs out while a login of its next
// socket is waiting for the disk.
func TestEntryArmsInTime(t *testing.T) {
	inBubble(t, func(t *testing.T) {
		h := entrance{newHouse(t, nil)}
		h.run([]string{"fund alice 1000"})
		arms := map[string]any{"cancel_on_disconnect": true, "grace_ms": 2000}
		a := h.loggedIn("alice", arms)
		body, _ := h.order("alice", "buy A 10 @ 0.40", 1)
		if r := a.call("order.place", body); r.Status != 200 {
			t.Fatal(r)
		}
		_ = a.ws.Close()
		awaitSockets(h.house, 0)
		h.late.Add(60)
		release, b := h.block(), h.tradingSocket()
		arms["grace_ms"] = 3000 // another grace, so that the login waits for the disk
		b.ask("login", h.login("alice", 0, arms))
		time.Sleep(time.Second)
		h.server.beats.silence()
		release()
		if r := b.hear(); r.Status != 200 || !strings.Contains(string(r.Result), `"grace_ms":3000`) {
			t.Fatalf("%d %s%s", r.Status, r.Result, r.Error)
		}
		book, outcome, _ := h.board.Book(h.market.Tokens[0])
		if bid, _ := book.Best(outcome); bid == 0 {
			t.Error("its order is canceled")
		}
		if grace := h.server.beats.grace(beatKey{1, 0}); grace != 3*time.Second {
			t.Errorf("the key is armed with %v", grace)
		}
	})
}

// TestEntryLogins: the close code tells a client whose login was refused whether to try again.
func TestEntryLogins(t *testing.T) {
	inBubble(t, func(t *testing.T) {
		h := entrance{newHouse(t, func(o *Options) { o.Windows = limits.New(o.Now) })}
		wrong := map[string]any{"signature": strings.Repeat("0", 64)}
		statuses := map[string]int{}
		for range 25 {
			c := h.tradingSocket()
			r := c.call("login", h.login("alice", 0, wrong))
			code, why, _ := c.closed()
			statuses[fmt.Sprint(r.Status, " ", code, " ", why)]++
		}
		if statuses["401 1008 unauthorized"] != 20 || statuses["429 1013 try again later"] != 5 {
			t.Error(statuses)
		}
		idle := h.tradingSocket()
		if code, why, _ := idle.closed(); code != 1008 || why != "no login in time" {
			t.Errorf("no login: %d %q", code, why)
		}
		c := h.tradingSocket()
		c.say(`{"id":1,"method":"login","params":{"apiKey":"` + strings.Repeat("x", 5000) + `"}}`)
		if code, _, _ := c.closed(); code != 1009 {
			t.Errorf("a long login: %d", code)
		}
	})
}
