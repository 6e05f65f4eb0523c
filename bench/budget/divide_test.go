package budget

import (
	"bytes"
	"go/ast"
	"go/parser"
	"go/token"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/pprof/profile"
)

// text is a profile whose samples have these stacks, from the leaf outwards, one of 10 ms each.
func text(t *testing.T, kind string, stacks ...[]string) []byte {
	t.Helper()
	p := &profile.Profile{SampleType: []*profile.ValueType{
		{Type: "samples", Unit: "count"}, {Type: kind, Unit: "nanoseconds"}}}
	for _, stack := range stacks {
		s := &profile.Sample{Value: []int64{1, int64(10 * time.Millisecond)}}
		for _, name := range stack {
			f := &profile.Function{ID: uint64(len(p.Function) + 1), Name: name}
			at := &profile.Location{ID: f.ID, Line: []profile.Line{{Function: f}}}
			p.Function, p.Location = append(p.Function, f), append(p.Location, at)
			s.Location = append(s.Location, at)
		}
		p.Sample = append(p.Sample, s)
	}
	var out bytes.Buffer
	if err := p.Write(&out); err != nil {
		t.Fatal(err)
	}
	return out.Bytes()
}

func TestDivide(t *testing.T) {
	serve := "github.com/valyala/fasthttp.(*Server).serveConn"
	judge := "clobd/ingress.(*orders).judge"
	lines, err := Divide(text(t, "cpu",
		[]string{"runtime.memmove", "clobd/ingress/form.Decode", judge, serve},
		[]string{"runtime.cgocall", "clobd/ingress/auth/curve.(*Checker).Signed", judge, serve},
		[]string{"runtime.futex", "runtime.wakep", "clobd/ingress/form.Decode", judge, serve},
		[]string{"runtime.memmove", "clobd/ingress/form.Decode", judge, serve},
		[]string{"runtime.scanObject", "runtime.gcBgMarkWorker"},
		[]string{"main.unheardOf"},
		[]string{"syscall.write", "clobd/ingress/conn.(*Conn).WriteNow", "bufio.(*Writer).Flush", serve},
		[]string{"github.com/cockroachdb/pebble/v2/internal/arenaskl.(*Skiplist).Add",
			"clobd/journal/history.(*fold).commit"},
		[]string{"github.com/cockroachdb/pebble/v2/internal/arenaskl.(*Skiplist).Add",
			"clobd/journal.(*Journal).Append"},
		[]string{"indexbytebody", serve},
		[]string{"clobd/ingress/auth/lanes._Cfunc_lanes_keccak", "clobd/ingress/auth/lanes.Keccak",
			"clobd/ingress/auth.(*press).run", "clobd/ingress/auth.(*listing).hash", judge, serve},
		[]string{"clobd/ingress/auth/lanes._Cfunc_lanes_sums", "clobd/ingress/auth/lanes.AddAll",
			"clobd/ingress/auth/curve.(*Checker).addInLanes", judge, serve},
		[]string{"clobd/journal/history.layer.has", "clobd/journal/history.(*filter).may",
			"clobd/journal/history.(*History).Past", "clobd/ingress.(*orders).look", serve},
		[]string{"github.com/cockroachdb/pebble/v2/sstable.(*Reader).readDataBlock",
			"clobd/journal/history.(*History).Past", serve},
		[]string{"clobd/ingress/auth.ParseHex", "clobd/ingress/form.Decode", judge, serve},
		[]string{"clobd/ingress/auth.ParseProof", "clobd/journal/history.(*fold).apply"},
		[]string{"clobd/ingress/auth.ParseWord", "clobd/ingress.describe", serve}))
	if err != nil {
		t.Fatal(err)
	}
	want := map[Stage]int64{Decode: 3, Signature: 2, Wake: 1, Collector: 1, Rest: 1, SocketOut: 1,
		Fold: 2, Write: 1, Parse: 2, Hash: 1, Past: 2}
	for _, l := range lines {
		if l.Samples != want[l.Stage] || l.CPU != time.Duration(want[l.Stage])*10*time.Millisecond {
			t.Errorf("%s has %d samples, %v, want %d", l.Stage, l.Samples, l.CPU, want[l.Stage])
		}
		if l.Stage == Decode && (len(l.Heaviest) != 2 || l.Heaviest[0].Function != "runtime.memmove") {
			t.Errorf("decode: heaviest %v", l.Heaviest)
		}
	}
	if len(lines) != len(Stages()) {
		t.Errorf("%d lines of %d stages", len(lines), len(Stages()))
	}
}

