package raft

import (
	"errors"
	"slices"
	"testing"

	"clobd/engine"
	"clobd/journal"

	pb "go.etcd.io/raft/v3/raftpb"
	"google.golang.org/protobuf/proto"
)

// say makes a message.
func say(kind pb.MessageType, from, to, term uint64) *pb.Message {
	return &pb.Message{Type: kind.Enum(), From: new(from), To: new(to), Term: new(term)}
}

// lead lets a member be elected, when all have forgotten who led before.
func (s *still) lead(id uint64) {
	s.t.Helper()
	for _, c := range s.cores {
		c.Forget(c.raw.BasicStatus().Lead)
	}
	s.cores[id].Campaign()
	s.settle()
	if v := s.cores[id].Standing(); !v.Leads {
		s.t.Fatalf("member %d is not elected: %+v", id, v)
	}
}

// change carries out a change of members, with the steps that it needs.
func (s *still) change(by uint64, what pb.ConfChangeType, id uint64) {
	s.t.Helper()
	err := ErrChange
	for range 3 {
		if err = s.cores[by].Change(what, id); err == nil {
			s.settle()
			return
		}
		s.settle()
	}
	s.t.Fatalf("%v %d: %v", what, id, err)
}

// TestNobodyElseLeads: what a learner or a stranger says changes neither term nor leader, whatever
// term it claims.
func TestNobodyElseLeads(t *testing.T) {
	s := newStill(t, []Founder{{ID: 1}, {ID: 2}, {ID: 3}, {ID: 4, Learns: true}})
	s.lead(1)
	term := s.cores[1].term
	for _, from := range []uint64{4, 9} {
		for _, kind := range []pb.MessageType{pb.MsgApp, pb.MsgHeartbeat, pb.MsgTimeoutNow, pb.MsgVote,
			pb.MsgPreVote, pb.MsgSnap, pb.MsgAppResp, pb.MsgHeartbeatResp, pb.MsgVoteResp,
			pb.MsgPreVoteResp, pb.MsgTransferLeader, pb.MsgReadIndexResp, pb.MsgForgetLeader} {
			for _, claims := range []uint64{0, term, term + 7} {
				for id, c := range s.cores {
					if id == from {
						continue
					}
					m := say(kind, from, id, claims)
					m.Context = []byte("CampaignTransfer")
					m.Index, m.LogTerm = new(uint64(1000)), new(claims)
					m.Reject = new(true)
					c.Step(m)
				}
				s.settle()
			}
		}
	}
	for id, c := range s.cores {
		if v := c.Standing(); v.Term != term || v.Leader != 1 {
			t.Errorf("member %d: term %d, leader %d", id, v.Term, v.Leader)
		}
	}
	if n := s.cores[2].Drops()["stranger"]; n == 0 {
		t.Error("nobody was refused")
	}
}

// malformed is a message that no sound member sends, and the reason for which it is dropped.
type malformed struct {
	m   *pb.Message
	why drop
}

