package raft

import (
	"cmp"
	"errors"
	"fmt"
	"log/slog"
	"maps"
	"math"
	"slices"

	"clobd/engine"
	"clobd/journal"

	"go.etcd.io/raft/v3"
	pb "go.etcd.io/raft/v3/raftpb"
	"google.golang.org/protobuf/proto"
)

// Settings of the library: with a Tick of 50 ms an election begins 0.5 to 1 s after the last word
// of a leader.
const (
	electionTicks  = 10
	heartbeatTicks = 1
	messageBytes   = 256 << 10
	abstaining     = 6 * electionTicks // how long a voter lets others be elected before it
	inflight       = 64
	inflightBytes  = 4 << 20
	committedBytes = 4 << 20
	uncommitted    = 64 << 20
)

// Core is one member's part of the agreement, without clock, goroutine, disk or network: what it is
// told decides what it does. Its owner calls Tick at equal intervals, Step with messages, Ready
// after each of the calls, and carries out the Work. One goroutine owns it.
type Core struct {
	ID uint64
	// Abstains is set by the owner for a voter that is not to lead: it begins no election and takes
	// over from nobody, but votes as ever. It leads in the end if for abstaining ticks nobody else
	// does: who would be fit may lack entries that only the unfit have.
	Abstains bool

	raw     *raft.RawNode
	storage *storage
	propose func(*Lead, proposal) error
	confirm func(*Lead)
	log     *slog.Logger
	guard   guard
	asks    asks
	work    Work // gathered, not handed out

	lead      *Lead // nil: this member may not append
	leader    bool
	leads     uint64 // the member that leads, 0 if none is known
	heard     uint64 // the tick at which that one was heard last
	term      uint64
	last      uint64 // index of the last entry handed out to be written
	lastTerm  uint64 // of that entry
	committed uint64
	applied   uint64
	own       uint64 // term of the last entry applied
	changed   uint64 // index of the last change of members in the log
	conf      *pb.ConfState
	names     map[uint64]string // of the members, as they were admitted
	removed   map[uint64]bool
	ballot    journal.Ballot // handed out to be written, but for what is owed
	owes      bool           // the next Write has to say what is committed
	failed    error
}

// Message is what members send each other.
type Message = pb.Message

// Work is what a Core wants done.
type Work struct {
	Send  []*pb.Message // to other members, in any order, each or not
	Write []*Write      // in this order
	Read  []*Read       // in any order, apart from all others; then Core.HasRead
	Lead  *Lead         // not nil: from now on this member may append
}

// Write is a change of the journal. Its owner calls Begin, then Settle, each in the order of the
// Writes, then sends the Answers, and hands the Write to Core.Written.
type Write struct {
	Entries []journal.Entry // replace those from the first one's index on
	Ballot  journal.Ballot  // zero: unchanged

	storage *storage
	by      uint64 // the member
	entries []*pb.Entry
	after   []*pb.Message
}

// CoreOptions make a Core.
type CoreOptions struct {
	ID      uint64
	Journal *journal.Journal // recovered, and a member's
	Log     *slog.Logger     // nil: slog.Default
	// Voters are those that this member was told of. They count while its own log does not name it: a
	// member that joins cannot know better.
	Voters []uint64
	// propose hands a frame from Lead.Append to the Core's goroutine, which calls take, and confirm
	// lets that call ask; nil: they are one.
	propose func(*Lead, proposal) error
	confirm func(*Lead)
}

