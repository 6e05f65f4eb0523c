package journal

import (
	"encoding/binary"
	"errors"
	"fmt"
	"path/filepath"
	"sync"
	"time"

	"clobd/engine"
	"clobd/journal/disk"

	"github.com/cockroachdb/pebble/v2"
)

// Agreed is the journal of a cluster's member: the members agree on its frames, so that the log
// they agree on is the journal itself. Entries that came last may still be taken back. Readers of
// the Journal see only frames for which Commit was called. One goroutine calls Write, one Settle,
// one Commit and one Note; any goroutine may call the others. The zero-th entry stands for the
// beginning: index 0, term 0.
type Agreed struct {
	// Base is the number of frames that were written before the journal had members: entry i up to
	// Base is frame i, and its term is that frame's epoch.
	Base uint64

	j     *Journal
	steps chan written // from Write to Settle
	count uint64       // numbers the Writes, for the watch over the disk
	frame engine.Frame

	mu     sync.Mutex
	ballot Ballot
	last   EntryID     // written last
	tail   []tailFrame // frames that are not committed, in order
	commit uint64      // index of the last entry committed
	floor  engine.Head // of the last frame committed
}

// EntryID names an entry of the agreed log.
type EntryID struct{ Index, Term uint64 }

// Less reports whether a log that ends with a is behind one that ends with b.
func (a EntryID) Less(b EntryID) bool {
	return a.Term < b.Term || a.Term == b.Term && a.Index < b.Index
}

// Entry is one entry of the agreed log: a frame, or words of those who agree.
type Entry struct {
	EntryID
	// Kind is 0 for a frame, and for an entry without Data; else it says what the words in Data are.
	Kind byte
	Data []byte
	// Head is that of a frame which the caller has made or judged itself; else it is zero, and Write
	// decodes and checks the frame.
	Head engine.Head
}

// Ballot is what a member must remember beside its entries: the term that it knows of, the member
// that it voted for in that term, 0 for none, and the index of an entry that is committed.
type Ballot struct{ Term, Vote, Commit uint64 }

// Promise is what a member has answered for, as its mark says: other members count on it. A member
// that finds less in its journal must never vote again.
type Promise struct {
	Entry      EntryID // its log reached this entry
	Term, Vote uint64
}

// PromiseError is the error of a member that has lost what it promised.
type PromiseError struct {
	Promise Promise
	Last    EntryID // the last entry that there is
	Ballot  Ballot  // that there is
	Path    string
}

// Error says what is lost.
func (e *PromiseError) Error() string {
	return fmt.Sprintf("journal %s ends at entry %d of term %d and knows of term %d, but this member "+
		"answered for entry %d of term %d in term %d: it must not vote any more; it can join the cluster "+
		"again as a new member", e.Path, e.Last.Index, e.Last.Term, e.Ballot.Term,
		e.Promise.Entry.Index, e.Promise.Entry.Term, e.Promise.Term)
}

// errMember is the error of who treats a member's journal as that of a node that is alone.
var errMember = errors.New("the journal is that of a cluster's member")

// tailFrame is a frame that is not committed.
type tailFrame struct {
	index uint64
	head  engine.Head
}

// written is a Write on its way to Settle.
type written struct {
	batch   *pebble.Batch // nil: nothing waits for a sync
	promise Promise
	frames  []tailFrame
	voted   bool // Term or Vote moved
	hard    bool // others may count on what is in it
	start   time.Time
	no      uint64
}

// The row of an entry has its term and the number of its frame, 0 if it is none. The row of words
// has Kind and Data.
const rowSize = 16

const (
	metaBase   = "base"
	metaBallot = "ballot"
)

// Member is j for the cluster that agrees on it; nil if j is a journal that is alone.
func Member(j *Journal) *Agreed { return j.agreed }

// Enroll makes j, which must have been recovered, the journal of a cluster's member. The words come
// behind its frames, as entries Base+1 and following: they are the same at all first members. Who
// joins later has an empty journal, no words and a zero Ballot.
func Enroll(j *Journal, words []Entry, b Ballot) (*Agreed, error) {
	switch {
	case j.agreed != nil:
		return nil, fmt.Errorf("enroll %s: %w", j.Path, errMember)
	case !j.recovered || j.Options.ReadOnly || j.Options.Async:
		return nil, fmt.Errorf("enroll %s: not recovered, for reading only, or without syncs", j.Path)
	}
	a := newAgreed(j, j.head.Frame)
	if err := a.found(j.db.NewBatch(), j.head, words, b); err != nil {
		return nil, fmt.Errorf("enroll %s: %w", j.Path, err)
	}
	if err := j.mark.close(); err != nil { // from now on Note writes it
		return nil, fmt.Errorf("enroll %s: %w", j.Path, err)
	}
	j.mark, j.agreed = nil, a
	return a, j.startMark(j.head)
}

