package ingress

import (
	"bufio"
	"context"
	"fmt"
	"io"
	"net"
	"net/netip"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/valyala/fasthttp"
	"github.com/valyala/fasthttp/fasthttputil"

	"clobd/engine"
	"clobd/engine/sequencer"
	"clobd/ingress/auth"
	"clobd/ingress/head"
)

// expect runs one case and compares its answer.
func (h *house) expect(command, want string) {
	h.t.Helper()
	if got := h.run(strings.Split(command, "\n")); got != want {
		h.t.Errorf("%s\n got: %swant: %s", command, got, want)
	}
}

func TestBusy(t *testing.T) {
	h := newHouse(t, nil)
	h.run([]string{"fund alice 100"})
	release := h.block() // nothing becomes durable: batches, then slots fill up
	calls := h.clog()
	const busy = "503\nRetry-After: 1\n" +
		`{"error":"the exchange is busy, nothing was entered, send again","code":"busy"}` + "\n"
	w := h.orderWire("alice buy A 10 @ 0.40")
	if got := h.send(w); got != busy {
		t.Errorf("order: %s", got)
	}
	if got := h.runCancel(&words{[]string{"alice", "0x" + strings.Repeat("1", 64)}}); got != busy {
		t.Errorf("cancel: %s", got)
	}
	got := h.admin([]string{`/admin/fund {"wallet":"0x` + strings.Repeat("0", 40) + `","amount":"1"}`})
	if !strings.HasPrefix(got, "503\n") {
		t.Errorf("fund: %s", got)
	}
	release()
	for _, call := range calls {
		if _, err := call.Wait(); err != nil {
			t.Errorf("entered call: %v", err)
		}
	}
	if got := h.send(w); !strings.HasPrefix(got, "200\n") {
		t.Errorf("sent again: %s", got)
	}
}

// orderWire is a signed order request, ready to be sent more than once.
func (h *house) orderWire(line string) (raw string) {
	o := &words{strings.Fields(line)}
	x := auth.Order{
		Version: 2, Maker: trader(o.list[0]).Address, Signer: trader(o.list[0]).Address,
		Salt: auth.WordOf(1), Token: engine.Token{31: 10}, MakerAmount: 4 * engine.Unit,
		TakerAmount: 10 * engine.Unit, Timestamp: auth.WordOf(testNow * 1000),
	}
	w := rawRequest{method: "POST", path: "/order"}
	w.body = h.orderBody(&x, o.list[0], o)
	h.signed(&w, o.list[0], o)
	return w.String()
}

func TestOutcomeUnknown(t *testing.T) { inBubble(t, testOutcomeUnknown) }

func testOutcomeUnknown(t *testing.T) {
	h := newHouse(t, nil)
	h.run([]string{"fund alice 100"})
	release := h.block()
	w := h.orderWire("alice buy A 10 @ 0.40 as=a1")
	got := h.send(w)
	id := h.names["a1"]
	want := "504\n" + `{"error":"order timed out","code":"timeout","orderID":"` + id.Hex() + "\"}\n"
	if got != want {
		t.Errorf("got %swant %s", got, want)
	}
	release()
	for deadline := time.Now().Add(patience); ; time.Sleep(time.Millisecond) {
		if got = h.send(w); strings.Contains(got, `"success":true`) || time.Now().After(deadline) {
			break
		}
	}
	if !strings.Contains(got, "X-Idempotent-Replay: true\n") {
		t.Errorf("sent again: %s", got)
	}
}

// TestReplayBeforeTheIndex sends an order again that only the engine knows yet.
func TestReplayBeforeTheIndex(t *testing.T) {
	var h *house
	var awaited atomic.Uint64
	h = newHouse(t, func(o *Options) {
		o.Await = func(seq engine.Sequence, _ time.Duration) bool {
			awaited.Store(uint64(seq))
			h.run([]string{"blind false"})
			return true
		}
	})
	h.run([]string{"fund alice 100"})
	first := h.run([]string{"order alice buy A 10 @ 0.40"})
	h.run([]string{"blind true"})
	again := h.run([]string{"order alice buy A 10 @ 0.40"})
	want := strings.Replace(first, "200\n", "200\nX-Idempotent-Replay: true\n", 1)
	want = strings.Replace(want, "state changed", "state same", 1)
	if again != want || awaited.Load() != 4 { // two lists, one deposit, the order
		t.Errorf("awaited %d, got %swant %s", awaited.Load(), again, want)
	}
}

