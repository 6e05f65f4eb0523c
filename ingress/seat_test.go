package ingress

import (
	"bufio"
	"fmt"
	"io"
	"net"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/valyala/fasthttp"

	"clobd/engine"
)

// dialed is a connection of its own to a house, over the network.
type dialed struct {
	net.Conn
	t      *testing.T
	reader *bufio.Reader
}

func (h *house) dial(t *testing.T) *dialed {
	t.Helper()
	ln, err := net.Listen("tcp4", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	go func() { _ = h.server.Serve(ln) }() // ends with the house
	conn, err := net.Dial("tcp4", ln.Addr().String())
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = conn.Close() })
	_ = conn.SetDeadline(time.Now().Add(4 * patience))
	return &dialed{conn, t, bufio.NewReader(conn)}
}

func (d *dialed) write(text string) {
	d.t.Helper()
	if _, err := io.WriteString(d, text); err != nil {
		d.t.Fatal(err)
	}
}

func (d *dialed) answer() string {
	d.t.Helper()
	var r fasthttp.Response
	if err := r.Read(d.reader); err != nil {
		d.t.Fatal(err)
	}
	return render(&r)
}

// live reads the answer to an order that rests.
func (d *dialed) live() {
	d.t.Helper()
	if got := d.answer(); !strings.Contains(got, `"status":"live"`) {
		d.t.Fatal(got)
	}
}

// rawOrder is a signed POST /order.
func (h *house) rawOrder(text string) string {
	o := &words{strings.Fields(text)}
	x, o := h.parseOrder(o)
	w := rawRequest{method: "POST", path: "/order", body: h.orderBody(x, o.list[0], o)}
	h.signed(&w, o.list[0], o)
	return w.String()
}

func runningNow(p *pool) int {
	p.mutex.Lock()
	defer p.mutex.Unlock()
	return p.running
}

func awaitIdle(t *testing.T, p *pool) {
	t.Helper()
	for deadline := time.Now().Add(patience); runningNow(p) != 0; {
		if time.Now().After(deadline) {
			t.Fatalf("%d places are still taken", runningNow(p))
		}
		time.Sleep(time.Millisecond)
	}
}

// TestOrderWaitsForItsPlace: an order takes a place before its body is looked at, and one for its
// answer, and gives both back.
func TestOrderWaitsForItsPlace(t *testing.T) {
	h := newHouse(t, nil)
	h.run([]string{"fund alice 100"})
	p, c := h.server.pool, h.dial(t)
	release := sync.OnceFunc(occupy(t, p))
	defer release()
	c.write(h.rawOrder("alice buy A 10 @ 0.40"))
	awaitQueue(t, p, 1)
	release()
	c.live()
	awaitIdle(t, p)
	if p.ran.Load() < 2 { // the one that occupied it, too
		t.Errorf("%d ran", p.ran.Load())
	}
}

// TestOrderWaitsForTheDiskWithoutAPlace: the only place is free while an order is in the ring.
func TestOrderWaitsForTheDiskWithoutAPlace(t *testing.T) {
	looked := make(chan struct{}, 1)
	h := newHouse(t, func(o *Options) {
		past := o.Past
		o.Past = func(id engine.OrderID) (engine.Receipt, bool, engine.Sequence, error) {
			looked <- struct{}{} // the order enters after that
			return past(id)
		}
	})
	h.run([]string{"fund alice 100"})
	p, c := h.server.pool, h.dial(t)
	unlock := h.block()
	c.write(h.rawOrder("alice buy A 10 @ 0.40"))
	<-looked
	awaitIdle(t, p)
	if err := p.do(engine.Address{1}, func() {}); err != nil {
		t.Fatal(err)
	}
	unlock()
	c.live()
	awaitIdle(t, p)
}

// TestKnownConnectionWaitsBeforeItIsParsed: the second order of a connection takes its place as
// soon as its first bytes are there, at the cost of who sent the first one; while its bytes are
// still coming it has none; and nothing but an order waits.
func TestKnownConnectionWaitsBeforeItIsParsed(t *testing.T) {
	h := newHouse(t, nil)
	h.run([]string{"fund alice 100"})
	p, c := h.server.pool, h.dial(t)
	c.write(h.rawOrder("alice buy A 10 @ 0.40"))
	c.live()
	release := sync.OnceFunc(occupy(t, p))
	defer release()
	c.write("GET /ok HTTP/1.1\r\nHost: x\r\n\r\n")
	if got := c.answer(); !strings.HasPrefix(got, "200") {
		t.Fatal(got)
	}
	second := h.rawOrder("alice buy A 10 @ 0.41 salt=2")
	c.write("POST /order HTTP/1.1\r\nHost: x\r\n") // no more than that
	awaitQueue(t, p, 1)
	alice := trader("alice").Address
	p.mutex.Lock()
	share := p.wallets[alice]
	p.mutex.Unlock()
	if share != 1 {
		t.Errorf("alice has %d of the queue", share)
	}
	release()
	awaitIdle(t, p) // it waits for the rest of the header
	_, rest, _ := strings.Cut(second, "\r\nHost: test\r\n")
	c.write(rest)
	c.live()
	awaitIdle(t, p)
}

