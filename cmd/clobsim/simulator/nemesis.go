package simulator

import (
	"slices"

	"clobd/journal"
	"clobd/journal/raft"

	pb "go.etcd.io/raft/v3/raftpb"
	"google.golang.org/protobuf/proto"
)

// send takes a message over the network, which loses some, has others arrive late or twice, and
// knows no order.
func (c *cluster) send(m *pb.Message) {
	if c.cut[link{m.GetFrom(), m.GetTo()}] || !c.calm && c.chance(50) {
		return
	}
	b, err := proto.Marshal(m)
	if err != nil {
		c.fail("message: %v", err)
	}
	times := 1
	if !c.calm && c.chance(50) {
		times = 2
	}
	for range times {
		wait := 100 + c.dice.Int64N(1_500)
		if !c.calm && c.chance(40) {
			wait += c.dice.Int64N(300_000)
		}
		c.after(wait, func() { c.arrive(b) })
	}
}

// arrive gives a message to whatever process the member has by then.
func (c *cluster) arrive(b []byte) {
	m := new(pb.Message)
	if err := proto.Unmarshal(b, m); err != nil {
		c.fail("message: %v", err)
	}
	for _, s := range c.seats {
		if s.id == m.GetTo() && s.up {
			s.in(0, s.life, func() { s.core.Step(m) })
		}
	}
}

// fault lets something go wrong, and plans the next.
func (c *cluster) fault() {
	if c.calm {
		return
	}
	c.after(5_000+c.dice.Int64N(120_000), c.fault)
	s := c.seats[c.dice.IntN(len(c.seats))]
	if c.chance(2) { // rather a leader
		for _, x := range c.seats {
			if x.up && x.core.Standing().Leads {
				s = x
			}
		}
	}
	switch c.dice.IntN(15) {
	case 0, 1, 2:
		s.crash()
	case 3, 4:
		c.partition(s)
	case 5, 6, 7:
		clear(c.cut)
		c.say("the network is whole")
	case 8:
		c.result.Pauses++
		s.paused = c.at + c.dice.Int64N(600_000)
		c.say("member %d pauses", s.id)
	case 9:
		s.skew += []int64{-3_600_000, -1_000, -1, 1, 1_000, 3_600_000}[c.dice.IntN(6)]
		c.say("the clock of member %d is off by %d", s.id, s.skew)
	case 10, 11:
		if s.up && s.core.Standing().Leads {
			to := c.seats[c.dice.IntN(len(c.seats))].id
			c.say("member %d hands over to %d", s.id, to)
			s.core.Transfer(to)
			s.pump()
		}
	case 12:
		c.damage(s)
	case 13:
		if c.complete() && c.chance(2) {
			c.say("member %d is to leave", s.id)
			s.replace()
		}
	case 14:
		c.lie()
	}
}

// blackout takes the power from some of the members at once. It comes soon after an election, when
// all that the new term stands on was written a moment ago.
func (c *cluster) blackout() {
	if c.calm {
		return
	}
	c.say("the power fails")
	for _, s := range c.seats {
		if c.chance(3) {
			continue
		}
		s.crash()
	}
}

// lie lets the gateway say what only a leader, a candidate or a voter may say, of this term or one
// to come, and what cannot be.
func (c *cluster) lie() {
	c.result.Lies++
	from := uint64(liar)
	if c.options.Sabotage == Impostor {
		from = c.seats[c.dice.IntN(len(c.seats))].id
	}
	c.say("member %d lies", from)
	for _, s := range c.seats {
		if !s.up || s.id == from {
			continue
		}
		v := s.core.Standing()
		for _, kind := range []pb.MessageType{pb.MsgApp, pb.MsgHeartbeat, pb.MsgVote, pb.MsgPreVote,
			pb.MsgVoteResp, pb.MsgPreVoteResp, pb.MsgTimeoutNow, pb.MsgAppResp, pb.MsgHeartbeatResp,
			pb.MsgReadIndexResp, pb.MsgSnap} {
			m := &pb.Message{Type: kind.Enum(), From: new(from), To: new(s.id),
				Term: new(v.Term + c.dice.Uint64N(2)), Index: new(v.Last), LogTerm: new(v.Term),
				Commit: new(v.Last)}
			switch kind {
			case pb.MsgVote, pb.MsgPreVote:
				m.Context = []byte("CampaignTransfer")
			case pb.MsgSnap:
				m.Snapshot = &pb.Snapshot{Metadata: &pb.SnapshotMetadata{Index: new(v.Last + 100),
					ConfState: &pb.ConfState{Voters: []uint64{liar}}}}
			}
			c.send(m)
		}
	}
}

