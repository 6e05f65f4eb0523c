package ingress

import (
	"fmt"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"
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

// TestRefusalsAreFewAtATime: who would be turned away waits while others are, and is let in if the
// queue has room by then.
func TestRefusalsAreFewAtATime(t *testing.T) {
	h := newHouse(t, nil)
	h.run([]string{"fund alice 1000"})
	p, c := unhurry(h.server.pool), h.dial(t)
	leave := crowd(t, p)
	defer leave()
	for range cap(p.refusals) {
		p.refusals <- struct{}{}
	}
	c.write(h.rawOrder("alice buy A 10 @ 0.40"))
	time.Sleep(20 * time.Millisecond) // in which it would be refused
	if n := p.full.Load(); n != 0 {
		t.Errorf("%d are refused", n)
	}
	leave()
	<-p.refusals
	c.live()
	awaitIdle(t, p)
	if n := len(p.refusals); n != cap(p.refusals)-1 {
		t.Errorf("%d of %d are turning away", n, cap(p.refusals))
	}
}

// TestRefusalEnds: a connection that is turned away lets the next one be, also if its client goes
// away first, or sends half of the request and waits.
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
	for deadline := time.Now().Add(patience); len(p.refusals) > 0; time.Sleep(time.Millisecond) {
		if time.Now().After(deadline) {
			t.Fatal("somebody is turned away for ever")
		}
	}
}

// TestCrowdOnTheWayOut: an order that waited to be turned away is turned away if the node drains
// meanwhile, whatever room there is: its client may see that the connection is closed. One that has
// waited for too long does not wait for others any more.
func TestCrowdOnTheWayOut(t *testing.T) {
	p := newPool(1)
	s, other := newSeat(p), newSeat(p)
	leave := crowd(t, p)
	defer leave()
	var draining atomic.Bool
	other.begins([]byte(listStart), &draining)
	if other.refused != errPoolFull || !other.refusing.Load() {
		t.Fatalf("%v, turned away: %v", other.refused, other.refusing.Load())
	}
	p.spans.refusal = time.Millisecond
	s.begins([]byte("POST /clob/orders HTTP/1.1"), &draining)
	if s.refused != errPoolFull || s.refusing.Load() {
		t.Errorf("%v, turned away in turn: %v", s.refused, s.refusing.Load())
	}
	s.next(false)
	p.spans.refusal = time.Hour
	joined := make(chan struct{})
	go func() {
		s.begins([]byte(orderStart), &draining)
		close(joined)
	}()
	time.Sleep(10 * time.Millisecond) // it waits
	draining.Store(true)
	leave()
	other.release()
	<-joined
	if s.refused != errPoolFull {
		t.Errorf("an order behind its client's back: %v", s.refused)
	}
	s.done()
	if len(p.refusals) != 0 {
		t.Error("somebody is turned away for ever")
	}
}
