package history

import (
	"encoding/binary"
	"errors"
	"fmt"
	"log/slog"
	"path/filepath"
	"sync"
	"sync/atomic"
	"time"

	"clobd/engine"
	"clobd/journal"
	"clobd/journal/disk"

	"github.com/cockroachdb/pebble/v2"
	"github.com/cockroachdb/pebble/v2/vfs"
)

// IndexOptions say where the index is and how it works. The zero value of each field is its
// default.
type Options struct {
	// Dir is the data folder; the index is in Dir/index. Empty is the journal's.
	Dir string
	// FS is the filesystem; nil is the journal's.
	FS vfs.FS
	// Log takes what the index has to say; nil is the journal's.
	Log *slog.Logger
	// Flush is how often the index becomes durable while it changes: after a crash at most so much is
	// folded again, which takes a fraction of the time. Default 30 s.
	Flush time.Duration
	// MemTable is the size of a memtable in bytes, [1 MiB, 1 GiB]. Default 32 MiB.
	MemTable int
	// Cache is the size of the block cache in bytes, beside two memtables. Default 64 MiB.
	Cache int64
	// Builder finds the code of the builder in the evidence that came with an order, all zero if there
	// is none. nil: no order was brought by anybody.
	Builder func(proof []byte) BuilderCode

	readOnly bool
	patience patience
}

// validate returns all problems of the options at once, or nil, and fills in the defaults.
func (o *Options) validate(j *journal.Journal) error {
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
		o.FS = j.Options.FS
	}
	if o.Log == nil {
		o.Log = j.Options.Log
	}
	if o.Flush == 0 {
		o.Flush = 30 * time.Second
	}
	if o.MemTable == 0 {
		o.MemTable = 32 << 20
	}
	if o.Cache == 0 {
		o.Cache = 64 << 20
	}
	if o.patience == (patience{}) {
		o.patience = patience{flush: giveUp, close: giveUp + disk.LastRest, leave: giveUp / 2}
	}
	return errors.Join(problems...)
}

// pebbleOptions are Pebble's options for the index's database.
func (o *Options) pebbleOptions() *pebble.Options {
	p := disk.Rewritten(o.MemTable, o.Cache)
	p.FS, p.ReadOnly = o.FS, o.readOnly
	p.MemTableStopWritesThreshold = 4 * holdMemTables // Index.room waits before, and can be stopped
	p.L0StopWritesThreshold = 2 * holdSublevels
	return p
}

// Index keeps orders by id, folded from the journal's tail by the one goroutine in Run. It is
// derived: whenever it does not fit the journal it is thrown away and made again.
type Index struct {
	// History is the read side.
	History *History
	// Path is the index's own folder.
	Path string

	j       *journal.Journal
	options Options
	db      *pebble.DB
	guard   *disk.Guard
	gauges  *gauges
	tail    *journal.Tail
	fresh   bool // opened without any rows
	resting *resting
	recent  *recent
	marked  engine.Time   // of the last mark when it was opened
	fold    fold          // Run's
	timer   *time.Timer   // Run's
	lingers time.Duration // how long Run lingers
	durable durability
	torn    atomic.Pointer[error] // why Pebble cannot go on
	stop    sync.Mutex            // guards started and stopped
	started bool                  // Run was called
	stopped bool                  // Close was called
	closing chan struct{}         // closed by Close
	done    chan struct{}         // closed when Run returns
	scanned chan struct{}         // closed when the scan for the filter has ended
}

// Copy copies what the index has on the disk into a new folder. What it has in memory is folded
// again by whoever opens the copy; all that no frame has any more was on the disk when the loss was
// accepted.
func (x *Index) Copy(dir string) error {
	if !x.History.gate.Enter() {
		return errors.New("it is not open")
	}
	defer x.History.gate.Leave()
	return x.db.Checkpoint(dir)
}

// reached is how far the index has come: of which journal, up to which frame.
type reached struct {
	journal  uint64
	frame    uint64
	sequence engine.Sequence
	hash     engine.Hash
	orders   uint64 // rows
	listed   uint64 // number of the last trade that the lists have
	builders BuilderNo
}

const (
	// indexVersion is the version of the index's layout; another one is rebuilt.
	indexVersion = 7
	// metaPlace is the key of the place: written in every batch.
	metaPlace = "place"
	// metaBroken is the key of the reason why the index must be made anew; absent if it need not.
	metaBroken = "broken"
	placeLen   = 1 + 8 + 8 + 8 + 8 + 8 + 4 + 32
)

// append appends the stored form.
func (p *reached) append(b []byte) []byte {
	b = append(b, indexVersion)
	b = binary.BigEndian.AppendUint64(b, p.journal)
	b = binary.BigEndian.AppendUint64(b, p.frame)
	b = binary.BigEndian.AppendUint64(b, uint64(p.sequence))
	b = binary.BigEndian.AppendUint64(b, p.orders)
	b = binary.BigEndian.AppendUint64(b, p.listed)
	b = binary.BigEndian.AppendUint32(b, uint32(p.builders))
	return append(b, p.hash[:]...)
}

