package live

import (
	"bufio"
	"bytes"
	"errors"
	"fmt"
	"io"
	"net"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"
)

// openBatch returns a Batch that takes sends, or skips the test.
func openBatch(t *testing.T) *Batch {
	t.Helper()
	b := &Batch{}
	if !b.Open() {
		t.Skip("SKIPPED: the kernel has no io_uring for this process")
	}
	t.Cleanup(b.Close)
	return b
}

// pairs holds the sockets that a Batch sends to, and their clients. Every third client begins to
// read late.
type pairs struct {
	batch   *Batch
	sockets [BatchSends]*Socket
	clients [BatchSends]*bufio.Reader
	next    [BatchSends]int // number of the next message
	resting [BatchSends]bool
	rests   int // how often a socket was full
}

// pairTexts is how many text messages each client gets.
const pairTexts = 300

func (c *pairs) late(i int) bool { return i%3 == 2 }

func (c *pairs) text(i, n int) string {
	return fmt.Sprintf("%d of %d %s", n, i, strings.Repeat("x", 100*n*(i%3)))
}

// ping pings the clients in turn until over is closed.
func (c *pairs) ping(t *testing.T, over chan struct{}) {
	for i := 0; ; i++ {
		select {
		case <-over:
			return
		case <-time.After(50 * time.Microsecond):
		}
		if err := c.sockets[i%BatchSends].Ping(); err != nil {
			t.Errorf("ping: %v", err)
			return
		}
	}
}

// hear reads the text messages of client i, and checks each of them.
func (c *pairs) hear(t *testing.T, i int) {
	for n := 0; n < pairTexts; {
		first, payload, err := readFrame(c.clients[i])
		switch {
		case err != nil || first != 0x81 && first != 0x89:
			t.Errorf("client %d after %d texts: %x, %v", i, n, first, err)
			return
		case first == 0x89: // a ping
		case string(payload) != c.text(i, n):
			t.Errorf("client %d: text %d is %.40q", i, n, payload)
			return
		default:
			n++
		}
	}
}

// send sends the next message to each socket that is not full.
func (c *pairs) send(t *testing.T) {
	t.Helper()
	var numbers []int
	for i, s := range c.sockets {
		if c.resting[i] || c.next[i] == pairTexts {
			continue
		}
		at, taken := c.batch.Add(s, AppendFrame(nil, []byte(c.text(i, c.next[i]))))
		if !taken || at != len(numbers) {
			t.Fatalf("send %d of the batch: %d, %v", len(numbers), at, taken)
		}
		numbers = append(numbers, i)
		c.next[i]++
	}
	c.batch.Send(func(at int, err error) {
		if err != nil {
			t.Fatalf("socket %d: %v", numbers[at], err)
		}
		c.resting[numbers[at]] = true
		c.rests++
	})
}

// flush sends what is left unsent, and reports whether nothing is left.
func (c *pairs) flush(t *testing.T) bool {
	t.Helper()
	for i, s := range c.sockets {
		if c.resting[i] {
			all, err := s.Flush()
			if err != nil {
				t.Fatal(err)
			}
			c.resting[i] = !all
		}
	}
	return !slices.Contains(c.resting[:], true)
}

// TestBatch: each client gets all frames, whole and in order, while another goroutine sends pings,
// whether the client reads at once or late.
func TestBatch(t *testing.T) {
	c := &pairs{batch: openBatch(t)}
	for i := range c.sockets {
		c.sockets[i], _, c.clients[i] = pair(t, nil)
	}
	over, begun := make(chan struct{}), make(chan struct{})
	begin := sync.OnceFunc(func() { close(begun) })
	var pings, heard sync.WaitGroup
	pings.Go(func() { c.ping(t, over) })
	for i := range c.clients {
		heard.Go(func() {
			if c.late(i) {
				<-begun
			}
			c.hear(t, i)
		})
	}
	for end := time.Now().Add(patience); slices.Min(c.next[:]) < pairTexts; c.flush(t) {
		c.send(t)
		if c.next[0] == pairTexts {
			begin()
		}
		if time.Now().After(end) {
			t.Fatalf("sent %v", c.next)
		}
	}
	for !c.flush(t) {
		time.Sleep(time.Millisecond)
	}
	heard.Wait()
	close(over)
	pings.Wait()
	if c.rests == 0 {
		t.Error("no socket was ever full")
	}
}

