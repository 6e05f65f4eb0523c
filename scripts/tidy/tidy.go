package tidy

import (
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"go/types"
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"slices"
	"strings"
)

// Problem is one broken rule at one place.
type Problem struct {
	File string // relative to the root, with slashes
	Line int    // from 1; 0 if the problem is the file itself
	Why  string
}

// String is the problem in the form that editors jump to.
func (p Problem) String() string { return fmt.Sprintf("%s:%d: %s", p.File, p.Line, p.Why) }

// File is one text file of the tree.
type File struct {
	Path string // relative to the root, with slashes
	Text string
	// Syntax is set for Go files that parse.
	Syntax *ast.File
}

// test reports whether the file takes part in tests only, as Go or as a header of C.
func (f *File) test() bool {
	return strings.HasSuffix(f.Path, "_test.go") || strings.HasSuffix(f.Path, "_test.h")
}

// Package is one folder with Go files in it.
type Package struct {
	Path  string // relative to the root: "engine/view"
	Files []*File

	// uses resolves identifiers, and values gives the types of expressions, as far as this package
	// alone tells: nothing imported is loaded. Test files are left out.
	uses   map[*ast.Ident]types.Object
	values map[ast.Expr]types.TypeAndValue
	scope  *types.Scope
}

// Tree is what is checked.
type Tree struct {
	Module   string   // module path, from go.mod
	Top      []string // names at the top level, folders and files
	Files    []*File  // all text files, by path
	Packages []*Package
	fset     *token.FileSet
	problems []Problem
}

// Load reads the tree below root. Build output, installed modules and version control are not
// part of it. An error means that a file could not be read; a file that does not parse is a
// problem like any other.
func Load(root string) (*Tree, error) {
	t := &Tree{fset: token.NewFileSet()}
	made, err := ignored(root)
	if err != nil {
		return nil, err
	}
	err = filepath.WalkDir(root, func(name string, e fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		rel, err := filepath.Rel(root, name)
		if err != nil || rel == "." {
			return err
		}
		rel = filepath.ToSlash(rel)
		if matchesAny(made, e.Name()) {
			return skip(e)
		}
		if !strings.Contains(rel, "/") {
			t.Top = append(t.Top, rel)
		}
		if hidden(rel) {
			return skip(e)
		}
		if e.IsDir() || !isText(rel) {
			return nil
		}
		text, err := os.ReadFile(name)
		if err == nil {
			t.add(rel, string(text))
		}
		return err
	})
	if err != nil {
		return nil, fmt.Errorf("load %s: %w", root, err)
	}
	t.resolve()
	return t, nil
}

// ignored are the patterns of names that are made, not written: version control's own folder and
// the lines of .gitignore, of which only plain names and globs are understood.
func ignored(root string) ([]string, error) {
	patterns := []string{".git"}
	text, err := os.ReadFile(filepath.Join(root, ".gitignore"))
	if err != nil && !os.IsNotExist(err) {
		return nil, fmt.Errorf("load %s: %w", root, err)
	}
	for _, line := range strings.Fields(string(text)) {
		patterns = append(patterns, strings.Trim(line, "/"))
	}
	return patterns, nil
}

// matchesAny reports whether a name matches one of the patterns.
func matchesAny(patterns []string, name string) bool {
	return slices.ContainsFunc(patterns, func(pattern string) bool {
		matched, err := path.Match(pattern, name)
		return matched && err == nil
	})
}

// skip leaves a file out, or a folder with all that is in it.
func skip(e fs.DirEntry) error {
	if e.IsDir() {
		return fs.SkipDir
	}
	return nil
}

// hidden reports whether a name is one that the Go tools do not look into either. CI's entry is
// read all the same.
func hidden(rel string) bool {
	return strings.HasPrefix(path.Base(rel), ".") && rel != ".ci"
}

// isText picks the files that people write.
func isText(rel string) bool {
	if strings.HasPrefix(rel, ".ci/") || path.Base(rel) == "Makefile" {
		return true
	}
	return slices.Contains([]string{".go", ".md", ".sh", ".mjs", ".js", ".mod", ".json", ".html", ".txt",
		".c", ".h"}, path.Ext(rel))
}

