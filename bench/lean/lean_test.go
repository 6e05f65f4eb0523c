package lean

import (
	"bufio"
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"clobd/engine"
	"clobd/ingress/auth"
)

// TestMain lets the test binary send a share of a load, as clobench does.
func TestMain(m *testing.M) {
	if len(os.Args) == 2 && os.Args[1] == "lean" {
		if err := Serve(context.Background(), os.Stdin, os.Stdout); err != nil {
			fmt.Fprintln(os.Stderr, err)
			os.Exit(1)
		}
		return
	}
	os.Exit(m.Run())
}

// serve is a server that hands each request, with its body, to answer, until answer returns false.
func serve(t *testing.T, addr string, answer func(w net.Conn, r *http.Request, body []byte) bool) (
	at string) {
	t.Helper()
	ln, err := net.Listen("tcp", addr)
	if err != nil {
		t.Skip(err) // no IPv6 here
	}
	t.Cleanup(func() { ln.Close() })
	go func() {
		for {
			c, err := ln.Accept()
			if err != nil {
				return
			}
			go func() {
				defer c.Close()
				from := bufio.NewReader(c)
				for {
					r, err := http.ReadRequest(from)
					if err != nil {
						return
					}
					body, err := io.ReadAll(r.Body)
					if err != nil || !answer(c, r, body) {
						return
					}
				}
			}()
		}
	}()
	return ln.Addr().String()
}

// status returns the bytes of an HTTP answer: its status line, its header and its body.
func status(code int, body string) string {
	return fmt.Sprintf("HTTP/1.1 %d %s\r\nServer: x\r\ncontent-Length: %d\r\n\r\n%s", code,
		http.StatusText(code), len(body), body)
}

// id is an order's id.
func id(n byte) engine.OrderID { return engine.OrderID{31: n} }

// placed is the result of an order that was taken.
func placed(n byte) string {
	return `{"success":true,"errorMsg":"","orderID":"` + id(n).Hex() + `"}`
}

const unfilled = `{"success":false,"errorMsg":"","orderID":"","code":"fak_unfilled"}`

// TestAnswers judges answers that come in two parts, cut at every byte.
func TestAnswers(t *testing.T) {
	canceled := `{"canceled":["` + id(1).Hex() + `"],"not_canceled":{}}`
	gone := `{"canceled":[],"not_canceled":{"` + id(1).Hex() + `":"gone"}}`
	one, two := []engine.OrderID{id(1)}, []engine.OrderID{id(1), id(2)}
	for name, c := range map[string]struct {
		want    Want
		ids     []engine.OrderID
		answer  string
		refused int64
		good    bool
		fails   string // the parsing
	}{
		"order":     {WantOrders, one, status(200, placed(1)), 0, true, ""},
		"another":   {WantOrders, one, status(200, placed(2)), 0, true, "order 0 is 0x"},
		"torn":      {WantOrders, one, status(200, placed(1)+"}"), 0, true, "after top-level"},
		"unfilled":  {WantOrders, one, status(400, `{"code":"fok_unfilled"}`), 1, true, ""},
		"invalid":   {WantOrders, one, status(400, `{"code":"balance"}`), 0, false, ""},
		"limited":   {WantOrders, one, status(429, placed(1)), 0, false, ""},
		"list":      {WantOrders, two, status(200, "["+placed(1)+","+placed(2)+"]"), 0, true, ""},
		"half":      {WantOrders, two, status(200, "["+placed(1)+","+unfilled+"]"), 1, true, ""},
		"short":     {WantOrders, two, status(200, "["+placed(1)+"]"), 0, false, ""},
		"turned":    {WantOrders, two, status(200, "["+placed(2)+","+placed(1)+"]"), 0, true, "order 0 is"},
		"canceled":  {WantCancels, one, status(200, canceled), 0, true, ""},
		"gone":      {WantCancels, one, status(200, gone), 1, true, ""},
		"forgotten": {WantCancels, one, status(200, `{"canceled":[],"not_canceled":{}}`), 1, true, "not once"},
		"nothing":   {WantCancels, one, status(200, `{}`), 0, false, ""},
		"same":      {WantSame, nil, status(200, `{"bids":[]}`), 0, true, ""},
		"other":     {WantSame, nil, status(200, `{"bids":[ ]}`), 0, false, ""},
		"any":       {WantAny, nil, status(200, `[1]`), 0, true, ""},
		"no JSON":   {WantAny, nil, status(200, `[1`), 0, true, "no JSON"},
		"one-sided": {WantRead, nil, status(404, `{}`), 1, true, ""},
		"read":      {WantRead, nil, status(200, `{}`), 0, true, ""},
		"broken":    {WantRead, nil, status(500, `{}`), 0, false, ""},
		"missing":   {WantAny, nil, status(404, `{}`), 0, false, ""},
	} {
		for cut := range len(c.answer) {
			if _, whole, err := scan([]byte(c.answer[:cut])); whole || err != nil {
				t.Fatalf("%s up to byte %d: whole %v, %v", name, cut, whole, err)
			}
		}
		r, whole, err := scan([]byte(c.answer))
		if err != nil || !whole {
			t.Fatalf("%s: whole %v, %v", name, whole, err)
		}
		w, p := &Route{Want: c.want, Same: []byte(`{"bids":[]}`)}, &Prepared{IDs: c.ids}
		refused, good := r.judge(w, p)
		if good != c.good || good && refused != c.refused {
			t.Errorf("%s: refused %d, good %v", name, refused, good)
		}
		if !good {
			continue
		}
		err = r.inspect(w, p)
		if c.fails == "" && err != nil ||
			c.fails != "" && (err == nil || !strings.Contains(err.Error(), c.fails)) {
			t.Errorf("%s: parsed as %v", name, err)
		}
	}
}

