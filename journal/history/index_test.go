package history

import (
	"context"
	"errors"
	"math/rand/v2"
	"path/filepath"
	"reflect"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"clobd/engine"
	"clobd/journal"
	"clobd/journal/disk"

	"github.com/cockroachdb/pebble/v2"
	"github.com/cockroachdb/pebble/v2/vfs"
	"github.com/cockroachdb/pebble/v2/vfs/errorfs"
)

// unhurried is the patience of a stop that waits for the disk however slow the machine is: what it
// gave up would be folded again, and a test would not find what it expects to be durable.
var unhurried = patience{soon, soon, soon}

// openIndex is OpenIndex with that patience, unless the options have another one.
func openIndex(j *journal.Journal, o Options) (*Index, error) {
	if o.patience == (patience{}) {
		o.patience = unhurried
	}
	return Open(j, o)
}

// run opens the index and starts it; stop closes it.
func run(t testing.TB, j *journal.Journal, o Options) (x *Index, stop func()) {
	t.Helper()
	x, err := openIndex(j, o)
	if err != nil {
		t.Fatal(err)
	}
	done := make(chan error)
	go func() { done <- x.Run() }()
	return x, func() {
		t.Helper()
		shut(t, x)
		if err := <-done; err != nil {
			t.Fatal(err)
		}
	}
}

// mustEqual compares the index with the model, after it has caught up.
func mustEqual(t *testing.T, x *Index, m *maker) {
	t.Helper()
	if !x.History.Await(m.head.Sequence, soon) {
		t.Fatalf("index at %d, journal at %d", x.History.Sequence(), m.head.Sequence)
	}
	for id, want := range m.orders {
		got, known, err := x.History.Order(id)
		if err != nil || !known || !reflect.DeepEqual(got, *want) {
			t.Fatalf("order %x: %v\n%+v, want\n%+v", id, err, got, *want)
		}
	}
	if n := len(rows(t, x)); n != len(m.orders) {
		t.Fatalf("%d rows, %d orders", n, len(m.orders))
	}
}

// rows are all keys of the index but its place, with their values.
func rows(t *testing.T, x *Index) map[string]string {
	t.Helper()
	it, err := x.db.NewIter(&pebble.IterOptions{LowerBound: []byte{spaceOrder},
		UpperBound: []byte{spaceOrder + 1}})
	if err != nil {
		t.Fatal(err)
	}
	all := make(map[string]string)
	for ok := it.First(); ok; ok = it.Next() {
		all[string(it.Key())] = string(it.Value())
	}
	if err := it.Close(); err != nil {
		t.Fatal(err)
	}
	return all
}

// newJournal opens an empty journal in memory, with a maker for it.
func newJournal(t testing.TB, fs vfs.FS, seed uint64) (*journal.Journal, *maker) {
	t.Helper()
	j := open(t, journal.Options{Dir: "data", FS: fs})
	m := newMaker(seed)
	m.journal = j.ID
	return j, m
}

func TestIndexEqualsTheModel(t *testing.T) {
	j, m := newJournal(t, vfs.NewMem(), 3)
	defer shut(t, j)
	x, stop := run(t, j, Options{})
	defer stop()
	for range 5 {
		m.write(t, j, 20, 50)
		mustEqual(t, x, m)
	}
	if len(m.orders) < 2000 {
		t.Fatalf("only %d orders", len(m.orders))
	}
}

