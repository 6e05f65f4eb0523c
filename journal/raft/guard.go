package raft

import (
	"encoding/binary"
	"slices"
	"sync/atomic"

	"clobd/engine"
	"clobd/journal"

	pb "go.etcd.io/raft/v3/raftpb"
	"google.golang.org/protobuf/proto"
)

// drop is why a message of another member is not given to the library.
type drop int

const (
	taken        drop = iota
	dropAddress       // it is not from another member to this one
	dropKind          // members do not send each other such messages
	dropStranger      // only who may lead sends it, and the sender may not
	dropForm          // it is malformed
	dropLog           // it speaks of entries that cannot be
	dropFrame         // a frame in it does not follow the one before
	dropOften         // the sender asks too often
	drops
)

var dropTexts = [drops]string{"", "address", "kind", "stranger", "form", "log", "frame", "often"}

const (
	// highest bounds terms and indexes: what is larger would overflow one day.
	highest = 1 << 62
	// asksPerTick bounds the questions of each other member that this one answers between two ticks.
	// An honest one has one question at a time on its way.
	asksPerTick = 128
	// rejectsPerTick bounds the refused appends of each other member that this one looks at between
	// two ticks: each is a search in the log, and makes it send from another place.
	rejectsPerTick = 4
	// quiet is how many ticks pass between two lines of the log on drops of one kind.
	quiet = 200
)

// guard judges the messages of other members before the library sees them. What the library takes
// can change the term, the log and the leader, and some of what is malformed would end the process.
type guard struct {
	dropped [drops]atomic.Uint64
	spoke   [drops]uint64 // the tick of the last line in the log
	ticks   uint64
	counts  map[uint64]*count // of other members, since the last tick
	reads   uint64            // questions that the library was given in this term

	told      []uint64          // voters that this member was told of
	nominated map[uint64]uint64 // learners that will vote → index of the entry that says so
	hint      *pb.ConfState     // the members up to an entry that is not here, as a voter says
	until     uint64            // index of that entry
	wondered  uint64            // the tick at which this member last asked who votes

	// heads are the ends of the frames up to entries that are not applied, by index. There can be
	// several if an entry was replaced.
	heads map[uint64][]judged
	frame engine.Frame
}

// count is what a member has said between two ticks that costs much.
type count struct{ asks, rejects int }

// tick begins to count anew.
func (g *guard) tick() {
	g.ticks++
	clear(g.counts)
}

// of is the count of a member.
func (g *guard) of(id uint64) *count {
	t := g.counts[id]
	if t == nil {
		if t = new(count); g.counts == nil {
			g.counts = map[uint64]*count{}
		}
		g.counts[id] = t
	}
	return t
}

// judged is the end of the frames up to an entry of a term.
type judged struct {
	term uint64
	head engine.Head
}

// Drops is how many messages of other members were refused, by reason. Any goroutine may call it.
func (c *Core) Drops() map[string]uint64 {
	all := map[string]uint64{}
	for i := taken + 1; i < drops; i++ {
		all[dropTexts[i]] = c.guard.dropped[i].Load()
	}
	return all
}

// refuse counts a message that was dropped.
func (c *Core) refuse(m *pb.Message, why drop) {
	g := &c.guard
	n := g.dropped[why].Add(1)
	if n > 1 && g.ticks < g.spoke[why]+quiet {
		return
	}
	g.spoke[why] = g.ticks
	c.log.Warn("a message of another member is refused", "reason", dropTexts[why], "so_far", n,
		"kind", m.GetType().String(), "from", m.GetFrom(), "term", m.GetTerm(), "index", m.GetIndex(),
		"commit", m.GetCommit(), "entries", len(m.GetEntries()))
}

// trusts reports whether a member may lead or be elected, as far as this one knows: it votes, or is
// named as one who will. Who follows behind others may not know of the newest voters: what it was
// told counts until its own log has got as far.
func (c *Core) trusts(id uint64) bool {
	g := &c.guard
	_, nominated := g.nominated[id]
	return nominated || slices.Contains(c.conf.GetVoters(), id) ||
		slices.Contains(c.conf.GetVotersOutgoing(), id) ||
		!c.member(c.ID) && slices.Contains(g.told, id) ||
		c.applied < g.until && slices.Contains(g.hint.GetVoters(), id)
}

// trusted are the members that one trusts.
func trusted(c *Core) (all []uint64) {
	g := &c.guard
	for _, some := range [][]uint64{c.conf.GetVoters(), c.conf.GetVotersOutgoing(), g.told,
		g.hint.GetVoters()} {
		for _, id := range some {
			if c.trusts(id) && !slices.Contains(all, id) {
				all = append(all, id)
			}
		}
	}
	for id := range g.nominated {
		if !slices.Contains(all, id) {
			all = append(all, id)
		}
	}
	slices.Sort(all)
	return all
}

