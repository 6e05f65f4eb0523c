package journal

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"
	"time"

	"clobd/engine"
	"clobd/journal/disk"

	"github.com/prometheus/client_golang/prometheus"
)

// FollowerOptions says how a Follower works. Zero values but Fresh stand for the defaults.
type FollowerOptions struct {
	// Fresh makes the Follower's State. It is called for each attempt to load a checkpoint. The State
	// belongs to the Follower: no part of it may be shared.
	Fresh func() *State
	// Commands is the number of Commands between two checkpoints. Default 2,000,000.
	Commands uint64
	// Interval is the time between two checkpoints if anything has happened. Default 5 minutes.
	Interval time.Duration
	// Rate is how many bytes a second a checkpoint is written at while the node trades. Default 64
	// MiB.
	Rate int64
	// Hold reports whether the disk has too little room for a checkpoint; nil: it always has room.
	Hold func() bool
}

// validate returns all problems of the options at once, or nil, and fills in the defaults.
func (o *FollowerOptions) validate() error {
	var problems []error
	bad := func(wrong bool, text string) {
		if wrong {
			problems = append(problems, errors.New("follower option "+text))
		}
	}
	bad(o.Fresh == nil, "Fresh is nil")
	bad(o.Interval < 0, "Interval is negative")
	bad(o.Rate < 0, "Rate is negative")
	o.Commands = cmp.Or(o.Commands, 2_000_000)
	o.Interval = cmp.Or(o.Interval, 5*time.Minute)
	o.Rate = cmp.Or(o.Rate, 64<<20)
	return errors.Join(problems...)
}

// followerRetry is how long a Follower waits after a checkpoint that could not be written.
const followerRetry = 30 * time.Second

// Follower is a private State that follows the durable frames. It replays each frame, compares
// Events and Digest with the recorded ones, and writes a checkpoint from time to time. It reads
// only the frames' bytes, and so computes everything a second time. Nothing waits for it: while it
// saves, it lags. It costs the memory of a second State.
type Follower struct {
	j       *Journal
	options FollowerOptions
	tail    *Tail
	ended   chan struct{}
	stop    context.CancelFunc // ends Run at once
	ctx     context.Context

	alarm   *time.Timer // rouses Run when it may be time to save
	run     replay      // this and the fields below, up to tried, belong to Run
	state   *State
	decoded engine.Frame
	saved   engine.Head
	since   time.Time       // when it saved last, or began
	count   uint64          // Commands since then
	retry   time.Time       // not before
	tried   engine.Sequence // of the last checkpoint that was begun

	mu      sync.Mutex
	closing bool
	over    bool // Run has ended: calls are not answered any more
	calls   []saveCall
	status  FollowerStatus
	written prometheus.Counter
	failed  prometheus.Counter
}

// saveCall is a caller of Checkpoint who waits.
type saveCall struct {
	from   engine.Sequence // the checkpoint must go up to it
	failed uint64          // how many checkpoints had failed before the call
	answer chan<- savedNow // has room for one
}

// savedNow is the result of a saveCall.
type savedNow struct {
	checkpoint *Checkpoint
	err        error
}

// ErrNoRoom is the error of a checkpoint for which the disk has too little room.
var ErrNoRoom = errors.New("the disk has no room for a checkpoint")

// FollowerStatus says how far a Follower is.
type FollowerStatus struct {
	Ready    bool          // it has loaded a checkpoint, or found none
	Head     engine.Head   // of the last frame that it replayed
	Lag      uint64        // durable Commands that it has not replayed
	Saved    *Checkpoint   // the newest one, nil if there is none
	Took     time.Duration // how long writing it took, 0 if another process did
	Saving   bool          // a checkpoint is being written
	Failures uint64        // checkpoints that could not be written
	Error    error         // of the last attempt, nil if it succeeded
}

// Follow makes a Follower of the journal, which must have been restored. Its Run does the work.
func (j *Journal) Follow(o FollowerOptions) (*Follower, error) {
	if err := o.validate(); err != nil {
		return nil, err
	}
	const of disk.Subsystem = "checkpoint"
	f := &Follower{j: j, options: o, tail: j.Tail(1), ended: make(chan struct{}),
		written: of.Counter("writes_total", "Checkpoints written."),
		failed:  of.Counter("failures_total", "Checkpoints that could not be written."),
	}
	f.ctx, f.stop = context.WithCancel(context.Background())
	f.alarm = time.AfterFunc(time.Hour, f.tail.nudge)
	f.alarm.Stop()
	return f, nil
}

