package history

import (
	"cmp"
	"encoding/binary"
	"errors"
	"fmt"
	"io/fs"
	"log/slog"
	"path/filepath"
	"sync/atomic"
	"time"

	"clobd/engine"
	"clobd/journal"
	"clobd/journal/disk"

	"github.com/cockroachdb/pebble/v2"
	"github.com/cockroachdb/pebble/v2/vfs"
)

// Options say where the index is and how it works. The zero value of a field is its default.
type Options struct {
	Dir      string        // the data folder; the index is in Dir/index. Default: the journal's.
	FS       vfs.FS        // the filesystem. Default: the journal's.
	Log      *slog.Logger  // the log of the index. Default: the journal's.
	Flush    time.Duration // how often the index becomes durable while it changes. Default 30 s.
	MemTable int           // the size of a memtable in bytes, [1 MiB, 1 GiB]. Default 32 MiB.
	Cache    int64         // of the block cache in bytes, beside two memtables. Default 64 MiB.
	// Builder finds the builder in the evidence of an order, all zero if it has none; nil: none has.
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
	o.Dir, o.FS = cmp.Or(o.Dir, j.Dir), cmp.Or(o.FS, j.Options.FS)
	o.Log = cmp.Or(o.Log, j.Options.Log)
	o.Flush = cmp.Or(o.Flush, 30*time.Second)
	o.MemTable, o.Cache = cmp.Or(o.MemTable, 32<<20), cmp.Or(o.Cache, 64<<20)
	o.patience = cmp.Or(o.patience,
		patience{flush: giveUp, close: giveUp + disk.LastRest, leave: 2 * giveUp})
	return errors.Join(problems...)
}

func (o *Options) pebbleOptions() *pebble.Options {
	p := disk.Rewritten(o.MemTable, o.Cache)
	p.FS, p.ReadOnly = o.FS, o.readOnly
	p.MemTableStopWritesThreshold = 4 * holdMemTables // waitForDisk waits before, and can be stopped
	p.L0StopWritesThreshold = 2 * holdSublevels
	return p
}

// Index answers about the past. One goroutine, in Run, folds it from the journal's tail.
type Index struct {
	History *History // the read side
	Path    string   // the index's own folder

	j       *journal.Journal
	options Options
	db      *pebble.DB
	guard   *disk.Guard
	gauges  *gauges
	tail    *journal.Tail
	fresh   bool // opened without rows
	resting *resting
	recent  *recent
	marked  engine.Time   // of the last mark at the time of opening
	fold    fold          // Run's
	timer   *time.Timer   // Run's
	lingers time.Duration // how long Run waits for more frames
	durable durability
	torn    atomic.Pointer[error] // why Pebble cannot go on
	called  atomic.Uint32         // runCalled and closeCalled
	closing chan struct{}         // closed by Close
	done    chan struct{}         // closed when Run returns
	scanned chan struct{}         // closed when the scan for the filter has ended
}

// Bits of Index.called.
const (
	runCalled = 1 << iota
	closeCalled
)

// Copy copies the durable part of the index into a new folder. Open of the copy folds the rest
// again from the journal. History that no frame has any more is durable.
func (x *Index) Copy(dir string) error {
	if !x.History.gate.Enter() {
		return errors.New("it is not open")
	}
	defer x.History.gate.Leave()
	return x.db.Checkpoint(dir)
}

// scrubPart is how many bytes of the index are read with one iterator: as long as an iterator is
// open, the tables that were replaced meanwhile stay on the disk.
const scrubPart = 64 << 20

// Scrub reads all rows, each of which the database checks, and tells note how much it has read. The
// error is about the first one that cannot be read, or that of note.
func (x *Index) Scrub(note func(bytes int) error) error {
	if !x.History.gate.Enter() {
		return nil // it closes
	}
	defer x.History.gate.Leave()
	return x.scrub(note)
}

func (x *Index) scrub(note func(bytes int) error) error {
	var from []byte
	for more := true; more; {
		more = false
		part := 0
		err := each(x.db, from, nil, func(key, value []byte) (bool, error) {
			if part += len(key) + len(value); part > scrubPart {
				more, from = true, append(from[:0], key...)
				return false, nil
			}
			return true, note(len(key) + len(value))
		})
		if err != nil {
			return fmt.Errorf("index %s, which can be made anew from the journal: %w", x.Path, err)
		}
	}
	return nil
}

// ScrubFolder is Index.Scrub for a folder that nobody has open.
func ScrubFolder(j *journal.Journal, o Options, note func(bytes int) error) error {
	if err := o.validate(j); err != nil {
		return err
	}
	x := newIndex(j, o)
	x.options.readOnly, x.options.Log = true, slog.New(slog.DiscardHandler)
	if err := x.openPebble(); errors.Is(err, fs.ErrNotExist) {
		return nil
	} else if err != nil {
		return err
	}
	err := x.scrub(note)
	x.guard.Retire()
	return errors.Join(err, x.guard.Close(x.db))
}

