package raft

import (
	"errors"
	"log/slog"
	"testing"

	"clobd/engine"
	"clobd/journal"

	"github.com/cockroachdb/pebble/v2/vfs"
	pb "go.etcd.io/raft/v3/raftpb"
)

// still is members whose clocks stand still.
type still struct {
	t     testing.TB
	cores map[uint64]*Core
	down  map[uint64]bool
}

func newStill(t testing.TB, founders []Founder) *still {
	t.Helper()
	s := &still{t: t, cores: map[uint64]*Core{}, down: map[uint64]bool{}}
	var voters []uint64
	for _, f := range founders {
		if !f.Learns {
			voters = append(voters, f.ID)
		}
	}
	for _, f := range founders {
		var words []journal.Entry
		var ballot journal.Ballot
		if f.ID == founders[0].ID { // the others get everything from it
			var err error
			if words, ballot, err = Found(engine.Head{}, founders); err != nil {
				t.Fatal(err)
			}
		}
		s.join(f.ID, voters, words, ballot)
	}
	return s
}

// join adds a member with a new journal, which was told of voters.
func (s *still) join(id uint64, told []uint64, words []journal.Entry, ballot journal.Ballot) {
	s.t.Helper()
	n := &box{t: s.t, id: id, fs: vfs.NewCrashableMem(), dir: "data"}
	j := n.open()
	if _, err := journal.Enroll(j, words, ballot); err != nil {
		s.t.Fatal(err)
	}
	core, err := NewCore(CoreOptions{ID: id, Journal: j, Voters: told,
		Log: slog.New(slog.DiscardHandler)})
	if err != nil {
		s.t.Fatal(err)
	}
	s.cores[id] = core
	s.t.Cleanup(func() {
		if err := j.Close(); err != nil {
			s.t.Error(err)
		}
	})
}

// settle carries messages and writes until nothing is left to do.
func (s *still) settle() {
	s.t.Helper()
	for s.round(func(*Work) {}) {
	}
}

// round lets each member do what it wants to, which look may change, and then hear what was sent.
// It reports whether anything was done.
func (s *still) round(look func(*Work)) (busy bool) {
	s.t.Helper()
	var mail []*pb.Message
	do := func(err error) {
		s.t.Helper()
		if busy = true; err != nil {
			s.t.Fatal(err)
		}
	}
	for id, c := range s.cores {
		if s.down[id] {
			continue
		}
		w, err := c.Ready()
		if err != nil {
			s.t.Fatal(err)
		}
		look(&w)
		mail = append(mail, w.Send...)
		for _, r := range w.Read {
			do(r.Do())
			c.HasRead(r)
		}
		for _, x := range w.Write {
			do(x.Begin())
			do(x.Settle())
			mail = append(mail, x.Answers()...)
			c.Written(x)
		}
	}
	for _, m := range mail {
		if to := s.cores[m.GetTo()]; to != nil && !s.down[m.GetTo()] {
			to.Step(m)
			busy = true
		}
	}
	return busy
}

// TestFounders: one folder with the first words is enough for a cluster, and all members learn from
// the log what the others are called and who votes.
func TestFounders(t *testing.T) {
	s := newStill(t, []Founder{{ID: 1, Name: "a@x"}, {ID: 2, Name: "b@y"}, {ID: 3, Name: "c@z"},
		{ID: 4, Name: "g@w", Learns: true}})
	s.cores[1].Campaign()
	s.settle()
	for id, c := range s.cores {
		v := c.Standing()
		if v.Leader != 1 || len(v.Voters) != 3 || len(v.Learners) != 1 || v.Names[4] != "g@w" ||
			len(v.Names) != 4 {
			t.Errorf("member %d: %+v", id, v)
		}
	}
	if err := s.cores[1].Admit(5, "h@v"); err != nil {
		t.Fatal(err)
	}
	s.settle()
	if v := s.cores[4].Standing(); v.Names[5] != "h@v" || len(v.Learners) != 2 {
		t.Errorf("after another one was admitted: %+v", v)
	}
	if err := s.cores[1].Change(Remove, 5); err != nil {
		t.Fatal(err)
	}
	s.settle()
	if v := s.cores[4].Standing(); len(v.Names) != 4 || len(v.Learners) != 1 || v.Highest != 5 {
		t.Errorf("after it was removed: %+v", v)
	}
	if err := s.cores[1].Admit(5, "i@u"); !errors.Is(err, ErrRemoved) {
		t.Errorf("its id is used again: %v", err)
	}
}

