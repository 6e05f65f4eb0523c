package api

import (
	"encoding/json"
	"fmt"
	"io"
	"maps"
	"os"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/fasthttp/websocket"

	"clobd/api/stream"
	"clobd/api/wire"
	"clobd/engine"
	"clobd/journal"
	"clobd/journal/history"
	"clobd/scripts/asyncapi"
)

// owners are the options of the user channel of n, which begins with the next frame.
func (n *node) owners(tail *journal.Tail) *stream.OwnerOptions {
	return &stream.OwnerOptions{Next: tail.Next, Frame: n.journal.Last() + 1,
		Frames:  func(from uint64) func() ([]byte, bool, error) { return n.journal.Tail(from).Poll },
		FrameOf: func(s engine.Sequence) (uint64, error) { return journal.FrameOf(n.journal, s) },
		Touched: n.index.History.Touched, Tell: n.handler.Tell,
		Indexed: func(s engine.Sequence) bool { return n.index.History.Await(s, time.Second) },
		Failed:  func(err error) { n.t.Error(err) }}
}

// event is a message of the user channel.
type event struct {
	Kind    string `json:"event_type"`
	Type    string `json:"type"`
	ID      string `json:"id"`
	Status  string `json:"status"`
	Market  string `json:"market"`
	Matched string `json:"size_matched"`
	Reason  string `json:"cancel_reason"`
	Code    string `json:"code"`
	Message string `json:"message"`
	Seq     uint64 `json:"seq"`
	Part    int    `json:"part"`
	Parts   int    `json:"parts"`
	body    string
}

// hearUser opens the user channel at an address, as a trader, with a wish, and reads it until a
// word comes in a message.
func hearUser(t *testing.T, to [3]string, until string) (all []event) {
	t.Helper()
	c := openUser(t, to[0], to[1], to[2])
	return c.until(t, until)
}

// userSocket is an open user channel. If texts is nil, the test reads the socket itself. Otherwise
// a goroutine reads the socket and sends each text to texts.
type userSocket struct {
	*websocket.Conn
	texts chan []byte
}

func openUser(t *testing.T, url, name, wish string) *userSocket {
	t.Helper()
	c, _, err := websocket.DefaultDialer.Dial(url+"?"+name, nil) //nolint:bodyclose // 101
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { c.Close() })
	documented(t, asyncapi.CheckSent("/ws/user", []byte(wish)))
	if err := c.WriteMessage(websocket.TextMessage, []byte(wish)); err != nil {
		t.Fatal(err)
	}
	return &userSocket{Conn: c}
}

// follow reads the channel from now on, so that the node gets signs of life, and waits for nothing,
// while the test is busy elsewhere.
func (c *userSocket) follow(t *testing.T) {
	c.texts = make(chan []byte, 1<<14) // more messages than any test has
	go func() {
		defer close(c.texts)
		for {
			_, text, err := c.ReadMessage()
			if err != nil {
				if t.Context().Err() == nil {
					t.Error(err)
				}
				return
			}
			c.texts <- text
		}
	}()
}

// read returns the next text.
func (c *userSocket) read() ([]byte, error) {
	if c.texts == nil {
		_ = c.SetReadDeadline(time.Now().Add(20 * time.Second))
		_, text, err := c.ReadMessage()
		return text, err
	}
	select {
	case text, open := <-c.texts:
		if !open {
			return nil, io.ErrUnexpectedEOF
		}
		return text, nil
	case <-time.After(20 * time.Second):
		return nil, os.ErrDeadlineExceeded
	}
}

func (c *userSocket) until(t *testing.T, word string) (all []event) {
	t.Helper()
	for {
		text, err := c.read()
		if err != nil {
			t.Fatalf("after %d messages: %v", len(all), err)
		}
		documented(t, asyncapi.Check("/ws/user", text))
		var e event
		if err := json.Unmarshal(text, &e); err != nil {
			t.Fatalf("%s: %v", text, err)
		}
		if e.Kind != "order" && e.Kind != "trade" {
			continue
		}
		e.body, _, _ = strings.Cut(string(text), `,"stream_id"`)
		if all = append(all, e); strings.Contains(e.body, word) {
			return all
		}
	}
}

