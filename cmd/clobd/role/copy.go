package role

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"maps"
	"net"
	"os"
	"path/filepath"
	"slices"
	"time"

	"clobd/cmd/clobd/copies"
	"clobd/cmd/clobd/papers"
	"clobd/journal"
	"clobd/journal/disk"
	"clobd/journal/raft"
)

const (
	// farBehind is how many entries the leader must have for a copy to be worth its time.
	farBehind = 1000
	copyFails = 5               // attempts in a row without a chunk, until a member gives a copy up
	copyTries = 20              // and in all
	copyMade  = 5 * time.Minute // how long a giver may take to make a copy
)

var (
	// errCut is the error of a copy of which the rest can come later.
	errCut     = errors.New("the copy is interrupted")
	errBad     = errors.New("the copy is bad")
	errRefused = errors.New("it refuses")
)

// bad marks an error of reading a copy, unless the machine is to blame.
func bad(err error) error {
	if err != nil && disk.Unreadable(err) {
		return fmt.Errorf("%w: %w", errBad, err)
	}
	return err
}

// begin takes a copy of another member if this one has no vote that the others may need meanwhile,
// has nothing in its journal, so that it has answered for no entry, and is far behind. No error is
// returned if none can be taken: then the entries come one by one.
func (p *patient) begin(ctx context.Context) error {
	if slices.Contains(p.Cluster.told(), p.Cluster.ID) || !p.isEmpty() { // it may be the copy
		return copies.Drop(p.Data)
	}
	if copies.Resume(p.Data) == nil && !p.isBehind(ctx) {
		return nil
	}
	p.copying.Store(true)
	defer p.copying.Store(false)
	defer p.Renewing("", "")
	begun := time.Now()
	for fails, tries := 0, 0; fails < copyFails && tries < copyTries; tries++ {
		p.copies("looking for a member that gives one")
		before := p.chunks
		h, err := p.copyOnce(ctx)
		if ctx.Err() != nil {
			return ctx.Err()
		} else if err == nil {
			p.Log.Info("the copy is in its place", "entry", h.Last.Index, "frame", h.Head.Frame, "sequence",
				h.Head.Sequence, "bytes", p.copied.Load(), "took", time.Since(begun).String())
			return p.place()
		}
		if fails++; p.chunks > before {
			fails = 0
		} else if t := copies.Resume(p.Data); fails == copyFails && t != nil {
			fails = 0 // a whole copy waits for a leader; in place of a part another member may give one
			if !t.Complete {
				err = errors.Join(err, copies.Drop(p.Data))
			}
		}
		p.Log.Warn("the copy is not whole yet", "error", plainly(err), "again_in", healPause.String())
		select {
		case <-time.After(healPause):
		case <-ctx.Done():
			return ctx.Err()
		}
	}
	p.Log.Warn("no copy can be taken: the entries come from the leader, one by one")
	return copies.Drop(p.Data)
}

// copies tells how the copy gets on.
func (p *patient) copies(how string) {
	p.Renewing("copying: "+how, "clobd_cluster_copied_bytes_total")
}

// isEmpty reports whether there is no entry in the journal, and none was promised.
func (p *patient) isEmpty() bool {
	m, is, err := journal.ReadMark(nil, p.Data)
	if err != nil || !is || m.Frame > 0 || m.Promise.Entry.Index > 0 {
		return false
	}
	o := asleep(journal.Options{Dir: p.Data, Claim: p.Claim})
	o.ReadOnly = false // a swap that was interrupted is undone
	j, err := journal.Open(o)
	if err != nil {
		return false // as the start will say
	}
	a := journal.Member(j)
	is = a != nil && a.Last().Index == 0
	return j.Close() == nil && is
}

// asleep are options of a journal that is only looked at.
func asleep(o journal.Options) journal.Options {
	o.ReadOnly, o.Words, o.Exit = true, io.Discard, func(int) {}
	o.MemTable, o.Cache = 1<<20, 64<<20 // entries are read one by one, and several lie in a block
	o.Log = slog.New(slog.DiscardHandler)
	return o
}

// isBehind reports whether the member that leads has much. It waits for a leader for a while.
func (p *patient) isBehind(ctx context.Context) bool {
	s, err := newHelpers(p)
	if err != nil || p.Cluster.lonely() {
		return false
	}
	defer s.close()
	for end := time.Now().Add(elects); ; time.Sleep(askPause) {
		goal, err := s.goal(0)
		if err == nil || ctx.Err() != nil || time.Now().After(end) {
			return err == nil && goal.Last >= farBehind
		}
	}
}