func TestIndexIsRebuilt(t *testing.T) {
	for name, spoil := range map[string]func(t *testing.T, fs vfs.FS, j *journal.Journal){
		"deleted": func(t *testing.T, fs vfs.FS, j *journal.Journal) {
			if err := fs.RemoveAll("data/index"); err != nil {
				t.Fatal(err)
			}
		},
		"of another journal": func(t *testing.T, fs vfs.FS, j *journal.Journal) {
			setPlace(t, j, func(p *reached) { p.journal++ })
		},
		"ahead of the journal": func(t *testing.T, fs vfs.FS, j *journal.Journal) {
			setPlace(t, j, func(p *reached) { p.frame, p.sequence = p.frame+1, p.sequence+9 })
		},
		"of another history": func(t *testing.T, fs vfs.FS, j *journal.Journal) {
			setPlace(t, j, func(p *reached) { p.hash[0]++ })
		},
		"of the layout before": func(t *testing.T, fs vfs.FS, j *journal.Journal) {
			setStored(t, j, func(b []byte) { b[0] = indexVersion - 1 })
		},
	} {
		t.Run(name, func(t *testing.T) {
			fs := vfs.NewMem()
			j, m := newJournal(t, fs, 4)
			defer shut(t, j)
			x, stop := run(t, j, Options{})
			m.write(t, j, 50, 30)
			mustEqual(t, x, m)
			before := rows(t, x)
			stop()
			spoil(t, fs, j)
			x, err := openIndex(j, Options{})
			if err != nil {
				t.Fatal(err)
			}
			if x.History.Sequence() != 0 {
				t.Fatalf("kept, at Sequence %d", x.History.Sequence())
			}
			shut(t, x)
			x, stop = run(t, j, Options{})
			defer stop()
			mustEqual(t, x, m)
			if !reflect.DeepEqual(rows(t, x), before) {
				t.Fatal("the rows differ from the original's")
			}
		})
	}
}

// TestDamagedIndex scribbles over each kind of the index's files, or deletes it, or puts something
// else in its place: the index is made anew.
func TestDamagedIndex(t *testing.T) {
	kinds := []string{"MANIFEST", "OPTIONS", ".sst", "marker.manifest", "marker.format"}
	for _, spoil := range []func(fs vfs.FS, path string) error{
		func(fs vfs.FS, path string) error { return fs.RemoveAll(path) },
		func(fs vfs.FS, path string) error { return writeFile(fs, path, "") },
		func(fs vfs.FS, path string) error {
			return writeFile(fs, path, strings.Repeat("scribble", 40))
		},
		func(fs vfs.FS, path string) error {
			return errors.Join(fs.RemoveAll(path), fs.MkdirAll(path, 0o700))
		},
	} {
		for _, kind := range kinds {
			checkDamaged(t, kind, func(fs vfs.FS, names []string) (err error) {
				for _, name := range names {
					if strings.Contains(name, kind) {
						err = errors.Join(err, spoil(fs, "data/index/"+name))
					}
				}
				return err
			})
		}
	}
	checkDamaged(t, "a file instead", func(fs vfs.FS, _ []string) error {
		return errors.Join(fs.RemoveAll("data/index"), writeFile(fs, "data/index", "x"))
	})
}

// checkDamaged spoils the files of an index: opening it and folding again repairs it.
func checkDamaged(t *testing.T, what string, spoil func(fs vfs.FS, names []string) error) {
	t.Helper()
	fs := vfs.NewMem()
	j, m := newJournal(t, fs, 4)
	defer shut(t, j)
	x, stop := run(t, j, Options{})
	m.write(t, j, 20, 30)
	mustEqual(t, x, m)
	stop()
	names, err := fs.List("data/index")
	if err = errors.Join(err, spoil(fs, names)); err != nil {
		t.Fatal(what, err)
	}
	x, stop = run(t, j, Options{})
	mustEqual(t, x, m)
	stop()
}

// writeFile makes the file path with that text.
func writeFile(fs vfs.FS, path, text string) error {
	f, err := fs.Create(path, vfs.WriteCategoryUnspecified)
	if err != nil {
		return err
	}
	_, err = f.Write([]byte(text))
	return errors.Join(err, f.Close())
}

