package raft

import (
	"log/slog"
	"testing"
	"time"

	pb "go.etcd.io/raft/v3/raftpb"
)

// TestLiarsQuestions: a gateway that asks too often, or refuses appends again and again, is not
// heard until the next tick; others are.
func TestLiarsQuestions(t *testing.T) {
	s := newStill(t, []Founder{{ID: 1}, {ID: 2}, {ID: 3}, {ID: 4, Learns: true},
		{ID: 5, Learns: true}})
	s.lead(1)
	c := s.cores[1]
	question := func(from uint64) *pb.Message {
		return &pb.Message{Type: pb.MsgReadIndex.Enum(), From: new(from), To: new(uint64(1)),
			Entries: []*pb.Entry{{Data: make([]byte, questionSize)}}}
	}
	reject := func(from uint64) *pb.Message {
		m := say(pb.MsgAppResp, from, 1, c.term)
		m.Reject, m.Index, m.RejectHint, m.LogTerm = new(true), new(c.last), new(uint64(1)), new(c.term)
		return m
	}
	for name, x := range map[string]struct {
		says func(uint64) *pb.Message
		most int
	}{"questions": {question, asksPerTick}, "refusals": {reject, rejectsPerTick}} {
		for range 2 {
			c.Tick()
			for i := range 1000 {
				if why := c.judge(x.says(4)); (why == taken) != (i < x.most) ||
					why != taken && why != dropOften {
					t.Fatalf("%s: number %d of the liar: %s", name, i, dropTexts[why])
				}
			}
			if why := c.judge(x.says(5)); why != taken {
				t.Errorf("%s of an honest gateway: %s", name, dropTexts[why])
			}
		}
	}
}

// TestLiarsReads: entries are read for a member where it goes on, and elsewhere only now and then;
// what is kept for one takes no room from another.
func TestLiarsReads(t *testing.T) {
	s := &storage{applied: 1_000_000, reading: map[uint64]bool{}, readers: map[uint64]*lagger{}}
	read := func(by, low uint64) bool {
		s.asker = by
		s.want(low)
		s.asker = 0
		all := s.reads()
		for _, r := range all {
			for i := range uint64(10) {
				r.entries = append(r.entries, &pb.Entry{Index: new(low + i), Term: new(uint64(1))})
			}
			delete(s.reading, r.low)
			s.keep(portion{r.by, r.entries})
			s.readers[r.by].end = r.low + uint64(len(r.entries))
		}
		return len(all) > 0
	}
	if !read(5, 100) {
		t.Fatal("nothing is read for an honest member")
	}
	jumps := 0
	for i := range uint64(400) {
		s.ticks++
		if read(4, 500_000-i*1000) {
			jumps++
		}
	}
	if jumps != 400/jumping {
		t.Errorf("%d reads here and there in 400 ticks", jumps)
	}
	if low := uint64(105); len(s.chunks) != 1+chunksOf {
		t.Errorf("%d chunks are kept", len(s.chunks))
	} else if found, err := s.old(low, low+1, 1<<20); err != nil || len(found) != 1 {
		t.Errorf("the honest member's entries are gone: %v", err)
	}
	for i := range uint64(20) { // in one tick
		if !read(5, 110+10*i) {
			t.Fatalf("chunk %d of one that reads on is not read", i)
		}
	}
	if s.want(77); len(s.wanted) != 0 {
		t.Error("read for nobody")
	}
}

// TestInbox: a member that says much takes nobody's turn, and one that cannot lead has a limit.
func TestInbox(t *testing.T) {
	b := newInbox(func(id uint64) bool { return id == 1 })
	from := func(id uint64) *pb.Message { return &pb.Message{From: new(id)} }
	room := 0
	for range 3 * messagesOf {
		if b.put(from(4)) {
			room++
		}
	}
	if room != messagesOf {
		t.Errorf("room for %d messages", room)
	}
	for range 10 {
		if !b.put(from(1)) || !b.put(from(5)) {
			t.Fatal("no room for others")
		}
	}
	heard := map[uint64]int{}
	b.take(30, func(m *pb.Message) { heard[m.GetFrom()]++ })
	if heard[1] != 10 || heard[5] != 10 || heard[4] != 10 {
		t.Errorf("heard %v of 30", heard)
	}
	for tick, want := range []int{messagesPerTick, messagesOf} {
		for range 4 {
			b.take(messagesOf, func(m *pb.Message) { heard[m.GetFrom()]++ })
		}
		if heard[4] != want {
			t.Errorf("tick %d: %d messages of the one who says much", tick, heard[4])
		}
		b.tick()
	}
	for range messagesOf {
		b.put(from(1))
	}
	n := 0
	b.take(2*messagesOf, func(*pb.Message) { n++ })
	if n != messagesOf {
		t.Errorf("%d of %d messages of a voter", n, messagesOf)
	}
}

// TestHeldBack: who cannot lead and says too much waits, so that its connection is not read.
// Nothing of it gets lost. A member that closes waits for nobody.
func TestHeldBack(t *testing.T) {
	m := &Peer{o: Options{Tick: time.Millisecond}, closing: make(chan struct{})}
	m.roll.Store(&roll{trusted: []uint64{1}})
	m.received = newInbox(m.Trusts)
	said := make(chan struct{})
	go func() {
		defer close(said)
		for range messagesOf + 1 {
			m.Receive(&pb.Message{From: new(uint64(4))})
		}
	}()
	select {
	case <-said:
		t.Fatal("more than there is room for was taken")
	case <-time.After(20 * time.Millisecond):
	}
	m.received.take(1, func(*pb.Message) {})
	<-said
	for range 2 * messagesOf { // of a voter it is lost
		m.Receive(&pb.Message{From: new(uint64(1))})
	}
	close(m.closing)
	m.Receive(&pb.Message{From: new(uint64(4))})
}