// Refound makes j, which must be a member's journal and recovered, that of the first member of
// another cluster, in one write. All its frames are kept, also those that nobody knows to be
// committed, and are what comes before the words, as with Enroll. Nothing is left of the entries
// and of the old ballot; the new one must have a later term. Only Close may be called afterwards.
func Refound(j *Journal, words []Entry, b Ballot) error {
	old := j.agreed
	if old == nil || j.mark == nil {
		return fmt.Errorf("found a cluster on %s: it is no member's, not recovered, or for reading only",
			j.Path)
	}
	old.mu.Lock()
	defer old.mu.Unlock()
	if b.Term <= max(old.ballot.Term, old.last.Term) {
		return fmt.Errorf("found a cluster on %s: term %d is not behind term %d", j.Path, b.Term,
			old.ballot.Term)
	}
	end := old.end()
	a, batch := newAgreed(j, end.Frame), j.db.NewBatch()
	err := errors.Join(
		batch.DeleteRange(entryKey(spaceEntry, 0), []byte{spaceEntry + 1}, nil),
		batch.DeleteRange(entryKey(spaceWords, 0), []byte{spaceWords + 1}, nil))
	if err == nil {
		err = a.found(batch, end, words, b)
	}
	if err != nil {
		return fmt.Errorf("found a cluster on %s: %w", j.Path, err)
	}
	j.agreed = a // its ballot is behind the mark, whatever that promised: Close writes the new one
	j.mark.mu.Lock()
	j.mark.latest = Mark{j.ID, end.Frame, end.Sequence, end.Hash, a.promised()}
	j.mark.mu.Unlock()
	return nil
}

// found writes, in one batch, which it closes, that this member's log begins with the frames up to
// head and goes on with words.
func (a *Agreed) found(batch *pebble.Batch, head engine.Head, words []Entry, b Ballot) error {
	a.last, a.floor, a.commit = EntryID{a.Base, head.Epoch}, head, a.Base
	base := binary.BigEndian.AppendUint64(nil, a.Base)
	err := errors.Join(batch.Set(metaKey(metaBase), base, nil), a.setBallot(batch, b))
	for i := range words {
		w := &words[i]
		if w.Index != a.last.Index+1 || w.Term < a.last.Term || w.Kind == 0 {
			err = errors.Join(err, fmt.Errorf("entry %d of term %d and kind %d is out of place", w.Index,
				w.Term, w.Kind))
		}
		err = errors.Join(err, setEntry(batch, w, 0))
		a.last = w.EntryID
	}
	if b.Commit > a.last.Index {
		err = errors.Join(err, fmt.Errorf("entry %d cannot be committed", b.Commit))
	}
	if err == nil {
		err = batch.Commit(pebble.Sync)
	}
	a.ballot, a.commit, a.count = b, max(b.Commit, a.Base), head.Frame
	return errors.Join(err, batch.Close())
}

func newAgreed(j *Journal, base uint64) *Agreed {
	return &Agreed{Base: base, j: j, steps: make(chan written, inFlight)}
}

// openAgreed reads a member's description of itself and the end of its log; nil for a journal that
// is alone. It returns the last frame that is committed for sure.
func openAgreed(j *Journal) (a *Agreed, frame uint64, err error) {
	base, found, err := disk.Get(j.db, metaKey(metaBase), nil)
	if err != nil || !found {
		return nil, 0, err
	}
	ballot, found, err := disk.Get(j.db, metaKey(metaBallot), nil)
	if err != nil || !found || len(base) != 8 || len(ballot) != 24 {
		return nil, 0, errors.Join(err, errors.New("what it says of its cluster is malformed"))
	}
	be := binary.BigEndian
	a = newAgreed(j, be.Uint64(base))
	a.ballot = Ballot{be.Uint64(ballot), be.Uint64(ballot[8:]), be.Uint64(ballot[16:])}
	if a.last, err = a.findLast(); err != nil {
		return nil, 0, err
	}
	a.commit = min(max(a.ballot.Commit, a.Base), a.last.Index)
	if frame, err = a.frameAt(a.commit); err != nil {
		return nil, 0, err
	}
	seen := acknowledged(j)
	for i := a.commit + 1; i <= a.last.Index && frame < seen; i++ {
		r, err := a.row(i)
		if err != nil {
			return nil, 0, err
		}
		if r.frame > 0 {
			a.commit, frame = i, r.frame
		}
	}
	return a, frame, nil
}

