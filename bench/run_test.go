package bench

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"clobd/bench/workload"
	"clobd/engine"
)

// TestMain lets the test binary be the hiccup meter, as clobench is one.
func TestMain(m *testing.M) {
	if len(os.Args) == 2 && os.Args[1] == "hiccups" {
		if err := WatchHiccups(os.Stdin, os.Stdout); err != nil {
			panic(err)
		}
		return
	}
	os.Exit(m.Run())
}

func self(t *testing.T) string {
	t.Helper()
	file, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	return file
}

func workloadNamed(t *testing.T, name string) workload.Workload {
	t.Helper()
	w, err := workload.Named(name)
	if err != nil {
		t.Fatal(err)
	}
	return w
}

// executeUntil executes a run, and again for eight times as long until it has done enough: how much
// that is in a short time is the machine's to say. Each of them must be a good one.
func executeUntil(t *testing.T, r Run, enough func(*Report) bool) *Report {
	t.Helper()
	for ; ; r.Duration *= 8 {
		report, err := Execute(t.Context(), r)
		if err != nil || report.Failure != "" {
			t.Fatalf("%s: %v, %+v", r.Level, err, report)
		}
		if enough(report) {
			return report
		}
		if r.Duration > time.Minute {
			t.Fatalf("%s: %d operations in %v: %+v", r.Level, report.Operations, r.Duration, report)
		}
	}
}

// TestApplyTakesItsTime lets one exchange's operations run out long before the time is up.
func TestApplyTakesItsTime(t *testing.T) {
	const round = 20_000
	r := executeUntil(t, Run{Workload: workloadNamed(t, "canonical"), Level: "L0", Seed: 5,
		Duration: 100 * time.Millisecond, Connections: 1, Self: self(t), round: round},
		func(r *Report) bool { return r.Exchanges >= 2 })
	if r.Operations <= round*int64(r.Exchanges-1) || r.Operations > round*int64(r.Exchanges) ||
		r.Warmup != Prefill*r.Exchanges {
		t.Errorf("%d operations on %d exchanges after %d of warm-up", r.Operations, r.Exchanges,
			r.Warmup)
	}
	if r.Seconds < r.AskedSeconds || r.EndedBy != endedByTime {
		t.Errorf("measured %.3f s of %.3f, ended by %s", r.Seconds, r.AskedSeconds, r.EndedBy)
	}
	if got := float64(r.Operations) / r.Seconds; got < r.Rate*0.999 || got > r.Rate*1.001 {
		t.Errorf("rate %.0f, but %d operations in %.3f s", r.Rate, r.Operations, r.Seconds)
	}
}

// TestDriveEndsTogether shows that a loop which runs out ends the window, and that the report says
// so instead of claiming the time that was asked for. What must not last is asked to last an hour.
func TestDriveEndsTogether(t *testing.T) {
	idle := func(n *counts, until func() bool) {
		for !until() {
			time.Sleep(time.Millisecond)
		}
	}
	short, long := &crew{}, &crew{}
	short.join(idle)
	short.join(func(n *counts, until func() bool) { n.acked = 3 })
	w := short.drive(t.Context(), time.Hour)
	if w.full || w.took >= time.Hour {
		t.Fatalf("a loop ran out: %+v", w)
	}
	r := &Report{AskedSeconds: 3600}
	r.bound(w)
	var text strings.Builder
	r.WriteText(&text)
	if !strings.Contains(text.String(), "s of 3600.00 s asked for, ended by operations: ") {
		t.Errorf("the report hides what ended it:\n%s", &text)
	}
	long.join(idle)
	if w := long.drive(t.Context(), 30*time.Millisecond); !w.full || w.took < 30*time.Millisecond {
		t.Errorf("the time was up: %+v", w)
	}
	ctx, cancel := context.WithCancel(t.Context())
	time.AfterFunc(10*time.Millisecond, cancel)
	if w := long.drive(ctx, time.Hour); w.full || w.took >= time.Hour {
		t.Errorf("stopped from outside: %+v", w)
	}
}

