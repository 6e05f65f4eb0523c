package source

import (
	"context"
	"log/slog"
	"net/http"
	"net/url"
	"sync"
	"time"

	"clobd/api/catalog"
	"clobd/engine"
)

// Options say where records come from and how often the source is asked.
type Options struct {
	// Address is a file, a folder, or the base address (http:// or https://) of a service. With an
	// empty address nobody may call Look or Sync.
	Address string
	// Dir is the catalog's folder, where the time of the last success is kept; empty: nowhere.
	Dir string
	// Every is how often Sync asks; 0: a minute for a service, two seconds for the times of files.
	Every time.Duration
	// Room, if set, is called by Sync before each look. Room waits until there is room for new
	// records, or until its context is done.
	Room func(context.Context)
	// Log, if set, hears of each look that failed or brought something.
	Log *slog.Logger
}

// Source reads records and loads them into a catalog.Store. One goroutine runs Look and then Sync;
// any goroutine may call Health and Again.
type Source struct {
	o     Options
	store *catalog.Store
	again chan struct{}

	mu     sync.Mutex // guards health
	health Health

	mark       *sourceMark
	report     catalog.Report // of this look
	records    int            // that this look has read
	failures   int            // looks that failed in a row
	lookFailed error          // the error of the last look
	written    time.Time      // when successFile was last written
	looked     []fileMark     // the files as the last look found them

	// For a service only.
	base   *url.URL
	client *http.Client
	plain  map[string]bool           // lists that have no form with a cursor
	due    map[engine.Condition]bool // changed markets whose order-book records are still to be read
}

// New returns a source that loads into a store. Look reads the first records.
func New(store *catalog.Store, o Options) *Source {
	s := &Source{o: o, store: store, again: make(chan struct{}, 1),
		client: &http.Client{CheckRedirect: sameHost, Timeout: answerTime},
		plain:  map[string]bool{}, due: map[engine.Condition]bool{}}
	s.resume()
	return s
}

// load enters the records that take reads as one new catalog. mark says how far the source was read
// then.
func (s *Source) load(mark *sourceMark, take func(*catalog.Load) error) error {
	report, err := s.store.Load(mark.text, func(l *catalog.Load) error {
		l.Records = s.records
		err := take(l)
		if err == nil {
			s.records = l.Records
		}
		return err
	})
	s.report.Add(&report)
	return err
}
