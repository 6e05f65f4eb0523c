package main

import (
	"net/http"
	"os/exec"
	"path/filepath"
	"sync"
	"syscall"
	"testing"
	"time"

	"clobd/scripts/setting"
)

// TestKillWhileSaving is TestKill with a node that hardly does anything but write checkpoints.
func TestKillWhileSaving(t *testing.T) {
	t.Parallel()
	setting.Full(t, "TestKill stays")
	w := newWorldOf(t, 4, 3, "--checkpoint-commands", "20", "--checkpoint-interval", "20ms")
	w.kills(t, 3, func() {
		waitFor(t, "a checkpoint", func() bool { return len(checkpoints(t, w.node.data)) > 0 })
	})
}

// TestKillWhileStarting kills the node again and again before it is ready, and then lets it.
func TestKillWhileStarting(t *testing.T) {
	t.Parallel()
	setting.Full(t, "TestKill stays")
	w, cycles := newWorld(t, 4), setting.Size(t, 3, 1)
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
	t.Parallel()
	w, cycles := newWorld(t, 4), setting.Size(t, 3, 1)
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
	t.Parallel()
	const each = 50 // orders of a round
	orders, twice := setting.Size(t, 1000, 2*each), 0
	w := newWorld(t, 4)
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
func (x *actor) insist(t *testing.T, i *intent) {
	before := i.matched
	for end := time.Now().Add(patience); time.Now().Before(end); {
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

// TestKillWhileFlushing kills the node as soon as a database writes a new table, or a little later:
// each start writes what is in the logs into tables.
func TestKillWhileFlushing(t *testing.T) {
	t.Parallel()
	setting.Full(t, "TestKill stays")
	w, cycles := newWorld(t, 4), setting.Size(t, 3, 1)
	round := w.load(t, func() { w.node.kill(t) })
	within := 0
	for n := 0; within < cycles && n < 10*cycles; n++ {
		before := tables(t, w.node.data)
		w.node.launch(t)
		if appears(t, w.node.data, before) {
			within++
			time.Sleep(time.Duration(w.rand.IntN(4000)) * time.Microsecond)
		}
		w.node.kill(t)
		w.node.start(t)
		verify(t, round, map[string]float64{})
		round = w.load(t, func() { w.node.kill(t) })
		if t.Failed() {
			t.Fatalf("the node's log:\n%s", w.node.log.String())
		}
	}
	w.node.start(t)
	levels := map[string]float64{}
	verify(t, w.all(), levels)
	w.books(t, levels)
	w.node.stop(t)
	w.node.verified(t)
	t.Logf("figures: cycles=%d acknowledged=%d lost=0", within, answered(w.all()))
	if within < cycles {
		t.Errorf("%d of %d kills met a table being written", within, cycles)
	}
}

// tables are the tables of both databases.
func tables(t *testing.T, data string) map[string]bool {
	t.Helper()
	names, err := filepath.Glob(filepath.Join(data, "*", "*.sst"))
	if err != nil {
		t.Fatal(err)
	}
	all := map[string]bool{}
	for _, name := range names {
		all[name] = true
	}
	return all
}

// appears waits for a table that was not there before.
func appears(t *testing.T, data string, before map[string]bool) bool {
	t.Helper()
	for end := time.Now().Add(patience); time.Now().Before(end); time.Sleep(200 * time.Microsecond) {
		for name := range tables(t, data) {
			if !before[name] {
				return true
			}
		}
	}
	return false
}

// verified runs the operator's check over the folder of a node that does not run.
func (p *process) verified(t *testing.T) {
	t.Helper()
	if said, err := exec.Command(p.binary, "verify", "--data", p.data).CombinedOutput(); err != nil {
		t.Fatalf("verify: %v\n%s", err, said)
	}
}