// decode reads the stored form.
func (p *reached) decode(b []byte) bool {
	if len(b) != placeLen || b[0] != indexVersion {
		return false
	}
	p.journal = binary.BigEndian.Uint64(b[1:])
	p.frame = binary.BigEndian.Uint64(b[9:])
	p.sequence = engine.Sequence(binary.BigEndian.Uint64(b[17:]))
	p.orders = binary.BigEndian.Uint64(b[25:])
	p.listed = binary.BigEndian.Uint64(b[33:])
	p.builders = BuilderNo(binary.BigEndian.Uint32(b[41:]))
	p.hash = engine.Hash(b[45:])
	return true
}

// OpenIndex opens the index of j in Dir/index. One that is missing, damaged, of another journal or
// layout, ahead of the journal, or contradicted by it when it ran last, is made anew: Run then
// folds the whole journal. The error is about the folder (a *disk.LockedError, space, permission, a
// failing disk) or about the journal itself.
func Open(j *journal.Journal, o Options) (*Index, error) {
	if err := o.validate(j); err != nil {
		return nil, err
	}
	x := &Index{
		Path: filepath.Join(o.Dir, "index"), j: j, options: o, gauges: newGauges(),
		done: make(chan struct{}), closing: make(chan struct{}), scanned: make(chan struct{}),
	}
	at, err := x.open()
	if err != nil {
		return nil, err
	}
	x.fresh = at.frame == 0
	x.tail.Seek(at.frame + 1)
	filter := newFilter(int(at.orders + at.orders/4))
	x.fold = fold{db: x.db, gauges: x.gauges, filter: filter, rows: make(map[engine.OrderID]*row),
		batch: x.db.NewBatch(), at: at, resting: x.resting, recent: x.recent,
		leaders: newLeaders(), rules: make(map[engine.MarketNo]rules),
		markets: newMarkets(x.db, x.gauges), pace: markEvery, marked: x.marked, keep: keepRows}
	x.fold.builders = builders{db: x.db, of: o.Builder, last: at.builders,
		known: make(map[BuilderCode]BuilderNo)}
	x.fold.ledger = newLedger(x.db, x.gauges, x.fold.markets)
	x.History = &History{db: x.db, journal: j.ID, filter: filter, resting: x.resting, recent: x.recent,
		leaders: x.fold.leaders}
	x.History.wanted = make(chan struct{}, 1)
	x.History.sequence.Store(uint64(at.sequence))
	x.timer, x.lingers = time.NewTimer(0), lingerTime
	x.durable.began = time.Now()
	x.durable.sequence.Store(uint64(at.sequence))
	go x.scan()
	return x, nil
}

// scan fills the filter. Without it, answers come from the database alone, as they do until it is
// done: a table that cannot be read is for whoever needs it to judge.
func (x *Index) scan() {
	defer close(x.scanned)
	it, err := x.db.NewIter(&pebble.IterOptions{LowerBound: []byte{spaceOrder},
		UpperBound: []byte{spaceOrder + 1}})
	if err == nil {
		err = x.fold.filter.scan(it, x.closing)
	}
	if err != nil {
		x.options.Log.Error("the index has no filter", "path", x.Path, "error", err)
	}
}

// open opens the database and throws it away first if it is of no use.
func (x *Index) open() (reached, error) {
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
	x.resting, x.recent, x.marked = newResting(), newRecent(0), 0
	if err := x.openPebble(); err != nil {
		return at, fmt.Errorf("make index anew: %w", err)
	}
	return reached{journal: x.j.ID}, nil
}

// try opens the database, or says why it is of no use. The error is a reason to leave it alone.
func (x *Index) try() (at reached, why string, err error) {
	if err := x.openPebble(); err != nil {
		if disk.Unreadable(err) {
			return at, err.Error(), nil
		}
		return at, "", err
	}
	at, why, err = x.judge()
	if err != nil && disk.Unreadable(err) {
		why, err = err.Error(), nil
	}
	if err == nil && why == "" {
		at, why, err = x.compare(at)
	}
	if err == nil && why == "" {
		if err = x.load(at); err == nil {
			return at, "", nil
		}
		if disk.Unreadable(err) {
			why, err = err.Error(), nil
		}
	}
	if e := x.guard.Close(x.db); err != nil {
		err = errors.Join(err, e)
	} else if e != nil {
		why += ": " + e.Error()
	}
	return at, why, err
}