// NewCore makes the Core of a member whose journal was recovered.
func NewCore(o CoreOptions) (*Core, error) {
	a := journal.Member(o.Journal)
	if a == nil || o.ID == 0 {
		return nil, fmt.Errorf("member %d: the journal %s belongs to no cluster, or the id is 0", o.ID,
			o.Journal.Path)
	}
	s, err := newStorage(a)
	if err != nil {
		return nil, fmt.Errorf("member %d: %w", o.ID, err)
	}
	c := &Core{ID: o.ID, storage: s, propose: o.propose, confirm: o.confirm,
		log: cmp.Or(o.Log, slog.Default()), term: s.hard.GetTerm(), last: s.last.Index,
		lastTerm: s.last.Term, committed: s.hard.GetCommit(), applied: s.hard.GetCommit(),
		ballot: journal.Ballot{Term: s.hard.GetTerm(), Vote: s.hard.GetVote(),
			Commit: s.hard.GetCommit()},
		conf: s.conf, names: s.names, removed: s.removed,
		guard: guard{told: o.Voters, nominated: s.nominated, heads: map[uint64][]judged{}}}
	if c.propose == nil {
		c.propose, c.confirm = c.take, c.ask
	}
	if err := c.readTail(); err != nil {
		return nil, fmt.Errorf("member %d: %w", o.ID, err)
	}
	c.raw, err = raft.NewRawNode(&raft.Config{ID: o.ID, Storage: s, Applied: c.applied,
		ElectionTick: electionTicks, HeartbeatTick: heartbeatTicks,
		PreVote: true, CheckQuorum: true, StepDownOnRemoval: true,
		AsyncStorageWrites: true, DisableProposalForwarding: true,
		MaxSizePerMsg: messageBytes, MaxInflightMsgs: inflight, MaxInflightBytes: inflightBytes,
		MaxCommittedSizePerReady: committedBytes, MaxUncommittedEntriesSize: uncommitted,
		Logger: &logger{c.log}})
	if err != nil {
		return nil, fmt.Errorf("member %d: %w", o.ID, err)
	}
	return c, nil
}

// readTail computes the heads of the frames that may still be taken back.
func (c *Core) readTail() (err error) {
	if c.own, err = c.storage.term(c.applied); err != nil {
		return err
	}
	_, head := c.storage.agreed.Committed()
	heads := c.storage.agreed.Tail()
	for i := c.applied + 1; i <= c.last; i++ {
		term, err := c.storage.term(i)
		if err != nil {
			return err
		}
		if h, is := heads[i]; is {
			head = h
		}
		c.guard.noteHead(i, term, head)
	}
	return nil
}

// Tick tells that time passes.
func (c *Core) Tick() {
	c.guard.tick()
	c.storage.ticks++
	if c.Abstains && !c.leader && c.guard.ticks < c.heard+abstaining && len(c.conf.GetVoters()) > 1 {
		c.raw.TickQuiesced() // the last leader's time runs out as ever, and no election begins here
	} else {
		c.raw.Tick()
	}
	c.asks.tick(c)
	if c.owes {
		c.owes = false
		c.work.Write = append(c.work.Write, &Write{storage: c.storage, by: c.ID, Ballot: c.ballot})
	}
}

// Step takes a message of another member, whom the caller knows for sure. What that one may not
// say, and what cannot be, is dropped.
func (c *Core) Step(m *pb.Message) {
	why := c.judge(m)
	switch {
	case why != taken:
		c.refuse(m, why)
	case m.GetType() == pb.MsgSnap: // introduce was all
	case m.GetType() == pb.MsgReadIndex && !sure(c): // asked again in some ticks
	case m.GetType() == pb.MsgTimeoutNow && c.Abstains: // who leads goes on
	default:
		if m.GetType() == pb.MsgReadIndex {
			c.guard.reads++
		}
		// Who led and starts again is still c.leads to those that abstain: its calls for votes are no
		// sign that anybody leads.
		if kind := m.GetType(); m.GetFrom() == c.leads && (kind == pb.MsgApp || kind == pb.MsgHeartbeat) {
			c.heard = c.guard.ticks
		}
		c.storage.asker = m.GetFrom()
		_ = c.raw.Step(c.ahead(m)) // its errors are of messages that count for nothing
		c.storage.asker = 0
	}
}

// sure reports whether a member leads and an entry of its term is committed. The library keeps what
// it is asked before, even into a later term; a member that does not lead would pass it on.
func sure(c *Core) bool { return c.leader && c.own == c.term }

