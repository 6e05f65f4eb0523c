package engine

import (
	"encoding/binary"
	"errors"
	"fmt"
	"hash/crc32"
	"io"
)

// A saved state is a sequence of chunks, all integers little endian:
//
//	at  size           at  size
//	 0   4  magic       8   4  length of the body
//	 4   4  number      12  4  CRC32C of header before it, and body
//	                    16     body
//
// The bodies together are the packed values; a chunk ends between two values. The last chunk has
// another magic and holds the number of chunks before it, the bytes of their bodies, and a sum over
// the state. So a reader detects a changed bit and a lost, added or moved chunk.
const (
	chunkMagic = 0x534f4c43 // "CLOS"
	finalMagic = 0x454f4c43 // "CLOE"

	ChunkOverhead = 16                                // the length of a chunk's header in bytes
	ChunkMax      = chunkFull + 1<<10 + ChunkOverhead // bounds a whole chunk in bytes

	chunkFull = 64 << 10 // a longer body ends its chunk
	finalSize = 4 + 8 + 8
)

// ErrState says that bytes are not a saved state, or not all of it.
var ErrState = errors.New("damaged state")

// Packer cuts a state into chunks. After the first error of the sink it drops everything, and Close
// returns that error.
type Packer struct {
	sink   func(chunk []byte) error
	b      []byte // the chunk being filled, header included
	number uint32
	total  uint64
	err    error
}

// NewPacker packs into sink, which gets one chunk after the other and must not keep any of them.
func NewPacker(sink func(chunk []byte) error) *Packer {
	return &Packer{sink: sink, b: make([]byte, ChunkOverhead, ChunkMax)}
}

// Uint packs a number of any size.
func (p *Packer) Uint(v uint64) {
	p.b = binary.AppendUvarint(p.b, v)
	p.spill()
}

// Uints packs one number after the other.
func (p *Packer) Uints(all ...uint64) {
	for _, v := range all {
		p.Uint(v)
	}
}

// Int packs a number that may be negative.
func (p *Packer) Int(v int64) {
	p.b = binary.AppendVarint(p.b, v)
	p.spill()
}

// Bytes packs up to 1 KiB whose length the reader knows.
func (p *Packer) Bytes(b []byte) {
	p.b = append(p.b, b...)
	p.spill()
}

func (p *Packer) spill() {
	if len(p.b) >= chunkFull+ChunkOverhead {
		p.flush(chunkMagic)
	}
}

func (p *Packer) flush(magic uint32) {
	le, body := binary.LittleEndian, len(p.b)-ChunkOverhead
	le.PutUint32(p.b, magic)
	le.PutUint32(p.b[4:], p.number)
	le.PutUint32(p.b[8:], uint32(body))
	le.PutUint32(p.b[12:], chunkSum(p.b))
	if p.err == nil {
		p.err = p.sink(p.b)
	}
	p.number, p.total, p.b = p.number+1, p.total+uint64(body), p.b[:ChunkOverhead]
}

// Close packs the last chunk, with a sum that Unpacker.Close returns. The error is the sink's.
func (p *Packer) Close(sum uint64) error {
	if len(p.b) > ChunkOverhead {
		p.flush(chunkMagic)
	}
	le := binary.LittleEndian
	p.b = le.AppendUint32(p.b, p.number)
	p.b = le.AppendUint64(p.b, p.total)
	p.b = le.AppendUint64(p.b, sum)
	p.flush(finalMagic)
	return p.err
}

func chunkSum(b []byte) uint32 {
	sum := crc32.Update(0, castagnoli, b[:12])
	return crc32.Update(sum, castagnoli, b[ChunkOverhead:])
}

// ChunkLen returns the length of the chunk behind header, and if it is the last, or ErrState.
func ChunkLen(header []byte) (n int, final bool, err error) {
	if len(header) < ChunkOverhead {
		return 0, false, fmt.Errorf("%w: a chunk of %d bytes", ErrState, len(header))
	}
	le := binary.LittleEndian
	magic, body := le.Uint32(header), int64(le.Uint32(header[8:]))
	final = magic == finalMagic
	switch {
	case magic != chunkMagic && !final:
		return 0, false, fmt.Errorf("%w: no chunk", ErrState)
	case final && body != finalSize, body > ChunkMax-ChunkOverhead:
		return 0, false, fmt.Errorf("%w: a chunk of %d bytes", ErrState, body)
	}
	return int(body) + ChunkOverhead, final, nil
}

