package role

import (
	"context"
	"errors"
	"fmt"
	"runtime/debug"
	"sync/atomic"
	"time"

	"clobd/engine"
	"clobd/journal"
)

// frameReader hands the committed frames to a function, in order, until stop.
type frameReader struct {
	tail  *journal.Tail
	last  atomic.Uint64 // number of the last frame that was handed on
	ended chan struct{}
}

// read begins with the first frame after the given one. failed gets the error that ends the reader;
// stop and the journal's end are no errors.
func read(t *journal.Tail, after uint64, each func(*engine.Frame) error,
	failed func(error)) *frameReader {
	r := &frameReader{tail: t, ended: make(chan struct{})}
	r.last.Store(after)
	go func() {
		defer close(r.ended)
		if err := r.run(each); !errors.Is(err, journal.ErrClosed) {
			failed(err)
		}
	}()
	return r
}

func (r *frameReader) run(each func(*engine.Frame) error) error {
	var f engine.Frame
	for {
		b, err := r.tail.Next()
		if err == nil {
			err = engine.DecodeFrame(b, &f)
		}
		if err == nil {
			err = each(&f)
		}
		if err != nil {
			return err
		}
		r.last.Store(f.No)
	}
}

// stop ends the reader and returns the number of the last frame that it has handed on.
func (r *frameReader) stop() uint64 {
	r.tail.Close()
	<-r.ended
	return r.last.Load()
}

// glance is the pause between two looks at how far a reader is.
const glance = 500 * time.Microsecond

// reach waits until the reader has handed on a frame, and reports false if over becomes true first.
func (r *frameReader) reach(frame uint64, over func() bool) bool {
	for r.last.Load() < frame {
		select {
		case <-r.ended:
			return false
		case <-time.After(glance):
		}
		if over() {
			return false
		}
	}
	return true
}

// spare is an Exchange that follows the committed frames, so that this node can lead at once.
type spare struct {
	made     chan struct{} // closed when the Exchange is there, or never will be
	cancel   context.CancelFunc
	exchange *engine.Exchange
	head     engine.Head // of the last frame applied
	reader   *frameReader
}

// keep lets an Exchange, which has applied everything up to head, follow from there.
func (m *Together) keep(x *engine.Exchange, head engine.Head) *spare {
	s := &spare{made: make(chan struct{}), cancel: func() {}}
	s.follow(m, x, head)
	close(s.made)
	return s
}

// build makes a new spare from the newest checkpoint. The Exchange of a former leader cannot be
// kept: not all that it has applied is committed.
func (m *Together) build() *spare {
	ctx, cancel := context.WithCancel(context.Background())
	s := &spare{made: make(chan struct{}), cancel: cancel}
	go func() {
		defer close(s.made)
		state, head, err := journal.Newest(ctx, m.Journal, Fresh)
		if err != nil {
			if ctx.Err() == nil && !errors.Is(err, journal.ErrClosed) {
				m.options.Failed("replica", err)
			}
			return
		}
		s.follow(m, state.Exchange, head)
	}()
	return s
}

func (s *spare) follow(m *Together, x *engine.Exchange, head engine.Head) {
	s.exchange, s.head = x, head
	s.reader = read(m.Journal.Tail(head.Frame+1), head.Frame, func(f *engine.Frame) error {
		if err := x.ApplyFrame(f); err != nil {
			return err
		}
		s.head = f.Head()
		return nil
	}, func(err error) { m.options.Failed("replica", err) })
}

// isReady reports whether the Exchange has applied all but the last few frames up to the given one.
func (s *spare) isReady(frame uint64) bool {
	select {
	case <-s.made:
		return s.reader != nil && s.reader.last.Load()+fewFrames >= frame
	default:
		return false
	}
}

// fewFrames are so few frames that to apply them takes no noticeable time.
const fewFrames = 256

// setSpare sets the Exchange of the next writer.
func (m *Together) setSpare(s *spare) {
	m.spare = s
	m.next.Store(s)
}

// spared reports whether this member could lead at once.
func (m fellow) spared() bool {
	s := m.next.Load()
	return m.Leads() || s != nil && s.isReady(m.glimpse().Head.Frame)
}

// take ends the spare at a frame and returns its Exchange. It returns nil, and the spare goes on,
// if over becomes true first or the spare has failed.
func (s *spare) take(head engine.Head, over func() bool) *engine.Exchange {
	for waits := true; waits; {
		select {
		case <-s.made:
			waits = false
		case <-time.After(glance):
			if over() {
				return nil
			}
		}
	}
	if s.reader == nil || !s.reader.reach(head.Frame, over) {
		return nil
	}
	s.reader.stop()
	return s.exchange
}

// end ends the spare.
func (s *spare) end() {
	s.cancel()
	<-s.made
	if s.reader != nil {
		s.reader.stop()
	}
}

// show begins to show the committed frames behind frame after on the Board, and wakes who waits for
// them.
func (m *Together) show(after uint64) *frameReader {
	t := m.Journal.Tail(after + 1)
	t.Hurry() // books are read more eagerly than anything else
	return read(t, after, func(f *engine.Frame) error {
		defer func() {
			if cause := recover(); cause != nil {
				m.options.Torn("publish", f.No, cause, debug.Stack())
			}
		}()
		m.Board.Publish(f)
		m.client.Arrive()
		return nil
	}, func(err error) { m.options.Failed("replica", fmt.Errorf("show frames: %w", err)) })
}