// TestForget: when the leader's process is gone, the others elect another one without waiting for
// a timeout. While one of them still hears the leader nobody is elected against it.
func TestForget(t *testing.T) {
	s := newStill(t, []Founder{{ID: 1}, {ID: 2}, {ID: 3}, {ID: 4, Learns: true}})
	s.cores[1].Campaign()
	s.settle()
	if _, leaderless := s.cores[3].Forget(2); leaderless {
		t.Error("a follower is missed as if it led")
	}
	s.down[1] = true
	before, leaderless := s.cores[2].Forget(1)
	if before != 0 || !leaderless {
		t.Errorf("the first voter waits for %d others, leaderless %v", before, leaderless)
	}
	s.cores[2].Campaign()
	s.settle()
	if v := s.cores[2].Standing(); v.Leads {
		t.Error("elected although another member still hears the leader")
	}
	if before, leaderless := s.cores[3].Forget(1); before != 1 || !leaderless {
		t.Errorf("the second voter waits for %d others, leaderless %v", before, leaderless)
	}
	if _, leaderless := s.cores[4].Forget(1); leaderless {
		t.Error("a learner would campaign")
	}
	s.cores[2].Campaign()
	s.settle()
	for _, id := range []uint64{2, 3, 4} {
		if v := s.cores[id].Standing(); v.Leader != 2 {
			t.Errorf("member %d: %+v", id, v)
		}
	}
}

// TestOldEntries: what a member that is behind needs, and is in memory no more, is read apart from
// the Core, and that member gets all of it; what is new goes on meanwhile.
func TestOldEntries(t *testing.T) {
	s := newStill(t, []Founder{{ID: 1}, {ID: 2}, {ID: 3}, {ID: 4, Learns: true}})
	s.lead(1)
	l := s.cores[1].lead
	w := &scribe{Lead: l, x: engine.NewExchange(7), head: l.Head}
	write := func(frames int) {
		t.Helper()
		for range frames {
			if err := l.Append(w.frame()); err != nil {
				t.Fatal(err)
			}
			s.settle()
		}
	}
	s.down[4] = true
	write(40)
	store := s.cores[1].storage
	store.mu.Lock()
	store.recent, store.bytes = nil, 0 // as after a long time
	store.mu.Unlock()
	s.down[4] = false
	// Until the read is done nothing is sent to it, and the others get what is new.
	reads, sent, old := []*Read(nil), 0, s.cores[1].applied
	look := func(x *Work) {
		reads, x.Read = append(reads, x.Read...), nil
		for _, m := range x.Send {
			if m.GetTo() == 4 && len(m.GetEntries()) > 0 && m.GetEntries()[0].GetIndex() <= old {
				sent++
			}
		}
	}
	if err := l.Append(w.frame()); err != nil {
		t.Fatal(err)
	}
	for range 20 { // a probe that was refused is repeated after the next heartbeat
		s.cores[1].Tick()
		s.round(look)
	}
	if frame, _ := l.Committed(); len(reads) == 0 || sent != 0 || frame != 41 {
		t.Fatalf("%d reads, %d sent before, frame %d is committed", len(reads), sent, frame)
	}
	for _, r := range reads {
		if err := r.Do(); err != nil {
			t.Fatal(err)
		}
		s.cores[1].HasRead(r)
	}
	for range 3 {
		s.cores[1].Tick()
		s.settle()
	}
	if _, head := s.cores[4].storage.agreed.Committed(); head != w.head {
		t.Errorf("it has %+v of %+v", head, w.head)
	}
}

// TestOwed: what only says that more is committed goes out with the next Write, or with a tick.
func TestOwed(t *testing.T) {
	s := newStill(t, []Founder{{ID: 1, Name: "a@x"}})
	c := s.cores[1]
	c.Campaign()
	s.settle()
	c.Tick()
	s.settle()
	var writes []*Write
	note := func(w *Work) { writes = append(writes, w.Write...) }
	rounds := func() {
		writes = nil
		for s.round(note) {
		}
	}
	before := c.committed
	for i := range uint64(2) {
		if err := c.raw.Propose(nil); err != nil {
			t.Fatal(err)
		}
		rounds()
		if len(writes) != 1 || c.committed != before+i+1 {
			t.Fatalf("entry %d: %d Writes, committed %d after %d", i, len(writes), c.committed, before)
		}
	}
	if got := writes[0].Ballot.Commit; got != before+1 {
		t.Errorf("the second entry's Write says that %d is committed, not %d", got, before+1)
	}
	c.Tick()
	rounds()
	if len(writes) != 1 || writes[0].Ballot.Commit != before+2 || writes[0].Ballot.Term == 0 {
		t.Errorf("a tick later: %d Writes", len(writes))
	}
	c.Tick()
	if rounds(); len(writes) != 0 {
		t.Errorf("two ticks later: %d Writes", len(writes))
	}
}
