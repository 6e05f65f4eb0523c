package conn

import "sync"

// Buffer is room for the bytes that a client sends, used again after Release. Whoever waits for
// more bytes has no more than twice the room of those that came.
type Buffer struct {
	b     []byte
	class int // the room is BufferBytes << class
}

// BufferBytes is the room of a new Buffer.
const BufferBytes = 8 << 10

// buffers are those that were released, by class. Larger ones are left to the collector: few bodies
// are that long, and each processor keeps what was released.
var buffers [3]sync.Pool

// NewBuffer returns an empty Buffer.
func NewBuffer() *Buffer { return buffer(0) }

func buffer(class int) *Buffer {
	if class < len(buffers) {
		if b, ok := buffers[class].Get().(*Buffer); ok {
			return b
		}
	}
	return &Buffer{b: make([]byte, 0, BufferBytes<<class), class: class}
}

// Bytes are those that came.
func (b *Buffer) Bytes() []byte { return b.b }

// Free is the room for more bytes.
func (b *Buffer) Free() []byte { return b.b[len(b.b):cap(b.b)] }

// Fill says that n bytes have come into the first part of Free.
func (b *Buffer) Fill(n int) { b.b = b.b[:len(b.b)+n] }

// Double returns a Buffer with the same bytes and twice the room, and releases b.
func (b *Buffer) Double() *Buffer {
	larger := buffer(b.class + 1)
	larger.b = append(larger.b, b.b...)
	b.Release()
	return larger
}

// Release lets others use the Buffer. Nobody may look at its bytes any more.
func (b *Buffer) Release() {
	b.b = b.b[:0]
	if b.class < len(buffers) {
		buffers[b.class].Put(b)
	}
}
