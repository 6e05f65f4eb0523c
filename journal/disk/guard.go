package disk

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"os"
	"strings"
	"sync"
	"time"

	"github.com/cockroachdb/pebble/v2"
	"github.com/prometheus/client_golang/prometheus"
)

// ExitCode is the exit code of a process whose journal can no longer keep its promise.
const ExitCode = 70

// GuardOptions say what a Guard watches over. Zero values of Words, Exit, State, Hint, Unopened and
// Fatal stand for the defaults.
type GuardOptions struct {
	Name, Path string // of the database, as operators know it, and its folder
	Log        *slog.Logger
	Words      io.Writer       // takes the last words; nil: the standard error
	Exit       func(code int)  // ends the process after them; nil: os.Exit
	State      func() string   // says what was promised so far
	Hint       string          // what to do with a damaged folder
	Unopened   string          // what to do with a folder that cannot be opened
	Fatal      func(err error) // is called when Pebble cannot go on; nil: last words
	Patience   time.Duration   // how long writes may wait for flushes that fail; 0: for ever
	Spares     bool            // whether a spare log is kept
	Lock       *Lock           // of the folder, if the caller has taken it, who also gives it back
}

// Guard watches over one database: it is Pebble's logger and event listener, and ends the process
// when Pebble or its owner finds that a promise cannot be kept. Any goroutine may use it.
type Guard struct {
	// Failures counts flushes and compactions that failed.
	Failures prometheus.Counter

	o     GuardOptions
	lock  *Lock // of the folder, while the database is open
	files *files

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
	said  time.Time // when it was logged
}

const (
	// sayAgain is the time between two log entries about background work that goes on failing.
	sayAgain = 10 * time.Second
	// drainPoll is the time between two looks of Drain and Flush.
	drainPoll = 5 * time.Millisecond
)

// NewGuard makes the guard of a database that is not open yet.
func NewGuard(o GuardOptions) *Guard {
	g := &Guard{o: o, Failures: Subsystem(o.Name).Counter("background_failures_total",
		"Flushes and compactions that failed.")}
	if g.o.Fatal == nil {
		g.o.Fatal = func(err error) { g.LastWords("the database cannot go on", err, HintDisk) }
	}
	if g.o.Exit == nil {
		g.o.Exit = os.Exit
	}
	if g.o.Words == nil {
		g.o.Words = os.Stderr
	}
	g.o.Hint = cmp.Or(g.o.Hint, HintDamaged)
	g.o.Unopened = cmp.Or(g.o.Unopened, hintUnopened)
	return g
}

// Open opens the database with Pebble's options and takes its folder's lock, unless the caller has
// taken it.
func (g *Guard) Open(o *pebble.Options) (*pebble.DB, error) {
	path := g.o.Path
	if o.ReadOnly {
		if _, err := o.FS.Stat(path); err != nil {
			return nil, fmt.Errorf("open %s: %w", g.o.Name, err)
		}
	} else if err := MakeFolder(o.FS, path); err != nil {
		return nil, err
	}
	g.files = newFiles(o.FS)
	o.FS, o.Logger, o.EventListener = g.files, g, g.listener()
	if g.lock = g.o.Lock; g.lock == nil {
		lock, err := LockFolder(o.FS, path, o.ReadOnly)
		if err != nil {
			return nil, err
		}
		g.lock = lock
	}
	o.Lock = g.lock.Pebble
	if g.o.Spares && !o.ReadOnly {
		g.files.spares = newSpares(g.files.FS, path, int64(o.MemTableSize), g.o.Log)
	}
	db, err := pebble.Open(path, o)
	if err != nil {
		g.files.retire()
		if Unreadable(err) { // the machine has not refused: it is what is in the folder
			err = Damaged(err)
		}
		err = Advise(fmt.Errorf("open %s %s: %w", g.o.Name, path, err), g.o.Unopened)
		return nil, errors.Join(err, g.unlock())
	}
	return db, nil
}

// Infof logs what Pebble tells for debugging.
func (g *Guard) Infof(format string, args ...any) {
	g.o.Log.Debug("pebble", "database", g.o.Name, "text", fmt.Sprintf(format, args...))
}