// TestIndexIsLeftAlone: what the machine refuses says nothing against the index, which is there
// again when the machine is well.
func TestIndexIsLeftAlone(t *testing.T) {
	var failing atomic.Pointer[error]
	on := errorfs.Wrap(vfs.NewMem(), errorfs.InjectorFunc(func(op errorfs.Op) error {
		if err := failing.Load(); err != nil && strings.Contains(op.Path, "index/MANIFEST") {
			return *err
		}
		return nil
	}))
	j, m := newJournal(t, on, 4)
	defer shut(t, j)
	x, stop := run(t, j, Options{})
	m.write(t, j, 20, 30)
	mustEqual(t, x, m)
	_, err := openIndex(j, Options{}) // a second one
	var locked *disk.LockedError
	if !errors.As(err, &locked) {
		t.Errorf("second opener: %v", err)
	}
	stop()
	for _, no := range []error{syscall.EIO, syscall.ENOSPC, syscall.EACCES, syscall.EROFS,
		syscall.EMFILE} {
		failing.Store(&no)
		if _, err := openIndex(j, Options{}); !errors.Is(err, no) ||
			!strings.Contains(err.Error(), "delete the folder") {
			t.Errorf("%v: %v", no, err)
		}
	}
	failing.Store(nil)
	x, stop = run(t, j, Options{})
	defer stop()
	if x.fresh || x.History.Sequence() != m.head.Sequence {
		t.Errorf("made anew: at %d", x.History.Sequence())
	}
}

// setPlace changes the place of the closed index of j.
func setPlace(t *testing.T, j *journal.Journal, change func(p *reached)) {
	t.Helper()
	setStored(t, j, func(b []byte) {
		var p reached
		if !p.decode(b) {
			t.Fatal("the place cannot be read")
		}
		change(&p)
		copy(b, p.append(nil))
	})
}

// setStored changes the index's place as it is stored.
func setStored(t *testing.T, j *journal.Journal, change func(b []byte)) {
	t.Helper()
	x, err := openIndex(j, Options{})
	if err != nil {
		t.Fatal(err)
	}
	b := x.fold.at.append(nil)
	change(b)
	if err := x.db.Set(stateKey(metaPlace), b, pebble.NoSync); err != nil {
		t.Fatal(err)
	}
	shut(t, x)
}

// mustSurvive makes durable what is folded: however slow the index's own flushes are, a crash does
// not take all of it back.
func mustSurvive(t *testing.T, x *Index) {
	t.Helper()
	done, err := x.db.AsyncFlush()
	if err != nil {
		t.Fatal(err)
	}
	<-done
}

// TestIndexResumesAfterACrash takes the disk away while the index is behind in flushing: it goes on
// from the Sequence that survived and ends the same.
func TestIndexResumesAfterACrash(t *testing.T) {
	fs := vfs.NewCrashableMem()
	j, m := newJournal(t, fs, 6)
	x, stop := run(t, j, Options{Flush: time.Millisecond})
	r := rand.New(rand.NewPCG(1, 2))
	resumed, rounds := 0, 12
	if testing.Short() {
		rounds = 6
	}
	for i := range rounds {
		m.write(t, j, 20, 20)
		if i%3 == 0 {
			x.History.Await(m.head.Sequence, soon)
		}
		if i == rounds/2 {
			mustSurvive(t, x)
		}
		crashed := fs.CrashClone(vfs.CrashCloneCfg{UnsyncedDataPercent: 50 * (i % 3), RNG: r})
		k := open(t, journal.Options{Dir: "data", FS: crashed})
		y, stopY := run(t, k, Options{})
		if y.fold.at.journal != j.ID {
			t.Fatal("another journal")
		}
		if y.History.Sequence() > 0 {
			resumed++
		}
		mustEqual(t, y, m)
		stopY()
		shut(t, k)
	}
	if resumed == 0 {
		t.Error("no clone resumed from a stored Sequence")
	}
	stop()
	shut(t, j)
}

// TestIndexRestartsWhereItWas: an orderly end leaves nothing to fold again.
func TestIndexRestartsWhereItWas(t *testing.T) {
	j, m := newJournal(t, vfs.NewMem(), 8)
	defer shut(t, j)
	x, stop := run(t, j, Options{})
	m.write(t, j, 10, 30)
	mustEqual(t, x, m)
	stop()
	if _, _, err := x.History.Order(engine.OrderID{}); !errors.Is(err, journal.ErrClosed) {
		t.Fatalf("read after Close: %v", err)
	}
	x, err := openIndex(j, Options{})
	if err != nil {
		t.Fatal(err)
	}
	if x.History.Sequence() != m.head.Sequence {
		t.Fatalf("at %d, want %d", x.History.Sequence(), m.head.Sequence)
	}
	mustEqual(t, x, m)
	shut(t, x) // Run was never called
	if err := x.Run(); err != nil {
		t.Fatal(err)
	}
}

