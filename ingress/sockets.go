package ingress

import (
	"io"
	"net"
	"net/http"

	"github.com/valyala/fasthttp"

	"clobd/api/wire"
	"clobd/api/wire/live"
)

var refuseOrigin = wire.Refuse(403, "origin", "this page may not open a socket", "")

// sockets turns requests into WebSockets.
//
//	HTTP server ─► handshake is right? origin? room? ─► orderConn gives its socket up ─► Market
//
// The goroutine of the HTTP server, its buffers and the request are free from then on. What is left
// of the door is the socket's place in the Turnstile.
type sockets struct{ *Server }

// market is GET /ws and /ws/market.
func (s *sockets) market(ctx *fasthttp.RequestCtx) { s.open(ctx, s.options.Market) }

// open answers the handshake and has serve talk to the client, or refuses. A browser sends cookies
// and no preflight before a handshake, so a page that may not read answers may not open a socket.
func (s *sockets) open(ctx *fasthttp.RequestCtx, serve func(*live.Socket)) {
	c, ok := ctx.Conn().(*orderConn)
	if !ok {
		panic("BUG: a connection that did not pass the turnstile")
	}
	key, refused := live.Check(ctx)
	if refused == nil && !s.options.Origins.Allows(&ctx.Request.Header) {
		refused = refuseOrigin
	}
	if refused == nil && s.draining.Load() {
		refused = refuseLeaving
	}
	if refused == nil {
		refused = c.Socket()
	}
	if refused != nil {
		refused.Send(ctx)
		return
	}
	asked := live.Asked{Key: key, Headers: http.Header{"X-Node-Version": {s.options.Version}}}
	ctx.SetStatusCode(fasthttp.StatusSwitchingProtocols) // for the metrics: live.Open answers
	ctx.HijackSetNoResponse(true)
	ctx.Hijack(func(buffered net.Conn) {
		early := c.detach(buffered)
		line, spoken, hangUp := c.line, c.spoken(), c.Close
		if c.secure == nil {
			hangUp = c.Conn.Close // c.Close would keep all of c, which only requests need, in memory
		}
		go func() { // the HTTP server waits for this function, and keeps the request until then
			defer hangUp()
			defer func() {
				if cause := recover(); cause != nil {
					s.Panicked("a socket's text", cause)
				}
			}()
			var socket *live.Socket
			live.Apart(func() { socket, _ = live.Open(spoken, line, early, asked) })
			if socket != nil {
				serve(socket)
			}
		}()
	})
}

var refuseLeaving = wire.Refuse(503, "busy", "the node stops, connect again", "")

// detach takes the connection, not its request's room, and returns what the server has read ahead.
func (c *orderConn) detach(buffered net.Conn) (early []byte) {
	c.seat.leave()
	c.answer.Release()
	c.detached, c.room = true, nil // until the end of what is buffered, Read returns io.EOF
	early, _ = io.ReadAll(buffered)
	c.line = live.NewLine(c.Conn)
	return early
}

// spoken is the connection that carries what both sides say.
func (c *orderConn) spoken() net.Conn {
	if c.secure == nil {
		return c.line
	}
	return c.secure.Conn
}