func TestIndexNeverCatchesUp(t *testing.T) {
	looks := 0
	h := newHouse(t, func(o *Options) {
		o.Past = func(engine.OrderID) (engine.Receipt, bool, engine.Sequence, error) {
			looks++
			return engine.Receipt{}, false, 0, nil
		}
		o.Await = func(engine.Sequence, time.Duration) bool { return false }
	})
	// An order that the engine knows and the index never will: the door looks again, three times.
	h.run([]string{"fund alice 100"})
	h.expect("order alice buy A 10 @ 0.40 as=a1", "200\n"+`{"success":true,"errorMsg":"","orderID":"`+
		`0x7ec898b1d5ef5c36783869875fe455530098fc2f1fe7cfd37c2e76b6d8ccdf46","takingAmount":"",`+
		`"makingAmount":"","status":"live"}`+"\nstate changed\n")
	h.expect("order alice buy A 10 @ 0.40", "504\n"+
		`{"error":"order timed out","code":"index_lagging","orderID":"`+
		`0x7ec898b1d5ef5c36783869875fe455530098fc2f1fe7cfd37c2e76b6d8ccdf46"}`+"\nstate same\n")
	if looks != 1+1+rechecks {
		t.Errorf("looked %d times", looks)
	}
}

// TestOtherTermsWhileIndexLags: whoever asks for what makes no sense is told so only when it is
// known that the order was not placed before.
func TestOtherTermsWhileIndexLags(t *testing.T) {
	var lags atomic.Bool
	h := newHouse(t, func(o *Options) {
		o.Await = func(engine.Sequence, time.Duration) bool { return !lags.Load() }
	})
	h.run([]string{"fund alice 100"})
	h.run([]string{"order alice buy A 10 @ 0.40"})
	h.run([]string{"blind true"})
	lags.Store(true)
	h.expect("order alice buy A 10 @ 0.40 kind=GTD", "503\nRetry-After: 1\n"+
		`{"error":"service not ready","code":"index_lagging","detail":"`+
		waitForIndex+`"}`+"\nstate same\n")
}

// TestFaucetGivesAgain: a gift that did not enter leaves its place to the next one.
func TestFaucetGivesAgain(t *testing.T) {
	var shut atomic.Bool
	h := newHouse(t, func(o *Options) {
		o.Faucet, o.FaucetWallets, o.LinkOnFirstUse = engine.Unit, 1, true
		o.Quarantined = func(c *engine.Command) bool { return shut.Load() }
	})
	shut.Store(true)
	if got := h.run([]string{"derive alice"}); !strings.HasSuffix(got, "state same\n") {
		t.Errorf("a gift entered: %s", got)
	}
	shut.Store(false)
	for _, c := range []struct{ name, want string }{
		{"bob", "state changed\n"}, {"bob", "state same\n"}, {"alice", "state same\n"},
	} {
		if got := h.run([]string{"derive " + c.name}); !strings.HasSuffix(got, c.want) {
			t.Errorf("%s: %s", c.name, got)
		}
	}
	bob := trader("bob").Address
	no, _ := h.board.Directory.Wallet(bob)
	owner, pending := h.board.Directory.Owner(no), h.server.faucet.pending.Load()
	if owner != no || pending != 0 {
		t.Errorf("owner %d of %d, %d pending", owner, no, pending)
	}
}

