package sequencer

import (
	"errors"
	"fmt"
	"runtime/debug"
	"sync"
	"sync/atomic"
	"time"

	"clobd/engine"
	"clobd/engine/view"
)

// Why a Submit has no Receipt. Test with errors.Is.
var (
	// ErrBusy: the ring is full. Nothing was entered; send again.
	ErrBusy = errors.New("sequencer is busy")
	// ErrClosed: the Sequencer is closing, or has failed. Nothing was entered.
	ErrClosed = errors.New("sequencer is closed")
	// ErrTimeout: the Command was entered and is not yet durable. Its outcome is unknown.
	ErrTimeout = errors.New("no answer in time: outcome unknown")
	// ErrUnknown: the Command was entered and the Sequencer failed before it was durable. Its
	// outcome is unknown until the journal has been recovered.
	ErrUnknown = errors.New("sequencer failed: outcome unknown")
)

// Journal makes frames durable. One goroutine calls Append, another one Wait.
type Journal interface {
	// Append takes encoded frames in the order of their numbers. It may return before they are
	// durable. It keeps frame.Bytes and nothing else of the frame.
	Append(frame *engine.Frame) error
	// Wait returns nil when every frame up to this number is durable. Its first error is final.
	Wait(frame uint64) error
}

// Options are the Sequencer's limits and seams. The zero value of a field means its default.
type Options struct {
	// Head is where the journal ends: the first frame follows it, with Epoch = Head.Epoch + 1.
	Head engine.Head
	// Ring is the number of slots: a power of two in [8, 1<<20]; default 4,096.
	Ring int
	// Frames is the number of batches in flight, in [1, 64]; default 4.
	Frames int
	// Batch is the largest number of Commands of one frame, in [1, 256]; default 256.
	Batch int
	// Timeout is how long Submit waits for its answer; default 10 s.
	Timeout time.Duration
	// Now gives the Time of a batch, and is called by the matcher only; default
	// NewClock(Head.Time).
	Now func() engine.Time
	// Poison is told of a panic in Apply before the Sequencer fails of it: default nobody.
	Poison func(c *engine.Command, seq engine.Sequence, cause any, stack []byte)
	// Fatal is told of a panic in a later stage ("encode", "publish") before the Sequencer fails of
	// it: default nobody. No Command is to blame, and sending it again is not the danger.
	Fatal func(what string, frame uint64, cause any, stack []byte)
}

// withDefaults fills the fields that were left out.
func (o Options) withDefaults() Options {
	if o.Ring == 0 {
		o.Ring = 4096
	}
	if o.Frames == 0 {
		o.Frames = 4
	}
	if o.Batch == 0 {
		o.Batch = engine.FrameCommands
	}
	if o.Timeout == 0 {
		o.Timeout = 10 * time.Second
	}
	if o.Now == nil {
		o.Now = NewClock(o.Head.Time)
	}
	return o
}

// validate names everything that is wrong with the options.
func (o Options) validate() error {
	var problems []error
	if o.Ring < 8 || o.Ring > 1<<20 || o.Ring&(o.Ring-1) != 0 {
		problems = append(problems, fmt.Errorf("ring %d: not a power of two in [8, 1<<20]", o.Ring))
	}
	if o.Frames < 1 || o.Frames > 64 {
		problems = append(problems, fmt.Errorf("frames %d: not in [1, 64]", o.Frames))
	}
	if o.Batch < 1 || o.Batch > engine.FrameCommands {
		problems = append(problems,
			fmt.Errorf("batch %d: not in [1, %d]", o.Batch, engine.FrameCommands))
	}
	if o.Timeout < 0 {
		problems = append(problems, fmt.Errorf("timeout %v: negative", o.Timeout))
	}
	return errors.Join(problems...)
}

