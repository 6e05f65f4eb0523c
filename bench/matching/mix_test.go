package matching

import (
	"bytes"
	"encoding/json"
	"errors"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

// smallMixes are the four cells in little.
func smallMixes() (all []Mix) {
	for _, books := range []int{1, 40} {
		for _, ticks := range []int{99, 999} {
			m := NewMix(books, ticks, 7)
			m.Prefill, m.Ops = 2000, 40_000
			all = append(all, m)
		}
	}
	return all
}

// TestMixShares: a mix is what it says, and the same each time.
func TestMixShares(t *testing.T) {
	for _, m := range smallMixes() {
		ops, sum := m.Draw()
		again, same := m.Draw()
		if !slices.Equal(ops, again) || sum != same {
			t.Fatalf("%+v draws something else the second time", m)
		}
		if len(ops) != m.Prefill+m.Ops {
			t.Fatalf("%+v: %d operations", m, len(ops))
		}
		var rest, cancel, cross int
		for _, o := range ops[m.Prefill:] {
			switch {
			case o.Cancel:
				cancel++
			case o.IOC:
				cross++
			default:
				rest++
			}
		}
		n := m.Ops
		if rest < n*48/100 || rest > n*52/100 || cancel < n*38/100 || cancel > n*42/100 ||
			cross < n*9/100 || cross > n*11/100 || sum.Fills < uint64(cross) {
			t.Errorf("%+v: %d rest, %d cancels, %d cross, %d fills", m, rest, cancel, cross, sum.Fills)
		}
	}
}

// TestMixGolden pins the operations: a figure of today is of the same work as one of next year.
func TestMixGolden(t *testing.T) {
	want := []MixSum{
		{Fills: 7051, Volume: 7921643, Resting: 2673, Chain: 0x2ce7416fc6d28aab},
		{Fills: 6336, Volume: 72940241, Resting: 2897, Chain: 0x2b1bd9475f4d8314},
		{Fills: 7005, Volume: 8119642, Resting: 2834, Chain: 0x58e1898c15679442},
		{Fills: 5832, Volume: 71652600, Resting: 3257, Chain: 0x873fc2a6018a99a8},
	}
	for i, m := range smallMixes() {
		if _, sum := m.Draw(); i >= len(want) || sum != want[i] {
			t.Errorf("%d books of %d ticks: %#v", m.Books, m.Ticks, sum)
		}
	}
}

func TestMixFile(t *testing.T) {
	m := smallMixes()[3]
	ops, sum := m.Draw()
	file := filepath.Join(t.TempDir(), "mix")
	if err := m.Write(file, ops, sum); err != nil {
		t.Fatal(err)
	}
	gotMix, gotOps, gotSum, err := ReadMix(file)
	if err != nil || gotMix != m || gotSum != sum || !slices.Equal(gotOps, ops) {
		t.Fatalf("read back %+v %+v, %v", gotMix, gotSum, err)
	}
	b, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	for name, bad := range map[string][]byte{
		"empty": nil, "another magic": append([]byte("x"), b[1:]...), "cut": b[:len(b)-1],
	} {
		if err := os.WriteFile(file, bad, 0o644); err != nil {
			t.Fatal(err)
		}
		if _, _, _, err := ReadMix(file); !errors.Is(err, errMix) {
			t.Errorf("%s: %v", name, err)
		}
	}
}

// TestMatchers: the bare books, the whole Exchange and the textbook come to what the model says,
// down to who was filled by how much.
func TestMatchers(t *testing.T) {
	wide := NewMix(100, 99, 7) // so many books that a bare one touches what is ahead
	wide.Prefill, wide.Ops = 2_000, 40_000
	for _, m := range append(smallMixes(), wide) {
		ops, sum := m.Draw()
		for name, run := range matchers() {
			for _, check := range []bool{true, false} {
				r := rerun{mix: m, ops: ops, check: check}
				run(&r)
				want := sum
				if !check {
					want.Chain = 0
				}
				if r.turn.MixSum != want || r.turn.CPU <= 0 || r.turn.Wall <= 0 {
					t.Errorf("%s, %d books of %d ticks, check %v: %+v, want %+v", name, m.Books,
						m.Ticks, check, r.turn, want)
				}
			}
		}
	}
}

func TestServeMatcher(t *testing.T) {
	m := smallMixes()[0]
	ops, sum := m.Draw()
	file := filepath.Join(t.TempDir(), "mix")
	if err := m.Write(file, ops, sum); err != nil {
		t.Fatal(err)
	}
	var out bytes.Buffer
	if err := Serve("bare", file, strings.NewReader("turn\nturn\n"), &out); err != nil {
		t.Fatal(err)
	}
	turns := json.NewDecoder(&out)
	for round := range 2 {
		var turn Turn
		if err := turns.Decode(&turn); err != nil {
			t.Fatal(err)
		}
		if round > 0 {
			sum.Chain = 0
		}
		if turn.MixSum != sum {
			t.Errorf("turn %d: %+v, want %+v", round, turn.MixSum, sum)
		}
	}
	if err := Serve("nobody", file, strings.NewReader("turn\n"), &out); err == nil {
		t.Error("an unknown matcher replays")
	}
}

// TestCompareMatchingRefuses names all that is wrong at once.
func TestCompareMatchingRefuses(t *testing.T) {
	c := Comparison{Rounds: 0, Books: []int{0}, Ticks: []int{98}, Peers: []string{"x"}}
	if _, err := Compare(t.Context(), c); err == nil ||
		strings.Count(err.Error(), "want") != 4 {
		t.Errorf("got %v", err)
	}
}

// TestTurn: a matcher that comes to something else ends the comparison.
func TestTurn(t *testing.T) {
	dir := t.TempDir()
	for name, fills := range map[string]string{"right": "3", "wrong": "4"} {
		script := "#!/bin/sh\nwhile read -r _; do echo " +
			`'{"cpu_ns":10,"wall_ns":20,"fills":` + fills + `,"volume":5,"resting":6}'` + "; done\n"
		file := filepath.Join(dir, name)
		if err := os.WriteFile(file, []byte(script), 0o755); err != nil {
			t.Fatal(err)
		}
		c := Cell{Mix: Mix{Ops: 2}, Sum: MixSum{Fills: 3, Volume: 5, Resting: 6, Chain: 9}}
		if err := c.start(t.Context(), Matcher{Name: name}, file, "mix"); err != nil {
			t.Fatal(err)
		}
		x := &c.Matchers[0]
		err := c.turn(x, false)
		if name == "right" && (err != nil || x.CPU[0] != 5 || x.Wall[0] != 10) {
			t.Errorf("right: %v, %v, %v", err, x.CPU, x.Wall)
		}
		if name == "wrong" && (err == nil || !strings.Contains(err.Error(), "comes to")) {
			t.Errorf("wrong: %v", err)
		}
		c.stop()
	}
}
