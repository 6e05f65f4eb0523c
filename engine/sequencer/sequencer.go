package sequencer

import (
	"cmp"
	"errors"
	"fmt"
	"runtime/debug"
	"sync"
	"sync/atomic"
	"time"

	"clobd/engine"
	"clobd/engine/view"
)

// The errors of Enter, Submit and Wait. Test with errors.Is.
var (
	// ErrBusy: the ring is full. Nothing was entered; send again.
	ErrBusy = errors.New("sequencer is busy")
	// ErrClosed: the Sequencer is closing, or has failed. Nothing was entered.
	ErrClosed = errors.New("sequencer is closed")
	// ErrNoLeader is the ErrClosed of a cluster's member: nobody is known who would take Commands.
	ErrNoLeader = fmt.Errorf("no leader: %w", ErrClosed)
	// ErrTimeout: the Command was entered and is not yet durable. Its outcome is unknown.
	ErrTimeout = errors.New("no answer in time: outcome unknown")
	// ErrUnknown: the Command was entered and the Sequencer failed before it was durable. Its
	// outcome is unknown until the journal has been recovered.
	ErrUnknown = errors.New("sequencer failed: outcome unknown")
)

// LimitedError is the ErrClosed of Commands whose account has used up a window of the member that
// leads: nothing was entered.
type LimitedError struct {
	Wait   time.Duration // until there is room
	Window uint8         // that is full, by its number
}

// Error names the window by its number.
func (e *LimitedError) Error() string {
	return fmt.Sprintf("window %d of the account is full for %v", e.Window, e.Wait)
}

// Unwrap returns ErrClosed.
func (e *LimitedError) Unwrap() error { return ErrClosed }

// Journal makes frames durable. One goroutine calls Append, another one calls Wait. Two invariants:
//
//  1. Wait(n) returns nil only if frames 1 to n are durable: there is never a gap.
//  2. After the first error nothing becomes durable any more; the error is final.
//
// Append and Wait are two calls, so that one sync may cover several frames, and the disk is busy
// while the next frame is encoded.
type Journal interface {
	// Append accepts encoded frames in the order of their numbers. It may return before they are
	// durable. It keeps frame.Bytes and nothing else of the frame.
	Append(frame *engine.Frame) error
	// Wait returns nil when every frame up to this number is durable.
	Wait(frame uint64) error
}

// Options are the Sequencer's limits and seams. The zero value of a field means its default.
type Options struct {
	// Head is where the journal ends: the first frame follows it.
	Head engine.Head
	// Epoch is that of all frames, not before Head.Epoch; default Head.Epoch + 1.
	Epoch uint64
	// Ring is the number of slots: a power of two in [8, 1<<20]; default 4,096.
	Ring int
	// Frames is the number of batches in flight, in [1, 64]; default 4.
	Frames int
	// Batch is the largest number of Commands of one frame, in [1, 256]; default 256.
	Batch int
	// Timeout is how long Submit waits for its answer; default 10 s.
	Timeout time.Duration
	// Refusal is the error of Commands that nobody has applied when the Sequencer fails: ErrClosed,
	// the default, or an error that wraps it.
	Refusal error
	// Now returns the Time of a batch. Only the matcher calls it. Default: NewClock(Head.Time).
	Now func() engine.Time
	// Ask and Confirm are set if the Journal's writer can lose the right to append without a word,
	// because somebody else has it by now: then what the Exchange holds may be of the past. The
	// Sequencer asks before it answers what is in no frame. Ask returns a number and does not wait;
	// Confirm returns nil once it is known that at some time after that Ask nobody else had the right.
	Ask     func() uint64
	Confirm func(asked uint64) error
	// Poison, if set, is called for a panic in Apply before the Sequencer fails.
	Poison func(c *engine.Command, seq engine.Sequence, cause any, stack []byte)
	// Fatal, if set, is called for a panic in a later stage ("encode", "publish") before the
	// Sequencer fails. No single Command caused that panic.
	Fatal func(what string, frame uint64, cause any, stack []byte)
	// Spent, if set, is told where each frame has spent its time, after its callers are answered.
	// Only the committer calls it.
	Spent func(*Spent)
}