// TestIndexRefusesToGuess: a fill of an order that it never saw, or that has another size, or a row
// that cannot be read, is damage, said with its Sequence. Who waits is told at once, and the next
// start makes the index anew.
func TestIndexRefusesToGuess(t *testing.T) {
	for want, spoil := range map[string]func(x *Index, key string, value []byte) error{
		"unknown to the index": func(x *Index, key string, _ []byte) error {
			return x.db.Delete([]byte(key), pebble.NoSync)
		},
		"its row says": func(x *Index, key string, value []byte) error {
			var o row
			id := engine.OrderID([]byte(key)[1:])
			if err := o.decode(&id, value); err != nil {
				return err
			}
			o.Size++
			return x.db.Set([]byte(key), o.append(nil), pebble.NoSync)
		},
		errRow.Error(): func(x *Index, key string, _ []byte) error {
			return x.db.Set([]byte(key), []byte("x"), pebble.NoSync)
		},
	} {
		j, m := newJournal(t, vfs.NewMem(), 3)
		m.write(t, j, 10, 50)
		x, stop := run(t, j, Options{})
		mustEqual(t, x, m)
		stop()
		x, err := openIndex(j, Options{})
		if err != nil {
			t.Fatal(err)
		}
		for key, value := range rows(t, x) {
			if err := spoil(x, key, []byte(value)); err != nil {
				t.Fatal(err)
			}
		}
		m.write(t, j, 10, 50)
		checkRefusal(t, x, m, want)
		shut(t, x)
		x, stop = run(t, j, Options{})
		if !x.fresh {
			t.Error("not made anew")
		}
		mustEqual(t, x, m)
		stop()
		x, stop = run(t, j, Options{})
		if x.fresh {
			t.Error("made anew twice")
		}
		stop()
		shut(t, j)
	}
}

// checkRefusal runs an index that contradicts the journal, while somebody waits for it.
func checkRefusal(t *testing.T, x *Index, m *maker, want string) {
	t.Helper()
	h := x.History
	waited := make(chan struct{})
	go func() {
		defer close(waited)
		mustBeTold(t, h, m.head.Sequence)
	}()
	err := x.Run()
	if err == nil || !strings.Contains(err.Error(), want) ||
		!strings.Contains(err.Error(), " Sequence ") ||
		!strings.Contains(err.Error(), "start again: it is made anew") {
		t.Errorf("%s: %v", want, err)
	}
	<-waited
	mustBeTold(t, h, m.head.Sequence)
	if h.Failed() != err || !h.Await(h.Sequence(), 0) {
		t.Errorf("failed: %v, want %v", h.Failed(), err)
	}
}

// TestFreshIndexDoesNotPromise: an index that this program made from the first frame on is not
// mended by the same program.
func TestFreshIndexDoesNotPromise(t *testing.T) {
	j, m := newJournal(t, vfs.NewMem(), 3)
	defer shut(t, j)
	m.write(t, j, 10, 50)
	x, err := openIndex(j, Options{})
	if err != nil {
		t.Fatal(err)
	}
	if err := x.step(); err != nil { // takes all frames that wait
		t.Fatal(err)
	}
	err = x.condemn(errContradiction)
	if !strings.Contains(err.Error(), "report it") || x.History.Failed() != nil {
		t.Fatal(err)
	}
	shut(t, x)
	x, err = openIndex(j, Options{})
	if err != nil || !x.fresh {
		t.Fatalf("not made anew: %v", err)
	}
	shut(t, x)
}

