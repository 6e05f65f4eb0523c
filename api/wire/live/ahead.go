package live

import (
	"encoding/binary"

	"github.com/fasthttp/websocket"
)

// ReadAhead makes the socket read up to n bytes at once, so that More can tell whether another text
// message has arrived. Without ReadAhead each message takes at least two reads, and the socket
// keeps no buffer between messages.
func (s *Socket) ReadAhead(n int) { s.text.ahead = make([]byte, n) }

// Limit bounds the length of a text message, in bytes. The default is MaxText.
func (s *Socket) Limit(n int64) { s.ws.SetReadLimit(n) }

// More reports whether Read would return at once because a whole text message was read ahead.
func (s *Socket) More() bool {
	h := &s.text
	n := frameBytes(h.early)
	return h.ahead != nil && h.left == 0 && n > 0 && n <= uint64(len(h.early)) &&
		h.early[0] == 0x80|websocket.TextMessage
}

// frameBytes returns the length of the frame that begins with b, or 0 if its head is not complete.
func frameBytes(b []byte) uint64 {
	if len(b) < 2 {
		return 0
	}
	head, payload := 2, uint64(b[1]&0x7f)
	switch payload {
	case 126:
		if head = 4; len(b) >= head {
			payload = uint64(binary.BigEndian.Uint16(b[2:]))
		}
	case 127:
		if head = 10; len(b) >= head {
			payload = min(binary.BigEndian.Uint64(b[2:]), 1<<62)
		}
	}
	if len(b) < head {
		return 0
	}
	if b[1]&0x80 != 0 {
		head += 4 // the mask
	}
	return uint64(head) + payload
}

// readAhead is Read for a socket that reads ahead. It returns bytes of one frame only: the library
// would put those of a further frame into its own buffer, where More cannot see them.
func (p *heard) readAhead(b []byte) (int, error) {
	for p.left == 0 {
		if p.left = frameBytes(p.early); p.left > 0 {
			break
		}
		if err := p.fill(); err != nil {
			return 0, err
		}
	}
	if len(p.early) == 0 {
		if err := p.fill(); err != nil {
			return 0, err
		}
	}
	n := copy(b[:min(uint64(len(b)), p.left)], p.early)
	p.early, p.left = p.early[n:], p.left-uint64(n)
	return n, nil
}

// fill reads more bytes into the buffer, behind those that were read and not used yet.
func (p *heard) fill() error {
	held := copy(p.ahead, p.early) // at most an incomplete head, ping or pong
	n, err := p.Conn.Read(p.ahead[held:])
	p.early = p.ahead[:held+n]
	return err
}
