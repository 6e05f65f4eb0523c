package ingress

import (
	"fmt"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/valyala/fasthttp"
)

// fullList is a signed POST /orders of as many orders as a list may have.
func fullList(h *house) string {
	orders := make([]string, maxBundle)
	for i := range orders {
		orders[i] = h.rawOrder(fmt.Sprintf("alice buy A 10 @ 0.40 salt=%d", i+1))
	}
	return h.rawList(orders...)
}

// crowd fills the pool and its queue until the returned function is called.
func crowd(t *testing.T, p *pool) (leave func()) {
	t.Helper()
	release := occupy(t, p)
	roomForOne(p)
	waits := &line{t: t}
	waits.queue(p, 1, func() {})
	return sync.OnceFunc(func() {
		release()
		waits.joined.Wait()
	})
}

// TestFullPoolRefusesAList: a list that the queue has no room for is refused before anybody asks
// who sends it, its whole body is passed over, and the connection takes the next list.
func TestFullPoolRefusesAList(t *testing.T) {
	h := newHouse(t, nil)
	h.run([]string{"fund alice 1000"})
	p, c := h.server.pool, h.dial(t)
	list := fullList(h)
	if len(list) <= firstBytes {
		t.Fatalf("a list of %d bytes is there at once", len(list))
	}
	leave := crowd(t, p)
	defer leave()
	forged := strings.Replace(list, "POLY_SIGNATURE: ", "POLY_SIGNATURE: A", 1)
	before := p.full.Load()
	for _, text := range []string{list, forged, list + list} { // the last one in a pipeline
		c.write(text)
		for range strings.Count(text, "POST ") {
			if got := c.answer(); !strings.HasPrefix(got, "503\nRetry-After: 1\n") {
				t.Fatal(got)
			}
		}
	}
	if n := p.full.Load() - before; n != 4 {
		t.Errorf("%d refusals are counted", n)
	}
	leave()
	c.write(list)
	if got := c.answer(); strings.Count(got, `"status":"live"`) != maxBundle {
		t.Error(got)
	}
	awaitIdle(t, p)
}

// TestRefusalEnds: a connection that is turned away holds up no other, also if its client goes away
// first, or sends half of the request and waits.
func TestRefusalEnds(t *testing.T) {
	h := newHouse(t, nil)
	h.run([]string{"fund alice 1000"})
	p := h.server.pool
	leave := crowd(t, p)
	defer leave()
	list := fullList(h)
	gone, half, last := h.dial(t), h.dial(t), h.dial(t)
	gone.write(list[:100])
	_ = gone.Close()
	half.write(list[:firstBytes+100])
	last.write(list)
	if got := last.answer(); !strings.HasPrefix(got, "503\n") {
		t.Error(got)
	}
	half.write(list[firstBytes+100:])
	if got := half.answer(); !strings.HasPrefix(got, "503\n") {
		t.Error(got)
	}
	leave()
	awaitIdle(t, p)
}

// refusedBy reads a refusal, and reports whether the HTTP server wrote it, which dates all answers.
func (d *dialed) refusedBy() (text string, server bool) {
	d.t.Helper()
	var r fasthttp.Response
	if err := r.Read(d.reader); err != nil {
		d.t.Fatal(err)
	}
	return render(&r), len(r.Header.Peek("Date")) > 0
}

// TestTurnedAwayWithoutTheServer: the HTTP server sees no order of a connection in use that the
// queue has no room for, if the end of the request is plain. The answer is the same, and it is
// counted. Other requests reach the HTTP server as ever.
func TestTurnedAwayWithoutTheServer(t *testing.T) {
	h := newHouse(t, nil)
	h.run([]string{"fund alice 1000"})
	p, c := h.server.pool, h.dial(t)
	leave := crowd(t, p)
	defer leave()
	order, list := h.rawOrder("alice buy A 10 @ 0.40"), fullList(h)
	with := func(line string) string {
		return strings.Replace(order, "\r\n", "\r\n"+line+"\r\n", 1)
	}
	busy, first := "", true
	for _, text := range []string{order, order, list, with("connection: Keep-Alive"),
		with("Origin: http://a.b"), order + order, order} {
		c.write(text)
		for at := range strings.Count(text, "POST ") {
			got, server := c.refusedBy()
			if first {
				busy = got
			}
			plain := !first && !strings.Contains(text, "Origin") && text != order+order
			if !strings.HasPrefix(got, "503\n") || got != busy && plain || server == plain {
				t.Errorf("%.60q, answer %d, by the HTTP server %v: %s", text, at, server, got)
			}
			first = false
		}
	}
	if n := p.full.Load(); n != 8 {
		t.Errorf("%d refusals are counted", n)
	}
	if n := counted(t, h.server.metrics.requests.WithLabelValues("post_orders", "503")); n != 1 {
		t.Errorf("%v lists are counted", n)
	}
	c.write(list[:firstBytes+100])
	for deadline := time.Now().Add(patience); p.full.Load() != 9; time.Sleep(time.Millisecond) {
		if time.Now().After(deadline) {
			t.Fatal("half of a list is not refused")
		}
	}
	leave()
	c.write(list[firstBytes+100:])
	if got, _ := c.refusedBy(); got != busy {
		t.Error(got)
	}
	c.write(order)
	c.live()
	awaitIdle(t, p)
}
