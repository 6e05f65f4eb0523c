package journal

import (
	"encoding/binary"
	"errors"
	"fmt"
	"io/fs"
	"log/slog"
	"path/filepath"
	"sync"
	"syscall"
	"time"

	"clobd/engine"

	"github.com/cockroachdb/pebble/v2"
	"github.com/cockroachdb/pebble/v2/vfs"
)

// IndexOptions say where the index is and how it works. The zero value of each field is its
// default.
type IndexOptions struct {
	// Dir is the data folder; the index is in Dir/index. Empty is the journal's.
	Dir string
	// FS is the filesystem; nil is the journal's.
	FS vfs.FS
	// Log takes what the index has to say; nil is the journal's.
	Log *slog.Logger
	// Flush is how often the index becomes durable while it changes: after a crash at most so much is
	// folded again. Default 5 s.
	Flush time.Duration
	// MemTable is the size of a memtable in bytes, [1 MiB, 1 GiB]. Default 32 MiB.
	MemTable int
	// Cache is the size of the block cache in bytes. Default 64 MiB.
	Cache int64
}

// validate returns all problems of the options at once, or nil, and fills in the defaults.
func (o *IndexOptions) validate(j *Journal) error {
	var problems []error
	bad := func(wrong bool, text string) {
		if wrong {
			problems = append(problems, errors.New("index option "+text))
		}
	}
	bad(o.Flush < 0, "Flush is negative")
	bad(o.MemTable != 0 && (o.MemTable < 1<<20 || o.MemTable > 1<<30),
		"MemTable is outside [1 MiB, 1 GiB]")
	bad(o.Cache < 0, "Cache is negative")
	if o.Dir == "" {
		o.Dir = j.Dir
	}
	if o.FS == nil {
		o.FS = j.options.FS
	}
	if o.Log == nil {
		o.Log = j.options.Log
	}
	if o.Flush == 0 {
		o.Flush = 5 * time.Second
	}
	if o.MemTable == 0 {
		o.MemTable = 32 << 20
	}
	if o.Cache == 0 {
		o.Cache = 64 << 20
	}
	return errors.Join(problems...)
}

// Index keeps orders by id, folded from the journal's tail by the one goroutine in Run. It is
// derived: whenever it does not fit the journal it is thrown away and made again.
type Index struct {
	// History is the read side.
	History *History
	// Path is the index's own folder.
	Path string

	j       *Journal
	options IndexOptions
	db      *pebble.DB
	ward    *ward
	gauges  *indexGauges
	tail    *Tail
	fresh   bool          // opened without any rows
	fold    fold          // Run's
	flushed time.Time     // Run's
	stop    sync.Mutex    // guards started and stopped
	started bool          // Run was called
	stopped bool          // Close was called
	done    chan struct{} // closed when Run returns
}

// place is how far the index has come: of which journal, up to which frame.
type place struct {
	journal  uint64
	frame    uint64
	sequence engine.Sequence
	hash     engine.Hash
}

const (
	// indexVersion is the version of the index's layout; another one is rebuilt.
	indexVersion = 1
	// metaPlace is the key of the place: written in every batch.
	metaPlace = "place"
	// metaBroken is the key of the reason why the index must be made anew; absent if it need not.
	metaBroken = "broken"
	placeLen   = 1 + 8 + 8 + 8 + 32
)

// append appends the stored form.
func (p *place) append(b []byte) []byte {
	b = append(b, indexVersion)
	b = binary.BigEndian.AppendUint64(b, p.journal)
	b = binary.BigEndian.AppendUint64(b, p.frame)
	b = binary.BigEndian.AppendUint64(b, uint64(p.sequence))
	return append(b, p.hash[:]...)
}

// decode reads the stored form.
func (p *place) decode(b []byte) bool {
	if len(b) != placeLen || b[0] != indexVersion {
		return false
	}
	p.journal = binary.BigEndian.Uint64(b[1:])
	p.frame = binary.BigEndian.Uint64(b[9:])
	p.sequence = engine.Sequence(binary.BigEndian.Uint64(b[17:]))
	p.hash = engine.Hash(b[25:])
	return true
}

