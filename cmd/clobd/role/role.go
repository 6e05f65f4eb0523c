package role

import (
	"context"
	"crypto/rand"
	"encoding/binary"
	"errors"
	"fmt"
	"log/slog"
	"strings"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"clobd/cmd/cli"
	"clobd/cmd/clobd/papers"
	"clobd/engine"
	"clobd/engine/sequencer"
	"clobd/engine/view"
	"clobd/ingress"
	"clobd/journal"
	"clobd/journal/disk"
	"clobd/journal/raft"
)

// Options are a role's options. All but Cluster are required.
type Options struct {
	Data   string     // the node's folder, with the journal in it
	Async  bool       // acknowledge before the sync: for measuring only
	Claim  disk.Claim // of the folder
	InVain bool       // the start before this one found damage in its way
	// Witnesses are the other stores in a data folder that know how far the journal went.
	Witnesses func(data string) []journal.Witness
	// Commands and Interval say when a checkpoint is due; none is written while Hold is true.
	Commands uint64
	Interval time.Duration
	Hold     func() bool
	// Full reports whether the disk has no more room for orders; a node that is alone has its door
	// for that.
	Full func() bool
	// Poisoned is called with a Command that made Apply panic, Torn with a panic behind Apply. Both
	// end the process.
	Poisoned func(c *engine.Command, seq engine.Sequence, cause any, stack []byte)
	Torn     func(what string, frame uint64, cause any, stack []byte)
	// Spent is called with the times of each frame.
	Spent func(*sequencer.Spent)
	// Failed gets the error that ended the writer, the follower or the membership, or nil when that
	// ended in order.
	Failed func(what string, err error)
	// Renewing is called with the progress of a member that heals its journal or takes a copy, and a
	// metric of that, and with "" at the end. Index copies the index into a folder, for a new member.
	// Only a cluster's member needs them.
	Renewing func(how, metric string)
	Index    func(dir string) error
	Metrics  *prometheus.Registry
	Log      *slog.Logger

	Cluster *Cluster // nil: the node is alone
}

// Role is a node's part in making the truth: alone, or as a member of a cluster.
type Role struct {
	*Common
	Play
}

// Play is the part of a role that differs between Alone and Together. Call Start once, before any
// goroutine enters a Command.
type Play interface {
	// Start starts the role's goroutines.
	Start() error
	// Begin journals the node's start. Start comes before.
	Begin() error
	// Supply sets Enter and EnterAll of the door. Start comes before.
	Supply(door *ingress.Options)
	// Writer returns what this node's writer has counted, and for how long it has answered nobody
	// although Commands wait. Start comes before.
	Writer() (counts sequencer.Counters, stalled time.Duration)
	// Leads reports whether this node gives Commands their Sequence.
	Leads() bool
	// Await returns once this node shows all of before its Start. Start comes before.
	Await(ctx context.Context) error
	// Confirm returns a Sequence not below that of anything that anybody was told before the call, by
	// whichever node. Start comes before.
	Confirm(ctx context.Context) (engine.Sequence, error)
	// Unready says why clients should not use this node now; "" if they may.
	Unready() string
	// Standing returns a member's view of its cluster; nil if the node is alone.
	Standing() *Standing
	// StepDown hands the lead to another node, if this one leads and another can.
	StepDown(ctx context.Context) error
	// Warn tells the other nodes the fingerprint of a Command that made the engine panic here.
	Warn(fingerprint [32]byte)
	// Damaged reports damage in an old part of the journal or the index. A cluster's member makes the
	// part anew.
	Damaged(part string, why error)
	// Change changes one member of the cluster, if this node leads.
	Change(ctx context.Context, what Change, name string) error
	// Invite makes a token for a new member, NAME@HOST:PORT.
	Invite(place string) (*Invitation, error)
	// Close ends all that Start has started. The follower writes a last checkpoint before ctx ends.
	// Journal stays open for its readers.
	Close(ctx context.Context) error
}

// Common is the part that all roles share.
type Common struct {
	Journal  *journal.Journal
	Board    *view.Board
	Follower *journal.Follower // nil before Start
	// Enter and Submit hand the node's own Commands to the writer; nil before Start.
	Enter  func(*engine.Command) (*sequencer.Call, error)
	Submit func(*engine.Command) (engine.Receipt, error)

	options  Options
	began    time.Time
	restored *journal.Restored
}

// Recover restores Exchange and Board from the newest checkpoint and the frames after it. Unless it
// returns nil the caller closes Journal, also after an error. The error carries its hint. If ctx
// ends, the error is that of ctx, and nothing was written. A member whose journal is damaged heals
// it first, unless the others need it and the damage is not in the way; a new one takes a copy.
func Recover(ctx context.Context, o Options) (*Role, error) {
	if o.Cluster == nil {
		return open(ctx, o)
	}
	p := &patient{Options: &o}
	o.Metrics.MustRegister(p.collectors()...)
	if err := p.begin(ctx); err != nil {
		return nil, err
	}
	why, r := Noted(o.Data, JournalPart), (*Role)(nil)
	if why != nil && o.Cluster.lonely() {
		o.Log.Error("old data is damaged, and this member knows no others that have it",
			"damage", plainly(why))
		why = nil
	}
	if why != nil && !o.InVain && p.needed(ctx) {
		o.Log.Warn("old data is damaged, and nobody leads without this member", "damage", plainly(why))
		why = nil
	}
	if why == nil {
		var err error
		if r, err = open(ctx, o); err == nil || ctx.Err() != nil || !journal.CanHeal(err) {
			return r, err
		}
		why = err
		if r != nil {
			if err := r.Journal.Close(); err != nil {
				return nil, err
			}
		}
	}
	if err := p.heal(ctx, why); err != nil {
		return nil, err
	}
	return open(ctx, o)
}

