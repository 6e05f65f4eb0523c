package engine

import (
	"crypto/sha256"
	"encoding/binary"
	"errors"
	"fmt"
	"hash/crc32"
)

// The encoded form of a Frame, all integers little endian:
//
//	at  size           at  size             at  size
//	 0   4  magic      18   8  frameNo      78   8  Digest
//	 4   2  format     26   8  first        86   4  length of the body
//	 6   2  engine     34   4  count        90   4  CRC32C of header before it, and body
//	 8   2  partition  38   8  Time         94      body
//	10   8  epoch      46  32  prevHash
//
// The body is count Commands, each followed by the number of its Events and the Events.
const (
	frameMagic  = 0x464f4c43 // "CLOF"
	frameFormat = 2

	FrameOverhead = 94 // the length of the encoded header in bytes
	crcAt         = FrameOverhead - 4

	EventMax = 144 // bounds the encoded bytes of one Event

	// commandMax bounds the encoded bytes of a Command with its number of Events, without its Proof.
	commandMax = 360
)

// The errors of DecodeFrame.
var (
	ErrMagic    = errors.New("not a frame")
	ErrFormat   = errors.New("frame of an unknown format")
	ErrLength   = errors.New("frame is cut short or too long")
	ErrChecksum = errors.New("frame fails its checksum")
	ErrBody     = errors.New("frame has a malformed body")
)

var castagnoli = crc32.MakeTable(crc32.Castagnoli)

// EncodedMax bounds the encoded bytes of the Command; each of its Events adds at most EventMax.
func (c *Command) EncodedMax() int { return commandMax + len(c.Proof) }

// Encode sets Bytes, a fresh slice chained to prev, and Hash. f has 1 to FrameCommands Commands.
func (f *Frame) Encode(prev Hash) {
	if len(f.Commands) == 0 || len(f.Commands) > FrameCommands {
		panic(fmt.Sprintf("BUG: frame of %d commands", len(f.Commands)))
	}
	f.Prev = prev
	b := f.appendHeader(f.scratch[:0])
	for i := range f.Commands {
		c := &f.Commands[i]
		b = appendCommand(b, c)
		events := f.EventsOf(i)
		b = binary.AppendUvarint(b, uint64(len(events)))
		for j := range events {
			b = appendEvent(b, &events[j], c)
		}
	}
	binary.LittleEndian.PutUint32(b[crcAt-4:], uint32(len(b)-FrameOverhead))
	binary.LittleEndian.PutUint32(b[crcAt:], frameSum(b))
	f.scratch = b
	f.Bytes = make([]byte, len(b))
	copy(f.Bytes, b)
	f.Hash = sha256.Sum256(f.Bytes)
}

// appendHeader appends the header with length and checksum still zero.
func (f *Frame) appendHeader(b []byte) []byte {
	le := binary.LittleEndian
	b = le.AppendUint32(b, frameMagic)
	b = le.AppendUint16(b, frameFormat)
	b = le.AppendUint16(b, f.Engine)
	b = le.AppendUint16(b, f.Partition)
	b = le.AppendUint64(b, f.Epoch)
	b = le.AppendUint64(b, f.No)
	b = le.AppendUint64(b, uint64(f.First))
	b = le.AppendUint32(b, uint32(len(f.Commands)))
	b = le.AppendUint64(b, uint64(f.Time))
	b = append(b, f.Prev[:]...)
	b = le.AppendUint64(b, uint64(f.Digest))
	return append(b, 0, 0, 0, 0, 0, 0, 0, 0)
}

func frameSum(b []byte) uint32 {
	sum := crc32.Update(0, castagnoli, b[:crcAt])
	return crc32.Update(sum, castagnoli, b[FrameOverhead:])
}

// DecodeFrame reads the encoded frame b into f and reuses f's slices. Proofs alias b, which must
// not change. The error wraps ErrMagic, ErrFormat (also of a frame of a later engine version),
// ErrLength, ErrChecksum or ErrBody; then do not use f. The caller checks the chain.
func DecodeFrame(b []byte, f *Frame) error {
	if err := DecodeUnhashed(b, f); err != nil {
		return err
	}
	f.Hash = sha256.Sum256(b)
	return nil
}

// DecodeUnhashed is DecodeFrame without f.Hash, the SHA-256 of b, which takes as long as all the
// rest: the caller may compute the Hash in another goroutine.
func DecodeUnhashed(b []byte, f *Frame) error {
	le := binary.LittleEndian
	switch {
	case len(b) < FrameOverhead:
		return fmt.Errorf("%w: %d bytes", ErrLength, len(b))
	case le.Uint32(b) != frameMagic:
		return ErrMagic
	case le.Uint16(b[4:]) != frameFormat:
		return fmt.Errorf("%w: %d", ErrFormat, le.Uint16(b[4:]))
	case uint64(le.Uint32(b[crcAt-4:])) != uint64(len(b)-FrameOverhead):
		return fmt.Errorf("%w: %d bytes", ErrLength, len(b))
	case le.Uint32(b[crcAt:]) != frameSum(b):
		return ErrChecksum
	case le.Uint16(b[6:]) > Version: // its body may have what this program cannot read
		return fmt.Errorf("%w: engine version %d, this program knows those up to %d", ErrFormat,
			le.Uint16(b[6:]), Version)
	}
	f.Engine = le.Uint16(b[6:])
	f.Partition = le.Uint16(b[8:])
	f.Epoch = le.Uint64(b[10:])
	f.No = le.Uint64(b[18:])
	f.First = Sequence(le.Uint64(b[26:]))
	count := le.Uint32(b[34:])
	f.Time = Time(le.Uint64(b[38:]))
	f.Prev = Hash(b[46:78])
	f.Digest = Digest(le.Uint64(b[78:]))
	if count == 0 || count > FrameCommands {
		return fmt.Errorf("%w: %d commands", ErrBody, count)
	}
	if err := f.decodeBody(b[FrameOverhead:], int(count)); err != nil {
		return err
	}
	f.Bytes, f.Hash = b, Hash{}
	return nil
}

func (f *Frame) decodeBody(b []byte, count int) error {
	f.Commands, f.Events, f.Ends = f.Commands[:0], f.Events[:0], f.Ends[:0]
	r := reader{rest: b}
	for i := range count {
		f.Commands = append(f.Commands, Command{})
		c := &f.Commands[i]
		r.command(c)
		n := r.uvarint()
		if r.bad || n > uint64(len(r.rest)) { // an Event has at least four bytes
			return fmt.Errorf("%w: command %d", ErrBody, i)
		}
		for range n {
			f.Events = append(f.Events, Event{})
			r.event(&f.Events[len(f.Events)-1], c)
			if r.bad {
				return fmt.Errorf("%w: an event of command %d", ErrBody, i)
			}
		}
		f.Ends = append(f.Ends, uint32(len(f.Events)))
	}
	if len(r.rest) != 0 {
		return fmt.Errorf("%w: %d bytes left over", ErrBody, len(r.rest))
	}
	return nil
}
