package live

import (
	"bufio"
	"encoding/base64"
	"fmt"
	"net"
	"net/http"
	"strings"
	"sync"
	"time"

	"github.com/fasthttp/websocket"
	"github.com/valyala/fasthttp"

	"clobd/api/wire"
)

// The refusals of a request that cannot become a socket.
var (
	refusePlain = wire.Refuse(426, "upgrade_required", "this path speaks WebSocket",
		"ask with the headers Connection: Upgrade and Upgrade: websocket")
	refuseVersion = wire.Refuse(426, "upgrade_required", "unknown WebSocket version",
		"send Sec-WebSocket-Version: 13")
	refuseKey = wire.Refuse(400, "bad_request", "malformed Sec-WebSocket-Key",
		"send 16 bytes as base64")
)

// version is the only version of the protocol that the node speaks.
const version = "13"

// Check returns the key of a request for a socket, or a refusal. It sets the headers that go with
// the refusal, and the caller sends the refusal.
func Check(ctx *fasthttp.RequestCtx) (key string, refused *wire.Refusal) {
	h := &ctx.Request.Header
	switch {
	case !names(h, fasthttp.HeaderConnection, "upgrade"), !names(h, "Upgrade", "websocket"):
		ctx.Response.Header.Set("Upgrade", "websocket")
		return "", refusePlain
	case string(h.Peek("Sec-Websocket-Version")) != version:
		ctx.Response.Header.Set("Sec-Websocket-Version", version)
		return "", refuseVersion
	}
	key = string(h.Peek("Sec-Websocket-Key"))
	if raw, err := base64.StdEncoding.DecodeString(key); err != nil || len(raw) != 16 {
		return "", refuseKey
	}
	return key, nil
}

// names reports whether a header that is a list of tokens contains token, in any case.
func names(h *fasthttp.RequestHeader, header, token string) bool {
	for _, list := range h.PeekAll(header) {
		for name := range strings.SplitSeq(string(list), ",") {
			if strings.EqualFold(strings.TrimSpace(name), token) {
				return true
			}
		}
	}
	return false
}

// upgrader shakes hands. It allows all origins, because package ingress checks them. Its read
// buffer has room for a frame's head and a control frame's payload; larger payloads bypass it.
var upgrader = websocket.Upgrader{
	ReadBufferSize:  128,
	WriteBufferSize: 256,
	WriteBufferPool: &sync.Pool{},
	CheckOrigin:     func(*http.Request) bool { return true },
}

// Open answers the handshake of a request that Check has passed, with further headers, and returns
// the socket. text carries the bytes of both sides: text is the Line itself, or TLS over the Line.
// early holds the bytes that the client sent right after its request.
func Open(text net.Conn, over *Line, early []byte, asked Asked) (*Socket, error) {
	s := &Socket{text: heard{Conn: text}, line: over, plain: text == net.Conn(over)}
	if len(early) > 0 { // an empty slice would keep its array in memory
		s.text.early = early
	}
	request := &http.Request{Method: http.MethodGet, Header: http.Header{
		"Connection": {"Upgrade"}, "Upgrade": {"websocket"}, "Sec-Websocket-Version": {version},
		"Sec-Websocket-Key": {asked.Key},
	}}
	ws, err := upgrader.Upgrade(hijacked{&s.text}, request, asked.Headers)
	if err != nil {
		return nil, fmt.Errorf("shake hands: %w", err)
	}
	ws.SetReadLimit(MaxText)
	s.ws = ws
	ws.SetPongHandler(s.ponged)
	ws.SetPingHandler(s.pinged)
	ws.SetCloseHandler(s.closed)
	return s, nil
}

// Asked holds what Open needs for the answer to a handshake.
type Asked struct {
	Key     string      // as Check has returned it
	Headers http.Header // further headers of the answer
}

// heard is the connection from which the library reads, with the bytes that were read early.
type heard struct {
	net.Conn
	heads heads
	early []byte // bytes that were read before the library asked for them
	ahead []byte // buffer for reading ahead; nil: the socket does not read ahead
	left  uint64 // bytes left of the frame that the library reads; used if ahead is not nil
}

// Read returns the bytes of early first, and then those of the connection.
func (p *heard) Read(b []byte) (int, error) {
	if p.ahead != nil {
		return p.readAhead(b)
	}
	if len(p.early) > 0 {
		n := copy(b, p.early)
		if p.early = p.early[n:]; len(p.early) == 0 {
			p.early = nil
		}
		return n, nil
	}
	return p.Conn.Read(b)
}

// SetWriteDeadline does nothing: a deadline that has passed once would end TLS for good.
func (p *heard) SetWriteDeadline(time.Time) error { return nil }

// hijacked stands in for an HTTP response: the library only asks it for the connection.
type hijacked struct{ line *heard }

// Hijack returns the connection.
func (h hijacked) Hijack() (net.Conn, *bufio.ReadWriter, error) {
	return followed{h.line}, bufio.NewReadWriter(bufio.NewReaderSize(h.line, 16),
		bufio.NewWriterSize(h.line, 512)), nil
}

// Header, Write and WriteHeader serve only refusals by the library, which Check has ruled out.
func (h hijacked) Header() http.Header         { return http.Header{} }
func (h hijacked) Write(b []byte) (int, error) { return len(b), nil }
func (h hijacked) WriteHeader(int)             {}
