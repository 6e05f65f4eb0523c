package main

import (
	"fmt"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"
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

// freeze lets a disk hang for a while. A process of its own thaws it, whatever becomes of the test.
func freeze(t *testing.T, disk string, hang time.Duration) (thawed chan error) {
	t.Helper()
	thaw := exec.Command("sh", "-c", fmt.Sprintf("fsfreeze -f '%s' && echo && sleep %.1f; "+
		"fsfreeze -u '%s'", disk, hang.Seconds(), disk))
	frozen, err := thaw.StdoutPipe()
	if err == nil {
		err = thaw.Start()
	}
	if err != nil {
		t.Fatal(err)
	}
	if _, err := frozen.Read(make([]byte, 1)); err != nil {
		t.Errorf("freeze: %v, %v", err, thaw.Wait())
	}
	thawed = make(chan error, 1)
	go func() { thawed <- thaw.Wait() }()
	return thawed
}

// TestStalledDisk lets the disk of a node hang under load. Meanwhile books are there at once, every
// order gets an answer, none of them 200; when the disk is back, so is the node within two seconds,
// and what it acknowledged is there.
func TestStalledDisk(t *testing.T) {
	rounds, hang := size(t, 1), 5*time.Second
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
		thawed := freeze(t, disk, hang)
		end := time.Now().Add(hang - 100*time.Millisecond)
		var group sync.WaitGroup
		var lock sync.Mutex
		for _, x := range w.traders {
			group.Go(func() {
				for time.Now().Before(end) {
					i := x.draw(t)
					x.sent = append(x.sent, i)
					status, _, _ := x.post(i)
					early := time.Now().Before(end)
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
		if err := <-thawed; err != nil {
			t.Fatalf("thaw: %v", err)
		}
		begun := time.Now()
		group.Wait()
		w.settle(t)
		back = max(back, time.Since(begun))
		if status, body := get(t, w.node.admin, "/readyz"); status != http.StatusOK {
			t.Errorf("readyz when the disk is back: %d %s", status, body)
		}
		levels := map[string]float64{}
		verify(t, w.all(), levels)
		w.books(t, levels)
	}
	w.node.stop(t)
	w.node.verified(t)
	t.Logf("figures: stalls=%d stall_ms=%d slowest_book_ms=%d back_slowest_ms=%d unready=%d lost=0",
		rounds, hang.Milliseconds(), slowest.Milliseconds(), back.Milliseconds(), unready)
	t.Logf("answers by status: %v", told)
	for text, want := range map[string]int{"the disk hangs": rounds, "the disk goes on": rounds} {
		if n := strings.Count(w.node.log.String(), text); n != want {
			t.Errorf("the log says %d times that %s", n, text)
		}
	}
	if unready == 0 {
		t.Error("the node never said that the disk hangs")
	}
	if slowest > time.Second || back > 2*time.Second {
		t.Errorf("a book after %v, back after %v", slowest, back)
	}
}

// watch reads a book again and again, and asks whether the node is ready and alive. It returns the
// slowest of the books, and how often the node said that it is not ready, and why.
func (w *world) watch(t *testing.T, end time.Time) (slowest time.Duration, unready int) {
	t.Helper()
	for time.Now().Before(end) {
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
			if !strings.Contains(body, `"why":"disk stalled for `) {
				t.Errorf("readyz: %d %s", status, body)
			}
		}
		if status, _ := get(t, w.node.admin, "/livez"); status != http.StatusOK {
			t.Errorf("livez: %d", status)
		}
		time.Sleep(10 * time.Millisecond)
	}
	return slowest, unready
}