// manyMalformed are such messages for member 2, whose log ends with entry last, or from it.
func manyMalformed(term, last uint64) map[string]malformed {
	entry := func(index, term uint64, kind pb.EntryType, data []byte) *pb.Entry {
		return &pb.Entry{Index: new(index), Term: new(term), Type: kind.Enum(), Data: data}
	}
	appends := func(index, at uint64, entries ...*pb.Entry) *pb.Message {
		m := say(pb.MsgApp, 1, 2, term)
		m.Index, m.LogTerm, m.Entries = new(index), new(at), entries
		return m
	}
	beyond := say(pb.MsgHeartbeat, 1, 2, term)
	beyond.Commit = new(last + 1)
	later := say(pb.MsgHeartbeat, 1, 2, term+1)
	later.Commit = new(last + 100)
	echo := say(pb.MsgHeartbeatResp, 2, 1, term)
	echo.Context = []byte{1, 2, 3}
	echoes := say(pb.MsgHeartbeatResp, 2, 1, term)
	echoes.Context = []byte{255, 255, 255, 255, 255, 255, 255, 1}
	far := say(pb.MsgAppResp, 2, 1, term)
	far.Index = new(uint64(highest - 1))
	nested := say(pb.MsgAppResp, 2, 1, term)
	nested.Responses = []*pb.Message{say(pb.MsgHup, 1, 1, 0)}
	remove, _ := proto.Marshal(&pb.ConfChange{Type: Remove.Enum()})
	return map[string]malformed{
		"nothing":               {nil, dropAddress},
		"from nobody":           {say(pb.MsgHeartbeat, 0, 2, term), dropAddress},
		"from itself":           {say(pb.MsgHeartbeat, 2, 2, term), dropAddress},
		"from a thread":         {say(pb.MsgHup, 1<<64-1, 2, term), dropAddress},
		"without a term":        {say(pb.MsgHeartbeat, 1, 2, 0), dropForm},
		"of the last term":      {say(pb.MsgHeartbeat, 1, 2, 1<<64-1), dropForm},
		"a commit beyond":       {beyond, dropLog},
		"later, beyond":         {later, dropLog},
		"a short echo":          {echo, dropForm},
		"an echo of nothing":    {echoes, dropLog},
		"an answer too far":     {far, dropLog},
		"messages in a message": {nested, dropForm},
		"no entry":              {appends(last, term, nil), dropForm},
		"a gap":                 {appends(last, term, entry(last+2, term, 0, nil)), dropForm},
		"a gap inside": {appends(last, term, entry(last+1, term, 0, nil),
			entry(last+3, term, 0, nil)), dropForm},
		"a term that falls":   {appends(last, term, entry(last+1, term-1, 0, nil)), dropForm},
		"a term to come":      {appends(last, term, entry(last+1, term+1, 0, nil)), dropForm},
		"an index without":    {appends(last, 0), dropForm},
		"a log that is older": {appends(last+1, 1), dropLog},
		"no frame": {appends(last, term, entry(last+1, term, 0, []byte("no frame"))),
			dropFrame},
		"no change": {appends(last, term, entry(last+1, term, pb.EntryConfChange, []byte{255})),
			dropForm},
		"a change of nobody": {appends(last, term, entry(last+1, term, pb.EntryConfChange, remove)),
			dropForm},
		"many changes": {appends(last, term, entry(last+1, term, pb.EntryConfChangeV2, nil)),
			dropForm},
		"a kind of its own": {appends(last, term, entry(last+1, term, 77, nil)), dropForm},
		"a snapshot of one who may not": {&pb.Message{Type: pb.MsgSnap.Enum(), From: new(uint64(8)),
			To: new(uint64(2)), Snapshot: &pb.Snapshot{}}, dropStranger},
		"a call to lead": {say(pb.MsgTimeoutNow, 3, 2, term), dropStranger},
		"a proposal":     {say(pb.MsgProp, 3, 1, term), dropKind},
	}
}

// TestMalformed: what a voter says and cannot be changes nothing and ends nothing.
func TestMalformed(t *testing.T) {
	s := newStill(t, []Founder{{ID: 1}, {ID: 2}, {ID: 3}})
	s.lead(1)
	term, last := s.cores[1].term, s.cores[2].last
	for name, x := range manyMalformed(term, last) {
		to := s.cores[2]
		if x.m.GetTo() == 1 {
			to = s.cores[1]
		}
		before := to.guard.dropped[x.why].Load()
		to.Step(x.m)
		s.settle()
		if to.guard.dropped[x.why].Load() != before+1 {
			t.Errorf("%s: not refused as %q: %v", name, dropTexts[x.why], to.Drops())
		}
	}
	if v := s.cores[2].Standing(); v.Term != term || v.Leader != 1 || v.Last != last {
		t.Errorf("it follows no more: %+v", v)
	}
	s.change(1, AddLearner, 7) // and goes on
	if v := s.cores[2].Standing(); len(v.Learners) != 1 {
		t.Errorf("it does not go on: %+v", v)
	}
}

// TestForeignFrame: a leader's frame that does not follow the log reaches no disk, and the member
// goes on with one that does.
func TestForeignFrame(t *testing.T) {
	s := newStill(t, []Founder{{ID: 1}, {ID: 2}, {ID: 3}})
	s.lead(1)
	l := s.cores[1].lead
	w := &scribe{Lead: l, x: engine.NewExchange(7), head: l.Head}
	good, next := w.frame(), w.frame()
	c := s.cores[2]
	m := say(pb.MsgApp, 1, 2, l.Term)
	m.Index, m.LogTerm = new(c.last), new(l.Term)
	m.Entries = []*pb.Entry{{Index: new(c.last + 1), Term: new(l.Term), Data: next.Bytes}}
	c.Step(m)
	s.settle()
	if c.guard.dropped[dropFrame].Load() != 1 {
		t.Error("a frame out of order is not refused")
	}
	for _, f := range []*engine.Frame{good, next} {
		if err := l.Append(f); err != nil {
			t.Fatal(err)
		}
	}
	s.settle()
	if _, head := c.storage.agreed.Committed(); head != next.Head() {
		t.Errorf("it has %+v", head)
	}
}

