package catalog

import (
	"errors"
	"fmt"
	"io"
	"path/filepath"
	"sync/atomic"
	"time"

	"clobd/engine"
)

// Load takes the records of one new catalog. It belongs to the function that Store.Load calls.
type Load struct {
	// File names the text of the records, for the Report; empty: there is only one.
	File string
	// Records counts the records that were read, with those of earlier stages if the caller sets it.
	Records int
	// Total is the number of bytes to read, for Progress; 0 is unknown.
	Total int64

	e         *editor
	s         *Store
	parser    *parser // of Record
	told      time.Time
	taken     int
	readBytes atomic.Int64
}

// Load makes the next catalog of the records that take enters: it keeps, lists and publishes them.
// mark, if not nil, then returns the new Mark. An error publishes nothing.
func (s *Store) Load(mark func() ([]byte, error), take func(*Load) error) (Report, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.load++
	l := &Load{e: edit(s.Current(), s.log, s.load), s: s}
	began, from := time.Now(), *s.log
	err := take(l)
	l.LogBad()
	if l.e.file = ""; err == nil {
		err = s.settle(l.e)
		l.LogBad()
	}
	next := s.mark
	if err == nil && mark != nil {
		if next, err = mark(); err == nil && string(next) != string(s.mark) {
			l.e.write(markFrame(next))
			s.log.garbage += int64(headSize + len(s.mark))
		}
	}
	if err = errors.Join(err, l.e.err); err == nil {
		err = s.log.flush()
	}
	if err != nil {
		s.log.garbage = from.garbage
		return *l.e.report, errors.Join(err, s.log.rewind(from.size))
	}
	if s.mark = next; len(l.e.markets.changed)+len(l.e.events.changed)+len(l.e.series.changed)+
		len(l.e.tags.changed) > 0 {
		s.publish(l.e.finish(s.live))
	}
	if l.told != (time.Time{}) {
		l.tell()
	}
	s.status.note(func(st *Status) {
		st.Loads++
		st.Refused += uint64(l.e.report.Refused)
		st.Broken += uint64(l.e.report.Broken)
		st.LastLoad = time.Since(began)
	})
	return *l.e.report, s.compact()
}

// Mark returns how far the source was read, by the last load that had a mark, perhaps in an earlier
// process; nil without one, or if records behind it were lost.
func (s *Store) Mark() []byte { return s.mark }

// Read takes the records of a text into the catalog: a JSON array or one record a line, plain or
// gzip. The keys of a record tell its kind. The Report counts and names unusable records. The error
// is of a text that cannot be read to its end or holds not one record (an empty array may), or of
// Options.List; only then have markets been listed.
func (s *Store) Read(r io.Reader) (Report, error) {
	return s.Load(nil, func(l *Load) error { return l.Read(r) })
}

// Read takes the records of one text. A text without one record of a catalog is ErrNoRecord.
func (l *Load) Read(r io.Reader) error {
	split, err := newSplitter(r)
	if err != nil {
		return fmt.Errorf("not a catalog: %w", err)
	}
	l.e.file = l.File
	report := l.e.report
	before, broken := report.Usable(), report.Broken
	f := &flow{next: split.next, parse: (*parser).take}
	if err := f.run(l.take); err != nil {
		return err
	}
	if report.Usable() == before && report.Broken > broken {
		return fmt.Errorf("%w; %s", ErrNoRecord, report.Bad[len(report.Bad)-1])
	}
	return nil
}

// Record takes one record; number is its place in its list, for the Report. It returns when the
// record was updated, in unix milliseconds; 0 is unknown. An error of the log ends the load.
func (l *Load) Record(record []byte, number int) (updated int64) {
	if l.parser == nil {
		l.parser = newParser()
	}
	l.e.file = l.File
	p := l.parser
	p.reset()
	p.take(record, int32(number))
	for i := range p.items {
		it := &p.items[i]
		switch {
		case it.market != nil:
			updated = max(updated, it.market.Updated)
		case it.event != nil && !it.partial:
			updated = max(updated, it.event.Updated)
		}
		if err := l.take(p, it); err != nil && l.e.err == nil {
			l.e.err = err
		}
	}
	return updated
}

// Err returns why the load cannot go on, nil if it can.
func (l *Load) Err() error { return l.e.err }

// Report tells what became of the records so far.
func (l *Load) Report() Report { return *l.e.report }

// Changed returns the conditions of the markets that the load has changed so far.
func (l *Load) Changed() []engine.Condition {
	list := make([]engine.Condition, len(l.e.markets.changed))
	for i, no := range l.e.markets.changed {
		list[i] = l.e.markets.At(no).Condition
	}
	return list
}

func (l *Load) take(p *parser, it *item) error {
	l.e.take(p, it)
	if !it.partial { // else it is a part of another record
		l.Records++
	}
	if l.taken++; l.taken%256 == 0 && time.Since(l.told) > 100*time.Millisecond {
		l.tell()
	}
	if l.e.markets.Len() > MaxMarkets {
		return fmt.Errorf("line %d: more than %d markets", it.line, MaxMarkets)
	}
	return l.e.err
}

// tell reports the progress.
func (l *Load) tell() {
	if l.told = time.Now(); l.s.o.Progress != nil {
		l.s.o.Progress(Progress{l.Records, l.readBytes.Load(), l.Total})
	}
}

// LogBad writes the bad records since the last call to Options.Log.
func (l *Load) LogBad() {
	bad := l.e.bad
	if l.e.bad = (badRecords{}); l.s.o.Log == nil {
		return
	}
	for _, p := range bad.first {
		l.s.o.Log.Warn("catalog record", "file", p.File, "line", p.Line, "id", p.ID, "why", p.Why)
	}
	if more := bad.count - len(bad.first); more > 0 {
		l.s.o.Log.Warn("catalog records", "file", bad.first[0].File, "more bad ones", more)
	}
}

// PassOver counts and names a file that has no record of a catalog. before is the Report as it was
// before the file.
func (l *Load) PassOver(path string, before *Report) {
	report := l.e.report
	records, first := report.Broken-before.Broken, Problem{}
	if len(l.e.bad.first) > 0 {
		first = l.e.bad.first[0]
	}
	report.Broken, report.Bad = before.Broken, before.Bad
	report.Passed++
	l.e.bad = badRecords{}
	if len(report.Bad) < maxProblems {
		report.Bad = append(report.Bad, Problem{filepath.Base(path), first.Line, "",
			fmt.Sprintf("none of its %d records is a catalog's; the first: %s", records, first.Why)})
	}
	if l.s.o.Log != nil {
		l.s.o.Log.Warn("catalog file passed over", "file", path, "records", records,
			"first", first.String())
	}
}

// Count returns a reader whose bytes count for Progress.
func (l *Load) Count(r io.Reader) io.Reader { return &counter{r, &l.readBytes} }

type counter struct {
	in   io.Reader
	done *atomic.Int64
}

func (c *counter) Read(p []byte) (int, error) {
	n, err := c.in.Read(p)
	c.done.Add(int64(n))
	return n, err
}
