package ingress

import (
	"bufio"
	"fmt"
	"net"
	"strings"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/valyala/fasthttp"
	"github.com/valyala/fasthttp/fasthttputil"

	"clobd/ingress/conn"
)

// serveTCP opens the door of h on a socket, and returns how to dial it.
func serveTCP(t *testing.T, h *house) func() net.Conn {
	t.Helper()
	dial := serveFrom(t, h)
	return func() net.Conn { return dial("127.0.0.1") }
}

// serveFrom is serveTCP for callers of many addresses.
func serveFrom(t *testing.T, h *house) func(address string) net.Conn {
	t.Helper()
	ln, err := net.Listen("tcp4", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	go func() { _ = h.server.Serve(ln) }() // ends with the house
	return func(address string) net.Conn {
		from := net.Dialer{LocalAddr: &net.TCPAddr{IP: net.ParseIP(address)}}
		c, err := from.Dial("tcp4", ln.Addr().String())
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { _ = c.Close() })
		_ = c.SetDeadline(time.Now().Add(4 * patience))
		return c
	}
}

// ask sends a request over c, unless it is to be turned away unread, and reads the answer.
func ask(t *testing.T, c net.Conn, request string) string {
	t.Helper()
	if _, err := c.Write([]byte(request)); err != nil {
		t.Fatal(err)
	}
	var r fasthttp.Response
	if err := r.Read(bufio.NewReader(c)); err != nil {
		t.Fatal(err)
	}
	return render(&r)
}

// awaitOpen waits until so many connections are left.
func awaitOpen(t *testing.T, h *house, want int) {
	t.Helper()
	for deadline := time.Now().Add(patience); ; time.Sleep(time.Millisecond) {
		open := h.server.turnstile.Open()
		if open == want {
			return
		}
		if time.Now().After(deadline) {
			t.Fatalf("%d connections are open, want %d", open, want)
		}
	}
}

func TestTurnstile(t *testing.T) {
	const fine = "GET /ok HTTP/1.1\r\nHost: x\r\n\r\n"
	for _, c := range []struct {
		all, each int
		want      string
	}{
		{64, 2, "429\nRetry-After: 1\n" + openHeaders +
			`{"error":"too many connections from this address","code":"rate_limited"}` + "\n"},
		{2, 64, "503\nRetry-After: 1\n" + openHeaders +
			`{"error":"too many connections, nothing was entered, send again","code":"busy"}` + "\n"},
	} {
		h := newHouse(t, func(o *Options) { o.Concurrency, o.ConnsPerAddress = c.all, c.each })
		dial := serveTCP(t, h)
		first, second := dial(), dial()
		for i, good := range []net.Conn{first, second} {
			if got := ask(t, good, fine); got[:4] != "200\n" {
				t.Fatalf("let in: %s", got)
			}
			begin(t, h, good, i+1) // idle, it would give way
		}
		if got := ask(t, dial(), ""); got != c.want {
			t.Errorf("one too many: %s", got)
		}
		_ = first.Close()
		awaitOpen(t, h, 1)
		if got := ask(t, dial(), fine); got[:4] != "200\n" {
			t.Errorf("after one has left: %s", got)
		}
	}
}

// begin sends the first bytes of a request and waits until the node has them. Then so many
// connections have a request on its way.
func begin(t *testing.T, h *house, c net.Conn, busy int) {
	t.Helper()
	awaitBusy(t, h, busy-1) // the last request may not have ended when its answer arrives
	if _, err := c.Write([]byte("GET /ok HTT")); err != nil {
		t.Fatal(err)
	}
	awaitBusy(t, h, busy)
}

// awaitBusy waits until so many connections have a request on its way.
func awaitBusy(t *testing.T, h *house, busy int) {
	t.Helper()
	for deadline := time.Now().Add(patience); h.server.turnstile.Busy() != busy; {
		if time.Sleep(time.Millisecond); time.Now().After(deadline) {
			t.Fatalf("%d connections have a request on its way, not %d",
				h.server.turnstile.Busy(), busy)
		}
	}
}