// TestNonsense: a change of members that makes no sense and is agreed on changes nothing, now and
// after a start.
func TestNonsense(t *testing.T) {
	s := newStill(t, []Founder{{ID: 1}})
	s.lead(1)
	for _, change := range []*pb.ConfChange{{Type: Remove.Enum(), NodeId: new(uint64(1))},
		{Type: AddLearner.Enum(), NodeId: new(uint64(1))}} {
		if err := s.cores[1].put(change); err != nil {
			t.Fatal(err)
		}
		s.settle()
		s.lead(1)
	}
	if v := s.cores[1].Standing(); !slices.Equal(v.Voters, []uint64{1}) {
		t.Errorf("%+v", v)
	}
	again, err := newStorage(s.cores[1].storage.agreed)
	if err != nil || !slices.Equal(again.conf.GetVoters(), []uint64{1}) {
		t.Errorf("after a start: %v %v", again, err)
	}
}

// TestBehind: a learner that knows none of the voters by now but one asks that one, and follows.
func TestBehind(t *testing.T) {
	s := newStill(t, []Founder{{ID: 1}, {ID: 2}, {ID: 3}, {ID: 4, Learns: true}})
	s.lead(1)
	s.down[4] = true
	for _, id := range []uint64{5, 6} {
		s.join(id, []uint64{1, 2, 3}, nil, journal.Ballot{})
		s.change(1, AddLearner, id)
		s.change(1, Promote, id)
		s.change(1, Remove, id-3)
	}
	s.down[1] = true
	s.lead(6)
	if s.down[1] = false; s.cores[4].trusts(6) {
		t.Fatal("it knows already")
	}
	s.down[4] = false
	for range 3 {
		for id, c := range s.cores {
			if id != 2 && id != 3 { // they were removed
				c.Tick()
			}
		}
		s.settle()
	}
	if v := s.cores[4].Standing(); v.Leader != 6 || !slices.Equal(v.Voters, []uint64{1, 5, 6}) {
		t.Errorf("%+v", v)
	}
	// Who is not trusted introduces nobody.
	hint := say(pb.MsgSnap, 9, 4, 1)
	hint.Snapshot = &pb.Snapshot{Metadata: &pb.SnapshotMetadata{Index: new(uint64(1000)),
		ConfState: &pb.ConfState{Voters: []uint64{9}}}}
	if s.cores[4].Step(hint); s.cores[4].trusts(9) {
		t.Error("it takes a stranger's word")
	}
}

// TestRemoveNeedsTheOthers: a voter goes only when most of those that stay have what is committed.
// What two of three have would otherwise be left on one disk, and nothing more be committed.
func TestRemoveNeedsTheOthers(t *testing.T) {
	s := newStill(t, []Founder{{ID: 1}, {ID: 2}, {ID: 3}})
	s.lead(1)
	s.down[2] = true
	if err := s.cores[1].Admit(4, "g@w"); err != nil { // 1 and 3 have that entry
		t.Fatal(err)
	}
	s.settle()
	if err := s.cores[1].Change(Remove, 3); !errors.Is(err, ErrChange) {
		t.Fatalf("3 goes, and 2 lacks an entry: %v", err)
	}
	if s.settle(); len(s.cores[1].Standing().Voters) != 3 {
		t.Fatal("the members change although that was refused")
	}
	s.down[2] = false
	for range 3 {
		s.cores[1].Tick()
		s.settle()
	}
	s.change(1, Remove, 3)
	if v := s.cores[2].Standing(); !slices.Equal(v.Voters, []uint64{1, 2}) {
		t.Errorf("%+v", v)
	}
}

