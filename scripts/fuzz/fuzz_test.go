package fuzz

import (
	"cmp"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"
)

const root = "../.."

// target is a fuzz target and the folder of its package.
type target struct{ folder, name string }

var (
	declared = regexp.MustCompile(`(?m)^func (Fuzz\w+)\(f \*testing\.F\)`)
	progress = regexp.MustCompile(`execs: (\d+) `)
	word     = regexp.MustCompile(`[A-Z][a-z]+`)
)

// targets are all fuzz targets below a folder.
func targets(t *testing.T, folder string) (all []target) {
	t.Helper()
	err := filepath.WalkDir(folder, func(path string, d fs.DirEntry, err error) error {
		switch {
		case err != nil:
			return err
		case d.IsDir() && (d.Name() == "testdata" || d.Name() == "node_modules" || d.Name() == ".git"):
			return fs.SkipDir
		case !strings.HasSuffix(path, "_test.go"):
			return nil
		}
		text, err := os.ReadFile(path)
		for _, m := range declared.FindAllSubmatch(text, -1) {
			at, _ := filepath.Rel(folder, filepath.Dir(path))
			all = append(all, target{filepath.ToSlash(at), string(m[1])})
		}
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	slices.SortFunc(all, func(a, b target) int {
		return cmp.Or(strings.Compare(a.folder, b.folder), strings.Compare(a.name, b.name))
	})
	return all
}

// TestParsers: every parser of what others have written has a target.
func TestParsers(t *testing.T) {
	all := targets(t, root)
	for parser, want := range map[string]target{
		"orders":                      {"ingress/form", "FuzzDecodeOrder"},
		"lists of orders":             {"ingress", "FuzzSplitArray"},
		"lists of ids":                {"ingress/form", "FuzzCancels"},
		"strings of signed bodies":    {"ingress/form", "FuzzText"},
		"heads and bodies of HTTP":    {"ingress", "FuzzConnection"},
		"headers of a signed request": {"ingress", "FuzzCredentials"},
		"values of these headers":     {"ingress/auth", "FuzzAuthenticate"},
		"headers of a key request":    {"ingress/auth", "FuzzKeyRequest"},
		"passphrases":                 {"ingress/auth", "FuzzPassphrase"},
		"signatures of orders":        {"ingress/auth", "FuzzSignature"},
		"proofs in the journal":       {"ingress/auth", "FuzzParseProof"},
		"limits files":                {"ingress/limits", "FuzzPolicy"},
		"cursors":                     {"api/wire", "FuzzCursor"},
		"queries":                     {"api/wire", "FuzzQuery"},
		"queries about wallets":       {"api", "FuzzWalletQueries"},
		"JSON of the catalog":         {"api/wire/scan", "FuzzObject"},
		"records of the catalog":      {"api/catalog", "FuzzRecord"},
		"the catalog's log":           {"api/catalog", "FuzzFrame"},
		"frames of the journal":       {"engine", "FuzzFrame"},
		"bodies of frames":            {"engine", "FuzzDecodeFrame"},
		"the journal's mark":          {"journal", "FuzzMark"},
		"checkpoints":                 {"journal", "FuzzDescription"},
		"rows of the index":           {"journal/history", "FuzzRow"},
		"deals of the index":          {"journal/history", "FuzzDeals"},
		"messages of other members":   {"journal/raft", "FuzzStep"},
		"commands of other nodes":     {"engine/sequencer/relay", "FuzzCommands"},
		"what is in them":             {"engine/sequencer/relay", "FuzzSound"},
		"answers of the leader":       {"engine/sequencer/relay", "FuzzAnswer"},
		"positions of the index":      {"journal/history", "FuzzPosition"},
	} {
		if !slices.Contains(all, want) {
			t.Errorf("%s: there is no %s in %s", parser, want.name, want.folder)
		}
	}
}

// dear are the targets that run a whole exchange, a whole catalog or a second library's curve for
// each input. They parse nothing that no other target parses, and get fewer inputs.
var dear = []target{
	{"api/catalog", "FuzzRead"}, {"engine", "FuzzAnything"}, {"engine", "FuzzApply"},
	{"engine", "FuzzExchange"}, {"ingress/auth/curve", "FuzzCheck"},
}

// TestTargets runs the targets, each with CLOBD_SIZE inputs; a dear one with a hundredth of them.
// CLOBD_TARGETS, a regular expression, picks some of them by folder and name.
func TestTargets(t *testing.T) {
	all, size := []target{{"api/wire", "FuzzCursor"}}, 2000
	if text := os.Getenv("CLOBD_SIZE"); text != "" {
		var err error
		if size, err = strconv.Atoi(text); err != nil || size < 1 {
			t.Fatalf("CLOBD_SIZE=%s: not a number above 0", text)
		}
		all = targets(t, root)
	} else if testing.Short() {
		t.Skip("the targets are compiled anew, with counters")
	}
	picked := regexp.MustCompile(os.Getenv("CLOBD_TARGETS"))
	b := builder{folder: t.TempDir(), cache: cache(t)}
	for _, g := range all {
		if !picked.MatchString(g.folder + "." + g.name) {
			continue
		}
		want := size
		if slices.Contains(dear, g) {
			want = max(size/100, 1)
		}
		tried, said, err := b.run(g, want)
		if err != nil || tried < want {
			t.Errorf("%s in %s: %v after %d of %d inputs\n%s", g.name, g.folder, err, tried, want,
				said[max(0, len(said)-4000):])
			continue
		}
		t.Logf("figures: targets=1 inputs=%d %s=%d", tried, g.label(), tried)
	}
}

// cache is the folder in which Go keeps the inputs that earlier runs found.
func cache(t *testing.T) string {
	t.Helper()
	out, err := exec.Command("go", "env", "GOCACHE").Output()
	if err != nil {
		t.Fatal(err)
	}
	return filepath.Join(strings.TrimSpace(string(out)), "fuzz", "clobd")
}

// builder compiles targets. Go counts the branches of every package that a test uses, and adds the
// counters up after each input, which costs more than most targets. The builder has only the
// target's own package counted: inputs are tried 5 to 20 times as fast.
type builder struct {
	folder string // of the compiled tests
	cache  string // of inputs
}

// run tries many inputs. It returns how many were tried.
func (b *builder) run(g target, inputs int) (tried int, said string, err error) {
	binary := filepath.Join(b.folder, strings.ReplaceAll(g.folder, "/", "_")+".test")
	if _, err := os.Stat(binary); err != nil {
		c := exec.Command("go", "test", "-c", "-o", binary,
			"-gcflags=clobd/"+g.folder+"=-d=libfuzzer", "./"+g.folder)
		c.Dir = root
		if out, err := c.CombinedOutput(); err != nil {
			return 0, string(out), err
		}
	}
	c := exec.Command(binary, "-test.run=^$", "-test.fuzz=^"+g.name+"$",
		"-test.fuzztime="+strconv.Itoa(inputs)+"x", "-test.fuzzminimizetime=100x",
		"-test.fuzzcachedir="+filepath.Join(b.cache, filepath.FromSlash(g.folder)))
	c.Dir = filepath.Join(root, filepath.FromSlash(g.folder))
	out, err := c.CombinedOutput()
	for _, m := range progress.FindAllSubmatch(out, -1) {
		tried, _ = strconv.Atoi(string(m[1]))
	}
	return tried, string(out), err
}

// label is the target in a line of figures: api_wire_cursor.
func (g *target) label() string {
	words := strings.Split(g.folder, "/")
	words = append(words, word.FindAllString(g.name, -1)[1:]...) // without Fuzz
	return strings.ToLower(strings.Join(words, "_"))
}
