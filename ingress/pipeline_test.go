package ingress

import (
	"bytes"
	"fmt"
	"io"
	"math/rand/v2"
	"net"
	"net/netip"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/valyala/fasthttp"

	"clobd/api/wire"
	"clobd/engine"
	"clobd/ingress/conn"
	"clobd/ingress/head"
)

// trades makes c a connection over which an order has come.
func (h *house) trades(t *testing.T, c *dialed) {
	t.Helper()
	c.write(h.rawOrder("alice buy A 5 @ 0.10 salt=77"))
	c.live()
	awaitIdle(t, h.server.pool)
}

// rawSigned is a request with a body, or without.
func (h *house) rawSigned(method, path, body string) string {
	w := rawRequest{method: method, path: path, body: body}
	h.signed(&w, "alice", &words{})
	return w.String()
}

// TestWhatFollowsAnOrderNeedsNoSecondPlace: the answer to an order is not written while another
// request is there already, which must not wait for one place while it holds the only one.
func TestWhatFollowsAnOrderNeedsNoSecondPlace(t *testing.T) {
	var running atomic.Int32
	var h *house
	h = newHouse(t, func(o *Options) {
		o.Account = func(ctx *fasthttp.RequestCtx, _ engine.Address, _ wire.Dialect) {
			running.Store(int32(runningNow(h.server.pool)))
			ctx.SetBodyString("account")
		}
	})
	h.run([]string{"fund alice 100"})
	c := h.dial(t)
	order := func(salt int) string {
		return h.rawOrder(fmt.Sprintf("alice buy A 5 @ 0.10 salt=%d", salt))
	}
	_, one, _ := strings.Cut(order(3), "\r\n\r\n")
	list := h.rawSigned("POST", "/orders", "["+one+"]")
	c.write(order(1) + list + order(2) + h.rawSigned("GET", "/data/orders", ""))
	for i := range 3 {
		if got := c.answer(); !strings.Contains(got, `"status":"live"`) {
			t.Errorf("answer %d: %s", i, got)
		}
	}
	if got := c.answer(); !strings.Contains(got, "account") || running.Load() != 0 {
		t.Errorf("%s with %d places taken", got, running.Load())
	}
	awaitIdle(t, h.server.pool)
}

// TestBodyThatLooksLikeAnOrderHoldsNoPlace: what comes in the second part of a list's body may
// begin as an order does.
func TestBodyThatLooksLikeAnOrderHoldsNoPlace(t *testing.T) {
	h := newHouse(t, nil)
	h.run([]string{"fund alice 100"})
	c := h.dial(t)
	h.trades(t, c)
	_, one, _ := strings.Cut(h.rawOrder("alice buy A 5 @ 0.10 salt=3"), "\r\n\r\n")
	first := `[` + one + `,"`
	list := h.rawSigned("POST", "/orders", first+head.OrderStart+`"]`)
	at := strings.Index(list, head.OrderStart+`"]`)
	c.write(list[:at])
	time.Sleep(20 * time.Millisecond)
	c.write(list[at:])
	c.live()
	awaitIdle(t, h.server.pool)
}

// TestPipelinedOrdersTakeTurns: the second order of a pipeline waits behind whoever was there
// before it, though the first one's answer had a place.
func TestPipelinedOrdersTakeTurns(t *testing.T) {
	looked := make(chan string, 8)
	h := newHouse(t, func(o *Options) {
		past := o.Past
		o.Past = func(id engine.OrderID) (engine.Receipt, bool, engine.Sequence, error) {
			looked <- "order"
			return past(id)
		}
	})
	h.run([]string{"fund alice 100"})
	p, c := h.server.pool, h.dial(t)
	unlock := h.block()
	c.write(h.rawOrder("alice buy A 5 @ 0.10 salt=1") + h.rawOrder("alice buy A 5 @ 0.10 salt=2"))
	if got := <-looked; got != "order" {
		t.Fatal(got)
	}
	awaitIdle(t, p) // the first one is in the ring
	release := sync.OnceFunc(occupy(t, p))
	defer release()
	waits := line{t: t}
	waits.queue(p, 9, func() { looked <- "somebody else" })
	p.back(newWaiter()) // the place that only answers have
	unlock()
	awaitBack(t, p)
	release()
	p.leave(alone)
	waits.joined.Wait()
	if got := <-looked; got != "somebody else" {
		t.Errorf("%s was next", got)
	}
	for range 2 {
		c.live()
	}
	awaitIdle(t, p)
}

