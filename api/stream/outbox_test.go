package stream

import (
	"errors"
	"fmt"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/fasthttp/websocket"
	"github.com/prometheus/client_golang/prometheus"

	"clobd/api/wire"
	"clobd/api/wire/live"
)

// openOutbox opens the Hub's batch, or ends the test.
func openOutbox(t *testing.T, h *Hub) {
	t.Helper()
	if !h.out.batch.Open() {
		t.Skip("SKIPPED: the kernel has no io_uring for this process")
	}
	t.Cleanup(h.out.batch.Close)
}

// heard reads messages of a client, and checks that their numbers go from from to to.
func heard(t *testing.T, c *websocket.Conn, from, to int) {
	t.Helper()
	for n := from; n <= to; n++ {
		_, b, err := c.ReadMessage()
		if want := fmt.Sprintf(`"sequence":%d,`, n); err != nil || !strings.Contains(string(b), want) {
			t.Fatalf("%.80q ... %v; want %s", b, err, want)
		}
	}
}

// TestOutbox: one call of serve sends, in order, all that sockets have room for, to more
// subscribers than a batch takes. It notes which sockets are full and which are closed.
func TestOutbox(t *testing.T) {
	h, first, c := socket(t)
	openOutbox(t, h)
	all, clients := []*subscriber{first}, []*websocket.Conn{c}
	for range live.BatchSends + 3 {
		_, s, c := socketOf(t, h)
		all, clients = append(all, s), append(clients, c)
	}
	gone, full := all[1], all[2]
	gone.socket.End()
	full.conflates = true
	gone.enqueue(&bulletin{body: []byte(`{"event_type":"x"`)}) // the only send of its batch
	if h.out.serve(time.Now(), everybody); !gone.cut {
		t.Error("the batch does not tell that a socket is closed")
	}
	body := append([]byte(`{"event_type":"`+strings.Repeat("x", 40_000)), '"')
	for round := range 3 {
		for range 3 { // more than a burst
			for _, s := range all {
				s.enqueue(&bulletin{body: body})
			}
		}
		h.out.serve(time.Now(), everybody)
		for i, s := range all {
			switch {
			case s == gone:
				if !s.cut || s.waits() {
					t.Fatal("it does not note that a socket is closed")
				}
			case s == full:
			case s.waits() || s.due:
				t.Fatalf("round %d: subscriber %d has %d bytes, and %d messages, left", round, i, s.rest,
					s.queued())
			default:
				heard(t, clients[i], 3*round+1, 3*round+3)
			}
		}
	}
	for n := 0; full.rest == 0; n++ {
		full.enqueue(&bulletin{body: body[:30_000]})
		if h.out.serve(time.Now(), everybody); n > 1000 {
			t.Fatal("the kernel takes everything, or nobody notes what it does not")
		}
	}
	if h.out.rests != full.rest || !full.due || full.later == nil {
		t.Errorf("%d of %d bytes, due: %v, backlog: %v", full.rest, h.out.rests, full.due, full.later)
	}
	if h.out.batched[0] == nil {
		t.Error("nothing went through the batch")
	}
}

// TestOutboxTells: a metric says whether io_uring is in use. The options can forbid io_uring.
func TestOutboxTells(t *testing.T) {
	h, _, _ := socket(t)
	openOutbox(t, h)
	h.out.close()
	uses := func() float64 {
		registry := prometheus.NewRegistry()
		registry.MustRegister(h.figures.batches)
		families, err := registry.Gather()
		if err != nil {
			t.Fatal(err)
		}
		return families[0].GetMetric()[0].GetGauge().GetValue()
	}
	if h.out.open(); uses() != 1 {
		t.Error("it is in use, and the metric says no")
	}
	h.out.batch.Close() // as after a call that has failed for good
	if h.out.flush(time.Now()); uses() != 0 {
		t.Error("it has failed, and the metric says yes")
	}
	h.o.Single = true
	if h.out.open(); uses() != 0 || h.out.batch.Works() {
		t.Error("it is forbidden, and in use")
	}
}

// TestOutboxPanics: if one subscriber's messages cause a panic, the same round serves the others.
func TestOutboxPanics(t *testing.T) {
	h, before, c := socket(t)
	openOutbox(t, h)
	_, broken, _ := socketOf(t, h)
	_, behind, d := socketOf(t, h)
	h.o.Panicked = func(string, any) string { return "" }
	before.enqueue(&bulletin{body: []byte(`{"event_type":"x"`)})
	broken.enqueue(&bulletin{books: []shown{{}}})
	behind.enqueue(&bulletin{body: []byte(`{"event_type":"x"`)})
	h.out.serve(time.Now(), everybody)
	if before.due || behind.due || !broken.cut {
		t.Error("others wait for the next round")
	}
	heard(t, c, 1, 1)
	heard(t, d, 1, 1)
}

// TestOutboxTorn: a round that a panic ends leaves no send in the batch. Otherwise the next round
// would add the same socket again, and the batch would lock the socket's Line twice.
func TestOutboxTorn(t *testing.T) {
	h, s, c := socket(t)
	openOutbox(t, h)
	h.o.Panicked = func(string, any) string { return "" }
	s.enqueue(&bulletin{body: []byte(`{"event_type":"x"`)})
	h.out.due = append(h.out.due, nil)
	if h.survives("a round", func() { h.round(everybody) }) {
		t.Fatal("it survives")
	}
	done := make(chan struct{})
	go func() { // as logIn, before beginAnew has the mutex
		defer close(done)
		h.mutex.Lock()
		defer h.mutex.Unlock()
		s.enqueue(&bulletin{body: []byte(`{"event_type":"y"`)})
		s.offer(time.Now())
		h.out.flush(time.Now())
	}()
	select {
	case <-done:
	case <-time.After(5 * time.Second):
		t.Fatal("the Hub waits for itself")
	}
	_ = c
}

// TestRefusal: a subscriber who fails to log in gets the reason, and then a close frame.
func TestRefusal(t *testing.T) {
	h, s, c := socket(t)
	openOutbox(t, h)
	h.owners.hear(s, []byte(`{"apiKey":"x"}`),
		func(*wire.Credentials) (wire.Owner, error) { return wire.Owner{}, errors.New("no such key") })
	if _, b, err := c.ReadMessage(); err != nil || !strings.Contains(string(b), "no such key") {
		t.Errorf("%q, %v", b, err)
	}
	if _, b, err := c.ReadMessage(); !websocket.IsCloseError(err, live.Forbidden) {
		t.Errorf("%q, %v", b, err)
	}
}

// TestRefusalsWhileRunBeginsAndEnds is for the race detector: logIn uses the batch that Run opens
// and closes.
func TestRefusalsWhileRunBeginsAndEnds(t *testing.T) {
	h, s, _ := socket(t)
	over := errors.New("over")
	h.o.Next = func() ([]byte, error) { return nil, over }
	var group sync.WaitGroup
	group.Go(func() {
		for range 200 {
			h.owners.hear(s, []byte(`{"apiKey":"x"}`),
				func(*wire.Credentials) (wire.Owner, error) { return wire.Owner{}, over })
		}
	})
	if err := h.Run(); !errors.Is(err, over) {
		t.Error(err)
	}
	group.Wait()
}
