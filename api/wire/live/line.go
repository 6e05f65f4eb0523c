package live

import (
	"errors"
	"net"
	"sync"
	"syscall"
	"time"
)

// maxRest bounds the bytes that a Line keeps unsent. The largest book fits. A client that sends
// pings and reads no pongs is closed at this bound.
const maxRest = 2 << 20

// Line is a connection whose writes do not wait. Bytes that the kernel does not take at once are
// kept, and written before all later ones. One goroutine may read a Line, any may call the rest.
type Line struct {
	net.Conn

	mutex sync.Mutex
	raw   syscall.RawConn // nil: not a socket, so its writes wait
	rest  []byte          // bytes that send has accepted and the kernel has not taken
	over  bool            // nothing more is written
	end   *time.Timer     // ends the connection; nil: nobody has called finish
}

// NewLine makes a Line of a connection, whose own Write must not be called any more.
func NewLine(nc net.Conn) *Line {
	l := &Line{Conn: nc}
	if socket, ok := nc.(syscall.Conn); ok {
		l.raw, _ = socket.SyscallConn()
	}
	return l
}

// SetWriteDeadline does nothing. The library and TLS set deadlines, but a Line's writes never wait.
func (l *Line) SetWriteDeadline(time.Time) error { return nil }

// Rest returns how many bytes the Line has accepted and the kernel has not taken.
func (l *Line) Rest() int {
	l.mutex.Lock()
	defer l.mutex.Unlock()
	return len(l.rest)
}

// Write takes all of b, or returns an error and closes the connection, because the client could not
// find the next frame after half a frame.
func (l *Line) Write(b []byte) (int, error) {
	if _, err := l.send(b); err != nil {
		return 0, err
	}
	return len(b), nil
}

// send is Write, but returns how many bytes the kernel has not taken.
func (l *Line) send(b []byte) (rest int, err error) {
	l.mutex.Lock()
	defer l.mutex.Unlock()
	if l.over {
		return 0, nil
	}
	n := 0
	if len(l.rest) == 0 {
		if n, err = l.writeOnce(b); err != nil {
			return 0, errors.Join(err, l.Conn.Close())
		}
		if n == len(b) {
			return 0, nil
		}
	}
	if err := l.keep(b[n:]); err != nil {
		return 0, errors.Join(err, l.Conn.Close())
	}
	return len(l.rest), nil
}

// keep appends b to the rest. It returns Unread if the rest would exceed maxRest.
func (l *Line) keep(b []byte) error {
	if len(l.rest)+len(b) > maxRest {
		return Unread
	}
	l.rest = append(l.rest, b...)
	return nil
}

// flush writes the rest as far as there is room, and reports whether nothing is left.
func (l *Line) flush() (done bool, err error) {
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

// finish tells the kernel that nothing more is written, and reports whether that was possible. What
// is written later is dropped. Unless Close is called before, end is called after d.
func (l *Line) finish(d time.Duration, end func()) bool {
	l.mutex.Lock()
	defer l.mutex.Unlock()
	if l.raw == nil || l.over {
		return l.over
	}
	var failed error
	err := l.raw.Control(func(fd uintptr) { failed = syscall.Shutdown(int(fd), syscall.SHUT_WR) })
	if err != nil || failed != nil {
		return false
	}
	l.over, l.end = true, time.AfterFunc(d, end)
	return true
}

// Close closes the connection.
func (l *Line) Close() error {
	l.mutex.Lock()
	if l.end != nil {
		l.end.Stop()
	}
	l.mutex.Unlock()
	return l.Conn.Close()
}

// writeOnce writes as much of b as the kernel takes at once. Go's sockets are non-blocking. The
// write uses Control, because RawConn.Write also prepares to wait until the socket is writable.
func (l *Line) writeOnce(b []byte) (n int, err error) {
	if l.raw == nil {
		return l.Conn.Write(b)
	}
	a, ok := attempts.Get().(*attempt)
	if !ok {
		panic("BUG: the pool of attempts holds something else")
	}
	a.bytes = b
	err = l.raw.Control(a.try)
	n = a.n
	if failed := a.failed; err == nil && failed != nil && failed != syscall.EAGAIN &&
		failed != syscall.EINTR {
		err = failed
	}
	a.bytes, a.n, a.failed = nil, 0, nil
	attempts.Put(a)
	return n, err
}

// attempt is a write that does not wait. Attempts are used again: a new closure for each write
// would be garbage for each message of each subscriber.
type attempt struct {
	bytes  []byte
	n      int
	failed error
	try    func(fd uintptr) // the method value a.once, made only once
}

// attempts holds the attempts not in use. Most Lines are idle, so a Line has none of its own.
var attempts = sync.Pool{New: func() any {
	a := &attempt{}
	a.try = a.once
	return a
}}

// once tries to write once. The caller does not wait, even if the socket is full.
func (a *attempt) once(fd uintptr) {
	if a.n, a.failed = syscall.Write(int(fd), a.bytes); a.n < 0 {
		a.n = 0
	}
}
