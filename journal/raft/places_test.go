package raft

import (
	"io"
	"log/slog"
	"net"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	pb "go.etcd.io/raft/v3/raftpb"
)

// hall is member 1, and member 2 with the ways to it.
type hall struct {
	t       *testing.T
	n, from *Network
	address string
	got     chan *pb.Message
	streams chan net.Conn
	removed atomic.Bool // member 2
}

func newHall(t *testing.T) *hall {
	t.Helper()
	a := newAuthority(t)
	h := &hall{t: t, got: make(chan *pb.Message, 10_000), streams: make(chan net.Conn, 100)}
	h.n = NewNetwork(NetworkOptions{ID: 1, Cluster: clusterID, TLS: a.member(clusterID, 1),
		Receive: func(m *pb.Message) { h.got <- m },
		Stream: func(_ uint64, c net.Conn) {
			h.streams <- c
			_, _ = io.Copy(io.Discard, c)
		},
		Removed: func(id uint64) bool { return id == 2 && h.removed.Load() },
		Log:     slog.New(slog.DiscardHandler)})
	h.address = listen(t, h.n)
	h.from = NewNetwork(NetworkOptions{ID: 2, Cluster: clusterID, TLS: a.member(clusterID, 2),
		Log: slog.New(slog.DiscardHandler)})
	t.Cleanup(h.from.Close)
	return h
}

// until waits for something.
func until(t *testing.T, what string, is func() bool) {
	t.Helper()
	for end := time.Now().Add(soon); !is(); time.Sleep(time.Millisecond) {
		if time.Now().After(end) {
			t.Fatal(what)
		}
	}
}

func (h *hall) count() int {
	h.n.mu.Lock()
	defer h.n.mu.Unlock()
	return len(h.n.open)
}

// TestCrowd: however many strangers are connected and prove nothing, a member is let in, and they
// get no more places than there are for them.
func TestCrowd(t *testing.T) {
	h := newHall(t)
	for range 300 {
		c, err := net.Dial("tcp", h.address)
		if err != nil {
			t.Fatal(err)
		}
		defer c.Close()
		go func() { _, _ = io.Copy(io.Discard, c) }()
	}
	until(t, "the strangers do not arrive", func() bool { return h.count() >= unproved-1 })
	h.from.Route(1, h.address)
	c, err := h.from.Dial(1)
	if err != nil {
		t.Fatal("a member is kept out:", err)
	}
	defer c.Close()
	if _, err := c.Write([]byte{1}); err != nil {
		t.Fatal(err)
	}
	select {
	case <-h.streams:
	case <-time.After(soon):
		t.Fatal("a member is kept out")
	}
	if n := h.count(); n > unproved+2 {
		t.Errorf("%d connections are open", n)
	}
}

// TestManyOfOne: one member's connections are bounded, and its newest stay.
func TestManyOfOne(t *testing.T) {
	h := newHall(t)
	h.from.Route(1, h.address)
	var last net.Conn
	for range perMember + 20 {
		c, err := h.from.Dial(1)
		if err != nil {
			t.Fatal(err)
		}
		defer c.Close()
		last = <-h.streams
	}
	until(t, "all stay open", func() bool { return h.count() <= perMember })
	h.n.mu.Lock()
	newest := uint64(0)
	for _, p := range h.n.open {
		newest = max(newest, p.no)
	}
	total := h.n.count
	h.n.mu.Unlock()
	if newest != total || last == nil {
		t.Errorf("the newest that stays is number %d of %d", newest, total)
	}
}

// TestRemovedHangsUp: a member that was removed loses its connections, and gets no new one.
func TestRemovedHangsUp(t *testing.T) {
	h := newHall(t)
	h.from.Route(1, h.address)
	c, err := h.from.Dial(1)
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	<-h.streams
	h.from.Send(&pb.Message{Type: pb.MsgHeartbeat.Enum(), From: new(uint64(2)), To: new(uint64(1))})
	<-h.got
	h.removed.Store(true)
	if err := c.SetReadDeadline(time.Now().Add(soon)); err != nil {
		t.Fatal(err)
	}
	if _, err := c.Read(make([]byte, 1)); err == nil || isTimeout(err) {
		t.Error("it stays connected:", err)
	}
	until(t, "messages still come in", func() bool { return h.count() == 0 })
	if c, err := h.from.Dial(1); err == nil {
		defer c.Close()
		if err := c.SetReadDeadline(time.Now().Add(soon)); err != nil {
			t.Fatal(err)
		}
		if _, err := c.Read(make([]byte, 1)); err == nil || isTimeout(err) {
			t.Error("it is let in again:", err)
		}
	}
	if len(h.streams) > 0 {
		t.Error("it is let in again")
	}
}

func isTimeout(err error) bool {
	n, is := err.(net.Error)
	return is && n.Timeout()
}

// full is a listener of a process that has no files left, a few times.
type full struct {
	net.Listener
	left atomic.Int32
}

func (f *full) Accept() (net.Conn, error) {
	if f.left.Add(-1) >= 0 {
		return nil, &net.OpError{Op: "accept", Err: syscall.EMFILE}
	}
	return f.Listener.Accept()
}

// TestNoFiles: a process without files serves again when it has some.
func TestNoFiles(t *testing.T) {
	a := newAuthority(t)
	got := make(chan *pb.Message, 10)
	n := NewNetwork(NetworkOptions{ID: 1, Cluster: clusterID, TLS: a.member(clusterID, 1),
		Receive: func(m *pb.Message) { got <- m }, Log: slog.New(slog.DiscardHandler)})
	inner, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	l := &full{Listener: inner}
	l.left.Store(4)
	ended := make(chan error, 1)
	go func() { ended <- n.Serve(l) }()
	from := NewNetwork(NetworkOptions{ID: 2, Cluster: clusterID, TLS: a.member(clusterID, 2),
		Log: slog.New(slog.DiscardHandler)})
	defer from.Close()
	from.Route(1, inner.Addr().String())
	from.Send(&pb.Message{Type: pb.MsgHeartbeat.Enum(), From: new(uint64(2)), To: new(uint64(1))})
	select {
	case <-got:
	case err := <-ended:
		t.Fatal("it serves no more:", err)
	case <-time.After(soon):
		t.Fatal("nobody comes in")
	}
	n.Close()
	if err := <-ended; err != nil {
		t.Error(err)
	}
}
