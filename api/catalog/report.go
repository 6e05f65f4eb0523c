package catalog

import (
	"fmt"
	"maps"
	"slices"
	"strings"
)

// Reason says why a described market is not tradable here, or why a record changes nothing.
type Reason string

// The reasons.
const (
	Closed      Reason = "closed"
	Archived    Reason = "archived"
	NoOrderBook Reason = "without order book"
	NotBinary   Reason = "not binary"
	// Duplicate is a second record of a condition in the same load.
	Duplicate Reason = "repeated"
	// Known is a record that is not newer than the known one.
	Known Reason = "known"
	// Described is an order book's record of a market with a record of the catalog.
	Described Reason = "described twice"
	// Refused is the reason of a market that the engine would not list. Report counts it apart.
	Refused Reason = "refused"
)

const (
	// maxProblems bounds how many bad records a Report names; it counts the others.
	maxProblems = 1000
	// maxLogged bounds how many of one file the node's log names.
	maxLogged = 10
)

// Problem names one bad record.
type Problem struct {
	File string // of a folder, or the list of a service; else empty
	Line int    // where the record begins, from 1; of a list the number of the record
	ID   string // of the market or event, empty if it cannot be read
	Why  string
}

// String is the problem in one line.
func (p Problem) String() string {
	at := fmt.Sprintf("line %d", p.Line)
	if p.File != "" {
		at = p.File + " " + at
	}
	if p.ID != "" {
		at += ", " + p.ID
	}
	return at + ": " + p.Why
}

// Report tells what became of every record of a market:
//
//	Markets + Books = Listed + the sum of Skipped + Refused
type Report struct {
	Events   int // event records that could be read
	Series   int // series and tags with records of their own
	Tags     int
	Broken   int // records that could not be read
	Passed   int // files of a folder without a record of a catalog; other counts leave them out
	Markets  int // market records of the catalog
	Books    int // market records of the order book
	Listed   int // of those, handed to the engine and taken (or there already)
	Unopened int // of the listed ones, those that take no orders yet
	Closed   int // markets that were listed and that the source has closed or archived since
	Skipped  map[Reason]int
	Refused  int       // market records that contradict themselves, another record or the engine
	Bad      []Problem // the broken and the refused by name, at most maxProblems
}

// String is the report in one line for people.
func (r Report) String() string {
	var b strings.Builder
	some := func(count int, format string) {
		if count > 0 {
			fmt.Fprintf(&b, format, count)
		}
	}
	fmt.Fprintf(&b, "%d events, %d markets", r.Events, r.Markets)
	some(r.Books, ", %d order-book markets")
	some(r.Series, ", %d series")
	some(r.Tags, ", %d tags")
	fmt.Fprintf(&b, ": %d listed", r.Listed)
	some(r.Unopened, " (%d unopened)")
	some(r.Closed, ", %d closed now")
	for _, reason := range slices.Sorted(maps.Keys(r.Skipped)) {
		some(r.Skipped[reason], ", %d "+string(reason))
	}
	fmt.Fprintf(&b, ", %d refused", r.Refused)
	some(r.Broken, "; %d broken records")
	some(r.Passed, "; %d files passed over")
	return b.String()
}

// badRecords are the bad records of one file, or of some pages of a list.
type badRecords struct {
	count int
	first []Problem
}

// name adds a problem to the named ones.
func (e *editor) name(line int32, id, why string) {
	p := Problem{e.file, int(line), id, why}
	if e.bad.count++; len(e.bad.first) < maxLogged {
		e.bad.first = append(e.bad.first, p)
	}
	if len(e.report.Bad) < maxProblems {
		e.report.Bad = append(e.report.Bad, p)
	}
}

// refuse counts and names a market record that cannot be taken.
func (e *editor) refuse(line int32, id, why string) {
	e.report.Refused++
	e.name(line, id, why)
}

// Usable is how many records could be read.
func (r *Report) Usable() int { return r.Events + r.Series + r.Tags + r.Markets + r.Books }

// Add adds what another load counted.
func (r *Report) Add(more *Report) {
	r.Events, r.Series, r.Tags = r.Events+more.Events, r.Series+more.Series, r.Tags+more.Tags
	r.Broken, r.Passed = r.Broken+more.Broken, r.Passed+more.Passed
	r.Markets, r.Books = r.Markets+more.Markets, r.Books+more.Books
	r.Listed, r.Unopened = r.Listed+more.Listed, r.Unopened+more.Unopened
	r.Closed, r.Refused = r.Closed+more.Closed, r.Refused+more.Refused
	for reason, n := range more.Skipped {
		r.Skipped[reason] += n
	}
	r.Bad = append(r.Bad, more.Bad[:min(len(more.Bad), maxProblems-len(r.Bad))]...)
}
