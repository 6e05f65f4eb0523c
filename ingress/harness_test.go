package ingress

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net"
	"net/http/httptest"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/valyala/fasthttp"
	"github.com/valyala/fasthttp/fasthttputil"

	"clobd/api/wire"
	"clobd/api/wire/live"
	"clobd/engine"
	"clobd/engine/sequencer"
	"clobd/engine/sequencer/memory"
	"clobd/engine/view"
	"clobd/ingress/auth"
	"clobd/ingress/conn"
	"clobd/scripts/openapi"
)

// The world of the contract tests stands still, so that all keys, signatures, ids and times in the
// expected answers are the same every time.
const (
	testNow     = 1_800_000_000
	testChain   = 80002
	testJournal = 0x0123456789abcdef
	testAdmin   = "correct horse battery staple"
	testRing    = 64 // slots
	testFrames  = 4  // batches
)

// patience is how long a test waits for what must happen, and the door for the engine. It is no
// measure of speed: only what has failed takes so long.
const patience = time.Minute

// house is a whole node without a disk behind a listener in memory.
type house struct {
	t         testing.TB
	server    *Server
	exchange  *engine.Exchange
	board     *view.Board
	sequencer *sequencer.Sequencer
	journal   *memory.Journal
	keyring   *auth.Keyring
	listener  *fasthttputil.InmemoryListener
	market    engine.Listing
	names     map[string]engine.OrderID
	texts     map[string]string // kept from answers

	// gate has room for one: whoever makes a frame durable passes it, and the disk hangs while
	// somebody stays in it. It is a channel because a bubble's clock goes on while all wait for one.
	gate chan struct{}

	late atomic.Int64 // how many seconds the clock has moved on

	mutex sync.Mutex
	blind bool   // the index knows nothing yet
	told  string // X-Sequence of the latest answer

	behind engine.Sequence // the last one that the index knows, 0 if it is up to date

	troubles troubles

	record *openapi.Record // of what was answered, nil if nobody asks
	seen   *coverage       // of the contract cases, nil if nobody asks
	desk   *desks          // sockets that carry the requests; nil: requests go over HTTP
}

// now is the clock of everything in the house, in unix seconds.
func (h *house) now() int64 { return testNow + h.late.Load() }

// newHouse starts a house; change may edit the options of its Server.
func newHouse(t testing.TB, change func(*Options)) *house {
	h := buildHouse(t, change)
	open(h)
	return h
}

// open starts a house. Nobody looks for silent keys but who waits for them: two who look at once
// would not know what the other one found.
func open(h *house) {
	h.server.begin.Do(func() {})
	h.start()
}

// buildHouse makes a house that does not run yet. Its door waits for clients and keeps orders in
// line as long as the slowest machine needs.
func buildHouse(t testing.TB, change func(*Options)) *house {
	h := &house{
		t: t, exchange: engine.NewExchange(1), board: view.NewBoard(),
		journal: &memory.Journal{}, keyring: auth.NewKeyring([32]byte{7}),
		listener: fasthttputil.NewInmemoryListener(), names: make(map[string]engine.OrderID),
		texts: make(map[string]string), gate: make(chan struct{}, 1),
	}
	h.journal.OnWait = func(uint64) error {
		h.gate <- struct{}{}
		<-h.gate
		return nil
	}
	var err error
	h.sequencer, err = sequencer.New(h.exchange, h.board, h.journal, sequencer.Options{
		Now: func() engine.Time { return engine.Time(h.now() * 1000) }, Ring: testRing,
		Frames: testFrames, Timeout: patience,
	})
	if err != nil {
		t.Fatal(err)
	}
	o := Options{
		Enter: h.sequencer.Enter, EnterAll: h.sequencer.EnterAll, Board: h.board, Keyring: h.keyring,
		Verifier: auth.NewVerifier(auth.Domains(testChain)), Chains: []uint64{testChain},
		Public: func(ctx *fasthttp.RequestCtx) {
			fmt.Fprintf(ctx, "public %s %s", ctx.Method(), ctx.Path())
		},
		Account: func(ctx *fasthttp.RequestCtx, owner engine.Address, dialect wire.Dialect) {
			fmt.Fprintf(ctx, "account %s %s %s", ctx.Path(), auth.Checksum(owner), dialect)
		},
		Market: func(*live.Socket) {}, User: func(*live.Socket, wire.Login) {},
		Past: h.past, Request: requestIn(h), Moved: movedIn(h),
		Await:     func(engine.Sequence, time.Duration) bool { return true },
		JournalID: testJournal, AdminToken: testAdmin, Version: "test", Workers: 1,
		Now: func() time.Time { return time.Unix(h.now(), 0) },
	}
	if change != nil {
		change(&o)
	}
	if h.server, err = New(o); err != nil {
		t.Fatal(err)
	}
	h.server.turnstile.Timeouts = conn.Timeouts{Request: time.Hour, Idle: time.Hour, Answer: time.Hour,
		Refusal: time.Hour}
	unhurry(h.server.pool)
	return h
}

