package live

import (
	"errors"
	"net"
	"sync"
	"syscall"
	"time"
)

// maxRest bounds what a line keeps of what it was given, in bytes. The largest book fits; a client
// that sends pings and reads none of the pongs does not get further.
const maxRest = 2 << 20

var errRest = errors.New("the client does not read")

// line is a connection whose writes do not wait. Bytes that the kernel does not take at once are
// kept, and written before all later ones. One goroutine may read a line, any may call the rest.
type line struct {
	net.Conn
	early []byte // was read before the line was made

	mutex sync.Mutex
	raw   syscall.RawConn // nil: not a socket, so its writes wait
	rest  []byte          // accepted and not written
}

func newLine(nc net.Conn, early []byte) *line {
	l := &line{Conn: nc, early: early}
	if socket, ok := nc.(syscall.Conn); ok {
		l.raw, _ = socket.SyscallConn()
	}
	return l
}

// Read returns the bytes of early first, and then those of the connection.
func (l *line) Read(b []byte) (int, error) {
	if len(l.early) > 0 {
		n := copy(b, l.early)
		if l.early = l.early[n:]; len(l.early) == 0 {
			l.early = nil
		}
		return n, nil
	}
	return l.Conn.Read(b)
}

// SetWriteDeadline does nothing. The library sets deadlines for writes, and here none waits.
func (l *line) SetWriteDeadline(time.Time) error { return nil }

// Write takes all of b, or returns an error and closes the connection: half a frame would make
// nonsense of the next one.
func (l *line) Write(b []byte) (int, error) {
	l.mutex.Lock()
	defer l.mutex.Unlock()
	n := 0
	if len(l.rest) == 0 {
		var err error
		if n, err = l.writeOnce(b); err != nil {
			return n, errors.Join(err, l.Conn.Close())
		}
	}
	if len(l.rest)+len(b)-n > maxRest {
		return n, errors.Join(errRest, l.Conn.Close())
	}
	l.rest = append(l.rest, b[n:]...)
	return len(b), nil
}

// flush writes the rest as far as there is room, and reports whether nothing is left.
func (l *line) flush() (done bool, err error) {
	l.mutex.Lock()
	defer l.mutex.Unlock()
	if len(l.rest) == 0 {
		return true, nil
	}
	n, err := l.writeOnce(l.rest)
	if err != nil {
		return false, errors.Join(err, l.Conn.Close())
	}
	if n == len(l.rest) {
		l.rest = nil
		return true, nil
	}
	l.rest = l.rest[:copy(l.rest, l.rest[n:])]
	return false, nil
}

// writeOnce writes as much of b as the kernel takes at once. Sockets of a Go process do not block.
func (l *line) writeOnce(b []byte) (n int, err error) {
	if l.raw == nil {
		return l.Conn.Write(b)
	}
	var failed error
	err = l.raw.Write(func(fd uintptr) bool {
		if n, failed = syscall.Write(int(fd), b); n < 0 {
			n = 0
		}
		return true
	})
	if err == nil && failed != nil && failed != syscall.EAGAIN && failed != syscall.EINTR {
		err = failed
	}
	return n, err
}