// add takes one file in, and parses it if it is Go.
func (t *Tree) add(rel, text string) {
	f := &File{Path: rel, Text: text}
	t.Files = append(t.Files, f)
	if rel == "go.mod" {
		line, _, _ := strings.Cut(text, "\n")
		t.Module = strings.TrimSpace(strings.TrimPrefix(line, "module"))
	}
	if path.Ext(rel) != ".go" || inTestdata(rel) {
		return
	}
	syntax, err := parser.ParseFile(t.fset, rel, text, parser.ParseComments)
	if err != nil {
		t.report(rel, 0, "does not parse: %v", err)
		return
	}
	f.Syntax = syntax
	folder := path.Dir(rel)
	i := slices.IndexFunc(t.Packages, func(p *Package) bool { return p.Path == folder })
	if i < 0 {
		i = len(t.Packages)
		t.Packages = append(t.Packages, &Package{Path: folder})
	}
	t.Packages[i].Files = append(t.Packages[i].Files, f)
}

// apart reports whether a folder belongs to a module of its own, with a go.mod below the root: the
// build and the tests of this one leave it out.
func (t *Tree) apart(folder string) bool {
	for ; folder != "."; folder = path.Dir(folder) {
		if t.file(folder+"/go.mod") != nil {
			return true
		}
	}
	return false
}

// inTestdata reports whether the file is data of a test: its text is judged by nobody.
func inTestdata(rel string) bool {
	return strings.HasPrefix(rel, "testdata/") || strings.Contains(rel, "/testdata/")
}

// resolve type-checks each package on its own. Imports stand empty and their errors are ignored:
// what the rules ask (is this name a variable of the package, is this value a map) is local.
func (t *Tree) resolve() {
	for _, p := range t.Packages {
		p.uses = map[*ast.Ident]types.Object{}
		p.values = map[ast.Expr]types.TypeAndValue{}
		var files []*ast.File
		for _, f := range p.Files {
			if !f.test() {
				files = append(files, f.Syntax)
			}
		}
		config := types.Config{Importer: hollow{}, FakeImportC: true, Error: func(error) {}}
		info := &types.Info{Uses: p.uses, Types: p.values}
		// The error repeats the first of those that were ignored; the package is always returned.
		checked, _ := config.Check(p.Path, t.fset, files, info)
		p.scope = checked.Scope()
	}
}

// hollow imports every package as an empty one.
type hollow struct{}

// Import is what the type checker asks for.
func (hollow) Import(path string) (*types.Package, error) {
	p := types.NewPackage(path, path[strings.LastIndex(path, "/")+1:])
	p.MarkComplete()
	return p, nil
}

// report notes a problem.
func (t *Tree) report(file string, line int, format string, args ...any) {
	t.problems = append(t.problems, Problem{file, line, fmt.Sprintf(format, args...)})
}

// at is the line of a position.
func (t *Tree) at(pos token.Pos) int { return t.fset.Position(pos).Line }

// checkLaws applies the rules about more than one package.
func (t *Tree) checkLaws() {
	for _, p := range t.Packages {
		t.checkMethods(p)
	}
	for _, f := range t.Files {
		t.checkDecisions(f)
	}
	t.checkPermissions(table())
	t.checkProduct(largeRooms(), maxProduct)
	t.checkNames()
}

// Check applies every rule to the tree and returns what is broken, by place.
func (t *Tree) Check() []Problem {
	t.checkTop()
	for _, p := range t.Packages {
		t.checkImports(p)
		t.checkShape(p)
		t.checkPackageDocs(p)
	}
	for _, f := range t.Files {
		t.checkText(f)
	}
	t.checkLaws()
	t.checkDocuments()
	slices.SortStableFunc(t.problems, func(a, b Problem) int {
		if c := strings.Compare(a.File, b.File); c != 0 {
			return c
		}
		return a.Line - b.Line
	})
	return t.problems
}