// TestIdleGiveWay: where all places are taken, the connection that has been idle longest gives way
// to a new one, of its address or of all. One with a request on its way never does.
func TestIdleGiveWay(t *testing.T) {
	const fine = "GET /ok HTTP/1.1\r\nHost: x\r\n\r\n"
	for _, c := range []struct{ all, each int }{{64, 3}, {3, 64}} {
		h := newHouse(t, func(o *Options) { o.Concurrency, o.ConnsPerAddress = c.all, c.each })
		dial := serveTCP(t, h)
		busy, oldest, silent := dial(), dial(), dial()
		ask(t, busy, fine)
		begin(t, h, busy, 1)
		ask(t, oldest, fine)
		awaitBusy(t, h, 1) // until the node knows oldest as idle, it would not give way
		awaitOpen(t, h, 3)
		for range 2 { // first the silent connection goes, which is older, then the one that asked
			if got := ask(t, dial(), fine); got[:4] != "200\n" {
				t.Errorf("a new connection: %s", got)
			}
		}
		for _, gone := range []net.Conn{silent, oldest} {
			if _, err := gone.Read(make([]byte, 1)); err == nil {
				t.Error("a connection was served on that had to give way")
			}
		}
		if got := ask(t, busy, "P/1.1\r\nHost: x\r\n\r\n"); got[:4] != "200\n" {
			t.Errorf("the busy connection: %s", got)
		}
	}
}

// TestKnownFindRoom: strangers who hold all places that they may, each with a request on its way,
// keep nobody out whose address has authenticated.
func TestKnownFindRoom(t *testing.T) {
	h := newHouse(t, func(o *Options) { o.Concurrency, o.ConnsPerAddress = 4, 4 })
	dial := serveTCP(t, h)
	var strangers []net.Conn
	for i := range 3 {
		strangers = append(strangers, dial())
		ask(t, strangers[len(strangers)-1], "GET /ok HTTP/1.1\r\nHost: x\r\n\r\n")
		begin(t, h, strangers[i], i+1)
	}
	if got := ask(t, dial(), ""); got[:4] != "503\n" {
		t.Errorf("a fourth stranger: %s", got)
	}
	_ = strangers[0].Close()
	awaitOpen(t, h, 2)
	account := dial()
	w := rawRequest{method: "GET", path: "/auth/api-keys"}
	h.signed(&w, "alice", new(words))
	if got := ask(t, account, w.String()); got[:4] != "200\n" {
		t.Fatalf("with a key: %s", got)
	}
	begin(t, h, account, 3)
	if got := ask(t, dial(), "GET /ok HTTP/1.1\r\nHost: x\r\n\r\n"); got[:4] != "200\n" {
		t.Errorf("from an address that has authenticated: %s", got)
	}
}

// TestCrowdsGiveWay: addresses that hold all places of strangers, each place with half a request,
// make room for an address that holds hardly any, but not for each other.
func TestCrowdsGiveWay(t *testing.T) {
	const fine = "GET /ok HTTP/1.1\r\nHost: x\r\n\r\n"
	h := newHouse(t, func(o *Options) { o.Concurrency, o.ConnsPerAddress = 64, 64 })
	dial := serveFrom(t, h)
	crowd := []string{"127.0.8.1", "127.0.8.2"}
	for i := range 48 {
		begin(t, h, dial(crowd[i%2]), i+1)
	}
	if got := ask(t, dial(crowd[0]), ""); got[:4] != "503\n" {
		t.Errorf("one more of the crowd: %s", got)
	}
	if got := ask(t, dial("127.0.8.3"), fine); got[:4] != "200\n" {
		t.Errorf("somebody else: %s", got)
	}
	if n := h.server.turnstile.Open(); n > 48 {
		t.Errorf("%d connections", n)
	}
}

// TestLargeAnswersAreBounded: a client that does not read large answers gets no more of them, and
// an answer that its client has read, or will never read, takes no room.
func TestLargeAnswersAreBounded(t *testing.T) {
	const size = 4 << 20
	h := newHouse(t, func(o *Options) {
		o.Public = func(ctx *fasthttp.RequestCtx) { ctx.SetBody(make([]byte, size)) }
	})
	h.server.answers = conn.NewBudget(3*size, 2*size)
	dial := serveTCP(t, h)
	const large = "GET /events HTTP/1.1\r\nHost: x\r\n\r\n"
	read := func(c net.Conn) int {
		var r fasthttp.Response
		if err := r.Read(bufio.NewReader(c)); err != nil {
			t.Fatal(err)
		}
		return r.StatusCode()
	}
	var slow []net.Conn
	for range 2 {
		c := dial()
		if _, err := c.Write([]byte(large)); err != nil {
			t.Fatal(err)
		}
		slow = append(slow, c)
	}
	awaitUsed(t, h.server.answers, 2*size)
	c := dial()
	got := ask(t, c, large)
	if want := "429\nRetry-After: 1\n" + `{"type":"rate limit error","error":"too many large answers ` +
		`to this address","detail":"read the answers that you have asked for"}`; got != want+"\n" {
		t.Errorf("a third answer: %s", got)
	}
	if status := read(slow[0]); status != 200 {
		t.Errorf("the first answer: %d", status)
	}
	_ = slow[1].Close()
	awaitUsed(t, h.server.answers, 0)
	if got := ask(t, c, large); got[:4] != "200\n" {
		t.Errorf("the connection that was refused: %s", got[:4])
	}
	awaitUsed(t, h.server.answers, 0)
	h = newHouse(t, func(o *Options) {
		o.Public = func(ctx *fasthttp.RequestCtx) { ctx.SetBody(make([]byte, size)) }
	})
	h.server.answers = conn.NewBudget(size/2, size)
	if got := ask(t, serveTCP(t, h)(), large); got[:4] != "503\n" {
		t.Errorf("no room for anybody: %s", got[:4])
	}
}

