package fanout

import (
	"bufio"
	"bytes"
	"context"
	"crypto/sha1"
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"runtime"
	"runtime/debug"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"time"

	"github.com/centrifugal/centrifuge"

	"clobd/api/wire/live"
	"clobd/bench"
	"clobd/bench/crowd"
	"clobd/bench/process"
)

// The sides of a fan-out: the servers that are compared.
const (
	nodeSide       = "clobd"
	bareSide       = "bare"
	centrifugeSide = "centrifuge"
)

// sides returns the sides in the order of the report.
func sides() []string { return []string{nodeSide, bareSide, centrifugeSide} }

// paths returns the URL path of each side's WebSocket.
func paths() map[string]string {
	return map[string]string{nodeSide: "/ws/market", bareSide: "/",
		centrifugeSide: "/connection/websocket"}
}

// spec is the input of a process that serves a side: which side, and what to send.
type spec struct {
	Side     string
	Burst    int
	Warm     int           // bursts before the clock starts
	Bursts   int           // of the measurement
	Interval time.Duration // between two bursts
	// Texts are the messages of two bursts, which take turns. Each text has a member "sequence",
	// and the server writes the number of the message there. clobd's own side ignores Texts: its
	// stream makes the messages.
	Texts [][]byte
}

// The questions to the process, a line each, and the types of its answers.
const (
	askRest = "rest" // held
	askRun  = "run"  // published, when all bursts are published
	askCPU  = "cpu"  // time.Duration: CPU time of the process since the clock started
)

// held is memory of a process, in bytes.
type held struct{ RSS, Heap int64 }

// published says when the measured bursts were published.
type published struct {
	Start int64         // when the first burst was due, in ns after 1970
	Late  bench.Latency // of the bursts, after they were due
	Made  float64       // µs that the node's side takes to make the frame of a burst, p50
	Took  time.Duration // from Start to the end of the last burst's publishing
}

// source publishes the bursts of a side.
type source struct {
	publish func(n int) error // publishes burst n
	made    bench.Recorder    // how long the node's side took to make each burst's frame
}

// Serve is the main function of a process that serves a side of a fan-out. It reads a spec,
// writes its address, and answers questions until in ends.
func Serve(in io.Reader, out io.Writer) error {
	lines, answers := bufio.NewReader(in), json.NewEncoder(out)
	var s spec
	if err := process.ReadLine(lines, &s); err != nil {
		return fmt.Errorf("read what to serve: %w", err)
	}
	ln, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return fmt.Errorf("listen: %w", err)
	}
	defer ln.Close()
	source, err := s.serve(ln)
	if err != nil {
		return err
	}
	before := restNow()
	if err := answers.Encode(ln.Addr().String()); err != nil {
		return fmt.Errorf("tell the address: %w", err)
	}
	// The pacing goroutine sleeps in system calls, and may hold one of the runtime's processors.
	runtime.GOMAXPROCS(runtime.GOMAXPROCS(0) + 1)
	var began time.Duration
	for {
		var question string
		err := process.ReadLine(lines, &question)
		if err != nil {
			return nil // nobody asks any more
		}
		var answer any
		switch question {
		case askRest:
			now := restNow()
			answer = held{now.RSS - before.RSS, now.Heap - before.Heap}
		case askRun:
			answer, began, err = s.run(source)
		case askCPU:
			var now time.Duration
			now, err = process.CPUTime()
			answer = now - began
		}
		if err == nil {
			err = answers.Encode(answer)
		}
		if err != nil {
			return err
		}
	}
}

// serve begins to serve subscribers on ln, and returns the source of their messages.
func (s *spec) serve(ln net.Listener) (*source, error) {
	switch s.Side {
	case nodeSide:
		h, err := newHub(ln, s.Burst)
		if err != nil {
			return nil, err
		}
		return &source{h.publish, h.made}, nil
	case bareSide:
		b := &bareLoop{burst: newTexts(s.Texts, s.Burst)}
		runtime.LockOSThread()
		go b.accept(ln)
		return &source{b.publish, bench.NewRecorder()}, nil
	}
	return s.centrifuge(ln)
}

// run publishes the bursts at their rate. The clock starts after the first s.Warm bursts. began is
// the CPU time that the process had used when the clock started.
func (s *spec) run(source *source) (out published, began time.Duration, err error) {
	start := time.Now()
	late := bench.NewRecorder()
	for n := range s.Warm + s.Bursts {
		if n == s.Warm {
			time.Sleep(settle)
			runtime.GC()
			late = bench.NewRecorder()
			if began, err = process.CPUTime(); err != nil {
				return out, 0, err
			}
			start = time.Now().Add(-time.Duration(n) * s.Interval)
			out.Start = time.Now().UnixNano()
		}
		due := start.Add(time.Duration(n) * s.Interval)
		for d := time.Until(due); d > 0; d = time.Until(due) {
			t := syscall.NsecToTimespec(d.Nanoseconds())
			_ = syscall.Nanosleep(&t, nil) // in the kernel: the runtime's timers take more CPU time
		}
		late.Record(time.Since(due))
		if err := source.publish(n); err != nil {
			return out, 0, err
		}
		runtime.Gosched() // woken goroutines run on this thread, and need no other one
	}
	out.Made = source.made.Latency().P50
	out.Late, out.Took = late.Latency(), time.Since(start)-time.Duration(s.Warm)*s.Interval
	return out, began, nil
}

