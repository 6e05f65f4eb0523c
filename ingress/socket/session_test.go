package socket

import (
	"bufio"
	"encoding/binary"
	"fmt"
	"io"
	"net"
	"net/http"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"clobd/api/wire/live"
)

// longest is how long a test waits for what must come.
const longest = time.Minute

// talker is a client of a socket whose kernel buffers are small, and its session.
type talker struct {
	t       *testing.T
	conn    net.Conn
	from    *bufio.Reader
	room    *Room
	revoked atomic.Bool
}

// long is the method of a request whose answer has longResult bytes.
const (
	long       = "long"
	longResult = 8 << 20
)

// talk opens a socket whose node answers without Stories, and logs in.
func talk(t *testing.T) *talker {
	t.Helper()
	ln, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer ln.Close()
	c := &talker{t: t, room: NewRoom()}
	if c.conn, err = net.Dial("tcp", ln.Addr().String()); err != nil {
		t.Fatal(err)
	}
	nc, err := ln.Accept()
	if err != nil {
		t.Fatal(err)
	}
	_ = c.conn.(*net.TCPConn).SetReadBuffer(64 << 10)
	_ = nc.(*net.TCPConn).SetWriteBuffer(64 << 10)
	line := live.NewLine(nc)
	socket, err := live.Open(line, line, nil, live.Asked{Key: "dGhlIHNhbXBsZSBub25jZQ=="})
	if err != nil {
		t.Fatal(err)
	}
	served := make(chan struct{})
	go func() {
		defer close(served)
		c.room.Serve(socket, c.door())
		socket.End()
	}()
	t.Cleanup(func() {
		c.conn.Close()
		<-served
	})
	_ = c.conn.SetDeadline(time.Now().Add(longest))
	c.from = bufio.NewReaderSize(c.conn, 16)
	if a, err := http.ReadResponse(c.from, nil); err != nil || a.StatusCode != 101 {
		t.Fatal(a, err)
	}
	c.say(`{"id":0,"method":"login"}`)
	if first, text := c.hear(); first != 0x81 || !strings.HasPrefix(text, `{"id":0,"status":200`) {
		t.Fatalf("%x %q", first, text)
	}
	return c
}

// door lets anybody in and answers long texts.
func (c *talker) door() Door {
	return Door{
		Login: func(x *Exchange) { x.Ctx.SetBodyString("{}") },
		Begin: func(x *Exchange) {
			if x.Ctx.SetBodyString("{}"); x.Method == long {
				x.Ctx.SetBodyString(`"` + strings.Repeat("x", longResult-2) + `"`)
			}
		},
		Judge:    func([]*Exchange) {},
		Entered:  func() {},
		Revoked:  c.revoked.Load,
		Answered: func(*Exchange) {},
		Panicked: func(cause any) { c.t.Error(cause) },
	}
}

// say sends text messages in one write.
func (c *talker) say(texts ...string) {
	c.t.Helper()
	var b []byte
	for _, text := range texts {
		b = append(append(b, 0x81, 0x80|byte(len(text)), 0, 0, 0, 0), text...)
	}
	if _, err := c.conn.Write(b); err != nil {
		c.t.Fatal(err)
	}
}

// hear reads a whole frame.
func (c *talker) hear() (first byte, payload string) {
	c.t.Helper()
	b := make([]byte, 10)
	read := func(b []byte) {
		if _, err := io.ReadFull(c.from, b); err != nil {
			c.t.Fatalf("no whole frame, and no close frame before the end: %v", err)
		}
	}
	read(b[:2])
	n := uint64(b[1])
	switch n {
	case 126:
		read(b[2:4])
		n = uint64(binary.BigEndian.Uint16(b[2:]))
	case 127:
		read(b[2:])
		n = binary.BigEndian.Uint64(b[2:])
	}
	text := make([]byte, n)
	read(text)
	return b[0], string(text)
}

// awaitEnd waits until the node has ended the session.
func (c *talker) awaitEnd() {
	c.t.Helper()
	over := func() (all bool) {
		c.room.mutex.Lock()
		defer c.room.mutex.Unlock()
		all = true
		for s := range c.room.sessions {
			all = all && s.over()
		}
		return all
	}
	for end := time.Now().Add(longest); !over(); time.Sleep(time.Millisecond) {
		if time.Now().After(end) {
			c.t.Fatal("the session does not end")
		}
	}
}

// TestFarewell: whatever ends a session, a client that begins to read only then gets whole frames,
// and then the close frame, although its socket was full.
func TestFarewell(t *testing.T) {
	ask := func(method string) string { return fmt.Sprintf(`{"id":1,"method":%q}`, method) }
	for _, c := range []struct {
		name string
		end  func(c *talker)
		code int
		why  string
	}{
		{"an answer too many", func(c *talker) {
			c.say(ask(long))
			c.awaitRest()
			c.say(ask("short"))
		}, live.TryLater, "slow consumer"},
		{"more answers than a line keeps", func(c *talker) { c.say(ask(long), ask("short")) },
			live.TryLater, "slow consumer"},
		{"a revoked key", func(c *talker) {
			c.say(ask(long))
			c.awaitRest()
			c.revoked.Store(true)
		}, live.Forbidden, "the key is revoked"},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			talker := talk(t)
			c.end(talker)
			talker.awaitEnd()
			want := `{"id":1,"status":200,"result":"` + strings.Repeat("x", longResult)
			for frames := 0; ; {
				first, text := talker.hear()
				if first == 0x88 {
					if text != string([]byte{byte(c.code >> 8), byte(c.code)})+c.why || frames == 0 {
						t.Errorf("%q after %d frames", text, frames)
					}
					return
				}
				if first == 0x89 { // a ping
					continue
				}
				if frames == 0 && first != 1 || frames > 0 && first != 0 || !strings.HasPrefix(want, text) {
					t.Fatalf("frame %d: %x, %d bytes: %.80q", frames, first, len(text), text)
				}
				want = want[len(text):]
				frames++
				time.Sleep(10 * time.Millisecond)
			}
		})
	}
}

// awaitRest waits until the client's socket is full.
func (c *talker) awaitRest() {
	c.t.Helper()
	full := func() bool {
		c.room.mutex.Lock()
		defer c.room.mutex.Unlock()
		for s := range c.room.sessions {
			s.mutex.Lock()
			defer s.mutex.Unlock()
			return s.rest > 0
		}
		return false
	}
	for end := time.Now().Add(longest); !full(); time.Sleep(time.Millisecond) {
		if time.Now().After(end) {
			c.t.Fatal("the socket does not fill")
		}
	}
}
