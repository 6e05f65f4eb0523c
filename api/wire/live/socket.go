package live

import (
	"encoding/binary"
	"errors"
	"fmt"
	"time"
	"unicode/utf8"

	"github.com/fasthttp/websocket"
)

// MaxText is the length of the longest text that a client may send, in bytes.
const MaxText = 1 << 20

// The codes with which a Socket is closed.
const (
	Leaving   = websocket.CloseGoingAway               // the node stops
	NotText   = websocket.CloseUnsupportedData         // the client sent bytes that are no text
	NotUTF8   = websocket.CloseInvalidFramePayloadData // the text is not UTF-8
	Forbidden = websocket.ClosePolicyViolation         // the client may not do that
	TryLater  = websocket.CloseTryAgainLater           // a slow client, or the node is busy
	Broken    = websocket.CloseInternalServerErr       // a bug of the node
)

// Ended is the reason for which the node has closed a socket, as an error of Read, or of a write
// beyond the bound of the Line. There are few values, so that metrics can count sockets by reason.
// If the client or the network ends a socket, Read returns other errors.
type Ended string

// The reasons for which the node closes a socket.
const (
	Late     Ended = "no subscription or login in time"
	Silent   Ended = "no sign of life"
	Unruly   Ended = "broken protocol"
	Binary   Ended = "not text"
	Garbled  Ended = "not UTF-8"
	Oversize Ended = "text too long"
	Unread   Ended = "slow consumer"
)

// Error returns the reason, in a few words.
func (e Ended) Error() string { return "read socket: " + string(e) }

// Socket is an open WebSocket. One goroutine at a time may call Read or Each, and one at a time
// Send, Flush and Rest. Any goroutine may call Ping, Close, Tell, Leave and End.
type Socket struct {
	line  *Line // the connection, below TLS
	plain bool  // without TLS: frames go over the line as they are
	text  heard // the connection that the library uses: line, or TLS over it
	ws    *websocket.Conn
	end   time.Time // of the wait for a text message, despite pings and pongs; zero: never
	// first is the buffer for the first bytes that arrive after an idle time.
	first [16]byte
	// patience is how long the present call of Read or Each waits for a sign of life.
	patience time.Duration
	lost     bool // a pong could not be sent
}

// Until sets a time at which all later calls of Read and Each give up if no text message arrives,
// even if the client sends pings or pongs. The zero time is no bound.
func (s *Socket) Until(end time.Time) { s.end = end }

// Read waits until the client has sent a text message, and returns it. Read gives up when patience
// has passed without a sign of life, such as a ping or a pong. Before Read returns an error, it
// closes the socket: with the close code of the rule that the client broke, or with Forbidden if
// the client sent nothing in time.
func (s *Socket) Read(patience time.Duration) ([]byte, error) {
	s.patience = patience
	s.alive()
	kind, text, err := s.ws.ReadMessage()
	switch {
	case err != nil:
		return nil, s.ended(err)
	case kind != websocket.TextMessage:
		s.Close(NotText, string(Binary))
		return nil, Binary
	case !utf8.Valid(text):
		s.Close(NotUTF8, string(Garbled))
		return nil, Garbled
	}
	return text, nil
}

// ended closes the socket after a failed read of the library, and returns why.
func (s *Socket) ended(err error) error {
	var wait interface{ Timeout() bool }
	if errors.As(err, &wait) && wait.Timeout() {
		why := Silent
		if !s.end.IsZero() && !time.Now().Before(s.end) {
			why = Late
		}
		s.Close(Forbidden, string(why))
		return why
	}
	if errors.Is(err, websocket.ErrReadLimit) { // the library does not always send the close code
		s.Close(websocket.CloseMessageTooBig, "")
		return Oversize
	}
	s.End() // the library has sent the close code
	var bye *websocket.CloseError
	switch {
	case errors.Is(err, Unread):
		return Unread
	case s.text.heads.stump, !s.lost && !s.text.heads.lost && !errors.As(err, &bye):
		return Unruly
	}
	return fmt.Errorf("read socket: %w", err)
}

// alive notes a sign of life: from now on Read waits for patience again, but not beyond end.
func (s *Socket) alive() {
	end := time.Now().Add(s.patience)
	if !s.end.IsZero() && s.end.Before(end) {
		end = s.end
	}
	_ = s.ws.SetReadDeadline(end)
}

// ponged handles the answer to a Ping.
func (s *Socket) ponged(string) error {
	s.alive()
	return nil
}

// pinged answers a ping.
func (s *Socket) pinged(text string) error {
	s.alive()
	err := s.ws.WriteControl(websocket.PongMessage, []byte(text), time.Now().Add(time.Second))
	if errors.Is(err, websocket.ErrCloseSent) {
		return nil // the client has not read the close frame yet
	}
	s.lost = err != nil
	return err
}

