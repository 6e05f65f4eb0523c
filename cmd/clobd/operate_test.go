package main

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"clobd/cmd/cli"
	"clobd/scripts/setting"
)

// operate runs a command of the program to its end, and returns all that it said, and its code.
func operate(t *testing.T, binary string, args ...string) (said string, code int) {
	t.Helper()
	output, err := exec.Command(binary, args...).CombinedOutput()
	var ended *exec.ExitError
	if err != nil && !errors.As(err, &ended) {
		t.Fatal(err)
	} else if ended != nil {
		code = ended.ExitCode()
	}
	return string(output), code
}

// expect runs a command that must end with a code and say all of some words.
func (p *process) expect(t *testing.T, code int, args []string, words ...string) string {
	t.Helper()
	said, got := operate(t, p.binary, args...)
	if got != code {
		t.Errorf("clobd %s: code %d, want %d\n%s", strings.Join(args, " "), got, code, said)
	}
	for _, word := range words {
		if !strings.Contains(said, word) {
			t.Errorf("clobd %s: nothing of %q in\n%s", strings.Join(args, " "), word, said)
		}
	}
	return said
}

// readJSON reads the object that a command has printed. One that takes long says so before.
func readJSON(said string, to any) error {
	return json.NewDecoder(strings.NewReader(said[max(strings.Index(said, "{"), 0):])).Decode(to)
}

// digestAt is the digest of a folder's state after a Sequence, 0 for the end.
func (p *process) digestAt(t *testing.T, data string, seq uint64) string {
	t.Helper()
	said := p.expect(t, cli.Done, []string{"inspect", "--data", data, "--state", "--json",
		"--until", fmt.Sprint(seq)})
	var state struct {
		Sequence uint64
		Digest   string
	}
	if err := readJSON(said, &state); err != nil ||
		seq != 0 && state.Sequence != seq || len(state.Digest) != 16 {
		t.Errorf("state of %s at %d: %s, %v", data, seq, said, err)
	}
	return state.Digest
}

// copyFolder copies a folder with its permissions.
func copyFolder(t *testing.T, from, to string) string {
	t.Helper()
	if err := copyTree(from, to, nil); err != nil {
		t.Fatal(err)
	}
	return to
}

// TestBackup: backups of a node that trades end each at one Sequence, with its state; restored
// elsewhere they are that state, and can be started.
func TestBackup(t *testing.T) {
	t.Parallel()
	rounds := setting.Size(t, 2, 1)
	w := newWorldOf(t, 4, 3, "--checkpoint-commands", "300")
	n, folder := w.node, t.TempDir()
	var notes []backupNote
	for i := range rounds {
		to := filepath.Join(folder, fmt.Sprint("backup", i))
		w.load(t, func() {
			said := n.expect(t, cli.Done, []string{"backup", "--data", n.data, "--admin", n.admin,
				"--to", to}, "it does not hold master.key")
			var note backupNote
			if err := readJSON(said, &note); err != nil {
				t.Fatal(err)
			}
			notes = append(notes, note)
		})
	}
	n.expect(t, cli.Failed, []string{"backup", "--data", n.data, "--admin", n.admin, "--to",
		notes[0].To}, "not empty")
	n.expect(t, cli.Failed, []string{"verify", "--data", n.data}, "in use by process",
		"hint: stop that one first", "clobd backup")
	keys := filepath.Join(folder, "keys")
	n.expect(t, cli.Done, []string{"backup", "--data", n.data, "--admin", n.admin, "--keys",
		"--to", keys}, `"keys":true`, "it holds master.key")
	n.stop(t)
	for i, note := range notes {
		restored := filepath.Join(folder, fmt.Sprint("restored", i))
		n.expect(t, cli.Done, []string{"verify", "--data", note.To, "--signatures"}, "all is well")
		n.expect(t, cli.Done, []string{"restore", "--from", note.To, "--data", restored},
			"restored to", "no master.key")
		for _, data := range []string{n.data, note.To, restored} {
			at := uint64(note.Sequence)
			if got := n.digestAt(t, data, at); got != note.Digest || at == 0 {
				t.Errorf("%s at %d: digest %s, the backup says %s", data, at, got, note.Digest)
			}
		}
		n.expect(t, cli.Failed, []string{"restore", "--from", note.To, "--data", restored},
			"not empty")
	}
	t.Logf("figures: backups=%d", rounds)
	w.startRestored(t, filepath.Join(folder, "restored0"), keys)
}

