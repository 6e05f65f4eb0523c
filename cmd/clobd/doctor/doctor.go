package doctor

import (
	"context"
	"fmt"
	"io"
	"strings"
	"time"
)

// Options says what the machine is for. Each of them is what a node would be started with.
type Options struct {
	// Data is the data folder. It need not exist.
	Data string
	// Reserve is how many bytes must be free for orders to be taken, Ballast the size of the file
	// that is kept for a full disk.
	Reserve, Ballast int64
	// Connections and Sockets may be open at once, beside SpareFiles other files.
	Connections, Sockets, SpareFiles int
	// Refused is why a node would not start on the folder; nil: it would.
	Refused error
	// Seal keeps core dumps of this process from being written, as a node does. It is called last:
	// what may be read below /proc changes.
	Seal func() error
	// Window is how far a request's timestamp may be from the clock.
	Window time.Duration
	// WithoutLanes keeps checks of signatures out of the widest registers of the processor.
	WithoutLanes bool
	// During is how long the disk is measured. Default 2 s.
	During time.Duration
}

// Grade is the verdict of one Check.
type Grade string

// The grades. With a Failing one the node cannot keep a promise.
const (
	Good    Grade = "ok"
	Warning Grade = "warn"
	Failing Grade = "FAIL"
	Unknown Grade = "-" // the system does not tell
)

// Check is one thing that was looked at.
type Check struct {
	Grade  Grade  `json:"grade"`
	Name   string `json:"name"`
	Value  string `json:"value"` // as measured
	Reason string `json:"reason"`
	Change string `json:"change,omitempty"` // what to change, if the grade is not Good
}

func (c Check) good(reason string) Check {
	c.Grade, c.Reason = Good, reason
	return c
}

func (c Check) warn(reason, change string) Check {
	c.Grade, c.Reason, c.Change = Warning, reason, change
	return c
}

func (c Check) fail(reason, change string) Check {
	c.Grade, c.Reason, c.Change = Failing, reason, change
	return c
}

func (c Check) unknown() Check {
	c.Grade, c.Value, c.Reason = Unknown, "not measured", "the system does not tell"
	return c
}

// Diagnosis is what a machine will carry, and what is wrong with it.
type Diagnosis struct {
	Checks   []Check   `json:"checks"`
	Estimate *Estimate `json:"estimate"` // nil: the disk could not be measured
	Changes  []string  `json:"changes"`  // the most valuable first
}

// Examine measures for a few seconds and judges. The only error is that of ctx.
func Examine(ctx context.Context, o Options) (*Diagnosis, error) {
	if o.During <= 0 {
		o.During = 2 * time.Second
	}
	m := measure(ctx, &o)
	if err := ctx.Err(); err != nil {
		return nil, err
	}
	return m.judge(&o), nil
}

// judge is a function of what was measured. The checks stand in the order of what they are worth:
// first whether answers are kept, then whether they are given, then how fast.
func (m *machine) judge(o *Options) *Diagnosis {
	d := &Diagnosis{Checks: []Check{m.checkFolder(o), m.checkFilesystem(), m.checkSyncs(),
		m.checkRoom(o), m.checkInodes(), m.checkClock(o), m.checkSteps(o), m.checkFiles(o),
		m.checkCores(), m.checkSteal(), m.checkOthers(), m.checkHiccups(), m.checkMemory(),
		m.checkSwap(), m.checkOvercommit(), m.checkHugePages(), m.checkRing(), m.checkBacklog(o),
		m.checkPorts(o), m.checkVault(), m.checkDumps()}, Estimate: m.estimate(), Changes: []string{}}
	for _, grade := range []Grade{Failing, Warning} {
		for _, c := range d.Checks {
			if c.Grade == grade {
				d.Changes = append(d.Changes, c.Name+": "+c.Change)
			}
		}
	}
	return d
}

// Broken names the checks that failed: each is a promise that the node cannot keep here.
func (d *Diagnosis) Broken() (names []string) {
	for _, c := range d.Checks {
		if c.Grade == Failing {
			names = append(names, c.Name)
		}
	}
	return names
}

// WriteText prints a line for each check, then what the machine will carry and what to change.
func (d *Diagnosis) WriteText(w io.Writer) error {
	var b strings.Builder
	for _, c := range d.Checks {
		fmt.Fprintf(&b, "%-4s  %-10s  %s — %s\n", c.Grade, c.Name, c.Value, c.Reason)
	}
	b.WriteString("\n")
	d.Estimate.write(&b)
	if len(d.Changes) > 0 {
		b.WriteString("\nwhat to change, the most valuable first:\n")
	}
	for i, change := range d.Changes {
		fmt.Fprintf(&b, "  %d. %s\n", i+1, change)
	}
	_, err := io.WriteString(w, b.String())
	return err
}

// count is a number with a comma between thousands.
func count[T int | int64 | uint64](n T) string {
	text := fmt.Sprint(n)
	for at := len(text) - 3; at > 0 && text[at-1] != '-'; at -= 3 {
		text = text[:at] + "," + text[at:]
	}
	return text
}

// size is a number of bytes in the unit that suits it.
func size(bytes int64) string {
	value, unit := float64(bytes), "B"
	for _, next := range []string{"KiB", "MiB", "GiB", "TiB"} {
		if value < 1024 {
			break
		}
		value, unit = value/1024, next
	}
	return strings.TrimSuffix(fmt.Sprintf("%.1f", value), ".0") + " " + unit
}

// short is a time with three figures at most.
func short(d time.Duration) string {
	unit := time.Nanosecond
	for unit < time.Hour && d.Abs() >= 1000*unit {
		unit *= 10
	}
	text := d.Round(unit).String()
	if d.Abs() >= time.Minute {
		return text
	}
	at := strings.LastIndexAny(text, "0123456789") + 1
	return text[:at] + " " + text[at:]
}
