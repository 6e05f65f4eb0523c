package catalog

import (
	"fmt"
	"sort"
	"strings"

	"clobd/engine"
)

// Reason says why a described market is not tradable here.
type Reason string

// The reasons.
const (
	Closed      Reason = "closed"
	Archived    Reason = "archived"
	NoOrderBook Reason = "without order book"
	NotBinary   Reason = "not binary"
	Duplicate   Reason = "repeated"
	// Refused is the reason of a market that the engine would not list. It is counted apart.
	Refused Reason = "refused"
)

// maxProblems bounds how many bad records a Report names; the rest is only counted.
const maxProblems = 1000

// Problem names one bad record.
type Problem struct {
	Line int    // of the file, from 1: where the record begins
	ID   string // of the market or event, empty if it has none that can be read
	Why  string
}

// String is the problem in one line.
func (p Problem) String() string {
	if p.ID == "" {
		return fmt.Sprintf("line %d: %s", p.Line, p.Why)
	}
	return fmt.Sprintf("line %d, %s: %s", p.Line, p.ID, p.Why)
}

// Report says what became of every record:
//
//	Markets = Listed + the sum of Skipped + Refused
type Report struct {
	Events   int // event records that could be read
	Broken   int // records that could not
	Markets  int // market records inside the events
	Listed   int // of those, handed to the engine and taken (or there already)
	Unopened int // of the listed ones, those that take no orders yet
	Skipped  map[Reason]int
	Refused  int       // market records that contradict themselves, another record or the engine
	Bad      []Problem // the broken and the refused by name, at most maxProblems
}

// String is the report in one line for people.
func (r Report) String() string {
	var b strings.Builder
	fmt.Fprintf(&b, "%d events, %d markets: %d listed", r.Events, r.Markets, r.Listed)
	if r.Unopened > 0 {
		fmt.Fprintf(&b, " (%d unopened)", r.Unopened)
	}
	reasons := make([]Reason, 0, len(r.Skipped))
	for reason := range r.Skipped {
		reasons = append(reasons, reason)
	}
	sort.Slice(reasons, func(i, j int) bool { return reasons[i] < reasons[j] })
	for _, reason := range reasons {
		fmt.Fprintf(&b, ", %d %s", r.Skipped[reason], reason)
	}
	fmt.Fprintf(&b, ", %d refused", r.Refused)
	if r.Broken > 0 {
		fmt.Fprintf(&b, "; %d broken records", r.Broken)
	}
	return b.String()
}

// name adds a problem to the named ones and to the log.
func (l *loader) name(line int, id, why string) {
	if len(l.report.Bad) >= maxProblems {
		return
	}
	p := Problem{Line: line, ID: id, Why: why}
	l.report.Bad = append(l.report.Bad, p)
	if l.o.Log != nil {
		l.o.Log.Warn("catalog record", "line", line, "id", id, "why", why)
	}
}

// broken counts and names a record that is no event.
func (l *loader) broken(line int, id, why string) {
	l.report.Broken++
	l.name(line, id, why)
}

// refuse counts and names a market record that cannot be taken.
func (l *loader) refuse(m *Market, why string) {
	l.report.Refused++
	id := m.ID
	if m.Condition != (engine.Condition{}) {
		id = m.Condition.Hex()
	}
	l.name(m.line, id, why)
}
