package journal

import (
	"bufio"
	"cmp"
	"context"
	"crypto/sha256"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"clobd/engine"
	"clobd/journal/disk"

	"github.com/cockroachdb/pebble/v2/vfs"
)

// State is what a journal's frames make: an Exchange, and whatever the owner builds beside it from
// the same frames.
type State struct {
	// Seed salts the tables of a fresh Exchange.
	Seed uint64
	// Exchange is nil in a fresh State: the journal makes it.
	Exchange *engine.Exchange
	// Each is called with each frame after it was replayed; nil: nothing is built beside the
	// Exchange. An error ends the replay.
	Each func(*engine.Frame) error
	// Save writes what Each built to sink, in the chunks of an engine.Packer; Load reads it back.
	// Both are nil if nothing is kept.
	Save func(sink func(chunk []byte) error) error
	Load func(next func() ([]byte, error)) error
}

func (s *State) save(sink func(chunk []byte) error) error {
	if err := s.Exchange.Save(sink); err != nil || s.Save == nil {
		return err
	}
	return s.Save(sink)
}

// Checkpoint describes a file that holds a State after a frame.
type Checkpoint struct {
	Path      string
	Journal   uint64      // ID of the journal
	Head      engine.Head // of the last frame that it holds
	Partition uint16
	Engine    uint16 // the version in force
	Created   time.Time
	Bytes     int64

	beside bool // holds more than the Exchange: what Save wrote
}

// A checkpoint file is four packed parts, one behind the other: its description, the Exchange, what
// Save wrote, and the length of all that.
const (
	checkpointFolder = "checkpoints"
	checkpointSuffix = ".checkpoint"
	checkpointFormat = 1
	tempSuffix       = ".tmp"

	// keepCheckpoints is how many are kept: the older one serves if the newest is damaged.
	keepCheckpoints = 2
	// checkpointSync is how many bytes are written between two syncs, so that a sync of the log never
	// waits for many of them.
	checkpointSync = 4 << 20
	// checkpointBurst is how many bytes are written at once.
	checkpointBurst = 256 << 10
)

// ErrCheckpoint is the error of a checkpoint that does not belong to this journal.
var ErrCheckpoint = errors.New("checkpoint does not fit")

// Checkpoints returns the checkpoints whose descriptions can be read, the newest first, and what is
// wrong with the others. Whether their contents are good shows only when they are loaded.
func (j *Journal) Checkpoints() (good []Checkpoint, bad []error) {
	good, unread := survey(j.Options.FS, filepath.Join(j.Dir, checkpointFolder))
	for _, u := range unread {
		bad = append(bad, u.why)
	}
	return good, bad
}

// unreadCheckpoint is a checkpoint, or the folder, that cannot be read.
type unreadCheckpoint struct {
	path string
	why  error
}

// survey is Checkpoints of a folder, with the paths of the bad ones.
func survey(on vfs.FS, dir string) (good []Checkpoint, bad []unreadCheckpoint) {
	names, err := on.List(dir)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	} else if err != nil {
		return nil, []unreadCheckpoint{{dir, fmt.Errorf("list checkpoints: %w", err)}}
	}
	for _, name := range names {
		if !strings.HasSuffix(name, checkpointSuffix) {
			continue
		}
		c, err := describe(on, filepath.Join(dir, name))
		if err != nil {
			bad = append(bad, unreadCheckpoint{filepath.Join(dir, name), err})
			continue
		}
		good = append(good, *c)
	}
	slices.SortFunc(good, func(a, b Checkpoint) int {
		return cmp.Or(cmp.Compare(b.Head.Frame, a.Head.Frame), strings.Compare(b.Path, a.Path))
	})
	return good, bad
}

func describe(on vfs.FS, path string) (*Checkpoint, error) {
	r, err := openCheckpoint(on, path)
	if err != nil {
		return nil, err
	}
	c, err := r.description()
	return c, errors.Join(err, r.file.Close())
}

