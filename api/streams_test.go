package api

import (
	"bufio"
	"encoding/json"
	"errors"
	"fmt"
	"math/rand/v2"
	"net"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/fasthttp/websocket"

	"clobd/api/stream"
	"clobd/api/wire"
	"clobd/api/wire/live"
	"clobd/engine"
	"clobd/engine/view"
	"clobd/journal"
	"clobd/scripts/asyncapi"
	"clobd/scripts/mirror"
)

// streams serves the changes of n over sockets until the test ends. It returns the URL of market
// data.
func (n *node) streams() string {
	from := n.journal.Last() + 1
	tail, users := n.journal.Tail(1), n.journal.Tail(from)
	hub := stream.New(stream.Options{Board: n.board, Next: tail.Next, JournalID: testJournal,
		Now: time.Now, Owners: n.owners(users), Announce: n.handler.Announce,
		ID: n.marketID, Label: n.catalog.Label, Panicked: n.panicked,
		Hash: new(Hasher).Hash,
		Book: func(s *view.Snapshot, o engine.Outcome) []byte { return s.Text(o, renderBook) }})
	n.hub = hub
	ended := make(chan error, 2)
	go func() { ended <- hub.Run() }()
	go func() { ended <- hub.RunOwners() }()
	ln, err := net.Listen("tcp", "127.0.0.1:0")
	n.must(err)
	go func() {
		for {
			c, err := ln.Accept()
			if err != nil {
				return
			}
			go func() {
				r, err := http.ReadRequest(bufio.NewReader(c))
				if err != nil {
					return
				}
				if r.URL.Path == narrow {
					_ = c.(*net.TCPConn).SetWriteBuffer(16 << 10)
				}
				line, asked := live.NewLine(c), live.Asked{Key: r.Header.Get("Sec-Websocket-Key")}
				if s, err := live.Open(line, line, nil, asked); err == nil {
					n.serveSocket(hub, s, r.URL.RawQuery)
				}
			}()
		}
	}()
	n.t.Cleanup(func() {
		ln.Close()
		tail.Close()
		users.Close()
		for range cap(ended) {
			if err := <-ended; !errors.Is(err, journal.ErrClosed) {
				n.t.Error(err)
			}
		}
	})
	return "ws://" + ln.Addr().String() + "/ws/market"
}

// marketID returns the id of a market in the catalog, "" if the catalog does not have it.
func (n *node) marketID(c engine.Condition) string {
	if m := n.catalog.Market(c); m != nil {
		return m.ID
	}
	return ""
}

// narrow is the path of sockets that have a small send buffer in the kernel.
const narrow = "/narrow"

// panicked fails the test.
func (n *node) panicked(where string, cause any) string {
	n.t.Errorf("panic of %s: %v", where, cause)
	return ""
}

// serveSocket serves the user channel of the trader name, or market data if name is "".
func (n *node) serveSocket(hub *stream.Hub, s *live.Socket, name string) {
	if name == "" {
		hub.Serve(s)
		return
	}
	hub.ServeUser(s, func(*wire.Credentials) (wire.Owner, error) {
		return wire.Owner{Address: trader(name), Dialect: wire.POLY}, nil
	})
}

// watcher is a client that keeps books from the messages that it gets, and checks every hash.
type watcher struct {
	t        *testing.T
	c        *websocket.Conn
	books    mirror.Books
	sequence uint64
	seq      uint64
	beat     uint64 // Sequence of the last heartbeat
	hashes   int
	kinds    map[string]int
	changes  map[string]uint64 // how many changes of each market, including merged ones
	joint    int               // price_change messages with several merged changes
	// swallowed is how many changes were replaced by fresh books.
	swallowed uint64
	told      func(*mirror.Message) // called after each message, unless nil
	// One frame in sample is checked against the AsyncAPI document; 0: each is.
	sample, frames int
}

func watchFrom(t *testing.T, url string, asked string, books mirror.Books) *watcher {
	t.Helper()
	c, _, err := websocket.DefaultDialer.Dial(url, nil)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { c.Close() })
	w := &watcher{t: t, c: c, books: books, kinds: map[string]int{}, changes: map[string]uint64{}}
	documented(t, asyncapi.CheckSent("/ws/market", []byte(asked)))
	w.say(asked)
	return w
}

// documented reports a message that does not match the AsyncAPI document.
func documented(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Error(err)
	}
}

func (w *watcher) say(text string) {
	w.t.Helper()
	if err := w.c.WriteMessage(websocket.TextMessage, []byte(text)); err != nil {
		w.t.Fatal(err)
	}
}

