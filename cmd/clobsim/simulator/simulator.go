package simulator

import (
	"errors"
	"fmt"
	"hash"
	"hash/fnv"
	"math/rand/v2"
	"runtime/debug"
	"strings"

	"clobd/engine"
	"clobd/engine/sequencer"
	"clobd/engine/view"
)

// Faults is a set of what may go wrong.
type Faults uint16

// Its members.
const (
	Crash     Faults = 1 << iota // the process ends; 0, 50 or 100 % of what was not synced stays
	Torn                         // a crash that cuts the log at any byte behind the last sync
	Sync                         // a sync of the log fails
	Full                         // a write of the log fails: the disk is full
	Flip                         // after an orderly end one bit on the disk is another one
	Duplicate                    // orders are sent again, and again
	Late                         // orders come long after they were drawn
	Burst                        // more is entered than the ring holds
	Clock                        // the clock jumps, forth and back

	AllFaults Faults = 1<<iota - 1
)

// faultNames are the members' names, in their order.
var faultNames = []string{"crash", "torn", "sync", "full", "flip", "duplicate", "late", "burst",
	"clock"}

// ParseFaults reads a list of names, or "all" or "none". The error names the first unknown one.
func ParseFaults(names []string) (f Faults, err error) {
	for _, name := range names {
		switch name {
		case "all":
			f = AllFaults
			continue
		case "none":
			continue
		}
		found := false
		for i, known := range faultNames {
			if name == known {
				f, found = f|1<<i, true
			}
		}
		if !found {
			return 0, fmt.Errorf("fault %q is not one of all, none, %s", name,
				strings.Join(faultNames, ", "))
		}
	}
	return f, nil
}

// String lists the members.
func (f Faults) String() string {
	var names []string
	for i, name := range faultNames {
		if f>>i&1 == 1 {
			names = append(names, name)
		}
	}
	if len(names) == 0 {
		return "none"
	}
	return strings.Join(names, ",")
}

// The disks that a run can have.
const (
	DrawnDisk  = ""
	MemoryDisk = "memory"
	PebbleDisk = "pebble"
)

// The mistakes that can be built in.
const (
	NoSabotage = ""
	// EarlyAck acknowledges before the sync.
	EarlyAck = "early-ack"
	// LostFrame forgets one durable frame in a crash.
	LostFrame = "lost-frame"
	// SecondOrder takes an order that is sent again as a new one.
	SecondOrder = "second-order"
	// EarlyPublish shows a frame before it is durable.
	EarlyPublish = "early-publish"
)

// Options define a run. The same Options give the same run.
type Options struct {
	Seed uint64
	// Steps is how many steps the run has, at least 1.
	Steps int
	// Disk is DrawnDisk, MemoryDisk or PebbleDisk.
	Disk string
	// Faults is what may go wrong.
	Faults Faults
	// Sabotage is the mistake that is built in, to show that it is found.
	Sabotage string
	// Say is called with a line for each step; nil for no trace.
	Say func(line string)
}

// validate names everything that is wrong with the options.
func (o *Options) validate() error {
	var problems []error
	if o.Steps < 1 {
		problems = append(problems, fmt.Errorf("steps %d: at least 1", o.Steps))
	}
	if o.Disk != DrawnDisk && o.Disk != MemoryDisk && o.Disk != PebbleDisk {
		problems = append(problems, fmt.Errorf("disk %q: neither memory nor pebble", o.Disk))
	}
	if o.Faults&^AllFaults != 0 {
		problems = append(problems, fmt.Errorf("faults %x: unknown", uint16(o.Faults)))
	}
	switch o.Sabotage {
	case NoSabotage, EarlyAck, LostFrame, SecondOrder, EarlyPublish:
	default:
		problems = append(problems, fmt.Errorf("sabotage %q: unknown", o.Sabotage))
	}
	return errors.Join(problems...)
}

// Result is the outcome of a run.
type Result struct {
	Plan         string // what the seed made of it
	Steps        int
	Sequence     engine.Sequence
	Frames       uint64
	Acknowledged int // Receipts handed out
	Trades       int // fills
	Starts       int
	Flips        int // starts with a flipped bit
	Refused      int // of those; it takes no part in String
	Unknown      int // Commands entered whose caller got no answer
	Returned     int // of those, found after the next start
	Duplicates   int // answers that an id was bound before
	Busy         int // refused for a full ring
	Digest       engine.Digest
	Trace        uint64 // hash of all that happened
}