// TestFaucetGivesOnce: the faucet enters a gift again if the leader ended or changed under the
// first try, and not after other errors. The wallet then has one gift, whether the first try had
// entered or not, and also if a Link made its account in between.
func TestFaucetGivesOnce(t *testing.T) {
	for _, c := range []struct {
		lost          error // the answer to the first gift
		entered, link bool
		tries         int
	}{
		{sequencer.ErrUnknown, false, false, 2}, {sequencer.ErrUnknown, true, false, 2},
		{sequencer.ErrUnknown, false, true, 2}, {sequencer.ErrUnknown, true, true, 2},
		{sequencer.ErrNoLeader, false, true, 2}, {sequencer.ErrTimeout, true, false, 1},
		{sequencer.ErrBusy, false, false, 1},
	} {
		t.Run(fmt.Sprint(c), func(t *testing.T) {
			gifts := 0
			calls := sequencer.NewCalls(time.Hour)
			h := newHouse(t, func(o *Options) {
				o.Faucet, o.FaucetWallets, o.LinkOnFirstUse = 4*engine.Unit, 1, c.link
				enter := o.Enter
				o.Enter = func(command *engine.Command) (*sequencer.Call, error) {
					if command.Kind != engine.Deposit {
						return enter(command)
					}
					if gifts++; gifts > 1 {
						return enter(command)
					}
					if c.entered {
						first, err := enter(command)
						if err != nil {
							t.Fatal(err)
						}
						if _, err = first.Wait(); err != nil {
							t.Fatal(err)
						}
					}
					lost := calls.Prepare(new(engine.Command), command)
					lost.Answer(engine.Receipt{}, nil, c.lost)
					return lost, nil
				}
			})
			got := h.run([]string{"derive alice"})
			if !strings.HasPrefix(got, "200\n") || gifts != c.tries {
				t.Errorf("%d gifts: %s", gifts, got)
			}
			if n := h.server.faucet.pending.Load(); n != 0 {
				t.Errorf("%d gifts on their way", n)
			}
			if c.tries == 2 || c.entered {
				if got := h.run([]string{"order alice buy A 10 @ 0.40 salt=1"}); !strings.HasPrefix(got, "200\n") {
					t.Error(got) // it takes all of one gift
				}
			}
			if got := h.run([]string{"order alice buy A 10 @ 0.40 salt=2"}); !strings.HasPrefix(got, "400\n") ||
				!strings.Contains(got, "not enough balance") {
				t.Error(got)
			}
		})
	}
}

// TestDerivationsHoldAnEighth: strangers cannot fill the queue of signed orders.
func TestDerivationsHoldAnEighth(t *testing.T) {
	h := newHouse(t, nil)
	p := h.server.pool
	release := occupy(t, p)
	roomFor(p, 16)
	var joined sync.WaitGroup
	from := func(i byte) netip.Addr { return netip.AddrFrom4([4]byte{192, 0, 2, i}) }
	for i := range byte(2) {
		joined.Go(func() {
			if err := h.server.keys.verifyDerivation(from(i), func() {}); err != nil {
				t.Errorf("derivation %d: %v", i, err)
			}
		})
		awaitQueue(t, p, int(i)+1)
	}
	if err := h.server.keys.verifyDerivation(from(9), nil); err != errPoolFull {
		t.Errorf("one too many: %v", err)
	}
	joined.Go(func() {
		if err := p.do(engine.Address{1}, func() {}); err != nil {
			t.Errorf("order: %v", err)
		}
	})
	awaitQueue(t, p, 3)
	release()
	joined.Wait()
}

// TestCancelWhileIndexLags: an index that is behind cannot say that an order never was.
func TestCancelWhileIndexLags(t *testing.T) {
	h := newHouse(t, func(o *Options) {
		o.Past = func(engine.OrderID) (engine.Receipt, bool, engine.Sequence, error) {
			return engine.Receipt{}, false, 0, nil
		}
		o.Await = func(engine.Sequence, time.Duration) bool { return false }
	})
	h.run([]string{"fund alice 100"})
	h.expect("cancel alice 0x"+strings.Repeat("1", 64), "503\nRetry-After: 1\n"+
		`{"error":"service not ready","code":"index_lagging","detail":"`+
		waitForIndex+`"}`+"\nstate same\n")
}

