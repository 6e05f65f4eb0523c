package journal

import (
	"cmp"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"log/slog"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"clobd/engine"
	"clobd/journal/disk"

	"github.com/cockroachdb/pebble/v2"
	"github.com/cockroachdb/pebble/v2/vfs"
)

// Options says where the journal is and how it works. The zero value of every field but Dir is
// its default.
type Options struct {
	// Dir is the data folder; the journal is in Dir/journal.
	Dir string
	// FS is the filesystem; nil is the machine's own. Tests give one that crashes or fails.
	FS vfs.FS
	// Async acknowledges before the sync. A crash of the machine then loses acknowledged frames: it
	// exists so that the cost of the sync can be measured.
	Async bool
	// ReadOnly changes nothing in the folder but its lock: Append fails, no mark is written, and a
	// folder without a journal is an error.
	ReadOnly bool
	// Log is the journal's log; nil is slog.Default.
	Log *slog.Logger
	// TailBytes bounds the encoded frames that are kept in memory for Tails. Default 64 MiB.
	TailBytes int
	// MemTable is the size of a memtable in bytes, [1 MiB, 1 GiB]. Default 64 MiB.
	MemTable int
	// Cache is the size of the block cache in bytes. Default 16 MiB. Pebble subtracts the memtables
	// from it, so that with the defaults nothing is cached: each frame is read once.
	Cache int64
	// Words takes the last words in addition to the log; nil is the standard error.
	Words io.Writer
	// Exit ends the process after the last words; nil is os.Exit. The code is disk.ExitCode.
	Exit func(code int)

	// Witnesses are those who know of acknowledged frames, beside the mark and the checkpoints: a
	// journal that ends before one of them has lost its end. nil: there are none.
	Witnesses func() []Witness

	// ID is the ID of a journal that is made anew, which is to hold a cluster's frames. 0: random.
	ID uint64

	// Claim is the folder's lock if the caller has taken it, who also gives it back.
	Claim disk.Claim

	folder string // of the database; empty: Dir/journal
	lock   *disk.Lock
	spares bool // keep a spare log: always on the machine's own filesystem
	// patience is how long frames may wait for memory while flushes fail.
	patience time.Duration
}

// ExitJournal is the exit code of a process whose journal can no longer keep its promise.
const ExitJournal = disk.ExitCode

// inFlight bounds the frames between Append and Wait. The sequencer has 4; Pebble takes 4,095.
const inFlight = disk.MaxWaiting / 2

// stallLimit is how long frames may wait for memory while flushes fail.
const stallLimit = 10 * time.Second

// ErrClosed is the error of a journal, tail or index that was closed.
var ErrClosed = errors.New("journal is closed")

// validate returns all problems of the options at once, or nil, and fills in the defaults.
func (o *Options) validate() error {
	var problems []error
	bad := func(wrong bool, text string) {
		if wrong {
			problems = append(problems, errors.New("journal option "+text))
		}
	}
	bad(o.Dir == "", "Dir is empty")
	bad(o.TailBytes < 0, "TailBytes is negative")
	bad(o.MemTable != 0 && (o.MemTable < 1<<20 || o.MemTable > 1<<30),
		"MemTable is outside [1 MiB, 1 GiB]")
	bad(o.Cache < 0, "Cache is negative")
	o.folder = cmp.Or(o.folder, filepath.Join(o.Dir, "journal"))
	o.lock = cmp.Or(o.lock, o.Claim.Lock)
	if o.FS == nil {
		o.FS, o.spares = vfs.Default, true
	}
	o.Log = cmp.Or(o.Log, slog.Default())
	if o.Words == nil {
		o.Words = os.Stderr
	}
	o.patience = cmp.Or(o.patience, stallLimit)
	o.TailBytes = cmp.Or(o.TailBytes, 64<<20)
	o.MemTable = cmp.Or(o.MemTable, 64<<20)
	o.Cache = cmp.Or(o.Cache, 16<<20)
	return errors.Join(problems...)
}