// TestJoinLate: a member that joins when none of the first voters is there any more follows those
// that it was told of.
func TestJoinLate(t *testing.T) {
	s := newStill(t, []Founder{{ID: 1}})
	s.lead(1)
	s.join(2, []uint64{1}, nil, journal.Ballot{})
	s.change(1, AddLearner, 2)
	s.change(1, Promote, 2)
	s.change(1, Remove, 1)
	s.down[1] = true
	s.lead(2)
	s.join(3, []uint64{2}, nil, journal.Ballot{})
	s.change(2, AddLearner, 3)
	for range 3 {
		s.cores[2].Tick()
		s.settle()
	}
	if v := s.cores[3].Standing(); !slices.Equal(v.Learners, []uint64{3}) || v.Leader != 2 {
		t.Errorf("%+v", v)
	}
}

// TestNominated: a learner votes only once all voters know that it will. One of four may miss its
// promotion, and then be needed to elect it.
func TestNominated(t *testing.T) {
	s := newStill(t, []Founder{{ID: 1}, {ID: 2}, {ID: 3}, {ID: 4}})
	s.lead(1)
	s.join(5, []uint64{1, 2, 3, 4}, nil, journal.Ballot{})
	s.change(1, AddLearner, 5)
	s.down[4] = true
	for range 3 {
		if err := s.cores[1].Change(Promote, 5); !errors.Is(err, ErrChange) {
			t.Fatal("promoted although a voter cannot know:", err)
		}
		s.settle()
	}
	s.down[4] = false
	s.cores[1].Tick()
	s.settle()
	s.down[4] = true // it misses the promotion
	if err := s.cores[1].Change(Promote, 5); err != nil {
		t.Fatal(err)
	}
	s.settle()
	s.cores[1].Tick()
	s.settle()
	s.down[3] = true // and this one a frame behind it
	l := s.cores[1].lead
	f := (&scribe{Lead: l, x: engine.NewExchange(7), head: l.Head}).frame()
	if err := l.Append(f); err != nil {
		t.Fatal(err)
	}
	s.settle()
	if frame, _ := l.Committed(); frame != 1 || len(s.cores[5].Standing().Voters) != 5 ||
		len(s.cores[4].Standing().Voters) != 4 {
		t.Fatalf("frame %d; %+v; %+v", frame, s.cores[5].Standing(), s.cores[4].Standing())
	}
	s.down = map[uint64]bool{1: true, 2: true}
	s.lead(5)
}

// TestConfirm: a member is up to date only when a majority says so after the question.
func TestConfirm(t *testing.T) {
	s := newStill(t, []Founder{{ID: 1}, {ID: 2}, {ID: 3}, {ID: 4, Learns: true}})
	s.lead(1)
	l := s.cores[1].lead
	w := &scribe{Lead: l, x: engine.NewExchange(7), head: l.Head}
	s.down[4] = true
	f := w.frame()
	if err := l.Append(f); err != nil {
		t.Fatal(err)
	}
	s.settle()
	if asked := l.Ask(); l.Proved() >= asked {
		t.Error("proved before anybody was asked")
	}
	s.settle()
	if l.Proved() != 1 || l.Confirm(1) != nil {
		t.Error("not proved", l.Proved())
	}
	s.down[4] = false // it lacks the frame
	var heads []engine.Head
	var wrong error
	note := func(h engine.Head, err error) {
		heads, wrong = append(heads, h), errors.Join(wrong, err)
	}
	for _, id := range []uint64{1, 2, 4} {
		s.cores[id].Confirm(note)
		s.settle()
	}
	s.cores[1].Tick()
	s.settle()
	if len(heads) != 3 || heads[0] != f.Head() || heads[1] != f.Head() || heads[2] != f.Head() ||
		wrong != nil {
		t.Errorf("%+v %v", heads, wrong)
	}
	// Cut off, it knows nothing.
	s.down[2], s.down[3] = true, true
	asked := l.Ask()
	s.cores[4].Confirm(note)
	s.cores[1].Confirm(note)
	s.settle()
	if l.Proved() >= asked || len(heads) != 3 {
		t.Error("proved without a majority")
	}
	s.cores[2].leader = false
	s.down[1], s.down[2], s.down[3] = true, false, false
	s.lead(2)
	s.down[1] = false
	s.cores[2].Tick()
	s.settle()
	if err := l.Confirm(asked); !errors.Is(err, ErrLost) {
		t.Error("the lead is lost:", err)
	}
	for range enough + 1 {
		s.cores[1].Tick()
	}
	if wrong == nil && len(heads) < 4 {
		t.Error("nobody tells that there is no answer")
	}
}