// Unreachable tells that messages to a member get lost.
func (c *Core) Unreachable(id uint64) { c.raw.ReportUnreachable(id) }

// Later is a message that tells another member of a term: if it leads in an earlier one, it leads
// no more.
func Later(from, to, term uint64) *Message {
	return &pb.Message{Type: pb.MsgAppResp.Enum(), From: new(from), To: new(to), Term: new(term)}
}

// Forget tells that the process of a member is gone. If that one led, it leads no more for this
// member, which then votes for others at once. Forget reports whether nobody leads now, and how
// many other voters should campaign before this one does: if all began together nobody would win.
// A member that still hears the leader refuses them all.
func (c *Core) Forget(id uint64) (before int, leaderless bool) {
	voters := c.conf.GetVoters()
	if c.raw.BasicStatus().Lead == id && id != c.ID {
		_ = c.raw.ForgetLeader()
	}
	for _, v := range voters {
		if v != id && v < c.ID {
			before++
		}
	}
	return before, c.raw.BasicStatus().Lead == raft.None && slices.Contains(voters, c.ID)
}

// Campaign begins an election, unless a leader is known.
func (c *Core) Campaign() {
	if c.raw.BasicStatus().Lead == raft.None && !c.Abstains {
		_ = c.raw.Campaign()
	}
}

// Transfer hands the leadership over to another voter, if this member leads and that one keeps up.
func (c *Core) Transfer(to uint64) { c.raw.TransferLeader(to) }

// The changes of membership.
const (
	AddLearner = pb.ConfChangeAddLearnerNode // it gets all entries and has no vote
	Promote    = pb.ConfChangeAddNode        // it has a vote
	Remove     = pb.ConfChangeRemoveNode     // for ever: an id is never used again
)

// ErrChange is the error of a change of membership that cannot be made now.
var ErrChange = errors.New("the members cannot be changed now")

// ErrRemoved is the error of a change that would let a member come back.
var ErrRemoved = errors.New("the member was removed")

// Change proposes a change of one member. It takes effect when it is committed, and may be
// forgotten if the leadership is lost before. Only a member that may append can propose one, once
// the change before it is committed. Whether a learner has enough to be promoted is for the caller
// to judge: Match tells. A learner is promoted in two steps: the first Change names it as one who
// will vote, and returns ErrChange; the next one promotes it once all voters know the first.
func (c *Core) Change(what pb.ConfChangeType, id uint64) error {
	change := &pb.ConfChange{Type: what.Enum(), NodeId: new(id)}
	if what != Promote || !slices.Contains(c.conf.GetLearners(), id) {
		return c.change(change)
	}
	index, nominated := c.guard.nominated[id]
	if !nominated {
		err := c.put(&pb.ConfChange{Type: AddLearner.Enum(), NodeId: new(id),
			Id: new(uint64(nomination))})
		return cmp.Or(err, fmt.Errorf("%w: %d is named as a voter first", ErrChange, id))
	}
	for _, v := range c.conf.GetVoters() {
		if v != c.ID && c.Match(v) < index {
			return fmt.Errorf("%w: %d does not know yet that %d will vote", ErrChange, v, id)
		}
	}
	return c.change(change)
}

// Admit is Change for a new learner that says what it is called and where it is.
func (c *Core) Admit(id uint64, name string) error {
	return c.change(&pb.ConfChange{Type: AddLearner.Enum(), NodeId: new(id), Context: []byte(name)})
}

func (c *Core) change(change *pb.ConfChange) error {
	what, id := change.GetType(), change.GetNodeId()
	voters, learns := c.conf.GetVoters(), slices.Contains(c.conf.GetLearners(), id)
	votes := slices.Contains(voters, id)
	switch {
	case what == AddLearner && (votes || learns):
		return fmt.Errorf("%w: %d is a member", ErrChange, id)
	case c.removed[id]:
		return fmt.Errorf("%w: %d was removed, and no id is used again", ErrRemoved, id)
	case what == Promote && !learns:
		return fmt.Errorf("%w: %d is no learner", ErrChange, id)
	case what == Remove && !votes && !learns:
		return fmt.Errorf("%w: %d is no member", ErrChange, id)
	case what == Remove && votes && len(voters) == 1:
		return fmt.Errorf("%w: %d is the last voter", ErrChange, id)
	case what == Remove && votes && !c.stands(id):
		return fmt.Errorf("%w: without %d too few voters would have all that is acknowledged", ErrChange, id)
	}
	return c.put(change)
}

