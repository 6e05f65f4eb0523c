package journal

import (
	"errors"
	"fmt"
	"io"
	"log/slog"
	"os"
	"strings"
	"sync"
	"time"

	"github.com/cockroachdb/pebble/v2"
	"github.com/cockroachdb/pebble/v2/bloom"
	"github.com/prometheus/client_golang/prometheus"
)

// hintDamaged is what to do with a database that cannot be read.
const (
	hintDamaged = "clobd recover makes it good if everything can be found in its files, and else says " +
		"what is lost; clobd restore brings back a copy"
	hintUnopened = "if another version of clobd wrote it, start that one; else " + hintDamaged
)

// pebbleOptions are the journal's: it only ever appends keys in order, so tables never overlap and
// compaction moves them instead of rewriting; signatures do not compress; one frame fills a block.
func (j *Journal) pebbleOptions() *pebble.Options {
	o := &pebble.Options{
		FS:                          j.options.FS,
		FormatMajorVersion:          pebble.FormatNewest, // its log notices damage before the end
		MemTableSize:                uint64(j.options.MemTable),
		MemTableStopWritesThreshold: 4,
		CacheSize:                   j.options.Cache,
		L0CompactionThreshold:       4,
		L0StopWritesThreshold:       1000, // tables that do not overlap are no burden to readers
		BytesPerSync:                1 << 20,
		MaxOpenFiles:                1024,
		ReadOnly:                    j.options.ReadOnly,
		Lock:                        j.options.lock,
	}
	o.TargetFileSizes[0] = 64 << 20
	for i := range o.Levels {
		o.Levels[i].BlockSize = 64 << 10
	}
	o.ApplyCompressionSettings(func() pebble.DBCompressionSettings {
		return pebble.DBCompressionNone
	})
	return o
}

// indexPebble are the index's options: random keys that are rewritten, no log, filters for lookups
// of ids that do not exist.
func (o *IndexOptions) indexPebble() *pebble.Options {
	p := &pebble.Options{
		FS:                          o.FS,
		FormatMajorVersion:          pebble.FormatNewest,
		DisableWAL:                  true,
		MemTableSize:                uint64(o.MemTable),
		MemTableStopWritesThreshold: 4 * holdMemTables, // Index.room waits before, and can be stopped
		// Pebble takes the memtables out of the cache: the one that is written and one more, kept for
		// the next or being flushed, would leave nothing of it.
		CacheSize:             o.Cache + 2*int64(o.MemTable),
		L0CompactionThreshold: 4,
		L0StopWritesThreshold: 2 * holdSublevels,
		BytesPerSync:          1 << 20,
		MaxOpenFiles:          1024,
		ReadOnly:              o.readOnly,
	}
	p.TargetFileSizes[0] = 8 << 20
	for i := range p.Levels {
		p.Levels[i].BlockSize = 8 << 10
		p.Levels[i].FilterPolicy = bloom.FilterPolicy(10)
	}
	p.ApplyCompressionSettings(func() pebble.DBCompressionSettings {
		return pebble.DBCompressionFastest
	})
	return p
}

// openPebble opens the database in path and takes its lock, unless the options have it.
func openPebble(path string, w *ward, o *pebble.Options) (*pebble.DB, error) {
	if o.ReadOnly {
		if _, err := o.FS.Stat(path); err != nil {
			return nil, fmt.Errorf("open %s: %w", w.name, err)
		}
	} else if err := makeFolder(o.FS, path); err != nil {
		return nil, err
	}
	w.disk = newDisk(o.FS)
	o.FS, o.Logger, o.EventListener = w.disk, w, w.listener()
	own := o.Lock == nil
	if own {
		lock, err := lockFolder(o.FS, path, o.ReadOnly)
		if err != nil {
			return nil, err
		}
		o.Lock = lock
	}
	if w.spares && !o.ReadOnly {
		w.disk.spares = newSpares(w.disk.FS, path, int64(o.MemTableSize), w.log)
	}
	db, err := pebble.Open(path, o)
	if err != nil {
		w.disk.retire()
		if reparable(err) { // the machine has not refused: it is what is in the folder
			err = &damagedError{err}
		}
		err = &advisedError{fmt.Errorf("open %s %s: %w", w.name, path, err), w.unopened}
		if own {
			err = errors.Join(err, o.Lock.Close())
		}
		return nil, err
	}
	if own {
		w.lock = o.Lock
	}
	return db, nil
}