func TestIndexFails(t *testing.T) {
	h := newHouse(t, func(o *Options) {
		o.Past = func(engine.OrderID) (engine.Receipt, bool, engine.Sequence, error) {
			return engine.Receipt{}, false, 0, io.ErrUnexpectedEOF
		}
	})
	h.run([]string{"fund alice 100"})
	const want = "503\nRetry-After: 1\n" + `{"error":"service not ready","code":"index",` +
		`"detail":"` + waitForIndex + `"}` + "\nstate same\n"
	h.expect("order alice buy A 10 @ 0.40", want)
	h.expect("cancel alice 0x"+strings.Repeat("1", 64), want)
}

func TestQuarantine(t *testing.T) {
	h := newHouse(t, func(o *Options) {
		o.Quarantined = func(c *engine.Command) bool { return c.Kind == engine.Place }
	})
	h.run([]string{"fund alice 100"})
	h.expect("order alice buy A 10 @ 0.40", "503\nRetry-After: 1\n"+
		`{"error":"this request is quarantined","code":"quarantined",`+
		`"detail":"it stopped the node once: it is taken when the operator has looked at it"}`+"\nstate same\n")
}

func TestClosedSequencer(t *testing.T) {
	h := newHouse(t, nil)
	h.run([]string{"fund alice 100"})
	if err := h.sequencer.Close(); err != nil {
		t.Fatal(err)
	}
	h.expect("order alice buy A 10 @ 0.40", "503\nRetry-After: 1\n"+
		`{"error":"the exchange is closing, nothing was entered","code":"closed",`+
		`"detail":"send it again once the node is back"}`+"\nstate same\n")
}

// TestVersionMismatch: a node that knows no exchange for a struct says so in the word on which
// clients sign again for another one.
func TestVersionMismatch(t *testing.T) {
	h := newHouse(t, func(o *Options) {
		o.Verifier = auth.NewVerifier(auth.Domains(testChain)[:2])
	})
	h.run([]string{"fund alice 100"})
	h.expect("order alice buy A 10 @ 0.40 v=1", "400\n"+
		`{"error":"order_version_mismatch","code":"order_version_mismatch","detail":"no exchange of `+
		`this node takes struct 1, whose members the order has: sign that of GET /version"}`+
		"\nstate same\n")
}

func TestHeaderFamilies(t *testing.T) {
	read := func(lines ...string) head.Credentials {
		var h fasthttp.RequestHeader
		raw := "GET / HTTP/1.1\r\nHost: x\r\n" + strings.Join(lines, "\r\n") + "\r\n\r\n"
		if err := h.Read(bufio.NewReader(strings.NewReader(raw))); err != nil {
			t.Fatal(err)
		}
		return head.ReadCredentials(&h)
	}
	for _, c := range []struct {
		lines            []string
		dialect, address string
		doubled          string
	}{
		{nil, "SVC_", "", ""},
		{[]string{"POLY_ADDRESS: p"}, "POLY_", "p", ""},
		{[]string{"poly_address: p", "Kuest-Address: k"}, "POLY_", "p", ""},
		{[]string{"KUEST_ADDRESS: k", "svc-address: s", "POLY_ADDRESS: p"}, "SVC_", "s", ""},
		{[]string{"POLY_ADDRESS: p", "SVC_NONCE: 1"}, "SVC_", "", ""}, // never mixed
		{[]string{"SVC_ADDRESS: a", "SVC-ADDRESS: b"}, "SVC_", "b", "SVC_ADDRESS"},
		{[]string{"SVC_ADDRESS:", "SVC_ADDRESS: b"}, "SVC_", "b", "SVC_ADDRESS"},
		{[]string{"SVC_ADDRESS: a", "Svc-Address: "}, "SVC_", "", "SVC_ADDRESS"},
		{[]string{"POLY_NONCE: ", "SVC_ADDRESS: a", "poly-nonce: 1"}, "SVC_", "a", "POLY_NONCE"},
		{[]string{"KUEST_NONCE: ", "KUEST_NONCE: ", "SVC_ADDRESS: a"}, "SVC_", "a", "KUEST_NONCE"},
		{[]string{"POLY_ADDRESS: p", "SVC_X: 1", "Svc-Cluster: edge"}, "POLY_", "p", ""},
	} {
		got := read(c.lines...)
		if string(got.Dialect) != c.dialect || got.Address != c.address || got.Doubled != c.doubled {
			t.Errorf("%q: %+v", c.lines, got)
		}
	}
	h := newHouse(t, nil)
	w := h.orderWire("alice buy A 10 @ 0.40")
	w = strings.Replace(w, "SVC_API_KEY", "SVC_SIGNATURE: 00\r\nSVC_API_KEY", 1)
	if got := h.send(w); !strings.HasPrefix(got, "401\n") {
		t.Errorf("doubled header: %s", got)
	}
}

