package crowd

import (
	"bufio"
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"net"
	"net/http"
	"reflect"
	"strings"
	"testing"
	"time"

	"clobd/api/wire/live"
	"clobd/bench/process"
)

// TestFrames: a subscriber counts the messages however reads cut the frames, and finds each message
// that is missing or comes twice.
func TestFrames(t *testing.T) {
	text := func(s string) []byte { return append([]byte{0x81, byte(len(s))}, s...) }
	long := append([]byte{0x81, 126, 1, 44}, bytes.Repeat([]byte("x"), 300-15)...)
	long = append(long, `"sequence":3,"}`...)
	good := bytes.Join([][]byte{text("{}"), text(`{"sequence":1}`), {0x89, 0}, text(`{"id":1}`),
		text("{\"sequence\":2}"), long, text("{\"sequence\":4}\n{\"sequence\":5}")}, nil)
	for name, c := range map[string]struct {
		in          []byte
		count, gaps int64
		over        bool
	}{
		"all":     {good, 5, 0, false},
		"end":     {append(bytes.Clone(good), 0x88, 0), 5, 0, true},
		"missing": {append(bytes.Clone(good), text(`{"sequence":7}`)...), 6, 1, false},
		"twice":   {append(bytes.Clone(good), text(`{"sequence":5}`)...), 6, 1, false},
	} {
		for step := 1; step <= len(c.in); step++ {
			l := listener{Crowd: Crowd{Burst: 2, Bursts: 2}, ears: make([]*ear, 1),
				done: make([]int, 2), heard: Heard{Last: make([]int64, 2)}}
			e := &ear{fd: -1}
			for from := 0; from < len(c.in); from += step {
				l.take(e, c.in[from:min(from+step, len(c.in))], int64(from+1))
			}
			h := l.heard
			if h.Messages != c.count || h.Gaps != c.gaps || e.over != c.over || l.full != 1 ||
				h.Last[0] == 0 || h.Last[1] < h.Last[0] {
				t.Fatalf("%s in steps of %d: %+v, %+v", name, step, h, e)
			}
		}
	}
}

// shown returns a frame with a message of a market, which is given by the first digits of its
// condition. The message ends like those of the node's stream.
func shown(market string, number, seq int) []byte {
	return live.AppendFrame(nil, fmt.Appendf(nil, `{"market":"0x%s%048d","x":1,"sequence":%d,"seq":%d}`,
		market, 0, number, seq))
}

// TestSights: a watched subscriber keeps the time at which it read each Sequence of a market. All
// messages of one read have the same time.
func TestSights(t *testing.T) {
	const one, two = "00000000000000ff", "abcdef0123456789"
	l, e := listener{}, &ear{fd: -1, seen: make(Sights)}
	l.take(e, bytes.Join([][]byte{shown(one, 1, 7), shown(two, 2, 7), shown(one, 3, 9)}, nil), 100)
	late := shown(one, 4, 12)
	l.take(e, append(shown(one, 5, 9), late[:20]...), 200) // 9 was shown before; a gap
	l.take(e, late[20:], 300)
	l.take(e, live.AppendFrame(nil, []byte(`{"sequence":5,"seq":13}`)), 400) // of no market
	l.take(e, live.AppendFrame(nil, []byte(`{"sequence":6,"market":"0x12"}`)), 500)
	want := Sights{0xff: {{7, 100}, {9, 100}, {12, 300}}, 0xabcdef0123456789: {{7, 100}}}
	if !reflect.DeepEqual(e.seen, want) {
		t.Errorf("seen %v, want %v", e.seen, want)
	}
	if h := l.heard; h.Messages != 7 || h.Gaps != 2 {
		t.Errorf("%+v", h)
	}
}

// admit accepts a subscriber, as the server of a stream does, and sends the first answer.
func admit(ln net.Listener, wish string) (net.Conn, error) {
	c, err := ln.Accept()
	if err != nil {
		return nil, err
	}
	from := bufio.NewReader(c)
	r, err := http.ReadRequest(from)
	if err != nil {
		return nil, err
	}
	if r.URL.Path != "/stream" || r.Header.Get("Upgrade") != "websocket" {
		return nil, fmt.Errorf("asks for %v with %v", r.URL, r.Header)
	}
	fmt.Fprint(c, "HTTP/1.1 101 Switching Protocols\r\nUpgrade: websocket\r\n\r\n")
	said := make([]byte, 6+len(wish))
	if _, err := io.ReadFull(from, said); err != nil {
		return nil, err
	}
	if string(said[6:]) != wish {
		return nil, fmt.Errorf("wishes %q", said)
	}
	_, err = c.Write(shown("00000000000000ff", 3, 1)) // the books
	return c, err
}