// TestStoppedRunLeavesNothing ends runs in the middle, of an hour.
func TestStoppedRunLeavesNothing(t *testing.T) {
	for _, level := range []string{"L0", "L1", "L2"} {
		dir := t.TempDir()
		ctx, cancel := context.WithCancelCause(t.Context())
		time.AfterFunc(300*time.Millisecond, func() { cancel(errors.New("enough")) })
		report, err := Execute(ctx, Run{Workload: workloadNamed(t, "canonical"), Level: level,
			Duration: time.Hour, Connections: 8, Self: self(t), Dir: dir})
		if report != nil || err == nil || !strings.Contains(err.Error(), "enough") ||
			!strings.Contains(err.Error(), "no figure") {
			t.Errorf("%s: report %v, error %v", level, report, err)
		}
		if left, _ := filepath.Glob(filepath.Join(dir, "*")); len(left) > 0 {
			t.Errorf("%s: left %v", level, left)
		}
	}
}

func TestBadRuns(t *testing.T) {
	good := Run{Workload: workloadNamed(t, "canonical"), Level: "L2", Duration: time.Second,
		Connections: 8, Self: self(t)}
	for _, c := range []struct {
		change func(r *Run)
		says   []string
	}{
		{func(r *Run) { r.Duration, r.Connections = 0, workload.Traders+1 },
			[]string{"duration is not positive", "connections are not in [1, 64]"}},
		{func(r *Run) { r.URL, r.Dir = "http://127.0.0.1:1", "/tmp" },
			[]string{"URL belongs to level L3", "folder of a node that runs already"}},
		{func(r *Run) { r.Level, r.URL, r.Workload.Books = "L3", "http://127.0.0.1:1", 2 },
			[]string{"workload of one book"}},
		{func(r *Run) { r.Level = "L7" }, []string{`no level is called "L7"`}},
		{func(r *Run) { r.Dir = "/nonexistent" }, []string{"/nonexistent"}},
		{func(r *Run) { r.Self = "" }, []string{"watch for hiccups"}},
		{func(r *Run) { r.Self = "/bin/true" }, []string{"hiccup meter"}},
	} {
		r := good
		c.change(&r)
		_, err := Execute(t.Context(), r)
		for _, want := range c.says {
			if err == nil || !strings.Contains(err.Error(), want) {
				t.Errorf("error %v, want %q", err, want)
			}
		}
	}
	_, err := Compare(t.Context(), Comparison{What: "orders", Connections: 65, Duration: time.Second})
	if err == nil || !strings.Contains(err.Error(), "no rounds") ||
		!strings.Contains(err.Error(), "connections are not in [1, 64]") {
		t.Errorf("comparison: %v", err)
	}
}

// TestHiccupsAreSeen stops the meter's process for a while: that is what a machine's pause does.
func TestHiccupsAreSeen(t *testing.T) {
	w, err := StartWatch(t.Context(), self(t))
	if err != nil {
		t.Fatal(err)
	}
	defer w.End()
	const pause = 150 * time.Millisecond
	if _, err := w.Lap(); err != nil {
		t.Fatal(err)
	}
	pid := w.meter.ID
	if pid == os.Getpid() {
		t.Fatal("the meter is this process")
	}
	var h Hiccup
	for deadline := time.Now().Add(time.Minute); h.MaxMillis < 100; {
		if time.Now().After(deadline) {
			t.Fatalf("pauses of %v were not seen: %+v", pause, h)
		}
		for _, s := range []syscall.Signal{syscall.SIGSTOP, syscall.SIGCONT} {
			if err := syscall.Kill(pid, s); err != nil {
				t.Fatal(err)
			}
			time.Sleep(pause) // and then as long for it to have woken and looked at the time
		}
		seen, err := w.Lap()
		if err != nil {
			t.Fatal(err)
		}
		h.add(seen)
	}
	if h.Looks == 0 || h.Measures != hiccupMeasures {
		t.Errorf("a pause of %v: %+v", pause, h)
	}
	sum := Hiccup{MaxMillis: 7, P99Millis: 1e6, Looks: 1, StealMillis: 2}
	sum.add(Hiccup{MaxMillis: 9, P99Millis: 1, Looks: 2, StealMillis: 3, Measures: "x"})
	if sum != (Hiccup{"x", 3, 1e6, 9, 5}) {
		t.Errorf("two windows: %+v", sum)
	}
	w.End()
	if err := syscall.Kill(pid, 0); !errors.Is(err, syscall.ESRCH) {
		t.Errorf("the meter is still there: %v", err)
	}
}

