package raft

import (
	"errors"
	"fmt"
	"slices"
	"sync"

	"clobd/journal"

	"go.etcd.io/raft/v3"
	"go.etcd.io/raft/v3/confchange"
	pb "go.etcd.io/raft/v3/raftpb"
	"go.etcd.io/raft/v3/tracker"
	"google.golang.org/protobuf/proto"
)

// storage shows a member's journal to the library: it is a raft.Storage. The newest entries are in
// memory, in the same bytes that were written; older ones are read from the database. The whole log
// is kept, so that every member can be brought up to date with entries, and no snapshot is needed.
// The Core's goroutine reads, and the one that writes calls note. Entries that only a member behind
// needs are read elsewhere, so that no commit waits for that: see Read.
type storage struct {
	agreed *journal.Agreed
	hard   *pb.HardState // at the start
	conf   *pb.ConfState // at the start: after the last entry committed
	names  map[uint64]string
	// nominated are the learners that will vote, and the indexes of the entries that say so.
	nominated map[uint64]uint64
	removed   map[uint64]bool

	// The Core's: what was applied, old entries that were read, and those to be read, by the first.
	applied uint64
	chunks  []portion
	wanted  []lacking
	reading map[uint64]bool
	unread  error  // why an old entry cannot be read; the Core's
	asker   uint64 // the member whose message makes the library look for entries; 0: no message does
	readers map[uint64]*lagger
	ticks   uint64

	mu     sync.Mutex
	last   journal.EntryID
	recent []*pb.Entry // the last entries
	bytes  int         // of their data
}

// recentBytes bounds the entries in memory.
const recentBytes = 8 << 20

// newStorage reads what the journal says of the cluster.
func newStorage(a *journal.Agreed) (*storage, error) {
	b := a.Ballot()
	commit, _ := a.Committed()
	s := &storage{agreed: a, last: a.Last(), applied: commit, reading: map[uint64]bool{},
		readers: map[uint64]*lagger{}}
	s.hard = &pb.HardState{Term: new(b.Term), Vote: new(b.Vote), Commit: new(commit)}
	words, err := a.Words(s.last.Index)
	if err != nil {
		return nil, fmt.Errorf("read the members: %w", err)
	}
	return s, s.members(words, commit)
}

// name notes what a member that is admitted is called, and forgets it when it is removed.
func name(names map[uint64]string, change *pb.ConfChange) {
	switch {
	case change.GetType() == Remove:
		delete(names, change.GetNodeId())
	case len(change.GetContext()) > 0:
		names[change.GetNodeId()] = string(change.GetContext())
	}
}

// members carries out the changes of membership in words, from none at all on. Of those behind the
// last one committed it only notes who will vote.
func (s *storage) members(words []journal.Entry, commit uint64) error {
	s.conf, s.names, s.nominated = &pb.ConfState{}, map[uint64]string{}, map[uint64]uint64{}
	s.removed = map[uint64]bool{}
	for i := range words {
		change, err := changeOf(words[i].Kind, words[i].Data)
		if err != nil {
			return fmt.Errorf("entry %d: %w", words[i].Index, err)
		}
		if nominates(change) {
			s.nominated[change.GetNodeId()] = words[i].Index
		}
		if words[i].Index > commit {
			continue
		}
		conf, err := changed(s.conf, change)
		if err != nil {
			continue // it makes no sense, and so changed nothing
		}
		s.conf = conf
		name(s.names, change)
		if change.GetType() == Remove {
			delete(s.nominated, change.GetNodeId())
			s.removed[change.GetNodeId()] = true
		}
	}
	return nil
}

// Members returns the members of the cluster and their names, by the changes in a member's journal
// that are known to be committed. highest is the highest id in any change, committed or not.
func Members(a *journal.Agreed) (conf *pb.ConfState, names map[uint64]string, highest uint64,
	err error) {
	s, err := newStorage(a)
	if err != nil {
		return nil, nil, 0, err
	}
	words, err := a.Words(s.last.Index)
	for i := range words {
		change, wrong := changeOf(words[i].Kind, words[i].Data)
		err = errors.Join(err, wrong)
		highest = max(highest, change.GetNodeId())
	}
	return s.conf, s.names, highest, err
}

// changed is the members after a change. One that makes no sense is an error.
func changed(conf *pb.ConfState, change *pb.ConfChange) (*pb.ConfState, error) {
	c := confchange.Changer{Tracker: tracker.MakeProgressTracker(1, 0)}
	var err error
	c.Tracker.Config, c.Tracker.Progress, err = confchange.Restore(c, conf)
	if err == nil {
		c.Tracker.Config, c.Tracker.Progress, err = c.Simple(change.AsV2().GetChanges()...)
	}
	if err != nil {
		return nil, fmt.Errorf("%v %d makes no sense: %w", change.GetType(), change.GetNodeId(), err)
	}
	return c.Tracker.ConfState(), nil
}

