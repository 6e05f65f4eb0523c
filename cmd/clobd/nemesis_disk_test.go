package main

import (
	"fmt"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"clobd/scripts/setting"
)

// onSmallDisk moves the world's node to a disk of its own, of 96 MB, and gives it further flags. It
// is stopped there.
func (w *world) onSmallDisk(t *testing.T, flags ...string) (disk string) {
	t.Helper()
	if os.Getuid() != 0 {
		t.Skip("SKIPPED: a disk of its own takes the rights to mount one")
	}
	disk = t.TempDir()
	if err := syscall.Mount("tmpfs", disk, "tmpfs", 0, "size=96m"); err != nil {
		t.Skipf("SKIPPED: no disk of its own can be mounted: %v", err)
	}
	t.Cleanup(func() {
		if err := syscall.Unmount(disk, syscall.MNT_DETACH); err != nil {
			t.Error(err)
		}
	})
	w.node.kill(t)
	w.node.data = copyFolder(t, w.node.data, filepath.Join(disk, "data"))
	w.node.flags = append(w.node.flags, flags...)
	return disk
}

// TestFullDisk fills a small disk under load. Before it is full the node takes nothing but cancels,
// and says so; it goes on answering; and once there is room again it takes orders, without a
// restart.
func TestFullDisk(t *testing.T) {
	setting.Full(t, "TestDiskGuard stays")
	t.Parallel()
	const reserve = 8 << 20
	w, rounds := newWorld(t, 4), setting.Size(t, 1, 1)
	disk := w.onSmallDisk(t, "--disk-reserve", fmt.Sprint(reserve))
	w.node.start(t)
	slowest := time.Duration(0)
	for range rounds {
		w.settle(t)
		var filler string
		w.load(t, func() {
			filler = w.fillBut(t, disk, reserve/2+int64(w.rand.IntN(reserve/4)))
			begun := time.Now()
			waitFor(t, "cancel-only", func() bool { return w.disk(t).State == "cancel-only" })
			slowest = max(slowest, time.Since(begun))
		})
		w.closed(t)
		refused := w.loadUntil(t, func() {}, func(r *round) bool { return r.told.Load() >= roundLeast })
		if n := answered(refused); n > 0 {
			t.Errorf("%d orders were taken after the disk was called full", n)
		}
		w.cancelOnly(t)
		if err := os.Remove(filler); err != nil {
			t.Fatal(err)
		}
		w.settle(t)
		if w.load(t, func() {}); len(w.node.ended) > 0 {
			t.Fatalf("the node ended\n%s", w.node.log.String())
		}
		levels := map[string]float64{}
		verify(t, w.all(), levels)
		w.books(t, levels)
	}
	w.node.stop(t)
	w.node.verified(t)
	t.Logf("figures: rounds=%d ended=0 acknowledged=%d lost=0 noticed_slowest_ms=%d", rounds,
		answered(w.all()), slowest.Milliseconds())
	if answered(w.all()) < 10*rounds {
		t.Error("the load was no load")
	}
}

// TestCatalogWaitsForRoom: while the disk has room for cancels only nothing is listed and the
// catalog keeps what it has, at a start, too; with room again it goes on by itself.
func TestCatalogWaitsForRoom(t *testing.T) {
	setting.Full(t, "it waits for a queue to fill")
	t.Parallel()
	const reserve = 16 << 20
	file := filepath.Join(t.TempDir(), "catalog.jsonl")
	w := newWorld(t, 1)
	disk := w.onSmallDisk(t, "--disk-reserve", fmt.Sprint(reserve), "--catalog", file)
	n := w.node
	for round, inProcess := range []bool{true, false} {
		known, more := 10*(round+1), 10*(round+2)
		writeCatalog(t, file, known)
		n.start(t)
		n.untilSays(t, "/clob/markets/"+condition(known), `"accepting_orders":true`)
		filler := w.fillBut(t, disk, reserve/2)
		waitFor(t, "cancel-only", func() bool { return w.disk(t).State == "cancel-only" })
		before := n.sequence(t)
		writeCatalog(t, file, more)
		if inProcess {
			waitFor(t, "a word", func() bool {
				return strings.Contains(n.log.String(), "the catalog waits")
			})
			n.measures(t, "clobd_catalog_waits_for_room 1")
		} else {
			n.kill(t)
			n.start(t)
			before++ // that it began
		}
		time.Sleep(500 * time.Millisecond)
		if at := n.sequence(t); at != before {
			t.Errorf("round %d: the journal went on from %d to %d", round, before, at)
		}
		if status, _ := n.get(t, "/clob/markets/"+condition(more)); status == http.StatusOK {
			t.Errorf("round %d: a market was listed on a full disk", round)
		}
		if err := os.Remove(filler); err != nil {
			t.Fatal(err)
		}
		n.untilSays(t, "/clob/markets/"+condition(more), `"accepting_orders":true`)
		n.measures(t, "clobd_catalog_waits_for_room 0")
		n.stop(t)
	}
}