func TestDivideRefuses(t *testing.T) {
	for name, b := range map[string][]byte{
		"garbage": []byte("no profile"), "empty": nil, "of memory": text(t, "alloc_space", []string{"f"})} {
		if _, err := Divide(b); err == nil {
			t.Errorf("%s is taken", name)
		}
	}
}

// TestStagesAreWhole: each rule leads to a stage that Divide tells.
func TestStagesAreWhole(t *testing.T) {
	for _, r := range slices.Concat(inner, rules, homes) {
		if !slices.Contains(Stages(), r.stage) {
			t.Errorf("%s leads to %q, which is in no line", r.prefix, r.stage)
		}
	}
}

// TestRulesNameFunctions: a function of the node that is renamed must not silently leave its stage.
func TestRulesNameFunctions(t *testing.T) {
	known := map[string][]string{}
	for _, r := range slices.Concat(rules, homes) {
		path, ours := strings.CutPrefix(r.prefix, "clobd/")
		if !ours || strings.HasSuffix(path, "/") {
			continue
		}
		dir, name, _ := strings.Cut(path, ".")
		if known[dir] == nil {
			known[dir] = functions(t, dir)
		}
		begins := func(f string) bool { return strings.HasPrefix(f, name) }
		if !slices.ContainsFunc(known[dir], begins) {
			t.Errorf("%s: no function's name begins so", r.prefix)
		}
	}
}

// functions are the functions of a package of this repository, as profiles name them.
func functions(t *testing.T, dir string) (names []string) {
	t.Helper()
	files, err := filepath.Glob(filepath.Join("..", "..", dir, "*.go"))
	if err != nil || len(files) == 0 {
		t.Fatalf("%s: %d files, %v", dir, len(files), err)
	}
	for _, file := range files {
		if strings.HasSuffix(file, "_test.go") {
			continue
		}
		f, err := parser.ParseFile(token.NewFileSet(), file, nil, parser.SkipObjectResolution)
		if err != nil {
			t.Fatal(err)
		}
		for _, d := range f.Decls {
			fn, is := d.(*ast.FuncDecl)
			if !is {
				continue
			}
			names = append(names, receiver(fn)+fn.Name.Name)
		}
	}
	return names
}

// receiver is how a profile names the receiver of a method, as "(*T).", and "" for a function.
func receiver(fn *ast.FuncDecl) string {
	if fn.Recv == nil {
		return ""
	}
	of := fn.Recv.List[0].Type
	star, pointer := of.(*ast.StarExpr)
	if pointer {
		of = star.X
	}
	if index, generic := of.(*ast.IndexExpr); generic {
		of = index.X
	}
	name := of.(*ast.Ident).Name
	if pointer {
		return "(*" + name + ")."
	}
	return name + "."
}

// TestFloors: each floor is there and above 0, and longer texts cost more.
func TestFloors(t *testing.T) {
	short, err := Crypto(100)
	if err != nil {
		t.Fatal(err)
	}
	long, err := Crypto(100_000)
	if err != nil {
		t.Fatal(err)
	}
	disk, err := Disk(t.TempDir(), 4096)
	if err != nil {
		t.Fatal(err)
	}
	var stages []Stage
	for _, f := range append(short, disk...) {
		if stages = append(stages, f.Stage); f.Micros <= 0 && f.Stage != Sync {
			t.Errorf("%s takes %v µs: %s", f.Stage, f.Micros, f.What)
		}
	}
	stages = slices.DeleteFunc(stages, func(s Stage) bool { return s == Signature }) // cgo's
	if !slices.Equal(stages, []Stage{Authenticate, Hash, Write, Sync}) {
		t.Errorf("floors of %v", stages)
	}
	if long[0].Micros < 20*short[0].Micros {
		t.Errorf("an HMAC of 100,000 bytes takes %v µs, one of 100 bytes %v", long[0].Micros, short[0].Micros)
	}
}
