package relay

import (
	"bufio"
	"cmp"
	"encoding/binary"
	"errors"
	"net"
	"time"

	"clobd/engine"
	"clobd/engine/sequencer"
)

// Server takes Commands from other nodes on the node that leads, or did.
type Server struct {
	// Enter and EnterAll are those of the Sequencer; ErrNoLeader if there is none.
	Enter    func(*engine.Command) (*sequencer.Call, error)
	EnterAll func([]engine.Command, []*sequencer.Call) error
	// Heard is told of an API key that another node has heard from.
	Heard func(owner engine.WalletNo, key uint32)
	// Shun stores the fingerprint of a Command that made the engine panic on another node; nil: none
	// is taken.
	Shun func(fingerprint [32]byte) error
	// Most is how many Commands of one connection may be without an answer; default 4,096.
	Most int
}

// Visitor is what a Server asks about the Commands of one connection.
type Visitor struct {
	// Allowed reports whether the other end may enter a Command. A bundle with one that it may not
	// enter is not entered.
	Allowed func(*engine.Command) bool
	// Charge counts a bundle in the windows of its account; nil: nothing is counted. A bundle with an
	// error is not entered. Errors: *sequencer.LimitedError, ErrNoLeader, and ErrKind if the bundle
	// makes no sense.
	Charge func([]engine.Command) error
	// Old is true if the other end's program does not know the answer that a window is full. The
	// Server answers ErrBusy instead.
	Old bool
}

// promised is a Command that waits for its answer: a Call, or an error.
type promised struct {
	call *sequencer.Call
	err  error
}

// Serve carries out the Commands of a connection until that breaks, and closes it. The error says
// why.
func (s *Server) Serve(conn net.Conn, v Visitor) error {
	answers, joined := make(chan promised, cmp.Or(s.Most, 4096)), make(chan struct{})
	go func() {
		defer close(joined)
		reply(conn, answers)
	}()
	defer func() {
		conn.Close()
		close(answers)
		<-joined
	}()
	r := commandReader{in: bufio.NewReaderSize(conn, buffered)}
	for {
		sizes, commands, err := r.next()
		if err != nil {
			return err
		}
		for _, n := range sizes {
			s.enter(commands[:n], &v, answers)
			commands = commands[n:]
		}
	}
}

// enter enters a bundle.
func (s *Server) enter(b []engine.Command, v *Visitor, answers chan<- promised) {
	calls := make([]*sequencer.Call, len(b))
	var err error
	if IsNote(&b[0]) { // it is alone
		if err = ErrKind; v.Allowed(&b[0]) {
			err = s.note(&b[0])
		}
		answers <- promised{nil, err}
		return
	}
	for i := range b {
		if !v.Allowed(&b[i]) {
			err = ErrKind
		}
	}
	if err == nil && v.Charge != nil {
		err = v.Charge(b)
		if full := new(sequencer.LimitedError); v.Old && errors.As(err, &full) {
			err = sequencer.ErrBusy
		}
	}
	switch {
	case err != nil:
	case len(b) == 1:
		calls[0], err = s.Enter(&b[0])
	default:
		err = s.EnterAll(b, calls)
	}
	for _, call := range calls {
		answers <- promised{call, err}
	}
}

// note takes what is no Command.
func (s *Server) note(c *engine.Command) error {
	switch {
	case !IsWarning(c):
		s.Heard(c.Owner, c.Key)
		return nil
	case s.Shun == nil:
		return ErrKind
	}
	return s.Shun(c.ID)
}

// reply sends the answers in order. Those that are there together are sent together. When the
// connection is broken it still takes all of them.
func reply(conn net.Conn, answers <-chan promised) {
	b, failed := make([]byte, 4, buffered), false
	flush := func() {
		binary.LittleEndian.PutUint32(b, uint32(len(b)-4))
		if len(b) > 4 && !failed {
			err := conn.SetWriteDeadline(time.Now().Add(writeTime))
			if err == nil {
				_, err = conn.Write(b)
			}
			if failed = err != nil; failed {
				conn.Close() // then the reader ends, too
			}
		}
		b = b[:4]
	}
	for {
		var p promised
		var open bool
		select {
		case p, open = <-answers:
		default:
			flush()
			p, open = <-answers
		}
		if !open {
			flush()
			return
		}
		a := answer{err: p.err}
		if p.call != nil {
			if !p.call.Answered() {
				flush()
			}
			var placed sequencer.Placed
			a.receipt, placed, a.err = p.call.WaitPlaced()
			a.canceled = placed.Canceled
		}
		if b = a.append(b); len(b) > buffered {
			flush()
		}
	}
}