func TestClientAddress(t *testing.T) {
	s := &Server{door: door{options: Options{TrustedProxies: []netip.Prefix{
		netip.MustParsePrefix("10.0.0.0/8"), netip.MustParsePrefix("::1/128"),
	}}}}
	for _, c := range []struct{ peer, forwarded, want string }{
		{"192.0.2.1", "203.0.113.9", "192.0.2.1"}, // a stranger may write what it likes
		{"10.0.0.1", "", "10.0.0.1"},
		{"10.0.0.1", "203.0.113.9", "203.0.113.9"},
		{"10.0.0.1", "1.1.1.1, 203.0.113.9, 10.0.0.2", "203.0.113.9"},
		{"10.0.0.1", "spoofed, 203.0.113.9", "203.0.113.9"},
		{"10.0.0.1", "10.0.0.3,10.0.0.2", "10.0.0.3"},
		{"10.0.0.1", "nonsense", "10.0.0.1"},
		{"::1", "2001:db8::1", "2001:db8::1"},
		{"::ffff:10.0.0.1", "::ffff:203.0.113.9", "203.0.113.9"},
	} {
		var ctx fasthttp.RequestCtx
		var request fasthttp.Request
		if c.forwarded != "" {
			request.Header.Set("X-Forwarded-For", c.forwarded)
		}
		ctx.Init(&request, &net.TCPAddr{IP: net.ParseIP(c.peer)}, nil)
		if got := s.ClientAddress(&ctx); got != netip.MustParseAddr(c.want) {
			t.Errorf("%+v: %s", c, got)
		}
	}
}

func TestLargeHeader(t *testing.T) {
	h := newHouse(t, nil)
	got := h.send("GET / HTTP/1.1\r\nHost: x\r\nX-Big: " + strings.Repeat("x", 17<<10) + "\r\n\r\n")
	want := "431\n" + openHeaders + `{"error":"request header too large","code":"too_large",` +
		`"detail":"request line and headers may have 16384 bytes together"}` + "\n"
	if got != want {
		t.Errorf("got %s", got)
	}
}

