package api

import (
	"bufio"
	"bytes"
	"fmt"
	"io"
	"net"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/cockroachdb/datadriven"
	"github.com/valyala/fasthttp"
	"github.com/valyala/fasthttp/fasthttputil"

	"clobd/api/catalog"
	"clobd/api/wire"
	"clobd/engine"
	"clobd/scripts/openapi"
)

// TestContract runs testdata/*.txt: commands to the node, and requests with their exact responses.
// What the lines may hold is written beside the functions that read them.
func TestContract(t *testing.T) {
	paths := contracts(t)
	record := new(openapi.Record)
	whole := true
	for _, path := range paths {
		ran := false
		t.Run(filepath.Base(path), func(t *testing.T) {
			ran = true
			s := newScript(t)
			s.record = record
			datadriven.RunTest(t, path, func(t *testing.T, d *datadriven.TestData) string {
				return s.run(d)
			})
		})
		whole = whole && ran
	}
	t.Run("strangers", func(t *testing.T) { strangers(t, record) })
	if whole && !t.Failed() {
		keepsPromises(t, record)
	}
}

// contracts are the scripts of all rooms.
func contracts(t *testing.T) (paths []string) {
	t.Helper()
	for _, room := range []string{".", "account", "wallets", "gamma"} {
		found, err := filepath.Glob(filepath.Join(room, "testdata", "*.txt"))
		if err != nil || len(found) == 0 { // fuzzing leaves folders beside them
			t.Fatalf("no scripts of %s: %v", room, err)
		}
		paths = append(paths, found...)
	}
	return paths
}

// script is a node and a client that speak through sockets in memory.
type script struct {
	*node
	listener *fasthttputil.InmemoryListener
	wallets  map[string]engine.WalletNo
	records  string          // folder of the catalog's
	record   *openapi.Record // of what was answered, nil if nobody asks
}

func newScript(t *testing.T) *script {
	s := &script{
		node: newNode(t), listener: fasthttputil.NewInmemoryListener(),
		wallets: map[string]engine.WalletNo{},
	}
	server := &fasthttp.Server{
		Handler: s.door, NoDefaultServerHeader: true, NoDefaultDate: true,
	}
	done := make(chan error, 1)
	go func() { done <- server.Serve(s.listener) }()
	t.Cleanup(func() {
		s.must(s.listener.Close())
		s.must(<-done)
	})
	return s
}

// door does what the real one does before it hands a request on. A header says who asks.
func (s *script) door(ctx *fasthttp.RequestCtx) {
	owner, dialect, known := strings.Cut(string(ctx.Request.Header.Peek("X-Caller")), " ")
	if !known {
		s.handler.Public(ctx)
		return
	}
	s.handler.Account(ctx, trader(owner), wire.Dialect(dialect))
}

// run does what one block says.
func (s *script) run(d *datadriven.TestData) string {
	var out strings.Builder
	for _, line := range strings.Split(strings.TrimSpace(d.Input), "\n") {
		switch d.Cmd {
		case "engine":
			s.engine(d, strings.Fields(line), &out)
		case "request":
			// What the public may see of the index waits for nobody.
			if s.running != nil && !s.index.History.Await(s.head.Sequence, time.Minute) {
				d.Fatalf(s.t, "the index does not come to Sequence %d", s.head.Sequence)
			}
			s.request(line, &out)
		case "catalog":
			s.records = s.t.TempDir()
			store, err := catalog.Open(catalog.Options{Dir: s.records})
			s.must(err)
			r, err := store.Read(strings.NewReader(d.Input))
			s.must(err)
			s.catalog = store.Current()
			return r.String() + "\n"
		case "index":
			s.node.run()
			return "runs\n"
		case "break":
			s.breaks(line)
		case "profiles":
			s.profiles(d.Input)
			return "read\n"
		default:
			d.Fatalf(s.t, "unknown word %s", d.Cmd)
		}
	}
	return out.String()
}

