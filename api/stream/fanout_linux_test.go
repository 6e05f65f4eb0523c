package stream

import (
	"bytes"
	"fmt"
	"io"
	"net"
	"runtime"
	"syscall"
	"testing"
	"time"
	"unsafe"

	"clobd/api/wire/live"
	"clobd/engine"
	"clobd/engine/view"
)

// hearers holds the subscribers of a market and, for comparison, as many bare connections without
// subscribers. All clients discard what they read.
type hearers struct {
	hub   *Hub
	watch *watch
	bare  []net.Conn
}

func newHearers(b *testing.B, n int) *hearers {
	b.Helper()
	h := New(Options{Board: view.NewBoard(), Now: time.Now,
		Panicked: func(where string, cause any) string {
			b.Errorf("panic of %s: %v", where, cause)
			return ""
		}})
	h.out.open()
	b.Cleanup(h.out.close)
	c := &hearers{hub: h, watch: &watch{subscribers: make(map[*subscriber]uint8)}}
	ln, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		b.Fatal(err)
	}
	defer ln.Close()
	for i := range 2 * n {
		client, err := net.Dial("tcp", ln.Addr().String())
		if err != nil {
			b.Fatal(err)
		}
		nc, err := ln.Accept()
		if err != nil {
			b.Fatal(err)
		}
		b.Cleanup(func() {
			client.Close()
			nc.Close()
		})
		go func() { _, _ = io.Copy(io.Discard, struct{ io.Reader }{client}) }()
		if i >= n {
			c.bare = append(c.bare, nc)
			continue
		}
		line := live.NewLine(nc)
		s, err := live.Open(line, line, nil, live.Asked{Key: "AAAAAAAAAAAAAAAAAAAAAA=="})
		if err != nil {
			b.Fatal(err)
		}
		c.watch.wants(h.enter(s), 1)
	}
	return c
}

// write writes the frames to each bare connection, and returns the CPU time that it took.
func (c *hearers) write(b *testing.B, frames []byte) time.Duration {
	b.Helper()
	begun := cpu(b)
	for i, nc := range c.bare {
		if _, err := nc.Write(frames); err != nil {
			b.Fatal(err)
		}
		if i%turns == turns-1 {
			yield()
		}
	}
	return cpu(b) - begun
}

// cpu returns the CPU time that the thread has used. The kernel updates its other counters of a
// thread only when it switches to another one.
func cpu(b *testing.B) time.Duration {
	b.Helper()
	const clock = 3 // CLOCK_THREAD_CPUTIME_ID
	var t syscall.Timespec
	if _, _, no := syscall.RawSyscall(syscall.SYS_CLOCK_GETTIME, clock,
		uintptr(unsafe.Pointer(&t)), 0); no != 0 {
		b.Fatal(no)
	}
	return time.Duration(t.Nano())
}

// BenchmarkFanOut measures the CPU time per message of the Hub, and of a loop that writes as many
// prepared bytes to as many connections. Both write to the loopback interface, in turns. The
// benchmark's own ns/op is the sum of both and has no meaning.
func BenchmarkFanOut(b *testing.B) {
	for _, c := range []struct{ subscribers, burst int }{{16, 1}, {1000, 1}, {1000, 8}, {1000, 32}} {
		b.Run(fmt.Sprintf("%d_by_%d", c.subscribers, c.burst), func(b *testing.B) {
			runtime.LockOSThread()
			defer runtime.UnlockOSThread()
			all := newHearers(b, c.subscribers)
			body := append([]byte(`{"event_type":"`), bytes.Repeat([]byte("x"), 550)...)
			frame := live.AppendFrame(nil, body, bytes.Repeat([]byte("x"), 110))
			frames := bytes.Repeat(frame, c.burst)
			var hub, bare time.Duration
			tell := func() {
				begun := cpu(b)
				for i := range c.burst {
					all.hub.publish(stride{watch: all.watch},
						[]*bulletin{{body: body, outcome: both, seq: engine.Sequence(1_000_000 + i)}})
				}
				all.hub.round(everybody)
				hub += cpu(b) - begun
			}
			for i := range b.N {
				if i%2 == 0 {
					tell()
				}
				bare += all.write(b, frames)
				if i%2 == 1 {
					tell()
				}
			}
			n := float64(b.N * c.burst * c.subscribers)
			b.ReportMetric(float64(hub)/n, "hub-ns/message")
			b.ReportMetric(float64(bare)/n, "bare-ns/message")
			b.ReportMetric(float64(hub)/float64(bare), "ratio")
		})
	}
}