// startRestored starts a node on what was restored: not without the secret of its API keys.
func (w *world) startRestored(t *testing.T, restored, keys string) {
	t.Helper()
	n := w.node
	n.expect(t, cli.Failed, []string{"serve", "--data", restored, "--listen", n.listen,
		"--admin", n.admin}, "master.key", "hint: put the right one back")
	copied := filepath.Join(restored, "master.key")
	if err := os.WriteFile(copied, []byte(strings.Repeat("ab", 32)), 0o600); err != nil {
		t.Fatal(err)
	}
	n.expect(t, cli.Failed, []string{"serve", "--data", restored, "--listen", n.listen,
		"--admin", n.admin}, "not the one that the API keys", "hint: put the right one back")
	err := os.Remove(copied)
	if err == nil {
		err = copyDurably(filepath.Join(keys, "master.key"), copied)
	}
	if err != nil {
		t.Fatal(err)
	}
	n.data = restored
	n.start(t)
	w.settle(t)
	n.stop(t)
	n.expect(t, cli.Done, []string{"verify", "--data", restored}, "all is well")
}

// TestVerifyProgram: a folder that a node has left, in order or killed, is good; damage of any part
// of it is not.
func TestVerifyProgram(t *testing.T) {
	t.Parallel()
	w := newWorld(t, 4)
	n := w.node
	w.load(t, func() { n.stop(t) })
	n.start(t)
	w.load(t, func() { n.kill(t) })
	n.expect(t, cli.Done, []string{"verify", "--data", n.data, "--signatures"}, "all is well",
		" 0 wrong", "secret       master.key")
	n.start(t)
	n.leave(t)
	n.expect(t, cli.Done, []string{"verify", "--data", n.data}, "all is well")
	n.expect(t, cli.Failed, []string{"verify", "--data", n.data, "--signatures", "--chain-id",
		"137"}, "exchange that is not known")
	n.expect(t, cli.Usage, []string{"verify", "--nonsense"})
	n.expect(t, cli.Failed, []string{"verify", "--data", t.TempDir()}, "hint: --data")
	for _, c := range []struct{ pattern, where string }{
		{"journal/*.log", "finding: "}, {"checkpoints/*", "checkpoints/0"}, {"catalog/*.log", "catalog"},
		{"master.key", "master.key"}, {"mark", "mark"}, {"index/*.sst", "index"},
	} {
		data := copyFolder(t, n.data, filepath.Join(t.TempDir(), "data"))
		names, err := filepath.Glob(filepath.Join(data, c.pattern))
		if err != nil || len(names) == 0 {
			t.Fatalf("%s: %v, %v", c.pattern, names, err)
		}
		name := names[len(names)-1]
		b, err := os.ReadFile(name)
		if err != nil {
			t.Fatal(err)
		}
		if c.pattern == "mark" {
			b = b[:20]
		} else { // what follows is reserved for a log
			b[len(bytes.TrimRight(b, "\x00"))/4] ^= 1
		}
		if err := os.WriteFile(name, b, 0o600); err != nil {
			t.Fatal(err)
		}
		n.expect(t, cli.Failed, []string{"verify", "--data", data}, "finding: ", c.where,
			"hint: ", " findings")
	}
}

