package source

import (
	"context"
	"log/slog"
	"time"

	"clobd/api/catalog"
)

// Options say where records come from and how often they are looked for.
type Options struct {
	// Address is where records are: a file, a folder, or the base address (http:// or https://) of a
	// service with the same lists. Empty: nowhere, and nobody may call Look or Sync.
	Address string
	// Dir is the catalog's folder, where the time of the last success is kept; empty: nowhere.
	Dir string
	// Every is how often Sync asks for what is new; 0: a minute for a service, two seconds for files,
	// of which only the times are looked at.
	Every time.Duration
	// Room, if set, is called by Sync before it looks. Room waits until there is room for new records,
	// or until its context is done.
	Room func(context.Context)
	// Log, if set, hears of each look that failed or brought something.
	Log *slog.Logger
}

// Source reads records and loads them into a catalog.Store. One goroutine runs Look and then Sync;
// any number may ask for Health and call Again.
type Source struct {
	o      Options
	store  *catalog.Store
	status healthBoard

	mark     *sourceMark
	looked   []fileMark
	remote   *remote
	patience time.Duration // with one answer: answerTime, but where a test gives it longer
	failures int
	// lookFailed is why the last look did, nil if it did not.
	lookFailed error
	records    int // that the stages of this look have read
	again      chan struct{}
}

// New is a source that loads into a store. Nothing is read yet: see Look.
func New(store *catalog.Store, o Options) *Source {
	s := &Source{o: o, store: store, patience: answerTime, again: make(chan struct{}, 1)}
	s.status.resume(o)
	return s
}

// load enters the records that take reads as one new catalog. mark says how far the source was read
// then.
func (s *Source) load(mark *sourceMark, take func(*catalog.Load) error) (catalog.Report, error) {
	return s.store.Load(mark.text, func(l *catalog.Load) error {
		l.Records = s.records
		err := take(l)
		if err == nil {
			s.records = l.Records
		}
		return err
	})
}
