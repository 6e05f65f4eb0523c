package role

import (
	"context"
	"errors"
	"fmt"
	"time"

	"clobd/cmd/cli"
	"clobd/journal/raft"
)

// silence is how long a member may hear of no leader before it is not ready, because its books may
// be so old. An election takes much less.
const silence = 5 * time.Second

// receive takes a message of another member, and notes that the leader is there.
func (m fellow) receive(x *raft.Message) {
	if x.GetFrom() == m.leader.Load() {
		m.heard.Store(time.Now().UnixNano())
	}
	m.peer.Receive(x)
}

// age returns the time since the leader was heard: what this member shows is no older.
func (m fellow) age() time.Duration {
	if m.leader.Load() == m.cluster.ID {
		return 0
	}
	return max(0, time.Since(time.Unix(0, m.heard.Load())))
}

// Unready says why clients should not use this member now; "" if they may.
func (m *Together) Unready() string {
	if why := m.removal.Load(); why != nil {
		return *why
	}
	// A refusal of a former leader no longer counts.
	if why := m.refusal.Load(); why != nil && why.by == m.leader.Load() {
		return why.Error()
	}
	if age := (fellow{m}).age(); age > silence {
		return fmt.Sprintf("no leader heard for %.0f s: what is shown may be as old", age.Seconds())
	}
	if !m.caught.Load() {
		return "this member has not caught up with the leader yet"
	}
	return ""
}

// Await waits until this member shows all that was committed at its Start. Without a leader it
// waits only for a while, so that an operator can read old books, and Unready says so. The error
// says why the leader refuses this member.
func (m *Together) Await(ctx context.Context) error {
	told := time.Now()
	for ctx.Err() == nil {
		if why := m.removal.Load(); why != nil {
			return cli.Hint(errors.New(*why), hintRemoved)
		}
		reached, err := fellow{m}.catchUp(ctx)
		var refused *refusedError
		switch {
		case errors.As(err, &refused) && refused.removed:
			return cli.Hint(refused, hintRemoved)
		case errors.As(err, &refused):
			return cli.Hint(refused, "all members of a cluster are started with the same settings, and "+
				"with a clobd that knows the rules in force")
		case reached:
			m.caught.Store(true)
			return nil
		case err != nil && fellow{m}.age() > silence:
			m.options.Log.Warn("no leader is heard: reads are answered with what is here, and the node is "+
				"not ready", "error", err)
			m.joined.Go(fellow{m}.catchUpLater)
			return nil
		case time.Since(told) > time.Second:
			told = time.Now()
			m.options.Log.Info("this member catches up", "sequence", m.Board.Sequence())
		}
		select {
		case <-time.After(catchGap):
		case <-m.broken: // somebody has said why
			return nil
		case <-m.closing:
			return nil
		case <-ctx.Done():
		}
	}
	return nil
}

const hintRemoved = "no cluster takes this folder any more; clobd cluster invite and join let a " +
	"new member in, in a new folder"

// catchGap is the pause between two attempts to reach the leader.
const catchGap = 20 * time.Millisecond

// catchUpLater waits in the background when Await has given up.
func (m fellow) catchUpLater() {
	for {
		if reached, _ := m.catchUp(context.Background()); reached {
			m.caught.Store(true)
			return
		}
		select {
		case <-time.After(silence / 10):
		case <-m.closing:
			return
		}
	}
}

// errNobody is the error of a question to the leader while nobody leads.
var errNobody = errors.New("no node leads")

// catchUp reports whether this member shows all that was committed at the first call. It asks the
// agreement, which asks a majority: a member that believes to lead may be cut off and out of date.
func (m fellow) catchUp(ctx context.Context) (reached bool, err error) {
	if m.Leads() {
		return true, nil
	}
	if m.goal == 0 {
		if err := m.wanted(); err != nil {
			return false, err
		}
		head, err := m.peer.Confirm(ctx)
		if err != nil {
			return false, err
		}
		m.goal = max(1, head.Sequence)
	}
	if m.Board.Sequence() < m.goal {
		return false, nil
	}
	return true, m.wanted() // nobody may have led when this was asked first
}

// wanted returns the leader's refusal of this member, which may have been started with other
// settings. It returns nil if the leader cannot be reached.
func (m fellow) wanted() error {
	to := m.leader.Load()
	if to == 0 || to == m.cluster.ID {
		return nil
	}
	_, err := m.ask(to)
	var refused *refusedError
	if errors.As(err, &refused) {
		return refused
	}
	return nil
}
