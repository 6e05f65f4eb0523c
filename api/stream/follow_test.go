package stream

import (
	"errors"
	"io"
	"testing"
	"testing/synctest"
	"time"

	"clobd/engine"
	"clobd/engine/view"
)

// TestEffort: work becomes heavy when too many units come at once, or too many a second for too
// long. It then stays heavy until a second of light work has passed, however much has come.
func TestEffort(t *testing.T) {
	var e effort
	now := time.Unix(1e9, 0)
	pass := func(n int, units int, pause time.Duration) (heavy int) {
		for range n {
			if e.add(units, now); e.heavy {
				heavy++
			}
			now = now.Add(pause)
		}
		return heavy
	}
	const pace = time.Second / lightPace
	if n := pass(1000, lightBurst, lightBurst*pace); n > 0 {
		t.Errorf("%d of 1000 bursts as large as they may be are heavy", n)
	}
	if n := pass(100_000, 1, pace); n > 0 {
		t.Errorf("%d of 100,000 units at the pace of light work are heavy", n)
	}
	if n := pass(1000, 1, pace/2); n < 500 || n > 700 {
		t.Errorf("%d of 1000 units at twice that pace are heavy, want the last 600", n)
	}
	if n := pass(1_000_000, lightBurst, pace); n != 1_000_000 {
		t.Errorf("%d of 1,000,000 large bursts are heavy", n)
	}
	if n := pass(2000, 0, time.Millisecond); n < 990 || n > 1001 {
		t.Errorf("it is heavy for %d ms after them, want 1000", n)
	}
	if n := pass(1, lightBurst+1, 0); n != 1 {
		t.Error("one burst that is too large is not heavy")
	}
}

// TestHeavy: the work of a frame is what the Hub must render and write for it. Subscribers of other
// markets add no work. A single subscriber of many changed markets can make the work heavy.
func TestHeavy(t *testing.T) {
	h, s, _ := socket(t)
	for range 3 * lightBurst { // subscribers who watch nothing
		h.enter(s.socket)
	}
	watch := func(no engine.MarketNo, subscribers int) {
		w := &watch{market: &view.Market{No: no}, told: &view.Snapshot{},
			subscribers: make(map[*subscriber]uint8)}
		for range subscribers {
			w.subscribers[&subscriber{}] = 1
		}
		h.watches[no] = w
	}
	touch := func(from, to engine.MarketNo) {
		h.heap.take()
		for no := from; no <= to; no++ {
			h.heap.markets[no] = nil
		}
	}
	clock := time.Now()
	h.o.Now = func() time.Time { return clock }
	check := func(what string, want bool) {
		t.Helper()
		clock = clock.Add(time.Hour)
		if got := h.effort.weigh(h); got != want {
			t.Errorf("%s: heavy is %v", what, got)
		}
	}
	watch(1, 2*lightBurst)
	check("nothing has changed", false)
	touch(2, 1000)
	check("markets that nobody watches", false)
	touch(1, 1)
	check("a market that many watch", true)
	for no := engine.MarketNo(10); no < 10+lightBurst/changeUnits; no++ {
		watch(no, 1)
	}
	touch(10, 19)
	check("10 markets with a subscriber each", false)
	touch(10, 10+lightBurst/changeUnits)
	check("many markets of one subscriber", true)
	touch(2, 2)
	for range lightBurst {
		h.out.due = append(h.out.due, s)
	}
	check("sockets that are due", false)
	h.out.due = append(h.out.due, s)
	check("more of them", true)
}

// TestHeavyBooks: first books, and changes that are conflated, add the work of rendering them.
func TestHeavyBooks(t *testing.T) {
	h, s, _ := socket(t)
	clock := time.Now()
	h.o.Now = func() time.Time { return clock }
	book := shown{snapshot: &view.Snapshot{Market: &view.Market{}}}
	if s.show([]shown{book}); h.effort.heavy {
		t.Error("a first book is heavy")
	}
	some := make([]shown, lightBurst)
	for i := range some {
		some[i] = book
	}
	clock = clock.Add(time.Hour)
	if s.show(some); !h.effort.heavy {
		t.Error("many first books are light")
	}
	clock = clock.Add(time.Hour)
	s.later = &backlog{}
	change := stride{watch: &watch{}, from: book.snapshot, to: book.snapshot}
	for range lightBurst / changeUnits {
		s.hold(change, []*bulletin{{kind: levels}}, 1)
	}
	if h.effort.heavy {
		t.Error("changes that conflate are heavy")
	}
	if s.hold(change, []*bulletin{{kind: levels}}, 1); !h.effort.heavy {
		t.Error("more of them are light")
	}
}

// TestLightRounds: a round of light work serves no more than lightBurst subscribers, and creates no
// heartbeats. The others wait for tend.
func TestLightRounds(t *testing.T) {
	h, first, _ := socket(t)
	all := []*subscriber{first}
	for len(all) < lightBurst+10 {
		_, s, _ := socketOf(t, h)
		all = append(all, s)
	}
	for _, s := range all {
		s.heartbeat = true
		s.enqueue(&bulletin{body: []byte(`{"event_type":"x"`)})
	}
	served := func() (n int) {
		for _, s := range all {
			n += int(s.sequence)
		}
		return n
	}
	if left := h.turn(lightBurst); !left || served() != lightBurst || len(h.out.due) != 10 {
		t.Errorf("left: %v, %d messages, %d due", left, served(), len(h.out.due))
	}
	if left := h.turn(lightBurst); left || served() != len(all) {
		t.Errorf("left: %v, %d messages", left, served())
	}
	h.keepUp()
	if h.turn(everybody); served() != 2*len(all) {
		t.Errorf("%d messages with the heartbeats", served())
	}
}

// TestBeats: heartbeats come each second, even if a socket without room wakes tend in between.
func TestBeats(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		h := New(Options{Board: view.NewBoard(), Now: time.Now})
		go h.tend()
		defer close(h.ended)
		h.rouse()
		for range 5 {
			time.Sleep(beatPause / 2)
			h.rouse()
			time.Sleep(beatPause / 2)
			synctest.Wait()
			h.mutex.Lock()
			if since := time.Since(h.beat); since > 0 {
				t.Errorf("the last heartbeats were %v ago", since)
			}
			h.mutex.Unlock()
		}
	})
}

// TestStopUnseen: a node that stops may never show a frame that the Hub has read. The Hub then
// stops without the frame, and tells nobody that its Sequence was told.
func TestStopUnseen(t *testing.T) {
	closed, ended, stopping := make(chan struct{}), make(chan error), make(chan struct{})
	next := func() ([]byte, error) {
		<-closed
		return nil, io.EOF
	}
	h := New(Options{Board: view.NewBoard(), Now: time.Now, Next: next, Stopping: stopping})
	h.heap.markets[1], h.heap.read = nil, 1
	go func() { ended <- h.Run() }()
	time.Sleep(20 * time.Millisecond) // Run waits for the Board now, as a rule
	stopped := make(chan bool)
	go func() {
		close(stopping)
		stopped <- h.Reach(1, 20*time.Millisecond)
		close(closed)
	}()
	select {
	case told := <-stopped:
		if told {
			t.Error("told without being shown")
		}
	case <-time.After(10 * time.Second):
		t.Fatal("the Hub waits for the Board")
	}
	if err := <-ended; !errors.Is(err, io.EOF) {
		t.Error(err)
	}
}
