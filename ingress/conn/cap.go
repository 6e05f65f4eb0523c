package conn

import (
	"net"
	"strconv"
	"sync"
	"time"
)

// Cap makes a listener that serves at most so many connections at once and hangs up on all others,
// so that strangers who fill it cost no more than that.
func Cap(ln net.Listener, most int) net.Listener {
	return &capped{ln, make(chan struct{}, most)}
}

type capped struct {
	net.Listener
	places chan struct{}
}

// Accept waits for a connection that there is a place for.
func (l *capped) Accept() (net.Conn, error) {
	for {
		c, err := l.Listener.Accept()
		if err != nil {
			return nil, err
		}
		select {
		case l.places <- struct{}{}:
			return &placed{Conn: c, places: l.places}, nil
		default:
		}
		body := refuseFull.Append(nil)
		_ = c.SetWriteDeadline(time.Now().Add(RefusalTimeout))
		_, _ = c.Write(append([]byte("HTTP/1.1 503 Service Unavailable\r\n"+
			"Connection: close\r\nContent-Type: application/json\r\nContent-Length: "+
			strconv.Itoa(len(body))+"\r\n\r\n"), body...)) // who hung up needs no answer
		_ = c.Close()
	}
}

// placed is a connection that holds a place until it is closed.
type placed struct {
	net.Conn
	once   sync.Once
	places chan struct{}
}

// Close closes the connection and gives its place back.
func (c *placed) Close() error {
	err := c.Conn.Close()
	c.once.Do(func() { <-c.places })
	return err
}