// Journal is the durable log of frames. One goroutine calls Append, and one, which may be another,
// calls Wait; any goroutine may make Tails. Recover or Restore comes before the first Append.
type Journal struct {
	// ID is drawn at random when the journal is made: trade ids carry it.
	ID uint64
	// Created is when the journal was made.
	Created time.Time
	// Hole is the last missing frame that has frames behind it, after a loss was accepted; 0 if there
	// is none. Only the index knows what was in it.
	Hole uint64
	// Dir is the data folder, Path the journal's own folder in it.
	Dir, Path string

	Options Options
	db      *pebble.DB
	gate    disk.Gate
	guard   *disk.Guard
	gauges  *gauges

	head      engine.Head    // of the last frame appended; the appender's
	partition uint16         // of all frames, once there is one; the appender's
	recovered bool           // whether head is known; the appender's
	flight    chan flight    // appender to committer
	unsynced  disk.Unsynced  // since when frames wait for their sync
	airborne  sync.WaitGroup // frames that were appended and are neither durable nor failed
	closing   chan struct{}
	failed    atomic.Pointer[error] // the first failure: final
	broken    chan struct{}         // closed at the first failure

	agreed *Agreed      // of a cluster's member, else nil
	latest latestFrames // durable frames, to Tails
	mark   *marker      // nil before the end is known, and if nothing is promised
	// damaged are the paths of checkpoints that turned out to be damaged: the next ones replace them.
	damaged sync.Map
}

// flight is a frame between Append and Wait.
type flight struct {
	batch  *pebble.Batch
	bytes  []byte
	number uint64
	last   engine.Sequence
	hash   engine.Hash
	start  time.Time
}

// Open opens the journal in o.Dir/journal, or makes it with a random ID, and takes the folder's
// lock. It fails if another process has it, if the folder is of an unknown or newer format, and if
// the database is damaged; the error says what to do.
func Open(o Options) (*Journal, error) {
	if err := o.validate(); err != nil {
		return nil, err
	}
	j := &Journal{
		Dir: o.Dir, Path: o.folder, Options: o,
		flight:  make(chan flight, inFlight),
		closing: make(chan struct{}), broken: make(chan struct{}),
	}
	j.gauges = newGauges()
	j.guard = disk.NewGuard(disk.GuardOptions{Name: "journal", Path: j.Path, Log: o.Log,
		Words: o.Words, Exit: o.Exit, Patience: o.patience, Spares: o.spares, Lock: o.lock,
		State: func() string {
			return fmt.Sprintf("acknowledged up to Sequence %d", j.gauges.sequence.Load())
		}})
	j.latest.init(o.TailBytes)
	if err := j.open(); err != nil {
		return nil, err
	}
	if !o.ReadOnly {
		go j.unsynced.Patrol(j.Path, o.Log, j.closing, j.broken)
		go j.guard.KeepLock(j.closing)
	}
	return j, nil
}

// open opens the database and reads where it ends.
func (j *Journal) open() error {
	o := j.Options.pebbleOptions()
	if err := putBack(&j.Options); err != nil {
		return err
	}
	begun, err := begun(&j.Options)
	if err != nil {
		return fmt.Errorf("open journal %s: %w", j.Path, err)
	}
	if _, err := j.Options.FS.Stat(j.Path); begun && errors.Is(err, fs.ErrNotExist) {
		return gone(j.Path)
	}
	o.ErrorIfNotExists = begun
	db, err := j.guard.Open(o)
	if begun && errors.Is(err, pebble.ErrDBDoesNotExist) {
		return gone(j.Path)
	}
	if err != nil {
		return err
	}
	last, m, err := j.inspect(db, begun)
	if err != nil {
		return errors.Join(err, j.guard.Close(db))
	}
	j.db, j.ID, j.Created, j.Hole = db, m.id, time.UnixMilli(int64(m.created)), m.hole
	j.latest.durable = last
	agreed, committed, err := openAgreed(j)
	if err != nil {
		return errors.Join(disk.Advise(disk.Damaged(fmt.Errorf("open journal %s: %w", j.Path, err)),
			disk.HintDamaged), j.guard.Close(db))
	}
	if j.agreed = agreed; agreed != nil {
		j.latest.durable = committed
	}
	return nil
}