// TestNoAnswers scans what is no answer that this client takes.
func TestNoAnswers(t *testing.T) {
	for text, says := range map[string]string{
		"SSH-2.0": "no HTTP answer",
		"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n":     "without a length",
		"HTTP/1.1 200 OK\r\n\r\n":                                   "without a length",
		"HTTP/1.1 100 Continue\r\n\r\n":                             "no final status",
		"HTTP/1.1 2x0 OK\r\n\r\n":                                   "no final status",
		"HTTP/1.1 \r\n\r\n":                                         "no status",
		"HTTP/1.1 200 OK\r\nContent-Length: -1\r\n\r\n":             "length that is none",
		"HTTP/1.1 200 OK\r\nContent-Length: 99999999\r\n\r\n":       "above 64 MiB",
		"HTTP/1.1 200 OK\r\nContent-Length: 1\r\n\r\nab":            "1 bytes more",
		"HTTP/1.1 200 OK\r\nX: " + strings.Repeat("x", longestHead): "longer than 64 KiB",
	} {
		if _, _, err := scan([]byte(text)); err == nil || !strings.Contains(err.Error(), says) {
			t.Errorf("%.40q: %v, want %q", text, err, says)
		}
	}
	r, whole, err := scan([]byte("HTTP/1.1 204 No Content\r\nConnection: CLOSE\r\n\r\n"))
	if err != nil || !whole || r.status != 204 || !r.closes {
		t.Errorf("%+v, %v, %v", r, whole, err)
	}
}

var trader = Route{Method: "POST", Path: "/orders?x=1", Address: "0xAb", Want: WantOrders,
	Trio: auth.Trio{Key: "k", Passphrase: "p", Secret: "A-_A" + strings.Repeat("B", 39) + "="}}

