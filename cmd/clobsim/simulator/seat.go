package simulator

import (
	"errors"
	"fmt"
	"io"
	"log/slog"
	"math/rand/v2"
	"slices"

	"clobd/engine"
	"clobd/engine/view"
	"clobd/journal"
	"clobd/journal/raft"

	"github.com/cockroachdb/pebble/v2/vfs"
)

// seat is a place for one member: its disk, and its process while that is up.
type seat struct {
	c        *cluster
	id       uint64
	replaced uint64       // the member that sat here before, while the change is not complete; 0: none
	told     []uint64     // the voters when it sat down
	knows    uint16       // the latest version of the rules that its program knows
	damaged  bool         // its journal has to be made anew before it starts
	goal     journal.Goal // how far, as a leader has said since
	fs       *vfs.MemFS
	old      *vfs.MemFS // the disk as it once was, for OldDisk
	up       bool
	life     int   // counts processes
	paused   int64 // until then nothing happens in the process
	skew     int64 // of its clock, in milliseconds

	journal *journal.Journal
	agreed  *journal.Agreed
	core    *raft.Core
	pending []*raft.Write // not on the disk
	busy    bool          // the disk is at work
	noting  bool          // the mark is about to be written
	ballot  journal.Ballot
	skipped map[*raft.Write]bool // votes that are not written, for UnsyncedVote
	bytes   int                  // written by this process

	// The state that all committed frames make.
	tail     *journal.Tail
	exchange *engine.Exchange
	board    *view.Board
	head     engine.Head

	writer *leader // nil: it may not append
}

// errDamaged is why a member does not start.
var errDamaged = errors.New("damaged")

// clusterJournal is the ID of a cluster's journal.
const clusterJournal = 4242

// liar is a gateway that all members know of, and that only lies.
const liar = 1_000_000

// begin makes the first members, all voters, with empty disks.
func (c *cluster) begin() {
	var voters []uint64
	var founders []raft.Founder
	for range c.result.Members {
		c.lastID++
		voters, founders = append(voters, c.lastID), append(founders, raft.Founder{ID: c.lastID})
	}
	founders = append(founders, raft.Founder{ID: liar, Learns: true})
	for _, id := range voters {
		words, ballot, err := raft.Found(engine.Head{}, founders)
		if err != nil {
			c.fail("%v", err)
		}
		s := &seat{c: c, id: id, told: voters, knows: c.fresh()}
		c.seats = append(c.seats, s)
		s.format(words, ballot)
	}
	for _, s := range c.seats {
		s.start()
	}
}

// format gives the seat a new disk with the journal of a member.
func (s *seat) format(words []journal.Entry, b journal.Ballot) {
	s.fs, s.old, s.damaged, s.goal = vfs.NewCrashableMem(), nil, false, journal.Goal{}
	j, err := s.open(nil)
	if err == nil {
		_, err = journal.Enroll(j, words, b)
		err = errors.Join(err, j.Close())
	}
	if err != nil {
		s.c.fail("member %d: %v", s.id, err)
	}
}

// open opens the journal and replays it into a state, nil for none.
func (s *seat) open(each func(*engine.Frame) error) (*journal.Journal, error) {
	j, err := journal.Open(journal.Options{Dir: dataFolder, FS: s.fs, ID: clusterJournal,
		MemTable: 1 << 20, Log: slog.New(slog.DiscardHandler), Words: io.Discard, Exit: func(int) {}})
	if err != nil {
		return nil, err
	}
	s.exchange, s.board, s.head = engine.NewExchange(s.c.options.Seed), view.NewBoard(), engine.Head{}
	if s.head, err = j.Recover(s.exchange, each); err != nil {
		return nil, errors.Join(err, j.Close())
	}
	return j, nil
}

// start begins a process. A member whose journal is damaged heals first.
func (s *seat) start() {
	if s.damaged {
		return // heal starts it
	}
	if err := s.boot(); err != nil {
		s.c.check(errors.Is(err, errDamaged), "member %d: %v", s.id, err)
		s.c.say("member %d is damaged", s.id)
		s.damaged = true
		s.c.after(1_000+s.c.dice.Int64N(50_000), s.heal)
	}
}