// TestRefusalOfAPlaceIsForOneRequest: what was refused a place, before anybody asked who sent it,
// leaves nothing behind for the next order.
func TestRefusalOfAPlaceIsForOneRequest(t *testing.T) {
	h := newHouse(t, nil)
	h.run([]string{"fund alice 100"})
	p, c := h.server.pool, h.dial(t)
	h.trades(t, c)
	release := sync.OnceFunc(occupy(t, p))
	defer release()
	roomForOne(p)
	waits := line{t: t}
	waits.queue(p, 1, func() {})
	c.write("POST /order HTTP/1.1\r\nHost: x\r\nContent-Length: 0\r\n\r\n")
	if got := c.answer(); !strings.HasPrefix(got, "503") {
		t.Fatal(got)
	}
	release()
	waits.joined.Wait()
	order := h.rawOrder("alice buy A 5 @ 0.10 salt=2")
	c.write(strings.Replace(order, "POST /order ", "POST /clob/order ", 1))
	c.live()
	awaitIdle(t, p)
}

// TestBodyIsNoOrder: a body whose bytes look like the beginning of an order takes no place. Its
// request could wait for a second one, and nobody would ever work again.
func TestBodyIsNoOrder(t *testing.T) {
	var p *pool
	running := make(chan int, 1)
	h := newHouse(t, func(o *Options) {
		o.Public = func(*fasthttp.RequestCtx) { running <- runningNow(p) }
	})
	p = h.server.pool
	h.run([]string{"fund alice 100"})
	c := h.dial(t)
	h.trades(t, c)
	c.write("POST /books HTTP/1.1\r\nHost: x\r\nTransfer-Encoding: chunked\r\n\r\nc\r\n")
	time.Sleep(20 * time.Millisecond) // what comes together is read together
	c.write(head.OrderStart + "\r\n0\r\n\r\n")
	if got := c.answer(); !strings.HasPrefix(got, "200") {
		t.Fatal(got)
	}
	if n := <-running; n != 0 {
		t.Errorf("%d places are taken", n)
	}
}

// tcpPair is both ends of a connection, which the test closes when it ends.
func tcpPair(t *testing.T) (near, far net.Conn) {
	t.Helper()
	ln, err := net.Listen("tcp4", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer ln.Close()
	if far, err = net.Dial("tcp4", ln.Addr().String()); err != nil {
		t.Fatal(err)
	}
	if near, err = ln.Accept(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		_ = far.Close()
		_ = near.Close()
	})
	return near, far
}

// connOver is a connection of orders over near, whose client is waited for as long as a test runs.
func connOver(t *testing.T, near net.Conn, p *pool) *orderConn {
	t.Helper()
	turnstile := conn.NewTurnstile(conn.Options{Most: 1, MostPerAddress: 1})
	turnstile.Timeouts = conn.Timeouts{Request: time.Hour, Idle: time.Hour, Answer: time.Hour}
	ln := &oneListener{conns: make(chan net.Conn, 1)}
	ln.conns <- near
	c, err := turnstile.Listen(ln).Next()
	if err != nil {
		t.Fatal(err)
	}
	return &orderConn{Conn: c, seat: newSeat(p), server: new(Server),
		lines: conn.NewLineWatch()}
}

