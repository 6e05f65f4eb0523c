package role

import (
	"context"
	"errors"
	"fmt"
	"time"

	"clobd/cmd/cli"
	"clobd/engine"
	"clobd/engine/sequencer"
	"clobd/ingress"
)

// Alone is a node without others.
type Alone struct {
	*Common
	writer *sequencer.Sequencer // nil before Start
}

// Start starts the writer, and the follower, which computes everything again and writes
// checkpoints.
func (a *Alone) Start() error {
	head, o := a.restored.Head, &a.options
	var err error
	a.writer, err = sequencer.New(a.restored.State.Exchange, a.Board, a.Journal, sequencer.Options{
		Head: head, Poison: o.Poisoned, Fatal: o.Torn, Spent: o.Spent})
	if err != nil {
		return err
	}
	a.Enter, a.Submit = a.writer.Enter, a.writer.Submit
	go a.write()
	o.Metrics.MustRegister(a.metrics(func() *sequencer.Sequencer { return a.writer },
		func() uint64 { return head.Epoch + 1 })...)
	return a.follow()
}

// write runs the writer. After a failure nothing is acknowledged, and the last Commands have no
// answer.
func (a *Alone) write() {
	if err := a.writer.Run(); err != nil {
		err = &cli.BrokenError{Err: cli.Hint(err, "what was acknowledged is in the "+
			"journal; look at the log for why, then start again: callers without an answer may send again")}
		a.options.Failed("sequencer", err)
	}
}

// Supply sets Enter and EnterAll of the door. Start comes before.
func (a *Alone) Supply(door *ingress.Options) {
	door.Enter, door.EnterAll = a.writer.Enter, a.writer.EnterAll
}

// Writer returns what the writer has counted, and for how long it has answered nobody although
// Commands wait. Start comes before.
func (a *Alone) Writer() (counts sequencer.Counters, stalled time.Duration) {
	return a.writer.Counters(), a.writer.Stalled()
}

// Begin journals that a new epoch began, the first Command of each start, and puts the latest rules
// in force: nobody else has to know them.
func (a *Alone) Begin() error {
	started := engine.Command{Kind: engine.Started, Seen: engine.Sequence(a.restored.Head.Epoch + 1),
		Expiry: engine.Time(time.Now().UnixMilli())}
	if _, err := a.Submit(&started); err != nil {
		return fmt.Errorf("journal the start: %w", err)
	}
	if a.version() == engine.Version {
		return nil
	}
	if _, err := a.Submit(&engine.Command{Kind: engine.Raise, Seen: engine.Version}); err != nil {
		return fmt.Errorf("put version %d of the rules in force: %w", engine.Version, err)
	}
	return nil
}

// Leads returns true.
func (a *Alone) Leads() bool { return true }

// Await returns at once: nobody knows more than this node.
func (a *Alone) Await(context.Context) error { return nil }

// Unready returns "": this role knows no reason.
func (a *Alone) Unready() string { return "" }

// Standing returns nil: there is no cluster.
func (a *Alone) Standing() *Standing { return nil }

// StepDown fails: no other node can lead.
func (a *Alone) StepDown(context.Context) error {
	return errors.New("the node is alone: nobody else can lead")
}

// Warn does nothing: there are no other nodes.
func (a *Alone) Warn([32]byte) {}

// Damaged does nothing: no other node has a copy.
func (a *Alone) Damaged(string, error) {}

// Change fails: there is no cluster.
func (a *Alone) Change(context.Context, Change, string) error {
	return errors.New("the node is alone: it has no members")
}

// Invite fails: there is no cluster.
func (a *Alone) Invite(string) (*Invitation, error) {
	return nil, errors.New("the node is alone: it has no members")
}

// Close drains the writer and stops the follower, which writes a last checkpoint before ctx ends.
// Journal stays open for its readers.
func (a *Alone) Close(ctx context.Context) error {
	var err error
	if a.writer != nil {
		err = a.writer.Close()
	}
	if a.Follower != nil {
		a.Follower.Close(ctx)
	}
	return err
}