func TestSlowBody(t *testing.T) {
	h := newHouse(t, nil)
	h.server.turnstile.Timeouts.Request = 50 * time.Millisecond
	ln, err := net.Listen("tcp4", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	go func() { _ = h.server.Serve(ln) }() // ends with the house
	conn, err := net.Dial("tcp4", ln.Addr().String())
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close()
	_ = conn.SetDeadline(time.Now().Add(patience))
	fmt.Fprint(conn, "POST /order HTTP/1.1\r\nHost: x\r\nContent-Length: 9\r\n\r\nx")
	var r fasthttp.Response
	if err := r.Read(bufio.NewReader(conn)); err != nil {
		t.Fatal(err)
	}
	want := "408\n" + openHeaders + `{"error":"request timed out","code":"timeout",` +
		`"detail":"send a request as a whole within 5s"}` + "\n"
	if got := render(&r); got != want {
		t.Errorf("got %s", got)
	}
}

func TestOptions(t *testing.T) {
	_, err := New(Options{Faucet: -1, Workers: -1, Concurrency: -1, FaucetWallets: -1})
	for _, name := range []string{
		"Keyring", "Verifier", "Chains", "Faucet", "FaucetWallets", "Workers", "Concurrency",
	} {
		if err == nil || !strings.Contains(err.Error(), name) {
			t.Errorf("%s is not named: %v", name, err)
		}
	}
}

// TestRecovering opens the door before there is anything behind it.
func TestRecovering(t *testing.T) {
	s, err := New(Options{
		Keyring: auth.NewKeyring([32]byte{}), Verifier: auth.NewVerifier(nil), Chains: []uint64{1},
	})
	if err != nil {
		t.Fatal(err)
	}
	s.turnstile.Timeouts.Request = time.Hour
	ln := fasthttputil.NewInmemoryListener()
	served := make(chan error)
	go func() { served <- s.Serve(ln) }()
	h := &house{t: t, server: s, listener: ln}
	if got := h.send("GET /book HTTP/1.1\r\nHost: x\r\n\r\n"); !strings.HasPrefix(got, "425\n") {
		t.Errorf("got %s", got)
	}
	if err := s.Attach(Options{}); err == nil || !strings.Contains(err.Error(), "Await") {
		t.Errorf("attached nothing: %v", err)
	}
	if err := s.Close(context.Background()); err != nil {
		t.Fatal(err)
	}
	if err := <-served; err != nil {
		t.Fatal(err)
	}
}

// TestMetrics registers what the house counted and looks at every label.
func TestMetrics(t *testing.T) {
	h := newHouse(t, nil)
	h.run([]string{"fund alice 100"})
	h.run([]string{"order alice buy A 10 @ 0.40"})
	h.run([]string{"http GET /anything/a/stranger/likes"})
	h.run([]string{"raw NONSENSE\\r\\n\\r\\n"})
	registry := prometheus.NewRegistry()
	for _, c := range h.server.Collectors() {
		registry.MustRegister(c)
	}
	families, err := registry.Gather()
	if err != nil {
		t.Fatal(err)
	}
	requests, sized := 0.0, uint64(0)
	for _, f := range families {
		for _, m := range f.GetMetric() {
			for _, label := range m.GetLabel() {
				if v := label.GetValue(); len(v) > 16 || strings.Contains(v, "/") {
					t.Errorf("%s{%s=%q}: a stranger's word", f.GetName(), label.GetName(), v)
				}
			}
			if f.GetName() == "clobd_http_requests_total" {
				requests += m.GetCounter().GetValue()
			}
			if f.GetName() == "clobd_http_answer_bytes" {
				sized += m.GetHistogram().GetSampleCount()
			}
		}
	}
	if requests != 3 || sized != 3 {
		t.Errorf("counted %v requests, and the length of %d answers", requests, sized)
	}
}

// BenchmarkPostOrder sends one order again and again: everything of its way but the ring.
func BenchmarkPostOrder(b *testing.B) {
	h := newHouse(b, func(o *Options) {
		o.Past = func(id engine.OrderID) (engine.Receipt, bool, engine.Sequence, error) {
			return engine.Receipt{Sequence: 1, Order: id, Status: engine.Live}, true, 1, nil
		}
	})
	h.submit(engine.Command{Kind: engine.Deposit, Address: trader("alice").Address, Cash: 1})
	raw := h.orderWire("alice buy A 10 @ 0.40")
	conn, err := h.listener.Dial()
	if err != nil {
		b.Fatal(err)
	}
	defer conn.Close()
	in := bufio.NewReader(conn)
	var r fasthttp.Response
	b.ReportAllocs()
	for b.Loop() {
		if _, err := io.WriteString(conn, raw); err != nil {
			b.Fatal(err)
		}
		if err := r.Read(in); err != nil || r.StatusCode() != 200 {
			b.Fatalf("%v %s", err, r.Body())
		}
	}
}
