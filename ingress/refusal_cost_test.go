package ingress

import (
	"errors"
	"io"
	"net"
	"syscall"
	"testing"
	"time"

	"github.com/valyala/fasthttp"
)

// crowdSize is how many connections take turns: what one of them needs is in no cache any more.
const crowdSize = 800

// cpuTime is the CPU time of this process.
func cpuTime(b *testing.B) time.Duration {
	var u syscall.Rusage
	if err := syscall.Getrusage(syscall.RUSAGE_SELF, &u); err != nil {
		b.Fatal(err)
	}
	return time.Duration(u.Utime.Nano() + u.Stime.Nano())
}

// pay sends a request over each connection in turn, and reports the CPU time of both sides.
func pay(b *testing.B, all []net.Conn, request string) {
	room, text := make([]byte, 4096), []byte(request)
	began, i := cpuTime(b), 0
	for b.Loop() {
		c := all[i%len(all)]
		_, sent := c.Write(text)
		if _, err := c.Read(room); errors.Join(sent, err) != nil {
			b.Fatal(err)
		}
		i++
	}
	b.ReportMetric(float64((cpuTime(b)-began).Nanoseconds())/1e3/float64(b.N), "cpu-µs/op")
}

// BenchmarkRefusal is what an order costs that the queue has no room for, beside servers that do
// nothing: the HTTP server with a short answer, and goroutines that read and write. All pay for
// the same client.
func BenchmarkRefusal(b *testing.B) {
	h := newHouse(b, nil)
	h.run([]string{"fund alice 1000"})
	for name, text := range map[string]string{
		"order": h.rawOrder("alice buy A 10 @ 0.40"), "list": fullList(h)} {
		b.Run("node/"+name, func(b *testing.B) {
			var t testing.T
			all := dialAll(b, func(ln net.Listener) { _ = h.server.Serve(ln) })
			for _, c := range all { // only a connection in use is refused early
				_, sent := io.WriteString(c, "GET /ok HTTP/1.1\r\nHost: x\r\n\r\n")
				if _, err := c.Read(make([]byte, 4096)); errors.Join(sent, err) != nil {
					b.Fatal(err)
				}
			}
			leave := crowd(&t, h.server.pool)
			defer leave()
			pay(b, all, text)
		})
		b.Run("server/"+name, func(b *testing.B) {
			s := &fasthttp.Server{ReadBufferSize: headerBytes, Handler: func(ctx *fasthttp.RequestCtx) {
				ctx.SetStatusCode(fasthttp.StatusServiceUnavailable)
			}}
			pay(b, dialAll(b, func(ln net.Listener) { _ = s.Serve(ln) }), text)
		})
		b.Run("bare/"+name, func(b *testing.B) {
			pay(b, dialAll(b, func(ln net.Listener) {
				for {
					c, err := ln.Accept()
					if err != nil {
						return
					}
					go answerAll(c, len(text))
				}
			}), text)
		})
	}
}

// answerAll answers each request of n bytes.
func answerAll(c net.Conn, n int) {
	for room := make([]byte, headerBytes); ; {
		for left := n; left > 0; {
			got, err := c.Read(room)
			if err != nil {
				return
			}
			left -= got
		}
		_, _ = io.WriteString(c, "HTTP/1.1 503 Service Unavailable\r\nContent-Length: 0\r\n\r\n")
	}
}

// dialAll is a crowd of connections to a server on a port of its own.
func dialAll(b *testing.B, serve func(net.Listener)) (all []net.Conn) {
	ln, err := net.Listen("tcp4", "127.0.0.1:0")
	if err != nil {
		b.Fatal(err)
	}
	go serve(ln) // which closes it, or ends with the process
	for range crowdSize {
		c, err := net.Dial("tcp4", ln.Addr().String())
		if err != nil {
			b.Fatal(err)
		}
		b.Cleanup(func() { _ = c.Close() })
		all = append(all, c)
	}
	return all
}
