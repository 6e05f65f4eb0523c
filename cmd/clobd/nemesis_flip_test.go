package main

import (
	"fmt"
	"io/fs"
	"net/http"
	"os"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"testing"
	"time"

	"clobd/cmd/cli"
	"clobd/scripts/setting"
)

// flipper turns bits around in copies of a data folder.
type flipper struct {
	*world
	began   time.Time         // when the folder was done
	whole   string            // the folder in good order
	names   []string          // of its files that hold anything
	answers map[string]string // what a node on it says
	counts  map[string]int    // how it went
	end     uint64            // the last Sequence
	kinds   map[string]int    // flips by the first part of the path
}

// TestFlips flips single bits of all files of a data folder: journal, index, checkpoints, mark,
// catalog, secrets. Either the operator's check finds it, before and after a start, or the node
// does not start, or it says of every book, market and order what it said before. Anything else is
// silent.
func TestFlips(t *testing.T) {
	setting.Full(t, "a node starts for each flip; the simulator's TestFlips stays")
	t.Parallel()
	flips := setting.Size(t, 16, 6)
	f := newFlipper(t)
	f.flip(t, "master.key") // each bit of the key counts: the check finds at least this flip
	for n := 1; n < flips && f.counts["silent"] < 5; n++ {
		f.flip(t, f.names[f.rand.IntN(len(f.names))])
	}
	t.Logf("figures: flips=%d found=%d found_started=%d refused=%d repaired=%d accepted=%d "+
		"with_holes=%d put_back=%d deleted=%d again=%d same=%d told_after=%d silent=%d answers=%d", flips, f.counts["found"],
		f.counts["found_started"], f.counts["refused"], f.counts["repaired"], f.counts["accepted"],
		f.counts["with_holes"], f.counts["put_back"], f.counts["deleted"], f.counts["again"], f.counts["same"],
		f.counts["told_after"], f.counts["silent"], len(f.answers))
	t.Logf("flips of %v", f.kinds)
	if f.counts["found"] == 0 || f.counts["same"] == 0 && flips >= 16 {
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
	f.node.leave(t)
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
		"master.check", "admin.token", "master.key.copy", "master.check.copy", "admin.token.copy"} {
		if !kinds[kind] {
			t.Errorf("there is no %s in %v, %v", kind, f.names, err)
		}
	}
	f.end = f.endOf(t, f.whole)
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
	end := time.Now().Add(patience) // of all: a node that makes its index anew has it soon
	ask := func(x *actor, path string) {
		status, text, err := x.exchange(http.MethodGet, path, nil)
		for time.Now().Before(end) && len(f.node.ended) == 0 && (err != nil || refused(status, err)) {
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
			f.began.Unix()-3600, (f.began.Unix()/60+1)*60)) // within a minute its price still moves
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

// flip flips one bit of the named file and looks what comes of it.
func (f *flipper) flip(t *testing.T, name string) {
	t.Helper()
	f.copy(t)
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
	f.judge(t, name, fmt.Sprintf("bit %d of %s", at, name))
}

// judge looks what came of damage to a file: the check finds it or the answers are the same, and a
// start that is refused has a way out, which its hint names.
func (f *flipper) judge(t *testing.T, name, what string) {
	t.Helper()
	said, code := operate(t, f.node.binary, "verify", "--data", f.node.data)
	found := code == cli.Failed && strings.Contains(said, "finding: ")
	switch {
	case !found && code != cli.Done:
		f.counts["broken"]++
		t.Errorf("%s: verify ends with %d: %s", what, code, said)
		return
	case found:
		f.counts["found"]++
		if strings.Count(said, "finding: ") != strings.Count(said, "hint: ") {
			t.Errorf("%s: a finding without a hint: %s", what, said)
		}
	}
	if f.node.launch(t); !f.ready() {
		f.refused(t, name, what)
		return
	}
	if found {
		f.counts["found_started"]++
		f.told(t, what)
		return
	}
	if f.same(t, what) {
		f.counts["same"]++
	}
	f.node.kill(t)
}

// told is for a node that started all the same: if it answers otherwise than before, the check must
// say so afterwards, too, for nobody may have run it before.
func (f *flipper) told(t *testing.T, what string) {
	t.Helper()
	differs := f.differs(t)
	f.node.kill(t)
	if differs == "" {
		return
	}
	f.counts["told_after"]++
	said, _ := operate(t, f.node.binary, "verify", "--data", f.node.data)
	if !strings.Contains(said, "finding: ") && !strings.Contains(said, "torn off") {
		f.counts["silent"]++
		t.Errorf("SILENT after a start: %s: %s\nverify: %s", what, differs, said)
	}
}

// same reports whether a node that runs answers as the one on the whole folder did.
func (f *flipper) same(t *testing.T, what string) bool {
	t.Helper()
	differs := f.differs(t)
	if differs != "" {
		f.counts["silent"]++
		t.Errorf("SILENT: %s: %s", what, differs)
	}
	return differs == ""
}

// differs is the first answer of a node that is another one than that of the whole folder; "" if
// there is none.
func (f *flipper) differs(t *testing.T) string {
	t.Helper()
	is := f.ask(t)
	for path, text := range f.answers {
		if is[path] != text {
			return fmt.Sprintf("GET %s: %s\nwas %s", path, is[path], text)
		}
	}
	return ""
}

// refused goes the way out that the hint of a refused start names, and holds what it says is lost
// against what is.
func (f *flipper) refused(t *testing.T, name, what string) {
	t.Helper()
	f.counts["refused"]++
	f.node.kill(t)
	log := f.node.log.String()
	_, hint, found := strings.Cut(log, "\nhint: ")
	if !strings.HasPrefix(log, "error: ") && !strings.Contains(log, "\nerror: ") || !found {
		t.Errorf("%s: refused without a hint:\n%s", what, log)
		return
	}
	lossless := true
	switch {
	case strings.Contains(hint, "clobd recover"):
		lossless = f.recovers(t, what)
	case strings.Contains(hint, "put the right one back") || strings.Contains(hint, "restore"):
		f.counts["put_back"]++
		to := filepath.Join(f.node.data, name)
		if err := os.RemoveAll(to); err != nil {
			t.Fatal(err)
		}
		if err := copyDurably(filepath.Join(f.whole, name), to); err != nil {
			t.Fatal(err)
		}
	case strings.Contains(hint, "delete it"):
		f.counts["deleted"]++
		if err := os.RemoveAll(filepath.Join(f.node.data, name)); err != nil {
			t.Fatal(err)
		}
	case strings.HasPrefix(hint, "start again"):
		f.counts["again"]++
	default:
		t.Errorf("%s: refused without a way out:\n%s", what, log)
		return
	}
	if t.Failed() {
		return
	}
	if f.node.launch(t); !f.ready() {
		t.Errorf("%s: refused after the way out:\n%s", what, f.node.log.String())
	} else if lossless {
		f.same(t, what+", made good")
	}
	f.node.kill(t)
}

// claims are what recover says is good and lost.
var claims = regexp.MustCompile(`(?m)^(good: up to Sequence|lost: \d+ acknowledged commands, ` +
	`Sequences (\d+) to) (\d+)`)

// recovers runs recover, and lets it lose what it says has to be lost: that and nothing else is
// lost then. It says whether all that the node answered is still there.
func (f *flipper) recovers(t *testing.T, what string) (lossless bool) {
	t.Helper()
	n := f.node
	said, code := operate(t, n.binary, "recover", "--data", n.data)
	lossless = code == cli.Done
	kind := "repaired"
	if !lossless {
		kind = "accepted"
		again, code := operate(t, n.binary, "recover", "--data", n.data, "--accept-loss")
		if code != cli.Done || !strings.Contains(said, "hint: ") ||
			!strings.Contains(said, "--accept-loss") {
			t.Errorf("%s: recover: %s\n--accept-loss: code %d: %s", what, said, code, again)
			return false
		}
	}
	f.counts[kind]++
	good, first, last := f.end, uint64(0), uint64(0)
	for _, m := range claims.FindAllStringSubmatch(said, -1) {
		at, err := strconv.ParseUint(m[3], 10, 64)
		if m[2] == "" {
			good = at
		} else if last = at; err == nil {
			first, err = strconv.ParseUint(m[2], 10, 64)
		}
		if err != nil {
			t.Fatal(err)
		}
	}
	if !lossless && strings.Contains(said, "lost: nothing") {
		lossless = true
	}
	if lossless && good != f.end || last > 0 && (first != good+1 || last != f.end) {
		t.Errorf("%s: of %d Sequences: %s", what, f.end, said)
	}
	if good > 0 {
		if is, was := n.digestAt(t, n.data, good), n.digestAt(t, f.whole, good); is != was {
			t.Errorf("%s: digest %s at Sequence %d, was %s: %s", what, is, good, was, said)
		}
	}
	if end := f.endOf(t, n.data); end != good {
		t.Errorf("%s: the journal ends with Sequence %d: %s", what, end, said)
	}
	if strings.Contains(said, "unreadable: ") {
		f.counts["with_holes"]++
		return lossless
	}
	n.expect(t, cli.Done, []string{"recover", "--data", n.data}, "nothing is lost")
	return lossless
}

// endOf is the last Sequence of a folder's journal.
func (f *flipper) endOf(t *testing.T, data string) uint64 {
	t.Helper()
	said := f.node.expect(t, cli.Done, []string{"recover", "--data", data}, "good up to Sequence ")
	_, rest, _ := strings.Cut(said, "good up to Sequence ")
	text, _, _ := strings.Cut(rest, ",")
	end, err := strconv.ParseUint(text, 10, 64)
	if err != nil {
		t.Fatalf("%v: %s", err, said)
	}
	return end
}

// TestDamage does worse things than flips to files of a data folder: they are cut, emptied, zeroed
// in part, taken away, or a folder is in their place.
func TestDamage(t *testing.T) {
	setting.Full(t, "several copies of a folder; TestWaysOut stays")
	t.Parallel()
	times := setting.Size(t, 12, 5)
	f := newFlipper(t)
	for n := 0; n < times && !t.Failed(); n++ {
		f.copy(t)
		name := f.names[f.rand.IntN(len(f.names))]
		path := filepath.Join(f.node.data, name)
		about, err := os.Stat(path)
		if err != nil {
			t.Fatal(err)
		}
		at := f.rand.Int64N(about.Size())
		how := []string{"cut", "emptied", "zeroed", "gone", "a folder"}[f.rand.IntN(5)]
		switch how {
		case "cut":
			err = os.Truncate(path, at)
		case "emptied":
			err = os.Truncate(path, 0)
		case "zeroed":
			var b []byte
			if b, err = os.ReadFile(path); err == nil {
				clear(b[at:min(at+4096, about.Size())])
				err = os.WriteFile(path, b, 0o600)
			}
		case "gone":
			err = os.Remove(path)
		default:
			if err = os.Remove(path); err == nil {
				err = os.Mkdir(path, 0o700)
			}
		}
		if err != nil {
			t.Fatal(err)
		}
		f.kinds[how]++
		if f.expendable(name, how) {
			f.counts["gone_with_a_note"]++
			continue
		}
		f.judge(t, name, fmt.Sprintf("%s %s at %d", name, how, at))
	}
	t.Logf("figures: damages=%d found=%d found_started=%d refused=%d repaired=%d accepted=%d "+
		"with_holes=%d put_back=%d deleted=%d again=%d same=%d silent=%d", times, f.counts["found"],
		f.counts["found_started"], f.counts["refused"], f.counts["repaired"], f.counts["accepted"],
		f.counts["with_holes"], f.counts["put_back"], f.counts["deleted"], f.counts["again"], f.counts["same"],
		f.counts["silent"])
	t.Logf("%v", f.kinds)
}

// expendable reports whether a file is made anew where it is missing, so that others have to change
// what they hold: a token.
func (f *flipper) expendable(name, how string) bool {
	return name == "admin.token" && how == "gone"
}

// ready waits until the node is ready; false if it ends, or is not in time.
func (f *flipper) ready() bool {
	for end := time.Now().Add(patience); time.Now().Before(end) && len(f.node.ended) == 0; {
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