// OpenIndex opens the index of j in Dir/index. One that is missing, damaged, of another journal or
// layout, ahead of the journal, or contradicted by it when it ran last, is made anew: Run then
// folds the whole journal. The error is about the folder (a *LockedError, space, permission, a
// failing disk) or about the journal itself.
func OpenIndex(j *Journal, o IndexOptions) (*Index, error) {
	if err := o.validate(j); err != nil {
		return nil, err
	}
	x := &Index{
		Path: filepath.Join(o.Dir, "index"), j: j, options: o, gauges: newIndexGauges(),
		done: make(chan struct{}), flushed: time.Now(),
	}
	at, err := x.open()
	if err != nil {
		return nil, err
	}
	x.tail, x.fresh = j.Tail(at.frame+1), at.frame == 0
	x.fold = fold{db: x.db, gauges: x.gauges, rows: make(map[engine.OrderID]*row),
		batch: x.db.NewBatch(), at: at}
	x.History = &History{db: x.db, journal: j.ID}
	x.History.sequence.Store(uint64(at.sequence))
	return x, nil
}

// open opens the database and throws it away first if it is of no use.
func (x *Index) open() (place, error) {
	at, why, err := x.try()
	if err != nil {
		return at, fmt.Errorf("open index: %w", err)
	}
	if why == "" {
		return at, nil
	}
	x.options.Log.Warn("the index is made anew from the journal", "path", x.Path, "why", why)
	if err := x.options.FS.RemoveAll(x.Path); err != nil {
		return at, fmt.Errorf("delete index %s: %w", x.Path, err)
	}
	if err := x.openPebble(); err != nil {
		return at, fmt.Errorf("make index anew: %w", err)
	}
	return place{journal: x.j.ID}, nil
}

// try opens the database, or says why it is of no use. The error is a reason to leave it alone.
func (x *Index) try() (at place, why string, err error) {
	if err := x.openPebble(); err != nil {
		if reparable(err) {
			return at, err.Error(), nil
		}
		return at, "", err
	}
	at, why, err = x.judge()
	if err != nil && reparable(err) {
		why, err = err.Error(), nil
	}
	if err == nil && why == "" {
		at, why, err = x.compare(at)
	}
	if err == nil && why == "" {
		return at, "", nil
	}
	if e := x.ward.closePebble(x.db); err != nil {
		err = errors.Join(err, e)
	} else if e != nil {
		why += ": " + e.Error()
	}
	return at, why, err
}

// reparable says whether an index that cannot be opened or read because of err is to be made anew:
// what was derived need not be understood. It is not if the folder is in use, or if the machine
// refuses or fails: a new index would meet the same, and the old one may be whole.
func reparable(err error) bool {
	var locked *LockedError
	if pebble.IsCorruptionError(err) {
		return true
	}
	if errors.As(err, &locked) || errors.Is(err, fs.ErrPermission) {
		return false
	}
	if errors.Is(err, fs.ErrNotExist) || errors.Is(err, syscall.ENOTDIR) ||
		errors.Is(err, syscall.EISDIR) {
		return true // something of the folder is missing, or is not what it should be
	}
	var no syscall.Errno // of the disk, of the machine's limits
	return !errors.As(err, &no)
}

// openPebble opens the database.
func (x *Index) openPebble() error {
	o := Options{Log: x.options.Log, Exit: x.j.options.Exit}
	x.ward = newWard("index", x.Path, &o)
	x.ward.hint = "if this goes on, delete the folder: it is made anew from the journal"
	x.ward.unopened = x.ward.hint
	db, err := openPebble(x.Path, x.ward, x.options.indexPebble())
	x.db = db
	return err
}

// judge reads what the index says of itself: its place, or why it is of no use. An error is about
// the index alone.
func (x *Index) judge() (at place, why string, err error) {
	b, found, err := get(x.db, metaKey(metaBroken), nil)
	if err != nil {
		return at, "", fmt.Errorf("read the state of %s: %w", x.Path, err)
	}
	if found {
		return at, string(b), nil
	}
	b, found, err = get(x.db, metaKey(metaPlace), nil)
	switch {
	case err != nil:
		return at, "", fmt.Errorf("read the place of %s: %w", x.Path, err)
	case !found:
		return place{journal: x.j.ID}, "", nil
	case !at.decode(b):
		return at, "it is of another layout", nil
	}
	return at, "", nil
}