// boot is start; the error wraps errDamaged if the journal is not good.
func (s *seat) boot() error {
	s.life++
	s.pending, s.busy, s.noting, s.bytes, s.writer = nil, false, false, 0, nil
	s.skipped = map[*raft.Write]bool{}
	j, err := s.open(func(f *engine.Frame) error {
		s.board.Publish(f)
		s.c.see(s, f)
		return nil
	})
	if err == nil {
		s.journal, s.agreed, s.up = j, journal.Member(j), true
		s.ballot = s.agreed.Ballot()
		err = s.readable()
	}
	if err == nil {
		s.core, err = raft.NewCore(raft.CoreOptions{ID: s.id, Journal: j,
			Voters: s.told, Log: slog.New(slog.DiscardHandler)})
	}
	if err != nil {
		s.abandon()
		return fmt.Errorf("%w: %w", errDamaged, err)
	}
	s.tail = j.Tail(s.head.Frame + 1)
	s.c.say("member %d is up: frame %d, last entry %+v, ballot %+v", s.id, s.head.Frame,
		s.agreed.Last(), s.agreed.Ballot())
	s.tick(s.life)
	s.pump()
	return nil
}

// readable reads all entries once: what is damaged shows at a start, not when somebody needs it.
func (s *seat) readable() error {
	last := s.agreed.Last().Index
	for i := uint64(1); i <= last; {
		some, err := s.agreed.Entries(i, last+1, 1<<20)
		if err != nil {
			return err
		}
		i += uint64(len(some))
	}
	return nil
}

// in plans something in this process, later if that is paused.
func (s *seat) in(wait int64, life int, do func()) {
	s.c.after(wait, func() {
		switch {
		case !s.up || s.life != life:
		case s.paused > s.c.at:
			s.in(s.paused-s.c.at, life, do)
		default:
			do()
			s.pump()
		}
	})
}

// tick is the member's clock for timeouts.
func (s *seat) tick(life int) {
	s.in(10_000+s.c.dice.Int64N(300), life, func() {
		s.core.Abstains = s.off()
		s.core.Tick()
		s.tick(life)
	})
}

// off reports whether the member's clock is more than a second from the median of its own and those
// of the voters that it can see: then it is not to lead. Of an even number both in the middle must
// be as far.
func (s *seat) off() bool {
	var ahead []int64
	voters := s.core.Standing().Voters
	for _, o := range s.c.seats {
		if o == s || o.up && o.paused <= s.c.at && slices.Contains(voters, o.id) {
			ahead = append(ahead, o.skew-s.skew)
		}
	}
	slices.Sort(ahead)
	low, high := ahead[(len(ahead)-1)/2], ahead[len(ahead)/2]
	return low > 1000 || high < -1000
}

// pump does what the Core wants, and lets everybody see what follows.
func (s *seat) pump() {
	if !s.up {
		return
	}
	w, err := s.core.Ready()
	if err != nil {
		s.c.fail("member %d: %v", s.id, err)
	}
	v := s.core.Standing()
	if v.Leads {
		s.c.leads(v.Term, s.id)
	}
	for _, m := range w.Send {
		s.c.send(m)
	}
	for _, r := range w.Read {
		s.in(100+s.c.dice.Int64N(20_000), s.life, func() {
			if err := r.Do(); err != nil {
				s.c.fail("member %d reads: %v", s.id, err)
			}
			s.core.HasRead(r)
		})
	}
	for _, x := range w.Write {
		s.pending = append(s.pending, x)
		s.early(x)
	}
	s.follow()
	if w.Lead != nil {
		s.lead(w.Lead)
	}
	if s.writer != nil {
		s.writer.settle()
	}
	s.flush()
}

// early lets answers leave too soon.
func (s *seat) early(w *raft.Write) {
	vote := len(w.Entries) == 0 && w.Ballot.Term != 0 &&
		(w.Ballot.Term != s.ballot.Term || w.Ballot.Vote != s.ballot.Vote)
	if w.Ballot.Term != 0 {
		s.ballot = w.Ballot
	}
	switch s.c.options.Sabotage {
	case EarlyAnswer:
		if len(w.Entries) > 0 {
			s.answer(w)
		}
	case UnsyncedVote:
		if vote {
			s.skipped[w] = true
			s.answer(w)
		}
	}
}

func (s *seat) answer(w *raft.Write) {
	for _, m := range w.Answers() {
		s.c.send(m)
	}
}

// flush lets the disk work on what is to be written, one batch at a time.
func (s *seat) flush() {
	if s.busy || len(s.pending) == 0 {
		return
	}
	s.busy = true
	n, wait := len(s.pending), 100+s.c.dice.Int64N(2_000)
	if !s.c.calm && s.c.chance(60) {
		wait += s.c.dice.Int64N(400_000)
	}
	s.in(wait, s.life, func() {
		done := s.pending[:n]
		s.pending, s.busy = s.pending[n:], false
		for _, w := range done {
			s.persist(w)
			s.answer(w)
			s.core.Written(w)
		}
		s.note()
		if s.bytes > logBytes {
			s.restart()
		}
	})
}

