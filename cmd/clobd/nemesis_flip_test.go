package main

import (
	"fmt"
	"io/fs"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"clobd/cmd/cli"
)

// flipper turns bits around in copies of a data folder.
type flipper struct {
	*world
	began   time.Time         // when the folder was done
	whole   string            // the folder in good order
	names   []string          // of its files that hold anything
	answers map[string]string // what a node on it says
	counts  map[string]int    // how it went
	kinds   map[string]int    // flips by the first part of the path
}

// TestFlips flips single bits of all files of a data folder: journal, index, checkpoints, mark,
// catalog, secrets. Either the operator's check finds it, or the node does not start, or it says
// of every book, market and order what it said before. Anything else is silent.
func TestFlips(t *testing.T) {
	flips := size(t, 40)
	f := newFlipper(t)
	for n := 0; n < flips && f.counts["silent"] < 5; n++ {
		f.flip(t)
	}
	t.Logf("figures: flips=%d found=%d refused=%d same=%d silent=%d answers=%d", flips,
		f.counts["found"], f.counts["refused"], f.counts["same"], f.counts["silent"], len(f.answers))
	t.Logf("flips of %v", f.kinds)
	if f.counts["found"] == 0 || f.counts["same"] == 0 && flips >= 40 {
		t.Errorf("%v", f.counts)
	}
}

// newFlipper leaves a folder with all kinds of files, and asks a node on a copy of it everything.
func newFlipper(t *testing.T) *flipper {
	t.Helper()
	f := &flipper{world: newWorldOf(t, 3, 3, "--checkpoint-commands", "200"),
		counts: map[string]int{}, kinds: map[string]int{}}
	for range 3 {
		f.load(t, func() { f.node.kill(t) })
		f.node.start(t)
	}
	f.node.stop(t)
	f.whole, f.began = f.node.data, time.Now()
	f.node.flags = append(f.node.flags, "--log-level", "error")
	kinds := map[string]bool{}
	err := filepath.WalkDir(f.whole, func(path string, e fs.DirEntry, err error) error {
		if err != nil || e.IsDir() {
			return err
		}
		about, err := e.Info()
		if err == nil && about.Size() > 0 {
			name, _ := filepath.Rel(f.whole, path)
			f.names = append(f.names, name)
			kinds[kindOf(name)] = true
		}
		return err
	})
	for _, kind := range []string{"journal", "index", "checkpoints", "mark", "catalog", "master.key",
		"master.check", "admin.token"} {
		if !kinds[kind] {
			t.Errorf("there is no %s in %v, %v", kind, f.names, err)
		}
	}
	f.unharmed(t)
	return f
}

// unharmed asks two nodes on the whole folder: what both say the same, others have to say, too.
func (f *flipper) unharmed(t *testing.T) {
	t.Helper()
	var all [2]map[string]string
	for i := range all {
		f.copy(t)
		time.Sleep(time.Duration(i) * 1100 * time.Millisecond) // another second
		f.node.start(t)
		all[i] = f.ask(t)
		f.node.kill(t)
	}
	f.answers = all[0]
	for path, text := range all[1] {
		if f.answers[path] != text {
			delete(f.answers, path)
			t.Logf("%s is another one after each start", path)
		}
	}
	if orders := len(f.all()); len(f.answers) < orders || orders < 30 {
		t.Errorf("%d answers about %d orders say little", len(f.answers), orders)
	}
}

// kindOf is the first part of a path.
func kindOf(name string) string {
	first, _, _ := strings.Cut(name, string(filepath.Separator))
	return first
}

// copy makes a folder to be spoilt of the whole one.
func (f *flipper) copy(t *testing.T) {
	t.Helper()
	f.node.data = f.whole + ".flipped"
	if err := os.RemoveAll(f.node.data); err != nil {
		t.Fatal(err)
	}
	copyFolder(t, f.whole, f.node.data)
}

// ask is everything that a node says: of books, prices, markets, events, and to the traders of all
// their orders, trades and money. With an empty text no answer came.
func (f *flipper) ask(t *testing.T) map[string]string {
	t.Helper()
	answers := map[string]string{}
	ask := func(x *trader, path string) {
		status, text, err := x.exchange(http.MethodGet, path, nil)
		for end := time.Now().Add(2 * time.Second); time.Now().Before(end) && (err != nil ||
			status == http.StatusServiceUnavailable); {
			time.Sleep(time.Millisecond)
			status, text, err = x.exchange(http.MethodGet, path, nil)
		}
		key := fmt.Sprintf("%x %s", x.Signer.Address[:2], path)
		if answers[key] = fmt.Sprint(status, " ", string(text)); err != nil {
			answers[key] = ""
		}
	}
	first := f.traders[0]
	for n, o := range f.tokens {
		for _, path := range []string{"/book", "/midpoint", "/spread", "/last-trade-price",
			"/tick-size"} {
			ask(first, path+"?token_id="+o.token)
		}
		ask(first, fmt.Sprintf("/prices-history?market=%s&startTs=%d&endTs=%d", o.token,
			f.began.Unix()-3600, f.began.Unix()))
		if n%2 == 0 {
			ask(first, "/clob/markets/"+condition(n/2+1))
			ask(first, fmt.Sprint("/events/", n/2+1))
		}
	}
	for _, x := range f.traders {
		for _, path := range []string{"/data/orders", "/data/trades",
			"/balance-allowance?asset_type=COLLATERAL",
			"/positions?user=" + x.Signer.Address.Hex(), "/activity?user=" + x.Signer.Address.Hex()} {
			ask(x, path)
		}
		for _, i := range x.sent {
			ask(x, "/data/order/"+i.id.Hex())
		}
	}
	return answers
}

// flip flips one bit of one file and looks what comes of it.
func (f *flipper) flip(t *testing.T) {
	t.Helper()
	f.copy(t)
	name := f.names[f.rand.IntN(len(f.names))]
	path := filepath.Join(f.node.data, name)
	b, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	at := f.rand.IntN(8 * len(b))
	b[at/8] ^= 1 << (at % 8)
	if err := os.WriteFile(path, b, 0o600); err != nil {
		t.Fatal(err)
	}
	f.kinds[kindOf(name)]++
	said, code := operate(t, f.node.binary, "verify", "--data", f.node.data)
	switch {
	case code == cli.Failed && strings.Contains(said, "finding: "):
		f.counts["found"]++
		return
	case code != cli.Done:
		f.counts["broken"]++
		t.Errorf("bit %d of %s: verify ends with %d: %s", at, name, code, said)
		return
	}
	if f.node.launch(t); !f.ready() {
		f.counts["refused"]++
		f.node.kill(t)
		return
	}
	is := f.ask(t)
	f.node.kill(t)
	for path, text := range f.answers {
		if is[path] != text {
			f.counts["silent"]++
			t.Errorf("SILENT: bit %d of %s: GET %s: %s\nwas %s", at, name, path, is[path], text)
			return
		}
	}
	f.counts["same"]++
}

// ready waits until the node is ready; false if it ends, or is not in time.
func (f *flipper) ready() bool {
	for end := time.Now().Add(readyTime); time.Now().Before(end) && len(f.node.ended) == 0; {
		if answer, err := http.Get("http://" + f.node.admin + "/readyz"); err == nil {
			answer.Body.Close()
			if answer.StatusCode == http.StatusOK {
				return true
			}
		}
		time.Sleep(2 * time.Millisecond)
	}
	return false
}
