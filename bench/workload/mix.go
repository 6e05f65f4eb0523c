package workload

import (
	"bufio"
	"errors"
	"fmt"
	"io"
	"math"
	"os"
	"path/filepath"
	"strconv"
	"strings"

	"clobd/engine"
)

// ReadMix reads a workload from a file of lines "name value". bench/DESIGN.md has the
// names; what a file does not name is as in canonical, or as in the workload that its first line
// names after "like".
func ReadMix(file string) (Workload, error) {
	f, err := os.Open(file)
	if err != nil {
		return Workload{}, fmt.Errorf("read mix: %w", err)
	}
	defer f.Close()
	w, err := parseMix(f)
	if err != nil {
		return Workload{}, fmt.Errorf("mix %s: %w", file, err)
	}
	w.Name = strings.TrimSuffix(filepath.Base(file), filepath.Ext(file))
	return w, nil
}

// mixLine is one line of a mix.
type mixLine struct {
	no     int
	name   string
	values []string
}

// parseMix reads a mix. The error names all bad lines.
func parseMix(in io.Reader) (Workload, error) {
	w := canonical("", "a mix from a file", nil)
	var problems []error
	named, lines := map[string]int{}, bufio.NewScanner(in)
	for no := 1; lines.Scan(); no++ {
		text, _, _ := strings.Cut(lines.Text(), "#")
		fields := strings.Fields(text)
		if len(fields) == 0 {
			continue
		}
		l := mixLine{no, fields[0], fields[1:]}
		err := error(nil)
		switch before, twice := named[l.name]; {
		case twice:
			err = fmt.Errorf("%s stands in line %d already", l.name, before)
		case l.name == "like" && len(named) > 0:
			err = errors.New("like must be the first line")
		default:
			err = l.set(&w)
		}
		if named[l.name] = no; err != nil {
			problems = append(problems, fmt.Errorf("line %d: %w", no, err))
		}
	}
	problems = append(problems, lines.Err())
	if err := errors.Join(problems...); err != nil {
		return w, err
	}
	return w, w.validate()
}

// set carries out one line.
func (l *mixLine) set(w *Workload) (err error) {
	switch l.name {
	case "like":
		if len(l.values) != 1 {
			return errors.New("like wants the name of a workload")
		}
		*w, err = Named(l.values[0])
		return err
	case "tick", "zipf":
		return l.decimal(w)
	case "far", "alike":
		if len(l.values) != 1 || l.values[0] != "yes" && l.values[0] != "no" {
			return fmt.Errorf("%s wants yes or no", l.name)
		}
		*map[string]*bool{"far": &w.Far, "alike": &w.Alike}[l.name] = l.values[0] == "yes"
		return nil
	case "size", "taken", "slip", "orders":
		at := map[string]*[2]int{"size": &w.Size, "taken": &w.Taken, "slip": &w.Slip,
			"orders": &w.Orders}[l.name]
		return l.integers(&at[0], &at[1])
	}
	if at := w.numbers()[l.name]; at != nil {
		return l.integers(at)
	}
	return fmt.Errorf("nothing is called %q", l.name)
}

// decimal reads a tick or the exponent of a Zipf's law.
func (l *mixLine) decimal(w *Workload) error {
	if len(l.values) != 1 {
		return fmt.Errorf("%s wants one decimal", l.name)
	}
	v, err := strconv.ParseFloat(l.values[0], 64)
	if err != nil {
		return fmt.Errorf("%s %s: want a decimal", l.name, l.values[0])
	}
	if l.name == "zipf" {
		hundredths := math.Round(100 * v)
		if !(v >= 0) || math.Abs(100*v-hundredths) > 1e-6 {
			return fmt.Errorf("zipf %s: want a decimal with up to 2 digits after the point", l.values[0])
		}
		w.Zipf = int(min(hundredths, 1_000_000))
		return nil
	}
	ticks := map[float64]engine.Price{.1: 1000, .01: 100, .005: 50, .0025: 25, .001: 10, .0001: 1}
	if ticks[v] == 0 {
		return fmt.Errorf("tick %s: want 0.1, 0.01, 0.005, 0.0025, 0.001 or 0.0001", l.values[0])
	}
	w.Tick = ticks[v]
	return nil
}

// numbers are the whole numbers of a mix by their names.
func (w *Workload) numbers() map[string]*int {
	return map[string]*int{"read": &w.Read, "new": &w.New, "cancel": &w.Cancel, "cross": &w.Cross,
		"quote": &w.Quote, "books": &w.Books, "depth": &w.Depth, "drift": &w.Drift, "fak": &w.FAK,
		"latest": &w.Latest, "makers": &w.Makers, "rungs": &w.Rungs}
}

// integers reads as many whole numbers as the line must have.
func (l *mixLine) integers(into ...*int) error {
	if len(l.values) != len(into) {
		return fmt.Errorf("%s wants %d whole numbers, least first, and has %d", l.name, len(into),
			len(l.values))
	}
	for i, at := range into {
		n, err := strconv.ParseUint(l.values[i], 10, 31)
		if err != nil {
			return fmt.Errorf("%s %s: want a whole number", l.name, l.values[i])
		}
		*at = int(n)
	}
	return nil
}

// maxBooks is how many books a mix may have: as many as an Op can name.
const maxBooks = 10_000

// validate returns all problems of a mix at once, or nil.
func (w *Workload) validate() error {
	var problems []error
	bad := func(wrong bool, format string, args ...any) {
		if wrong {
			problems = append(problems, fmt.Errorf(format, args...))
		}
	}
	sum := w.New + w.Cancel + w.Cross + w.Quote
	bad(sum != 100, "new, cancel, cross and quote add up to %d, want 100", sum)
	bad(w.New+w.Quote == 0, "new and quote are 0: nothing would ever rest")
	bad(w.Read > 99, "read %d is outside [0, 99]", w.Read)
	bad(w.FAK > 100, "fak %d is outside [0, 100]", w.FAK)
	bad(w.Books < 1 || w.Books > maxBooks, "%d books are outside [1, %d]", w.Books, maxBooks)
	bad(w.Zipf > 1000, "zipf is above 10")
	bad(w.Depth < 1 || w.Drift < 1, "depth and drift must be at least 1")
	bad(w.Orders[1] > engine.MaxMarketOrders, "orders: a market takes at most %d",
		engine.MaxMarketOrders)
	for name, r := range map[string][2]int{"size": w.Size, "taken": w.Taken} {
		bad(r[0] < 5 || r[1] > 10_000, "%s %d to %d is outside [5, 10000] shares", name, r[0], r[1])
		bad(r[0] > r[1], "%s: the least, %d, is above the most, %d", name, r[0], r[1])
	}
	bad(w.Slip[0] > w.Slip[1], "slip: the least is above the most")
	bad(w.Orders[0] > w.Orders[1], "orders: the least is above the most")
	bad(w.Quote > 0 && (w.Makers < 1 || w.Rungs < 1 || w.Rungs > ListSize/2),
		"quotes want makers, and rungs in [1, %d]", ListSize/2)
	bad(w.Quote == 0 && w.Makers > 0, "makers have nothing to do without quote")
	bad(w.Makers >= Traders, "%d makers of %d wallets leave nobody else", w.Makers, Traders)
	bad(w.Alike && w.Books%2 == 1, "alike wants an even number of books: one to mint, one to merge")
	return errors.Join(problems...)
}

// In is the workload in so many books.
func (w Workload) In(books int) (Workload, error) {
	w.Books = books
	return w, w.validate()
}
