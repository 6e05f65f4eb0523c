package stream

import (
	"bufio"
	"maps"
	"net"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/fasthttp/websocket"
	"github.com/prometheus/client_golang/prometheus"

	"clobd/api/wire/live"
	"clobd/engine/view"
)

// socket returns a new Hub, a subscriber of it with an open socket, and the client of the socket.
func socket(t *testing.T) (*Hub, *subscriber, *websocket.Conn) {
	t.Helper()
	return socketOf(t, New(Options{Board: view.NewBoard(), Now: time.Now,
		Panicked: func(where string, cause any) string {
			t.Errorf("panic of %s: %v", where, cause)
			return ""
		}}))
}

// socketOf returns a Hub, a new subscriber of it with an open socket, and the client of the socket.
func socketOf(t *testing.T, h *Hub) (*Hub, *subscriber, *websocket.Conn) {
	t.Helper()
	ln, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { ln.Close() })
	sockets := make(chan *live.Socket, 1)
	go func() {
		defer close(sockets)
		c, err := ln.Accept()
		if err != nil {
			return
		}
		r, err := http.ReadRequest(bufio.NewReader(c))
		if err != nil {
			return
		}
		line, asked := live.NewLine(c), live.Asked{Key: r.Header.Get("Sec-Websocket-Key")}
		if s, err := live.Open(line, line, nil, asked); err == nil {
			sockets <- s
		}
	}()
	c, _, err := websocket.DefaultDialer.Dial("ws://"+ln.Addr().String(), nil)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { c.Close() })
	_ = c.SetReadDeadline(time.Now().Add(20 * time.Second))
	return h, h.enter(<-sockets), c
}

// queued returns how many messages wait in the queue.
func (s *subscriber) queued() int {
	if s.queue == nil {
		return 0
	}
	return len(s.queue.bulletins)
}

// TestSlowConsumer: if too much waits for a subscriber, the Hub closes the socket with 1013 and
// sends no more messages.
func TestSlowConsumer(t *testing.T) {
	_, s, c := socket(t)
	large := &bulletin{body: make([]byte, maxBehind/4)}
	for range 5 {
		if s.enqueue(large); s.cut {
			t.Fatalf("cut with %d bytes", s.behind)
		}
	}
	if s.enqueue(large); !s.cut || s.queue != nil {
		t.Errorf("%d messages with %d bytes wait, cut: %v", s.queued(), s.behind, s.cut)
	}
	s.enqueue(large)
	s.offer(time.Now())
	if _, b, err := c.ReadMessage(); !websocket.IsCloseError(err, websocket.CloseTryAgainLater) {
		t.Errorf("%d bytes, %v", len(b), err)
	}
}

// TestSlowConsumerReads: when the Hub closes a full socket, a client that reads gets whole messages
// and the close reason. The Hub does not wait for a client that never reads.
func TestSlowConsumerReads(t *testing.T) {
	for name, reads := range map[string]bool{"reads": true, "never reads": false} {
		t.Run(name, func(t *testing.T) {
			h, s, c := socket(t)
			now := time.Now()
			large := &bulletin{body: make([]byte, maxBehind/2)}
			for i := 0; !s.cut; i++ {
				if s.enqueue(large); i > 100 {
					t.Fatal("the kernel takes everything")
				}
				s.offer(now)
			}
			if s.enqueue(large); !s.waits() || s.queue != nil || h.out.rests != s.rest {
				t.Fatalf("%d messages wait, and %d bytes, %d of all", s.queued(), s.rest, h.out.rests)
			}
			read := make(chan error, 1)
			if reads {
				go func() {
					for {
						if _, _, err := c.ReadMessage(); err != nil {
							read <- err
							return
						}
					}
				}()
			}
			for late := time.Now().Add(20 * time.Second); s.waits() && time.Now().Before(late); {
				if s.offer(now); !reads {
					now = now.Add(time.Second)
				}
				time.Sleep(time.Millisecond)
			}
			if s.waits() || h.out.rests != 0 {
				t.Fatalf("%d bytes are kept", h.out.rests)
			}
			if !reads {
				return
			}
			if err := <-read; !websocket.IsCloseError(err, websocket.CloseTryAgainLater) {
				t.Error(err)
			}
		})
	}
}

