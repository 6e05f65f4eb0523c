package copies

import (
	"bytes"
	"errors"
	"fmt"
	"log/slog"
	"math/rand/v2"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"clobd/scripts/setting"
)

const someID = "0123456789abcdef0123456789abcdef"

// good is a manifest that is taken.
func good() *Manifest {
	return &Manifest{ID: someID, Files: []File{{"mark", 8192}, {"journal/000004.log", 3 << 20},
		{"journal/marker.format-version.000001.013", 0}, {"index/000012.sst", 1},
		{"checkpoints/00000000000000000012.checkpoint", 5}}}
}

// TestHostileManifests: a manifest that would leave the folder, name a file twice, grow without a
// bound or overflow is refused.
func TestHostileManifests(t *testing.T) {
	if err := good().Check(); err != nil {
		t.Fatal(err)
	}
	for _, name := range []string{"", ".", "..", "/", "/etc/passwd", "../mark", "journal", "journal/",
		"journal/..", "journal/../mark", "journal/a/b", "journal/.hidden", "journal//a", "index/LOCK",
		"master.key", "cluster/ca.key", "secrets/a", "mark/a", `journal\a`, "journal/a\x00b", "journal/é",
		"journal/" + strings.Repeat("a", 81), "journal/a\n", "mark", "index/000012.sst"} {
		m := good()
		m.Files = append(m.Files, File{name, 1})
		if err := m.Check(); err == nil {
			t.Errorf("the name %.100q is taken", name)
		}
	}
	for _, size := range []int64{-1, -1 << 63, mostBytes + 1, 1<<63 - 1} {
		m := good()
		m.Files[1].Size = size
		if err := m.Check(); err == nil {
			t.Errorf("%d bytes are taken", size)
		}
	}
	for what, spoil := range map[string]func(m *Manifest){
		"an id with a slash": func(m *Manifest) { m.ID = "../" + m.ID[3:] },
		"a short id":         func(m *Manifest) { m.ID = "12" },
		"no files":           func(m *Manifest) { m.Files = nil },
		"no mark":            func(m *Manifest) { m.Files = m.Files[1:] },
		"no journal":         func(m *Manifest) { m.Files = m.Files[:1] },
		"two halves too much": func(m *Manifest) {
			m.Files[1].Size, m.Files[3].Size = mostBytes/2+1, mostBytes/2
		},
		"too many files": func(m *Manifest) {
			for i := range mostFiles {
				m.Files = append(m.Files, File{fmt.Sprintf("index/%d.sst", i), 0})
			}
		},
	} {
		m, data := good(), t.TempDir()
		spoil(m)
		if err := m.Check(); err == nil {
			t.Errorf("%s: taken", what)
		}
		if _, err := Begin(data, 1, m); err == nil || Resume(data) != nil {
			t.Errorf("%s: begun", what)
		}
	}
}

// pair is a Giver of random files, and the folder of a node that takes a copy.
type pair struct {
	*Giver
	files map[string][]byte
	makes int    // how often a copy was made
	why   string // why none is given
	full  bool
	data  string
}

// chunks is how many chunks the files of a pair have.
const chunks = 8

func newPair(t *testing.T) *pair {
	t.Helper()
	seed := setting.Seed(t, 1)
	r := rand.New(rand.NewPCG(seed, 0))
	p := &pair{files: map[string][]byte{}, data: filepath.Join(t.TempDir(), "data")}
	for name, size := range map[string]int{"mark": 8192, "journal/1.sst": 2*Chunk + 1 + r.IntN(Chunk),
		"journal/2.log": Chunk, "journal/empty": 0, "index/1.sst": Chunk + 1,
		"checkpoints/1.checkpoint": 1 + r.IntN(100)} {
		p.files[name] = make([]byte, size)
		for i := range p.files[name] {
			p.files[name][i] = byte(r.Uint32())
		}
	}
	p.Giver = &Giver{Data: t.TempDir(), Log: slog.New(slog.DiscardHandler),
		Called: func(id uint64) string { return fmt.Sprint(id) },
		Refuse: func() string { return p.why },
		Full:   func() bool { return p.full },
		Make: func(dir string) (err error) {
			p.makes++
			for name, text := range p.files {
				path := filepath.Join(dir, name)
				err = errors.Join(err, os.MkdirAll(filepath.Dir(path), 0o700),
					os.WriteFile(path, text, 0o600))
			}
			return errors.Join(err, os.WriteFile(filepath.Join(dir, "journal", "LOCK"), nil, 0o600))
		}}
	if err := os.Mkdir(p.data, 0o700); err != nil {
		t.Fatal(err)
	}
	p.Clear(false)
	t.Cleanup(func() { p.Clear(true) })
	return p
}