// hear reads the next frame, checks its messages, applies them to the books, and returns its text.
func (w *watcher) hear() (string, error) {
	w.t.Helper()
	_ = w.c.SetReadDeadline(time.Now().Add(20 * time.Second))
	_, b, err := w.c.ReadMessage()
	if err != nil {
		return "", err
	}
	if w.frames++; w.frames%max(w.sample, 1) == 0 {
		documented(w.t, asyncapi.Check("/ws/market", b))
	}
	text := string(b)
	if text == "PONG" || text == "NO NEW ASSETS" {
		return text, nil
	}
	all, err := mirror.Parse(b)
	if err != nil {
		w.t.Fatal(err)
	}
	for i := range all {
		m := &all[i]
		if w.sequence++; m.Sequence != w.sequence || m.Stream == "" {
			w.t.Fatalf("message %d comes as number %d of %q", m.Sequence, w.sequence, m.Stream)
		}
		if m.Type != "book" && m.Seq < w.seq {
			w.t.Fatalf("%s shows %d after %d", m.Type, m.Seq, w.seq)
		}
		w.kinds[m.Type]++
		w.seq = max(w.seq, m.Seq)
		w.count(m)
		n, err := w.books.Apply(m)
		if err != nil {
			w.t.Fatalf("%v\nafter %s", err, text)
		}
		if w.hashes += n; w.told != nil {
			w.told(m)
		}
	}
	return text, nil
}

// count adds the changes that a message reports to the totals of the watcher. A price_change may
// merge several changes, and a resync may replace several by fresh books. count also notes the
// Sequence of a heartbeat.
func (w *watcher) count(m *mirror.Message) {
	switch m.Type {
	case "heartbeat":
		w.beat = m.Seq
	case "resync":
		w.swallowed += m.Conflated
	case "price_change":
		if w.changes[m.Market] += max(m.Conflated, 1); m.Conflated > 0 {
			w.joint++
		}
	}
}

// hears reads until a message of the type kind comes. The frame of the message must contain want.
func (w *watcher) hears(kind, want string) {
	w.t.Helper()
	for w.kinds[kind] == 0 {
		text, err := w.hear()
		if err != nil {
			w.t.Fatal(err)
		}
		if w.kinds[kind] > 0 && !strings.Contains(text, want) {
			w.t.Errorf("%s\nwant %s", text, want)
		}
	}
}

// until reads until the books of the tokens equal those of the Board, apart from their times. A
// frame that changes no level may change the time of the Board's book, and the Hub does not tell
// that.
func (w *watcher) until(n *node, tokens ...int) {
	w.t.Helper()
	for _, token := range tokens {
		s, o, _ := n.board.Book(small(token))
		var now mirror.Message
		n.must(json.Unmarshal(s.Text(o, renderBook), &now))
		for {
			if k := w.books[fmt.Sprint(token)]; k != nil {
				want := strings.Replace(string(s.Text(o, renderBook)), now.Hash, "", 1)
				want = strings.Replace(want, now.Timestamp, k.Timestamp, 1)
				if string(k.AppendText(nil, "")) == want { // without hashes: a trade alone has none
					break
				}
			}
			if _, err := w.hear(); err != nil {
				w.t.Fatalf("token %d never gets to %s: %v", token, s.Text(o, renderBook), err)
			}
		}
	}
}

// random is a node in whose markets two traders place and cancel orders at random.
type random struct {
	*node
	rng     *rand.Rand
	wallets []engine.WalletNo
	markets int
	orders  int
}

func newRandom(t *testing.T, markets int) *random {
	r := &random{node: newNode(t), rng: rand.New(rand.NewPCG(1, 2)), markets: markets}
	for m := 1; m <= markets; m++ {
		r.do(engine.Command{Kind: engine.List, Listing: listing(m, 100)})
	}
	for m := 1; m <= markets; m++ {
		for _, name := range []string{"alice", "bob"} {
			w := r.fund(name, engine.MarketNo(m), 1_000_000, 1_000_000)
			if r.wallets = append(r.wallets, w); m > 1 {
				r.wallets = r.wallets[:2]
			}
		}
	}
	return r
}

func (r *random) frame() { r.frameOf(4) }

