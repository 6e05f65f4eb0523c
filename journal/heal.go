package journal

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"path/filepath"
	"slices"

	"clobd/engine"
	"clobd/journal/disk"

	"github.com/cockroachdb/pebble/v2"
)

// Goal is how far the log of the member that leads goes.
type Goal struct {
	Term    uint64 `json:"term"` // in which it leads
	Last    uint64 `json:"last"` // index of its last entry, committed or not
	Created uint64 `json:"created"`
}

// HealOptions says what a member needs to heal. What the functions return must come from a voter.
type HealOptions struct {
	Options // ID is the cluster's
	// Goal asks a member that leads in a term not before the one given, after this one has stopped to
	// answer: by then the log has all that this one ever answered for and that can be committed.
	Goal func(ctx context.Context, term uint64) (Goal, error)
	// Supply asks for committed entries from low on, without the frames in omit, which are in order.
	Supply func(ctx context.Context, low uint64, omit []Frames) (*Supply, error)
	// Each is told how far it is, by the indexes of entries; nil: nobody wants to know.
	Each func(done, goal uint64)
}

// Frames is a range of frames, by their numbers.
type Frames struct {
	First uint64 `json:"first"`
	Last  uint64 `json:"last"`
}

// Supply is a part of the agreed log for a member that heals. Whatever is in it is committed.
type Supply struct {
	// Entries are some, in order. A frame that was to be omitted has no Data, and its number in Head.
	Entries []Entry `json:"entries"`
	// Frame and Hash are those of the last frame in Entries; 0: there is none.
	Frame uint64      `json:"frame"`
	Hash  engine.Hash `json:"hash"`
	// Commit is the index of the last entry that is committed.
	Commit uint64 `json:"commit"`
}

// mostOmitted bounds the ranges in one question.
const mostOmitted = 512

// Healed is what came of it.
type Healed struct {
	Last         EntryID     // of the new log
	Head         engine.Head // of its last frame; all are committed
	Own, Fetched uint64      // frames that were found in the files, and that others gave
	Unread       []string    // files that could not be read to their end
}

// errForgot is the error of a member that does not know any more what it has promised.
var errForgot = errors.New("neither the high-water mark nor the journal says in which term this " +
	"member has answered last: it must not vote any more; it can join the cluster again as a new member")

// IsForgotten reports whether an error of Heal is final: this member must not vote any more.
func IsForgotten(err error) bool { return errors.Is(err, errForgot) }

// keptHealed is the folder that the damaged journal is in while the new one takes its place.
const keptHealed = lostPrefix + "healed"

// Heal makes the journal of a member anew: of the good frames in its files, and of what others give
// for the rest. The new one holds what is committed, up to the end of the leader's log at some time
// after this member stopped to answer, so that nothing is forgotten which this member has answered
// for; term and vote stay. Each frame must follow the one before it, up to one that the leader
// names as committed, and the mark and the checkpoints of this member must agree. The new journal
// takes the place of the old one in one step: a crash leaves either the one or the other. Then the
// old one is deleted. After an error Heal may be called again.
func Heal(ctx context.Context, o HealOptions) (h *Healed, err error) {
	o.ReadOnly = true
	if err := o.validate(); err != nil {
		return nil, err
	}
	if _, err := undoSwap(&o.Options); err != nil {
		return nil, err
	}
	claimed := o.lock != nil
	if !claimed {
		if o.lock, err = lockJournal(&o.Options); err != nil {
			return nil, err
		}
	}
	var work *disk.Lock
	defer func() {
		if work != nil {
			err = errors.Join(err, work.Close(), o.FS.RemoveAll(filepath.Join(o.Dir, salvageFolder)))
		}
		if claimed {
			err = errors.Join(err, o.lock.Renew()) // of the folder that has the name now
		} else if o.lock != nil {
			err = errors.Join(err, o.lock.Close())
		}
		if err == nil {
			err = o.FS.RemoveAll(filepath.Join(o.Dir, keptHealed))
		}
		if err != nil {
			h, err = nil, fmt.Errorf("heal %s: %w", o.Dir, err)
		}
	}()
	m := &healer{o: &o, Healed: &Healed{}, rescuer: &rescuer{ctx: ctx, work: &work,
		o: &RescueOptions{Options: o.Options}}}
	return m.Healed, m.heal()
}