// partition cuts the network in one of many shapes.
func (c *cluster) partition(s *seat) {
	c.result.Cuts++
	sever := func(from, to uint64, both bool) {
		c.cut[link{from, to}] = true
		if both {
			c.cut[link{to, from}] = true
		}
	}
	shape := c.dice.IntN(5)
	c.say("cut of shape %d at member %d", shape, s.id)
	other := c.seats[c.dice.IntN(len(c.seats))]
	for i, x := range c.seats {
		switch shape {
		case 0: // one alone
			sever(s.id, x.id, true)
		case 1: // it hears nobody
			sever(x.id, s.id, false)
		case 2: // nobody hears it
			sever(s.id, x.id, false)
		case 3: // two halves
			for _, y := range c.seats[:i] {
				if i >= len(c.seats)/2 && slices.Index(c.seats, y) < len(c.seats)/2 {
					sever(x.id, y.id, true)
				}
			}
		case 4: // one way between two
			sever(s.id, other.id, false)
		}
	}
}

// complete reports whether all members are whole and nobody is being replaced.
func (c *cluster) complete() bool {
	for _, s := range c.seats {
		if s.replaced != 0 || !s.up {
			return false
		}
	}
	return true
}

// damage stops a member in order, and inverts one bit of one of its files.
func (c *cluster) damage(s *seat) {
	if !c.complete() {
		return
	}
	c.result.Flips++
	s.stop()
	p := &pebbleDisk{s: c.simulation, disk: &disk{}, fs: s.fs}
	p.flip(c.dice)
	c.say("a bit of member %d is another one", s.id)
	c.after(1_000+c.dice.Int64N(300_000), func() {
		if !s.up && !s.waits() {
			s.start()
		}
	})
}

// replace begins to put a new member in the place of this one.
func (s *seat) replace() {
	if s.replaced == 0 {
		s.replaced = s.id
	}
}

// waits reports whether the seat has no disk that a process could use: its member is gone, and the
// next one is not made.
func (s *seat) waits() bool { return s.replaced == s.id && !s.up }

// operate is the operator, who looks from time to time, and carries on with a replacement: the old
// member leaves, a new one with an empty disk learns, and votes once it has everything.
func (c *cluster) operate() {
	c.after(20_000+c.dice.Int64N(40_000), c.operate)
	for _, s := range c.seats {
		if s.replaced == 0 {
			continue
		}
		for _, l := range c.seats {
			if l.up && l.writer != nil && l.paused <= c.at {
				s.advance(l)
				l.pump()
				break
			}
		}
		return // one change at a time
	}
}

// advance takes the next step of a replacement, with the help of a leader.
func (s *seat) advance(l *seat) {
	c, v := s.c, l.core.Standing()
	member := func(id uint64) bool {
		return slices.Contains(v.Voters, id) || slices.Contains(v.Learners, id)
	}
	change := func(what pb.ConfChangeType, id uint64) {
		if err := l.core.Change(what, id); err == nil {
			c.say("member %d proposes: %v %d", l.id, what, id)
		}
	}
	switch {
	case member(s.replaced):
		change(raft.Remove, s.replaced)
	case s.id == s.replaced: // it has left: a new one sits down
		if s.up {
			s.stop()
		}
		c.lastID++
		c.result.Joined++
		s.id, s.paused, s.told, s.knows = c.lastID, 0, v.Voters, c.fresh()
		s.format(nil, journal.Ballot{})
		c.say("member %d sits down where %d was", s.id, s.replaced)
		s.start()
	case !member(s.id):
		change(raft.AddLearner, s.id)
	case !slices.Contains(v.Voters, s.id):
		if l.core.Match(s.id)+8 >= v.Applied {
			change(raft.Promote, s.id)
		}
	default:
		for _, x := range c.seats { // a majority that does not know of it could elect nobody
			if !x.waits() && (!x.up || !slices.Contains(x.core.Standing().Voters, s.id)) {
				return
			}
		}
		c.say("member %d is in the place of %d", s.id, s.replaced)
		s.replaced = 0
	}
}