// Errorf logs an error that does not stop Pebble.
func (g *Guard) Errorf(format string, args ...any) {
	text, _, _ := strings.Cut(fmt.Sprintf(format, args...), "\n") // what follows is a stack
	g.o.Log.Error("pebble", "database", g.o.Name, "text", text)
}

// Fatalf is called by Pebble when it cannot go on: a write or sync of its log or manifest failed.
func (g *Guard) Fatalf(format string, args ...any) {
	g.mu.Lock()
	retired := g.retired
	g.mu.Unlock()
	if !retired {
		g.o.Fatal(fmt.Errorf(format, args...))
	}
}

// HintDisk is what to do when the disk has failed.
const HintDisk = "check the disk (space, dmesg) and start again: start-up replays what is durable; " +
	"callers without an answer may send again"

// LastWords says what happened, where, what was promised and what to do, and exits. A failed sync
// is never tried again: the kernel may have dropped the pages and would report success.
func (g *Guard) LastWords(what string, err error, hint string) {
	g.mu.Lock()
	defer g.mu.Unlock()
	if g.dead || g.retired {
		return
	}
	g.dead = true
	state := g.o.State()
	g.o.Log.Error("journal failed, exiting", "database", g.o.Name, "what", what, "error", err,
		"path", g.o.Path, "state", state, "hint", hint)
	fmt.Fprintf(g.o.Words, "error: %s %s: %s: %v; %s\nhint: %s\n",
		g.o.Name, g.o.Path, what, err, state, hint)
	g.o.Exit(ExitCode)
}

// Retire silences failures of background work from now on: the database is about to be closed.
func (g *Guard) Retire() {
	g.mu.Lock()
	g.retired = true
	g.mu.Unlock()
}

// Close closes the database and gives its lock back.
func (g *Guard) Close(db *pebble.DB) error {
	err := db.Close()
	g.files.retire()
	return errors.Join(err, g.unlock())
}

// unlock gives the lock back, unless it is the caller's.
func (g *Guard) unlock() error {
	if g.o.Lock != nil {
		return nil
	}
	return g.lock.Close()
}

const (
	// lockPoll is the time between two looks of KeepLock, below a second with the look itself.
	lockPoll   = 500 * time.Millisecond
	hintUnheld = "nothing acknowledged is lost if nobody else has written to the folder meanwhile: " +
		"clobd verify tells; then start again, and delete nothing in the folder of a running node"
)

// KeepLock looks at the folder's lock until done is closed. It ends the process with the last words
// when somebody has deleted, moved or replaced what is locked.
func (g *Guard) KeepLock(done <-chan struct{}) {
	tick := time.NewTicker(lockPoll)
	defer tick.Stop()
	for {
		select {
		case <-done:
			return
		case <-tick.C:
		}
		if err := g.lock.Held(); err != nil {
			select {
			case <-done: // closed, and given back
			default:
				g.LastWords("another process may write to the folder", err, hintUnheld)
			}
			return
		}
	}
}

// listener reports events that Pebble does not log itself.
func (g *Guard) listener() *pebble.EventListener {
	return &pebble.EventListener{
		// A failed flush or compaction is tried again by Pebble with fresh files, and the log, or the
		// journal, still has what it was about: no promise is broken.
		BackgroundError: g.stumble,
		FlushEnd: func(info pebble.FlushInfo) {
			if info.Err == nil {
				g.recovered()
			}
		},
		CompactionEnd: func(info pebble.CompactionInfo) {
			if info.Err == nil {
				g.recovered()
			}
		},
		// The reader of the table gets the error, too, and decides.
		DataCorruption: func(info pebble.DataCorruptionInfo) {
			g.o.Log.Error("damaged table", "database", g.o.Name, "path", g.o.Path,
				"text", info.String(), "hint", g.o.Hint)
		},
		DiskSlow: func(info pebble.DiskSlowInfo) {
			g.o.Log.Warn("slow disk", "database", g.o.Name, "path", g.o.Path, "text", info.String())
		},
		WriteStallBegin: func(info pebble.WriteStallBeginInfo) {
			g.o.Log.Warn("writes wait for flushes", "database", g.o.Name, "reason", info.Reason)
			g.stall(true)
		},
		WriteStallEnd: func() { g.stall(false) },
	}
}