type reached struct {
	journal  uint64
	frame    uint64
	sequence engine.Sequence
	hash     engine.Hash
	orders   uint64 // rows
	listed   uint64 // number of the last trade in the lists
	builders BuilderNo
}

const (
	indexVersion = 10       // of the layout; an index of another version is made anew
	metaPlace    = "place"  // key of reached, written in every batch
	metaBroken   = "broken" // key of the reason to make the index anew, if there is one
	placeLen     = 1 + 8 + 8 + 8 + 8 + 8 + 4 + 32
)

func (p *reached) append(b []byte) []byte {
	b = append(b, indexVersion)
	for _, v := range [...]uint64{p.journal, p.frame, uint64(p.sequence), p.orders, p.listed} {
		b = binary.BigEndian.AppendUint64(b, v)
	}
	b = binary.BigEndian.AppendUint32(b, uint32(p.builders))
	return append(b, p.hash[:]...)
}

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

// Open opens the index of j in Dir/index. If there is none, or it is damaged or does not fit the
// journal, Open makes it anew, and Run folds the whole journal. The error is about the folder (a
// *disk.LockedError, space, permission, a failing disk) or about the journal.
func Open(j *journal.Journal, o Options) (*Index, error) {
	if err := o.validate(j); err != nil {
		return nil, err
	}
	x := newIndex(j, o)
	at, err := x.open()
	if err != nil {
		return nil, err
	}
	x.fresh = at.frame == 0
	x.tail.Seek(at.frame + 1)
	x.History = &History{db: x.db, journal: j.ID, filter: newFilter(int(at.orders + at.orders/4)),
		resting: x.resting, recent: x.recent, leaders: newLeaders()}
	x.fold = fold{History: x.History, gauges: x.gauges, rows: make(map[engine.OrderID]*row),
		batch: x.db.NewBatch(), at: at, rules: make(map[engine.MarketNo]rules),
		markets: &markets{db: x.db, gauges: x.gauges, all: make(map[engine.MarketNo]*market)},
		pace:    markEvery, marked: x.marked, keep: keepRows,
		builderOf: o.Builder, builders: make(map[BuilderCode]BuilderNo)}
	x.fold.touches = touches{block: at.frame >> blockBits, older: at.frame >> blockBits,
		rows: make(map[engine.WalletNo]uint64), dirty: make(map[engine.WalletNo]struct{})}
	x.fold.ledger = &ledger{db: x.db, gauges: x.gauges, markets: x.fold.markets,
		purses: make(map[engine.WalletNo]*purse), positions: make(map[uint64]*position)}
	x.History.wanted = make(chan struct{}, 1)
	x.History.sequence.Store(uint64(at.sequence))
	x.timer, x.lingers = time.NewTimer(0), lingerTime
	x.durable.began = time.Now()
	x.durable.sequence.Store(uint64(at.sequence))
	go x.scan()
	return x, nil
}

func newIndex(j *journal.Journal, o Options) *Index {
	return &Index{Path: filepath.Join(o.Dir, "index"), j: j, options: o, gauges: newGauges(),
		done: make(chan struct{}), closing: make(chan struct{}), scanned: make(chan struct{})}
}

// scan fills the filter. Until then, and if it fails, answers come from the database alone.
func (x *Index) scan() {
	defer close(x.scanned)
	it, err := iterate(x.db, spaceOrder)
	if err == nil {
		err = x.fold.filter.scan(it, x.closing)
	}
	if err != nil {
		x.options.Log.Error("the index has no filter", "path", x.Path, "error", err)
	}
}

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

// try opens the database. why tells why the index is of no use. After an error the folder stays.
func (x *Index) try() (at reached, why string, err error) {
	doubt := func() {
		if err != nil && disk.Unreadable(err) {
			why, err = err.Error(), nil
		}
	}
	if err = x.openPebble(); err != nil {
		doubt()
		return at, why, err
	}
	at, why, err = x.judge()
	doubt()
	if err == nil && why == "" {
		why, err = x.compare(&at)
	}
	if err == nil && why == "" {
		if err = x.load(at); err == nil {
			return at, "", nil
		}
		doubt()
	}
	if e := x.guard.Close(x.db); err != nil {
		err = errors.Join(err, e)
	} else if e != nil {
		why += ": " + e.Error()
	}
	return at, why, err
}

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

