package main

import (
	"errors"
	"fmt"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"clobd/scripts/setting"
)

// onFrozenDisk moves the world's node to a filesystem of its own that can be frozen. It is stopped
// there.
func (w *world) onFrozenDisk(t *testing.T) (disk string) {
	t.Helper()
	if os.Getuid() != 0 {
		t.Skip("SKIPPED: a disk of its own takes the rights to mount one")
	}
	folder := t.TempDir()
	image, disk := filepath.Join(folder, "image"), filepath.Join(folder, "disk")
	err := os.WriteFile(image, nil, 0o600)
	if err == nil {
		err = os.Truncate(image, 256<<20)
	}
	if err == nil {
		err = os.Mkdir(disk, 0o700)
	}
	if err != nil {
		t.Fatal(err)
	}
	for _, line := range [][]string{{"mkfs.ext4", "-q", "-F", image},
		{"mount", "-o", "loop", image, disk}, {"fsfreeze", "--help"}} {
		if said, err := exec.Command(line[0], line[1:]...).CombinedOutput(); err != nil {
			t.Skipf("SKIPPED: no disk that can be frozen: %v: %v %s", line, err, said)
		} else if line[0] == "mount" {
			t.Cleanup(func() {
				if said, err := exec.Command("umount", "--lazy", disk).CombinedOutput(); err != nil {
					t.Errorf("umount: %v %s", err, said)
				}
			})
		}
	}
	w.node.kill(t)
	w.node.data = copyFolder(t, w.node.data, filepath.Join(disk, "data"))
	w.node.flags = append(w.node.flags, "--disk-reserve", "0")
	return disk
}

// freeze lets a disk hang until it is thawed. A process of its own does that, at the latest when
// this one is gone, which ends its input.
func freeze(t *testing.T, disk string) (thaw func() error) {
	t.Helper()
	sh := exec.Command("sh", "-c", fmt.Sprintf("fsfreeze -f '%s' && echo && cat; fsfreeze -u '%s'",
		disk, disk))
	held, err := sh.StdinPipe()
	frozen, outErr := sh.StdoutPipe()
	if err = errors.Join(err, outErr); err == nil {
		err = sh.Start()
	}
	if err != nil {
		t.Fatal(err)
	}
	thaw = sync.OnceValue(func() error { return errors.Join(held.Close(), sh.Wait()) })
	t.Cleanup(func() { _ = thaw() }) // before the node on it is killed
	if _, err := frozen.Read(make([]byte, 1)); err != nil {
		t.Errorf("freeze: %v, %v", err, thaw())
	}
	return thaw
}

// TestStalledDisk lets the disk of a node hang under load. Meanwhile books are there, every order
// gets an answer, none of them 200; when the disk is back, so is the node, and what it acknowledged
// is there.
func TestStalledDisk(t *testing.T) {
	setting.Full(t, "a disk hangs for seconds")
	t.Parallel()
	rounds, hang := setting.Size(t, 1, 1), 5*time.Second
	if os.Getenv("CLOBD_SIZE") == "" {
		hang = 3 * time.Second // longer than the node takes to call it a stall
	}
	w := newWorld(t, 4)
	disk := w.onFrozenDisk(t)
	w.node.start(t)
	slowest, back, unready := time.Duration(0), time.Duration(0), 0
	told := map[int]int{}
	for range rounds {
		w.settle(t)
		thaw := freeze(t, disk)
		end := time.Now().Add(hang)
		var group sync.WaitGroup
		var lock sync.Mutex
		var over atomic.Bool // set before the disk goes on
		for _, x := range w.traders {
			group.Go(func() {
				for !over.Load() {
					i := x.draw(t)
					x.sent = append(x.sent, i)
					status, _, _ := x.post(i)
					early := !over.Load()
					lock.Lock()
					if told[status]++; status == http.StatusOK && early {
						t.Errorf("order %s was acknowledged while the disk hung", i.id.Hex())
					}
					lock.Unlock()
				}
			})
		}
		took, no := w.watch(t, end)
		slowest, unready = max(slowest, took), unready+no
		over.Store(true)
		if err := thaw(); err != nil {
			t.Fatalf("thaw: %v", err)
		}
		begun := time.Now()
		group.Wait()
		w.settle(t)
		back = max(back, time.Since(begun))
		waitFor(t, "readyz when the disk is back", func() bool {
			status, _ := get(t, w.node.admin, "/readyz")
			return status == http.StatusOK
		})
		levels := map[string]float64{}
		verify(t, w.all(), levels)
		w.books(t, levels)
	}
	w.node.stop(t)
	w.node.verified(t)
	t.Logf("figures: stalls=%d stall_ms=%d slowest_book_ms=%d back_slowest_ms=%d unready=%d lost=0",
		rounds, hang.Milliseconds(), slowest.Milliseconds(), back.Milliseconds(), unready)
	t.Logf("answers by status: %v", told)
	for _, text := range []string{"the disk hangs", "the disk goes on"} { // a slow one does so by itself
		if n := strings.Count(w.node.log.String(), text); n < rounds {
			t.Errorf("the log says %d times that %s", n, text)
		}
	}
}

// watch reads a book again and again while the disk hangs, which it does until this returns, and
// asks whether the node is ready and alive. It goes on until end, until enough books came and until
// the node has said that it is not ready, and why, also to its page. It returns the slowest of the
// books, and how often the node said so.
func (w *world) watch(t *testing.T, end time.Time) (slowest time.Duration, unready int) {
	t.Helper()
	const least = 20
	late, shown := time.Now().Add(patience), false
	for books := 0; books < least || !shown || time.Now().Before(end); books++ {
		if time.Now().After(late) {
			t.Errorf("%d books, %d times not ready while the disk hung, on the page: %v", books, unready,
				shown)
			return slowest, unready
		}
		begun := time.Now()
		answer, err := w.node.public.Get("http://" + w.node.listen + "/book?token_id=" + w.tokens[0].token)
		if err != nil || answer.StatusCode != http.StatusOK {
			t.Errorf("a book while the disk hangs: %+v, %v", answer, err)
			return slowest, unready
		}
		answer.Body.Close()
		slowest = max(slowest, time.Since(begun))
		if status, body := get(t, w.node.admin, "/readyz"); status != http.StatusOK {
			unready++
			if !strings.Contains(body, `"why":"disk stalled for `) ||
				!strings.Contains(body, `"metric":"clobd_journal_oldest_unsynced_seconds"`) ||
				strings.Contains(body, "matcher stalled") {
				t.Errorf("readyz: %d %s", status, body)
			}
			shown = shown || w.node.shows(t, "clobd_journal_oldest_unsynced_seconds")
		}
		if status, _ := get(t, w.node.admin, "/livez"); status != http.StatusOK {
			t.Errorf("livez: %d", status)
		}
		time.Sleep(10 * time.Millisecond)
	}
	return slowest, unready
}
