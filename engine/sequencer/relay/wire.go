package relay

import (
	"bufio"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"math"
	"net"
	"slices"
	"time"

	"clobd/engine"
	"clobd/engine/sequencer"
)

// A message of Commands is its length, the number of its bundles, their sizes, and frames with the
// Commands in order, each behind its length. A message of answers is its length and answers. All
// fixed integers are little endian.
const (
	// longest bounds a message: the largest bundle has as many Commands as a ring has slots.
	longest = 16 << 20
	// longestFrame bounds one frame in it, which has Commands and no Events.
	longestFrame = engine.FrameOverhead + engine.FrameCommands*(512+engine.ProofMax)
	// most bounds the Commands of a message.
	most = 1 << 14
	// buffered is the size of the buffers of a connection.
	buffered = 64 << 10
)

var errMalformed = errors.New("malformed message between nodes")

// heard is the kind of what is no Command: a note that an API key, Owner and Key, was heard from,
// or a warning of a Command that made the engine panic, whose fingerprint is ID. No kind of Command
// is 0.
const heard engine.Kind = 0

// IsNote reports whether what came from another node is no Command.
func IsNote(c *engine.Command) bool { return c.Kind == heard }

// IsWarning reports whether it is a warning.
func IsWarning(c *engine.Command) bool { return c.Kind == heard && c.ID != engine.OrderID{} }

// Warn tells the node at the other end of a connection of a Command that made the engine panic, and
// waits until it has stored the fingerprint.
func Warn(conn net.Conn, fingerprint [32]byte) error {
	var w commandWriter
	b := w.encode([]bundle{{[]engine.Command{{Kind: heard, ID: fingerprint}}, nil}})
	if _, err := conn.Write(b); err != nil {
		return err
	}
	b, err := readMessage(bufio.NewReaderSize(conn, buffered), nil)
	if err != nil {
		return err
	}
	var a answer
	if _, err := a.take(b); err != nil {
		return err
	}
	return a.err
}

// bundle is Commands that enter together, on their way.
type bundle struct {
	commands []engine.Command
	calls    []*sequencer.Call
}

// commandWriter encodes messages of Commands.
type commandWriter struct {
	frame engine.Frame
	buf   []byte
}

// encode makes the message of some bundles. It is valid until the next call.
func (w *commandWriter) encode(all []bundle) []byte {
	le := binary.LittleEndian
	b := append(w.buf[:0], 0, 0, 0, 0)
	b = le.AppendUint32(b, uint32(len(all)))
	for i := range all {
		b = le.AppendUint32(b, uint32(len(all[i].commands)))
	}
	f := &w.frame
	flush := func() {
		if len(f.Commands) > 0 {
			f.Encode(engine.Hash{})
			b = append(le.AppendUint32(b, uint32(len(f.Bytes))), f.Bytes...)
		}
		clear(f.Commands)
		f.Commands, f.Ends = f.Commands[:0], f.Ends[:0]
	}
	for i := range all {
		for j := range all[i].commands {
			f.Commands, f.Ends = append(f.Commands, all[i].commands[j]), append(f.Ends, 0)
			if len(f.Commands) == engine.FrameCommands {
				flush()
			}
		}
	}
	flush()
	le.PutUint32(b, uint32(len(b)-4))
	w.buf = b
	return b
}

// commandReader decodes messages of Commands.
type commandReader struct {
	in       *bufio.Reader
	buf      []byte
	frame    engine.Frame
	sizes    []int
	commands []engine.Command
}

// next reads a message. Its Commands are valid until the next call; sizes are those of its bundles.
func (r *commandReader) next() (sizes []int, commands []engine.Command, err error) {
	if r.buf, err = readMessage(r.in, r.buf); err != nil {
		return nil, nil, err
	}
	b, total := r.buf, 0
	r.sizes, r.commands = r.sizes[:0], r.commands[:0]
	n, b := number(b)
	if n > len(b)/4 {
		return nil, nil, errMalformed
	}
	for range n {
		var size int
		size, b = number(b)
		r.sizes, total = append(r.sizes, size), total+size
	}
	if total > most || slices.Contains(r.sizes, 0) {
		return nil, nil, errMalformed
	}
	for len(b) > 0 {
		var size int
		if size, b = number(b); size > len(b) || size > longestFrame {
			return nil, nil, errMalformed
		}
		if err := engine.DecodeUnhashed(b[:size], &r.frame); err != nil {
			return nil, nil, fmt.Errorf("%w: %w", errMalformed, err)
		}
		if len(r.frame.Events) > 0 || len(r.commands)+len(r.frame.Commands) > total {
			return nil, nil, errMalformed
		}
		r.commands, b = append(r.commands, r.frame.Commands...), b[size:]
	}
	if total != len(r.commands) || !r.sound() {
		return nil, nil, errMalformed
	}
	return r.sizes, r.commands, nil
}

// sound reports whether the engine could have been given each of the Commands by a door of this
// program, as far as their form goes. A note that a key was heard is alone in its bundle.
func (r *commandReader) sound() bool {
	i := 0
	for _, n := range r.sizes {
		for range n {
			c := &r.commands[i]
			lists := c.Kind == engine.List || c.Kind == engine.Adjust
			if i++; c.Kind > engine.Raise || c.Kind == heard && n > 1 || lists != (c.Listing != nil) ||
				c.Side > engine.Sell || c.Outcome > 1 || c.Type > engine.FAK ||
				len(c.Proof) > engine.ProofMax {
				return false
			}
		}
	}
	return true
}

