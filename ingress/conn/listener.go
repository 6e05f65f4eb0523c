package conn

import (
	"errors"
	"net"
	"slices"
	"sync"
	"syscall"
	"time"
)

// Listener hands out the connections that a Turnstile has room for. It outlives a shortage: the
// HTTP server takes any error of Accept for the end, but a stranger who opens connections until the
// process has no descriptors left must not be able to end it.
type Listener struct {
	net.Listener
	turnstile *Turnstile
	closed    chan struct{}
	once      sync.Once
	told      time.Time // when the log last heard of a shortage
}

// Pauses after a failed Accept: they double from the first to the last.
const (
	shortPause = 5 * time.Millisecond
	longPause  = time.Second
	tellPause  = time.Minute // between two lines of the log: strangers can cause them
)

// Listen makes a Listener on top of ln.
func (t *Turnstile) Listen(ln net.Listener) *Listener {
	return &Listener{Listener: ln, turnstile: t, closed: make(chan struct{})}
}

// Close ends Accept, also during a pause.
func (l *Listener) Close() error {
	l.once.Do(func() { close(l.closed) })
	return l.Listener.Close()
}

// Next waits for the next connection that there is room for. All others get a refusal in the form
// of every other answer; the HTTP server's own words are no JSON.
func (l *Listener) Next() (*Conn, error) {
	for {
		c, err := l.accept()
		if err != nil {
			return nil, err
		}
		if admitted := l.turnstile.admit(c); admitted != nil {
			return admitted, nil
		}
	}
}

// accept waits out a shortage. Meanwhile the kernel keeps new connections queued.
func (l *Listener) accept() (net.Conn, error) {
	for pause := shortPause; ; pause = min(2*pause, longPause) {
		c, err := l.Listener.Accept()
		if err == nil || !passing(err) {
			return c, err
		}
		if time.Since(l.told) > tellPause {
			l.told = time.Now()
			l.turnstile.options.Log.Warn("no connections are accepted for a moment", "error", err)
		}
		select {
		case <-l.closed:
			return nil, net.ErrClosed
		case <-time.After(pause):
		}
	}
}

// passing reports whether an error of Accept is about this moment or this connection only.
func passing(err error) bool {
	var e syscall.Errno
	return errors.As(err, &e) && slices.Contains([]syscall.Errno{syscall.EMFILE, syscall.ENFILE,
		syscall.ENOBUFS, syscall.ENOMEM, syscall.ECONNABORTED, syscall.EINTR}, e)
}

// spareFiles are the descriptors that connections leave to the journal, its files and the admin
// listener.
const spareFiles = 512

// minConnections are served however few files the process may open.
const minConnections = 64

// Affordable returns how many connections may be served at once: as many as asked for, if the
// process may open that many files.
func Affordable(asked int) int {
	var limit syscall.Rlimit
	if err := syscall.Getrlimit(syscall.RLIMIT_NOFILE, &limit); err != nil {
		return asked
	}
	return min(asked, max(int(min(limit.Cur, 1<<30))-spareFiles, minConnections))
}