// TestRender holds a request against what a server reads: all headers, and the HMAC of package
// auth.
func TestRender(t *testing.T) {
	s, err := newStencil(&trader, "node:1")
	if err != nil {
		t.Fatal(err)
	}
	var out []byte
	for _, body := range []string{`{"a":1}`, "", strings.Repeat("x", 5000)} {
		out = s.append(out[:0], []byte("1700000000"), nil, []byte(body))
		r, err := http.ReadRequest(bufio.NewReader(bytes.NewReader(out)))
		if err != nil {
			t.Fatalf("%v\n%s", err, out)
		}
		got, _ := io.ReadAll(r.Body)
		want := auth.Request{Timestamp: "1700000000", Method: "POST", Path: "/orders", Body: []byte(body)}
		if err := trader.Trio.Sign(&want); err != nil {
			t.Fatal(err)
		}
		if string(got) != body || r.Host != "node:1" || r.URL.String() != "/orders?x=1" ||
			r.Header.Get("POLY_SIGNATURE") != want.Signature || r.Header.Get("POLY_ADDRESS") != "0xAb" ||
			r.Header.Get("POLY_API_KEY") != "k" || r.Header.Get("POLY_PASSPHRASE") != "p" ||
			r.Header.Get("POLY_TIMESTAMP") != "1700000000" {
			t.Errorf("rendered\n%s\nwant the signature %s", out, want.Signature)
		}
	}
	if s, err = newStencil(&Route{Method: "GET", Path: "/book?token_id=1"}, "h"); err != nil ||
		string(s.append(nil, nil, nil, nil)) != "GET /book?token_id=1 HTTP/1.1\r\nHost: h\r\n\r\n" {
		t.Errorf("a read: %q, %v", s.append(nil, nil, nil, nil), err)
	}
	if _, err := newStencil(&Route{Address: "0x1", Trio: auth.Trio{Secret: "!"}}, "h"); err == nil {
		t.Error("a secret that is none was taken")
	}
}

// TestSignedEarly: what was signed before the clock runs is what would be signed when it is sent,
// until the signatures are old; a long load signs none.
func TestSignedEarly(t *testing.T) {
	l := Load{Addr: "127.0.0.1:1", Lanes: 1, Duration: time.Second, Routes: []Route{trader,
		{Method: "GET", Path: "/book"}}, Requests: []Prepared{{Body: []byte("one")}, {Route: 1},
		{Body: []byte(strings.Repeat("x", 900))}}}
	p := &pump{Load: l}
	if err := p.prepare(t.Context()); err != nil {
		t.Fatal(err)
	}
	p.began = p.early.at.Add(time.Second)
	for _, i := range []int{0, 2} {
		body := l.Requests[i].Body
		stamp, signature := p.signature(i)
		if want := p.stencils[0].append(nil, stamp, nil, body); len(signature) != signatureLen ||
			!bytes.Equal(p.stencils[0].append(nil, stamp, signature, body), want) {
			t.Errorf("request %d: signed early as %s, not as in\n%s", i, signature, want)
		}
	}
	p.now = int64(earlyLasts)
	if stamp, signature := p.signature(0); signature != nil || len(stamp) != 10 {
		t.Errorf("old: stamp %s, signature %s", stamp, signature)
	}
	for _, d := range []time.Duration{0, time.Minute} {
		p := &pump{Load: l}
		p.Duration = d
		if err := p.prepare(t.Context()); err != nil || p.early.text != nil {
			t.Errorf("%v: %v, %d bytes signed early", d, err, len(p.early.text))
		}
	}
}

// TestNoGarbage: what is done for each request makes no garbage.
func TestNoGarbage(t *testing.T) {
	s, err := newStencil(&trader, "node:1")
	if err != nil {
		t.Fatal(err)
	}
	body, stamp := []byte(strings.Repeat("x", 700)), []byte("1700000000")
	answer := []byte(status(200, placed(1)))
	p := &Prepared{IDs: []engine.OrderID{id(1)}}
	h := newTimes(3)
	out := make([]byte, 0, 4096)
	if n := testing.AllocsPerRun(100, func() {
		out = s.append(out[:0], stamp, nil, body)
		r, _, _ := scan(answer)
		if _, good := r.judge(&trader, p); !good {
			t.Fatal("no good answer")
		}
		note(h, 12345)
	}); n != 0 {
		t.Errorf("%.1f objects a request", n)
	}
}

