package live

import (
	"bufio"
	"bytes"
	"errors"
	"net"
	"syscall"
	"testing"
	"time"
)

// sendLater adds a text for each socket and sends them in another goroutine.
func sendLater(t *testing.T, b *Batch, sockets ...*Socket) (sent chan map[int]error) {
	t.Helper()
	for i, s := range sockets {
		if at, taken := b.Add(s, AppendFrame(nil, []byte("hello"))); at != i || !taken {
			t.Fatalf("send %d: %d, %v", i, at, taken)
		}
	}
	sent = make(chan map[int]error, 1)
	go func() {
		left := map[int]error{}
		b.Send(func(i int, err error) { left[i] = err })
		sent <- left
	}()
	return sent
}

// TestBatchHolds: until the kernel has sent, no other goroutine writes to a socket of the batch or
// closes its descriptor.
func TestBatchHolds(t *testing.T) {
	b := openBatch(t)
	first, _, client := pair(t, nil)
	last, _, _ := pair(t, nil)
	last.line.mutex.Lock() // so that Send waits while it holds the first Line
	sent := sendLater(t, b, first, last)
	for end := time.Now().Add(patience); first.line.mutex.TryLock(); time.Sleep(time.Millisecond) {
		if first.line.mutex.Unlock(); time.Now().After(end) {
			last.line.mutex.Unlock()
			t.Fatal("the first Line is never locked")
		}
	}
	closed := make(chan struct{})
	go func() {
		defer close(closed)
		first.End()
	}()
	select {
	case <-closed:
		t.Error("the descriptor is closed while the batch has its number")
	case <-time.After(50 * time.Millisecond):
	}
	last.line.mutex.Unlock()
	if left := <-sent; len(left) != 0 {
		t.Errorf("left: %v", left)
	}
	<-closed
	if _, payload, err := readFrame(client); string(payload) != "hello" {
		t.Errorf("%q, %v", payload, err)
	}
}

// TestBatchCopies: after Add, the caller may overwrite the frames at once.
func TestBatchCopies(t *testing.T) {
	b := openBatch(t)
	s, _, client := pair(t, nil)
	frames := AppendFrame(nil, []byte("hello"))
	b.Add(s, frames)
	clear(frames)
	b.Send(func(_ int, err error) { t.Errorf("left: %v", err) })
	if _, payload, err := readFrame(client); string(payload) != "hello" {
		t.Errorf("%q, %v", payload, err)
	}
}

// TestBatchPanics: if the caller's function panics in Send, the Batch is empty afterwards.
func TestBatchPanics(t *testing.T) {
	b := openBatch(t)
	closed, _, _ := pair(t, nil)
	s, _, client := pair(t, nil)
	closed.End()
	func() {
		defer func() { _ = recover() }()
		b.Add(closed, AppendFrame(nil, []byte("x")))
		b.Send(func(int, error) { panic("of the caller") })
	}()
	if left := <-sendLater(t, b, s); len(left) != 0 {
		t.Errorf("left: %v", left)
	}
	if _, payload, err := readFrame(client); string(payload) != "hello" {
		t.Errorf("%q, %v", payload, err)
	}
}

// TestBatchRefused: if the kernel refuses the sends, their bytes stay in the Lines, and Flush sends
// them once. The Batch takes nothing more until it is opened again.
func TestBatchRefused(t *testing.T) {
	b := openBatch(t)
	one, _, hears := pair(t, nil)
	two, _, other := pair(t, nil)
	for range 20 {
		_ = syscall.Close(b.ring.fd)
		b.ring.fd = -1
		select {
		case left := <-sendLater(t, b, one, two):
			if len(left) != 2 || errors.Join(left[0], left[1]) != nil || one.Rest() != 7 {
				t.Fatalf("left: %v, %d bytes", left, one.Rest())
			}
		case <-time.After(patience):
			t.Fatal("it asks for ever")
		}
		for _, s := range []*Socket{one, two} {
			if all, err := s.Flush(); !all || err != nil {
				t.Fatalf("%v, %v", all, err)
			}
		}
		if _, taken := b.Add(two, []byte("x")); taken || b.Works() {
			t.Fatal("it goes on")
		}
		if !b.Open() || !b.Works() {
			t.Fatal("it cannot be opened again")
		}
		if left := <-sendLater(t, b, two); len(left) != 0 {
			t.Fatalf("left: %v", left)
		}
		for n, r := range []*bufio.Reader{hears, other} {
			for range n + 1 {
				if _, payload, err := readFrame(r); string(payload) != "hello" {
					t.Fatalf("%q, %v", payload, err)
				}
			}
			if r.Buffered() > 0 {
				t.Fatal("a frame comes twice")
			}
		}
	}
}

// TestBatchLosesResults: if the kernel has taken sends and never reports on them, they fail and the
// ring is broken, because nobody knows which bytes the clients have.
func TestBatchLosesResults(t *testing.T) {
	b := openBatch(t)
	_ = syscall.Close(b.ring.fd)
	b.ring.fd = -1
	b.ring.open = 1<<3 | 1<<5
	lost := map[int]syscall.Errno{}
	b.ring.send(func(i, wrote int, no syscall.Errno) { lost[i] = no + syscall.Errno(wrote) })
	const over = syscall.ECANCELED
	if len(lost) != 2 || lost[3] != over || lost[5] != over || !b.ring.broken {
		t.Errorf("%v, broken: %v", lost, b.ring.broken)
	}
}

// TestBatchCloses: a Batch closes a connection that has too many unsent bytes.
func TestBatchCloses(t *testing.T) {
	b := openBatch(t)
	full, _, _ := pair(t, nil)
	var err error
	for round := 0; err == nil && round < 1000; round++ {
		b.Add(full, bytes.Repeat([]byte("x"), maxBatched))
		b.Send(func(_ int, e error) { err = e })
	}
	if !errors.Is(err, Unread) {
		t.Fatal(err)
	}
	if err := full.line.Conn.SetDeadline(time.Now()); !errors.Is(err, net.ErrClosed) {
		t.Errorf("the connection is open: %v", err)
	}
}
