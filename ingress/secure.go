package ingress

import (
	"crypto/tls"
	"errors"
	"net"
	"strconv"

	"github.com/valyala/fasthttp"

	"clobd/ingress/conn"
	"clobd/ingress/head"
)

// secure is the TLS of a connection: nil for a connection in the clear. It stands between what the
// HTTP server reads and the socket with its deadlines, so that a handshake has no more time than a
// request, and the Turnstile has counted the connection before.
//
//	HTTP server ─► orderConn ─► tls.Conn ─► cipherSide ─► conn.Conn ─► socket
//	               text, seats                 ciphertext, deadlines
type secure struct {
	*tls.Conn
	greeted bool // the handshake is done
}

// cipherSide is what TLS takes for the socket of an orderConn.
type cipherSide struct {
	*conn.Conn
	owner *orderConn
}

// Write writes ciphertext, and gives the seat back before it waits.
func (c cipherSide) Write(b []byte) (int, error) {
	if c.owner.line != nil {
		return c.owner.line.Write(b)
	}
	if c.owner.leaving.Load() { // a farewell must not wait for its reader
		c.WriteNow(b)
		return len(b), nil
	}
	return c.owner.send(b)
}

// speaksTLS reports whether TLS is spoken over c: over all connections but those of neighbours.
func (s *Server) speaksTLS(c *conn.Conn) bool {
	_, local := c.Conn.(*net.UnixConn)
	return s.options.TLS != nil && !local
}

// mayShake counts a handshake, each of which costs as much as many requests. A caller who begins
// too many is hung up on: before the handshake there is no way to tell him.
func (s *Server) mayShake(c *conn.Conn) bool {
	peer, tcp := c.RemoteAddr().(*net.TCPAddr)
	if s.windows == nil || !tcp || !c.Direct || !s.speaksTLS(c) ||
		s.windows.Handshake(conn.PeerAddress(peer)) {
		return true
	}
	s.metrics.requests.WithLabelValues("connect", "handshakes").Inc()
	return false
}

// receive reads text. The first call shakes hands.
func (c *orderConn) receive(b []byte) (int, error) {
	if c.secure == nil {
		return c.Conn.Read(b)
	}
	if !c.secure.greeted {
		if err := c.secure.Handshake(); err != nil {
			c.explain(err)
			return 0, err
		}
		c.secure.greeted = true
		c.Conn.Greeted()
	}
	n, err := c.secure.Read(b)
	if n > 0 { // perhaps out of what came together with the end of the handshake
		c.Conn.Heard()
	}
	return n, err
}

// explain tells a client that speaks HTTP in the clear that the node speaks TLS here.
func (c *orderConn) explain(err error) {
	var header tls.RecordHeaderError
	if !errors.As(err, &header) || header.Conn == nil {
		return
	}
	body := head.Malformed.Because("this listener speaks TLS: write https://").Append(nil)
	c.WriteNow(append([]byte("HTTP/1.1 400 Bad Request\r\nConnection: close\r\n"+
		"Content-Type: application/json\r\nContent-Length: "+strconv.Itoa(len(body))+"\r\n\r\n"),
		body...))
}

// hangUp closes the connection, and says so first if it speaks TLS: whoever reads to the end of a
// connection must know that nobody cut it short.
func (c *orderConn) hangUp() error {
	if c.secure == nil {
		return c.Conn.Close()
	}
	c.leaving.Store(true)
	return errors.Join(c.secure.Close(), c.Conn.Close())
}

// The headers that keep a browser from guessing, storing keys, and leaving TLS again.
var (
	noSniff      = []byte(fasthttp.HeaderXContentTypeOptions)
	noSniffValue = []byte("nosniff")
)

const (
	strictAge   = "max-age=31536000"
	strictLine  = fasthttp.HeaderStrictTransportSecurity + ": " + strictAge + "\r\n"
	noSniffLine = fasthttp.HeaderXContentTypeOptions + ": nosniff\r\n"
)

// harden writes them.
func harden(ctx *fasthttp.RequestCtx) {
	h := &ctx.Response.Header
	h.SetCanonical(noSniff, noSniffValue)
	if c, ok := ctx.Conn().(*orderConn); ok && c.secure != nil {
		h.Set(fasthttp.HeaderStrictTransportSecurity, strictAge)
	}
	if path := ctx.Path(); len(path) > 5 && (string(path[:6]) == "/auth/" ||
		len(path) > 10 && string(path[:11]) == "/clob/auth/") {
		h.Set(fasthttp.HeaderCacheControl, "no-store")
	}
}
