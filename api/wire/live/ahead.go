package live

import (
	"encoding/binary"

	"github.com/fasthttp/websocket"
)

// ReadAhead makes the socket read up to n bytes at once, so that More can tell whether another text
// is there. Without it each text takes two reads or more, and no memory between them.
func (s *Socket) ReadAhead(n int) { s.text.ahead = make([]byte, n) }

// Limit bounds the length of a text, in bytes: MaxText without it.
func (s *Socket) Limit(n int64) { s.ws.SetReadLimit(n) }

// More reports whether Read would return at once, with a text that was read ahead as a whole.
func (s *Socket) More() bool {
	h := &s.text
	n := frameBytes(h.early)
	return h.ahead != nil && h.left == 0 && n > 0 && n <= uint64(len(h.early)) &&
		h.early[0] == 0x80|websocket.TextMessage
}

// frameBytes is how long the frame is that begins with b, 0 if its head is not all there.
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
// has a buffer of its own, of which nobody could tell whether it holds a further frame.
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

// fill reads what there is behind the bytes that were read before.
func (p *heard) fill() error {
	held := copy(p.ahead, p.early) // a part of a head at most
	n, err := p.Conn.Read(p.ahead[held:])
	p.early = p.ahead[:held+n]
	return err
}