// BenchmarkRequest is the work for one order but for the system calls.
func BenchmarkRequest(b *testing.B) {
	s, err := newStencil(&trader, "node:1")
	if err != nil {
		b.Fatal(err)
	}
	body, stamp := []byte(strings.Repeat("x", 700)), []byte("1700000000")
	answer := []byte(status(200, placed(1)))
	p := &Prepared{IDs: []engine.OrderID{id(1)}}
	h, out := newTimes(3), make([]byte, 0, 4096)
	b.ReportAllocs()
	for b.Loop() {
		out = s.append(out[:0], stamp, nil, body)
		r, _, _ := scan(answer)
		if _, good := r.judge(&trader, p); !good {
			b.Fatal("no good answer")
		}
		note(h, 12345)
	}
}

// orders makes a load of n orders over so many lanes, in turn.
func orders(addr string, lanes, n int) *Load {
	l := &Load{Addr: addr, Lanes: lanes, Routes: []Route{trader}}
	for i := range n {
		l.Requests = append(l.Requests, Prepared{Lane: int32(i % lanes), Body: []byte{byte('0' + i%10)},
			IDs: []engine.OrderID{id(byte(i))}})
	}
	return l
}

// eventually tries something with a time that doubles until nothing is wrong. A machine may stand
// still for longer than a short load lasts, and then less comes of it than a test wants to see:
// what is wrong each time is a defect.
func eventually(t *testing.T, d time.Duration, try func(d time.Duration) (wrong string)) {
	t.Helper()
	for n := 1; ; n++ {
		wrong := try(d)
		switch {
		case wrong == "":
			return
		case n == 6:
			t.Fatalf("%d times: %s", n, wrong)
		}
		t.Logf("again, %v was too short: %s", d, wrong)
		d *= 2
	}
}

