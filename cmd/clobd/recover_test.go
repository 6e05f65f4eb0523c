package main

import (
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"clobd/cmd/cli"
	"clobd/journal"
	"clobd/scripts/setting"
)

// newest is the last file of a folder whose name is like a pattern.
func newest(t *testing.T, data, pattern string) string {
	t.Helper()
	names, err := filepath.Glob(filepath.Join(data, pattern))
	if err != nil || len(names) == 0 {
		t.Fatalf("%s: %v, %v", pattern, names, err)
	}
	return names[len(names)-1]
}

// TestWaysOut: a refused start says what to do, and that is a way out: what is expendable costs
// nothing, what is not is named before it is given up.
func TestWaysOut(t *testing.T) {
	t.Parallel()
	w := newWorld(t, 4)
	n := w.node
	w.load(t, func() { n.stop(t) })
	n.start(t)
	w.load(t, func() { n.kill(t) })
	whole := n.data
	for name, c := range ways() {
		if testing.Short() && c.free && name != "OPTIONS cut" {
			continue // the same way, for other files
		}
		t.Run(name, func(t *testing.T) {
			n.data = copyFolder(t, whole, filepath.Join(t.TempDir(), "data"))
			if err := c.spoil(t, n.data); err != nil {
				t.Fatal(err)
			}
			w.goOut(t, &c)
		})
	}
}

// way is a way out of what was done to a folder.
type way struct {
	spoil   func(t *testing.T, data string) error
	refused []string // what the start says
	told    []string // what recover says
	free    bool     // nothing is lost
}

// goOut takes it.
func (w *world) goOut(t *testing.T, c *way) {
	t.Helper()
	n := w.node
	code, text := refusedStart(t, n.binary, "--data", n.data)
	if code != cli.Broken || strings.Count(text, "\nhint: ") != 1 { // nothing may start it again and again
		t.Errorf("code %d: %s", code, text)
	}
	for _, word := range c.refused {
		if !strings.Contains(text, word) {
			t.Errorf("nothing of %q in %s", word, text)
		}
	}
	if c.free {
		n.expect(t, cli.Done, []string{"recover", "--data", n.data}, c.told...)
		n.start(t)
		verify(t, w.all(), map[string]float64{})
		n.stop(t)
		return
	}
	for range 2 {
		n.expect(t, cli.Failed, []string{"recover", "--data", n.data},
			append(c.told, "nothing was changed", "hint: clobd restore", "--accept-loss")...)
	}
	n.expect(t, cli.Done, []string{"recover", "--data", n.data, "--accept-loss"}, "accepted: ")
	n.expect(t, cli.Done, []string{"recover", "--data", n.data}, "nothing is lost")
	n.start(t)
	n.stop(t)
}

// ways are all of them.
func ways() map[string]way {
	cutHalf := func(pattern string) func(t *testing.T, data string) error {
		return func(t *testing.T, data string) error {
			name := newest(t, data, pattern)
			about, err := os.Stat(name)
			if err != nil {
				return err
			}
			return os.Truncate(name, about.Size()/2)
		}
	}
	gone := func(pattern string) func(t *testing.T, data string) error {
		return func(t *testing.T, data string) error { return os.Remove(newest(t, data, pattern)) }
	}
	return map[string]way{
		"OPTIONS cut": {cutHalf("journal/OPTIONS-*"), []string{"clobd recover makes it good"},
			[]string{"refused: ", "lost: nothing", "made good: "}, true},
		"manifest gone": {gone("journal/MANIFEST-*"), []string{"clobd recover makes it good"},
			[]string{"made good: "}, true},
		"manifest's marker gone": {gone("journal/marker.manifest*"),
			[]string{"without its manifest", "clobd recover"}, []string{"made good: "}, true},
		"format's marker gone": {gone("journal/marker.format-version*"), []string{"clobd recover"},
			[]string{"made good: "}, true},
		"mark of another": {foreign, []string{"belongs to another journal",
			"hint: if one of the two was put here by mistake", "--accept-loss"},
			[]string{"belongs to another journal", "lost: nobody knows how much"}, false},
		"mark a folder": {func(t *testing.T, data string) error {
			mark := filepath.Join(data, "mark")
			return errors.Join(os.Remove(mark), os.Mkdir(mark, 0o700))
		}, []string{"is a folder", "\nhint: clobd verify tells"},
			[]string{"is a folder", "lost: nobody knows"}, false},
		"journal gone": {func(t *testing.T, data string) error {
			return os.RemoveAll(filepath.Join(data, "journal"))
		}, []string{"there was one, and it is gone", "clobd recover", "clobd restore"},
			[]string{"good: up to Sequence 0,", "lost: "}, false},
	}
}