// compare says why an index that ends at a place does not fit the journal, if so. An error is about
// the journal.
func (x *Index) compare(at place) (_ place, why string, err error) {
	switch last := x.j.hub.last(); {
	case at.journal != x.j.ID:
		return at, fmt.Sprintf("it belongs to journal %016x, this is %016x", at.journal, x.j.ID), nil
	case at.frame > last:
		return at, fmt.Sprintf("it ends with frame %d at Sequence %d, the journal with frame %d",
			at.frame, at.sequence, last), nil
	case at.frame == 0:
		return at, "", nil
	}
	found, err := x.j.has(at.frame, at.hash)
	if err != nil {
		return at, "", fmt.Errorf("compare %s with the journal: %w", x.Path, err)
	}
	if !found {
		return at, fmt.Sprintf("frame %d of the journal is not the one that it saw", at.frame), nil
	}
	return at, "", nil
}

// has says whether the journal's frame no has that hash.
func (j *Journal) has(no uint64, hash engine.Hash) (bool, error) {
	b, err := j.read(nil, no, no)
	if err != nil {
		return false, err
	}
	var f engine.Frame
	if err := engine.DecodeFrame(b[0], &f); err != nil {
		return false, fmt.Errorf("frame %d: %w", no, err)
	}
	return f.Hash == hash, nil
}

// How much is folded at once at most: what waits in the tail makes one batch.
const foldCommands = 8192

// Run follows the journal's tail until Close, or the first failure, which History.Failed then says
// too. It returns nil after Close. An index that contradicts the journal, or that cannot be read,
// is marked: the next OpenIndex makes it anew.
func (x *Index) Run() error {
	x.stop.Lock()
	if x.stopped || x.started {
		x.stop.Unlock()
		return nil
	}
	x.started = true
	x.stop.Unlock()
	defer close(x.done)
	var err error
	for err == nil {
		err = x.step()
	}
	if errors.Is(err, ErrClosed) {
		x.History.end(nil)
		return nil
	}
	err = fmt.Errorf("index %s: %w", x.Path, err)
	if errors.Is(err, errContradiction) || errors.Is(err, errRow) || pebble.IsCorruptionError(err) {
		err = x.condemn(err)
	}
	x.History.end(err)
	return err
}

// errContradiction says that a row and a frame cannot both be right.
var errContradiction = errors.New("the index contradicts the journal")

// condemn marks the index, durably, as one to be made anew because of err, and gives err with what
// to do.
func (x *Index) condemn(err error) error {
	e := x.db.Set(metaKey(metaBroken), []byte(err.Error()), pebble.NoSync)
	if e == nil {
		e = x.db.Flush() // there is no log
	}
	if e != nil {
		return errors.Join(fmt.Errorf("%w; delete the folder: it is made anew from the journal", err),
			fmt.Errorf("mark %s: %w", x.Path, e))
	}
	if x.fresh {
		return fmt.Errorf("%w; this program itself made it from the first frame on, so that making it "+
			"anew may not help: keep both folders and report it", err)
	}
	return fmt.Errorf("%w; start again: it is made anew from the journal", err)
}

// step waits for frames, folds all that are there, and shows the result.
func (x *Index) step() error {
	b, ready, err := x.tail.take(true)
	for ready && err == nil {
		if err = x.fold.apply(b); err != nil || x.fold.commands >= foldCommands {
			break
		}
		b, ready, err = x.tail.take(false)
	}
	if err != nil && !errors.Is(err, ErrClosed) {
		return err
	}
	if x.fold.commands > 0 {
		if err := x.fold.commit(); err != nil {
			return err
		}
		x.History.publish(x.fold.at.sequence)
		x.flush()
	}
	return err
}

// flush tells Pebble to make the index durable, now and then: without a log, a crash takes back
// all that is still in a memtable, whole batches, and the place with them.
func (x *Index) flush() {
	if time.Since(x.flushed) < x.options.Flush {
		return
	}
	x.flushed = time.Now()
	if _, err := x.db.AsyncFlush(); err != nil {
		x.options.Log.Error("flush of the index failed", "path", x.Path, "error", err)
		return
	}
	x.gauges.flushes.Inc()
}

// Close stops Run, makes the index durable and gives its folder back. It comes before the
// journal's.
func (x *Index) Close() error {
	x.stop.Lock()
	was, started := x.stopped, x.started
	x.stopped = true
	x.stop.Unlock()
	if was {
		return ErrClosed
	}
	x.tail.Close()
	if started {
		<-x.done
	}
	x.History.close()
	x.ward.retire()
	err := errors.Join(x.fold.batch.Close(), x.db.Flush(), x.ward.closePebble(x.db))
	if err != nil {
		return fmt.Errorf("close index %s: %w", x.Path, err)
	}
	return nil
}
