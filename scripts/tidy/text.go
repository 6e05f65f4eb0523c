package tidy

import (
	"go/ast"
	"go/scanner"
	"go/token"
	"path"
	"regexp"
	"slices"
	"strings"
	"sync"
	"unicode/utf8"
)

// banned is a word that no file may contain, and the reason. The patterns are spelled so that they
// do not match themselves.
type banned struct {
	pattern *regexp.Regexp
	why     string
}

// documents are those that this repository has.
var documents = []string{"README.md", "DESIGN.md"}

// words are the banned ones.
var words = sync.OnceValue(func() []banned {
	return []banned{
		{regexp.MustCompile(`\b([T]ODO|[F]IXME|[X]XX)\b`), "do it now, or say plainly that it is not done"},
		{regexp.MustCompile(`\b[A-Z]{4,}\.md\b`),
			"a reader has only this repository: state the reason itself"},
		{regexp.MustCompile(`\b[i]ssue #?\d+\b`),
			"a number of somewhere else: the project speaks of itself alone"},
		{regexp.MustCompile(`https?://[a-z.]+/[^"]*\.[t]gz`),
			"where a package came from: each machine has its own"},
	}
})

// checkTop allows the names of the top level and no others.
func (t *Tree) checkTop() {
	allowed := []string{"engine", "ingress", "journal", "api", "bench", "cmd", "scripts",
		"go.mod", "go.sum", "Makefile", "README.md", "LICENSE", ".ci", ".gitignore",
		".gitattributes", ".dockerignore"}
	for _, name := range t.Top {
		if !slices.Contains(allowed, name) {
			t.report(name, 0, "not a name of the top level: what it holds belongs to one of %s",
				strings.Join(allowed[:7], " "))
		}
	}
}

// checkText judges the words and the lines of one file. Data of tests and lock files are nobody's
// prose; of a lock file only the hosts matter.
func (t *Tree) checkText(f *File) {
	if inTestdata(f.Path) {
		return
	}
	lock := path.Base(f.Path) == "package-lock.json"
	for i, line := range strings.Split(f.Text, "\n") {
		for _, b := range words() {
			for _, found := range b.pattern.FindAllString(line, -1) {
				if !slices.Contains(documents, found) && (!lock || strings.Contains(found, ".")) {
					t.report(f.Path, i+1, "%q: %s", found, b.why)
				}
			}
		}
	}
	if slices.Contains([]string{".go", ".sh", ".mjs", ".c", ".h"}, path.Ext(f.Path)) {
		t.checkColumns(f)
	}
}

// checkColumns finds lines that are too long. A line is let through if it would be short without
// one string literal on it, or if it cannot be broken: an address, an embedding.
func (t *Tree) checkColumns(f *File) {
	var spans []span
	for i, line := range strings.Split(f.Text, "\n") {
		length := utf8.RuneCountInString(line)
		if length <= maxColumn || strings.Contains(line, "://") || strings.HasPrefix(line, "//go:") {
			continue
		}
		if f.Syntax != nil && spans == nil {
			spans = literals(f.Text)
		}
		longest := 0
		for _, s := range spans {
			if s.from <= i+1 && i+1 <= s.to {
				longest = max(longest, s.length)
			}
		}
		if length-longest > maxColumn {
			t.report(f.Path, i+1, "%d columns, limit %d", length, maxColumn)
		}
	}
}

// span is a string literal: its lines and its length in characters.
type span struct{ from, to, length int }

// literals are the string literals of a Go file.
func literals(text string) []span {
	fset := token.NewFileSet()
	file := fset.AddFile("", -1, len(text))
	var s scanner.Scanner
	s.Init(file, []byte(text), nil, 0)
	spans := []span{}
	for {
		pos, kind, literal := s.Scan()
		if kind == token.EOF {
			return spans
		}
		if kind == token.STRING {
			from := file.Line(pos)
			to := from + strings.Count(literal, "\n")
			spans = append(spans, span{from, to, utf8.RuneCountInString(literal)})
		}
	}
}

