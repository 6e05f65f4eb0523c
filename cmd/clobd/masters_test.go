package main

import (
	"bytes"
	"encoding/hex"
	"log/slog"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"runtime/debug"
	"strings"
	"syscall"
	"testing"

	"clobd/bench/trader"
	"clobd/ingress/auth"
	"clobd/journal/disk"
	"clobd/scripts/setting"
)

// run runs a command of the node's binary and returns what it says.
func (p *process) run(args ...string) (string, error) {
	said, err := exec.Command(p.binary, args...).CombinedOutput()
	return string(said), err
}

// again is a client with the wallet of x that derives its key now.
func (x *actor) again(t *testing.T, url string, key [32]byte) *actor {
	t.Helper()
	client, err := trader.NewClient(url, auth.ChainTest, key)
	if err == nil {
		err = client.Derive()
	}
	if err != nil {
		t.Fatal(err)
	}
	return &actor{Client: client, t: t, outcomes: x.outcomes, rand: x.rand}
}

// rotation is a node whose master secret changes, and a wallet that trades meanwhile.
type rotation struct {
	*process
	t          *testing.T
	wallet     *actor
	old, fresh *actor // with keys of the secret before and after
}

// client derives the wallet's key now.
func (r *rotation) client() *actor {
	r.t.Helper()
	return r.wallet.again(r.t, "http://"+r.listen, [32]byte{31: 7})
}

// works posts an order, and cancels it, or must be refused.
func (r *rotation) works(x *actor, want int, when string) {
	r.t.Helper()
	x.Host.CloseIdleConnections() // those of the node before
	i := x.draw(r.t)
	status, text, err := x.post(i)
	if err == nil && want == 200 && status == 200 {
		status, text, err = x.cancel(i)
	}
	if err != nil || status != want {
		r.t.Errorf("%s: %d %s %v", when, status, text, err)
	}
}

// hangUp sends the node a SIGHUP and waits until it has said something.
func (r *rotation) hangUp(words string) {
	r.t.Helper()
	if err := r.cmd.Process.Signal(syscall.SIGHUP); err != nil {
		r.t.Fatal(err)
	}
	r.awaitLog(r.t, words)
}

// operate runs clobd secret; refused is what it must say instead of doing it, or nothing.
func (r *rotation) operate(command, refused string) {
	r.t.Helper()
	said, err := r.run("secret", command, "--data", r.data)
	if (err == nil) != (refused == "") || !strings.Contains(said, refused) {
		r.t.Fatalf("secret %s: %v %s", command, err, said)
	}
}

// TestRotation: beside trading a new master secret takes over. Old keys go on, new ones derive from
// it, and both are the same account. Once the old secret is retired its keys end, also after a
// restart; the new ones go on.
func TestRotation(t *testing.T) {
	t.Parallel()
	setting.Full(t, "keys are rotated over several starts")
	folder := t.TempDir()
	file := filepath.Join(folder, "catalog.jsonl")
	tokens := writeCatalog(t, file, 1)
	p := newProcess(t, buildNode(t), folder, "--catalog", file, "--faucet", "1000")
	p.start(t)
	r := &rotation{process: p, t: t,
		wallet: &actor{outcomes: tokens, rand: rand.New(rand.NewPCG(1, 2))}}
	r.old = r.client()
	r.works(r.old, 200, "before")
	r.operate("retire", "only one")
	r.operate("rotate", "")
	r.operate("rotate", "not in use yet")
	if r.client().Trio != r.old.Trio {
		t.Error("a new key without a SIGHUP")
	}
	r.hangUp(`"newest":2`)
	r.fresh = r.client()
	one, two := r.old.Trio, r.fresh.Trio
	if one.Key == two.Key || one.Passphrase[:2] != "01" || two.Passphrase[:2] != "02" ||
		one.Passphrase[2:50] != two.Passphrase[2:50] {
		t.Errorf("keys %v and %v", one, two)
	}
	r.works(r.old, 200, "old key beside the new one")
	r.works(r.fresh, 200, "new key beside the old one")
	i := r.old.draw(t)
	if status, text, err := r.old.post(i); err != nil || status != 200 {
		t.Fatalf("%d %s %v", status, text, err)
	}
	if status, text, err := r.fresh.cancel(i); err != nil || status != 200 {
		t.Errorf("one account, two keys: %d %s %v", status, text, err)
	}
	p.leave(t)
	p.start(t)
	r.works(r.old, 200, "old key after a restart")
	r.works(r.fresh, 200, "new key after a restart")
	r.retire()
	r.damage()
}

// retire ends the old secret.
func (r *rotation) retire() {
	r.operate("retire", "")
	if exists(r.data, "master.key") || exists(r.data, "master.key.copy") {
		r.t.Error("the retired secret is still there")
	}
	r.hangUp(`"oldest":2`)
	r.works(r.old, 401, "old key after its secret")
	r.works(r.fresh, 200, "new key after the old secret")
	r.leave(r.t)
	if said, err := r.run("verify", "--data", r.data); err != nil ||
		!strings.Contains(said, "master-2.key") {
		r.t.Errorf("verify: %v %s", err, said)
	}
	r.start(r.t)
	r.works(r.old, 401, "old key after a restart without its secret")
	r.works(r.fresh, 200, "new key after a restart")
}