// TestUnreadAnswersHoldNoPlace: whoever does not read what he is told keeps nobody waiting.
func TestUnreadAnswersHoldNoPlace(t *testing.T) {
	near, far := tcpPair(t)
	p := unhurry(newPool(1))
	c := connOver(t, near, p)
	text := make([]byte, 32<<20)
	for i := range text {
		text[i] = byte(rand.N(256))
	}
	if err := c.seat.take(engine.Address{1}, true); err != nil {
		t.Fatal(err)
	}
	var joined sync.WaitGroup
	var wrote int
	var err error
	joined.Go(func() { wrote, err = c.Write(text) })
	awaitIdle(t, p)
	got := make([]byte, len(text))
	_ = far.SetReadDeadline(time.Now().Add(4 * patience))
	if _, e := io.ReadFull(far, got); e != nil || !bytes.Equal(got, text) {
		t.Errorf("what arrived differs from what was written: %v", e)
	}
	joined.Wait()
	if err != nil || wrote != len(text) {
		t.Errorf("wrote %d of %d: %v", wrote, len(text), err)
	}
	if err := c.seat.take(engine.Address{1}, true); err != nil {
		t.Fatal(err)
	}
	_ = c.Close()
	if _, err := c.Write(text); err == nil || runningNow(p) != 0 {
		t.Errorf("write to a closed connection: %v, %d run", err, runningNow(p))
	}
}

// TestPlacesComeBackWithTheNext: who waits since there was a reader gets the place of his before
// whoever comes next.
func TestPlacesComeBackWithTheNext(t *testing.T) {
	p := unhurry(newPool(2))
	p.reading(time.Now())
	none := engine.Address{}
	if w, err := p.enter(newWaiter(), none, false); w != nil || err != nil {
		t.Fatal(w, err)
	}
	waits, err := p.enter(newWaiter(), none, false)
	if waits == nil || err != nil {
		t.Fatal("a second place beside a reader", err)
	}
	p.read.Store(-int64(time.Hour)) // nobody reads any more
	next, err := p.enter(newWaiter(), none, false)
	if next == nil || err != nil || len(waits.turn) != 1 {
		t.Errorf("the next one went first: %v", err)
	}
	p.reading(time.Now())
	for range 2 {
		p.leave(alone)
	}
	if len(next.turn) != 1 || p.running != 1 {
		t.Errorf("%d run", p.running)
	}
}

// TestLeavingNodeTakesNoPlaceEarly: while it drains, connections that wait for their first byte are
// closed, also if that waits here.
func TestLeavingNodeTakesNoPlaceEarly(t *testing.T) {
	near, far := net.Pipe()
	defer near.Close()
	p := unhurry(newPool(1))
	c := connOver(t, near, p)
	c.seat.early = true
	for _, draining := range []bool{false, true} {
		c.server.draining.Store(draining)
		go func() { _, _ = io.WriteString(far, head.OrderStart) }()
		if _, err := c.Read(make([]byte, 64)); err != nil || (runningNow(p) == 0) != draining {
			t.Errorf("draining %v: %d run, %v", draining, runningNow(p), err)
		}
	}
}

// TestStrangersShareOneShare: keys without an account are as many as one likes.
func TestStrangersShareOneShare(t *testing.T) {
	h := newHouse(t, nil)
	h.run([]string{"fund alice 100"})
	p := h.server.pool
	release := sync.OnceFunc(occupy(t, p))
	defer release()
	for i, name := range []string{"alice", "mallory", "trudy"} {
		h.dial(t).write(h.rawOrder(name + " buy A 5 @ 0.10"))
		awaitQueue(t, p, i+1)
	}
	p.mutex.Lock()
	defer release()
	defer p.mutex.Unlock()
	if alice := p.wallets[trader("alice").Address]; alice != 1 || p.wallets[engine.Address{}] != 2 {
		t.Errorf("%d of alice, %v", alice, p.wallets)
	}
}