func TestDisk(t *testing.T) {
	const mounts = `22 27 0:21 / /proc rw,relatime - proc proc rw
36 35 259:1048 /mnt1 /mnt2 rw,noatime master:1 - ext4 /dev/nvme0n1p1 rw,nobarrier
`
	d := Disk{Filesystem: "ext2, ext3 or ext4", Device: unknown}
	d.mounted(mounts, 1)
	if d.Device != unknown {
		t.Errorf("another device was found: %+v", d)
	}
	d.mounted(mounts, 259<<8|1048&0xff|1048&^0xff<<12)
	if d != (Disk{Filesystem: "ext4", Device: "/dev/nvme0n1p1", Options: "rw,noatime rw,nobarrier"}) {
		t.Errorf("got %+v", d)
	}
	for magic, want := range map[uint32]string{0xef53: "ext2, ext3 or ext4", 0x58465342: "xfs",
		0x01021994: "tmpfs", 0x1234: "magic 0x1234"} {
		if got := filesystemName(magic); got != want {
			t.Errorf("magic %x: %s, want %s", magic, got, want)
		}
	}
	here := diskOf(t.TempDir())
	if here.Filesystem == unknown || here.FsyncMicros <= 0 {
		t.Errorf("the test's own folder: %+v", here)
	}
	memory := &Disk{Filesystem: "tmpfs"}
	if !strings.Contains(memory.String(), "no answer is durable") ||
		strings.Contains(here.String(), "no answer is durable") && here.Filesystem != "tmpfs" {
		t.Errorf("memory is not told from a disk: %s; %s", memory, here)
	}
}

func TestMedian(t *testing.T) {
	for _, c := range []struct {
		values []float64
		want   float64
	}{{[]float64{3}, 3}, {[]float64{4, 1}, 2.5}, {[]float64{9, 1, 2}, 2}, {[]float64{8, 1, 4, 2}, 3}} {
		if got := Median(c.values); got != c.want {
			t.Errorf("median of %v: %v, want %v", c.values, got, c.want)
		}
	}
}

// TestKeptOrders: the orders of a turn are looked for in the node's journal if the node took them,
// whichever side it was.
func TestKeptOrders(t *testing.T) {
	node, peer := &child{}, &child{dir: "another"}
	for _, c := range []struct {
		baseline *child
		want     int
	}{{node, 3}, {peer, 1}} {
		k := &contest{out: &Compared{Node: Side{server: node}, Baseline: Side{server: c.baseline}}}
		k.keep(&k.out.Node, []engine.OrderID{{1}})
		k.keep(&k.out.Baseline, []engine.OrderID{{2}, {3}})
		if len(k.placed) != c.want {
			t.Errorf("%d orders are kept, want %d", len(k.placed), c.want)
		}
	}
}