// TestBatchEnds: a send to a closed connection fails, and the other sends do not. Frames for a full
// socket wait behind the bytes that were left before.
func TestBatchEnds(t *testing.T) {
	b := openBatch(t)
	closed, _, _ := pair(t, nil)
	left, gone, _ := pair(t, nil)
	good, _, client := pair(t, nil)
	full, _, slow := pair(t, nil)
	closed.End()
	_ = gone.SetLinger(0)
	_ = gone.Close()
	before := AppendFrame(nil, bytes.Repeat([]byte("y"), 1<<20))
	for whole, err := true, error(nil); whole; {
		if whole, err = full.Send(before); err != nil {
			t.Fatal(err)
		}
	}
	rest := full.Rest()
	for round := range 20 { // the client's reset may arrive late
		failed := map[int]error{}
		for i, s := range []*Socket{closed, left, good, full} {
			if at, taken := b.Add(s, AppendFrame(nil, []byte("hello"))); at != i || !taken {
				t.Fatalf("send %d: %d, %v", i, at, taken)
			}
		}
		b.Send(func(i int, err error) { failed[i] = err })
		if failed[0] == nil || len(failed) < 2 || failed[3] != nil || full.Rest() != rest+7*(round+1) {
			t.Fatalf("%v, %d of %d bytes wait", failed, full.Rest(), rest)
		}
		if _, wrong := failed[2]; wrong {
			t.Fatalf("the good socket: %v", failed[2])
		}
		if _, payload, err := readFrame(client); string(payload) != "hello" {
			t.Fatalf("%q, %v", payload, err)
		}
		if failed[1] != nil {
			break
		}
		if round == 19 {
			t.Error("a send to a client that is gone does not fail")
		}
		time.Sleep(10 * time.Millisecond)
	}
	go func() {
		for all, err := false, error(nil); !all && err == nil; time.Sleep(time.Millisecond) {
			all, err = full.Flush()
		}
		full.End()
	}()
	hearHellos(t, slow)
}

// hearHellos reads messages of 1 MiB and, after them, greetings, until the connection ends.
func hearHellos(t *testing.T, r *bufio.Reader) {
	t.Helper()
	texts, hellos := 0, 0
	for {
		_, payload, err := readFrame(r)
		switch {
		case errors.Is(err, io.EOF) && texts > 0 && hellos > 0:
			return
		case err != nil:
			t.Fatalf("%v after %d texts and %d greetings", err, texts, hellos)
		case len(payload) == 1<<20 && hellos == 0:
			texts++
		case string(payload) == "hello":
			hellos++
		default:
			t.Fatalf("%d bytes behind %d texts", len(payload), texts)
		}
	}
}

// TestBatchBounds: a Batch refuses frames that are too long, sends beyond its size, more bytes
// than it may copy, and Sockets to which io_uring cannot send. It keeps no more unsent bytes than a
// Line does. Without io_uring it takes nothing.
func TestBatchBounds(t *testing.T) {
	b := openBatch(t)
	s, _, _ := pair(t, nil)
	if _, taken := b.Add(s, make([]byte, maxBatched+1)); taken {
		t.Error("it takes what is too long")
	}
	if _, taken := b.Add(s, nil); taken {
		t.Error("it takes nothing to send")
	}
	secret, _, _ := pair(t, nil)
	secret.plain = false
	if _, taken := b.Add(secret, []byte("x")); taken {
		t.Error("it takes what TLS must encrypt")
	}
	client, node := net.Pipe()
	defer client.Close()
	if _, taken := b.Add(&Socket{line: NewLine(node), plain: true}, []byte("x")); taken {
		t.Error("it takes what is for no descriptor")
	}
	var err error
	for round := 0; err == nil && round < 1000; round++ {
		if _, taken := b.Add(s, make([]byte, maxBatched)); !taken {
			t.Fatal("it takes nothing")
		}
		b.Send(func(_ int, e error) { err = e })
	}
	if !errors.Is(err, Unread) || s.Rest() > maxRest {
		t.Errorf("%v with %d bytes that wait", err, s.Rest())
	}
	for range BatchSends {
		if _, taken := b.Add(s, []byte("x")); !taken {
			t.Fatal("it has no room")
		}
		b.all[b.n-1].line = NewLine(node) // one Line must not be in a Batch twice
	}
	if _, taken := b.Add(s, []byte("x")); taken {
		t.Error("it takes too many")
	}
	b.Forget()
	for range maxBatch / maxBatched {
		if _, taken := b.Add(s, make([]byte, maxBatched)); !taken {
			t.Fatal("it has no room for all bytes")
		}
		b.all[b.n-1].line = NewLine(node)
	}
	if _, taken := b.Add(s, []byte("x")); taken {
		t.Error("it takes too many bytes")
	}
	b.Forget()
	if _, taken := b.Add(s, []byte("x")); !taken {
		t.Error("it does not forget them")
	}
	b.Forget()
	if _, taken := new(Batch).Add(s, []byte("x")); taken {
		t.Error("it sends without io_uring")
	}
}