// TestUnfinishedOrderHoldsNoPlace: neither one whose body does not come nor one whose sender waits
// to be asked for it; nor is one taken for a peer that stands for many.
func TestUnfinishedOrderHoldsNoPlace(t *testing.T) {
	h := newHouse(t, nil)
	h.run([]string{"fund alice 100"})
	p, c := h.server.pool, h.dial(t)
	h.trades(t, c)
	order := h.rawOrder("alice buy A 5 @ 0.10 salt=2")
	c.write(order[:len(order)-9])
	time.Sleep(20 * time.Millisecond)
	awaitIdle(t, p)
	c.write(order[len(order)-9:])
	c.live()
	head, body, _ := strings.Cut(h.rawOrder("alice buy A 5 @ 0.10 salt=3"), "\r\n\r\n")
	c.write(head + "\r\nExpect: 100-continue\r\n\r\n")
	line, err := c.reader.ReadString('\n')
	if _, e := c.reader.ReadString('\n'); !strings.Contains(line, "100") || err != nil || e != nil {
		t.Fatal(line, err, e)
	}
	awaitIdle(t, p)
	c.write(body)
	c.live()
	awaitIdle(t, p)
}

// TestProxyOfManyWaitsInTheHandler: whose order comes next over a proxy's connection is not known
// before it is read.
func TestProxyOfManyWaitsInTheHandler(t *testing.T) {
	h := newHouse(t, func(o *Options) {
		o.TrustedProxies = []netip.Prefix{netip.MustParsePrefix("127.0.0.0/8")}
	})
	h.run([]string{"fund alice 100"})
	h.run([]string{"fund bob 100"})
	p, c := h.server.pool, h.dial(t)
	h.trades(t, c)
	release := sync.OnceFunc(occupy(t, p))
	defer release()
	c.write(h.rawOrder("bob buy A 5 @ 0.10"))
	awaitQueue(t, p, 1)
	p.mutex.Lock()
	bob := p.wallets[trader("bob").Address]
	p.mutex.Unlock()
	if bob != 1 {
		t.Errorf("bob has %d of the queue", bob)
	}
	release()
	c.live()
}

