package tidy

import (
	"go/ast"
	"go/format"
	"go/token"
	"go/types"
	"regexp"
	"slices"
	"strings"
)

// The limits. They are hard; most code is far below them.
const (
	maxFile   = 800  // lines of a file
	maxTest   = 1500 // lines of a test file
	maxFunc   = 70   // lines of a function, from its first to its closing brace's
	maxParams = 4    // parameters of a function, the receiver not counted
	maxDoc    = 80   // lines of a doc.go
	maxReadme = 200
	maxMake   = 80
	maxRecipe = 3   // lines of one recipe in the Makefile
	maxColumn = 100 // characters of a line, a tab counting one
)

// interfaces lists the interfaces of this module, each with two of its implementations. A single
// implementation needs no interface, and a function field is simpler where one function is enough.
func interfaces() []string {
	return []string{
		"engine/sequencer.Journal", // the journal on disk; the one in memory of tests and benches
		"cmd/clobd/role.Play",      // a node that is alone; a member of a cluster
		"ingress/socket.Story",     // an order; a list, a cancel, a sweep, a read
	}
}

// vague ends the names of types that say nothing about what they are.
var vague = regexp.MustCompile(`.(Manager|Helper|Impl|Base|Data|Info|Utils?)$`)

// getter is a method name that only repeats that it returns something.
var getter = regexp.MustCompile(`^Get[A-Z]`)

// checkShape looks at the syntax of each file of a package.
func (t *Tree) checkShape(p *Package) {
	for _, f := range p.Files {
		t.checkFile(f)
		for _, decl := range f.Syntax.Decls {
			switch d := decl.(type) {
			case *ast.FuncDecl:
				t.checkFunc(p, f, d)
			case *ast.GenDecl:
				t.checkDecl(p, f, d)
			}
		}
		if !f.test() {
			t.checkAssignments(p, f)
			if p.Path == "engine" {
				t.checkPurity(p, f)
			}
		}
	}
}

// checkFile judges a Go file as a whole.
func (t *Tree) checkFile(f *File) {
	lines, limit := strings.Count(f.Text, "\n"), maxFile
	if f.test() {
		limit = maxTest
	}
	if lines > limit {
		t.report(f.Path, 0, "%d lines, limit %d: find the second secret in it", lines, limit)
	}
	formatted, err := format.Source([]byte(f.Text))
	if err == nil && string(formatted) != f.Text {
		t.report(f.Path, 0, "not gofmt-ed")
	}
}

// checkFunc judges one function.
func (t *Tree) checkFunc(p *Package, f *File, d *ast.FuncDecl) {
	line, name := t.at(d.Pos()), d.Name.Name
	if lines := t.at(d.End()) - line + 1; lines > maxFunc {
		t.report(f.Path, line, "%s has %d lines, limit %d: keep the story, move the leaves out",
			name, lines, maxFunc)
	}
	// A module apart meets the interfaces of others, which it cannot make shorter.
	if n := d.Type.Params.NumFields(); n > maxParams && !(d.Recv != nil && t.apart(p.Path)) {
		t.report(f.Path, line, "%s has %d parameters, limit %d: they are a type", name, n, maxParams)
	}
	if d.Recv == nil && name == "init" {
		t.report(f.Path, line, "init runs behind the reader's back: construct in main")
	}
	if getter.MatchString(name) && d.Recv != nil {
		t.report(f.Path, line, "%s is a getter: export the field, or name what it computes", name)
	}
	if returnsOption(d) {
		t.report(f.Path, line, "%s makes a functional option: use a field of an Options struct", name)
	}
	if !f.test() && p.documented() && exportedFunc(d) && d.Doc == nil {
		t.report(f.Path, line, "%s is exported and has no docstring", name)
	}
}

// documented reports whether others import the package, so that its names need docstrings.
func (p *Package) documented() bool {
	return p.Files[0].Syntax.Name.Name != "main"
}

// exportedFunc reports whether a function, or a method of an exported type, can be called from
// another package.
func exportedFunc(d *ast.FuncDecl) bool {
	if !d.Name.IsExported() || d.Recv == nil {
		return d.Name.IsExported()
	}
	return ast.IsExported(typeName(d.Recv.List[0].Type))
}

// typeName is the name in T, *T, T[X] and *T[X].
func typeName(e ast.Expr) string {
	switch e := e.(type) {
	case *ast.StarExpr:
		return typeName(e.X)
	case *ast.IndexExpr:
		return typeName(e.X)
	case *ast.IndexListExpr:
		return typeName(e.X)
	case *ast.Ident:
		return e.Name
	}
	return ""
}

// returnsOption recognises "func WithX(…) Option".
func returnsOption(d *ast.FuncDecl) bool {
	r := d.Type.Results
	return r != nil && len(r.List) == 1 && strings.HasSuffix(typeName(r.List[0].Type), "Option")
}

