package conn

import (
	"bytes"
	"testing"
)

// TestBuffers: what came into a Buffer is there after it has doubled, a Buffer that is used again
// is empty, and nobody gets the room of one that is in use.
func TestBuffers(t *testing.T) {
	var all []*Buffer
	for i := range 20 {
		b := NewBuffer()
		if len(b.Bytes()) != 0 || len(b.Free()) != BufferBytes {
			t.Fatalf("a new Buffer has %d bytes and room for %d", len(b.Bytes()), len(b.Free()))
		}
		for len(b.Bytes()) < 10*BufferBytes { // beyond the sizes that are used again
			if len(b.Free()) == 0 {
				b = b.Double()
			}
			n := min(len(b.Free()), 1000)
			copy(b.Free(), bytes.Repeat([]byte{byte(i)}, n))
			b.Fill(n)
		}
		if all = append(all, b); i%3 == 0 {
			all[i/2].Release()
			all[i/2] = NewBuffer()
		}
	}
	for i, b := range all {
		if n := len(b.Bytes()); n > 0 && bytes.Count(b.Bytes(), []byte{byte(i)}) != n {
			t.Errorf("Buffer %d has bytes of another", i)
		}
	}
}