// inBubble runs a test on a clock of its own: what waits for a timeout has it as soon as nothing
// else can happen, and a machine that is slow or stands still has none of them pass.
func inBubble(t *testing.T, test func(*testing.T)) {
	t.Helper()
	new(fasthttp.ResponseHeader).Header() // starts the HTTP server's clock, which must not be in there
	synctest.Test(t, func(t *testing.T) {
		t.Cleanup(func() { time.Sleep(time.Minute) }) // the HTTP server's workers end by themselves
		test(t)
	})
}

// announced is a listener that tells when it is first listened to.
type announced struct {
	net.Listener
	once sync.Once
	up   chan struct{}
}

func (l *announced) Accept() (net.Conn, error) {
	l.once.Do(func() { close(l.up) })
	return l.Listener.Accept()
}

// start runs everything, lists the market, and stops it all at the end of the test.
func (h *house) start() {
	var joined sync.WaitGroup
	joined.Go(func() {
		if err := h.sequencer.Run(); err != nil {
			h.t.Errorf("sequencer: %v", err)
		}
	})
	listener := &announced{Listener: h.listener, up: make(chan struct{})}
	joined.Go(func() {
		if err := h.server.Serve(listener); err != nil {
			h.t.Errorf("serve: %v", err)
		}
	})
	<-listener.up
	h.t.Cleanup(func() {
		ctx, cancel := context.WithTimeout(context.Background(), patience)
		defer cancel()
		if err := h.server.Close(ctx); err != nil {
			h.t.Errorf("close: %v", err)
		}
		if err := h.sequencer.Close(); err != nil {
			h.t.Errorf("close sequencer: %v", err)
		}
		joined.Wait()
	})
	h.market = engine.Listing{
		Condition: engine.Condition{0xc0}, Tokens: [2]engine.Token{{31: 0xa}, {31: 0xb}},
		Tick: 100, MinSize: 5 * engine.Unit, Open: true,
	}
	h.submit(engine.Command{Kind: engine.List, Listing: &h.market})
	closed := h.market
	closed.Condition, closed.Open = engine.Condition{0xc1}, false
	closed.Tokens = [2]engine.Token{{31: 0xc}, {31: 0xd}}
	h.submit(engine.Command{Kind: engine.List, Listing: &closed})
	h.server.Ready(true)
}

func (h *house) submit(c engine.Command) engine.Receipt {
	h.t.Helper()
	r, err := h.sequencer.Submit(&c)
	if err != nil || r.Reject != engine.Accepted {
		h.t.Fatalf("submit kind %d: %v %s", c.Kind, err, r.Text())
	}
	return r
}

// movedIn finds in the journal what Command seq moved.
func movedIn(h *house) func(engine.WalletNo, engine.Sequence) (engine.Event, bool, error) {
	return func(w engine.WalletNo, seq engine.Sequence) (engine.Event, bool, error) {
		var f engine.Frame
		for _, b := range h.journal.Frames() {
			if err := engine.DecodeFrame(b, &f); err != nil {
				return engine.Event{}, false, err
			}
			for i := range f.Commands {
				for _, e := range f.EventsOf(i) {
					if f.First+engine.Sequence(i) == seq && e.Wallet == w && (e.Kind == engine.Split ||
						e.Kind == engine.Merged || e.Kind == engine.Redeemed) {
						return e, true, nil
					}
				}
			}
		}
		return engine.Event{}, false, nil
	}
}

