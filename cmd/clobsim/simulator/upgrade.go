package simulator

import (
	"slices"

	"clobd/engine"
)

// A program that knows two versions of the rules plays both kinds of members: those whose program
// is still the old one never see a frame of the new version. A program that knows one does nothing
// of this, so that its runs stay as they are.
const twoVersions = engine.Version > engine.Oldest

// looking is the pause between two looks of a leader at which rules the others know, and agreeing
// is how many in a row must have found the same, as in the node.
const (
	looking  = 50_000
	agreeing = 3
)

// upgrade is the operator, who replaces the program of one member after the other, and now and then
// makes a pause: a member that is down or cut off meanwhile comes back with the old one.
func (c *cluster) upgrade() {
	s := c.seats[c.dice.IntN(len(c.seats))]
	if s.up && s.knows < engine.Version {
		c.result.Upgraded++
		c.say("member %d gets a new program", s.id)
		s.stop()
		s.knows = engine.Version
		s.start()
	}
	wait := c.dice.Int64N(150_000)
	if c.chance(3) {
		wait += c.dice.Int64N(700_000)
	}
	c.after(wait, c.upgrade)
}

// fresh is what the program of a member knows that sits down: the operator takes the new one as
// soon as he has begun with it.
func (c *cluster) fresh() uint16 {
	if c.result.Upgraded > 0 {
		return engine.Version
	}
	return engine.Oldest
}

// look asks all members again and again which rules they know, and at last puts the latest in force
// that all know.
func (l *leader) look(life, agreed int) {
	s := l.s
	if !twoVersions {
		return
	}
	s.in(looking, life, func() {
		if s.writer != l || l.over() {
			return
		}
		v := s.core.Standing()
		to := v.Common(l.asked())
		switch {
		case to <= s.exchange.Version():
			agreed = 0
		case agreed+1 < agreeing:
			agreed++
		default:
			agreed = 0
			s.c.say("member %d puts version %d in force", s.id, to)
			l.enter(&engine.Command{Kind: engine.Raise, Seen: engine.Sequence(to)})
			l.match()
		}
		l.look(life, agreed)
	})
}

// asked is which rules the members know that answer now.
func (l *leader) asked() map[uint64]uint16 {
	c, own := l.s.c, l.s
	said := map[uint64]uint16{own.id: own.knows, liar: engine.Version} // who lies says anything
	for _, s := range c.seats {
		if s.up && s.paused <= c.at && !c.cut[link{own.id, s.id}] && !c.cut[link{s.id, own.id}] {
			said[s.id] = s.knows
		}
	}
	if c.options.Sabotage == EarlyRaise {
		v := own.core.Standing()
		for _, id := range slices.Concat(v.Voters, v.Learners) {
			if said[id] == 0 {
				said[id] = engine.Version
			}
		}
	}
	return said
}
