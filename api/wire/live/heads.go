package live

import (
	"encoding/binary"

	"github.com/fasthttp/websocket"
)

// heads follows the heads of the frames of a client. The library takes a close frame with a payload
// of one byte, half a code, for one without a payload.
type heads struct {
	head  [10]byte // of the present frame, as far as it has come
	n     uint8    // bytes of head
	stump bool     // a close frame had a payload of one byte
	lost  bool     // the connection cannot be read any more
	skip  uint64   // bytes of the present frame that follow its head
}

// followed is the connection as the library sees it, and its heads do.
type followed struct{ *heard }

// Read reads, and lets the heads look at it.
func (p followed) Read(b []byte) (int, error) {
	n, err := p.heard.Read(b)
	p.heads.read(b[:n])
	p.heads.lost = err != nil
	return n, err
}

// read looks at the next bytes of the client.
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

// maskBytes is how many bytes of a mask follow the head of a frame whose payload is masked.
const maskBytes = 4

// end ends a head.
func (h *heads) end(length uint64) {
	h.stump = h.stump || h.head[0]&0x0f == websocket.CloseMessage && length == 1
	if h.skip = length; h.head[1]&0x80 != 0 {
		h.skip += maskBytes
	}
	h.n = 0
}