// requestIn looks for the id of a move as past does for that of an order.
func requestIn(h *house) func(engine.OrderID) (engine.Sequence, bool, engine.Sequence, error) {
	return func(id engine.OrderID) (engine.Sequence, bool, engine.Sequence, error) {
		h.mutex.Lock()
		blind := h.blind
		h.mutex.Unlock()
		if h.troubles.index.Load() {
			return 0, false, 0, io.ErrUnexpectedEOF
		}
		var f engine.Frame
		seen := engine.Sequence(0)
		for _, b := range h.journal.Frames() {
			if err := engine.DecodeFrame(b, &f); err != nil || blind {
				return 0, false, 0, err
			}
			for i := range f.Commands {
				seen = f.First + engine.Sequence(i)
				for _, e := range f.EventsOf(i) {
					if e.Order == id && movedBy(f.Commands[i].Kind) == e.Kind {
						return seen, true, seen, nil
					}
				}
			}
		}
		return 0, false, seen, nil
	}
}

// past is an index of the plainest kind: it reads the whole journal every time.
func (h *house) past(id engine.OrderID) (engine.Receipt, bool, engine.Sequence, error) {
	h.mutex.Lock()
	blind, behind := h.blind, h.behind
	h.mutex.Unlock()
	if h.troubles.index.Load() {
		return engine.Receipt{}, false, 0, io.ErrUnexpectedEOF
	}
	if blind {
		return engine.Receipt{}, false, 0, nil
	}
	var found engine.Receipt
	var f engine.Frame
	seen := engine.Sequence(0)
	for _, b := range h.journal.Frames() {
		if err := engine.DecodeFrame(b, &f); err != nil {
			return found, false, 0, err
		}
		if behind != 0 && f.First > behind {
			break
		}
		seen = engine.Sequence(f.Last())
		for i := range f.Commands {
			c, events := &f.Commands[i], f.EventsOf(i)
			if r := engine.ReceiptOf(c, f.First+engine.Sequence(i), f.Time, events); c.Kind ==
				engine.Place && c.ID == id && (r.Reject == engine.Accepted ||
				engine.Rejects[r.Reject].Final) {
				found = r
			}
			for _, e := range events {
				switch {
				case e.Order != id || found.Sequence == 0:
				case e.Kind == engine.Cancelled:
					found.Status, found.Reason = engine.Canceled, e.Reason
				case e.Kind == engine.Filled && e.Remaining == 0:
					found.Status = engine.Matched
				}
			}
		}
	}
	return found, found.Sequence != 0, seen, nil
}

// trader is somebody with a private key: the name, repeated.
func trader(name string) *auth.Signer {
	var key [32]byte
	copy(key[:], strings.Repeat(name+"!", 32))
	s, err := auth.NewSigner(key)
	if err != nil {
		panic(err)
	}
	return s
}

// send writes raw bytes to the door and reads one response.
func (h *house) send(raw string) string {
	h.t.Helper()
	conn, err := h.listener.Dial()
	if err != nil {
		h.t.Fatal(err)
	}
	defer conn.Close()
	_ = conn.SetDeadline(time.Now().Add(4 * patience))
	go func() { _, _ = io.WriteString(conn, raw) }() // the server may hang up in the middle
	var r fasthttp.Response
	r.SkipBody = strings.HasPrefix(raw, "HEAD ")
	if err := r.Read(bufio.NewReader(conn)); err != nil {
		h.t.Fatalf("read response of %.60q: %v", raw, err)
	}
	h.conforms(raw, &r)
	if h.seen != nil {
		h.seen.note(h.server, raw, &r)
	}
	h.mutex.Lock()
	h.told = string(r.Header.Peek("X-Sequence"))
	h.mutex.Unlock()
	return render(&r)
}

// render is a response as the expected answers show it: without what never changes, and without
// X-Sequence, which any further case would change in all that follow.
func render(r *fasthttp.Response) string {
	var b strings.Builder
	fmt.Fprintf(&b, "%d\n", r.StatusCode())
	for k, v := range r.Header.All() {
		switch key := string(k); {
		case key == "Content-Length", key == "Date", key == "Connection", key == "X-Sequence":
		case key == "X-Content-Type-Options" && string(v) == "nosniff":
		case key == "Cache-Control" && string(v) == "no-store":
		case key == "X-Node-Version" && string(v) == "test":
		case key == "Content-Type" && string(v) == "application/json":
		default:
			fmt.Fprintf(&b, "%s: %s\n", k, v)
		}
	}
	body := string(r.Body())
	if strings.HasPrefix(string(r.Header.ContentType()), "application/json") && body != "" {
		if !json.Valid(r.Body()) {
			body = "NOT JSON: " + body
		}
		if r.StatusCode() < 300 && strings.Contains(body, `"error"`) {
			body = "ERROR KEY IN 2xx: " + body
		}
	}
	if body != "" {
		b.WriteString(body + "\n")
	}
	return b.String()
}