// stands reports whether most of the voters but one answer and have what is committed. What that
// one helped to commit would otherwise be on the disks of fewer than a majority, and nothing would
// be committed until the others are there.
func (c *Core) stands(without uint64) bool {
	status, n := c.raw.Status(), 0
	for id, p := range status.Progress {
		if id != without && !p.IsLearner && p.Match >= status.HardState.GetCommit() &&
			(id == c.ID || p.RecentActive) {
			n++
		}
	}
	return 2*n > len(c.conf.GetVoters())-1
}

// put proposes a change that makes sense.
func (c *Core) put(change *pb.ConfChange) error {
	if c.lead == nil || c.changed > c.applied {
		return ErrChange
	}
	if err := c.raw.ProposeConfChange(change); err != nil {
		return fmt.Errorf("%w: %w", ErrChange, err)
	}
	c.changed = math.MaxUint64 // Ready knows the entry
	return nil
}

// take proposes a frame of a Lead.
func (c *Core) take(l *Lead, p proposal) error {
	if c.failed != nil {
		l.end(c.failed)
	}
	if c.lead != l {
		l.end(ErrLost)
	} else if err := c.raw.Propose(p.bytes); err != nil {
		// What comes after a frame that was dropped cannot follow: the Lead is over. Another begins
		// when all that is in the log is committed.
		c.close(fmt.Errorf("%w: frame %d: %w", ErrLost, p.head.Frame, err))
	} else {
		l.own = append(l.own, p)
		return nil
	}
	_, over := l.Committed()
	return over
}

// close ends the Lead, if there is one.
func (c *Core) close(why error) {
	if c.lead != nil {
		c.lead.end(why)
		c.lead = nil
	}
}

// gather takes what the library wants done.
func (c *Core) gather() {
	for c.failed == nil && c.raw.HasReady() {
		rd := c.raw.Ready()
		if rd.HardState != nil {
			if c.term != rd.HardState.GetTerm() {
				c.guard.reads = 0
			}
			c.term, c.committed = rd.HardState.GetTerm(), rd.HardState.GetCommit()
		}
		if rd.SoftState != nil {
			c.leader = rd.SoftState.RaftState == raft.StateLeader
			c.leads = rd.SoftState.Lead
		}
		if c.lead != nil && (!c.leader || c.lead.Term != c.term) {
			c.close(ErrLost)
		}
		for _, m := range rd.Messages {
			switch m.GetTo() {
			case raft.LocalAppendThread:
				c.write(m)
			case raft.LocalApplyThread:
				c.commit(m)
			default:
				c.work.Send = append(c.work.Send, m)
			}
		}
		if c.lead != nil && rd.HardState != nil {
			c.lead.advance(c.committed)
		}
		for _, s := range rd.ReadStates {
			c.asks.answer(c, s.Index, s.RequestCtx)
		}
	}
}

// Ready is what is to be done because of the calls before. The error is final: the journal and the
// agreement do not fit.
func (c *Core) Ready() (w Work, err error) {
	c.gather()
	if c.failed == nil && c.storage.unread != nil {
		c.failed = fmt.Errorf("member %d: %w", c.ID, c.storage.unread)
	}
	w, c.work = c.work, Work{}
	w.Read = c.storage.reads()
	if c.lead == nil && c.failed == nil && c.mayLead() {
		_, head := c.storage.agreed.Committed()
		c.lead = newLead(c, head)
		c.changed = 0 // everything in the log is applied; a change that was taken back counts no more
		w.Lead = c.lead
	}
	if c.failed != nil {
		c.close(c.failed)
	}
	return w, c.failed
}

