package engine

import (
	"bytes"
	"flag"
	"fmt"
	"os"
	"runtime"
	"strings"
	"sync"
	"testing"
)

const (
	histories     = 1100 // one seed each
	plainOnes     = 1000 // so many of them, the first ones, replace no orders
	historiesFile = "testdata/histories.golden"
)

// TestHistories plays seeded histories and compares the last Digest and the hash of all frames of
// each with a golden file: on one, two and eight threads, and with a restart in the middle. Every
// machine and build must produce the same values; -race and -tags audit read the same file. A
// changed outcome of Apply is a new Version, which leaves these values as they are: they are made
// under the rules of Oldest. When Oldest rises, or the histories change:
//
//	go test ./engine -run '^TestHistories$' -rewrite
func TestHistories(t *testing.T) {
	n := histories
	if testing.Short() {
		n /= 10
	}
	rewrite := flag.Lookup("rewrite").Value.String() == "true"
	if rewrite {
		n = histories
	}
	var want []byte
	for _, threads := range []int{1, 2, 8} {
		before := runtime.GOMAXPROCS(threads)
		got := endings(t, n, threads)
		runtime.GOMAXPROCS(before)
		if want == nil {
			want = recorded(t, got, rewrite)
		}
		if bytes.Equal(got, want) {
			continue
		}
		lines := strings.Split(string(want), "\n")
		for i, line := range strings.Split(string(got), "\n") {
			if i >= len(lines) || line != lines[i] {
				t.Fatalf("on %d threads\n%s\nwant\n%s", threads, line, lines[min(i, len(lines)-1)])
			}
		}
	}
}

// recorded returns as many lines of the file as got has. With -rewrite it first writes got.
func recorded(t *testing.T, got []byte, rewrite bool) []byte {
	if rewrite {
		if err := os.WriteFile(historiesFile, got, 0o644); err != nil {
			t.Fatal(err)
		}
	}
	all, err := os.ReadFile(historiesFile)
	if err != nil {
		t.Fatal(err)
	}
	return all[:min(len(all), len(got))]
}

// endings returns the last lines of n histories, played on this many threads.
func endings(t *testing.T, n, threads int) []byte {
	lines := make([]string, n)
	var wait sync.WaitGroup
	for thread := range threads {
		wait.Go(func() {
			for seed := thread; seed < n; seed += threads {
				lines[seed] = ending(t, seed)
			}
		})
	}
	wait.Wait()
	var out bytes.Buffer
	fmt.Fprintf(&out, "engine version %d\n", Oldest)
	for seed, line := range lines {
		fmt.Fprintf(&out, "%d %s\n", seed, line)
	}
	return out.Bytes()
}

// ending plays one history in frames; another exchange replays the first half and continues.
func ending(t *testing.T, seed int) string {
	dice, window := dice(seed), []uint32{8, 100, Window}[seed%3]
	x := newExchange(uint64(seed), window)
	d := newDeck(dice.below)
	d.plain = seed < plainOnes
	h := record(d, x, 80, 1+seed%9)
	second := newExchange(uint64(seed)+1, window)
	f, back := Frame{Engine: Oldest}, Frame{}
	for i := 0; i < len(h.commands); {
		n := 1
		for i+n < len(h.commands) && h.times[i+n] == h.times[i] {
			n++
		}
		f.No, f.First, f.Time, f.Digest = f.No+1, h.at(i), h.times[i], h.digests[i+n-1]
		f.Commands, f.Events, f.Ends = h.commands[i:i+n], f.Events[:0], f.Ends[:0]
		for j := range f.Commands {
			f.Events = append(f.Events, h.events[i+j]...)
			f.Ends = append(f.Ends, uint32(len(f.Events)))
		}
		f.Encode(f.Hash)
		i += n
		if i > len(h.commands)/2 {
			for j := range f.Commands {
				second.Apply(&f.Commands[j], f.First+Sequence(j), f.Time, nil)
			}
			continue
		}
		if err := DecodeFrame(f.Bytes, &back); err != nil {
			t.Errorf("seed %d: %v", seed, err)
		} else if err := second.ApplyFrame(&back); err != nil {
			t.Errorf("seed %d: %v", seed, err)
		}
	}
	if second.Digest() != x.Digest() {
		t.Errorf("seed %d: another digest after a restart", seed)
	}
	return fmt.Sprintf("%016x %x", uint64(x.Digest()), f.Hash[:8])
}