// foreign makes the mark of a folder one of another journal.
func foreign(t *testing.T, data string) error {
	m, _, err := journal.ReadMark(nil, data)
	m.Journal ^= 1
	return errors.Join(err, journal.WriteMark(nil, data, m))
}

// TestRecoverTellsOfHistory: damage before the newest checkpoint stops no start while the index is
// there, and is no secret; without the index a start is refused, and recover says what is lost.
func TestRecoverTellsOfHistory(t *testing.T) {
	setting.Full(t, "several nodes on several copies of a folder")
	t.Parallel()
	w := newWorldOf(t, 4, 3, "--checkpoint-commands", "200")
	n := w.node
	for range 3 {
		w.loadMuch(t, func() { n.leave(t) })
		n.start(t)
	}
	n.stop(t) // a kill may leave tables that the database does not count, or whose log is still there
	n.data = n.beyondRepair(t)
	bare := copyFolder(t, n.data, filepath.Join(t.TempDir(), "bare"))
	n.expect(t, cli.Failed, []string{"recover", "--data", n.data}, "damaged: ", "unreadable: Sequences ",
		"the index has the history", "a start goes on", "hint: clobd restore")
	n.start(t)
	verify(t, w.all(), map[string]float64{})
	n.stop(t)
	n.expect(t, cli.Done, []string{"recover", "--data", n.data, "--accept-loss"}, "accepted: ")
	n.expect(t, cli.Done, []string{"recover", "--data", n.data}, "nothing is lost",
		"unreadable: Sequences ", "kept: the state is complete")
	w.backUpTheHole(t)

	if err := os.RemoveAll(filepath.Join(bare, "index")); err != nil {
		t.Fatal(err)
	}
	code, text := refusedStart(t, n.binary, "--data", bare)
	if code == cli.Done || !strings.Contains(text, "clobd recover") {
		t.Errorf("code %d: %s", code, text)
	}
	n.expect(t, cli.Failed, []string{"recover", "--data", bare}, "refused: ", "unreadable: Sequences ",
		"not enough: a checkpoint has the state", "acknowledged commands, Sequences ",
		"nothing was changed", "hint: clobd restore")
	n.expect(t, cli.Done, []string{"recover", "--data", bare, "--accept-loss"}, "accepted: ")
	n.expect(t, cli.Done, []string{"verify", "--data", bare}, "all is well")
	n.data = bare
	n.start(t)
	n.stop(t)
}

// beyondRepair copies the folder of a stopped node, damages a table of the copy so that frames are
// lost, and returns the copy. If recover can read the damaged frames from a log, the function
// damages another place.
func (p *process) beyondRepair(t *testing.T) string {
	t.Helper()
	tables, err := filepath.Glob(filepath.Join(p.data, "journal", "*.sst"))
	if err != nil || len(tables) == 0 {
		t.Fatal(tables, err)
	}
	for n := range 4 * len(tables) {
		data, tried := filepath.Join(t.TempDir(), "damaged"), filepath.Join(t.TempDir(), "tried")
		copyFolder(t, p.data, data)
		table := filepath.Join(data, "journal", filepath.Base(tables[n/4]))
		b, err := os.ReadFile(table)
		if err != nil {
			t.Fatal(err)
		}
		b[len(b)*(1+n%4)/6] ^= 3
		if err := os.WriteFile(table, b, 0o600); err != nil {
			t.Fatal(err)
		}
		copyFolder(t, data, tried)
		said, _ := operate(t, p.binary, "recover", "--data", tried)
		if strings.Contains(said, "unreadable: Sequences ") {
			return data
		}
	}
	t.Fatal("whatever is damaged has a second copy")
	return ""
}

