package api

import (
	"fmt"
	"maps"
	"net"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/fasthttp/websocket"

	"clobd/engine"
	"clobd/scripts/mirror"
)

// watchNarrow starts a watcher whose kernel buffers little on both sides, so that a watcher that
// stops reading lags soon.
func watchNarrow(t *testing.T, url, asked string) *watcher {
	t.Helper()
	dialer := net.Dialer{Control: func(_, _ string, c syscall.RawConn) error {
		return c.Control(func(fd uintptr) {
			_ = syscall.SetsockoptInt(int(fd), syscall.SOL_SOCKET, syscall.SO_RCVBUF, 64<<10)
		})
	}}
	d := websocket.Dialer{NetDialContext: dialer.DialContext}
	c, _, err := d.Dial(strings.Replace(url, "/ws/market", narrow, 1), nil)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { c.Close() })
	w := &watcher{t: t, c: c, books: mirror.Books{}, kinds: map[string]int{},
		changes: map[string]uint64{}}
	w.say(asked)
	return w
}

// toTheEnd reads until a heartbeat shows the Board's Sequence: then nothing waits for the watcher.
func (w *watcher) toTheEnd(n *node) {
	w.t.Helper()
	last := uint64(n.board.Shown())
	for w.beat < last {
		if _, err := w.hear(); err != nil {
			w.t.Fatalf("at %d of %d: %v", w.seq, last, err)
		}
	}
}

// tokens returns a JSON list of both tokens of the first markets.
func tokens(markets int) string {
	var all []string
	for m := 1; m <= markets; m++ {
		all = append(all, fmt.Sprintf(`"%d0","%d1"`, m, m))
	}
	return "[" + strings.Join(all, ",") + "]"
}

// TestConflate: a subscriber who often stops reading has, after each message, the book that the
// message's hash names. His messages stand for exactly the changes that another subscriber gets,
// and no trade is missing.
func TestConflate(t *testing.T) {
	r := newRandom(t, 3)
	for range 50 {
		r.frame()
	}
	url := r.streams()
	asked := `{"assets_ids":` + tokens(3) + `,"custom_feature_enabled":true,"heartbeat":true,"conflate":%t}`
	all := watchFrom(t, url, fmt.Sprintf(asked, false), mirror.Books{})
	slow := watchNarrow(t, url, fmt.Sprintf(asked, true))
	other := watchNarrow(t, url, `{"assets_ids":["11","20"],"heartbeat":true,"conflate":true}`)
	for _, w := range []*watcher{all, slow, other} {
		w.until(r.node, 20)
		w.sample = 16
	}
	slowRead, otherRead := time.Now(), time.Now()
	for i := range 20 {
		for n := range 100 {
			if r.frame(); n%25 == 0 { // otherwise nearly all frames become one change for everybody
				all.until(r.node, 10, 11, 20, 21, 30, 31)
				slow.revive(r.node, &slowRead, 10)
				other.revive(r.node, &otherRead, 20)
			}
		}
		if i == 7 { // while changes wait to be sent
			r.now++
			r.do(engine.Command{Kind: engine.Adjust, Market: 2, Listing: listing(2, 10)})
			rules := *listing(3, 100) // a change of rules without a change of the tick
			rules.MinSize = engine.Unit
			r.do(engine.Command{Kind: engine.Adjust, Market: 3, Listing: &rules})
			other.say(`{"assets_ids":["10"]}`)
			r.frame()
		}
		all.until(r.node, 10, 11, 20, 21, 30, 31)
		if i%3 == 0 {
			slow.until(r.node, 10, 11, 20, 21, 30, 31)
			slowRead = time.Now()
		}
	}
	for range 10 {
		r.frame()
	}
	all.toTheEnd(r.node)
	slow.toTheEnd(r.node)
	slow.until(r.node, 10, 11, 20, 21, 30, 31)
	other.toTheEnd(r.node)
	other.until(r.node, 10, 11, 20)
	if !maps.Equal(all.changes, slow.changes) || all.joint != 0 || slow.joint < 10 {
		t.Errorf("changes %v, of the reader who stalls %v; %d messages that stand for more", all.changes, slow.changes,
			slow.joint)
	}
	for _, kind := range []string{"last_trade_price", "tick_size_change", "book"} {
		if n := all.kinds[kind]; n != slow.kinds[kind] || n < 2 {
			t.Errorf("%d times %s, of the reader who stalls %d", n, kind, slow.kinds[kind])
		}
	}
	if n := slow.kinds["price_change"]; n >= all.kinds["price_change"] || slow.kinds["resync"] != 0 {
		t.Errorf("%v", slow.kinds)
	}
}

