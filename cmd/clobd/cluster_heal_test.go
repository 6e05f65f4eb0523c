package main

import (
	"bytes"
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"net/http"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"clobd/cmd/clobd/client"
	"clobd/cmd/clobd/role"
	"clobd/scripts/setting"
)

// TestClusterFlips flips single bits of the folder of a voter or the gateway while that is down, or
// while it runs: journal, index, checkpoints, mark, catalog, and while it is down secrets and
// papers of the cluster. The node is whole again by itself, has all that was acknowledged, and
// shows what the others show. What it does not read until a scrub is found by that.
func TestClusterFlips(t *testing.T) {
	setting.Full(t, "a node starts for each flip; TestClusterHeals stays")
	t.Parallel()
	f := newFleet(t, 1)
	for _, p := range f.nodes {
		p.flags = append(p.flags, "--checkpoint-commands", "200")
	}
	counts, kinds := map[string]int{}, map[string]int{}
	flips := setting.Size(t, 4, 2)
	for n := range flips {
		leader := f.agree(t)
		victim := leader
		if n%2 == 0 {
			for victim == leader { // a follower, or the gateway
				victim = f.names[f.rand.IntN(len(f.names))]
			}
		}
		p := f.nodes[victim]
		live := n%4 == 3 // under a node that runs
		b, _ := f.burst(t, victim, func() {
			if !live {
				p.kill(t)
			}
		})
		before := ""
		if live {
			before = p.log.String()
		}
		what := f.flipOne(t, p, live, kinds)
		t.Logf("flip %d: %s of %s (leader %s), live %v, %d acknowledged", n, what, victim, leader, live,
			len(b.acks))
		if !live {
			p.launch(t)
		}
		f.becomesWhole(t, p, what)
		count(counts, strings.TrimPrefix(p.log.String(), before))
		f.agree(t)
		if f.check(t); t.Failed() {
			t.Fatalf("%s\n%s", what, f.logs())
		}
	}
	t.Logf("figures: flips=%d healed=%d reindexed=%d checkpoints=%d cut=%d copied=%d same=%d lost=0 "+
		"silent=0 acknowledged=%d", flips, counts["healed"], counts["reindexed"]+counts["remade"],
		counts["checkpoint"], counts["cut"], counts["copied"], counts["same"], answered(f.all()))
	t.Logf("flips of %v", kinds)
}

// TestClusterHeals damages journals in ways that must be noticed: frames of a follower that is
// down, one of a node that leads while it runs, and the whole folder of a gateway. Each is whole
// again by itself, and says how. While nobody leads, who heals waits and says that.
func TestClusterHeals(t *testing.T) {
	t.Parallel()
	f := newFleet(t, 1)
	leader := f.agree(t)
	follower := "a"
	if leader == follower {
		follower = "b"
	}
	for range 3 { // so that there are tables
		f.burst(t, follower, func() { f.nodes[follower].kill(t) })
		f.nodes[follower].start(t)
		f.agree(t)
	}
	p := f.nodes[follower]
	p.kill(t)
	if n := spoilFrames(t, p.data, true); n < 3 {
		t.Fatalf("%d frames in files", n)
	}
	f.agree(t)
	others := slices.DeleteFunc([]string{"a", "b", "c"}, func(name string) bool {
		return name == follower
	})
	for _, name := range others {
		f.nodes[name].kill(t)
	}
	p.launch(t)
	until(t, p, "healing", func(r readiness) bool {
		return !r.Ready && strings.HasPrefix(r.Why, "healing: ") &&
			strings.Contains(r.Why, "nobody can help yet")
	})
	for _, name := range others {
		f.nodes[name].launch(t)
	}
	f.restored(t, p, `"own":`)
	f.check(t)
	f.healLeader(t)
	g := f.nodes["g"]
	g.kill(t)
	if err := os.RemoveAll(filepath.Join(g.data, "journal")); err != nil {
		t.Fatal(err)
	}
	g.launch(t)
	f.restored(t, g, `"own":0`)
	f.agree(t)
	if f.check(t); t.Failed() {
		t.Log(f.logs())
	}
}