// persist makes a Write durable.
func (s *seat) persist(w *raft.Write) {
	last := s.agreed.Last()
	if len(w.Entries) > 0 && w.Entries[0].Index <= last.Index {
		s.c.result.Replaced += int(last.Index - w.Entries[0].Index + 1)
	}
	switch s.c.options.Sabotage {
	case UnsyncedVote:
		if s.skipped[w] {
			return // in memory, until the ballot is written for another reason
		}
	case ForgottenVote:
		w.Ballot.Vote = 0
	case KeptTail:
		w.Entries = slices.DeleteFunc(w.Entries, func(e journal.Entry) bool {
			return e.Index <= last.Index
		})
	}
	for i := range w.Entries {
		s.bytes += len(w.Entries[i].Data) + 64
	}
	err := w.Begin()
	if err == nil {
		err = w.Settle()
	}
	if err != nil {
		s.c.fail("member %d writes: %v", s.id, err)
	}
}

// note writes the mark, a little later.
func (s *seat) note() {
	if s.noting {
		return
	}
	s.noting = true
	s.in(2_000, s.life, func() {
		s.noting = false
		if _, err := s.agreed.Note(); err != nil {
			s.c.fail("member %d: %v", s.id, err)
		}
	})
}

// follow replays what readers are shown.
func (s *seat) follow() {
	for {
		b, there, err := s.tail.Poll()
		if err != nil {
			s.c.fail("member %d: %v", s.id, err)
		}
		if !there {
			break
		}
		f := new(engine.Frame)
		if err := engine.DecodeFrame(b, f); err != nil {
			s.c.fail("member %d: %v", s.id, err)
		}
		if err := s.exchange.ApplyFrame(f); err != nil {
			s.c.fail("member %d: %v", s.id, err)
		}
		s.board.Publish(f)
		s.head = f.Head()
		s.c.see(s, f)
	}
	if s.c.options.Sabotage == EarlyRead {
		s.peek()
	}
}

// peek shows what is not committed.
func (s *seat) peek() {
	from, _ := s.agreed.Committed()
	all, err := s.agreed.Entries(from+1, s.agreed.Last().Index+1, 1<<20)
	if err != nil {
		s.c.fail("member %d: %v", s.id, err)
	}
	for i := range all {
		f := new(engine.Frame)
		if all[i].Kind == 0 && len(all[i].Data) > 0 && engine.DecodeFrame(all[i].Data, f) == nil {
			s.c.see(s, f)
		}
	}
}

// clock is what the member's wall clock says.
func (s *seat) clock() engine.Time {
	return s.c.plan.now + engine.Time(s.c.at/1000+s.skew)
}

// crash ends the process. Of what was not on the disk a first part is, and the next write may be
// torn.
func (s *seat) crash() {
	c := s.c
	if !s.up {
		return
	}
	c.result.Crashes++
	keep := c.dice.IntN(len(s.pending) + 1)
	for _, w := range s.pending[:keep] {
		s.persist(w)
	}
	disk := s.fs.CrashClone(vfs.CrashCloneCfg{})
	if keep < len(s.pending) && c.chance(2) {
		c.result.Torn++
		s.persist(s.pending[keep])
		seed := c.dice.Uint64()
		m := &mixer{sure: disk, all: s.fs.CrashClone(vfs.CrashCloneCfg{}),
			to: vfs.NewCrashableMem(), torn: true,
			dice: func(name string) *rand.Rand { return rand.New(rand.NewPCG(seed, hashed(name))) }}
		if err := m.folder(""); err != nil {
			c.fail("crash: %v", err)
		}
		disk = m.to
	}
	c.say("member %d crashes, %d of %d writes are done", s.id, keep, len(s.pending))
	s.gone()
	s.abandon()
	s.fs = disk
	if c.options.Sabotage == OldDisk {
		if s.old != nil && c.chance(2) {
			s.fs = s.old
		}
		s.old = s.fs.CrashClone(vfs.CrashCloneCfg{})
	}
	c.after(1_000+c.dice.Int64N(700_000), func() {
		if !s.up && !s.waits() {
			s.start()
		}
	})
}

// stop ends the process in order.
func (s *seat) stop() {
	for _, w := range s.pending {
		s.persist(w)
	}
	s.gone()
	s.abandon()
}

// restart ends the process in order, and begins the next one.
func (s *seat) restart() {
	s.c.say("member %d starts again", s.id)
	s.stop()
	s.start()
}

// gone tells the callers of a leader that there will be no answer.
func (s *seat) gone() {
	if s.writer != nil {
		s.writer.drop()
		s.writer = nil
	}
}

// abandon closes the journal, whose disk nobody uses any more, or whose process has ended in order.
func (s *seat) abandon() {
	if s.up {
		s.up, s.pending = false, nil
		if err := s.journal.Close(); err != nil && !errors.Is(err, journal.ErrClosed) {
			s.c.say("member %d: %v", s.id, err)
		}
	}
}
