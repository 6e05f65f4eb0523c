package catalog

import (
	_ "embed" // the demo catalog
	"errors"
	"fmt"
	"io"
	"os"

	"clobd/engine"
)

const (
	// listChunk is how many listings are handed on at once: several frames' worth, so that a sync of
	// the journal is shared by many markets.
	listChunk = 1024
	// maxMarkets bounds a catalog: six times the largest one known.
	maxMarkets = 1 << 20
)

// Load reads the catalog at path and lists its tradable markets. The file is a JSON array of events
// or one event a line, plain or gzip, told apart by its content. Records that cannot be used are
// counted and named in the Report. It is an error if the file cannot be read to its end, holds not
// one event (an empty array excepted), or Options.List fails; only in the last case have
// markets been listed.
func Load(path string, o Options) (*Catalog, Report, error) {
	f, err := os.Open(path)
	if err != nil {
		return nil, Report{}, fmt.Errorf("open catalog: %w", err)
	}
	defer func() { _ = f.Close() }()
	c, report, err := Read(f, o)
	if err != nil {
		return nil, report, fmt.Errorf("catalog %s: %w", path, err)
	}
	return c, report, nil
}

// Read is Load from a stream.
func Read(r io.Reader, o Options) (*Catalog, Report, error) {
	d, report, err := Parse(r, o)
	if err != nil {
		return nil, report, err
	}
	return d.List()
}

// Draft is a catalog that was read to its end and of which nothing is listed yet.
type Draft struct{ loader *loader }

// Parse is the first half of Read: it fails as Read does, and calls no Options.List.
func Parse(r io.Reader, o Options) (*Draft, Report, error) {
	s, err := newSplitter(r)
	if err != nil {
		return nil, Report{}, fmt.Errorf("not a catalog: %w", err)
	}
	l := newLoader(o)
	if err := l.read(s); err != nil {
		return nil, l.report, err
	}
	if l.report.Events == 0 && l.report.Broken > 0 {
		return nil, l.report, fmt.Errorf("not a catalog: no event in it; %s", l.report.Bad[0])
	}
	return &Draft{l}, l.report, nil
}

// List is the second half of Read, to be called once: it hands the listings to Options.List.
func (d *Draft) List() (*Catalog, Report, error) {
	if err := d.loader.list(); err != nil {
		return nil, d.loader.report, err
	}
	return d.loader.c, d.loader.report, nil
}

//go:embed demo.jsonl
var demo string

// Demo is the project's own small catalog in the form that Read takes: made-up questions.
func Demo() []byte { return []byte(demo) }

// loader turns records into a Catalog and its listings.
type loader struct {
	o      Options
	c      *Catalog
	report Report

	listings []engine.Listing
	listed   []*Market // by index of listings
	tokens   map[engine.Token]engine.Condition
	labels   map[string][]string // by their text in the file: nearly all markets say Yes and No

	event  [len(eventKeys)][]byte
	market [len(marketKeys)][]byte
}

func newLoader(o Options) *loader {
	return &loader{
		o: o, c: Empty(), report: Report{Skipped: map[Reason]int{}},
		tokens: map[engine.Token]engine.Condition{}, labels: map[string][]string{},
	}
}

// read takes all records of the stream.
func (l *loader) read(s *splitter) error {
	for {
		record, line, err := s.next()
		switch {
		case err == nil:
			l.takeEvent(record, line)
		case errors.Is(err, io.EOF):
			return nil
		case errors.Is(err, errTooLong), errors.Is(err, errCut),
			errors.Is(err, errNotObject), errors.Is(err, errGarbage):
			l.broken(line, "", err.Error())
		default:
			return fmt.Errorf("read line %d: %w", line, err)
		}
		if l.report.Markets > maxMarkets {
			return fmt.Errorf("line %d: more than %d markets", line, maxMarkets)
		}
	}
}

// list hands the listings on in chunks.
func (l *loader) list() error {
	for from := 0; from < len(l.listings); from += listChunk {
		to := min(from+listChunk, len(l.listings))
		var refused *RefusedError
		if l.o.List != nil {
			err := l.o.List(l.listings[from:to])
			if err != nil && !errors.As(err, &refused) {
				return fmt.Errorf("list markets %d to %d: %w", from+1, to, err)
			}
		}
		for i := from; i < to; i++ {
			l.settle(&l.listings[i], l.listed[i], refused)
		}
	}
	return nil
}

// settle counts what became of one listing.
func (l *loader) settle(listing *engine.Listing, m *Market, refused *RefusedError) {
	if refused != nil {
		if why, is := refused.Why[listing.Condition]; is {
			m.Skipped = Refused
			l.refuse(m, why)
			return
		}
	}
	l.report.Listed++
	if !listing.Open {
		l.report.Unopened++
	}
}
