package catalog

import (
	"fmt"
	"go/ast"
	syntax "go/parser"
	"go/token"
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"testing"

	"github.com/cockroachdb/datadriven"

	"clobd/engine"
)

// TestCases runs testdata/*.txt. A file begins with an empty catalog in a folder of its own. Each
// block is one command:
//
//	load      reads the input as the text of a source, and hands its markets on
//	show      prints all rows
//	record    prints the catalog's record of a market, and the order book's: c=1
//	query     prints a page of one event, with after=CURSOR
//	refuse    has the engine refuse a condition from now on: c=1 why=WORD
//	reopen    closes the catalog and opens it from its folder again
//	flip      changes a byte of the log, counted from its end: back=5
//	chop      cuts bytes off the end of the log: back=5
//	verify    checks the folder
//
// In an input, <c1> stands for the condition 0x00…01, <long> for 16 MiB of text and <deep> for 100
// brackets, one inside the other.
func TestCases(t *testing.T) {
	paths, err := filepath.Glob("testdata/*.txt")
	if err != nil || len(paths) == 0 {
		t.Fatalf("no cases: %v", err)
	}
	small := regexp.MustCompile(`0x0{56}0*([0-9]+)`)
	for _, path := range paths {
		t.Run(filepath.Base(path), func(t *testing.T) {
			s := &caseRun{T: t, dir: t.TempDir(), refused: map[engine.Condition]string{}}
			s.open()
			datadriven.RunTest(t, path, func(t *testing.T, d *datadriven.TestData) string {
				s.out.Reset()
				s.command(d)
				text := small.ReplaceAllString(s.out.String(), "<c$1>")
				return strings.ReplaceAll(text, s.dir+string(filepath.Separator), "")
			})
		})
	}
}

// caseRun is the catalog of one file of cases.
type caseRun struct {
	*testing.T
	dir     string
	store   *Store
	refused map[engine.Condition]string
	out     strings.Builder // of the command that runs
}

func (s *caseRun) open() {
	store, err := Open(Options{Dir: s.dir, List: s.list, Close: func(list []engine.Condition) error {
		for _, c := range list {
			fmt.Fprintf(&s.out, "closed %s\n", c.Hex())
		}
		return nil
	}})
	if err != nil {
		s.Fatal(err)
	}
	s.store = store
	if cut := store.Status().Cut; cut.Bytes > 0 {
		fmt.Fprintf(&s.out, "cut %d bytes, %d whole records, torn %v, kept in %s\n", cut.Bytes,
			cut.Records, cut.Torn, cut.File)
	}
	report, err := store.Begin()
	s.print(report, err)
}

// list is the engine: it refuses the conditions that a case has it refuse.
func (s *caseRun) list(listings []engine.Listing) error {
	refused := &RefusedError{Why: map[engine.Condition]string{}}
	for _, l := range listings {
		if why, is := s.refused[l.Condition]; is {
			refused.Why[l.Condition] = why
			continue
		}
		fmt.Fprintf(&s.out, "listed %s tokens %s %s group %d tick %d minimum %d neg-risk %v open %v\n",
			l.Condition.Hex(), l.Tokens[0].AppendDecimal(nil), l.Tokens[1].AppendDecimal(nil), l.Group,
			l.Tick, l.MinSize, l.NegRisk, l.Open)
	}
	if len(refused.Why) > 0 {
		return refused
	}
	return nil
}

// print prints a report, the bad records by name, and the error.
func (s *caseRun) print(r Report, err error) {
	fmt.Fprintln(&s.out, r)
	for _, p := range r.Bad {
		fmt.Fprintln(&s.out, p)
	}
	s.failed(err)
}

func (s *caseRun) failed(err error) {
	if err != nil {
		fmt.Fprintln(&s.out, "error:", err)
	}
}

func (s *caseRun) command(d *datadriven.TestData) {
	var n int
	switch d.Cmd {
	case "load":
		text := regexp.MustCompile(`<c([0-9]+)>`).ReplaceAllStringFunc(d.Input, func(c string) string {
			n, _ := strconv.Atoi(c[2 : len(c)-1])
			return cond(n)
		})
		text = strings.ReplaceAll(text, "<long>", strings.Repeat("x", maxRecord))
		text = strings.ReplaceAll(text, "<deep>", strings.Repeat("[", 100)+strings.Repeat("]", 100))
		s.print(s.store.Read(strings.NewReader(text)))
	case "show":
		s.show(s.store.Current())
	case "record":
		d.ScanArgs(s.T, "c", &n)
		s.records(s.store.Current(), engine.Condition{31: byte(n)})
	case "query":
		q := PageQuery{Limit: 1}
		d.MaybeScanArgs(s.T, "after", &q.After)
		page, err := s.store.Current().QueryEvents(&q)
		for _, e := range page.Rows {
			fmt.Fprintf(&s.out, "event %s, next %q\n", e.ID, page.Next)
		}
		s.failed(err)
	case "refuse":
		var why string
		d.ScanArgs(s.T, "c", &n)
		d.ScanArgs(s.T, "why", &why)
		s.refused[engine.Condition{31: byte(n)}] = why
	case "reopen":
		s.failed(s.store.Close())
		s.open()
	case "flip", "chop":
		d.ScanArgs(s.T, "back", &n)
		s.spoil(d.Cmd, n)
	case "verify":
		v, err := Verify(s.dir)
		fmt.Fprintf(&s.out, "%d records, %d cuts\n", v.Records, len(v.Cuts))
		s.failed(err)
	default:
		d.Fatalf(s.T, "no such command")
	}
}