// TestClusterHealsLater: two voters of three that know of damage which is not in their way serve
// until the others can do without them, and then heal, one after the other.
func TestClusterHealsLater(t *testing.T) {
	setting.Full(t, "TestClusterHeals stays")
	t.Parallel()
	f := newFleet(t, 1)
	leader, x := f.agree(t), f.traders["g"][0]
	var damaged []*process
	for _, name := range []string{"a", "b", "c"} {
		if p := f.nodes[name]; name != leader {
			p.kill(t)
			if err := role.NoteDamage(p.data, role.JournalPart, errors.New("a scrub")); err != nil {
				t.Fatal(err)
			}
			damaged = append(damaged, p)
		}
	}
	for end := time.Now().Add(patience); ; time.Sleep(20 * time.Millisecond) {
		if s, err := standing(f.nodes[leader]); err == nil && s.Leader == "" {
			break
		} else if time.Now().After(end) {
			t.Fatalf("%s still leads: %+v %v", leader, s, err)
		}
	}
	for _, p := range damaged {
		p.launch(t)
	}
	for _, p := range damaged {
		p.await(t)
	}
	for end := time.Now().Add(patience); ; time.Sleep(20 * time.Millisecond) {
		i := x.draw(t)
		x.sent = append(x.sent, i)
		if status, text, err := x.post(i); err == nil && status == http.StatusOK {
			break
		} else if time.Now().After(end) {
			t.Fatalf("%d %s %v\n%s", status, text, err, f.logs())
		}
	}
	for _, p := range damaged {
		f.restored(t, p, "nobody leads without this member")
	}
	f.agree(t)
	if f.check(t); t.Failed() {
		t.Log(f.logs())
	}
}

// healLeader damages a frame that no start reads of a node that then leads: a scrub finds it. The
// one that has healed is needed for a majority meanwhile.
func (f *fleet) healLeader(t *testing.T) {
	t.Helper()
	name := f.agree(t)
	q, x := f.nodes[name], f.traders["g"][0]
	for range 300 { // more than a block of a table
		i := x.draw(t)
		x.sent = append(x.sent, i)
		if status, text, err := x.post(i); err != nil || status != http.StatusOK {
			t.Fatal(status, text, err)
		}
	}
	f.agree(t)
	q.kill(t)
	q.start(t) // now they are in tables
	f.agree(t)
	q.stop(t) // with a checkpoint
	if spoilFrames(t, q.data, false) != 1 {
		t.Fatal("no frame in files")
	}
	q.start(t)
	if strings.Contains(q.log.String(), "the journal is whole again") {
		t.Log("the start has found it")
		f.restored(t, q, "")
		return
	}
	post := func(p *process, path string) (string, error) {
		o := client.Operator{Admin: p.admin, Data: p.data}
		return o.Post(path, map[string]string{}, time.Minute)
	}
	for end := time.Now().Add(patience); ; {
		leader := f.agree(t)
		if leader == name {
			break
		}
		if time.Now().After(end) {
			t.Fatalf("%s never leads", name)
		}
		_, _ = post(f.nodes[leader], "/admin/cluster/step-down") // it may not have begun to, or be over
	}
	if text, err := post(q, "/admin/scrub"); err != nil || strings.Contains(text, `"damaged":0`) {
		t.Fatal(text, err)
	}
	f.restored(t, q, "this member makes it anew as soon as the others can do without it")
	if f.agree(t) == name {
		t.Errorf("%s leads again at once", name)
	}
}

// restored waits until a node's log has the words of a healed part and the node is ready.
func (f *fleet) restored(t *testing.T, p *process, words string) {
	t.Helper()
	for end := time.Now().Add(patience); ; time.Sleep(10 * time.Millisecond) {
		said := p.log.String()
		if strings.Contains(said, "the journal is whole again") && strings.Contains(said, words) {
			break
		}
		if time.Now().After(end) || len(p.ended) > 0 {
			t.Fatalf("not whole again, or not %q:\n%s", words, said)
		}
	}
	until(t, p, "ready", func(r readiness) bool { return r.Ready })
	_, text := get(t, p.admin, "/metrics")
	if !strings.Contains(text, "\nclobd_cluster_heals_total 1\n") ||
		!strings.Contains(text, "\nclobd_cluster_healing 0\n") {
		t.Error("the metrics do not tell of it")
	}
	for _, name := range []string{"journal.damaged", "journal.salvage", "journal.new", "lost-healed"} {
		if exists(filepath.Join(p.data, name)) {
			t.Errorf("%s is still there", name)
		}
	}
	f.agree(t)
}

// spoilFrames makes every third frame in the tables of a journal illegible, or the first one of the
// largest table only, and returns how many.
func spoilFrames(t *testing.T, data string, many bool) (spoilt int) {
	t.Helper()
	tables, err := filepath.Glob(filepath.Join(data, "journal", "*.sst"))
	if err != nil {
		t.Fatal(err)
	}
	if !many {
		tables = []string{slices.MaxFunc(tables, func(a, b string) int {
			return cmp.Compare(size(t, a), size(t, b))
		})}
	}
	for _, path := range tables {
		b, err := os.ReadFile(path)
		if err != nil {
			t.Fatal(err)
		}
		file, err := os.OpenFile(path, os.O_WRONLY, 0)
		if err != nil {
			t.Fatal(err)
		}
		for at, n := 0, 0; ; n++ {
			next := bytes.Index(b[at:], []byte("CLOF"))
			if next < 0 {
				break
			}
			at += next + 4
			if n%3 > 0 || !many && n > 0 {
				continue
			}
			if spoilt++; err == nil {
				_, err = file.WriteAt([]byte("XXXX"), int64(at-4))
			}
		}
		if err = errors.Join(err, file.Close()); err != nil {
			t.Fatal(err)
		}
	}
	return spoilt
}

