package main

import (
	"go/ast"
	"go/parser"
	"go/token"
	"io/fs"
	"path"
	"slices"
	"strconv"
	"strings"
)

const (
	module  = "clobd/"
	setting = module + "scripts/setting"
	// sized is the word of whoever asks for the size of a run. No name is like it.
	sized = "-short"
	// method stands before the names of methods and fields.
	method = "."
)

// silent are the modules of others, by the beginnings of their paths, that do not ask for the size
// of a run on behalf of their callers. Any other may: pgregory.net/rapid does.
var silent = []string{"github.com/HdrHistogram/", "github.com/alecthomas/kong",
	"github.com/anishathalye/porcupine", "github.com/cockroachdb/", "github.com/fasthttp/",
	"github.com/goccy/go-json", "github.com/prometheus/", "github.com/valyala/fasthttp",
	"go.etcd.io/raft/", "go.uber.org/goleak", "golang.org/x/", "google.golang.org/protobuf"}

// text is what the files of one folder say.
type text struct {
	root fs.FS
	// said has, by the name of a function, variable, constant or method, the words of all that have
	// this name: names, and sized.
	said map[string]map[string]bool
	// all is set if each test asks: one of what every run goes through does.
	all bool
	// asking notes which packages ask on behalf of their callers.
	asking map[string]bool
}

// read reads the tests of a folder.
func read(root fs.FS, folder string) (*text, error) {
	t := &text{root: root, said: map[string]map[string]bool{}, asking: map[string]bool{}}
	files, err := parse(root, folder)
	if err != nil {
		return nil, err
	}
	for name, f := range files {
		t.add(f, isOfTests(name))
	}
	for _, name := range []string{"TestMain", "init", "_"} {
		t.all = t.all || t.asks(name)
	}
	return t, nil
}

// parse reads the files of a folder.
func parse(root fs.FS, folder string) (map[string]*ast.File, error) {
	names, err := fs.Glob(root, path.Join(path.Clean(folder), "*.go"))
	files := map[string]*ast.File{}
	for _, name := range names {
		b, err := fs.ReadFile(root, name)
		if err != nil {
			return nil, err
		}
		const mode = parser.SkipObjectResolution
		files[name], err = parser.ParseFile(token.NewFileSet(), name, b, mode)
		if err != nil {
			return nil, err
		}
	}
	return files, err
}

func isOfTests(file string) bool { return strings.HasSuffix(file, "_test.go") }

// add notes what a file says. All of a test's file asks if it has an import that may, and whose
// name in the file nobody knows.
func (t *text) add(f *ast.File, test bool) {
	imports, asks := map[string]string{}, false
	for _, i := range f.Imports {
		where, _ := strconv.Unquote(i.Path.Value)
		name := path.Base(where)
		if i.Name != nil {
			name = i.Name.Name
		}
		t.all = t.all || name == "."
		imports[name] = where
		if foreign(where) && !test {
			imports[name] = name // what the product imports knows no tests
		}
		asks = asks || test && foreign(where) && !uses(f, name)
	}
	note := func(name string, d ast.Node) {
		if t.said[name] == nil {
			t.said[name] = map[string]bool{}
		}
		t.said[name][sized] = t.said[name][sized] || asks
		t.note(t.said[name], d, imports)
	}
	for _, d := range f.Decls {
		switch d := d.(type) {
		case *ast.FuncDecl:
			name := d.Name.Name
			if d.Recv != nil {
				name = method + name
			}
			note(name, d)
		case *ast.GenDecl:
			for _, s := range d.Specs {
				if v, is := s.(*ast.ValueSpec); is {
					for _, name := range v.Names {
						note(name.Name, v)
					}
				}
			}
		}
	}
}

// foreign reports whether a package of others may ask on behalf of its callers.
func foreign(where string) bool {
	of, _, _ := strings.Cut(where, "/")
	return strings.Contains(of, ".") && !slices.ContainsFunc(silent, func(known string) bool {
		return strings.HasPrefix(where, known)
	})
}

// uses reports whether something stands in a file behind a name and a dot. If not, that is not the
// name of an import.
func uses(f *ast.File, name string) (is bool) {
	ast.Inspect(f, func(n ast.Node) bool {
		if s, selects := n.(*ast.SelectorExpr); selects {
			of, _ := s.X.(*ast.Ident)
			is = is || of != nil && of.Name == name
		}
		return !is
	})
	return is
}

// note adds the words of a declaration. imports has the paths of its file's imports by their names.
func (t *text) note(words map[string]bool, d ast.Node, imports map[string]string) {
	var visit func(n ast.Node) bool
	visit = func(n ast.Node) bool {
		switch n := n.(type) {
		case *ast.Ident:
			words[n.Name] = true
		case *ast.BasicLit: // flag.Lookup("test.short")
			words[sized] = words[sized] || strings.Contains(n.Value, "test.short")
		case *ast.SelectorExpr:
			of, _ := n.X.(*ast.Ident)
			words[method+n.Sel.Name] = true // a variable may hide the import
			if of == nil || imports[of.Name] == "" {
				ast.Inspect(n.X, visit)
			} else {
				words[sized] = words[sized] || t.isSized(imports[of.Name], n.Sel.Name)
			}
			return false
		}
		return true
	}
	ast.Inspect(d, visit)
}

// isSized reports whether what another package calls by that name asks, or may.
func (t *text) isSized(where, name string) bool {
	switch where {
	case "testing":
		return name == "Short"
	case setting:
		return name != "Seed" && name != "Number" // they ask the environment only
	}
	return foreign(where) || t.reads(where)
}

// asks reports whether what has a name, or anything that it can reach, asks for the size of a run.
func (t *text) asks(name string) bool {
	seen, next := map[string]bool{name: true}, []string{name}
	for ; len(next) > 0; next = next[1:] {
		words := t.said[next[0]]
		if t.all || words[sized] {
			return true
		}
		for word := range words {
			if !seen[word] && t.said[word] != nil {
				seen[word], next = true, append(next, word)
			}
		}
	}
	return false
}

// reads reports whether a package of ours asks on behalf of its callers, or one that it imports.
func (t *text) reads(where string) bool {
	folder, ours := strings.CutPrefix(where, module)
	known, is := t.asking[where]
	if !ours || is {
		return known
	}
	t.asking[where] = false // in the middle; imports have no circle
	files, err := parse(t.root, folder)
	reads := err != nil || len(files) == 0
	for name, f := range files {
		if isOfTests(name) {
			continue
		}
		for _, i := range f.Imports {
			from, _ := strconv.Unquote(i.Path.Value)
			reads = reads || from == setting || t.reads(from)
		}
		ast.Inspect(f, func(n ast.Node) bool {
			s, is := n.(*ast.SelectorExpr)
			reads = reads || is && s.Sel.Name == "Short"
			return !reads
		})
	}
	t.asking[where] = reads
	return reads
}