// healer is one Heal at work.
type healer struct {
	*rescuer
	*Healed
	o       *HealOptions
	ballot  Ballot // that this member knows of
	unknown bool   // the mark cannot be read
	goal    Goal
	found   *collector
	db      *pebble.DB
	batch   *pebble.Batch
	frame   engine.Frame
	own     []Frames // whose frames were found in the files
}

func (m *healer) heal() error {
	if err := m.remember(); err != nil {
		return err
	}
	var err error
	if m.goal, err = m.o.Goal(m.ctx, m.ballot.Term); err != nil {
		return err
	}
	if m.goal.Term < m.ballot.Term || m.goal.Last == 0 {
		return fmt.Errorf("a leader of term %d cannot know what this member answered in term %d",
			m.goal.Term, m.ballot.Term)
	}
	old := filepath.Join(m.o.Dir, "journal")
	kept := filepath.Join(m.o.Dir, keptHealed)
	if err := errors.Join(m.workplace(), m.o.FS.RemoveAll(kept), m.room(old)); err != nil {
		return err
	}
	if err := m.write(func(db *pebble.DB) error { return m.build(db, old) }); err != nil {
		return err
	}
	if m.unknown {
		head := &m.Head
		mark := Mark{m.o.ID, head.Frame, head.Sequence, head.Hash,
			Promise{m.Last, m.ballot.Term, m.ballot.Vote}}
		if err := WriteMark(m.o.FS, m.o.Dir, mark); err != nil {
			return err
		}
	}
	if err := m.test(); err != nil {
		return err
	}
	m.Kept = kept
	if err := disk.MakeFolder(m.o.FS, kept); err != nil {
		return err
	}
	return m.exchange()
}

// remember finds out the last term that this member answered in, and its vote. The mark has both
// before any answer leaves; the journal has them, too, if that part of it is good.
func (m *healer) remember() error {
	mark, err := readMark(m.o.FS, filepath.Join(m.o.Dir, markName))
	m.unknown = err != nil || mark.good == 0
	m.ballot = Ballot{Term: mark.Promise.Term, Vote: mark.Promise.Vote}
	if mark.good > 0 && mark.Journal != m.o.ID {
		return fmt.Errorf("the high-water mark belongs to the journal %016x, this one is %016x",
			mark.Journal, m.o.ID)
	}
	j, err := Open(m.o.Options)
	var locked *disk.LockedError
	switch {
	case errors.As(err, &locked):
		return err
	case err != nil && m.unknown:
		return fmt.Errorf("%w: %w", errForgot, err)
	case err != nil:
		return nil
	case j.agreed == nil && m.unknown:
		err = errForgot
	case j.agreed != nil:
		if b := j.agreed.Ballot(); m.unknown || b.Term > m.ballot.Term ||
			b.Term == m.ballot.Term && m.ballot.Vote == 0 {
			m.ballot = b
		}
	}
	return errors.Join(err, j.Close())
}

// build writes the new database.
func (m *healer) build(db *pebble.DB, old string) (err error) {
	m.db = db
	if m.found, err = collect(m.rescuer, old, db); err != nil {
		return err
	}
	m.Unread = m.found.unread
	for _, no := range slices.Sorted(maps.Keys(m.found.seen)) {
		if n := len(m.own); n > 0 && m.own[n-1].Last+1 == no {
			m.own[n-1].Last = no
		} else {
			m.own = append(m.own, Frames{no, no})
		}
	}
	m.batch = db.NewBatch()
	defer func() { err = errors.Join(err, m.batch.Close()) }()
	for commit := uint64(0); m.Last.Index < m.goal.Last; {
		if m.o.Each != nil {
			m.o.Each(m.Last.Index, m.goal.Last)
		}
		s, err := m.supply(m.omitted())
		if err == nil && !m.fits(s) { // a frame of its own is not the one that is committed
			s, err = m.supply(nil)
			if err == nil && !m.fits(s) {
				err = errors.New("what the leader gives does not follow what it gave before")
			}
		}
		if err == nil {
			err = m.add(s)
		}
		if err == nil && len(s.Entries) == 0 && s.Commit <= commit {
			err = fmt.Errorf("only %d of %d entries of the leader's log are committed", s.Commit,
				m.goal.Last)
		}
		if err != nil {
			return err
		}
		commit = s.Commit
	}
	return m.finish()
}

// omitted are the ranges of frames, from the next one on, that need not be sent.
func (m *healer) omitted() []Frames {
	for len(m.own) > 0 && m.own[0].Last <= m.Head.Frame {
		m.own = m.own[1:]
	}
	return m.own[:min(len(m.own), mostOmitted)]
}