// TestCloseBehindRest: when a full socket is closed, for whatever reason, a client that reads gets
// the reason after everything that was sent.
func TestCloseBehindRest(t *testing.T) {
	h, s, c := socket(t)
	large := &bulletin{body: make([]byte, maxBehind/2)}
	for i := 0; s.rest == 0; i++ {
		if s.enqueue(large); i > 100 {
			t.Fatal("the kernel takes everything")
		}
		s.offer(time.Now())
	}
	s.close(live.Forbidden, "the key is revoked")
	read := make(chan error, 1)
	go func() {
		err := error(nil)
		for err == nil {
			_, _, err = c.ReadMessage()
		}
		read <- err
	}()
	for late := time.Now().Add(20 * time.Second); s.waits() && time.Now().Before(late); {
		s.offer(time.Now())
		time.Sleep(time.Millisecond)
	}
	if err := <-read; !websocket.IsCloseError(err, live.Forbidden) || h.out.rests != 0 {
		t.Errorf("%v, %d bytes are kept", err, h.out.rests)
	}
}

// TestCloseBehindKernel: after the Hub has closed a socket, the client can still read all bytes
// that the kernel has not delivered, although the client sends something meanwhile.
func TestCloseBehindKernel(t *testing.T) {
	h, s, c := socket(t)
	served := make(chan struct{})
	go func() {
		defer close(served)
		_ = s.socket.Each(time.Minute, func([]byte) {})
	}()
	large := &bulletin{body: make([]byte, maxBehind/2)}
	for i := 0; s.rest == 0; i++ {
		if s.enqueue(large); i > 100 {
			t.Fatal("the kernel takes everything")
		}
		s.offer(time.Now())
	}
	s.close(live.Forbidden, "the key is revoked")
	for s.waits() { // each text that the client reads makes room for what is left
		if _, _, err := c.ReadMessage(); err != nil {
			t.Fatal(err)
		}
		s.offer(time.Now())
	}
	for _, kind := range []int{websocket.PingMessage, websocket.TextMessage, websocket.PongMessage} {
		if err := c.WriteMessage(kind, []byte("PING")); err != nil {
			t.Fatal(err)
		}
		time.Sleep(5 * time.Millisecond)
	}
	texts, err := 0, error(nil)
	for ; err == nil; texts++ {
		_, _, err = c.ReadMessage()
	}
	if !websocket.IsCloseError(err, live.Forbidden) || h.out.rests != 0 {
		t.Errorf("after %d texts: %v", texts, err)
	}
	select {
	case <-served:
	case <-time.After(5 * time.Second):
		t.Error("the node waits for a client who has answered")
	}
}

// TestLateTexts: a client who goes on sending after the Hub has closed his socket is heard no more,
// and soon loses the connection.
func TestLateTexts(t *testing.T) {
	h, _, _ := socket(t)
	sockets := make(chan *live.Socket, 1)
	heard := 0
	served := make(chan struct{})
	go func() {
		defer close(served)
		h.serve(<-sockets, func(s *subscriber, _ []byte) bool {
			heard++
			h.mutex.Lock()
			defer h.mutex.Unlock()
			s.close(live.Forbidden, "too many messages")
			return false
		})
	}()
	_, s, c := socketOf(t, h)
	h.leave(s) // serve enters the socket again
	sockets <- s.socket
	for n := 0; n < 100*mostLate; n++ {
		if err := c.WriteMessage(websocket.TextMessage, []byte("PING")); err != nil {
			break
		}
	}
	select {
	case <-served:
	case <-time.After(mostStuck / 2):
		t.Fatal("the client may send for ever")
	}
	if heard != 1 {
		t.Errorf("%d texts were heard", heard)
	}
}