// checkpointReader reads the chunks of a checkpoint one after the other.
type checkpointReader struct {
	path  string
	file  vfs.File
	in    *bufio.Reader
	size  int64
	read  int64
	buf   []byte
	check func() error // whether to go on
}

func openCheckpoint(on vfs.FS, path string) (*checkpointReader, error) {
	f, err := on.Open(path, vfs.SequentialReadsOption)
	if err != nil {
		return nil, fmt.Errorf("open checkpoint: %w", err)
	}
	info, err := f.Stat()
	if err != nil {
		return nil, errors.Join(fmt.Errorf("open checkpoint %s: %w", path, err), f.Close())
	}
	return &checkpointReader{path: path, file: f, in: bufio.NewReaderSize(f, checkpointBurst),
		size: info.Size(), check: func() error { return nil }}, nil
}

// next is the next chunk.
func (r *checkpointReader) next() ([]byte, error) {
	if err := r.check(); err != nil {
		return nil, err
	}
	if r.buf == nil {
		r.buf = make([]byte, engine.ChunkMax)
	}
	if _, err := io.ReadFull(r.in, r.buf[:engine.ChunkOverhead]); err != nil {
		return nil, err
	}
	n, _, err := engine.ChunkLen(r.buf[:engine.ChunkOverhead])
	if err != nil {
		return nil, err
	}
	if _, err := io.ReadFull(r.in, r.buf[engine.ChunkOverhead:n]); err != nil {
		return nil, err
	}
	r.read += int64(n)
	return r.buf[:n], nil
}

// skip reads over a part.
func (r *checkpointReader) skip() error {
	for {
		b, err := r.next()
		if err != nil {
			return err
		}
		if _, final, _ := engine.ChunkLen(b); final {
			return nil
		}
	}
}

// description reads the first part.
func (r *checkpointReader) description() (*Checkpoint, error) {
	u := engine.NewUnpacker(r.next)
	if format := u.Uint(); u.Err == nil && format > checkpointFormat {
		return nil, fmt.Errorf("checkpoint %s: %w: format %d; this is %d", r.path, engine.ErrVersion,
			format, checkpointFormat)
	}
	c := &Checkpoint{Path: r.path, Bytes: r.size, Journal: u.Uint()}
	c.Engine, c.Partition = uint16(u.Most(1<<16-1)), uint16(u.Most(1<<16-1))
	c.Created = time.UnixMilli(u.Int())
	h := &c.Head
	h.Frame, h.Sequence, h.Epoch, h.Time = u.Uint(), engine.Sequence(u.Uint()), u.Uint(),
		engine.Time(u.Int())
	u.Bytes(h.Hash[:])
	h.Digest = engine.Digest(u.Uint())
	c.beside = u.Most(1) != 0
	if _, err := u.Close(); err != nil {
		return nil, fmt.Errorf("checkpoint %s: %w", r.path, err)
	}
	return c, nil
}

// pack writes the first part.
func (c *Checkpoint) pack(sink func([]byte) error) error {
	p, h, beside := engine.NewPacker(sink), &c.Head, uint64(0)
	if c.beside {
		beside = 1
	}
	p.Uints(checkpointFormat, c.Journal, uint64(c.Engine), uint64(c.Partition))
	p.Int(c.Created.UnixMilli())
	p.Uints(h.Frame, uint64(h.Sequence), h.Epoch)
	p.Int(int64(h.Time))
	p.Bytes(h.Hash[:])
	p.Uints(uint64(h.Digest), beside)
	return p.Close(0)
}

