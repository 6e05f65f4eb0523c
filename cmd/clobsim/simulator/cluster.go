package simulator

import (
	"bytes"
	"container/heap"
	crand "crypto/rand"
	"fmt"
	"hash/fnv"
	"math/rand/v2"
	"slices"
	"strings"

	"clobd/engine"
)

// The mistakes that can be built into a cluster. Each stands for code that a member could lack.
const (
	// EarlyCommit acknowledges a frame when the leader has proposed it.
	EarlyCommit = "early-commit"
	// EarlyAnswer answers the leader before the follower's disk has the entries.
	EarlyAnswer = "early-answer"
	// UnsyncedVote answers for a vote that a crash takes away.
	UnsyncedVote = "unsynced-vote"
	// ForgottenVote writes the term without the vote.
	ForgottenVote = "forgotten-vote"
	// KeptTail keeps entries that the leader replaces.
	KeptTail = "kept-tail"
	// LostAck acknowledges what was in flight when the leadership was lost.
	LostAck = "lost-ack"
	// TwiceTaken takes an order that is sent again as a new one.
	TwiceTaken = "twice-taken"
	// OwnClock stamps a leader's first frames without regard to the last leader's time.
	OwnClock = "own-clock"
	// EarlyRead shows readers what is not committed.
	EarlyRead = "early-read"
	// OldDisk starts a member with a disk as it once was, its mark included.
	OldDisk = "old-disk"
	// Impostor lets the gateway that lies speak as a voter: nobody looks at certificates.
	Impostor = "impostor"
	// StaleCancel answers a cancel that finds nothing from the leader's own state, without asking
	// whether it still leads.
	StaleCancel = "stale-cancel"
	// BlindHeal makes a damaged journal anew of all that any other member has, committed or not.
	BlindHeal = "blind-heal"
	// ForgetfulHeal makes it anew of what any other member knows to be committed, and forgets what
	// this one has answered for since.
	ForgetfulHeal = "forgetful-heal"
	// EarlyRaise puts later rules in force without those who do not answer. Only a program that knows
	// two versions can make it.
	EarlyRaise = "early-raise"
)

// ClusterSabotages are all of them but EarlyRaise.
func ClusterSabotages() []string {
	return []string{EarlyCommit, EarlyAnswer, UnsyncedVote, ForgottenVote, KeptTail, LostAck,
		TwiceTaken, OwnClock, EarlyRead, OldDisk, Impostor, StaleCancel, BlindHeal,
		ForgetfulHeal}
}

// ClusterOptions define a run of a cluster. The same options give the same run. Only one run can be
// at work in a process: the library draws its timeouts from one source.
type ClusterOptions struct {
	Seed     uint64
	Events   int // how many things happen before everything is healed, at least 1
	Sabotage string
	Say      func(line string) // nil: no trace
}

// ClusterResult is the outcome of a run.
type ClusterResult struct {
	Members      int
	Events       int
	Sequence     engine.Sequence
	Frames       int
	Acknowledged int
	Unknown      int // Commands whose caller got no answer
	Trades       int
	Terms        int // with a leader
	Crashes      int
	Torn         int // of those, in the middle of a write
	Cuts         int
	Pauses       int
	Replaced     int // entries taken back
	Flips        int
	Healed       int // journals that were made anew
	Own          int // frames of those that were found in the damaged files
	Fetched      int // and that others gave
	Interrupted  int // times that a member died while it healed
	Joined       int // members that came later
	Lies         int // of a gateway
	Upgraded     int // members that got a new program
	Digest       engine.Digest
	Trace        uint64
}

// String is the result in one line.
func (r *ClusterResult) String() string {
	return fmt.Sprintf("%d members, %d events, %d commands in %d frames, %d acknowledged, %d unknown, "+
		"%d fills, %d terms, %d crashes (%d torn), %d cuts, %d pauses, %d entries replaced, %d flips, "+
		"%d healed (%d frames of their own, %d of others, %d times interrupted), %d joined, %d lies, %d upgraded, digest %016x, trace %016x", r.Members, r.Events, r.Sequence, r.Frames,
		r.Acknowledged, r.Unknown, r.Trades, r.Terms, r.Crashes, r.Torn, r.Cuts, r.Pauses, r.Replaced,
		r.Flips, r.Healed, r.Own, r.Fetched, r.Interrupted, r.Joined, r.Lies, r.Upgraded,
		uint64(r.Digest), r.Trace)
}