// TestCloseAll: when the node stops, a client who reads hears why, after everything that was sent
// before. A client who does not read delays the stop no longer than farewell.
func TestCloseAll(t *testing.T) {
	h, s, c := socket(t)
	_, deaf, _ := socketOf(t, h)
	for _, s := range []*subscriber{s, deaf} {
		go func() {
			_ = s.socket.Each(time.Minute, func([]byte) {})
			h.leave(s)
		}()
	}
	s.enqueue(&bulletin{body: make([]byte, maxBehind/2)})
	h.turn(everybody)
	read := make(chan error, 1)
	go func() {
		err := error(nil)
		for range 3 {
			_ = c.WriteMessage(websocket.PongMessage, nil)
			time.Sleep(5 * time.Millisecond)
		}
		for err == nil {
			_, _, err = c.ReadMessage()
		}
		read <- err
	}()
	begun := time.Now()
	h.closeAll()
	if took := time.Since(begun); took < farewell || took > 5*farewell {
		t.Errorf("it takes %v", took)
	}
	if err := <-read; !websocket.IsCloseError(err, live.Leaving) {
		t.Error(err)
	}
}

// counted returns the values of a counter of the Hub, by the value of its label.
func counted(t *testing.T, h *Hub, name string) map[string]float64 {
	t.Helper()
	registry := prometheus.NewRegistry()
	registry.MustRegister(h.Collectors()...)
	families, err := registry.Gather()
	if err != nil {
		t.Fatal(err)
	}
	all := map[string]float64{}
	for _, f := range families {
		for _, m := range f.GetMetric() {
			if f.GetName() == name {
				all[m.GetLabel()[0].GetValue()] = m.GetCounter().GetValue()
			}
		}
	}
	return all
}

// TestClosesCounted: a metric counts, by reason, the sockets that the node closes, and no socket
// that a client closes.
func TestClosesCounted(t *testing.T) {
	h := New(Options{Board: view.NewBoard(), Now: time.Now})
	for _, say := range []func(c *websocket.Conn) error{
		func(c *websocket.Conn) error { return c.WriteMessage(websocket.BinaryMessage, []byte("a")) },
		func(c *websocket.Conn) error { return c.WriteMessage(websocket.TextMessage, []byte("a\xff")) },
		func(c *websocket.Conn) error {
			return c.WriteMessage(websocket.TextMessage, make([]byte, live.MaxText+1))
		},
		func(c *websocket.Conn) error {
			_, err := c.UnderlyingConn().Write([]byte{0x83, 0x80, 0, 0, 0, 0})
			return err
		},
		func(c *websocket.Conn) error {
			return c.WriteMessage(websocket.CloseMessage, websocket.FormatCloseMessage(1000, ""))
		},
		func(c *websocket.Conn) error { return c.Close() },
	} {
		_, s, c := socketOf(t, h)
		ended := make(chan struct{})
		go func() {
			defer close(ended)
			h.Serve(s.socket)
		}()
		if err := say(c); err != nil {
			t.Log(err) // the node may have closed the socket before all was written
		}
		<-ended
	}
	want := map[string]float64{string(live.Binary): 1, string(live.Garbled): 1,
		string(live.Oversize): 1, string(live.Unruly): 1}
	if got := counted(t, h, "clobd_stream_closes_total"); !maps.Equal(got, want) {
		t.Errorf("%v, want %v", got, want)
	}
}

// TestSome: a list that is too long says how many names it leaves out, and cuts no name.
func TestSome(t *testing.T) {
	long := strings.Repeat("7", 70)
	for want, names := range map[string][]string{
		"a, b":                             {"a", "b"},
		long + ", " + long + " and 3 more": {long, long, long, "x", "y"},
		"of 2 that are named":              {strings.Repeat("7", 300), "x"},
	} {
		if got := some(names); got != want {
			t.Errorf("%s\nwant %s", got, want)
		}
	}
}

