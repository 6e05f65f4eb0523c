package journal

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"path/filepath"
	"time"

	"clobd/engine"
	"clobd/journal/disk"
)

// Scrubbed is what a Scrub has found.
type Scrubbed struct {
	Began       time.Time
	Took        time.Duration
	Frames      uint64
	Checkpoints int
	Bytes       int64
	// Damages say what is damaged and where, the first ones first, at most mostDamages; Damaged is
	// how many there are.
	Damages []string
	Damaged int
	// Journal is the first damage of the journal itself, nil if there is none: a member heals it.
	Journal error
}

const mostDamages = 16

// pacer keeps a reader to a rate.
type pacer struct {
	ctx   context.Context
	rate  int64 // bytes a second; 0: as fast as it goes
	bytes int64
	began time.Time
}

// note counts bytes, and waits if they came too fast.
func (p *pacer) note(n int) error {
	p.bytes += int64(n)
	if p.rate == 0 {
		return p.ctx.Err()
	}
	ahead := time.Duration(float64(p.bytes)/float64(p.rate)*1e9) - time.Since(p.began)
	if ahead < 10*time.Millisecond {
		return p.ctx.Err()
	}
	return p.rest(ahead)
}

// rest waits.
func (p *pacer) rest(d time.Duration) error {
	select {
	case <-p.ctx.Done():
		return p.ctx.Err()
	case <-time.After(d):
		return nil
	}
}

// Part reads something else in a data folder to its end. It calls note with the number of bytes
// each time that it has read some: note waits, so that the rate of a Scrub holds. The error of note
// ends Part; any other error is damage.
type Part func(note func(bytes int) error) error

// Scrub reads the mark, all frames and all checkpoints of j, and the further parts, at a rate in
// bytes a second, 0 for no bound, and checks what they say of themselves. Neither a start nor the
// trading reads old parts. Scrub replays nothing, which Verify does. What only the live log holds
// is in memory as well: Scrub has it written once more, to tables, and no start reads that part of
// the log again, damaged or not. The error is that of ctx, ErrClosed, or of a disk that does not
// take the tables; damage is in the result.
func Scrub(ctx context.Context, j *Journal, rate int64, parts ...Part) (*Scrubbed, error) {
	if !j.gate.Enter() {
		return nil, ErrClosed
	}
	defer j.gate.Leave()
	s := &Scrubbed{Began: time.Now()}
	if !j.Options.ReadOnly {
		if err := j.guard.Flush(ctx, j.db); CanHeal(err) { // a compaction cannot read a table
			s.broken(err)
		} else if err != nil {
			return nil, fmt.Errorf("write the live log's frames to tables: %w", err)
		}
	}
	p := &pacer{ctx: ctx, rate: rate, began: s.Began}
	err := s.frames(j, p)
	if err == nil && j.agreed != nil {
		err = s.entries(j.agreed, p)
	}
	good, bad := j.Checkpoints()
	for _, why := range bad {
		s.damage(why)
	}
	for i := 0; i < len(good) && err == nil; i++ {
		err = s.checkpoint(j, &good[i], p)
	}
	if err == nil {
		err = s.mark(j, p)
	}
	for i := 0; i < len(parts) && err == nil; i++ {
		err = s.part(parts[i], p)
	}
	s.Bytes, s.Took = p.bytes, time.Since(s.Began)
	return s, err
}

func (s *Scrubbed) damage(why error) {
	if s.Damaged++; s.Damaged <= mostDamages {
		s.Damages = append(s.Damages, why.Error())
	}
}

// broken notes damage of the journal itself.
func (s *Scrubbed) broken(why error) {
	if s.Journal == nil {
		s.Journal = disk.Damaged(why)
	}
	s.damage(why)
}

