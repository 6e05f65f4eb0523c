package lean

import (
	"context"
	"errors"
	"net"
	"net/http"
	"os"
	"strconv"
	"syscall"
	"testing"
	"time"
)

// TestDesksAwaitStart: desks answer pings while the load waits for its start, which may be because
// other processes are not ready.
func TestDesksAwaitStart(t *testing.T) {
	pongs := make(chan struct{}, 100)
	addr := servePinging(t, placedAs, func() { pongs <- struct{}{} })
	const lanes = 3
	m, err := desks(addr, lanes, 4, 60).run(t.Context(), false, func() (at time.Time, err error) {
		late := time.After(time.Minute)
		for range 2 * lanes {
			select {
			case <-pongs:
			case <-late:
				return at, errors.New("no pong")
			}
		}
		return at, nil
	})
	if err != nil || m.Good != 60 || m.Failed != 0 {
		t.Errorf("%+v, %v", m, err)
	}
}

// TestDesksGoneBeforeStart: a server that closes a desk before the start spoils the load.
func TestDesksGoneBeforeStart(t *testing.T) {
	hold := make(chan struct{})
	defer close(hold)
	addr := serve(t, "127.0.0.1:0", func(w net.Conn, _ *http.Request, _ []byte) bool {
		b := append([]byte("HTTP/1.1 101 Switching Protocols\r\n\r\n"),
			frameOf(frameText, `{"id":0,"status":200,"result":{}}`)...)
		_, _ = w.Write(b)
		return false
	})
	m, err := desks(addr, 1, 1, 1).run(t.Context(), false, func() (at time.Time, err error) {
		<-hold
		return at, nil
	})
	if err == nil {
		t.Errorf("%+v", m)
	}
}

// TestEmptyDesks: lanes without requests need nobody to log in, and do not disturb the others.
func TestEmptyDesks(t *testing.T) {
	for _, rate := range []float64{0, 2000} {
		l := desks(serveDesks(t, placedAs), 2, 4, 100)
		l.Lanes, l.Rate = 5, rate
		if m, err := l.Run(t.Context()); err != nil || m.Good != 100 || m.Failed != 0 || m.Unsent != 0 {
			t.Errorf("rate %v: %+v, %v", rate, m, err)
		}
	}
}

// TestDeskEntersDespiteSignals: signals that interrupt the wait for the server's answer do no harm.
func TestDeskEntersDespiteSignals(t *testing.T) {
	addr := serve(t, "127.0.0.1:0", func(w net.Conn, _ *http.Request, _ []byte) bool {
		for range 50 {
			threads, err := os.ReadDir("/proc/self/task")
			if err != nil {
				t.Error(err)
			}
			for _, of := range threads {
				tid, _ := strconv.Atoi(of.Name())
				// Go's runtime takes this signal for a request to let other goroutines run.
				_, _, _ = syscall.RawSyscall(syscall.SYS_TGKILL, uintptr(os.Getpid()), uintptr(tid),
					uintptr(syscall.SIGURG))
			}
			time.Sleep(2 * time.Millisecond)
		}
		_, _ = w.Write([]byte(status(404, "{}")))
		return true
	})
	_, err := desks(addr, 1, 1, 1).Run(t.Context())
	if err == nil || errors.Is(err, syscall.EINTR) || errors.Is(err, syscall.EAGAIN) {
		t.Errorf("%v, want what the server answers", err)
	}
}

// TestDeskStopped: the end of ctx ends the wait for a server that does not let a desk in.
func TestDeskStopped(t *testing.T) {
	ctx, cancel := context.WithCancel(t.Context())
	hold := make(chan struct{})
	defer close(hold)
	addr := serve(t, "127.0.0.1:0", func(net.Conn, *http.Request, []byte) bool {
		cancel()
		<-hold
		return false
	})
	if _, err := desks(addr, 2, 1, 2).Run(ctx); !errors.Is(err, context.Canceled) {
		t.Error(err)
	}
}

// TestClosedLateness: what the answer to a request waits because the load stands still is lateness
// of the next request, over HTTP and on a desk.
func TestClosedLateness(t *testing.T) {
	const still = 40 * time.Millisecond
	for _, flight := range []int{0, 1} {
		begun := make(chan struct{}) // the load stands still
		var l *Load
		if flight > 0 {
			l = desks(serveDesks(t, func(m *parleyed) []byte {
				if m.ID == 1 {
					<-begun
				}
				return placedAs(m)
			}), 2, flight, 4)
		} else {
			l = orders(serve(t, "127.0.0.1:0", func(w net.Conn, _ *http.Request, body []byte) bool {
				n := body[len(body)-1]
				if n == 1 {
					<-begun
				}
				_, err := w.Write([]byte(status(200, placed(n))))
				return err == nil
			}), 2, 4)
			for i := range l.Requests {
				l.Requests[i].Body = []byte{byte(i)}
			}
		}
		l.Seen = func(s Seen) {
			if s.Request == 0 {
				close(begun)
				time.Sleep(still)
			}
		}
		m := run(t, l)
		late := 0
		for _, bar := range m.Late.Distribution() {
			if bar.From >= int64(still)*9/10 {
				late += int(bar.Count)
			}
		}
		if m.Good != 4 || late < 2 {
			t.Errorf("%d in flight: %d of %d good requests were late", flight, late, m.Good)
		}
	}
}
