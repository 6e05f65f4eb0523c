package tidy

import (
	"fmt"
	"go/parser"
	"go/token"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

// TestTree holds this repository to its own rules.
func TestTree(t *testing.T) {
	tree, err := Load("../..")
	if err != nil {
		t.Fatal(err)
	}
	for _, p := range tree.Check() {
		t.Error(p)
	}
}

// TestTableHasNoCycle proves that the import table cannot allow one: every row names rows above it.
func TestTableHasNoCycle(t *testing.T) {
	var above []string
	for _, r := range table() {
		for _, o := range r.ours {
			if !slices.Contains(above, o) && o != r.pkg {
				t.Errorf("%s may import %s, which has no row above it", r.pkg, o)
			}
			if r.no["clobd/"+o] != "" {
				t.Errorf("%s both may and must not import %s", r.pkg, o)
			}
		}
		above = append(above, r.pkg)
	}
}

// sample is a tree of a few files, with the words that its problems must contain. No words: the
// sample obeys.
type sample struct {
	name  string
	files map[string]string
	want  string
}

// good and bad are samples of one file.
func good(name, file, text string) sample {
	return sample{name, map[string]string{file: text}, ""}
}

func bad(name, file, text, want string) sample {
	return sample{name, map[string]string{file: text}, want}
}

// run checks the samples with one rule.
func run(t *testing.T, rule func(*Tree, *Package), samples []sample) {
	t.Helper()
	for _, s := range samples {
		tree := &Tree{Module: "clobd", fset: token.NewFileSet()}
		for name, text := range s.files {
			tree.add(name, text)
		}
		tree.resolve()
		if len(tree.Packages) == 0 {
			rule(tree, nil)
		}
		for _, p := range tree.Packages {
			rule(tree, p)
		}
		switch {
		case s.want == "" && len(tree.problems) > 0:
			t.Errorf("%s: refused: %v", s.name, tree.problems)
		case s.want != "" && len(tree.problems) == 0:
			t.Errorf("%s: let through, want %q", s.name, s.want)
		case s.want != "" && !strings.Contains(fmt.Sprint(tree.problems), s.want):
			t.Errorf("%s: got %v, want %q", s.name, tree.problems, s.want)
		}
	}
}

// source is a Go file of package p with the given body.
func source(body string) string { return "package p\n\n" + body + "\n" }

// lines is a Go file of n lines.
func lines(n int) string { return "package p\n\n" + strings.Repeat("var _ = 1\n", n-2) }

// importing is a Go file that imports the given paths.
func importing(paths ...string) string {
	var b strings.Builder
	b.WriteString("package p\n\n")
	for _, path := range paths {
		fmt.Fprintf(&b, "import _ %q\n", path)
	}
	return b.String()
}

func TestImports(t *testing.T) {
	pure := "would not replay"
	run(t, (*Tree).checkImports, []sample{
		bad("no row", "bench/peers/x/a.go", importing("fmt"), "no row"),
		{"a module apart", map[string]string{"bench/peers/x/go.mod": "module x",
			"bench/peers/x/y/a.go": importing("example.com/y")}, ""},
		good("engine with plain std", "engine/a.go", importing("math/bits", "fmt", "strconv")),
		bad("engine with a clock", "engine/a.go", importing("time"), pure),
		bad("engine with randomness", "engine/a.go", importing("math/rand/v2"), pure),
		bad("engine with atomics", "engine/a.go", importing("sync/atomic"), pure),
		bad("engine with JSON", "engine/a.go", importing("encoding/json"), pure),
		good("engine's test with files", "engine/a_test.go", importing("os", "pgregory.net/rapid")),
		bad("engine upwards", "engine/a.go", importing("clobd/engine/view"), "arrows point"),
		bad("engine with a module", "engine/a.go", importing("github.com/holiman/uint256"), "outside"),
		good("view", "engine/view/a.go", importing("clobd/engine", "sync/atomic")),
		bad("view to the writer", "engine/view/a.go", importing("clobd/engine/sequencer"), "reach the writer"),
		bad("view to the writer in a test", "engine/view/a_test.go",
			importing("clobd/engine/sequencer"), "reach the writer"),
		bad("sequencer on pebble", "engine/sequencer/a.go", importing(pebb), "not how"),
		good("journal", "journal/a.go", importing("clobd/engine", pebb+"/vfs", prom+"/prometheus")),
		bad("journal to its caller", "journal/a.go", importing("clobd/engine/sequencer"), "no callers"),
		good("curve", "ingress/auth/curve/a.go", importing(secp, decr+"/ecdsa")),
		bad("curve and ours", "ingress/auth/curve/a.go", importing("clobd/engine"), "numbers in"),
		good("auth", "ingress/auth/a.go", importing("clobd/engine", "clobd/ingress/auth/curve", sha3)),
		bad("auth and a library", "ingress/auth/a.go", importing(secp), "curve chooses"),
		bad("trader", "bench/trader/a.go", importing("clobd/bench"), "the laboratory"),
		bad("auth serving", "ingress/auth/a.go", importing(fast), "not served"),
		bad("all of geth", "ingress/auth/a.go",
			importing("github.com/ethereum/go-ethereum/crypto"), "outside"),
		good("ingress", "ingress/a.go", importing("clobd/ingress/auth", fast, route)),
		bad("ingress to the journal", "ingress/a.go", importing("clobd/journal"), "commands only"),
		bad("ingress on the other JSON", "ingress/a.go", importing("encoding/json"), "go-json"),
		good("its oracle", "ingress/a_test.go", importing("encoding/json")),
		bad("ingress to the answers", "ingress/a.go", importing("clobd/api"), "commands only"),
		good("ingress to the words of the wire", "ingress/a.go", importing("clobd/api/wire")),
		bad("api to the writer", "api/a.go", importing("clobd/engine/sequencer"), "never change"),
		bad("api to the door", "api/a.go", importing("clobd/ingress/auth"), "never change"),
		bad("catalog on HTTP", "api/catalog/a.go", importing(fast), "serves nobody"),
		good("cmd", "cmd/clobd/a.go", importing("clobd/journal", "clobd/bench/trader", prom)),
		bad("cmd on pebble", "cmd/clobd/a.go", importing(pebb), "outside"),
		bad("bench imported", "api/a.go", importing("clobd/bench"), "arrows point"),
		good("a package's own external test", "api/a_test.go", importing("clobd/api")),
		bad("a package without a row", "util/a.go", importing("fmt"), "no row"),
	})
}

func TestShape(t *testing.T) {
	long := "func f() {\n" + strings.Repeat("\tprintln()\n", maxFunc-2) + "}"
	longer := "func f() {\n" + strings.Repeat("\tprintln()\n", maxFunc-1) + "}"
	run(t, (*Tree).checkShape, []sample{
		good("70 lines", "p/a.go", source(long)),
		bad("71 lines", "p/a.go", source(longer), "71 lines"),
		good("4 parameters", "p/a.go", source("func f(a, b, c int, d string) {}")),
		good("4 and a receiver", "p/a.go", source("func (x t) f(a, b, c, d int) {}")),
		{"5 parameters of a foreign method", map[string]string{"p/go.mod": "module p",
			"p/a.go": source("type t int\n\nfunc (t) f(a, b, c int, d, e string) {}")}, ""},
		{"5 parameters in a module apart", map[string]string{"p/go.mod": "module p",
			"p/a.go": source("func f(a, b, c int, d, e string) {}")}, "5 parameters"},
		bad("5 parameters", "p/a.go", source("func f(a, b, c int, d, e string) {}"), "5 parameters"),
		good("800 lines", "p/a.go", lines(maxFile)),
		bad("801 lines", "p/a.go", lines(maxFile+1), "801 lines"),
		good("801 lines of test", "p/a_test.go", lines(maxFile+1)),
		bad("too long a test", "p/a_test.go", lines(maxTest+1), "1501"),
		bad("init", "p/a.go", source("func init() {}"), "behind the reader"),
		good("method named init", "p/a.go", source("func (x t) init() {}")),
		bad("getter", "p/a.go", source("func (x t) GetPrice() int { return 0 }"), "getter"),
		good("not a getter", "p/a.go", source("func (x t) Gets() int { return 0 }")),
		bad("spaces for tabs", "p/a.go", source("func f() {\n    println()\n}"), "gofmt"),
	})
}

func TestTypes(t *testing.T) {
	run(t, (*Tree).checkShape, []sample{
		good("Journal", "engine/sequencer/a.go",
			"package sequencer\n\n// Journal is.\ntype Journal interface{ Wait() }\n"),
		bad("another interface", "p/a.go", source("type reader interface{ Read() }"), "two living"),
		bad("Manager", "p/a.go", source("type OrderManager struct{}"), "says nothing"),
		bad("Data", "p/a.go", source("type marketData struct{}"), "says nothing"),
		bad("Utils", "p/a.go", source("type TimeUtils struct{}"), "says nothing"),
		good("Data in the middle", "p/a.go", source("type dataset struct{}")),
		bad("option type", "p/a.go", source("type Option func(*t)"), "functional option"),
		bad("option maker", "p/a.go", source("func withX() Option { return nil }"), "functional option"),
		good("options", "p/a.go", source("type options struct{ n int }")),
		bad("type without a docstring", "p/a.go", source("type Order struct{}"), "no docstring"),
		good("type with one", "p/a.go", source("// Order is.\ntype Order struct{}")),
		bad("function without", "p/a.go", source("func Place() {}"), "no docstring"),
		bad("method without", "p/a.go", source("// T is.\ntype T int\n\nfunc (T) Place() {}"), "no docstring"),
		good("method of a hidden type", "p/a.go", source("func (t) Place() {}")),
		bad("constant without", "p/a.go", source("const A = 1"), "no docstring"),
		good("constants of a group", "p/a.go", source("// These.\nconst (\n\tA = 1\n\tB = 2\n)")),
		good("constant with a remark", "p/a.go", source("const A = 1 // the first")),
		good("main needs none", "cmd/a/a.go", "package main\n\ntype Order struct{}\n"),
		good("tests need none", "p/a_test.go", source("func TestPlace() {}")),
	})
}

func TestVariables(t *testing.T) {
	run(t, (*Tree).checkShape, []sample{
		good("table", "p/a.go", source("var table = []int{1}\n\nfunc f() int { return table[0] }")),
		bad("assigned", "p/a.go", source("var n int\n\nfunc f() { n = 1 }"), "is assigned"),
		bad("counted", "p/a.go", source("var n int\n\nfunc f() { n++ }"), "is assigned"),
		bad("map entry", "p/a.go", source("var m = map[int]int{}\n\nfunc f() { m[1] = 2 }"), "is assigned"),
		bad("field", "p/a.go", source("var s struct{ n int }\n\nfunc f() { s.n = 1 }"), "is assigned"),
		good("shadowed", "p/a.go", source("var n int\n\nfunc f() int {\n\tn := 0\n\tn++\n\treturn n\n}")),
		good("parameter", "p/a.go", source("var n int\n\nfunc f(n int) int {\n\tn = 2\n\treturn n\n}")),
		{"assigned in another file", map[string]string{
			"p/a.go": source("var n int"),
			"p/b.go": source("func f() { n = 1 }"),
		}, "is assigned"},
		bad("mutex", "p/a.go", source("var mu sync.Mutex"), "changes"),
		bad("atomic", "p/a.go", source("var p atomic.Pointer[int]"), "changes"),
		good("pool", "p/a.go", source("var pool = sync.Pool{}")),
		good("tests may", "p/a_test.go", source("var n int\n\nfunc f() { n = 1 }")),
	})
}

func TestPurity(t *testing.T) {
	engine := func(body string) string { return "package engine\n\n" + body + "\n" }
	run(t, (*Tree).checkShape, []sample{
		bad("goroutine", "engine/a.go", engine("func f() { go f() }"), "scheduler"),
		bad("channel", "engine/a.go", engine("var c chan int"), "one owner"),
		bad("select", "engine/a.go", engine("func f() { select {} }"), "at random"),
		bad("float", "engine/a.go", engine("func f(x float64) {}"), "integers"),
		bad("map order", "engine/a.go",
			engine("type m map[int]int\n\nfunc f(x m) {\n\tfor range x {\n\t}\n}"), "random"),
		good("slice order", "engine/a.go", engine("func f(x []int) {\n\tfor range x {\n\t}\n}")),
		good("elsewhere", "api/a.go", "package api\n\nfunc f(x float64) { go f(x) }\n"),
	})
}

func TestText(t *testing.T) {
	text := func(tree *Tree, _ *Package) {
		for _, f := range tree.Files {
			tree.checkText(f)
		}
	}
	wide := strings.Repeat("x", maxColumn)
	run(t, text, []sample{
		bad("unfinished", "p/a.go", source("// TO"+"DO: later"), "do it now"),
		bad("unfinished in prose", "README.md", "FIX"+"ME\n", "do it now"),
		good("part of a word", "README.md", "XX"+"XX TO"+"DOS\n"),
		bad("a document", "p/a.go", source("// see NO"+"TES.md 4"), "only this repository"),
		bad("another", "p/DESIGN.md", "PROTO"+"COL.md\n", "only this repository"),
		good("its own document", "p/doc.go", source("// see DESIGN.md and the protocol")),
		bad("an issue", "p/a.go", source("// issue "+"#4"), "speaks of itself"),
		good("an issuer", "p/a.go", source("// the issuer of 4 tokens")),
		bad("a host", "a/package-lock.json", `"x": "https://a.example/x.t`+"gz\"\n", "each machine"),
		good("a checksum", "a/package-lock.json", `"sha512-a/TO`+"DO/b\"\n"),
		good("100 columns", "p/a.go", "package p\n\n//"+wide[2:]+"\n"),
		bad("101 columns", "p/a.go", "package p\n\n//"+wide[1:]+"\n", "101 columns"),
		bad("a long shell line", "scripts/a.sh", wide+"x\n", "101 columns"),
		good("one literal", "p/a.go", source(`var x = "`+wide+`"`)),
		good("lines of one literal", "p/a.go", source("var x = `\n"+wide+"x\n`")),
		bad("two literals", "p/a.go", source(`var x = "`+wide+`" + "`+wide+`"`), "columns"),
		good("an address", "p/a.go", source("// see https://example.org/"+wide)),
		good("test data", "p/testdata/a.txt", wide+wide+" TO"+"DO\n"),
	})
}

func TestDocs(t *testing.T) {
	picture := "// Package p is.\n//\n//\ta ──► b\n//\tb ──► c\npackage p\n"
	run(t, (*Tree).checkPackageDocs, []sample{
		good("picture", "p/doc.go", picture),
		bad("no picture", "p/doc.go", "// Package p is.\npackage p\n", "no picture"),
		bad("no comment", "p/doc.go", "package p\n", "no package comment"),
		bad("no doc.go", "p/a.go", "package p\n", "missing"),
		good("tests only", "p/a_test.go", "package p\n"),
		bad("too long", "p/doc.go", picture+strings.Repeat("//\n", maxDoc), "limit 80"),
	})
}

func TestDocuments(t *testing.T) {
	chapters := "## Purpose\n## Invariant\n## How\n## Failure choices\n## Decisions\n"
	tree := map[string]string{
		"README.md": "# x\n", "Makefile": "a:\n\techo\n", "engine/sequencer/DESIGN.md": chapters,
		"journal/DESIGN.md": chapters, "bench/DESIGN.md": chapters,
	}
	with := func(name, text string) map[string]string {
		changed := map[string]string{}
		for n, t := range tree {
			changed[n] = t
		}
		changed[name] = text
		return changed
	}
	run(t, func(tree *Tree, _ *Package) { tree.checkDocuments() }, []sample{
		{"all there", tree, ""},
		{"long README", with("README.md", strings.Repeat("x\n", maxReadme+1)), "limit 200"},
		{"README names a file", with("README.md", "see `bench/DESIGN.md` and `bin/x.json`\n"), ""},
		{"README names no file", with("README.md", "see `bench/gone.go`\n"), "names bench/gone.go"},
		{"long Makefile", with("Makefile", strings.Repeat("x:\n", maxMake+1)), "limit 80"},
		{"three lines", with("Makefile", "a:\n\t1\n\t2\n\t3\nb:\n\t1\n"), ""},
		{"four lines", with("Makefile", "a:\n\t1\n\t2\n\t3\n\t4\n"), "a recipe"},
		{"a chapter less", with("bench/DESIGN.md", chapters[:60]), `no chapter "Decisions"`},
		{"strict script", with("scripts/a.sh", "#!/bin/bash\nset -euo pipefail\n"), ""},
		{"sourced", with("scripts/a.sh", "source \"$(dirname x)/steps.sh\"\n"), ""},
		{"lax script", with("scripts/a.sh", "#!/bin/bash\nset -x\n"), "would pass"},
		{"nothing", nil, "missing"},
	})
}

func TestTop(t *testing.T) {
	for name, want := range map[string]int{"engine": 0, "LICENSE": 0, ".ci": 0, "util": 1, ".x": 1} {
		tree := &Tree{Top: []string{name}}
		if tree.checkTop(); len(tree.problems) != want {
			t.Errorf("%s: got %v, want %d problems", name, tree.problems, want)
		}
	}
}

// TestIgnored leaves out what .gitignore names.
func TestIgnored(t *testing.T) {
	root := t.TempDir()
	for name, text := range map[string]string{".gitignore": "made/\n*.prof\n", "go.mod": "module x\n",
		"a.prof": "x", "made/a.go": "package", "kept/a.go": "package kept\n", ".cache/a.go": "package"} {
		if err := os.MkdirAll(filepath.Dir(filepath.Join(root, name)), 0o700); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(filepath.Join(root, name), []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	tree, err := Load(root)
	if err != nil {
		t.Fatal(err)
	}
	if got := fmt.Sprint(tree.Top); got != "[.cache .gitignore go.mod kept]" || len(tree.problems) > 0 {
		t.Errorf("got %s, problems %v", got, tree.problems)
	}
}

// TestLoad reads this package's own folder: a file that does not parse is reported, not fatal.
func TestLoad(t *testing.T) {
	tree, err := Load(".")
	if err != nil {
		t.Fatal(err)
	}
	if len(tree.Packages) != 1 || tree.file("tidy.go") == nil {
		t.Errorf("got %d packages and %d files", len(tree.Packages), len(tree.Files))
	}
	if _, err := parser.ParseFile(token.NewFileSet(), "x.go", "package", 0); err == nil {
		t.Fatal("the sample parses")
	}
	tree.add("x.go", "package")
	if !strings.Contains(fmt.Sprint(tree.problems), "does not parse") {
		t.Errorf("got %v", tree.problems)
	}
	if _, err := Load("missing"); err == nil {
		t.Error("a folder that is not there was loaded")
	}
}