// damage makes a third secret that is none: those in use stay, but a start is refused, also if the
// third is good and the second is lost.
func (r *rotation) damage() {
	r.operate("rotate", "")
	third := filepath.Join(r.data, "master-3.key")
	if err := os.WriteFile(third, []byte("nothing"), 0o600); err != nil {
		r.t.Fatal(err)
	}
	r.hangUp("those in use stay")
	r.works(r.fresh, 200, "beside a damaged secret")
	r.stop(r.t)
	if err := os.Remove(filepath.Join(r.data, "master-2.key")); err != nil {
		r.t.Fatal(err)
	}
	for _, text := range []string{"nothing", strings.Repeat("ab", 32)} {
		if err := os.WriteFile(third, []byte(text), 0o600); err != nil {
			r.t.Fatal(err)
		}
		if code, said := refusedStart(r.t, r.binary, "--data", r.data); code != 1 ||
			!strings.Contains(said, "hint: put the right one back") {
			r.t.Errorf("secret %q, and the old one lost: code %d %s", text[:2], code, said)
		}
	}
}

// TestRevokedInBothSecrets: a number that is revoked is revoked for the keys of every secret.
func TestRevokedInBothSecrets(t *testing.T) {
	folder := t.TempDir()
	p := newProcess(t, buildNode(t), folder, "--faucet", "1000")
	p.start(t)
	url := "http://" + p.listen
	key := [32]byte{31: 8}
	wallet := &actor{rand: rand.New(rand.NewPCG(1, 2))}
	old := wallet.again(t, url, key)
	if said, err := p.run("secret", "rotate", "--data", p.data); err != nil {
		t.Fatalf("rotate: %v %s", err, said)
	}
	if err := p.cmd.Process.Signal(syscall.SIGHUP); err != nil {
		t.Fatal(err)
	}
	p.awaitLog(t, `"newest":2`)
	fresh := wallet.again(t, url, key)
	for _, x := range []*actor{old, fresh} {
		if status, body, err := x.exchange("GET", "/auth/api-keys", nil); err != nil || status != 200 ||
			!bytes.Contains(body, []byte(old.Trio.Key)) {
			t.Errorf("before: %d %s %v", status, body, err)
		}
	}
	if status, body, err := old.exchange("DELETE", "/auth/api-key", nil); err != nil || status != 200 {
		t.Errorf("revoke: %d %s %v", status, body, err)
	}
	for _, x := range []*actor{old, fresh} {
		if status, body, err := x.exchange("GET", "/auth/api-keys", nil); err != nil || status != 401 {
			t.Errorf("after: %d %s %v", status, body, err)
		}
	}
	p.stop(t)
}

// TestReplacedFileKeepsOwner: a file that root replaces stays that of the node's user, who must be
// able to read it.
func TestReplacedFileKeepsOwner(t *testing.T) {
	if os.Geteuid() != 0 {
		t.Skip("SKIPPED: only root can give files away")
	}
	path := filepath.Join(t.TempDir(), secretCheckName)
	owner := func() uint32 {
		state, err := os.Stat(path)
		if err != nil {
			t.Fatal(err)
		}
		return state.Sys().(*syscall.Stat_t).Uid
	}
	if err := disk.Replace(path, []byte("1 a\n2 b\n")); err != nil || owner() != 0 {
		t.Fatalf("a new file: owner %d, %v", owner(), err)
	}
	if err := os.Chown(path, 12345, 12345); err != nil {
		t.Fatal(err)
	}
	if err := disk.Replace(path, []byte("2 b\n")); err != nil || owner() != 12345 {
		t.Errorf("owner %d, %v", owner(), err)
	}
	if text, err := os.ReadFile(path); err != nil || string(text) != "2 b\n" {
		t.Errorf("%q %v", text, err)
	}
}

// TestSecretsLeaveTheHeap: after secrets were made, read, read again and refused, a dump of all
// objects on the heap has none of them, neither as bytes nor as hex digits.
func TestSecretsLeaveTheHeap(t *testing.T) {
	defer debug.SetGCPercent(debug.SetGCPercent(-1)) // what was freed stays in the dump
	data := t.TempDir()
	s := &settings{serveCommand: &serveCommand{Data: data}, log: slog.New(slog.DiscardHandler)}
	first := filepath.Join(data, masterName)
	ended := make(chan error)
	go func() { // whose stack is gone before the dump
		ended <- func() error {
			found, err := s.masterSecrets() // makes the first one
			if err != nil {
				return err
			}
			token, err := s.adminToken()
			if err != nil {
				return err
			}
			kept := s.lockSecrets(found, &token)
			kept.readAgain(s) // nothing has changed
			if _, err := auth.LoadSecret(masterPath(first, 2)); err != nil {
				return err
			}
			kept.readAgain(s) // there is a second one
			if len(kept.live) != 2 {
				t.Errorf("%d secrets", len(kept.live))
			}
			check := filepath.Join(data, secretCheckName)
			if err := os.WriteFile(check, []byte("damaged"), 0o600); err != nil {
				return err
			}
			kept.readAgain(s) // refused
			return nil
		}()
	}()
	if err := <-ended; err != nil {
		t.Fatal(err)
	}
	file, err := os.Create(filepath.Join(t.TempDir(), "heap"))
	if err != nil {
		t.Fatal(err)
	}
	defer file.Close()
	debug.WriteHeapDump(file.Fd())
	dump, err := os.ReadFile(file.Name())
	if err != nil || !bytes.Contains(dump, []byte(data)) {
		t.Fatalf("a dump of %d bytes: %v", len(dump), err)
	}
	for _, path := range []string{first, masterPath(first, 2), filepath.Join(data, "admin.token")} {
		text, err := os.ReadFile(path)
		if err != nil {
			t.Fatal(err)
		}
		text = bytes.TrimSpace(text)
		plain, err := hex.DecodeString(string(text))
		if err != nil {
			t.Fatal(err)
		}
		if n, m := bytes.Count(dump, text), bytes.Count(dump, plain); n+m > 0 {
			t.Errorf("%s: %d times in hex and %d times as bytes", path, n, m)
		}
	}
}