// load makes s of a checkpoint. It reads the file to its end, so that all damage is seen. The
// journal must have the frame that the checkpoint names, with the same hash.
func (j *Journal) load(ctx context.Context, c *Checkpoint, s *State) (err error) {
	defer func() {
		if p := recover(); p != nil {
			err = fmt.Errorf("%w: %v", engine.ErrState, p)
		}
		if err != nil {
			err = fmt.Errorf("checkpoint %s: %w", c.Path, err)
		}
	}()
	if err := j.fits(c); err != nil {
		return err
	}
	r, err := openCheckpoint(j.Options.FS, c.Path)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, r.file.Close()) }()
	r.check = ctx.Err
	if again, err := r.description(); err != nil || again.Head != c.Head {
		return errors.Join(engine.ErrState, err)
	}
	x, last, err := engine.Load(s.Seed, r.next)
	if err != nil {
		return err
	}
	if last != c.Head.Sequence || c.Engine >= engine.Oldest && x.Digest() != c.Head.Digest {
		return fmt.Errorf("%w: it holds Sequence %d with Digest %016x, and says %d with %016x",
			engine.ErrState, last, uint64(x.Digest()), c.Head.Sequence, uint64(c.Head.Digest))
	}
	switch {
	case !c.beside && s.Load != nil:
		return fmt.Errorf("%w: only the Exchange is in it", ErrCheckpoint)
	case c.beside && s.Load != nil:
		err = s.Load(r.next)
	case c.beside:
		err = r.skip()
	}
	if err != nil {
		return err
	}
	s.Exchange = x
	return r.end()
}

// end reads the last part, which says how long all before it is.
func (r *checkpointReader) end() error {
	before := r.read
	u := engine.NewUnpacker(r.next)
	length := u.Uint()
	if _, err := u.Close(); err != nil {
		return err
	}
	if length != uint64(before) || r.read != r.size {
		return fmt.Errorf("%w: %d bytes and %d after them, of %d", engine.ErrState, length,
			r.read-before, r.size)
	}
	return nil
}

// fits returns why a checkpoint cannot belong to this journal, or nil.
func (j *Journal) fits(c *Checkpoint) error {
	switch last := j.latest.last(); {
	case c.Journal != j.ID:
		return fmt.Errorf("%w: it is of journal %016x, this is %016x", ErrCheckpoint, c.Journal, j.ID)
	case c.Engine > engine.Version:
		return fmt.Errorf("%w: it is of engine version %d, this program knows %d to %d",
			engine.ErrVersion, c.Engine, engine.Oldest, engine.Version)
	case c.Head.Frame == 0 || c.Head.Frame > last:
		return fmt.Errorf("%w: it is of frame %d, the journal ends at %d", ErrCheckpoint,
			c.Head.Frame, last)
	}
	b, err := j.frameBytes(c.Head.Frame)
	if err != nil {
		return err
	}
	if hash := engine.Hash(sha256.Sum256(b)); hash != c.Head.Hash {
		return fmt.Errorf("%w: frame %d of the journal has hash %x, of the checkpoint %x",
			ErrCheckpoint, c.Head.Frame, hash[:8], c.Head.Hash[:8])
	}
	return nil
}

// Checkpoint saves s, which must be the state after frame head, and removes old checkpoints. It
// writes as fast as the disk allows; while the node trades, a Follower writes at a limited rate.
func (j *Journal) Checkpoint(ctx context.Context, s *State, head engine.Head) (*Checkpoint, error) {
	if !j.gate.Enter() {
		return nil, ErrClosed
	}
	defer j.gate.Leave()
	return j.save(ctx, s, &Checkpoint{Head: head, Partition: j.partition}, 0)
}

// save is Checkpoint at rate bytes a second; 0 is no limit.
func (j *Journal) save(
	ctx context.Context, s *State, c *Checkpoint, rate int64) (*Checkpoint, error) {
	if s.Exchange.Digest() != c.Head.Digest || c.Head.Frame == 0 {
		return nil, fmt.Errorf("checkpoint of frame %d: the state is of another frame", c.Head.Frame)
	}
	c.Journal, c.Engine, c.beside = j.ID, s.Exchange.Version(), s.Save != nil
	c.Created = time.UnixMilli(time.Now().UnixMilli())
	on, dir := j.Options.FS, filepath.Join(j.Dir, checkpointFolder)
	if err := disk.MakeFolder(on, dir); err != nil {
		return nil, err
	}
	c.Path = filepath.Join(dir, fmt.Sprintf("%020d%s", c.Head.Sequence, checkpointSuffix))
	if err := c.write(on, s, &pacedWriter{ctx: ctx, rate: rate}); err != nil {
		return nil, fmt.Errorf("write checkpoint %s: %w", c.Path, err)
	}
	j.damaged.Delete(c.Path)
	j.prune()
	return c, nil
}