// TestIndexSparesItselfForTheJournal: a frame that cannot be read is the journal's trouble, and no
// reason to make the index anew.
func TestIndexSparesItselfForTheJournal(t *testing.T) {
	on := vfs.NewMem()
	j, m := newJournal(t, on, 3)
	m.write(t, j, 12, 50)
	shut(t, j)
	err := inDatabase(on, "data/journal", func(db *pebble.DB) error { return db.Delete(frameKey(11), nil) })
	if err != nil {
		t.Fatal(err)
	}
	if j, err = journal.Open(journal.Options{Dir: "data", FS: on, Log: quiet()}); err != nil {
		t.Fatal(err)
	}
	defer shut(t, j)
	x, err := openIndex(j, Options{})
	if err != nil {
		t.Fatal(err)
	}
	if err = x.Run(); err == nil || !strings.Contains(err.Error(), "frame 11") ||
		strings.Contains(err.Error(), "made anew") {
		t.Errorf("run: %v", err)
	}
	if h := x.History; h.Failed() != err {
		t.Errorf("failed: %v", h.Failed())
	}
	mustBeTold(t, x.History, 1<<40)
	if _, found, err := disk.Get(x.db, stateKey(metaBroken), nil); found || err != nil {
		t.Errorf("marked: %v", err)
	}
	shut(t, x)
}

// TestIndexCaches: memtables leave room for blocks.
func TestIndexCaches(t *testing.T) {
	j, _ := newJournal(t, vfs.NewMem(), 11)
	defer shut(t, j)
	x, err := openIndex(j, Options{MemTable: 4 << 20, Cache: 4 << 20})
	if err != nil {
		t.Fatal(err)
	}
	defer shut(t, x)
	ids := fill(t, x, 40_000)
	if err := x.db.Flush(); err != nil {
		t.Fatal(err)
	}
	fill(t, x, 20_000)
	for _, id := range ids {
		if _, known, err := x.History.Order(id); !known || err != nil {
			t.Fatal(known, err)
		}
	}
	cache := x.db.Metrics().BlockCache
	if cache.Size < 1<<20 || cache.Hits < cache.Misses {
		t.Errorf("%d bytes, %d hits, %d misses", cache.Size, cache.Hits, cache.Misses)
	}
}

func TestPast(t *testing.T) {
	j, m := newJournal(t, vfs.NewMem(), 11)
	defer shut(t, j)
	x, stop := run(t, j, Options{})
	defer stop()
	m.write(t, j, 40, 40)
	h := x.History
	if !h.Await(m.head.Sequence, soon) {
		t.Fatal("not caught up")
	}
	seen := make(map[engine.Status]int)
	for id, o := range m.orders {
		r, known, at, err := h.Past(id)
		want := engine.Receipt{Sequence: o.Sequence, Time: o.Time, Order: id, Status: o.Status,
			Reason: o.Reason,
			Market: o.Market, Wallet: o.Wallet, Making: o.Making, Taking: o.Taking,
			Remaining: o.Size - o.Matched, Fee: o.Fee}
		for _, trade := range o.Trades {
			if _, seq, _, _ := engine.ParseTradeID(trade); seq == o.Sequence {
				want.Trades++
			}
		}
		if err != nil || !known || at != m.head.Sequence || r != want {
			t.Fatalf("%+v, want %+v: %v", r, want, err)
		}
		seen[r.Status]++
	}
	if len(seen) != 3 {
		t.Errorf("statuses met: %v", seen)
	}
	if _, known, at, err := h.Past(engine.OrderID{1}); known || err != nil || at != m.head.Sequence {
		t.Errorf("unknown id: %v at %d: %v", known, at, err)
	}
}

// TestLongMaker fills one order so often that its trades are split into chunks.
func TestLongMaker(t *testing.T) {
	for _, fills := range []int{1, 2*chunkTrades - 1, 2 * chunkTrades, 5*chunkTrades + 3} {
		j, m := newJournal(t, vfs.NewMem(), 1)
		place := func(side engine.Side, w engine.WalletNo, size int64) engine.OrderID {
			c := engine.Command{Kind: engine.Place, Side: side, Market: 1, Wallet: w, Owner: w,
				Size: engine.Size(size * engine.Unit), Cash: engine.Cash(size * engine.Unit / 2),
				ID: m.id()}
			m.script = append(m.script, c)
			return c.ID
		}
		id := place(engine.Sell, 1, 5*int64(fills)+100)
		for range fills {
			place(engine.Buy, 2, 5)
		}
		x, stop := run(t, j, Options{})
		for len(m.script) > 0 {
			m.write(t, j, 1, min(7, len(m.script)))
		}
		mustEqual(t, x, m)
		o, _, err := x.History.Order(id)
		if err != nil || len(o.Trades) != fills || o.Status != engine.Live {
			t.Fatalf("%d trades, want %d, %+v: %v", len(o.Trades), fills, o.Status, err)
		}
		stop()
		shut(t, j)
	}
}