// TestBrief: a long message of a member that cannot lead is passed over, and what follows it is
// heard.
func TestBrief(t *testing.T) {
	a, heard := newAuthority(t), make(chan *pb.Message, 8)
	long := false
	n := NewNetwork(NetworkOptions{ID: 1, Cluster: clusterID, TLS: a.member(clusterID, 1),
		Receive: func(m *pb.Message) { heard <- m }, Brief: func(uint64) bool { return !long },
		Log: slog.New(slog.DiscardHandler)})
	at := listen(t, n)
	other := NewNetwork(NetworkOptions{ID: 2, Cluster: clusterID, TLS: a.member(clusterID, 2),
		Receive: func(*pb.Message) {}, Log: slog.New(slog.DiscardHandler)})
	defer other.Close()
	other.Route(1, at)
	send := func() (sizes []int) {
		big := say(pb.MsgApp, 2, 1, 1)
		big.Entries = []*pb.Entry{{Data: make([]byte, brief)}}
		// The connection is there once the first message has come.
		other.Send(big)
		other.Send(say(pb.MsgHeartbeatResp, 2, 1, 1))
		for {
			m := <-heard
			if sizes = append(sizes, len(m.GetEntries())); m.GetType() == pb.MsgHeartbeatResp {
				return sizes
			}
		}
	}
	if got := send(); len(got) != 1 {
		t.Errorf("a long message was kept: %v", got)
	}
	long = true
	if got := send(); len(got) != 2 {
		t.Errorf("a long message of one who may lead was not kept: %v", got)
	}
}

// TestAbstainBesideCalls: who led, starts again, and calls for votes in vain, because it lacks what
// the others have, keeps nobody that abstains from leading in the end.
func TestAbstainBesideCalls(t *testing.T) {
	s := newStill(t, []Founder{{ID: 1}, {ID: 2}, {ID: 3}})
	s.lead(1)
	s.cores[2].Abstains, s.cores[3].Abstains, s.down[1] = true, true, true
	for i := 0; !s.cores[2].Standing().Leads && !s.cores[3].Standing().Leads; i++ {
		if i > 3*abstaining {
			t.Fatal("nobody leads, although a majority is there")
		}
		for _, id := range []uint64{2, 3} {
			call := say(pb.MsgPreVote, 1, id, s.cores[id].term+1)
			call.Index, call.LogTerm = new(uint64(1)), new(uint64(1))
			s.cores[id].Step(call)
			s.cores[id].Tick()
		}
		s.settle()
	}
}

// TestAbstain: a voter that abstains begins no election and takes over from nobody, but votes. It
// leads if nobody else does for long, and the only voter of a cluster in any case.
func TestAbstain(t *testing.T) {
	s := newStill(t, []Founder{{ID: 1}, {ID: 2}, {ID: 3}})
	s.lead(1)
	s.cores[2].Abstains = true
	s.cores[1].Transfer(2)
	if s.settle(); s.cores[1].term != s.cores[2].term || s.cores[2].Standing().Leader != 1 {
		t.Fatalf("it took over: %+v", s.cores[2].Standing())
	}
	s.cores[3].Abstains = true
	s.down[1] = true
	wait := func() uint64 {
		for range 4 * electionTicks {
			s.cores[2].Tick()
			s.cores[3].Tick()
			s.settle()
		}
		return s.cores[2].Standing().Leader
	}
	term := s.cores[2].term
	s.cores[2].Forget(1)
	s.cores[2].Campaign()
	if wait(); s.cores[2].Standing().Leads || s.cores[3].Standing().Leads || s.cores[2].term != term {
		t.Fatalf("elected: %+v %+v", s.cores[2].Standing(), s.cores[3].Standing())
	}
	s.cores[3].Abstains = false
	if leader := wait(); leader != 3 {
		t.Errorf("%d leads, although 3 would and 2 votes", leader)
	}
	// The one that is fit lacks what only the others have: in the end one of those leads.
	s.down[1], s.down[3] = false, true
	s.cores[3].Abstains, s.cores[1].Abstains = false, true
	for i := 0; !s.cores[1].Standing().Leads && !s.cores[2].Standing().Leads; i++ {
		if s.cores[1].Tick(); i > 3*abstaining {
			t.Fatal("nobody leads, although a majority is there")
		}
		s.cores[2].Tick()
		s.settle()
	}
	only := newStill(t, []Founder{{ID: 1}})
	only.cores[1].Abstains = true
	for range 3 * electionTicks {
		only.cores[1].Tick()
		only.settle()
	}
	if !only.cores[1].Standing().Leads {
		t.Error("the only voter does not lead")
	}
}

// TestTrusts: what a member publishes of whom it trusts is what it judges by.
func TestTrusts(t *testing.T) {
	s := newStill(t, []Founder{{ID: 1}, {ID: 2}, {ID: 3}, {ID: 4, Learns: true},
		{ID: 5, Learns: true}})
	check := func(when string) {
		t.Helper()
		for id, c := range s.cores {
			all := map[uint64]bool{}
			for _, other := range trusted(c) {
				all[other] = true
			}
			for other := range uint64(10) {
				if c.trusts(other) != all[other] {
					t.Errorf("%s: member %d trusts %d: %v", when, id, other, c.trusts(other))
				}
			}
		}
	}
	check("before anything")
	s.lead(1)
	check("led")
	if err := s.cores[1].Change(Promote, 4); err == nil {
		t.Fatal("promoted at once")
	}
	s.settle()
	check("named")
	s.change(1, Promote, 4)
	check("promoted")
	if !s.cores[5].trusts(4) || s.cores[4].trusts(5) {
		t.Error("the wrong one is trusted")
	}
}
