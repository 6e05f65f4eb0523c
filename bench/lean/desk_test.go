package lean

import (
	"bufio"
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"net"
	"net/http"
	"slices"
	"strings"
	"testing"
	"time"

	"clobd/engine"
	"clobd/ingress/auth"
)

// parleyed is a message to a desk.
type parleyed struct {
	ID     int
	Method string
	Params json.RawMessage
}

// serveDesks is a server of desks: it takes logins, and hands the messages of each connection to
// answer, which returns what is written, until answer returns nil.
func serveDesks(t *testing.T, answer func(m *parleyed) []byte) (at string) {
	t.Helper()
	return servePinging(t, answer, nil)
}

// servePinging is serveDesks, and pings each desk when it is in. ponged is called for each pong.
func servePinging(t *testing.T, answer func(m *parleyed) []byte, ponged func()) (at string) {
	t.Helper()
	ln, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
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
				if r, err := http.ReadRequest(from); err != nil || r.Header.Get("Upgrade") != "websocket" {
					return
				}
				_, _ = io.WriteString(c, "HTTP/1.1 101 Switching Protocols\r\n\r\n")
				for {
					m, err := hearDesk(from, ponged)
					if err != nil {
						return
					}
					out := frameOf(frameText, `{"id":0,"status":200,"result":{}}`)
					if m.Method != "login" {
						out = answer(m)
					} else if ponged != nil {
						out = append(out, frameOf(framePing, "soon")...)
						if _, err := c.Write(out); err != nil {
							return
						}
						time.Sleep(20 * time.Millisecond) // for the desk to be in
						out = frameOf(framePing, "later")
					}
					if _, err := c.Write(out); out == nil || err != nil {
						return
					}
				}
			}()
		}
	}()
	return ln.Addr().String()
}

// hearDesk reads a message, and skips pongs. It calls ponged for each, if there is one.
func hearDesk(from *bufio.Reader, ponged func()) (*parleyed, error) {
	for {
		head := make([]byte, 2)
		if _, err := io.ReadFull(from, head); err != nil {
			return nil, err
		}
		n := int(head[1] & 0x7f)
		if n == 126 {
			if _, err := io.ReadFull(from, head); err != nil {
				return nil, err
			}
			n = int(head[0])<<8 | int(head[1])
		}
		text := make([]byte, 4+n) // the mask, which is zeros
		if _, err := io.ReadFull(from, text); err != nil {
			return nil, err
		}
		if head[0] == framePong {
			if ponged != nil {
				ponged()
			}
			continue
		}
		m := &parleyed{}
		return m, json.Unmarshal(text[4:], m)
	}
}

// frameOf is a frame as a server sends it.
func frameOf(kind byte, text string) []byte {
	b := []byte{kind, byte(len(text))}
	if len(text) >= 126 {
		b = []byte{kind, 126, byte(len(text) >> 8), byte(len(text))}
	}
	return append(b, text...)
}

// placedAs answers an order well.
func placedAs(m *parleyed) []byte {
	return frameOf(frameText, fmt.Sprintf(`{"id":%d,"status":200,"result":{"success":true,"orderID":"%s"},`+
		`"seq":7}`, m.ID, engine.OrderID{byte(m.ID), byte(m.ID >> 8)}.Hex()))
}

// desks is a load of n orders over sockets.
func desks(addr string, lanes, flight, n int) *Load {
	l := &Load{Addr: addr, Lanes: lanes, Flight: flight, Routes: []Route{{Method: "order.place",
		Path: "/ws/trade", Want: WantOrders, Address: "0x1", Trio: auth.Trio{Key: "k",
			Secret: "c2VjcmV0", Passphrase: "p"}}}}
	for i := range n {
		l.Requests = append(l.Requests, Prepared{Lane: int32(i % lanes), Body: []byte(`{"a":1}`),
			IDs: []engine.OrderID{{byte(i), byte(i >> 8)}}})
	}
	return l
}

// TestDesks: all requests are answered, in any order, with as many in flight as a desk may have and
// never more. The server pings, and cuts frames in two.
func TestDesks(t *testing.T) {
	for _, rate := range []float64{0, 2000} {
		flights := make(chan int, 10_000)
		var held [][]byte
		addr := serveDesks(t, func(m *parleyed) []byte {
			held = append(held, placedAs(m))
			if len(held) < 4 && m.ID < 396 {
				return []byte{}
			}
			flights <- len(held)
			slices.Reverse(held)
			out := append(frameOf(framePing, "hm"), frameOf(framePong, "")...) // a pong means nothing
			out = append(out, bytes.Join(held, nil)...)
			held = nil
			return out
		})
		l := desks(addr, 1, 4, 400)
		l.Rate = rate
		m, err := l.Run(t.Context())
		if err != nil || m.Good != 400 || m.Acked != 400 || m.Sent != 400 || m.Failed != 0 ||
			m.Unsent != 0 || m.Sampled < 6 || m.Service.TotalCount() != 400 ||
			m.Late.TotalCount() != 400 || (m.Corrected.TotalCount() == 400) != (rate > 0) {
			t.Fatalf("rate %v: %+v, %v", rate, m, err)
		}
		for i := range 400 {
			if !m.Answered(i) {
				t.Errorf("request %d was not answered", i)
			}
		}
		for close(flights); len(flights) > 0; {
			if n := <-flights; n > 4 {
				t.Errorf("%d requests in flight", n)
			}
		}
	}
}

