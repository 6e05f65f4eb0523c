package stream

import (
	"errors"
	"runtime"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"clobd/api/wire/live"
	"clobd/engine"
)

// nice is the nice value of the thread.
func nice(t *testing.T) int {
	t.Helper()
	n, err := syscall.Getpriority(syscall.PRIO_PROCESS, 0)
	if err != nil {
		t.Error(err)
	}
	return 20 - n
}

// possible reports whether the kernel lets this process use a batch.
func possible(t *testing.T) bool {
	t.Helper()
	var b live.Batch
	defer b.Close()
	return b.Open()
}

// publishNext publishes a frame of one Command on the Board, and returns the encoded frame.
func publishNext(h *Hub, seq engine.Sequence) []byte {
	f := engine.Frame{Engine: engine.Version, Epoch: 1, No: uint64(seq), First: seq,
		Commands: []engine.Command{{Kind: engine.Deposit, Cash: 1}}, Ends: []uint32{0}}
	f.Encode(engine.Hash{})
	h.o.Board.Publish(&f)
	return f.Bytes
}

// work is added to the Hub's effort ms milliseconds after the frame before. want is the nice value
// of the thread that must tell the next frame.
type work struct{ units, ms, want int }

// TestFollow: a thread of low priority tells the frames while the work is heavy, and an ordinary
// goroutine tells the others. Each frame is told. When Next fails, Run ends, whichever of the two
// called Next.
func TestFollow(t *testing.T) {
	runtime.LockOSThread()
	normal := nice(t)
	runtime.UnlockOSThread()
	if normal >= lowly {
		t.Skip("SKIPPED: this process has a low priority already")
	}
	for _, last := range []work{{0, 0, normal}, {lightBurst + 1, 0, lowly}} {
		h, s, _ := socket(t)
		takes := func() bool {
			h.mutex.Lock()
			defer h.mutex.Unlock()
			taken := h.out.add(s, live.AppendFrame(nil, []byte("x")))
			h.out.flush(time.Now())
			return taken
		}
		can := possible(t)
		over := errors.New("over")
		readers, frames := make(chan int), make(chan []byte)
		var now atomic.Int64
		h.o.Now = func() time.Time { return time.UnixMilli(now.Load()) }
		h.o.Next = func() ([]byte, error) {
			readers <- nice(t)
			if b := <-frames; b != nil {
				return b, nil
			}
			return nil, over
		}
		ended := make(chan error, 1)
		go func() { ended <- h.Run() }()
		if n := <-readers; n != normal {
			t.Errorf("at the beginning: nice %d", n)
		}
		if takes() != can {
			t.Error("Run does not open the batch")
		}
		seq := engine.Sequence(0)
		for _, c := range []work{
			{lightBurst, 0, normal}, {1, 0, lowly}, {0, 900, lowly}, {0, 200, normal},
			{lightBurst - 1, 0, normal}, {lightBurst, 0, lowly}, {0, 5000, normal}, last,
		} {
			now.Add(int64(c.ms))
			h.mutex.Lock()
			h.effort.add(c.units, h.o.Now())
			h.mutex.Unlock()
			seq++
			frames <- publishNext(h, seq)
			if n := <-readers; n != c.want {
				t.Errorf("frame %d, %d units after %d ms: nice %d, want %d", seq, c.units, c.ms, n, c.want)
			}
			if !h.Reach(seq, 0) {
				t.Errorf("frame %d is not told", seq)
			}
		}
		frames <- nil
		select {
		case err := <-ended:
			if !errors.Is(err, over) {
				t.Error(err)
			}
		case <-time.After(10 * time.Second):
			t.Fatal("Run does not end")
		}
		if takes() {
			t.Error("Run does not close the batch")
		}
	}
}