// load reads what is kept in memory.
func (x *Index) load(at reached) error {
	x.resting, x.recent = newResting(), newRecent(at.listed)
	if err := x.resting.load(x.db); err != nil {
		return err
	}
	var err error
	if x.marked, err = lastMark(x.db); err != nil {
		return err
	}
	return x.recent.load(x.db)
}

// lastMark is the time of the last mark, 0 if there is none: marks go on from there, so that they
// are the same however often the index was opened meanwhile.
func lastMark(db *pebble.DB) (engine.Time, error) {
	it, err := db.NewIter(&pebble.IterOptions{LowerBound: []byte{spaceMarks},
		UpperBound: []byte{spaceMarks + 1}})
	if err != nil {
		return 0, fmt.Errorf("read the last mark of time: %w", err)
	}
	last := uint64(0)
	if it.Last() {
		no, ok := numberOf(it.Key())
		if !ok {
			err = errRow
		}
		last = no
	}
	if err = errors.Join(err, it.Error(), it.Close()); err != nil {
		return 0, fmt.Errorf("read the last mark of time: %w", err)
	}
	return engine.Time(last), nil
}

// openPebble opens the database.
func (x *Index) openPebble() error {
	const hint = "if this goes on, delete the folder: it is made anew from the journal"
	x.guard = disk.NewGuard(disk.GuardOptions{Name: "index", Path: x.Path, Log: x.options.Log,
		Exit: x.j.Options.Exit, Hint: hint, Unopened: hint, Fatal: x.tear})
	x.tail = x.j.Tail(1) // before anything can tear
	x.torn.Store(nil)
	db, err := x.guard.Open(x.options.pebbleOptions())
	if torn := x.torn.Load(); torn != nil && err == nil {
		return errors.Join(*torn, x.guard.Close(db))
	}
	x.db = db
	return err
}

// judge reads what the index says of itself: its place, or why it is of no use. An error is about
// the index alone.
func (x *Index) judge() (at reached, why string, err error) {
	b, found, err := disk.Get(x.db, stateKey(metaBroken), nil)
	if err != nil {
		return at, "", fmt.Errorf("read the state of %s: %w", x.Path, err)
	}
	if found {
		return at, string(b), nil
	}
	b, found, err = disk.Get(x.db, stateKey(metaPlace), nil)
	switch {
	case err != nil:
		return at, "", fmt.Errorf("read the place of %s: %w", x.Path, err)
	case !found:
		return reached{journal: x.j.ID}, "", nil
	case !at.decode(b):
		return at, "it is of another layout", nil
	}
	return at, "", nil
}

// compare says why an index that ends at a place does not fit the journal, if so. An error is about
// the journal.
func (x *Index) compare(at reached) (_ reached, why string, err error) {
	switch last := x.j.Last(); {
	case at.journal != x.j.ID:
		return at, fmt.Sprintf("it belongs to journal %016x, this is %016x", at.journal, x.j.ID), nil
	case at.frame > last:
		return at, fmt.Sprintf("it ends with frame %d at Sequence %d, the journal with frame %d",
			at.frame, at.sequence, last), nil
	case at.frame == 0:
		return at, "", nil
	}
	found, err := x.j.Has(at.frame, at.hash)
	if err != nil {
		return at, "", fmt.Errorf("compare %s with the journal: %w", x.Path, err)
	}
	if !found {
		return at, fmt.Sprintf("frame %d of the journal is not the one that it saw", at.frame), nil
	}
	return at, "", nil
}

// How much is folded at once at most: what waits in the tail makes one batch. Far behind, where
// nobody waits for the next one, batches are larger and more rows are kept: an order that came and
// went in between is written once, and most others need not be read.
const (
	foldCommands = 8192
	farCommands  = 1 << 15
	farFrames    = 1024 // from how many frames on that is
)

// reach is how many Commands the next batch takes.
func (x *Index) batchSize() int {
	at := x.fold.at.frame
	if last := x.j.Last(); last < at+farFrames {
		x.fold.keep = keepRows
		return foldCommands
	}
	x.fold.keep = farRows
	return farCommands
}

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
	if torn := x.torn.Load(); torn != nil {
		err = *torn
	}
	if errors.Is(err, journal.ErrClosed) {
		x.History.end(nil)
		return nil
	}
	err = fmt.Errorf("index %s: %w", x.Path, err)
	if errors.Is(err, errUnread) {
		err = disk.Advise(err, hintUnread)
	} else if errors.Is(err, errContradiction) || errors.Is(err, errRow) ||
		pebble.IsCorruptionError(err) {
		err = x.condemn(err)
	}
	x.History.end(err)
	return err
}

// errUnread says that it is the journal that cannot be read: the index is not to blame, and making
// it anew would not help.
var errUnread = errors.New("the journal cannot be read")

const hintUnread = "clobd verify tells what of the journal is damaged; " + disk.HintDamaged

// errContradiction says that a row and a frame cannot both be right.
var errContradiction = errors.New("the index contradicts the journal")