// number reads a fixed integer; a number without its four bytes is 0.
func number(b []byte) (int, []byte) {
	if len(b) < 4 {
		return 0, nil
	}
	return int(binary.LittleEndian.Uint32(b)), b[4:]
}

// readMessage reads a message without its length into buf.
func readMessage(in *bufio.Reader, buf []byte) ([]byte, error) {
	var head [4]byte
	if _, err := io.ReadFull(in, head[:]); err != nil {
		return buf, err
	}
	n := int(binary.LittleEndian.Uint32(head[:]))
	if n > longest {
		return buf, fmt.Errorf("%w: %d bytes", errMalformed, n)
	}
	buf = slices.Grow(buf[:0], n)[:n]
	_, err := io.ReadFull(in, buf)
	return buf, err
}

// ErrKind is the error of a Command that the leader does not take from this node.
var ErrKind = fmt.Errorf("the leader takes no such command from a gateway: %w", sequencer.ErrClosed)

// codes are the errors of Commands by their numbers on the wire. A number after them says that a
// window is full; the window and the wait follow.
var codes = []error{nil, sequencer.ErrBusy, sequencer.ErrNoLeader, sequencer.ErrUnknown, ErrKind}

const limited = 5

// longestWait bounds the wait that a leader tells, in milliseconds.
const longestWait = 24 * 60 * 60 * 1000

// codeOf is the number of an error. What is not known for sure is unknown.
func codeOf(err error) byte {
	var full *sequencer.LimitedError
	switch {
	case err == nil:
		return 0
	case errors.As(err, &full):
		return limited
	case errors.Is(err, sequencer.ErrBusy):
		return 1
	case errors.Is(err, ErrKind):
		return 4
	case errors.Is(err, sequencer.ErrClosed):
		return 2
	}
	return 3
}

// answer is what came of a Command.
type answer struct {
	receipt  engine.Receipt
	canceled []engine.OrderID
	err      error
}

// append appends the encoded answer to b.
func (a *answer) append(b []byte) []byte {
	b = append(b, codeOf(a.err))
	if full := new(sequencer.LimitedError); errors.As(a.err, &full) {
		ms := (full.Wait + time.Millisecond - 1) / time.Millisecond
		return binary.AppendUvarint(append(b, full.Window), uint64(min(max(ms, 1), longestWait)))
	}
	if a.err != nil {
		return b
	}
	r := &a.receipt
	b = append(append(b, r.Order[:]...), byte(r.Status), byte(r.Reason))
	for _, v := range []uint64{uint64(r.Sequence), uint64(r.Reject), uint64(r.First),
		uint64(r.Market), uint64(r.Wallet), uint64(r.Trades), uint64(len(a.canceled))} {
		b = binary.AppendUvarint(b, v)
	}
	for _, v := range []int64{int64(r.Time), r.Args[0], r.Args[1], r.Args[2], r.Making, r.Taking,
		int64(r.Remaining), int64(r.Fee)} {
		b = binary.AppendVarint(b, v)
	}
	for i := range a.canceled {
		b = append(b, a.canceled[i][:]...)
	}
	return b
}

// take decodes the first answer in b and returns the rest.
func (a *answer) take(b []byte) (rest []byte, err error) {
	if len(b) > 2 && b[0] == limited {
		ms, n := binary.Uvarint(b[2:])
		if n <= 0 || ms == 0 || ms > longestWait {
			return nil, errMalformed
		}
		wait := time.Duration(ms) * time.Millisecond
		*a = answer{err: &sequencer.LimitedError{Wait: wait, Window: b[1]}}
		return b[2+n:], nil
	}
	if len(b) == 0 || int(b[0]) >= len(codes) {
		return nil, errMalformed
	}
	*a = answer{err: codes[b[0]]}
	if b = b[1:]; a.err != nil {
		return b, nil
	}
	r := &a.receipt
	if len(b) < len(r.Order)+2 {
		return nil, errMalformed
	}
	b = b[copy(r.Order[:], b):]
	r.Status, r.Reason, b = engine.Status(b[0]), engine.Reason(b[1]), b[2:]
	var u [7]uint64
	for i := range u {
		n := 0
		if u[i], n = binary.Uvarint(b); n <= 0 {
			return nil, errMalformed
		}
		b = b[n:]
	}
	var v [8]int64
	for i := range v {
		n := 0
		if v[i], n = binary.Varint(b); n <= 0 {
			return nil, errMalformed
		}
		b = b[n:]
	}
	r.Sequence, r.Reject, r.First = engine.Sequence(u[0]), engine.Reject(u[1]), engine.Sequence(u[2])
	r.Market, r.Wallet, r.Trades = engine.MarketNo(u[3]), engine.WalletNo(u[4]), uint32(u[5])
	r.Time, r.Args = engine.Time(v[0]), [3]int64{v[1], v[2], v[3]}
	r.Making, r.Taking, r.Remaining, r.Fee = v[4], v[5], engine.Size(v[6]), engine.Cash(v[7])
	if u[1] >= uint64(len(engine.Rejects)) || max(u[3], u[4], u[5]) > math.MaxUint32 ||
		r.Status > engine.Canceled || r.Reason > engine.ByOwnerMarket {
		return nil, errMalformed
	}
	if u[6] > uint64(len(b)/len(engine.OrderID{})) {
		return nil, errMalformed
	}
	for range u[6] {
		var id engine.OrderID
		b = b[copy(id[:], b):]
		a.canceled = append(a.canceled, id)
	}
	return b, nil
}
