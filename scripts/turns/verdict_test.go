package main

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"clobd/scripts/setting"
)

func TestJudge(t *testing.T) {
	r := rounds{
		old:   []float64{100, 100, 100, 100, 100},
		again: []float64{100, 104, 96, 102, 200}, // the last round does not count
		new:   []float64{103, 103, 103, 103, 150},
	}
	v := r.judge()
	if v.old != 100 || v.new != 103 || v.slower() || v.spread < 1.041 || v.spread > 1.042 {
		t.Errorf("%+v", v)
	}
	for i := range r.new {
		r.new[i] = 107
	}
	if v = r.judge(); !v.slower() {
		t.Errorf("%+v is not slower", v)
	}
	var text strings.Builder
	if !write(&text, []string{"x"}, map[string]*rounds{"x": &r}) ||
		!strings.Contains(text.String(), "SLOWER") {
		t.Error(&text)
	}
	r.again = []float64{100, 108, 108, 108, 109} // behind in too few rounds
	if v = r.judge(); v.slower() {
		t.Errorf("%+v is slower", v)
	}
	few := rounds{old: []float64{1}, again: []float64{2}, new: []float64{1}}
	if v = few.judge(); v.spread != 2 {
		t.Errorf("of one round: %+v", v)
	}
}

// TestOption: a node is loaded for a moment, with and without being scraped, and its CPU time per
// order is that of an order.
func TestOption(t *testing.T) {
	setting.Full(t, "it builds a node and loads it")
	folder := t.TempDir()
	binary := filepath.Join(folder, "clobd")
	if err := run("../..", "go", "build", "-buildvcs=false", "-o", binary, "./cmd/clobd"); err != nil {
		t.Fatal(err)
	}
	n, err := startLoaded(binary, folder, options()["scrape"])
	if err != nil {
		t.Fatal(err)
	}
	defer n.stop()
	for range 2 {
		cost, err := n.turn(300 * time.Millisecond)
		if err != nil || cost < 5 || cost > 50_000 {
			t.Errorf("an order takes %v µs of CPU time: %v", cost, err)
		}
	}
	if err := optionTurns(folder, 1, "nothing", "../.."); err == nil {
		t.Error("an unknown option is measured")
	}
}

func TestRead(t *testing.T) {
	const text = "BenchmarkApply/markets=1-2 \t 892261\t 504.2 ns/op\t 0.18 fills/op\n" +
		"BenchmarkApply/markets=1000 \t 824356\t 538.4 ns/op\nBenchmarkCommit/100-2 100 5 ns/op 2e6 commands/s\n"
	for _, c := range []struct {
		metric
		want float64
	}{
		{metric{line: "BenchmarkApply/markets=1", unit: "ns/op"}, 504.2},
		{metric{line: "BenchmarkApply/markets=1000", unit: "ns/op"}, 538.4},
		{metric{line: "BenchmarkCommit/100", unit: "commands/s", rate: true}, 500},
	} {
		if got, err := c.read(text); err != nil || got != c.want {
			t.Errorf("%+v: %v, %v", c, got, err)
		}
	}
	for _, m := range []metric{{line: "BenchmarkBare", unit: "ns/op"},
		{line: "BenchmarkCommit/100", unit: "p50-us"}} {
		if got, err := m.read(text); err == nil {
			t.Errorf("%+v: %v", m, got)
		}
	}
}

// TestFind finds this tree's benches, each once.
func TestFind(t *testing.T) {
	for _, m := range micros() {
		if folder, err := find("../..", m.function); err != nil {
			t.Errorf("%s: %v, %v", m.function, folder, err)
		}
	}
	dir := t.TempDir()
	if _, err := find(dir, "BenchmarkBare"); err == nil {
		t.Error("found in an empty tree")
	}
	for _, name := range []string{"a_test.go", "b_test.go"} {
		text := []byte("func BenchmarkBare(b *testing.B) {")
		if err := os.WriteFile(filepath.Join(dir, name), text, 0o644); err != nil {
			t.Fatal(err)
		}
	}
	if _, err := find(dir, "BenchmarkBare"); err == nil {
		t.Error("found twice and taken")
	}
}

// TestOrder: each contestant is at each place equally often.
func TestOrder(t *testing.T) {
	all := []*contestant{{name: "A"}, {name: "A'"}, {name: "B"}}
	at := map[string]int{}
	for round := range 6 {
		for place, c := range order(round, all...) {
			at[c.name+string(rune('0'+place))]++
		}
	}
	if len(at) != 9 {
		t.Fatal(at)
	}
	for key, n := range at {
		if n != 2 {
			t.Errorf("%s: %d", key, n)
		}
	}
}