func (o *Options) witnesses() []journal.Witness {
	if o.Witnesses == nil {
		return nil
	}
	return o.Witnesses(o.Data)
}

// open opens and restores the journal as it is.
func open(ctx context.Context, o Options) (*Role, error) {
	a := &Common{options: o, began: time.Now()}
	var err error
	a.Journal, err = journal.Open(journal.Options{Dir: o.Data, Async: o.Async, Log: o.Log,
		Claim: o.Claim, Witnesses: o.witnesses})
	if err != nil {
		return nil, Advised(err)
	}
	r := &Role{a, &Alone{Common: a}}
	if o.Cluster != nil {
		r.Play = newTogether(a)
	}
	if err := o.fits(a.Journal); err != nil {
		return r, err
	}
	a.restored, err = a.Journal.Restore(ctx, func() *journal.State {
		var s *journal.State
		s, a.Board = NewState() // the last one made is the one that is used
		return s
	})
	if ctx.Err() != nil {
		return r, ctx.Err()
	} else if err != nil {
		return r, Advised(err)
	}
	if member := journal.Member(a.Journal); member != nil { // what Start reads, and Restore does not
		if _, _, _, err := raft.Members(member); err != nil {
			return r, Advised(err)
		}
	}
	o.Metrics.MustRegister(a.Journal.Collectors()...)
	a.Board.Version.Store(uint32(a.restored.State.Exchange.Version()))
	a.Board.Show()
	return r, nil
}

// fits returns an error if a journal is not for this role: a member's journal may end with frames
// that can still be taken back, and a lone node's journal has no members to agree with.
func (o *Options) fits(j *journal.Journal) error {
	switch member := journal.Member(j) != nil; {
	case member && o.Cluster == nil:
		return cli.Hint(fmt.Errorf("%s is the folder of a cluster's member", o.Data),
			"start it with --cluster NAME@ADDR, as clobd cluster init or join has said")
	case !member && o.Cluster != nil:
		return cli.Hint(fmt.Errorf("the journal in %s is that of no cluster", o.Data),
			"clobd cluster init makes a cluster of it")
	case member && o.Cluster.Passport.Journal != papers.JournalID(j.ID):
		return cli.Hint(fmt.Errorf("%s has the journal %016x, and the papers of a member whose cluster "+
			"has the journal %s", o.Data, j.ID, o.Cluster.Passport.Journal), "put the journal of this "+
			"member back; or let a new one join: clobd cluster invite and join")
	}
	return nil
}

// NewState returns an Exchange to be restored, and the Board that follows it.
func NewState() (*journal.State, *view.Board) {
	var seed [8]byte
	rand.Read(seed[:])
	board := view.NewBoard()
	return &journal.State{
		Seed: binary.LittleEndian.Uint64(seed[:]),
		Each: func(f *engine.Frame) error { board.Replay(f); return nil },
		Save: board.Save, Load: board.Load,
	}, board
}

// Fresh is NewState for callers without use for the Board.
func Fresh() *journal.State {
	s, _ := NewState()
	return s
}

// follow starts the follower, which computes everything again and writes checkpoints.
func (a *Common) follow() (err error) {
	head, o := a.restored.Head, &a.options
	from := uint64(0)
	if a.restored.From != nil {
		from = uint64(a.restored.From.Head.Sequence)
	}
	o.Log.Info("recovered", "sequence", head.Sequence, "frame", head.Frame, "checkpoint", from,
		"replayed", a.restored.Commands, "digest", fmt.Sprintf("%016x", uint64(head.Digest)),
		"took", time.Since(a.began).String())
	a.restored.State = nil // somebody else owns the Exchange
	a.Follower, err = a.Journal.Follow(journal.FollowerOptions{Fresh: Fresh, Commands: o.Commands,
		Interval: o.Interval, Hold: o.Hold})
	if err != nil {
		return err
	}
	o.Metrics.MustRegister(a.Follower.Collectors()...)
	go func() { o.Failed("follower", Advised(a.Follower.Run())) }()
	return nil
}

// rephrased is an error with another text.
type rephrased struct {
	text string
	err  error
}

// Error returns the other text.
func (r *rephrased) Error() string { return r.text }

// Unwrap returns the original error.
func (r *rephrased) Unwrap() error { return r.err }

// Advised adds a hint to an error of the journal or the index that has advice for the operator, and
// makes a BrokenError of damage. It returns any other error, or nil, as it is.
func Advised(err error) error {
	advice, done := journal.Advice(err), new(rephrased)
	if advice == "" || errors.As(err, &done) { // or no error
		return err
	}
	var locked *disk.LockedError
	text := strings.Replace(err.Error(), "; "+advice, "", 1)
	// Pebble adds this line to an error without details.
	what := &rephrased{strings.ReplaceAll(text, "\n<corruption detail carrier>", ""), err}
	switch {
	case journal.IsDamage(err):
		return &cli.BrokenError{Err: cli.Hint(what, "%s", advice)}
	case errors.As(err, &locked):
		return cli.Hint(what, "--data names another folder; the process that has this one: %s",
			locked.Holder)
	}
	return cli.Hint(what, "%s", advice)
}