// ward watches over one database: it is Pebble's logger and event listener, and ends the process
// when Pebble or we find that a promise cannot be kept. Any goroutine may use it.
type ward struct {
	name, path string
	log        *slog.Logger
	words      io.Writer
	exit       func(code int)
	state      func() string // what was promised so far
	hint       string        // what to do with a damaged folder
	unopened   string        // what to do with one that cannot be opened
	lock       *pebble.Lock  // given back when the database is closed; nil: another one's
	disk       *disk
	spares     bool // whether a spare log is kept
	failures   prometheus.Counter
	fatal      func(err error) // what to do when Pebble cannot go on
	patience   time.Duration   // how long writes may wait for flushes that fail; 0: for ever

	mu      sync.Mutex
	retired bool // closing: background work is being cancelled
	dead    bool // the last words are spoken
	trouble *trouble
	stalled *time.Timer // runs while writes wait for flushes
}

// trouble is background work that fails: flushes and compactions.
type trouble struct {
	since time.Time
	err   error     // the last one
	said  time.Time // when the log was told
}

const (
	// sayAgain is how often the log is told of work that goes on failing.
	sayAgain = 10 * time.Second
	// stallLimit is how long a journal lets frames wait for memory while its flushes fail.
	stallLimit = 10 * time.Second
)

// newWard makes the ward of the database in path. It ends the process when Pebble cannot go on.
func newWard(name, path string, o *Options) *ward {
	w := &ward{name: name, path: path, log: o.Log, words: o.Words, exit: o.Exit, hint: hintDamaged,
		unopened: hintUnopened}
	w.failures = prometheus.NewCounter(prometheus.CounterOpts{Namespace: "clobd", Subsystem: name,
		Name: "background_failures_total", Help: "Flushes and compactions that failed."})
	w.fatal = func(err error) { w.lastWords("the database cannot go on", err) }
	if w.exit == nil {
		w.exit = os.Exit
	}
	return w
}

// Infof is Pebble's chatter.
func (w *ward) Infof(format string, args ...any) {
	w.log.Debug("pebble", "database", w.name, "text", fmt.Sprintf(format, args...))
}

// Errorf is Pebble's trouble that it can live with.
func (w *ward) Errorf(format string, args ...any) {
	text, _, _ := strings.Cut(fmt.Sprintf(format, args...), "\n") // what follows is a stack
	w.log.Error("pebble", "database", w.name, "text", text)
}

// Fatalf is called by Pebble when it cannot go on: a write or sync of its log or manifest failed.
func (w *ward) Fatalf(format string, args ...any) {
	w.mu.Lock()
	retired := w.retired
	w.mu.Unlock()
	if !retired {
		w.fatal(fmt.Errorf(format, args...))
	}
}

// lastWords says what happened, where, what was promised and what to do, and exits. A failed sync
// is never tried again: the kernel may have dropped the pages and would report success.
func (w *ward) lastWords(what string, err error) {
	w.speak(what, err, "check the disk (space, dmesg) and start again: start-up replays what is "+
		"durable; callers without an answer may send again")
}

// speak is lastWords with another hint.
func (w *ward) speak(what string, err error, hint string) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.dead || w.retired {
		return
	}
	w.dead = true
	w.log.Error("journal failed, exiting", "database", w.name, "what", what, "error", err,
		"path", w.path, "state", w.state(), "hint", hint)
	fmt.Fprintf(w.words, "error: %s %s: %s: %v; %s\nhint: %s\n",
		w.name, w.path, what, err, w.state(), hint)
	w.exit(ExitJournal)
}

// retire makes failures of background work silent: the database is being closed in order.
func (w *ward) retire() {
	w.mu.Lock()
	w.retired = true
	w.mu.Unlock()
}

// closePebble closes the database and gives its lock back.
func (w *ward) closePebble(db *pebble.DB) error {
	err := db.Close()
	w.disk.retire()
	if w.lock != nil {
		err = errors.Join(err, w.lock.Close())
	}
	return err
}

