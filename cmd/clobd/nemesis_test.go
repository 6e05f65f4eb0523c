package main

import (
	"fmt"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"
)

// TestKillWhileSaving is TestKill with a node that hardly does anything but write checkpoints.
func TestKillWhileSaving(t *testing.T) {
	w := newWorldOf(t, 4, 3, "--checkpoint-commands", "20", "--checkpoint-interval", "20ms")
	w.kills(t, 3)
	saved, err := filepath.Glob(filepath.Join(w.node.data, "checkpoints", "*.checkpoint"))
	if err != nil || len(saved) == 0 {
		t.Errorf("no checkpoint was written: %v", err)
	}
}

// TestKillWhileStarting kills the node again and again before it is ready, and then lets it.
func TestKillWhileStarting(t *testing.T) {
	w, cycles := newWorld(t, 4), size(t, 3)
	round := w.load(t, func() { w.node.kill(t) })
	begun := time.Now()
	w.node.start(t)
	ready := time.Since(begun)
	w.node.kill(t)
	early := 0
	for range cycles {
		w.node.launch(t)
		time.Sleep(time.Duration(w.rand.Int64N(int64(ready))))
		if answer, err := http.Get("http://" + w.node.admin + "/readyz"); err != nil {
			early++
		} else {
			if answer.StatusCode != http.StatusOK {
				early++
			}
			answer.Body.Close()
		}
		w.node.kill(t)
		if w.rand.IntN(4) > 0 {
			continue
		}
		w.node.start(t) // some orders in between
		round = append(round, w.load(t, func() { w.node.kill(t) })...)
	}
	w.node.start(t)
	levels := map[string]float64{}
	verify(t, round, levels)
	w.books(t, levels)
	t.Logf("figures: cycles=%d before_ready=%d acknowledged=%d lost=0", cycles, early, answered(round))
}

// TestKillWhileStopping kills the node while it drains.
func TestKillWhileStopping(t *testing.T) {
	w, cycles := newWorld(t, 4), size(t, 3)
	for range cycles {
		round := w.load(t, func() {
			if err := w.node.cmd.Process.Signal(syscall.SIGTERM); err != nil {
				t.Error(err)
			}
			time.Sleep(time.Duration(w.rand.IntN(30_000)) * time.Microsecond)
			w.node.kill(t)
		})
		w.node.start(t)
		verify(t, round, map[string]float64{})
		if t.Failed() {
			t.Fatalf("the node's log:\n%s", w.node.log.String())
		}
	}
	levels := map[string]float64{}
	verify(t, w.all(), levels)
	w.books(t, levels)
	t.Logf("figures: cycles=%d acknowledged=%d lost=0", cycles, answered(w.all()))
}

// TestResend sends every order three times, while the node is killed now and then: each is one
// order.
func TestResend(t *testing.T) {
	const each = 50 // orders of a round
	orders := size(t, 1000)
	if testing.Short() {
		orders = 2 * each
	}
	w, twice := newWorld(t, 4), 0
	for sent := 0; sent < orders; sent += each {
		var group sync.WaitGroup
		for _, x := range w.traders {
			group.Go(func() {
				var mine []*intent
				for range (each + len(w.traders) - 1) / len(w.traders) {
					mine = append(mine, x.draw(t))
				}
				x.sent = append(x.sent, mine...)
				for range 3 {
					for _, i := range mine {
						x.insist(t, i)
					}
				}
			})
		}
		if w.rand.IntN(2) == 0 {
			time.Sleep(time.Duration(w.rand.IntN(60)) * time.Millisecond)
			w.node.kill(t)
			w.node.start(t)
			twice++
		}
		group.Wait()
	}
	levels, matched := map[string]float64{}, map[string]float64{}
	all := w.all()
	verify(t, all, levels)
	w.books(t, levels)
	for _, i := range all { // each fill is a pair of two outcomes: one more would have no other half
		r, known, err := i.trader.lookup(i)
		if !known || err != nil {
			t.Fatalf("order %s: %v", i.id.Hex(), err)
		}
		matched[i.token] += i.compare(t, &r)
	}
	for _, o := range w.tokens {
		if matched[o.token] != matched[o.other] {
			t.Errorf("TWICE: %g shares of %s, %g of %s", matched[o.token], o.token, matched[o.other],
				o.other)
		}
	}
	t.Logf("figures: orders=%d posts=%d kills=%d twice=0", len(all), 3*len(all), twice)
}

