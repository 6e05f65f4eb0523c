package ingress

import (
	"errors"
	"log/slog"
	"net"
	"sync"
	"syscall"
	"time"
)

// patient is a listener that outlives a shortage. The HTTP server takes any error of Accept for the
// end; but a stranger who opens connections until the process has no descriptors left must not be
// able to end it: there will be some again.
type patient struct {
	net.Listener
	log    *slog.Logger
	closed chan struct{}
	once   sync.Once
	told   time.Time // when the log last heard of a shortage
}

func newPatient(ln net.Listener, log *slog.Logger) *patient {
	return &patient{Listener: ln, log: log, closed: make(chan struct{})}
}

// Pauses after a failed Accept: they double from the first to the last.
const (
	shortPause = 5 * time.Millisecond
	longPause  = time.Second
	tellPause  = time.Minute // between two lines of the log: strangers can cause them
)

// Close ends Accept, also while it pauses.
func (l *patient) Close() error {
	l.once.Do(func() { close(l.closed) })
	return l.Listener.Close()
}

// Accept waits out what passes by itself. While it does the kernel keeps new connections queued.
func (l *patient) Accept() (net.Conn, error) {
	for pause := shortPause; ; pause = min(2*pause, longPause) {
		c, err := l.Listener.Accept()
		if err == nil || !passing(err) {
			return c, err
		}
		if time.Since(l.told) > tellPause {
			l.told = time.Now()
			l.log.Warn("no connections are accepted for a moment", "error", err)
		}
		select {
		case <-l.closed:
			return nil, net.ErrClosed
		case <-time.After(pause):
		}
	}
}

// passing says whether an error of Accept is about this moment or this connection only.
func passing(err error) bool {
	for _, e := range []syscall.Errno{syscall.EMFILE, syscall.ENFILE, syscall.ENOBUFS,
		syscall.ENOMEM, syscall.ECONNABORTED, syscall.EINTR} {
		if errors.Is(err, e) {
			return true
		}
	}
	return false
}

// spareFiles are the descriptors that connections must leave to the journal, its files and the
// admin listener.
const spareFiles = 512

// minConnections are served however few files the process may open.
const minConnections = 64

// connections is how many may be served at once: as many as were asked for, if the process may have
// that many files open.
func connections(asked int) int {
	var limit syscall.Rlimit
	if err := syscall.Getrlimit(syscall.RLIMIT_NOFILE, &limit); err != nil {
		return asked
	}
	return min(asked, max(int(min(limit.Cur, 1<<30))-spareFiles, minConnections))
}