// Spent says where a frame has spent its time.
type Spent struct {
	Wait    time.Duration // of its first Command, from Enter to the matcher
	Match   time.Duration // to stamp and apply its Commands
	Append  time.Duration // to encode the frame and to hand it to the Journal
	Sync    time.Duration // in Journal.Wait
	Publish time.Duration // to show the frame on the Board
}

func (o Options) withDefaults() Options {
	o.Ring, o.Frames = cmp.Or(o.Ring, 4096), cmp.Or(o.Frames, 4)
	o.Batch = cmp.Or(o.Batch, engine.FrameCommands)
	o.Epoch = cmp.Or(o.Epoch, o.Head.Epoch+1)
	o.Timeout = cmp.Or(o.Timeout, 10*time.Second)
	o.Refusal = cmp.Or(o.Refusal, ErrClosed)
	if o.Now == nil {
		o.Now = NewClock(o.Head.Time)
	}
	return o
}

func (o Options) validate() error {
	var problems []error
	check := func(good bool, format string, args ...any) {
		if !good {
			problems = append(problems, fmt.Errorf(format, args...))
		}
	}
	check(o.Ring >= 8 && o.Ring <= 1<<20 && o.Ring&(o.Ring-1) == 0,
		"ring %d: not a power of two in [8, 1<<20]", o.Ring)
	check(o.Frames >= 1 && o.Frames <= 64, "frames %d: not in [1, 64]", o.Frames)
	check(o.Batch >= 1 && o.Batch <= engine.FrameCommands, "batch %d: not in [1, %d]", o.Batch,
		engine.FrameCommands)
	check(o.Epoch >= o.Head.Epoch, "epoch %d: before %d", o.Epoch, o.Head.Epoch)
	check(o.Timeout >= 0, "timeout %v: negative", o.Timeout)
	return errors.Join(problems...)
}

// Sequencer is the one writer: on the live path only its matcher reads or changes the Exchange. Any
// goroutine may call Enter, Submit, Close and Counters; the groups of fields name their owners. Two
// invariants:
//
//  1. Nothing of a frame leaves before Journal.Wait returned nil for the frame: no Receipt, no
//     Snapshot, no counter.
//  2. Sequences have no gaps and follow the claims in the ring, and answers follow the Sequences.
//
// The whole pipeline:
//
//	caller:    slot = ring.claim(); slot.command = c; ring.publish(slot); call.Wait()
//	matcher:   b = <-free;     for c in ring { Apply(c) };        applied <- b     // Step
//	appender:  b = <-applied;  Encode(b); journal.Append(b);      appended <- b    // Append
//	committer: b = <-appended; journal.Wait(b); Publish(b); answer the callers; free <- b  // Commit
//
// Too slow: a channel of Commands instead of the ring. It moves some 21 million Commands a second,
// the ring 59 million (DESIGN.md).
type Sequencer struct {
	// Set once by New.
	options  Options
	exchange *engine.Exchange // the matcher's
	board    *view.Board
	journal  Journal
	ring     *ring[entered]
	calls    *Calls

	// Batches pass in order from one goroutine to the next, and back. Each channel has room for all
	// batches, so only the matcher ever waits: for a free batch.
	free     chan *Batch
	applied  chan *Batch
	appended chan *Batch

	// The matcher's.
	spare  *Batch // a batch from free that Step has not used yet
	number uint64 // of the last frame
	last   engine.Sequence
	now    engine.Time
	// alarm nudges the ring at alarmed, when the next order expires.
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
	stall    stall

	mutex   sync.Mutex
	running bool
	closed  bool
	done    chan struct{} // closed when Run has joined its goroutines
}

// entered is a Command in a ring slot. With the stamp of the slot it fills three cache lines.
type entered struct {
	command engine.Command // 176 B
	call    *Call          // 8 B
}