func TestFinalRejectIsRemembered(t *testing.T) {
	r := row{OrderRow: OrderRow{Reject: engine.RejectBalance, Args: [3]int64{-1, 2, 1 << 40},
		Sequence: 9, Time: 5, Updated: 5, Market: 3, Wallet: 4}}
	var back row
	if err := back.decode(&engine.OrderID{}, r.append(nil)); err != nil {
		t.Fatal(err)
	}
	got := back.receipt()
	want := engine.Receipt{Reject: engine.RejectBalance, Args: r.Args, Sequence: 9, Time: 5,
		Market: 3, Wallet: 4}
	if got != want {
		t.Fatalf("%+v, want %+v", got, want)
	}
}

func TestAwait(t *testing.T) {
	j, m := newJournal(t, vfs.NewMem(), 11)
	defer shut(t, j)
	x, stop := run(t, j, Options{})
	h := x.History
	if h.Await(1, 0) || h.Await(1, time.Millisecond) {
		t.Fatal("reached what was not written")
	}
	var wg sync.WaitGroup
	for i := range 20 {
		wg.Add(1)
		go func() {
			defer wg.Done()
			if !h.Await(engine.Sequence(1+i*5), soon) {
				t.Errorf("Sequence %d was not reached", 1+i*5)
			}
		}()
	}
	m.write(t, j, 10, 10)
	wg.Wait()
	ended := make(chan bool)
	go func() { ended <- h.Await(1000, time.Hour) }()
	time.Sleep(time.Millisecond)
	stop()
	if <-ended || h.Await(1000, time.Hour) {
		t.Fatal("Close did not end it")
	}
}

// TestIndexLingers: frames are gathered into one batch while nobody waits; who begins to wait is
// served at once, and so is Close.
func TestIndexLingers(t *testing.T) {
	j, m := newJournal(t, vfs.NewMem(), 11)
	defer shut(t, j)
	x, stop := runLingering(t, j, time.Hour)
	for range 3 {
		before := x.History.Sequence()
		m.write(t, j, 5, 10)
		time.Sleep(5 * time.Millisecond)
		if x.History.Sequence() != before {
			t.Error("it did not linger")
		}
		mustEqual(t, x, m) // waits
	}
	m.write(t, j, 5, 10)
	time.Sleep(5 * time.Millisecond)
	stop()
}

// runLingering runs an index that lingers for turns of d, until stop closes it.
func runLingering(t *testing.T, j *journal.Journal, d time.Duration) (x *Index, stop func()) {
	t.Helper()
	x, err := openIndex(j, Options{})
	if err != nil {
		t.Fatal(err)
	}
	x.lingers = d
	done := make(chan error, 1)
	go func() { done <- x.Run() }()
	return x, func() {
		t.Helper()
		if err := closes(t, x); err != nil {
			t.Error(err)
		}
		if err := <-done; err != nil {
			t.Error(err)
		}
	}
}

// TestIndexLingersForMany: after a turn that brought many Commands Run waits for more, after one
// that brought few it does not.
func TestIndexLingersForMany(t *testing.T) {
	j, m := newJournal(t, vfs.NewMem(), 12)
	defer shut(t, j)
	x, stop := runLingering(t, j, time.Hour)
	defer stop()
	turn := func() { // ends a turn, as a caller does who then waits no more
		select {
		case x.History.wanted <- struct{}{}:
		default:
		}
		time.Sleep(time.Millisecond)
	}
	mustEqual(t, x, m)
	before := x.History.Sequence()
	m.write(t, j, 2*lingerTurns, lingerLeast)
	for range 3 {
		if turn(); x.History.Sequence() != before {
			t.Error("it did not linger for many")
		}
	}
	mustEqual(t, x, m)
	m.write(t, j, 1, lingerLeast-1)
	await(t, "a batch of few", func() bool {
		turn()
		return x.History.Sequence() == m.head.Sequence
	})
}