// checkPackageDocs asks for the doc.go of a package, with a picture in it.
func (t *Tree) checkPackageDocs(p *Package) {
	name := p.Path + "/doc.go"
	i := slices.IndexFunc(p.Files, func(f *File) bool { return f.Path == name })
	if i < 0 {
		if slices.ContainsFunc(p.Files, func(f *File) bool { return !f.test() }) {
			t.report(name, 0, "missing: each package has a paragraph, a picture, its contract and a "+
				"reading order")
		}
		return
	}
	f := p.Files[i]
	if lines := strings.Count(f.Text, "\n"); lines > maxDoc {
		t.report(name, 0, "%d lines, limit %d", lines, maxDoc)
	}
	if f.Syntax.Doc == nil {
		t.report(name, 0, "no package comment")
	} else if !picture(f.Syntax.Doc) {
		t.report(name, 0, "no picture: an indented block that shows how the parts hang together")
	}
}

// picture reports whether a comment holds an indented block of two lines or more.
func picture(doc *ast.CommentGroup) bool {
	indented := 0
	for _, line := range strings.Split(doc.Text(), "\n") {
		if strings.HasPrefix(line, "\t") || strings.HasPrefix(line, "  ") {
			indented++
		}
	}
	return indented >= 2
}

// checkDocuments judges the README, the Makefile and the design documents.
func (t *Tree) checkDocuments() {
	if readme := t.file("README.md"); readme == nil {
		t.report("README.md", 0, "missing")
	} else {
		t.checkReadme(readme)
	}
	if makefile := t.file("Makefile"); makefile == nil {
		t.report("Makefile", 0, "missing")
	} else {
		t.checkMakefile(makefile)
	}
	for _, f := range t.Files {
		if path.Ext(f.Path) == ".sh" && !strictShell.MatchString(f.Text) {
			t.report(f.Path, 0, "neither set -euo pipefail nor steps.sh, which does it: "+
				"a failure in the middle would pass")
		}
	}
	for _, pkg := range []string{"engine/sequencer", "journal", "bench"} {
		t.checkDesign(pkg + "/DESIGN.md")
	}
}

// checkReadme asks that the README is short and that the files it names are there.
func (t *Tree) checkReadme(f *File) {
	if lines := strings.Count(f.Text, "\n"); lines > maxReadme {
		t.report(f.Path, 0, "%d lines, limit %d", lines, maxReadme)
	}
	for _, found := range namedFile.FindAllStringSubmatch(f.Text, -1) {
		if t.file(found[1]) == nil {
			t.report(f.Path, 0, "names %s, which is not there", found[1])
		}
	}
}

// namedFile is a file of this repository in the text of a document.
var namedFile = regexp.MustCompile(
	"`((?:api|bench|cmd|engine|ingress|journal|scripts)/[\\w./-]+\\.(?:go|sh|md|json))`")

// strictShell is what makes a script end at its first failure.
var strictShell = regexp.MustCompile(`(?m)^(set -euo pipefail|source .*/steps\.sh"?)$`)

// file is one file of the tree, nil if it is not there.
func (t *Tree) file(name string) *File {
	i := slices.IndexFunc(t.Files, func(f *File) bool { return f.Path == name })
	if i < 0 {
		return nil
	}
	return t.Files[i]
}

// checkMakefile keeps the Makefile a list of words: what is longer is a script.
func (t *Tree) checkMakefile(f *File) {
	lines := strings.Split(strings.TrimSuffix(f.Text, "\n"), "\n")
	if len(lines) > maxMake {
		t.report(f.Path, 0, "%d lines, limit %d", len(lines), maxMake)
	}
	recipe := 0
	for i, line := range lines {
		if !strings.HasPrefix(line, "\t") {
			recipe = 0
			continue
		}
		if recipe++; recipe == maxRecipe+1 {
			t.report(f.Path, i+1, "a recipe of more than %d lines: make it a script", maxRecipe)
		}
	}
}

// checkDesign asks for the five chapters of a design document.
func (t *Tree) checkDesign(name string) {
	f := t.file(name)
	if f == nil {
		t.report(name, 0, "missing: this package makes choices that its code alone cannot explain")
		return
	}
	for _, chapter := range []string{"Purpose", "Invariant", "How", "Failure choices", "Decisions"} {
		if !regexp.MustCompile(`(?m)^#+ ` + chapter).MatchString(f.Text) {
			t.report(name, 0, "no chapter %q", chapter)
		}
	}
}