// frameOf makes a frame of random Commands, from one to most.
func (r *random) frameOf(most int) {
	r.now += engine.Time(r.rng.IntN(3))
	var commands []engine.Command
	for range 1 + r.rng.IntN(most) {
		w := r.wallets[r.rng.IntN(2)]
		if r.orders > 10 && r.rng.IntN(3) == 0 {
			commands = append(commands, engine.Command{Kind: engine.Cancel, Owner: w,
				ID: orderID(fmt.Sprint("r", r.orders-r.rng.IntN(10)))})
			continue
		}
		r.orders++
		c := place(fmt.Sprint("r", r.orders), w, quote{
			engine.MarketNo(1 + r.rng.IntN(r.markets)), engine.Outcome(r.rng.IntN(2)),
			engine.Side(r.rng.IntN(2)), 500 + r.rng.IntN(1000), engine.Price(100 * (40 + r.rng.IntN(20)))})
		c.Seen = r.head.Sequence // no id is used twice, so there is nothing to recheck
		commands = append(commands, c)
	}
	r.do(commands...)
}

// adjust changes the minimum size of a random market, and sometimes also makes its tick finer.
func (r *random) adjust() {
	m := 1 + r.rng.IntN(r.markets)
	rules := *listing(m, r.board.Directory.Market(engine.MarketNo(m)).Tick)
	rules.MinSize = engine.Size(1+r.rng.IntN(5)) * engine.Unit
	if r.rng.IntN(4) == 0 && rules.Tick > 1 {
		rules.Tick /= 10
	}
	r.now++
	r.do(engine.Command{Kind: engine.Adjust, Market: engine.MarketNo(m), Listing: &rules})
}

// TestReconstruction: a client that applies every change to the first books has, after each change,
// the book with the change's hash, and in the end the book of the Board. The same holds for a
// client that named a single token.
func TestReconstruction(t *testing.T) {
	r := newRandom(t, 3)
	r.described(marketText(2, ""), marketText(9, `,"description":"What \"it\" is"`))
	for range 50 {
		r.frame()
	}
	url := r.streams()
	all := watchFrom(t, url, `{"type":"MARKET","assets_ids":["10","11","20","21","30","31"]}`,
		mirror.Books{})
	one := watchFrom(t, url, `{"type":"market","assets_ids":["21"],"custom_feature_enabled":true}`,
		mirror.Books{})
	all.until(r.node, 10, 31)
	one.until(r.node, 21)
	for i := range 2000 {
		if r.frame(); r.rng.IntN(50) == 0 {
			r.adjust()
		}
		if i%10 == 0 {
			all.until(r.node, 10, 11, 20, 21, 30, 31)
		}
	}
	all.until(r.node, 10, 11, 20, 21, 30, 31)
	one.until(r.node, 21)
	if all.hashes < 200 || all.kinds["last_trade_price"] < 100 || all.kinds["book"] < 20 ||
		all.kinds["best_bid_ask"] != 0 || one.kinds["best_bid_ask"] < 20 || len(one.books) != 1 {
		t.Errorf("%d hashes, %v; one token: %d books, %v", all.hashes, all.kinds, len(one.books), one.kinds)
	}
	r.now++
	rules := *listing(2, r.board.Directory.Market(2).Tick)
	books, ticks := one.kinds["book"], one.kinds["tick_size_change"]
	for _, rules.MinSize = range []engine.Size{6 * engine.Unit, 7 * engine.Unit} {
		r.do(engine.Command{Kind: engine.Adjust, Market: 2, Listing: &rules})
		one.until(r.node, 21)
	}
	if one.kinds["tick_size_change"] != ticks || one.kinds["book"] != books+2 {
		t.Errorf("%d books and %d ticks before the minimum changed twice, %v", books, ticks, one.kinds)
	}
	r.do(engine.Command{Kind: engine.Resolve, Market: 2, Price: engine.PriceOne, ID: orderID("end")})
	one.until(r.node, 21)
	one.hears("market_resolved", `"winning_asset_id":"20","winning_outcome":"Yes"`)
	r.do(engine.Command{Kind: engine.List, Listing: listing(9, 100)})
	one.hears("new_market", `"id":"9","question":"Number 9?","market":"`+
		listing(9, 100).Condition.Hex()+`","slug":"m9","description":"What \"it\" is",`+
		`"assets_ids":["90","91"],"outcomes":["Yes","No"],"event_message":null,"timestamp":"`)
	all.say(`{"assets_ids":["90"]}`)
	if all.until(r.node, 90); all.kinds["new_market"] != 0 {
		t.Error("a market is announced to who did not ask for that")
	}
	r.do(engine.Command{Kind: engine.Resolve, Market: 4, Price: 0, ID: orderID("end 9")})
	late := watchFrom(t, url, `{"assets_ids":["91","90"],"custom_feature_enabled":true}`,
		mirror.Books{})
	late.until(r.node, 90, 91)
	late.hears("market_resolved", `"id":"9","assets_ids":["90","91"],"winning_asset_id":"91"`)
}

