package bench

import (
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"clobd/bench/lean"
)

func TestDrifts(t *testing.T) {
	laps := func(differ func(i int, l *Lap)) []Lap {
		list := make([]Lap, 20)
		for i := range list {
			list[i] = Lap{Done: 1000, Memory: 100e6, Goroutines: 100, Files: 50, CPUMicros: new(50.0),
				Corrected: Latency{P50: 500, P99: 5000}, Disk: 1e9 + float64(i)*500_000}
			differ(i, &list[i])
		}
		return list
	}
	for _, c := range []struct {
		name   string
		differ func(i int, l *Lap)
		says   string
	}{
		{"nothing", func(int, *Lap) {}, ""},
		{"a leak of goroutines", func(i int, l *Lap) { l.Goroutines += float64(5 * i) }, "goroutines"},
		{"a leak of memory", func(i int, l *Lap) { l.Memory += 20e6 * float64(i) }, "memory"},
		{"a leak of files", func(i int, l *Lap) { l.Files += 10 * float64(i) }, "open files"},
		{"a slower median", func(i int, l *Lap) { l.Corrected.P50 += 150 * float64(i) }, "p50"},
		{"one slow lap", func(i int, l *Lap) {
			if i == 10 {
				l.Corrected.P99 = 1e6
			}
		}, ""},
		{"more work an order", func(i int, l *Lap) { l.CPUMicros = new(50 + 3*float64(i)) }, "node's CPU"},
		{"too much on disk", func(i int, l *Lap) { l.Disk += 20e6 * float64(i) }, "disk"},
		{"no metrics", func(_ int, l *Lap) { l.CPUMicros = nil }, "node's CPU, µs an operation: unknown"},
		{"no memory", func(_ int, l *Lap) { l.Memory = 0 }, "memory, bytes: unknown"},
		{"one lap without memory", func(i int, l *Lap) {
			if i == 0 {
				l.Memory = 0
			}
		}, ""},
	} {
		s := &Soaked{Drifts: drifts(laps(c.differ), true)}
		err := s.Verdict()
		if len(s.Drifts) != len(driftRules) || (err == nil) != (c.says == "") ||
			err != nil && (!strings.Contains(err.Error(), c.says) || strings.Contains(err.Error(), "\n")) {
			t.Errorf("%s: %v", c.name, err)
		}
	}
}

func TestPieces(t *testing.T) {
	for _, c := range []struct {
		rate     float64
		duration time.Duration
		want     time.Duration
	}{
		{100, time.Second, 100 * time.Millisecond},
		{1000, time.Hour, time.Minute},
		{10_000, time.Hour, 20 * time.Second},
	} {
		s := Soak{Run{Rate: c.rate, Duration: c.duration}}
		if got := s.piece(); got != c.want {
			t.Errorf("%v at %.0f/s: pieces of %v, want %v", c.duration, c.rate, got, c.want)
		}
	}
}

// TestDriftsOfStrangers: who may not see the node's metrics is told of latencies alone.
func TestDriftsOfStrangers(t *testing.T) {
	list := drifts(slices.Repeat([]Lap{{Corrected: Latency{P50: 1, P99: 2}}}, 10), false)
	if len(list) != 2 || !list[0].Held || list[1].Unknown || list[1].Last != 2 {
		t.Errorf("%+v", list)
	}
}

// TestLaps lets a server fall behind in the first piece: what was due in the second meanwhile is
// late before it is sent. A machine that stands still is another reason to be late: it is
// tried with longer pieces then.
func TestLaps(t *testing.T) {
	piece := 500 * time.Millisecond
	for try := 1; !laps(t, piece); try, piece = try+1, 2*piece {
		if try == 5 {
			t.Fatalf("%d times the laps did not show that it was the server", try)
		}
	}
}