// stirred lets the traders place, cancel, and cancel all, in a few hundred frames.
func (r *random) stirred(frames int) {
	for i := range frames {
		r.frame()
		w := r.wallets[i/50&1]
		switch {
		case i%50 == 10:
			r.do(engine.Command{Kind: engine.CancelAll, Wallet: w, Owner: w, Reason: engine.ByOwner,
				Market: engine.MarketNo(i / 50 % 3)})
		case i%7 == 0:
			c := place(fmt.Sprint("f", i), w, quote{1, engine.Outcome(i & 1), engine.Buy, 1700, 6500})
			c.Type = []engine.OrderType{engine.FAK, engine.FOK}[i/7%2]
			r.do(c)
		case i%50 == 20: // one Command cancels the old order, and places the new one, which trades
			old := fmt.Sprint("old", i)
			c := place(fmt.Sprint("new", i), w, quote{1, 0, engine.Buy, 1700, 6500})
			c.Replace(orderID(old))
			r.do(place(old, w, quote{2, 0, engine.Buy, 500, 100}), c)
		}
	}
}

// TestUserChannel: what a listener hears from the first order on, what comes when the listener
// resumes at the first Sequence or behind any message, and what the records say, is the same.
func TestUserChannel(t *testing.T) {
	r := newRandom(t, 2)
	r.run()
	url := r.streams()
	const wish = `{"type":"user","auth":{"apiKey":"k"},"heartbeat":true`
	live := map[string]*userSocket{}
	for _, name := range []string{"alice", "bob"} {
		live[name] = openUser(t, url, name, wish+`}`)
		_, beat, err := live[name].ReadMessage() // the first heartbeat: the listener is live
		if err != nil {
			t.Fatal(err)
		}
		documented(t, asyncapi.Check("/ws/user", beat))
		live[name].follow(t)
	}
	r.stirred(600)
	var many []engine.Command
	for i := range 900 { // more messages than a live listener gets at once
		many = append(many, place(fmt.Sprint("many", i), r.wallets[0], quote{1, 0, engine.Buy, 500, 100}))
	}
	for some := range slices.Chunk(many, 200) {
		r.do(some...)
	}
	r.do(engine.Command{Kind: engine.CancelAll, Wallet: r.wallets[0], Owner: r.wallets[0],
		Reason: engine.Timeout})
	for i, name := range []string{"alice", "bob"} {
		r.do(place("end "+name, r.wallets[i], quote{2, 0, engine.Buy, 500, 100}))
		end := `"id":"` + orderID("end "+name).Hex()
		heard := live[name].until(t, end)
		again := hearUser(t, [3]string{url, name, wish + `,"resume":{"seq":0}}`}, end)
		sameStory(t, heard, again)
		for k := 0; k < len(heard)-1; k += len(heard) / 7 {
			rest := hearUser(t, [3]string{url, name, fmt.Sprintf(`%s,"resume":{"seq":%d,"part":%d}}`,
				wish, heard[k].Seq, heard[k].Part)}, end)
			sameStory(t, heard[k+1:], rest)
		}
		m := r.board.Directory.Market(2)
		one := hearUser(t, [3]string{url, name, fmt.Sprintf(`%s,"markets":["%s"],"resume":{"seq":1}}`,
			wish, m.Condition.Hex())}, end)
		want := slices.DeleteFunc(slices.Clone(heard), func(e event) bool {
			return e.Market != m.Condition.Hex()
		})
		sameStory(t, want, one)
		r.recorded(heard, r.wallets[i])
	}
}

// TestUserErrors: a second login is refused, and the first one stays valid. If a client resumes
// from a Sequence that the node does not have, the error carries the last one that it has.
func TestUserErrors(t *testing.T) {
	r := newRandom(t, 1)
	r.run()
	r.frame()
	url := r.streams()
	const wish = `{"type":"user","auth":{"apiKey":"k"}`
	c := openUser(t, url, "alice", wish+`,"resume":{"seq":1000000}}`)
	last := uint64(r.board.Shown())
	if e := c.next(t); e.Code != "unknown_seq" || e.Seq != last {
		t.Errorf("%+v, want Sequence %d", e, last)
	}
	for said, want := range map[string]string{wish + `}`: "already logged in",
		`{"markets":1}`: "markets has a wrong value: number", `{"heartbeat":`: "malformed JSON"} {
		if err := c.WriteMessage(websocket.TextMessage, []byte(said)); err != nil {
			t.Fatal(err)
		}
		if e := c.next(t); e.Code != "bad_request" || !strings.Contains(e.Message, want) {
			t.Errorf("%s: %+v, want %s", said, e, want)
		}
	}
	r.do(place("still here", r.wallets[0], quote{1, 0, engine.Buy, 500, 100}))
	c.until(t, orderID("still here").Hex())
	hearUser(t, [3]string{url, "alice", wish + `,"resume":{"seq":1}}`}, orderID("still here").Hex())
}