// putBack undoes a rescue that was interrupted between its two renames.
func putBack(o *Options) error {
	path := filepath.Join(o.Dir, "journal")
	if o.ReadOnly || o.folder != path {
		return nil
	}
	from, err := undoSwap(o)
	if err == nil && from != "" {
		o.Log.Warn("a clobd recover was interrupted: the journal is put back where it was",
			"from", from, "to", path)
	}
	return err
}

// gone is the error of a journal that existed and is missing.
func gone(path string) error {
	return disk.Advise(disk.Damaged(fmt.Errorf("open journal %s: there was one, and it is gone or "+
		"without its manifest: %w", path, pebble.ErrDBDoesNotExist)), hintGone)
}

const hintGone = "nothing was deleted: " + disk.HintDamaged + "; to begin anew give another folder"

// begun reports whether a journal must exist here: a mark or a table shows that one was opened
// before. If its manifest is missing, Pebble would treat the folder as new and delete its tables.
func begun(o *Options) (bool, error) {
	on := o.FS
	if o.folder == filepath.Join(o.Dir, "journal") { // only this journal has a mark
		_, err := on.Stat(filepath.Join(o.Dir, markName))
		if err == nil || !errors.Is(err, fs.ErrNotExist) {
			return err == nil, err
		}
	}
	names, err := on.List(o.folder)
	if errors.Is(err, fs.ErrNotExist) {
		return false, nil
	}
	return slices.ContainsFunc(names, func(name string) bool {
		return strings.HasSuffix(name, ".sst")
	}), err
}

// inspect reads the number of the last frame and the journal's identity, which it makes for a new
// journal. A journal that was begun must have an identity: without it, its log was lost.
func (j *Journal) inspect(db *pebble.DB, begun bool) (last uint64, m meta, err error) {
	path := j.Path
	last, err = lastFrame(db)
	if err != nil {
		return 0, m, disk.Advise(disk.Damaged(fmt.Errorf("open journal %s: %w", path, err)),
			disk.HintDamaged)
	}
	m, found, err := loadMeta(db)
	if err == nil && !found && (last > 0 || begun) {
		err = fmt.Errorf("it has no description of itself, and its last frame is %d", last)
	}
	if err != nil {
		return 0, m, disk.Advise(disk.Damaged(fmt.Errorf("open journal %s: %w: it is damaged", path,
			err)), disk.HintDamaged)
	}
	if found {
		return last, m, m.judge(path)
	}
	if j.Options.ReadOnly {
		return 0, m, fmt.Errorf("open journal %s: nothing was ever written to it", path)
	}
	if m, err = newMeta(time.Now(), j.Options.ID); err == nil {
		err = m.save(db, pebble.Sync)
	}
	if err != nil {
		return 0, m, fmt.Errorf("make journal %s: %w", path, err)
	}
	return 0, m, nil
}

// lastFrame is the number of the last frame in a database, 0 if there is none.
func lastFrame(db *pebble.DB) (uint64, error) {
	it, err := db.NewIter(frameBounds(1))
	if err != nil {
		return 0, fmt.Errorf("find the last frame: %w", err)
	}
	last := uint64(0)
	if it.Last() {
		no, ok := frameNo(it.Key())
		if !ok {
			err = fmt.Errorf("malformed key %x", it.Key())
		}
		last = no
	}
	if e := it.Close(); err == nil { // the same as of Error
		err = e
	}
	return last, err
}

func frameBounds(from uint64) *pebble.IterOptions {
	low := frameKey(from)
	return &pebble.IterOptions{LowerBound: low[:], UpperBound: []byte{spaceFrame + 1}}
}

// shown are the bounds of the frames from number from on that readers may see: of a member's those
// that are committed.
func shown(j *Journal, from uint64) *pebble.IterOptions {
	o := frameBounds(from)
	if j.agreed != nil {
		behind := frameKey(j.latest.last() + 1)
		o.UpperBound = behind[:]
	}
	return o
}

func (o *Options) pebbleOptions() *pebble.Options {
	p := disk.Appended(o.MemTable, o.Cache)
	p.FS, p.ReadOnly = o.FS, o.ReadOnly
	return p
}

