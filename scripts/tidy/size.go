package tidy

import (
	"go/ast"
	"path"
	"slices"
	"strconv"
	"strings"
)

// The limits of the product, which is everything that is linked into cmd/clobd.
const (
	maxRoom    = 6_000  // lines of a package without its tests
	maxLarge   = 7_500  // lines of a package with a row in largeRooms
	maxProduct = 81_880 // lines of all packages together; only a new capability raises it
	maxMethods = 40     // methods of a type
)

// node is the program whose packages are the product.
const node = "cmd/clobd"

// largeRoom is a package that may be larger than maxRoom.
type largeRoom struct {
	pkg   string
	lines int    // its own limit, at most maxLarge; this number only shrinks
	why   string // it is still one room
}

// largeRooms lists the packages that may be larger than maxRoom. A new one has no place here.
func largeRooms() []largeRoom {
	return []largeRoom{
		{"engine", 6_100, "Apply and all state that it changes: no part of it could be used alone"},
	}
}

// The load tester is no part of the product, but the bots of the demo market are.
const (
	laboratory = "bench"
	demoBots   = "bench/trader"
)

// lines is how many lines a package has without its tests. Its C counts as its Go does.
func (t *Tree) lines(p *Package) (total int) {
	for _, f := range t.Files {
		counts := slices.Contains([]string{".go", ".c", ".h"}, path.Ext(f.Path)) && !f.test()
		if counts && path.Dir(f.Path) == p.Path {
			total += strings.Count(f.Text, "\n")
		}
	}
	return total
}

// product is what the program links: the packages that cmd/clobd imports, and those that they
// import, each by its folder with the package that imports it. Tests are left out.
func (t *Tree) product() map[string]string {
	linked := map[string]string{node: ""}
	for next := []string{node}; len(next) > 0; next = next[1:] {
		i := slices.IndexFunc(t.Packages, func(p *Package) bool { return p.Path == next[0] })
		if i < 0 {
			continue
		}
		for _, name := range t.Packages[i].imports(false) {
			pkg, ours := strings.CutPrefix(name, t.Module+"/")
			if _, known := linked[pkg]; ours && !known {
				linked[pkg] = next[0]
				next = append(next, pkg)
			}
		}
	}
	return linked
}

// imports are the import paths that the files of a package name, its tests or all but its tests.
func (p *Package) imports(tests bool) (names []string) {
	for _, f := range p.Files {
		if f.test() != tests {
			continue
		}
		for _, spec := range f.Syntax.Imports {
			if name, err := strconv.Unquote(spec.Path.Value); err == nil {
				names = append(names, name)
			}
		}
	}
	return names
}

// checkProduct holds the product to limit lines in all, and keeps the laboratory out of it.
func (t *Tree) checkProduct(large []largeRoom, limit int) {
	linked, total := t.product(), 0
	for _, p := range t.Packages {
		by, is := linked[p.Path]
		if !is {
			continue
		}
		total += t.lines(p)
		t.checkRoom(p, large)
		below := strings.HasPrefix(p.Path, laboratory+"/")
		if p.Path == laboratory || below && p.Path != demoBots {
			t.report(p.Path, 0, "%s imports it, so it is linked into %s: of %s only %s belongs to the "+
				"product", by, node, laboratory, demoBots)
		}
	}
	for _, l := range large {
		if _, is := linked[l.pkg]; !is {
			t.report(l.pkg, 0, "is not in the product: strike it off the list of large rooms")
		}
	}
	if total > limit {
		t.report(node, 0, "the product has %d lines, limit %d: delete what nobody would miss",
			total, limit)
	}
}

// checkRoom holds one package of the product to its size.
func (t *Tree) checkRoom(p *Package, large []largeRoom) {
	lines, limit := t.lines(p), maxRoom
	i := slices.IndexFunc(large, func(l largeRoom) bool { return l.pkg == p.Path })
	if i >= 0 {
		limit = large[i].lines
		switch {
		case large[i].why == "":
			t.report(p.Path, 0, "is in the list of large rooms without a reason")
		case limit > maxLarge:
			t.report(p.Path, 0, "its own limit of %d lines is above %d", limit, maxLarge)
		case lines <= maxRoom:
			t.report(p.Path, 0, "has %d lines: strike it off the list of large rooms", lines)
		case lines+100 < limit:
			t.report(p.Path, 0, "has %d lines: lower its own limit of %d", lines, limit)
		}
	}
	if lines > limit {
		t.report(p.Path, 0, "%d lines without tests, limit %d: find the second secret in it", lines,
			limit)
	}
}

// checkMethods counts the methods of each type of a package.
func (t *Tree) checkMethods(p *Package) {
	count := map[string]int{}
	for _, f := range p.Files {
		for _, decl := range f.Syntax.Decls {
			if d, ok := decl.(*ast.FuncDecl); ok && d.Recv != nil {
				count[typeName(d.Recv.List[0].Type)]++
			}
		}
	}
	for name, n := range count {
		if n > maxMethods {
			t.report(path.Join(p.Path, "doc.go"), 0, "type %s has %d methods, limit %d: find the "+
				"smaller type in it", name, n, maxMethods)
		}
	}
}