// condemn marks the index, durably, as one to be made anew because of err, and gives err with what
// to do.
func (x *Index) condemn(err error) error {
	e := x.db.Set(stateKey(metaBroken), []byte(err.Error()), pebble.NoSync)
	if e == nil {
		e = x.makeDurable() // there is no log
	}
	if e != nil {
		return errors.Join(fmt.Errorf("%w; delete the folder: it is made anew from the journal", err),
			fmt.Errorf("mark %s: %w", x.Path, e))
	}
	if err = (disk.Derived(err)); x.fresh {
		return disk.Advise(err, "this program itself made it from the first frame on, so that "+
			"making it anew may not help: keep both folders and report it")
	}
	return disk.Advise(&remadeError{err}, "start again: it is made anew from the journal")
}

// remadeError says that the next OpenIndex makes the index anew, and that this helps.
type remadeError struct{ error }

// Unwrap gives why.
func (e *remadeError) Unwrap() error { return e.error }

// IsRemade says whether an error of Run is made good by opening journal and index again.
func IsRemade(err error) bool {
	var remade *remadeError
	return errors.As(err, &remade)
}

// step waits for frames, folds all that are there, and shows the result.
func (x *Index) step() error {
	if err := x.waitForDisk(); err != nil {
		return err
	}
	err := x.gather(true)
	if err == nil && x.fold.commands < foldCommands && x.linger() {
		err = x.gather(false)
	}
	if err != nil && !errors.Is(err, journal.ErrClosed) {
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

// gather folds all frames that are there, after waiting for the first one if it must.
func (x *Index) gather(wait bool) error {
	b, ready, err := x.next(wait)
	for most := x.batchSize(); ready && err == nil; {
		if err = x.fold.apply(b); err != nil || x.fold.commands >= most {
			break
		}
		b, ready, err = x.next(false)
	}
	return err
}

// next is the next frame of the tail. An error but ErrClosed is the journal's.
func (x *Index) next(wait bool) (b []byte, ready bool, err error) {
	if wait {
		b, err = x.tail.Next()
		ready = err == nil
	} else {
		b, ready, err = x.tail.Poll()
	}
	if err != nil && !errors.Is(err, journal.ErrClosed) {
		err = fmt.Errorf("%w: %w", errUnread, err)
	}
	return b, ready, err
}

// lingerTime is how long more frames are waited for, to be written in one batch.
const lingerTime = 10 * time.Millisecond

// linger lets some more frames come, and says whether it did: not while somebody waits for the
// index, or begins to.
func (x *Index) linger() bool {
	select {
	case <-x.History.wanted: // perhaps of one who waits no more
	default:
	}
	if x.History.awaited() {
		return false
	}
	x.timer.Reset(x.lingers)
	defer x.timer.Stop()
	select {
	case <-x.timer.C:
	case <-x.History.wanted:
	case <-x.closing:
	}
	return true
}

// Close stops Run, makes the index durable and gives its folder back. It comes before the
// journal's. It does not wait for a disk that takes nothing: after 2 s it gives up, which costs
// nothing but that the next start folds again what was not durable. The error is about a database
// that could not even be abandoned within another second: something hangs in the kernel.
func (x *Index) Close() error {
	x.stop.Lock()
	was, started := x.stopped, x.started
	x.stopped = true
	x.stop.Unlock()
	if was {
		return journal.ErrClosed
	}
	x.tail.Close()
	close(x.closing)
	x.guard.Hurry()
	finished := make(chan error, 1)
	go func() { finished <- x.finish(started) }()
	for _, d := range []time.Duration{x.options.patience.close, x.options.patience.leave} {
		select {
		case err := <-finished:
			if err != nil {
				return fmt.Errorf("close index %s: %w", x.Path, err)
			}
			return nil
		case <-time.After(d):
			x.guard.Abandon()
		}
	}
	return fmt.Errorf("close index %s: the disk does not answer; the index is left as it is: the "+
		"next start folds it again from Sequence %d, or makes it anew", x.Path, x.durable.load()+1)
}

// finish waits for Run, makes the index durable if the disk can, and closes the database.
func (x *Index) finish(started bool) error {
	if started {
		<-x.done
	}
	<-x.scanned
	x.History.close()
	lost := x.makeDurable()
	x.guard.Retire()
	if lost != nil {
		x.guard.Abandon()
	}
	err := errors.Join(x.fold.batch.Close(), x.guard.Close(x.db))
	if lost == nil {
		return err
	}
	x.options.Log.Error("the index was not made durable", "path", x.Path,
		"error", errors.Join(lost, err), "sequence", x.History.Sequence(),
		"durable", x.durable.load(), "hint", "nothing is lost: the next start folds it again from "+
			"the journal, from where it was durable; if the folder is gone, it is made anew")
	return nil
}