func run(t *testing.T, l *Load) *Measured {
	t.Helper()
	m, err := l.Run(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	if m.Sent != m.Good+m.Busy+m.Failed || m.Service.TotalCount() > m.Sent {
		t.Errorf("the sums do not agree: %+v", m)
	}
	return m
}

// TestClosed sends all requests, each once and in the order of its lane, to a server that writes
// every answer byte by byte and is busy now and then. IPv4, IPv6 and a name.
func TestClosed(t *testing.T) {
	for _, host := range []string{"127.0.0.1:0", "[::1]:0", "localhost:0"} {
		var seen [4][]byte
		var mutex sync.Mutex
		var busy atomic.Int64
		addr := serve(t, host, func(w net.Conn, r *http.Request, body []byte) bool {
			text := status(200, `{"success":true,"orderID":"`+id(1).Hex()+`"}`)
			if busy.Add(1)%7 == 0 {
				text = status(503, `{"error":"busy"}`)
			} else {
				mutex.Lock()
				lane := (body[0] - '0') % 4
				seen[lane] = append(seen[lane], body[0])
				mutex.Unlock()
			}
			for i := range len(text) {
				if _, err := w.Write([]byte(text[i : i+1])); err != nil {
					return false
				}
			}
			return true
		})
		if strings.HasPrefix(host, "localhost") {
			_, port, _ := net.SplitHostPort(addr)
			addr = "localhost:" + port
		}
		l := &Load{Addr: addr, Lanes: 4, Routes: []Route{trader}}
		for i := range 40 {
			k := i % 8
			l.Requests = append(l.Requests, Prepared{Lane: int32(k % 4), Body: []byte{byte('0' + k)},
				IDs: []engine.OrderID{id(1)}})
		}
		m := run(t, l)
		if m.Good != 40 || m.Acked != 40 || m.Busy == 0 || m.Failed != 0 || m.Full || m.Sampled != 1 ||
			m.Service.TotalCount() != 40 || m.Late.TotalCount() != m.Sent || m.Corrected.TotalCount() != 0 {
			t.Errorf("%s: %+v", addr, m)
		}
		mutex.Lock()
		defer mutex.Unlock()
		for lane, got := range seen {
			want := bytes.Repeat([]byte{byte('0' + lane), byte('4' + lane)}, 5)
			if !bytes.Equal(got, want) {
				t.Errorf("lane %d sent %s", lane, got)
			}
		}
		for i := range l.Requests {
			if !m.Answered(i) {
				t.Errorf("request %d is not answered", i)
			}
		}
		done := int64(0)
		for _, moment := range m.Moments {
			done += moment.Done
		}
		if done != 40 {
			t.Errorf("%d operations in the moments", done)
		}
	}
}

// TestFailures: each of these ends a closed loop with an error that says what it was, and an open
// one goes on over another connection.
func TestFailures(t *testing.T) {
	for says, answer := range map[string]string{
		"closes the connection before":     "HTTP/1.1 200 OK\r\nContent-Le",
		"no HTTP answer":                   "220 ready\r\n",
		"without a length":                 "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n",
		`status 400: {"error":"no"}`:       status(400, `{"error":"no"}`),
		"connection with status 200":       "HTTP/1.1 200 OK\r\nConnection: close\r\nContent-Length: 2\r\n\r\n{}",
		"connection reset":                 "",
		"status 429":                       status(429, "{}"),
		"no answer in time":                "HTTP/1.1 200",
		"closes the connection before the": "",
	} {
		var count atomic.Int64
		addr := serve(t, "127.0.0.1:0", func(w net.Conn, r *http.Request, body []byte) bool {
			if count.Add(1) != 3 {
				_, err := io.WriteString(w, status(200, placed(body[0]-'0')))
				return err == nil
			}
			if says == "connection reset" {
				_ = w.(*net.TCPConn).SetLinger(0)
			}
			_, _ = io.WriteString(w, answer)
			if says == "no answer in time" {
				_, _ = w.Read(make([]byte, 1)) // until the other end hangs up
			}
			return strings.HasPrefix(says, "status")
		})
		eventually(t, 300*time.Millisecond, func(d time.Duration) (wrong string) {
			if says != "no answer in time" {
				d = time.Minute // an answer that came too late would be another failure
			}
			l := orders(addr, 1, 6)
			l.Patience = d
			count.Store(0)
			m := run(t, l)
			if m.Good != 2 || m.Failed != 1 || !strings.Contains(m.Failure, "POST /orders?x=1: ") ||
				!strings.Contains(m.Failure, says) || m.Answered(2) || !m.Answered(1) {
				return fmt.Sprintf("%s: closed: %+v", says, m)
			}
			count.Store(0)
			l.Rate, l.Duration = 20, time.Minute
			m = run(t, l)
			if m.Good != 5 || m.Failed != 1 || m.Unsent != 0 || !strings.Contains(m.Failure, says) ||
				m.Answered(2) || !m.Answered(5) {
				return fmt.Sprintf("%s: open: %+v", says, m)
			}
			return ""
		})
	}
}

// TestGone loads a server that is not there, and one that leaves.
func TestGone(t *testing.T) {
	ln, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	ln.Close()
	if m, err := orders(ln.Addr().String(), 2, 4).Run(t.Context()); m != nil || err == nil ||
		!strings.Contains(err.Error(), "refused") {
		t.Errorf("nobody listens: %+v, %v", m, err)
	}
	if ln, err = net.Listen("tcp", "127.0.0.1:0"); err != nil {
		t.Fatal(err)
	}
	go func() {
		defer ln.Close()
		var lanes []net.Conn
		for range 2 {
			c, err := ln.Accept()
			if err != nil {
				return
			}
			defer c.Close()
			lanes = append(lanes, c)
		}
		ln.Close()
		for _, c := range lanes { // it leaves when the load has begun
			_, _ = c.Read(make([]byte, 1))
			c.Close()
		}
	}()
	l := orders(ln.Addr().String(), 2, 10)
	l.Rate, l.Duration = 100, time.Minute
	if m := run(t, l); m.Failed != 10 || m.Good != 0 || m.Unsent != 0 || m.Failure == "" {
		t.Errorf("it left: %+v", m)
	}
	one, routes := []Prepared{{}}, []Route{trader}
	for _, bad := range []Load{{},
		{Lanes: 1, Requests: []Prepared{{Lane: 1}}, Routes: routes},
		{Lanes: 1, Requests: one, Routes: routes, Repeat: true},
		{Lanes: 1, Requests: one, Routes: routes, Addr: "nobody.invalid:1"},
		{Lanes: 1, Requests: append(one, one...), Routes: routes, Due: []time.Duration{2, 1}}} {
		if m, err := bad.Run(t.Context()); err == nil || m != nil {
			t.Errorf("%+v was sent", bad)
		}
	}
}

// TestStall: while the server stands still, requests are due. The wait shows in the corrected
// times, and in the service times of the one request that waited.
func TestStall(t *testing.T) {
	const stall = time.Second
	var count atomic.Int64
	addr := serve(t, "127.0.0.1:0", func(w net.Conn, r *http.Request, body []byte) bool {
		if count.Add(1) == 50 {
			time.Sleep(stall)
		}
		_, err := io.WriteString(w, status(200, `{"success":true}`))
		return err == nil
	})
	l := orders(addr, 1, 400)
	l.Routes[0].Want = WantAny
	l.Rate, l.Duration = 200, 20*time.Second
	m := run(t, l)
	if m.Good != 400 || m.Unsent != 0 {
		t.Fatalf("%+v", m)
	}
	// A quarter of the requests was due in the first half of the stall. That a fifth of them takes so
	// long by itself would need 40 s, one after the other: that late nothing is sent any more.
	half := (stall / 2).Nanoseconds()
	if m.Corrected.ValueAtQuantile(80) < half || m.Service.ValueAtQuantile(80) >= half ||
		m.Corrected.Max() < stall.Nanoseconds() || m.Service.Max() < stall.Nanoseconds() {
		t.Errorf("p80 corrected %d, service %d; max %d, %d", m.Corrected.ValueAtQuantile(80),
			m.Service.ValueAtQuantile(80), m.Corrected.Max(), m.Service.Max())
	}
	var late time.Duration
	done := int64(0)
	for _, moment := range m.Moments {
		late, done = max(late, moment.P99), done+moment.Done
	}
	if late < stall/2 || done != 400 {
		t.Errorf("the stall, or a request, does not show in the moments: %+v", m.Moments)
	}
}

// TestPlan: the instants of an open loop.
func TestPlan(t *testing.T) {
	due := func(l Load) []time.Duration {
		l.Requests = make([]Prepared, 1000)
		p, short := l.planned()
		if short || len(p.Requests) != len(p.Due) {
			t.Errorf("%d requests for %d instants, short %v", len(p.Requests), len(p.Due), short)
		}
		return p.Due
	}
	const ms = time.Millisecond
	if got := due(Load{Rate: 250, Duration: 20 * ms}); !slices.Equal(got,
		[]time.Duration{0, 4 * ms, 8 * ms, 12 * ms, 16 * ms}) {
		t.Errorf("constant: %v", got)
	}
	if got := due(Load{Rate: 250, Burst: 3, Duration: 20 * ms}); !slices.Equal(got,
		[]time.Duration{0, 0, 0, 12 * ms, 12 * ms, 12 * ms}) {
		t.Errorf("bursts: %v", got)
	}
	one := due(Load{Rate: 1000, Poisson: true, Seed: 7, Repeat: true, Duration: 10 * time.Second})
	two := due(Load{Rate: 1000, Poisson: true, Seed: 7, Repeat: true, Duration: 10 * time.Second})
	other := due(Load{Rate: 1000, Poisson: true, Seed: 8, Repeat: true, Duration: 10 * time.Second})
	if !slices.Equal(one, two) || slices.Equal(one[:100], other[:100]) {
		t.Error("the seed does not fix the instants")
	}
	near := 0 // of gaps below the mean: 1-1/e of all
	for i := range one[1:] {
		if one[i+1]-one[i] < ms {
			near++
		}
	}
	if n := len(one); n < 9500 || n > 10500 || near < n*60/100 || near > n*66/100 {
		t.Errorf("Poisson: %d instants, %d gaps below the mean", n, near)
	}
	short := Load{Rate: 100, Duration: time.Second, Requests: make([]Prepared, 10)}
	if p, isShort := short.planned(); !isShort || len(p.Due) != 10 {
		t.Errorf("10 requests for 100 instants: %d, %v", len(p.Due), isShort)
	}
}

// TestRepeat reads one answer over and over until the time is over, and is told how it goes.
func TestRepeat(t *testing.T) {
	addr := serve(t, "127.0.0.1:0", func(w net.Conn, r *http.Request, body []byte) bool {
		_, err := io.WriteString(w, status(200, `{}`))
		return err == nil
	})
	var told []Progress
	l := &Load{Addr: addr, Lanes: 2, Repeat: true,
		Routes:   []Route{{Method: "GET", Path: "/", Want: WantSame, Same: []byte("{}")}},
		Requests: []Prepared{{Lane: 0}, {Lane: 1}}, Progress: func(p Progress) { told = append(told, p) }}
	eventually(t, 500*time.Millisecond, func(d time.Duration) (wrong string) {
		told, l.Duration = nil, d
		m := run(t, l)
		if !m.Full || m.Took < d || m.ProcessCPU < m.ThreadCPU || m.Good == 0 || len(told) == 0 {
			t.Fatalf("%+v; %+v", m, told)
		}
		if last := told[len(told)-1]; last.Done != m.Acked {
			t.Fatalf("told of %d, did %d", last.Done, m.Acked)
		}
		if m.Good < 10 || len(told) < 2 || m.ThreadCPU <= 0 || told[0].Rate <= 0 || told[0].Left <= 0 {
			return fmt.Sprintf("%+v; %+v", m, told)
		}
		return ""
	})
	ctx, cancel := context.WithCancelCause(t.Context())
	var asked atomic.Int64
	l.Addr = serve(t, "127.0.0.1:0", func(w net.Conn, r *http.Request, body []byte) bool {
		if asked.Add(1) == 5 { // on two lanes: some answers were taken
			cancel(errors.New("enough"))
		}
		_, err := io.WriteString(w, status(200, `{}`))
		return err == nil
	})
	l.Duration = time.Hour
	if m, err := l.Run(ctx); m == nil || m.Good == 0 || m.Full || !errors.Is(err, context.Canceled) {
		t.Errorf("stopped: %+v, %v", m, err)
	}
}

// TestApart sends one load from three processes.
func TestApart(t *testing.T) {
	addr := serve(t, "127.0.0.1:0", func(w net.Conn, r *http.Request, body []byte) bool {
		text := status(200, placed(body[0]-'0'))
		if body[0] == '7' {
			text = status(400, `{"code":"balance"}`)
		}
		_, err := io.WriteString(w, text)
		return err == nil
	})
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	l := orders(addr, 4, 10)
	told := 0
	l.Progress = func(p Progress) { told++ }
	// The processes have a low priority, and may wait for a CPU until it is too late to send. A
	// moment that one of them has slept through is not told.
	eventually(t, 200*time.Millisecond, func(d time.Duration) (wrong string) {
		told, l.Rate, l.Duration = 0, 10/d.Seconds(), d
		a, err := l.Dispatch(t.Context(), self, 3, true)
		if err != nil {
			t.Fatal(err)
		}
		m, err := a.Wait()
		if err != nil {
			t.Fatal(err)
		}
		if m.Good+m.Failed+m.Unsent != 10 || m.Processes != 3 || m.Nice < 10 ||
			m.Full != (m.Unsent == 0) || m.Corrected.TotalCount() != 10 || len(m.Moments) == 0 {
			t.Fatalf("%+v", m)
		}
		if m.Unsent > 0 || told == 0 || m.Moments[0].Done == 0 || m.ThreadCPU <= 0 {
			return fmt.Sprintf("told %d times, %+v", told, m)
		}
		if m.Good != 9 || m.Failed != 1 || !strings.Contains(m.Failure, "balance") {
			t.Errorf("%+v", m)
		}
		for i := range l.Requests {
			if m.Answered(i) == (i == 7) {
				t.Errorf("request %d: answered %v", i, m.Answered(i))
			}
		}
		return ""
	})
	l.Addr = "127.0.0.1:1"
	if _, err := l.Dispatch(t.Context(), self, 2, false); err == nil ||
		!strings.Contains(err.Error(), "refused") {
		t.Errorf("nobody listens: %v", err)
	}
}