// size is that of a file.
func size(t *testing.T, path string) int64 {
	t.Helper()
	about, err := os.Stat(path)
	if err != nil {
		t.Fatal(err)
	}
	return about.Size()
}

// count notes what a node says to have done about a flip.
func count(counts map[string]int, said string) {
	for _, c := range [][2]string{{"healed", "the journal is whole again"},
		{"reindexed", "the index is made anew"}, {"remade", "the node starts again and makes it anew"},
		{"copied", "a file was damaged and is whole again"}, {"copied", "the copy of a file was damaged"},
		{"checkpoint", "checkpoint passed over"}, {"cut", "the catalog's records are damaged"}} {
		if strings.Contains(said, c[1]) {
			counts[c[0]]++
			return
		}
	}
	counts["same"]++
}

// flipOne flips one bit of one file of a node.
func (f *fleet) flipOne(t *testing.T, p *process, live bool, kinds map[string]int) string {
	t.Helper()
	var names, twice []string
	err := filepath.WalkDir(p.data, func(path string, e fs.DirEntry, err error) error {
		if errors.Is(err, fs.ErrNotExist) || err == nil && e.IsDir() { // it was replaced just now
			return nil
		} else if err != nil {
			return err
		}
		name, err := filepath.Rel(p.data, path)
		switch about, e := e.Info(); kindOf(name) {
		case "journal", "index", "checkpoints", "mark", "catalog":
			if e == nil && about.Size() > 0 && (!live || kindOf(name) != "catalog") {
				names = append(names, name)
			}
		default: // what a node reads at its start only, and keeps twice
			if e == nil && !live && exists(p.data, strings.TrimSuffix(name, ".copy")+".copy") {
				twice = append(twice, name)
			}
		}
		return err
	})
	if err != nil || len(names) == 0 {
		t.Fatal(names, err)
	}
	if len(twice) > 0 && f.rand.IntN(4) == 0 {
		names = twice
	}
	for range 100 {
		name := names[f.rand.IntN(len(names))]
		if f.rand.IntN(2) == 0 && kindOf(name) != "journal" {
			continue // rather the journal
		}
		file, err := os.OpenFile(filepath.Join(p.data, name), os.O_RDWR, 0)
		if errors.Is(err, fs.ErrNotExist) {
			continue
		}
		var one [1]byte
		at := int64(0)
		if err == nil {
			var about fs.FileInfo
			if about, err = file.Stat(); err == nil {
				at = f.rand.Int64N(8 * about.Size())
				_, err = file.ReadAt(one[:], at/8)
			}
			one[0] ^= 1 << (at % 8)
			if err == nil {
				_, err = file.WriteAt(one[:], at/8)
			}
			err = errors.Join(err, file.Close())
		}
		if err != nil {
			t.Fatal(err)
		}
		kinds[kindOf(name)]++
		return fmt.Sprintf("bit %d of %s", at, name)
	}
	t.Fatal("no file stays")
	return ""
}

// becomesWhole waits until a node is ready and a scrub of it finds nothing.
func (f *fleet) becomesWhole(t *testing.T, p *process, what string) {
	t.Helper()
	o := client.Operator{Admin: p.admin, Data: p.data}
	var last string
	for end := time.Now().Add(patience); time.Now().Before(end); time.Sleep(20 * time.Millisecond) {
		if len(p.ended) > 0 {
			t.Fatalf("%s: the node has ended:\n%s", what, p.log.String())
		}
		answer, err := http.Get("http://" + p.admin + "/readyz")
		if err != nil {
			continue
		}
		answer.Body.Close()
		if answer.StatusCode != http.StatusOK {
			continue
		}
		text, err := o.Post("/admin/scrub", map[string]string{}, time.Minute)
		var note scrubNote
		if err == nil {
			err = json.Unmarshal([]byte(text), &note)
		}
		if err != nil {
			last = err.Error()
			continue
		}
		if note.Damaged == 0 {
			return
		}
		last = strings.Join(note.Damages, "; ")
		if strings.Contains(last, "high-water mark") { // the next orders bring it up to date
			x := f.traders["g"][0]
			i := x.draw(t)
			x.sent = append(x.sent, i)
			_, _, _ = x.post(i)
		}
		if strings.Contains(last, "checkpoint ") { // the next one takes its place, as time goes by
			_, _ = o.Post("/admin/checkpoint", map[string]string{}, time.Minute)
		}
	}
	t.Fatalf("%s: not whole again: %s\n%s", what, last, p.log.String())
}