// awaitUsed waits until so many bytes of a budget are taken.
func awaitUsed(t *testing.T, b *conn.Budget, want int) {
	t.Helper()
	for deadline := time.Now().Add(patience); b.Used() != want; time.Sleep(time.Millisecond) {
		if time.Now().After(deadline) {
			t.Fatalf("%d bytes are taken, want %d", b.Used(), want)
		}
	}
}

// TestBodiesTakeRoomAsTheyCome: what a body announces takes no room, what came of it does, and
// nothing is left of it after its connection.
func TestBodiesTakeRoomAsTheyCome(t *testing.T) {
	h := newHouse(t, nil)
	h.server.bodies = conn.NewBudget(128<<10, 56<<10)
	dial := serveTCP(t, h)
	send := func(head string, n int) net.Conn {
		c := dial()
		if _, err := c.Write(append([]byte(head+"\r\n\r\n"), make([]byte, n)...)); err != nil {
			t.Fatal(err)
		}
		return c
	}
	const list = "POST /orders HTTP/1.1\r\nHost: x\r\nContent-Length: 262144"
	for range 8 {
		send(list, 1)
	}
	chunked := send("POST /orders HTTP/1.1\r\nHost: x\r\nTransfer-Encoding: chunked\r\n\r\n40000", 1)
	large := send(list, 20_000)
	awaitUsed(t, h.server.bodies, 24<<10)
	// The node hangs up once it has read so many bytes. Were there more, the answer could get lost.
	if got := ask(t, send(list, 32<<10), ""); got != "429\n"+
		`{"error":"too many request bodies from this address","code":"rate_limited"}`+"\n" {
		t.Errorf("beyond what is left: %s", got)
	}
	awaitUsed(t, h.server.bodies, 24<<10)
	_ = large.Close()
	_ = chunked.Close()
	awaitUsed(t, h.server.bodies, 0)
	h.server.bodies = conn.NewBudget(12<<10, 56<<10)
	if got := ask(t, send(list, 16<<10), ""); got != "503\nRetry-After: 1\n"+
		`{"error":"too many request bodies on their way","code":"overloaded"}`+"\n" {
		t.Errorf("no room for anybody: %s", got)
	}
}

// TestSlowBodyIsNoSlowRequest: the clock of a request begins when all of its body is there, so that
// no stranger makes orders look slow.
func TestSlowBodyIsNoSlowRequest(t *testing.T) {
	h := newHouse(t, nil)
	c := serveTCP(t, h)()
	const size, pause = 20_000, 400 * time.Millisecond
	head := fmt.Sprintf("POST /orders HTTP/1.1\r\nHost: x\r\nContent-Length: %d\r\n\r\n", size)
	if _, err := c.Write(append([]byte(head), make([]byte, size-1)...)); err != nil {
		t.Fatal(err)
	}
	time.Sleep(pause)
	if got := ask(t, c, " "); !strings.HasPrefix(got, "401\n") {
		t.Fatal(got)
	}
	seconds := h.server.metrics.seconds.WithLabelValues("post_orders").(prometheus.Histogram)
	if n, sum := observed(t, seconds); n != 1 || sum >= pause.Seconds()/2 {
		t.Errorf("%v requests took %v s", n, sum)
	}
}

// TestServeAfterClose: a Server that is closed serves nothing any more, and whoever asks it to is
// not kept waiting.
func TestServeAfterClose(t *testing.T) {
	h := newHouse(t, nil)
	s := h.server
	if err := s.Close(t.Context()); err != nil {
		t.Fatal(err)
	}
	ln := fasthttputil.NewInmemoryListener()
	served := make(chan error, 1)
	go func() { served <- s.Serve(ln) }()
	select {
	case err := <-served:
		if err != nil {
			t.Error(err)
		}
	case <-time.After(patience):
		t.Fatal("it serves on")
	}
	if _, err := ln.Accept(); err == nil {
		t.Error("the listener is open")
	}
}