// admin sends an operator's request: path, then JSON, then headers.
func (h *house) admin(lines []string) string {
	path, body, _ := strings.Cut(lines[0], " ")
	r := httptest.NewRequest("POST", path, strings.NewReader(body))
	r.Header.Set("Authorization", "Bearer "+testAdmin)
	for _, line := range lines[1:] {
		k, v, _ := strings.Cut(line, ": ")
		if r.Header.Set(k, v); k == "Method" {
			r.Method = v
		}
	}
	w := httptest.NewRecorder()
	h.server.Admin().ServeHTTP(w, r)
	if h.seen != nil {
		h.seen.answer(w.Body.String())
	}
	return fmt.Sprintf("%d\n%s\n", w.Code, w.Body)
}

// rawRequest is one HTTP request under construction.
type rawRequest struct {
	method, path, body string
	headers            []string
}

// String is its raw text.
func (w *rawRequest) String() string {
	var b bytes.Buffer
	fmt.Fprintf(&b, "%s %s HTTP/1.1\r\nHost: test\r\n", w.method, w.path)
	for _, line := range w.headers {
		b.WriteString(line + "\r\n")
	}
	if w.body != "" {
		fmt.Fprintf(&b, "Content-Length: %d\r\n", len(w.body))
	}
	return b.String() + "\r\n" + w.body
}

// signed adds the five headers of the key of name, changed by options.
func (h *house) signed(w *rawRequest, name string, o *words) {
	who := trader(o.text("key", name)).Address
	nonce, _ := strconv.ParseUint(o.text("keynonce", "0"), 10, 32)
	trio := h.keyring.Derive(who, uint32(nonce))
	r := auth.Request{
		Address:   auth.Checksum(who),
		Timestamp: strconv.FormatInt(h.now()+int64(o.number("late", 0)), 10),
		Method:    w.method, Body: []byte(w.body),
	}
	r.Path, _, _ = strings.Cut(w.path, "?")
	r.Path = o.text("signpath", r.Path)
	if err := trio.Sign(&r); err != nil {
		h.t.Fatal(err)
	}
	if !o.has("base64") {
		digest, _ := auth.Digest(r.Signature)
		r.Signature = fmt.Sprintf("%x", digest)
	}
	p := o.text("dialect", string(wire.SVC))
	list := []string{
		p + "ADDRESS: " + o.text("address", r.Address), p + "API_KEY: " + o.text("apikey", r.Key),
		p + "PASSPHRASE: " + o.text("passphrase", r.Passphrase), p + "TIMESTAMP: " + r.Timestamp,
		p + "SIGNATURE: " + o.text("mac", r.Signature),
	}
	if age, ok := o.find("max-age"); ok {
		list = append(list, p+"MAX_AGE_MS: "+age)
	}
	for _, line := range list {
		k, v, _ := strings.Cut(line, ": ")
		k = strings.TrimPrefix(k, o.text("drop", "-"))
		switch o.text("form", "") {
		case "lower":
			k = strings.ToLower(k)
		case "dash":
			k = strings.ReplaceAll(k, "_", "-")
		}
		w.headers = append(w.headers, k+": "+v)
	}
}

// words are the rest of a test line: key=value, or a word alone.
type words struct{ list []string }

func (o *words) has(name string) bool {
	_, ok := o.find(name)
	return ok
}

func (o *words) find(name string) (string, bool) {
	for _, w := range o.list {
		if k, v, _ := strings.Cut(w, "="); k == name {
			return v, true
		}
	}
	return "", false
}

func (o *words) text(name, otherwise string) string {
	if v, ok := o.find(name); ok {
		return v
	}
	return otherwise
}

func (o *words) number(name string, otherwise int) int {
	if v, ok := o.find(name); ok {
		n, err := strconv.Atoi(v)
		if err != nil {
			panic(err)
		}
		return n
	}
	return otherwise
}

// address is a name's address, or the address itself.
func address(s string) engine.Address {
	if a, ok := auth.ParseAddress(s); ok {
		return a
	}
	return trader(s).Address
}