// acknowledged is the last frame that the mark, a checkpoint or another Witness knows of: readers
// have seen it, so it is committed, even if no ballot was written since. The replay judges whether
// that frame is there.
func acknowledged(j *Journal) uint64 {
	seen := farthest(j).Frame
	if m, err := readMark(j.Options.FS, filepath.Join(j.Dir, markName)); err == nil &&
		m.Journal == j.ID {
		seen = max(seen, m.Frame)
	}
	return seen
}

// findLast is the last entry in the database.
func (a *Agreed) findLast() (EntryID, error) {
	it, err := a.j.db.NewIter(&pebble.IterOptions{LowerBound: entryKey(spaceEntry, 0),
		UpperBound: []byte{spaceEntry + 1}})
	if err != nil {
		return EntryID{}, err
	}
	index := a.Base
	if it.Last() {
		if index = binary.BigEndian.Uint64(it.Key()[1:]); index <= a.Base {
			err = fmt.Errorf("entry %d is there, and the base is %d", index, a.Base)
		}
	}
	if err = errors.Join(err, it.Close()); err != nil {
		return EntryID{}, err
	}
	term, err := a.term(index)
	return EntryID{index, term}, err
}

// frameAt is the number of the last frame up to entry index.
func (a *Agreed) frameAt(index uint64) (uint64, error) {
	for ; index > a.Base; index-- {
		if r, err := a.row(index); err != nil || r.frame > 0 {
			return r.frame, err
		}
	}
	return a.Base, nil
}

// arrive reads the frames behind the last one committed, and checks that all that was promised is
// there.
func (a *Agreed) arrive(head engine.Head) error {
	a.floor, a.tail, a.count = head, nil, head.Frame
	for i := a.commit + 1; i <= a.last.Index; i++ {
		r, err := a.row(i)
		if err != nil {
			return err
		}
		if r.frame == 0 {
			continue
		}
		b, err := a.j.frameBytes(r.frame)
		if err != nil {
			return err
		}
		h, err := a.judge(&Entry{EntryID: EntryID{i, r.term}, Data: b})
		if err != nil {
			broken := unreadable(r.frame, err)
			broken.Path, broken.Sequence = a.j.Path, head.Sequence+1
			return broken
		}
		a.tail = append(a.tail, tailFrame{i, h})
	}
	m, err := readMark(a.j.Options.FS, filepath.Join(a.j.Dir, markName))
	if err != nil {
		return err
	}
	p, b := m.Promise, a.ballot
	if p.Entry.Index > 0 && a.last.Less(p.Entry) || b.Term < p.Term ||
		b.Term == p.Term && p.Vote != 0 && b.Vote != p.Vote || b.Commit > a.last.Index {
		return &PromiseError{Promise: p, Last: a.last, Ballot: b, Path: a.j.Path}
	}
	return nil
}

// end is the head that the next frame follows. Callers hold mu, or are alone.
func (a *Agreed) end() engine.Head {
	if n := len(a.tail); n > 0 {
		return a.tail[n-1].head
	}
	return a.floor
}

// judge decodes the frame of e and checks that it follows the last one.
func (a *Agreed) judge(e *Entry) (engine.Head, error) {
	end, f := a.end(), &a.frame
	if e.Head != (engine.Head{}) {
		if e.Head.Frame != end.Frame+1 {
			return e.Head, fmt.Errorf("own frame %d after frame %d", e.Head.Frame, end.Frame)
		}
		return e.Head, nil
	}
	if err := engine.DecodeFrame(e.Data, f); err != nil {
		return engine.Head{}, err
	}
	if err := Follows(f, end, e.Term); err != nil {
		return end, err
	}
	return f.Head(), nil
}

// Follows returns nil if a frame that was decoded may come behind the end of others, in an entry of
// that term.
func Follows(f *engine.Frame, end engine.Head, term uint64) error {
	switch {
	case f.No != end.Frame+1 || f.First != end.Sequence+1:
		return fmt.Errorf("frame %d with Sequence %d comes after frame %d with Sequence %d", f.No,
			f.First, end.Frame, end.Sequence)
	case f.Prev != end.Hash:
		return fmt.Errorf("broken chain: it follows a frame with hash %x, frame %d has %x", f.Prev[:4],
			end.Frame, end.Hash[:4])
	case f.Epoch != term || f.Time < end.Time:
		return fmt.Errorf("it has epoch %d and time %d; its term is %d, and the time was %d", f.Epoch,
			f.Time, term, end.Time)
	}
	return nil
}

