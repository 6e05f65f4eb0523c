package tidy

import (
	"fmt"
	"maps"
	"strings"
	"testing"
)

// whole makes a rule about the tree one that run can check: it looks at the tree once.
func whole(rule func(*Tree)) func(*Tree, *Package) {
	return func(t *Tree, p *Package) {
		if p == nil || p == t.Packages[0] {
			rule(t)
		}
	}
}

// linked is a tree in which cmd/clobd imports package p, which has so many lines, p/a_test.go not
// counted.
func linked(n int) map[string]string {
	return map[string]string{"cmd/clobd/a.go": importing("clobd/p"), "p/a.go": lines(n),
		"p/a_test.go": lines(2 * maxLarge), "q/a.go": lines(2 * maxLarge)}
}

func TestRooms(t *testing.T) {
	for _, c := range []struct {
		large []largeRoom
		lines int
		want  string
	}{
		{nil, maxRoom, ""},
		{nil, maxRoom + 1, "6001 lines without tests, limit 6000"},
		{[]largeRoom{{"p", 6500, "one secret"}}, 6500, ""},
		{[]largeRoom{{"p", 6500, "one secret"}}, 6501, "6501 lines without tests, limit 6500"},
		{[]largeRoom{{"p", 6500, "one secret"}}, maxRoom, "strike it off"},
		{[]largeRoom{{"p", 6500, "one secret"}}, 6399, "lower its own limit"},
		{[]largeRoom{{"p", 6500, ""}}, 6500, "without a reason"},
		{[]largeRoom{{"p", maxLarge + 1, "one secret"}}, 7450, "is above 7500"},
		{[]largeRoom{{"q", maxLarge, "one secret"}}, 6000, "is not in the product"},
	} {
		rule := whole(func(tree *Tree) { tree.checkProduct(c.large, maxProduct) })
		run(t, rule, []sample{{fmt.Sprint(c), linked(c.lines), c.want}})
	}
}

func TestProduct(t *testing.T) {
	tree := func(last string) map[string]string {
		files := map[string]string{}
		for i := range 8 {
			pkg := fmt.Sprint("p", i)
			files[pkg+"/a.go"] = lines(5_900)
			files["cmd/clobd/"+pkg+".go"] = "package main\n\nimport _ \"clobd/" + pkg + "\"\n"
		}
		maps.Copy(files, map[string]string{"cmd/clobd/b.go": importing("clobd/bench/trader"),
			"bench/trader/a.go": importing("clobd/p0"), "bench/a.go": importing("clobd/p1"),
			"cmd/clobd/a_test.go": importing("clobd/bench"), "p0/b.go": last})
		return files
	}
	run(t, whole(func(tree *Tree) { tree.checkProduct(nil, 47_500) }), []sample{
		{"within the limit", tree(lines(50)), ""},
		{"bench is linked", tree(importing("clobd/bench")), "p0 imports it, so it is linked"},
	})
	files := tree(lines(50))
	files["p8/a.go"], files["p1/b.go"] = lines(300), importing("clobd/p8")
	run(t, whole(func(tree *Tree) { tree.checkProduct(nil, 47_500) }), []sample{
		{"all together too long", files, "delete what nobody would miss"},
	})
}

func TestMethods(t *testing.T) {
	methods := func(n int) string {
		var b strings.Builder
		b.WriteString("type t[X any] struct{}\n\ntype u struct{}\n\nfunc (u) f() {}\n")
		for i := range n {
			fmt.Fprintf(&b, "\nfunc (x *t[X]) f%d() {}\n", i)
		}
		return source(b.String())
	}
	run(t, (*Tree).checkMethods, []sample{
		good("40 methods", "p/a.go", methods(maxMethods)),
		bad("41 methods", "p/a.go", methods(maxMethods+1), "type t has 41 methods"),
		{"in two files", map[string]string{"p/a.go": methods(maxMethods),
			"p/b.go": source("func (x *t[X]) g() {}")}, "type t has 41 methods"},
	})
}