// measures waits until a metric has a value.
func (p *process) measures(t *testing.T, text string) {
	t.Helper()
	waitFor(t, text, func() bool {
		_, body := get(t, p.admin, "/metrics")
		return strings.Contains(body, "\n"+text+"\n")
	})
}

// cancelOnly: an order is refused with the reason, a cancel is carried out, books are there.
func (w *world) cancelOnly(t *testing.T) {
	t.Helper()
	x := w.traders[0]
	status, text, err := x.post(x.draw(t))
	if err != nil || status != http.StatusServiceUnavailable ||
		!strings.Contains(text, "Trading is currently cancel-only.") {
		t.Errorf("an order to a full disk: %d %s %v", status, text, err)
	}
	canceled := false
	for _, i := range x.sent {
		r, known, err := x.lookup(i)
		if err != nil {
			t.Fatal(err)
		}
		if !known || r.Status != "LIVE" {
			continue
		}
		status, text, err := x.cancel(i)
		if canceled = i.canceled; err != nil || !canceled {
			t.Errorf("a cancel to a full disk: %d %s %v", status, text, err)
		}
		break
	}
	if !canceled {
		t.Error("nothing was cancelled")
	}
}

// TestFullDiskUnguarded fills the disk to the last byte, of a node that was told not to watch it.
// Whether the node goes on or ends, what it acknowledged is there once there is room again.
func TestFullDiskUnguarded(t *testing.T) {
	setting.Full(t, "TestDiskGuard stays")
	fullToTheLastByte(t, "unguarded", 0)
}

// TestFullDiskGuarded fills the disk to the last byte at once, faster than the node that watches it
// can look.
func TestFullDiskGuarded(t *testing.T) {
	setting.Full(t, "TestDiskGuard stays")
	fullToTheLastByte(t, "guarded", 8<<20)
}

func fullToTheLastByte(t *testing.T, label string, reserve int) {
	t.Parallel()
	w, rounds := newWorld(t, 4), setting.Size(t, 1, 1)
	disk := w.onSmallDisk(t, "--disk-reserve", fmt.Sprint(reserve))
	ended := 0
	for range rounds {
		w.node.start(t)
		w.settle(t)
		w.load(t, func() {})
		filler := w.fill(t, disk)
		w.loadUntil(t, func() { time.Sleep(300 * time.Millisecond) }, nil)
		time.Sleep(500 * time.Millisecond) // if it has to end, it mostly has
		if err := os.Remove(filler); err != nil {
			t.Fatal(err)
		}
		w.settleAgain(t, func() {
			if len(w.node.ended) > 0 {
				ended++
				w.node.kill(t)
				w.node.start(t)
			}
		})
		levels := map[string]float64{}
		verify(t, w.all(), levels)
		w.books(t, levels)
		w.node.stop(t)
	}
	w.node.verified(t)
	t.Logf("figures: %s=%d %s_ended=%d %s_acknowledged=%d lost=0", label, rounds, label, ended, label,
		answered(w.all()))
	if answered(w.all()) < 10*rounds {
		t.Error("the load was no load")
	}
}

// fill takes all but very little of the room on a disk.
func (w *world) fill(t *testing.T, disk string) (name string) {
	t.Helper()
	return w.fillBut(t, disk, int64(4096*(1+w.rand.IntN(16))))
}

// fillBut takes the room on a disk, but for so many bytes.
func (w *world) fillBut(t *testing.T, disk string, but int64) (name string) {
	t.Helper()
	name = filepath.Join(disk, "filler")
	var stat syscall.Statfs_t
	if err := syscall.Statfs(disk, &stat); err != nil {
		t.Fatal(err)
	}
	room := int64(stat.Bavail)*stat.Bsize - but
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
	w.settleAgain(t, func() {})
}

// settleAgain is settle of a node that may need help between two tries.
func (w *world) settleAgain(t *testing.T, help func()) {
	t.Helper()
	for _, x := range w.traders {
		i, said := x.draw(t), ""
		x.sent = append(x.sent, i)
		for end := time.Now().Add(patience); ; time.Sleep(20 * time.Millisecond) {
			help()
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