// Write writes entries behind the last ones, and the Ballot unless it is zero, in one batch. If the
// first entry's index is there already, that entry and all behind it are replaced. Write returns
// before anything is durable; Settle waits for that. Entries that are committed cannot be replaced,
// frames must follow each other; an error is final.
func (a *Agreed) Write(entries []Entry, b Ballot) error {
	j := a.j
	if !j.gate.Enter() {
		return ErrClosed
	}
	defer j.gate.Leave()
	if failed := j.failed.Load(); failed != nil {
		return *failed
	}
	if j.mark == nil {
		return fmt.Errorf("write entries to %s: not recovered, for reading only, or without syncs",
			j.Path)
	}
	batch := j.db.NewBatch()
	a.mu.Lock()
	s, err := a.stage(batch, entries, b)
	a.mu.Unlock()
	if err == nil {
		err = a.apply(batch, &s)
	}
	if err != nil {
		return j.failAs("entries cannot be written", err)
	}
	a.steps <- s
	return nil
}

// stage puts a Write into the batch. Callers hold mu.
func (a *Agreed) stage(batch *pebble.Batch, entries []Entry, b Ballot) (s written, err error) {
	if len(entries) > 0 {
		if err := a.truncate(batch, entries[0].Index); err != nil {
			return s, err
		}
	}
	for i := range entries {
		e := &entries[i]
		if e.Index != a.last.Index+1 || e.Term < a.last.Term {
			return s, fmt.Errorf("entry %d of term %d comes after entry %d of term %d", e.Index, e.Term,
				a.last.Index, a.last.Term)
		}
		number := uint64(0)
		if e.Kind == 0 && len(e.Data) > 0 {
			head, err := a.judge(e)
			if err != nil {
				return s, fmt.Errorf("entry %d: %w", e.Index, err)
			}
			number = head.Frame
			s.frames = append(s.frames, tailFrame{e.Index, head})
			a.tail = append(a.tail, s.frames[len(s.frames)-1])
			a.j.gauges.appended(len(e.Data), int(head.Sequence-a.before(head)))
		}
		if err := setEntry(batch, e, number); err != nil {
			return s, err
		}
		a.last = e.EntryID
	}
	if b != (Ballot{}) {
		s.voted = b.Term != a.ballot.Term || b.Vote != a.ballot.Vote
		if a.ballot = b; b.Commit > a.last.Index {
			return s, fmt.Errorf("entry %d is committed, the last one is %d", b.Commit, a.last.Index)
		}
		if err := a.setBallot(batch, b); err != nil {
			return s, err
		}
	}
	s.promise, s.hard = a.promised(), s.voted || len(entries) > 0
	return s, nil
}

// before is the Sequence before the tail's last frame, whose head is given.
func (a *Agreed) before(head engine.Head) engine.Sequence {
	if n := len(a.tail); n > 1 {
		return a.tail[n-2].head.Sequence
	}
	return a.floor.Sequence
}

// promised is what holds once everything that was written is durable. Callers hold mu.
func (a *Agreed) promised() Promise { return Promise{a.last, a.ballot.Term, a.ballot.Vote} }

// truncate takes the entries from index on away.
func (a *Agreed) truncate(batch *pebble.Batch, index uint64) error {
	if index > a.last.Index {
		return nil
	}
	if index <= a.commit {
		return fmt.Errorf("entry %d would be replaced, but entry %d is committed", index, a.commit)
	}
	end := a.last.Index + 1
	err := errors.Join(
		batch.DeleteRange(entryKey(spaceEntry, index), entryKey(spaceEntry, end), nil),
		batch.DeleteRange(entryKey(spaceWords, index), entryKey(spaceWords, end), nil))
	n := len(a.tail)
	for n > 0 && a.tail[n-1].index >= index {
		n--
	}
	if n < len(a.tail) {
		first := frameKey(a.tail[n].head.Frame)
		behind := frameKey(a.tail[len(a.tail)-1].head.Frame + 1)
		err = errors.Join(err, batch.DeleteRange(first[:], behind[:], nil))
		a.tail = a.tail[:n]
	}
	a.last = EntryID{index - 1, 0}
	if err == nil {
		a.last.Term, err = a.term(index - 1)
	}
	return err
}

