package lean

import (
	"os"
	"syscall"
	"testing"
	"time"
)

// TestPoller waits both ways: with nanoseconds in the call, and with a timer for old kernels.
func TestPoller(t *testing.T) {
	for _, timer := range []bool{false, true} {
		p, err := newPoller()
		if err != nil {
			t.Fatal(err)
		}
		defer p.close()
		if timer && p.timer < 0 {
			if err := p.makeTimer(); err != nil {
				t.Fatal(err)
			}
		}
		r, w, err := os.Pipe()
		if err != nil {
			t.Fatal(err)
		}
		defer r.Close()
		defer w.Close()
		if err := p.watch(int(r.Fd()), 7, syscall.EPOLL_CTL_ADD, syscall.EPOLLIN); err != nil {
			t.Fatal(err)
		}
		const d = 300 * time.Microsecond
		for start := time.Now(); time.Since(start) < 10*d; { // a signal may end a wait early
			if n, err := p.wait(d); n != 0 || err != nil {
				t.Fatalf("timer %v: %d events, %v", timer, n, err)
			}
		}
		if n, err := p.wait(0); n != 0 || err != nil {
			t.Fatalf("timer %v: %d events at once, %v", timer, n, err)
		}
		if _, err := w.WriteString("x"); err != nil {
			t.Fatal(err)
		}
		n, err := p.wait(time.Minute)
		if err != nil || n != 1 || p.events[0].Fd != 7 {
			t.Errorf("timer %v: %d events, %v, %+v", timer, n, err, p.events[0])
		}
	}
}