// mayLead reports whether this member leads, and all that is in the log is committed and applied:
// the last leaders' entries, and one of its own term.
func (c *Core) mayLead() bool {
	return c.leader && c.own == c.term && c.applied == c.last &&
		c.raw.BasicStatus().LeadTransferee == raft.None
}

// write makes a Write of what the library wants to be stored. What only says that more is committed
// waits for the next Write, or for a tick: nobody counts on it, and each Write costs every member
// three wake-ups.
func (c *Core) write(m *pb.Message) {
	w := &Write{storage: c.storage, by: c.ID, entries: m.GetEntries(), after: m.GetResponses()}
	if m.Term != nil {
		w.Ballot = journal.Ballot{Term: m.GetTerm(), Vote: m.GetVote(), Commit: m.GetCommit()}
	}
	last := c.ballot
	last.Commit = w.Ballot.Commit
	if len(w.entries) == 0 && len(w.after) == 0 && w.Ballot == last {
		c.ballot, c.owes = w.Ballot, true
		return
	}
	if w.Ballot == (journal.Ballot{}) {
		w.Ballot = c.ballot
	}
	c.ballot, c.owes = w.Ballot, false
	for _, e := range w.entries {
		row := toJournal(e)
		if row.Kind != 0 {
			c.changed = e.GetIndex()
			c.guard.learn(e)
		}
		frame := row.Kind == 0 && len(row.Data) > 0
		if l := c.lead; frame && l != nil && len(l.own) > 0 && e.GetTerm() == l.Term {
			row.Head = l.own[0].head
			l.own = l.own[1:]
			l.waiting = append(l.waiting, inLog{e.GetIndex(), row.Head.Frame})
		}
		c.rememberHead(&row, frame)
		w.Entries = append(w.Entries, row)
	}
	c.work.Write = append(c.work.Write, w)
}

// rememberHead notes the end of the frames up to an entry that goes to the log. Those of others
// were judged when they came; this member's own follow the last entry.
func (c *Core) rememberHead(row *journal.Entry, frame bool) {
	head, known := c.headAt(row.Index, row.Term)
	if !known {
		head, known = c.headAt(c.last, c.lastTerm)
	} else if frame {
		row.Head = head
	}
	if frame && row.Head == (engine.Head{}) { // proposed by a Lead that is over
		f := &c.guard.frame
		if known = known && engine.DecodeFrame(row.Data, f) == nil; known {
			row.Head = f.Head()
		}
	}
	if frame {
		head = row.Head
	}
	if c.last, c.lastTerm = row.Index, row.Term; known {
		c.guard.noteHead(row.Index, row.Term, head)
	}
}

// commit takes entries that are committed and on this member's disk.
func (c *Core) commit(m *pb.Message) {
	for _, e := range m.GetEntries() {
		row := toJournal(e)
		if err := c.storage.agreed.Commit(&row); err != nil {
			c.failed = fmt.Errorf("member %d: %w", c.ID, err)
			return
		}
		c.applied, c.own = e.GetIndex(), e.GetTerm()
		c.storage.applied = c.applied
		delete(c.guard.heads, c.applied)
		if row.Kind == 0 {
			continue
		}
		change, err := changeOf(row.Kind, row.Data)
		if err != nil {
			c.failed = fmt.Errorf("member %d: entry %d: %w", c.ID, row.Index, err)
			return
		}
		if _, err := changed(c.conf, change); err != nil {
			c.log.Error("a change of members is ignored, here and by all others", "entry", row.Index,
				"error", err)
			continue
		}
		c.conf = c.raw.ApplyConfChange(change)
		name(c.names, change)
		if change.GetType() == Remove {
			delete(c.guard.nominated, change.GetNodeId())
			c.removed[change.GetNodeId()] = true
		}
	}
	c.asks.reach(c)
	for _, r := range m.GetResponses() {
		_ = c.raw.Step(r)
	}
}

