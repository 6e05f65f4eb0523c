package conn

import (
	"context"
	"crypto/tls"
	"net"
	"slices"
	"sync"
)

// Cap makes a listener that serves at most so many connections at once. A new one takes the place
// of the oldest that nobody has asked to Keep, so that strangers who fill the places cannot lock
// operators out. If all are kept, the new one is hung up on.
func Cap(ln net.Listener, most int) net.Listener {
	return &capped{Listener: ln, most: most}
}

type capped struct {
	net.Listener
	most int

	mutex sync.Mutex
	open  []*placed // oldest first
}

// Accept waits for a connection that there is a place for.
func (l *capped) Accept() (net.Conn, error) {
	for {
		c, err := l.Listener.Accept()
		if err != nil {
			return nil, err
		}
		if p := l.place(c); p != nil {
			return p, nil
		}
		_ = c.Close()
	}
}

// place makes room for c, or returns nil.
func (l *capped) place(c net.Conn) *placed {
	p := &placed{Conn: c, listener: l}
	l.mutex.Lock()
	var gone *placed
	if len(l.open) >= l.most {
		i := slices.IndexFunc(l.open, func(o *placed) bool { return !o.kept })
		if i < 0 {
			l.mutex.Unlock()
			return nil
		}
		gone = l.open[i]
		l.open = slices.Delete(l.open, i, i+1)
	}
	l.open = append(l.open, p)
	l.mutex.Unlock()
	if gone != nil {
		_ = gone.Conn.Close()
	}
	return p
}

// placed is a connection that holds a place until it is closed.
type placed struct {
	net.Conn
	listener *capped
	kept     bool // guarded by the listener
}

// Close closes the connection and gives its place back.
func (c *placed) Close() error {
	err := c.Conn.Close()
	l := c.listener
	l.mutex.Lock()
	defer l.mutex.Unlock()
	if i := slices.Index(l.open, c); i >= 0 {
		l.open = slices.Delete(l.open, i, i+1)
	}
	return err
}

type placedKey struct{}

// WithPlace is a ConnContext of an HTTP server on a listener of Cap, in the clear or behind TLS.
func WithPlace(ctx context.Context, c net.Conn) context.Context {
	if secure, ok := c.(*tls.Conn); ok {
		c = secure.NetConn()
	}
	if p, ok := c.(*placed); ok {
		return context.WithValue(ctx, placedKey{}, p)
	}
	return ctx
}

// Keep lets the connection of a request keep its place until it is closed.
func Keep(ctx context.Context) {
	if p, ok := ctx.Value(placedKey{}).(*placed); ok {
		p.listener.mutex.Lock()
		p.kept = true
		p.listener.mutex.Unlock()
	}
}