func TestPermissions(t *testing.T) {
	rows := []row{{pkg: "engine"},
		{pkg: "p", ours: []string{"engine"}, out: []string{pebb}, tests: []string{"q", norm}},
		{pkg: "q"}}
	tree := func(p, test string) map[string]string {
		return map[string]string{"engine/a.go": lines(3), "q/a.go": lines(3), "p/a.go": p,
			"p/a_test.go": test}
	}
	all := importing("clobd/engine", pebb+"/vfs")
	tests := importing("clobd/q", norm, "clobd/engine", pebb)
	run(t, whole(func(tree *Tree) { tree.checkPermissions(rows) }), []sample{
		{"all are used", tree(all, tests), ""},
		{"one of ours is not", tree(importing(pebb), tests), "p may import engine and does not"},
		{"a module is not", tree(importing("clobd/engine"), tests), "pebble/v2 and does not"},
		{"a test's is not", tree(all, importing(norm)), "tests of p may import q and do not"},
		{"a test's module is not", tree(all, importing("clobd/q")), "unicode/norm and do not"},
		{"a name that begins alike", tree(importing("clobd/engine/view", pebb), tests),
			"p may import engine and does not"},
	})
}

func TestNames(t *testing.T) {
	words := func(rows string) string {
		return "// Package engine is.\n//\n// # Words of the house\n//\n" + rows +
			"//\n// # Words of this package\n//\n//\tplace  a verb\npackage engine\n"
	}
	tree := func(rows, third string) map[string]string {
		return map[string]string{"engine/doc.go": words(rows), "p/a.go": source("type place int"),
			"q/a_test.go": source("func f() {\n\ttype place int\n}"), "r/a.go": source(third)}
	}
	many := map[string]string{}
	rows := ""
	for i := range maxShared + 1 {
		rows += fmt.Sprintf("//\tname%d  a thing\n", i)
		for _, pkg := range []string{"p", "q", "r"} {
			many[fmt.Sprintf("%s/%d.go", pkg, i)] = source(fmt.Sprintf("type name%d int", i))
		}
	}
	many["engine/doc.go"] = words(rows)
	run(t, whole((*Tree).checkNames), []sample{
		{"two packages", tree("", "type other int"), ""},
		{"three packages", tree("", "type place int"), "place is a type of p, q, r"},
		{"a row", tree("//\tplace  where an order stands\n", "type place int"), ""},
		{"a stale row", tree("//\tplace  where an order stands\n", "type other int"), "strike the row"},
		{"too many", many, "11 type names occur in more than 2 packages"},
	})
}

func TestDecisions(t *testing.T) {
	dated := "# x\n## Decisions\nThe figures are medians.\n\n**2026-11-21: a title.** Text,\n" +
		"more **bold** text.\n\n- **2026-11-22: another.** Text:\n  - **not one** of its own\n" +
		"## Figures\n**Bold** elsewhere.\n"
	rule := func(tree *Tree, _ *Package) {
		for _, f := range tree.Files {
			tree.checkDecisions(f)
		}
	}
	run(t, rule, []sample{
		good("dated", "p/DESIGN.md", dated),
		good("a dot", "p/DESIGN.md", "## Decisions\n\n**2026-11-21 · A title.** Text\n"),
		good("another document", "README.md", "## Decisions\n**Undated.** Text\n"),
		bad("undated", "p/DESIGN.md", dated+"## Decisions\n**A title.** Text\n", "without its date"),
		bad("an undated point", "p/DESIGN.md", "## Decisions\n- **A title.** Text\n", "without its date"),
		bad("a date alone", "p/DESIGN.md", "## Decisions\n**2026-11-21:**\n", "without its date"),
		bad("no date of this world", "p/DESIGN.md", "## Decisions\n**2026-21-11: x**\n", "its date"),
		bad("none", "p/DESIGN.md", "## Decisions\nText.\n", "no decision"),
		bad("no chapter", "p/DESIGN.md", "**2026-11-21: a title.** Text\n", "no decision"),
	})
}