// spoil damages the log.
func (s *caseRun) spoil(how string, back int) {
	name := logName(s.dir, 0)
	b, err := os.ReadFile(name)
	if err != nil {
		s.Fatal(err)
	}
	if how == "chop" {
		b = b[:len(b)-back]
	} else {
		b[max(len(b)-back, 0)] ^= 1
	}
	if err := os.WriteFile(name, b, 0o600); err != nil {
		s.Fatal(err)
	}
}

// records prints both records of a market, as they are kept.
func (s *caseRun) records(c *Catalog, condition engine.Condition) {
	m := c.Market(condition)
	for _, read := range []func(*Market, []byte) (Record, error){c.MarketRecord, c.BookRecord} {
		r, err := read(m, nil)
		s.failed(err)
		if err == nil {
			fmt.Fprintf(&s.out, "core {%s}\nlive {%s}\n", r.Core, r.Live)
		}
	}
}

func (s *caseRun) show(c *Catalog) {
	for t := range c.Tags.All() {
		fmt.Fprintf(&s.out, "tag %s %q slug %q partial %v events %v\n", t.ID, t.Label, t.Slug,
			t.Partial, t.events)
	}
	for row := range c.Series.All() {
		fmt.Fprintf(&s.out, "series %s %q slug %q type %q recurrence %q partial %v events %v\n",
			row.ID, row.Title, row.Slug, row.Type, row.Recurrence, row.Partial, row.events)
	}
	for e := range c.Events.All() {
		fmt.Fprintf(&s.out, "event %s %q slug %q partial %v group %d markets %v tags %v series %v\n",
			e.ID, e.Title, e.Slug, e.Partial, e.Group, e.markets, e.tags, e.series)
	}
	for m := range c.Markets.All() {
		fmt.Fprintf(&s.out, "market %q %s %q slug %q event %d outcomes %q skipped %q book %v only %v\n",
			m.ID, m.Condition.Hex(), m.Question, m.Slug, m.EventNo, m.Outcomes, m.Skipped, m.HasBook,
			m.BookOnly)
	}
}

// TestReasonsHaveCases: each reason why a record does not count, and each error of the package, is
// printed by a case.
func TestReasonsHaveCases(t *testing.T) {
	var printed strings.Builder
	err := filepath.WalkDir("testdata", func(path string, _ fs.DirEntry, err error) error {
		if err != nil || filepath.Ext(path) != ".txt" {
			return err
		}
		b, err := os.ReadFile(path)
		for block := range strings.SplitSeq(string(b), "\n\n") {
			_, output, _ := strings.Cut("\n"+block, "\n----\n")
			printed.WriteString(output + "\n")
		}
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	reasons := reasonsOf(t)
	if len(reasons) < 35 {
		t.Errorf("only %d reasons were found in the source", len(reasons))
	}
	verb := regexp.MustCompile(`%[a-z]`)
	for _, reason := range reasons {
		pattern := verb.ReplaceAllString(regexp.QuoteMeta(reason), ".*")
		if !regexp.MustCompile(pattern).MatchString(printed.String()) {
			t.Errorf("no case prints %q", reason)
		}
	}
}

// reasonsOf are the wordings of the package: the constants of type Reason, the texts that
// errors.New, parser.broken and item.why get, and those that the functions which judge a record
// return.
func reasonsOf(t *testing.T) (reasons []string) {
	t.Helper()
	paths, err := filepath.Glob("*.go")
	if err != nil {
		t.Fatal(err)
	}
	for _, path := range paths {
		if strings.HasSuffix(path, "_test.go") {
			continue
		}
		file, err := syntax.ParseFile(token.NewFileSet(), path, nil, 0)
		if err != nil {
			t.Fatal(err)
		}
		ast.Inspect(file, func(n ast.Node) bool {
			for _, e := range reasonsAt(n) {
				reasons = append(reasons, textsIn(e)...)
			}
			return true
		})
	}
	return reasons
}

// reasonsAt are the expressions of a node that hold a reason.
func reasonsAt(n ast.Node) (list []ast.Expr) {
	switch n := n.(type) {
	case *ast.ValueSpec:
		if kind, is := n.Type.(*ast.Ident); is && kind.Name == "Reason" {
			return n.Values
		}
	case *ast.CallExpr:
		if call, is := n.Fun.(*ast.SelectorExpr); is &&
			(call.Sel.Name == "broken" || fmt.Sprint(call.X, ".", call.Sel) == "errors.New") {
			return n.Args
		}
	case *ast.KeyValueExpr:
		if key, is := n.Key.(*ast.Ident); is && key.Name == "why" {
			return []ast.Expr{n.Value}
		}
	case *ast.FuncDecl:
		switch n.Name.Name {
		case "describe", "describeOutcomes", "judge", "contradicts":
			ast.Inspect(n, func(n ast.Node) bool {
				if back, is := n.(*ast.ReturnStmt); is {
					list = append(list, back.Results...)
				}
				return true
			})
		}
	}
	return list
}

// textsIn are the string literals of an expression that are not empty.
func textsIn(e ast.Expr) (texts []string) {
	ast.Inspect(e, func(n ast.Node) bool {
		if lit, is := n.(*ast.BasicLit); is && lit.Kind == token.STRING && lit.Value != `""` {
			text, _ := strconv.Unquote(lit.Value)
			texts = append(texts, text)
		}
		return true
	})
	return texts
}