// Append writes the encoded frame behind the last one, not yet durably. It refuses, changing
// nothing, a frame that Recover would refuse: whose number, first Sequence or Prev does not follow
// the last one, whose Epoch or Time goes back, or whose Partition is another one. It returns
// before the sync; f may be used again at once, f.Bytes are shared and must never change.
func (j *Journal) Append(f *engine.Frame) error {
	if !j.gate.Enter() {
		return fmt.Errorf("append frame %d: %w", f.No, ErrClosed)
	}
	defer j.gate.Leave()
	if err := j.check(f); err != nil {
		return fmt.Errorf("append frame %d: %w", f.No, err)
	}
	start := time.Now()
	j.unsynced.Begin(f.No, start)
	batch := j.db.NewBatchWithSize(len(f.Bytes) + 64)
	key := frameKey(f.No)
	if err := batch.Set(key[:], f.Bytes, nil); err != nil {
		return j.fail(f.No, f.First, fmt.Errorf("append frame %d: %w", f.No, err))
	}
	if err := j.apply(batch); err != nil {
		return j.fail(f.No, f.First, fmt.Errorf("append frame %d: %w", f.No, err))
	}
	j.head, j.partition = f.Head(), f.Partition
	j.gauges.appended(len(f.Bytes), len(f.Commands))
	j.airborne.Add(1)
	j.flight <- flight{batch, f.Bytes, f.No, f.Last(), f.Hash, start}
	return nil
}

// check returns why frame f cannot be the next one, or nil.
func (j *Journal) check(f *engine.Frame) error {
	if failed := j.failed.Load(); failed != nil {
		return *failed
	}
	switch {
	case j.Options.ReadOnly:
		return errors.New("the journal is open for reading only")
	case j.agreed != nil:
		return errMember
	case !j.recovered:
		return errors.New("the journal's end is not known: call Recover before the first Append")
	case f.No != j.head.Frame+1:
		return fmt.Errorf("out of order: the last frame is %d", j.head.Frame)
	case f.First != j.head.Sequence+1:
		return fmt.Errorf("first Sequence is %d, the last one appended is %d",
			f.First, j.head.Sequence)
	case f.Prev != j.head.Hash:
		return fmt.Errorf("broken chain: Prev is %x, the hash of frame %d is %x",
			f.Prev[:4], j.head.Frame, j.head.Hash[:4])
	case f.Epoch < j.head.Epoch || f.Time < j.head.Time:
		return fmt.Errorf("epoch %d, time %d goes back: the last frame has epoch %d, time %d",
			f.Epoch, f.Time, j.head.Epoch, j.head.Time)
	case f.No > 1 && f.Partition != j.partition:
		return fmt.Errorf("partition is %d, the journal's is %d", f.Partition, j.partition)
	case len(f.Commands) == 0 || len(f.Bytes) == 0:
		return errors.New("no commands, or not encoded")
	case len(j.flight) == cap(j.flight):
		return fmt.Errorf("more than %d frames wait for their sync", inFlight)
	}
	return nil
}

// apply hands the batch to Pebble, which writes its log in order and syncs it in the background.
// Pebble panics when its log has failed before: apply returns that as an error.
func (j *Journal) apply(batch *pebble.Batch) (err error) {
	defer func() {
		if p := recover(); p != nil {
			err = fmt.Errorf("write-ahead log: %v", p)
		}
	}()
	if j.Options.Async {
		return j.db.Apply(batch, pebble.NoSync)
	}
	return j.db.ApplyNoSyncWait(batch, pebble.Sync)
}

// fail records the first failure and speaks the last words. It returns only in tests.
func (j *Journal) fail(frame uint64, seq engine.Sequence, err error) error {
	return j.failAs(fmt.Sprintf("frame %d with Sequence %d is not durable", frame, seq), err)
}

// failAs is fail for what happened, in the caller's words.
func (j *Journal) failAs(what string, err error) error {
	if j.failed.CompareAndSwap(nil, &err) {
		close(j.broken)
	}
	j.guard.LastWords(what, err, disk.HintDisk)
	return *j.failed.Load()
}