// engine runs one command:
//
//	at MS | list C tick=T min=S [unopened] [neg-risk] [fee=BPS,EXPONENT] | fund WHO M
//	cash WHO AMOUNT | split WHO M SIZE | merge WHO M SIZE | redeem WHO M
//	link WALLET OWNER | resolve M PRICE | state M paused|closed | mode normal|cancel-only
//	place ID WHO buy|sell TOKEN SIZE PRICE [fok|fak|gtd] [post-only] [expires=MS] [builder=C]
//	cancel ID WHO
func (s *script) engine(d *datadriven.TestData, w []string, out *strings.Builder) {
	var events []engine.Event
	switch w[0] {
	case "at":
		s.now = engine.Time(s.number(w[1]))
		return
	case "fund":
		s.wallets[w[1]] = s.fund(w[1], engine.MarketNo(s.number(w[2])), 1000, 1000)
		return
	case "list":
		events = s.do(s.list(w[1:]))
	case "place":
		events = s.do(s.place(w[1:]))
	case "link":
		events = s.do(engine.Command{
			Kind: engine.Link, Address: trader(w[1]), Holder: trader(w[2])})
	case "resolve":
		events = s.do(engine.Command{Kind: engine.Resolve, Market: engine.MarketNo(s.number(w[1])),
			Price: engine.Price(s.fixed(w[2], 4)), ID: orderID("resolve" + w[1])})
	case "state":
		state := map[string]engine.MarketState{"paused": engine.Paused, "closed": engine.Closed}[w[2]]
		events = s.do(engine.Command{
			Kind: engine.SetState, Market: engine.MarketNo(s.number(w[1])), State: state})
	case "mode":
		mode := map[string]engine.Mode{"cancel-only": engine.CancelOnly}[w[1]]
		events = s.do(engine.Command{Kind: engine.SetMode, Mode: mode})
	case "cash":
		s.do(engine.Command{Kind: engine.Deposit, Address: trader(w[1]),
			Cash: engine.Cash(s.fixed(w[2], 6))})
		s.wallets[w[1]], _ = s.board.Directory.Wallet(trader(w[1]))
		return
	case "split", "merge", "redeem":
		events = s.do(s.move(w))
	case "cancel":
		owner := s.wallets[w[2]]
		events = s.do(engine.Command{Kind: engine.Cancel, ID: orderID(w[1]), Owner: owner})
	default:
		d.Fatalf(s.t, "unknown command %s", w[0])
	}
	for _, e := range events {
		names := [...]string{
			engine.Listed: "listed", engine.Filled: "filled", engine.Placed: "placed",
			engine.Completed: "completed", engine.Cancelled: "cancelled",
			engine.Rejected: "rejected", engine.Linked: "linked", engine.Resolved: "resolved",
			engine.StateChanged: "state changed", engine.ModeSet: "mode set",
			engine.Split: "split", engine.Merged: "merged", engine.Redeemed: "redeemed",
		}
		fmt.Fprintf(out, "#%d %s", s.head.Sequence, names[e.Kind])
		if e.Kind == engine.Rejected {
			out.WriteString(" " + engine.Rejects[e.Reject].Code)
		}
		out.WriteByte('\n')
	}
}

// move is a split, a merge or a redemption.
func (s *script) move(w []string) engine.Command {
	kind := map[string]engine.Kind{"split": engine.SplitTokens, "merge": engine.MergeTokens,
		"redeem": engine.RedeemTokens}[w[0]]
	c := engine.Command{Kind: kind, Wallet: s.wallets[w[1]], Owner: s.wallets[w[1]],
		Market: engine.MarketNo(s.number(w[2])), ID: orderID(fmt.Sprint(w[0], s.head.Sequence))}
	if len(w) > 3 {
		c.Size = engine.Size(s.fixed(w[3], 6))
	}
	return c
}

func (s *script) list(w []string) engine.Command {
	l := listing(s.number(w[0]), 0)
	for _, word := range w[1:] {
		key, value, _ := strings.Cut(word, "=")
		switch key {
		case "tick":
			l.Tick = engine.Price(s.fixed(value, 4))
		case "min":
			l.MinSize = engine.Size(s.fixed(value, 6))
		case "unopened":
			l.Open = false
		case "neg-risk":
			l.NegRisk = true
		case "fee":
			rate, exponent, _ := strings.Cut(value, ",")
			l.Fee = engine.Fee{
				Rate: uint16(s.number(rate)), Exponent: uint8(s.number(exponent))}
		case "tokens":
			a, b, _ := strings.Cut(value, ",")
			l.Tokens[0], _ = engine.ParseToken(a)
			l.Tokens[1], _ = engine.ParseToken(b)
		}
	}
	return engine.Command{Kind: engine.List, Listing: l}
}

func (s *script) place(w []string) engine.Command {
	token, _ := engine.ParseToken(w[3])
	m, o, ok := s.board.Directory.Token(token)
	if !ok {
		s.t.Fatalf("no token %s", w[3])
	}
	side := engine.Buy
	if w[2] == "sell" {
		side = engine.Sell
	}
	lots, price := s.fixed(w[4], 2), engine.Price(s.fixed(w[5], 4))
	c := place(w[0], s.wallets[w[1]], quote{m.No, o, side, int(lots), price})
	if owner := s.board.Directory.Owner(c.Wallet); owner != 0 {
		c.Owner = owner
	}
	for _, word := range w[6:] {
		switch word {
		case "fok":
			c.Type = engine.FOK
		case "fak":
			c.Type = engine.FAK
		case "gtd":
			c.Type = engine.GTD
		case "post-only":
			c.PostOnly = true
		}
		if ms, is := strings.CutPrefix(word, "expires="); is {
			c.Expiry = engine.Time(s.number(ms))
		}
		if code, is := strings.CutPrefix(word, "builder="); is {
			condition := listing(s.number(code), 0).Condition
			c.Proof = condition[:]
		}
	}
	return c
}