// ping sends a ping and waits for its answer. By then the subscriber has read all that was sent
// before.
func ping(t *testing.T, c net.Conn) {
	t.Helper()
	answer := make([]byte, 8)
	_, err := c.Write(live.AppendFrame(nil, []byte("{}")))
	if err == nil {
		_, err = io.ReadFull(c, answer)
	}
	if err != nil || string(answer) != "\x81\x82\x00\x00\x00\x00{}" {
		t.Fatalf("%q, %v", answer, err)
	}
}

// TestRun lets 70 subscribers listen to a server that skips a message of one of them and closes the
// socket of another. All other sockets end without a gap and without a cut.
func TestRun(t *testing.T) {
	const all, wish = 70, "all of it"
	ln, err := net.Listen("tcp4", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer ln.Close()
	in, tell := io.Pipe()
	hear, out := io.Pipe()
	ended := make(chan error, 1)
	go func() { ended <- Run(in, out) }()
	go func() {
		_ = json.NewEncoder(tell).Encode(Crowd{Addr: ln.Addr().String(), Path: "/stream",
			Wish: []byte(wish), Subscribers: all, Watched: 64})
	}()
	var sockets []net.Conn
	for range all {
		c, err := admit(ln, wish)
		if err != nil {
			t.Fatal(err)
		}
		defer c.Close()
		sockets = append(sockets, c)
	}
	from, begun := bufio.NewReader(hear), ""
	if err := process.ReadLine(from, &begun); err != nil || begun != "begun" {
		t.Fatalf("%q, %v", begun, err)
	}
	start := time.Now().UnixNano()
	for i, c := range sockets {
		number := 4
		if i == 1 {
			number = 5
		}
		if _, err := c.Write(shown("00000000000000ff", number, 2)); err != nil {
			t.Fatal(err)
		}
	}
	for _, c := range sockets {
		ping(t, c)
	}
	sockets[2].Close()
	ping(t, sockets[0])
	ping(t, sockets[0]) // what the kernel reports together is read before the second one
	tell.Close()
	var h Heard
	if err := process.ReadLine(from, &h); err != nil {
		t.Fatal(err)
	}
	if err := <-ended; err != nil {
		t.Fatal(err)
	}
	if size := int64(len(shown("00000000000000ff", 4, 2))); h.Messages != all || h.Bytes != all*(size+4)+2*4 ||
		h.Gaps != 1 || h.Cuts != 1 || h.Nice != process.Niceness() || len(h.Seen) != 64 ||
		len(h.Whole[0xff]) != 1 {
		t.Errorf("%+v", h)
	}
	for _, seen := range h.Seen {
		of := seen[0xff]
		if len(seen) != 1 || len(of) != 1 || of[0].Sequence != 2 || of[0].At < start ||
			of[0].At > time.Now().UnixNano() {
			t.Errorf("seen %v since %d", seen, start)
		}
	}
}

// TestWhole: what all subscribers have read counts when the last of them has; what one lacks, does
// not.
func TestWhole(t *testing.T) {
	const one = "00000000000000ff"
	l := listener{}
	for range 3 {
		l.ears = append(l.ears, &ear{fd: -1})
	}
	l.take(l.ears[0], append(shown(one, 1, 7), shown(one, 2, 9)...), 100)
	l.take(l.ears[1], shown(one, 1, 7), 200)
	l.take(l.ears[2], append(shown(one, 1, 7), shown(one, 2, 9)...), 300)
	if w := l.whole(); !reflect.DeepEqual(w, Sights{0xff: {{7, 300}}}) {
		t.Errorf("%v", w)
	}
	l.take(l.ears[1], shown(one, 2, 9), 400)
	w := l.whole()
	if !reflect.DeepEqual(w, Sights{0xff: {{7, 300}, {9, 400}}}) {
		t.Errorf("%v", w)
	}
	for seq, want := range map[uint64]int64{1: 300, 7: 300, 8: 400, 9: 400, 10: 0} {
		at, some := w.Of(0xff, seq)
		if some != (want > 0) || some && at.UnixNano() != want {
			t.Errorf("Sequence %d: %v, %v", seq, at, some)
		}
	}
	if _, some := w.Of(1, 7); some {
		t.Error("a market that nobody heard of")
	}
}

// TestRefused: Run fails if the server refuses a handshake.
func TestRefused(t *testing.T) {
	ln, err := net.Listen("tcp4", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer ln.Close()
	go func() {
		c, err := ln.Accept()
		if err == nil {
			fmt.Fprint(c, "HTTP/1.1 503 Service Unavailable\r\n\r\n")
			_ = c.Close()
		}
	}()
	line, err := json.Marshal(Crowd{Addr: ln.Addr().String(), Path: "/", Subscribers: 1})
	if err != nil {
		t.Fatal(err)
	}
	err = Run(bytes.NewReader(append(line, '\n')), io.Discard)
	if err == nil || !strings.Contains(err.Error(), "subscriber 1 of 1: refused: HTTP/1.1 503") {
		t.Errorf("%v", err)
	}
}