// stumble notes a failure of background work.
func (g *Guard) stumble(err error) {
	g.Failures.Inc()
	g.files.failures.Add(1)
	g.mu.Lock()
	defer g.mu.Unlock()
	now := time.Now()
	if g.trouble == nil {
		g.trouble = &trouble{since: now}
	}
	g.trouble.err = err
	if !g.retired && now.Sub(g.trouble.said) > sayAgain {
		g.trouble.said = now
		g.o.Log.Error("background work failed, and is tried again", "database", g.o.Name,
			"path", g.o.Path, "since", g.trouble.since, "error", err)
	}
}

func (g *Guard) recovered() {
	g.files.failures.Store(0)
	g.mu.Lock()
	defer g.mu.Unlock()
	if g.trouble != nil {
		g.o.Log.Info("background work goes on", "database", g.o.Name, "path", g.o.Path,
			"after", time.Since(g.trouble.since).String())
	}
	g.trouble = nil
}

// Failing is an error that says since when and why background work fails; nil if it does not.
func (g *Guard) Failing() error {
	g.mu.Lock()
	defer g.mu.Unlock()
	if g.trouble == nil {
		return nil
	}
	return fmt.Errorf("it cannot be written since %s: %w",
		g.trouble.since.UTC().Format(time.RFC3339), g.trouble.err)
}

// stall begins or ends a time in which writes wait for flushes.
func (g *Guard) stall(begins bool) {
	g.mu.Lock()
	defer g.mu.Unlock()
	if g.stalled != nil {
		g.stalled.Stop()
		g.stalled = nil
	}
	if begins && g.o.Patience > 0 {
		g.stalled = time.AfterFunc(g.o.Patience, g.stuck)
	}
}

// stuck calls Fatal when writes have waited long for flushes that fail: nothing can be
// acknowledged, and the writer could never stop. The next start replays the log.
func (g *Guard) stuck() {
	err := g.Failing()
	g.mu.Lock()
	waits := g.stalled != nil
	if waits && err == nil { // flushes are slow, but do not fail
		g.stalled.Reset(g.o.Patience)
	}
	g.mu.Unlock()
	if waits && err != nil {
		g.o.Fatal(fmt.Errorf("writes wait for flushes, which fail: %w", err))
	}
}

// Hurry shortens the waits after failures: the node wants to stop.
func (g *Guard) Hurry() { g.files.end() }

// Abandon refuses every change of the database's files from now on, so that its folder stays as it
// is and its background work ends.
func (g *Guard) Abandon() { g.files.close() }

// Abandoned is closed by Abandon.
func (g *Guard) Abandoned() <-chan struct{} { return g.files.shut }

// Stumble notes a failure of background work, and abandons the database.
func (g *Guard) Stumble(err error) {
	g.stumble(err)
	g.Abandon()
}

// Drain waits while more than most bytes of a database are only in memory. It fails as soon as a
// flush fails.
func (g *Guard) Drain(ctx context.Context, db *pebble.DB, most uint64) error {
	for {
		if err := errors.Join(g.Failing(), ctx.Err()); err != nil {
			return err
		}
		if db.Metrics().MemTable.Size <= most {
			return nil
		}
		time.Sleep(drainPoll)
	}
}

// Flush makes all of a database durable, or returns why it cannot.
func (g *Guard) Flush(ctx context.Context, db *pebble.DB) error {
	done, err := db.AsyncFlush()
	if err != nil {
		return err
	}
	tick := time.NewTicker(drainPoll)
	defer tick.Stop()
	for {
		select {
		case <-done:
			return g.Failing()
		case <-g.files.shut:
			return errors.Join(errAbandoned, g.Failing())
		case <-tick.C:
		}
		if err := errors.Join(g.Failing(), ctx.Err()); err != nil {
			return err
		}
	}
}