// apply gives the batch to the database, with a sync if others may count on what is in it.
func (a *Agreed) apply(batch *pebble.Batch, s *written) error {
	s.start = time.Now()
	a.count++
	s.no = a.count
	a.j.unsynced.Begin(s.no, s.start)
	if !s.hard { // at most that more is committed
		defer batch.Close()
		if batch.Empty() {
			return nil
		}
		return a.j.db.Apply(batch, pebble.NoSync)
	}
	s.batch = batch
	return a.j.apply(batch)
}

// Settle waits until the oldest Write that is not settled is durable. Whatever that Write lets the
// member answer may leave then. If the vote or the term moved, the mark says so first.
func (a *Agreed) Settle() error {
	var s written
	select {
	case s = <-a.steps:
	case <-a.j.closing:
		return ErrClosed
	case <-a.j.broken:
		return *a.j.failed.Load()
	}
	if s.batch != nil {
		err := s.batch.SyncWait()
		if err == nil {
			err = s.batch.Close()
		}
		if err != nil {
			return a.j.failAs("entries are not durable", fmt.Errorf("sync entries up to %d: %w",
				s.promise.Entry.Index, err))
		}
	}
	a.j.unsynced.Done(s.no)
	if len(s.frames) > 0 {
		a.j.gauges.sync.Observe(time.Since(s.start).Seconds())
	}
	k := a.j.mark
	k.mu.Lock()
	k.latest.Promise = s.promise
	k.mu.Unlock()
	if s.voted {
		_, err := a.Note()
		return err
	}
	return nil
}

// Note writes the mark if it is not the newest, into the older of its slots: a second call makes
// both equal. It reports whether it wrote.
func (a *Agreed) Note() (wrote bool, err error) {
	k := a.j.mark
	k.writing.Lock()
	defer k.writing.Unlock()
	k.mu.Lock()
	m := k.latest
	k.mu.Unlock()
	if k.slots[0] == m && k.slots[1] == m {
		return false, nil
	}
	if err := k.write(m); err != nil {
		k.fail(err)
		return false, err
	}
	return true, nil
}

// Commit shows the entry, the one after the last that was committed, to the Tails: its place in the
// log is final. It must be durable.
func (a *Agreed) Commit(e *Entry) error {
	a.mu.Lock()
	defer a.mu.Unlock()
	if e.Index != a.commit+1 || e.Index > a.last.Index {
		return fmt.Errorf("entry %d cannot be committed after entry %d, the last one is %d", e.Index,
			a.commit, a.last.Index)
	}
	a.commit = e.Index
	if e.Kind != 0 || len(e.Data) == 0 {
		return nil
	}
	if len(a.tail) == 0 || a.tail[0].index != e.Index {
		return fmt.Errorf("entry %d is no frame that waits", e.Index)
	}
	h := a.tail[0].head
	a.tail, a.floor = a.tail[1:], h
	a.j.gauges.sequence.Store(uint64(h.Sequence))
	a.j.latest.push(h.Frame, e.Data)
	k := a.j.mark
	k.mu.Lock()
	m := &k.latest
	m.Frame, m.Sequence, m.Hash = h.Frame, h.Sequence, h.Hash
	k.mu.Unlock()
	return nil
}

// Last is the last entry that was written.
func (a *Agreed) Last() EntryID {
	a.mu.Lock()
	defer a.mu.Unlock()
	return a.last
}

// Committed is the index of the last entry that is known to be committed, and the end of the frames
// up to it.
func (a *Agreed) Committed() (uint64, engine.Head) {
	a.mu.Lock()
	defer a.mu.Unlock()
	return a.commit, a.floor
}

// Tail is the ends of the frames that are not committed, by the index of their entries.
func (a *Agreed) Tail() map[uint64]engine.Head {
	a.mu.Lock()
	defer a.mu.Unlock()
	heads := map[uint64]engine.Head{}
	for _, t := range a.tail {
		heads[t.index] = t.head
	}
	return heads
}

// Ballot is the ballot that was written last.
func (a *Agreed) Ballot() Ballot {
	a.mu.Lock()
	defer a.mu.Unlock()
	return a.ballot
}

// close writes both slots of the mark, and closes what nobody will settle.
func (a *Agreed) close() (err error) {
	for wrote := a.j.mark != nil; wrote && err == nil; {
		wrote, err = a.Note()
	}
	for {
		select {
		case s := <-a.steps:
			if s.batch != nil {
				err = errors.Join(err, s.batch.SyncWait(), s.batch.Close())
			}
		default:
			return err
		}
	}
}
