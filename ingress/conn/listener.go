package conn

import (
	"errors"
	"net"
	"slices"
	"sync"
	"syscall"
	"time"
)

// Listener hands out the connections that a Turnstile has room for. It outlives a shortage of
// descriptors, which strangers can cause: the HTTP server takes any error of Accept for the end.
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

// Next waits for the next connection that there is room for. All others get a refusal.
func (l *Listener) Next() (*Conn, error) {
	for {
		c, err := l.accept()
		if err != nil {
			return nil, err
		}
		if admitted := l.turnstile.admit(c); admitted != nil {
			l.turnstile.noteNeighbour(c)
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

const (
	// SpareFiles are descriptors that connections leave to the journal and the admin listener.
	SpareFiles = 512
	// minConnections are served however few files the process may open.
	minConnections = 64
)

// Affordable returns how many of the connections asked for the process has files for.
func Affordable(asked int) int {
	var limit syscall.Rlimit
	if err := syscall.Getrlimit(syscall.RLIMIT_NOFILE, &limit); err != nil {
		return asked
	}
	return min(asked, max(int(min(limit.Cur, 1<<30))-SpareFiles, minConnections))
}