// cluster is one run. What its callers, its witness and its trace are, a node that is alone has,
// too.
type cluster struct {
	*simulation
	options ClusterOptions
	result  ClusterResult

	at    int64 // virtual microseconds
	queue moments
	count uint64 // of moments so far
	calm  bool   // nothing goes wrong any more

	seats  []*seat
	lastID uint64
	cut    map[link]bool

	leaders map[uint64]uint64 // term → who leads
	frames  [][]byte          // committed, in order: frame n at n-1
	results map[engine.Sequence]engine.Receipt
	newest  engine.Sequence // that anybody was told of
}

// link is a way from one member to another.
type link struct{ from, to uint64 }

// moment is something that happens at a time.
type moment struct {
	at int64
	no uint64
	do func()
}

// moments is a heap of them: the earliest, and of those the first that was planned.
type moments []moment

// Len and the others make it a heap.
func (m moments) Len() int { return len(m) }

// Less is the order of a heap.
func (m moments) Less(i, j int) bool {
	return m[i].at < m[j].at || m[i].at == m[j].at && m[i].no < m[j].no
}

// Swap exchanges two.
func (m moments) Swap(i, j int) { m[i], m[j] = m[j], m[i] }

// Push adds one.
func (m *moments) Push(x any) { *m = append(*m, x.(moment)) }

// Pop takes the last one.
func (m *moments) Pop() any {
	last := (*m)[len(*m)-1]
	*m = (*m)[:len(*m)-1]
	return last
}

// after plans something.
func (c *cluster) after(wait int64, do func()) {
	c.count++
	heap.Push(&c.queue, moment{c.at + wait, c.count, do})
}

// next lets the next thing happen.
func (c *cluster) next() {
	m := heap.Pop(&c.queue).(moment)
	c.at = m.at
	c.step++
	m.do()
}

// dicedBytes is a source of random bytes for the library, which draws its timeouts from it.
type dicedBytes struct{ r *rand.Rand }

// Read fills b.
func (d dicedBytes) Read(b []byte) (int, error) {
	for i := range b {
		b[i] = byte(d.r.Uint32())
	}
	return len(b), nil
}

// RunCluster carries out one run. The error is a *Failure if the run found that something is wrong,
// and otherwise says what is wrong with the options.
func RunCluster(o ClusterOptions) (ClusterResult, error) {
	known := o.Sabotage == NoSabotage || slices.Contains(ClusterSabotages(), o.Sabotage) ||
		twoVersions && o.Sabotage == EarlyRaise
	if o.Events < 1 || !known {
		return ClusterResult{}, fmt.Errorf("simulator options: %d events, sabotage %q", o.Events,
			o.Sabotage)
	}
	was := crand.Reader
	crand.Reader = dicedBytes{rand.New(rand.NewPCG(o.Seed, 13))}
	defer func() { crand.Reader = was }()
	c := newRun(o)
	defer c.leave()
	err := c.find(c.run)
	c.result.Events, c.result.Trace = c.step, c.trace.Sum64()
	c.result.Sequence, c.result.Frames = c.witness.last, len(c.frames)
	c.result.Trades = c.witness.fills
	return c.result, err
}

// newRun is a run before its first event.
func newRun(o ClusterOptions) *cluster {
	s := &simulation{options: Options{Seed: o.Seed, Faults: Duplicate, Say: o.Say},
		dice: rand.New(rand.NewPCG(o.Seed, 11)), trace: fnv.New64a(), witness: newWitness()}
	if o.Sabotage == TwiceTaken {
		s.options.Sabotage = SecondOrder
	}
	s.plan = draw(&s.options)
	s.now = s.plan.now
	s.traders = newTraders(&s.plan, rand.New(rand.NewPCG(o.Seed, 12)))
	c := &cluster{simulation: s, options: o, cut: map[link]bool{}, leaders: map[uint64]uint64{},
		results: map[engine.Sequence]engine.Receipt{}}
	c.result.Members = 3 + 2*s.dice.IntN(2)
	return c
}

// run starts the members, lets everything happen, heals it, and compares.
func (c *cluster) run() {
	c.say("%d members, %d wallets, %d markets", c.result.Members, c.plan.wallets, len(c.plan.markets))
	c.begin()
	c.after(c.dice.Int64N(200_000), c.fault)
	c.after(50_000, c.operate)
	if twoVersions {
		c.after(c.dice.Int64N(500_000), c.upgrade)
	}
	for c.step < c.options.Events {
		c.next()
	}
	c.heal()
}