// listener hears of trouble that Pebble does not log itself.
func (w *ward) listener() *pebble.EventListener {
	return &pebble.EventListener{
		// A failed flush or compaction is tried again by Pebble with fresh files, and the log, or the
		// journal, still has what it was about: no promise is broken.
		BackgroundError: w.stumble,
		FlushEnd: func(info pebble.FlushInfo) {
			if info.Err == nil {
				w.recovered()
			}
		},
		CompactionEnd: func(info pebble.CompactionInfo) {
			if info.Err == nil {
				w.recovered()
			}
		},
		// The reader that met it gets the error and decides.
		DataCorruption: func(info pebble.DataCorruptionInfo) {
			w.log.Error("damaged table", "database", w.name, "path", w.path,
				"text", info.String(), "hint", w.hint)
		},
		DiskSlow: func(info pebble.DiskSlowInfo) {
			w.log.Warn("slow disk", "database", w.name, "path", w.path, "text", info.String())
		},
		WriteStallBegin: func(info pebble.WriteStallBeginInfo) {
			w.log.Warn("writes wait for flushes", "database", w.name, "reason", info.Reason)
			w.stall(true)
		},
		WriteStallEnd: func() { w.stall(false) },
	}
}

// stumble notes a failure of background work.
func (w *ward) stumble(err error) {
	w.failures.Inc()
	w.disk.failures.Add(1)
	w.mu.Lock()
	defer w.mu.Unlock()
	now := time.Now()
	if w.trouble == nil {
		w.trouble = &trouble{since: now}
	}
	w.trouble.err = err
	if !w.retired && now.Sub(w.trouble.said) > sayAgain {
		w.trouble.said = now
		w.log.Error("background work failed, and is tried again", "database", w.name,
			"path", w.path, "since", w.trouble.since, "error", err)
	}
}

// recovered notes that background work was done.
func (w *ward) recovered() {
	w.disk.failures.Store(0)
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.trouble != nil {
		w.log.Info("background work goes on", "database", w.name, "path", w.path,
			"after", time.Since(w.trouble.since).String())
	}
	w.trouble = nil
}

// failing says since when and why background work fails; nil if it does not.
func (w *ward) failing() error {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.trouble == nil {
		return nil
	}
	return fmt.Errorf("it cannot be written since %s: %w",
		w.trouble.since.UTC().Format(time.RFC3339), w.trouble.err)
}

// stall begins or ends a time in which writes wait for flushes.
func (w *ward) stall(begins bool) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.stalled != nil {
		w.stalled.Stop()
		w.stalled = nil
	}
	if begins && w.patience > 0 {
		w.stalled = time.AfterFunc(w.patience, w.stuck)
	}
}

// stuck gives up when writes have waited long, for flushes that fail: nothing can be acknowledged,
// nor can a stop end before the writer does. What is in the log is found there at the next start.
func (w *ward) stuck() {
	err := w.failing()
	w.mu.Lock()
	waits := w.stalled != nil
	if waits && err == nil { // slow is not dead
		w.stalled.Reset(w.patience)
	}
	w.mu.Unlock()
	if waits && err != nil {
		w.fatal(fmt.Errorf("writes wait for flushes, which fail: %w", err))
	}
}

// door counts the readers of a database, so that closing waits for them and none comes later.
type door struct {
	mu     sync.RWMutex
	closed bool
}

// enter lets a reader in, who must leave, unless the door is shut.
func (d *door) enter() bool {
	d.mu.RLock()
	if d.closed {
		d.mu.RUnlock()
		return false
	}
	return true
}

// leave ends what enter began.
func (d *door) leave() { d.mu.RUnlock() }

// shut waits for all readers and lets none in any more; false if it was shut already.
func (d *door) shut() bool {
	d.mu.Lock()
	defer d.mu.Unlock()
	was := d.closed
	d.closed = true
	return !was
}

// get copies the value of key into buf; false if there is none.
func get(db *pebble.DB, key, buf []byte) ([]byte, bool, error) {
	v, closer, err := db.Get(key)
	if errors.Is(err, pebble.ErrNotFound) {
		return buf[:0], false, nil
	}
	if err != nil {
		return nil, false, err
	}
	buf = append(buf[:0], v...)
	return buf, true, closer.Close()
}