// settle is the pause in which the bursts before the clock arrive.
const settle = 300 * time.Millisecond

// restNow returns the memory of the process after garbage collections: RSS, and live heap and
// stacks.
func restNow() held {
	debug.FreeOSMemory()
	runtime.GC()
	debug.FreeOSMemory()
	var m runtime.MemStats
	runtime.ReadMemStats(&m)
	r := held{Heap: int64(m.HeapAlloc + m.StackInuse)}
	if b, err := os.ReadFile("/proc/self/statm"); err == nil {
		if fields := strings.Fields(string(b)); len(fields) > 1 {
			pages, _ := strconv.ParseInt(fields[1], 10, 64)
			r.RSS = pages * int64(os.Getpagesize())
		}
	}
	return r
}

// texts holds the messages of two bursts, each cut in two where the number of the message belongs.
type texts struct {
	burst  int
	halves [][2][]byte
}

func newTexts(all [][]byte, burst int) texts {
	f := texts{burst: burst}
	for _, t := range all {
		at := bytes.LastIndex(t, []byte(crowd.NumberKey)) + len(crowd.NumberKey)
		end := at
		for end < len(t) && '0' <= t[end] && t[end] <= '9' {
			end++
		}
		f.halves = append(f.halves, [2][]byte{t[:at], t[end:]})
	}
	return f
}

// each calls text for each message of burst n. The numbers of messages begin at 1.
func (f *texts) each(n int, text func(b []byte)) {
	for i := range f.burst {
		halves := f.halves[n%2*f.burst+i]
		b := strconv.AppendInt(append(make([]byte, 0, 1024), halves[0]...), int64(n*f.burst+i+1), 10)
		text(append(b, halves[1]...))
	}
}

// bareLoop is the server with the least work: one thread writes to all connections, and a goroutine
// for each connection waits until the connection ends.
type bareLoop struct {
	burst  texts
	mutex  sync.Mutex
	conns  []net.Conn
	framed []byte
}

// accept shakes hands, one connection after the other.
func (b *bareLoop) accept(ln net.Listener) {
	for {
		c, err := ln.Accept()
		if err != nil {
			return
		}
		r, err := http.ReadRequest(bufio.NewReader(c))
		if err != nil {
			_ = c.Close()
			continue
		}
		b.mutex.Lock()
		b.conns = append(b.conns, c)
		b.mutex.Unlock()
		sum := sha1.Sum([]byte(r.Header.Get("Sec-Websocket-Key") + magic))
		fmt.Fprint(c, "HTTP/1.1 101 Switching Protocols\r\nUpgrade: websocket\r\nConnection: Upgrade\r\n"+
			"Sec-WebSocket-Accept: "+base64.StdEncoding.EncodeToString(sum[:])+"\r\n\r\n")
		go func() {
			var some [64]byte
			for {
				if _, err := c.Read(some[:]); err != nil {
					return
				}
			}
		}()
	}
}

// magic is the constant from which a handshake's answer is computed (RFC 6455, section 1.3).
const magic = "258EAFA5-E914-47DA-95CA-C5AB0DC85B11"

// publish frames a burst once and writes it to each connection with one call.
func (b *bareLoop) publish(n int) error {
	b.framed = b.framed[:0]
	b.burst.each(n, func(text []byte) { b.framed = live.AppendFrame(b.framed, text) })
	b.mutex.Lock()
	defer b.mutex.Unlock()
	for _, c := range b.conns {
		if _, err := c.Write(b.framed); err != nil {
			return fmt.Errorf("bare loop: %w", err)
		}
	}
	return nil
}

// centrifuge serves a node of the library centrifuge with its defaults: JSON over WebSocket, and a
// channel in memory to which each connection subscribes when it connects.
func (s *spec) centrifuge(ln net.Listener) (*source, error) {
	const channel = "market"
	node, err := centrifuge.New(centrifuge.Config{})
	if err != nil {
		return nil, fmt.Errorf("centrifuge: %w", err)
	}
	node.OnConnecting(func(context.Context, centrifuge.ConnectEvent) (centrifuge.ConnectReply, error) {
		return centrifuge.ConnectReply{Credentials: &centrifuge.Credentials{UserID: ""},
			Subscriptions: map[string]centrifuge.SubscribeOptions{channel: {}}}, nil
	})
	node.OnConnect(func(*centrifuge.Client) {})
	if err := node.Run(); err != nil {
		return nil, fmt.Errorf("centrifuge: %w", err)
	}
	routes := http.NewServeMux()
	routes.Handle(paths()[centrifugeSide],
		centrifuge.NewWebsocketHandler(node, centrifuge.WebsocketConfig{}))
	go func() { _ = http.Serve(ln, routes) }() // until the process ends
	texts := newTexts(s.Texts, s.Burst)
	publish := func(n int) error {
		var failed error
		texts.each(n, func(text []byte) {
			_, err := node.Publish(channel, text)
			failed = errors.Join(failed, err)
		})
		return failed
	}
	return &source{publish, bench.NewRecorder()}, nil
}