// backUpTheHole: a backup of a journal of which an accepted loss left out frames has the index that
// knows them, and comes back with all orders; without that index nothing is restored.
func (w *world) backUpTheHole(t *testing.T) {
	t.Helper()
	n, folder := w.node, t.TempDir()
	n.start(t)
	w.load(t, func() {})
	to, restored := filepath.Join(folder, "backup"), filepath.Join(folder, "restored")
	n.expect(t, cli.Done, []string{"backup", "--keys", "--data", n.data, "--admin", n.admin, "--to", to},
		"has not all frames up to ", "the index, which knows what was in them, is in it")
	verify(t, w.all(), map[string]float64{})
	n.stop(t)
	without := copyFolder(t, to, filepath.Join(folder, "without"))
	if err := os.RemoveAll(filepath.Join(without, "index")); err != nil {
		t.Fatal(err)
	}
	n.expect(t, cli.Failed, []string{"restore", "--from", without, "--data", restored},
		"unreadable: Sequences ", "not enough: a checkpoint has the state", "nothing was restored")
	n.expect(t, cli.Done, []string{"restore", "--from", to, "--data", restored},
		"unreadable: Sequences ", "kept: the state is complete", "restored to ")
	before := n.data
	n.data = restored
	n.start(t)
	verify(t, w.all(), map[string]float64{})
	n.stop(t)
	n.data = before
}

// TestBadSecrets: secrets that are no secrets end a start with what to do.
func TestBadSecrets(t *testing.T) {
	t.Parallel()
	p := newProcess(t, buildNode(t), t.TempDir())
	p.start(t)
	p.stop(t)
	for name, c := range map[string]struct{ file, hint string }{
		"master key":   {"master.key", "hint: put the right one back"},
		"its check":    {"master.check", "hint: put the right one back"},
		"admin token":  {"admin.token", "hint: delete it: the next start makes another one"},
		"loose master": {"master.key", "hint: if nobody else has read it"},
	} {
		data := copyFolder(t, p.data, filepath.Join(t.TempDir(), "data"))
		file := filepath.Join(data, c.file)
		err := os.WriteFile(file, []byte("nonsense\n"), 0o600)
		if strings.HasPrefix(name, "loose") {
			err = os.Chmod(file, 0o644)
		}
		if err != nil {
			t.Fatal(err)
		}
		code, text := refusedStart(t, p.binary, "--data", data)
		if code != cli.Failed || !strings.Contains(text, c.hint) {
			t.Errorf("%s: code %d: %s", name, code, text)
		}
		err = errors.Join(os.Remove(file), os.Mkdir(file, 0o700))
		if err != nil {
			t.Fatal(err)
		}
		code, text = refusedStart(t, p.binary, "--data", data)
		if code != cli.Failed || !strings.Contains(text, "\nhint: ") {
			t.Errorf("%s, a folder: code %d: %s", name, code, text)
		}
	}
}

// TestInterruptedRecover: a recover that ended between its two steps is undone by the next one, and
// by a start.
func TestInterruptedRecover(t *testing.T) {
	p := newProcess(t, buildNode(t), t.TempDir())
	p.start(t)
	p.stop(t)
	aside := filepath.Join(p.data, "lost-20260101T000000.000Z", "journal")
	interrupt := func() {
		t.Helper()
		err := errors.Join(os.MkdirAll(filepath.Dir(aside), 0o700),
			os.MkdirAll(filepath.Join(p.data, "journal.new"), 0o700),
			os.WriteFile(filepath.Join(p.data, "journal.new", "aside"),
				[]byte("lost-20260101T000000.000Z"), 0o600),
			os.Rename(filepath.Join(p.data, "journal"), aside))
		if err != nil {
			t.Fatal(err)
		}
	}
	interrupt()
	p.expect(t, cli.Failed, []string{"verify", "--data", p.data}, "clobd recover")
	p.expect(t, cli.Done, []string{"recover", "--data", p.data}, "undone: ", aside, "nothing is lost")
	interrupt()
	p.start(t)
	if !strings.Contains(p.log.String(), "a clobd recover was interrupted") {
		t.Errorf("the log says nothing: %s", p.log.String())
	}
	p.stop(t)
	if err := os.Truncate(newest(t, p.data, "index/OPTIONS-*"), 20); err != nil {
		t.Fatal(err)
	}
	p.start(t) // what is of the index alone is made anew
	p.stop(t)
	p.expect(t, cli.Done, []string{"verify", "--data", p.data}, "all is well")
}
