package conn

import (
	"syscall"

	"clobd/api/wire"
)

// sockets are the connections that have become sockets. The Turnstile's mutex guards them.
//
// A socket is idle most of the time and stays for days: it has no deadlines here, gives way to
// nobody, and takes no place of a connection that asks and leaves.
type sockets struct {
	open      int
	strangers int              // of these, of addresses that are not known
	callers   map[[20]byte]int // sockets of each address and network
}

var (
	refuseSockets = wire.Refuse(429, "rate_limited", "too many sockets from this address", "")
	refuseNoRoom  = wire.Refuse(503, "busy", "too many sockets", "")
)

// Socket makes the connection a socket, or says why there can be no further one. Its place as a
// connection is free then. From here on Read has the deadlines only that SetReadDeadline sets.
func (c *Conn) Socket() *wire.Refusal {
	t := c.turnstile
	t.mutex.Lock()
	defer t.mutex.Unlock()
	if _, open := t.conns[c]; !open {
		return refuseNoRoom // it is being closed
	}
	s, of := &t.sockets, t.options.SocketsPerAddress
	most := t.options.Sockets - t.options.Sockets/strangersLeave
	switch {
	case c.Direct && (s.callers[c.from] >= of || s.callers[c.network] >= networkAddresses*of):
		return refuseSockets
	case s.open >= t.options.Sockets, !c.known && s.strangers >= most:
		return refuseNoRoom
	}
	t.count(c, -1)
	delete(t.conns, c)
	c.socket, c.stranger = true, !c.known
	s.count(c, 1)
	return nil
}

// count adds n to the numbers of sockets that c is one of.
func (s *sockets) count(c *Conn, n int) {
	s.open += n
	if c.stranger {
		s.strangers += n
	}
	if !c.Direct {
		return
	}
	for _, key := range [...][20]byte{c.from, c.network} {
		if s.callers[key] += n; s.callers[key] == 0 {
			delete(s.callers, key)
		}
	}
}

// Sockets returns how many sockets there are.
func (t *Turnstile) Sockets() int {
	t.mutex.Lock()
	defer t.mutex.Unlock()
	return t.sockets.open
}

// SyscallConn returns the raw connection, for writes that do not wait.
func (c *Conn) SyscallConn() (syscall.RawConn, error) {
	if raw, ok := c.Conn.(syscall.Conn); ok {
		return raw.SyscallConn()
	}
	return nil, syscall.EINVAL
}
