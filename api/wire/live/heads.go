package live

import (
	"encoding/binary"

	"github.com/fasthttp/websocket"
)

// heads reads the heads of a client's frames, to find a close frame whose payload is one byte, half
// of a close code: the library does not tell it from a close frame without a payload.
type heads struct {
	head  [10]byte // of the present frame, as far as it has arrived
	n     uint8    // bytes in head
	stump bool     // a close frame had a payload of one byte: an incomplete close code
	lost  bool     // the last read of the connection failed
	skip  uint64   // bytes left of the present frame, after its head
}

// followed is the connection that the library uses. It passes what the library reads to heads, too.
type followed struct{ *heard }

// Read reads from the connection, and passes the bytes to heads.
func (p followed) Read(b []byte) (int, error) {
	n, err := p.heard.Read(b)
	p.heads.read(b[:n])
	p.heads.lost = err != nil
	return n, err
}

// read takes the next bytes of the client.
func (h *heads) read(b []byte) {
	for len(b) > 0 {
		if n := min(h.skip, uint64(len(b))); n > 0 {
			h.skip -= n
			b = b[n:]
			continue
		}
		h.head[h.n] = b[0]
		h.n++
		b = b[1:]
		if h.n < 2 {
			continue
		}
		size, length := uint8(2), uint64(h.head[1]&0x7f)
		switch length {
		case 126:
			size, length = 4, uint64(binary.BigEndian.Uint16(h.head[2:]))
		case 127:
			size, length = 10, binary.BigEndian.Uint64(h.head[2:])
		}
		if h.n == size {
			h.end(length)
		}
	}
}

// maskBytes is the length of the mask, which stands between the head and the payload of a frame.
const maskBytes = 4

// end handles the whole head of a frame whose payload has the given length.
func (h *heads) end(length uint64) {
	h.stump = h.stump || h.head[0]&0x0f == websocket.CloseMessage && length == 1
	if h.skip = length; h.head[1]&0x80 != 0 {
		h.skip += maskBytes
	}
	h.n = 0
}