// TestFullPoolRefusesAnOrder: at either door to the pool.
func TestFullPoolRefusesAnOrder(t *testing.T) {
	h := newHouse(t, nil)
	h.run([]string{"fund alice 100"})
	p, c := h.server.pool, h.dial(t)
	busy := "503\nRetry-After: 1\n" +
		`{"error":"the exchange is busy, nothing was entered, send again","code":"busy"}` + "\n"
	for round := range 2 { // the second one on a connection that is known
		release := sync.OnceFunc(occupy(t, p))
		defer release()
		roomForOne(p)
		waits := line{t: t}
		waits.queue(p, 1, func() {})
		order := h.rawOrder(fmt.Sprintf("alice buy A 10 @ 0.40 salt=%d", round+1))
		c.write(order)
		if got := c.answer(); got != busy {
			t.Fatalf("round %d: %s", round, got)
		}
		release()
		waits.joined.Wait()
		c.write(order)
		if got := c.answer(); !strings.Contains(got, `"status":"live"`) {
			t.Fatalf("round %d: %s", round, got)
		}
		awaitIdle(t, p)
	}
}

// TestHungUpGivesThePlaceBack: who closes the connection while he waits costs nobody a place.
func TestHungUpGivesThePlaceBack(t *testing.T) {
	h := newHouse(t, nil)
	h.run([]string{"fund alice 100"})
	p, c := h.server.pool, h.dial(t)
	release := sync.OnceFunc(occupy(t, p))
	defer release()
	c.write(h.rawOrder("alice buy A 10 @ 0.40"))
	awaitQueue(t, p, 1)
	_ = c.Close()
	release()
	awaitIdle(t, p)
	if err := p.do(engine.Address{1}, func() {}); err != nil {
		t.Fatal(err)
	}
}

// TestAnswersGoFirst: who comes back gets the next place before all that wait, also when the pool
// is closed.
func TestAnswersGoFirst(t *testing.T) {
	p := unhurry(newPool(1))
	release := occupy(t, p)
	waits, told := line{t: t}, make(chan string, 2)
	waits.queue(p, 1, func() { told <- "new" })
	p.back(newWaiter()) // has the place that only answers have
	s := newSeat(p)
	waits.joined.Go(func() {
		s.back()
		told <- "answer"
		s.leave()
	})
	awaitBack(t, p)
	release()
	if first := <-told; first != "answer" {
		t.Errorf("%s came first", first)
	}
	p.leave(alone)
	waits.joined.Wait()
	p.close()
	s.back()
	s.leave()
	if err := s.take(engine.Address{}, true); err != errPoolClosed || p.running != 0 {
		t.Errorf("%v, %d still run", err, p.running)
	}
}

// TestReadersTakeAPlace: while somebody reads there is one place less, but never none, and those
// who wait get it as soon as nobody does.
func TestReadersTakeAPlace(t *testing.T) {
	p := unhurry(newPool(2))
	if p.seats() != 2 {
		t.Fatalf("%d places at first", p.seats())
	}
	p.reading(time.Now())
	if p.seats() != 1 {
		t.Fatalf("%d places beside a reader", p.seats())
	}
	a, b := newSeat(p), newSeat(p)
	if err := a.take(engine.Address{1}, true); err != nil {
		t.Fatal(err)
	}
	var joined sync.WaitGroup
	joined.Go(func() {
		if err := b.take(engine.Address{2}, true); err != nil {
			t.Error(err)
		}
	})
	awaitQueue(t, p, 1)
	a.leave()
	joined.Wait()
	p.read.Store(p.read.Load() - int64(p.spans.reads))
	if err := a.take(engine.Address{1}, true); err != nil || p.running != 2 {
		t.Fatalf("%v, %d run", err, p.running)
	}
	a.leave()
	b.leave()
	if one := newPool(1); one.running != 0 || p.running != 0 {
		t.Errorf("%d still run", p.running)
	} else if unhurry(one).reading(time.Now()); one.seats() != 1 {
		t.Errorf("%d places of one", one.seats())
	}
}

// TestReadsAreNoticed: a public read and one with a key.
func TestReadsAreNoticed(t *testing.T) {
	h := newHouse(t, func(o *Options) { o.Workers = 3 })
	h.run([]string{"fund alice 100"})
	p := h.server.pool
	h.run([]string{"http GET /ok"})
	if p.seats() != 3 {
		t.Errorf("%d places", p.seats())
	}
	for _, read := range []string{"http GET /book", "get alice /data/orders"} {
		p.read.Store(-int64(time.Hour))
		h.run([]string{read})
		if p.seats() != 2 {
			t.Errorf("%s: %d places", read, p.seats())
		}
	}
}