// frames reads the frames that there are now. A frame that cannot be read is passed over.
func (s *Scrubbed) frames(j *Journal, p *pacer) error {
	last := j.latest.last()
	it, err := j.db.NewIter(shown(j, 1))
	if err != nil {
		s.broken(fmt.Errorf("journal %s: %w", j.Path, err))
		return nil
	}
	var f, before engine.Frame // before is the last good one, and reached the number of the last
	reached, end := uint64(0), engine.Head{}
	wrong := func(no uint64, err error) {
		s.broken(&Break{Frame: no, Key: frameText(no), Path: j.Path, Last: last, What: "damaged",
			Err: err})
	}
	for ok := it.First(); ok; ok = it.Next() {
		no, known := frameNo(it.Key())
		if no > last {
			break
		}
		b, err := it.ValueAndErr()
		if err == nil {
			err = engine.DecodeFrame(b, &f)
		}
		follows := before.No != no-1 || no == 1 || f.Prev == before.Hash
		if err == nil && (!known || f.No != no || !follows) {
			err = errors.New("it does not follow the frame before it")
		}
		if no > reached+1 && no-1 > j.Hole {
			s.broken(fmt.Errorf("journal %s: frames %d to %d are missing", j.Path, reached+1, no-1))
		}
		reached = no
		if err != nil {
			wrong(no, err)
			before = engine.Frame{}
		} else {
			before.No, before.Hash, end = f.No, f.Hash, f.Head()
		}
		s.Frames++
		if err := p.note(len(b)); err != nil {
			return errors.Join(err, it.Close())
		}
	}
	if err := it.Close(); err != nil { // a table that cannot be read ends the iteration
		wrong(reached+1, err)
	} else if reached < last {
		wrong(reached+1, errors.New("it is missing"))
	} else if j.Options.ReadOnly { // nobody writes: its end is the end
		if err := j.checkMark(end); err != nil && s.Damaged == 0 {
			s.damage(err)
		}
	}
	return nil
}

// entries reads what a member's journal says of the entries that are committed now.
func (s *Scrubbed) entries(a *Agreed, p *pacer) error {
	commit, _ := a.Committed()
	for i := a.Base + 1; i <= commit; i++ {
		r, err := a.row(i)
		if err == nil && r.frame == 0 {
			_, err = a.entry(i)
		}
		if err != nil { // each further row of that block would take as long as this one
			s.broken(err)
			return nil
		}
		if err := p.note(rowSize); err != nil {
			return err
		}
	}
	return nil
}

// checkpoint reads a checkpoint to its end. The follower may remove it meanwhile.
func (s *Scrubbed) checkpoint(j *Journal, c *Checkpoint, p *pacer) error {
	r, err := openCheckpoint(j.Options.FS, c.Path)
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	} else if err != nil {
		s.damage(err)
		return nil
	}
	paced := error(nil)
	next := func() ([]byte, error) {
		b, err := r.next()
		if err == nil {
			if paced = p.note(len(b)); paced != nil {
				err = paced
			}
		}
		return b, err
	}
	for r.read < r.size && err == nil {
		_, err = engine.NewUnpacker(next).Skip()
	}
	err = errors.Join(err, r.file.Close())
	if paced != nil {
		return paced
	}
	if err != nil {
		s.damage(fmt.Errorf("checkpoint %s: %w", c.Path, err))
		j.damaged.Store(c.Path, true)
	}
	s.Checkpoints++
	return nil
}

// markLooks is how often a mark that changes is read until both of its slots are good.
const markLooks = 8

// mark reads the mark while it changes. A read beside a write may find one slot torn, but not each
// time. If nobody writes, frames has compared the mark with the journal.
func (s *Scrubbed) mark(j *Journal, p *pacer) error {
	path := filepath.Join(j.Dir, markName)
	for range markLooks {
		m, err := readMark(j.Options.FS, path)
		switch {
		case j.Options.ReadOnly && (err != nil || m.good == 0):
			return nil
		case err != nil:
			s.damage(err)
			return nil
		case m.good == 2 && (m.Journal == j.ID || j.Options.ReadOnly):
			return p.note(2 * markSlot)
		case m.good == 2:
			s.damage(fmt.Errorf("the high-water mark %s belongs to another journal", path))
			return nil
		}
		if err := p.rest(2 * markIdle); err != nil {
			return err
		}
	}
	s.damage(fmt.Errorf("the high-water mark %s is gone, or one of its two slots is damaged", path))
	return nil
}

// part reads one of the further parts.
func (s *Scrubbed) part(read Part, p *pacer) error {
	paced := error(nil)
	err := read(func(bytes int) error {
		if paced == nil {
			paced = p.note(bytes)
		}
		return paced
	})
	if paced == nil && err != nil {
		s.damage(err)
	}
	return paced
}