// lastMark is the time of the last mark, 0 if there is none, from which marks go on.
func lastMark(db *pebble.DB) (engine.Time, error) {
	it, err := iterate(db, spaceMarks)
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

// judge reads how far the index goes, or why it is of no use. An error is about the index alone.
func (x *Index) judge() (at reached, why string, err error) {
	b, found, err := disk.Get(x.db, stateKey(metaBroken), nil)
	if err != nil {
		return at, "", fmt.Errorf("read the state of %s: %w", x.Path, err)
	}
	if found {
		return at, string(b), nil
	}
	if at, why, err = x.place(); at == (reached{}) {
		at.journal = x.j.ID
	}
	return at, why, err
}

// place reads how far the index goes.
func (x *Index) place() (at reached, why string, err error) {
	b, found, err := disk.Get(x.db, stateKey(metaPlace), nil)
	switch {
	case err != nil:
		return at, "", fmt.Errorf("read the place of %s: %w", x.Path, err)
	case found && !at.decode(b):
		return at, "it is of another layout", nil
	}
	return at, "", nil
}

// compare returns why the index does not fit the journal. An error is about the journal.
func (x *Index) compare(at *reached) (why string, err error) {
	switch last := x.j.Last(); {
	case at.journal != x.j.ID:
		return fmt.Sprintf("it belongs to journal %016x, this is %016x", at.journal, x.j.ID), nil
	case at.frame > last:
		return fmt.Sprintf("it ends with frame %d at Sequence %d, the journal with frame %d",
			at.frame, at.sequence, last), nil
	case at.frame == 0:
		return "", nil
	}
	found, err := x.j.Has(at.frame, at.hash)
	if err != nil {
		return "", fmt.Errorf("compare %s with the journal: %w", x.Path, err)
	}
	if !found {
		return fmt.Sprintf("frame %d of the journal is not the one that it saw", at.frame), nil
	}
	return "", nil
}

// Far behind the journal, batches are larger and more rows stay in memory: fewer are read again.
const (
	foldCommands = 8192
	farCommands  = 1 << 15
	farFrames    = 1024 // the index is far behind with so many frames to come
)

func (x *Index) batchSize() int {
	at := x.fold.at.frame
	if last := x.j.Last(); last < at+farFrames {
		x.fold.keep = keepRows
		return foldCommands
	}
	x.fold.keep = farRows
	return farCommands
}

// Run follows the journal's tail until Close, when it returns nil, or the first failure. It marks
// an index that contradicts the journal or cannot be read, so that the next Open makes it anew.
func (x *Index) Run() error {
	if x.called.Or(runCalled) != 0 {
		return nil
	}
	defer close(x.done)
	err := x.fold.markets.load(x.fold.resting) // while the node does something else
	if err != nil {
		err = fmt.Errorf("read what rests at Sequence %d: %w", x.fold.at.sequence, err)
	}
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

// errUnread means that the journal cannot be read: making the index anew would not help.
var errUnread = errors.New("the journal cannot be read")

const hintUnread = "clobd verify tells what of the journal is damaged; " + disk.HintDamaged

// errContradiction means that a row and a frame cannot both be right.
var errContradiction = errors.New("the index contradicts the journal")

// condemn marks the index durably as one to be made anew, and returns err with advice.
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

type remadeError struct{ error }

func (e *remadeError) Unwrap() error { return e.error }

// IsRemade reports whether opening journal and index again repairs an error of Run.
func IsRemade(err error) bool {
	var remade *remadeError
	return errors.As(err, &remade)
}

func (x *Index) step() error {
	if err := x.waitForDisk(); err != nil {
		return err
	}
	err := x.gather(true)
	for n := 0; err == nil && x.gains(n) && x.linger(); n++ {
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

// Run waits in turns of lingerTime for more frames, and folds what came after each turn. A row that
// changes again meanwhile is written once, and many rows together cost less each.
const (
	lingerTime  = 10 * time.Millisecond
	lingerTurns = 10
	lingerLeast = 16   // Commands that turns must bring, on average: a node with few has no gain
	lingerMost  = 4096 // Commands of a batch, which a caller who comes then waits for: about 10 ms
)

// gains reports whether another turn is worth it, after n turns for this batch.
func (x *Index) gains(n int) bool {
	return n < lingerTurns && x.fold.commands >= n*lingerLeast && x.fold.commands < lingerMost
}

// linger waits for more frames while no caller waits for the index, and reports whether it did.
func (x *Index) linger() bool {
	select {
	case <-x.History.wanted: // perhaps from a caller that has stopped waiting
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

// Close stops Run, makes the index durable and unlocks its folder. Call it before closing the
// journal. After 2 s it gives up on a disk that takes no writes: the next start folds the rest
// again. The error means that the kernel hangs: the database could not even be abandoned.
func (x *Index) Close() error {
	before := x.called.Or(closeCalled)
	if before&closeCalled != 0 {
		return journal.ErrClosed
	}
	x.tail.Close()
	close(x.closing)
	x.guard.Hurry()
	finished := make(chan error, 1)
	go func() { finished <- x.finish(before&runCalled != 0) }()
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