// TestConflateNothing: waiting changes that cancel each other become one change with an empty list.
// If rules changed between them, they become two, because the book that shows the rules has the
// first change.
func TestConflateNothing(t *testing.T) {
	r := newRandom(t, 3)
	url := r.streams()
	asked := `{"assets_ids":` + tokens(3) + `,"heartbeat":true,"conflate":true}`
	slow := watchNarrow(t, url, asked)
	slow.toTheEnd(r.node)
	r.markets = 1
	for range 300 { // each is told before the next, until the reader lags for sure
		if r.calm(); !r.hub.Reach(r.board.Shown(), 20*time.Second) {
			t.Fatal("it is not told")
		}
	}
	rules := *listing(3, 100)
	rules.MinSize = engine.Unit
	for _, c := range []engine.Command{place("back", r.wallets[0], quote{2, 0, engine.Buy, 500, 1000}),
		{Kind: engine.Cancel, Owner: r.wallets[0], ID: orderID("back")},
		place("again", r.wallets[0], quote{3, 0, engine.Buy, 500, 1000}),
		{Kind: engine.Adjust, Market: 3, Listing: &rules},
		{Kind: engine.Cancel, Owner: r.wallets[0], ID: orderID("again")}} {
		r.now++
		r.do(c)
		if !r.hub.Reach(r.board.Shown(), 20*time.Second) {
			t.Fatal("it is not told")
		}
	}
	nothing, third := 0, 0
	slow.told = func(m *mirror.Message) {
		if m.Type == "price_change" && len(m.Changes) == 0 {
			nothing++
		}
		if m.Type == "price_change" && m.Market == rules.Condition.Hex() {
			third++
		}
	}
	slow.toTheEnd(r.node)
	if nothing != 1 || third != 2 || slow.joint == 0 {
		t.Errorf("%d changes of nothing, %d around other rules, %v", nothing, third, slow.kinds)
	}
}

// calm places orders at random that never trade, in many markets.
func (r *random) calm() {
	r.now++
	var commands []engine.Command
	for range 8 {
		r.orders++
		side := engine.Side(r.rng.IntN(2))
		commands = append(commands, place(fmt.Sprint("r", r.orders), r.wallets[side], quote{
			engine.MarketNo(1 + r.rng.IntN(r.markets)), 0, side, 500,
			engine.Price(100 * (1 + 50*int(side) + r.rng.IntN(49)))}))
	}
	r.do(commands...)
}

// stall is about how long a subscriber may take no byte. After that the socket may be closed
// without a close frame.
const stall = 8 * time.Second

// revive lets a watcher who has read nothing for half of that time read as far as the book of a
// token: on a slow machine the socket would be closed otherwise.
func (w *watcher) revive(n *node, read *time.Time, token int) {
	w.t.Helper()
	if time.Since(*read) > stall/2 {
		w.until(n, token)
		*read = time.Now()
	}
}

// TestConflateMuch: when too many changes wait for one message, fresh books replace them. A
// subscriber who does not conflate is closed with 1013 in the meantime.
func TestConflateMuch(t *testing.T) {
	const markets = 100
	r := newRandom(t, markets)
	url := r.streams()
	asked := `{"assets_ids":` + tokens(markets) + `,"heartbeat":true,"conflate":%t}`
	all := watchFrom(t, url, fmt.Sprintf(asked, false), mirror.Books{})
	slow := watchNarrow(t, url, fmt.Sprintf(asked, true))
	plain := watchNarrow(t, url, fmt.Sprintf(asked, false))
	for _, w := range []*watcher{all, slow, plain} {
		w.toTheEnd(r.node)
		w.sample = 16 // a slow machine must be done before the sockets are closed
	}
	begun := time.Now()
	for i := range 1000 {
		if r.calm(); i%50 == 0 {
			all.until(r.node, 10, 20)
		}
	}
	all.toTheEnd(r.node)
	if took := time.Since(begun); took > stall {
		t.Skipf("all of it took %v: who reads nothing for so long is cut, whether or not he conflates", took)
	}
	plain.cut(all.seq, begun)
	slow.toTheEnd(r.node)
	if n := slow.kinds["resync"]; n == 0 || slow.kinds["book"] != 2*markets*(1+n) {
		t.Errorf("%v", slow.kinds)
	}
	var sum, stood uint64
	for market, n := range all.changes {
		sum, stood = sum+n, stood+slow.changes[market]
	}
	if stood+slow.swallowed != sum || slow.swallowed == 0 {
		t.Errorf("%d changes and %d in place of which books came, want %d", stood, slow.swallowed, sum)
	}
	for _, asset := range slices.Sorted(maps.Keys(all.books)) {
		if !slices.Equal(all.books[asset].Bids, slow.books[asset].Bids) ||
			!slices.Equal(all.books[asset].Asks, slow.books[asset].Asks) {
			t.Errorf("token %s: another book", asset)
		}
	}
}

// cut checks that the subscriber's socket is closed with the reason, before everything has arrived.
func (w *watcher) cut(last uint64, begun time.Time) {
	w.t.Helper()
	for w.seq < last {
		if _, err := w.hear(); err != nil {
			if !websocket.IsCloseError(err, websocket.CloseTryAgainLater) && time.Since(begun) < stall {
				w.t.Error(err)
			}
			return
		}
	}
	w.t.Error("who does not conflate was not cut")
}