// Sequencer is the one writer: the only thing that touches an Exchange on the live path. Submit,
// Close and Counters may be called by anybody; the fields below say which goroutine owns them.
type Sequencer struct {
	// Set once by New.
	options  Options
	exchange *engine.Exchange // the matcher's
	board    *view.Board
	journal  Journal
	ring     *ring[entry]
	calls    sync.Pool // of *Call

	// Batches in order from one goroutine to the next, and back. Each channel has room for all of
	// them, so that only the matcher ever waits: for a free one.
	free     chan *Batch
	applied  chan *Batch
	appended chan *Batch

	// The matcher's.
	spare  *Batch // a free batch, taken and not used yet
	number uint64 // of the last frame
	last   engine.Sequence
	now    engine.Time
	// alarm nudges the ring when the order expires that is due at alarmed.
	alarm   *time.Timer
	alarmed engine.Time
	rang    atomic.Bool

	// The appender's.
	previous    engine.Hash
	appendError error // the first, final

	// The committer's.
	commitError error // the first, final

	failed   atomic.Pointer[error] // the first failure of any of the three
	counters counters

	mutex   sync.Mutex
	running bool
	closed  bool
	done    chan struct{} // closed when Run has joined its goroutines
}

// entry is what a ring slot holds besides its stamp: 3 cache lines with it.
type entry struct {
	command engine.Command // 176 B
	call    *Call          // 8 B
}

// New makes a Sequencer that goes on where o.Head ends. From then on the Exchange belongs to it,
// and it is the one writer of the Board. The error names every bad option.
func New(x *engine.Exchange, b *view.Board, j Journal, o Options) (*Sequencer, error) {
	o = o.withDefaults()
	problems := o.validate()
	if x == nil || b == nil || j == nil {
		problems = errors.Join(problems, errors.New("exchange, board and journal must be given"))
	}
	if problems != nil {
		return nil, fmt.Errorf("sequencer options: %w", problems)
	}
	s := &Sequencer{
		options:  o,
		exchange: x,
		board:    b,
		journal:  j,
		ring:     newRing[entry](o.Ring),
		free:     make(chan *Batch, o.Frames),
		applied:  make(chan *Batch, o.Frames),
		appended: make(chan *Batch, o.Frames),
		number:   o.Head.Frame,
		last:     o.Head.Sequence,
		now:      o.Head.Time,
		previous: o.Head.Hash,
		done:     make(chan struct{}),
	}
	s.alarm = time.AfterFunc(time.Hour, s.ringAlarm)
	s.alarm.Stop()
	s.calls.New = func() any { return newCall(s) }
	for range o.Frames {
		s.free <- newBatch(o)
	}
	return s, nil
}

// Submit enters a Command and parks until it is durable and published. It copies c and c.Proof
// (at most engine.ProofMax bytes), which the caller may reuse; c.Listing is kept and must not
// change. A Reject is a Receipt, not an error. Errors: ErrBusy and ErrClosed (nothing entered),
// ErrTimeout and ErrUnknown (entered, outcome unknown).
func (s *Sequencer) Submit(c *engine.Command) (engine.Receipt, error) {
	call, err := s.Enter(c)
	if err != nil {
		return engine.Receipt{}, err
	}
	return call.Wait()
}

// Enter is the first half of Submit: it never waits, so that one goroutine can enter Commands,
// drive Step, Append and Commit itself, and then ask each Call. Errors: ErrBusy, ErrClosed.
func (s *Sequencer) Enter(c *engine.Command) (*Call, error) {
	limit := s.limit(c)
	// Everything that can wait is done before the claim: between it and the publish, all that was
	// claimed later waits for this slot.
	call, proof := s.prepare(c)
	position, err := s.claim(1, limit)
	if err != nil {
		s.calls.Put(call)
		return nil, err
	}
	s.write(position, c, call, proof)
	s.ring.publish(position, 1)
	return call, nil
}

// EnterAll enters a bundle: neighbours in the journal, in this order, or none of them. It sets
// calls, of which there are as many. Errors as of Enter; ErrBusy also for a bundle that is larger
// than the ring.
func (s *Sequencer) EnterAll(commands []engine.Command, calls []*Call) error {
	limit, n := uint64(len(s.ring.slots)), uint64(len(commands))
	for i := range commands {
		limit = min(limit, s.limit(&commands[i]))
		calls[i], _ = s.prepare(&commands[i])
	}
	position, err := s.claim(n, limit)
	if err != nil {
		for _, call := range calls {
			s.calls.Put(call)
		}
		return err
	}
	for i, call := range calls {
		c := &commands[i]
		s.write(position+uint64(i), c, call, call.proof[:len(c.Proof)])
	}
	s.ring.publish(position, n)
	return nil
}