// changeOf reads a change of one member.
func changeOf(kind byte, data []byte) (*pb.ConfChange, error) {
	c := new(pb.ConfChange)
	if pb.EntryType(kind) != pb.EntryConfChange {
		return nil, fmt.Errorf("words of the unknown kind %d", kind)
	}
	if err := proto.Unmarshal(data, c); err != nil {
		return nil, fmt.Errorf("a change of members is malformed: %w", err)
	}
	if what := c.GetType(); what != AddLearner && what != Promote && what != Remove ||
		c.GetNodeId() == 0 || c.GetNodeId() >= highest {
		return nil, fmt.Errorf("a change of members: %v %d", what, c.GetNodeId())
	}
	return c, nil
}

// note remembers entries that were written.
func (s *storage) note(entries []*pb.Entry) {
	if len(entries) == 0 {
		return
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	first := entries[0].GetIndex()
	for n := len(s.recent); n > 0 && s.recent[n-1].GetIndex() >= first; n-- {
		s.bytes -= len(s.recent[n-1].GetData())
		s.recent = s.recent[:n-1]
	}
	for _, e := range entries {
		s.recent = append(s.recent, e)
		s.bytes += len(e.GetData())
	}
	e := entries[len(entries)-1]
	s.last = journal.EntryID{Index: e.GetIndex(), Term: e.GetTerm()}
	drop := 0
	for s.bytes > recentBytes && drop < len(s.recent)-1 {
		s.bytes -= len(s.recent[drop].GetData())
		drop++
	}
	clear(s.recent[:drop])
	s.recent = s.recent[drop:]
}

// InitialState returns term, vote, commit and members as the journal had them when it was opened.
func (s *storage) InitialState() (*pb.HardState, *pb.ConfState, error) {
	return s.hard, s.conf, nil
}

// FirstIndex is the first entry's.
func (s *storage) FirstIndex() (uint64, error) { return 1, nil }

// LastIndex is that of the last entry written.
func (s *storage) LastIndex() (uint64, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.last.Index, nil
}

// Term is the term of an entry. The library would panic at the error of a damaged journal. At this
// one it does nothing that needs the entry, and the Core ends with the true one.
func (s *storage) Term(index uint64) (uint64, error) {
	term, err := s.term(index)
	if err != nil && !errors.Is(err, raft.ErrUnavailable) {
		s.unread, err = err, raft.ErrCompacted
	}
	return term, err
}

func (s *storage) term(index uint64) (uint64, error) {
	s.mu.Lock()
	last, e := s.last, s.look(index)
	s.mu.Unlock()
	switch {
	case index > last.Index:
		return 0, raft.ErrUnavailable
	case index == last.Index:
		return last.Term, nil
	case e != nil:
		return e.GetTerm(), nil
	}
	return s.agreed.Term(index)
}

// look is an entry that is in memory, or nil. Callers hold mu.
func (s *storage) look(index uint64) *pb.Entry {
	if len(s.recent) == 0 || index < s.recent[0].GetIndex() || index > s.last.Index {
		return nil
	}
	return s.recent[index-s.recent[0].GetIndex()]
}

// Entries are the entries from low on and before high, at least one, and as many as most bytes
// hold.
func (s *storage) Entries(low, high, most uint64) ([]*pb.Entry, error) {
	s.mu.Lock()
	if high > s.last.Index+1 {
		s.mu.Unlock()
		return nil, raft.ErrUnavailable
	}
	var found []*pb.Entry
	size := uint64(0)
	for i := low; i < high; i++ {
		e := s.look(i)
		if e == nil {
			break
		}
		if size += uint64(proto.Size(e)); len(found) > 0 && size > most {
			break
		}
		found = append(found, e)
	}
	if len(s.recent) > 0 {
		high = min(high, s.recent[0].GetIndex())
	}
	s.mu.Unlock()
	if found != nil {
		return found, nil
	}
	if low <= s.applied {
		return s.old(low, high, most)
	}
	return s.read(low, high, most)
}

// read reads entries from the database.
func (s *storage) read(low, high, most uint64) (found []*pb.Entry, err error) {
	entries, err := s.agreed.Entries(low, high, most)
	for i := range entries {
		found = append(found, toLibrary(&entries[i]))
	}
	return found, err
}

const (
	// chunkBytes is how much of old entries is read at once.
	chunkBytes = 2 << 20
	// mostChunks bounds those in memory, chunksOf those of one member.
	mostChunks = 8
	chunksOf   = 2
	// jumping is how many ticks pass until entries are read for a member that do not follow those
	// read for it before. Who catches up jumps once, and reads on.
	jumping = 4
)

// portion is entries that were read for a member.
type portion struct {
	by      uint64
	entries []*pb.Entry
}

// lacking is entries from low on that a member lacks.
type lacking struct{ by, low uint64 }

// lagger is a member for which old entries are read.
type lagger struct {
	end  uint64 // behind the last entry read
	jump uint64 // the tick from which on it may jump
}

// old are entries that were applied long ago. If they are not in memory, they are wanted, and the
// error makes the library try again when it hears from the member that lacks them.
func (s *storage) old(low, high, most uint64) (found []*pb.Entry, err error) {
	for i := range s.chunks {
		chunk := s.chunks[i].entries
		first := chunk[0].GetIndex()
		end := first + uint64(len(chunk))
		if low < first || low >= end {
			continue
		}
		size := uint64(0)
		for i := low; i < min(high, end); i++ {
			e := chunk[i-first]
			if size += uint64(proto.Size(e)); len(found) > 0 && size > most {
				break
			}
			found = append(found, e)
		}
		if low-first > uint64(len(chunk)/2) { // soon the next ones are needed
			s.want(end)
		}
		return found, nil
	}
	s.want(low)
	return nil, raft.ErrCompacted
}

// want lets entries from low on be read for the member that asks, unless they are in memory. That
// one may make this member read on, and not read here and there.
func (s *storage) want(low uint64) {
	if low > s.applied || s.reading[low] || s.asker == 0 {
		return
	}
	s.mu.Lock()
	e := s.look(low)
	s.mu.Unlock()
	for _, chunk := range s.chunks {
		first := chunk.entries[0].GetIndex()
		if low >= first && low-first < uint64(len(chunk.entries)) {
			return
		}
	}
	if e == nil && s.may(low) {
		s.reading[low], s.wanted = true, append(s.wanted, lacking{s.asker, low})
	}
}

// may reports whether entries from low on may be read now for the member that asks.
func (s *storage) may(low uint64) bool {
	r := s.readers[s.asker]
	if r == nil {
		r = &lagger{jump: s.ticks}
		s.readers[s.asker] = r
	}
	if low != r.end && s.ticks < r.jump {
		return false
	}
	if low != r.end {
		r.jump = s.ticks + jumping
	}
	return true
}

// Read is old entries to be read for a member that is behind.
type Read struct {
	storage   *storage
	by        uint64 // for the member that lacks them
	low, high uint64
	entries   []*pb.Entry
}

// reads are those that are wanted.
func (s *storage) reads() (all []*Read) {
	for _, w := range s.wanted {
		all = append(all, &Read{storage: s, by: w.by, low: w.low, high: s.applied + 1})
	}
	s.wanted = nil
	return all
}

// Do reads. Any goroutine may call it. An error is final: a part of the log is lost.
func (r *Read) Do() (err error) {
	r.entries, err = r.storage.read(r.low, r.high, chunkBytes)
	return err
}

// HasRead tells the Core that a Read is done, or, without Do, that it never will be.
func (c *Core) HasRead(r *Read) {
	s := c.storage
	delete(s.reading, r.low)
	if len(r.entries) == 0 {
		return
	}
	s.keep(portion{r.by, r.entries})
	if of := s.readers[r.by]; of != nil {
		of.end = r.low + uint64(len(r.entries))
	}
	// A heartbeat, as at a tick: whoever lacks entries gets them when he answers it.
	_ = c.raw.Step(&pb.Message{Type: pb.MsgBeat.Enum(), From: new(uint64(raft.LocalAppendThread))})
}

// keep keeps a chunk in place of the oldest of the same member, or of all, if there are too many.
func (s *storage) keep(c portion) {
	same := func(other portion) bool { return other.by == c.by }
	of := 0
	for i := range s.chunks {
		if same(s.chunks[i]) {
			of++
		}
	}
	if of >= chunksOf {
		i := slices.IndexFunc(s.chunks, same)
		s.chunks = slices.Delete(s.chunks, i, i+1)
	} else if len(s.chunks) >= mostChunks {
		s.chunks = slices.Delete(s.chunks, 0, 1)
	}
	s.chunks = append(s.chunks, c)
}

func toLibrary(e *journal.Entry) *pb.Entry {
	to := &pb.Entry{Index: new(e.Index), Term: new(e.Term), Type: pb.EntryType(e.Kind).Enum()}
	if len(e.Data) > 0 {
		to.Data = e.Data
	}
	return to
}

func toJournal(e *pb.Entry) journal.Entry {
	return journal.Entry{EntryID: journal.EntryID{Index: e.GetIndex(), Term: e.GetTerm()},
		Kind: byte(e.GetType()), Data: e.GetData()}
}

// Snapshot is never needed: all members keep the whole log.
func (s *storage) Snapshot() (*pb.Snapshot, error) {
	return nil, raft.ErrSnapshotTemporarilyUnavailable
}
