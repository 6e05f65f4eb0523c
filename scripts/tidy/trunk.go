package tidy

import (
	"errors"
	"fmt"
	"go/ast"
	"go/importer"
	"go/parser"
	"go/token"
	"go/types"
	"io"
	"os"
	"os/exec"
	"path"
	"path/filepath"
	"slices"
	"strings"
)

// The trunk is the way of one order through the code: the functions that a reader visits, in the
// order in which they run. ingress/doc.go lists them; this file walks the list against the code.
//
//	//	ingress.Server.handle   ingress/server.go
//	//	ingress.Server.gate     ingress/server.go   by ingress.Server.routes
//
// A function must be used by an earlier one of the list, which also holds for a method that an
// earlier one calls through an interface. A function may be handed over instead; then "by" names
// what hands it over: a field, a channel or a function that an earlier function of the list uses,
// or a method that an earlier function calls through an interface. Some function must use both what
// hands over and what is handed over. If "by" has several names, some function must use each of
// them together with the next.
const (
	trunkHeading = "# The way of one order"
	trunkMost    = 18
)

// trunkStep is one function of the list.
type trunkStep struct {
	name string   // package.Function or package.Type.Method
	file string   // relative to the root
	by   []string // what hands it over, none if an earlier function calls it
}

// readTrunk reads the list from the text of a doc.go.
func readTrunk(doc string) (steps []trunkStep, err error) {
	_, list, found := strings.Cut(doc, "// "+trunkHeading+"\n")
	if !found {
		return nil, errors.New("no heading " + trunkHeading)
	}
	list, _, _ = strings.Cut(list, "\n// #")
	for line := range strings.Lines(list) {
		words := strings.Fields(strings.TrimPrefix(line, "//"))
		if !strings.HasPrefix(line, "//\t") {
			continue
		}
		switch {
		case len(words) == 2:
			steps = append(steps, trunkStep{name: words[0], file: words[1]})
		case len(words) > 3 && words[2] == "by":
			steps = append(steps, trunkStep{words[0], words[1], words[3:]})
		default:
			return nil, fmt.Errorf("neither FUNCTION FILE nor FUNCTION FILE by NAME: %s", line)
		}
	}
	return steps, nil
}

// function is one function of the code, and the names of all that it uses: functions, methods and
// fields.
type function struct {
	file   string
	uses   map[string]bool
	method *types.Func              // nil for a function without a receiver
	ifaces map[string][]*types.Func // methods of interfaces that it calls, by name
}

// callGraph is the functions of the checked packages by their names.
type callGraph map[string]*function

// walkTrunk returns what is wrong with the list.
func walkTrunk(steps []trunkStep, g callGraph) (wrong []string) {
	if len(steps) == 0 || len(steps) > trunkMost {
		wrong = append(wrong, fmt.Sprintf("%d functions, want 1 to %d", len(steps), trunkMost))
	}
	for i, s := range steps {
		f, earlier := g[s.name], steps[:i]
		if f == nil {
			wrong = append(wrong, s.name+" does not exist")
			continue
		}
		if f.file != s.file {
			wrong = append(wrong, s.name+" stands in "+f.file+", not in "+s.file)
		}
		if slices.ContainsFunc(earlier, func(e trunkStep) bool { return e.name == s.name }) {
			wrong = append(wrong, s.name+" is listed twice")
		}
		if i == 0 {
			continue
		}
		callers := g.callers(s, earlier)
		if len(callers) == 0 {
			wrong = append(wrong, s.name+" is neither called nor handed over by an earlier function")
		}
		visited := func(e trunkStep) bool { return e.file == s.file }
		if slices.ContainsFunc(earlier, visited) &&
			(!visited(earlier[i-1]) || !slices.ContainsFunc(callers, visited)) {
			wrong = append(wrong, s.name+" goes back to "+s.file)
		}
	}
	return wrong
}

// callers are the earlier functions that call a step, or use what hands it over.
func (g callGraph) callers(s trunkStep, earlier []trunkStep) (callers []trunkStep) {
	chain := append(slices.Clone(s.by), s.name)
	for i := range s.by {
		if !g.together(chain[i], chain[i+1]) {
			return nil
		}
	}
	for _, e := range earlier {
		f := g[e.name]
		switch {
		case f == nil:
		case len(s.by) == 0 && (f.uses[s.name] || f.callsThrough(g[s.name].method)),
			len(s.by) > 0 && (e.name == s.by[0] || g.together(e.name, s.by[0]) ||
				g[s.by[0]] != nil && f.callsThrough(g[s.by[0]].method)):
			callers = append(callers, e)
		}
	}
	return callers
}

// together reports whether one of two names is a function that uses the other, or some function
// uses both.
func (g callGraph) together(a, b string) bool {
	for name, f := range g {
		if (name == a || f.uses[a]) && (name == b || f.uses[b]) {
			return true
		}
	}
	return false
}