// Begin gives the Write to the journal.
func (w *Write) Begin() error {
	if err := w.storage.agreed.Write(w.Entries, w.Ballot); err != nil {
		return err
	}
	w.storage.note(w.entries)
	return nil
}

// Settle waits until the Write is durable.
func (w *Write) Settle() error { return w.storage.agreed.Settle() }

// Answers are the messages to other members that may leave once the Write is durable.
func (w *Write) Answers() (send []*pb.Message) {
	for _, m := range w.after {
		if m.GetTo() != w.by {
			send = append(send, m)
		}
	}
	return send
}

// Written tells the Core that a Write is durable.
func (c *Core) Written(w *Write) {
	for _, m := range w.after {
		if m.GetTo() == c.ID {
			_ = c.raw.Step(m)
		}
	}
}

// Standing says how a member sees the cluster.
type Standing struct {
	ID, Term, Leader uint64 // Leader is 0 if none is known
	Leads            bool
	Last, Applied    uint64 // indexes
	Voters, Learners []uint64
	Names            map[uint64]string // of members that said what they are called
	Head             engine.Head       // of the frames committed
	Highest          uint64            // id that a member has, or ever had
}

// Standing says how this member sees the cluster.
func (c *Core) Standing() Standing {
	b := c.raw.BasicStatus()
	_, head := c.storage.agreed.Committed()
	return Standing{ID: c.ID, Term: b.HardState.GetTerm(), Leader: b.Lead, Leads: c.leader,
		Last: c.last, Applied: c.applied, Head: head, Voters: c.conf.GetVoters(),
		Learners: c.conf.GetLearners(), Names: maps.Clone(c.names),
		Highest: highestOf(c.conf, c.removed)}
}

// Common is the least number of those that the members have said, 0 while one of them has not.
func (s *Standing) Common(said map[uint64]uint16) (least uint16) {
	for i, id := range slices.Concat(s.Voters, s.Learners) {
		if n := said[id]; i == 0 || n < least {
			least = n
		}
	}
	return least
}

// highestOf is the highest id among members and those who were.
func highestOf(conf *pb.ConfState, removed map[uint64]bool) (highest uint64) {
	for _, id := range slices.Concat(conf.GetVoters(), conf.GetLearners()) {
		highest = max(highest, id)
	}
	for id := range removed {
		highest = max(highest, id)
	}
	return highest
}

// known is the leader, 0 if none is known, and the term.
func (c *Core) known() [2]uint64 { return [2]uint64{c.leads, c.term} }

// Match is how far the log of a member is known to be that of this one, which leads; 0 if it is
// unknown.
func (c *Core) Match(id uint64) uint64 {
	if p, ok := c.raw.Status().Progress[id]; ok {
		return p.Match
	}
	return 0
}

// Founder is one of the first members of a cluster.
type Founder struct {
	ID     uint64
	Name   string // what it is called and where it is; the cluster keeps it and does not read it
	Learns bool   // it has no vote
}

// Found makes the first words of a cluster, whose first voters have equal journals that end with
// head, and the Ballot with which all of them begin, for journal.Enroll. Only one of them needs the
// journal, the words and the Ballot: it leads until another voter has them. The others may begin as
// those do who join later.
func Found(head engine.Head, founders []Founder) (
	words []journal.Entry, b journal.Ballot, err error) {
	b = journal.Ballot{Term: max(1, head.Epoch), Commit: head.Frame + uint64(len(founders))}
	for i, f := range founders {
		what := Promote
		if f.Learns {
			what = AddLearner
		}
		change := &pb.ConfChange{Type: what.Enum(), NodeId: new(f.ID)}
		if f.Name != "" {
			change.Context = []byte(f.Name)
		}
		data, err := proto.Marshal(change)
		if err != nil {
			return nil, b, err
		}
		words = append(words, journal.Entry{Kind: byte(pb.EntryConfChange), Data: data,
			EntryID: journal.EntryID{Index: head.Frame + uint64(i) + 1, Term: b.Term}})
	}
	return words, b, nil
}