// laps soaks a server for two pieces, and reports whether all was sent, and was late because of the
// server alone.
func laps(t *testing.T, long time.Duration) bool {
	t.Helper()
	var count atomic.Int64
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		if count.Add(1) == 15 {
			time.Sleep(long)
		}
		_, _ = w.Write([]byte("{}"))
	}))
	defer server.Close()
	addr := strings.TrimPrefix(server.URL, "http://")
	const n = 20
	k := &soaking{Soak: Soak{Run{Rate: n / long.Seconds(), Duration: 10 * long}}, // a piece is a tenth
		trial: &trial{report: &Report{}}, to: &target{desk: desk{addr: addr}}, out: &Soaked{}}
	ready := make(chan piece, 2)
	for range 2 {
		v, sweep := reads(addr, "/", 1, nil), reads(addr, "/", 1, nil)
		for len(v.Requests) < n {
			v.Requests = append(v.Requests, v.Requests[0])
		}
		v.Repeat, sweep.Repeat = false, false
		v.Due, v.Duration = arrivals(k.Rate, false, 1, n), k.piece()
		ready <- piece{load: v, sweep: sweep, due: n}
	}
	close(ready)
	if err := k.laps(t.Context(), ready); err != nil {
		t.Fatal(err)
	}
	k.keep()
	laps := k.out.Laps
	if len(laps) != 2 || k.out.Due != 2*n || k.out.Good+laps[0].Unsent+laps[1].Unsent != 2*n {
		t.Fatalf("%+v", k.out)
	}
	if half := float64(long.Microseconds()) / 2; laps[0].Unsent+laps[1].Unsent > 0 ||
		laps[1].Corrected.Max < half || laps[1].Service.Max > half {
		t.Logf("%+v", k.out)
		return false
	}
	k.drained = k.drained.Add(4 * long)
	if k.keep(); k.out.Kept > 0.8 || k.out.Verdict() == nil ||
		!strings.Contains(k.out.Verdict().Error(), "fell behind: of the asked rate") {
		t.Errorf("four pieces late: kept %v, %v", k.out.Kept, k.out.Verdict())
	}
	k.out.Good, k.out.Kept = k.out.Good/2, 0
	if k.keep(); k.out.Kept > 0.5 {
		t.Errorf("half of the requests: kept %v", k.out.Kept)
	}
	return true
}

// TestSoakWithoutPauses: the rate and the generator's shares are of the time in which the load was
// sent, and so are the time that is shown and the time that is left.
func TestSoakWithoutPauses(t *testing.T) {
	start := time.Now().Add(-time.Hour)
	k := &soaking{Soak: Soak{Run{Rate: 100, Duration: 20 * time.Second,
		Thresholds: []Threshold{{Rule: "rate >= 99", Figure: "rate", Op: ">=", Limit: 99}}}},
		trial: &trial{report: &Report{Conditions: Conditions{Cores: 4}}},
		out:   &Soaked{Operations: 2000, Laps: make([]Lap, 10)},
		start: start, drained: start.Add(50 * time.Second), moved: 30 * time.Second,
		threads: 8 * time.Second}
	k.total.service, k.total.corrected, k.total.late = NewRecorder(), NewRecorder(), NewRecorder()
	k.conclude()
	if o := k.out; o.SendingSeconds != 20 || o.Generator.Thread != 0.4 || o.Generator.Share != 0.1 ||
		len(o.Thresholds) != 1 || !o.Thresholds[0].Held {
		t.Errorf("%+v", o)
	}
	k.drained = start.Add(45 * time.Second) // the last request was due before the end of its piece
	if took := k.sending(); took != 20*time.Second {
		t.Errorf("ten pieces of 2 s were sent for %v", took)
	}
	var told lean.Progress
	k.Progress = func(p lean.Progress) { told = p }
	k.progress(start.Add(36 * time.Second))(lean.Progress{Elapsed: time.Second})
	if told.Elapsed != 7*time.Second || told.Left != 13*time.Second {
		t.Errorf("%+v", told)
	}
}

// TestFirstRequests counts lists as one request.
func TestFirstRequests(t *testing.T) {
	ops := mixed() // the requests have 15, 2, 1, 1, … operations
	for n, want := range []int{0, 15, 17, 18, 19} {
		if got := firstRequests(ops, n); got != want {
			t.Errorf("%d requests are %d operations, want %d", n, got, want)
		}
	}
}
