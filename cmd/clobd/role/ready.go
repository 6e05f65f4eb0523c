package role

import (
	"context"
	"errors"
	"fmt"
	"time"

	"clobd/cmd/cli"
	"clobd/journal/raft"
)

// silence is how long a member may hear of no leader before it is not ready: what it shows may be
// as old. Elections are over long before.
const silence = 5 * time.Second

// receive takes a message of another member, and notes that the leader is there.
func (m fellow) receive(x *raft.Message) {
	if x.GetFrom() == m.leader.Load() {
		m.heard.Store(time.Now().UnixNano())
	}
	m.peer.Receive(x)
}

// age is how old what this member shows may be: the time since the leader was heard.
func (m fellow) age() time.Duration {
	if m.leader.Load() == m.cluster.ID {
		return 0
	}
	return max(0, time.Since(time.Unix(0, m.heard.Load())))
}

// Unready says why this member should not be asked now; "" if it may be.
func (m *Together) Unready() string {
	if why := m.removal.Load(); why != nil {
		return *why
	}
	// Who was refused by a member that leads no more has to ask the next one; it may lead itself.
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

// Await waits until this member shows what the leader did after Start: before, it would answer with
// what it knew when it was stopped. If no leader is heard it waits no longer than an operator who
// wants to read may have to; Unready tells. The error is that of a member that the leader refuses.
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

// catchGap is the pause between two looks whether the leader is reached.
const catchGap = 20 * time.Millisecond

// catchUpLater goes on where Await had to give up.
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

// errNobody is the error of a question to a leader when there is none.
var errNobody = errors.New("no node leads")

// catchUp reports whether this member shows all that was committed when it was asked for the first
// time. A member that says that it leads is not asked what it shows: it may be cut off, and not
// know yet that another one leads. The agreement asks a majority.
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

// wanted returns the refusal of the member that leads, if that one refuses this member: it may have
// been started with other settings. Whether the other is reached does not matter here.
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