// TestOpenedLater: a market that is listed unopened is announced when it opens for the first time,
// and not again.
func TestOpenedLater(t *testing.T) {
	r := newRandom(t, 1)
	r.described(marketText(2, ""), marketText(3, ""), marketText(4, ""))
	unopened := *listing(4, 100)
	unopened.Open = false
	r.do(engine.Command{Kind: engine.List, Listing: &unopened}) // before the streams start
	w := watchFrom(t, r.streams(), `{"assets_ids":["10"],"custom_feature_enabled":true}`, mirror.Books{})
	w.until(r.node, 10)
	unopened = *listing(3, 100)
	unopened.Open = false
	r.do(engine.Command{Kind: engine.List, Listing: &unopened})
	for i, want := range []string{`"id":"3"`, `"id":"4"`, `"id":"2"`} {
		switch no := engine.MarketNo(3 - i); no {
		case 1:
			r.do(engine.Command{Kind: engine.List, Listing: listing(2, 100)})
		default:
			for i := range 4 { // the market opens twice, and only the first time counts
				state := []engine.MarketState{engine.Paused, engine.Open}[i%2]
				r.do(engine.Command{Kind: engine.SetState, Market: no, State: state})
			}
		}
		delete(w.kinds, "new_market")
		w.hears("new_market", want)
	}
}

// TestResumeQuiet: a client gets the first book of a market that nobody watched before, and resumes
// before anything has changed. The Hub then sends it nothing.
func TestResumeQuiet(t *testing.T) {
	r := newRandom(t, 1)
	url := r.streams()
	r.frame()
	seq := engine.Sequence(0)
	for i := range 3 {
		asked := `{"assets_ids":["10"]}`
		if i > 0 {
			asked = fmt.Sprintf(`{"assets_ids":["10"],"resume":{"seq":%d}}`, seq)
		}
		w := watchFrom(t, url, asked, mirror.Books{})
		if w.say("PING"); i == 0 {
			w.until(r.node, 10)
			seq = engine.Sequence(w.seq)
		} else if text, err := w.hear(); err != nil || text != "PONG" {
			t.Errorf("resume at %d: %s %v", seq, text, err)
		}
		w.c.Close()
	}
}

// TestResume: a client that comes back gets the messages that it missed. If the Hub no longer has
// them, the client gets a resync and fresh books.
func TestResume(t *testing.T) {
	r := newRandom(t, 2)
	url := r.streams()
	w := watchFrom(t, url, `{"assets_ids":["10","11","20","21"]}`, mirror.Books{})
	w.until(r.node, 10, 11, 20, 21)
	for range 20 {
		for range 20 {
			r.frame()
		}
		w.until(r.node, 10, 20)
		for range 20 {
			r.frame()
		}
		w.c.Close()
		w = watchFrom(t, url, fmt.Sprintf(
			`{"assets_ids":["10","11","20","21"],"resume":{"seq":%d}}`, w.seq), w.books)
		w.until(r.node, 10, 11, 20, 21)
		if w.kinds["book"]+w.kinds["resync"] != 0 {
			t.Fatalf("%v", w.kinds)
		}
	}
	for _, seq := range []uint64{0, 1 << 60} { // before the first subscriber, and beyond the journal
		w := watchFrom(t, url, fmt.Sprintf(`{"assets_ids":["10","20"],"resume":{"seq":%d}}`, seq),
			mirror.Books{})
		w.until(r.node, 10, 20)
		if w.kinds["resync"] != 1 || w.kinds["book"] != 2 {
			t.Errorf("from %d: %v", seq, w.kinds)
		}
	}
}

// TestResumeAtTheStart: a Hub that began with a book does not have the messages that led to the
// book. A client that resumes from the book's Sequence may have seen only some of them, so it gets
// the book again. A client that resumes from a later Sequence does not.
func TestResumeAtTheStart(t *testing.T) {
	r := newRandom(t, 3)
	book, _, _ := r.board.Book(listing(1, 0).Tokens[0])
	for i := 0; i < 20 || book.Sequence == r.board.Shown(); i++ { // until another market changed last
		r.frame()
		book, _, _ = r.board.Book(listing(1, 0).Tokens[0])
	}
	token := listing(1, 0).Tokens[0].String()
	url := r.streams()
	for seq, want := range map[engine.Sequence]int{book.Sequence: 1, r.board.Shown(): 0} {
		w := watchFrom(t, url, fmt.Sprintf(`{"assets_ids":["%s"],"resume":{"seq":%d}}`, token, seq),
			mirror.Books{})
		w.say("PING")
		for w.kinds["book"] == 0 {
			text, err := w.hear()
			if err != nil {
				t.Fatal(err)
			}
			if text == "PONG" {
				break
			}
		}
		if w.kinds["resync"] != want || w.kinds["book"] != want {
			t.Errorf("from %d, the book is of %d: %v", seq, book.Sequence, w.kinds)
		}
		w.c.Close()
	}
}