// Run follows until Close. If a frame cannot be replayed, or the result differs from the record,
// the node's answers cannot be trusted: Run speaks the last words and ends the process with code
// 70. It returns an error only then, or if the journal cannot be read.
func (f *Follower) Run() error {
	defer close(f.ended)
	defer f.stop()
	defer f.dismiss()
	err := f.follow()
	if err == nil || errors.Is(err, ErrClosed) || f.ctx.Err() != nil {
		return nil
	}
	var broken *Break
	if errors.As(err, &broken) {
		f.j.guard.LastWords("the follower does not come to what was recorded", err,
			"what this process serves may be wrong: keep the folder, report it, and start again, "+
				"which replays and compares")
	}
	return fmt.Errorf("follow the journal: %w", err)
}

// follow is Run without its end.
func (f *Follower) follow() error {
	if err := f.begin(); err != nil {
		return err
	}
	for {
		if err := f.ctx.Err(); err != nil {
			return err
		}
		f.mu.Lock()
		closing := f.closing
		f.mu.Unlock()
		if f.due(closing) || !closing && f.wanted() {
			f.save(closing)
		}
		f.answer()
		b, ready, err := f.tail.take(false)
		if !ready && err == nil && !closing {
			f.alarm.Reset(f.wait())
			b, ready, err = f.tail.take(true)
			f.alarm.Stop()
		}
		switch {
		case err != nil:
			return err
		case ready:
			if err := f.frame(b); err != nil {
				return err
			}
		case closing:
			if f.run.head.Frame != f.saved.Frame {
				f.save(true)
			}
			return nil
		}
	}
}

// begin makes the State, of the newest good checkpoint or empty.
func (f *Follower) begin() error {
	if !f.j.gate.Enter() {
		return ErrClosed
	}
	defer f.j.gate.Leave()
	s, from, _ := f.j.begin(f.ctx, f.options.Fresh)
	f.run = f.j.replay(f.ctx, s, from)
	if from != nil {
		f.saved = from.Head
		f.tail.next = from.Head.Frame + 1
	}
	f.state, f.since = s, time.Now()
	f.mu.Lock()
	f.status.Ready, f.status.Head, f.status.Saved = true, f.run.head, from
	f.mu.Unlock()
	return f.ctx.Err()
}

func (f *Follower) frame(b []byte) error {
	if err := engine.DecodeFrame(b, &f.decoded); err != nil {
		return f.run.locate(unreadable(f.run.head.Frame+1, err))
	}
	if err := f.run.frame(f.run.head.Frame+1, &f.decoded); err != nil {
		return err
	}
	f.count += uint64(len(f.decoded.Commands))
	f.mu.Lock()
	f.status.Head = f.run.head
	f.mu.Unlock()
	return nil
}

// due reports whether it is time to save. While closing, the Follower saves once, at the end.
func (f *Follower) due(closing bool) bool {
	if closing || f.count == 0 || time.Now().Before(f.retry) {
		return false
	}
	if f.count < f.options.Commands && time.Since(f.since) < f.options.Interval {
		return false
	}
	if f.options.Hold == nil || !f.options.Hold() {
		return true
	}
	f.retry = time.Now().Add(followerRetry)
	return false
}

// Checkpoint makes Run write a checkpoint of everything that is durable now, at the usual rate, and
// waits for it. If ctx ends first the checkpoint is written all the same. If the newest checkpoint
// goes that far it is returned. The error is ErrClosed, ErrNoRoom, or why writing failed.
func (f *Follower) Checkpoint(ctx context.Context) (*Checkpoint, error) {
	if f.options.Hold != nil && f.options.Hold() {
		return nil, ErrNoRoom
	}
	from := engine.Sequence(f.j.gauges.sequence.Load())
	if from == 0 {
		return nil, errors.New("nothing was journaled yet")
	}
	answer := make(chan savedNow, 1)
	f.mu.Lock()
	if f.closing || f.over {
		f.mu.Unlock()
		return nil, ErrClosed
	}
	f.calls = append(f.calls, saveCall{from, f.status.Failures, answer})
	f.mu.Unlock()
	f.tail.nudge()
	select {
	case a := <-answer:
		return a.checkpoint, a.err
	case <-ctx.Done():
		return nil, ctx.Err()
	}
}

// wanted reports whether a caller waits for a checkpoint that can be written now: the replay has
// come far enough for it, and the newest checkpoint has not.
func (f *Follower) wanted() bool {
	f.mu.Lock()
	defer f.mu.Unlock()
	return slices.ContainsFunc(f.calls, func(a saveCall) bool {
		return f.run.head.Sequence >= a.from && f.saved.Sequence < a.from
	})
}