// FuzzRow: a row that decodes encodes to itself, and nothing panics.
func FuzzRow(f *testing.F) {
	full := row{OrderRow: OrderRow{Market: 1, Outcome: 1, Side: 1, Type: engine.FAK, Wallet: 2,
		Owner: 3, Key: 4, Price: 5000, Size: 1 << 40, Matched: 1 << 39, Making: 7, Taking: 8,
		Status: engine.Live, Reason: engine.SelfTrade, Sequence: 99, Time: makerTime,
		Updated: makerTime + 5, Expiry: makerTime * 2}, own: 2, chunks: 1,
		made: []tradeRef{{100, 0}, {107, 3}}}
	f.Add(full.append(nil))
	f.Add([]byte{rowVersion, 0, 0})
	f.Fuzz(func(t *testing.T, b []byte) {
		var r, again row
		if r.decode(&engine.OrderID{}, b) != nil {
			return
		}
		if err := again.decode(&engine.OrderID{}, r.append(nil)); err != nil {
			t.Fatal(err)
		}
		if len(r.made) == 0 {
			r.made, again.made = nil, nil
		}
		if !reflect.DeepEqual(r, again) {
			t.Fatalf("%+v, want %+v", again, r)
		}
	})
}

// TestIndexBesideADamagedTable: nor is a table of the journal that fails its checksum.
func TestIndexBesideADamagedTable(t *testing.T) {
	on := vfs.NewMem()
	j, m := newJournal(t, on, 3)
	m.write(t, j, 40, 50)
	shut(t, j)
	if err := inDatabase(on, j.Path, (*pebble.DB).Flush); err != nil {
		t.Fatal(err)
	}
	names, err := on.List(j.Path)
	if err != nil {
		t.Fatal(err)
	}
	for _, name := range names {
		if strings.HasSuffix(name, ".sst") {
			edit(t, on, filepath.Join(j.Path, name), func(b []byte) []byte { b[len(b)/4] ^= 1; return b })
		}
	}
	if j, err = journal.Open(journal.Options{Dir: "data", FS: on, Log: quiet()}); err != nil {
		t.Fatal(err)
	}
	defer shut(t, j)
	x, err := openIndex(j, Options{Log: quiet()})
	if err != nil {
		t.Fatal(err)
	}
	err = x.Run()
	if err == nil || journal.Advice(err) != hintUnread || strings.Count(err.Error(), "checksum mismatch") != 1 {
		t.Errorf("run: %v", err)
	}
	if _, found, err := disk.Get(x.db, stateKey(metaBroken), nil); found || err != nil {
		t.Errorf("marked: %v", err)
	}
	shut(t, x)
}

// TestIndexFarBehind: an index with much to catch up with takes more at once, and comes to the same
// as one that forgot half of its rows on the way.
func TestIndexFarBehind(t *testing.T) {
	j, m := newJournal(t, vfs.NewMem(), 12)
	defer shut(t, j)
	m.write(t, j, farFrames+100, 16)
	x, err := openIndex(j, Options{})
	if err != nil {
		t.Fatal(err)
	}
	defer shut(t, x)
	if err := x.gather(false); err != nil {
		t.Fatal(err)
	}
	if x.fold.commands <= foldCommands || x.fold.keep != farRows {
		t.Fatalf("%d Commands at once, %d rows", x.fold.commands, x.fold.keep)
	}
	if err := x.fold.commit(); err != nil {
		t.Fatal(err)
	}
	live := len(x.fold.rows)
	x.fold.keep = live / 2
	x.fold.forget()
	if n := len(x.fold.rows); n != live/4 || n == 0 {
		t.Fatalf("%d of %d rows are left", n, live)
	}
	m.write(t, j, 100, 16)
	if err := x.build(context.Background(), m.head.Frame, nil); err != nil {
		t.Fatal(err)
	}
	if x.fold.keep != keepRows {
		t.Fatalf("keeps %d rows", x.fold.keep)
	}
	mustEqual(t, x, m)
}
