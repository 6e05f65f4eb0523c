package simulator

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"syscall"

	"clobd/engine"
	"clobd/journal"
)

// memory is a disk in memory: the frames as they were written, and how many of them are synced.
type memory struct {
	s      *simulation
	disk   *disk
	log    [][]byte // the last one may be cut short
	synced int
	flip   int  // frame with a flipped bit, from 1; 0 is none
	bit    int  // which
	dead   bool // a write or sync failed: nothing is synced any more
	saved  *saved
}

// errSync is the error of a failed sync.
var errSync = errors.New("input/output error")

// newMemory makes an empty one.
func newMemory(s *simulation) *disk {
	m := &memory{s: s}
	m.disk = &disk{append: m.append, wait: m.wait, sync: m.sync, crash: m.crash, restore: m.restore,
		index: func() {},
		done:  func() uint64 { return uint64(m.synced) }, close: func() {}, relax: func() {
			m.disk.full, m.disk.failSync = m.dead && m.disk.full, m.dead && m.disk.failSync
		}, tired: func() bool { return false }}
	return m.disk
}

func (m *memory) append(f *engine.Frame) error {
	if m.disk.full {
		m.disk.failed, m.dead = true, true
		return fmt.Errorf("write: %w", syscall.ENOSPC)
	}
	if int(f.No) != len(m.log)+1 {
		m.s.fail("frame %d is appended after %d", f.No, len(m.log))
	}
	m.log = append(m.log, f.Bytes)
	return nil
}

func (m *memory) wait(frame uint64) error {
	if m.s.options.Sabotage == EarlyAck {
		m.disk.claimed = max(m.disk.claimed, frame)
		return nil
	}
	if frame > uint64(m.synced) {
		m.sync()
	}
	if m.disk.failed {
		return errSync
	}
	return nil
}

// sync makes all that was appended durable, or fails for good.
func (m *memory) sync() {
	if m.disk.failSync {
		m.disk.failed, m.dead = true, true
	}
	if !m.dead {
		m.synced = len(m.log)
	}
}

// crash keeps the synced frames and a random number of the others. The next frame may be cut short.
func (m *memory) crash(e ending) {
	n := m.synced
	switch {
	case e.orderly:
	case e.keep == 100:
		n = len(m.log)
	case e.keep == 50:
		for n < len(m.log) && e.dice.IntN(2) == 0 {
			n++
		}
	}
	torn := []byte(nil)
	if e.torn && n < len(m.log) {
		torn = m.log[n][:e.dice.IntN(len(m.log[n]))]
	}
	if m.s.options.Sabotage == LostFrame && n > 0 && n == m.synced {
		n--
		m.saved = nil
	}
	m.log, m.synced, m.dead = m.log[:n:n], n, false
	if len(torn) > 0 {
		m.log = append(m.log, torn)
	}
	if e.flip && n > 0 {
		m.flip = 1 + e.dice.IntN(n)
		m.bit = e.dice.IntN(8 * len(m.log[m.flip-1]))
		m.turn()
		m.disk.mend = func() {
			m.turn()
			m.flip = 0
		}
	}
}

// turn flips the bit, or flips it back.
func (m *memory) turn() {
	b := bytes.Clone(m.log[m.flip-1])
	b[m.bit/8] ^= 1 << (m.bit % 8)
	m.log[m.flip-1] = b
}

// restore replays the frames; every other time only those after the newest checkpoint. An
// unreadable frame that was not synced is the log's torn end.
func (m *memory) restore(fresh func() *journal.State) (*journal.State, engine.Head, error) {
	state, head := fresh(), engine.Head{}
	if m.saved != nil && m.s.result.Starts%2 == 0 {
		head = m.saved.load(m.s, state)
	} else {
		state.Exchange = engine.NewExchange(state.Seed)
	}
	for i, b := range m.log {
		f := new(engine.Frame)
		if err := engine.DecodeFrame(b, f); err != nil {
			if i < m.synced {
				return nil, head, fmt.Errorf("frame %d: %w", i+1, err)
			}
			m.log = m.log[:i:i]
			break
		}
		if f.No <= head.Frame {
			continue
		}
		if i >= m.synced {
			m.s.fail("frame %d was cut short, and can be read", i+1)
		}
		if err := state.Exchange.ApplyFrame(f); err != nil {
			m.s.fail("start: %v", err)
		}
		if err := state.Each(f); err != nil {
			return nil, head, err
		}
		head = f.Head()
	}
	m.synced = len(m.log)
	if m.s.result.Starts%3 == 0 && m.flip == 0 && head.Frame > 0 {
		m.saved = save(m.s, state, head)
	}
	return state, head, nil
}

// saved is a checkpoint.
type saved struct {
	head            engine.Head
	exchange, board [][]byte
}

// save makes one.
func save(s *simulation, state *journal.State, head engine.Head) *saved {
	c := &saved{head: head}
	into := func(to *[][]byte) func([]byte) error {
		return func(b []byte) error {
			*to = append(*to, bytes.Clone(b))
			return nil
		}
	}
	err := errors.Join(state.Exchange.Save(into(&c.exchange)), state.Save(into(&c.board)))
	if err != nil {
		s.fail("save: %v", err)
	}
	return c
}

// load makes a State of it.
func (c *saved) load(s *simulation, state *journal.State) engine.Head {
	from := func(chunks [][]byte) func() ([]byte, error) {
		return func() ([]byte, error) {
			if len(chunks) == 0 {
				return nil, io.ErrUnexpectedEOF
			}
			b := chunks[0]
			chunks = chunks[1:]
			return b, nil
		}
	}
	x, seq, err := engine.Load(state.Seed, from(c.exchange))
	if err = errors.Join(err, state.Load(from(c.board))); err != nil {
		s.fail("load: %v", err)
	}
	s.check(seq == c.head.Sequence && x.Digest() == c.head.Digest,
		"loaded Sequence %d, digest %016x, saved %+v", seq, uint64(x.Digest()), c.head)
	state.Exchange = x
	return c.head
}