// next reads the next message.
func (c *userSocket) next(t *testing.T) (e event) {
	t.Helper()
	text, err := c.read()
	if err == nil {
		documented(t, asyncapi.Check("/ws/user", text))
		err = json.Unmarshal(text, &e)
	}
	if err != nil {
		t.Fatalf("%s: %v", text, err)
	}
	return e
}

// sameStory compares two runs of messages.
func sameStory(t *testing.T, want, got []event) {
	t.Helper()
	if len(want) != len(got) {
		t.Fatalf("%d messages, want %d", len(got), len(want))
	}
	for i := range want {
		if want[i].body != got[i].body || want[i].Seq != got[i].Seq {
			t.Fatalf("%s\nwant %s", got[i].body, want[i].body)
		}
	}
}

// recorded compares the last message about each order with its record, and the trades with the list
// of trades.
func (r *random) recorded(heard []event, owner engine.WalletNo) {
	r.t.Helper()
	last, kinds, trades := map[string]event{}, map[string]int{}, map[string]bool{}
	for i, e := range heard {
		if i > 0 && (e.Seq < heard[i-1].Seq || e.Seq == heard[i-1].Seq && e.Part != heard[i-1].Part+1) {
			r.t.Fatalf("%s\nafter %s", e.body, heard[i-1].body)
		}
		kinds[e.Kind+e.Type+e.Status+e.Reason]++
		if name := nameOf(e.ID); strings.HasPrefix(name, "new") && e.Type == "PLACEMENT" {
			if was := heard[i-1]; e.Part != 2 || was.Type != "CANCELLATION" || was.Reason != "user" ||
				was.ID != orderID("old"+name[3:]).Hex() {
				r.t.Errorf("%s\nafter %s", e.body, was.body)
			}
			kinds["replaced"]++
		}
		if e.Kind == "order" {
			last[e.ID] = e
		} else {
			trades[e.ID] = true
		}
	}
	for id, e := range last {
		no, _ := engine.ParseOrderID(id)
		row, known, err := r.index.History.Order(no)
		status := map[engine.Status]string{engine.Live: "LIVE", engine.Matched: "MATCHED",
			engine.Canceled: "CANCELED"}[row.Status]
		reason := ""
		if row.Status == engine.Canceled {
			reason = wire.CancelReason(row.Reason)
		}
		matched := strings.Trim(string(wire.AppendDecimalField([]byte("{"), "m", int64(row.Matched), 6)),
			`{"m:`)
		if err != nil || !known || row.Owner != owner || e.Status != status || e.Reason != reason ||
			e.Matched != matched {
			r.t.Errorf("%s\non record %+v, %s matched, %v", e.body, row, matched, err)
		}
	}
	if got := r.listed(owner); got != len(trades) {
		r.t.Errorf("%d trades told, %d listed", len(trades), got)
	}
	r.t.Logf("%d orders, %d trades, %v", len(last), len(trades), kinds)
	for _, kind := range []string{"orderPLACEMENTLIVE", "orderUPDATELIVE", "orderUPDATEMATCHED",
		"orderCANCELLATIONCANCELEDuser", "orderCANCELLATIONCANCELEDall",
		"orderCANCELLATIONCANCELEDmarket", "orderCANCELLATIONCANCELEDself_trade", "tradeTRADEMATCHED",
		"tradeTRADECONFIRMED", "replaced"} {
		if kinds[kind] == 0 {
			r.t.Errorf("no %s among %v", kind, slices.Sorted(maps.Keys(kinds)))
		}
	}
}

// nameOf returns the name from which orderID made an id.
func nameOf(id string) string {
	var b engine.OrderID
	_ = engine.ParseHex(b[:], id)
	name, _, _ := strings.Cut(string(b[:31]), "\x00")
	return name
}

// listed counts the trades in an owner's list.
func (r *random) listed(owner engine.WalletNo) (n int) {
	r.t.Helper()
	for next := uint64(0); ; {
		rows, more, err := r.index.History.Trades(owner, nil, history.Page{From: next, Limit: 1000})
		r.must(err)
		if n += len(rows); more == 0 {
			return n
		}
		next = more
	}
}