// copyOnce tries once to take a copy, or the rest of one, and to make the journal of it.
func (p *patient) copyOnce(ctx context.Context) (h *journal.Healed, err error) {
	s, err := newHelpers(p)
	if err != nil {
		return nil, err
	}
	defer s.close()
	if _, err = s.goal(0); err == nil {
		err = s.fetch(ctx)
	}
	if err == nil {
		_, err = s.goal(0) // it may lead no more, or has hung up
	}
	if err != nil {
		return nil, err
	}
	h, err = s.install(ctx)
	return h, s.settle(err)
}

// settle drops a copy that is bad, and remembers who gave it.
func (p *patient) settle(err error) error {
	if !errors.Is(err, errBad) {
		return err
	}
	if t := copies.Resume(p.Data); t != nil {
		p.liars = append(p.liars, t.From)
	}
	return errors.Join(err, copies.Drop(p.Data))
}

// fetch takes the rest of a copy of the member that has begun to give it; else a new one, of a
// voter that does not lead if any of those gives one.
func (s *helpers) fetch(ctx context.Context) error {
	var problems []error
	if t := copies.Resume(s.Data); t != nil && t.Complete {
		return nil
	} else if t != nil {
		err := s.take(ctx, t.From, t)
		if !errors.Is(err, errRefused) || ctx.Err() != nil {
			return err
		}
		problems = append(problems, err, copies.Drop(s.Data))
	}
	for i, id := range append(slices.Sorted(maps.Keys(s.known)), s.leader) {
		last := i == len(s.known)
		if !last && (id == s.leader || !s.known[id]) || slices.Contains(s.liars, id) {
			continue // no voter, the last one to be asked, or one whose copy was bad
		}
		err := s.take(ctx, id, nil)
		if err == nil || ctx.Err() != nil || errors.Is(err, errCut) {
			return err
		}
		problems = append(problems, fmt.Errorf("member %d: %w", id, err))
	}
	return errors.Join(append(problems, errors.New("no member gives a copy"))...)
}

// take takes a copy of a member; t is the one that was begun, nil: none.
func (s *helpers) take(ctx context.Context, from uint64, t *copies.Taker) error {
	conn, err := s.open(from)
	if err == nil {
		err = s.takeOver(ctx, conn, from, t)
	}
	return err
}

// takeOver is take with a connection to the member.
func (s *helpers) takeOver(ctx context.Context, conn net.Conn, from uint64,
	t *copies.Taker) error {
	defer conn.Close()
	defer context.AfterFunc(ctx, func() { _ = conn.Close() })() // a stop waits for no answer
	if t == nil {
		a, err := askCopy(conn, &copies.Question{Begin: true}, copyMade)
		if err == nil {
			err = s.room(a.Manifest)
		}
		if err == nil {
			t, err = copies.Begin(s.Data, from, a.Manifest)
		}
		if err != nil {
			return err
		}
	}
	s.Log.Info("a copy comes", "from", from, "whole", t.Bytes(), "files", len(t.Files))
	err := t.Run(func(q *copies.Question) (*copies.Answer, error) {
		a, err := askCopy(conn, q, supplyTime)
		if err == nil {
			s.copied.Add(uint64(len(a.Data)))
		}
		return a, errors.Join(err, ctx.Err())
	}, func(have int64) {
		s.chunks++
		s.copies(fmt.Sprintf("%d of %d bytes are there", have, t.Bytes()))
	})
	if err != nil {
		return fmt.Errorf("%w: %w", errCut, err)
	}
	return nil
}

// room returns an error if the disk has too little room: the journal is written a second time.
func (s *helpers) room(m *copies.Manifest) error {
	if m == nil {
		return errors.New("an empty answer")
	}
	need := uint64(2 * max(0, m.Bytes()))
	usage, err := disk.Filesystem(nil).GetDiskUsage(s.Data)
	if err == nil && usage.AvailBytes < need {
		err = fmt.Errorf("the copy needs %d bytes on the disk, %d are free", need, usage.AvailBytes)
	}
	return err
}

// askCopy asks about a copy.
func askCopy(conn net.Conn, q *copies.Question, limit time.Duration) (*copies.Answer, error) {
	var a healAnswer
	err := errors.Join(conn.SetDeadline(time.Now().Add(limit)),
		papers.Say(conn, &healQuestion{Copy: q}))
	if err == nil {
		err = papers.Listen(conn, &a, longestSupply)
	}
	switch c := a.Copy; {
	case err != nil:
		return nil, err
	case c == nil || c.Size < 0 || c.Size > copies.Chunk:
		return nil, fmt.Errorf("%w: it gives no copies, or too much at once", errRefused)
	case c.Refused != "":
		return nil, fmt.Errorf("%w: %s", errRefused, c.Refused)
	default:
		c.Data = make([]byte, c.Size)
		_, err = io.ReadFull(conn, c.Data)
		return c, err
	}
}