// TestRecoverProgram: a start without what was acknowledged is refused, recover tells what is lost,
// and only accepting it helps.
func TestRecoverProgram(t *testing.T) {
	t.Parallel()
	w := newWorld(t, 4)
	n := w.node
	n.expect(t, cli.Failed, []string{"recover", "--data", n.data}, "in use by process")
	w.load(t, func() { n.kill(t) })
	n.expect(t, cli.Done, []string{"recover", "--data", n.data}, "nothing is lost")
	n.expect(t, cli.Done, []string{"checkpoint", "--data", n.data}, "digest ")
	if len(checkpoints(t, n.data)) != 1 {
		t.Error("no checkpoint was written")
	}
	n.expect(t, cli.Done, []string{"recover", "--data", n.data, "--index"}, "made anew: up to")
	n.start(t)
	w.load(t, func() { n.kill(t) })
	logs, err := filepath.Glob(filepath.Join(n.data, "journal", "*.log"))
	if err != nil || len(logs) == 0 {
		t.Fatal(logs, err)
	}
	last := logs[len(logs)-1]
	b, err := os.ReadFile(last)
	if err == nil { // the rest of it is reserved
		err = os.Truncate(last, int64(len(bytes.TrimRight(b, "\x00"))/2))
	}
	if err != nil {
		t.Fatal(err)
	}
	serve := []string{"serve", "--data", n.data, "--listen", n.listen, "--admin", n.admin,
		"--disk-ballast", "0"}
	n.expect(t, cli.Broken, serve, "acknowledged commands are lost", "--accept-loss")
	n.expect(t, cli.Failed, []string{"verify", "--data", n.data}, "are lost, Sequences ")
	for range 2 {
		n.expect(t, cli.Failed, []string{"recover", "--data", n.data}, "refused: ",
			"good: up to Sequence ", "acknowledged commands, Sequences ", "nothing was changed")
	}
	n.expect(t, cli.Done, []string{"recover", "--data", n.data, "--accept-loss"}, "accepted: ",
		"lost-")
	n.expect(t, cli.Done, []string{"verify", "--data", n.data}, "all is well")
	n.start(t)
	w.settle(t)
	n.stop(t)
	n.expect(t, cli.Usage, []string{"recover", "--accept-loss", "--index"}, "both")
}

// TestInspect prints what the journal has of an order and its trade, and finds where two folders
// part.
func TestInspect(t *testing.T) {
	t.Parallel()
	w := newWorld(t, 1)
	n, x := w.node, w.traders[0]
	w.settle(t)
	order := x.sent[0]
	n.stop(t)
	other := copyFolder(t, n.data, filepath.Join(t.TempDir(), "other"))
	wallet := x.Signer.Address.Hex()
	said := n.expect(t, cli.Done, []string{"inspect", "--data", n.data, "--order",
		order.id.Hex()}, " place ", "wallet=1/"+wallet, "    placed",
		fmt.Sprintf("size=%d", order.shares))
	if strings.Count(said, " place ") != 1 {
		t.Errorf("one order was placed: %s", said)
	}
	said = n.expect(t, cli.Done, []string{"inspect", "--data", n.data, "--wallet", wallet,
		"--json", "--until", "1000"})
	for i, line := range strings.Split(strings.TrimSpace(said), "\n") {
		var r struct {
			Sequence uint64
			Command  map[string]string
			Events   []map[string]string
		}
		if err := json.Unmarshal([]byte(line), &r); err != nil || len(r.Events) == 0 ||
			i == 0 && (r.Command["kind"] != "deposit" || r.Command["address"] != wallet) {
			t.Errorf("line %d: %s, %v", i, line, err)
		}
	}
	n.expect(t, cli.Done, []string{"inspect", "--data", n.data, "--diff", other}, "the same")
	n.start(t)
	n.stop(t)
	n.expect(t, cli.Failed, []string{"inspect", "--data", n.data, "--diff", other},
		other+" ends with Sequence ")
	n.data, other = other, n.data
	n.start(t)
	n.stop(t)
	n.expect(t, cli.Failed, []string{"inspect", "--data", n.data, "--diff", other}, "differs",
		"started epoch=2")
	n.expect(t, cli.Failed, []string{"inspect", "--data", n.data, "--wallet", "0x" +
		strings.Repeat("9", 40)}, "no record")
	n.expect(t, cli.Usage, []string{"inspect", "--from", "9", "--until", "3", "--order", "5",
		"--tx", "7"}, "--from lies behind", "--order: ", "--tx 7")
}

