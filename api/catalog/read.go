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
	// listChunk is how many listings are handed on at once, so that many markets share a sync of the
	// journal.
	listChunk = 1024
	// MaxMarkets bounds a catalog: six times the largest one known.
	MaxMarkets = 1 << 20
)

// Options say where a catalog keeps its records and hands its markets.
type Options struct {
	// List makes at most listChunk conditions tradable, in the order of the source, and returns once
	// they durably are. It is idempotent by condition. A *RefusedError names single refused listings;
	// any other error ends the load. nil lists nothing; listings count all the same.
	List func([]engine.Listing) error
	// Close ends trading in those of the conditions that are listed and open: the source has closed or
	// archived them. nil leaves them as they are.
	Close func([]engine.Condition) error
	// Live returns the present values of a condition; false: it does not trade here, and its source's
	// values count. One goroutine at a time calls it, often. nil: the source's values.
	Live func(engine.Condition) (Live, bool)
	// Dir is the folder of the records; empty: they are in a file without a name.
	Dir string
	// Progress, if set, hears of the progress of a load, at most ten times a second.
	Progress func(Progress)
	// Log, if set, hears of the first bad records of each file.
	Log *slog.Logger
}

// Progress tells how far a load is.
type Progress struct {
	// Records and Done bytes have been read so far; Total bytes are to be read, 0 is unknown.
	Records     int
	Done, Total int64
}

// RefusedError names the refused listings of a chunk. The others of the chunk are listed.
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

// Demo returns the project's own small catalog of made-up questions, in the form that Read takes.
func Demo() []byte { return []byte(demo) }

// ErrNoRecord is the error of a text without one record of a catalog. In a folder such a file is
// passed over and named; alone it is no source.
var ErrNoRecord = errors.New("not a catalog: no record in it")

// Probe checks that the first thousand records of a text have one of a catalog.
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

// UpdatedAt returns when a record was updated, in unix milliseconds; 0 if it does not say.
func UpdatedAt(record []byte) int64 {
	p := newParser()
	if !p.open(record) {
		return 0
	}
	return p.time(fieldUpdated)
}
