package journal

import (
	"bytes"
	"errors"
	"log/slog"
	"sync"
	"testing"
	"time"

	"clobd/engine"

	"github.com/cockroachdb/pebble/v2/vfs"
)

// safeBuffer collects a log from several goroutines.
type safeBuffer struct {
	mu sync.Mutex
	b  bytes.Buffer
}

func (s *safeBuffer) Write(p []byte) (int, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.b.Write(p)
}

func (s *safeBuffer) String() string {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.b.String()
}

func (s *safeBuffer) logger() *slog.Logger { return slog.New(slog.NewTextHandler(s, nil)) }

// TestTailSeesEveryFrameOnce follows from the start while frames are written, with so little memory
// that the slow one of two Tails must read from the database.
func TestTailSeesEveryFrameOnce(t *testing.T) {
	for name, memory := range map[string]int{"memory": 1 << 20, "database": 5000, "neither": 1} {
		t.Run(name, func(t *testing.T) {
			const frames = 400
			j := open(t, Options{Dir: "data", FS: vfs.NewMem(), TailBytes: memory})
			m := newMaker(5)
			var sent []*engine.Frame
			for range frames {
				sent = append(sent, m.frame(1+len(sent)%7))
			}
			var wg sync.WaitGroup
			follow := func(from int, pause time.Duration) {
				defer wg.Done()
				tail := j.Tail(uint64(from))
				for i := max(from, 1); i <= frames; i++ {
					b, err := tail.Next()
					if err != nil || !bytes.Equal(b, sent[i-1].Bytes) {
						t.Errorf("frame %d: wrong bytes, or %v", i, err)
						return
					}
					if i%50 == 0 {
						time.Sleep(pause)
					}
				}
			}
			wg.Add(3)
			go follow(0, 0)
			go follow(1, 2*time.Millisecond)
			go follow(133, 0)
			for _, f := range sent {
				if err := errors.Join(j.Append(f), j.Wait(f.No)); err != nil {
					t.Fatal(err)
				}
			}
			wg.Wait()
			if j.latest.ring.bytes > memory {
				t.Errorf("%d bytes in memory, limit %d", j.latest.ring.bytes, memory)
			}
			shut(t, j)
		})
	}
}

func TestTailShowsDurableFramesOnly(t *testing.T) {
	j := open(t, Options{Dir: "data", FS: vfs.NewMem()})
	defer j.Close()
	tail := j.Tail(1)
	f := newMaker(1).frame(3)
	if err := j.Append(f); err != nil {
		t.Fatal(err)
	}
	if _, ready, err := tail.take(false); ready || err != nil {
		t.Fatalf("a frame that nobody waited for is shown: %v", err)
	}
	if err := j.Wait(1); err != nil {
		t.Fatal(err)
	}
	if b, ready, err := tail.take(false); !ready || err != nil || !bytes.Equal(b, f.Bytes) {
		t.Fatalf("durable frame: %v %v", ready, err)
	}
}

func TestCloseWakesTails(t *testing.T) {
	j := open(t, Options{Dir: "data", FS: vfs.NewMem()})
	got := make(chan error)
	a, b := j.Tail(1), j.Tail(1)
	for _, tail := range []*Tail{a, b} {
		go func() {
			_, err := tail.Next()
			got <- err
		}()
	}
	time.Sleep(time.Millisecond)
	a.Close()
	if err := <-got; !errors.Is(err, ErrClosed) {
		t.Fatal(err)
	}
	shut(t, j)
	if err := <-got; !errors.Is(err, ErrClosed) {
		t.Fatal(err)
	}
	if _, err := b.Next(); !errors.Is(err, ErrClosed) {
		t.Fatal(err)
	}
}