// install verifies a copy, and makes this member's journal of it, frame by frame, as if it healed:
// with the member's own term and vote, and without anything that is not known to be committed.
func (s *helpers) install(ctx context.Context) (*journal.Healed, error) {
	s.copies("all is there, and is verified")
	dir := copies.Whole(s.Data)
	j, err := journal.Open(asleep(journal.Options{Dir: dir,
		Witnesses: func() []journal.Witness { return s.Witnesses(dir) }}))
	if err != nil {
		return nil, bad(err)
	}
	defer j.Close()
	last, err := s.confirm(ctx, j)
	if err == nil { // neither index nor checkpoint may know more
		_, err = j.Recover(nil, nil)
		err = bad(err)
	}
	if err != nil {
		return nil, err
	}
	h, err := journal.Heal(ctx, journal.HealOptions{
		Goal: func(_ context.Context, term uint64) (journal.Goal, error) {
			return journal.Goal{Term: max(term, last.Term), Last: last.Index,
				Created: uint64(j.Created.UnixMilli())}, nil
		},
		Supply: func(_ context.Context, low uint64, omit []journal.Frames) (*journal.Supply, error) {
			return raft.Supply(j, low, omit)
		},
		Each: func(done, goal uint64) {
			s.copies(fmt.Sprintf("entry %d of %d is verified", done, goal))
		},
		Options: journal.Options{Dir: s.Data, Log: s.Log, Claim: s.Claim, ID: s.Cluster.Journal,
			Witnesses: s.witnesses}})
	var full *disk.AdvisedError
	if ctx.Err() == nil && !errors.As(err, &full) { // frames that do not follow each other
		err = bad(err)
	}
	return h, err
}

// confirm asks the member that leads for the last frame of a copy and what comes behind it, and
// returns the copy's last entry.
func (s *helpers) confirm(ctx context.Context, j *journal.Journal) (
	last journal.EntryID, err error) {
	a := journal.Member(j)
	if a == nil || j.ID != s.Cluster.Journal {
		return last, bad(fmt.Errorf("the copy is of journal %016x", j.ID))
	}
	commit, _ := a.Committed()
	low := commit + 1
	for own := []journal.Entry{{}}; len(own[0].Data) == 0 || own[0].Kind != 0; {
		low--
		if own, err = a.Entries(low, low+1, 1); err != nil || low == 0 {
			return last, bad(errors.Join(err, errors.New("there is no frame in the copy")))
		}
	}
	for last.Index < commit { // a question for each MiB
		own, err := a.Entries(max(low, last.Index+1), commit+1, 1<<20)
		if err != nil {
			return last, bad(err)
		}
		given, err := s.Supply(ctx, own[0].Index, nil)
		if err != nil {
			return last, err
		}
		n := min(len(own), len(given.Entries)) // the giver's disk may have been faster than the leader's
		if n == 0 || !slices.EqualFunc(own[:n], given.Entries[:n], func(a, b journal.Entry) bool {
			return a.EntryID == b.EntryID && a.Kind == b.Kind && bytes.Equal(a.Data, b.Data)
		}) {
			return last, bad(fmt.Errorf("the copy ends with entry %d, which the leader does not have",
				commit))
		}
		last = own[n-1].EntryID
	}
	return last, nil
}

// place moves index and checkpoints of the copy to their places. If it does not come to that, they
// are made anew from the journal.
func (p *patient) place() error {
	for _, part := range []string{copies.Index, copies.Checkpoints} {
		from, to := filepath.Join(copies.Whole(p.Data), part), filepath.Join(p.Data, part)
		if _, err := os.Lstat(from); err != nil {
			continue
		}
		err := errors.Join(disk.SyncFolder(disk.Filesystem(nil), from), os.RemoveAll(to))
		if err = errors.Join(err, os.Rename(from, to)); err != nil {
			return err
		}
	}
	return errors.Join(disk.SyncFolder(disk.Filesystem(nil), p.Data), copies.Drop(p.Data))
}

// lend lets this member give copies to new ones.
func (m *Together) lend() {
	o, g := &m.options, &m.giver
	g.Data, g.Called, g.Log, g.Full = o.Data, m.called, o.Log, o.Full
	g.Make = func(dir string) error {
		_, err := m.Journal.Backup(dir, o.Index)
		return err
	}
	g.Refuse = func() string {
		switch {
		case o.Full() || o.Hold():
			return "its disk has too little room"
		case m.damaged.Load() || m.Journal.Hole > 0:
			return "its own journal is not whole"
		case !m.Leads() && ((fellow{m}).age() > time.Second || !m.caught.Load()):
			return "it is behind"
		}
		return ""
	}
	g.Clear(false) // what a crash has left
}
