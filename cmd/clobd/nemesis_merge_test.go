package main

import (
	"bufio"
	"fmt"
	"log/slog"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"clobd/ingress/auth"
	"clobd/journal"
	"clobd/journal/history"
	"clobd/scripts/setting"
)

// writeFolder names the folder that TestWriteFolder writes.
const writeFolder = "CLOBD_TEST_WRITE"

// TestWriteFolder is no test but a process to be killed: it fills journal and index as fast as it
// can, through memtables so small that tables are flushed and merged all the time, and prints the
// number of each frame that is durable.
func TestWriteFolder(t *testing.T) {
	folder := os.Getenv(writeFolder)
	if folder == "" {
		t.Skip("it is a process of TestKillWhileCompacting")
	}
	f := newFillerOf(t, journal.Options{Dir: folder, MemTable: 1 << 20})
	index, err := history.Open(f.j, history.Options{MemTable: 1 << 20,
		Log:     slog.New(slog.DiscardHandler),
		Builder: func(proof []byte) history.BuilderCode { return auth.BuilderOf(proof) }})
	if err != nil {
		t.Fatal(err)
	}
	go index.Run()
	told := f.head.Frame
	for end := time.Now().Add(2 * patience); time.Now().Before(end); {
		if f.place(t); len(f.live) > 5000 {
			f.cancel(t)
		}
		if f.head.Frame > told {
			told = f.head.Frame
			fmt.Printf("durable %d\n", told)
		}
	}
}

// TestKillWhileCompacting kills a process of its own while it merges tables of journal and index.
// What it called durable is there, and the folder is in good order.
func TestKillWhileCompacting(t *testing.T) {
	t.Parallel()
	setting.Full(t, "TestKill stays")
	cycles, seed := setting.Size(t, 3, 1), setting.Seed(t, uint64(time.Now().UnixNano()))
	r, p := rand.New(rand.NewPCG(seed, 11)), &process{binary: buildNode(t)}
	merged, frames := 0, uint64(0)
	for n := range cycles {
		p.data = filepath.Join(t.TempDir(), fmt.Sprint("data", n))
		durable, merging := writtenUntilKilled(t, p.data, r)
		if merging {
			merged++
		}
		j, err := journal.Open(journal.Options{Dir: p.data, Log: slog.New(slog.DiscardHandler)})
		if err != nil {
			t.Fatal(err)
		}
		head, err := j.Recover(nil, nil)
		if err != nil || head.Frame < durable {
			t.Errorf("LOST: %d frames are there, %d were durable: %v", head.Frame, durable, err)
		}
		if err := j.Close(); err != nil {
			t.Fatal(err)
		}
		p.verified(t)
		if frames += durable; t.Failed() {
			return
		}
	}
	t.Logf("figures: kills=%d merging=%d frames=%d lost=0", cycles, merged, frames)
	if merged == 0 {
		t.Error("no kill met a merge")
	}
}

// writtenUntilKilled starts the process and kills it some time after it merged tables for the first
// time. It returns the last frame that it called durable, and whether a table was merged away
// just before.
func writtenUntilKilled(t *testing.T, data string, r *rand.Rand) (durable uint64, merging bool) {
	t.Helper()
	child := exec.Command(os.Args[0], "-test.run", "^TestWriteFolder$")
	child.Env = append(os.Environ(), writeFolder+"="+data)
	child.SysProcAttr = &syscall.SysProcAttr{Pdeathsig: syscall.SIGKILL}
	told, err := child.StdoutPipe()
	if err == nil {
		err = child.Start()
	}
	if err != nil {
		t.Fatal(err)
	}
	var last atomic.Uint64
	read := make(chan struct{})
	go func() {
		defer close(read)
		for lines := bufio.NewScanner(told); lines.Scan(); {
			text, is := strings.CutPrefix(lines.Text(), "durable ")
			if n, err := strconv.ParseUint(text, 10, 64); is && err == nil {
				last.Store(n)
			}
		}
	}()
	before := tables(t, data)
	gone := func(least int) bool { // so many tables that were there are not there any more
		now, n := tables(t, data), 0
		for name := range before {
			if !now[name] {
				n++
			}
		}
		before = now
		return n >= least
	}
	end := time.Now().Add(patience)
	for !gone(2) && time.Now().Before(end) {
		time.Sleep(time.Millisecond)
	}
	time.Sleep(time.Duration(r.IntN(400)) * time.Millisecond)
	for before = tables(t, data); !merging && time.Now().Before(end); merging = gone(1) {
		time.Sleep(time.Millisecond)
	}
	time.Sleep(time.Duration(r.IntN(2000)) * time.Microsecond)
	if err := child.Process.Kill(); err != nil {
		t.Error(err)
	}
	<-read
	if err := child.Wait(); err == nil {
		t.Error("the process ended by itself")
	}
	return last.Load(), merging
}