// Unpacker reads what a Packer packed. After the first error, in Err, every read returns zero.
type Unpacker struct {
	Err error // the first error, or nil. It wraps ErrState if the chunks are damaged.

	next   func() ([]byte, error)
	rest   []byte
	number uint32
	total  uint64
	sum    uint64
	final  bool
}

// NewUnpacker reads the chunks that next returns, each valid until the following call.
func NewUnpacker(next func() ([]byte, error)) *Unpacker { return &Unpacker{next: next} }

// fail keeps the first error. Readers call it for a value that makes no sense.
func (u *Unpacker) fail(format string, args ...any) {
	if u.Err == nil {
		u.Err = fmt.Errorf("%w: "+format, append([]any{ErrState}, args...)...)
	}
	u.rest = nil
}

// fill gets the next chunk if the last one is read, and reports whether there are bytes to read.
func (u *Unpacker) fill() bool {
	if len(u.rest) > 0 {
		return true
	}
	if u.Err != nil || u.final {
		return false
	}
	b, err := u.next()
	if err != nil {
		if errors.Is(err, io.EOF) || errors.Is(err, io.ErrUnexpectedEOF) {
			err = fmt.Errorf("%w: cut short", ErrState)
		}
		u.Err = err
		return false
	}
	return u.open(b)
}

// Skip is Close after everything that was not read yet, which is checked all the same.
func (u *Unpacker) Skip() (sum uint64, err error) {
	for u.fill() {
		u.rest = nil
	}
	return u.Close()
}

// open checks a chunk, begins to read it, and reports whether it has a body to read.
func (u *Unpacker) open(b []byte) bool {
	n, final, err := ChunkLen(b)
	if err != nil {
		u.Err = err
		return false
	}
	le := binary.LittleEndian
	switch {
	case n != len(b):
		u.fail("chunk %d has %d bytes instead of %d", u.number, len(b), n)
	case le.Uint32(b[12:]) != chunkSum(b):
		u.fail("chunk %d fails its checksum", u.number)
	case le.Uint32(b[4:]) != u.number:
		u.fail("chunk %d stands where chunk %d belongs", le.Uint32(b[4:]), u.number)
	case final:
		body := b[ChunkOverhead:]
		count, total := le.Uint32(body), le.Uint64(body[4:])
		u.final, u.sum = true, le.Uint64(body[12:])
		if count != u.number || total != u.total {
			u.fail("%d chunks of %d bytes instead of %d of %d", u.number, u.total, count, total)
		}
	default:
		u.number++
		u.rest = b[ChunkOverhead:]
		u.total += uint64(len(u.rest))
	}
	return len(u.rest) > 0
}

// Uint reads what Packer.Uint packed.
func (u *Unpacker) Uint() uint64 {
	if !u.fill() {
		u.fail("it ends too early")
		return 0
	}
	v, n := binary.Uvarint(u.rest)
	if n <= 0 {
		u.fail("malformed number in chunk %d", u.number)
		return 0
	}
	u.rest = u.rest[n:]
	return v
}

// Int reads what Packer.Int packed.
func (u *Unpacker) Int() int64 {
	v := u.Uint()
	return int64(v>>1) ^ -int64(v&1)
}

// Most reads a number that may not be above limit.
func (u *Unpacker) Most(limit uint64) uint64 {
	v := u.Uint()
	if v > limit {
		u.fail("%d is above %d", v, limit)
		return 0
	}
	return v
}

// Bytes fills dst with what Packer.Bytes packed; with zeros after an error.
func (u *Unpacker) Bytes(dst []byte) {
	if !u.fill() || len(u.rest) < len(dst) {
		u.fail("it ends too early")
		clear(dst)
		return
	}
	u.rest = u.rest[copy(dst, u.rest):]
}

// Close reads the last chunk and returns its sum. Values that nobody has read are an error.
func (u *Unpacker) Close() (sum uint64, err error) {
	if u.Err == nil && len(u.rest) > 0 {
		u.fail("%d bytes more than expected", len(u.rest))
	}
	if u.Err == nil && !u.final && u.fill() {
		u.fail("more than expected")
	}
	return u.sum, u.Err
}