// member reports whether the log names a member.
func (c *Core) member(id uint64) bool {
	return slices.Contains(c.conf.GetVoters(), id) || slices.Contains(c.conf.GetLearners(), id)
}

// judge says whether the library may have a message. Messages of kind MsgSnap end here.
func (c *Core) judge(m *pb.Message) drop {
	from, term := m.GetFrom(), m.GetTerm()
	switch {
	case m == nil || from == 0 || from == c.ID || from >= highest || m.GetTo() != c.ID:
		return dropAddress
	case term >= highest || m.GetIndex() >= highest || len(m.GetResponses()) > 0:
		return dropForm
	}
	switch m.GetType() {
	case pb.MsgSnap:
		return c.introduce(m)
	case pb.MsgReadIndex:
		return c.mayAsk(m)
	}
	if term == 0 { // the library would take it for one of its own
		return dropForm
	}
	switch m.GetType() {
	case pb.MsgApp, pb.MsgHeartbeat, pb.MsgTimeoutNow, pb.MsgVote, pb.MsgPreVote, pb.MsgReadIndexResp:
		if !c.trusts(from) {
			c.wonder(term)
			return dropStranger
		}
	case pb.MsgAppResp, pb.MsgHeartbeatResp, pb.MsgVoteResp, pb.MsgPreVoteResp:
		if term > c.term && !c.trusts(from) { // it would end this member's term
			return dropStranger
		}
	default:
		return dropKind
	}
	return c.fits(m)
}

// fits judges the contents of a message.
func (c *Core) fits(m *pb.Message) drop {
	switch m.GetType() {
	case pb.MsgApp:
		return c.follows(m)
	case pb.MsgHeartbeat:
		if m.GetCommit() > c.committed {
			c.gather() // now last is the end of the log
		}
		if m.GetCommit() > max(c.committed, c.last) {
			return dropLog
		}
	case pb.MsgTimeoutNow:
		if m.GetTerm() != c.term || m.GetFrom() != c.raw.BasicStatus().Lead {
			return dropStranger
		}
	case pb.MsgAppResp:
		if m.GetTerm() == c.term && (m.GetIndex() > c.last || m.GetReject() &&
			m.GetRejectHint() > m.GetIndex()) {
			return dropLog
		}
		if m.GetReject() {
			t := c.guard.of(m.GetFrom())
			if t.rejects++; t.rejects > rejectsPerTick {
				return dropOften
			}
		}
	case pb.MsgHeartbeatResp:
		return c.echoes(m)
	case pb.MsgReadIndexResp:
		if all := m.GetEntries(); len(all) != 1 || all[0] == nil ||
			m.GetFrom() != c.raw.BasicStatus().Lead {
			return dropForm
		}
	}
	return taken
}

// echoes judges an answer to a heartbeat, which repeats the number of the last question in it.
func (c *Core) echoes(m *pb.Message) drop {
	switch b := m.GetContext(); {
	case len(b) == 0:
		return taken
	case len(b) != 8:
		return dropForm
	case binary.LittleEndian.Uint64(b) > c.guard.reads && m.GetTerm() == c.term:
		return dropLog
	}
	return taken
}

// follows judges entries: they have no gaps, terms that never fall, and frames that follow each
// other. Where the log of the sender differs from this one, the library refuses them anyway.
func (c *Core) follows(m *pb.Message) drop {
	index, term := m.GetIndex(), m.GetLogTerm()
	if index == 0 != (term == 0) || term > m.GetTerm() {
		return dropForm
	}
	if index > c.applied && term < c.own { // the sender would lack what is committed
		return dropLog
	}
	head, known := c.headAt(index, term)
	var heads []engine.Head
	for _, e := range m.GetEntries() {
		if e == nil || e.GetIndex() != index+1 || e.GetTerm() < term || e.GetTerm() > m.GetTerm() ||
			e.GetTerm() == 0 || len(e.GetData()) > longest || !legible(e) {
			return dropForm
		}
		if index, term = e.GetIndex(), e.GetTerm(); !known {
			continue
		}
		if e.GetType() == pb.EntryNormal && len(e.GetData()) > 0 {
			f := &c.guard.frame
			if engine.DecodeFrame(e.GetData(), f) != nil || journal.Follows(f, head, term) != nil {
				return dropFrame
			}
			head = f.Head()
		}
		if is, there := c.headAt(index, term); there && is != head {
			return dropFrame // a leader has one entry at a place
		}
		heads = append(heads, head)
	}
	for i, h := range heads {
		e := m.GetEntries()[i]
		c.guard.noteHead(e.GetIndex(), e.GetTerm(), h)
	}
	return taken
}

