package ingress

import (
	"bufio"
	"fmt"
	"io"
	"net"
	"strings"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"github.com/valyala/fasthttp"
)

// meter counts the reads that brought the door something of a connection, and its writes: both
// those that wait and those that go past the runtime.
type meter struct {
	*net.TCPConn
	reads, writes atomic.Int64
}

func (c *meter) Read(b []byte) (int, error) {
	n, err := c.TCPConn.Read(b)
	if n > 0 {
		c.reads.Add(1)
	}
	return n, err
}

func (c *meter) Write(b []byte) (int, error) {
	c.writes.Add(1)
	return c.TCPConn.Write(b)
}

func (c *meter) SyscallConn() (syscall.RawConn, error) {
	raw, err := c.TCPConn.SyscallConn()
	return meterRaw{raw, c}, err
}

type meterRaw struct {
	syscall.RawConn
	of *meter
}

func (r meterRaw) Write(attempt func(fd uintptr) bool) error {
	r.of.writes.Add(1)
	return r.RawConn.Write(attempt)
}

// measured counts the bytes that are read through it.
type measured struct {
	io.Reader
	bytes int64
}

func (m *measured) Read(b []byte) (int, error) {
	n, err := m.Reader.Read(b)
	m.bytes += int64(n)
	return n, err
}

// answerBuffer is how many bytes of answers the HTTP server keeps back: its own default.
const answerBuffer = 4096

// TestPipelineIsAnsweredTogether: requests that arrive together are answered in their order and in
// few writes. The HTTP server writes answers when its buffer for them is full, and before it waits
// for bytes of another request. So there are no more writes than reads and full buffers.
func TestPipelineIsAnsweredTogether(t *testing.T) {
	for _, c := range []struct{ orders, reads int }{{0, 16}, {8, 0}, {8, 8}, {16, 16}} {
		t.Run(fmt.Sprintf("%d orders, %d reads", c.orders, c.reads), func(t *testing.T) {
			h := newHouse(t, func(o *Options) {
				o.Public = func(ctx *fasthttp.RequestCtx) { ctx.SetBody(ctx.RequestURI()) }
			})
			h.run([]string{"fund alice 100000"})
			near, far := tcpPair(t)
			_ = far.SetDeadline(time.Now().Add(4 * patience))
			in := &measured{Reader: far}
			d := &dialed{far, t, bufio.NewReader(in)}
			for round := range 2 { // the second one on a connection that has traded
				text, words := pipelined(h, round, c.orders, c.reads)
				d.write(text)
				if round == 0 { // all that the socket holds is there before the door reads
					near = &meter{TCPConn: near.(*net.TCPConn)}
					ln := &oneListener{conns: make(chan net.Conn, 1)}
					ln.conns <- near
					go func() { _ = h.server.Serve(ln) }() // ends with the house
				}
				for i, word := range words {
					if got := d.answer(); !strings.Contains(got, word) {
						t.Fatalf("round %d, answer %d: %s\nwant %s", round, i, got, word)
					}
				}
				door := near.(*meter)
				reads, writes := door.reads.Swap(0), door.writes.Swap(0)
				if most := reads + in.bytes/answerBuffer; writes > most || most >= int64(len(words)) {
					t.Errorf("round %d: %d answers of %d bytes to %d reads in %d writes, want %d at most",
						round, len(words), in.bytes, reads, writes, most)
				}
				in.bytes = 0
			}
		})
	}
}

// pipelined is signed orders and reads in turns, as one text, and a word of each answer.
func pipelined(h *house, round, orders, reads int) (text string, words []string) {
	for i := range max(orders, reads) {
		if i < orders {
			name := fmt.Sprintf("o%d-%d", round, i)
			text += h.rawOrder(fmt.Sprintf("alice buy A 5 @ 0.10 salt=%d as=%s", 1+100*round+i, name))
			words = append(words, `"orderID":"`+h.names[name].Hex()+`"`)
		}
		if i < reads {
			path, word := "/time", "\n1800000000\n"
			if i%2 == 0 {
				path = fmt.Sprintf("/book?n=%d", 100*round+i)
				word = path + "\n"
			}
			text += "GET " + path + " HTTP/1.1\r\nHost: x\r\n\r\n"
			words = append(words, word)
		}
	}
	return text, words
}