// callsThrough reports whether f calls a method of an interface that m's receiver implements.
func (f *function) callsThrough(m *types.Func) bool {
	if m == nil {
		return false
	}
	receiver := m.Signature().Recv().Type()
	for _, called := range f.ifaces[m.Name()] {
		i, ok := called.Signature().Recv().Type().Underlying().(*types.Interface)
		if ok && types.Implements(receiver, i) {
			return true
		}
	}
	return false
}

// add notes all functions of a checked package.
func (g callGraph) add(fset *token.FileSet, root string, files []*ast.File, info *types.Info) {
	for _, file := range files {
		name, _ := filepath.Rel(root, fset.Position(file.Pos()).Filename)
		for _, d := range file.Decls {
			declared, ok := d.(*ast.FuncDecl)
			if !ok || declared.Body == nil {
				continue
			}
			object, _ := info.Defs[declared.Name].(*types.Func)
			f := &function{file: filepath.ToSlash(name), uses: make(map[string]bool),
				ifaces: make(map[string][]*types.Func)}
			if declared.Recv != nil {
				f.method = object
			}
			ast.Inspect(declared.Body, func(n ast.Node) bool {
				if id, ok := n.(*ast.Ident); ok {
					f.use(info.Uses[id])
				}
				return true
			})
			g[objectName(object)] = f
		}
	}
}

// use notes one object that a function uses.
func (f *function) use(o types.Object) {
	if name := objectName(o); name != "" {
		f.uses[name] = true
	}
	if m, ok := o.(*types.Func); ok && m.Signature().Recv() != nil &&
		types.IsInterface(m.Signature().Recv().Type()) {
		f.ifaces[m.Name()] = append(f.ifaces[m.Name()], m)
	}
}

// objectName is package.Function, package.Type.Method or package.Type.field; "" for all else.
func objectName(o types.Object) string {
	switch o := o.(type) {
	case *types.Func:
		if o.Pkg() == nil {
			return ""
		}
		if recv := o.Origin().Signature().Recv(); recv != nil {
			return path.Base(o.Pkg().Path()) + "." + receiverName(recv.Type()) + "." + o.Name()
		}
		return path.Base(o.Pkg().Path()) + "." + o.Name()
	case *types.Var:
		if !o.IsField() || o.Pkg() == nil {
			return ""
		}
		scope := o.Pkg().Scope()
		for _, name := range scope.Names() {
			s, ok := scope.Lookup(name).Type().Underlying().(*types.Struct)
			for i := 0; ok && i < s.NumFields(); i++ {
				if s.Field(i) == o.Origin() {
					return path.Base(o.Pkg().Path()) + "." + name + "." + o.Name()
				}
			}
		}
	}
	return ""
}

// receiverName is the name of a receiver's type.
func receiverName(t types.Type) string {
	if p, ok := t.(*types.Pointer); ok {
		t = p.Elem()
	}
	if n, ok := t.(*types.Named); ok {
		return n.Obj().Name()
	}
	return ""
}

// loadGraph type-checks packages of the module below root, given as import paths or patterns. What
// they import comes from the build cache.
func loadGraph(root string, patterns ...string) (callGraph, error) {
	list := exec.Command("go", append([]string{"list", "-export", "-deps", "-f",
		"{{.ImportPath}}\t{{.Export}}\t{{.Dir}}\t{{.DepOnly}}\t{{join .GoFiles \" \"}}\t{{.CgoFiles}}"},
		patterns...)...)
	list.Dir, list.Stderr = root, os.Stderr
	out, err := list.Output()
	if err != nil {
		return nil, fmt.Errorf("list packages: %w", err)
	}
	exports, rows := make(map[string]string), [][]string{}
	for line := range strings.Lines(string(out)) {
		row := strings.Split(strings.TrimSuffix(line, "\n"), "\t")
		exports[row[0]] = row[1]
		if row[3] == "false" && row[5] == "[]" {
			rows = append(rows, row)
		}
	}
	fset, g := token.NewFileSet(), make(callGraph)
	cache := importer.ForCompiler(fset, "gc", func(p string) (io.ReadCloser, error) {
		return os.Open(exports[p])
	})
	for _, row := range rows {
		var files []*ast.File
		for _, name := range strings.Fields(row[4]) {
			file, err := parser.ParseFile(fset, filepath.Join(row[2], name), nil, 0)
			if err != nil {
				return nil, err
			}
			files = append(files, file)
		}
		info := &types.Info{Defs: make(map[*ast.Ident]types.Object),
			Uses: make(map[*ast.Ident]types.Object)}
		if _, err := (&types.Config{Importer: cache}).Check(row[0], fset, files, info); err != nil {
			return nil, err
		}
		g.add(fset, root, files, info)
	}
	return g, nil
}