// checkDecl judges the types, constants and variables of one declaration.
func (t *Tree) checkDecl(p *Package, f *File, d *ast.GenDecl) {
	for _, spec := range d.Specs {
		switch s := spec.(type) {
		case *ast.TypeSpec:
			t.checkType(p, f, s)
			t.checkDocstring(p, f, s.Name, d.Doc != nil || s.Doc != nil)
		case *ast.ValueSpec:
			for _, name := range s.Names {
				t.checkDocstring(p, f, name, d.Doc != nil || s.Doc != nil || s.Comment != nil)
			}
			if d.Tok == token.VAR && !f.test() && guards(s.Type) {
				t.report(f.Path, t.at(s.Pos()), "package variable %s changes: give it to its owner",
					s.Names[0].Name)
			}
		}
	}
}

// checkDocstring asks for a docstring on an exported name.
func (t *Tree) checkDocstring(p *Package, f *File, name *ast.Ident, has bool) {
	if name.IsExported() && !has && !f.test() && p.documented() {
		t.report(f.Path, t.at(name.Pos()), "%s is exported and has no docstring", name.Name)
	}
}

// guards recognises types whose only use is to change: locks and atomics. A sync.Pool is let
// through: it holds scratch memory that no result depends on.
func guards(e ast.Expr) bool {
	if index, ok := e.(*ast.IndexExpr); ok {
		e = index.X
	}
	s, ok := e.(*ast.SelectorExpr)
	if !ok {
		return false
	}
	x, ok := s.X.(*ast.Ident)
	return ok && (x.Name == "atomic" || x.Name == "sync" && s.Sel.Name != "Pool")
}

// checkType judges one type.
func (t *Tree) checkType(p *Package, f *File, s *ast.TypeSpec) {
	line, name := t.at(s.Pos()), s.Name.Name
	if vague.MatchString(name) {
		t.report(f.Path, line, "type %s: the end of the name says nothing about what it is", name)
	}
	switch s.Type.(type) {
	case *ast.FuncType:
		if strings.HasSuffix(name, "Option") {
			t.report(f.Path, line, "type %s is a functional option: use an Options struct, "+
				"whose validate returns all problems at once", name)
		}
	case *ast.InterfaceType:
		if !slices.Contains(interfaces(), p.Path+"."+name) {
			t.report(f.Path, line, "interface %s: an interface needs two living implementations "+
				"and a line in the list of scripts/tidy; a function field is often enough", name)
		}
	}
}

// checkAssignments finds variables of the package that are assigned after their declaration.
func (t *Tree) checkAssignments(p *Package, f *File) {
	ast.Inspect(f.Syntax, func(n ast.Node) bool {
		switch n := n.(type) {
		case *ast.AssignStmt:
			if n.Tok != token.DEFINE {
				for _, target := range n.Lhs {
					t.checkTarget(p, f, target)
				}
			}
		case *ast.IncDecStmt:
			t.checkTarget(p, f, n.X)
		}
		return true
	})
}

// checkTarget reports an assigned expression whose root is a variable of the package.
func (t *Tree) checkTarget(p *Package, f *File, target ast.Expr) {
	id := root(target)
	if id == nil {
		return
	}
	if v, ok := p.uses[id].(*types.Var); ok && v.Parent() == p.scope {
		t.report(f.Path, t.at(id.Pos()), "package variable %s is assigned: state needs an owner", id.Name)
	}
}

// root is the name that an assigned expression starts with: x of x.y[3].z.
func root(e ast.Expr) *ast.Ident {
	switch e := e.(type) {
	case *ast.Ident:
		return e
	case *ast.SelectorExpr:
		return root(e.X)
	case *ast.IndexExpr:
		return root(e.X)
	case *ast.StarExpr:
		return root(e.X)
	case *ast.ParenExpr:
		return root(e.X)
	}
	return nil
}

// checkPurity finds in the engine what would make two replays differ.
func (t *Tree) checkPurity(p *Package, f *File) {
	ast.Inspect(f.Syntax, func(n ast.Node) bool {
		why := ""
		switch n := n.(type) {
		case *ast.GoStmt:
			why = "a goroutine: the order of events would depend on the scheduler"
		case *ast.SelectStmt:
			why = "a select: it chooses at random"
		case *ast.ChanType:
			why = "a channel: state has one owner here"
		case *ast.Ident:
			if n.Name == "float64" || n.Name == "float32" {
				why = "a float: money is counted in integers"
			}
		case *ast.RangeStmt:
			if v, ok := p.values[n.X]; ok && v.Type != nil {
				if _, ok := v.Type.Underlying().(*types.Map); ok {
					why = "map iteration: its order is random"
				}
			}
		}
		if why != "" {
			t.report(f.Path, t.at(n.Pos()), "the engine must replay exactly, and this is %s", why)
		}
		return true
	})
}