// begin lets member 7 begin to take a copy.
func (p *pair) begin(t *testing.T) *Taker {
	t.Helper()
	a := p.Answer(7, &Question{Begin: true})
	if a.Manifest == nil {
		t.Fatal(a.Refused)
	}
	taker, err := Begin(p.data, 3, a.Manifest)
	if err != nil {
		t.Fatal(err)
	}
	return taker
}

// ask is how member 7 asks.
func (p *pair) ask(q *Question) (*Answer, error) {
	a := p.Answer(7, q)
	if a.Refused != "" {
		return nil, errors.New(a.Refused)
	}
	return a, nil
}

// whole checks that the copy is there, as it was made, and that the giver has removed its own.
func (p *pair) whole(t *testing.T) {
	t.Helper()
	for name, text := range p.files {
		b, err := os.ReadFile(filepath.Join(Whole(p.data), name))
		if err != nil || !bytes.Equal(b, text) {
			t.Errorf("%s: %d bytes of %d, %v", name, len(b), len(text), err)
		}
	}
	if _, err := os.Stat(filepath.Join(Whole(p.data), "journal", "LOCK")); err == nil {
		t.Error("the lock travels")
	}
	if _, err := os.Stat(p.dir()); err == nil {
		t.Error("the giver keeps its copy")
	}
}

// path is where a file of the copy is.
func (p *pair) path(name string) string { return filepath.Join(Whole(p.data), name) }

// TestTake: a copy goes on behind the chunks that are there, wherever it was interrupted; what the
// disk has lost or changed meanwhile comes again, and nothing else.
func TestTake(t *testing.T) {
	p := newPair(t)
	p.begin(t)
	gone, come, again := errors.New("gone"), 0, 0
	for ended := false; !ended; {
		taker, left := Resume(p.data), 2 // chunks of this connection
		if taker == nil || taker.From != 3 || taker.Complete {
			t.Fatalf("resumed %+v", taker)
		}
		last := int64(0)
		err := taker.Run(func(q *Question) (*Answer, error) {
			if taker := Resume(p.data); q.Done && !taker.Complete {
				t.Error("the giver is told before the disk")
			}
			a, err := p.ask(q)
			if err == nil && a.Size > 0 {
				if left--; left < 0 {
					return nil, gone
				}
				come++
			}
			return a, err
		}, func(have int64) {
			if have <= last {
				t.Errorf("%d bytes are there after %d", have, last)
			}
			last = have
		})
		if ended = err == nil; !ended && !errors.Is(err, gone) {
			t.Fatal(err)
		}
		if again++; again == 2 { // three chunks were there, or more
			b, err := os.ReadFile(p.path("index/1.sst"))
			if err != nil {
				t.Fatal(err)
			}
			b[len(b)-1] ^= 1
			if err = errors.Join(os.WriteFile(p.path("index/1.sst"), append(b, 1), 0o600),
				os.Truncate(p.path("checkpoints/1.checkpoint"), 0)); err != nil {
				t.Fatal(err)
			}
		}
	}
	p.whole(t)
	if taker := Resume(p.data); taker == nil || !taker.Complete {
		t.Errorf("it is not known that the copy is complete: %+v", taker)
	}
	if want := chunks + 2; come != want || p.makes != 1 {
		t.Errorf("%d chunks came, not %d, of %d copies", come, want, p.makes)
	}
}

// TestCut: what a crash has left of the note on a copy is none.
func TestCut(t *testing.T) {
	p := newPair(t)
	p.begin(t)
	if err := os.Truncate(filepath.Join(p.data, takenDir, manifestName), 40); err != nil {
		t.Fatal(err)
	}
	if taker := Resume(p.data); taker != nil {
		t.Errorf("goes on with %+v", taker)
	}
	for range 2 {
		if err := Drop(p.data); err != nil {
			t.Errorf("dropped: %v", err)
		}
	}
	if names, err := os.ReadDir(p.data); len(names) > 0 || err != nil {
		t.Errorf("%v %v are left", names, err)
	}
}