// legible reports whether an entry is a frame, empty, or a change of members that can be read.
func legible(e *pb.Entry) bool {
	switch e.GetType() {
	case pb.EntryNormal:
		return true
	case pb.EntryConfChange:
		_, err := changeOf(byte(e.GetType()), e.GetData())
		return err == nil
	}
	return false
}

// headAt is the end of the frames up to an entry, if this member knows that entry and has not
// applied anything behind it.
func (c *Core) headAt(index, term uint64) (engine.Head, bool) {
	if index == c.applied {
		_, head := c.storage.agreed.Committed()
		return head, term == c.own
	}
	for _, h := range c.guard.heads[index] {
		if h.term == term {
			return h.head, true
		}
	}
	return engine.Head{}, false
}

func (g *guard) noteHead(index, term uint64, head engine.Head) {
	for _, h := range g.heads[index] {
		if h.term == term {
			return
		}
	}
	g.heads[index] = append(g.heads[index], judged{term, head})
}

// ahead is a message that the library will not have to search the log for: who says that it differs
// at an old term would let this member read its whole log. Terms never fall, so half of what is
// left is out with each look.
func (c *Core) ahead(m *pb.Message) *pb.Message {
	hint, term := m.GetRejectHint(), m.GetLogTerm()
	if m.GetType() != pb.MsgAppResp || !m.GetReject() || term == 0 || m.GetTerm() != c.term {
		return m
	}
	low, high := uint64(0), min(hint, c.last) // the answer is in [low, high]
	for low < high {
		middle := high - (high-low)/2
		if t, err := c.storage.Term(middle); err != nil || t > term {
			high = middle - 1
		} else {
			low = middle
		}
	}
	if low == hint {
		return m
	}
	m = proto.Clone(m).(*pb.Message)
	m.RejectHint = new(low)
	return m
}

// wonder asks the voters that this member knows who votes, because somebody else speaks as if he
// led a term that is not over: this member may be behind. An answer is a message of the same kind
// with the members in it.
func (c *Core) wonder(term uint64) {
	g := &c.guard
	if term < c.term || g.wondered == g.ticks+1 {
		return
	}
	g.wondered = g.ticks + 1
	known := slices.Concat(c.conf.GetVoters(), g.hint.GetVoters())
	if !c.member(c.ID) {
		known = append(known, g.told...)
	}
	slices.Sort(known)
	for _, id := range slices.Compact(known) {
		if id != c.ID {
			c.work.Send = append(c.work.Send, &pb.Message{Type: pb.MsgSnap.Enum(), From: new(c.ID),
				To: new(id), Term: new(c.term)})
		}
	}
}

// introduce answers another member who votes, or takes the answer of one whom it trusts.
func (c *Core) introduce(m *pb.Message) drop {
	g := &c.guard
	s := m.GetSnapshot()
	switch {
	case s == nil && !c.guard.often(m.GetFrom()):
		return dropOften
	case s == nil:
		c.work.Send = append(c.work.Send, &pb.Message{Type: pb.MsgSnap.Enum(), From: new(c.ID),
			To: new(m.GetFrom()), Term: new(c.term), Snapshot: &pb.Snapshot{
				Metadata: &pb.SnapshotMetadata{Index: new(c.applied), ConfState: c.conf}}})
	case !c.trusts(m.GetFrom()):
		return dropStranger
	case s.GetMetadata().GetIndex() > max(c.applied, g.until) && s.GetMetadata().GetIndex() < highest:
		g.hint, g.until = s.GetMetadata().GetConfState(), s.GetMetadata().GetIndex()
	}
	return taken
}

// often counts a question of another member, and reports whether it may be answered.
func (g *guard) often(id uint64) bool {
	t := g.of(id)
	t.asks++
	return t.asks <= asksPerTick
}

// mayAsk judges the question of another member what is committed.
func (c *Core) mayAsk(m *pb.Message) drop {
	all := m.GetEntries()
	switch {
	case len(all) != 1 || all[0] == nil || len(all[0].GetData()) != questionSize || m.GetTerm() != 0:
		return dropForm
	case !c.member(m.GetFrom()):
		return dropStranger
	case !c.guard.often(m.GetFrom()):
		return dropOften
	}
	return taken
}

// learn notes what an entry of the log says of members, before it is committed: who is to vote may
// be the only one who can be elected then.
func (g *guard) learn(e *pb.Entry) {
	if change, err := changeOf(byte(e.GetType()), e.GetData()); err == nil && nominates(change) {
		g.nominated[change.GetNodeId()] = e.GetIndex()
	}
}

// nominates reports whether a change says that a learner will vote.
func nominates(change *pb.ConfChange) bool {
	return change.GetType() == AddLearner && change.GetId() == nomination
}

// nomination is in the Id of a change that admits a learner who will vote, or says so later.
const nomination = 1