// answer answers the calls that the newest checkpoint satisfies, and those whose attempt failed.
func (f *Follower) answer() {
	f.mu.Lock()
	defer f.mu.Unlock()
	left := f.calls[:0]
	for _, a := range f.calls {
		switch {
		case f.status.Saved != nil && f.saved.Sequence >= a.from:
			a.answer <- savedNow{checkpoint: f.status.Saved}
		case f.status.Error != nil && f.status.Failures > a.failed && f.tried >= a.from:
			a.answer <- savedNow{err: f.status.Error}
		default:
			left = append(left, a)
		}
	}
	f.calls = left
}

// dismiss answers all remaining calls when Run ends.
func (f *Follower) dismiss() {
	f.answer()
	f.mu.Lock()
	defer f.mu.Unlock()
	f.over = true
	for _, a := range f.calls {
		a.answer <- savedNow{err: ErrClosed}
	}
	f.calls = nil
}

// wait is how long Run may sleep if no frame arrives.
func (f *Follower) wait() time.Duration {
	if f.count == 0 {
		return f.options.Interval
	}
	at := f.since.Add(f.options.Interval)
	if f.count >= f.options.Commands || at.Before(f.retry) {
		at = f.retry
	}
	return max(time.Until(at), 0)
}

// save writes a checkpoint, at full speed if hurry: then nothing else needs the disk. A failure
// only makes the next start longer.
func (f *Follower) save(hurry bool) {
	rate, start := f.options.Rate, time.Now()
	if hurry {
		rate = 0
	}
	f.mu.Lock()
	f.tried = f.run.head.Sequence
	f.status.Saving = true
	f.mu.Unlock()
	c, err := f.j.save(f.ctx, f.state,
		&Checkpoint{Head: f.run.head, Partition: f.run.partition}, rate)
	took := time.Since(start)
	f.mu.Lock()
	defer f.mu.Unlock()
	f.status.Saving, f.status.Error = false, err
	if err != nil {
		f.retry = time.Now().Add(followerRetry)
		f.status.Failures++
		f.failed.Inc()
		f.j.Options.Log.Error("checkpoint failed, and is tried again", "error", err)
		return
	}
	f.saved, f.since, f.count = c.Head, time.Now(), 0
	f.status.Saved, f.status.Took = c, took
	f.written.Inc()
	f.j.Options.Log.Info("checkpoint", "path", c.Path, "sequence", c.Head.Sequence,
		"bytes", c.Bytes, "took", took.String())
}

// Close lets the Follower reach the journal's end and write a last checkpoint, so that the next
// start is quick. Nothing may be appended any more. When ctx ends it gives up. Run has returned
// after it.
func (f *Follower) Close(ctx context.Context) {
	f.mu.Lock()
	f.closing = true
	f.mu.Unlock()
	f.tail.nudge()
	select {
	case <-f.ended:
	case <-ctx.Done():
		f.j.Options.Log.Warn("stopping without a last checkpoint: the next start replays more")
		f.stop()
		f.tail.Close()
		<-f.ended
	}
}

// Status is how far the Follower has come.
func (f *Follower) Status() FollowerStatus {
	f.mu.Lock()
	s := f.status
	f.mu.Unlock()
	if last := f.j.gauges.sequence.Load(); last > uint64(s.Head.Sequence) {
		s.Lag = last - uint64(s.Head.Sequence)
	}
	return s
}

// Collectors are the Follower's metrics, for the caller to register.
func (f *Follower) Collectors() []prometheus.Collector {
	gauge := func(of disk.Subsystem, name, help string,
		value func(FollowerStatus) float64) prometheus.Collector {
		return of.Gauge(name, help, func() float64 { return value(f.Status()) })
	}
	saved := func(name, help string, value func(*Checkpoint) float64) prometheus.Collector {
		return gauge("checkpoint", name, help, func(s FollowerStatus) float64 {
			if s.Saved == nil {
				return 0
			}
			return value(s.Saved)
		})
	}
	return []prometheus.Collector{f.written, f.failed,
		gauge("follower", "lag_commands", "Durable commands that the follower has not replayed yet.",
			func(s FollowerStatus) float64 { return float64(s.Lag) }),
		saved("age_seconds", "Age of the newest checkpoint, 0 if there is none.",
			func(c *Checkpoint) float64 { return time.Since(c.Created).Seconds() }),
		saved("bytes", "Size of the newest checkpoint.",
			func(c *Checkpoint) float64 { return float64(c.Bytes) }),
		saved("sequence", "Sequence of the newest checkpoint.",
			func(c *Checkpoint) float64 { return float64(c.Head.Sequence) }),
		gauge("checkpoint", "seconds", "How long the last checkpoint took to write.",
			func(s FollowerStatus) float64 { return s.Took.Seconds() }),
	}
}