// TestRoundsAlternate looks at whose turn it is, and at what is kept.
func TestRoundsAlternate(t *testing.T) {
	k := &contest{Comparison: Comparison{Rounds: 4}, out: &Compared{Node: Side{Name: "n"},
		Baseline: Side{Name: "b"}}}
	order, prepared := "", ""
	prepare := func(round int) (loads, error) {
		prepared += fmt.Sprint(round, " ")
		return nil, nil
	}
	turn := func(_ context.Context, s *Side, _ loads) error {
		order += s.Name
		s.Rates = append(s.Rates, 1)
		return nil
	}
	if err := k.rounds(t.Context(), prepare, turn); err != nil {
		t.Fatal(err)
	}
	if order != "bn"+"nb"+"bn"+"nb"+"bn" || prepared != "-1 0 1 2 3 " {
		t.Errorf("turns %s of rounds %s", order, prepared)
	}
	if got := strings.Join(k.out.First, " "); got != "node baseline node baseline" {
		t.Errorf("the report says that first were %s", got)
	}
	if len(k.out.Node.Rates) != 4 || len(k.out.Baseline.Rates) != 4 || k.out.Node.Name != "n" {
		t.Errorf("the warm-up was kept: %+v", k.out)
	}
}

func TestConclude(t *testing.T) {
	c := &Compared{What: "orders", First: []string{sideNode, sideBaseline},
		Conditions: Conditions{Node: &Node{}, Baseline: &Program{GOGC: "77"}},
		Node: Side{Name: "node", Rates: []float64{100, 300}, CPUMicros: []float64{60, 80},
			P50Micros: []float64{1, 1}, P90Micros: []float64{1, 1}, P99Micros: []float64{1, 1},
			MaxMicros: []float64{1, 1}, EndedBy: []string{endedByTime, "operations: …"}},
		Baseline: Side{Name: "base", Rates: []float64{400, 400}, CPUMicros: []float64{100, 40},
			P50Micros: []float64{1, 1}, P90Micros: []float64{1, 1}, P99Micros: []float64{1, 1},
			MaxMicros: []float64{1, 1}, EndedBy: []string{endedByTime, endedByTime}}}
	if err := c.conclude(); err != nil || c.Ratio != 0.5 || c.CPURatio != 1 {
		t.Fatalf("ratios %v and %v, error %v", c.Ratio, c.CPURatio, err)
	}
	var text strings.Builder
	c.WriteText(&text)
	for _, want := range []string{"0.50 times the baseline's rate, 1.00 times its CPU",
		"1  node           100         400   0.25         60.0     100.0   0.60",
		"2  baseline       300         400   0.75         80.0      40.0   2.00",
		"1 of 4 turns ended before their time", "GOGC 77", "none: nothing is written"} {
		if !strings.Contains(text.String(), want) {
			t.Errorf("the report does not say %q:\n%s", want, &text)
		}
	}
	c.Baseline.CPUMicros = []float64{0, 0}
	if err := c.conclude(); err == nil {
		t.Error("a ratio to nothing was computed")
	}
}

// TestReportCarriesConditions reads the JSON as somebody who has nothing else would.
func TestReportCarriesConditions(t *testing.T) {
	r := &Report{Conditions: NewConditions("v9")}
	r.Conditions.Node = &Node{Program: Program{GOGC: "50"}}
	r.Conditions.Data = diskOf(t.TempDir())
	b, err := json.Marshal(r)
	if err != nil {
		t.Fatal(err)
	}
	for _, key := range []string{`"version":"v9"`, `"go":"go`, `"cgo":`, `"gomaxprocs":"`, `"gogc":"50"`,
		`"gomemlimit":"`, `"durability":`, `"kernel":`, `"cpu":`, `"cores":`, `"filesystem":"`,
		`"device":"`, `"mount_options":"`, `"fsync_micros":`, `"hiccup":{"measures":`, `"steal_millis"`,
		`"started_by_this_run":false`, `"seconds_asked"`, `"ended_by"`, `"seed"`, `"loop"`, `"start"`,
		`"filled":null`, `"cpu_micros_per_operation":null`, `"allocs_per_operation":null`} {
		if !bytes.Contains(b, []byte(key)) {
			t.Errorf("the report has no %s: %s", key, b)
		}
	}
}