// TestStuckConsumer: the Hub closes the socket of a client that takes no byte for mostStuck,
// however little waits. It does not close the socket while the client takes some bytes.
func TestStuckConsumer(t *testing.T) {
	h, s, c := socket(t)
	now := time.Now()
	large := &bulletin{body: make([]byte, maxBehind/2)}
	for i := 0; s.rest == 0; i++ {
		if s.enqueue(large); i > 100 {
			t.Fatal("the kernel takes everything")
		}
		s.offer(now)
	}
	if !s.waits() || h.out.rests != s.rest {
		t.Fatalf("%d bytes wait, %d of all", s.rest, h.out.rests)
	}
	now = now.Add(mostStuck)
	if s.offer(now); s.cut {
		t.Fatal("cut too early")
	}
	read := make(chan error, 1)
	go func() {
		_, _, err := c.ReadMessage()
		read <- err
	}()
	if err := <-read; err != nil {
		t.Fatal(err)
	}
	for before := s.rest; s.rest >= before; time.Sleep(time.Millisecond) {
		if s.offer(now); s.cut {
			t.Fatal("cut although he reads")
		}
	}
	if s.offer(now.Add(mostStuck)); s.cut {
		t.Fatal("cut although he has read")
	}
	for now = now.Add(mostStuck + time.Second); s.rest > 0 && !s.cut; now = now.Add(time.Second) {
		s.offer(now)
	}
	if s.rest == 0 && !s.cut {
		t.Skip("SKIPPED: the kernel has taken the rest meanwhile")
	}
	if h.out.rests != 0 || s.waits() {
		t.Errorf("%d bytes are counted for a socket that is closed", h.out.rests)
	}
}

// TestRestsOfAll: while all sockets together hold too many unsent bytes, the Hub renders nothing.
func TestRestsOfAll(t *testing.T) {
	h, s, c := socket(t)
	h.out.rests = maxRests
	s.enqueue(&bulletin{body: []byte(`{"event_type":"x"`)})
	if s.offer(time.Now()); !s.waits() || s.sequence != 0 {
		t.Fatalf("message %d was sent", s.sequence)
	}
	h.out.rests = 0
	if s.offer(time.Now()); s.waits() || s.sequence != 1 {
		t.Fatalf("message %d, waits: %v", s.sequence, s.waits())
	}
	if _, b, err := c.ReadMessage(); err != nil || !strings.HasPrefix(string(b), `{"event_type":"x"`) {
		t.Errorf("%q, %v", b, err)
	}
}

// TestBucket: a subscriber may spend mostUnits at once, and then unitsBack a second. The Hub closes
// the socket of a subscriber who asks for more.
func TestBucket(t *testing.T) {
	var b bucket
	now := time.Now()
	for range mostUnits {
		if !b.take(1, now) {
			t.Fatal("refused too early")
		}
	}
	if b.take(1, now) {
		t.Error("taken too much")
	}
	if now = now.Add(time.Second); !b.take(unitsBack-1, now) || b.take(1, now) {
		t.Error("a second gives back something else")
	}
	h, s, c := socket(t)
	for range mostUnits + 1 {
		h.hear(s, []byte("PONG"))
	}
	if _, b, err := c.ReadMessage(); !s.cut || !websocket.IsCloseError(err, live.Forbidden) {
		t.Errorf("%q, %v", b, err)
	}
}