// write makes the file of s, durably and whole or not at all.
func (c *Checkpoint) write(on vfs.FS, s *State, w *pacedWriter) (err error) {
	temp := c.Path + tempSuffix
	file, err := on.Create(temp, vfs.WriteCategoryUnspecified)
	if err != nil {
		return err
	}
	w.file, w.start = file, time.Now()
	if err = c.pack(w.chunk); err == nil {
		err = s.save(w.chunk)
	}
	if err == nil {
		p := engine.NewPacker(w.chunk)
		p.Uint(uint64(w.total))
		err = p.Close(0)
	}
	if err == nil {
		err = w.flush()
	}
	if err == nil {
		err = file.Sync()
	}
	if err = errors.Join(err, file.Close()); err == nil {
		err = on.Rename(temp, c.Path)
	}
	if err != nil {
		on.Remove(temp) // it may be what filled the disk
		return err
	}
	c.Bytes = w.total
	return disk.SyncFolder(on, on.PathDir(c.Path))
}

// pacedWriter writes a file in bursts, no faster than its rate, and syncs it as it goes.
type pacedWriter struct {
	ctx      context.Context
	file     vfs.File
	rate     int64 // bytes a second; 0: no limit
	start    time.Time
	buf      []byte
	total    int64 // taken
	unsynced int64
}

func (w *pacedWriter) chunk(b []byte) error {
	w.buf = append(w.buf, b...)
	w.total += int64(len(b))
	if len(w.buf) < checkpointBurst {
		return nil
	}
	return w.flush()
}

// flush writes the bytes that were appended, and waits as long as the rate asks for.
func (w *pacedWriter) flush() error {
	if err := w.ctx.Err(); err != nil {
		return err
	}
	w.unsynced += int64(len(w.buf))
	if _, err := w.file.Write(w.buf); err != nil {
		return err
	}
	w.buf = w.buf[:0]
	if w.unsynced >= checkpointSync {
		if err := w.file.SyncData(); err != nil {
			return err
		}
		w.unsynced = 0
	}
	if w.rate == 0 {
		return nil
	}
	due := time.Duration(float64(w.total) / float64(w.rate) * float64(time.Second))
	if ahead := due - time.Since(w.start); ahead > 0 {
		select {
		case <-time.After(ahead):
		case <-w.ctx.Done():
		}
	}
	return nil
}

// prune removes checkpoints that are not needed any more: damaged ones, unfinished files, and all
// but the newest ones. The last one of a version that is no longer known stays: without it that
// version's frames would have to be replayed. Files that cannot be read just now, for want of file
// handles or on a disk that fails, stay, too: they may be good.
func (j *Journal) prune() {
	on, dir := j.Options.FS, filepath.Join(j.Dir, checkpointFolder)
	good, bad := survey(on, dir)
	keep, kept, earlier := map[string]bool{}, 0, false
	for _, u := range bad {
		if !errors.Is(u.why, engine.ErrState) {
			keep[on.PathBase(u.path)] = true
		}
	}
	for i := range good {
		c := &good[i]
		_, damaged := j.damaged.Load(c.Path)
		if c.Journal != j.ID || c.Head.Frame > j.latest.last() || damaged {
			continue
		}
		if kept < keepCheckpoints || c.Engine < engine.Oldest && !earlier {
			keep[on.PathBase(c.Path)] = true
		}
		kept++
		earlier = earlier || c.Engine < engine.Oldest
	}
	names, err := on.List(dir)
	for _, name := range names {
		ours := strings.HasSuffix(name, checkpointSuffix) || strings.HasSuffix(name, tempSuffix)
		if ours && !keep[name] {
			err = errors.Join(err, on.Remove(filepath.Join(dir, name)))
		}
	}
	if err != nil {
		j.Options.Log.Warn("old checkpoints cannot be removed", "path", dir, "error", err)
	}
}
