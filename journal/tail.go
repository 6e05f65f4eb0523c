package journal

import (
	"bytes"
	"fmt"
)

// Tail reads the journal's durable frames in order and then waits for new ones. One goroutine uses
// it; only Close may be called by another.
type Tail struct {
	j      *Journal
	next   uint64
	behind [][]byte // frames read ahead from the database, to be given before anything else
	hurry  bool
	closed bool // under j.latest.mu
	nudged bool // under j.latest.mu: the next take that would wait returns without a frame
}

// How much a Tail that lags reads from the database at once.
const (
	lagBytes  = 1 << 20
	lagFrames = 256
)

// Tail starts a Tail at frame number from (0 and 1 are the first).
func (j *Journal) Tail(from uint64) *Tail { return &Tail{j: j, next: max(from, 1)} }

// Seek makes the Tail go on at frame number from, instead of where it was started. It comes before
// the first Next.
func (t *Tail) Seek(from uint64) { t.next = max(from, 1) }

// Hurry makes a new frame wake the Tail before those that do not hurry. It comes before the first
// Next.
func (t *Tail) Hurry() { t.hurry = true }

// Next waits for the next encoded frame and returns it. The bytes are shared and must not be
// changed. The error is ErrClosed after Close of the Tail or the journal, and else names the frame
// that could not be read.
func (t *Tail) Next() ([]byte, error) {
	b, _, err := t.take(true)
	return b, err
}

// Poll is Next without waiting: it returns false if there is no frame yet.
func (t *Tail) Poll() ([]byte, bool, error) { return t.take(false) }

// take returns the next frame. If there is none yet, it waits for one or for nudge; without wait it
// returns false.
func (t *Tail) take(wait bool) ([]byte, bool, error) {
	if len(t.behind) == 0 {
		b, ready, err := t.peek(wait)
		if !ready || err != nil {
			return nil, false, err
		}
		if b != nil {
			t.next++
			return b, true, nil
		}
		if err := t.catchUp(); err != nil {
			return nil, false, err
		}
	}
	b := t.behind[0]
	t.behind[0] = nil
	t.behind = t.behind[1:]
	t.next++
	return b, true, nil
}

// peek returns the next frame from memory. Ready without bytes means that only the database has it.
func (t *Tail) peek(wait bool) (b []byte, ready bool, err error) {
	h := &t.j.latest
	h.mu.Lock()
	defer h.mu.Unlock()
	for {
		switch {
		case t.closed || h.closed:
			return nil, false, ErrClosed
		case t.next <= h.durable:
			return h.look(t.next), true, nil
		case !wait:
			return nil, false, nil
		case t.nudged:
			t.nudged = false
			return nil, false, nil
		}
		if t.hurry {
			h.first.Wait()
		} else {
			h.more.Wait()
		}
	}
}

// catchUp reads a bounded number of durable frames that memory does not have any more.
func (t *Tail) catchUp() error {
	last := min(t.j.latest.last(), t.next+lagFrames-1)
	found, err := t.j.read(t.behind[:0], t.next, last)
	if err != nil {
		return fmt.Errorf("read frame %d of %s: %w", t.next, t.j.Path, err)
	}
	t.behind = found
	return nil
}

// read appends copies of the frames from first to last to dst, at least one, and stops early after
// lagBytes.
func (j *Journal) read(dst [][]byte, first, last uint64) (frames [][]byte, err error) {
	if !j.gate.Enter() {
		return nil, ErrClosed
	}
	defer j.gate.Leave()
	it, err := j.db.NewIter(frameBounds(first))
	if err != nil {
		return nil, err
	}
	defer func() {
		if e := it.Close(); err == nil { // the same as of Error
			err = e
		}
	}()
	size, no := 0, first
	for ok := it.First(); ok && no <= last && size < lagBytes; ok = it.Next() {
		if at, ok := frameNo(it.Key()); !ok || at != no {
			break
		}
		b := bytes.Clone(it.Value())
		dst, size, no = append(dst, b), size+len(b), no+1
	}
	if err := it.Error(); err != nil {
		return nil, err
	}
	if no == first {
		return nil, &Break{Frame: first, Key: frameText(first), Path: j.Path, What: "missing"}
	}
	return dst, nil
}

// nudge makes a take that waits, or the next one that would wait, return without a frame.
func (t *Tail) nudge() {
	h := &t.j.latest
	h.mu.Lock()
	t.nudged = true
	h.mu.Unlock()
	h.wake()
}

// Close ends the Tail and wakes Next, which then returns ErrClosed.
func (t *Tail) Close() {
	h := &t.j.latest
	h.mu.Lock()
	t.closed = true
	h.mu.Unlock()
	h.wake()
}
