package report

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"html/template"
	"io"
	"strings"

	"clobd/bench"
)

// Chapter is one result on a page.
type Chapter struct {
	Title    string
	Grade    string // good, warn or bad
	Word     string // the verdict in a word or two: VALID, NO FIGURE
	Reason   string // why, "" if there is nothing to say
	Keys     []keyFigure
	Passages []passage
}

// keyFigure is a number that the reader came for.
type keyFigure struct{ Label, Value, Unit string }

// passage is a part of a chapter.
type passage struct {
	Title, Note string
	Pictures    []picture
	Grid        *grid
	Text        string // as a terminal shows it
}

// picture is an SVG, with what its colours stand for.
type picture struct {
	SVG     template.HTML
	Caption string
	Legend  []legendEntry
}

// legendEntry names a colour of the style sheet.
type legendEntry struct{ Ink, Name string }

// grid is a table. The first column names the row.
type grid struct {
	Head []string
	Rows [][]string
}

// add adds a row.
func (g *grid) add(cells ...string) { g.Rows = append(g.Rows, cells) }

// ChapterOf makes a chapter of a result of package bench. A result without a chapter of its own is
// shown as the text that it prints.
func ChapterOf(result any) (*Chapter, error) {
	switch r := result.(type) {
	case *bench.Report:
		return runChapter(r)
	case *bench.Ramped:
		return rampChapter(r)
	case *bench.Compared:
		return compareChapter(r)
	case *bench.Flooded:
		return floodChapter(r)
	case *bench.Streamed:
		return streamsChapter(r)
	case *bench.Soaked:
		return soakChapter(r)
	case interface{ WriteText(w io.Writer) }: // whatever prints itself
		var text strings.Builder
		r.WriteText(&text)
		c := &Chapter{Title: "Measurement", Grade: good, Word: "MEASURED",
			Passages: []passage{{Title: "As printed", Text: text.String()}}}
		if err := failure(result); err != nil {
			c.Grade, c.Word, c.Reason = bad, "FAILED", err.Error()
		}
		return c, nil
	}
	return nil, fmt.Errorf("there is no page for a result of type %T", result)
}

// failure is why clobench ends with code 1 for a result, nil if it does not.
func failure(result any) error {
	if judged, is := result.(interface{ Verdict() error }); is {
		return judged.Verdict()
	}
	return nil
}

// The grades of a chapter.
const (
	good = "good"
	warn = "warn"
	bad  = "bad"
)

// Read reads a result that was written as JSON. Which one it is, its fields tell.
func Read(text []byte) (any, error) {
	var fields map[string]json.RawMessage
	if err := json.Unmarshal(text, &fields); err != nil {
		return nil, fmt.Errorf("read report: %w", err)
	}
	has := func(names ...string) bool {
		for _, name := range names {
			if _, is := fields[name]; !is {
				return false
			}
		}
		return true
	}
	var result any
	switch {
	case has("workload", "level"):
		result = &bench.Report{}
	case has("steps", "kept_per_second"):
		result = &bench.Ramped{}
	case has("node", "baseline", "first"):
		result = &bench.Compared{}
	case has("idle", "flooded"):
		result = &bench.Flooded{}
	case has("orders_beside_subscribers"):
		result = &bench.Streamed{}
	case has("laps", "drifts"):
		result = &bench.Soaked{}
	default:
		return nil, errors.New("read report: it is of no kind that has a page: want what run, ramp, " +
			"compare, flood, streams or soak have written")
	}
	if err := json.NewDecoder(bytes.NewReader(text)).Decode(result); err != nil {
		return nil, fmt.Errorf("read report: %w", err)
	}
	return result, nil
}

// conditions is what a result was measured under.
func conditions(c *bench.Conditions, seed uint64, more ...[2]string) passage {
	g := &grid{Head: []string{"Condition", "Value"}}
	put := func(name, value string) {
		if value != "" {
			g.add(name, value)
		}
	}
	put("Repeat with", c.Command)
	put("Seed", fmt.Sprint(seed))
	for _, m := range more {
		put(m[0], m[1])
	}
	if n := c.Node; n != nil {
		put("Node: commit", n.Version)
		put("Node: Go", n.Go+", cgo "+n.Cgo)
		put("Node: runtime", settings(&n.Program))
		put("Node: durability", n.Durability)
	}
	if b := c.Baseline; b != nil {
		put("Baseline: commit", b.Version)
		put("Baseline: Go", b.Go+", cgo "+b.Cgo)
		put("Baseline: runtime", settings(b))
	}
	put("clobench: commit", c.Program.Version)
	put("clobench: Go", c.Program.Go+", cgo "+c.Program.Cgo)
	put("clobench: runtime", settings(&c.Program))
	put("CPU", fmt.Sprintf("%s, %d cores", c.CPU, c.Cores))
	put("Kernel", "Linux "+c.Kernel)
	put("Disk", c.Data.String())
	put("Hiccups", c.Hiccup.String())
	if !c.Start.IsZero() {
		put("Started", c.Start.Format("2006-01-02 15:04:05 MST"))
	}
	return passage{Title: "Conditions", Grid: g}
}

// settings is how the runtime of a program was set up, its collector included.
func settings(p *bench.Program) string {
	return fmt.Sprintf("GOMAXPROCS %s, GOGC %s, GOMEMLIMIT %s", p.GOMAXPROCS, p.GOGC, p.GOMEMLIMIT)
}

// micros is a time of so many µs for a reader.
func micros(v float64) string {
	switch {
	case v >= 1e6:
		return fmt.Sprintf("%.3g\u202fs", v/1e6)
	case v >= 1e3:
		return fmt.Sprintf("%.3g\u202fms", v/1e3)
	case v >= 100:
		return fmt.Sprintf("%.0f\u202fµs", v)
	}
	return fmt.Sprintf("%.3g\u202fµs", v)
}

// number is a count or a rate for a reader.
func number(v float64) string {
	if v < 1e4 {
		return fmt.Sprintf("%.4g", v)
	}
	digits := fmt.Sprintf("%.0f", v)
	var parts []string
	for len(digits) > 3 {
		parts = append([]string{digits[len(digits)-3:]}, parts...)
		digits = digits[:len(digits)-3]
	}
	return strings.Join(append([]string{digits}, parts...), "\u202f")
}
