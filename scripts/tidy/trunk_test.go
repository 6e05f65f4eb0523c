package tidy

import (
	"go/ast"
	"go/parser"
	"go/token"
	"go/types"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// TestTrunk walks the list of ingress/doc.go against the code.
func TestTrunk(t *testing.T) {
	root, err := filepath.Abs("../..")
	if err != nil {
		t.Fatal(err)
	}
	doc, err := os.ReadFile(filepath.Join(root, "ingress/doc.go"))
	if err != nil {
		t.Fatal(err)
	}
	steps, err := readTrunk(string(doc))
	if err != nil {
		t.Fatal(err)
	}
	g, err := loadGraph(root, "./ingress/...", "./engine/...", "./journal", "./cmd/clobd/...")
	if err != nil {
		t.Fatal(err)
	}
	for _, wrong := range walkTrunk(steps, g) {
		t.Error("ingress/doc.go: " + wrong)
	}
}

// A small program with a trunk: one call, one hand-over by a field, one by a channel, and one
// through an interface.
const (
	smallDoor = `package small
type Journal interface{ Append() }
type Options struct{ Enter func() }
type Door struct{ options Options }
func (d *Door) Serve() { d.answer(); d.options.Enter(); lone(d) }
func (d *Door) answer() {}
func lone(*Door) {}
func unused() {}
`
	smallWriter = `package small
type Writer struct{ queue chan int; journal Journal }
func (w *Writer) Enter() { w.queue <- 1 }
func (w *Writer) run() { <-w.queue; w.Step() }
func (w *Writer) Step() { w.journal.Append() }
type Role struct{ Enter func() }
func play(w *Writer) Role { return Role{Enter: w.Enter} }
func wire(r Role) Options { return Options{Enter: r.Enter} }
`
	smallJournal = `package small
type Disk struct{}
func (d *Disk) Append() {}
`
	smallTrunk = `// # The way of one order
//
//	small.Door.Serve    door.go
//	small.Door.answer   door.go
//	small.Writer.Enter  writer.go  by small.Options.Enter small.Role.Enter
//	small.Writer.Step   writer.go  by small.Writer.queue
//	small.Disk.Append   disk.go
//
// # Afterwards
//
//	a picture of something else
`
)

// smallGraph is the graph of the small program.
func smallGraph(t *testing.T) callGraph {
	t.Helper()
	fset, g := token.NewFileSet(), make(callGraph)
	var files []*ast.File
	for name, text := range map[string]string{
		"door.go": smallDoor, "writer.go": smallWriter, "disk.go": smallJournal} {
		file, err := parser.ParseFile(fset, "/root/"+name, text, 0)
		if err != nil {
			t.Fatal(err)
		}
		files = append(files, file)
	}
	info := &types.Info{Defs: make(map[*ast.Ident]types.Object),
		Uses: make(map[*ast.Ident]types.Object)}
	if _, err := new(types.Config).Check("small", fset, files, info); err != nil {
		t.Fatal(err)
	}
	g.add(fset, "/root", files, info)
	return g
}

// TestTrunkCanFail: each law of the list, broken.
func TestTrunkCanFail(t *testing.T) {
	g := smallGraph(t)
	many := strings.Repeat("//\tsmall.Door.answer door.go\n", trunkMost)
	for _, c := range []struct{ name, old, new, want string }{
		{"whole", "", "", ""},
		{"missing", "small.Disk.Append ", "small.Disk.Gone ", "small.Disk.Gone does not exist"},
		{"elsewhere", "small.Disk.Append   disk.go", "small.Disk.Append writer.go",
			"stands in disk.go, not in writer.go"},
		{"uncalled", "small.Door.answer ", "small.unused ", "neither called nor handed over"},
		{"unnamed hand-over", "  by small.Options.Enter small.Role.Enter", "",
			"neither called nor handed over"},
		{"broken chain", "small.Options.Enter small.Role.Enter", "small.Options.Enter",
			"neither called nor handed over"},
		{"wrong hand-over", "by small.Options.Enter", "by small.Writer.journal",
			"neither called nor handed over"},
		{"before its caller", "//\tsmall.Writer.Enter  writer.go  by small.Options.Enter small.Role.Enter\n", "",
			"small.Writer.Step is neither called nor handed over"},
		{"back", "//\tsmall.Disk.Append   disk.go\n",
			"//\tsmall.Disk.Append   disk.go\n//\tsmall.lone door.go\n", "small.lone goes back to door.go"},
		{"twice", "//\tsmall.Door.answer   door.go\n",
			"//\tsmall.Door.answer   door.go\n//\tsmall.Door.answer   door.go\n", "is listed twice"},
		{"long", "//\tsmall.Disk.Append   disk.go\n", many, "functions, want 1 to"},
		{"empty", smallTrunk[strings.Index(smallTrunk, "//\t"):], "", "0 functions, want 1 to"},
	} {
		if !strings.Contains(smallTrunk, c.old) {
			t.Fatalf("%s: the list has no %q", c.name, c.old)
		}
		steps, err := readTrunk(strings.Replace(smallTrunk, c.old, c.new, 1))
		if err != nil {
			t.Fatal(err)
		}
		wrong := strings.Join(walkTrunk(steps, g), "\n")
		if c.want == "" && wrong != "" || !strings.Contains(wrong, c.want) {
			t.Errorf("%s: %q, want %q", c.name, wrong, c.want)
		}
	}
}

// TestTrunkIsRead: a line that is no function of the list is an error, not silence.
func TestTrunkIsRead(t *testing.T) {
	for _, doc := range []string{"no list", "// # The way of one order\n//\n//\tone\n",
		"// # The way of one order\n//\n//\tfunction file through queue\n"} {
		if steps, err := readTrunk(doc); err == nil {
			t.Errorf("%q: %v", doc, steps)
		}
	}
}