// TestAnnounceLater: a new market is announced when the catalog describes it. If the catalog does
// not describe the market in time, the market is never announced.
func TestAnnounceLater(t *testing.T) {
	h, s, _ := socket(t)
	s.custom = true
	described := false
	h.o.Announce = func(*view.Market) []byte {
		if !described {
			return nil
		}
		return []byte(`{"event_type":"new_market"`)
	}
	begin := time.Now()
	for range 2 * announces {
		h.listed = append(h.listed, listed{&view.Market{}, begin})
	}
	if h.announce(begin); s.queued() != 0 || len(h.listed) != 2*announces {
		t.Fatalf("%d messages, %d markets wait", s.queued(), len(h.listed))
	}
	described = true
	if h.announce(begin); s.queued() != announces || len(h.listed) != announces {
		t.Fatalf("%d messages, %d markets wait", s.queued(), len(h.listed))
	}
	described = false
	if h.announce(begin.Add(patient)); s.queued() != announces || len(h.listed) != 0 {
		t.Fatalf("%d messages, %d markets wait", s.queued(), len(h.listed))
	}
}

// TestPings: the Hub pings each subscriber every pingBeats seconds, and about as many subscribers
// in each second.
func TestPings(t *testing.T) {
	h, first, c := socket(t)
	now := time.Unix(1_000_000, 0)
	h.beats = now.Unix()
	pings := make(chan struct{}, 100)
	c.SetPingHandler(func(string) error {
		pings <- struct{}{}
		return nil
	})
	go func() { _, _, _ = c.ReadMessage() }()
	for n := range uint64(3 * pingBeats) { // all share one socket; the number sets the second
		h.subscribers[&subscriber{hub: h, socket: first.socket, number: n}] = struct{}{}
	}
	delete(h.subscribers, first)
	for _, c := range []struct {
		after time.Duration
		want  int
	}{{0, 0}, {time.Second, 3}, {2 * time.Second, 6}, {time.Minute, 3 * pingBeats}} {
		now = now.Add(c.after)
		h.pingSome(now)
		for range c.want {
			select {
			case <-pings:
			case <-time.After(20 * time.Second):
				t.Fatalf("after %v: fewer than %d pings", c.after, c.want)
			}
		}
		select {
		case <-pings:
			t.Errorf("after %v: more than %d pings", c.after, c.want)
		case <-time.After(20 * time.Millisecond):
		}
	}
}

// TestPanics: a panic closes, with 1011, only the sockets that it concerns. The Hub continues to
// serve the others.
func TestPanics(t *testing.T) {
	for name, c := range map[string]struct {
		breaks func(h *Hub, s *subscriber)
		others bool // whether the sockets of other subscribers are closed, too
	}{
		"a message": {breaks: func(_ *Hub, s *subscriber) { s.enqueue(&bulletin{books: []shown{{}}}) }},
		"a market": {breaks: func(h *Hub, s *subscriber) {
			w := &watch{market: &view.Market{No: 1}, subscribers: make(map[*subscriber]uint8)}
			w.wants(s, 1)
			h.watches[1] = w
			h.waiting = append(h.waiting, waiting{w, &view.Snapshot{}})
		}},
		"the Hub": {breaks: func(h *Hub, _ *subscriber) { h.out.due = append(h.out.due, nil) }, others: true},
	} {
		t.Run(name, func(t *testing.T) {
			h, s, client := socket(t)
			_, last, other := socketOf(t, h)
			panics := 0
			h.o.Panicked = func(string, any) string { panics++; return "" }
			c.breaks(h, s)
			if !h.survives("a round", func() { h.round(everybody) }) {
				h.beginAnew()
			}
			if _, b, err := client.ReadMessage(); !websocket.IsCloseError(err, live.Broken) || panics == 0 {
				t.Errorf("%q, %v, %d panics", b, err, panics)
			}
			if len(h.watches) != 0 {
				t.Error("the market is still watched")
			}
			last.enqueue(&bulletin{body: []byte(`{"event_type":"x"`)})
			h.round(everybody)
			_, b, err := other.ReadMessage()
			if c.others != websocket.IsCloseError(err, live.Broken) || !c.others && len(b) == 0 {
				t.Errorf("another one gets %q, %v", b, err)
			}
		})
	}
}