// closed answers a close frame with the same code, or without a code if the frame had none. If the
// code was incomplete, the answer is a protocol error.
func (s *Socket) closed(code int, _ string) error {
	if code == websocket.CloseNoStatusReceived && s.text.heads.stump {
		code = websocket.CloseProtocolError
	}
	return s.ws.WriteControl(websocket.CloseMessage, websocket.FormatCloseMessage(code, ""),
		time.Now().Add(time.Second))
}

// Ping asks the client for a sign of life.
func (s *Socket) Ping() error {
	return s.ws.WriteControl(websocket.PingMessage, nil, time.Now().Add(time.Second))
}

// Send sends whole frames: within half a frame, a control frame of the library, which any goroutine
// may send next, would become part of the payload. Send returns false if the kernel has not taken
// all bytes. The caller then calls Flush until nothing is left, and sends nothing else before.
func (s *Socket) Send(frames []byte) (all bool, err error) {
	if !s.plain {
		_, err = s.text.Write(frames)
		return s.line.Rest() == 0, err
	}
	rest, err := s.line.send(frames)
	return rest == 0, err
}

// Rest returns how many bytes the Line has accepted and the kernel has not taken.
func (s *Socket) Rest() int { return s.line.Rest() }

// Flush sends what is left, and reports whether the kernel has taken all of it.
func (s *Socket) Flush() (all bool, err error) { return s.line.flush() }

// Close tells the client why, as far as there is room, and closes the connection. The reason has at
// most 123 bytes.
func (s *Socket) Close(code int, reason string) {
	s.Tell(code, reason)
	s.End()
}

// Tell sends a close frame, with the reason, after everything that was sent before. Nothing may be
// sent after it: the caller calls Flush until nothing is left, and then End.
func (s *Socket) Tell(code int, reason string) {
	_ = s.ws.WriteControl(websocket.CloseMessage, websocket.FormatCloseMessage(code, reason),
		time.Now().Add(time.Second))
}

// Leave ends the sending side of the connection, once nothing is left unsent. The client can read
// what the kernel has not delivered yet; whoever reads the Socket goes on until the client closes
// the connection, and ends it then. After d Leave does. End alone would lose those bytes if the
// client sends anything meanwhile, such as a pong.
func (s *Socket) Leave(d time.Duration) {
	if secret, ok := s.text.Conn.(interface{ CloseWrite() error }); ok && !s.plain {
		_ = secret.CloseWrite() // TLS tells the client that no more comes
	}
	if !s.line.finish(d, s.End) {
		s.End()
	}
}

// End closes the connection at once. Bytes that the Line still keeps are lost.
func (s *Socket) End() { _ = s.text.Close() }

// From these lengths of the payload on, the head of a frame has two or eight more bytes.
const (
	mediumPayload = 126
	longPayload   = 1 << 16
)

// lastFrame is the bit of a frame's first byte that says that the frame ends its message.
const lastFrame = 0x80

// AppendFrame appends a text frame whose payload is the parts, one after the other.
func AppendFrame(b []byte, parts ...[]byte) []byte {
	n := 0
	for _, p := range parts {
		n += len(p)
	}
	b = appendHead(b, lastFrame|websocket.TextMessage, n)
	for _, p := range parts {
		b = append(b, p...)
	}
	return b
}

// AppendFragments appends a text message as frames whose payloads have at most most bytes. A ping,
// a pong or a close frame may stand between any two of them, but not within one.
func AppendFragments(b, text []byte, most int) []byte {
	first := byte(websocket.TextMessage)
	for len(text) > most {
		b = append(appendHead(b, first, most), text[:most]...)
		first, text = 0, text[most:] // 0: goes on with the message
	}
	return append(appendHead(b, lastFrame|first, len(text)), text...)
}

// appendHead appends the head of a frame with the given first byte and n bytes of payload.
func appendHead(b []byte, first byte, n int) []byte {
	b = append(b, first)
	switch {
	case n < mediumPayload:
		return append(b, byte(n))
	case n < longPayload:
		return binary.BigEndian.AppendUint16(append(b, 126), uint16(n))
	}
	return binary.BigEndian.AppendUint64(append(b, 127), uint64(n))
}

// Cut returns the length of the frames at the start of b that have at most most bytes together, or
// of the first frame if that is longer. b holds whole frames of the node.
func Cut(b []byte, most int) (n int) {
	for n < len(b) {
		size, payload := 2, int(b[n+1])
		switch payload {
		case 126:
			size, payload = 4, int(binary.BigEndian.Uint16(b[n+2:]))
		case 127:
			size, payload = 10, int(binary.BigEndian.Uint64(b[n+2:]))
		}
		if n > 0 && n+size+payload > most {
			break
		}
		n += size + payload
	}
	return n
}