func (s *script) number(w string) int {
	n, err := strconv.Atoi(w)
	s.must(err)
	return n
}

// fixed reads a decimal in units of 10^-digits.
func (s *script) fixed(w string, digits int) int64 {
	whole, fraction, _ := strings.Cut(w, ".")
	n, err := strconv.ParseInt(whole+fraction+strings.Repeat("0", digits-len(fraction)), 10, 64)
	s.must(err)
	return n
}

// references are what a request line may hold beside text: {order X} for the id of order X,
// {digits N} for N nines, {cond N} for the id of condition N, {addr WHO} for an address.
var references = regexp.MustCompile(`\{(order|digits|cond|addr) ([^}]*)\}`)

// request sends `METHOD TARGET [body BODY] [as OWNER DIALECT]` and writes the response as it came,
// without carriage returns.
func (s *script) request(line string, out *strings.Builder) {
	line, caller, private := strings.Cut(line, " as ")
	line = s.refer(line)
	line, body, posted := strings.Cut(line, " body ")
	text := line + " HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n"
	if private {
		text += "X-Caller: " + caller + "\r\n"
	}
	if posted {
		text += fmt.Sprintf("Content-Length: %d\r\n", len(body))
	}
	response := s.exchange(text + "\r\n" + body)
	s.conforms(line, caller, response)
	if tag := entityTag(response); tag != "" && strings.HasPrefix(line, "GET ") {
		again := s.exchange(text + "If-None-Match: " + tag + "\r\n\r\n")
		if s.conforms(line, caller, again); !bytes.HasPrefix(again, []byte("HTTP/1.1 304 ")) {
			s.t.Errorf("%s: whoever has %s gets %s", line, tag, again)
		}
	}
	response = bytes.ReplaceAll(response, []byte("\r"), nil)
	response = bytes.ReplaceAll(response, []byte("\n\n"), []byte("\n"))
	response = bytes.ReplaceAll(response, []byte("Connection: close\n"), nil)
	// Any further case would change it in all that follow; TestSequenceShown is about it.
	response = sequenceLine.ReplaceAll(response, nil)
	out.Write(bytes.TrimRight(response, "\n"))
	out.WriteByte('\n')
}

var sequenceLine = regexp.MustCompile(`(?m)^X-Sequence: \d+\n`)

// refer puts in place of references what they stand for.
func (s *script) refer(line string) string {
	return references.ReplaceAllStringFunc(line, func(reference string) string {
		match := references.FindStringSubmatch(reference)
		switch value := match[2]; match[1] {
		case "order":
			return orderID(value).Hex()
		case "digits":
			return strings.Repeat("9", s.number(value))
		case "cond":
			return listing(s.number(value), 0).Condition.Hex()
		default:
			return trader(value).Hex()
		}
	})
}

// exchange sends a request as it is and reads all that comes.
func (s *script) exchange(raw string) []byte {
	s.t.Helper()
	conn, err := s.listener.Dial()
	s.must(err)
	defer func() { s.must(conn.Close()) }()
	_, err = io.WriteString(conn, raw)
	s.must(err)
	response, err := io.ReadAll(conn)
	s.must(err)
	return response
}

// entityTag is that of an answer, "" if it has none.
func entityTag(response []byte) string {
	head, _, _ := strings.Cut(string(response), "\r\n\r\n")
	for _, line := range strings.Split(head, "\r\n") {
		if name, tag, _ := strings.Cut(line, ": "); strings.EqualFold(name, "ETag") {
			return tag
		}
	}
	return ""
}

// get asks for a public path and returns the status and body.
func (s *script) get(path string) (int, []byte) {
	s.t.Helper()
	client := &fasthttp.HostClient{
		Addr: "x", Dial: func(string) (net.Conn, error) { return s.listener.Dial() },
	}
	status, body, err := client.Get(nil, "http://x"+path)
	s.must(err)
	client.CloseIdleConnections()
	return status, body
}

// TestPipelined: an answer that shares bytes with a Snapshot leaves the next one alone.
func TestPipelined(t *testing.T) {
	s := newScript(t)
	s.ladder(3)
	conn, err := s.listener.Dial()
	s.must(err)
	var want [3][]byte
	paths := [3]string{"/book?token_id=10", "/nowhere", "/midpoint?token_id=10"}
	for i, p := range paths {
		_, want[i] = s.get(p)
	}
	r := bufio.NewReader(conn)
	for round := range 9 {
		i := round % 3
		_, err := fmt.Fprintf(conn, "GET %s HTTP/1.1\r\nHost: x\r\n\r\n", paths[i])
		s.must(err)
		var response fasthttp.Response
		s.must(response.Read(r))
		if !bytes.Equal(response.Body(), want[i]) {
			t.Fatalf("%s: %s, want %s", paths[i], response.Body(), want[i])
		}
	}
	s.must(conn.Close())
}
