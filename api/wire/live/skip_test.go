package live

import (
	"errors"
	"net"
	"os"
	"testing"
	"time"
)

// TestBatchSkipsClosed: a send to a closed connection goes to nobody, even if a new connection has
// the number of its descriptor.
func TestBatchSkipsClosed(t *testing.T) {
	b := openBatch(t)
	old, _, _ := pair(t, nil)
	for range 2 * BatchSends { // all places of the queue
		b.Add(old, AppendFrame(nil, []byte("secret")))
		b.Send(func(i int, err error) { t.Fatalf("send %d: %v", i, err) })
	}
	ln, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer ln.Close()
	client, err := net.Dial("tcp", ln.Addr().String())
	if err != nil {
		t.Fatal(err)
	}
	defer client.Close()
	old.End()
	stranger, err := ln.Accept() // gets the number, as the lowest one that is free
	if err != nil {
		t.Fatal(err)
	}
	defer stranger.Close()
	b.Add(old, AppendFrame(nil, []byte("secret")))
	var failed error
	b.Send(func(_ int, err error) { failed = err })
	if failed == nil {
		t.Error("a send to a closed connection does not fail")
	}
	_ = client.SetReadDeadline(time.Now().Add(100 * time.Millisecond))
	var room [64]byte
	if n, err := client.Read(room[:]); !errors.Is(err, os.ErrDeadlineExceeded) {
		t.Errorf("a stranger gets %q, %v", room[:n], err)
	}
}

// TestBatchSkipsInPlace: a skipped send does not disturb the other sends in the queue: each client
// gets its frame, and no client gets a frame twice.
func TestBatchSkipsInPlace(t *testing.T) {
	b := openBatch(t)
	good, _, client := pair(t, nil)
	closed, _, _ := pair(t, nil)
	closed.End()
	for range 3 * BatchSends {
		b.Add(good, AppendFrame(nil, []byte("hello")))
		b.Add(closed, AppendFrame(nil, []byte("a longer text")))
		b.Send(func(i int, err error) {
			if i == 0 {
				t.Fatalf("the good one has %d bytes left, %v", good.Rest(), err)
			}
		})
		if _, payload, err := readFrame(client); err != nil || string(payload) != "hello" {
			t.Fatalf("%q, %v", payload, err)
		}
	}
}

// TestBatchSkipsRest: if a Line has unsent bytes, such as a pong, the frames of the Batch are sent
// after these bytes, and only once.
func TestBatchSkipsRest(t *testing.T) {
	b := openBatch(t)
	slow, _, client := pair(t, nil)
	good, _, other := pair(t, nil)
	for n := range 3 * BatchSends {
		// Unsent bytes, as if a pong had found the socket full.
		slow.line.rest = append(slow.line.rest, AppendFrame(nil, []byte("pong"))...)
		b.Add(slow, AppendFrame(nil, []byte("behind it")))
		b.Add(good, AppendFrame(nil, []byte("hello")))
		left := map[int]error{}
		b.Send(func(i int, err error) { left[i] = err })
		if _, some := left[0]; !some || len(left) != 1 || left[0] != nil {
			t.Fatalf("round %d: %v are left", n, left)
		}
		if _, err := slow.Flush(); err != nil {
			t.Fatal(err)
		}
		for _, want := range []string{"pong", "behind it"} {
			if _, payload, err := readFrame(client); err != nil || string(payload) != want {
				t.Fatalf("round %d: %q, %v; want %q", n, payload, err, want)
			}
		}
		if _, payload, err := readFrame(other); err != nil || string(payload) != "hello" {
			t.Fatalf("round %d: %q, %v", n, payload, err)
		}
	}
}