// limit is how many slots may be taken with c in one of them.
func (s *Sequencer) limit(c *engine.Command) uint64 {
	limit := uint64(len(s.ring.slots))
	if c.Kind == engine.Place {
		limit -= limit / 8 // the last eighth takes cancels and the operator's Commands only
	}
	return limit
}

// prepare takes a Call for c and copies its Proof.
func (s *Sequencer) prepare(c *engine.Command) (*Call, []byte) {
	if len(c.Proof) > engine.ProofMax {
		panic(fmt.Sprintf("BUG: proof of %d bytes", len(c.Proof)))
	}
	call := s.calls.Get().(*Call)
	call.state.Store(waiting)
	return call, call.proof[:copy(call.proof[:], c.Proof)]
}

// claim takes n slots and counts a refusal.
func (s *Sequencer) claim(n, limit uint64) (uint64, error) {
	position, err := s.ring.claim(n, limit)
	if err == ErrBusy {
		s.counters.busy.Add(1)
	}
	return position, err
}

// write fills a claimed slot.
func (s *Sequencer) write(position uint64, c *engine.Command, call *Call, proof []byte) {
	e := s.ring.at(position)
	e.command, e.call = *c, call
	e.command.Proof = proof
}

// Run starts the matcher, the appender and the committer, and joins them. It returns nil after
// Close, when everything entered has been answered, or else the first failure: nothing behind it
// was acknowledged. It may be called once. After a Close it starts nothing.
func (s *Sequencer) Run() error {
	s.mutex.Lock()
	if s.running {
		panic("BUG: Run called twice")
	}
	s.running = true
	closed := s.closed
	s.mutex.Unlock()

	if !closed {
		var joined sync.WaitGroup
		joined.Go(s.runMatcher)
		joined.Go(s.runAppender)
		joined.Go(s.runCommitter)
		joined.Wait()
	}
	s.alarm.Stop()
	s.refuse()
	close(s.done)
	return s.failure()
}

// refuse answers what is left in the ring when the matcher stopped for a failure, or never ran: it
// was never applied. After a graceful Close nothing is left.
func (s *Sequencer) refuse() {
	for s.ring.wait() {
		if e := s.ring.peek(0); e != nil { // not if a late alarm woke us
			e.call.answer(engine.Receipt{}, ErrClosed)
			s.ring.release(1)
		}
	}
}

// Close refuses new Commands, waits until Run has answered everything already entered and has
// joined its goroutines, and returns what Run returns. Before Run it only refuses, and that Run
// will touch neither Exchange nor Journal. It may be called often.
func (s *Sequencer) Close() error {
	s.ring.close()
	s.mutex.Lock()
	s.closed = true
	running := s.running
	s.mutex.Unlock()
	if running {
		<-s.done
	}
	return s.failure()
}

// fail keeps the first failure, refuses new Commands and makes the matcher stop.
func (s *Sequencer) fail(err error) {
	s.failed.CompareAndSwap(nil, &err)
	s.ring.close()
}

// guard runs one stage's work on a frame. A panic in it is reported, fails the Sequencer and
// becomes the error: what it left half done must not be acknowledged.
func (s *Sequencer) guard(what string, frame uint64, work func()) (err error) {
	defer func() {
		cause := recover()
		if cause == nil {
			return
		}
		if s.options.Fatal != nil {
			s.options.Fatal(what, frame, cause, debug.Stack())
		}
		err = fmt.Errorf("%s frame %d: panic: %v", what, frame, cause)
		s.fail(err)
	}()
	work()
	return nil
}

// failure is the first failure, nil if there was none.
func (s *Sequencer) failure() error {
	if err := s.failed.Load(); err != nil {
		return *err
	}
	return nil
}