// TestPlacesUnderDisorder: whatever many clients send, in pieces, in pipelines, and hang up in the
// middle of, all places are free in the end and nobody waits.
func TestPlacesUnderDisorder(t *testing.T) {
	h := newHouse(t, func(o *Options) { o.Workers = 2 })
	p := h.server.pool
	p.spans.reads = readsLast // places come and go
	h.run([]string{"fund alice 100000"})
	ln, err := net.Listen("tcp4", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	go func() { _ = h.server.Serve(ln) }() // ends with the house
	var texts []string
	for i := range 24 {
		order := h.rawOrder(fmt.Sprintf("alice buy A 5 @ 0.10 salt=%d", 100+i))
		_, one, _ := strings.Cut(order, "\r\n\r\n")
		texts = append(texts, order, order+order, order[:len(order)/2],
			h.rawSigned("POST", "/orders", "["+one+"]"), order+h.rawSigned("DELETE", "/cancel-all", ""),
			"GET /book HTTP/1.1\r\nHost: x\r\n\r\n", "POST /order HTTP/1.0\r\nContent-Length: 0\r\n\r\n",
			"POST /order nonsense\r\n\r\n")
	}
	var joined sync.WaitGroup
	for client := range 16 {
		joined.Go(func() { disturb(ln.Addr().String(), texts, uint64(client)) })
	}
	joined.Wait()
	// Connections are let in one after the other: when this one is, all before it were.
	last, err := net.Dial("tcp4", ln.Addr().String())
	if err != nil {
		t.Fatal(err)
	}
	if got := ask(t, last, "GET /ok HTTP/1.1\r\nHost: x\r\n\r\n"); got[:4] != "200\n" {
		t.Fatal(got)
	}
	_ = last.Close()
	awaitOpen(t, h, 0)
	awaitIdle(t, p)
	p.mutex.Lock()
	if p.waiting != 0 || len(p.wallets) != 0 || p.answers.first != nil || p.queue.first != nil {
		t.Errorf("%d wait, of %v", p.waiting, p.wallets)
	}
	p.mutex.Unlock()
	if err := p.do(engine.Address{1}, func() {}); err != nil || p.ran.Load() == 0 {
		t.Errorf("%v, %d ran", err, p.ran.Load())
	}
}

// disturb sends texts for a while, in pieces, and hangs up now and then.
func disturb(address string, texts []string, seed uint64) {
	r := rand.New(rand.NewPCG(seed, 1))
	for range 12 {
		c, err := net.Dial("tcp4", address)
		if err != nil {
			return
		}
		_ = c.SetDeadline(time.Now().Add(time.Duration(5+r.IntN(60)) * time.Millisecond))
		go func() { _, _ = io.Copy(io.Discard, c) }() // until it is closed
		for range 1 + r.IntN(6) {
			text := texts[r.IntN(len(texts))]
			at := len(text)
			if r.IntN(3) == 0 {
				at = r.IntN(len(text))
			}
			if _, err := io.WriteString(c, text[:at]); err != nil {
				break
			}
			time.Sleep(time.Duration(r.IntN(3)) * time.Millisecond)
			if _, err := io.WriteString(c, text[at:]); err != nil {
				break
			}
		}
		time.Sleep(time.Duration(r.IntN(4)) * time.Millisecond)
		_ = c.Close()
	}
}

// rawList is a signed POST /orders of orders that rawOrder made.
func (h *house) rawList(orders ...string) string {
	for i := range orders {
		_, orders[i], _ = strings.Cut(orders[i], "\r\n\r\n")
	}
	return h.rawSigned("POST", "/orders", "["+strings.Join(orders, ",")+"]")
}

// TestListWorksInAPlace: a list waits for a place before any of it is read, has none while it is in
// the ring, and is refused as a whole if there is no room for it.
func TestListWorksInAPlace(t *testing.T) {
	looked := make(chan struct{}, 8)
	h := newHouse(t, func(o *Options) {
		past := o.Past
		o.Past = func(id engine.OrderID) (engine.Receipt, bool, engine.Sequence, error) {
			looked <- struct{}{}
			return past(id)
		}
	})
	h.run([]string{"fund alice 100"})
	p, c := h.server.pool, h.dial(t)
	list := h.rawList(h.rawOrder("alice buy A 5 @ 0.10 salt=1"),
		h.rawOrder("alice buy A 5 @ 0.10 salt=2"))
	release := sync.OnceFunc(occupy(t, p))
	defer release()
	c.write(h.rawList(`x` + "\r\n\r\n" + `{}`)) // nothing in it has a signature
	awaitQueue(t, p, 1)
	roomForOne(p) // there is none for another one
	other := h.dial(t)
	other.write(list)
	if got := other.answer(); !strings.HasPrefix(got, "503") {
		t.Error(got)
	}
	release()
	if got := c.answer(); !strings.Contains(got, "Invalid order payload") {
		t.Error(got)
	}
	awaitIdle(t, p)
	unlock := h.block()
	c.write(list)
	<-looked
	<-looked
	awaitIdle(t, p)
	if err := p.do(engine.Address{1}, func() {}); err != nil {
		t.Fatal(err)
	}
	unlock()
	if got := c.answer(); strings.Count(got, `"status":"live"`) != 2 {
		t.Error(got)
	}
	awaitIdle(t, p)
}

// TestPoolTry: a place is free for helpers only while nobody waits for one.
func TestPoolTry(t *testing.T) {
	p := unhurry(newPool(2))
	none := engine.Address{}
	for i := range 3 {
		if (p.try(1) == 1) != (i < 2) {
			t.Fatalf("%d of two places", i)
		}
	}
	w, err := p.enter(newWaiter(), none, false)
	if w == nil || err != nil {
		t.Fatal(err)
	}
	p.leave(alone)
	if p.try(1) != 0 || len(w.turn) != 1 {
		t.Error("a helper went before one who waits")
	}
	p.leave(alone)
	p.leave(alone)
	p.reading(time.Now())
	if p.try(1) != 1 {
		t.Error("nobody runs")
	}
	if w, err = p.enter(newWaiter(), none, false); w == nil || err != nil {
		t.Fatal(err)
	}
	p.read.Store(-int64(time.Hour)) // nobody reads any more
	if p.try(1) != 0 || len(w.turn) != 1 {
		t.Error("a helper went before one who waits since there was a reader")
	}
	p.leave(alone)
	p.leave(alone)
	if p.close(); p.try(1) != 0 || p.running != 0 {
		t.Errorf("a closed pool has %d running", p.running)
	}
}
