package simulator

import (
	"context"
	"errors"
	"io"
	"log/slog"

	"clobd/journal"
	"clobd/journal/raft"

	"github.com/cockroachdb/pebble/v2/vfs"
)

// heal makes the journal of a damaged member anew, with the help of the one that leads. While
// nobody does, it waits. A crash may come in the middle.
func (s *seat) heal() {
	c := s.c
	if s.up || s.waits() || !s.damaged {
		return
	}
	from := &supplier{s: s}
	if c.options.Sabotage == BlindHeal || c.options.Sabotage == ForgetfulHeal {
		s.forget()
	}
	if c.chance(4) && !c.calm {
		from.dies = 1 + c.dice.IntN(3)
	}
	h, err := journal.Heal(context.Background(), journal.HealOptions{Goal: from.goal,
		Supply: from.supply,
		Options: journal.Options{Dir: dataFolder, FS: s.fs, ID: clusterJournal, MemTable: 1 << 20,
			Log: slog.New(slog.DiscardHandler), Words: io.Discard, Exit: func(int) {}}})
	switch {
	case err == nil:
		c.result.Healed++
		c.result.Own += int(h.Own)
		c.result.Fetched += int(h.Fetched)
		// How many frames are its own is left out: the database's random bytes and the moment of its
		// compactions decide which of them a flipped bit damages.
		c.say("member %d is whole again: entry %+v", s.id, h.Last)
		s.damaged, s.goal = false, journal.Goal{}
		s.start()
		return
	case errors.Is(err, errCut):
		c.result.Interrupted++
		s.goal = journal.Goal{}
		s.fs = s.fs.CrashClone(vfs.CrashCloneCfg{UnsyncedDataPercent: 50 * c.dice.IntN(3), RNG: c.dice})
		c.say("member %d dies while it heals", s.id)
	case errors.Is(err, errNobody):
	default:
		c.fail("member %d heals: %v", s.id, err)
	}
	c.after(20_000+c.dice.Int64N(100_000), s.heal)
}

// forget takes from the mark what was acknowledged and answered for, but for term and vote: without
// that, Heal itself would notice most of what a mistake makes of the journal.
func (s *seat) forget() {
	m, there, err := journal.ReadMark(s.fs, dataFolder)
	if err != nil || !there {
		return
	}
	m = journal.Mark{Journal: m.Journal, Promise: journal.Promise{Term: m.Promise.Term,
		Vote: m.Promise.Vote}}
	if err := journal.WriteMark(s.fs, dataFolder, m); err != nil {
		s.c.fail("member %d: %v", s.id, err)
	}
}

// supplier is what a member that heals asks.
type supplier struct {
	s    *seat
	from *seat // that leads
	dies int   // with which answer the member that heals dies; 0: with none
}

var (
	errNobody = errors.New("nobody can help")
	errCut    = errors.New("the process is over")
)

// goal is how far the log of the member goes that leads, if it can be reached. The journal is made
// as soon as some leader knows that much to be committed: here it takes no time.
func (f *supplier) goal(_ context.Context, term uint64) (journal.Goal, error) {
	c := f.s.c
	for _, l := range c.seats {
		if !l.up || l.paused > c.at || c.cut[link{f.s.id, l.id}] || c.cut[link{l.id, f.s.id}] {
			continue
		}
		v := l.core.Standing()
		commit, _ := l.agreed.Committed()
		switch c.options.Sabotage {
		case BlindHeal: // whoever has anything that others may not have
			if l.agreed.Last().Index > commit {
				f.from = l
				return journal.Goal{Term: max(v.Term, term), Last: l.agreed.Last().Index}, nil
			}
		case ForgetfulHeal: // whoever is there, and knows least
			if was := f.from; commit > 0 && (was == nil || commit < f.s.goal.Last) {
				f.from, f.s.goal = l, journal.Goal{Term: max(v.Term, term), Last: commit}
			}
			continue
		}
		if l.writer == nil || !v.Leads {
			continue
		}
		if v.Term < term {
			c.say("member %d hears of term %d", l.id, term)
			c.send(raft.Later(f.s.id, l.id, term))
			continue
		}
		if f.s.goal.Term < term || f.s.goal.Last == 0 {
			f.s.goal = journal.Goal{Term: v.Term, Last: v.Last}
			c.say("member %d shall have %d entries, says %d", f.s.id, v.Last, l.id)
		}
		if commit >= f.s.goal.Last {
			f.from = l
			return f.s.goal, nil
		}
	}
	if c.options.Sabotage == ForgetfulHeal && f.from != nil {
		return f.s.goal, nil
	}
	return journal.Goal{}, errNobody
}

// supply asks the one that leads.
func (f *supplier) supply(_ context.Context, low uint64, omit []journal.Frames) (
	*journal.Supply, error) {
	if f.dies--; f.dies == 0 {
		return nil, errCut
	}
	supply, err := raft.Supply(f.from.journal, low, omit)
	if err == nil && f.s.c.options.Sabotage == BlindHeal {
		return f.all(low, omit)
	}
	return supply, err
}

// all is what the other member has, as if it were committed.
func (f *supplier) all(low uint64, _ []journal.Frames) (*journal.Supply, error) {
	last := f.from.agreed.Last().Index
	entries, err := f.from.agreed.Entries(low, last+1, 1<<20)
	return &journal.Supply{Entries: entries, Commit: last}, err
}