// TestDiskGuard: on a disk that fills orders are refused while it can still be written, reads and
// cancels go on, and orders are taken again without a restart when there is room.
func TestDiskGuard(t *testing.T) {
	t.Parallel()
	small := filepath.Join(t.TempDir(), "small")
	if err := os.MkdirAll(small, 0o700); err != nil {
		t.Fatal(err)
	}
	if err := syscall.Mount("tmpfs", small, "tmpfs", 0, "size=192m"); err != nil {
		t.Skipf("SKIPPED: no disk of its own can be mounted: %v", err)
	}
	t.Cleanup(func() {
		if err := syscall.Unmount(small, syscall.MNT_DETACH); err != nil {
			t.Error(err)
		}
	})
	w := newWorldOf(t, 2, 3, "--disk-reserve", "24MiB", "--disk-ballast", "8MiB")
	w.node.stop(t)
	w.node.data = copyFolder(t, w.node.data, filepath.Join(small, "data"))
	w.node.start(t)
	ballast := filepath.Join(w.node.data, "ballast")
	for range setting.Size(t, 2, 1) {
		w.settle(t)
		waitFor(t, "the ballast", func() bool { return exists(ballast) })
		rests := w.traders[0].sent[len(w.traders[0].sent)-1]
		filler := w.fill(t, small)
		w.closed(t)
		waitFor(t, "room from the ballast", func() bool {
			is := w.disk(t)
			return !exists(ballast) && is.Ballast == 0 && is.Free > 6<<20
		})
		w.node.warns(t, "clobd_disk_state", "the disk is full: only cancels are taken")
		w.crowded(t, rests)
		if err := os.Remove(filler); err != nil {
			t.Fatal(err)
		}
		w.settle(t)
		if is := w.disk(t); is.State != "plenty" || is.Reserve != 24<<20 {
			t.Errorf("with room again: %+v", is)
		}
	}
	w.node.stop(t)
	w.node.expect(t, cli.Done, []string{"verify", "--data", w.node.data}, "all is well")
}

// crowded asks a node on a full disk for all that it may do, and all that it may not. An order that
// rests is cancelled.
func (w *world) crowded(t *testing.T, rests *intent) {
	t.Helper()
	x := rests.trader
	const refusal = `{"error":"Trading is currently cancel-only. New orders are not accepted, but ` +
		`cancels are allowed.","code":"cancel_only","retry_after_seconds":30}`
	i, one, two := x.draw(t), x.draw(t), x.draw(t)
	status, text, _ := x.post(i)
	if status != http.StatusServiceUnavailable || text != refusal {
		t.Errorf("an order: %d %s", status, text)
	}
	status, text, _ = x.postAll([]*intent{one, two})
	if status != http.StatusServiceUnavailable || text != refusal {
		t.Errorf("a bundle: %d %s", status, text)
	}
	if status, text, err := x.postAgain(rests); status != http.StatusOK || err != nil {
		t.Errorf("an order that was placed before: %d %s %v", status, text, err)
	}
	status, text, err := x.cancel(rests)
	r, known, lookErr := x.lookup(rests)
	if status != http.StatusOK || err != nil || lookErr != nil || !known || r.Status == "LIVE" {
		t.Errorf("a cancel: %d %s, %v; then %+v, %v", status, text, err, r, lookErr)
	}
	if _, known, err := x.lookup(i); known || err != nil {
		t.Errorf("the refused order is there: %v", err)
	}
}

// closed waits until the node takes nothing but cancels. What it says of its disk comes a moment
// before.
func (w *world) closed(t *testing.T) {
	t.Helper()
	waitFor(t, "cancel-only", func() bool { return w.disk(t).State == "cancel-only" })
	x := w.traders[0]
	waitFor(t, "a refusal", func() bool {
		i := x.draw(t)
		x.sent = append(x.sent, i)
		_, text, _ := x.post(i)
		return strings.Contains(text, "cancel-only")
	})
}

// disk is what readyz says of the disk. A node whose writes have just stood still is not ready.
func (w *world) disk(t *testing.T) (is diskStatus) {
	t.Helper()
	waitFor(t, "readyz", func() bool {
		answer, err := http.Get("http://" + w.node.admin + "/readyz")
		if err != nil {
			t.Fatal(err)
		}
		defer answer.Body.Close()
		told := struct{ Disk *diskStatus }{&is}
		if err := json.NewDecoder(answer.Body).Decode(&told); err != nil {
			t.Fatalf("readyz: %d %v", answer.StatusCode, err)
		}
		return answer.StatusCode == http.StatusOK
	})
	return is
}

// waitFor waits until something has come.
func waitFor(t *testing.T, what string, come func() bool) {
	t.Helper()
	for end := time.Now().Add(patience); !come(); time.Sleep(5 * time.Millisecond) {
		if time.Now().After(end) {
			t.Fatalf("%s: it does not come", what)
		}
	}
}