func (m *healer) supply(omit []Frames) (*Supply, error) {
	return m.o.Supply(m.ctx, m.Last.Index+1, omit)
}

// fits fills in the frames of its own and reports whether all of s follows the log so far, up to
// the frame that the leader names.
func (m *healer) fits(s *Supply) bool {
	last, end := m.Last, m.Head
	for i := range s.Entries {
		e := &s.Entries[i]
		if e.Index != last.Index+1 || e.Term < last.Term || e.Term == 0 || e.Index > s.Commit {
			return false
		}
		last = e.EntryID
		if e.Kind != 0 || len(e.Data) == 0 && e.Head.Frame == 0 {
			continue
		}
		b := e.Data
		if e.Head.Frame != 0 {
			b, _ = m.found.get(e.Head.Frame)
		}
		if engine.DecodeFrame(b, &m.frame) != nil || Follows(&m.frame, end, e.Term) != nil {
			return false
		}
		end = m.frame.Head()
		if len(e.Data) > 0 {
			e.Head = end
		}
	}
	return s.Frame == 0 || s.Frame == end.Frame && s.Hash == end.Hash
}

// add writes what fits.
func (m *healer) add(s *Supply) error {
	for i := range s.Entries {
		e := &s.Entries[i]
		m.Last = e.EntryID
		number := e.Head.Frame
		if number > 0 {
			b := e.Data
			if len(b) == 0 {
				m.Own++
				b, _ = m.found.get(number)
			} else {
				m.Fetched++
			}
			if err := engine.DecodeFrame(b, &m.frame); err != nil {
				return err
			}
			m.Head = m.frame.Head()
		}
		if err := m.set(e, number); err != nil {
			return err
		}
	}
	return m.commit()
}

// set writes an entry, and a frame that others gave.
func (m *healer) set(e *Entry, number uint64) error {
	if number > 0 && len(e.Data) == 0 { // the frame is there
		return setRow(m.batch, e.EntryID, number)
	}
	return setEntry(m.batch, e, number)
}

// commit gives the batch to the database.
func (m *healer) commit() error {
	if err := m.batch.Commit(pebble.NoSync); err != nil {
		return err
	}
	err := errors.Join(m.batch.Close(), m.drain())
	m.batch = m.db.NewBatch()
	return err
}

// finish writes what the database says of itself. Frames behind the end were never agreed on, or
// come again.
func (m *healer) finish() error {
	m.ballot.Commit = m.Last.Index
	if m.Last.Term > m.ballot.Term {
		m.ballot.Term, m.ballot.Vote = m.Last.Term, 0 // it has answered nothing in that term
	}
	behind := frameKey(m.Head.Frame + 1)
	about := meta{format: Version, id: m.o.ID, created: m.goal.Created}
	return errors.Join( // every entry has its row, so the base is 0
		m.batch.DeleteRange(behind[:], []byte{spaceFrame + 1}, nil),
		m.batch.Set(metaKey(metaBase), make([]byte, 8), nil),
		(&Agreed{}).setBallot(m.batch, m.ballot), m.commit(), about.save(m.db, pebble.NoSync))
}

// test reads the new journal as a start will.
func (m *healer) test() error {
	again := m.o.Options
	again.folder, again.lock = filepath.Join(m.o.Dir, salvageFolder), *m.work
	j, err := Open(again)
	if err != nil {
		return fmt.Errorf("open the new journal: %w", err)
	}
	head, err := j.Recover(nil, nil)
	if err == nil && (head.Frame != m.Head.Frame || head.Hash != m.Head.Hash) {
		err = fmt.Errorf("the new journal ends with frame %d, and not with %d", head.Frame, m.Head.Frame)
	}
	return errors.Join(err, j.Close())
}

// CanHeal reports whether an error of opening, replaying or reading a member's journal is one that
// Heal makes good: something of it is damaged or lost. It does not if the program is of another
// version than the one that wrote it, or computes something else.
func CanHeal(err error) bool {
	var broken *Break
	var promised *PromiseError
	switch {
	case errors.Is(err, errForgot):
		return false
	case errors.As(err, &promised):
		return true
	case errors.As(err, &broken) && broken.Hint != "":
		return false
	}
	return IsDamage(err) && !errors.Is(err, errNewer) && !errors.Is(err, fs.ErrPermission)
}
