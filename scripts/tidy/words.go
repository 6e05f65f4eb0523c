package tidy

import (
	"go/ast"
	"maps"
	"path"
	"regexp"
	"slices"
	"strings"
)

// A type name may occur in two packages. One that occurs in more needs a row among the words of the
// house in engine/doc.go, and there are at most ten such names.
const (
	maxHomes  = 2
	maxShared = 10
)

// wordsFile holds the table of words.
const wordsFile = "engine/doc.go"

// checkNames finds type names that stand for different things in many packages, tests included.
func (t *Tree) checkNames() {
	homes := map[string][]string{}
	for _, p := range t.Packages {
		for _, f := range p.Files {
			ast.Inspect(f.Syntax, func(n ast.Node) bool {
				if s, ok := n.(*ast.TypeSpec); ok && !slices.Contains(homes[s.Name.Name], p.Path) {
					homes[s.Name.Name] = append(homes[s.Name.Name], p.Path)
				}
				return true
			})
		}
	}
	rows, shared := t.houseWords(), 0
	for _, name := range rows {
		if len(homes[name]) <= maxHomes {
			t.report(wordsFile, 0, "%s is a type of %d packages only: strike the row", name,
				len(homes[name]))
		}
	}
	for _, name := range slices.Sorted(maps.Keys(homes)) {
		packages := homes[name]
		if len(packages) <= maxHomes {
			continue
		}
		slices.Sort(packages)
		shared++
		if !slices.Contains(rows, name) {
			t.report(wordsFile, 0, "%s is a type of %s and has no row in Words of the house: rename what "+
				"is another thing", name, strings.Join(packages, ", "))
		}
	}
	if shared > maxShared {
		t.report(wordsFile, 0, "%d type names occur in more than %d packages, limit %d", shared,
			maxHomes, maxShared)
	}
}

// houseWords are the words that have a row below the heading "Words of the house" of engine/doc.go.
func (t *Tree) houseWords() (names []string) {
	f := t.file(wordsFile)
	if f == nil || f.Syntax == nil || f.Syntax.Doc == nil {
		return nil
	}
	inside := false
	for line := range strings.Lines(f.Syntax.Doc.Text()) {
		if heading, is := strings.CutPrefix(line, "# "); is {
			inside = strings.HasPrefix(heading, "Words of the house")
		}
		if found := wordRow.FindStringSubmatch(line); inside && found != nil {
			names = append(names, found[1])
		}
	}
	return names
}

// wordRow is a row of the table of words: the word, two blanks at least, and what it means.
var wordRow = regexp.MustCompile(`^\t(\w+)  +\S`)

// A decision of a design document begins with a date and a title.
var (
	decision      = regexp.MustCompile(`^(- )?\*\*`)
	datedDecision = regexp.MustCompile(`^(- )?\*\*20\d\d-[01]\d-[0-3]\d(:| ·) \S`)
)

// checkDecisions asks for the date of each decision of a design document. Below the heading
// "Decisions" each line that begins with bold text, or is a point that does, begins a decision.
func (t *Tree) checkDecisions(f *File) {
	if path.Base(f.Path) != "DESIGN.md" {
		return
	}
	inside, count := false, 0
	for i, line := range strings.Split(f.Text, "\n") {
		if strings.HasPrefix(line, "## ") {
			inside = strings.HasPrefix(line, "## Decisions")
		}
		if !inside || !decision.MatchString(line) {
			continue
		}
		count++
		if !datedDecision.MatchString(line) {
			t.report(f.Path, i+1, "a decision without its date: write **2026-11-21: what was decided.** "+
				"and then why")
		}
	}
	if count == 0 {
		t.report(f.Path, 0, "no decision: a line below ## Decisions that begins with **2026-11-21: ")
	}
}
