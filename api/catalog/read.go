package catalog

import (
	_ "embed" // the demo catalog
	"errors"
	"fmt"
	"io"
	"log/slog"
	"strconv"

	"clobd/engine"
)

const (
	// listChunk is how many listings are handed on at once: several frames' worth, so that a sync of
	// the journal is shared by many markets.
	listChunk = 1024
	// MaxMarkets bounds a catalog: six times the largest one known.
	MaxMarkets = 1 << 20
)

// Options say where a catalog's markets go, and where its records are kept.
type Options struct {
	// List makes conditions tradable and returns once they durably are. It is called with at most
	// listChunk listings at a time, in the order of the source, and must be idempotent by condition.
	// Single listings that are refused come back as a *RefusedError; any other error ends the load.
	// nil lists nothing and counts what would have been.
	List func([]engine.Listing) error
	// Close ends trading in those of the conditions that are listed and not closed yet: the source has
	// closed or archived them. nil leaves them as they are.
	Close func([]engine.Condition) error
	// Live is what a condition is worth to lists now; false: it does not trade here, and what its
	// source says counts. It is called often, by one goroutine at a time. nil: the source's values.
	Live func(engine.Condition) (Live, bool)
	// Dir is the folder that records are kept in; empty: in a file without a name.
	Dir string
	// Progress, if set, hears how far a load is: at most ten times a second.
	Progress func(Progress)
	// Log, if set, hears of each bad record as it is met (the first maxProblems of them).
	Log *slog.Logger
}

// Progress is how far a load is.
type Progress struct {
	// Records have been read so far. Done of Total bytes have; Total is 0 where it is not known.
	Records     int
	Done, Total int64
}

// RefusedError says which listings of a chunk were refused. The others of the chunk are listed.
type RefusedError struct {
	// Why is the reason by condition.
	Why map[engine.Condition]string
}

// Error counts the refused listings.
func (e *RefusedError) Error() string {
	return strconv.Itoa(len(e.Why)) + " listings refused"
}

//go:embed demo.jsonl
var demo string

// Demo is the project's own small catalog in the form that Load.Read takes: made-up questions.
func Demo() []byte { return []byte(demo) }

// ErrNoRecord is the fault of a text whose records are none of a catalog's. In a folder such a file
// is passed over and named; alone it is no source.
var ErrNoRecord = errors.New("not a catalog: no record in it")

// Probe looks whether a text begins as a catalog does, in its first thousand records.
func Probe(r io.Reader) error {
	s, err := newSplitter(r)
	if err != nil {
		return fmt.Errorf("not a catalog: %w", err)
	}
	p := newParser()
	why := "it is empty"
	for range 1000 {
		record, line, err := s.next()
		switch {
		case errors.Is(err, io.EOF) && why == "it is empty" && s.array:
			return nil // an empty list
		case errors.Is(err, io.EOF):
			return fmt.Errorf("%w; %s", ErrNoRecord, why)
		case ofRecord(err):
			why = fmt.Sprintf("line %d: %v", line, err)
			continue
		case err != nil:
			return fmt.Errorf("read line %d: %w", line, err)
		}
		p.reset()
		p.take(record, int32(line))
		for i := range p.items {
			if !p.items[i].broken {
				return nil
			}
			why = fmt.Sprintf("line %d: %s", line, p.items[i].why)
		}
	}
	return fmt.Errorf("%w, in its first thousand lines; %s", ErrNoRecord, why)
}

// UpdatedAt is when a record says that it was updated, in unix milliseconds; 0 if it does not say.
func UpdatedAt(record []byte) int64 {
	p := newParser()
	if !p.open(record) {
		return 0
	}
	return p.time(fieldUpdated)
}