// TestDamagedChunks: a chunk that is not what its sum says is asked for again, and is not written;
// one that stays damaged ends the copy.
func TestDamagedChunks(t *testing.T) {
	p := newPair(t)
	taker := p.begin(t)
	for what, damage := range map[string]func(a *Answer){
		"flipped": func(a *Answer) { a.Data[len(a.Data)/2] ^= 4 },
		"sum":     func(a *Answer) { a.Sum[31]++ },
		"no sum":  func(a *Answer) { a.Sum = nil },
		"cut":     func(a *Answer) { a.Data = a.Data[:len(a.Data)-1] },
		"empty":   func(a *Answer) { a.Data, a.Size = nil, 0 },
		"long":    func(a *Answer) { a.Data = append(a.Data, 0) },
	} {
		asked, bad, victim := 0, mostDamaged+1, 2
		run := func() error {
			return taker.Run(func(q *Question) (*Answer, error) {
				a, err := p.ask(q)
				if err == nil && !q.Done && q.File == victim && q.At == 0 {
					if asked++; bad > 0 {
						bad--
						damage(a)
					}
				}
				return a, err
			}, func(int64) {})
		}
		path := p.path(taker.Files[victim].Name)
		if err := os.RemoveAll(path); err != nil {
			t.Fatal(err)
		}
		if err := run(); !errors.Is(err, ErrDamaged) || asked != mostDamaged+1 {
			t.Errorf("%s: asked %d times, %v", what, asked, err)
		}
		if about, err := os.Stat(path); err != nil || about.Size() > 0 {
			t.Errorf("%s: it is written", what)
		}
		if bad = mostDamaged; what == "long" {
			break
		}
	}
	if err := taker.Run(p.ask, func(int64) {}); err != nil {
		t.Fatal(err)
	}
	p.whole(t)
}

// TestDamagedOnce: a chunk that was damaged on its way a few times comes whole in the end.
func TestDamagedOnce(t *testing.T) {
	p := newPair(t)
	bad, asked := mostDamaged, 0
	err := p.begin(t).Run(func(q *Question) (*Answer, error) {
		a, err := p.ask(q)
		if asked++; asked > 3 && bad > 0 {
			bad--
			a.Data[0]++
		}
		return a, err
	}, func(int64) {})
	if want := chunks + mostDamaged + 1; err != nil || asked != want {
		t.Errorf("asked %d times, not %d: %v", asked, want, err)
	}
	p.whole(t)
}

// TestGiver: one copy at a time, for the member that has asked; what can be asked for has bounds;
// nothing is left of it.
func TestGiver(t *testing.T) {
	p := newPair(t)
	p.why = "no room"
	if a := p.Answer(7, &Question{Begin: true}); a.Refused != "no room" || p.makes > 0 {
		t.Errorf("%+v", a)
	}
	p.why = ""
	first := p.Answer(7, &Question{Begin: true}).Manifest
	for what, q := range map[string]*Question{"a file below": {ID: first.ID, File: -1},
		"a file behind": {ID: first.ID, File: len(first.Files)}, "a place below": {ID: first.ID, At: -1},
		"a place behind": {ID: first.ID, At: 1 << 40}, "another copy": {ID: someID}, "none": {}} {
		if a := p.Answer(7, q); a.Refused == "" || a.Size > 0 {
			t.Errorf("%s: %+v", what, a)
		}
	}
	if a := p.Answer(8, &Question{Begin: true}); !strings.Contains(a.Refused, "7 takes a copy here") {
		t.Errorf("a second one: %+v", a)
	}
	if a := p.Answer(8, &Question{ID: first.ID}); a.Refused == "" {
		t.Errorf("the copy of another member: %+v", a)
	}
	if a := p.Answer(7, &Question{ID: first.ID}); a.Size == 0 || p.Given(7) != uint64(a.Size) ||
		p.Given(8) != 0 {
		t.Errorf("%d bytes: %+v", p.Given(7), a)
	}
	if a := p.Answer(7, &Question{Begin: true}); a.Manifest == nil || a.Manifest.ID != first.ID {
		t.Errorf("whoever has lost the answer does not get the same copy: %+v", a)
	}
	p.full = true
	if a := p.Answer(7, &Question{ID: first.ID}); a.Refused != "the disk is full" || exists(p.dir()) {
		t.Errorf("a full disk: %+v", a)
	}
	p.full = false
	if a := p.Answer(7, &Question{Begin: true}); !strings.Contains(a.Refused, "a moment ago") {
		t.Errorf("another one at once: %+v", a)
	}
	p.begun[7] = p.begun[7].Add(-between)
	if next := p.Answer(7, &Question{Begin: true}).Manifest; next.ID == first.ID || p.makes != 2 {
		t.Errorf("%+v", next)
	}
	c := p.lent.Load()
	if p.expire(c); p.lent.Load() != c {
		t.Error("a copy that is taken is removed")
	}
	c.used = time.Now().Add(-unused)
	if p.expire(c); p.lent.Load() != nil || exists(p.dir()) {
		t.Error("a copy that nobody takes stays")
	}
	// As a crash leaves it.
	if err := os.MkdirAll(filepath.Join(p.dir(), "journal"), 0o700); err != nil {
		t.Fatal(err)
	}
	if p.Clear(false); exists(p.dir()) {
		t.Error("what an earlier process has left stays")
	}
	p.Clear(true)
	if a := p.Answer(7, &Question{Begin: true}); a.Refused == "" || exists(p.dir()) {
		t.Errorf("a copy is made behind the end: %+v", a)
	}
}

func exists(path string) bool {
	_, err := os.Stat(path)
	return err == nil
}