// see takes a frame that a member shows to its readers: it is the same at all of them, for ever.
func (c *cluster) see(s *seat, f *engine.Frame) {
	c.check(f.Engine <= s.knows, "OLD: frame %d is of version %d, and the program of member %d knows "+
		"those up to %d", f.No, f.Engine, s.id, s.knows)
	if n := uint64(len(c.frames)); f.No <= n {
		c.check(bytes.Equal(c.frames[f.No-1], f.Bytes),
			"APART: member %d has another frame %d than was seen before", s.id, f.No)
		return
	}
	c.check(f.No == uint64(len(c.frames))+1, "member %d shows frame %d after %d", s.id, f.No,
		len(c.frames))
	c.frames = append(c.frames, bytes.Clone(f.Bytes))
	if err := c.witness.frame(f); err != nil {
		c.fail("frame %d: %v", f.No, err)
	}
	for i := range f.Commands {
		seq := f.First + engine.Sequence(i)
		r := engine.ReceiptOf(&f.Commands[i], seq, f.Time, f.EventsOf(i))
		c.results[seq] = r
		if told, is := c.witness.receipts[seq]; is {
			c.check(told == r, "LOST: Sequence %d was told %+v, and is %+v", seq, told, r)
		}
	}
	c.result.Digest = f.Digest
	c.say("frame %d of epoch %d is at member %d, up to Sequence %d", f.No, f.Epoch, s.id, f.Last())
}

// told is called with the answer to a Command that is in the journal.
func (c *cluster) told(r *engine.Receipt) {
	c.result.Acknowledged++
	c.newest = max(c.newest, r.Sequence)
	c.witness.receipts[r.Sequence] = *r
	if is, seen := c.results[r.Sequence]; seen {
		c.check(is == *r, "LOST: Sequence %d is told %+v, and is %+v", r.Sequence, *r, is)
	}
}

// leads notes who leads a term.
func (c *cluster) leads(term, id uint64) {
	who, known := c.leaders[term]
	c.check(!known || who == id, "TWO LEADERS in term %d: %d and %d", term, who, id)
	if !known {
		c.leaders[term] = id
		c.result.Terms++
		c.say("member %d leads term %d", id, term)
		if c.options.Seed%2 == 0 && !c.calm && c.chance(4) { // every other run has power failures
			c.after(c.dice.Int64N(4_000), c.blackout)
		}
	}
}

// How long a healed cluster may take, in microseconds, and how much it must then get done.
const (
	healing  = 20_000_000
	progress = 20 // frames
)

// heal ends all faults. The cluster must then go on, be whole again, and have all that was
// acknowledged.
func (c *cluster) heal() {
	c.say("healed")
	c.calm = true
	clear(c.cut)
	for _, s := range c.seats {
		s.paused = 0
		if !s.up && !s.waits() {
			s.start()
		}
	}
	goal, end := len(c.frames)+progress, c.at+healing
	for c.at < end && !(len(c.frames) >= goal && c.whole()) {
		c.next()
	}
	c.check(len(c.frames) >= goal, "STUCK: %d frames more, %d are expected",
		len(c.frames)-goal+progress, progress)
	c.check(c.whole(), "STUCK: it is not whole again: %s", c.picture())
	for last := c.at + 1_000_000; c.at < last && len(c.untold()) > 0; {
		c.next() // what was acknowledged a moment ago is on its way
	}
	if lost := c.untold(); len(lost) > 0 {
		c.fail("LOST: acknowledged, and in no frame: Sequences %v", lost)
	}
}

// untold are the Sequences that were acknowledged, and that no member shows.
func (c *cluster) untold() (all []engine.Sequence) {
	for seq := range c.witness.receipts {
		if seq > c.witness.last {
			all = append(all, seq)
		}
	}
	slices.Sort(all)
	return all
}

// whole reports whether all members are there, vote, and are not far behind.
func (c *cluster) whole() bool {
	for _, s := range c.seats {
		if !s.up || s.replaced != 0 || s.exchange.Version() < engine.Version ||
			s.head.Frame+progress < uint64(len(c.frames)) {
			return false
		}
		if v := s.core.Standing(); !slices.Contains(v.Voters, s.id) || len(v.Voters) != len(c.seats) {
			return false
		}
	}
	return true
}

// picture is how the members see things, for a failure.
func (c *cluster) picture() string {
	var all []string
	for _, s := range c.seats {
		text := fmt.Sprintf("member %d (replaced %d) is down", s.id, s.replaced)
		if s.up {
			text = fmt.Sprintf("member %d (replaced %d): %+v", s.id, s.replaced, s.core.Standing())
		}
		all = append(all, text)
	}
	return strings.Join(all, "; ")
}

// leave gives back what the members hold.
func (c *cluster) leave() {
	for _, s := range c.seats {
		s.abandon()
	}
}