// insist posts an order until it gets an answer. What it has to say must not become less.
func (x *trader) insist(t *testing.T, i *intent) {
	before := i.matched
	for range 4000 {
		status, text, err := x.post(i)
		switch {
		case status == http.StatusOK && err == nil:
			if i.matched < before {
				t.Errorf("order %s: %g shares matched, before %g", i.id.Hex(), i.matched, before)
			}
			return
		case err != nil && status == 0, refused(status, err), status == http.StatusGatewayTimeout:
			time.Sleep(5 * time.Millisecond)
		default:
			t.Errorf("order %s: %d %s %v", i.id.Hex(), status, text, err)
			return
		}
	}
	t.Errorf("order %s: no answer", i.id.Hex())
}

// TestFullDisk runs the node on a small disk, smaller than what the log reserves for itself where
// there is room, and fills that up under load. Whether the node refuses
// orders or ends, what it acknowledged is there once there is room again.
func TestFullDisk(t *testing.T) {
	if os.Getuid() != 0 {
		t.Skip("SKIPPED: a disk of its own takes the rights to mount one")
	}
	rounds := size(t, 1)
	small := t.TempDir()
	if err := syscall.Mount("tmpfs", small, "tmpfs", 0, "size=48m"); err != nil {
		t.Skipf("SKIPPED: no disk of its own can be mounted: %v", err)
	}
	t.Cleanup(func() {
		if err := syscall.Unmount(small, syscall.MNT_DETACH); err != nil {
			t.Error(err)
		}
	})
	w := newWorld(t, 4)
	w.node.kill(t)
	if err := os.CopyFS(filepath.Join(small, "data"), os.DirFS(w.node.data)); err != nil {
		t.Fatal(err)
	}
	w.node.data = filepath.Join(small, "data")
	w.node.flags = append(w.node.flags, "--disk-reserve", "0") // what happens without the guard
	for _, secret := range []string{"master.key", "admin.token"} {
		if err := os.Chmod(filepath.Join(w.node.data, secret), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	ended := 0
	for range rounds {
		w.node.start(t)
		w.settle(t)
		filler := w.fill(t, small)
		w.load(t, func() { time.Sleep(300 * time.Millisecond) })
		if len(w.node.ended) > 0 {
			ended++
			w.node.kill(t)
		}
		if err := os.Remove(filler); err != nil {
			t.Fatal(err)
		}
		if w.node.cmd == nil {
			w.node.start(t)
		}
		w.settle(t)
		levels := map[string]float64{}
		verify(t, w.all(), levels)
		w.books(t, levels)
		w.node.stop(t)
	}
	t.Logf("figures: rounds=%d ended=%d acknowledged=%d lost=0", rounds, ended, answered(w.all()))
	if answered(w.all()) < 10*rounds {
		t.Error("the load was no load")
	}
}

// fill takes all but very little of the room on a disk.
func (w *world) fill(t *testing.T, disk string) (name string) {
	t.Helper()
	name = filepath.Join(disk, "filler")
	var stat syscall.Statfs_t
	if err := syscall.Statfs(disk, &stat); err != nil {
		t.Fatal(err)
	}
	room := int64(stat.Bavail)*stat.Bsize - int64(4096*(1+w.rand.IntN(16)))
	f, err := os.Create(name)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	chunk := []byte(strings.Repeat("x", 1<<16))
	for room > 0 {
		n, err := f.Write(chunk[:min(room, int64(len(chunk)))])
		if room -= int64(n); err != nil {
			break // full already: that is the point
		}
	}
	return name
}

// settle waits until the node takes an order of every trader again.
func (w *world) settle(t *testing.T) {
	t.Helper()
	for _, x := range w.traders {
		i, said := x.draw(t), ""
		x.sent = append(x.sent, i)
		for end := time.Now().Add(20 * time.Second); ; time.Sleep(20 * time.Millisecond) {
			status, text, err := x.post(i)
			if status == http.StatusOK && err == nil {
				break
			}
			if said = fmt.Sprint(status, text, err); time.Now().After(end) {
				t.Fatalf("there is room, and orders are refused: %s\n%s", said, w.node.log.String())
			}
		}
	}
}