// New makes a Sequencer that continues after o.Head. From then on the Exchange belongs to the
// Sequencer, which is also the one writer of the Board. The error names every bad option.
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
		ring:     newRing[entered](o.Ring),
		calls:    NewCalls(o.Timeout),
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

// Enter is the first half of Submit. Enter never waits, so one goroutine can enter Commands, drive
// Step, Append and Commit itself, and then call Wait of each Call. Errors: ErrBusy, ErrClosed.
func (s *Sequencer) Enter(c *engine.Command) (*Call, error) {
	limit := s.limit(c)
	// Prepare the Call before the claim: between claim and publish, every later slot waits for
	// this one.
	call := s.calls.prepare(c)
	position, err := s.claim(1, limit)
	if err != nil {
		s.calls.pool.Put(call)
		return nil, err
	}
	defer s.hold(position)
	s.write(position, c, call)
	s.ring.publish(position, 1)
	return call, nil
}

// EnterAll enters a bundle: the Commands become neighbours in the journal in this order, or none
// enters. It fills calls, which is as long as commands. Errors: those of Enter; ErrBusy also means
// that the bundle is larger than the ring.
func (s *Sequencer) EnterAll(commands []engine.Command, calls []*Call) error {
	limit, n := uint64(len(s.ring.slots)), uint64(len(commands))
	for i := range commands {
		limit = min(limit, s.limit(&commands[i]))
		calls[i] = s.calls.prepare(&commands[i])
	}
	position, err := s.claim(n, limit)
	if err != nil {
		for _, call := range calls {
			s.calls.pool.Put(call)
		}
		return err
	}
	defer s.hold(position)
	for i, call := range calls {
		s.write(position+uint64(i), &commands[i], call)
	}
	s.ring.publish(position, n)
	return nil
}

// limit returns how many slots of the ring may be full after c has entered.
func (s *Sequencer) limit(c *engine.Command) uint64 {
	limit := uint64(len(s.ring.slots))
	if c.Kind == engine.Place {
		limit -= limit / 8 // the last eighth is for cancels and operators' Commands
	}
	return limit
}

func (s *Sequencer) claim(n, limit uint64) (uint64, error) {
	position, err := s.ring.claim(n, limit)
	if err == ErrBusy {
		s.counters.busy.Add(1)
	}
	return position, err
}

// hold is deferred by who has claimed slots of the ring. If it panics before it has published them,
// the matcher would wait for them for ever: the Sequencer fails, and the panic goes on.
func (s *Sequencer) hold(position uint64) {
	cause := recover()
	if cause == nil {
		return
	}
	if s.options.Fatal != nil {
		s.options.Fatal("enter", position, cause, debug.Stack())
	}
	s.fail(fmt.Errorf("enter at %d: panic: %v", position, cause))
	panic(cause)
}

func (s *Sequencer) write(position uint64, c *engine.Command, call *Call) {
	e := s.ring.at(position)
	e.command, e.call = *c, call
	e.command.Proof = call.proof[:len(c.Proof)]
}

// Run starts the matcher, the appender and the committer, and joins them. It returns nil after
// Close, when every Command has its answer, or else the first failure: nothing after the failure
// was acknowledged. Call Run once. After a Close it starts nothing.
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

// refuse answers ErrClosed to the Commands that a failed matcher, or one that never ran, left in
// the ring: nobody applied them. After a graceful Close the ring is empty.
func (s *Sequencer) refuse() {
	for s.ring.wait() {
		if e := s.ring.peek(0); e != nil { // nil after a late alarm
			e.call.answer(engine.Receipt{}, s.options.Refusal)
			s.ring.release(1)
		}
	}
}

// Close refuses new Commands, waits until Run has answered the entered ones and has joined its
// goroutines, and returns the failure that Run returns. Before Run it only refuses; Run then uses
// neither Exchange nor Journal. Close may be called often.
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

// guard runs one stage's work on a frame. A panic in work fails the Sequencer and becomes the
// error, because a half-done frame must not be acknowledged.
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

func (s *Sequencer) failure() error {
	if err := s.failed.Load(); err != nil {
		return *err
	}
	return nil
}