// String is the Result in one line.
func (r *Result) String() string {
	return fmt.Sprintf("%d steps, %d commands in %d frames, %d acknowledged, %d fills, %d starts, "+
		"%d flips, %d unknown (%d returned), %d duplicates, %d busy, digest %016x, trace %016x",
		r.Steps, r.Sequence, r.Frames, r.Acknowledged, r.Trades, r.Starts, r.Flips, r.Unknown,
		r.Returned, r.Duplicates, r.Busy, uint64(r.Digest), r.Trace)
}

// Failure is a mistake that a run found.
type Failure struct {
	Step int // from 1
	What string
}

// Error says what and when.
func (f *Failure) Error() string { return fmt.Sprintf("step %d: %s", f.Step, f.What) }

// simulation is one run.
type simulation struct {
	options Options
	plan    plan
	dice    *rand.Rand // what happens
	result  Result
	step    int
	trace   hash.Hash64
	now     engine.Time // of the wall clock, in virtual milliseconds
	disk    *disk

	// State of the current simulated process.
	exchange *engine.Exchange
	board    *view.Board
	writer   *sequencer.Sequencer
	head     engine.Head      // of the last frame committed
	entered  []sent           // in the ring
	stepped  []batch          // applied, not appended
	appended []batch          // not committed
	late     []delayed        // drawn, not entered
	dying    bool             // the writer failed
	pictures []*view.Snapshot // taken before a Commit: they must stay as they were

	// State that survives the process.
	frames  [][]byte // committed, in order: frame n at n-1
	witness *witness
	traders *traders
}

// sent is a Command in the ring, with the cell that its caller waits for.
type sent struct {
	command engine.Command
	call    *sequencer.Call
}

// batch is a batch of Step, with the callers that wait for it.
type batch struct {
	*sequencer.Batch
	number uint64
	bytes  []byte // once it is appended
	sent   []sent
	idle   []sent          // cancels that found nothing, in no frame
	head   engine.Sequence // of the Commands before idle ones, at most
}

// delayed is a Command that comes late.
type delayed struct {
	command engine.Command
	due     int // step
}

// Run carries out one run. The error is a *Failure if the run found that something is wrong, and
// otherwise says what is wrong with the Options.
func Run(o Options) (Result, error) {
	if err := o.validate(); err != nil {
		return Result{}, fmt.Errorf("simulator options: %w", err)
	}
	s := newSimulation(o)
	defer s.disk.close()
	err := s.find(s.run)
	s.result.Plan, s.result.Steps, s.result.Trace = s.plan.String(), s.step, s.trace.Sum64()
	return s.result, err
}

// newSimulation is a run before its first step.
func newSimulation(o Options) *simulation {
	s := &simulation{options: o, dice: rand.New(rand.NewPCG(o.Seed, 1)), trace: fnv.New64a()}
	s.plan = draw(&o)
	s.now = s.plan.now
	s.witness = newWitness()
	s.traders = newTraders(&s.plan, rand.New(rand.NewPCG(o.Seed, 2)))
	s.disk = newDisk(s)
	return s
}

// run starts, takes all steps, and ends.
func (s *simulation) run() {
	s.say("%s", s.plan.String())
	s.start()
	for s.step = 1; s.step <= s.options.Steps; s.step++ {
		s.act()
		s.visible()
	}
	s.step = s.options.Steps
	s.finish()
}

// find calls a function and returns the mistake that it found. fail reports a mistake by a panic,
// and a panic of the simulated code is a mistake too.
func (s *simulation) find(do func()) (err error) {
	defer func() {
		cause := recover()
		if cause == nil {
			return
		}
		failure, known := cause.(*Failure)
		if !known {
			failure = &Failure{s.step, fmt.Sprintf("panic: %v\n%s", cause, debug.Stack())}
		}
		err = failure
	}()
	do()
	return nil
}

// fail ends the run.
func (s *simulation) fail(format string, args ...any) {
	what := fmt.Sprintf(format, args...)
	s.say("FAILED: %s", what)
	panic(&Failure{Step: s.step, What: what})
}

// check ends the run unless ok.
func (s *simulation) check(ok bool, format string, args ...any) {
	if !ok {
		s.fail(format, args...)
	}
}

// say adds a line to the trace.
func (s *simulation) say(format string, args ...any) {
	line := fmt.Sprintf("%d: %s", s.step, fmt.Sprintf(format, args...))
	fmt.Fprintln(s.trace, line)
	if s.options.Say != nil {
		s.options.Say(line)
	}
}

// chance returns true once in n times on average.
func (s *simulation) chance(n int) bool { return s.dice.IntN(n) == 0 }

// may reports whether the Options allow a fault.
func (s *simulation) may(f Faults) bool { return s.options.Faults&f != 0 }