// TestLargeBooks: first books that are too long for one message come in several arrays.
func TestLargeBooks(t *testing.T) {
	r := newRandom(t, 3)
	for m := 1; m <= r.markets; m++ {
		r.do(engine.Command{Kind: engine.Adjust, Market: engine.MarketNo(m), Listing: listing(m, 1)})
		for price := engine.Price(1); price <= 4500; price += 100 {
			var some []engine.Command
			for p := price; p < price+100; p++ {
				some = append(some, place(fmt.Sprint("l", m, "-", p), r.wallets[0],
					quote{engine.MarketNo(m), 0, engine.Buy, 500, p}))
			}
			r.do(some...)
		}
	}
	w := watchFrom(t, r.streams(), `{"assets_ids":`+tokens(r.markets)+`}`, mirror.Books{})
	w.until(r.node, 10, 11, 20, 21, 30, 31)
	if w.frames != 2 || w.kinds["book"] != 6 {
		t.Errorf("%d texts, %v", w.frames, w.kinds)
	}
}

// TestStreamRequests: the Hub answers each request of a subscriber with the documented message.
func TestStreamRequests(t *testing.T) {
	r := newRandom(t, 2)
	w := watchFrom(t, r.streams(), `{"type":"Market","assets_ids":[]}`, mirror.Books{})
	for _, c := range []struct{ asked, told string }{
		{"PING", "PONG"},
		{`{"assets_ids":["10"],"operation":"subscribe"}`, `[{"event_type":"book","market":`},
		{`{"assets_ids":["10"],"operation":"subscribe"}`, "NO NEW ASSETS"},
		{`{"assets_ids":["10"]}`, ""},
		{`{`, `{"event_type":"error","code":"bad_request"`},
		{`{"type":"user"}`, `{"event_type":"error","code":"bad_request"`},
		{`{"operation":"dance"}`, `{"event_type":"error","code":"bad_request"`},
		{`{"assets_ids":["77","x"]}`, `{"event_type":"error","code":"unknown_asset","message":"no market lists 77, x"`},
		{`{"markets":["` + listing(2, 0).Condition.Hex() + `"],"initial_dump":false}`, ""},
		{`{"assets_ids":[ "20" , 21 ],"operation":"subscribe"}`, "NO NEW ASSETS"},
		{`{"markets":["` + listing(2, 0).Condition.Hex() + `"],"operation":"unsubscribe"}`, ""},
		{`{"assets_ids":[20]}`, `[{"event_type":"book","market":`},
		{`{"markets":["0x12"]}`, `{"event_type":"error","code":"unknown_market","message":"no market has the ` +
			`condition 0x12"`},
		{`{"assets_ids":"11"}`, `{"event_type":"error","code":"bad_request","message":"assets_ids has a wrong`},
		{`{"assets_ids":[null]}`, `{"event_type":"error","code":"bad_request","message":"assets_ids has a wr`},
		{`{"heartbeat":"x"}`, `{"event_type":"error","code":"bad_request","message":"heartbeat has a wrong va`},
		{`{"resume":{"seq":"1"}}`, `{"event_type":"error","code":"bad_request","message":"resume.seq has a wro`},
		{`[1]`, `{"event_type":"error","code":"bad_request","message":"send an object with type and`},
		{`{"assets_ids":["11"],"initial_dump":false}`, ""},
		{`{"assets_ids":["11"],"operation":"unsubscribe"}`, ""},
		{`{"assets_ids":["11"]}`, `[{"event_type":"book","market":`},
		{`{"heartbeat":true}`, `{"event_type":"heartbeat","timestamp":"1`},
	} {
		err := asyncapi.CheckSent("/ws/market", []byte(c.asked))
		if bad := strings.Contains(c.told, "bad_request"); bad != (err != nil) {
			t.Errorf("the node refuses %s: %v, the document: %v", c.asked, bad, err)
		}
		w.say(c.asked)
		if c.told == "" {
			w.say("PING")
			c.told = "PONG"
		}
		got, err := w.hear()
		if err != nil || !strings.HasPrefix(got, c.told) {
			t.Errorf("%s: %.200s %v, want %s", c.asked, got, err, c.told)
		}
	}
	r.do(engine.Command{Kind: engine.SetMode, Mode: engine.CancelOnly})
	w.until(r.node, 10, 11)
}
