package role

import (
	"cmp"
	"context"
	"slices"
	"sync"
	"time"

	"clobd/journal/raft"
)

const (
	// mostOff is how far a voter's clock may be from the median of the voters' when it leads: its
	// Time is the exchange's.
	mostOff = time.Second
	// comparing is how often a voter looks at the others' clocks. A look is good for comparedFor.
	comparing   = 2 * time.Second
	comparedFor = 5 * comparing
	// preferred is how many times in a row another voter must have been the better leader.
	preferred = 3
)

// clocks are how the clocks of other members differ from this one's.
type clocks struct {
	mu   sync.Mutex
	seen map[uint64]sight
}

// sight is a look at a clock. A question left here at some time, and its answer came at a later
// one: what the other clock showed meanwhile is ahead of this one by between least and most.
type sight struct {
	at          time.Time
	least, most time.Duration
}

// note notes what the clock of a member showed between two times of this one's.
func (c *clocks) note(id uint64, shows, before, after time.Time) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.seen == nil {
		c.seen = map[uint64]sight{}
	}
	c.seen[id] = sight{time.Now(), shows.Sub(after), shows.Sub(before)}
}

// median returns between which bounds the median of the voters' clocks is ahead of this one's. With
// an even number of known clocks it may be any between the two in the middle.
func (c *clocks) median(own uint64, voters []uint64) (least, most time.Duration) {
	c.mu.Lock()
	defer c.mu.Unlock()
	lows, highs := []time.Duration{0}, []time.Duration{0} // its own
	for _, id := range voters {
		s, is := c.seen[id]
		if is && id != own && time.Since(s.at) < comparedFor {
			lows, highs = append(lows, s.least), append(highs, s.most)
		}
	}
	slices.Sort(lows)
	slices.Sort(highs)
	return lows[(len(lows)-1)/2], highs[len(highs)/2]
}

// contest is how a member finds out who of the voters is to lead.
type contest struct{ fellow }

// now is this member's clock.
func (c *Cluster) now() time.Time {
	if c.Clock != nil {
		return c.Clock()
	}
	return time.Now()
}

// off is how far the median of the voters' clocks is from this one's at least, 0 if it may be the
// same.
func (m contest) off() time.Duration {
	least, most := m.clocks.median(m.cluster.ID, m.glimpse().Voters)
	switch {
	case least > 0:
		return least
	case most < 0:
		return most
	}
	return 0
}

// unfit reports whether this voter is not to lead: it was told so, or its clock is off.
func (m contest) unfit() bool { return m.cluster.Priority == 0 || m.off().Abs() > mostOff }

// compare looks at the clocks of the other voters again and again. While this one is unfit it
// begins no election, and lets another voter lead; it does so, too, if another one is to be
// preferred.
func (m contest) compare() {
	better, agreed := 0, 0
	for told := false; ; {
		if slices.Contains(m.glimpse().Voters, m.cluster.ID) {
			m.survey()
		}
		agreed = m.raise(agreed)
		unfit := m.unfit()
		m.unled.Store(unfit)
		_ = m.peer.Ask(func(c *raft.Core) { c.Abstains = unfit })
		if off := m.off(); off.Abs() > mostOff != told {
			told = !told
			m.options.Log.Warn("the clock of this voter differs from the median of the voters'; while it is "+
				"more than a second it does not lead", "seconds", off.Seconds(), "more", told)
		}
		switch better++; {
		case !m.Leads() || !unfit && m.best() <= m.cluster.Priority:
			better = 0
		case unfit || better >= preferred:
			better = 0
			err := m.stepDown(context.Background(), true)
			m.options.Log.Info("another node is to lead", "unfit", unfit, "error", err)
		}
		select {
		case <-time.After(comparing):
		case <-m.closing:
			return
		}
	}
}

// survey asks all other voters how they are, and if this member leads the gateways, too.
func (m contest) survey() {
	members := m.glimpse().Voters
	if m.Leads() {
		members = slices.Concat(members, m.glimpse().Learners)
	}
	found := canvass(m.fellow, members, 2*greetTime)
	m.surveyed.Store(&found)
}

// best is the highest priority of another voter that could lead at once.
func (m contest) best() (most int) {
	if found := m.surveyed.Load(); found != nil {
		voters := m.glimpse().Voters // gateways were asked, too
		for id, w := range *found {
			if w.well() && slices.Contains(voters, id) {
				most = max(most, w.Priority)
			}
		}
	}
	return most
}

// well reports whether a voter could lead at once.
func (w *welcome) well() bool { return w.Spare && !w.Full && !w.Unfit }

// better orders voters by who should lead: one that is well; then the priority counts, and then how
// much of the log one has.
func better(a, b contender) int {
	if a.well && !b.well {
		return 1
	} else if b.well && !a.well {
		return -1
	}
	return cmp.Or(cmp.Compare(a.priority, b.priority), cmp.Compare(a.match, b.match))
}

// contender is a voter that could take over.
type contender struct {
	id       uint64
	well     bool
	priority int
	match    uint64
}