// TestDeskWaits: the time that a server keeps a desk full is the server's, and no lateness. What
// the load itself waits for a CPU does not grow with what the server waits.
func TestDeskWaits(t *testing.T) {
	eventually(t, 5*time.Millisecond, func(d time.Duration) (wrong string) {
		addr := serveDesks(t, func(m *parleyed) []byte {
			time.Sleep(d)
			return placedAs(m)
		})
		l := desks(addr, 1, 2, 50)
		l.Rate = 1000
		m, err := l.Run(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		late, took := m.Late.ValueAtQuantile(50), m.Corrected.ValueAtQuantile(50)
		if m.Good != 50 || took < 20*d.Nanoseconds() {
			t.Fatalf("%+v: half of the answers took %d ns", m, took)
		}
		if late > took/4 {
			return fmt.Sprintf("late %d ns of %d", late, took)
		}
		return ""
	})
}

// TestBadDesks: what is no good answer is a failure, and the end of a desk ends the load.
func TestBadDesks(t *testing.T) {
	for _, c := range []struct {
		name   string
		answer func(m *parleyed) []byte
		says   string
	}{
		{"refused", func(m *parleyed) []byte {
			return frameOf(frameText, fmt.Sprintf(`{"id":%d,"status":400,"error":{"error":"no"}}`, m.ID))
		}, `status 400: {"error":"no"}`},
		{"another order", func(m *parleyed) []byte { return placedAs(&parleyed{ID: m.ID + 100}) },
			"an answer to what was not asked"},
		{"twice", func(m *parleyed) []byte { return append(placedAs(m), placedAs(m)...) },
			"an answer to what was not asked"},
		{"no JSON", func(m *parleyed) []byte { return frameOf(frameText, "hm") },
			"an answer without a number"},
		{"closed", func(m *parleyed) []byte { return frameOf(frameClose, "\x03\xe9") },
			`closes the socket: 1001 ""`},
		{"closed with a reason", func(m *parleyed) []byte { return frameOf(frameClose, "\x03\xf5slow") },
			`closes the socket: 1013 "slow"`},
		{"closed without a code", func(m *parleyed) []byte { return frameOf(frameClose, "") },
			`closes the socket: 1005 ""`},
		{"a first fragment", func(m *parleyed) []byte { return frameOf(1, "hm") }, "in fragments"},
		{"a later fragment", func(m *parleyed) []byte { return frameOf(0, "hm") }, "in fragments"},
		{"the last fragment", func(m *parleyed) []byte { return frameOf(0x80, "hm") }, "in fragments"},
		{"bytes", func(m *parleyed) []byte { return frameOf(0x82, "hm") }, "a frame 0x82"},
		{"gone", func(m *parleyed) []byte { return nil }, "without a close frame"},
		{"silent", func(m *parleyed) []byte { return []byte{} }, "no answer in time"},
		{"of another id", func(m *parleyed) []byte {
			return frameOf(frameText, fmt.Sprintf(
				`{"id":%d,"status":200,"result":{"success":true,"orderID":"0xab"}}`, m.ID))
		}, "order 0 is 0xab"},
	} {
		for _, rate := range []float64{0, 500} {
			l := desks(serveDesks(t, c.answer), 1, 3, 20)
			if l.Rate = rate; c.name == "silent" {
				l.Patience = 300 * time.Millisecond
			}
			m, err := l.Run(t.Context())
			if err != nil || m.Failed == 0 || !strings.Contains(m.Failure, c.says) ||
				m.Good+m.Failed < m.Sent || m.Sent > 3 && rate == 0 {
				t.Errorf("%s, rate %v: %v, %+v, want %q", c.name, rate, err, m, c.says)
			}
		}
	}
	// Who does not get in has no load.
	for name, addr := range map[string]string{
		"no upgrade": serve(t, "127.0.0.1:0", func(w net.Conn, _ *http.Request, _ []byte) bool {
			_, err := io.WriteString(w, status(404, "{}"))
			return err == nil
		})} {
		if m, err := desks(addr, 1, 1, 1).Run(t.Context()); err == nil ||
			!strings.Contains(err.Error(), "404") {
			t.Errorf("%s: %+v, %v", name, m, err)
		}
	}
	if m, err := desks("127.0.0.1:1", 2, 1, 1).Run(t.Context()); err == nil {
		t.Errorf("nobody listens: %+v", m)
	}
}
