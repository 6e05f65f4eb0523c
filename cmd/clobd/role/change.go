package role

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"clobd/cmd/cli"
	"clobd/journal/raft"
)

// A Change of the members, by the word of the command line.
type Change string

// The changes that an operator can ask for.
const (
	Promote Change = "promote" // a gateway gets a vote
	Remove  Change = "remove"  // for ever
)

// changeTime is how long Change waits until a change is in force.
const changeTime = 10 * time.Second

// mostBehind is how many entries a gateway may lack when it gets a vote. A new voter makes the
// majority larger, and cannot be a part of it before it has caught up.
const mostBehind = 1000

// Change promotes or removes a member, and waits until that is in force. Only the leader can.
func (m *Together) Change(ctx context.Context, what Change, name string) error {
	ctx, cancel := context.WithTimeout(ctx, changeTime)
	defer cancel()
	if !m.Leads() {
		return cli.Hint(errNotLeading, "ask the one that does: %s",
			m.called(m.leader.Load()))
	}
	m.look()
	s, id := m.glimpse(), uint64(0)
	for _, n := range slices.Concat(s.Voters, s.Learners) {
		if m.called(n) == name {
			id = n
		}
	}
	kind := raft.Promote
	switch behind := s.Last - min(s.match[id], s.Last); {
	case id == 0:
		return fmt.Errorf("no member is called %s", name)
	case what == Remove && id == m.cluster.ID:
		return cli.Hint(fmt.Errorf("%s leads", name), "clobd cluster step-down lets another one lead")
	case what == Remove:
		kind = raft.Remove
	case behind > mostBehind || s.match[id] == 0: // it has nothing, or never answered this leader
		return cli.Hint(fmt.Errorf("%s lacks %d entries", name, behind), "it gets a vote once it keeps up")
	}
	for {
		var err error
		over := m.peer.Ask(func(c *raft.Core) { err = c.Change(kind, id) })
		if over == nil && err == nil {
			break
		}
		// A promotion takes two steps, and the other voters have to know the first. Before a voter
		// goes the others must have what it has.
		if over != nil || !errors.Is(err, raft.ErrChange) || ctx.Err() != nil {
			return errors.Join(over, err)
		}
		time.Sleep(glance)
	}
	for {
		m.look()
		s := m.glimpse()
		if slices.Contains(s.Voters, id) == (what == Promote) && !slices.Contains(s.Learners, id) {
			m.options.Log.Info("members changed", "what", string(what), "node", name)
			return nil
		}
		select {
		case <-time.After(glance):
		case <-ctx.Done():
			return errors.New("the change is not in force yet: clobd cluster status tells when it is")
		}
	}
}
